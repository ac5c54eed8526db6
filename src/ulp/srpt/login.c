/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Connections. The private data of a connection request is an SRP login request, and that of its
 * answer is the response to the login. */
#include <errno.h>

#include "base/bytes.h"
#include "ulp/srpt/private.h"
#include "ulp/srpt/trace.h"

#define RNR_RETRY 7 /* 7 means that there is no limit */

/* --- initiators --- */

static struct srpt_initiator *find_initiator(struct srpt *srpt, const u8 id[16])
{
	struct srpt_initiator *i;

	list_for_each_entry(i, &srpt->initiators, node)
		if (!memcmp(i->id, id, sizeof(i->id)))
			return i;
	return NULL;
}

/* For a new I_T nexus, every unit reports the unit attention of a power on (SAM-5 5.14). */
static struct srpt_initiator *join_initiator(struct srpt *srpt, const u8 id[16])
{
	struct srpt_initiator *i = find_initiator(srpt, id);

	if (!i) {
		i = rt_zalloc(sizeof(*i));
		if (!i)
			return NULL;
		memcpy(i->id, id, sizeof(i->id));
		srp_transport_id(id, i->transport_id);
		for (size_t lun = 0; lun < ARRAY_SIZE(i->nexus); lun++)
			i->nexus[lun].attention = SCSI_POWER_ON;
		list_add_tail(&i->node, &srpt->initiators);
	}
	i->channels++;
	return i;
}

void srpt_initiator_leave(struct srpt_initiator *initiator)
{
	if (--initiator->channels)
		return;
	list_del(&initiator->node);
	rt_free(initiator);
}

/* --- logins --- */

/* A port may log in as any number of initiators, but is known by the LID from which its requests come. */
static bool has_room(const struct srpt *srpt, u16 lid)
{
	const struct srpt_channel *ch;
	u32 own = 0;

	list_for_each_entry(ch, &srpt->channels, node)
		own += ch->remote_lid == lid;
	return srpt->nr_channels < SRPT_CHANNELS_TARGET && own < SRPT_CHANNELS_PORT;
}

static void describe_port(struct srpt *srpt, const struct ib_cm_req_event_param *req,
			  const struct srp_login *login, struct srp_port *port)
{
	const struct srpt_initiator *i = find_initiator(srpt, login->req.initiator);

	*port = (struct srp_port){
		.limit = SRPT_LIMIT_FIRST,
		.max_channels = SRPT_CHANNELS_MOST,
		.others = i ? i->channels : 0,
		.has_room = has_room(srpt, req->remote_cm_lid),
	};
	srp_port_id(srpt->guid, port->id);
}

static void end_others(struct srpt *srpt, const struct srpt_channel *but)
{
	struct srpt_channel *ch;

	list_for_each_entry(ch, &srpt->channels, node)
		if (ch != but && ch->initiator == but->initiator)
			srpt_channel_logout(ch, SRP_LOGOUT_MULTICHANNEL);
}

static int send_rep(struct srpt_channel *ch, const struct ib_cm_req_event_param *req,
		    u32 psn, const u8 *answer, size_t bytes)
{
	struct ib_cm_rep_param rep = {
		.qp_num = ch->qp->qp_num,
		.starting_psn = psn,
		.private_data = answer,
		.private_data_len = (u8)bytes,
		.responder_resources = req->responder_resources,
		.initiator_depth = req->initiator_depth,
		.flow_control = 1,
		.rnr_retry_count = RNR_RETRY,
	};

	return ib_send_cm_rep(ch->cm, &rep);
}

