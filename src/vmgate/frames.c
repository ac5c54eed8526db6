/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The guest's Ethernet interface: frames that QEMU sends and receives as datagrams are those of a raw
 * packet queue pair of the node's port. Three rules lead frames to it:
 *
 *  - to the guest's MAC address
 *  - to the solicited-node group of that address (RFC 4291, 2.7.1): the guest's alone, since the node
 *    has the guest's IPv6 addresses as well, and would answer for them
 *  - to any other group: a copy (DONT_TRAP), because the node listens, too
 *
 * The node's own frames and those of the guest, which come back if they are to a group, are left out.
 * There is no flow control in Ethernet: a frame that finds no room is lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "vmgate/gate.h"
#include "wire/frame.h"

#define FRAME_MAX 9216
#define RECEIVES  128
#define SENDS	  64
#define AT_ONCE	  32 /* completions or datagrams */
#define SEND_BIT  0x100u /* in the id of a work request: it is a send */
#define GROUP_BIT 1

struct gate_frames {
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_flow *flow[3];
	uint8_t own_mac[GATE_MAC_BYTES]; /* the node's */
	unsigned int num_free, free[SENDS];
	uint8_t buffer[RECEIVES + SENDS][FRAME_MAX];
};

static struct ibv_sge sge_of(const struct gate_frames *f, unsigned int i, uint32_t bytes)
{
	return (struct ibv_sge){(uintptr_t)f->buffer[i], bytes, f->mr->lkey};
}

static int post_receive(struct gate_frames *f, unsigned int i)
{
	struct ibv_sge sge = sge_of(f, i, FRAME_MAX);
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(f->qp, &wr, &bad);
}

/* --- from the guest --- */

static void send_frame(struct gate_frames *f, unsigned int slot, uint32_t bytes)
{
	struct ibv_sge sge = sge_of(f, RECEIVES + slot, bytes);
	struct ibv_send_wr wr = {.wr_id = slot | SEND_BIT, .sg_list = &sge, .num_sge = 1,
				 .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad;

	if (ibv_post_send(f->qp, &wr, &bad))
		f->free[f->num_free++] = slot;
}

static void on_frame(struct ev_loop *loop, ev_io *io, int events)
{
	struct gate *gate = io->data;
	struct gate_frames *f = gate->frames;

	for (unsigned int n = 0; n < AT_ONCE && f->num_free; n++) {
		unsigned int slot = f->free[f->num_free - 1];
		ssize_t bytes = recv(gate->frames_fd, f->buffer[RECEIVES + slot], FRAME_MAX,
				     MSG_DONTWAIT | MSG_TRUNC);

		if (bytes < 0)
			return;
		if (bytes > FRAME_MAX || bytes < WIRE_FRAME_MIN)
			continue;
		f->num_free--;
		send_frame(f, slot, (uint32_t)bytes);
	}
	if (!f->num_free) /* until a send completes */
		ev_io_stop(loop, io);
}

/* --- to the guest --- */

static void received(struct gate *gate, const struct ibv_wc *wc)
{
	struct gate_frames *f = gate->frames;
	const uint8_t *frame = f->buffer[wc->wr_id], *source = frame + GATE_MAC_BYTES;

	if (wc->status != IBV_WC_SUCCESS)
		return;
	if (memcmp(source, f->own_mac, GATE_MAC_BYTES) && memcmp(source, gate->opt.mac, GATE_MAC_BYTES))
		send(gate->frames_fd, frame, wc->byte_len, MSG_DONTWAIT | MSG_NOSIGNAL);
	post_receive(f, (unsigned int)wc->wr_id);
}

static void on_completions(struct ev_loop *loop, ev_io *io, int events)
{
	struct gate *gate = io->data;
	struct gate_frames *f = gate->frames;
	struct ibv_wc wc[AT_ONCE];
	struct ibv_cq *cq;
	void *context;
	int n;

	if (ibv_get_cq_event(f->channel, &cq, &context))
		return;
	ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(cq, 0);
	while ((n = ibv_poll_cq(cq, AT_ONCE, wc)) > 0) {
		for (int i = 0; i < n; i++)
			if (wc[i].wr_id & SEND_BIT)
				f->free[f->num_free++] = (unsigned int)(wc[i].wr_id & ~SEND_BIT);
			else
				received(gate, &wc[i]);
	}
	if (f->num_free)
		ev_io_start(loop, &gate->frames_io);
}

/* --- setting up --- */

static struct ibv_flow *add_rule(struct gate_frames *f, uint8_t port, uint16_t priority, uint32_t flags,
				 const uint8_t *mac, const uint8_t *mask)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .priority = priority,
			 .num_of_specs = 1, .port = port, .flags = flags},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
	};

	memcpy(rule.eth.val.dst_mac, mac, GATE_MAC_BYTES);
	memcpy(rule.eth.mask.dst_mac, mask, GATE_MAC_BYTES);
	return ibv_create_flow(f->qp, &rule.attr);
}

