# SPDX-License-Identifier: GPL-2.0-or-later
# ns per packet beside the floor; `make bench` needs root.
BENCH_BPF = tests/bench/driver.bpf.c
BENCH_SKELETON = tests/bench/driver.skel.h
$(BENCH_SKELETON:.skel.h=.bpf.o): tests/bench/frame.h
CLEANFILES += $(BENCH_SKELETON) $(BENCH_SKELETON:.skel.h=.bpf.o)

EXTRA_PROGRAMS += tests/bench/bench
tests_bench_bench_SOURCES = tests/bench/bench.c tests/bench/bench.h \
	tests/bench/frame.h tests/bench/cases.c tests/bench/tables.c \
	tests/bench/object.c tests/bench/count.c tests/bench/count.h \
	tests/bench/json.c tests/bench/rings.c \
	tests/bench/machine.c tests/bench/machine.h \
	tests/bench/machine_map.c tests/bench/machine_map.h tests/prog/engine_bpf.c tests/prog/engine_stats.c \
	tests/prog/engine.h
nodist_tests_bench_bench_SOURCES = $(BENCH_SKELETON) bpf/xlb.skel.h
tests_bench_bench_CPPFLAGS = $(AM_CPPFLAGS) $(LIBBPF_CFLAGS) \
	-I$(top_builddir)/tests/bench
tests_bench_bench_LDADD = libxlbcore.a $(LIBBPF_LIBS)
tests/bench/bench-bench.$(OBJEXT): $(BENCH_SKELETON)
tests/bench/bench-count.$(OBJEXT): $(BENCH_SKELETON)
tests/prog/bench_bench-engine_bpf.$(OBJEXT): bpf/xlb.skel.h

bench: tests/bench/bench$(EXEEXT)
	tests/bench/bench $(BENCH_FLAGS)
.PHONY: bench

BENCH_TESTS = tests/bench/test_bench.py
EXTRA_DIST += $(BENCH_BPF) $(BENCH_TESTS)
$(BENCH_TESTS:%=%.log): tests/bench/bench
