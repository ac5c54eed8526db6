/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A program that speaks to the uverbs endpoint over a socket, one command at a time, and a
 * device that counts what was made of it. */
#ifndef SOFTIB_TESTS_ACCESS_PROGRAM_H
#define SOFTIB_TESTS_ACCESS_PROGRAM_H

#include "../test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "../core/fake_device.h"
#include "abi/fds.h"
#include "abi/objects.h"
#include "access/uverbs.h"
#include "runtime/posix/rt_posix.h"

struct world {
	struct rt *rt;
	struct uverbs *uverbs;
	struct fake *fake;
	int sock; /* the program's end */
	int fds[ABI_CONTEXT_FDS];
	unsigned num_fds;
};

/* --- a program --- */

static inline int connect_to(struct world *w)
{
	int pair[2];
	struct peer peer;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fcntl(pair[1], F_SETFL, O_NONBLOCK);
	assert_int_equal(peer_of(pair[1], &peer), 0);
	assert_int_equal(peer.pid, getpid());
	peer.may_lock = true;
	uverbs_serve(w->uverbs, pair[1], &peer);
	return pair[0];
}

static inline void turn(struct world *w)
{
	for (int i = 0; i < 3; i++)
		rt_posix_turn(w->rt);
}

/* Return: the answer's error; -ECONNRESET when the connection was closed */
static inline int receive(struct world *w, int sock, void *body, size_t bytes, size_t *got)
{
	struct abi_reply reply;
	struct iovec iov[2] = {{&reply, sizeof(reply)}, {body, bytes}};
	int fds[ABI_CONTEXT_FDS];
	unsigned int num_fds = 0;
	ssize_t n;

	turn(w);
	n = abi_receivev(sock, iov, 2, MSG_DONTWAIT, fds, ARRAY_SIZE(fds));
	if (n <= 0)
		return n ? (int)n : -ECONNRESET;
	assert_true(n >= (ssize_t)sizeof(reply));
	assert_int_equal(n, sizeof(reply) + reply.bytes);
	while (num_fds < ARRAY_SIZE(fds) && fds[num_fds] >= 0)
		num_fds++;
	if (num_fds) {
		w->num_fds = num_fds;
		memcpy(w->fds, fds, sizeof(fds));
	}
	if (got)
		*got = reply.bytes;
	return reply.error;
}

static inline int open_as(struct world *w, int sock, uint32_t kind, const char *node, const char *device,
		   void *body, size_t bytes, size_t *got)
{
	struct abi_open open = {.magic = ABI_MAGIC, .version = ABI_VERSION, .kind = kind};

	snprintf(open.node, sizeof(open.node), "%s", node);
	snprintf(open.device, sizeof(open.device), "%s", device);
	assert_int_equal(send(sock, &open, sizeof(open), 0), sizeof(open));
	return receive(w, sock, body, bytes, got);
}

static inline int command(struct world *w, int sock, u32 number, const void *in, size_t in_bytes, void *out,
		   size_t out_bytes)
{
	struct ib_uverbs_cmd_hdr hdr = {.command = number,
					.in_words = (u16)((sizeof(hdr) + in_bytes) / 4),
					.out_words = (u16)(out_bytes / 4)};
	struct iovec iov[2] = {{&hdr, sizeof(hdr)}, {(void *)in, in_bytes}};
	size_t got;
	int ret;

	assert_true(writev(sock, iov, 2) > 0);
	ret = receive(w, sock, out, out_bytes, &got);
	if (!ret)
		assert_int_equal(got, out_bytes);
	return ret;
}

/* a command of IB_USER_VERBS_EX_CMD_*; @wrong words more than there are */
static inline int command_ex(struct world *w, u32 number, const void *in, size_t in_bytes, void *out,
		      size_t out_bytes, u16 wrong)
{
	struct ib_uverbs_cmd_hdr hdr = {.command = number | IB_USER_VERBS_CMD_FLAG_EXTENDED,
					.in_words = (u16)(in_bytes / 8 + wrong),
					.out_words = (u16)(out_bytes / 8)};
	struct ib_uverbs_ex_cmd_hdr ex = {0};
	struct iovec iov[3] = {{&hdr, sizeof(hdr)}, {&ex, sizeof(ex)}, {(void *)in, in_bytes}};
	size_t got;
	int ret;

	assert_true(writev(w->sock, iov, 3) > 0);
	ret = receive(w, w->sock, out, out_bytes, &got);
	if (!ret)
		assert_int_equal(got, out_bytes);
	return ret;
}

