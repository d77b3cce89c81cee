# SPDX-License-Identifier: GPL-2.0-or-later
# Every test speaks TAP, so that `make check` counts cases, not programs; a test
# that cannot run says `1..0 # SKIP why`. Unit tests link libxlbcore.a alone.
# Test programs are EXTRA_PROGRAMS: `make check TESTS=...` builds what those need,
# so the log of a script depends on the programs that the script runs, under a name
# that automake doesn't know for its own.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) \
	$(top_srcdir)/build-aux/tap-driver.sh --merge
LOG_COMPILER = $(SHELL) $(top_srcdir)/tests/tap.sh
AM_TESTS_ENVIRONMENT = CMOCKA_MESSAGE_OUTPUT=TAP; \
	top_srcdir='$(abs_top_srcdir)'; top_builddir='$(abs_top_builddir)'; \
	export CMOCKA_MESSAGE_OUTPUT top_srcdir top_builddir;

# Every test is in one of these two; `./setup check` runs the first in the build
# with sanitizers and the second in the other one. The longest first: several run
# at a time, and the last one alone costs most.
SANITIZER_TESTS = $(DAEMON_TESTS) $(DECAP_TESTS) $(PROG_TESTS) $(CTL_TESTS) \
	$(BIRD_TESTS) $(KERN_TESTS) $(MODEL_TESTS) \
	$(FUZZ_TESTS) $(COMPILER_TESTS)

# They compute tables with code that the first list goes through as well, count what
# the kernel executes, or look at the sources: four times the time would show nothing
# else. Or they fork for each of hundreds of calls, which with a sanitizer's memory
# costs most.
OPTIMISED_TESTS = $(FIGURE_TESTS) $(FAULT_TESTS) $(BENCH_TESTS) $(SCRIPT_TESTS) \
	$(DOC_TESTS)

# `./setup check` also runs it in the other build, with all its frames; in the one with
# sanitizers a tenth of so many does, and others.
BOTH_TESTS = tests/prog/differ

# What `./setup check --long` also runs in the other build: these are code of ours
# and no more, or files that our code reads and prints. All else is system calls, the
# kernel and other programs, and proves most in a build with sanitizers.
COMPILER_TESTS = $(UNIT_TESTS) $(IO_TESTS) $(GOLDEN_TESTS) tests/unit_file.sh

# What is worth a run out of a tarball, without root: do they find their files, do
# those that want root say so. The others compute for long wherever they run, and so
# does Prometheus with our alerts.
DIST_TESTS = tests/unit/test_bird_config tests/unit/test_maglev \
	$(filter-out tests/golden/alerts.py,$(GOLDEN_TESTS)) \
	tests/layers.sh tests/mutants.sh tests/readme.sh tests/spdx.sh \
	$(CTL_TESTS) $(BIRD_TESTS) tests/kern/test_vlan $(DOC_TESTS)

.PHONY: check-programs
check-programs: all
	$(MAKE) $(AM_MAKEFLAGS) $(EXTRA_PROGRAMS)

# Automake cleans all programs but these.
CLEANFILES += $(EXTRA_PROGRAMS)

SCRIPT_TESTS = tests/configure.sh tests/headers.sh tests/layers.sh \
	tests/mutants.sh tests/readme.sh tests/setup.sh tests/spdx.sh \
	tests/tally.sh
DOC_TESTS = tests/doc/newcomer.sh tests/doc/examples.py tests/doc/manuals.py \
	tests/doc/promises.py
EXTRA_DIST += $(DOC_TESTS) $(SCRIPT_TESTS) tests/tally.py tests/tap.sh

# Of libxlbio.a: these open sockets and start processes.
IO_TESTS =
IO_TEST_LIBS = $(XLBIO_LIBS) $(CMOCKA_LIBS)
IO_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS) $(JANSSON_CFLAGS)
EXTRA_PROGRAMS += $(IO_TESTS)

IO_TESTS += tests/io/test_probe
tests_io_test_probe_SOURCES = tests/io/test_probe.c tests/io/probe_test.h
tests_io_test_probe_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_probe_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_probe_http
tests_io_test_probe_http_SOURCES = tests/io/test_probe_http.c
tests_io_test_probe_http_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_probe_http_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_probe_https
tests_io_test_probe_https_SOURCES = tests/io/test_probe_https.c
tests_io_test_probe_https_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_probe_https_LDADD = $(IO_TEST_LIBS)
EXTRA_DIST += tests/io/https_server.py

