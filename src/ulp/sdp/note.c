/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What happens to connections, as events of the trace. */
#include <netinet/in.h>

#include "ulp/sdp/private.h"
#include "ulp/sdp/trace.h"

struct rt_trace_at sdp_trace_at(const struct sdp_conn *c)
{
	if (c->id && c->id->device)
		return RT_TRACE_AT(c->id->device, c->id->port_num);
	return (struct rt_trace_at){.rt = c->rt};
}

uint32_t sdp_trace_qpn(const struct sdp_conn *c)
{
	return c->qp ? c->qp->qp_num : 0;
}

/* the port is at the same place in addresses of both families */
static unsigned int port_of(const struct sockaddr_storage *addr)
{
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

static unsigned int sport(const struct sdp_conn *c)
{
	return c->id ? port_of(&c->id->route.addr.src_addr) : 0;
}

static unsigned int dport(const struct sdp_conn *c)
{
	return c->id ? port_of(&c->id->route.addr.dst_addr) : 0;
}

const char *sdp_trace_message(unsigned int mid)
{
	static const char *const names[256] = {
		[WIRE_SDP_HELLO] = "Hello",
		[WIRE_SDP_HELLO_ACK] = "HelloAck",
		[WIRE_SDP_DISCONN] = "DisConn",
		[WIRE_SDP_ABORT_CONN] = "AbortConn",
		[WIRE_SDP_SEND_SM] = "SendSm",
		[WIRE_SDP_RDMA_WR_COMPL] = "RdmaWrCompl",
		[WIRE_SDP_RDMA_RD_COMPL] = "RdmaRdCompl",
		[WIRE_SDP_MODE_CHANGE] = "ModeChange",
		[WIRE_SDP_SRC_AVAIL_CANCEL] = "SrcAvailCancel",
		[WIRE_SDP_SINK_AVAIL_CANCEL] = "SinkAvailCancel",
		[WIRE_SDP_SINK_CANCEL_ACK] = "SinkCancelAck",
		[WIRE_SDP_CH_RCV_BUF] = "ChRcvBuf",
		[WIRE_SDP_CH_RCV_BUF_ACK] = "ChRcvBufAck",
		[WIRE_SDP_SINK_AVAIL] = "SinkAvail",
		[WIRE_SDP_SRC_AVAIL] = "SrcAvail",
		[WIRE_SDP_DATA] = "Data",
	};

	return names[mid & 255] ? names[mid & 255] : "?";
}

static const char *mode_name(int mode)
{
	static const char *const names[] = {[WIRE_SDP_BUFFERED] = "buffered",
					    [WIRE_SDP_COMBINED] = "combined",
					    [WIRE_SDP_PIPELINED] = "pipelined"};

	return (size_t)mode < ARRAY_SIZE(names) ? names[mode] : "?";
}

void sdp_conn_trace(const struct sdp *sdp, enum sdp_trace what, int from, int to)
{
	static const char *const states[] = {"IDLE", "HELLO_SENT", "OPEN", "SUSPENDED", "ENDED"};
	static const char *const ends[] = {"-", "closed", "aborted", "reset", "broken", "lost"};
	const struct sdp_conn *c = container_of(sdp, struct sdp_conn, sdp);

	if (what == SDP_TRACE_STATE)
		trace_sdp_state(sdp_trace_at(c), sdp_trace_qpn(c), sport(c), dport(c), states[from],
				states[to], ends[sdp->end]);
	else
		trace_sdp_mode(sdp_trace_at(c), sdp_trace_qpn(c), sport(c), dport(c),
			       what == SDP_TRACE_TX_MODE, mode_name(from), mode_name(to));
}

void sdp_note_connected(const struct sdp_conn *c, bool passive, int error)
{
	trace_sdp_connected(sdp_trace_at(c), sdp_trace_qpn(c), sport(c), dport(c), passive, error);
}

void sdp_note_socket(const struct sdp_socket *s, const char *what, int error)
{
	struct rt_trace_at at = {.rt = s->rt};

	if (s->id && s->id->device)
		at = RT_TRACE_AT(s->id->device, s->id->port_num);
	trace_sdp_socket(at, what, s->id ? port_of(&s->id->route.addr.src_addr) : 0, error);
}
