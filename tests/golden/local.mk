# SPDX-License-Identifier: GPL-2.0-or-later
check_PROGRAMS += tests/golden/conf_show
tests_golden_conf_show_SOURCES = tests/golden/conf_show.c
tests_golden_conf_show_LDADD = $(XLBIO_LIBS)

GOLDEN_TESTS = tests/golden/conf.sh tests/golden/shipped.sh
EXTRA_DIST += tests/golden/conf.sh tests/golden/shipped.sh
EXTRA_DIST += tests/golden/in tests/golden/ok

.PHONY: update-goldens
update-goldens: tests/golden/conf_show src/xlb
	UPDATE=1 top_srcdir='$(abs_top_srcdir)' \
	    top_builddir='$(abs_top_builddir)' $(srcdir)/tests/golden/conf.sh
	UPDATE=1 top_srcdir='$(abs_top_srcdir)' \
	    top_builddir='$(abs_top_builddir)' $(srcdir)/tests/ctl/xlb.py
	UPDATE=1 top_srcdir='$(abs_top_srcdir)' top_builddir='$(abs_top_builddir)' \
	    $(srcdir)/tests/golden/keepalived.sh
	src/xlb completion bash >$(srcdir)/etc/completion/xlb
	src/xlb completion zsh >$(srcdir)/etc/completion/_xlb

check_PROGRAMS += tests/golden/schema_dump
tests_golden_schema_dump_SOURCES = tests/golden/schema_dump.c
tests_golden_schema_dump_LDADD = libxlbcore.a $(YAML_LIBS)
GOLDEN_TESTS += tests/golden/manual.py
EXTRA_DIST += tests/golden/manual.py

GOLDEN_TESTS += tests/golden/keepalived.sh
EXTRA_DIST += tests/golden/keepalived.sh tests/golden/keepalived

check_PROGRAMS += tests/golden/metric_dump
tests_golden_metric_dump_SOURCES = tests/golden/metric_dump.c
tests_golden_metric_dump_LDADD = libxlbcore.a $(YAML_LIBS)
GOLDEN_TESTS += tests/golden/metrics_manual.py
EXTRA_DIST += tests/golden/metrics_manual.py

GOLDEN_TESTS += tests/golden/alerts.py
EXTRA_DIST += tests/golden/alerts.py
