#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The example configurations of the README load; the guide's arithmetic is right,
# and its commands are there.
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
examples=$n

verdict() {	# RC NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

awk -F' *[|] *' '/^[|] `(l2|nat|ipip|gue)`(, IPv[46])? [|] [0-9]+ [|]/ { n++
    if ($4 != 1500 + $3 || $5 != 1460 - $3 || $6 != 1440 - $3) {
	print "# " $0; bad = 1 } }
    END { exit bad || n != 6 }' doc/guide.md
verdict $? "MTU and MSS of the guide"

# new connections a second x (open for + two minutes), four entries for each of
# those, up to a power of two, 8 bytes each
awk -F' *[|] *' '/^[|] [0-9]+ [|] [0-9]+ s [|]/ { n++
    open = $2 * ($3 + 120)
    for (entries = 1024; entries < 4 * open; entries *= 2)
	;
    if ($4 != open || $5 + 0 != entries || $6 != entries * 8 / 2^20 " MiB") {
	print "# " $0; bad = 1 } }
    END { exit bad || n < 3 }' doc/guide.md
verdict $? "flow tables of the guide"

# the measured figures, as the manual has them
awk -F' *[|] *' '/^[|] [0-9]+ % [|]/ { print $2, $3 }' doc/guide.md >"$tmp/loss"
tr '\n' ' ' <man/xlb.yaml.5 | grep -o 'filled to.*10 %' |
    grep -o '[0-9.]* % [a-z ]*[0-9.]* %' | sed 's/%[a-z ]*/% /' >"$tmp/manual"
diff "$tmp/loss" "$tmp/manual" && [ "$(wc -l <"$tmp/loss")" -eq 4 ]
verdict $? "what a full flow table loses, as in xlb.yaml(5)"

"$xlb" completion commands >"$tmp/commands"
for word in $(grep -o '`xlb [a-z-]*' doc/guide.md | cut -d' ' -f2 | sort -u); do
	grep -qx -e "$word" "$tmp/commands" || echo "# no such command: $word"
done >"$tmp/unknown"
cat "$tmp/unknown"
[ ! -s "$tmp/unknown" ]
verdict $? "the guide's commands are there"
echo "1..$n"
[ "$examples" -gt 0 ]
