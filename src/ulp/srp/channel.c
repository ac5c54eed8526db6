/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A channel:
 *
 * SRP_DOWN --connect--> SRP_QUERYING --path--> SRP_LOGGING_IN --REP--> SRP_UP
 *
 * Any failure queues the work `down`. It frees the channel's resources, returns its commands to the
 * queue of the session, and arms the timer `again`, which begins the next login. The timer `watch`
 * runs while commands are outstanding.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ulp/srp/private.h"
#include "ulp/srp/trace.h"

#define PATH_TIMEOUT_MS	 2000
#define RESPONSE_ENC	 20 /* 4 s: CM response time-out of both ends */
#define CM_RETRIES	 4
#define RETRIES		 7
#define RNR_RETRIES	 7 /* 7 means that there is no limit */
#define LIFE_ENC_MOST	 14 /* 67 ms, even if the path record has a longer packet lifetime. The ACK time-out
			     * is twice as long, so that the channel gives up a dead path within 2 s */
#define READS		 16 /* outstanding RDMA READs of the target that this end serves */
#define ANSWERS		 8  /* buffers of answers to the target's requests */
#define ANSWER_BYTES	 16

/* --- sends --- */

static void sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct srp_channel *ch = container_of(wc->wr_cqe, struct srp_channel, sent_cqe);

	if (wc->status != IB_WC_SUCCESS)
		srp_channel_fail(ch, "the path to the target is broken (work completion status %d)",
				 wc->status);
	else if (wc->opcode == IB_WC_RDMA_WRITE)
		ch->probing = false;
}

static int post(struct srp_channel *ch, struct ib_send_wr *wr)
{
	int ret;

	wr->wr_cqe = &ch->sent_cqe;
	if (++ch->unsignaled == SRP_SIGNAL_EVERY)
		wr->send_flags |= IB_SEND_SIGNALED;
	if (wr->send_flags & IB_SEND_SIGNALED)
		ch->unsignaled = 0;
	ret = ch->state == SRP_UP ? ib_post_send(ch->qp, wr, NULL) : -ENOTCONN;
	if (ret)
		srp_channel_fail(ch, "a message cannot be sent: %s", strerror(-ret));
	return ret;
}

int srp_channel_send(struct srp_channel *ch, const u8 *iu, size_t bytes)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)iu,
		.length = (u32)bytes,
		.lkey = ch->session->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND};

	return post(ch, &wr);
}

/* An RDMA WRITE of zero bytes needs no R_Key, and the target's adapter acknowledges it. */
void srp_channel_ask(struct srp_channel *ch)
{
	struct ib_rdma_wr wr = {
		.wr = {.opcode = IB_WR_RDMA_WRITE, .send_flags = IB_SEND_SIGNALED},
	};

	if (ch->probing)
		return;
	ch->probing = true;
	post(ch, &wr.wr);
}

/* --- receives --- */

