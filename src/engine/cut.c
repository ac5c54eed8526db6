/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Segmentation offload: one request of a UD QP has the payload of a large TCP segment of IPoIB
 * (RFC 4391), and a header that each of its packets begins with: the encapsulation, IP and TCP
 * (IBV_WR_TSO, which is Linux' IB_WR_LSO). All its packets are assembled in one piece of the
 * link's memory, a train. Route, partition and headers are looked up once for the train, which the
 * link forwards as one.
 *
 * The checksums of a single packet, for IBV_SEND_IP_CSUM, are computed here as well.
 */
#include <string.h>

#include "engine/private.h"
#include "runtime/rt.h"
#include "transport/guard.h"
#include "wire/inet.h"

#define ENCAPSULATION 4 /* RFC 4391 section 6: EtherType, reserved */
enum { IPV4 = 0x0800, IPV6 = 0x86dd };

/* Does a datagram of IPoIB have an IP packet of the version that its EtherType tells? */
static bool has_ip(const uint8_t *datagram, size_t bytes)
{
	return bytes > ENCAPSULATION &&
	       get_be16(datagram) == (wire_inet_is_v4(datagram + ENCAPSULATION) ? IPV4 : IPV6);
}

/* Most queue pairs that may cut never do. */
static bool has_header_memory(struct eng_qp *qp)
{
	const size_t bytes = tp_qp_header_bytes(qp->tp);

	if (bytes) {
		qp->header_memory = rt_alloc(bytes);
		tp_qp_give_headers(qp->tp, qp->header_memory);
	}
	return qp->header_memory;
}

int eng_describe_cut(struct eng_qp *qp, const struct ibv_send_wr *wr, struct tp_send_wr *out)
{
	const uint8_t *header = wr->tso.hdr;
	size_t bytes = wr->tso.hdr_sz, ip_bytes;

	if (!qp->init.max_header || !header || !has_ip(header, bytes) ||
	    wire_tcp_headers(header + ENCAPSULATION, bytes - ENCAPSULATION, &ip_bytes) !=
		    bytes - ENCAPSULATION)
		return -EINVAL;
	if (!has_header_memory(qp))
		return -ENOMEM;
	out->header = header;
	out->header_bytes = wr->tso.hdr_sz;
	out->mss_bytes = wr->tso.mss;
	return 0;
}

bool eng_finish_checksums(uint8_t *datagram, size_t bytes)
{
	return has_ip(datagram, bytes) &&
	       wire_inet_finish(datagram + ENCAPSULATION, bytes - ENCAPSULATION);
}

/** struct train - the packets of a request while they are assembled */
struct train {
	struct tp_packet_out *out;
	unsigned port_num;
	struct wire_tcp_part part;
	uint32_t left; /* bytes of payload */
	/* --- the next of them --- */
	unsigned piece;
	uint32_t at; /* in it */
};

/* Return: the bytes of a packet with @payload_bytes of the segment's payload, all headers included */
static size_t packet_bytes(const struct train *t, uint32_t payload_bytes)
{
	size_t routing = t->out->hdr.lrh.lnh == WIRE_LNH_GRH ? WIRE_GRH_BYTES : 0;

	return WIRE_LRH_BYTES + routing + WIRE_BTH_BYTES + WIRE_DETH_BYTES +
	       ALIGN_UP(t->out->header_bytes + payload_bytes, 4u);
}

/* Return: false: the memory of the payload is gone */
static bool copy_payload(struct train *t, uint8_t *to, uint32_t bytes)
{
	t->left -= bytes;
	while (bytes) {
		const uint8_t *from = t->out->piece[t->piece].ptr;
		uint32_t len = t->out->piece[t->piece].len, n = MIN(bytes, len - t->at);

		if (unlikely(!guard_load(to, from + t->at, n)))
			return false;
		to += n;
		bytes -= n;
		t->at += n;
		if (t->at == len) {
			t->piece++;
			t->at = 0;
		}
	}
	return true;
}

/* Return: the packet's end; NULL: the memory of its payload is gone */
static uint8_t *put_packet(struct train *t, uint8_t *to)
{
	struct tp_packet_out *out = t->out;
	struct wire_tcp_part *part = &t->part;
	uint32_t payload_bytes = MIN((uint32_t)out->mss_bytes, t->left);

	out->hdr.payload_bytes = out->header_bytes + payload_bytes;
	to += wire_packet_encode(&out->hdr, to);
	memcpy(to, out->header, out->header_bytes);
	if (unlikely(!copy_payload(t, to + out->header_bytes, payload_bytes)))
		return NULL;
	part->payload_bytes = payload_bytes;
	part->last = !t->left;
	wire_tcp_finish(to + ENCAPSULATION, part);
	to += out->hdr.payload_bytes;
	memset(to, 0, out->hdr.bth.pad_bytes);
	part->offset += payload_bytes;
	part->index++;
	out->hdr.bth.psn = psn_add(out->hdr.bth.psn, 1);
	return to + out->hdr.bth.pad_bytes;
}

static bool put_train(struct train *t, uint8_t *to)
{
	const struct tp_packet_out *out = t->out;

	t->part = (struct wire_tcp_part){.header_bytes = out->header_bytes - ENCAPSULATION};
	wire_tcp_headers(out->header + ENCAPSULATION, t->part.header_bytes, &t->part.ip_bytes);
	while (to && t->left)
		to = put_packet(t, to);
	return to;
}

void eng_send_train(struct engine *e, struct eng_qp *qp, struct tp_packet_out *out)
{
	const struct eng_link_ops *link = e->cfg.link_ops;
	struct train t = {.out = out, .left = out->hdr.payload_bytes};
	uint32_t whole = out->hdr.packets - 1u;
	size_t each, len;
	uint8_t *to;

	t.port_num = eng_fill_route(qp, out->av, &out->hdr);
	each = packet_bytes(&t, out->mss_bytes);
	len = whole * each + packet_bytes(&t, t.left - whole * out->mss_bytes);
	to = link->reserve_train(e->cfg.link, each, len);
	if (unlikely(!to)) { /* no memory: datagrams may get lost */
		e->stats.link_full++;
		return;
	}
	if (unlikely(!put_train(&t, to))) {
		eng_unsent(e, qp, out);
		return;
	}
	link->checked(e->cfg.link);
	link->commit(e->cfg.link, t.port_num, len);
	e->unflushed = true;
}
