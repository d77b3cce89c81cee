# SPDX-License-Identifier: GPL-2.0-or-later
# bpf/NAME.bpf.c -> NAME.bpf.o -> NAME.skel.h: struct NAME_bpf, the object in
# it. One line here for each program; who includes it lists it in nodist_…SOURCES.
BPF_SKELETONS =
BPF_SKELETONS += bpf/xlb.skel.h
BPF_SKELETONS += bpf/decap.skel.h
BPF_SKELETONS += bpf/ports.skel.h
BPF_SKELETONS += bpf/probe.skel.h

BPF_C = bpf/xlb.bpf.c bpf/decap.bpf.c bpf/ports.bpf.c \
	bpf/probe.bpf.c
BPF_H = bpf/sys.h bpf/xlb_abi.h bpf/pkt.h bpf/hash.h bpf/parse.h \
	bpf/vip.h bpf/select.h bpf/flow.h bpf/outer.h bpf/encap.h bpf/stats.h bpf/walk.h \
	bpf/csum.h bpf/rare.h bpf/other.h bpf/answer.h bpf/icmp.h bpf/fragment.h bpf/slow.h \
	bpf/events.h bpf/pull.h bpf/nat.h bpf/nat_send.h bpf/nat_error.h bpf/decap_abi.h bpf/ports_abi.h bpf/probe_abi.h

# No path of this machine gets into the object: builds are the same everywhere.
# `gen object` leaves out DWARF; BTF stays.
BPF_CFLAGS = -g -O2 -target bpf -mcpu=v3 -std=gnu11 $(WARN_CFLAGS) \
	-idirafter /usr/include/$(BPF_MULTIARCH) \
	-ffile-prefix-map=$(top_srcdir)/= -fdebug-compilation-dir=.

AM_V_BPF = $(am__v_BPF_@AM_V@)
am__v_BPF_ = $(am__v_BPF_@AM_DEFAULT_V@)
am__v_BPF_0 = @echo "  BPF     " $@;
am__v_BPF_1 =

SUFFIXES = .bpf.c .bpf.o .skel.h
.bpf.c.bpf.o:
	$(AM_V_BPF)$(MKDIR_P) $(@D) && \
	$(BPF_CLANG) $(BPF_CFLAGS) -c -o $@.tmp $< && \
	$(BPFTOOL) gen object $@ $@.tmp && rm -f $@.tmp
.bpf.o.skel.h:
	$(AM_V_GEN)$(BPFTOOL) gen skeleton $< \
		name $$(basename $@ .skel.h)_bpf >$@.tmp && mv $@.tmp $@
$(BPF_SKELETONS:.skel.h=.bpf.o): $(BPF_H)

BUILT_SOURCES += $(BPF_SKELETONS)
CLEANFILES += $(BPF_SKELETONS) $(BPF_SKELETONS:.skel.h=.bpf.o)
EXTRA_DIST += $(BPF_C) $(BPF_H)
