/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What programs say to softibd about lanes and windows. Three programs on two
 * nodes, connected in a ring by RC QPs, each with memory for its peers. The
 * input is a list of acts, each a byte of choice, a byte of length in words,
 * and the words: messages as they come or nearly right, answers to what
 * softibd asked, flows that shall be resolved, counts in the page that
 * softibd reads; QPs, keys, cables and programs that go and come.
 *
 * Nobody may be granted what it did not ask for, nor more than the key allows;
 * each question has one answer at most; when the programs are gone, no memory
 * and no descriptor is left of them.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/fds.h"
#include "abi/lane.h"
#include "abi/session.h"
#include "abi/window.h"
#include "core/uobject.h"
#include "fabric/fabric_private.h"
#include "hca/private.h"
#include "pair.h"
#include "rdma/ib_mad.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PROGRAMS 3
#define QPS 2
#define KEYS 2
#define PAGE 4096u
#define REGION_BYTES (8 * PAGE)
#define ALL_RIGHTS                                                                       \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ |        \
	 IB_ACCESS_REMOTE_ATOMIC)
#define AT_ONCE 0x18 /* program "3" is program 0 that goes on at once */
#define ACT_FLAG(act, n) ((act) >> (5 + (n)) & 1)

enum act { MESSAGE, ASK, ANSWER, CLOSE, RESOLVE, LANE_EVENT, CHANGE, PROGRAM };
enum change { QP_ERROR, KEY_GONE, CABLE, COUNTS, READ_COUNTERS, TURNS };

/** struct program - of n1 (0 and 2) or n2 (1); QP j leads to QP 1-j of the next
 *  or the one before */
struct program {
	struct ib_ucontext *context;
	struct ib_qp *qp[QPS];
	struct ib_mr *mr[KEYS]; /* all rights; reading alone */
	struct abi_window_page *page;
	struct abi_window_msg want; /* the last one */
	unsigned asked, answered;
	uint32_t lane; /* the last that it heard of */
	bool reads;    /* what it is told */
	bool late;     /* what it reads now was said long ago */
};

static struct rt *rt;
static struct fabric *fab;
static struct hca *hca[2];
static int node[2];
static bool cable_is_in = true;
static struct program program[PROGRAMS];

/* --- the fabric --- */

/* the same input means the same numbers */
static void number_anew(void)
{
	for (int i = 0; i < 2; i++) {
		hca[i]->next_qpn = HCA_FIRST_QPN;
		hca[i]->next_key = 1;
	}
}

static void make_world(void)
{
	struct topology *topo;
	struct hca_set *set;
	char err[256];

	if (rt)
		return;
	check(!rt_posix_create(&rt) && !topo_load("pair", "fuzz", &topo, err, sizeof(err)) &&
	      !fab_create(rt, topo, &fab) && !ib_mad_init(rt));
	for (int i = 0; i < 2; i++)
		node[i] = topo_find(topo, i ? "n2" : "n1");
	pair_configure(fab);
	check(!hca_set_create(rt, fab, &set));
	for (int i = 0; i < 2; i++) {
		check(!hca_create(set, node[i], &hca[i]));
		check(!hca_page_share(hca[i])); /* it stays */
	}
}

/* it trains at once: what an input does is not to depend on the clock */
static void plug(bool in)
{
	fab_link_set(fab, node[0], 1, in);
	fab_link_train(fab_port_of(fab, node[0], 1));
	if (in)
		pair_configure(fab);
	cable_is_in = in;
}

/* --- programs --- */

static struct ib_uobject *object(struct program *p, enum ib_uobject_type type)
{
	struct ib_uobject *u = ib_uobject_alloc(p->context, type);

	check(!IS_ERR(u));
	return u;
}

static void make_objects(struct program *p)
{
	static const int rights[KEYS] = {ALL_RIGHTS, IB_ACCESS_REMOTE_READ};
	struct ib_uobject *u = object(p, IB_UOBJECT_PD);
	struct ib_pd *pd = ib_alloc_pd_user(u);
	struct ib_qp_init_attr attr = {.qp_type = IB_QPT_RC, .cap = {8, 8, 1, 1, 0}};

	ib_uobject_commit(u, pd);
	u = object(p, IB_UOBJECT_CQ);
	attr.send_cq = attr.recv_cq = ib_create_cq_user(u, &(struct ib_cq_init_attr){.cqe = 8});
	check(!IS_ERR(attr.send_cq));
	ib_uobject_commit(u, attr.send_cq);
	for (int i = 0; i < QPS; i++) {
		u = object(p, IB_UOBJECT_QP);
		p->qp[i] = ib_create_qp_user(u, pd, &attr);
		check(!IS_ERR(p->qp[i]));
		ib_uobject_commit(u, p->qp[i]);
	}
	for (int i = 0; i < KEYS; i++) {
		const uint64_t at = (i + 1u) * 0x100000u;

		u = object(p, IB_UOBJECT_MR);
		p->mr[i] = ib_reg_user_mr(u, pd, at, REGION_BYTES, at, rights[i]);
		check(!IS_ERR(p->mr[i]));
		ib_uobject_commit(u, p->mr[i]);
	}
}

