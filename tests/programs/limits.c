/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tries each limit that a device reports: exactly the limit is allowed, and one more fails
 * with the errno that Linux' drivers have for it: EINVAL for a size, ENOMEM for a number of
 * objects, EOPNOTSUPP for what the device does not have at all.
 *
 * usage: limits MAX_INLINE_DATA MAX_INLINE_DATA_UD, which a device does not report
 *
 * Numbers of objects must be small (--hca-profile), since as many are made. Prints each limit
 * that is not kept, and then how many were tried.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "fixture.h"

#define MOST_OBJECTS 300
#define MOST_SGE 64

static struct ibv_context *context;
static struct ibv_device_attr_ex device;
static const struct ibv_device_attr *most = &device.orig_attr;
static struct ibv_port_attr port;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char buffer[4096];
static enum ibv_qp_type usual; /* the connected type, or UD if the device has none */
static unsigned tried, broken;

static void expect_number(const char *limit, unsigned got, unsigned wanted)
{
	tried++;
	if (got == wanted)
		return;
	broken++;
	printf("%s: %u, not %u\n", limit, got, wanted);
}

static void expect(const char *limit, uint64_t value, int got, int wanted)
{
	tried++;
	if (got == wanted)
		return;
	broken++;
	printf("%s: %llu gives %d (%s), not %d\n", limit, (unsigned long long)value, got,
	       strerror(got), wanted);
}

/* --- queue pairs --- */

static struct ibv_qp *try_qp(enum ibv_qp_type type, struct ibv_qp_cap cap)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type, .send_cq = cq, .recv_cq = cq, .cap = cap, .sq_sig_all = 1};

	return ibv_create_qp(pd, &init);
}

static int qp_with(enum ibv_qp_type type, struct ibv_qp_cap cap)
{
	struct ibv_qp *qp = try_qp(type, cap);

	return qp ? ibv_destroy_qp(qp) : errno;
}

static int send_wr(uint64_t n)
{
	return qp_with(usual, (struct ibv_qp_cap){.max_send_wr = (uint32_t)n});
}

static int recv_wr(uint64_t n)
{
	return qp_with(usual, (struct ibv_qp_cap){.max_recv_wr = (uint32_t)n});
}

static int send_sge(uint64_t n)
{
	return qp_with(usual, (struct ibv_qp_cap){.max_send_sge = (uint32_t)n});
}

static int recv_sge(uint64_t n)
{
	return qp_with(usual, (struct ibv_qp_cap){.max_recv_sge = (uint32_t)n});
}

static int inline_rc(uint64_t n)
{
	return qp_with(IBV_QPT_RC, (struct ibv_qp_cap){.max_inline_data = (uint32_t)n});
}

static int inline_ud(uint64_t n)
{
	return qp_with(IBV_QPT_UD, (struct ibv_qp_cap){.max_inline_data = (uint32_t)n});
}

/* the way to the port itself, by its LID and by its first GID */
static struct ibv_ah_attr to_self(void)
{
	struct ibv_ah_attr attr = {.dlid = port.lid ? port.lid : 1, .port_num = 1};

	attr.is_global = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	attr.grh.hop_limit = 1;
	CHECK(!ibv_query_gid(context, 1, 0, &attr.grh.dgid));
	return attr;
}

/* an RC QP to RTR, or on to RTS. Return: 0 or errno */
static int raise_qp(struct ibv_qp *qp, struct ibv_qp_attr attr, bool to_rts)
{
	attr.ah_attr = to_self();
	attr.dest_qp_num = qp->qp_num;
	if (!attr.path_mtu)
		attr.path_mtu = IBV_MTU_256;
	return raise_connected_qp(qp, attr, to_rts ? IBV_QPS_RTS : IBV_QPS_RTR);
}

static int rc_with(struct ibv_qp_attr attr)
{
	struct ibv_qp *qp = try_qp(IBV_QPT_RC, (struct ibv_qp_cap){.max_send_wr = 1});
	int rc;

	CHECK(qp);
	rc = raise_qp(qp, attr, true);
	CHECK(!ibv_destroy_qp(qp));
	return rc;
}

