/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The queries for each type of record: conversion between the client's struct
 * and that of the wire layer, and the call of the client's callback. The fields
 * of the client's struct have the same byte order as in Linux.
 */
#include <string.h>

#include "core/private.h"
#include "core/private.h"
#include "core/sa_priv.h"
#include "wire/address.h"

/* --- PathRecord --- */

void sa_path_to_wire(const struct sa_path_rec *rec, struct wire_path_record *wire)
{
	*wire = (struct wire_path_record){
		.service_id = be64_to_cpu(rec->service_id),
		.dlid = be16_to_cpu(rec->ib.dlid),
		.slid = be16_to_cpu(rec->ib.slid),
		.raw_traffic = rec->ib.raw_traffic,
		.flow_label = be32_to_cpu(rec->flow_label),
		.hop_limit = rec->hop_limit,
		.tclass = rec->traffic_class,
		.reversible = rec->reversible,
		.numb_path = rec->numb_path,
		.pkey = be16_to_cpu(rec->pkey),
		.qos_class = be16_to_cpu(rec->qos_class),
		.sl = rec->sl,
		.mtu_selector = rec->mtu_selector,
		.mtu = rec->mtu,
		.rate_selector = rec->rate_selector,
		.rate = rec->rate,
		.life_selector = rec->packet_life_time_selector,
		.life_enc = rec->packet_life_time,
		.preference = rec->preference,
	};
	memcpy(&wire->dgid, &rec->dgid, sizeof(wire->dgid));
	memcpy(&wire->sgid, &rec->sgid, sizeof(wire->sgid));
}

void sa_path_from_wire(struct sa_path_rec *rec, const struct wire_path_record *wire)
{
	*rec = (struct sa_path_rec){
		.service_id = cpu_to_be64(wire->service_id),
		.flow_label = cpu_to_be32(wire->flow_label),
		.hop_limit = wire->hop_limit,
		.traffic_class = wire->tclass,
		.reversible = wire->reversible,
		.numb_path = wire->numb_path,
		.pkey = cpu_to_be16(wire->pkey),
		.qos_class = cpu_to_be16(wire->qos_class),
		.sl = wire->sl,
		.mtu_selector = wire->mtu_selector,
		.mtu = wire->mtu,
		.rate_selector = wire->rate_selector,
		.rate = wire->rate,
		.packet_life_time_selector = wire->life_selector,
		.packet_life_time = wire->life_enc,
		.preference = wire->preference,
		.ib = {.dlid = cpu_to_be16(wire->dlid),
		       .slid = cpu_to_be16(wire->slid),
		       .raw_traffic = wire->raw_traffic},
		.rec_type = SA_PATH_REC_TYPE_IB,
	};
	memcpy(&rec->dgid, &wire->dgid, sizeof(rec->dgid));
	memcpy(&rec->sgid, &wire->sgid, sizeof(rec->sgid));
}

void ib_sa_pack_path(const struct sa_path_rec *rec, void *attribute)
{
	struct wire_path_record wire;

	memset(attribute, 0, wire_path_record_codec.bytes);
	sa_path_to_wire(rec, &wire);
	wire_path_record_encode(&wire, attribute);
}

void ib_sa_unpack_path(const void *attribute, struct sa_path_rec *rec)
{
	struct wire_path_record wire;

	wire_path_record_decode(attribute, wire_path_record_codec.bytes, &wire);
	sa_path_from_wire(rec, &wire);
}

typedef void (*path_callback)(int status, struct sa_path_rec *resp, unsigned int num_prs,
			      void *context);

static void path_answered(struct ib_sa_query *query, int status, const struct sa_reply *reply)
{
	path_callback callback = (path_callback)query->callback;
	struct sa_path_rec recs[SA_RECORDS_MAX];
	unsigned int num = 0;

	for (; reply && num < MIN(reply->num, ARRAY_SIZE(recs)); num++)
		ib_sa_unpack_path(reply->records + num * reply->stride, &recs[num]);
	if (num == 1)
		sa_cache_keep(query->port, query, recs);
	callback(status, num ? recs : NULL, num, query->context);
}

