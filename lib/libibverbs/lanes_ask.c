/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The slow path of lanes: requests to softibd for the way of a flow, and messages about lanes
 * that other programs made or that have ended. It runs in the progress thread, or in
 * ibv_modify_qp() for a QP that is about to send. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/fds.h"
#include "soft.h"

/* --- memory --- */

static struct abi_lane *map_lane(int memfd)
{
	struct abi_lane *lane;

	if (!abi_fd_holds(memfd, abi_lane_bytes()))
		return NULL;
	lane = mmap(NULL, abi_lane_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (lane == MAP_FAILED)
		return NULL;
	/* A forked child would be a second producer or consumer, so it gets no mapping. */
	madvise(lane, abi_lane_bytes(), MADV_DONTFORK);
	return lane;
}

/* @lane is in no list */
static void free_out(struct lane_out *lane)
{
	munmap(lane->eng.tx.memory, abi_lane_bytes());
	close(lane->doorbell_fd);
	free(lane);
}

static void free_in(struct lane_in *lane)
{
	list_del(&lane->node);
	munmap(lane->eng.rx.memory, abi_lane_bytes());
	free(lane);
}

void lanes_exit(struct lanes *l)
{
	struct lane_out *out, *next;

	list_for_each_entry_safe(out, next, &l->out, node)
		free_out(out);
	while (!list_empty(&l->in))
		free_in(list_first_entry(&l->in, struct lane_in, node));
	free(l->flow);
}

/* --- asking --- */

static struct lane_out *find_out(struct lanes *l, uint32_t id)
{
	struct lane_out *lane;

	list_for_each_entry(lane, &l->out, node)
		if (lane->id == id)
			return lane;
	return NULL;
}

static struct lane_out *new_out(const struct lanes *l, uint32_t id, const int fds[2])
{
	struct lane_out *lane = calloc(1, sizeof(*lane));
	struct abi_lane *memory = lane ? map_lane(fds[0]) : NULL;

