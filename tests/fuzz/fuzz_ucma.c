/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What two programs may say to the rdma_cm device file: one of node n1 and one of node n2, with a
 * subnet administrator on n0 and a network in between. The input is a list of messages, each
 * headed by two bytes: of whom and what it is, and its length in 4-byte words. softibd must answer
 * each command but those that it is only told, and nothing may be left when both programs have gone.
 */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../unit/core/rdma_cm_net.h"
#include "abi/cm_event.h"
#include "abi/session.h"
#include "access/listener.h"
#include "access/ucma.h"
#include "runtime/posix/closer.h"
#include "runtime/posix/rt_posix.h"

/* the lowest bit says whose it is; the rest: */
enum what { COMMAND, NEWS, OPENING, GONE, WHATS };

struct program {
	int news, commands; /* -1: not open */
};

static struct rt *rt;
static struct ucma *ucma;
static struct program program[2];

static void turn(int n)
{
	while (n--)
		rt_posix_turn(rt);
}

static void start(void)
{
	if (!rt && rt_posix_create(&rt))
		abort();
	net = net_create_on(rt, 3);
	net->packet_ns = 0;
	if (ib_sa_init(rt) || ib_cm_init(rt) || rdma_cm_init(rt) || rdma_cm_set_hosts(rt, &hosts) ||
	    ucma_create(rt, NULL, &ucma))
		abort();
	sa = fake_sa_open(net->node[0]);
	program[0] = program[1] = (struct program){-1, -1};
}

static int count(struct rdma_cm_id *id, void *ctx)
{
	return 1;
}

static void end(void)
{
	if (rdma_id_for_each(rt, count, NULL))
		abort();
	ucma_destroy(ucma);
	rdma_cm_set_hosts(rt, NULL);
	rdma_cm_cleanup(rt);
	ib_cm_cleanup(rt);
	ib_sa_cleanup(rt);
	fake_sa_close(sa);
	while (net->under_way) /* by the clock, on a busy machine for long */
		turn(1);
	if (net_take_down(net))
		abort();
}

static void leave(struct program *p)
{
	if (p->news >= 0)
		close(p->news);
	if (p->commands >= 0)
		close(p->commands);
	*p = (struct program){-1, -1};
	turn(3);
}

static void enter(struct program *p, const void *open, size_t bytes)
{
	char reply[256];
	struct peer peer = {.pid = getpid()};
	int pair[2];

	leave(p);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair))
		abort();
	p->news = pair[0];
	ucma_serve(ucma, pair[1], &peer);
	send(p->news, open, bytes, MSG_NOSIGNAL);
	turn(2);
	rt_receive(p->news, reply, sizeof(reply), MSG_DONTWAIT, &p->commands, 1);
}

/* Does the message end with a command that is told? Only ABI_CM_TAKEN may be followed by others. */
static bool is_answered(const uint8_t *bytes, size_t len)
{
	struct rdma_ucm_cmd_hdr hdr;

	for (int i = 0; i < ABI_CM_TOLD_MAX && len >= sizeof(hdr); i++) {
		memcpy(&hdr, bytes, sizeof(hdr));
		if (!(hdr.cmd & ABI_CM_TOLD) || hdr.in % 8 || hdr.in > len - sizeof(hdr))
			return true;
		bytes += sizeof(hdr) + hdr.in;
		len -= sizeof(hdr) + hdr.in;
		if (hdr.cmd != (ABI_CM_TAKEN | ABI_CM_TOLD))
			return len;
		if (!len)
			return false;
	}
	return true;
}

/* each command is answered, and what it brings about is waited for */
static void command(struct program *p, const uint8_t *bytes, size_t len)
{
	char answer[4096];

	if (p->commands < 0 || !len ||
	    send(p->commands, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len)
		return;
	turn(8);
	if ((recv(p->commands, answer, sizeof(answer), MSG_DONTWAIT) > 0) != is_answered(bytes, len))
		abort();
}

static void take_news(struct program *p)
{
	char bytes[4096];

	turn(4);
	while (p->news >= 0 && recv(p->news, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

static void say(const uint8_t head, const uint8_t *bytes, size_t len)
{
	struct program *p = &program[head & 1];

	switch (head / 2 % WHATS) {
	case COMMAND: command(p, bytes, len); break;
	case NEWS: take_news(p); break;
	case OPENING: enter(p, bytes, len); break;
	case GONE: leave(p); break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct abi_open open = {.magic = ABI_MAGIC, .version = ABI_VERSION,
				.kind = ABI_OPEN_RDMA_CM, .port = 1, .device = "fake0"};

	start();
	for (int i = 0; i < 2; i++) {
		strcpy(open.node, i ? "n2" : "n1");
		enter(&program[i], &open, sizeof(open));
	}
	while (size >= 2) {
		size_t len = MIN((size_t)data[1] * 4, size - 2);

		say(data[0], data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	leave(&program[0]);
	leave(&program[1]);
	turn(8);
	end();
	return 0;
}
