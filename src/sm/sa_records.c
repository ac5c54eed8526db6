/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Records that say what the model knows (15.2.5): nodes, ports, links, tables.
 * Each function offers every record there is, in a fixed order; the frame
 * keeps those that match. A LID in a request may be any of a port's 2^LMC.
 */
#include "sm/sa.h"

#include <string.h>

#define RESP_TIME_ENC 0x10 /* 4.096 us << 16, a quarter of a second */

void sm_class_port_info_each(struct sm_query *q)
{
	struct wire_class_port_info r = {
		.base_version = WIRE_MAD_BASE_VERSION,
		.class_version = WIRE_SA_CLASS_VERSION,
		.cap_mask = WIRE_SA_CAP_OPTIONAL_RECORDS | WIRE_SA_CAP_UD_MULTICAST |
			    WIRE_SA_CAP_MULTIPATH | WIRE_SA_CAP_PORT_INFO_CAP_MASK_MATCH,
		.cap_mask2 = WIRE_SA_CAP2_SEND_ONLY_FULL_MEMBER,
		.resp_time_enc = RESP_TIME_ENC,
	};

	sm_emit(q, &r);
}

/* A request's LID, put down to the base LID of its port. */
static uint16_t base_lid(const struct sm_query *q, uint16_t lid)
{
	const struct sm_port *p = sm_subnet_lid(q->sm->subnet, lid);

	return p ? p->lid : lid;
}

void sm_node_each(struct sm_query *q)
{
	struct wire_node_record *key = q->key;

	key->lid = base_lid(q, key->lid);
	sm_for_each_end_port(q->sm->subnet, p) {
		struct wire_node_record r = {
			.lid = p->lid, .info = p->node->info, .description = p->node->desc,
		};

		r.info.port_guid = p->guid;
		r.info.local_port = p->num;
		sm_emit(q, &r);
	}
}

/* CapabilityMask asks for "all of these" with a bit of the modifier (15.2.5.3) */
void sm_port_info_each(struct sm_query *q)
{
	struct wire_port_info_record *key = q->key;
	uint32_t caps = 0;

	key->lid = base_lid(q, key->lid);
	if (q->mask & WIRE_PIR_CAP_MASK && q->hdr.mad.attr_mod & WIRE_PIR_MATCH_CAP_MASK) {
		q->mask &= ~(uint64_t)WIRE_PIR_CAP_MASK;
		caps = key->info.cap_mask;
	}
	sm_for_each_port(q->sm->subnet, p) {
		struct wire_port_info_record r = {
			.lid = sm_end_port(p)->lid, .port = p->num, .options = key->options,
			.info = p->info,
		};

		r.info.mkey = sm_query_trusted(q) ? p->info.mkey : 0; /* 15.4.1.2 */
		if ((p->info.cap_mask & caps) == caps)
			sm_emit(q, &r);
	}
}

/* The switches a request can mean: all, or the one with its LID. */
#define for_each_switch(q, lid_bit, lid_, n)                                             \
	for (uint32_t s_ = 0; s_ < (q)->sm->subnet->n_switches; s_++)                    \
		for (struct sm_node *n = (q)->sm->subnet->switches[s_]; n; n = NULL)     \
			if (!((q)->mask & (lid_bit)) || n->ports[0].lid == (lid_))

void sm_switch_info_each(struct sm_query *q)
{
	const struct wire_switch_info_record *key = q->key;

	for_each_switch(q, WIRE_SWIR_LID, key->lid, n) {
		struct wire_switch_info_record r = {.lid = n->ports[0].lid, .info = n->sw};

		sm_emit(q, &r);
	}
}

void sm_lft_each(struct sm_query *q)
{
	const struct wire_lft_record *key = q->key;

	for_each_switch(q, WIRE_LFTR_LID, key->lid, n)
		for (uint32_t b = 0; b < n->tables.lft_size / WIRE_LFT_PER_BLOCK; b++) {
			struct wire_lft_record r = {.lid = n->ports[0].lid, .block = b};

			memcpy(r.table.port, n->tables.lft + b * WIRE_LFT_PER_BLOCK,
			       sizeof(r.table.port));
			sm_emit(q, &r);
		}
}

static void emit_mft_block(struct sm_query *q, const struct sm_node *n, uint32_t block,
			   uint32_t pos)
{
	struct wire_mft_record r = {.lid = n->ports[0].lid, .block = block, .position = pos};

	for (uint32_t i = 0; i < WIRE_MFT_PER_BLOCK; i++)
		r.table.port_mask[i] = n->tables.mft[block * WIRE_MFT_PER_BLOCK + i][pos];
	sm_emit(q, &r);
}