static void path_known(struct rt_timer *timer)
{
	struct ib_sa_query *query = container_of(timer, struct ib_sa_query, again);
	struct sa_reply reply = {.records = query->mad, .stride = 0, .num = 1};

	sa_query_end(query, query->cancelled ? -EINTR : 0, &reply);
}

/* A query for several paths is answered by a table (15.4.6). */
static u8 path_method(const struct sa_path_rec *rec, ib_sa_comp_mask comp_mask)
{
	return comp_mask & IB_SA_PATH_REC_NUMB_PATH && rec->numb_path > 1 ? IB_SA_METHOD_GET_TABLE :
									    IB_MGMT_METHOD_GET;
}

/* Make a path of Ethernet from the two GIDs, without a query. Return: 0; -EHOSTUNREACH */
static int ethernet_path(struct ib_device *device, u32 port_num, const struct sa_path_rec *asked,
			 struct sa_path_rec *rec)
{
	const struct ib_port_attr *port = core_cached_port(device, port_num);
	u32 of_port;
	u16 station, index = 0;
	int ret;

	if (ib_find_cached_gid(device, &asked->sgid, &of_port, &index) || of_port != port_num)
		index = 0;
	ret = device->ops->find_station(device, port_num, index, &asked->dgid, &station);

	*rec = *asked;
	sa_path_set_dlid(rec, station);
	sa_path_set_slid(rec, (u16)(port->lid | wire_path_bits(station, port->lmc)));
	rec->hop_limit = SA_ROCE_HOP_LIMIT;
	rec->reversible = 1;
	rec->numb_path = 1;
	rec->mtu_selector = rec->rate_selector = rec->packet_life_time_selector = IB_SA_EQ;
	rec->mtu = (u8)port->active_mtu;
	rec->rate = SA_ROCE_RATE_ENC;
	rec->packet_life_time = SA_ROCE_LIFE_TIME_ENC;
	return ret;
}

static bool is_ethernet(const struct sa_port *port)
{
	return core_cached_port(port->device, port->port_num)->link_layer == IB_LINK_LAYER_ETHERNET;
}

int ib_sa_path_rec_get(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
		       const struct sa_path_rec *rec, ib_sa_comp_mask comp_mask,
		       unsigned long timeout_ms, gfp_t gfp_mask,
		       void (*callback)(int status, struct sa_path_rec *resp,
					unsigned int num_prs, void *context),
		       void *context, struct ib_sa_query **query_out)
{
	struct sa_port *port = sa_port_find(device, port_num);
	struct ib_sa_query *query = port ? sa_query_alloc(port) : NULL;
	const struct sa_path_rec *known;
	struct wire_path_record wire;
	struct sa_path_rec roce;
	int ret;

	if (!query)
		return port ? -ENOMEM : -ENODEV;
	query->answer = path_answered;
	query->callback = (void (*)(void))callback;
	query->context = context;
	query->comp_mask = comp_mask;
	query->cache_epoch = port->cache_epoch;
	query->path = *rec;
	known = is_ethernet(port) ? &roce : sa_cache_find(port, query);
	if (known == &roce && (ret = ethernet_path(device, port_num, rec, &roce))) {
		rt_free(query);
		return ret;
	}
	if (known) {
		ib_sa_pack_path(known, query->mad);
		ret = sa_query_known(query, client, path_known);
	} else {
		sa_path_to_wire(rec, &wire);
		ret = sa_query_start(query, client,
				     &(struct sa_request){path_method(rec, comp_mask),
							  IB_SA_ATTR_PATH_REC, comp_mask, timeout_ms,
							  &wire_path_record_codec, &wire});
	}
	if (ret >= 0 && query_out)
		*query_out = query;
	return ret;
}

/* --- MCMemberRecord --- */

