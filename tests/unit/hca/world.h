/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An adapter whose fabric is a cable (cable.h), programs with rings of their own, and
 * the packets that they send and get.
 */
#ifndef TEST_HCA_WORLD_H
#define TEST_HCA_WORLD_H

#include "../test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/devpage.h"
#include "abi/ring.h"
#include "abi/session.h"
#include "base/bytes.h"
#include "cable.h"
#include "core/uobject.h"
#include "hca/hca.h"
#include "hca/private.h"
#include "runtime/sim/rt_sim.h"

/* --- the adapter --- */

struct world {
	struct rt *rt;
	struct hca_set *set;
	struct hca *hca;
	struct ib_device *device;
};

static inline struct fabric *the_fabric(void)
{
	return (void *)&cable;
}

static inline void plug(void)
{
	struct ag_node_config config = {.kind = WIRE_NODE_CA, .num_ports = 2, .guid = 0x1234,
					.desc = "n1 HCA-1"};
	size_t bytes = ag_node_size(&config);

	memset(&cable, 0, sizeof(cable));
	cable.ag_memory = calloc(1, bytes);
	cable.ag = ag_node_init(&config, cable.ag_memory);
	cable.node.kind = TOPO_CA;
	cable.node.num_ports = 2;
	strcpy(cable.node.name, "n1");
	cable.topo = (struct topology){.node = &cable.node, .num_nodes = 1};
	for (int p = 1; p <= 2; p++) {
		cable.ag->port[p].state = IB_PORT_ACTIVE;
		cable.ag->port[p].lid = (uint16_t)(LID * p);
		cable.ag->port[p].lmc = 1;
		cable.ag->port[p].neighbor_mtu_enc = cable.ag->port[p].mtu_cap_enc;
	}
}

static inline int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	static const bool polled = true;

	plug();
	if (rt_posix_create(&w->rt) || hca_set_create(w->rt, the_fabric(), &w->set))
		return -1;
	/* the same tests of an adapter that raises no interrupt: meson.build */
	hca_set_polled(w->set, getenv("POLLED") ? &polled : NULL);
	if (hca_create(w->set, 0, &w->hca))
		return -1;
	w->device = ib_device_get_by_name(w->rt, "n1", "softib0");
	*state = w;
	return w->device ? 0 : -1;
}

static inline int teardown(void **state)
{
	struct world *w = *state;

	if (w->hca)
		hca_destroy(w->hca);
	hca_set_destroy(w->set);
	rt_posix_destroy(w->rt);
	free(cable.ag_memory);
	free(w);
	return 0;
}

static inline void turn(struct world *w)
{
	for (int i = 0; i < 5; i++)
		rt_posix_turn(w->rt);
}

/* --- a program with one UD QP --- */

struct program {
	struct ib_ucontext *context;
	struct abi_ring_tx tx;
	struct abi_ring_rx rx;
	void *memory;
	size_t bytes;
	struct ib_qp *qp;
	bool fatal;
};

static inline void on_fatal(struct ib_ucontext *context)
{
	((struct program *)context->priv)->fatal = true;
}

static inline void *object(struct ib_ucontext *context, enum ib_uobject_type type,
		    void *(*make)(struct ib_uobject *uobject, void *arg), void *arg)
{
	struct ib_uobject *u = ib_uobject_alloc(context, type);
	void *o = make(u, arg);

	assert_false(IS_ERR(o));
	ib_uobject_commit(u, o);
	return o;
}

static inline void *make_pd(struct ib_uobject *u, void *arg)
{
	return ib_alloc_pd_user(u);
}

static inline void *make_cq(struct ib_uobject *u, void *arg)
{
	return ib_create_cq_user(u, &(struct ib_cq_init_attr){.cqe = 8});
}

static inline void *make_qp(struct ib_uobject *u, void *arg)
{
	struct ib_qp_init_attr *attr = arg;

	return ib_create_qp_user(u, attr->qp_context, attr);
}

static inline void make_program(struct world *w, struct program *p)
{
	const struct abi_context_resp *resp;
	struct ib_qp_init_attr attr = {.qp_type = IB_QPT_UD};

	memset(p, 0, sizeof(*p));
	p->context = ib_ucontext_open(w->device, 1, "prog");
	assert_false(IS_ERR(p->context));
	p->context->priv = p;
	p->context->fatal = on_fatal;
	resp = p->context->driver_resp;
	p->bytes = resp->to_engine_offset + abi_ring_bytes(resp->ring_bytes);
	p->memory = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			 p->context->driver_fds[ABI_FD_LINK], 0);
	assert_ptr_not_equal(p->memory, MAP_FAILED);
	p->tx = (struct abi_ring_tx){
		.ring = (void *)((char *)p->memory + resp->to_daemon_offset),
		.size = resp->ring_bytes};
	p->rx = (struct abi_ring_rx){
		.ring = (void *)((char *)p->memory + resp->to_engine_offset),
		.size = resp->ring_bytes};
	attr.qp_context = object(p->context, IB_UOBJECT_PD, make_pd, NULL);
	attr.send_cq = attr.recv_cq = object(p->context, IB_UOBJECT_CQ, make_cq, NULL);
	p->qp = object(p->context, IB_UOBJECT_QP, make_qp, &attr);
}

static inline void end_program(struct program *p)
{
	munmap(p->memory, p->bytes);
	ib_ucontext_close(p->context);
}

/* a datagram of @bytes payload, as @p would send it to QP @dest */
static inline struct wire_packet datagram(const struct program *p, uint32_t dest)
{
	return (struct wire_packet){
		.lrh = {.lnh = WIRE_LNH_BTH, .slid = LID, .dlid = 77},
		.bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY, .pkey = 0xffff, .dest_qpn = dest},
		.deth = {.qkey = 0x11, .src_qpn = p ? p->qp->qp_num : 5},
		.payload_bytes = 32,
	};
}

static inline size_t encode(struct wire_packet pkt, void *buf)
{
	int header = wire_packet_encode(&pkt, buf);

	assert_true(header > 0);
	memset((char *)buf + header, 0x5a, pkt.payload_bytes);
	return (size_t)header + pkt.payload_bytes;
}

static inline void program_sends(struct program *p, struct wire_packet pkt)
{
	uint8_t buf[512];
	size_t len = encode(pkt, buf);
	void *room = abi_ring_reserve(&p->tx, len);

	assert_non_null(room);
	memcpy(room, buf, len);
	abi_ring_commit(&p->tx, len);
	if (abi_ring_publish(&p->tx))
		assert_int_equal(eventfd_write(p->context->driver_fds[ABI_FD_DOORBELL], 1), 0);
}

static inline int arrives(int port, struct wire_packet pkt)
{
	uint8_t buf[512];
	size_t len = encode(pkt, buf);
	struct fab_packet in;

	assert_int_equal(fab_packet_decode(&in, buf, len), 0);
	return cable.sink[port].deliver(cable.sink[port].ctx, &in);
}

static inline int program_received(struct program *p)
{
	size_t len;
	int n = 0;

	while (abi_ring_peek(&p->rx, &len)) {
		abi_ring_consume(&p->rx);
		n++;
	}
	abi_ring_release(&p->rx);
	return n;
}

#endif
