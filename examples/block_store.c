/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A store of blocks, and its client, as storage protocols over RDMA are built. The client's request
 * says which blocks it writes or reads, and where its memory is: a region of a pool (mr_pool.h),
 * which a work request before it registers. The store moves the blocks by transfers of rw.h, and
 * its answer invalidates the region. The ends share the completion queue of their connections
 * (ib_cq_pool_get()).
 *
 * The module listens at a port of the node. With the parameter `server`, an address, init() connects,
 * writes `blocks` blocks in requests of several, `DEPTH` of which are under way at a time, reads
 * them, and compares.
 */
#include <arpa/inet.h>
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <rdma/rdma_cm.h>
#include <rdma/rw.h>

#define BLOCK_BYTES    PAGE_SIZE
#define STORE_ORDER    12
#define STORE_BLOCKS   (1u << STORE_ORDER)
#define REQUEST_BLOCKS 16 /* of a request, at most */
#define DEPTH	       8  /* requests of a connection that are under way */
#define STORE_SLOTS    (2 * DEPTH) /* an answer may be acknowledged after the next request */
#define RNR_TIMER      12	   /* 0.64 ms (IBA v1 table 45) */
#define TIMEOUT_MS     5000
#define RETRIES	       7

static char *server = "";
module_param(server, charp, 0444);
MODULE_PARM_DESC(server, "IPv4 address of a store to write to and read from; empty: none");
static int blocks = 64;
module_param(blocks, int, 0444);
MODULE_PARM_DESC(blocks, "of 4096 bytes, to write and read");
static int first = 3;
module_param(first, int, 0444);
MODULE_PARM_DESC(first, "of these blocks, in the store");
static int port = 7474;
module_param(port, int, 0444);
MODULE_PARM_DESC(port, "of the service");

/** struct request - on the wire, in network byte order. An answer is one, too */
struct request {
	__be32 tag;    /* the client's, returned */
	__be32 op;     /* enum op; of an answer 0, or an errno */
	__be32 block, num;
	__be64 addr;
	__be32 rkey;
};
enum op { OP_READ = 1, OP_WRITE };

struct end;

/** struct slot - a request that is under way at one end */
struct slot {
	struct ib_cqe sent, received, moved, registered;
	struct end *end;
	bool busy;
	struct request out, in;
	struct scatterlist sg[REQUEST_BLOCKS];
	/* --- the store's --- */
	struct rdma_rw_ctx rw;
	enum dma_data_direction dir;
	/* --- the client's --- */
	struct ib_mr *mr;
};

/** struct end - of a connection */
struct end {
	struct list_head node; /* in served, of the store */
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct slot slot[STORE_SLOTS]; /* the client uses the first DEPTH */
	struct completion over; /* the client: a step of the connection */
	int status;
	wait_queue_head_t answered;
	unsigned int waiting; /* for answers */
	struct page *data;    /* all of the client's blocks */
};

#define CQ_ENTRIES (4 * STORE_SLOTS)

static struct rdma_cm_id *listener;
static LIST_HEAD(served);
static struct page *store;

/* --- both ends --- */

static int open_end(struct end *e, u32 transfers)
{
	struct ib_qp_init_attr init = {.qp_type = IB_QPT_RC,
				       .sq_sig_type = IB_SIGNAL_REQ_WR,
				       .cap = {.max_send_wr = STORE_SLOTS + DEPTH,
					       .max_recv_wr = STORE_SLOTS + 1,
					       .max_send_sge = 4,
					       .max_recv_sge = 1,
					       .max_rdma_ctxs = transfers}};

	init.port_num = e->id->port_num;
	rdma_set_min_rnr_timer(e->id, RNR_TIMER);
	e->pd = ib_alloc_pd(e->id->device, 0);
	if (IS_ERR(e->pd))
		return PTR_ERR(e->pd);
	e->cq = ib_cq_pool_get(e->id->device, CQ_ENTRIES, -1, IB_POLL_WORKQUEUE);
	if (IS_ERR(e->cq))
		return PTR_ERR(e->cq);
	init.send_cq = init.recv_cq = e->cq;
	return rdma_create_qp(e->id, e->pd, &init);
}

