# SPDX-License-Identifier: GPL-2.0-or-later
# Older kernels in QEMU: `make check-vm`, and a part of `./setup check`. The
# unit file in a real systemd takes a minute, the packages some: only here, and
# the packages in `./setup check --long`.
EXTRA_DIST += tests/vm/run tests/vm/debian.py tests/vm/image.py \
	tests/vm/machine.py tests/vm/talk.py tests/vm/guest/init \
	tests/vm/guest/serve tests/vm/guest/lib.sh tests/vm/guest/decap.sh \
	tests/vm/guest/vlan.sh tests/vm/guest/probe.sh \
	tests/vm/system.py tests/vm/guest/unit.sh \
	tests/vm/guest/system-init tests/vm/guest/agent \
	tests/vm/guest/agent.service tests/vm/package.py \
	tests/vm/guest/package.sh tests/vm/guest/datagrams.py

# What the part of `./setup check` takes into the guests.
vm-programs: all tests/prog/run_bpf tests/prog/differ tests/decap/run_frames \
	$(KERN_TESTS)

check-vm: vm-programs
	XLB_BUILD='$(abs_top_builddir)' $(srcdir)/tests/vm/run $(VM_FLAGS)
	$(if $(VM_FLAGS),,for kind in --unit --package; do \
	    XLB_BUILD='$(abs_top_builddir)' $(srcdir)/tests/vm/run $$kind || \
	    exit 1; done)

clean-local: clean-vm
clean-vm:
	rm -rf tests/vm/state
.PHONY: check-vm clean-vm vm-programs
