#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What `setup` does about packages that are missing: apt installs them, for that one
# call no service may start, and it says which they are. apt and dpkg are stand-ins
# here, in a mount namespace whose /usr/sbin is empty.
setup=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd)/setup
if [ "$1" != inside ]; then
	[ "$(id -u)" = 0 ] || { echo "1..0 # SKIP needs root"; exit 0; }
	dir=$(mktemp -d) || exit 99
	trap 'rm -rf "$dir"' EXIT
	unshare -m --propagation private "$0" inside "$dir"
	exit
fi
dir=$2 policy=/usr/sbin/policy-rc.d n=0
mkdir "$dir/bin" "$dir/sbin" && mount --bind "$dir/sbin" /usr/sbin || exit 99
export PATH=$dir/bin:/usr/bin:/bin XLB_BUILD=$dir/build dir policy

stand_in() {	# NAME: what it does is standard input
	{ echo '#!/bin/sh'; cat; } >"$dir/bin/$1" && chmod 755 "$dir/bin/$1"
}
stand_in dpkg-query <<'S'
grep -qx "$4" "$dir/missing" 2>/dev/null || printf installed
S
stand_in apt-cache <<'S'
true
S
# Says what it was asked for, and what a package's script would hear of services.
stand_in apt-get <<'S'
[ ! -e "$dir/hangs" ] || { echo $$ >"$dir/begun"; exec sleep 600; }
$policy zsh start; echo "$? $*" >>"$dir/asked"
[ ! -e "$dir/fails" ] || exit 100
rm -f "$dir/missing"
S

ok() {		# NAME COMMAND...
	local name=$1
	shift
	n=$((n + 1))
	"$@" && { echo "ok $n - $name"; return; }
	sed 's/^/# /' "$dir/said" "$dir/asked" 2>/dev/null
	echo "not ok $n - $name"
}

run() {		# EXIT-STATUS
	local status

	rm -f "$dir/asked"
	"$setup" install-deps >"$dir/said" 2>&1
	status=$?
	[ $status -eq "$1" ] || echo "# exit status $status" >&2
	[ $status -eq "$1" ]
}

missing() {
	printf '%s\n' "$@" >"$dir/missing"
}

installs() {	# with nobody's policy there
	run 0 && grep -qx '  packages: installing bird2 zsh' "$dir/said" &&
	    [ "$(grep -c . "$dir/asked")" = 1 ] && [ ! -e "$dir/missing" ] &&
	    grep -q '^101 .* install --no-install-recommends bird2 zsh$' "$dir/asked"
}

says_of_failure() {
	run 1 && grep -q 'apt-get failed: ' "$dir/said" &&
	    grep -q '^101 -q update$' "$dir/asked"
}

is_interrupted() {
	local pid end=$((SECONDS + 120))

	"$setup" install-deps >"$dir/said" 2>&1 &
	pid=$!
	until [ -s "$dir/begun" ]; do [ $SECONDS -lt $end ] || return; sleep 0.02; done
	[ -e $policy ] && kill -TERM $pid
	wait $pid
	[ $? -eq 143 ] && [ $SECONDS -lt $end ] && ! kill -0 "$(cat "$dir/begun")" 2>/dev/null
}

clean() {
	[ ! -e $policy ] || cat $policy
	[ ! -e $policy ]
}

ok "nothing is missing" run 0
ok "and nobody is asked for it" eval 'grep -q "nothing is missing" "$dir/said" &&
    [ ! -e "$dir/asked" ] && clean'
missing zsh bird2
ok "what is missing is installed, and no service starts" installs
ok "that stays forbidden for no longer" clean
missing zsh
touch "$dir/fails"
ok "apt fails, after one update" says_of_failure
ok "nothing is left of it" clean
touch "$dir/hangs"
ok "it is interrupted" is_interrupted
ok "nothing is left of it" clean
rm "$dir/hangs" "$dir/fails"
missing zsh
printf '#!/bin/sh\n# made by xlb/setup, and killed\nexit 101\n' >$policy
chmod 755 $policy
ok "a policy that a killed run left is used" run 0
ok "and goes" clean
missing zsh
printf '#!/bin/sh\nexit 7\n' | tee "$dir/theirs" >$policy
chmod 755 $policy
ok "the operator's own is not touched" eval 'run 0 && cmp $policy "$dir/theirs" &&
    grep -q "^7 " "$dir/asked"'
echo "1..$n"