static void make_program(struct program *p)
{
	*p = (struct program){.reads = true};
	p->context = ib_ucontext_open(&hca[(p - program) % 2]->ib, 1, "fuzz");
	check(!IS_ERR(p->context));
	p->page = mmap(NULL, sizeof(*p->page), PROT_READ | PROT_WRITE, MAP_SHARED,
		       p->context->driver_fds[ABI_FD_WINDOW_PAGE], 0);
	check(p->page != MAP_FAILED);
	check(!fcntl(p->context->driver_fds[ABI_FD_WINDOW_PAGE], F_ADD_SEALS,
		     F_SEAL_FUTURE_WRITE));
	make_objects(p);
}

static void end_program(struct program *p)
{
	munmap(p->page, sizeof(*p->page));
	ib_ucontext_close(p->context);
	p->context = NULL;
}

/* the other end of QP @j of @p */
static struct program *next_to(const struct program *p, int j)
{
	return &program[(p - program + (j ? PROGRAMS - 1 : 1)) % PROGRAMS];
}

static void connect_qp(struct program *p, int j)
{
	const struct program *peer = next_to(p, j);
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1, .path_mtu = IB_MTU_1024,
		.qp_access_flags = ALL_RIGHTS, .dest_qp_num = peer->qp[1 - j]->qp_num,
		.ah_attr = {.dlid = (uint16_t)((peer - program) % 2 + 1), .port_num = 1},
		.max_rd_atomic = 4, .max_dest_rd_atomic = 4, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12};

	if (p->qp[j]->state != IB_QPS_RESET)
		return;
	check(!ib_modify_qp(p->qp[j], &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
						     IB_QP_ACCESS_FLAGS));
	attr.qp_state = IB_QPS_RTR;
	check(!ib_modify_qp(p->qp[j], &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
						     IB_QP_DEST_QPN | IB_QP_RQ_PSN |
						     IB_QP_MAX_DEST_RD_ATOMIC |
						     IB_QP_MIN_RNR_TIMER));
	attr.qp_state = IB_QPS_RTS;
	check(!ib_modify_qp(p->qp[j], &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
						     IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
						     IB_QP_MAX_QP_RD_ATOMIC));
}

static void connect_all(void)
{
	for (int i = 0; i < PROGRAMS; i++)
		for (int j = 0; j < QPS; j++)
			connect_qp(&program[i], j);
}

/* --- what they are told --- */

static struct program *program_with(uint32_t qpn, int at)
{
	for (int i = 0; i < PROGRAMS; i++)
		for (int j = 0; j < QPS; j++)
			if (i % 2 == at && program[i].qp[j]->qp_num == qpn)
				return &program[i];
	return NULL;
}

static const struct ib_mr *key_of(const struct program *p, uint32_t rkey)
{
	for (int i = 0; i < KEYS; i++)
		if (p->mr[i] && p->mr[i]->rkey == rkey)
			return p->mr[i];
	return NULL;
}

static bool is_read_only(int fd)
{
	return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY;
}

static void check_grant(const struct program *p, const struct abi_window_msg *m, const int *fds)
{
	const int writing = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC;
	bool allowed = false;

	check(fds[0] >= 0 && fds[1] >= 0 && is_read_only(fds[1]));
	check(abi_fd_holds(fds[1], sizeof(struct abi_window_page)));
	check(m->length_bytes && abi_fd_holds(fds[0], m->offset + m->length_bytes));
	check(m->access & writing || is_read_only(fds[0]));
	check(m->flow < ABI_WINDOW_FLOWS);
	if (p->late) /* the QP and the key may be gone */
		return;
	for (int j = 0; j < QPS; j++) {
		const struct ib_mr *mr = key_of(next_to(p, j), m->rkey);

		allowed |= mr && p->qp[j]->qp_num == m->qpn &&
			   !(m->access & ~(uint32_t)mr->access) && m->va >= mr->iova &&
			   m->va + m->length_bytes <= mr->iova + mr->length;
	}
	check(allowed);
}