static int rd_atom(uint64_t n)
{
	return rc_with((struct ibv_qp_attr){.max_dest_rd_atomic = (uint8_t)n});
}

static int init_rd_atom(uint64_t n)
{
	return rc_with((struct ibv_qp_attr){.max_rd_atomic = (uint8_t)n});
}

static int path_mtu(uint64_t n)
{
	return rc_with((struct ibv_qp_attr){.path_mtu = (enum ibv_mtu)n});
}

static int pkey_index(uint64_t last)
{
	return rc_with((struct ibv_qp_attr){.pkey_index = (uint16_t)last});
}

static int gid_index(uint64_t last)
{
	struct ibv_ah_attr attr = to_self();
	struct ibv_ah *ah;

	attr.is_global = 1;
	attr.grh.sgid_index = (uint8_t)last;
	ah = ibv_create_ah(pd, &attr);
	return ah ? ibv_destroy_ah(ah) : errno;
}

/* a READ of @n entries, into memory that is sent there and back */
static int read_sge(uint64_t n)
{
	struct ibv_qp *qp = try_qp(IBV_QPT_RC, (struct ibv_qp_cap){.max_send_wr = 1,
								   .max_send_sge = (uint32_t)most->max_sge});
	struct ibv_sge sge[MOST_SGE];
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_READ, .sg_list = sge, .num_sge = (int)n,
				 .wr.rdma = {(uintptr_t)buffer, mr->rkey}}, *bad;
	struct ibv_qp_attr up = {.max_rd_atomic = 1, .max_dest_rd_atomic = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_READ, .timeout = 14};
	struct ibv_wc wc;
	int rc, found = 0;

	CHECK(qp && n < MOST_SGE && !raise_qp(qp, up, true));
	for (unsigned i = 0; i < n; i++)
		sge[i] = (struct ibv_sge){(uintptr_t)buffer + i, 1, mr->lkey};
	rc = ibv_post_send(qp, &wr, &bad);
	while (!rc && !found)
		found = ibv_poll_cq(cq, 1, &wc);
	CHECK(rc || wc.status == IBV_WC_SUCCESS);
	CHECK(!ibv_destroy_qp(qp));
	return rc;
}

/* A QP in ERR accepts what is sound, and moves nothing: 11.4.1.1 */
static int message(uint64_t bytes)
{
	struct ibv_qp *qp = try_qp(usual, (struct ibv_qp_cap){.max_send_wr = 1, .max_send_sge = 2});
	struct ibv_sge sge[] = {{(uintptr_t)buffer, 1u << 31, mr->lkey},
				{(uintptr_t)buffer, (uint32_t)(bytes - (1u << 31)), mr->lkey}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = 2}, *bad;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int rc;

	CHECK(qp && bytes >= 1u << 31 && !raise_qp(qp, (struct ibv_qp_attr){0}, true));
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	rc = ibv_post_send(qp, &wr, &bad);
	CHECK(!ibv_destroy_qp(qp));
	return rc;
}

/* --- what fits into queues, as their creation has granted it --- */

/** struct load - requests of a number of pieces, or of inline data, that are posted at once */
struct load {
	unsigned requests, pieces, inline_bytes;
};

static struct ibv_qp *granted(struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq, .cap = *cap, .sq_sig_all = 1};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	CHECK(qp && !raise_qp(qp, (struct ibv_qp_attr){.rnr_retry = 7}, true));
	*cap = init.cap;
	return qp;
}

static const struct ibv_qp_cap small = {
	.max_send_wr = 3, .max_recv_wr = 3, .max_send_sge = 2, .max_recv_sge = 2};

/* The QP is its own peer and has no receive, which it awaits: each request stays in the queue. */
static int sent(struct load load)
{
	struct ibv_qp_cap cap = small;
	struct ibv_qp *qp = granted(&cap);
	struct ibv_sge sge[MOST_SGE] = {{(uintptr_t)buffer, load.inline_bytes, mr->lkey}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .sg_list = sge, .num_sge = (int)load.pieces,
				 .send_flags = load.inline_bytes ? IBV_SEND_INLINE : 0}, *bad;
	int rc = 0;

	for (unsigned i = 0; i < load.requests && !rc; i++)
		rc = ibv_post_send(qp, &wr, &bad);
	CHECK(!rc || bad == &wr);
	CHECK(!ibv_destroy_qp(qp));
	return rc;
}

