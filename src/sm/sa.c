/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The administrator: which attribute is served how, what a request is answered
 * with. Rules of matching: 15.4.4; of methods: 15.2.2; of status: 15.2.1.1.3.
 */
#include "sm/sa.h"
#include "sm/trace.h"

#include <string.h>

static const struct sm_sa_attr attrs[] = {
	{WIRE_SA_CLASS_PORT_INFO, &wire_class_port_info_codec, sm_class_port_info_each},
	{WIRE_SA_INFORM_INFO, &wire_inform_info_codec, NULL, sm_inform_set},
	{WIRE_SA_NODE_RECORD, &wire_node_record_codec, sm_node_each},
	{WIRE_SA_PORT_INFO_RECORD, &wire_port_info_record_codec, sm_port_info_each},
	{WIRE_SA_SL_TO_VL_RECORD, &wire_sl_to_vl_record_codec, sm_sl_to_vl_each},
	{WIRE_SA_SWITCH_INFO_RECORD, &wire_switch_info_record_codec, sm_switch_info_each},
	{WIRE_SA_LFT_RECORD, &wire_lft_record_codec, sm_lft_each},
	{WIRE_SA_MFT_RECORD, &wire_mft_record_codec, sm_mft_each},
	{WIRE_SA_SM_INFO_RECORD, &wire_sm_info_record_codec, sm_sm_info_each},
	{WIRE_SA_LINK_RECORD, &wire_link_record_codec, sm_link_each},
	{WIRE_SA_GUID_INFO_RECORD, &wire_guid_info_record_codec, sm_guid_info_each},
	{WIRE_SA_SERVICE_RECORD, &wire_service_record_codec, sm_service_each, sm_service_set,
	 sm_service_remove},
	{WIRE_SA_PKEY_TABLE_RECORD, &wire_pkey_table_record_codec, sm_pkey_each},
	{WIRE_SA_PATH_RECORD, &wire_path_record_codec, sm_path_each},
	{WIRE_SA_VL_ARB_RECORD, &wire_vl_arb_record_codec, sm_vl_arb_each},
	{WIRE_SA_MCMEMBER_RECORD, &wire_mcmember_record_codec, sm_mcmember_each,
	 sm_mcmember_join, sm_mcmember_leave},
	{WIRE_SA_MULTIPATH_RECORD, &wire_multipath_record_codec, NULL, NULL, NULL,
	 sm_path_multi, &wire_path_record_codec},
	{WIRE_SA_INFORM_INFO_RECORD, &wire_inform_info_record_codec, sm_inform_each},
};

static const struct sm_sa_attr *attr_find(uint16_t id)
{
	for (size_t i = 0; i < ARRAY_SIZE(attrs); i++)
		if (attrs[i].id == id)
			return &attrs[i];
	return NULL;
}

static const struct wire_codec *answer_codec(const struct sm_sa_attr *a)
{
	return a->answer ?: a->codec;
}

void sm_emit(struct sm_query *q, const void *record)
{
	const struct wire_codec *codec = answer_codec(q->attr);
	size_t stride = wire_sa_attr_offset(codec) * 8;

	if (q->status || (codec == q->attr->codec &&
			  !wire_fields_match(codec, q->mask, q->key, record)))
		return;
	if (q->used + stride > q->room) {
		size_t room = MAX(q->room * 2, (size_t)4096);
		uint8_t *out = rt_zalloc(room);

		if (!out) {
			q->status = WIRE_SA_NO_RESOURCES;
			return;
		}
		if (q->used)
			memcpy(out, q->out, q->used);
		rt_free(q->out);
		q->out = out;
		q->room = room;
	}
	if (wire_fields_encode(codec, record, q->out + q->used) < 0)
		return;
	q->used += stride;
	q->n_records++;
}

bool sm_selected(uint64_t mask, uint64_t sel_bit, uint64_t val_bit, uint8_t selector,
		 uint32_t wanted, uint32_t have)
{
	if (!(mask & val_bit))
		return true; /* "largest available" needs no value: all there is */
	switch (mask & sel_bit ? selector : WIRE_SELECT_EXACTLY) {
	case WIRE_SELECT_GREATER:
		return have > wanted;
	case WIRE_SELECT_LESS:
		return have < wanted;
	case WIRE_SELECT_EXACTLY:
		return have == wanted;
	default:
		return true;
	}
}

