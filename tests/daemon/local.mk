# SPDX-License-Identifier: GPL-2.0-or-later
# xlbd and xlb together, one node in namespaces of its own, with a real BIRD.
DAEMON_TESTS = tests/daemon/test_node.py tests/daemon/test_views.py
DAEMON_TESTS += tests/daemon/test_announce.py tests/daemon/test_json.py
DAEMON_TESTS += tests/daemon/test_drift.py tests/daemon/test_metrics.py
DAEMON_TESTS += tests/daemon/test_story.py tests/daemon/test_page.py
DAEMON_TESTS += tests/daemon/test_fault.py tests/daemon/test_access.py
DAEMON_TESTS += tests/daemon/test_start.py tests/daemon/test_trouble.py
DAEMON_TESTS += tests/daemon/test_nat.py
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

# xlbd as of another version: all the same but that its maps have another layout.
# The fabric restarts into it, too.
NEXT_ABI = tests/daemon/next/xlb_abi.h
noinst_PROGRAMS += tests/daemon/xlbd_next
tests_daemon_xlbd_next_CPPFLAGS = -I$(top_builddir)/tests/daemon/next \
	$(libxlbio_a_CPPFLAGS)
tests_daemon_xlbd_next_SOURCES = src/daemon/main.c src/core/state.c \
	src/io/prog_load.c
tests_daemon_xlbd_next_LDADD = $(XLBD_LIBS)
BUILT_SOURCES += $(NEXT_ABI)
CLEANFILES += $(NEXT_ABI)
$(NEXT_ABI): bpf/xlb_abi.h
	$(AM_V_at)$(MKDIR_P) tests/daemon/next
	$(AM_V_GEN)awk '$$1 == "#define" && $$2 == "XLB_ABI" \
		{ $$3++; seen++ } { print } END { exit seen != 1 }' \
		$(top_srcdir)/bpf/xlb_abi.h >$@.new && mv $@.new $@