/* Return: false when none waits */
static bool hear_window(struct program *p)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct abi_window_msg m;
	struct iovec iov = {&m, sizeof(m)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int fds[4] = {-1, -1, -1, -1};

	if (recvmsg(p->context->driver_fds[ABI_FD_WINDOWS], &msg, MSG_DONTWAIT) !=
	    (ssize_t)sizeof(m))
		return false;
	abi_take_fds(&msg, fds, ARRAY_SIZE(fds));
	switch (m.kind) {
	case ABI_WINDOW_WANT:
		check(program_with(m.qpn, (int)(p - program) % 2) == p && is_read_only(fds[0]));
		p->want = m;
		break;
	case ABI_WINDOW_GRANT:
		check_grant(p, &m, fds); /* and it is an answer */
		/* fall through */
	case ABI_WINDOW_DENY:
		check(p->answered++ < p->asked);
		break;
	default:
		check(m.kind == ABI_WINDOW_GONE || m.kind == ABI_WINDOW_PEER_GONE);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return true;
}

/* descriptors that come along are closed by the kernel: there is no room */
static bool hear_lane(struct program *p)
{
	struct abi_lane_event event;

	if (recv(p->context->driver_fds[ABI_FD_LANES], &event, sizeof(event), MSG_DONTWAIT) !=
	    (ssize_t)sizeof(event))
		return false;
	if (event.kind == ABI_LANE_IN)
		p->lane = event.lane;
	return true;
}

static void hear_all(void)
{
	for (struct program *p = program; p < program + PROGRAMS; p++) {
		while (p->reads && (hear_window(p) || hear_lane(p)))
			;
		p->late = !p->reads;
	}
}

static void turn(unsigned times)
{
	while (times--)
		rt_posix_turn(rt);
	if (program[0].context)
		hear_all();
}

/* --- what they say --- */

/* @how: sealed memory; memory that may shrink; a pipe; none */
static int descriptor(unsigned how)
{
	int fd, pipe_fds[2];

	if (how == 3)
		return -1;
	if (how == 2) {
		check(!pipe2(pipe_fds, O_CLOEXEC));
		close(pipe_fds[1]);
		return pipe_fds[0];
	}
	fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	check(fd >= 0 && !ftruncate(fd, REGION_BYTES));
	check(how || !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return fd;
}

static void say(int sock, const void *bytes, size_t len, int fd, unsigned copies)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
			      .cmsg_len = CMSG_LEN(copies * sizeof(int))}};
	struct iovec iov = {(void *)bytes, len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		for (unsigned i = 0; i < copies; i++)
			memcpy(CMSG_DATA(&control.head) + i * sizeof(int), &fd, sizeof(int));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(copies * sizeof(int));
	}
	(void)sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (fd >= 0)
		close(fd);
}

static void say_window(struct program *p, const struct abi_window_msg *m, size_t len, int fd,
		       unsigned copies)
{
	if (len == sizeof(*m) && m->kind == ABI_WINDOW_ASK)
		p->asked++;
	say(p->context->driver_fds[ABI_FD_WINDOWS], m, len, fd, copies);
}

static uint8_t byte(const uint8_t *bytes, size_t len, size_t at)
{
	return at < len ? bytes[at] : 0;
}

static void ask(struct program *p, const uint8_t *bytes, size_t len)
{
	const int j = byte(bytes, len, 0) % QPS;
	const struct program *peer = byte(bytes, len, 0) & 0x80 ? p : next_to(p, j);
	const struct ib_mr *mr = peer->mr[byte(bytes, len, 1) % KEYS];
	const struct abi_window_msg m = {.kind = ABI_WINDOW_ASK, .qpn = p->qp[j]->qp_num,
					 .rkey = mr ? mr->rkey : 0x100,
					 .va = (mr ? mr->iova : 0) + byte(bytes, len, 2) * 256u};

	for (unsigned n = byte(bytes, len, 3); n < 256; n += 86)
		say_window(p, &m, sizeof(m), -1, 0);
}

static void answer(struct program *p, bool give, const uint8_t *bytes, size_t len)
{
	const struct ib_mr *mr = key_of(p, p->want.rkey);
	struct abi_window_msg m = p->want;

	m.kind = give ? ABI_WINDOW_GIVE : ABI_WINDOW_DENY;
	m.id -= byte(bytes, len, 0);
	m.va = (mr ? mr->iova : 0) + byte(bytes, len, 1) % 16 * PAGE;
	m.length_bytes = (1 + byte(bytes, len, 2)) * (uint64_t)PAGE;
	m.offset = byte(bytes, len, 3) % 16 * PAGE;
	m.access = byte(bytes, len, 4) & 1 ? p->want.access : byte(bytes, len, 4) >> 1;
	if (len > 8)
		memcpy(&m.offset, bytes + 8, MIN(len - 8, sizeof(m.offset)));
	say_window(p, &m, sizeof(m), descriptor(byte(bytes, len, 5) % 4),
		   1 + byte(bytes, len, 5) / 64);
}