bool sm_fitted(uint64_t mask, uint64_t sel_bit, uint64_t val_bit, uint8_t selector,
	       uint32_t wanted, uint32_t *have)
{
	if (!(mask & val_bit))
		return true;
	switch (mask & sel_bit ? selector : WIRE_SELECT_EXACTLY) {
	case WIRE_SELECT_GREATER:
		return *have > wanted;
	case WIRE_SELECT_LESS:
		if (*have >= wanted)
			*have = wanted - 1;
		return *have && wanted;
	case WIRE_SELECT_EXACTLY:
		if (*have < wanted)
			return false;
		*have = wanted;
		return true;
	default: /* the largest there is */
		return true;
	}
}

uint8_t sm_fitted_life(bool has_selector, bool has_value, uint8_t selector, uint8_t wanted,
		       uint8_t usual)
{
	if (!has_value)
		return usual;
	switch (has_selector ? selector : WIRE_SELECT_EXACTLY) {
	case WIRE_SELECT_GREATER:
		return MAX(usual, wanted + 1);
	case WIRE_SELECT_LESS:
		return wanted ? MIN(usual, wanted - 1) : 0;
	case WIRE_SELECT_EXACTLY:
		return wanted;
	default:
		return usual;
	}
}

/* Which function answers a method; NULL: the method does not fit. */
static void (*handler(const struct sm_sa_attr *a, uint8_t method))(struct sm_query *q)
{
	switch (method) {
	case WIRE_METHOD_GET:
	case WIRE_METHOD_GET_TABLE:
		return a->each;
	case WIRE_METHOD_SET:
		return a->set;
	case WIRE_METHOD_DELETE:
		return a->remove;
	case WIRE_METHOD_GET_MULTI:
		return a->multi;
	default:
		return NULL;
	}
}

static bool answers_table(uint8_t method)
{
	return method == WIRE_METHOD_GET_TABLE || method == WIRE_METHOD_GET_MULTI;
}

/* A response in one MAD: a record, or a status alone. */
static void respond_single(struct sm_query *q)
{
	uint8_t mad[WIRE_MAD_BYTES];

	if (!q->status && !q->n_records)
		q->status = WIRE_SA_NO_RECORDS;
	if (!q->status && q->n_records > 1)
		q->status = WIRE_SA_TOO_MANY_RECORDS;
	memcpy(mad, q->mad, sizeof(mad));
	q->hdr.mad.status = q->status;
	q->hdr.mad.method |= WIRE_METHOD_RESPONSE;
	if (q->hdr.mad.method == (WIRE_METHOD_SET | WIRE_METHOD_RESPONSE))
		q->hdr.mad.method = WIRE_METHOD_GET_RESP;
	memset(&q->hdr.rmpp, 0, sizeof(q->hdr.rmpp));
	q->hdr.sm_key = 0;
	if (q->n_records)
		q->hdr.attr_offset = wire_sa_attr_offset(answer_codec(q->attr));
	wire_sa_encode(&q->hdr, mad);
	if (!q->status) {
		memset(mad + WIRE_SA_DATA_OFFSET, 0, WIRE_SA_DATA_BYTES);
		memcpy(mad + WIRE_SA_DATA_OFFSET, q->out, MIN(q->used, WIRE_SA_DATA_BYTES));
	}
	if (q->defer && !q->status) {
		struct sm_deferred *d = rt_zalloc(sizeof(*d));

		if (d) {
			d->to = *q->from;
			memcpy(d->mad, mad, sizeof(d->mad));
			list_add_tail(&d->node, &q->sm->deferred);
			return;
		}
	}
	sm_respond(q->sm, SM_AGENT_SA, q->from, mad, sizeof(mad));
}

