# SPDX-License-Identifier: GPL-2.0-or-later
# Pure: no descriptor, clock, global, log or libbpf. Tests that link this alone
# fail to link when core calls I/O.
noinst_LIBRARIES += libxlbcore.a
libxlbcore_a_SOURCES =
libxlbcore_a_SOURCES += src/core/arena.c src/core/arena.h
libxlbcore_a_SOURCES += src/core/diag.c src/core/diag.h
libxlbcore_a_SOURCES += src/core/addr.c src/core/addr.h
libxlbcore_a_SOURCES += src/core/mono.h src/core/options.h
libxlbcore_a_SOURCES += src/core/hash_key.c src/core/hash_key.h
libxlbcore_a_SOURCES += src/core/heap.c src/core/heap.h
libxlbcore_a_SOURCES += src/core/announce.c src/core/announce.h
libxlbcore_a_SOURCES += src/core/bird_text.h src/core/bird_render.c
libxlbcore_a_SOURCES += src/core/bird_config.c src/core/bird_reply.c
libxlbcore_a_SOURCES += src/core/hash.h
libxlbcore_a_SOURCES += src/core/maglev.c src/core/maglev.h
libxlbcore_a_SOURCES += src/core/health.c src/core/health.h
libxlbcore_a_SOURCES += src/core/lookup.c src/core/lookup.h
libxlbcore_a_SOURCES += src/core/reason.c src/core/reason.h
libxlbcore_a_SOURCES += src/core/text.c src/core/text.h
libxlbcore_a_SOURCES += src/core/yaml.c src/core/yaml.h
libxlbcore_a_SOURCES += src/core/conf.h src/core/conf_bind.h
libxlbcore_a_SOURCES += src/core/conf_schema.c src/core/conf_schema.h
libxlbcore_a_SOURCES += src/core/conf_value.c src/core/conf_value.h
libxlbcore_a_SOURCES += src/core/conf_value_print.c src/core/conf_object.c
libxlbcore_a_SOURCES += src/core/conf_bind.c src/core/conf_load.c
libxlbcore_a_SOURCES += src/core/conf_check.c src/core/conf_check_service.c
libxlbcore_a_SOURCES += src/core/conf_warn.c src/core/conf_print.c
libxlbcore_a_SOURCES += src/core/rows.c src/core/rows.h
libxlbcore_a_SOURCES += src/core/ids.c src/core/ids.h
libxlbcore_a_SOURCES += src/core/state.c src/core/state.h
libxlbcore_a_SOURCES += src/core/state_build.h src/core/state_number.c
libxlbcore_a_SOURCES += src/core/state_pool.c src/core/state_rows.c
libxlbcore_a_SOURCES += src/core/ring.c
libxlbcore_a_SOURCES += src/core/ring_words.c src/core/ring_words.h
libxlbcore_a_SOURCES += src/core/plan.c src/core/plan.h src/core/plan_print.c
libxlbcore_a_SOURCES += src/core/plan_ring.c src/core/plan_ring.h
