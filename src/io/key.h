/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The secret that keys the flow hash, the same file on all nodes. */
#ifndef XLB_KEY_H
#define XLB_KEY_H

#include <stdint.h>

#define KEY_FORM "neither 16 bytes nor 32 hexadecimal digits"

/* 0; -EINVAL: see KEY_FORM; -errno. A file that others may read is logged. */
int key_read(const char *path, uint8_t key[16]);

#endif
