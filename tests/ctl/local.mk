# SPDX-License-Identifier: GPL-2.0-or-later
CTL_TESTS = tests/ctl/xlb.py tests/ctl/completion.py
EXTRA_DIST += $(CTL_TESTS) tests/golden/status tests/golden/events \
	tests/golden/lists

IO_TESTS += tests/daemon/test_status
tests_daemon_test_status_SOURCES = tests/daemon/test_status.c \
	src/daemon/status.c src/daemon/status.h
tests_daemon_test_status_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_daemon_test_status_LDADD = $(IO_TEST_LIBS) $(YAML_LIBS)