/* A table: RMPP (13.6), which the port cuts into segments. */
static void respond_table(struct sm_query *q)
{
	uint8_t *mad;
	size_t len = WIRE_SA_DATA_OFFSET + q->used;

	mad = q->status ? NULL : rt_zalloc(MAX(len, (size_t)WIRE_MAD_BYTES));
	if (!mad) {
		q->status = q->status ?: WIRE_SA_NO_RESOURCES;
		respond_single(q);
		return;
	}
	q->hdr.mad.status = 0;
	q->hdr.mad.method |= WIRE_METHOD_RESPONSE;
	q->hdr.rmpp = (struct wire_rmpp){
		.version = WIRE_RMPP_VERSION, .type = WIRE_RMPP_DATA,
		.flags = WIRE_RMPP_ACTIVE,
	};
	q->hdr.sm_key = 0;
	q->hdr.attr_offset = q->n_records ? wire_sa_attr_offset(answer_codec(q->attr)) : 0;
	wire_sa_encode(&q->hdr, mad);
	if (q->used)
		memcpy(mad + WIRE_SA_DATA_OFFSET, q->out, q->used);
	sm_respond(q->sm, SM_AGENT_SA, q->from, mad, len);
	rt_free(mad);
}

/* Return: a status when the request cannot be served at all. */
static uint16_t check_request(const struct sm_query *q)
{
	if (q->hdr.mad.base_version != WIRE_MAD_BASE_VERSION ||
	    q->hdr.mad.class_version != WIRE_SA_CLASS_VERSION)
		return WIRE_STATUS_BAD_VERSION;
	if (!q->attr || !handler(q->attr, q->hdr.mad.method))
		return WIRE_STATUS_BAD_METHOD_ATTR;
	return WIRE_STATUS_OK;
}

static void serve(struct sm_query *q)
{
	q->status = check_request(q);
	q->hdr.mad.base_version = WIRE_MAD_BASE_VERSION; /* the answer's are ours */
	q->hdr.mad.class_version = WIRE_SA_CLASS_VERSION;
	if (!q->status) {
		q->key = rt_zalloc(q->attr->codec->struct_bytes);
		if (!q->key)
			q->status = WIRE_SA_NO_RESOURCES;
		else if (wire_fields_decode(q->attr->codec, q->mad + WIRE_SA_DATA_OFFSET,
					    q->len - WIRE_SA_DATA_OFFSET, q->key) < 0)
			q->status = WIRE_SA_REQUEST_INVALID;
	}
	if (!q->status)
		handler(q->attr, q->hdr.mad.method)(q);
	sm_log(q->sm, SM_LOG_DEBUG,
	       "LID %u asks %s, method 0x%02x, mask 0x%llx: %u records, status 0x%04x",
	       q->from->lid, q->attr ? q->attr->codec->name : "an unknown attribute",
	       q->hdr.mad.method, (unsigned long long)q->hdr.comp_mask, q->n_records,
	       q->status);
	if (answers_table(q->hdr.mad.method))
		respond_table(q);
	else
		respond_single(q);
	rt_free(q->key);
	rt_free(q->out);
}

void sm_sa_receive(struct sm *sm, const struct sm_addr *from, const uint8_t *mad, size_t len)
{
	struct sm_query q = {.sm = sm, .from = from, .mad = mad, .len = len};

	/* only the master administers; before the first sweep there is nothing
	 * to tell, and a client that gets no answer asks again */
	if (sm->state != WIRE_SM_MASTER || !sm->subnet || len < WIRE_MAD_BYTES ||
	    wire_sa_decode(mad, len, &q.hdr) < 0 ||
	    q.hdr.mad.method & WIRE_METHOD_RESPONSE)
		return;
	trace_sm_query(SM_TRACE_AT(sm), from->lid, q.hdr.mad.method, q.hdr.mad.attr_id, q.hdr.comp_mask);
	/* who claims a key and has another gets no answer (C15-0.1.5, SM_Key) */
	if (q.hdr.sm_key && q.hdr.sm_key != sm->opt.sa_key)
		return;
	q.attr = attr_find(q.hdr.mad.attr_id);
	q.mask = q.hdr.comp_mask;
	q.requester = sm_subnet_lid(sm->subnet, from->lid);
	serve(&q);
}