	if (!memory) {
		free(lane);
		return NULL;
	}
	INIT_LIST_HEAD(&lane->flows);
	lane->id = id;
	lane->doorbell_fd = fds[1];
	eng_lane_out_init(&lane->eng, memory, l->has_membarrier);
	return lane;
}

/* There is no descriptor or no memory for a lane. Report this to softibd: otherwise peers would
 * send into the lane and wait, or it would never be offered to this program again. */
static void refuse(int fd, uint32_t id)
{
	struct abi_lane_event event = {.kind = ABI_LANE_REFUSED, .lane = id};

	send(fd, &event, sizeof(event), MSG_DONTWAIT | MSG_NOSIGNAL);
}

struct answer {
	struct lanes *lanes;
	const struct abi_resolve *key;
	const struct abi_resolve_resp *resp;
	struct lane_out *fresh; /* the lane, if it is new; else NULL */
	bool missing;		/* softibd named a lane that is not mapped here */
};

/* under the engine's lock */
static void take_answer(void *arg)
{
	struct answer *a = arg;
	struct lane_out *lane = a->fresh;

	if (lane)
		list_add_tail(&lane->node, &a->lanes->out);
	else
		lane = find_out(a->lanes, a->resp->lane);
	if (lane)
		lanes_known(a->lanes, a->key, a->resp, lane);
	a->missing = !lane && a->resp->lane != ABI_NO_LANE;
}

/* @modify: as of session_resolve(). Return: 0 and the owner of the destination QP (0: unknown);
 * -errno */
static int ask_softibd(struct soft_context *ctx, const struct ib_uverbs_modify_qp *modify,
		       const struct abi_resolve *key, uint32_t *owner)
{
	struct abi_resolve_resp resp = {0};
	struct answer answer = {.lanes = &ctx->link.lanes, .key = key, .resp = &resp};
	int fds[2] = {-1, -1};
	unsigned num_fds = 2;
	int state = lock_for_calls(&ctx->link.lanes.ask_lock);
	int rc = session_resolve(ctx, modify, key, &resp, fds, &num_fds);

	if (!rc) {
		if (num_fds == 2) {
			answer.fresh = new_out(answer.lanes, resp.lane, fds);
			close(fds[0]);
			if (!answer.fresh)
				close(fds[1]);
		}
		eng_locked(ctx->engine, take_answer, &answer);
		if (answer.missing)
			refuse(ctx->progress.lanes_fd, resp.lane);
	}
	unlock_after_calls(&ctx->link.lanes.ask_lock, state);
	*owner = resp.owner;
	return rc;
}

struct question {
	struct lanes *lanes;
	struct abi_resolve key;
	bool found;
};

static void next_question(void *arg)
{
	struct question *q = arg;

	q->found = q->lanes->num_questions > 0;
	if (q->found)
		q->key = q->lanes->question[--q->lanes->num_questions];
}

void lanes_answer(struct soft_context *ctx)
{
	struct question q = {.lanes = &ctx->link.lanes, .found = true};
	uint32_t owner;

	while (!ctx->dead && (eng_locked(ctx->engine, next_question, &q), q.found))
		ask_softibd(ctx, NULL, &q.key, &owner);
}

/* under the engine's lock: allocate a slot for the flow, as its first packet would */
static void make_flow(void *arg)
{
	struct question *q = arg;
	struct eng_path path = {.dest_qpn = q->key.dest_qpn, .dlid = q->key.dlid,
				.pkey = q->key.pkey, .sl = q->key.sl,
				.port_num = (uint8_t)q->key.port_num};
	struct eng_flow *f;

	q->lanes->caller_asks = true;
	lanes_choose(q->lanes, &path, 0, &f);
	q->lanes->caller_asks = false;
}

int lanes_connect(struct soft_context *ctx, const struct ib_uverbs_modify_qp *modify,
		  const struct abi_resolve *key, uint32_t *owner)
{
	struct question q = {.lanes = &ctx->link.lanes, .key = *key};

	eng_locked(ctx->engine, make_flow, &q);
	return ask_softibd(ctx, modify, key, owner);
}

uint32_t lanes_prepare(struct soft_context *ctx, const struct abi_resolve *key)
{
	uint32_t owner = 0;

	if (!ctx->link.lanes.off)
		lanes_connect(ctx, NULL, key, &owner);
	return owner;
}

/* --- answers ahead --- */

static struct abi_flow_answer *expected_of(struct lanes *l, const struct abi_resolve *key)
{
	return &l->expected[key->dest_qpn % LANES_EXPECTED];
}

void lanes_expect(struct soft_context *ctx, const struct abi_flow_answer *answer)
{
	struct lanes *l = &ctx->link.lanes;
	int state = lock_for_calls(&l->ask_lock);

	*expected_of(l, &answer->key) = *answer;
	unlock_after_calls(&l->ask_lock, state);
}

bool lanes_take_expected(struct soft_context *ctx, const struct abi_resolve *key, uint32_t *owner)
{
	struct lanes *l = &ctx->link.lanes;
	struct question q = {.lanes = l, .key = *key};
	struct abi_flow_answer *expected = expected_of(l, key);
	struct answer answer = {.lanes = l, .key = key, .resp = &expected->resp, .missing = true};
	int state = lock_for_calls(&l->ask_lock);

	*owner = memcmp(&expected->key, key, sizeof(*key)) ? 0 : expected->resp.owner;
	if (*owner) {
		eng_locked(ctx->engine, make_flow, &q);
		eng_locked(ctx->engine, take_answer, &answer);
		expected->resp.owner = 0;
	}
	unlock_after_calls(&l->ask_lock, state);
	return !answer.missing;
}

/* --- reports to softibd --- */

/* Under the engine's lock. Reports that do not go out now are included in the next one. */
static void report_bad_qkeys(struct soft_context *ctx, struct lane_in *lane)
{
	if (lane->told || !lane->bad.count)
		return;
	/* not send(): a thread that is cancelled in send() would keep the lock */
	lane->told = syscall(SYS_sendto, ctx->progress.lanes_fd, &lane->bad, sizeof(lane->bad),
			     MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0) == (long)sizeof(lane->bad);
	if (lane->told)
		lane->bad.count = 0;
}

void lanes_bad_qkey(struct soft_context *ctx, struct eng_lane_in *eng,
		    const struct wire_packet *pkt)
{
	struct lane_in *lane = container_of(eng, struct lane_in, eng);

	lane->bad = (struct abi_lane_event){.kind = ABI_LANE_BAD_QKEY,
					    .lane = lane->id,
					    .slid = pkt->lrh.slid,
					    .sl = pkt->lrh.sl,
					    .count = lane->bad.count + 1,
					    .qkey = pkt->deth.qkey,
					    .src_qpn = pkt->deth.src_qpn,
					    .dest_qpn = pkt->bth.dest_qpn};
	report_bad_qkeys(ctx, lane);
}

/* --- messages from softibd --- */

struct news {
	struct lanes *lanes;
	struct engine *engine;
	struct abi_lane_event event;
	struct lane_in *fresh;
	struct lane_out *ended;
};

static struct lane_in *find_in(struct lanes *l, uint32_t id)
{
	struct lane_in *lane;

