# SPDX-License-Identifier: GPL-2.0-or-later
# Older kernels in QEMU: `make check-vm`, and a part of `./setup check`. The
# unit file in a real systemd takes a minute, the packages and IPVS some: only
# here, and these two in `./setup check --long`.
EXTRA_DIST += tests/vm/run tests/vm/debian.py tests/vm/image.py \
	tests/vm/machine.py tests/vm/talk.py tests/vm/guest/init \
	tests/vm/guest/serve tests/vm/guest/lib.sh tests/vm/guest/decap.sh \
	tests/vm/guest/vlan.sh tests/vm/guest/virtio.sh \
	tests/vm/guest/fabric.sh tests/vm/guest/probe.sh \
	tests/vm/guest/suspend.sh \
	tests/vm/system.py tests/vm/guest/unit.sh \
	tests/vm/guest/system-init tests/vm/guest/agent \
	tests/vm/guest/agent.service tests/vm/package.py \
	tests/vm/guest/package.sh tests/vm/guest/datagrams.py \
	tests/vm/guest/ipvs.sh

# What a packet costs in instructions, on a machine whose clock counts them.
VM_SKELETON = tests/vm/cost.skel.h
$(VM_SKELETON:.skel.h=.bpf.o): tests/vm/cost.h tests/bench/frame.h
CLEANFILES += $(VM_SKELETON) $(VM_SKELETON:.skel.h=.bpf.o)
EXTRA_DIST += tests/vm/cost.bpf.c
EXTRA_PROGRAMS += tests/vm/cost
tests_vm_cost_SOURCES = tests/vm/cost.c tests/vm/cost.h tests/bench/frame.h
nodist_tests_vm_cost_SOURCES = $(VM_SKELETON) $(BENCH_SKELETON)
tests_vm_cost_CPPFLAGS = $(AM_CPPFLAGS) $(LIBBPF_CFLAGS) \
	-I$(top_builddir)/tests/vm -I$(top_builddir)/tests/bench
tests_vm_cost_LDADD = $(LIBBPF_LIBS)
tests/vm/cost-cost.$(OBJEXT): $(VM_SKELETON) $(BENCH_SKELETON)

# What the part of `./setup check` takes into the guests.
VM_NEEDS = tests/prog/run_bpf tests/prog/differ tests/decap/run_frames \
	tests/vm/cost $(KERN_TESTS)
vm-programs: all
	$(MAKE) $(AM_MAKEFLAGS) $(VM_NEEDS)

check-vm: vm-programs
	XLB_BUILD='$(abs_top_builddir)' $(srcdir)/tests/vm/run $(VM_FLAGS)
	$(if $(VM_FLAGS),,for kind in --unit --package --ipvs; do \
	    XLB_BUILD='$(abs_top_builddir)' $(srcdir)/tests/vm/run $$kind || \
	    exit 1; done)

clean-local: clean-vm
clean-vm:
	rm -rf tests/vm/state
.PHONY: check-vm clean-vm vm-programs