IO_TESTS += tests/io/test_probe_udp
tests_io_test_probe_udp_SOURCES = tests/io/test_probe_udp.c
tests_io_test_probe_udp_SOURCES += tests/io/udp_server.h
tests_io_test_probe_udp_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_probe_udp_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_probe_dns
tests_io_test_probe_dns_SOURCES = tests/io/test_probe_dns.c
tests_io_test_probe_dns_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_probe_dns_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_probe_icmp
tests_io_test_probe_icmp_SOURCES = tests/io/test_probe_icmp.c
tests_io_test_probe_icmp_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_probe_icmp_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_probe_error
tests_io_test_probe_error_SOURCES = tests/io/test_probe_error.c
tests_io_test_probe_error_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_probe_error_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_probe_exec
tests_io_test_probe_exec_SOURCES = tests/io/test_probe_exec.c
tests_io_test_probe_exec_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_probe_exec_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_http_liar
tests_io_test_http_liar_SOURCES = tests/io/test_http_liar.c tests/io/lives.h
tests_io_test_http_liar_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_http_liar_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_probe_liar
tests_io_test_probe_liar_SOURCES = tests/io/test_probe_liar.c tests/io/lives.h
tests_io_test_probe_liar_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_probe_liar_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_ctl
tests_io_test_ctl_SOURCES = tests/io/test_ctl.c
tests_io_test_ctl_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_ctl_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_log
tests_io_test_log_SOURCES = tests/io/test_log.c
tests_io_test_log_CPPFLAGS = $(IO_TEST_CPPFLAGS) -I$(top_srcdir)/tests
tests_io_test_log_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_counters
tests_io_test_counters_SOURCES = tests/io/test_counters.c
tests_io_test_counters_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_counters_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_conf_file
tests_io_test_conf_file_SOURCES = tests/io/test_conf_file.c
tests_io_test_conf_file_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_conf_file_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_key
tests_io_test_key_SOURCES = tests/io/test_key.c
tests_io_test_key_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_io_test_key_LDADD = $(IO_TEST_LIBS)

IO_TESTS += tests/io/test_refused
tests_io_test_refused_SOURCES = tests/io/test_refused.c
tests_io_test_refused_CPPFLAGS = $(IO_TEST_CPPFLAGS) $(LIBBPF_CFLAGS)
tests_io_test_refused_LDADD = $(IO_TEST_LIBS)

EXTRA_PROGRAMS += tests/bench/probe_rate
tests_bench_probe_rate_SOURCES = tests/bench/probe_rate.c
tests_bench_probe_rate_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_bench_probe_rate_LDADD = $(XLBIO_LIBS)

UNIT_TESTS =
UNIT_LIBS = libxlbcore.a $(YAML_LIBS) $(CMOCKA_LIBS)
EXTRA_PROGRAMS += $(UNIT_TESTS)

UNIT_TESTS += tests/unit/test_arena
tests_unit_test_arena_SOURCES = tests/unit/test_arena.c tests/unit/unit.h
tests_unit_test_arena_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_reason
tests_unit_test_reason_SOURCES = tests/unit/test_reason.c tests/unit/unit.h
tests_unit_test_reason_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_health_text
tests_unit_test_health_text_SOURCES = tests/unit/test_health_text.c tests/unit/unit.h
tests_unit_test_health_text_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_plan_op
tests_unit_test_plan_op_SOURCES = tests/unit/test_plan_op.c tests/unit/unit.h
tests_unit_test_plan_op_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_ring
tests_unit_test_ring_SOURCES = tests/unit/test_ring.c tests/unit/unit.h
tests_unit_test_ring_LDADD = $(UNIT_LIBS)
tests_unit_test_ring_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=maglev_build

UNIT_TESTS += tests/unit/test_state_check
tests_unit_test_state_check_SOURCES = tests/unit/test_state_check.c tests/unit/unit.h \
	tests/unit/state_input.h
tests_unit_test_state_check_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_lookup
tests_unit_test_lookup_SOURCES = tests/unit/test_lookup.c tests/unit/unit.h
tests_unit_test_lookup_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_html
tests_unit_test_html_SOURCES = tests/unit/test_html.c tests/unit/unit.h
tests_unit_test_html_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_metric
tests_unit_test_metric_SOURCES = tests/unit/test_metric.c tests/unit/unit.h
tests_unit_test_metric_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_path_mtu
tests_unit_test_path_mtu_SOURCES = tests/unit/test_path_mtu.c tests/unit/unit.h
tests_unit_test_path_mtu_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_path_error
tests_unit_test_path_error_SOURCES = tests/unit/test_path_error.c \
	tests/unit/unit.h