	list_for_each_entry(lane, &l->in, node)
		if (lane->id == id)
			return lane;
	return NULL;
}

/* A sender that left may have sent something just before, such as an acknowledgement. The lane
 * is unmapped when it has been read to its end (lanes_reap()). */
static void drop_in(struct lanes *l, uint32_t id)
{
	struct lane_in *lane = find_in(l, id);

	if (!lane || lane->gone)
		return;
	lane->gone = true;
	l->num_gone++;
}

/* the records in it must not be read */
static void cut_in(struct lanes *l, struct engine *engine, uint32_t id)
{
	struct lane_in *lane = find_in(l, id);

	if (!lane)
		return;
	l->num_gone -= lane->gone;
	eng_lane_del(engine, &lane->eng);
	free_in(lane);
}

/* under the engine's lock */
static void reap(void *arg)
{
	struct soft_context *ctx = arg;
	struct lanes *l = &ctx->link.lanes;
	struct lane_in *lane, *tmp;

	list_for_each_entry_safe(lane, tmp, &l->in, node) {
		if (!lane->gone || abi_lane_waiting(&lane->eng.rx))
			continue;
		l->num_gone--;
		eng_lane_del(ctx->engine, &lane->eng);
		free_in(lane);
	}
}

void lanes_reap(struct soft_context *ctx)
{
	if (ctx->link.lanes.num_gone)
		eng_locked(ctx->engine, reap, ctx);
}

/* Return: the lane, out of the list; NULL */
static struct lane_out *drop_out(struct lanes *l, uint32_t id)
{
	struct lane_out *lane = find_out(l, id);

	if (!lane)
		return NULL;
	lanes_forget(lane);
	list_del(&lane->node);
	return lane;
}

static void bad_qkeys_heard(struct lanes *l, uint32_t id)
{
	struct lane_in *lane = find_in(l, id);

	if (!lane)
		return;
	lane->told = false;
	report_bad_qkeys(container_of(l, struct soft_context, link.lanes), lane);
}

/* under the engine's lock */
static void take_news(void *arg)
{
	struct news *n = arg;

	switch (n->event.kind) {
	case ABI_LANE_IN:
		if (!n->fresh)
			break;
		n->fresh->eng.source =
			(struct wire_port_addrs){n->event.slid, n->event.slid_mask};
		n->fresh->eng.pkey = n->event.pkey;
		n->fresh->eng.owner = n->event.owner;
		lanes_announce_fence(n->lanes, n->fresh);
		list_add_tail(&n->fresh->node, &n->lanes->in);
		eng_lane_add(n->engine, &n->fresh->eng);
		break;
	case ABI_LANE_IN_GONE:
		drop_in(n->lanes, n->event.lane);
		break;
	case ABI_LANE_IN_CUT:
		cut_in(n->lanes, n->engine, n->event.lane);
		break;
	case ABI_LANE_BAD_QKEY:
		bad_qkeys_heard(n->lanes, n->event.lane);
		break;
	case ABI_LANE_OUT_GONE:
		n->ended = drop_out(n->lanes, n->event.lane);
		break;
	}
}

/* @fds: its memory and its doorbell */
static struct lane_in *new_in(struct soft_context *ctx, uint32_t id, const int fds[2])
{
	struct lane_in *lane = calloc(1, sizeof(*lane));
	struct abi_lane *memory = lane ? map_lane(fds[0]) : NULL;

	if (!memory) {
		free(lane);
		return NULL;
	}
	if (doorbells_add_lane(&ctx->progress.doorbells, fds[1])) {
		munmap(memory, abi_lane_bytes());
		free(lane);
		return NULL;
	}
	lane->id = id;
	lane->eng.rx.memory = memory;
	return lane;
}

/* It is a program that shares our objects. Return: false: that is not what the message says */
static bool is_from_peer(struct soft_context *ctx, const struct abi_lane_event *event, ssize_t n,
			 const int *fds, unsigned num_fds)
{
	unsigned taken;

	if (n != (ssize_t)sizeof(*event) || event->kind != ABI_LANE_PEER)
		return false;
	taken = num_fds && share_serve(ctx, fds[0]);
	while (num_fds > taken)
		close(fds[--num_fds]);
	return true;
}

bool lanes_events(struct soft_context *ctx, int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct news news = {.lanes = &ctx->link.lanes, .engine = ctx->engine};
	struct iovec iov = {&news.event, sizeof(news.event)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	unsigned num_fds;
	int fds[2];

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	num_fds = abi_take_fds(&msg, fds, ARRAY_SIZE(fds));
	if (is_from_peer(ctx, &news.event, n, fds, num_fds))
		return true;
	if (num_fds == 2 && n == (ssize_t)sizeof(news.event) && news.event.kind == ABI_LANE_IN)
		news.fresh = new_in(ctx, news.event.lane, fds);
	for (unsigned i = 0; i < num_fds; i++)
		close(fds[i]);
	if (msg.msg_flags & MSG_CTRUNC || (num_fds && !news.fresh))
		refuse(fd, news.event.lane);
	/* not between softibd's answer and its evaluation: a message may say that the lane in
	 * the answer has already ended */
	if (n == (ssize_t)sizeof(news.event) && news.event.kind == ABI_LANE_CLOSED)
		ctx->progress.told = true;
	pthread_mutex_lock(&news.lanes->ask_lock);
	if (n == (ssize_t)sizeof(news.event))
		eng_locked(ctx->engine, take_news, &news);
	pthread_mutex_unlock(&news.lanes->ask_lock);
	if (news.ended) {
		wakeups_wait(ctx);
		free_out(news.ended);
	}
	return n > 0;
}
