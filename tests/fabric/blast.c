/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbered datagrams at a rate. What becomes of them count.bpf.c says, through a
 * map, so the sender knows at any time how many are under way, and never lets more
 * of them be than a veth has room for: what is lost was lost by what lies between.
 *
 * usage: blast RATE DEVICE SOURCE-MAC MAC ADDRESS MAP
 *
 * They leave DEVICE, in 1024 flows, RATE of them a second. Each line of standard
 * input is answered by what was so far, as JSON; its end stops the sender, and is
 * answered when nothing is under way.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "blast.h"

#define FLOWS 1024
#define BURST 32		/* packets in one system call */
#define WINDOW 160		/* under way at most; a veth's ring has 256 */
#define PAUSE_NS 200000		/* between two looks at the clock */
#define SETTLE_NS 5000000000	/* what is not there by then is lost, however long
				 * nobody had the kernel hand it over */
#define LATE 20000		/* packets; what is later than that stays so */
#define SECOND 1000000000	/* ns */

struct frame {
	struct ether_header eth;
	struct iphdr ip;
	struct udphdr udp;
	uint64_t number;
	uint8_t pad[10];	/* to the least that Ethernet has */
} __attribute__((packed));

static struct frame frame[FLOWS];
static _Atomic uint64_t *seen;		/* the map */
static _Atomic uint64_t sent;
static atomic_bool stop;
static uint64_t rate;
static int device;		/* a socket */

static int64_t
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * SECOND + ts.tv_nsec;
}

static void
pause_ns(long ns)
{
	struct timespec ts = { 0, ns };

	nanosleep(&ts, NULL);
}

static void
map_open(const char *path)
{
	union bpf_attr attr = { .pathname = (uint64_t)(uintptr_t)path };
	size_t size = BLAST_VALUES * sizeof(*seen);
	int fd = (int)syscall(SYS_bpf, BPF_OBJ_GET, &attr, sizeof(attr));

	seen = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_SHARED, fd, 0);
	if (seen == MAP_FAILED)
		err(1, "%s", path);
	memset((void *)seen, 0, size);
}

static void
device_open(const char *name)
{
	struct sockaddr_ll ll = { .sll_family = AF_PACKET };
	int one = 1;

	device = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	ll.sll_ifindex = (int)if_nametoindex(name);
	if (device < 0 || ll.sll_ifindex == 0 ||
	    bind(device, (struct sockaddr *)&ll, sizeof(ll)) < 0 ||
	    setsockopt(device, SOL_PACKET, PACKET_QDISC_BYPASS, &one,
	    sizeof(one)) < 0)
		err(1, "%s", name);
}

