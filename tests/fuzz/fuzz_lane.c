/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a hostile peer writes into its lane, and a hostile softibd into its
 * ring, to a program with an RC, a UC and a UD QP. The input is a list of
 * records, each a byte of choice, a byte of length in words, and the words:
 * cells of the lane or packets kept well in the ring, bytes anywhere in the
 * lane's memory or in the ring's, positions of both, the program's requests.
 *
 * The engine reads it or gives the link up; it writes nothing outside the
 * region that it was given, and completes what was posted once at most. In the
 * target lane_change all this memory changes while it is read (changing.h).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "changing.h"
#include "../../lib/libibverbs/soft.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PEER_LID 2
#define OWN_LID 1
#define PD 1
#define KEY 0x100
#define REGION_BYTES 8192
#define IOVA 0x10000u
#define RING_BYTES 4096
#define RING_STRIDE 8192
#define PAGE_BYTES 4096u
#define QPN 0x40 /* of the first QP */
#define QPS 3
#define DEPTH 8

enum what { LANE_PACKET, RING_PACKET, LANE_BYTES, RING_BYTES_AT, LANE_ENDS, RING_ENDS, POST, TICK };

static struct {
	struct abi_devpage *page;
	int link_fd, doorbell_fd;
	struct soft_link link;
	struct lane_in in;
	struct lane_out out;
	struct abi_lane *lane, *lane_to; /* from the peer, to the peer */
	uint32_t tail; /* of the peer's lane */
	struct abi_ring_tx softibd;
	struct engine *engine;
	struct eng_cq *cq;
	struct eng_qp *qp[QPS];
	struct ibv_qp_cap cap;
	uint8_t *region; /* its own allocation: the sanitizer sees its ends */
	uint64_t posted[QPS], received, done[QPS], taken;
	mono_t now;
} w;

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* --- the program --- */

static mono_t now(void *ctx)
{
	return w.now;
}

static void on_cq(void *ctx, void *cq_ctx)
{
}

static void on_async(void *ctx, enum ibv_event_type type, void *element)
{
}

static void wake(void *ctx)
{
}

static void make_page(void)
{
	w.page = calloc(1, abi_devpage_bytes(1));
	check(w.page);
	w.page->magic = ABI_DEVPAGE_MAGIC;
	w.page->num_ports = 1;
	w.page->route_epoch = 1;
	w.page->port[0] = (struct abi_devport){.lid = OWN_LID, .state = IBV_PORT_ACTIVE,
					       .active_mtu_enc = IBV_MTU_1024,
					       .max_mtu_enc = IBV_MTU_4096, .pkey[0] = 0xffff};
}

static void make_link(void)
{
	const struct abi_context_resp resp = {.num_ports = 1, .ring_bytes = RING_BYTES,
					      .to_engine_offset = RING_STRIDE};

	w.link_fd = memfd_create("link", MFD_CLOEXEC);
	w.doorbell_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	check(w.link_fd >= 0 && w.doorbell_fd >= 0 && !ftruncate(w.link_fd, 2 * RING_STRIDE));
	check(!link_map(&w.link, w.link_fd, w.doorbell_fd, &resp));
	w.softibd = (struct abi_ring_tx){.ring = w.link.rx.ring, .size = RING_BYTES};
	check(!lanes_init(&w.link.lanes, w.page, &w.link.tx, now, wake, NULL));
}

/* A lane is megabytes, of which an input touches little: it is mapped, so that
 * only that costs anything, and ends where a page begins that nobody can touch. */
