# SPDX-License-Identifier: GPL-2.0-or-later
# All of xlbd but main(): its tests and the fuzz target of its requests link the
# same.
noinst_LIBRARIES += libxlbd.a
XLBD_LIBS = libxlbd.a $(XLBIO_LIBS) $(MICROHTTPD_LIBS)

sbin_PROGRAMS += src/xlbd
src_xlbd_CPPFLAGS = $(libxlbio_a_CPPFLAGS)
src_xlbd_LDADD = $(XLBD_LIBS)
src_xlbd_SOURCES = src/daemon/main.c

libxlbd_a_CPPFLAGS = $(libxlbio_a_CPPFLAGS)
libxlbd_a_SOURCES =
libxlbd_a_SOURCES += src/daemon/daemon.c src/daemon/daemon.h
libxlbd_a_SOURCES += src/daemon/config.c
libxlbd_a_SOURCES += src/daemon/diff.c src/daemon/diff.h
libxlbd_a_SOURCES += src/daemon/drift.c src/daemon/drift.h
libxlbd_a_SOURCES += src/daemon/count.c src/daemon/count.h
libxlbd_a_SOURCES += src/daemon/document.c src/daemon/document.h
libxlbd_a_SOURCES += src/daemon/metrics.c src/daemon/metrics.h
libxlbd_a_SOURCES += src/daemon/metrics_table.c
libxlbd_a_SOURCES += src/daemon/history.c src/daemon/history.h
libxlbd_a_SOURCES += src/daemon/page.c src/daemon/page.h src/daemon/page_pools.c
libxlbd_a_SOURCES += src/daemon/handlers.c
libxlbd_a_SOURCES += src/daemon/health_run.c src/daemon/path_run.c
libxlbd_a_SOURCES += src/daemon/lifecycle.c
libxlbd_a_SOURCES += src/daemon/listeners.c src/daemon/event_json.c
libxlbd_a_SOURCES += src/daemon/event_json.h
libxlbd_a_SOURCES += src/daemon/overrides.c
libxlbd_a_SOURCES += src/daemon/reconcile.c
libxlbd_a_SOURCES += src/daemon/restart.c
libxlbd_a_SOURCES += src/daemon/routes.c
libxlbd_a_SOURCES += src/daemon/flows.c src/daemon/lookup.c
libxlbd_a_SOURCES += src/daemon/start.c
libxlbd_a_SOURCES += src/daemon/stats.c src/daemon/story.c
libxlbd_a_SOURCES += src/daemon/tidy.c
libxlbd_a_SOURCES += src/daemon/status.c src/daemon/status.h
libxlbd_a_SOURCES += src/daemon/status_ring.c
