/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queries to the subnet administrator. The states of a query:
 *
 *  trying	a request is outstanding (buf), until an answer or a time-out
 *  waiting	the SA was busy, or the port has no SA at present: the timer begins
 *		the next try
 *  over	the callback has been called
 *
 * Each try has an equal part of the query's time-out, and is sent to the current
 * address of the SA. All tries have the id of the query as transaction id, so
 * that a late answer to an earlier try completes the query.
 */
#include <string.h>

#include "core/sa_priv.h"
#include "core/trace.h"

#define ID_BUCKETS 64

/* The outstanding queries, hashed by id. The id of a query that is over is not found here. */
static struct list_head by_id[ID_BUCKETS];
static int last_id;

static struct list_head *bucket(int id)
{
	return list_bucket(&by_id[(unsigned int)id % ID_BUCKETS]);
}

static void enlist(struct ib_sa_query *query, struct ib_sa_client *client)
{
	last_id = last_id == INT32_MAX ? 1 : last_id + 1;
	query->id = last_id;
	list_add_tail(&query->id_node, bucket(query->id));
	list_add_tail(&query->node, &client->queries);
	query->port->queries++;
	rdma_restrack_add(query->port->device, &query->res, RDMA_RESTRACK_SA_QUERY, client->name,
			  0);
}

struct ib_sa_query *sa_query_alloc(struct sa_port *port)
{
	struct ib_sa_query *query = rt_zalloc(sizeof(*query));

	if (query)
		query->port = port;
	return query;
}

/* Take a query that is over out of all lists, and cancel its outstanding request. */
static void forget(struct ib_sa_query *query)
{
	rt_timer_disarm(&query->again);
	list_del(&query->id_node);
	list_del(&query->node);
	query->port->queries--;
	rdma_restrack_del(query->port->device, &query->res);
	if (query->buf) { /* the handler of the send frees the rest */
		query->buf->context[0] = NULL;
		ib_cancel_mad(query->buf);
	}
}

static struct rt_trace_at at(const struct ib_sa_query *query)
{
	return RT_TRACE_AT(query->port->device, query->port->port_num);
}

void sa_query_end(struct ib_sa_query *query, int status, const struct sa_reply *reply)
{
	struct ib_mad_recv_wc *recv_wc = query->reply;

	trace_sa_done(at(query), query->id, status, status || !reply ? 0 : reply->num);
	forget(query);
	query->answer(query, status, status ? NULL : reply);
	if (recv_wc)
		ib_free_recv_mad(recv_wc);
	rt_free(query);
}

/* --- tries --- */

static u64 time_left(const struct ib_sa_query *query)
{
	mono_t now = rt_now(query->port->device->rt);

	return mono_before(now, query->deadline) ? query->deadline.ns - now.ns : 0;
}

/* Return: 0; -EAGAIN no subnet manager is known now; -errno */
static int try_once(struct ib_sa_query *query)
{
	struct sa_port *port = query->port;
	struct ib_mad_send_buf *buf;
	int ret = sa_port_open(port);

	if (ret)
		return ret;
	buf = ib_create_send_mad(port->agent, 1, port->address->pkey_index, 0, IB_MGMT_SA_HDR,
				 IB_MGMT_SA_DATA, GFP_ATOMIC, IB_MGMT_BASE_VERSION);
	if (IS_ERR(buf))
		return (int)PTR_ERR(buf);
	memcpy(buf->mad, query->mad, sizeof(query->mad));
	((struct ib_mad_hdr *)buf->mad)->tid =
		cpu_to_be64((u64)port->agent->hi_tid << 32 | (u32)query->id);
	buf->timeout_ms = (int)DIV_ROUND_UP(MIN(query->try_ns, time_left(query)), NSEC_PER_MSEC);
	buf->ah = port->address->ah;
	buf->context[0] = query;
	buf->context[1] = port->address;
	ret = ib_post_send_mad(buf, NULL);
	trace_sa_send(at(query), query->id, buf->timeout_ms, ret);
	if (ret) {
		ib_free_send_mad(buf);
		return ret;
	}
	port->address->users++;
	query->buf = buf;
	return 0;
}

