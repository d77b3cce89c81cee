# SPDX-License-Identifier: GPL-2.0-or-later
# xlbd and xlb together, one node in namespaces of its own, with a real BIRD.
DAEMON_TESTS = tests/daemon/test_node.py tests/daemon/test_views.py
DAEMON_TESTS += tests/daemon/test_announce.py tests/daemon/test_json.py
DAEMON_TESTS += tests/daemon/test_drift.py tests/daemon/test_metrics.py
DAEMON_TESTS += tests/daemon/test_story.py tests/daemon/test_page.py
DAEMON_TESTS += tests/daemon/test_fault.py tests/daemon/test_access.py
DAEMON_TESTS += tests/daemon/test_start.py tests/daemon/test_trouble.py
EXTRA_DIST += $(DAEMON_TESTS) tests/daemon/node.py tests/daemon/net.py
EXTRA_DIST += tests/daemon/scrape.py tests/daemon/browser.py
EXTRA_DIST += tests/golden/story.txt

# Minutes: `./setup check --long` runs them.
EXTRA_DIST += tests/daemon/scale.py
EXTRA_DIST += tests/daemon/valgrind.py tests/daemon/valgrind.supp

# Without sanitizers: they come before them.
SHIMS = tests/daemon/shim.so tests/daemon/valgrind_shim.so
SHIM_CC = $(CC) -O1 -g -Wall -Wextra -Werror -fPIC -shared -o $@
EXTRA_DIST += tests/daemon/shim.c tests/daemon/valgrind_shim.c
noinst_DATA += $(SHIMS)
CLEANFILES += $(SHIMS)
tests/daemon/shim.so: tests/daemon/shim.c
	$(AM_V_at)$(MKDIR_P) tests/daemon
	$(AM_V_GEN)$(SHIM_CC) $(srcdir)/tests/daemon/shim.c -ldl
tests/daemon/valgrind_shim.so: tests/daemon/valgrind_shim.c
	$(AM_V_at)$(MKDIR_P) tests/daemon
	$(AM_V_GEN)$(SHIM_CC) $(srcdir)/tests/daemon/valgrind_shim.c -lpthread
