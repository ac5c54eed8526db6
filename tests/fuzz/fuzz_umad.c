/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a program may say on the umad sockets, and what may arrive on the
 * wire while it does. The input is a list of messages, each headed by two
 * bytes: where it goes, and its length in 4-byte words. softibd must answer
 * or ignore each, and close without a trace.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/core/mad_net.h"
#include "abi/session.h"
#include "access/umad.h"
#include "runtime/posix/closer.h"
#include "runtime/posix/rt_posix.h"

enum where { OPENING, CONTROL, DATA, WIRE_QP0, WIRE_QP1, WHERES };

struct session {
	int data, control;
};

static struct rt *rt;
static struct net *net;
static struct umad *umad;

static void start(void)
{
	if (rt_posix_create(&rt))
		abort();
	net = net_create_on(rt, 2);
	net->packet_ns = 0;
	if (umad_create(rt, NULL, &umad))
		abort();
}

static void turn(int n)
{
	while (n--)
		rt_posix_turn(rt);
}

static struct session open_session(const void *open, size_t bytes)
{
	struct session s = {-1, -1};
	char reply[4096];
	struct peer peer = {.pid = getpid()};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair))
		abort();
	s.data = pair[0];
	umad_serve(umad, pair[1], &peer);
	send(s.data, open, bytes, MSG_NOSIGNAL);
	turn(2);
	rt_receive(s.data, reply, sizeof(reply), MSG_DONTWAIT, &s.control, 1);
	return s;
}

/* a packet as it would come from the other node */
static void arrive(u32 qpn, const uint8_t *bytes, size_t len)
{
	struct net_packet *p = calloc(1, sizeof(*p));

	p->net = net;
	p->from = net->node[1];
	p->to = net->node[0];
	p->src_qpn = p->dest_qpn = qpn;
	p->permissive = len && bytes[0] & 1;
	if (len > 4)
		memcpy(&p->mad, bytes + 4, MIN(len - 4, sizeof(p->mad)));
	rt_timer_init(rt, &p->timer, net_arrive);
	rt_timer_arm(&p->timer, rt_now(rt));
}

static void say(struct session *s, uint8_t where, const uint8_t *bytes, size_t len)
{
	char answer[4096];

	switch (where % WHERES) {
	case CONTROL:
		if (s->control >= 0)
			send(s->control, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	case WIRE_QP0:
	case WIRE_QP1:
		arrive(where % WHERES == WIRE_QP1, bytes, len);
		break;
	default:
		send(s->data, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
	turn(4);
	while (s->control >= 0 && recv(s->control, answer, sizeof(answer), MSG_DONTWAIT) > 0)
		;
	while (recv(s->data, answer, sizeof(answer), MSG_DONTWAIT) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct abi_open open = {.magic = ABI_MAGIC, .version = ABI_VERSION, .kind = ABI_OPEN_UMAD,
				.port = 1, .node = "n0", .device = "fake0"};
	struct session s;

	if (!rt)
		start();
	if (size >= sizeof(open) && data[0] == OPENING) {
		s = open_session(data + 1, sizeof(open) - 1);
		data += sizeof(open);
		size -= sizeof(open);
	} else {
		s = open_session(&open, sizeof(open));
	}
	while (size >= 2) {
		size_t len = MIN((size_t)data[1] * 4, size - 2);

		say(&s, data[0], data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	close(s.data);
	if (s.control >= 0)
		close(s.control);
	turn(6);
	if (umad_num_sessions(umad))
		abort();
	return 0;
}