static void end_transfer(struct slot *s)
{
	if (s->rw.nr_ops)
		rdma_rw_ctx_destroy(&s->rw, s->end->id->qp, s->end->id->port_num, s->sg,
				    be32_to_cpu(s->in.num), s->dir);
	s->rw.nr_ops = 0;
}

/* but for its id and itself, which a handler may use until the id is destroyed. Nothing is heard of
 * what is under way */
static void close_end(struct end *e)
{
	if (!IS_ERR(e->id) && e->id->qp) {
		for (int i = 0; i < STORE_SLOTS; i++) {
			end_transfer(&e->slot[i]);
			if (e->slot[i].busy)
				ib_mr_pool_put(e->id->qp, &e->id->qp->rdma_mrs, e->slot[i].mr);
			e->slot[i].busy = false;
		}
		ib_mr_pool_destroy(e->id->qp, &e->id->qp->rdma_mrs);
		rdma_destroy_qp(e->id);
	}
	if (!IS_ERR_OR_NULL(e->cq))
		ib_cq_pool_put(e->cq, CQ_ENTRIES);
	if (!IS_ERR_OR_NULL(e->pd))
		ib_dealloc_pd(e->pd);
	e->cq = NULL;
	e->pd = NULL;
}

static int post_recv(struct slot *s)
{
	struct ib_sge sge = {(uintptr_t)&s->in, sizeof(s->in), s->end->pd->local_dma_lkey};
	struct ib_recv_wr wr = {.wr_cqe = &s->received, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(s->end->id->qp, &wr, NULL);
}

static bool is_good(const struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		pr_err("%s\n", ib_wc_status_msg(wc->status));
	return wc->status == IB_WC_SUCCESS;
}

static void set_list(struct slot *s, struct page *from, u32 block, u32 num)
{
	sg_init_table(s->sg, num);
	for (u32 i = 0; i < num; i++)
		sg_set_page(&s->sg[i], from, BLOCK_BYTES, (block + i) * BLOCK_BYTES);
}

static void on_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	is_good(wc);
}

/* --- the store --- */

/* The answer, behind the RDMA WRITEs of the blocks if they were read. The slot takes the next
 * request when it has been sent. */
static void answer(struct slot *s, int error, bool with_blocks)
{
	struct ib_sge sge = {(uintptr_t)&s->out, sizeof(s->out), s->end->pd->local_dma_lkey};
	struct ib_send_wr wr = {.wr_cqe = &s->sent,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IB_WR_SEND_WITH_INV,
				.send_flags = IB_SEND_SIGNALED,
				.ex.invalidate_rkey = be32_to_cpu(s->in.rkey)};
	int ret;

	s->out = s->in;
	s->out.op = cpu_to_be32((u32)error);
	if (with_blocks)
		ret = rdma_rw_ctx_post(&s->rw, s->end->id->qp, s->end->id->port_num, NULL, &wr);
	else
		ret = ib_post_send(s->end->id->qp, &wr, NULL);
	if (ret)
		pr_err("no answer: error %d\n", ret);
}

static void on_answered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *s = container_of(wc->wr_cqe, struct slot, sent);

	end_transfer(s);
	if (is_good(wc) && post_recv(s))
		pr_err("no receive is left\n");
}

static void on_moved(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *s = container_of(wc->wr_cqe, struct slot, moved);

	end_transfer(s);
	if (is_good(wc))
		answer(s, 0, false);
}

static bool is_request(const struct ib_wc *wc, const struct request *r)
{
	u32 block = be32_to_cpu(r->block), num = be32_to_cpu(r->num);

	return wc->byte_len == sizeof(*r) && num && num <= REQUEST_BLOCKS &&
	       block < STORE_BLOCKS && num <= STORE_BLOCKS - block;
}

