# SPDX-License-Identifier: GPL-2.0-or-later
check_PROGRAMS += tests/golden/conf_show
tests_golden_conf_show_SOURCES = tests/golden/conf_show.c
tests_golden_conf_show_LDADD = $(XLBIO_LIBS) $(YAML_LIBS)
