/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a configuration names outside of itself. */
#ifndef XLB_CONF_WORLD_H
#define XLB_CONF_WORLD_H

#include "core/conf.h"

/*
 * The files of certificate authorities can be read and hold some, and the users
 * of commands exist and can act on nothing of ours. What is wrong goes to `dg` at
 * its place, as `level`: a warning where the configuration is used anyway, and
 * its checks then keep their backends' state.
 * 0, or -1: there was an error.
 */
int conf_world_check(const struct conf *c, enum diag_level level,
    struct diag *dg);

/* Warns of each interface that would drop replies to checks. */
void reply_filter_check(const struct conf *c, struct diag *dg);

#endif
