#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What `xlb import-keepalived` makes of each configuration in keepalived/ is what
# keepalived/ok/ has, and loads. 8N-* are not to be taken. UPDATE=1 rewrites ok/:
# read the diff.
here=${top_srcdir:-$(dirname "$0")/../..}/tests/golden/keepalived
xlb=$(cd "${top_builddir:-.}" && pwd)/src/xlb
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
cd "$here" || exit 99

# The exit status is what the rest says.
status_is() {	# STATUS CASE
	case $2 in
	8*) [ "$1" -eq 3 ] && ! [ -s "$tmp/out" ] ;;
	*) [ "$1" -eq 0 ] && "$xlb" check - <"$tmp/out" >/dev/null 2>&1 ;;
	esac
}

n=0
for conf in *.conf; do
	n=$((n + 1))
	"$xlb" import-keepalived "$conf" >"$tmp/out" 2>"$tmp/err"
	status=$?
	{ cat "$tmp/out"; echo "---"; cat "$tmp/err"; } >"$tmp/got"
	[ -z "$UPDATE" ] || cp "$tmp/got" "ok/${conf%.conf}.out"
	if why=$(diff -u "ok/${conf%.conf}.out" "$tmp/got" 2>&1 &&
	    status_is $status "$conf"); then
		echo "ok $n - $conf"
	else
		echo "$why" | sed 's/^/# /'
		echo "not ok $n - $conf: exit status $status"
	fi
done
echo "1..$n"
[ "$n" -ge 10 ]
