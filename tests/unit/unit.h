/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every unit test includes: cmocka wants these five in this order. */
#ifndef XLB_UNIT_H
#define XLB_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#endif
