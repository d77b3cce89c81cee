# SPDX-License-Identifier: GPL-2.0-or-later
# Tests in network namespaces, run by `./setup check`, and what demo shares with
# them.
EXTRA_DIST += tests/fabric/veth.bpf.c tests/fabric/lab.py \
	tests/fabric/fabric.py tests/fabric/frames.py \
	tests/fabric/http_client.py tests/fabric/conftest.py \
	tests/fabric/demo.py tests/fabric/supervisor.py \
	tests/fabric/route_watch.py tests/fabric/pinned.py \
	tests/fabric/health_stub.py tests/fabric/kinds_stub.py
EXTRA_DIST += tests/fabric/test_network.py tests/fabric/test_wrapper.py \
	tests/fabric/test_traffic.py tests/fabric/test_backends.py \
	tests/fabric/test_nodes.py tests/fabric/test_reload.py \
	tests/fabric/test_drain.py tests/fabric/test_redirect.py \
	tests/fabric/test_lifecycle.py tests/fabric/test_forward.py \
	tests/fabric/test_events.py tests/fabric/test_stable.py \
	tests/fabric/streams.py tests/fabric/test_supervised.py \
	tests/fabric/test_peers.py tests/fabric/test_tunnel.py \
	tests/fabric/test_many.py tests/fabric/accept_stub.py \
	tests/fabric/test_chaos.py tests/fabric/chaos.py \
	tests/fabric/facts.py tests/fabric/ask.py \
	tests/fabric/test_path.py tests/fabric/test_nat.py \
	tests/fabric/test_upgrade.py tests/fabric/test_demo.py

FABRIC_BPF = tests/fabric/veth.bpf.o tests/fabric/count.bpf.o
noinst_DATA += $(FABRIC_BPF)
CLEANFILES += $(FABRIC_BPF)
tests/fabric/count.bpf.o: tests/fabric/blast.h

# With sanitizers it would be what is slow.
noinst_DATA += tests/fabric/blast
CLEANFILES += tests/fabric/blast
EXTRA_DIST += tests/fabric/blast.c tests/fabric/blast.h \
	tests/fabric/count.bpf.c
tests/fabric/blast: tests/fabric/blast.c tests/fabric/blast.h
	$(AM_V_at)$(MKDIR_P) tests/fabric
	$(AM_V_GEN)$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -pthread \
		$(top_srcdir)/tests/fabric/blast.c -o $@