static int post_receive(struct srp_receive *recv)
{
	struct srp_channel *ch = recv->channel;
	struct ib_sge sge = {
		.addr = (uintptr_t)recv->iu,
		.length = ch->ti_iu_bytes,
		.lkey = ch->session->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {.wr_cqe = &recv->cqe, .sg_list = &sge, .num_sge = 1};

	return ib_post_recv(ch->qp, &wr, NULL);
}

static void answer(struct srp_channel *ch, const struct srpi_news *news)
{
	u8 *to = ch->ius + (size_t)SRP_RECEIVES * ch->ti_iu_bytes +
		 (size_t)(ch->answers++ % ANSWERS) * ANSWER_BYTES;

	memcpy(to, news->answer, news->answer_bytes);
	srp_channel_send(ch, to, news->answer_bytes);
}

static void take_message(struct srp_channel *ch, const u8 *iu, size_t len)
{
	struct srpi_news news;

	srpi_take(&ch->machine, iu, len, &news);
	ch->received_at = rt_now(ch->session->fabric->rt);
	if (news.answer_bytes)
		answer(ch, &news);
	if (news.event == SRPI_LOGOUT)
		srp_channel_fail(ch, "the target logged the initiator out (reason %u)", news.reason);
	else if (news.event == SRPI_VIOLATION)
		srp_channel_fail(ch, "the target sent what is no message of SRP");
	else if (news.event == SRPI_REPORT && srpi_units_changed(news.sense, news.sense_bytes))
		srp_probe_begin(ch->session, false);
	else if (news.event == SRPI_NOTHING || news.event == SRPI_REPORT)
		srp_io_kick(ch->session);
	else
		srp_io_take(ch, &news);
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct srp_receive *recv = container_of(wc->wr_cqe, struct srp_receive, cqe);
	struct srp_channel *ch = recv->channel;

	if (ch->state != SRP_UP)
		return;
	if (wc->status != IB_WC_SUCCESS) {
		srp_channel_fail(ch, "the connection broke (work completion status %d)",
				 wc->status);
		return;
	}
	take_message(ch, recv->iu, wc->byte_len);
	if (ch->state == SRP_UP && post_receive(recv))
		srp_channel_fail(ch, "a receive cannot be posted");
}

static int add_receives(struct srp_channel *ch)
{
	int ret = 0;

	ch->ius = rt_zalloc((size_t)SRP_RECEIVES * ch->ti_iu_bytes + ANSWERS * ANSWER_BYTES);
	ch->receives = rt_zalloc(SRP_RECEIVES * sizeof(*ch->receives));
	if (!ch->ius || !ch->receives)
		return -ENOMEM;
	for (u32 i = 0; !ret && i < SRP_RECEIVES; i++) {
		ch->receives[i] = (struct srp_receive){
			.cqe = {received},
			.channel = ch,
			.iu = ch->ius + (size_t)i * ch->ti_iu_bytes,
		};
		ret = post_receive(&ch->receives[i]);
	}
	return ret;
}

static void enter(struct srp_channel *ch, enum srp_channel_state state)
{
	static const char *const names[] = {"DOWN", "QUERYING", "LOGGING_IN", "UP"};
	const struct srp_session *s = ch->session;

	if (ch->state != state)
		trace_srp_channel(RT_TRACE_AT(s->config.device, ch->path.port_num), s->config.name,
				  srp_trace_path(ch), names[ch->state], names[state]);
	ch->state = state;
}

/* --- the queue pair --- */

static int change_state(struct srp_channel *ch, enum ib_qp_state state)
{
	struct ib_qp_attr attr = {.qp_state = state};
	int mask, ret = ib_cm_init_qp_attr(ch->cm, &attr, &mask);

	return ret ? ret : ib_modify_qp(ch->qp, &attr, mask);
}

static int open_queues(struct srp_channel *ch)
{
	struct ib_device *device = ch->session->config.device;
	struct ib_qp_init_attr init = {
		.cap = {.max_send_wr = SRP_SENDS,
			.max_recv_wr = SRP_RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_cq *cq = ib_alloc_cq(device, ch, SRP_SENDS + SRP_RECEIVES, 0, IB_POLL_SOFTIRQ);
	struct ib_qp *qp;

	if (IS_ERR(cq))
		return (int)PTR_ERR(cq);
	ch->cq = init.send_cq = init.recv_cq = cq;
	qp = ib_create_qp(ch->session->pd, &init);
	if (IS_ERR(qp))
		return (int)PTR_ERR(qp);
	ch->qp = qp;
	return 0;
}

static void close_queues(struct srp_channel *ch)
{
	if (ch->qp)
		ib_destroy_qp(ch->qp);
	if (ch->cq)
		ib_free_cq(ch->cq);
	rt_free(ch->receives);
	rt_free(ch->ius);
	ch->qp = NULL;
	ch->cq = NULL;
	ch->receives = NULL;
	ch->ius = NULL;
}

/* --- login --- */

static int establish(struct srp_channel *ch, const struct srpi_terms *terms)
{
	int ret;

	ch->machine = (struct srpi_channel){.limit = terms->limit,
					    .iu_bytes = terms->it_iu_bytes,
					    .indirect = terms->indirect};
	ch->session->indirect = terms->indirect;
	ch->ti_iu_bytes = terms->ti_iu_bytes;
	ret = add_receives(ch);
	if (!ret)
		ret = change_state(ch, IB_QPS_RTR);
	if (!ret)
		ret = change_state(ch, IB_QPS_RTS);
	return ret ? ret : ib_send_cm_rtu(ch->cm, NULL, 0);
}

static void on_reply(struct srp_channel *ch, const struct ib_cm_event *event)
{
	struct srpi_terms terms;
	int ret;

	if (srpi_login_take(event->private_data, IB_CM_REP_PRIVATE_DATA_SIZE, &terms) ||
	    terms.reject) {
		srp_channel_fail(ch, "the target's answer to the login makes no sense");
		return;
	}
	ret = establish(ch, &terms);
	if (ret) {
		srp_channel_fail(ch, "the connection cannot be made: %s", strerror(-ret));
		return;
	}
	enter(ch, SRP_UP);
	ch->failures = 0;
	ch->error[0] = '\0';
	srp_session_channel(ch->session, ch);
}

static void on_reject(struct srp_channel *ch, const struct ib_cm_event *event)
{
	struct srpi_terms terms;

	if (event->param.rej_rcvd.reason == IB_CM_REJ_CONSUMER_DEFINED && event->private_data &&
	    !srpi_login_take(event->private_data, IB_CM_REJ_PRIVATE_DATA_SIZE, &terms) &&
	    terms.reject)
		srp_channel_fail(ch, "the target refuses the login: %s",
				 srpi_reject_text(terms.reject));
	else
		srp_channel_fail(ch, "the target's node rejects the connection: %s",
				 ibcm_reject_msg(event->param.rej_rcvd.reason));
}

static int on_cm(struct ib_cm_id *cm, const struct ib_cm_event *event)
{
	struct srp_channel *ch = cm->context;

	switch (event->event) {
	case IB_CM_REP_RECEIVED:
		on_reply(ch, event);
		break;
	case IB_CM_REJ_RECEIVED:
		on_reject(ch, event);
		break;
	case IB_CM_REQ_ERROR:
		srp_channel_fail(ch, "the target's port does not answer");
		break;
	case IB_CM_DREQ_RECEIVED:
		ib_send_cm_drep(cm, NULL, 0);
		srp_channel_fail(ch, "the target closed the connection");
		break;
	case IB_CM_TIMEWAIT_EXIT:
	case IB_CM_DREQ_ERROR:
	case IB_CM_DREP_RECEIVED:
		srp_channel_fail(ch, "the connection is closed");
		break;
	default:
		break;
	}
	return 0;
}

/* The login of a session's first channel ends all channels that the target still has of an earlier
 * one. */
static size_t build_login(struct srp_channel *ch, u8 to[SRPI_IU_BYTES])
{
	const struct srp_session *s = ch->session;
	const __be64 ids[4] = {s->config.device->node_guid, s->config.device->node_guid,
			       cpu_to_be64(s->config.target.id_ext),
			       cpu_to_be64(s->config.target.ioc_guid)};

	return srpi_login_build((const u8 *)ids, (const u8 *)(ids + 2), !s->nr_up, to);
}

static int send_req(struct srp_channel *ch, struct sa_path_rec *path)
{
	const struct srp_session *s = ch->session;
	u8 login[SRPI_IU_BYTES];
	struct ib_cm_req_param req = {
		.primary_path = path,
		.service_id = cpu_to_be64(s->config.target.service_id),
		.qp_num = ch->qp->qp_num,
		.qp_type = IB_QPT_RC,
		.starting_psn = rt_random(s->fabric->rt) & 0xffffff,
		.private_data = login,
		.private_data_len = (u8)build_login(ch, login),
		.responder_resources = (u8)MIN(READS, s->config.device->attrs.max_qp_rd_atom),
		.remote_cm_response_timeout = RESPONSE_ENC,
		.local_cm_response_timeout = RESPONSE_ENC,
		.flow_control = 1,
		.retry_count = RETRIES,
		.rnr_retry_count = RNR_RETRIES,
		.max_cm_retries = CM_RETRIES,
	};

	path->packet_life_time = MIN(path->packet_life_time, LIFE_ENC_MOST);
	return ib_send_cm_req(ch->cm, &req);
}

static int log_in(struct srp_channel *ch, struct sa_path_rec *path)
{
	struct ib_cm_id *cm = ib_create_cm_id(ch->session->config.device, on_cm, ch);
	int ret;

	if (IS_ERR(cm))
		return (int)PTR_ERR(cm);
	ch->cm = cm;
	ret = open_queues(ch);
	if (ret)
		return ret;
	enter(ch, SRP_LOGGING_IN);
	ret = send_req(ch, path);
	return ret ? ret : change_state(ch, IB_QPS_INIT);
}

static void on_path(int status, struct sa_path_rec *resp, unsigned int nr, void *context)
{
	struct srp_channel *ch = context;
	int ret;

	ch->query = NULL;
	if (ch->state != SRP_QUERYING)
		return;
	if (status || !nr) {
		srp_channel_fail(ch, "the subnet administrator has no path to the target's port");
		return;
	}
	ret = log_in(ch, resp);
	if (ret)
		srp_channel_fail(ch, "the login cannot be sent: %s", strerror(-ret));
}

void srp_channel_connect(struct srp_channel *ch)
{
	struct srp_session *s = ch->session;
	struct sa_path_rec rec = {.dgid = ch->path.dgid, .numb_path = 1, .reversible = 1};
	int ret;

	rt_timer_disarm(&ch->again);
	enter(ch, SRP_QUERYING);
	ret = ib_query_gid(s->config.device, ch->path.port_num, 0, &rec.sgid);
	if (!ret)
		ret = ib_sa_path_rec_get(&s->sa, s->config.device, ch->path.port_num, &rec,
					 IB_SA_PATH_REC_DGID | IB_SA_PATH_REC_SGID |
						 IB_SA_PATH_REC_NUMB_PATH |
						 IB_SA_PATH_REC_REVERSIBLE,
					 PATH_TIMEOUT_MS, GFP_KERNEL, on_path, ch, &ch->query);
	if (ret < 0)
		srp_channel_fail(ch, "port %u cannot ask the subnet administrator: is it Active?",
				 ch->path.port_num);
	else
		ch->query_id = ret;
}

/* --- the end of a channel --- */

void srp_channel_fail(struct srp_channel *ch, const char *why, ...)
{
	va_list args;

	if (ch->state == SRP_DOWN)
		return;
	va_start(args, why);
	vsnprintf(ch->error, sizeof(ch->error), why, args);
	va_end(args);
	trace_srp_fail(srp_trace_at(ch->session), ch->session->config.name, srp_trace_path(ch), ch->error);
	rt_work_queue(ch->session->fabric->rt, &ch->down);
}

void srp_channel_close(struct srp_channel *ch)
{
	struct ib_sa_query *query = ch->query;

	enter(ch, SRP_DOWN);
	ch->query = NULL;
	if (query)
		ib_sa_cancel_query(ch->query_id, query);
	rt_work_cancel(&ch->down);
	rt_timer_disarm(&ch->watch);
	rt_timer_disarm(&ch->again);
	if (ch->cm)
		ib_destroy_cm_id(ch->cm);
	ch->cm = NULL;
	close_queues(ch);
	ch->unsignaled = 0;
	ch->probing = false;
	srp_io_requeue(ch);
}

static void down(struct rt_work *work)
{
	struct srp_channel *ch = container_of(work, struct srp_channel, down);
	bool outstanding = !list_empty(&ch->sent);

	ch->failures++;
	srp_channel_close(ch);
	if (outstanding)
		srp_session_fence(ch->session);
	srp_session_channel(ch->session, ch);
}

static void again(struct rt_timer *timer)
{
	srp_channel_connect(container_of(timer, struct srp_channel, again));
}

static void watch(struct rt_timer *timer)
{
	srp_io_watch(container_of(timer, struct srp_channel, watch));
}

void srp_channel_init(struct srp_session *s, struct srp_channel *ch,
		      const struct srp_path *path)
{
	ch->session = s;
	ch->path = *path;
	ch->sent_cqe.done = sent;
	INIT_LIST_HEAD(&ch->sent);
	rt_work_init(&ch->down, down);
	rt_timer_init(s->fabric->rt, &ch->again, again);
	rt_timer_init(s->fabric->rt, &ch->watch, watch);
}