#define CMD(w, NAME, name, ...)                                                \
	({                                                                     \
		struct ib_uverbs_##name in_ = {__VA_ARGS__};                   \
		command(w, (w)->sock, IB_USER_VERBS_CMD_##NAME, &in_, sizeof(in_), NULL, 0); \
	})
#define CMD_OUT(w, NAME, name, out, ...)                                       \
	({                                                                     \
		struct ib_uverbs_##name in_ = {__VA_ARGS__};                   \
		command(w, (w)->sock, IB_USER_VERBS_CMD_##NAME, &in_, sizeof(in_), (out), \
			sizeof(*(out)));                                       \
	})

static inline int get_context(struct world *w, int sock)
{
	struct ib_uverbs_get_context in = {0};
	struct abi_context_resp out;

	return command(w, sock, IB_USER_VERBS_CMD_GET_CONTEXT, &in, sizeof(in), &out, sizeof(out));
}

static inline void close_fds(struct world *w)
{
	while (w->num_fds)
		close(w->fds[--w->num_fds]);
}

static inline int active_session(struct world *w)
{
	int sock = connect_to(w);

	assert_int_equal(open_as(w, sock, ABI_OPEN_UVERBS, "n1", "softib0", NULL, 0, NULL), 0);
	assert_int_equal(get_context(w, sock), 0);
	assert_int_equal(w->num_fds, ABI_CONTEXT_FDS);
	return sock;
}

static inline void expect_event(struct world *w, enum ib_event_type type, u64 element)
{
	struct ib_uverbs_async_event_desc desc;

	turn(w);
	assert_int_equal(recv(w->fds[ABI_FD_ASYNC_READ], &desc, sizeof(desc), MSG_DONTWAIT),
			 sizeof(desc));
	assert_int_equal(desc.event_type, type);
	assert_int_equal(desc.element, element);
}

/* --- the world --- */

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (rt_posix_create(&w->rt) || uverbs_create(w->rt, NULL, &w->uverbs))
		return -1;
	w->fake = fake_create(w->rt, "n1");
	if (ib_register_device(&w->fake->ib, "softib0"))
		return -1;
	w->sock = active_session(w);
	*state = w;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *w = *state;
	int left;

	close_fds(w);
	close(w->sock);
	turn(w);
	left = (int)uverbs_num_sessions(w->uverbs) + w->fake->live;
	ib_unregister_device(&w->fake->ib);
	uverbs_destroy(w->uverbs);
	ib_dealloc_device(&w->fake->ib);
	rt_posix_destroy(w->rt);
	free(w);
	return left;
}

struct things {
	u32 pd, cq, srq, qp, qpn, mr, ah;
};

static inline void make_things(struct world *w, struct things *t)
{
	struct ib_uverbs_alloc_pd_resp pd;
	struct ib_uverbs_create_cq_resp cq;
	struct ib_uverbs_create_srq_resp srq;
	struct ib_uverbs_create_qp_resp qp;
	struct ib_uverbs_reg_mr_resp mr;
	struct ib_uverbs_create_ah_resp ah;

	assert_int_equal(CMD_OUT(w, ALLOC_PD, alloc_pd, &pd, 0), 0);
	t->pd = pd.pd_handle;
	assert_int_equal(CMD_OUT(w, CREATE_CQ, create_cq, &cq, .cqe = 10, .comp_channel = -1), 0);
	assert_int_equal(cq.cqe, 10);
	t->cq = cq.cq_handle;
	assert_int_equal(CMD_OUT(w, CREATE_SRQ, create_srq, &srq, .pd_handle = t->pd, .max_wr = 8,
				 .max_sge = 2), 0);
	assert_int_equal(srq.max_wr, 8);
	t->srq = srq.srq_handle;
	assert_int_equal(CMD_OUT(w, CREATE_QP, create_qp, &qp, .pd_handle = t->pd,
				 .send_cq_handle = t->cq, .recv_cq_handle = t->cq,
				 .srq_handle = t->srq, .is_srq = 1, .max_send_wr = 5,
				 .max_send_sge = 1, .qp_type = IB_QPT_UD), 0);
	assert_int_equal(qp.max_send_wr, 5);
	t->qp = qp.qp_handle;
	t->qpn = qp.qpn;
	assert_int_equal(CMD_OUT(w, REG_MR, reg_mr, &mr, .start = 4096, .length = 5000,
				 .hca_va = 4096, .pd_handle = t->pd,
				 .access_flags = IB_ACCESS_LOCAL_WRITE), 0);
	assert_int_not_equal(mr.lkey, 0);
	t->mr = mr.mr_handle;
	assert_int_equal(CMD_OUT(w, CREATE_AH, create_ah, &ah, .pd_handle = t->pd,
				 .attr = {.dlid = 4, .port_num = 1}), 0);
	t->ah = ah.ah_handle;
}

#endif