static size_t lane_room(void)
{
	return (abi_lane_bytes() + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
}

static struct abi_lane *make_lane(void)
{
	uint8_t *room = mmap(NULL, lane_room() + PAGE_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(room != MAP_FAILED);
	check(!mprotect(room + lane_room(), PAGE_BYTES, PROT_NONE));
	return (void *)(room + lane_room() - abi_lane_bytes());
}

static void free_lane(struct abi_lane *lane)
{
	uint8_t *end = (uint8_t *)lane + abi_lane_bytes();

	munmap(end - lane_room(), lane_room() + PAGE_BYTES);
}

static void make_lanes(void)
{
	struct lanes *l = &w.link.lanes;

	w.lane = make_lane();
	w.lane_to = make_lane();
	w.in = (struct lane_in){.id = 1,
				.eng = {.rx.memory = w.lane,
					.source = wire_port_addrs(PEER_LID, 0),
					.pkey = 0xffff}};
	w.out = (struct lane_out){.id = 2, .doorbell_fd = w.doorbell_fd};
	INIT_LIST_HEAD(&w.out.flows);
	eng_lane_out_init(&w.out.eng, w.lane_to, l->has_membarrier);
	list_add_tail(&w.in.node, &l->in);
	list_add_tail(&w.out.node, &l->out);
}

static void make_qp(unsigned i)
{
	static const enum ibv_qp_type types[QPS] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
	const struct eng_qp_init init = {
		.qpn = QPN + i, .type = types[i], .pd = PD, .send_cq = w.cq, .recv_cq = w.cq,
		.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1,
		.sq_sig_all = true};
	struct ibv_qp_attr attr = {
		.port_num = 1, .qkey = 0x11111111, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = QPN + i, .ah_attr = {.dlid = PEER_LID, .port_num = 1},
		.max_rd_atomic = 4, .max_dest_rd_atomic = 4, .timeout = 1, .retry_cnt = 2,
		.rnr_retry = 2, .min_rnr_timer = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC};
	const int ud = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_SQ_PSN;
	const int rc = (ud & ~IBV_QP_QKEY) | IBV_QP_ACCESS_FLAGS | IBV_QP_AV | IBV_QP_PATH_MTU |
		       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		       IBV_QP_MIN_RNR_TIMER | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		       IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

	check(!eng_qp_create(w.engine, &init, &w.qp[i]));
	for (unsigned n = 0; n < ARRAY_SIZE(way); n++) {
		attr.qp_state = way[n];
		check(!eng_qp_modify(w.qp[i], &attr, types[i] == IBV_QPT_UD ? ud : rc));
	}
}

static void make_engine(void)
{
	const struct eng_config config = {.devpage = w.page, .link_ops = &link_ops,
					  .link = &w.link, .packets = &w.link.rx, .now = now, .cq_event = on_cq,
					  .async_event = on_async};
	const struct eng_mr_attr mr = {
		.key = KEY, .pd = PD, .length = REGION_BYTES, .iova = IOVA,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
		.addr = w.region = calloc(1, REGION_BYTES)};

	check(w.region && !eng_create(&config, &w.engine) && !eng_mr_add(w.engine, &mr));
	eng_lane_add(w.engine, &w.in.eng);
	check(!eng_cq_create(w.engine, 256, NULL, &w.cq));
	for (unsigned i = 0; i < QPS; i++)
		make_qp(i);
}

static const struct tp_av *no_av(struct ibv_ah *ah)
{
	static const struct tp_av av = {.dlid = PEER_LID, .port_num = 1};

	return &av;
}

static void post_send(unsigned i, uint8_t how)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD};
	const bool atomic = how % 4 == 3;
	struct ibv_sge sge = {.addr = IOVA, .length = atomic ? 8 : how * 16u, .lkey = KEY};
	struct ibv_send_wr wr = {.wr_id = w.posted[i] << 2 | i, .sg_list = &sge, .num_sge = 1,
				 .opcode = opcodes[how % 4]}, *bad;

	if (i == 2) {
		wr.opcode = IBV_WR_SEND;
		sge.length = MIN(sge.length, 1024u);
		wr.wr.ud.ah = (void *)&w;
		wr.wr.ud.remote_qpn = QPN + 2;
		wr.wr.ud.remote_qkey = 0x11111111;
	} else {
		wr.wr.rdma.remote_addr = IOVA; /* the atomics' struct begins so, too */
		wr.wr.rdma.rkey = KEY;
		if (atomic) {
			wr.wr.atomic.remote_addr = IOVA;
			wr.wr.atomic.rkey = KEY;
		}
	}
	w.posted[i] += !eng_post_send(w.qp[i], &wr, &bad, no_av);
}

static void post_recv(unsigned i)
{
	struct ibv_sge sge = {.addr = IOVA + 4096, .length = 4096, .lkey = KEY};
	struct ibv_recv_wr wr = {.wr_id = 3, .sg_list = &sge, .num_sge = 1}, *bad;

	w.received += !eng_post_recv(w.qp[i], &wr, &bad);
}

static void poll_cq(void)
{
	struct ibv_wc wc[16];
	int n;

	while ((n = eng_cq_poll(w.cq, ARRAY_SIZE(wc), wc)) > 0)
		for (int k = 0; k < n; k++) {
			const unsigned i = wc[k].wr_id & 3;

			if (i == 3) { /* a receive */
				check(w.taken++ < w.received && wc[k].byte_len <= 4096 + 40);
				continue;
			}
			check(wc[k].wr_id >> 2 == w.done[i]); /* in order, each once */
			check(w.done[i]++ < w.posted[i]);
		}
}

/* --- who writes to it --- */

static void write_packet(struct abi_ring_tx *tx, bool fix, const uint8_t *bytes, size_t len)
{
	static const uint8_t lrh[] = {0, 2, 0, OWN_LID, 0, 0, 0, PEER_LID};
	void *room;
	size_t head = fix ? sizeof(lrh) : 0;

	room = len + head + 16 < tx->size ? abi_ring_reserve(tx, len + head) : NULL;
	if (!room)
		return;
	memcpy(room, lrh, head);
	memcpy((uint8_t *)room + head, bytes, len);
	if (fix)
		put_be16((uint8_t *)room + 4, (uint16_t)((len + head + 4) / 4));
	abi_ring_commit(tx, len + head);
	abi_ring_publish(tx);
}

