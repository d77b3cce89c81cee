# SPDX-License-Identifier: GPL-2.0-or-later
# The packet program, in the kernel (skipped without root) and on this machine.
check_PROGRAMS += tests/prog/run_bpf tests/prog/run_host
tests_prog_run_bpf_SOURCES = tests/prog/run.c tests/prog/engine.h \
	tests/prog/engine_bpf.c tests/prog/engine_stats.c
nodist_tests_prog_run_bpf_SOURCES = bpf/xlb.skel.h
tests/prog/run_bpf-engine_bpf.$(OBJEXT): bpf/xlb.skel.h
tests_prog_run_bpf_CPPFLAGS = $(AM_CPPFLAGS) $(LIBBPF_CFLAGS)
tests_prog_run_bpf_LDADD = $(LIBBPF_LIBS)
tests_prog_run_host_SOURCES = tests/prog/run.c tests/prog/engine.h \
	tests/prog/engine_host.c tests/prog/engine_stats.c
tests_prog_run_host_CPPFLAGS = $(AM_CPPFLAGS)

PROG_TESTS = tests/prog/test_xlb.py
TESTS += $(PROG_TESTS)
EXTRA_DIST += $(PROG_TESTS) tests/prog/rig.py

UNIT_TESTS += tests/unit/test_hash
tests_unit_test_hash_SOURCES = tests/unit/test_hash.c tests/unit/unit.h
tests_unit_test_hash_LDADD = libxlbcore.a $(CMOCKA_LIBS)
