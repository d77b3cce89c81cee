#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Each header compiles alone, and twice, with gcc and clang; those of bpf/ for
# the BPF target, xlb_abi.h for both sides.
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 99
built=${top_builddir:-.}
libs=$(pkg-config --cflags libbpf libmnl libsystemd jansson yaml-0.1)
flags="-std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Wshadow -Wstrict-prototypes
    -Werror -Isrc -Ibpf -I$built/bpf $libs"
bpf_clang=$(command -v clang || echo clang-14)
multiarch=$(gcc -print-multiarch)
n=0

try() {	# HEADER COMMAND...
	header=$1
	shift
	n=$((n + 1))
	name=${1##*/}
	case " $* " in *" -target bpf "*) name="$name -target bpf" ;; esac
	if out=$(printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
	    "$@" -x c -fsyntax-only - 2>&1); then
		echo "ok $n - $header, $name"
	else
		echo "$out" | sed 's/^/# /'
		echo "not ok $n - $header, $name"
	fi
}

# shellcheck disable=SC2086
host() {
	for cc in gcc clang; do
		if command -v "$cc" >/dev/null; then
			try "$1" "$cc" $flags
		else
			n=$((n + 1))
			echo "ok $n - $1 # SKIP no $cc"
		fi
	done
}

for f in src/*/*.h; do
	host "${f#src/}"
done
host xlb_abi.h
for f in bpf/*.h; do
	try "${f#bpf/}" "$bpf_clang" -target bpf -O2 -g -Wall -Wextra -Werror \
	    -Wno-unused-function -Ibpf -idirafter "/usr/include/$multiarch"
done
for f in tests/*/*.h; do
	case $f in */fabric/*) continue ;; esac
	host "../$f"
done
echo "1..$n"
