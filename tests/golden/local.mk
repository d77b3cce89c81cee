# SPDX-License-Identifier: GPL-2.0-or-later
EXTRA_PROGRAMS += tests/golden/conf_show
tests_golden_conf_show_SOURCES = tests/golden/conf_show.c
tests_golden_conf_show_LDADD = $(XLBIO_LIBS)

GOLDEN_TESTS = tests/golden/conf.sh tests/golden/shipped.sh
$(GOLDEN_TESTS:%=%.log): tests/golden/conf_show
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

EXTRA_PROGRAMS += tests/golden/schema_dump
tests_golden_schema_dump_SOURCES = tests/golden/schema_dump.c
tests_golden_schema_dump_LDADD = libxlbcore.a $(YAML_LIBS)
GOLDEN_TESTS += tests/golden/manual.py
SCHEMA_READERS = tests/golden/manual.py tests/doc/manuals.py
$(SCHEMA_READERS:%=%.log): tests/golden/schema_dump
EXTRA_DIST += tests/golden/manual.py

GOLDEN_TESTS += tests/golden/keepalived.sh
EXTRA_DIST += tests/golden/keepalived.sh tests/golden/keepalived

EXTRA_PROGRAMS += tests/golden/metric_dump
tests_golden_metric_dump_SOURCES = tests/golden/metric_dump.c
tests_golden_metric_dump_LDADD = libxlbcore.a $(YAML_LIBS)
GOLDEN_TESTS += tests/golden/metrics_manual.py
EXTRA_DIST += tests/golden/metrics_manual.py

GOLDEN_TESTS += tests/golden/alerts.py
METRIC_READERS = tests/golden/metrics_manual.py tests/golden/alerts.py \
	tests/daemon/test_metrics.py
$(METRIC_READERS:%=%.log): tests/golden/metric_dump
EXTRA_DIST += tests/golden/alerts.py
