# SPDX-License-Identifier: GPL-2.0-or-later
# The packet program, in the kernel (skipped without root) and on this machine.
EXTRA_PROGRAMS += tests/prog/run_bpf tests/prog/run_host
tests_prog_run_bpf_SOURCES = tests/prog/run.c tests/prog/engine.h \
	tests/prog/engine_bpf.c tests/prog/engine_stats.c
nodist_tests_prog_run_bpf_SOURCES = bpf/xlb.skel.h
tests/prog/run_bpf-engine_bpf.$(OBJEXT): bpf/xlb.skel.h
tests_prog_run_bpf_CPPFLAGS = $(AM_CPPFLAGS) $(LIBBPF_CFLAGS)
tests_prog_run_bpf_LDADD = $(LIBBPF_LIBS)
tests_prog_run_host_SOURCES = tests/prog/run.c tests/prog/engine.h \
	tests/prog/engine_host.c tests/prog/engine_stats.c
tests_prog_run_host_CPPFLAGS = $(AM_CPPFLAGS)

PROG_TESTS = tests/prog/test_xlb.py tests/prog/test_nat.py tests/prog/test_nat_random.py tests/prog/test_events.py \
	tests/prog/test_flow.py
$(PROG_TESTS:%=%.log): tests/prog/run_bpf tests/prog/run_host
EXTRA_DIST += tests/prog/test_xlb.py tests/prog/test_nat.py \
	tests/prog/test_nat_random.py tests/prog/test_events.py \
	tests/prog/test_flow.py tests/prog/rig.py tests/prog/flows.py

UNIT_TESTS += tests/unit/test_hash
tests_unit_test_hash_SOURCES = tests/unit/test_hash.c tests/unit/unit.h
tests_unit_test_hash_LDADD = libxlbcore.a $(CMOCKA_LIBS)

# Many frames at random against a reference. XLB_DIFFER_PACKETS=100000000 for
# a long run.
EXTRA_PROGRAMS += tests/prog/differ
tests_prog_differ_SOURCES = tests/prog/differ.c tests/prog/differ_count.c \
	tests/prog/differ_count.h tests/prog/engine.h \
	tests/prog/engine_two.h tests/prog/engine_two_host.c \
	tests/prog/engine_two_bpf.c tests/prog/engine_stats.c tests/prog/gen.c tests/prog/gen.h \
	tests/prog/reference.c tests/prog/reference.h tests/prog/ref_bytes.c \
	tests/prog/ref_nat.c tests/prog/ref_packet.h tests/prog/ref_parse.c \
	tests/prog/ref_send.c tests/prog/rng.h tests/prog/world.c \
	tests/prog/world_int.h tests/prog/world_nat.c tests/prog/world.h
nodist_tests_prog_differ_SOURCES = bpf/xlb.skel.h
tests/prog/differ-engine_two_bpf.$(OBJEXT): bpf/xlb.skel.h
tests_prog_differ_CPPFLAGS = $(AM_CPPFLAGS) $(LIBBPF_CFLAGS)
tests_prog_differ_LDADD = $(LIBBPF_LIBS)
PROG_TESTS += tests/prog/differ

# Two CPUs in NAT's table, in every order.
NAT_SITE = tests/prog/nat_site.c tests/prog/nat_site.h tests/prog/engine.h \
	tests/prog/engine_stats.c
EXTRA_PROGRAMS += tests/prog/nat_race
tests_prog_nat_race_SOURCES = tests/prog/nat_race.c \
	tests/prog/engine_host.c $(NAT_SITE)
tests_prog_nat_race_CPPFLAGS = $(AM_CPPFLAGS)
tests_prog_nat_race_LDADD = libxlbcore.a -lpthread
PROG_TESTS += tests/prog/nat_race

EXTRA_PROGRAMS += tests/prog/nat_full
tests_prog_nat_full_SOURCES = tests/prog/nat_full.c \
	tests/prog/engine_host.c $(NAT_SITE)
tests_prog_nat_full_CPPFLAGS = $(AM_CPPFLAGS)
tests_prog_nat_full_LDADD = libxlbcore.a
PROG_TESTS += tests/prog/nat_full

# A pass over it under packets. XLB_NAT_FLOWS=1000000 for a large one.
EXTRA_PROGRAMS += tests/prog/nat_load
tests_prog_nat_load_SOURCES = tests/prog/nat_load.c \
	tests/prog/engine_bpf.c $(NAT_SITE)
nodist_tests_prog_nat_load_SOURCES = bpf/xlb.skel.h
tests/prog/nat_load-engine_bpf.$(OBJEXT): bpf/xlb.skel.h
tests_prog_nat_load_CPPFLAGS = $(AM_CPPFLAGS) $(LIBBPF_CFLAGS)
tests_prog_nat_load_LDADD = libxlbcore.a $(LIBBPF_LIBS) -lpthread
PROG_TESTS += tests/prog/nat_load

EXTRA_PROGRAMS += tests/prog/stress
tests_prog_stress_SOURCES = tests/prog/stress.c tests/prog/engine.h \
	tests/prog/engine_bpf.c tests/prog/engine_stats.c
nodist_tests_prog_stress_SOURCES = bpf/xlb.skel.h
tests/prog/stress-engine_bpf.$(OBJEXT): bpf/xlb.skel.h
tests_prog_stress_CPPFLAGS = $(AM_CPPFLAGS) $(LIBBPF_CFLAGS)
tests_prog_stress_LDADD = libxlbcore.a $(LIBBPF_LIBS) -lpthread
PROG_TESTS += tests/prog/stress