static void resolve(struct program *p, bool raw, const uint8_t *bytes, size_t len)
{
	const int j = byte(bytes, len, 0) % QPS;
	const struct program *peer = next_to(p, j);
	struct abi_resolve in = {.port_num = 1, .dest_qpn = peer->qp[1 - j]->qp_num,
				 .dlid = (uint16_t)((peer - program) % 2 + 1), .pkey = 0xffff,
				 .sl = byte(bytes, len, 1)};
	struct abi_resolve_resp out;
	unsigned int num_fds;
	int fds[2];

	if (raw)
		memcpy(&in, bytes, MIN(len, sizeof(in)));
	if (p->context->device->ops->driver_command(p->context, ABI_CMD_RESOLVE, &in, &out, fds,
						    &num_fds))
		return;
	check(!num_fds || abi_fd_holds(fds[0], abi_lane_bytes()));
	while (num_fds) /* the caller's, as uverbs sends them */
		close(fds[--num_fds]);
	check(out.lane == ABI_NO_LANE || out.flow < ABI_LANE_FLOWS);
}

static void change(struct program *p, const uint8_t *bytes, size_t len)
{
	struct ib_qp_attr attr = {.qp_state = byte(bytes, len, 1) & 1 ? IB_QPS_RESET : IB_QPS_ERR};
	const unsigned j = byte(bytes, len, 2) % QPS, k = byte(bytes, len, 2) % KEYS;

	switch ((enum change)(byte(bytes, len, 0) % 6)) {
	case QP_ERROR:
		ib_modify_qp(p->qp[j], &attr, IB_QP_STATE); /* not from every state */
		break;
	case KEY_GONE:
		if (p->mr[k])
			check(!ib_uobject_destroy(p->context, IB_UOBJECT_MR,
						  p->mr[k]->uobject->handle));
		p->mr[k] = NULL;
		break;
	case CABLE:
		plug(!cable_is_in);
		break;
	case COUNTS:
		memcpy((uint8_t *)p->page->flow + byte(bytes, len, 1) * 8u, bytes, len);
		break;
	case READ_COUNTERS:
		fab_fold(fab);
		break;
	case TURNS:
		turn(3);
		break;
	}
}

static void come_and_go(struct program *p, const uint8_t *bytes, size_t len)
{
	switch (byte(bytes, len, 0) % 4) {
	case 0:
		end_program(p);
		make_program(p);
		connect_all();
		break;
	case 1: /* its peers' QPs lead to it again */
		connect_all();
		break;
	case 2:
		p->reads = !p->reads;
		break;
	case 3:
		shutdown(p->context->driver_fds[byte(bytes, len, 1) & 1 ? ABI_FD_LANES
									 : ABI_FD_WINDOWS],
			 byte(bytes, len, 1) & 2 ? SHUT_RDWR : SHUT_WR);
		break;
	}
}

static void act(uint8_t what, const uint8_t *bytes, size_t len)
{
	struct program *p = &program[(what >> 3 & 3) % PROGRAMS];
	struct abi_window_msg m = {.kind = ABI_WINDOW_CLOSE, .window = byte(bytes, len, 0)};
	struct abi_lane_event refused = {.kind = ABI_LANE_REFUSED, .lane = p->lane};

	switch ((enum act)(what & 7)) {
	case MESSAGE:
		memcpy(&m, bytes, MIN(len, sizeof(m)));
		say_window(p, &m, ACT_FLAG(what, 0) ? MIN(len, sizeof(m)) : sizeof(m),
			   descriptor(what >> 6), 1);
		break;
	case ASK:
		ask(p, bytes, len);
		break;
	case ANSWER:
		answer(p, ACT_FLAG(what, 0), bytes, len);
		break;
	case CLOSE:
		say_window(p, &m, sizeof(m), -1, 0);
		break;
	case RESOLVE:
		resolve(p, ACT_FLAG(what, 0), bytes, len);
		break;
	case LANE_EVENT:
		if (ACT_FLAG(what, 0))
			say(p->context->driver_fds[ABI_FD_LANES], bytes, len, descriptor(what >> 6), 2);
		else
			say(p->context->driver_fds[ABI_FD_LANES], &refused, sizeof(refused), -1, 0);
		break;
	case CHANGE:
		change(p, bytes, len);
		break;
	case PROGRAM:
		come_and_go(p, bytes, len);
		break;
	}
	if ((what & AT_ONCE) == AT_ONCE)
		return; /* softibd has not heard it yet */
	turn(2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t memory;
	unsigned fds;

	make_world();
	number_anew();
	plug(true);
	turn(3);
	fds = open_fds();
	memory = rt_alloc_balance();
	for (int i = 0; i < PROGRAMS; i++)
		make_program(&program[i]);
	connect_all();
	while (size >= 2) {
		const size_t len = MIN((size_t)data[1] * 4, size - 2);

		act(data[0], data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	turn(2);
	for (int i = 0; i < PROGRAMS; i++)
		end_program(&program[i]);
	plug(true);
	turn(3);
	check(open_fds() == fds);
	check(rt_alloc_balance() == memory);
	return 0;
}
