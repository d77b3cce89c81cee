/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What xlbd and the process that speaks HTTP say to each other: messages of
 * fixed size on a SOCK_SEQPACKET pair, host byte order. xlbd gives it the
 * listening socket and, when it is asked for one, a document as a sealed memory
 * file; all that it ever says is which document it wants.
 */
#ifndef XLB_HTTP_WIRE_H
#define XLB_HTTP_WIRE_H

#include <stdint.h>

#include "io/http.h"

enum http_order_kind {
	HTTP_LISTEN = 1,	/* on the socket that comes along; without one,
				 * on none */
	HTTP_DOCUMENT = 2	/* in the memory file that comes along */
};

struct http_order {		/* xlbd to helper */
	uint32_t kind, document;
	uint64_t length;	/* bytes of the document */
};

struct http_wish {		/* helper to xlbd */
	uint32_t document;
};

/* http_child.c: the helper's whole life. */
_Noreturn void http_child(int fd);

#endif