static void try_later(struct ib_sa_query *query)
{
	rt_timer_arm(&query->again, mono_add(rt_now(query->port->device->rt),
					     MIN(query->try_ns, time_left(query))));
}

static void try_again(struct ib_sa_query *query)
{
	int ret;

	if (query->cancelled || !time_left(query)) {
		sa_query_end(query, query->cancelled ? -EINTR : -ETIMEDOUT, NULL);
		return;
	}
	ret = try_once(query);
	if (ret == -EAGAIN)
		try_later(query);
	else if (ret)
		sa_query_end(query, ret, NULL);
}

static void timed_out(struct ib_sa_query *query)
{
	trace_sa_timeout(at(query), query->id);
	try_again(query);
}

static void again_fired(struct rt_timer *timer)
{
	try_again(container_of(timer, struct ib_sa_query, again));
}

/* --- answers --- */

/* End the query with the records of a table, which may have several segments. */
static void end_with_table(struct ib_sa_query *query)
{
	size_t len = (size_t)query->reply->mad_len;
	u8 *message = rt_zalloc(len);
	struct sa_reply reply = {0};
	struct wire_sa hdr;

	if (!message) {
		sa_query_end(query, -ENOMEM, NULL);
		return;
	}
	ib_coalesce_recv_mad(query->reply, message);
	if (wire_sa_decode(message, len, &hdr) > 0 && hdr.attr_offset * 8u >= query->record_bytes) {
		reply.records = message + IB_MGMT_SA_HDR;
		reply.stride = hdr.attr_offset * 8u;
		reply.num = (unsigned int)((len - IB_MGMT_SA_HDR) / reply.stride);
	}
	sa_query_end(query, reply.num ? 0 : -EINVAL, &reply);
	rt_free(message);
}

static void end_with_record(struct ib_sa_query *query)
{
	struct sa_reply reply = {
		.records = (const u8 *)query->reply->recv_buf.mad + IB_MGMT_SA_HDR,
		.stride = query->record_bytes,
		.num = 1,
	};

	sa_query_end(query, 0, &reply);
}

/* 13.4.7: an SA refuses a query by the class-specific bits, or by an invalid value. Any other status
 * comes from a port that has no SA and does not support the class. */
static int error_of(u16 status)
{
	switch (status) {
	case 0:
		return 0;
	case IB_MGMT_MAD_STATUS_BAD_VERSION:
	case IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD:
	case IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
}

static void take_reply(struct ib_sa_query *query)
{
	const struct ib_mad_hdr *hdr = &query->reply->recv_buf.mad->mad_hdr;
	u16 status = be16_to_cpu(hdr->status);

	trace_sa_answer(at(query), query->id, status);
	if (status & IB_MGMT_MAD_STATUS_BUSY) { /* 13.4.7: the request may be sent again */
		trace_sa_busy(at(query), query->id);
		ib_free_recv_mad(query->reply);
		query->reply = NULL;
		try_later(query);
	} else if (status) {
		sa_query_end(query, error_of(status), NULL);
	} else if (hdr->method == IB_SA_METHOD_GET_TABLE_RESP) {
		end_with_table(query);
	} else {
		end_with_record(query);
	}
}

void sa_query_answered(struct ib_mad_agent *agent, struct ib_mad_send_buf *buf,
		       struct ib_mad_recv_wc *recv_wc)
{
	struct ib_sa_query *query = buf ? buf->context[0] : NULL;

	if (!query || query->reply)
		ib_free_recv_mad(recv_wc);
	else
		query->reply = recv_wc;
}

void sa_query_sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	struct ib_sa_query *query = wc->send_buf->context[0];

	sa_address_put(wc->send_buf->context[1]);
	ib_free_send_mad(wc->send_buf);
	if (!query)
		return;
	query->buf = NULL;
	if (query->cancelled)
		sa_query_end(query, -EINTR, NULL);
	else if (query->reply)
		take_reply(query);
	else if (wc->status == IB_WC_RESP_TIMEOUT_ERR)
		timed_out(query);
	else
		sa_query_end(query, wc->status == IB_WC_WR_FLUSH_ERR ? -EINTR : -EIO, NULL);
}