static int received(struct load load)
{
	struct ibv_qp_cap cap = small;
	struct ibv_qp *qp = granted(&cap);
	struct ibv_sge sge[MOST_SGE] = {{0}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = (int)load.pieces}, *bad;
	int rc = 0;

	for (unsigned i = 0; i < load.requests && !rc; i++)
		rc = ibv_post_recv(qp, &wr, &bad);
	CHECK(!rc || bad == &wr);
	CHECK(!ibv_destroy_qp(qp));
	return rc;
}

static void try_posts(void)
{
	struct ibv_qp_cap cap = small;

	CHECK(!ibv_destroy_qp(granted(&cap)));
	CHECK(cap.max_send_sge < MOST_SGE && cap.max_recv_sge < MOST_SGE);
	expect("granted max_send_sge", cap.max_send_sge, sent((struct load){1, cap.max_send_sge}), 0);
	expect("granted max_send_sge", cap.max_send_sge + 1,
	       sent((struct load){1, cap.max_send_sge + 1}), EINVAL);
	expect("granted max_send_wr", cap.max_send_wr, sent((struct load){cap.max_send_wr}), 0);
	expect("granted max_send_wr", cap.max_send_wr + 1, sent((struct load){cap.max_send_wr + 1}),
	       ENOMEM);
	if (cap.max_inline_data)
		expect("granted max_inline_data", cap.max_inline_data,
		       sent((struct load){1, 1, cap.max_inline_data}), 0);
	expect("granted max_inline_data", cap.max_inline_data + 1,
	       sent((struct load){1, 1, cap.max_inline_data + 1}), EINVAL);
	expect("granted max_recv_sge", cap.max_recv_sge, received((struct load){1, cap.max_recv_sge}),
	       0);
	expect("granted max_recv_sge", cap.max_recv_sge + 1,
	       received((struct load){1, cap.max_recv_sge + 1}), EINVAL);
	expect("granted max_recv_wr", cap.max_recv_wr, received((struct load){cap.max_recv_wr}), 0);
	expect("granted max_recv_wr", cap.max_recv_wr + 1,
	       received((struct load){cap.max_recv_wr + 1}), ENOMEM);
}

/* --- other objects by their sizes --- */

static int cqe(uint64_t n)
{
	struct ibv_cq *made = ibv_create_cq(context, (int)n, NULL, NULL, 0);

	return made ? ibv_destroy_cq(made) : errno;
}

static int resized(uint64_t n)
{
	struct ibv_cq *made = ibv_create_cq(context, 1, NULL, NULL, 0);
	int rc;

	CHECK(made);
	rc = ibv_resize_cq(made, (int)n);
	CHECK(!ibv_destroy_cq(made));
	return rc;
}

static int last_vector(uint64_t vector)
{
	struct ibv_cq *made = ibv_create_cq(context, 1, NULL, NULL, (int)vector);

	return made ? ibv_destroy_cq(made) : errno;
}

static int moderation(uint64_t count, uint64_t period)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
					  .moderate = {(uint16_t)count, (uint16_t)period}};

	return ibv_modify_cq(cq, &attr);
}

static int cq_count(uint64_t n)
{
	return moderation(n, 0);
}

static int cq_period(uint64_t n)
{
	return moderation(1, n);
}

static int srq_with(struct ibv_srq_init_attr_ex attr)
{
	struct ibv_srq *srq;

	attr.comp_mask |= IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
	attr.pd = pd;
	srq = ibv_create_srq_ex(context, &attr);
	return srq ? ibv_destroy_srq(srq) : errno;
}

static int srq_wr(uint64_t n)
{
	return srq_with((struct ibv_srq_init_attr_ex){.attr = {.max_wr = (uint32_t)n, .max_sge = 1}});
}

