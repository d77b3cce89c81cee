/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs frames through the decapsulating program, without an interface: for
 * each line "HEX [LINEAR]" of the input one line "VERDICT REASON HEX" is
 * written. LINEAR: how many bytes the first buffer holds.
 *
 *	run_frames [--frags] [from=PREFIX] [vip=PREFIX] [local=ADDRESS]
 *	    [lo=ADDRESS/LENGTH] [gue=PORT] [--bench=REPEAT]
 */
#include "decap/decap.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 64
#define FRAME_MAX 65536

static const char *const reason_name[] = {
#define X(NAME, name, kind, what) #name,
	DECAP_REASONS(X)
#undef X
};

struct run {
	struct decap_config c;
	struct prefix from[ROWS], vip[ROWS];
	struct host_addr addr[ROWS];
	struct host host;
	bool frags;
	uint32_t repeat;
	int counters, cpus;
};

static struct prefix
prefix_read(const char *text)
{
	struct prefix p;

	if (prefix_parse(text, &p) < 0)
		errx(2, "not a prefix: %s", text);
	return p;
}

static void
address_add(struct run *r, const char *text, uint32_t flags)
{
	struct host_addr *row = &r->addr[r->host.n++];

	*row = (struct host_addr){ .flags = flags };
	if (addr_parse(text, &row->p.addr) < 0)
		errx(2, "not an address: %s", text);
	row->p.len = (uint8_t)addr_bits(&row->p.addr);
}

static void
argument_read(struct run *r, const char *arg)
{
	const char *value = strchr(arg, '=');

	value = value != NULL ? value + 1 : "";
	if (strcmp(arg, "--frags") == 0)
		r->frags = true;
	else if (strncmp(arg, "--bench=", 8) == 0)
		r->repeat = (uint32_t)atoi(value);
	else if (strncmp(arg, "gue=", 4) == 0)
		r->c.gue_port = (uint16_t)atoi(value);
	else if (strncmp(arg, "from=", 5) == 0)
		r->from[r->c.nfrom++] = prefix_read(value);
	else if (strncmp(arg, "vip=", 4) == 0)
		r->vip[r->c.nvip++] = prefix_read(value);
	else if (strncmp(arg, "local=", 6) == 0)
		address_add(r, value, DECAP_HOST);
	else if (strncmp(arg, "lo=", 3) == 0)
		address_add(r, value, DECAP_HOST | DECAP_LO);
	else
		errx(2, "unknown argument: %s", arg);
	if (r->c.nfrom == ROWS || r->c.nvip == ROWS || r->host.n == ROWS)
		errx(2, "more than %d rows", ROWS);
}

static void
counters_read(const struct run *r, uint64_t sum[DECAP_REASON_COUNT])
{
	struct decap_counters *c = calloc((size_t)r->cpus, sizeof(*c));
	int cpu, k;

	if (c == NULL || bpf_map_lookup_elem(r->counters, &(uint32_t){ 0 },
	    c) < 0)
		err(1, "counters");
	for (k = 0; k < DECAP_REASON_COUNT; k++)
		for (sum[k] = 0, cpu = 0; cpu < r->cpus; cpu++)
			sum[k] += c[cpu].packets[k];
	free(c);
}

/* The one reason that was counted; "none" or "many" is a fault. */
static const char *
reason_find(const uint64_t *before, const uint64_t *after, uint32_t repeat)
{
	const char *found = "none";
	int k;

	for (k = 0; k < DECAP_REASON_COUNT; k++) {
		if (after[k] == before[k])
			continue;
		if (strcmp(found, "none") != 0 ||
		    after[k] - before[k] != repeat)
			return "many";
		found = reason_name[k];
	}
	return found;
}

static size_t
frame_read(const char *line, uint8_t *frame, char **end)
{
	char digits[3] = "";
	size_t n;

	for (n = 0; n < FRAME_MAX && strchr(" \n", line[0]) == NULL; n++) {
		memcpy(digits, line, 2);
		frame[n] = (uint8_t)strtoul(digits, end, 16);
		if (**end != '\0')
			errx(2, "not hexadecimal: %s", digits);
		line += 2;
	}
	*end = (char *)(uintptr_t)line;
	return n;
}

static void
frame_run(const struct run *r, int prog, uint8_t *frame, size_t len,
    uint32_t linear)
{
	static uint8_t out[FRAME_MAX + 256];
	static const char *const verdict[] = { "ABORTED", "DROP", "PASS", "TX",
	    "REDIRECT" };
	uint64_t before[DECAP_REASON_COUNT], after[DECAP_REASON_COUNT];
	struct xdp_md ctx = { .data_end = linear };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = frame,
	    .data_size_in = (uint32_t)len, .data_out = out,
	    .data_size_out = sizeof(out), .repeat = (int)r->repeat);
	uint32_t i;

	if (linear != 0) {
		opts.ctx_in = &ctx;
		opts.ctx_size_in = sizeof(ctx);
	}
	counters_read(r, before);
	if (bpf_prog_test_run_opts(prog, &opts) < 0) {
		printf("ERROR %s -\n", strerror(errno));
		return;
	}
	counters_read(r, after);
	if (r->repeat > 1) {
		printf("%u ns\n", opts.duration);
		return;
	}
	printf("%s %s ", opts.retval < 5 ? verdict[opts.retval] : "?",
	    reason_find(before, after, 1));
	for (i = 0; i < opts.data_size_out; i++)
		printf("%02x", out[i]);
	printf("\n");
}

int
main(int argc, char *argv[])
{
	static struct run r = { .c = { .name = "test",
	    .gue_port = DECAP_GUE_PORT }, .repeat = 1 };
	static char line[2 * FRAME_MAX + 64];
	static uint8_t frame[FRAME_MAX];
	struct decap_bpf *bpf;
	size_t len;
	char *end;
	int i;

	for (i = 1; i < argc; i++)
		argument_read(&r, argv[i]);
	r.c.from = r.from;
	r.c.vip = r.vip;
	r.host.addr = r.addr;
	r.cpus = libbpf_num_possible_cpus();
	r.counters = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "counters",
	    sizeof(uint32_t), sizeof(struct decap_counters), 1, NULL);
	if (r.counters < 0)
		err(77, "BPF is not permitted");
	program_quiet(false);
	bpf = program_load(&r.c, &r.host, false, r.frags, r.counters);
	if (bpf == NULL)
		return 1;
	while (fgets(line, sizeof(line), stdin) != NULL) {
		len = frame_read(line, frame, &end);
		frame_run(&r, program_fd(bpf), frame, len,
		    (uint32_t)strtoul(end, NULL, 10));
		fflush(stdout);
	}
	program_close(bpf);
	return 0;
}