/* --- beginning and end --- */

/* Return: 0; -EINVAL a value of the record does not fit its field */
static int encode(struct ib_sa_query *query, const struct sa_request *request)
{
	struct wire_sa hdr = {
		.mad = {.base_version = IB_MGMT_BASE_VERSION,
			.mgmt_class = IB_MGMT_CLASS_SUBN_ADM,
			.class_version = IB_SA_CLASS_VERSION,
			.method = request->method,
			.attr_id = request->attr_id},
		.comp_mask = request->comp_mask,
	};

	if (wire_sa_encode(&hdr, query->mad) < 0 ||
	    wire_fields_encode(request->codec, request->record, query->mad + IB_MGMT_SA_HDR) < 0)
		return -EINVAL;
	query->record_bytes = request->codec->bytes;
	return 0;
}

int sa_query_start(struct ib_sa_query *query, struct ib_sa_client *client,
		   const struct sa_request *request)
{
	struct rt *rt = query->port->device->rt;
	u64 time_ns = request->timeout_ms * NSEC_PER_MSEC;
	int ret = encode(query, request);

	if (ret) {
		rt_free(query);
		return ret;
	}
	rt_timer_init(rt, &query->again, again_fired);
	query->deadline = mono_add(rt_now(rt), time_ns);
	query->try_ns = MAX(time_ns / SA_TRIES, SA_TRY_LEAST_MS * NSEC_PER_MSEC);
	enlist(query, client);
	trace_sa_query(at(query), query->id, request->method, request->attr_id,
		       request->comp_mask, request->timeout_ms);
	ret = try_once(query);
	if (!ret)
		return query->id;
	forget(query);
	rt_free(query);
	return ret;
}

int sa_query_known(struct ib_sa_query *query, struct ib_sa_client *client,
		   void (*fn)(struct rt_timer *timer))
{
	struct rt *rt = query->port->device->rt;

	rt_timer_init(rt, &query->again, fn);
	enlist(query, client);
	trace_sa_cached(at(query), query->id);
	rt_timer_arm(&query->again, rt_now(rt));
	return query->id;
}

void ib_sa_cancel_query(int id, struct ib_sa_query *query)
{
	struct ib_sa_query *at;

	list_for_each_entry(at, bucket(id), id_node) {
		if (at != query || at->id != id)
			continue;
		query->cancelled = true;
		if (query->buf)
			ib_cancel_mad(query->buf);
		else
			rt_timer_arm(&query->again, rt_now(query->port->device->rt));
		return;
	}
}

static struct ib_sa_query *any_of(const struct sa_port *port)
{
	struct ib_sa_query *query;

	for (int i = 0; i < ID_BUCKETS; i++)
		list_for_each_entry(query, bucket(i), id_node)
			if (query->port == port)
				return query;
	return NULL;
}

void sa_queries_end(struct sa_port *port)
{
	while (port->queries)
		sa_query_end(any_of(port), -EINTR, NULL);
}

void ib_sa_register_client_(struct ib_sa_client *client, const char *name)
{
	INIT_LIST_HEAD(&client->queries);
	client->name = name;
}

void ib_sa_unregister_client(struct ib_sa_client *client)
{
	while (!list_empty(&client->queries))
		sa_query_end(list_first_entry(&client->queries, struct ib_sa_query, node), -EINTR,
			     NULL);
}
