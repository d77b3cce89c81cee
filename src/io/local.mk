# SPDX-License-Identifier: GPL-2.0-or-later
noinst_LIBRARIES += libxlbio.a
libxlbio_a_CPPFLAGS = $(AM_CPPFLAGS) $(SYSTEMD_CFLAGS) $(MNL_CFLAGS) \
	$(JANSSON_CFLAGS) $(LIBBPF_CFLAGS) $(CURL_CFLAGS)
libxlbio_a_SOURCES =
libxlbio_a_SOURCES += src/io/log.c src/io/log.h
libxlbio_a_SOURCES += src/io/file.c src/io/file.h
libxlbio_a_SOURCES += src/io/probe.c src/io/probe.h src/io/probe_wire.h
libxlbio_a_SOURCES += src/io/probe_spawn.c src/io/probe_child.c
libxlbio_a_SOURCES += src/io/probe_tcp.c src/io/probe_udp.c src/io/probe_dns.c
libxlbio_a_SOURCES += src/io/probe_icmp.c
libxlbio_a_SOURCES += src/io/probe_check.c src/io/probe_socket.c src/io/probe_ca.c
libxlbio_a_SOURCES += src/io/probe_http.c src/io/probe_http.h
libxlbio_a_SOURCES += src/io/probe_tls.c src/io/probe_tls.h
libxlbio_a_SOURCES += src/io/ctl.c src/io/ctl.h src/io/ctl_call.c
libxlbio_a_SOURCES += src/io/ctl_text.c
libxlbio_a_SOURCES += src/io/conf_file.c src/io/conf_file.h
libxlbio_a_SOURCES += src/io/conf_world.c src/io/conf_world.h
libxlbio_a_SOURCES += src/io/netlink.c src/io/netlink.h src/io/netlink_int.h
libxlbio_a_SOURCES += src/io/netlink_query.c src/io/netlink_link.c
libxlbio_a_SOURCES += src/io/netlink_route.c src/io/netlink_neigh.c
libxlbio_a_SOURCES += src/io/netlink_doubt.c src/io/netlink_port.c
libxlbio_a_SOURCES += src/io/bird.c src/io/bird.h src/io/bird_private.h
libxlbio_a_SOURCES += src/io/bird_talk.c src/io/bird_judge.c
libxlbio_a_SOURCES += src/io/bird_down.c
libxlbio_a_SOURCES += src/io/bird_client.c src/io/bird_client.h
libxlbio_a_SOURCES += src/io/bird_include.c src/io/bird_include.h
libxlbio_a_SOURCES += src/io/bird_view.c src/io/bird_view.h
libxlbio_a_SOURCES += src/io/tun.c src/io/tun.h
libxlbio_a_SOURCES += src/io/tunnel.c src/io/tunnel.h
libxlbio_a_SOURCES += src/io/notify.c src/io/notify.h
libxlbio_a_SOURCES += src/io/maps_bpf.c src/io/maps.h src/io/maps_int.h
libxlbio_a_SOURCES += src/io/maps_flow.c src/io/grace.c src/io/grace.h
libxlbio_a_SOURCES += src/io/maps_do.c src/io/maps_ring.c src/io/maps_table.c
libxlbio_a_SOURCES += src/io/maps_lookup.c src/io/maps_hash.c
libxlbio_a_SOURCES += src/io/maps_stats.c
libxlbio_a_SOURCES += src/io/events.c src/io/events.h
libxlbio_a_SOURCES += src/io/ctl_stream.c src/io/ctl_int.h
libxlbio_a_SOURCES += src/io/prog.c src/io/prog.h src/io/prog_int.h
libxlbio_a_SOURCES += src/io/prog_pin.c src/io/prog_attach.c src/io/prog_why.c
libxlbio_a_SOURCES += src/io/prog_offload.c src/io/prog_grow.c
libxlbio_a_SOURCES += src/io/prog_load.c src/io/prog_load.h
libxlbio_a_SOURCES += src/io/key.c src/io/key.h
libxlbio_a_SOURCES += src/io/ports.c src/io/ports.h
nodist_libxlbio_a_SOURCES = bpf/xlb.skel.h bpf/ports.skel.h bpf/probe.skel.h
# What a program that links libxlbio.a needs besides.
XLBIO_LIBS = libxlbio.a libxlbcore.a $(LIBBPF_LIBS) $(MNL_LIBS) \
	$(SYSTEMD_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) $(CURL_LIBS)