static void on_request(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *s = container_of(wc->wr_cqe, struct slot, received);
	bool reads = be32_to_cpu(s->in.op) == OP_READ;
	struct rdma_cm_id *id = s->end->id;
	int ret;

	if (!is_good(wc))
		return;
	if (!is_request(wc, &s->in)) {
		answer(s, EINVAL, false);
		return;
	}
	s->dir = reads ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
	set_list(s, store, be32_to_cpu(s->in.block), be32_to_cpu(s->in.num));
	ret = rdma_rw_ctx_init(&s->rw, id->qp, id->port_num, s->sg, be32_to_cpu(s->in.num), 0,
			       be64_to_cpu(s->in.addr), be32_to_cpu(s->in.rkey), s->dir);
	if (ret < 0)
		answer(s, ENOMEM, false);
	else if (reads)
		answer(s, 0, true);
	else if (rdma_rw_ctx_post(&s->rw, id->qp, id->port_num, &s->moved, NULL))
		pr_err("no transfer\n");
}

static int accept_connection(struct rdma_cm_id *id, const struct rdma_conn_param *peer)
{
	struct rdma_conn_param param = {.responder_resources = peer->responder_resources,
					.initiator_depth = peer->initiator_depth,
					.rnr_retry_count = RETRIES};
	struct end *e = kzalloc(sizeof(*e), GFP_KERNEL);
	int ret;

	if (!e)
		return -ENOMEM;
	e->id = id;
	/* a transfer has at most a request for 3 blocks */
	ret = open_end(e, STORE_SLOTS * (REQUEST_BLOCKS / 3 + 1));
	for (int i = 0; !ret && i < STORE_SLOTS; i++) {
		struct slot *s = &e->slot[i];

		s->end = e;
		s->sent.done = on_answered;
		s->received.done = on_request;
		s->moved.done = on_moved;
		ret = post_recv(s);
	}
	if (!ret)
		ret = rdma_accept(id, &param);
	if (ret) {
		close_end(e);
		kfree(e);
		return ret; /* which destroys the id: the peer is told */
	}
	id->context = e;
	list_add_tail(&e->node, &served);
	return 0;
}

static int on_served(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct end *e = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return accept_connection(id, &event->param.conn);
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		return 0; /* until the time-wait is over: packets may still be on their way */
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (id == listener)
			return 0;
		list_del(&e->node);
		close_end(e);
		kfree(e);
		return 1; /* which destroys the id */
	default:
		return 0;
	}
}

static int open_store(void)
{
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int ret;

	store = alloc_pages(GFP_KERNEL, STORE_ORDER);
	if (!store)
		return -ENOMEM;
	memset(page_address(store), 0, STORE_BLOCKS * BLOCK_BYTES);
	listener = rdma_create_id(&init_net, on_served, NULL, RDMA_PS_TCP, IB_QPT_RC);
	ret = IS_ERR(listener) ? PTR_ERR(listener) : 0;
	if (!ret) {
		ret = rdma_bind_addr(listener, (struct sockaddr *)&any);
		if (!ret)
			ret = rdma_listen(listener, 0);
		if (ret)
			rdma_destroy_id(listener);
	}
	if (ret)
		__free_pages(store, STORE_ORDER);
	return ret;
}

static void close_store(void)
{
	rdma_destroy_id(listener);
	while (!list_empty(&served)) {
		struct end *e = list_first_entry(&served, struct end, node);

		list_del(&e->node);
		close_end(e);
		rdma_destroy_id(e->id);
		kfree(e);
	}
	__free_pages(store, STORE_ORDER);
}

/* --- the client: its connection --- */

static void end_step(struct end *e, int status)
{
	e->status = status;
	complete(&e->over);
}

static int open_client(struct end *e)
{
	struct rdma_conn_param param = {.responder_resources = DEPTH,
					.initiator_depth = DEPTH,
					.retry_count = RETRIES,
					.rnr_retry_count = RETRIES};
	int ret = open_end(e, 0);

	if (!ret)
		ret = ib_mr_pool_init(e->id->qp, &e->id->qp->rdma_mrs, DEPTH, IB_MR_TYPE_MEM_REG,
				      REQUEST_BLOCKS, 0);
	for (int i = 0; !ret && i < DEPTH; i++)
		ret = post_recv(&e->slot[i]);
	return ret ? ret : rdma_connect_locked(e->id, &param);
}

