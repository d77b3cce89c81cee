# SPDX-License-Identifier: GPL-2.0-or-later
# Shared with the test that runs packets through the program.
noinst_LIBRARIES += libxlbdecap.a
libxlbdecap_a_CPPFLAGS = $(AM_CPPFLAGS) $(LIBBPF_CFLAGS) $(MNL_CFLAGS)
libxlbdecap_a_SOURCES = src/decap/decap.h src/decap/keys.c src/decap/host.c \
	src/decap/program.c src/decap/pins.c
nodist_libxlbdecap_a_SOURCES = bpf/decap.skel.h
DECAP_LIBS = libxlbdecap.a libxlbcore.a $(LIBBPF_LIBS) $(MNL_LIBS)

sbin_PROGRAMS += src/xlb-decap
src_xlb_decap_CPPFLAGS = $(AM_CPPFLAGS) $(LIBBPF_CFLAGS) $(JANSSON_CFLAGS)
src_xlb_decap_SOURCES = src/decap/main.c src/decap/attach.c \
	src/decap/status.c
src_xlb_decap_LDADD = $(DECAP_LIBS) $(JANSSON_LIBS)

dist_man_MANS += man/xlb-decap.8
decapconfdir = $(sysconfdir)/xlb
dist_decapconf_DATA = etc/decap.conf
decapunitdir = $(systemdsystemunitdir)
decapunit_DATA = etc/xlb-decap@.service
dist_decapunit_DATA = etc/xlb-vip@.service
EXTRA_DIST += etc/xlb-decap@.service.in etc/xlb-backend.sysctl
CLEANFILES += etc/xlb-decap@.service
etc/xlb-decap@.service: etc/xlb-decap@.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) etc && \
	$(SED) -e 's,@sbindir[@],$(sbindir),g' \
	    -e 's,@sysconfdir[@],$(sysconfdir),g' \
	    '$(srcdir)/etc/xlb-decap@.service.in' >'$@.tmp' && mv '$@.tmp' '$@'
# For those who make one target alone; `all` and `check` have BUILT_SOURCES.
src/decap/libxlbdecap_a-program.$(OBJEXT): bpf/decap.skel.h