/* Return: the channel; NULL: there is no memory for it */
static struct srpt_channel *open_channel(struct srpt *srpt, struct ib_cm_id *cm,
					 const struct ib_cm_req_event_param *req,
					 const struct srp_login *login, u32 psn)
{
	struct srpt_initiator *initiator = join_initiator(srpt, login->req.initiator);
	struct srpt_channel *ch;

	if (!initiator)
		return NULL;
	ch = srpt_channel_open(srpt, cm, login, psn);
	if (IS_ERR(ch)) {
		srpt_initiator_leave(initiator);
		return NULL;
	}
	ch->initiator = initiator;
	ch->port_num = req->port;
	ch->remote_lid = req->remote_cm_lid;
	ch->gid = req->primary_path->dgid;
	return ch;
}

static int on_connection(struct ib_cm_id *cm, const struct ib_cm_event *event)
{
	struct srpt_channel *ch = cm->context;

	switch (event->event) {
	case IB_CM_DREQ_RECEIVED:
		ib_send_cm_drep(cm, NULL, 0);
		srpt_channel_end(ch);
		break;
	case IB_CM_REP_ERROR:
	case IB_CM_DREQ_ERROR:
	case IB_CM_DREP_RECEIVED:
	case IB_CM_REJ_RECEIVED:
	case IB_CM_TIMEWAIT_EXIT:
		srpt_channel_end(ch);
		break;
	default:
		break;
	}
	return 0;
}

static void trace(const struct ib_cm_id *cm, const struct srp_login *login,
		  const struct srp_port *port, u32 reject)
{
	trace_srpt_login(RT_TRACE_AT(cm->device, 0), login->req.initiator, port->others, reject);
}

static int reject(struct ib_cm_id *cm, struct srp_login *login,
		  const struct srp_port *port, enum wire_srp_reject reason)
{
	u8 answer[WIRE_SRP_MIN_IU_BYTES];
	size_t bytes;

	login->reject = reason;
	trace(cm, login, port, reason);
	bytes = srp_login_answer(login, port, answer);
	ib_send_cm_rej(cm, IB_CM_REJ_CONSUMER_DEFINED, NULL, 0, answer, (u8)bytes);
	return 1; /* the caller destroys @cm */
}

static int on_request(struct ib_cm_id *cm, const struct ib_cm_event *event)
{
	const struct ib_cm_req_event_param *req = &event->param.req_rcvd;
	struct srpt *srpt = cm->context;
	u32 psn = rt_random(srpt->device->rt) & 0xffffff;
	u8 answer[WIRE_SRP_MIN_IU_BYTES];
	struct srpt_channel *ch;
	struct srp_login login;
	struct srp_port port;
	size_t bytes;

	if (event->event != IB_CM_REQ_RECEIVED)
		return 0;
	if (srp_login_read(&login, event->private_data, IB_CM_REQ_PRIVATE_DATA_SIZE)) {
		describe_port(srpt, req, &login, &port);
		return reject(cm, &login, &port, WIRE_SRP_REJECT_UNSPECIFIED);
	}
	describe_port(srpt, req, &login, &port);
	srp_login_judge(&login, &port);
	if (login.reject)
		return reject(cm, &login, &port, login.reject);
	ch = open_channel(srpt, cm, req, &login, psn);
	if (!ch)
		return reject(cm, &login, &port, WIRE_SRP_REJECT_RESOURCES);
	trace(cm, &login, &port, 0);
	cm->context = ch;
	cm->cm_handler = on_connection;
	bytes = srp_login_answer(&login, &port, answer);
	if (send_rep(ch, req, psn, answer, bytes))
		srpt_channel_end(ch);
	else if (login.end_others)
		end_others(srpt, ch);
	return 0;
}

int srpt_listen(struct srpt *srpt)
{
	struct ib_cm_id *cm = ib_create_cm_id(srpt->device, on_request, srpt);
	int ret;

	if (IS_ERR(cm))
		return (int)PTR_ERR(cm);
	ret = ib_cm_listen(cm, cpu_to_be64(srp_service_id(srpt->guid)), 0);
	if (ret) {
		ib_destroy_cm_id(cm);
		return ret;
	}
	srpt->listener = cm;
	return 0;
}