static int srq_sge(uint64_t n)
{
	return srq_with((struct ibv_srq_init_attr_ex){.attr = {.max_wr = 1, .max_sge = (uint32_t)n}});
}

static int tags(uint64_t num, uint64_t ops)
{
	return srq_with((struct ibv_srq_init_attr_ex){
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.cq = cq,
		.tm_cap = {.max_num_tags = (uint32_t)num, .max_ops = (uint32_t)ops},
	});
}

static int num_tags(uint64_t n)
{
	return tags(n, 1);
}

static int tag_ops(uint64_t n)
{
	return tags(1, n);
}

static struct ibv_srq *small_srq(void)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 3, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &attr);

	CHECK(srq && attr.attr.max_wr == 3);
	return srq;
}

static int modified_srq(struct ibv_srq_attr attr, int mask)
{
	struct ibv_srq *srq = small_srq();
	int rc = ibv_modify_srq(srq, &attr, mask);

	CHECK(!ibv_destroy_srq(srq));
	return rc;
}

static int srq_resized(uint64_t n)
{
	return modified_srq((struct ibv_srq_attr){.max_wr = (uint32_t)n}, IBV_SRQ_MAX_WR);
}

static int srq_armed(uint64_t n)
{
	return modified_srq((struct ibv_srq_attr){.srq_limit = (uint32_t)n}, IBV_SRQ_LIMIT);
}

static int srq_filled(uint64_t n)
{
	struct ibv_recv_wr wr = {0}, *bad;
	struct ibv_srq *srq = small_srq();
	int rc = 0;

	while (n-- && !rc)
		rc = ibv_post_srq_recv(srq, &wr, &bad);
	CHECK(!ibv_destroy_srq(srq));
	return rc;
}

static void try_srq(void)
{
	bool resizes = most->device_cap_flags & IBV_DEVICE_SRQ_RESIZE;
	uint64_t limit = (uint64_t)most->max_srq_wr;

	expect("max_srq_wr of resize", limit, srq_resized(limit), resizes ? 0 : EINVAL);
	expect("max_srq_wr of resize", limit + 1, srq_resized(limit + 1), EINVAL);
	expect("srq_limit", 3, srq_armed(3), 0);
	expect("srq_limit", 4, srq_armed(4), EINVAL);
	expect("granted max_wr of an SRQ", 3, srq_filled(3), 0);
	expect("granted max_wr of an SRQ", 4, srq_filled(4), ENOMEM);
}

static int dm_size(uint64_t n)
{
	struct ibv_alloc_dm_attr attr = {.length = n};
	struct ibv_dm *dm = ibv_alloc_dm(context, &attr);

	return dm ? ibv_free_dm(dm) : errno;
}

/* memory of which no page is touched */
static int mr_size(uint64_t n)
{
	struct ibv_mr *made = ibv_reg_mr(pd, (void *)4096, n, 0);

	return made ? ibv_dereg_mr(made) : errno;
}

static int port_number(uint64_t n)
{
	struct ibv_port_attr attr;

	return ibv_query_port(context, (uint8_t)n, &attr);
}

static int queried_pkey(uint64_t last)
{
	__be16 pkey;

	return ibv_query_pkey(context, 1, (int)last, &pkey) ? errno : 0;
}

static int queried_gid(uint64_t last)
{
	union ibv_gid gid;

	return ibv_query_gid(context, 1, (int)last, &gid) ? errno : 0;
}

static bool has_rc, is_ethernet;