static int add_rules(struct gate_frames *f, const struct gate_options *opt)
{
	static const uint8_t all[GATE_MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	static const uint8_t group[GATE_MAC_BYTES] = {GROUP_BIT};
	const uint8_t solicited[GATE_MAC_BYTES] = {0x33, 0x33, 0xff, opt->mac[3], opt->mac[4], opt->mac[5]};

	f->flow[0] = add_rule(f, opt->port, 0, 0, opt->mac, all);
	f->flow[1] = add_rule(f, opt->port, 0, 0, solicited, all);
	f->flow[2] = add_rule(f, opt->port, 1, IBV_FLOW_ATTR_FLAGS_DONT_TRAP, group, group);
	return f->flow[0] && f->flow[1] && f->flow[2] ? 0 : -1;
}

static int create_queues(struct gate_frames *f, struct ibv_context *context)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = {.max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1},
	};

	f->pd = ibv_alloc_pd(context);
	f->channel = ibv_create_comp_channel(context);
	if (!f->pd || !f->channel)
		return -1;
	f->cq = ibv_create_cq(context, SENDS + RECEIVES, NULL, f->channel, 0);
	f->mr = ibv_reg_mr(f->pd, f->buffer, sizeof(f->buffer), IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = f->cq;
	f->qp = f->cq && f->mr ? ibv_create_qp(f->pd, &init) : NULL;
	return f->qp && !ibv_req_notify_cq(f->cq, 0) ? 0 : -1;
}

static int start_queues(struct gate_frames *f, uint8_t port)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = port};

	if (ibv_modify_qp(f->qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		return -1;
	for (unsigned int i = 0; i < RECEIVES; i++)
		if (post_receive(f, i))
			return -1;
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(f->qp, &attr, IBV_QP_STATE))
		return -1;
	attr.qp_state = IBV_QPS_RTS;
	for (f->num_free = 0; f->num_free < SENDS; f->num_free++)
		f->free[f->num_free] = f->num_free;
	return ibv_modify_qp(f->qp, &attr, IBV_QP_STATE);
}

/* The first GID of a port of RoCE has the MAC address in it (A17.4.2; RFC 4291, appendix A). */
static int read_own_mac(struct gate *gate, uint8_t *mac)
{
	union ibv_gid gid;

	if (ibv_query_gid(gate->context, gate->opt.port, 0, &gid))
		return -1;
	memcpy(mac, gid.raw + 8, 3);
	memcpy(mac + 3, gid.raw + 13, 3);
	mac[0] ^= 2;
	return 0;
}

/* QEMU's OUI, and the end of the node's address, which differs between the ports of a fabric */
static void choose_mac(struct gate_options *opt, const uint8_t *own)
{
	static const uint8_t oui[3] = {0x52, 0x54, 0x00};

	if (opt->has_mac)
		return;
	memcpy(opt->mac, oui, sizeof(oui));
	memcpy(opt->mac + 3, own + 3, 3);
}

int gate_frames_open(struct gate *gate, int fd)
{
	struct gate_frames *f = gate->frames = calloc(1, sizeof(*f));

	if (!f)
		return gate_fail(ENOMEM, "no memory for frames");
	gate->frames_fd = fd;
	if (read_own_mac(gate, f->own_mac))
		return gate_fail(errno, "the port has no GIDs");
	choose_mac(&gate->opt, f->own_mac);
	if (create_queues(f, gate->context) || start_queues(f, gate->opt.port) || add_rules(f, &gate->opt))
		return gate_fail(errno, "the port carries no frames of programs");
	ev_io_init(&gate->frames_io, on_frame, fd, EV_READ);
	gate->frames_io.data = gate;
	ev_io_start(gate->loop, &gate->frames_io);
	ev_io_init(&gate->completions_io, on_completions, f->channel->fd, EV_READ);
	gate->completions_io.data = gate;
	ev_io_start(gate->loop, &gate->completions_io);
	return 0;
}

void gate_frames_close(struct gate *gate)
{
	struct gate_frames *f = gate->frames;

	ev_io_stop(gate->loop, &gate->frames_io);
	ev_io_stop(gate->loop, &gate->completions_io);
	if (!f)
		return;
	for (unsigned int i = 0; i < 3; i++)
		if (f->flow[i])
			ibv_destroy_flow(f->flow[i]);
	if (f->qp)
		ibv_destroy_qp(f->qp);
	if (f->mr)
		ibv_dereg_mr(f->mr);
	if (f->cq)
		ibv_destroy_cq(f->cq);
	if (f->channel)
		ibv_destroy_comp_channel(f->channel);
	if (f->pd)
		ibv_dealloc_pd(f->pd);
	free(f);
}
