# SPDX-License-Identifier: GPL-2.0-or-later
CTL_TESTS = tests/ctl/xlb.py tests/ctl/completion.py
EXTRA_DIST += $(CTL_TESTS) tests/golden/status tests/golden/events \
	tests/golden/lists

IO_TESTS += tests/daemon/test_status
tests_daemon_test_status_SOURCES = tests/daemon/test_status.c
tests_daemon_test_status_CPPFLAGS = $(IO_TEST_CPPFLAGS)
tests_daemon_test_status_LDADD = $(XLBD_LIBS) $(CMOCKA_LIBS)
tests_daemon_test_status_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,muldefs
