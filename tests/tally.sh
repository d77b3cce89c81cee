#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The last line of `./setup check`, and its exit status: of results in each form that
# parts have them in, and of parts that came to nothing.
tally=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd)/tests/tally.py
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
n=0

part() {	# NAME EXIT-STATUS: its output is standard input
	cat >"$1.log"
	echo "$2" >"$1.rc"
}

says() {	# NAME STATUS LAST-LINE WORD ARGUMENT...: of tally
	name=$1 status=$2 last=$3 word=$4
	shift 4
	n=$((n + 1))
	python3 "$tally" . "$@" >said 2>&1
	got=$?
	if [ $got -eq "$status" ] && [ "$(tail -n 1 said)" = "$last" ] &&
	    grep -q -e "$word" said; then
		echo "ok $n - $name"
	else
		echo "# exit status $got"
		sed 's/^/# /' said
		echo "not ok $n - $name"
	fi
}

all='good lines - make tap tree xml junit xml.xml one command -'
printf 'ok 1 - a\nok 2 - b # SKIP no root\n1..2\n' | part good 0
mkdir -p tree/tests
printf 'PASS: tests/t 1 - c\nSKIP: tests/t 2 - d # SKIP slow\n' >tree/tests/t.log
printf ':test-result: PASS\n:test-result: SKIP\n' >tree/tests/t.trs
part make 0 </dev/null
part xml 0 </dev/null
echo '<t><testcase classname="m" name="e"/></t>' >xml.xml
part one 0 </dev/null
says "all is well" 0 "4 passed, 0 failed, 2 skipped" "skipped:  *slow" total $all
says "a part of it" 0 "1 passed, 0 failed, 1 skipped" . part good lines -
says "one that did not run" 1 "4 passed, 1 failed, 2 skipped" "FAILED gone" \
    total $all gone command -
echo broke | part bad 2
says "one that failed without a test" 1 "4 passed, 1 failed, 2 skipped" broke \
    total $all bad command -
says "a step that failed" 1 "4 passed, 1 failed, 2 skipped" broke total $all bad step -
says "steps are no tests" 0 "4 passed, 0 failed, 2 skipped" . total $all one step -
part none 0 </dev/null
says "one without a single test" 1 "4 passed, 1 failed, 2 skipped" "FAILED none" \
    total $all none lines -
printf '# why\nnot ok 1 - f\n1..1\n' | part ill 1
says "a test that failed, with what it said" 1 "4 passed, 1 failed, 2 skipped" \
    "# why" total $all ill lines -
printf '# why\nnot ok 1 - f\n1..1\n' | part ill 0
says "whatever the exit status" 1 "4 passed, 1 failed, 2 skipped" "FAILED f" \
    total $all ill lines -
echo '<t><testcase classname="m" name="e"/><testcase classname="m" name="g">
    <failure>it is so</failure></testcase></t>' >xml.xml
says "one of pytest's" 1 "4 passed, 1 failed, 2 skipped" "it is so" total $all
printf ':test-result: FAIL\n:test-result: SKIP\n' >tree/tests/t.trs
says "a log of another run" 1 "3 passed, 2 failed, 1 skipped" "disagree" total $all
echo "1..$n"
