#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Every source names its licence near the top. Exempt: the licence itself, files
# whose form Debian gives, and inputs and expected outputs of tests, whose bytes
# and line numbers matter.
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 99

if [ -e .git ]; then
	git -c safe.directory='*' ls-files
else	# the tarball: what a build leaves beside the source is not asked
	find . -type f | sed 's,^\./,,' | grep -v -e '^_' -e '^build' \
	    -e '^autom4te.cache/' -e 'Makefile.in$' -e '^aclocal.m4$' \
	    -e '^configure$' -e '~$' -e '\.py[co]$'
fi | grep -v -e '^COPYING$' -e '^debian/\(changelog\|copyright\)$' \
    -e '^debian/source/format$' -e '^tests/golden/' -e '^tests/fuzz/corpus/' | {
	n=0 bad=0
	while read -r f; do
		[ -f "$f" ] || continue
		n=$((n + 1))
		head -n 5 "$f" | grep -q 'SPDX-License-Identifier: ' && continue
		echo "# $f: no SPDX-License-Identifier in the first five lines"
		bad=$((bad + 1))
	done
	echo 1..2
	[ "$n" -gt 0 ] || printf 'not '
	echo "ok 1 - found $n sources"
	[ "$bad" -eq 0 ] || printf 'not '
	echo "ok 2 - each has an SPDX line"
}
