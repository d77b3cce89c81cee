# SPDX-License-Identifier: GPL-2.0-or-later
# Nodes made of xlb's own code on a clock that tests turn. `make model` is the
# long form.
MODEL_COMMON = tests/model/kernel.h tests/model/kernel_int.h \
	tests/model/kernel_run.c tests/model/node.c \
	tests/model/node.h tests/model/node_packet.c tests/model/node_kill.c \
	tests/model/site.c tests/model/site.h tests/model/lru.c \
	tests/model/lru.h tests/prog/rng.h
MODEL_SOURCES = tests/model/kernel.c $(MODEL_COMMON)
# kernel.c has libbpf's calls; the library itself is not there
MODEL_LIBS = libxlbio.a libxlbcore.a $(SYSTEMD_LIBS) $(YAML_LIBS)
MODEL_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(LIBBPF_CFLAGS) \
	$(SYSTEMD_CFLAGS)

EXTRA_PROGRAMS += tests/model/history
MODEL_TESTS = tests/model/history tests/model/history_bpf
FIGURE_TESTS = tests/model/sim tests/model/flood
HISTORY_SOURCES = tests/model/history.c tests/model/history.h \
	tests/model/history_flow.c tests/model/history_change.c
tests_model_history_SOURCES = $(MODEL_SOURCES) $(HISTORY_SOURCES)
tests_model_history_CPPFLAGS = $(MODEL_CPPFLAGS)
tests_model_history_LDADD = $(MODEL_LIBS)

# The same with maps and packet program in the kernel; skipped without root.
MODEL_BPF = tests/model/xlb_clock.bpf.c
MODEL_SKELETON = tests/model/xlb_clock.skel.h
$(MODEL_SKELETON:.skel.h=.bpf.o): bpf/xlb.bpf.c $(BPF_H)
CLEANFILES += $(MODEL_SKELETON) $(MODEL_SKELETON:.skel.h=.bpf.o)
EXTRA_DIST += $(MODEL_BPF)

EXTRA_PROGRAMS += tests/model/history_bpf
tests_model_history_bpf_SOURCES = tests/model/kernel_bpf.c $(MODEL_COMMON) \
	$(HISTORY_SOURCES)
nodist_tests_model_history_bpf_SOURCES = $(MODEL_SKELETON)
tests_model_history_bpf_CPPFLAGS = $(MODEL_CPPFLAGS) \
	-I$(top_builddir)/tests/model
tests_model_history_bpf_LDADD = $(MODEL_LIBS) $(LIBBPF_LIBS)
tests/model/history_bpf-kernel_bpf.$(OBJEXT): $(MODEL_SKELETON)

EXTRA_PROGRAMS += tests/model/sim
tests_model_sim_SOURCES = $(MODEL_SOURCES) tests/model/sim.c
tests_model_sim_CPPFLAGS = $(MODEL_CPPFLAGS)
tests_model_sim_LDADD = $(MODEL_LIBS)

EXTRA_PROGRAMS += tests/model/flood
tests_model_flood_SOURCES = $(MODEL_SOURCES) tests/model/flood.c
tests_model_flood_CPPFLAGS = $(MODEL_CPPFLAGS)
tests_model_flood_LDADD = $(MODEL_LIBS)

# Some minutes.
.PHONY: model
model: tests/model/history tests/model/history_bpf tests/model/sim \
	tests/model/flood
	tests/model/history --seconds $(MODEL_SECONDS)
	tests/model/history_bpf --seconds $(MODEL_SECONDS)
	tests/model/sim --full
	tests/model/flood --full
MODEL_SECONDS = 120
