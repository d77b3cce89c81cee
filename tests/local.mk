# SPDX-License-Identifier: GPL-2.0-or-later
# Every test speaks TAP, so that `make check` counts cases, not programs; a test
# that cannot run says `1..0 # SKIP why`. Unit tests link libxlbcore.a alone.
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) \
	$(top_srcdir)/build-aux/tap-driver.sh --merge
AM_TESTS_ENVIRONMENT = CMOCKA_MESSAGE_OUTPUT=TAP; \
	top_srcdir='$(abs_top_srcdir)'; top_builddir='$(abs_top_builddir)'; \
	export CMOCKA_MESSAGE_OUTPUT top_srcdir top_builddir;

SCRIPT_TESTS = tests/headers.sh tests/layers.sh tests/spdx.sh
TESTS += $(SCRIPT_TESTS)
EXTRA_DIST += $(SCRIPT_TESTS) tests/tally.py

UNIT_TESTS =
UNIT_LIBS = libxlbcore.a $(YAML_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += $(UNIT_TESTS)
TESTS += $(UNIT_TESTS)

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

UNIT_TESTS += tests/unit/test_health
tests_unit_test_health_SOURCES = tests/unit/test_health.c tests/unit/unit.h
tests_unit_test_health_LDADD = $(UNIT_LIBS)