static void try_sizes(uint32_t max_inline, uint32_t max_inline_ud)
{
	const struct {
		const char *name;
		int (*with)(uint64_t value);
		uint64_t limit;
		bool of_rc, of_infiniband;
	} rows[] = {
		{"max_qp_wr of send", send_wr, (uint64_t)most->max_qp_wr},
		{"max_qp_wr of receive", recv_wr, (uint64_t)most->max_qp_wr},
		{"max_sge of send", send_sge, (uint64_t)most->max_sge},
		{"max_sge of receive", recv_sge, (uint64_t)most->max_sge},
		{"max_sge_rd", read_sge, (uint64_t)most->max_sge_rd, true},
		{"max_inline_data", inline_rc, max_inline, true},
		{"max_inline_data_ud", inline_ud, max_inline_ud},
		{"max_qp_rd_atom", rd_atom, (uint64_t)most->max_qp_rd_atom, true},
		{"max_qp_init_rd_atom", init_rd_atom, (uint64_t)most->max_qp_init_rd_atom, true},
		{"max_msg_sz", message, port.max_msg_sz, true},
		{"max_cqe", cqe, (uint64_t)most->max_cqe},
		{"max_cqe of resize", resized, (uint64_t)most->max_cqe},
		{"num_comp_vectors", last_vector, (uint64_t)context->num_comp_vectors - 1},
		{"max_mtu", path_mtu, port.max_mtu, true},
		{"pkey_tbl_len", pkey_index, port.pkey_tbl_len - 1u, true},
		{"pkey_tbl_len of query", queried_pkey, port.pkey_tbl_len - 1u},
		/* RoCE refuses an entry without a GID, as the kernel does */
		{"gid_tbl_len", gid_index, (uint64_t)port.gid_tbl_len - 1, .of_infiniband = true},
		{"gid_tbl_len of query", queried_gid, (uint64_t)port.gid_tbl_len - 1},
		{"phys_port_cnt", port_number, most->phys_port_cnt},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if ((rows[i].of_rc && !has_rc) || (rows[i].of_infiniband && is_ethernet))
			continue;
		expect(rows[i].name, rows[i].limit, rows[i].with(rows[i].limit), 0);
		expect(rows[i].name, rows[i].limit + 1, rows[i].with(rows[i].limit + 1), EINVAL);
	}
	if (most->max_mr_size < UINT64_MAX / 2) {
		expect("max_mr_size", most->max_mr_size, mr_size(most->max_mr_size), 0);
		expect("max_mr_size", most->max_mr_size + 1, mr_size(most->max_mr_size + 1), EINVAL);
	}
	/* A16: RoCE has no partition but the default one */
	expect_number("max_pkeys", port.pkey_tbl_len, is_ethernet ? 1 : most->max_pkeys);
}

/* a limit of 0: the device has none of these */
static void try_features(void)
{
	const struct {
		const char *name;
		int (*with)(uint64_t value);
		uint64_t limit;
	} rows[] = {
		{"max_srq_wr", srq_wr, (uint64_t)most->max_srq_wr},
		{"max_srq_sge", srq_sge, (uint64_t)most->max_srq_sge},
		{"max_num_tags", num_tags, device.tm_caps.max_num_tags},
		{"max_ops", tag_ops, device.tm_caps.max_ops},
		{"max_dm_size", dm_size, device.max_dm_size},
		{"max_cq_count", cq_count, device.cq_mod_caps.max_cq_count},
		{"max_cq_period", cq_period, device.cq_mod_caps.max_cq_period},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t limit = rows[i].limit;

		if (!limit) {
			expect(rows[i].name, 1, rows[i].with(1), EOPNOTSUPP);
			continue;
		}
		expect(rows[i].name, limit, rows[i].with(limit), 0);
		/* the arguments of ibv_modify_cq() have 16 bits */
		if (limit != UINT16_MAX)
			expect(rows[i].name, limit + 1, rows[i].with(limit + 1), EINVAL);
	}
}

/* --- numbers of objects --- */

static void *a_pd(unsigned i)
{
	return ibv_alloc_pd(context);
}

static int no_pd(void *made)
{
	return ibv_dealloc_pd(made);
}

static void *a_cq(unsigned i)
{
	return ibv_create_cq(context, 1, NULL, NULL, 0);
}

static int no_cq(void *made)
{
	return ibv_destroy_cq(made);
}

static void *a_mr(unsigned i)
{
	return ibv_reg_mr(pd, buffer, 8, 0);
}

static int no_mr(void *made)
{
	return ibv_dereg_mr(made);
}

static void *a_mw(unsigned i)
{
	return ibv_alloc_mw(pd, IBV_MW_TYPE_1);
}

static int no_mw(void *made)
{
	return ibv_dealloc_mw(made);
}

