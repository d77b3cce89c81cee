/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames through the packet program and the reference: verdict, reason and bytes
 * must be the same, and no access be outside of the frame. Byte 0 of the input
 * chooses the configuration, byte 1 how much of a frame is in its first buffer
 * (0: all); then frames, each behind two bytes of length, the lower first.
 */
#include "fuzz.h"

#include <linux/bpf.h>
#include <string.h>

#include "../prog/engine.h"
#include "../prog/reference.h"
#include "../prog/rng.h"
#include "../prog/world.h"
#include "xlb_abi.h"

#define WORLDS 4
#define FRAMES 64		/* less than XLB_ANSWER_BURST */
#define RING_SIZE 251
#define FLOW_ENTRIES 1024
#define CLOCK (1ULL << 42)	/* ns: stands still */

/* A configuration with what its maps hold: to make one takes longer than all of
 * the frames of an input. */
struct kept {
	struct ref_config config;
	void *tables, *ring[REF_RINGS];
};

static struct world world;
static struct kept kept[WORLDS];
static struct ref_state state;
static struct ref_result want;
static int built = -1;
static size_t tables_len, ring_len;
static void *flows, *nat;
static size_t flows_len, nat_len;
static uint64_t reasons[XLB_REASON_COUNT];

static void
begin(void)
{
	const struct engine_config c = { RING_SIZE, FLOW_ENTRIES, 1024, true };
	char why[128] = "";
	uint32_t insns, i;

	FUZZ_CHECK(engine_open(&c, &insns, why, sizeof(why)) == 0);
	FUZZ_CHECK(engine_port(2) == 0 && engine_clock(CLOCK, 1) == 0);
	world.image = calloc(1, sizeof(*world.image));
	world.config.ring_size = RING_SIZE;
	world.maps[0].tables = engine_map("tables", &tables_len);
	flows = engine_map("flows", &flows_len);
	nat = engine_map("nat", &nat_len);
	for (i = 0; i < REF_RINGS; i++)
		world.maps[0].ring[i] = engine_ring(i, &ring_len);
	world.nmaps = 1;
}

static void *
copy(const void *from, size_t len)
{
	void *to = malloc(len);

	FUZZ_CHECK(to != NULL);
	return memcpy(to, from, len);
}

static void
world_make(int number, struct kept *k)
{
	struct rng r = { (uint64_t)number };
	unsigned i;

	for (i = 0; i < REF_RINGS; i++)
		world.config.ring[i] = calloc(RING_SIZE,
		    sizeof(*world.config.ring[i]));
	world_build(&world, &r, true);
	k->config = world.config;
	k->tables = copy(world.maps[0].tables, tables_len);
	for (i = 0; i < REF_RINGS; i++)
		k->ring[i] = copy(world.maps[0].ring[i], ring_len);
}

static void
world_set(const struct kept *k)
{
	unsigned i;

	world.config = k->config;
	memcpy(world.maps[0].tables, k->tables, tables_len);
	for (i = 0; i < REF_RINGS; i++)
		memcpy(world.maps[0].ring[i], k->ring[i], ring_len);
}

/* Everything as it is for every input. */
static void
reset(int number, size_t head)
{
	struct xlb_rare rare = { 0 };

	if (built == -1)
		begin();
	if (kept[number].tables == NULL)
		world_make(number, &kept[number]);
	if (built != number)
		world_set(&kept[number]);
	built = number;
	state.nfragment = state.nflow = 0;
	memset(flows, 0, flows_len);
	memset(nat, 0, nat_len);
	FUZZ_CHECK(engine_clear("fragments") == 0);
	FUZZ_CHECK(engine_row_set("rare", 0, &rare) == 0);
	FUZZ_CHECK(engine_split(head) == 0);
	world.config.first_buffer = head == 0 ? 0 : head +
	    (head < 256 ? 160 : 0);
}

static unsigned
reason_read(void)
{
	uint64_t now[XLB_REASON_COUNT];
	unsigned i, grown = 0, which = 0;

	FUZZ_CHECK(engine_counters("reasons", 0, now, XLB_REASON_COUNT) == 0);
	for (i = 0; i < XLB_REASON_COUNT; i++)
		if (now[i] != reasons[i]) {
			grown += (unsigned)(now[i] - reasons[i]);
			which = i;
		}
	memcpy(reasons, now, sizeof(now));
	FUZZ_CHECK(grown == 1);
	return which;
}

static void
frame_run(const uint8_t *frame, size_t len)
{
	static uint8_t out[ENGINE_FRAME_MAX];
	size_t out_len = 0;
	int action;

	ref_run(&world.config, &state, frame, len, &want);
	action = engine_run(frame, len, out, &out_len);
	FUZZ_CHECK(reason_read() == want.reason);
	FUZZ_CHECK(action == want.action);
	if (action == XDP_DROP)
		return;
	FUZZ_CHECK(out_len == want.len);
	FUZZ_CHECK(memcmp(out, want.frame, out_len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = { data, data + len };
	const uint8_t *frame;
	size_t n, i;

	n = fuzz_byte(&in) % WORLDS;
	reset((int)n, fuzz_byte(&in));
	for (i = 0; i < FRAMES && in.at < in.end; i++) {
		n = fuzz_byte(&in);
		n |= (size_t)fuzz_byte(&in) << 8;
		n %= REF_FRAME_MAX / 2;
		frame = fuzz_bytes(&in, &n);
		frame_run(frame, n);
	}
	return 0;
}
