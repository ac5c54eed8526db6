/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fields of a profile, in the order of ibv_devinfo(1), followed by those that
 * ibv_devinfo does not print: the limit of inline data, and the transports.
 *
 * A profile does not change the ports, which the topology defines, the frequency of the
 * clock, which must be correct, and the attributes of raw packet QPs.
 */
#include <stdbool.h>
#include <stddef.h>

#include "profile/fields.h"
#include "profile/profile.h"
#include "rdma/ib_verbs.h"

static const struct profile_word atomic_words[] = {
	{"ATOMIC_NONE", IB_ATOMIC_NONE},
	{"ATOMIC_HCA", IB_ATOMIC_HCA},
	{"ATOMIC_GLOB", IB_ATOMIC_GLOB},
	{0},
};

static const struct profile_word odp_words[] = {
	{"ODP_SUPPORT", IB_ODP_SUPPORT},
	{"ODP_SUPPORT_IMPLICIT", IB_ODP_SUPPORT_IMPLICIT},
	{0},
};

static const struct profile_word odp_transport_words[] = {
	{"SUPPORT_SEND", IB_ODP_SUPPORT_SEND},
	{"SUPPORT_RECV", IB_ODP_SUPPORT_RECV},
	{"SUPPORT_WRITE", IB_ODP_SUPPORT_WRITE},
	{"SUPPORT_READ", IB_ODP_SUPPORT_READ},
	{"SUPPORT_ATOMIC", IB_ODP_SUPPORT_ATOMIC},
	{"SUPPORT_SRQ", IB_ODP_SUPPORT_SRQ_RECV},
	{0},
};

static const struct profile_word qp_words[] = {
	{"RC", 1 << IB_QPT_RC},
	{"UC", 1 << IB_QPT_UC},
	{"UD", 1 << IB_QPT_UD},
	{"XRC", 1 << IB_QPT_XRC_INI | 1 << IB_QPT_XRC_TGT},
	{"RAW", 1 << IB_QPT_RAW_PACKET},
	{"RD", 1 << IB_QPT_RD | 1 << IB_QPT_EEC},
	{0},
};

#define AT(field)                                                                              \
	.offset = offsetof(struct ib_device_attr, field),                                      \
	.bytes = sizeof(((struct ib_device_attr *)0)->field)
#define SAME(name_) .name = #name_, .devinfo = #name_
#define NUMBER_OF(name_) SAME(name_), .rule = PROFILE_AS_IT_IS, AT(name_)
#define LIMIT(name_)	 SAME(name_), .rule = PROFILE_AT_MOST, AT(name_)
#define ODP(name_)                                                                             \
	SAME(name_), .syntax = PROFILE_WORDS, .rule = PROFILE_SUBSET,                          \
		AT(odp_caps.per_transport_caps.name_), .words = odp_transport_words

const struct profile_field profile_fields[] = {
	{SAME(fw_ver), .syntax = PROFILE_TEXT},
	{NUMBER_OF(vendor_id), .hex = true},
	{NUMBER_OF(vendor_part_id)},
	{NUMBER_OF(hw_ver), .hex = true},
	{LIMIT(max_mr_size), .hex = true, .least = 1 << 20},
	{SAME(page_size_cap), .rule = PROFILE_SUBSET, AT(page_size_cap), .hex = true},
	{LIMIT(max_qp), .least = 16},
	{LIMIT(max_qp_wr), .least = 256},
	{SAME(device_cap_flags), .rule = PROFILE_SUBSET, AT(device_cap_flags), .hex = true},
	{SAME(max_sge), .rule = PROFILE_AT_MOST, AT(max_send_sge), .least = 2,
	 .also = offsetof(struct ib_device_attr, max_recv_sge)},
	{LIMIT(max_sge_rd), .least = 1},
	{LIMIT(max_cq), .least = 16},
	{LIMIT(max_cqe), .least = 512},
	{LIMIT(max_mr), .least = 16},
	{LIMIT(max_pd), .least = 16},
	{LIMIT(max_qp_rd_atom)},
	{LIMIT(max_res_rd_atom)},
	{LIMIT(max_qp_init_rd_atom)},
	{SAME(atomic_cap), .syntax = PROFILE_WORD, .rule = PROFILE_AT_MOST, AT(atomic_cap),
	 .words = atomic_words},
	{LIMIT(max_mw)},
	{LIMIT(max_mcast_grp)},
	{LIMIT(max_mcast_qp_attach)},
	{LIMIT(max_total_mcast_qp_attach)},
	{LIMIT(max_ah), .least = 64},
	{LIMIT(max_srq)},
	{LIMIT(max_srq_wr)},
	{LIMIT(max_srq_sge)},
	{SAME(local_ca_ack_delay), .rule = PROFILE_AT_LEAST, AT(local_ca_ack_delay),
	 .most = 31},
	{SAME(general_odp_caps), .syntax = PROFILE_WORDS, .rule = PROFILE_SUBSET,
	 AT(odp_caps.general_caps), .words = odp_words},
	{ODP(rc_odp_caps)},
	{ODP(uc_odp_caps)},
	{ODP(ud_odp_caps)},
	{ODP(xrc_odp_caps)},
	{.name = "completion_timestamp_mask", .devinfo = "completion timestamp_mask",
	 .rule = PROFILE_SUBSET, AT(timestamp_mask), .hex = true},
	{.name = "max_cq_count", .devinfo = "max_cq_count", .rule = PROFILE_AT_MOST,
	 AT(cq_caps.max_cq_moderation_count)},
	{.name = "max_cq_period", .devinfo = "max_cq_period", .rule = PROFILE_AT_MOST,
	 AT(cq_caps.max_cq_moderation_period)},
	{SAME(max_num_tags), .rule = PROFILE_AT_MOST, AT(tm_caps.max_num_tags)},
	{.name = "max_dm_size", .devinfo = "maximum available device memory",
	 .rule = PROFILE_AT_MOST, AT(max_dm_size)},
	{.name = "max_inline_data", .rule = PROFILE_AT_MOST, AT(max_inline_data),
	 .also = offsetof(struct ib_device_attr, max_inline_data_ud)},
	{.name = "max_inline_data_ud", .rule = PROFILE_AT_MOST, AT(max_inline_data_ud)},
	{.name = "qp_types", .syntax = PROFILE_WORDS, .rule = PROFILE_SUBSET, AT(qp_types),
	 .words = qp_words},
};
const unsigned profile_num_fields = ARRAY_SIZE(profile_fields);
_Static_assert(ARRAY_SIZE(profile_fields) <= PROFILE_MAX_FIELDS, "struct profile has room");