static void *an_srq(unsigned i)
{
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};

	return ibv_create_srq(pd, &attr);
}

static int no_srq(void *made)
{
	return ibv_destroy_srq(made);
}

static void *a_qp(unsigned i)
{
	return try_qp(IBV_QPT_UD, (struct ibv_qp_cap){0});
}

static int no_qp(void *made)
{
	return ibv_destroy_qp(made);
}

static void *an_ah(unsigned i)
{
	struct ibv_ah_attr attr = to_self();

	return ibv_create_ah(pd, &attr);
}

static int no_ah(void *made)
{
	return ibv_destroy_ah(made);
}

/* QPs that are attached to groups: the limit that is tried decides how they are spread */
static struct ibv_qp *member[MOST_OBJECTS];
static unsigned per_group, attached[MOST_OBJECTS];

static union ibv_gid group_of(unsigned i)
{
	return (union ibv_gid){.raw = {0xff, 0x12, [14] = (uint8_t)(i / per_group), 1}};
}

static void *an_attachment(unsigned i)
{
	union ibv_gid gid = group_of(i);
	int rc = ibv_attach_mcast(member[i % per_group], &gid, 0xc001);

	attached[i] = i;
	errno = rc;
	return rc ? NULL : &attached[i];
}

static int no_attachment(void *made)
{
	unsigned i = *(unsigned *)made;
	union ibv_gid gid = group_of(i);

	return ibv_detach_mcast(member[i % per_group], &gid, 0xc001);
}

/* QPs that each have max_qp_rd_atom, or what is left */
static void *resources(unsigned i)
{
	struct ibv_qp *qp = try_qp(IBV_QPT_RC, (struct ibv_qp_cap){0});

	CHECK(qp);
	errno = raise_qp(qp, (struct ibv_qp_attr){.max_dest_rd_atomic = 1}, false);
	if (!errno)
		return qp;
	CHECK(errno == ENOMEM && !ibv_destroy_qp(qp));
	errno = ENOMEM;
	return NULL;
}

/** struct kind - objects that are counted; @has: the program has so many already */
struct kind {
	const char *name;
	void *(*make)(unsigned i);
	int (*end)(void *made);
	int limit, has;
};

static void try_number(const struct kind *k)
{
	void *made[MOST_OBJECTS];
	unsigned n = 0, wanted = (unsigned)(k->limit - k->has);

	if (!k->limit) {
		expect(k->name, 1, k->make(0) ? 0 : errno, EOPNOTSUPP);
		return;
	}
	CHECK(k->limit >= k->has && wanted < MOST_OBJECTS);
	while (n < MOST_OBJECTS && (made[n] = k->make(n)))
		n++;
	expect(k->name, n, n < MOST_OBJECTS ? errno : 0, ENOMEM);
	expect_number(k->name, n, wanted);
	CHECK(n);
	CHECK(!k->end(made[n - 1])); /* makes room for one */
	made[n - 1] = k->make(n - 1);
	expect(k->name, n, made[n - 1] ? 0 : errno, 0);
	while (n--)
		if (made[n])
			CHECK(!k->end(made[n]));
}

static void try_numbers(void)
{
	const struct kind kinds[] = {
		{"max_pd", a_pd, no_pd, most->max_pd, 1},
		{"max_cq", a_cq, no_cq, most->max_cq, 1},
		{"max_mr", a_mr, no_mr, most->max_mr, 1},
		{"max_mw", a_mw, no_mw, most->max_mw},
		{"max_srq", an_srq, no_srq, most->max_srq},
		{"max_qp", a_qp, no_qp, most->max_qp},
		{"max_ah", an_ah, no_ah, most->max_ah},
	};
	const struct kind total = {"max_res_rd_atom", resources, no_qp, most->max_res_rd_atom};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		try_number(&kinds[i]);
	if (has_rc)
		try_number(&total);
}