void sa_member_to_wire(const struct ib_sa_mcmember_rec *rec, struct wire_mcmember_record *wire)
{
	*wire = (struct wire_mcmember_record){
		.qkey = be32_to_cpu(rec->qkey),
		.mlid = be16_to_cpu(rec->mlid),
		.mtu_selector = rec->mtu_selector,
		.mtu = rec->mtu,
		.tclass = rec->traffic_class,
		.pkey = be16_to_cpu(rec->pkey),
		.rate_selector = rec->rate_selector,
		.rate = rec->rate,
		.life_selector = rec->packet_life_time_selector,
		.life_enc = rec->packet_life_time,
		.sl = rec->sl,
		.flow_label = be32_to_cpu(rec->flow_label),
		.hop_limit = rec->hop_limit,
		.scope = rec->scope,
		.join_state = rec->join_state,
		.proxy_join = rec->proxy_join,
	};
	memcpy(&wire->mgid, &rec->mgid, sizeof(wire->mgid));
	memcpy(&wire->port_gid, &rec->port_gid, sizeof(wire->port_gid));
}

void sa_member_from_wire(struct ib_sa_mcmember_rec *rec, const struct wire_mcmember_record *wire)
{
	*rec = (struct ib_sa_mcmember_rec){
		.qkey = cpu_to_be32(wire->qkey),
		.mlid = cpu_to_be16(wire->mlid),
		.mtu_selector = wire->mtu_selector,
		.mtu = wire->mtu,
		.traffic_class = wire->tclass,
		.pkey = cpu_to_be16(wire->pkey),
		.rate_selector = wire->rate_selector,
		.rate = wire->rate,
		.packet_life_time_selector = wire->life_selector,
		.packet_life_time = wire->life_enc,
		.sl = wire->sl,
		.flow_label = cpu_to_be32(wire->flow_label),
		.hop_limit = wire->hop_limit,
		.scope = wire->scope,
		.join_state = wire->join_state,
		.proxy_join = wire->proxy_join,
	};
	memcpy(&rec->mgid, &wire->mgid, sizeof(rec->mgid));
	memcpy(&rec->port_gid, &wire->port_gid, sizeof(rec->port_gid));
}

typedef void (*member_callback)(int status, struct ib_sa_mcmember_rec *resp, void *context);

static void member_answered(struct ib_sa_query *query, int status, const struct sa_reply *reply)
{
	member_callback callback = (member_callback)query->callback;
	struct wire_mcmember_record wire;
	struct ib_sa_mcmember_rec rec;

	if (reply) {
		wire_mcmember_record_decode(reply->records, reply->stride, &wire);
		sa_member_from_wire(&rec, &wire);
	}
	callback(status, reply ? &rec : NULL, query->context);
}

/* --- ServiceRecord --- */

static void service_to_wire(const struct ib_sa_service_rec *rec, struct wire_service_record *wire)
{
	*wire = (struct wire_service_record){
		.id = be64_to_cpu(rec->id),
		.pkey = be16_to_cpu(rec->pkey),
		.lease_s = be32_to_cpu(rec->lease),
	};
	memcpy(&wire->gid, &rec->gid, sizeof(wire->gid));
	memcpy(wire->key, rec->key, sizeof(wire->key));
	memcpy(wire->name, rec->name, sizeof(wire->name));
	memcpy(wire->data8, rec->data8, sizeof(wire->data8));
	for (size_t i = 0; i < ARRAY_SIZE(rec->data16); i++)
		wire->data16[i] = be16_to_cpu(rec->data16[i]);
	for (size_t i = 0; i < ARRAY_SIZE(rec->data32); i++)
		wire->data32[i] = be32_to_cpu(rec->data32[i]);
	for (size_t i = 0; i < ARRAY_SIZE(rec->data64); i++)
		wire->data64[i] = be64_to_cpu(rec->data64[i]);
}