/* The handler goes on by itself until the connection is there. */
static int on_news(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct end *e = id->context;
	int ret = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(id, TIMEOUT_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = open_client(e);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		end_step(e, 0);
		break;
	case RDMA_CM_EVENT_REJECTED:
		ret = -ECONNREFUSED;
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		ret = event->status ? event->status : -EHOSTUNREACH;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (!e->status)
			e->status = -ECONNRESET;
		wake_up(&e->answered);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL: /* whoever waits goes on without an id */
		close_end(e);
		e->id = ERR_PTR(-ENODEV);
		end_step(e, -ENODEV);
		wake_up(&e->answered);
		return 1;
	default:
		break;
	}
	if (ret)
		end_step(e, ret);
	return 0;
}

static int connect_to_store(struct end *e)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int ret;

	if (inet_pton(AF_INET, server, &to.sin_addr) != 1)
		return -EINVAL;
	rdma_lock_handler(e->id); /* the first news comes once this is unlocked */
	ret = rdma_resolve_addr(e->id, NULL, (struct sockaddr *)&to, TIMEOUT_MS);
	e->id->event_handler = on_news;
	rdma_unlock_handler(e->id);
	if (ret)
		return ret;
	wait_for_completion(&e->over);
	return e->status;
}

static int ignore_news(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

/* --- the client: its requests --- */

static void end_request(struct slot *s, int status)
{
	struct end *e = s->end;

	if (status && !e->status)
		e->status = status;
	ib_mr_pool_put(e->id->qp, &e->id->qp->rdma_mrs, s->mr);
	s->busy = false;
	e->waiting--;
	wake_up(&e->answered);
}

static void on_registered(struct ib_cq *cq, struct ib_wc *wc)
{
	is_good(wc); /* only a failure is told: the request behind it is flushed */
}

static void on_answer(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *s = container_of(wc->wr_cqe, struct slot, received);
	u32 tag = be32_to_cpu(s->in.tag); /* any: answers may come in another order */
	int status = -(int)be32_to_cpu(s->in.op);
	struct end *e = s->end;

	if (!is_good(wc)) {
		if (s->busy) /* the connection has failed, and all receives end so */
			end_request(s, -EIO);
	} else if (wc->byte_len != sizeof(s->in) || tag >= DEPTH || !e->slot[tag].busy ||
		   !(wc->wc_flags & IB_WC_WITH_INVALIDATE) ||
		   e->slot[tag].mr->rkey != wc->ex.invalidate_rkey) {
		pr_err("an answer to no request\n");
	} else {
		post_recv(s); /* before the slot's next request: it is as good as any */
		end_request(&e->slot[tag], status);
	}
}

static int register_blocks(struct slot *s, u32 block, u32 num, enum op op)
{
	struct end *e = s->end;

	set_list(s, e->data, block, num);
	if (ib_dma_map_sg(e->id->device, s->sg, (int)num, DMA_BIDIRECTIONAL) != (int)num ||
	    ib_map_mr_sg(s->mr, s->sg, (int)num, NULL, BLOCK_BYTES) != (int)num)
		return -EIO;
	ib_update_fast_reg_key(s->mr, (u8)ib_inc_rkey(s->mr->rkey));
	s->out = (struct request){.tag = cpu_to_be32((u32)(s - e->slot)),
				  .op = cpu_to_be32(op),
				  .block = cpu_to_be32((u32)first + block),
				  .num = cpu_to_be32(num),
				  .addr = cpu_to_be64(s->mr->iova),
				  .rkey = cpu_to_be32(s->mr->rkey)};
	return 0;
}

static int post_request(struct slot *s, enum op op)
{
	struct end *e = s->end;
	struct ib_sge sge = {(uintptr_t)&s->out, sizeof(s->out), e->pd->local_dma_lkey};
	struct ib_send_wr send = {
		.wr_cqe = &s->sent, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED};
	struct ib_reg_wr reg = {
		.wr = {.next = &send, .wr_cqe = &s->registered, .opcode = IB_WR_REG_MR},
		.mr = s->mr,
		.key = s->mr->rkey,
		.access = op == OP_READ ? IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE :
					  IB_ACCESS_REMOTE_READ};

	return ib_post_send(e->id->qp, &reg.wr, NULL);
}

/* Return: a slot that is free, once there is one; NULL: the connection has failed */
static struct slot *wait_for_slot(struct end *e)
{
	wait_event(e->answered, e->waiting < DEPTH || e->status);
	for (int i = 0; !e->status && i < DEPTH; i++)
		if (!e->slot[i].busy)
			return &e->slot[i];
	return NULL;
}

static int transfer(struct end *e, enum op op)
{
	u32 num;
	int ret;

	for (u32 block = 0; block < (u32)blocks; block += num) {
		struct slot *s = wait_for_slot(e);

		if (!s)
			return e->status;
		num = 1 + block % REQUEST_BLOCKS; /* requests of each length */
		if (num > (u32)blocks - block)
			num = (u32)blocks - block;
		s->mr = ib_mr_pool_get(e->id->qp, &e->id->qp->rdma_mrs);
		ret = register_blocks(s, block, num, op);
		if (!ret)
			ret = post_request(s, op);
		if (ret) {
			ib_mr_pool_put(e->id->qp, &e->id->qp->rdma_mrs, s->mr);
			return ret;
		}
		s->busy = true;
		e->waiting++;
	}
	wait_event(e->answered, !e->waiting || e->status);
	return e->status;
}

static u32 pattern(u32 word)
{
	return word * 2654435761u;
}

static int write_and_read(struct end *e)
{
	u32 *word = page_address(e->data), words = (u32)blocks * BLOCK_BYTES / sizeof(*word);
	int ret;

	for (u32 i = 0; i < words; i++)
		word[i] = pattern(i);
	ret = transfer(e, OP_WRITE);
	if (ret)
		return ret;
	memset(word, 0, words * sizeof(*word));
	ret = transfer(e, OP_READ);
	for (u32 i = 0; !ret && i < words; i++)
		if (word[i] != pattern(i))
			ret = -EIO;
	return ret;
}

static int use_store(void)
{
	struct end *e = kzalloc(sizeof(*e), GFP_KERNEL);
	int ret;

	if (!e)
		return -ENOMEM;
	init_completion(&e->over);
	init_waitqueue_head(&e->answered);
	for (int i = 0; i < DEPTH; i++) {
		e->slot[i].end = e;
		e->slot[i].sent.done = on_sent;
		e->slot[i].received.done = on_answer;
		e->slot[i].registered.done = on_registered;
	}
	e->data = alloc_pages(GFP_KERNEL, STORE_ORDER);
	e->id = rdma_create_id(&init_net, ignore_news, e, RDMA_PS_TCP, IB_QPT_RC);
	ret = !e->data ? -ENOMEM : IS_ERR(e->id) ? PTR_ERR(e->id) : connect_to_store(e);
	if (!ret)
		ret = write_and_read(e);
	if (ret)
		pr_err("the store at %s: error %d\n", server, ret);
	else
		pr_info("wrote and read %d blocks at block %d of %s\n", blocks, first, server);
	if (!IS_ERR(e->id) && e->id->qp) {
		rdma_disconnect(e->id);
		ib_drain_qp(e->id->qp);
	}
	close_end(e);
	if (!IS_ERR(e->id))
		rdma_destroy_id(e->id);
	__free_pages(e->data, STORE_ORDER);
	kfree(e);
	return ret;
}

static int __init block_store_init(void)
{
	int ret;

	if (blocks < 1 || blocks > STORE_BLOCKS || first < 0)
		return -EINVAL;
	ret = open_store();
	if (!ret && *server) {
		ret = use_store();
		if (ret)
			close_store();
	}
	return ret;
}

static void __exit block_store_exit(void)
{
	close_store();
}

module_init(block_store_init);
module_exit(block_store_exit);
MODULE_LICENSE("Dual BSD/GPL");