/* three ways to reach a limit: one QP in each group; all QPs in one; as many as there may be */
static void try_multicast(void)
{
	const struct kind groups = {"max_mcast_grp", an_attachment, no_attachment,
				    most->max_mcast_grp},
			  qps = {"max_mcast_qp_attach", an_attachment, no_attachment,
				 most->max_mcast_qp_attach},
			  all = {"max_total_mcast_qp_attach", an_attachment, no_attachment,
				 most->max_total_mcast_qp_attach};
	int n = most->max_mcast_qp_attach + 1;

	for (int i = 0; i < n; i++)
		CHECK((member[i] = a_qp(0)));
	per_group = 1;
	try_number(&groups);
	per_group = (unsigned)n;
	try_number(&qps);
	per_group = n > 1 ? (unsigned)n - 1 : 1;
	try_number(&all);
	while (n--)
		CHECK(!ibv_destroy_qp(member[n]));
}

/* --- Ethernet --- */

static void *a_wq(unsigned i)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq};

	return ibv_create_wq(context, &attr);
}

static int no_wq(void *made)
{
	return ibv_destroy_wq(made);
}

static struct ibv_wq *queue[1 << 10];

static void *table_of(uint32_t log_size)
{
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = log_size, .ind_tbl = queue};

	return ibv_create_rwq_ind_table(context, &attr);
}

static void *a_table(unsigned i)
{
	return table_of(0);
}

static int no_table(void *made)
{
	return ibv_destroy_rwq_ind_table(made);
}

static int table_log_size(uint64_t n)
{
	void *made = table_of((uint32_t)n);

	return made ? no_table(made) : errno;
}

static void *a_raw_qp(unsigned i)
{
	return try_qp(IBV_QPT_RAW_PACKET, (struct ibv_qp_cap){0});
}

static int rate(uint64_t kbps)
{
	struct ibv_qp *qp = a_raw_qp(0);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .rate_limit = (uint32_t)kbps};
	int rc;

	CHECK(qp);
	move_raw_qp(qp, IBV_QPS_INIT);
	move_raw_qp(qp, IBV_QPS_RTR);
	rc = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT);
	CHECK(!ibv_destroy_qp(qp));
	return rc;
}

static void try_ethernet(void)
{
	const struct kind tables = {"max_rwq_indirection_tables", a_table, no_table,
				    (int)device.rss_caps.max_rwq_indirection_tables},
			  queues = {"max_wq_type_rq", a_wq, no_wq, (int)device.max_wq_type_rq},
			  raw = {"max_raw_ethy_qp", a_raw_qp, no_qp, most->max_raw_ethy_qp};
	const struct ibv_packet_pacing_caps *pacing = &device.packet_pacing_caps;
	uint64_t log_size = 0;

	try_number(&queues);
	try_number(&raw);
	CHECK((queue[0] = a_wq(0)));
	for (size_t i = 1; i < sizeof(queue) / sizeof(*queue); i++)
		queue[i] = queue[0];
	try_number(&tables);
	while (2u << log_size <= device.rss_caps.max_rwq_indirection_table_size)
		log_size++;
	expect("max_rwq_indirection_table_size", log_size, table_log_size(log_size), 0);
	expect("max_rwq_indirection_table_size", log_size + 1, table_log_size(log_size + 1), EINVAL);
	CHECK(!ibv_destroy_wq(queue[0]));
	expect("qp_rate_limit_max", pacing->qp_rate_limit_max, rate(pacing->qp_rate_limit_max), 0);
	expect("qp_rate_limit_max", pacing->qp_rate_limit_max + 1,
	       rate(pacing->qp_rate_limit_max + 1), EINVAL);
}

/* --- capabilities --- */

static int xrc_domain(void)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
					  .fd = -1, .oflags = O_CREAT};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(context, &attr);

	return xrcd ? ibv_close_xrcd(xrcd) : errno;
}

static int mw_of(enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, type);

	return mw ? ibv_dealloc_mw(mw) : errno;
}

static int rule(void)
{
	struct ibv_flow_attr attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(attr), .port = 1};
	struct ibv_qp *qp = a_raw_qp(0);
	struct ibv_flow *flow;
	int rc;

	if (!qp)
		return errno;
	move_raw_qp(qp, IBV_QPS_INIT);
	flow = ibv_create_flow(qp, &attr);
	rc = flow ? ibv_destroy_flow(flow) : errno;
	CHECK(!ibv_destroy_qp(qp));
	return rc;
}

