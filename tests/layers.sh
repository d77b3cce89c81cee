#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Who may include whom, and what the pure half may call. Core takes values and
# returns values; io knows core's types; only daemon/ and ctl/ see both.
cd "${top_srcdir:-$(dirname "$0")/..}" || exit 99
built=${top_builddir:-.}
n=0

verdict() {	# NAME FINDINGS
	n=$((n + 1))
	if [ -n "$2" ]; then
		echo "$2" | sed 's/^/# /'
		echo "not ok $n - $1"
	else
		echo "ok $n - $1"
	fi
}

# includes LAYER ALLOWED-LAYERS...: quoted includes that lead elsewhere. What
# lies in bpf/ without a directory is shared with the packet program.
includes() {
	layer=$1
	shift
	for f in src/"$layer"/*.[ch]; do
		[ -e "$f" ] || continue
		sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' \
		    "$f" | while read -r inc; do
			for ok in "$@"; do
				case $inc in "$ok"/*) continue 2 ;; esac
			done
			case $inc in
			*/*) echo "$f: \"$inc\"" ;;
			*.skel.h) [ "$layer" != core ] || echo "$f: \"$inc\"" ;;
			*) [ -e "bpf/$inc" ] || echo "$f: \"$inc\"" ;;
			esac
		done
	done
}

system_includes() {	# LAYER PATTERN
	grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*<($2)" \
	    src/"$1"/*.[ch] 2>/dev/null
}

verdict "core includes core alone" "$(includes core core)"
verdict "io includes io and core" "$(includes io io core)"
verdict "ctl includes ctl, io and core" "$(includes ctl ctl io core)"
verdict "daemon includes daemon, io and core" \
    "$(includes daemon daemon io core)"
verdict "decap includes decap, io and core" "$(includes decap decap io core)"
verdict "core includes no system interface" "$(system_includes core \
    'bpf/|systemd/|libmnl/|jansson|fcntl|sys/(epoll|ioctl|mman|stat)|syslog')"
verdict "yaml.c alone includes <yaml.h>" "$(grep -ln '<yaml.h>' src/*/*.[ch] |
    grep -v '^src/core/yaml\.c$')"

# The library's own word on it: no descriptor, clock, log, random or libbpf.
deny='open(at)?|fopen|fdopen|freopen|read|write|p(read|write)|close|fclose|dup[23]?'
deny="$deny|pipe2?|ioctl|fcntl|mmap|poll|select|epoll_.*|socket|connect|bind"
deny="$deny|listen|accept4?|send(to|msg)?|recv(from|msg)?|std(in|out|err)|v?printf"
deny="$deny|puts|putchar|perror|v?syslog|v?warnx?|v?errx?|clock_.*|time|ftime"
deny="$deny|gettimeofday|sleep|usleep|nanosleep|s?rand(om)?|getrandom|getenv"
deny="$deny|fork|exec.*|kill|system|pthread_.*|bpf_.*|libbpf_.*|sd_.*|mnl_.*"
deny="$deny|json_.*|curl_.*|log_.*|fatalx?"
lib=$built/libxlbcore.a
undefined() {
	nm -A "$lib" | sed -n 's/.*:\([^:]*\.o\):.* U /\1: /p' |
	    sed 's/: __\(.*\)_chk$/: \1/; s/: __isoc99_/: /; s/@.*//'
}
variables() {
	nm -A "$lib" | grep -E ' [BDC] ' | grep -vE '__(asan|odr_asan|ubsan)'
}

n=$((n + 1))
if undefined | grep -q ': abort$'; then
	echo "ok $n - nm reads $lib"
else
	echo "not ok $n - nm reads $lib"
fi
# Out of memory is the one thing that core itself says, before it aborts.
verdict "core calls no descriptor, clock, log or libbpf" \
    "$(undefined | grep -E ": ($deny)(64)?$" | grep -v '^arena\.o: stderr$')"
verdict "core has no linker-visible variable" "$(variables)"
verdict "every test is in a list of tests/local.mk, which setup runs" \
    "$(grep -n '^TESTS *+=' Makefile.am ./*/local.mk ./*/*/local.mk)"
echo "1..$n"
