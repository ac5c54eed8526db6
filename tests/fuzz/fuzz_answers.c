/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A softibd that says anything to a program: the answers to what our
 * libibverbs asks, in the order that it reads them, with descriptors of all
 * kinds. The input is a list of messages, each a byte that says which
 * descriptors come along, a byte that gives the error (bit 7: the message ends
 * within its head), a byte of length in words, and the words.
 *
 * Every call returns, what was opened is closed, nothing is left.
 */
#include <infiniband/verbs.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "abi/devpage.h"
#include "abi/lane.h"
#include "abi/session.h"
#include "abi/window.h"
#include "hostile.h"
#include "../../lib/libibverbs/windows_memory.h"

#define MESSAGE_FDS (ABI_CONTEXT_FDS + 1)
#define RING_BYTES 4096
#define RING_STRIDE 8192
#define SMALL_BYTES 100

enum kind { NO_FDS, CONTEXT_FDS, LANE_FDS, ONE_FD, SMALL_FDS, SAME_FDS, LANE_EVENT, LIST,
	    WINDOW_EVENT, KINDS };

static const uint8_t *input;
static size_t input_left;
static int lanes_fd = -1, windows_fd = -1; /* its ends of these sockets */

/* In the place of libc's: a softibd that always asks for patience is asked again at once. */
int usleep(useconds_t us)
{
	(void)us;
	return 0;
}

static int devpage(void)
{
	const size_t bytes = abi_devpage_bytes(1);
	int fd = hostile_memory(bytes);
	struct abi_devpage *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	check(page != MAP_FAILED);
	page->magic = ABI_DEVPAGE_MAGIC;
	page->num_ports = 1;
	page->port[0] = (struct abi_devport){.lid = 1, .state = IBV_PORT_ACTIVE,
					     .active_mtu_enc = IBV_MTU_1024,
					     .max_mtu_enc = IBV_MTU_4096, .pkey[0] = 0xffff};
	munmap(page, bytes);
	return fd;
}

/* Return: the program's end; *@ours the other */
static int news_socket(int *ours)
{
	int pair[2];

	check(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
	hostile_drop(ours);
	*ours = pair[1];
	return pair[0];
}

static unsigned context_fds(int *fds)
{
	fds[ABI_FD_DEVPAGE] = devpage();
	fds[ABI_FD_LINK] = hostile_memory(2 * RING_STRIDE);
	fds[ABI_FD_DOORBELL] = eventfd(0, EFD_NONBLOCK);
	fds[ABI_FD_PROGRAM_DOORBELL] = eventfd(0, EFD_NONBLOCK);
	check(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds + ABI_FD_ASYNC_READ));
	fds[ABI_FD_LANES] = news_socket(&lanes_fd);
	fds[ABI_FD_WINDOWS] = news_socket(&windows_fd);
	fds[ABI_FD_WINDOW_PAGE] = hostile_memory(sizeof(struct abi_window_page));
	return ABI_CONTEXT_FDS;
}

/* the descriptors of a message. Return: how many */
static unsigned make_fds(enum kind kind, int *fds)
{
	switch (kind) {
	case CONTEXT_FDS:
		return context_fds(fds);
	case LANE_FDS:
		fds[0] = hostile_memory(abi_lane_bytes());
		fds[1] = eventfd(0, EFD_NONBLOCK);
		return 2;
	case ONE_FD:
		fds[0] = hostile_memory(0);
		return 1;
	case SMALL_FDS:
		for (unsigned i = 0; i < ABI_CONTEXT_FDS; i++)
			fds[i] = hostile_memory(SMALL_BYTES);
		return ABI_CONTEXT_FDS;
	case SAME_FDS:
		for (unsigned i = 0; i < MESSAGE_FDS; i++)
			fds[i] = eventfd(0, EFD_NONBLOCK);
		return MESSAGE_FDS;
	default:
		return 0;
	}
}

/* what a softibd in its right mind answers to GET_CONTEXT and to a list */
static size_t fill_body(enum kind kind, uint8_t *body, size_t len)
{
	const struct abi_context_resp resp = {.num_ports = 1, .ring_bytes = RING_BYTES,
					      .to_engine_offset = RING_STRIDE};
	const struct abi_device_info info = {.name = "softib0", .num_ports = 1};

	if (len || (kind != CONTEXT_FDS && kind != LIST))
		return len;
	if (kind == LIST) {
		memcpy(body, &info, sizeof(info));
		return sizeof(info);
	}
	memcpy(body, &resp, sizeof(resp));
	return sizeof(resp);
}

