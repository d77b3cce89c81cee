# SPDX-License-Identifier: GPL-2.0-or-later
# Each fuzz target replays its corpus as an ordinary test. `make fuzz` builds the
# same with libFuzzer, in fuzz/, where --enable-fuzzers puts it instead of
# replay.c; tests/fuzz/run runs them.
FUZZ_TESTS =
FUZZ_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS) $(JANSSON_CFLAGS)
EXTRA_PROGRAMS += $(FUZZ_TESTS)
EXTRA_DIST += tests/fuzz/corpus tests/fuzz/run

if FUZZERS
FUZZ_MAIN =
FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer
FUZZ_FLOW_CFLAGS = -fno-sanitize-coverage=trace-cmp
else
FUZZ_MAIN = tests/fuzz/replay.c
FUZZ_LINK = $(AM_LDFLAGS)
endif

FUZZ_TESTS += tests/fuzz/fuzz_conf
tests_fuzz_fuzz_conf_SOURCES = tests/fuzz/conf.c tests/fuzz/fuzz.h $(FUZZ_MAIN)
tests_fuzz_fuzz_conf_LDADD = libxlbcore.a $(YAML_LIBS)
tests_fuzz_fuzz_conf_LDFLAGS = $(FUZZ_LINK)

FUZZ_TESTS += tests/fuzz/fuzz_keepalived
tests_fuzz_fuzz_keepalived_SOURCES = tests/fuzz/keepalived.c $(FUZZ_MAIN)
tests_fuzz_fuzz_keepalived_LDADD = libxlbcore.a $(YAML_LIBS)
tests_fuzz_fuzz_keepalived_LDFLAGS = $(FUZZ_LINK)

FUZZ_TESTS += tests/fuzz/fuzz_bird
tests_fuzz_fuzz_bird_SOURCES = tests/fuzz/bird.c $(FUZZ_MAIN)
tests_fuzz_fuzz_bird_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_bird_LDADD = $(XLBIO_LIBS)
tests_fuzz_fuzz_bird_LDFLAGS = $(FUZZ_LINK)

FUZZ_TESTS += tests/fuzz/fuzz_probe
tests_fuzz_fuzz_probe_SOURCES = tests/fuzz/probe.c $(FUZZ_MAIN)
tests_fuzz_fuzz_probe_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_probe_LDADD = $(XLBIO_LIBS)
tests_fuzz_fuzz_probe_LDFLAGS = $(FUZZ_LINK)

FUZZ_TESTS += tests/fuzz/fuzz_http
tests_fuzz_fuzz_http_SOURCES = tests/fuzz/http.c $(FUZZ_MAIN)
tests_fuzz_fuzz_http_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_fuzz_fuzz_http_LDADD = $(XLBIO_LIBS)
tests_fuzz_fuzz_http_LDFLAGS = $(FUZZ_LINK)

FUZZ_TESTS += tests/fuzz/fuzz_ctl
tests_fuzz_fuzz_ctl_SOURCES = tests/fuzz/ctl.c $(FUZZ_MAIN)
tests_fuzz_fuzz_ctl_CPPFLAGS = $(libxlbio_a_CPPFLAGS)
tests_fuzz_fuzz_ctl_LDADD = $(XLBD_LIBS)
# What the target says of the node stands for what the library has of that name,
# whatever else of it is linked.
tests_fuzz_fuzz_ctl_LDFLAGS = $(FUZZ_LINK) -Wl,-z,muldefs

FUZZ_TESTS += tests/fuzz/fuzz_packet
tests_fuzz_fuzz_packet_SOURCES = tests/fuzz/packet.c $(FUZZ_MAIN) \
	tests/prog/engine_host.c tests/prog/engine_stats.c \
	tests/prog/reference.c tests/prog/ref_bytes.c tests/prog/ref_nat.c \
	tests/prog/ref_parse.c tests/prog/ref_send.c tests/prog/world.c \
	tests/prog/world_nat.c
tests_fuzz_fuzz_packet_CPPFLAGS = $(AM_CPPFLAGS)
tests_fuzz_fuzz_packet_LDFLAGS = $(FUZZ_LINK)

FUZZ_TESTS += tests/fuzz/fuzz_flow
tests_fuzz_fuzz_flow_SOURCES = tests/fuzz/flow.c $(FUZZ_MAIN) \
	tests/prog/engine_stats.c src/core/arena.c src/core/flow_copy.c \
	src/core/ring_words.c src/core/sweep.c
tests_fuzz_fuzz_flow_CPPFLAGS = $(AM_CPPFLAGS)
# A pass compares 65536 rows; to follow each of those takes four times as long.
tests_fuzz_fuzz_flow_CFLAGS = $(AM_CFLAGS) $(FUZZ_FLOW_CFLAGS)
tests_fuzz_fuzz_flow_LDFLAGS = $(FUZZ_LINK)

# configure anew only where it was not: a build that is there is brought up to
# date.
FUZZ_CC = clang
.PHONY: fuzz fuzzers
fuzzers:
	$(MAKE) $(AM_MAKEFLAGS) $(BUILT_SOURCES)
	$(MAKE) $(AM_MAKEFLAGS) $(FUZZ_TESTS)
fuzz:
	@$(FUZZ_CC) --version >/dev/null 2>&1 || { echo "fuzz: $(FUZZ_CC) is \
	missing (Debian: clang and libclang-rt-dev)" >&2; exit 1; }
	$(MKDIR_P) fuzz
	test -e fuzz/Makefile || (cd fuzz && '$(abs_top_srcdir)/configure' \
	    CC='$(FUZZ_CC)' CFLAGS='-O1 -g' --enable-fuzzers)
	$(MAKE) -C fuzz fuzzers