static void service_from_wire(struct ib_sa_service_rec *rec, const struct wire_service_record *wire)
{
	*rec = (struct ib_sa_service_rec){
		.id = cpu_to_be64(wire->id),
		.pkey = cpu_to_be16(wire->pkey),
		.lease = cpu_to_be32(wire->lease_s),
	};
	memcpy(&rec->gid, &wire->gid, sizeof(rec->gid));
	memcpy(rec->key, wire->key, sizeof(rec->key));
	memcpy(rec->name, wire->name, sizeof(rec->name));
	memcpy(rec->data8, wire->data8, sizeof(rec->data8));
	for (size_t i = 0; i < ARRAY_SIZE(rec->data16); i++)
		rec->data16[i] = cpu_to_be16(wire->data16[i]);
	for (size_t i = 0; i < ARRAY_SIZE(rec->data32); i++)
		rec->data32[i] = cpu_to_be32(wire->data32[i]);
	for (size_t i = 0; i < ARRAY_SIZE(rec->data64); i++)
		rec->data64[i] = cpu_to_be64(wire->data64[i]);
}

typedef void (*service_callback)(int status, struct ib_sa_service_rec *resp, void *context);

static void service_answered(struct ib_sa_query *query, int status, const struct sa_reply *reply)
{
	service_callback callback = (service_callback)query->callback;
	struct wire_service_record wire;
	struct ib_sa_service_rec rec;

	if (reply) {
		wire_service_record_decode(reply->records, reply->stride, &wire);
		service_from_wire(&rec, &wire);
	}
	callback(status, reply ? &rec : NULL, query->context);
}

/* --- common parts of the queries --- */

static int start(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
			void (*answer)(struct ib_sa_query *, int, const struct sa_reply *),
			void (*callback)(void), void *context, const struct sa_request *request,
			struct ib_sa_query **query_out)
{
	struct sa_port *port = sa_port_find(device, port_num);
	struct ib_sa_query *query;
	int ret;

	if (!port)
		return -ENODEV;
	if (request->method != IB_MGMT_METHOD_GET && request->method != IB_MGMT_METHOD_SET &&
	    request->method != IB_SA_METHOD_DELETE)
		return -EINVAL;
	query = sa_query_alloc(port);
	if (!query)
		return -ENOMEM;
	query->answer = answer;
	query->callback = callback;
	query->context = context;
	ret = sa_query_start(query, client, request);
	if (ret >= 0 && query_out)
		*query_out = query;
	return ret;
}

int ib_sa_mcmember_rec_query(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
			     u8 method, const struct ib_sa_mcmember_rec *rec,
			     ib_sa_comp_mask comp_mask, unsigned long timeout_ms, gfp_t gfp_mask,
			     void (*callback)(int status, struct ib_sa_mcmember_rec *resp,
					      void *context),
			     void *context, struct ib_sa_query **query)
{
	struct wire_mcmember_record wire;

	sa_member_to_wire(rec, &wire);
	return start(client, device, port_num, member_answered, (void (*)(void))callback,
			    context,
			    &(struct sa_request){method, IB_SA_ATTR_MC_MEMBER_REC, comp_mask,
						 timeout_ms, &wire_mcmember_record_codec, &wire},
			    query);
}

int ib_sa_service_rec_query(struct ib_sa_client *client, struct ib_device *device, u32 port_num,
			    u8 method, const struct ib_sa_service_rec *rec,
			    ib_sa_comp_mask comp_mask, unsigned long timeout_ms, gfp_t gfp_mask,
			    void (*callback)(int status, struct ib_sa_service_rec *resp,
					     void *context),
			    void *context, struct ib_sa_query **query)
{
	struct wire_service_record wire;

	service_to_wire(rec, &wire);
	return start(client, device, port_num, service_answered, (void (*)(void))callback,
			    context,
			    &(struct sa_request){method, IB_SA_ATTR_SERVICE_REC, comp_mask,
						 timeout_ms, &wire_service_record_codec, &wire},
			    query);
}
