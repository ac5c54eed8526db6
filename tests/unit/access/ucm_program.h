/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Programs that speak to the ucm endpoint, on nodes n1 and n2 of a small network (mad_net.h). */
#ifndef TEST_UCM_PROGRAM_H
#define TEST_UCM_PROGRAM_H

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "../core/mad_net.h"
#include "abi/session.h"
#include "abi/ucm.h"
#include "access/listener.h"
#include "access/ucm.h"
#include "rdma/ib_cm.h"
#include "runtime/posix/closer.h"
#include "runtime/posix/rt_posix.h"

#define SERVICE 0x1000000000001234ull

/** struct program - @news, @commands: its sockets; -1: closed
 *  @said: the command that it makes; @heard: the answer to the last one */
struct program {
	int news, commands;
	struct {
		struct ib_ucm_cmd_hdr hdr;
		u8 rest[2048];
	} said;
	size_t said_bytes;
	struct {
		struct abi_reply reply;
		_Alignas(8) u8 body[2048];
	} heard;
	size_t heard_bytes; /* of the body */
	/* of the event that was taken last */
	struct ib_ucm_event_resp event;
	const u8 *data, *info;
	size_t data_len, info_len;
};

static struct rt *rt;
static struct net *net;
static struct ucm *ucm;

static inline void turn(int n)
{
	while (n--)
		rt_posix_turn(rt);
}

static inline void net_up(void)
{
	assert_int_equal(rt_posix_create(&rt), 0);
	net = net_create_on(rt, 3);
	net->packet_ns = 0;
	assert_int_equal(ib_sa_init(rt), 0);
	assert_int_equal(ib_cm_init(rt), 0);
	assert_int_equal(ucm_create(rt, NULL, &ucm), 0);
}

static inline void net_down(void)
{
	ucm_destroy(ucm);
	ib_cm_cleanup(rt);
	ib_sa_cleanup(rt);
	while (net->under_way) /* by the clock, on a busy machine for long */
		turn(1);
	assert_int_equal(net_take_down(net), 0);
	rt_posix_destroy(rt);
}

/** enter() - open the adapter of @node. Return: the error in the answer */
static inline int enter(struct program *p, const char *node)
{
	struct abi_open open = {.magic = ABI_MAGIC, .version = ABI_VERSION, .kind = ABI_OPEN_UCM,
				.device = "fake0"};
	struct peer peer = {.pid = getpid(), .comm = "test_ucm"};
	struct abi_reply reply;
	int pair[2];

	strcpy(open.node, node);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	p->news = pair[0];
	ucm_serve(ucm, pair[1], &peer);
	assert_true(send(p->news, &open, sizeof(open), 0) > 0);
	turn(2);
	assert_true(rt_receive(p->news, &reply, sizeof(reply), MSG_DONTWAIT, &p->commands, 1) > 0);
	return reply.error;
}

static inline void leave(struct program *p)
{
	close(p->news);
	if (p->commands >= 0)
		close(p->commands);
	p->news = p->commands = -1;
	turn(3);
}

/* --- commands --- */

/** begin() - make a command with the struct @cmd and @room for the response */
static inline void begin(struct program *p, u32 command, const void *cmd, size_t bytes, size_t room)
{
	p->said.hdr = (struct ib_ucm_cmd_hdr){command, (u16)bytes, (u16)room};
	memcpy(p->said.rest, cmd, bytes);
	p->said_bytes = sizeof(p->said.hdr) + bytes;
}

/** follow() - append what an address in the struct points to */
static inline void follow(struct program *p, const void *data, size_t bytes)
{
	memcpy((u8 *)&p->said + p->said_bytes, data, bytes);
	p->said_bytes += bytes;
}

/** ask() - Return: the error in the answer */
static inline int ask(struct program *p)
{
	ssize_t n;

	assert_true(send(p->commands, &p->said, p->said_bytes, 0) > 0);
	turn(1);
	n = recv(p->commands, &p->heard, sizeof(p->heard), MSG_DONTWAIT);
	assert_true(n >= (ssize_t)sizeof(p->heard.reply));
	p->heard_bytes = (size_t)n - sizeof(p->heard.reply);
	return p->heard.reply.error;
}

