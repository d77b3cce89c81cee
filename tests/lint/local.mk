# SPDX-License-Identifier: GPL-2.0-or-later
# What looks at the code instead of running it, or at what ran; not in check.
EXTRA_DIST += .clang-tidy tests/lint/run tests/lint/style.py tests/lint/cppcheck \
	tests/lint/xlb.cfg
EXTRA_DIST += doc/trust.md doc/promises.md tests/coverage.py \
	tests/coverage_shim.c

EXTRA_DIST += tests/mutants/run tests/mutants/list

.PHONY: lint style coverage coverage-io mutants
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

# And of src/io: by clang, with counters in files that are mapped, since many of its
# processes are killed. Half an hour; what looks at which memory is shared, or for
# how long something takes, may fail.
COVERAGE_IO_TESTS = $(IO_TESTS) $(KERN_TESTS) $(FAULT_TESTS) $(BIRD_TESTS) \
	$(CTL_TESTS) $(DECAP_TESTS) $(DAEMON_TESTS) $(FUZZ_TESTS)
COVERAGE_IO_CFLAGS = -O0 -g -fprofile-instr-generate -fcoverage-mapping \
	-mllvm -runtime-counter-relocation
COVERAGE_IO = 96
coverage-io:
	$(MKDIR_P) coverage-io/counts
	chmod 1777 coverage-io/counts
	test -e coverage-io/Makefile || (cd coverage-io && \
	    '$(abs_top_srcdir)/configure' CC=clang)
	rm -f coverage-io/counts/*
	$(CC) -O1 -Wall -Wextra -fPIC -shared -o coverage-io/shim.so \
	    $(srcdir)/tests/coverage_shim.c -ldl
	-$(MAKE) -k -C coverage-io check CFLAGS='$(COVERAGE_IO_CFLAGS)' \
	    TESTS='$(COVERAGE_IO_TESTS)' \
	    TESTS_ENVIRONMENT="LD_PRELOAD=$$PWD/coverage-io/shim.so \
	    LLVM_PROFILE_FILE=$$PWD/coverage-io/counts/%m%c.profraw"
	'$(abs_top_srcdir)/tests/coverage.py' coverage-io src/io --missing \
	    --counts coverage-io/counts --least $(COVERAGE_IO) \
	    --known '$(abs_top_srcdir)/doc/trust.md'
