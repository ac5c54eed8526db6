/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* How a connection begins (Hello, HelloAck) and how it ends. */
#include "sdp/sdp.h"

#include <errno.h>
#include <string.h>

#include "sdp/private.h"

int sdp_init(struct sdp *sdp, const struct sdp_config *config)
{
	if (config->slots < SDP_SLOTS_MIN || config->slots > SDP_SLOTS_MAX ||
	    config->rcv_bytes < SDP_RCV_BYTES_MIN || !config->max_adverts ||
	    (config->rcv_max && config->rcv_max < config->rcv_bytes) ||
	    config->max_adverts > SDP_ADVERTS_MAX)
		return -EINVAL;
	memset(sdp, 0, sizeof(*sdp));
	sdp->config = *config;
	sdp->slot_bytes = sdp->rcv_grant = config->rcv_bytes;
	sdp->posted = sdp->rx_limit = config->slots;
	sdp->tx_mode = sdp->rx_mode = WIRE_SDP_COMBINED; /* A4.6: the initial mode */
	return 0;
}

/* --- beginning --- */

static bool is_mapped_ipv4(const uint8_t ip[16])
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(ip, prefix, sizeof(prefix));
}

/* an address of HelloH: of IPv4, all but the last 4 bytes are zero */
static void put_ip(const uint8_t ip[16], bool ipv4, uint8_t out[16])
{
	memset(out, 0, 16);
	memcpy(out + (ipv4 ? 12 : 0), ip + (ipv4 ? 12 : 0), ipv4 ? 4 : 16);
}

static void get_ip(const uint8_t in[16], bool ipv4, uint8_t ip[16])
{
	memcpy(ip, in, 16);
	if (ipv4) {
		memset(ip, 0, 10);
		ip[10] = ip[11] = 0xff;
	}
}

void sdp_hello(struct sdp *sdp, const struct sdp_address *address, uint8_t *buf)
{
	const bool ipv4 = is_mapped_ipv4(address->src);
	struct wire_sdp_msg msg = {
		.bsdh = {.mid = WIRE_SDP_HELLO, .bufs = (uint16_t)sdp->posted},
		.hello = {.version = WIRE_SDP_VERSION,
			  .ip_version = ipv4 ? 4 : 6,
			  .max_adverts = sdp->config.max_adverts,
			  .desired_rcv_bytes = sdp->config.rcv_bytes,
			  .local_rcv_bytes = sdp->config.rcv_bytes,
			  .local_port = address->src_port},
	};

	put_ip(address->src, ipv4, msg.hello.src_ip);
	put_ip(address->dst, ipv4, msg.hello.dst_ip);
	wire_sdp_write(&msg, buf);
	sdp_note(sdp, SDP_TRACE_STATE, (int)sdp->state, SDP_HELLO_SENT);
	sdp->state = SDP_HELLO_SENT;
	sdp->active = true;
}

/* Take over what the first message of the peer says. Return: can this end live with it?
 */
static bool take_terms(struct sdp *sdp, const struct wire_sdp_msg *msg, uint8_t version,
		       uint32_t rcv_bytes, uint8_t max_adverts)
{
	if (WIRE_SDP_MAJOR(version) != WIRE_SDP_MAJOR(WIRE_SDP_VERSION) || !max_adverts ||
	    rcv_bytes < SDP_RCV_BYTES_MIN || msg->bsdh.bufs <= SDP_RESERVED)
		return false;
	sdp->peer_rcv_bytes = rcv_bytes;
	sdp->peer_adverts = max_adverts;
	sdp->rcv_buf_due = rcv_bytes < sdp->config.rcv_bytes;
	sdp->rcv_buf_ask = sdp->config.rcv_bytes;
	sdp->tx_limit = msg->bsdh.bufs;
	sdp_note(sdp, SDP_TRACE_STATE, (int)sdp->state, SDP_OPEN);
	sdp->state = SDP_OPEN;
	return true;
}