#define ASK(p, command, cmd, room) (begin(p, IB_USER_CM_CMD_##command, cmd, sizeof(*(cmd)), room), ask(p))
/* a command without a response, followed by private data */
#define SAY(p, command, cmd, data, bytes) \
	(begin(p, IB_USER_CM_CMD_##command, cmd, sizeof(*(cmd)), 0), follow(p, data, bytes), ask(p))

/** make_id() - Return: 0, and @id is the number of a new id; -errno */
static inline int make_id(struct program *p, u64 uid, u32 *id)
{
	const struct ib_ucm_create_id cmd = {.uid = uid};
	int ret = ASK(p, CREATE_ID, &cmd, sizeof(struct ib_ucm_create_id_resp));

	if (!ret)
		memcpy(id, p->heard.body, sizeof(*id));
	return ret;
}

static inline struct abi_ucm_gone destroy(struct program *p, u32 id)
{
	const struct ib_ucm_destroy_id cmd = {.id = id};
	struct abi_ucm_gone gone;

	assert_int_equal(ASK(p, DESTROY_ID, &cmd, sizeof(struct ib_ucm_destroy_id_resp)), 0);
	assert_int_equal(p->heard_bytes, sizeof(gone));
	memcpy(&gone, p->heard.body, sizeof(gone));
	return gone;
}

static inline int listen_for(struct program *p, u32 id, u64 service, u64 mask)
{
	const struct ib_ucm_listen cmd = {.id = id, .service_id = cpu_to_be64(service),
					  .service_mask = cpu_to_be64(mask)};

	return ASK(p, LISTEN, &cmd, 0);
}

static inline struct ib_user_path_rec path_to(int from, int to)
{
	return (struct ib_user_path_rec){
		.sgid = {0xfe, 0x80, [15] = (u8)(10 + from)},
		.dgid = {0xfe, 0x80, [15] = (u8)(10 + to)},
		.slid = cpu_to_be16((u16)(10 + from)),
		.dlid = cpu_to_be16((u16)(10 + to)),
		.pkey = cpu_to_be16(0xffff),
		.mtu = IB_MTU_4096,
		.rate = 3,
		.packet_life_time = 10,
		.sl = 2,
	};
}

/* --- events --- */

/** take() - take the oldest event. Return: 0; -errno: -EAGAIN: there is none */
static inline int take(struct program *p)
{
	const struct ib_ucm_event_get cmd = {.data_len = 255, .info_len = 255};
	int ret = ASK(p, EVENT, &cmd, sizeof(struct ib_ucm_event_resp));
	struct abi_ucm_event event;

	if (ret)
		return ret;
	memcpy(&event, p->heard.body, sizeof(event));
	assert_int_equal(p->heard_bytes, sizeof(event) + event.data_len + event.info_len);
	p->event = event.resp;
	p->data_len = event.data_len;
	p->info_len = event.info_len;
	p->data = p->heard.body + sizeof(event);
	p->info = p->data + event.data_len;
	return 0;
}

/** await_news() - wait until an event is announced. Packets take their time by the clock */
static inline void await_news(struct program *p)
{
	u8 byte;

	while (recv(p->news, &byte, 1, MSG_DONTWAIT | MSG_PEEK) != 1)
		turn(1);
}

/** is_told() - read an announcement. Return: false: there is none */
static inline bool is_told(struct program *p)
{
	u8 byte;

	return recv(p->news, &byte, 1, MSG_DONTWAIT) == 1;
}

/** await() - wait until an event is announced, and take the oldest one. Return: its type */
static inline int await(struct program *p)
{
	await_news(p);
	assert_true(is_told(p));
	assert_int_equal(take(p), 0);
	return (int)p->event.event;
}

#endif
