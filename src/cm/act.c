/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The actions of the rows of the table in machine.c. */
#include <errno.h>
#include <string.h>

#include "cm/private.h"

#define RESPONSE_LEAST_NS NSEC_PER_MSEC /* lower bound of the time for a response, whatever the peer promises */

static void count(uint64_t counters[CM_NR_MESSAGES], uint16_t attr)
{
	counters[attr - WIRE_CM_REQ]++;
}

int cm_transmit(struct cm *cm, const struct cm_conn *conn, const struct cm_route *route,
		const uint8_t *mad)
{
	struct cm_trace trace = {CM_TRACE_SENT, conn, route, mad};

	count(cm->stats.sent, wire_mad_attr_id(mad));
	trace.error = cm->ops->send(cm, route, mad);
	if (cm_traced(cm))
		cm->ops->trace(cm, &trace);
	return trace.error;
}

static int transmit(struct cm_conn *conn, const uint8_t *mad)
{
	return cm_transmit(conn->cm, conn, &conn->route, mad);
}

static void transmit_again(struct cm_conn *conn, const uint8_t *mad)
{
	if (mad == conn->mad && !conn->sent)
		return;
	count(conn->cm->stats.retries, wire_mad_attr_id(mad));
	transmit(conn, mad);
}

static void keep(struct cm_conn *conn, const uint8_t *mad, bool lap)
{
	memcpy(lap ? conn->lap_mad : conn->mad, mad, WIRE_MAD_BYTES);
	if (!lap)
		conn->sent = wire_mad_attr_id(mad);
}

/* --- timers --- */

static uint64_t answer_ns(const struct cm_conn *conn)
{
	return MAX(conn->response_ns, RESPONSE_LEAST_NS);
}

static void await(struct cm_conn *conn, mono_t now)
{
	conn->tries = (uint8_t)(conn->max_tries - 1);
	conn->cm->ops->arm(conn, mono_add(now, answer_ns(conn)));
}

static void retry(struct cm_conn *conn, const uint8_t *mad, mono_t now)
{
	conn->tries--;
	transmit_again(conn, mad);
	conn->cm->ops->arm(conn, mono_add(now, answer_ns(conn)));
}

/* 12.9.8.6: wait for the service time of the MRA and the transfer of both messages */
static void extend(struct cm_conn *conn, const struct wire_cm_mra *mra, mono_t now)
{
	uint64_t ns = cm_time_ns(mra->service_timeout_enc) +
		      2 * cm_time_ns(conn->packet_life_enc);

	conn->cm->ops->arm(conn, mono_add(now, MAX(ns, RESPONSE_LEAST_NS)));
}

/* --- messages that this layer writes itself --- */

static void make_dreq(struct cm_conn *conn, uint8_t mad[WIRE_MAD_BYTES])
{
	const struct wire_cm_dreq dreq = {
		.local_comm_id = conn->local_id,
		.remote_comm_id = conn->remote_id,
		.remote_qpn = conn->terms.remote_qpn,
	};

	conn->tid = cm_new_tid(conn->cm);
	cm_header(conn->cm, mad, WIRE_CM_DREQ, conn->tid, 0);
	wire_cm_dreq_encode(&dreq, mad + WIRE_CM_DATA_OFFSET);
}

static void make_drep(struct cm_conn *conn, uint8_t mad[WIRE_MAD_BYTES])
{
	const struct wire_cm_drep drep = {
		.local_comm_id = conn->local_id,
		.remote_comm_id = conn->remote_id,
	};

	cm_header(conn->cm, mad, WIRE_CM_DREP, conn->tid, 0);
	wire_cm_drep_encode(&drep, mad + WIRE_CM_DATA_OFFSET);
}

static void make_rej(struct cm_conn *conn, uint16_t reason, uint8_t mad[WIRE_MAD_BYTES])
{
	struct wire_cm_rej rej = {
		.local_comm_id = conn->local_id,
		.remote_comm_id = conn->remote_id,
		.reason = reason,
	};

	cm_complete_rej(conn, &rej);
	cm_header(conn->cm, mad, WIRE_CM_REJ, conn->tid, 0);
	wire_cm_rej_encode(&rej, mad + WIRE_CM_DATA_OFFSET);
}

static void send_rej(struct cm_conn *conn, uint16_t reason, bool remember)
{
	uint8_t mad[WIRE_MAD_BYTES];

	make_rej(conn, reason, mad);
	if (remember)
		keep(conn, mad, false);
	transmit(conn, mad);
}

static void refuse_sidr(struct cm_conn *conn)
{
	const struct wire_cm_sidr_rep rep = {
		.request_id = conn->remote_id,
		.status = WIRE_CM_SIDR_REJECTED,
		.service_id = conn->service_id,
	};
	uint8_t mad[WIRE_MAD_BYTES];

	cm_header(conn->cm, mad, WIRE_CM_SIDR_REP, conn->tid, 0);
	wire_cm_sidr_rep_encode(&rep, mad + WIRE_CM_DATA_OFFSET);
	transmit(conn, mad);
}

static void write_own(struct cm_conn *conn, uint32_t actions)
{
	if (actions & CM_DO_REJ_TIMEOUT)
		send_rej(conn, WIRE_CM_REJ_TIMEOUT, true);
	if (actions & CM_DO_REJ_CONSUMER)
		send_rej(conn, WIRE_CM_REJ_CONSUMER, true);
	if (actions & CM_DO_REJ_STALE)
		send_rej(conn, WIRE_CM_REJ_STALE_CONNECTION, false);
	if (actions & CM_DO_REJ_UNKNOWN)
		send_rej(conn, WIRE_CM_REJ_INVALID_COMM_ID, false);
	if (actions & CM_DO_SIDR_REFUSE)
		refuse_sidr(conn);
	if (actions & (CM_DO_DREQ | CM_DO_KEEP_DREQ)) {
		make_dreq(conn, conn->mad);
		conn->sent = WIRE_CM_DREQ;
	}
	if (actions & CM_DO_DREP) {
		make_drep(conn, conn->mad);
		conn->sent = WIRE_CM_DREP;
	}
	if (actions & (CM_DO_DREQ | CM_DO_DREP))
		transmit(conn, conn->mad);
}

int cm_act(struct cm_conn *conn, uint32_t actions, const struct cm_input *in, bool lap)
{
	if (actions & CM_DO_SEND) {
		int ret = transmit(conn, in->mad);

		if (ret)
			return ret;
		keep(conn, in->mad, lap);
	}
	if (actions & CM_DO_MEET)
		cm_meet(conn);
	if (actions & CM_DO_RESEND)
		transmit_again(conn, lap ? conn->lap_mad : conn->mad);
	write_own(conn, actions);
	if (actions & CM_DO_LEAVE) {
		cm_renumber(conn);
		conn->redirecting = true;
		conn->cm->ops->arm(conn, MONO_NEVER);
	}
	if (actions & CM_DO_SETTLE)
		conn->settling = true;
	if (actions & CM_DO_AWAIT)
		await(conn, in->now);
	if (actions & CM_DO_RETRY)
		retry(conn, lap ? conn->lap_mad : conn->mad, in->now);
	if (actions & CM_DO_EXTEND)
		extend(conn, &in->message->mra, in->now);
	return 0;
}
