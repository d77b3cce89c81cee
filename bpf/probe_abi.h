/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mark (SO_MARK) of a probe that goes through a backend's tunnel: bits
 * 16-31 say that it is one, 14-15 how it is sent (XLB_FORWARD_*), 0-13 the
 * backend's number. An `ip rule` leads such packets to a table of their own,
 * whose only way out is a device with probe.bpf.c on its egress.
 */
#ifndef XLB_PROBE_ABI_H
#define XLB_PROBE_ABI_H

#define PROBE_MARK		0x786c0000U
#define PROBE_MARK_MASK		0xffff0000U
#define PROBE_MARK_OF(number, form) (PROBE_MARK | (__u32)(form) << 14 | \
    (__u32)(number))
#define PROBE_MARK_NUMBER(m)	((m) & 0x3fff)
#define PROBE_MARK_FORM(m)	((m) >> 14 & 3)

#endif