/* news of lanes and windows: @how chooses what descriptors come along */
static void put_event(int sock, uint8_t how, const uint8_t *bytes, size_t len)
{
	static const enum kind kinds[] = {NO_FDS, LANE_FDS, ONE_FD, SMALL_FDS};
	struct iovec iov = {(void *)bytes, len};
	int fds[MESSAGE_FDS];
	unsigned n = make_fds(kinds[how % ARRAY_SIZE(kinds)], fds);

	hostile_send(sock, &iov, 1, fds, n);
}

static void put_message(int sock, enum kind kind, uint8_t error, const uint8_t *bytes, size_t len)
{
	uint8_t body[sizeof(struct abi_device_info) + 255 * 4];
	struct abi_reply reply = {.error = -(error & 0x7f)};
	struct iovec iov[2] = {{&reply, sizeof(reply)}, {body, 0}};
	int fds[MESSAGE_FDS];
	unsigned n;

	if (kind == LANE_EVENT || kind == WINDOW_EVENT) {
		put_event(kind == LANE_EVENT ? lanes_fd : windows_fd, error, bytes, len);
		return;
	}
	n = make_fds(kind, fds);
	if (error & 0x80) {
		iov[0].iov_len = sizeof(reply) / 2;
		hostile_send(sock, iov, 1, fds, n);
		return;
	}
	memcpy(body, bytes, len);
	iov[1].iov_len = fill_body(kind, body, len);
	reply.bytes = (uint32_t)iov[1].iov_len;
	hostile_send(sock, iov, 2, fds, n);
}

/* the connections that a program makes share the input: the list has its
 * first message, the context the rest */
static void put_answers(int sock, unsigned max)
{
	while (max-- && input_left >= 3) {
		size_t len = MIN((size_t)input[2] * 4, input_left - 3);

		put_message(sock, (enum kind)(input[0] % KINDS), input[1], input + 3, len);
		input += 3 + len;
		input_left -= 3 + len;
	}
}

static void hostile_answer(int sock, unsigned nth)
{
	put_answers(sock, nth ? UINT_MAX : 1);
}

/* A refusal to destroy is softibd's word, and the object stays. The answers
 * end, and then there is no softibd that could refuse. */
#define DESTROY(call)                                                                    \
	do {                                                                             \
		for (unsigned tries_ = 0; (call); tries_++)                              \
			check(tries_ < 4096);                                            \
	} while (0)

static void post(struct ibv_qp *qp)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_wc wc;

	for (int n = 0; n < 3; n++) {
		ibv_post_send(qp, &wr, &bad);
		ibv_poll_cq(qp->send_cq, 1, &wc);
	}
}

/* to RTS, on a way that softibd is asked for */
static void use_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UC,
					.cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .dest_qp_num = 0x99,
				   .path_mtu = IBV_MTU_1024,
				   .ah_attr = {.dlid = 2, .port_num = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (!qp)
		return;
	ibv_modify_qp(qp, &attr,
		      IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					 IBV_QP_RQ_PSN);
	attr.qp_state = IBV_QPS_RTS;
	ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
	ibv_query_qp(qp, &attr, IBV_QP_STATE, &init);
	post(qp);
	DESTROY(ibv_destroy_qp(qp));
}

static void use_objects(struct ibv_context *context)
{
	static uint8_t bytes[4096];
	struct ibv_srq_init_attr srq_init = {.attr = {4, 1, 0}};
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_srq *srq = pd ? ibv_create_srq(pd, &srq_init) : NULL;
	struct ibv_wc wc;

	if (pd && cq)
		use_qp(pd, cq);
	if (cq) {
		ibv_poll_cq(cq, 1, &wc);
		ibv_resize_cq(cq, 32);
	}
	if (srq)
		DESTROY(ibv_destroy_srq(srq));
	if (mr)
		DESTROY(ibv_dereg_mr(mr));
	if (cq)
		DESTROY(ibv_destroy_cq(cq));
	if (pd)
		DESTROY(ibv_dealloc_pd(pd));
}

static void use(struct ibv_context *context)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	ibv_query_device(context, &attr);
	ibv_query_port(context, 1, &port);
	ibv_query_gid(context, 1, 0, &gid);
	ibv_query_pkey(context, 1, 0, &pkey);
	use_objects(context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ibv_context *context = NULL;
	struct ibv_device **list;
	int before, n = 0;

	setenv(ABI_ENV_DIR, "/tmp", 1);
	memory_moves(); /* what it opens stays, once for the process */
	before = open_fds();
	input = data;
	input_left = size;
	list = ibv_get_device_list(&n);
	check(list && n >= 0);
	if (n)
		context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (context)
		use(context);
	if (context)
		check(!ibv_close_device(context));
	hostile_drop(&lanes_fd);
	hostile_drop(&windows_fd);
	hostile_end(before);
	return 0;
}