tests_unit_test_path_error_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_nat_sweep
tests_unit_test_nat_sweep_SOURCES = tests/unit/test_nat_sweep.c \
	tests/unit/unit.h
tests_unit_test_nat_sweep_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_heap
tests_unit_test_heap_SOURCES = tests/unit/test_heap.c tests/unit/unit.h
tests_unit_test_heap_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_addr
tests_unit_test_addr_SOURCES = tests/unit/test_addr.c tests/unit/unit.h
tests_unit_test_addr_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_announce
tests_unit_test_announce_SOURCES = tests/unit/test_announce.c tests/unit/unit.h
tests_unit_test_announce_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_bird_text
tests_unit_test_bird_text_SOURCES = tests/unit/test_bird_text.c \
	tests/unit/unit.h
tests_unit_test_bird_text_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_bird_config
tests_unit_test_bird_config_SOURCES = tests/unit/test_bird_config.c \
	tests/unit/unit.h
tests_unit_test_bird_config_LDADD = $(UNIT_LIBS)
EXTRA_DIST += tests/golden/bird-config/full.conf
EXTRA_DIST += tests/golden/bird-config/one-peer.conf
EXTRA_DIST += tests/golden/bird-config/one-peer6.conf

UNIT_TESTS += tests/unit/test_maglev
tests_unit_test_maglev_SOURCES = tests/unit/test_maglev.c tests/unit/unit.h
tests_unit_test_maglev_LDADD = $(UNIT_LIBS)
EXTRA_DIST += tests/golden/rings.txt tests/golden/rings.py

UNIT_TESTS += tests/unit/test_dns
tests_unit_test_dns_SOURCES = tests/unit/test_dns.c tests/unit/unit.h
tests_unit_test_dns_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_health
tests_unit_test_health_SOURCES = tests/unit/test_health.c tests/unit/unit.h
tests_unit_test_health_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_text
tests_unit_test_text_SOURCES = tests/unit/test_text.c tests/unit/unit.h
tests_unit_test_text_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_yaml
tests_unit_test_yaml_SOURCES = tests/unit/test_yaml.c tests/unit/unit.h
tests_unit_test_yaml_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_conf_value
tests_unit_test_conf_value_SOURCES = tests/unit/test_conf_value.c tests/unit/unit.h
tests_unit_test_conf_value_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_conf
tests_unit_test_conf_SOURCES = tests/unit/test_conf.c tests/unit/unit.h
tests_unit_test_conf_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_conf_diff
tests_unit_test_conf_diff_SOURCES = tests/unit/test_conf_diff.c tests/unit/unit.h
tests_unit_test_conf_diff_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_plan
tests_unit_test_plan_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_unit_test_plan_SOURCES = tests/unit/test_plan.c tests/unit/unit.h \
	tests/fake/maps_mem.c tests/fake/maps_mem.h
tests_unit_test_plan_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_ring_words
tests_unit_test_ring_words_SOURCES = tests/unit/test_ring_words.c \
	tests/unit/unit.h
tests_unit_test_ring_words_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_sweep
tests_unit_test_sweep_SOURCES = tests/unit/test_sweep.c tests/unit/unit.h
tests_unit_test_sweep_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_source
tests_unit_test_source_SOURCES = tests/unit/test_source.c tests/unit/unit.h
tests_unit_test_source_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_surge
tests_unit_test_surge_SOURCES = tests/unit/test_surge.c tests/unit/unit.h
tests_unit_test_surge_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_flow_table
tests_unit_test_flow_table_SOURCES = tests/unit/test_flow_table.c \
	tests/unit/unit.h
tests_unit_test_flow_table_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_plan_first
tests_unit_test_plan_first_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests
tests_unit_test_plan_first_SOURCES = tests/unit/test_plan_first.c \
	tests/unit/unit.h tests/fake/maps_mem.c tests/fake/maps_mem.h
tests_unit_test_plan_first_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_state
tests_unit_test_state_SOURCES = tests/unit/test_state.c tests/unit/unit.h \
	tests/unit/state_input.h
tests_unit_test_state_LDADD = $(UNIT_LIBS)

UNIT_TESTS += tests/unit/test_keepalived
tests_unit_test_keepalived_SOURCES = tests/unit/test_keepalived.c \
	tests/unit/unit.h
tests_unit_test_keepalived_LDADD = $(UNIT_LIBS)
