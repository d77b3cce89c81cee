#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The example configurations of the README load.
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 99
xlb=${top_builddir:-.}/src/xlb
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

awk -v dir="$tmp" '/^```yaml$/ { n++; on = 1; next } /^```$/ { on = 0 }
    on { print > (dir "/" n ".yaml") }' README.md

n=0
for f in "$tmp"/*.yaml; do
	n=$((n + 1))
	if out=$("$xlb" check - <"$f" 2>&1) &&
	    echo "$out" | grep -q '[1-9][0-9]* services\?,'; then
		echo "ok $n - example $n of README.md"
	else
		echo "$out" | sed 's/^/# /'
		echo "not ok $n - example $n of README.md"
	fi
done
echo "1..$n"
[ "$n" -gt 0 ]
