/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A stream that moves to another connection (A4.5, SuspComm). One end asks the other to suspend the
 * communication, and names the service id where it awaits the connection that follows. The other one
 * agrees by SuspCommAck, and connects there. The stream goes on behind the new Hellos.
 *
 * Nothing of the stream may be lost or come twice, so neither message is sent before its sender
 * knows what became of all the memory that it has lent: it takes it back by SrcAvailCancel and
 * SinkAvailCancel. It begins nothing new meanwhile, and goes on to answer the peer. The
 * SuspCommAck is its sender's last message: whatever comes before it belongs to the old connection,
 * and the new one begins with the credits, modes and buffer sizes of its Hellos.
 *
 * A peer that has memory lent when it sends SuspComm is told to send that as data (SendSm), as if it
 * had cancelled it. A direction that DisConn has closed is closed again on the new connection.
 *
 * What is part of the stream, or lends memory, may not come behind a SuspComm: it could meet an end that has
 * already left, and be lost.
 *
 * If both ends ask at the same time, the one that has sent the Hello is followed, and the other
 * one's SuspComm has no answer.
 */
#include <errno.h>

#include "sdp/private.h"

void sdp_set_suspended(struct sdp *sdp)
{
	if (sdp->state != SDP_OPEN)
		return;
	if (sdp->abort_due) { /* no AbortConn comes any more: the peer learns it when nobody awaits it */
		sdp_end_as(sdp, SDP_ABORTED);
		return;
	}
	sdp_note(sdp, SDP_TRACE_STATE, (int)sdp->state, SDP_SUSPENDED);
	sdp->state = SDP_SUSPENDED;
}

/* Nothing new begins; the memory that was lent is wanted back. */
static void begin_leaving(struct sdp *sdp)
{
	sdp->rcv_buf_due = sdp->combined_due = false;
	sdp_cancel_adverts(sdp);
	if (sdp->sinks_out && !sdp->sink_cancel_sent)
		sdp->sink_cancel_due = true;
}

bool sdp_suspend(struct sdp *sdp, uint64_t service_id)
{
	if (sdp->state != SDP_OPEN || sdp->abort_due || sdp_is_leaving(sdp) ||
	    (sdp->disconn_sent && sdp->disconn_received))
		return false;
	sdp->susp_due = true;
	sdp->susp_service = service_id;
	begin_leaving(sdp);
	return true;
}

void sdp_not_resumed(struct sdp *sdp)
{
	if (sdp->state == SDP_SUSPENDED)
		sdp_end_as(sdp, SDP_LOST);
}

bool sdp_is_too_late(const struct sdp *sdp, const struct wire_sdp_msg *msg)
{
	if (!sdp->susp_received)
		return false;
	switch (msg->bsdh.mid) {
	case WIRE_SDP_DATA:
		return msg->payload_bytes;
	case WIRE_SDP_SRC_AVAIL:
	case WIRE_SDP_SINK_AVAIL:
	case WIRE_SDP_RDMA_WR_COMPL:
	case WIRE_SDP_DISCONN:
		return true;
	default:
		return false;
	}
}

int sdp_on_susp_comm(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
		     struct sdp_input *input)
{
	if (sdp->susp_received)
		return -EPROTO;
	if (sdp->susp_sent && sdp->active)
		return 0; /* the peer follows this end */
	sdp->susp_due = sdp->susp_sent = false;
	sdp->susp_received = true;
	sdp->susp_service = msg->susp.service_id;
	begin_leaving(sdp);
	sdp_refuse_sources(sdp);
	return 0;
}

int sdp_on_susp_comm_ack(struct sdp *sdp, uint16_t slot, const struct wire_sdp_msg *msg,
			 struct sdp_input *input)
{
	if (!sdp->susp_sent || sdp_num_sources(sdp) || sdp->num_adverts)
		return -EPROTO;
	sdp_set_suspended(sdp);
	return 0;
}

bool sdp_next_suspend(struct sdp *sdp, struct wire_sdp_msg *msg)
{
	if (!sdp_is_leaving(sdp) || sdp->susp_sent || sdp->num_adverts || sdp->sinks_out ||
	    (sdp->susp_received && sdp_num_sources(sdp)))
		return false;
	if (sdp->susp_received) {
		msg->bsdh.mid = WIRE_SDP_SUSP_COMM_ACK;
		sdp->susp_ack_sent = true;
		return true;
	}
	msg->bsdh.mid = WIRE_SDP_SUSP_COMM;
	msg->susp.service_id = sdp->susp_service;
	sdp->susp_due = false;
	sdp->susp_sent = true;
	return true;
}
