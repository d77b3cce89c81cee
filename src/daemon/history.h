/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The recent past, for the status page: rates of backends and services. */
#ifndef XLB_HISTORY_H
#define XLB_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct daemon;

#define HISTORY_EVERY_S 5
#define HISTORY_SAMPLES 48	/* four minutes */

/* Packets per second of one number, the newest sample last. */
struct history_rate {
	uint32_t value[HISTORY_SAMPLES];
	size_t n;
};

int history_open(struct daemon *d);	/* 0, or -errno */
void history_close(struct daemon *d);

/* Of a backend's number. False: nothing is known yet. */
bool history_backend(const struct daemon *d, uint32_t number,
    struct history_rate *out);
/* The newest sample of a service's number. */
uint32_t history_service(const struct daemon *d, uint32_t number);

#endif