void sm_mft_each(struct sm_query *q)
{
	const struct wire_mft_record *key = q->key;

	for_each_switch(q, WIRE_MFTR_LID, key->lid, n)
		for (uint32_t b = 0; b < n->tables.mft_size / WIRE_MFT_PER_BLOCK; b++)
			for (uint32_t pos = 0; pos <= n->n_ports / 16u; pos++)
				emit_mft_block(q, n, b, pos);
}

static uint8_t lanes_of(const struct sm_port *p)
{
	static const uint8_t lanes[] = {1, 1, 2, 4, 8, 15}; /* 14.2.5.6, VLCap */

	return p->info.operational_vls < ARRAY_SIZE(lanes) ? lanes[p->info.operational_vls]
							   : 1;
}

/* As the manager programs them (set_sl_to_vl() of activate.c), if it does. */
void sm_sl_to_vl_each(struct sm_query *q)
{
	const struct wire_sl_to_vl_record *key = q->key;

	if (!q->sm->opt.qos)
		return;
	sm_for_each_port(q->sm->subnet, p) {
		uint32_t n_in = sm_is_switch(p->node) ? p->node->n_ports : 0;

		if (q->mask & WIRE_SLVL_LID && sm_end_port(p)->lid != base_lid(q, key->lid))
			continue;
		for (uint32_t in = 0; in <= n_in; in++) {
			struct wire_sl_to_vl_record r = {
				.lid = sm_end_port(p)->lid, .in_port = in,
				.out_port = sm_is_switch(p->node) ? p->num : 0,
			};

			for (uint32_t sl = 0; sl < 16; sl++)
				r.table.vl[sl] = sl % lanes_of(p);
			sm_emit(q, &r);
		}
	}
}

void sm_vl_arb_each(struct sm_query *q)
{
	if (!q->sm->opt.qos)
		return;
	sm_for_each_port(q->sm->subnet, p) {
		struct wire_vl_arb_record r = {
			.lid = sm_end_port(p)->lid, .out_port = p->num, .block = 1,
		};

		for (uint32_t i = 0; i < MIN(lanes_of(p), p->info.vl_arb_low_cap); i++) {
			r.table.entry[i].vl = i;
			r.table.entry[i].weight = 64;
		}
		if (p->num && p->info.vl_arb_low_cap)
			sm_emit(q, &r);
	}
}

void sm_pkey_each(struct sm_query *q)
{
	struct wire_pkey_table_record *key = q->key;

	/* partitions are told to those only who prove the key (15.4.1.2) */
	if (!sm_query_trusted(q)) {
		q->status = WIRE_SA_REQUEST_INVALID;
		return;
	}
	key->lid = base_lid(q, key->lid);
	sm_for_each_end_port(q->sm->subnet, p) {
		struct wire_pkey_table_record r = {.lid = p->lid, .port = p->num};

		memcpy(r.table.pkey, p->pkeys, sizeof(r.table.pkey));
		if (p->pkeys_known)
			sm_emit(q, &r);
	}
}

void sm_guid_info_each(struct sm_query *q)
{
	struct wire_guid_info_record *key = q->key;

	key->lid = base_lid(q, key->lid);
	sm_for_each_end_port(q->sm->subnet, p) {
		struct wire_guid_info_record r = {.lid = p->lid};

		r.table.guid[0] = p->guid;
		sm_emit(q, &r);
	}
}

void sm_link_each(struct sm_query *q)
{
	struct wire_link_record *key = q->key;

	key->from_lid = base_lid(q, key->from_lid);
	key->to_lid = base_lid(q, key->to_lid);
	sm_for_each_port(q->sm->subnet, p) {
		struct wire_link_record r;

		if (!p->peer)
			continue;
		r = (struct wire_link_record){
			.from_lid = sm_end_port(p)->lid, .from_port = p->num,
			.to_port = p->peer->num, .to_lid = sm_end_port(p->peer)->lid,
		};
		sm_emit(q, &r);
	}
}

void sm_sm_info_each(struct sm_query *q)
{
	struct wire_sm_info_record r = {.lid = q->sm->subnet->self->lid};
	struct sm_peer *p;

	sm_info_fill(q->sm, &r.info);
	r.info.sm_key = 0; /* the managers' own */
	sm_emit(q, &r);
	list_for_each_entry(p, &q->sm->peers, node) {
		const struct sm_port *port = sm_subnet_port(q->sm->subnet, p->port_guid);

		if (!p->answered || !port)
			continue;
		r = (struct wire_sm_info_record){.lid = port->lid, .info = p->info};
		r.info.sm_key = 0;
		sm_emit(q, &r);
	}
}
