# SPDX-License-Identifier: GPL-2.0-or-later
sbin_PROGRAMS += src/xlbd
src_xlbd_CPPFLAGS = $(libxlbio_a_CPPFLAGS)
src_xlbd_LDADD = $(XLBIO_LIBS)
src_xlbd_SOURCES =
src_xlbd_SOURCES += src/daemon/main.c src/daemon/daemon.c src/daemon/daemon.h
src_xlbd_SOURCES += src/daemon/config.c
src_xlbd_SOURCES += src/daemon/handlers.c
src_xlbd_SOURCES += src/daemon/health_run.c
src_xlbd_SOURCES += src/daemon/lifecycle.c
src_xlbd_SOURCES += src/daemon/listeners.c src/daemon/event_json.c
src_xlbd_SOURCES += src/daemon/event_json.h
src_xlbd_SOURCES += src/daemon/overrides.c
src_xlbd_SOURCES += src/daemon/reconcile.c
src_xlbd_SOURCES += src/daemon/routes.c
src_xlbd_SOURCES += src/daemon/flows.c src/daemon/lookup.c
src_xlbd_SOURCES += src/daemon/stats.c
src_xlbd_SOURCES += src/daemon/status.c src/daemon/status.h