static int with_tso(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq, .pd = pd, .max_tso_header = 64,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER};
	struct ibv_qp *qp = ibv_create_qp_ex(context, &init);

	return qp ? ibv_destroy_qp(qp) : errno;
}

/* what a bit says that the device has, or has not */
static void try_flags(void)
{
	const uint64_t type_2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	uint64_t flags = most->device_cap_flags;

	expect("DEVICE_XRC", flags, xrc_domain(), flags & IBV_DEVICE_XRC ? 0 : EOPNOTSUPP);
	expect("DEVICE_MEM_WINDOW", flags, mw_of(IBV_MW_TYPE_1),
	       flags & IBV_DEVICE_MEM_WINDOW ? 0 : EOPNOTSUPP);
	expect("DEVICE_MEM_WINDOW_TYPE_2", flags, mw_of(IBV_MW_TYPE_2),
	       flags & type_2 ? 0 : EOPNOTSUPP);
	expect("DEVICE_MANAGED_FLOW_STEERING", flags, rule(),
	       flags & IBV_DEVICE_MANAGED_FLOW_STEERING ? 0 : EOPNOTSUPP);
	expect("max_tso", device.tso_caps.max_tso, with_tso(),
	       device.tso_caps.max_tso ? 0 : EOPNOTSUPP);
}

static void try_capabilities(void)
{
	bool odp = device.odp_caps.general_caps & IBV_ODP_SUPPORT;
	bool implicit = device.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT;
	struct ibv_cq_init_attr_ex timed = {.cqe = 1,
					    .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
	struct ibv_mr *made = ibv_reg_mr(pd, buffer, 8, IBV_ACCESS_ON_DEMAND);
	struct ibv_cq_ex *clock;

	expect("ODP_SUPPORT", odp, made ? ibv_dereg_mr(made) : errno, odp ? 0 : EOPNOTSUPP);
	made = ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_ON_DEMAND);
	expect("ODP_SUPPORT_IMPLICIT", implicit, made ? ibv_dereg_mr(made) : errno,
	       implicit ? 0 : EOPNOTSUPP);
	made = ibv_reg_mr(pd, buffer, 8, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	expect("atomic_cap", most->atomic_cap, made ? ibv_dereg_mr(made) : errno,
	       most->atomic_cap == IBV_ATOMIC_NONE ? EOPNOTSUPP : 0);
	clock = ibv_create_cq_ex(context, &timed);
	expect("completion_timestamp_mask", device.completion_timestamp_mask,
	       clock ? ibv_destroy_cq(ibv_cq_ex_to_cq(clock)) : errno,
	       device.completion_timestamp_mask ? 0 : EOPNOTSUPP);
}

int main(int argc, char **argv)
{
	struct ibv_qp *qp;

	CHECK(argc == 3);
	context = open_first_device();
	CHECK(!ibv_query_device_ex(context, NULL, &device));
	CHECK(!ibv_query_port(context, 1, &port));
	CHECK((pd = ibv_alloc_pd(context)) && (cq = ibv_create_cq(context, 16, NULL, NULL, 0)));
	mr = ibv_reg_mr(pd, buffer, sizeof(buffer), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
							    IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	qp = try_qp(IBV_QPT_RC, (struct ibv_qp_cap){0});
	CHECK(qp || errno == EOPNOTSUPP);
	has_rc = qp;
	is_ethernet = port.link_layer == IBV_LINK_LAYER_ETHERNET;
	usual = qp ? IBV_QPT_RC : IBV_QPT_UD;
	CHECK(!qp || !ibv_destroy_qp(qp));
	try_sizes((uint32_t)atoi(argv[1]), (uint32_t)atoi(argv[2]));
	if (has_rc)
		try_posts();
	try_features();
	if (most->max_srq)
		try_srq();
	try_numbers();
	try_multicast();
	if (device.rss_caps.supported_qpts)
		try_ethernet();
	try_capabilities();
	try_flags();
	printf("%u tried, %u not kept\n", tried, broken);
	return broken != 0;
}
