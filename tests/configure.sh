#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Where everything is missing, configure names all of it at once, each with the
# Debian package that has it: those that setup installs, and that debian/control has.
src=$(cd "${top_srcdir:-$(dirname "$0")/..}" && pwd)
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 99
n=0

verdict() {	# RC NAME
	n=$((n + 1))
	[ "$1" -eq 0 ] || { sed 's/^/# /' out; printf 'not '; }
	echo "ok $n - $2"
}

printf '#!/bin/sh\n[ "$1" = --atleast-pkgconfig-version ]\n' >pkg-config
chmod 755 pkg-config
PKG_CONFIG=$dir/pkg-config ac_cv_search_ns_parserr=no ac_cv_path_BPF_CLANG=no \
    ac_cv_path_BPFTOOL=no "$src/configure" >out 2>&1
[ $? -eq 1 ] && [ ! -e Makefile ]
verdict $? "it fails"
sed -n 's/^  \(.*\) (Debian: \(.*\))$/\2/p' out | sort >named
sed -n 's/^XLB_LIB(.*\[\(.*\)\])$/\1/p; s/.*XLB_NEED(\[[^$].*, \[\([a-z].*\)\])\]\{0,1\}).*/\1/p' \
    "$src/configure.ac" | sort >wanted
diff wanted named >>out && [ "$(grep -c . named)" -ge 12 ]
verdict $? "all that is missing is named, in one run"
sed -n '/^BUILD_DEPS=(/,/)/p' "$src/setup" | tr -s '=()[:space:]' '\n' | sort >setup
comm -23 named setup >lacks
cat lacks >>out
[ ! -s lacks ]
verdict $? "setup installs it"
for p in $(cat named); do
	grep -q "^ *$p\\b" "$src/debian/control" || echo "$p: not in debian/control"
done >lacks
cat lacks >>out
[ ! -s lacks ]
verdict $? "so does who builds the packages"
echo "1..$n"
