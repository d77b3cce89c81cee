#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The configurations that we ship load without a warning; xlb.yaml serves
# nothing, and a whole configuration hides in its comments.
etc=${top_srcdir:-$(dirname "$0")/../..}/etc
show=${top_builddir:-.}/tests/golden/conf_show
n=0

verdict() {	# NAME EXIT-STATUS OUTPUT PATTERN-WANTED PATTERN-UNWANTED
	n=$((n + 1))
	if [ "$2" -eq 0 ] && echo "$3" | grep -q "$4" &&
	    ! echo "$3" | grep -q "$5"; then
		echo "ok $n - $1"
	else
		echo "$3" | sed 's/^/# /'
		echo "not ok $n - $1"
	fi
}

# A name without a directory: no xlb.d is there to be read.
cd "$etc" || exit 99
out=$("$show" - <xlb.yaml 2>&1)
verdict "xlb.yaml serves nothing" $? "$out" '^$' '.'
out=$(sed '/^#\([a-z]\|  \)/s/^#//' xlb.yaml | "$show" - 2>&1)
verdict "what xlb.yaml's comments say loads" $? "$out" 'pool: web' 'warning'
out=$("$show" - <example.yaml 2>&1)
verdict "example.yaml loads" $? "$out" 'pool: web' 'warning'
echo "1..$n"
