#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What conf_show says of each configuration in in/ is what ok/ has. NN-what.yaml
# is a file, NN-what.stdin is read from standard input, NN-what/ has an xlb.yaml
# with its xlb.d. `make update-goldens` rewrites ok/: read the diff.
here=${top_srcdir:-$(dirname "$0")/../..}/tests/golden
show=$(cd "${top_builddir:-.}" && pwd)/tests/golden/conf_show
got=$(mktemp) || exit 99
trap 'rm -f "$got"' EXIT
cd "$here/in" || exit 99

run() {	# CASE
	case $1 in
	*.stdin) "$show" - <"$1" ;;
	*.yaml) "$show" "$1" </dev/null ;;
	*) cd "$1" && "$show" xlb.yaml </dev/null ;;
	esac
}

n=0
for case in *; do
	n=$((n + 1))
	name=${case%.yaml}
	ok=../ok/${name%.stdin}.out
	(run "$case") >"$got" 2>&1
	status=$?
	if [ -n "$UPDATE" ]; then
		cp "$got" "$ok"
	fi
	# 0: prints a configuration; 1: says only what is wrong with it
	if [ "$status" -gt 1 ]; then
		echo "# exit status $status"
	elif why=$(diff -u "$ok" "$got" 2>&1) && [ "$status" -eq \
	    "$(grep -v ': warning: ' "$ok" | grep -c -m 1 '^[^ ].*: ')" ]; then
		echo "ok $n - $name"
		continue
	fi
	echo "$why" | sed 's/^/# /'
	echo "not ok $n - $name"
done
for ok in ../ok/*; do
	name=$(basename "$ok" .out)
	if ! [ -e "$name.yaml" ] && ! [ -e "$name.stdin" ] &&
	    ! [ -d "$name" ]; then
		n=$((n + 1))
		echo "not ok $n - $ok has no input"
	fi
done
echo "1..$n"