int sdp_accept(struct sdp *sdp, const uint8_t *hello, size_t len,
	       struct sdp_address *address, uint8_t *ack)
{
	struct wire_sdp_msg answer = {
		.bsdh = {.mid = WIRE_SDP_HELLO_ACK, .bufs = (uint16_t)sdp->posted},
		.hello_ack = {.version = WIRE_SDP_VERSION,
			      .max_adverts = sdp->config.max_adverts,
			      .actual_rcv_bytes = sdp->config.rcv_bytes},
	};
	struct wire_sdp_msg msg;

	if (sdp->state != SDP_IDLE || wire_sdp_read(hello, len, &msg) ||
	    msg.bsdh.mid != WIRE_SDP_HELLO ||
	    (msg.hello.ip_version != 4 && msg.hello.ip_version != 6) ||
	    !take_terms(sdp, &msg, msg.hello.version, msg.hello.local_rcv_bytes,
			msg.hello.max_adverts))
		return -EPROTO;
	get_ip(msg.hello.src_ip, msg.hello.ip_version == 4, address->src);
	get_ip(msg.hello.dst_ip, msg.hello.ip_version == 4, address->dst);
	address->src_port = msg.hello.local_port;
	wire_sdp_write(&answer, ack);
	return 0;
}

int sdp_accepted(struct sdp *sdp, const uint8_t *ack, size_t len)
{
	struct wire_sdp_msg msg;

	if (sdp->state == SDP_HELLO_SENT && !wire_sdp_read(ack, len, &msg) &&
	    msg.bsdh.mid == WIRE_SDP_HELLO_ACK &&
	    take_terms(sdp, &msg, msg.hello_ack.version, msg.hello_ack.actual_rcv_bytes,
		       msg.hello_ack.max_adverts))
		return 0;
	sdp_end_as(sdp, SDP_BROKEN);
	return -EPROTO;
}

/* --- ending --- */

void sdp_end_as(struct sdp *sdp, enum sdp_end end)
{
	if (sdp->state == SDP_ENDED)
		return;
	sdp->end = end;
	sdp_note(sdp, SDP_TRACE_STATE, (int)sdp->state, SDP_ENDED);
	sdp->state = SDP_ENDED;
	sdp_cut_stream(sdp);
}

/* Have both directions been closed, and was that the last word? */
static bool is_closed(const struct sdp *sdp)
{
	return sdp->disconn_sent && sdp->disconn_received && !sdp->abort_due;
}

void sdp_check_closed(struct sdp *sdp)
{
	if (sdp->abort_sent && !sdp->tx_unacked)
		sdp_end_as(sdp, SDP_ABORTED);
	if (is_closed(sdp) && !sdp->tx_unacked)
		sdp_end_as(sdp, SDP_CLOSED);
	if (sdp->susp_ack_sent && !sdp->tx_unacked)
		sdp_set_suspended(sdp);
}

void sdp_shutdown(struct sdp *sdp)
{
	sdp->tx_shut = true;
}

void sdp_close(struct sdp *sdp)
{
	sdp->rx_shut = true;
	sdp_shutdown(sdp);
	if (sdp->num_items)
		sdp_abort(sdp);
}

void sdp_abort(struct sdp *sdp)
{
	if (sdp->abort_due)
		return;
	if (sdp->state == SDP_OPEN && sdp_credits(sdp)) {
		sdp->tx_shut = sdp->rx_shut = sdp->abort_due = true;
		return;
	}
	sdp_end_as(sdp, SDP_ABORTED);
}

/* A peer that has our SuspCommAck leaves the connection at once: its acknowledgement may be lost. */
void sdp_lost(struct sdp *sdp)
{
	if (sdp->susp_ack_sent)
		sdp_set_suspended(sdp);
	if (sdp->state == SDP_SUSPENDED)
		return;
	sdp_end_as(sdp, sdp->abort_sent ? SDP_ABORTED : SDP_LOST);
}

void sdp_disconnected(struct sdp *sdp)
{
	if (is_closed(sdp))
		sdp_end_as(sdp, SDP_CLOSED);
	sdp_lost(sdp);
}
