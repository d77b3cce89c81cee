# SPDX-License-Identifier: GPL-2.0-or-later
bin_PROGRAMS += src/xlb
src_xlb_CPPFLAGS = $(AM_CPPFLAGS) $(JANSSON_CFLAGS) $(SYSTEMD_CFLAGS) \
	$(LIBBPF_CFLAGS) -DXLB_BIRD_WRAPPER='"$(xlbbirddir)/xlb.conf"'
src_xlb_LDADD = $(XLBIO_LIBS) $(YAML_LIBS)
src_xlb_SOURCES =
src_xlb_SOURCES += src/ctl/main.c src/ctl/command.h src/ctl/table.c
src_xlb_SOURCES += src/ctl/ask.c src/ctl/help.c src/ctl/completion.c
src_xlb_SOURCES += src/ctl/completion_zsh.c
src_xlb_SOURCES += src/ctl/config.c src/ctl/request.c src/ctl/status.c
src_xlb_SOURCES += src/ctl/drain.c
src_xlb_SOURCES += src/ctl/events.c src/ctl/fields.h
src_xlb_SOURCES += src/ctl/live.c src/ctl/live.h src/ctl/stats.c
src_xlb_SOURCES += src/ctl/lists.c src/ctl/list.h src/ctl/flows.c
src_xlb_SOURCES += src/ctl/import.c
src_xlb_SOURCES += src/ctl/view.c src/ctl/view_head.c src/ctl/view_int.h
src_xlb_SOURCES += src/ctl/view.h src/ctl/grid.c src/ctl/grid.h
dist_doc_DATA = doc/guide.md doc/json.md
