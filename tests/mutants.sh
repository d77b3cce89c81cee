#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The list of mutants is of the sources as they are: one line that is not there
# and none of them can be tried.
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 99
echo 1..1
if said=$(tests/mutants/run --fit 2>&1); then
	echo "ok 1 - each mutant's line is there, once"
else
	echo "$said" | sed 's/^/# /'
	echo "not ok 1 - each mutant's line is there, once"
fi
