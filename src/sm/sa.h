/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The administrator's frame (chapter 15): a request becomes a query; the row
 * of its attribute produces records; those that match the component mask are
 * gathered, and become the response.
 */
#ifndef SOFTIB_SM_SA_H
#define SOFTIB_SM_SA_H

#include "sm/internal.h"

struct sm_sa_attr;

/**
 * struct sm_query - a request under way
 * @key:       the record of the request, decoded
 * @mask:      components of @key that records must equal; a row may take bits
 *             away that it judges itself
 * @requester: the end port that asks, NULL when its LID is not known
 * @status:    a MAD status to answer with instead of records
 * @defer:     the response waits for multicast tables
 */
struct sm_query {
	struct sm *sm;
	const struct sm_sa_attr *attr;
	const struct sm_addr *from;
	const struct sm_port *requester;
	const uint8_t *mad;
	size_t len;
	struct wire_sa hdr;
	void *key;
	uint64_t mask;
	uint16_t status;
	bool defer;
	/* --- the answer --- */
	uint8_t *out;
	size_t used, room;
	uint32_t n_records;
};

/**
 * struct sm_sa_attr - an attribute that SA serves
 * @each:   offer every record to sm_emit(); for Get and GetTable
 * @set:    for Set; emits what is answered
 * @remove: for Delete
 * @multi:  for GetMulti
 * @uses:   components that @each judges itself
 */
struct sm_sa_attr {
	uint16_t id;
	const struct wire_codec *codec;
	void (*each)(struct sm_query *q);
	void (*set)(struct sm_query *q);
	void (*remove)(struct sm_query *q);
	void (*multi)(struct sm_query *q);
	const struct wire_codec *answer; /* where it differs from codec */
};

/** sm_emit() - add @record (the codec's struct) to the answer if it matches */
void sm_emit(struct sm_query *q, const void *record);

/** sm_query_trusted() - may it see what belongs to others? (15.4.1.2) */
static inline bool sm_query_trusted(const struct sm_query *q)
{
	return q->hdr.sm_key && q->hdr.sm_key == q->sm->opt.sa_key;
}

/**
 * sm_selected() - do a value and a selector agree? (15.2.5.16)
 * @mask: the request's; @sel_bit and @val_bit of it name the two components
 * A value without its selector asks for exactly it; a selector without a value
 * asks for nothing.
 */
bool sm_selected(uint64_t mask, uint64_t sel_bit, uint64_t val_bit, uint8_t selector,
		 uint32_t wanted, uint32_t have);

/**
 * sm_fitted() - like sm_selected(), for what may be used below its best: a
 * link of 4096 bytes serves who wants exactly 2048, or less than 4096
 * @have: the best there is; lowered to what the request gets
 */
bool sm_fitted(uint64_t mask, uint64_t sel_bit, uint64_t val_bit, uint8_t selector,
	       uint32_t wanted, uint32_t *have);

/** sm_fitted_life() - a group's packet lifetime: @usual, or what comes next to
 *  it and is as the selector wants; unlike a link, a group is made to order */
uint8_t sm_fitted_life(bool has_selector, bool has_value, uint8_t selector, uint8_t wanted,
		       uint8_t usual);

/* rows' functions, each in the file of its subject */
void sm_class_port_info_each(struct sm_query *q);
void sm_node_each(struct sm_query *q);
void sm_port_info_each(struct sm_query *q);
void sm_switch_info_each(struct sm_query *q);
void sm_lft_each(struct sm_query *q);
void sm_mft_each(struct sm_query *q);
void sm_sl_to_vl_each(struct sm_query *q);
void sm_vl_arb_each(struct sm_query *q);
void sm_pkey_each(struct sm_query *q);
void sm_guid_info_each(struct sm_query *q);
void sm_link_each(struct sm_query *q);
void sm_sm_info_each(struct sm_query *q);
void sm_path_each(struct sm_query *q);
void sm_path_multi(struct sm_query *q);
void sm_mcmember_each(struct sm_query *q);
void sm_mcmember_join(struct sm_query *q);
void sm_mcmember_leave(struct sm_query *q);
void sm_service_each(struct sm_query *q);
void sm_service_set(struct sm_query *q);
void sm_service_remove(struct sm_query *q);
void sm_inform_set(struct sm_query *q);
void sm_inform_each(struct sm_query *q);

#endif
