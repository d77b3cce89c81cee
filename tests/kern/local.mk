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

KERN_TESTS += tests/kern/test_maps_bounds
tests_kern_test_maps_bounds_SOURCES = tests/kern/test_maps_bounds.c \
	$(KERN_SOURCES)
tests_kern_test_maps_bounds_CPPFLAGS = $(KERN_CPPFLAGS)
tests_kern_test_maps_bounds_LDADD = $(KERN_LIBS)

KERN_TESTS += tests/kern/test_ports
tests_kern_test_ports_SOURCES = tests/kern/test_ports.c tests/unit/unit.h
tests_kern_test_ports_CPPFLAGS = $(KERN_CPPFLAGS)
tests_kern_test_ports_LDADD = $(KERN_LIBS)

KERN_TESTS += tests/kern/test_tunnel
tests_kern_test_tunnel_SOURCES = tests/kern/test_tunnel.c $(KERN_SOURCES)
tests_kern_test_tunnel_CPPFLAGS = $(KERN_CPPFLAGS)
tests_kern_test_tunnel_LDADD = $(KERN_LIBS)

# Calls of libxlbio.a that may fail, see fault_calls.inc.
FAULT_TESTS =
EXTRA_PROGRAMS += $(FAULT_TESTS)
FAULT_WRAP = -Wl,--wrap=accept4 -Wl,--wrap=bind -Wl,--wrap=chdir \
	-Wl,--wrap=chmod -Wl,--wrap=chown -Wl,--wrap=close_range -Wl,--wrap=connect \
	-Wl,--wrap=dup -Wl,--wrap=dup2 -Wl,--wrap=epoll_create1 -Wl,--wrap=epoll_ctl \
	-Wl,--wrap=epoll_wait -Wl,--wrap=eventfd -Wl,--wrap=eventfd_write \
	-Wl,--wrap=fchmod -Wl,--wrap=flock -Wl,--wrap=fopen -Wl,--wrap=fork \
	-Wl,--wrap=fstat -Wl,--wrap=fsync -Wl,--wrap=ftruncate -Wl,--wrap=getsockname \
	-Wl,--wrap=getsockopt -Wl,--wrap=listen -Wl,--wrap=lstat \
	-Wl,--wrap=memfd_create -Wl,--wrap=mkdir -Wl,--wrap=mmap \
	-Wl,--wrap=pidfd_open -Wl,--wrap=pipe2 -Wl,--wrap=poll -Wl,--wrap=pread \
	-Wl,--wrap=pthread_create -Wl,--wrap=pwrite -Wl,--wrap=read -Wl,--wrap=recv \
	-Wl,--wrap=recvfrom -Wl,--wrap=recvmsg -Wl,--wrap=rename -Wl,--wrap=send \
	-Wl,--wrap=sendmsg -Wl,--wrap=sendto -Wl,--wrap=setgroups \
	-Wl,--wrap=setresgid -Wl,--wrap=setresuid -Wl,--wrap=setsockopt \
	-Wl,--wrap=sigprocmask -Wl,--wrap=socket -Wl,--wrap=socketpair \
	-Wl,--wrap=stat -Wl,--wrap=unlink -Wl,--wrap=write -Wl,--wrap=sd_event_add_io \
	-Wl,--wrap=sd_event_add_time -Wl,--wrap=sd_event_add_time_relative \
	-Wl,--wrap=sd_event_source_set_priority -Wl,--wrap=mnl_socket_open2 \
	-Wl,--wrap=mnl_socket_bind -Wl,--wrap=mnl_socket_sendto \
	-Wl,--wrap=mnl_socket_recvfrom -Wl,--wrap=bpf_link_create \
	-Wl,--wrap=bpf_link_detach -Wl,--wrap=bpf_link_update \
	-Wl,--wrap=bpf_map__reuse_fd -Wl,--wrap=bpf_map__set_max_entries \
	-Wl,--wrap=bpf_map__set_value_size -Wl,--wrap=bpf_map_create \
	-Wl,--wrap=bpf_map_delete_elem -Wl,--wrap=bpf_map_get_next_key \
	-Wl,--wrap=bpf_map_lookup_elem -Wl,--wrap=bpf_map_update_elem \
	-Wl,--wrap=bpf_obj_get -Wl,--wrap=bpf_obj_get_info_by_fd \
	-Wl,--wrap=bpf_obj_pin -Wl,--wrap=bpf_object__attach_skeleton \
	-Wl,--wrap=bpf_object__load_skeleton -Wl,--wrap=bpf_object__open_skeleton \
	-Wl,--wrap=bpf_program__set_flags -Wl,--wrap=bpf_program__set_log_buf \
	-Wl,--wrap=bpf_tc_attach -Wl,--wrap=bpf_tc_hook_create \
	-Wl,--wrap=bpf_tc_query -Wl,--wrap=bpf_xdp_query -Wl,--wrap=ring_buffer__new \
	-Wl,--wrap=bpf_program__fd -Wl,--wrap=munmap -Wl,--wrap=open -Wl,--wrap=fcntl -Wl,--wrap=ioctl -Wl,--wrap=prctl \
	-Wl,--wrap=syscall \
	-Wl,--wrap=calloc -Wl,--wrap=malloc -Wl,--wrap=realloc \
	-Wl,--wrap=strdup -Wl,--wrap=open_memstream -Wl,--wrap=json_dumps \
	-Wl,--wrap=json_loadb -Wl,--wrap=json_object \
	-Wl,--wrap=json_string -Wl,--wrap=curl_easy_init \
	-Wl,--wrap=curl_multi_init -Wl,--wrap=curl_multi_add_handle \
	-Wl,--wrap=curl_slist_append -Wl,--wrap=MHD_add_response_header \
	-Wl,--wrap=MHD_create_response_from_buffer \
	-Wl,--wrap=MHD_create_response_from_buffer_with_free_callback_cls \
	-Wl,--wrap=asprintf -Wl,--wrap=abort -Wl,--wrap=execve \
	-Wl,--wrap=getrlimit -Wl,--wrap=setrlimit -Wl,--wrap=statfs \
	-Wl,--wrap=opendir -Wl,--wrap=libbpf_num_possible_cpus
FAULT_TESTS += tests/kern/test_fault
tests_kern_test_fault_SOURCES = tests/kern/test_fault.c tests/kern/fault.c \
	tests/kern/fault_host.c tests/kern/fault_bpf.c \
	tests/kern/fault_serve.c \
	tests/kern/fault.h tests/kern/fault_calls.inc \
	tests/kern/fault_memory.inc $(KERN_SOURCES)
tests_kern_test_fault_CPPFLAGS = $(KERN_CPPFLAGS) $(JANSSON_CFLAGS) \
	$(CURL_CFLAGS) $(MICROHTTPD_CFLAGS)
tests_kern_test_fault_LDFLAGS = $(AM_LDFLAGS) $(FAULT_WRAP)
tests_kern_test_fault_LDADD = $(KERN_LIBS) $(MICROHTTPD_LIBS) $(CURL_LIBS)
