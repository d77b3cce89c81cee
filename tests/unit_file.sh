#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What the service manager reads: the unit verifies, its sandbox is as tight as
# promised, sysusers.d and tmpfiles.d make what they should.
src=${top_srcdir:-$(dirname "$0")/..}
built=${top_builddir:-.}
if ! command -v systemd-analyze >/dev/null; then
	echo "1..0 # SKIP systemd-analyze is missing"
	exit 0
fi
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0

verdict() {	# RC NAME [TEXT]
	n=$((n + 1))
	[ -z "$3" ] || printf '%s\n' "$3" | sed 's/^/# /'
	if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

echo 1..6
# verify wants the programs to be there; they are not installed yet
sed -e 's,^ExecStart=[^ ]*,ExecStart=/bin/true,' \
    -e 's,^ExecReload=[^ ]*,ExecReload=/bin/true,' "$built/etc/xlb.service" \
    >"$tmp/xlb.service"
out=$(systemd-analyze verify --man=no --recursive-errors=no \
    "$tmp/xlb.service" 2>&1) && [ -z "$out" ]
verdict $? "the unit verifies" "$out"

out=$(systemd-analyze security --offline=true --threshold=30 \
    "$tmp/xlb.service" 2>&1)
verdict $? "its exposure is 3.0 or less" \
    "$(printf '%s\n' "$out" | tail -n 1)"

! grep -q '@[a-z]*dir@' "$built/etc/xlb.service"
verdict $? "every path is substituted"

grep -q '^ExecStart=/.*/xlbd$' "$built/etc/xlb.service" &&
    grep -q '^ExecReload=/.*/xlb reload$' "$built/etc/xlb.service"
verdict $? "it starts and reloads what is installed"

mkdir -p "$tmp/root/etc" "$tmp/root/usr/lib/sysusers.d" \
    "$tmp/root/usr/lib/tmpfiles.d"
cp "$src/etc/xlb.sysusers" "$tmp/root/usr/lib/sysusers.d/xlb.conf"
out=$(systemd-sysusers --root="$tmp/root" xlb.conf 2>&1) &&
    [ "$(grep -c -e '^_xlb:' -e '^xlb:' -e '^xlb-admin:' -e '^bird:' \
	"$tmp/root/etc/group")" -eq 4 ] && grep -q '^_xlb:.*nologin$' "$tmp/root/etc/passwd"
verdict $? "sysusers.d makes the user and the groups" "$out"

cp "$src/etc/xlb.tmpfiles" "$tmp/root/usr/lib/tmpfiles.d/xlb.conf"
if [ "$(id -u)" -ne 0 ]; then
	verdict 0 "tmpfiles.d makes the directory # SKIP needs root"
	exit 0
fi
out=$(systemd-tmpfiles --root="$tmp/root" --create xlb.conf 2>&1) &&
    [ "$(stat -c '%a %u' "$tmp/root/run/xlb-bird")" = "755 0" ]
verdict $? "tmpfiles.d makes the directory" "$out"
