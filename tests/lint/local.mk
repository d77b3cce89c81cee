# SPDX-License-Identifier: GPL-2.0-or-later
# What looks at the code instead of running it, or at what ran; not in check.
EXTRA_DIST += .clang-tidy tests/lint/run tests/lint/style.py tests/lint/cppcheck \
	tests/lint/xlb.cfg
EXTRA_DIST += doc/trust.md doc/promises.md tests/coverage.py

EXTRA_DIST += tests/mutants/run tests/mutants/list

.PHONY: lint style coverage mutants
mutants:
	'$(abs_top_srcdir)/tests/mutants/run' --work mutants $(MUTANTS)

style:
	'$(abs_top_srcdir)/tests/lint/run' --style

lint: $(BUILT_SOURCES)
	'$(abs_top_srcdir)/tests/lint/run' -- -std=gnu11 -D_GNU_SOURCE=1 \
	    -DPACKAGE_VERSION='"$(PACKAGE_VERSION)"' \
	    -DSYSCONFDIR='"$(sysconfdir)"' -DXLB_BIRD_WRAPPER='"/"' \
	    -I'$(abs_top_srcdir)/src' -I'$(abs_top_srcdir)/bpf' \
	    -I'$(abs_top_builddir)/bpf' $(SYSTEMD_CFLAGS) $(MNL_CFLAGS) \
	    $(JANSSON_CFLAGS) $(LIBBPF_CFLAGS) $(CURL_CFLAGS)

# A build of its own, in coverage/. COVERAGE_TESTS may be all.
COVERAGE_CORE = 95
COVERAGE_TESTS = $(UNIT_TESTS) $(GOLDEN_TESTS) $(FUZZ_TESTS)
coverage:
	$(MKDIR_P) coverage
	test -e coverage/Makefile || (cd coverage && \
	    '$(abs_top_srcdir)/configure' CC=gcc CFLAGS='-O0 -g --coverage')
	find coverage -name '*.gcda' -exec rm -f {} +
	$(MAKE) -C coverage check TESTS='$(COVERAGE_TESTS)'
	'$(abs_top_srcdir)/tests/coverage.py' coverage src/core --missing \
	    --least $(COVERAGE_CORE)