/* a cell as it comes, valid; with @fix from the right port, to a QP there is */
static void write_cell(bool fix, const uint8_t *bytes, size_t len)
{
	struct abi_cell *cell = abi_lane_cell(w.lane, w.tail);
	struct abi_record record = {0};
	uint64_t word[3] = {0};
	size_t head = MIN(len, sizeof(word));

	memcpy(word, bytes, head);
	abi_record_unpack(word, &record);
	if (fix) {
		record.slid = PEER_LID;
		record.pkey = 0xffff;
		record.dest_qpn = record.src_qpn = QPN + record.dest_qpn % QPS;
	}
	memcpy(cell->data, bytes + head, MIN(len - head, sizeof(cell->data)));
	record.lap = abi_lane_lap(w.tail++);
	abi_record_pack(&record, word);
	memcpy(cell, word, sizeof(word));
}

static void scribble(void *memory, size_t room, const uint8_t *bytes, size_t len)
{
	size_t at;

	if (len < 4)
		return;
	at = get_be32(bytes) % room;
	memcpy((uint8_t *)memory + at, bytes + 4, MIN(len - 4, room - at));
}

static void set_ends(struct abi_ring *ring, const uint8_t *bytes, size_t len)
{
	if (len >= 8)
		atomic_store(&ring->tail, get_be64(bytes));
	if (len >= 16)
		atomic_store(&ring->head, get_be64(bytes + 8));
}

static void answer_flow(void)
{
	struct lanes *l = &w.link.lanes;
	const struct abi_resolve_resp resp = {.lane = 2, .flow = 1, .epoch = w.page->route_epoch,
					      .mtu_bytes = 1024};

	while (l->num_questions)
		lanes_known(l, &l->question[--l->num_questions], &resp, &w.out);
}

static void tick(void)
{
	changing_on(true);
	eng_tick(w.engine);
	changing_on(false);
	poll_cq();
}

static void act(uint8_t what, const uint8_t *bytes, size_t len)
{
	switch ((enum what)(what % 8)) {
	case LANE_PACKET:
		write_cell(what & 8, bytes, len);
		break;
	case RING_PACKET:
		write_packet(&w.softibd, what & 8, bytes, len);
		break;
	case LANE_BYTES:
		scribble(what & 8 ? (void *)w.lane->bulk : w.lane->cell, 8192, bytes, len);
		break;
	case RING_BYTES_AT:
		scribble(w.link.rx.ring, RING_STRIDE, bytes, len);
		break;
	case LANE_ENDS:
		if (len >= 8) {
			atomic_store(&w.lane_to->head, get_be32(bytes));
			atomic_store(&w.lane_to->asleep, get_be32(bytes + 4));
		}
		break;
	case RING_ENDS:
		set_ends(what & 8 ? w.link.tx.ring : w.link.rx.ring, bytes, len);
		break;
	case POST:
		if (what & 8)
			post_recv((what >> 4) % QPS);
		else
			post_send((what >> 4) % QPS, what >> 6 | (uint8_t)(len << 2));
		break;
	case TICK:
		w.now = mono_add(w.now, 1ull << (what >> 3));
		if (what & 8)
			answer_flow();
		if (what & 16)
			w.page->route_epoch++;
		break;
	}
	tick();
}

static void end(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	for (unsigned i = 0; i < QPS; i++)
		eng_qp_modify(w.qp[i], &attr, IBV_QP_STATE);
	poll_cq();
	for (unsigned i = 0; i < QPS; i++)
		check(w.done[i] == w.posted[i]); /* flushed at the latest */
	eng_destroy(w.engine);
	list_del(&w.in.node); /* not mapped, as the library's are */
	list_del(&w.out.node);
	link_unmap(&w.link);
	close(w.link_fd);
	close(w.doorbell_fd);
	free(w.region);
	free_lane(w.lane);
	free_lane(w.lane_to);
	free(w.page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	changing_take(&data, &size);
	memset(&w, 0, sizeof(w));
	w.now = (mono_t){NSEC_PER_SEC};
	make_page();
	make_link();
	make_lanes();
	make_engine();
	changing_watch(w.lane, sizeof(*w.lane));
	changing_watch(w.lane_to, sizeof(*w.lane_to));
	changing_watch(w.link.rx.ring, RING_STRIDE);
	while (size >= 2) {
		size_t len = MIN((size_t)data[1] * 4, size - 2);

		act(data[0], data + 2, len);
		data += 2 + len;
		size -= 2 + len;
	}
	end();
	return 0;
}
