/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A fuzz target: one function that takes any bytes. libFuzzer calls it with
 * bytes that reach more and more of the code, replay.c with those of a corpus.
 * What it finds wrong ends the process.
 */
#ifndef XLB_FUZZ_H
#define XLB_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define FUZZ_CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: %s: not so: %s\n", __FILE__, \
			    __LINE__, __func__, #what); \
			abort(); \
		} \
	} while (0)

/* Input that is read from its front; where there is no more, 0. */
struct fuzz_in {
	const uint8_t *at, *end;
};

static inline uint8_t
fuzz_byte(struct fuzz_in *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* The next `len` bytes, fewer at the end. */
static inline const uint8_t *
fuzz_bytes(struct fuzz_in *in, size_t *len)
{
	const uint8_t *at = in->at;

	if (*len > (size_t)(in->end - in->at))
		*len = (size_t)(in->end - in->at);
	in->at += *len;
	return at;
}

#endif
