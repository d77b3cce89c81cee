# SPDX-License-Identifier: GPL-2.0-or-later
# Against the real kernel, in namespaces of their own; skipped without root.
KERN_TESTS =
KERN_SOURCES = tests/kern/kern.c tests/kern/kern.h tests/unit/unit.h
KERN_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/tests $(SYSTEMD_CFLAGS) \
	$(MNL_CFLAGS) $(LIBBPF_CFLAGS)
KERN_LIBS = $(XLBIO_LIBS) $(CMOCKA_LIBS)
EXTRA_PROGRAMS += $(KERN_TESTS)

NET_SOURCES = tests/kern/net.c tests/kern/net.h $(KERN_SOURCES)

KERN_TESTS += tests/kern/test_netlink
tests_kern_test_netlink_SOURCES = tests/kern/test_netlink.c $(NET_SOURCES)
tests_kern_test_netlink_CPPFLAGS = $(KERN_CPPFLAGS)
tests_kern_test_netlink_LDADD = $(KERN_LIBS)

KERN_TESTS += tests/kern/test_vlan
tests_kern_test_vlan_SOURCES = tests/kern/test_vlan.c $(NET_SOURCES)
tests_kern_test_vlan_CPPFLAGS = $(KERN_CPPFLAGS)
tests_kern_test_vlan_LDADD = $(KERN_LIBS)

KERN_TESTS += tests/kern/test_prog
tests_kern_test_prog_SOURCES = tests/kern/test_prog.c $(KERN_SOURCES)
tests_kern_test_prog_CPPFLAGS = $(KERN_CPPFLAGS)
tests_kern_test_prog_LDADD = $(KERN_LIBS)

KERN_TESTS += tests/kern/test_prog_nat
tests_kern_test_prog_nat_SOURCES = tests/kern/test_prog_nat.c $(KERN_SOURCES)
tests_kern_test_prog_nat_CPPFLAGS = $(KERN_CPPFLAGS)
tests_kern_test_prog_nat_LDADD = $(KERN_LIBS)

KERN_TESTS += tests/kern/test_maps
tests_kern_test_maps_SOURCES = tests/kern/test_maps.c $(KERN_SOURCES)
tests_kern_test_maps_CPPFLAGS = $(KERN_CPPFLAGS)
tests_kern_test_maps_LDADD = $(KERN_LIBS)

KERN_TESTS += tests/kern/test_ports
tests_kern_test_ports_SOURCES = tests/kern/test_ports.c tests/unit/unit.h
tests_kern_test_ports_CPPFLAGS = $(KERN_CPPFLAGS)
tests_kern_test_ports_LDADD = $(KERN_LIBS)

KERN_TESTS += tests/kern/test_tunnel
tests_kern_test_tunnel_SOURCES = tests/kern/test_tunnel.c $(KERN_SOURCES)
tests_kern_test_tunnel_CPPFLAGS = $(KERN_CPPFLAGS)
tests_kern_test_tunnel_LDADD = $(KERN_LIBS)