static uint16_t
ip_sum(struct iphdr ip)
{
	uint16_t word[sizeof(ip) / 2];
	uint32_t sum = 0;
	size_t i;

	memcpy(word, &ip, sizeof(ip));
	for (i = 0; i < sizeof(ip) / 2; i++)
		sum += word[i];
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static void
frames_make(const char *source, const char *mac, const char *address)
{
	struct ether_addr from, to;
	struct in_addr vip;
	struct frame *f;
	size_t i;

	if (ether_aton_r(source, &from) == NULL ||
	    ether_aton_r(mac, &to) == NULL ||
	    inet_pton(AF_INET, address, &vip) != 1)
		errx(2, "%s, %s: no MAC addresses, or %s no address", source,
		    mac, address);
	for (i = 0; i < FLOWS; i++) {
		f = &frame[i];
		memcpy(f->eth.ether_shost, &from, ETH_ALEN);
		memcpy(f->eth.ether_dhost, &to, ETH_ALEN);
		f->eth.ether_type = htons(ETHERTYPE_IP);
		f->ip.version = 4;
		f->ip.ihl = 5;
		f->ip.tot_len = htons(sizeof(*f) - sizeof(f->eth));
		f->ip.ttl = 64;
		f->ip.protocol = IPPROTO_UDP;
		f->ip.saddr = htonl(0xc6120100 | (uint32_t)(i & 255));
		f->ip.daddr = vip.s_addr;
		f->ip.check = ip_sum(f->ip);
		f->udp.source = htons((uint16_t)(1024 + i));
		f->udp.dest = htons(BLAST_PORT);
		f->udp.len = htons(sizeof(*f) - sizeof(f->eth) -
		    sizeof(f->ip));
	}
}

/* Packets [first, first + n) of all; how many the device took. */
static unsigned
burst_send(uint64_t first, unsigned n)
{
	struct mmsghdr msg[BURST];
	struct iovec iov[BURST];
	struct frame out[BURST];
	unsigned i;
	int took;

	memset(msg, 0, sizeof(msg));
	for (i = 0; i < n; i++) {
		out[i] = frame[(first + i) % FLOWS];
		out[i].number = first + i;
		iov[i] = (struct iovec){ &out[i], sizeof(out[i]) };
		msg[i].msg_hdr.msg_iov = &iov[i];
		msg[i].msg_hdr.msg_iovlen = 1;
	}
	took = sendmmsg(device, msg, n, 0);
	if (took < 0 && errno != ENOBUFS && errno != EAGAIN && errno != EINTR)
		err(1, "sendmmsg");
	return took < 0 ? 0 : (unsigned)took;
}

/* Of what is due, what there is room for. A pause is not made up for: that
 * would be another rate. */
static void *
send_all(void *arg)
{
	uint64_t n, out, due, heard = 0, given_up = 0;
	int64_t begun = now(), moved = begun, at;

	(void)arg;
	while (!stop && sent < BLAST_NUMBERS - BURST) {
		at = now();
		out = sent - seen[BLAST_RECEIVED];
		if (seen[BLAST_RECEIVED] != heard) {
			heard = seen[BLAST_RECEIVED];
			moved = at;
		} else if (at - moved > SETTLE_NS) {
			given_up = out;
			moved = at;
		}
		due = (uint64_t)(at - begun) * rate / SECOND;
		if (due > sent + LATE) {
			due = sent + LATE;
			begun = at - (int64_t)(due * SECOND / rate);
		}
		out = out > given_up ? out - given_up : 0;
		n = out < WINDOW ? WINDOW - out : 0;
		n = due < sent + n ? due - sent : n;
		n = n < BURST ? n : BURST;
		if (n > 0)
			sent += burst_send(sent, (unsigned)n);
		if (n < BURST)
			pause_ns(PAUSE_NS);
	}
	return NULL;
}

/* Until all have come, or none came for a while. */
static void
settle(void)
{
	uint64_t heard = seen[BLAST_RECEIVED];
	int64_t moved = now();

	while (sent != seen[BLAST_RECEIVED] && now() - moved < SETTLE_NS) {
		pause_ns(PAUSE_NS);
		if (seen[BLAST_RECEIVED] != heard) {
			heard = seen[BLAST_RECEIVED];
			moved = now();
		}
	}
}

static void
report(void)
{
	printf("{\"at\": %.6f, \"sent\": %llu, \"received\": %llu, "
	    "\"again\": %llu}\n", (double)now() / SECOND,
	    (unsigned long long)sent,
	    (unsigned long long)seen[BLAST_RECEIVED],
	    (unsigned long long)seen[BLAST_AGAIN]);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	pthread_t sender;
	char line[64];

	rate = argc == 7 ? strtoull(argv[1], NULL, 10) : 0;
	if (rate == 0)
		errx(2, "usage: blast RATE DEVICE SOURCE-MAC MAC ADDRESS MAP");
	map_open(argv[6]);
	device_open(argv[2]);
	frames_make(argv[3], argv[4], argv[5]);
	report();
	if (pthread_create(&sender, NULL, send_all, NULL) != 0)
		errx(1, "no thread");
	while (fgets(line, sizeof(line), stdin) != NULL)
		report();
	stop = true;
	pthread_join(sender, NULL);
	settle();
	report();
	return 0;
}
