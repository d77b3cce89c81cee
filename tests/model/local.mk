# SPDX-License-Identifier: GPL-2.0-or-later
# Nodes made of xlb's own code on a clock that tests turn. `make model` is the
# long form.
MODEL_SOURCES = tests/model/kernel.c tests/model/kernel.h \
	tests/model/kernel_int.h tests/model/kernel_run.c tests/model/node.c \
	tests/model/node.h tests/model/node_packet.c tests/model/node_kill.c \
	tests/model/site.c tests/model/site.h tests/model/lru.c \
	tests/model/lru.h tests/prog/rng.h
# kernel.c has libbpf's calls; the library itself is not there
MODEL_LIBS = libxlbio.a libxlbcore.a $(SYSTEMD_LIBS) $(YAML_LIBS)
MODEL_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(LIBBPF_CFLAGS) \
	$(SYSTEMD_CFLAGS)

check_PROGRAMS += tests/model/history
TESTS += tests/model/history
tests_model_history_SOURCES = $(MODEL_SOURCES) tests/model/history.c \
	tests/model/history.h tests/model/history_flow.c \
	tests/model/history_change.c
tests_model_history_CPPFLAGS = $(MODEL_CPPFLAGS)
tests_model_history_LDADD = $(MODEL_LIBS)

check_PROGRAMS += tests/model/sim
TESTS += tests/model/sim
tests_model_sim_SOURCES = $(MODEL_SOURCES) tests/model/sim.c
tests_model_sim_CPPFLAGS = $(MODEL_CPPFLAGS)
tests_model_sim_LDADD = $(MODEL_LIBS)

check_PROGRAMS += tests/model/flood
TESTS += tests/model/flood
tests_model_flood_SOURCES = $(MODEL_SOURCES) tests/model/flood.c
tests_model_flood_CPPFLAGS = $(MODEL_CPPFLAGS)
tests_model_flood_LDADD = $(MODEL_LIBS)

# Some minutes.
.PHONY: model
model: tests/model/history tests/model/sim tests/model/flood
	tests/model/history --seconds $(MODEL_SECONDS)
	tests/model/sim --full
	tests/model/flood --full
MODEL_SECONDS = 120
