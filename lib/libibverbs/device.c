/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the adapter is and what its ports are now. The device's limits come
 * once from softibd; the ports' attributes, GIDs and P_Keys are read from the
 * device page, so that asking costs no message and is never stale.
 */
#include <endian.h>
#include <time.h>

#include "soft.h"

#define MAX_MESSAGE_BYTES (1u << 31) /* IBA v1 9.7.6.1.1 */
#define ROCE_PKEYS	  1	     /* A16: RoCE has no partitions but the default one */

static void load_base(struct ibv_device_attr *a, const struct ib_uverbs_query_device_resp *r)
{
	*a = (struct ibv_device_attr){
		.node_guid = r->node_guid,
		.sys_image_guid = r->sys_image_guid,
		.max_mr_size = r->max_mr_size,
		.page_size_cap = r->page_size_cap,
		.vendor_id = r->vendor_id,
		.vendor_part_id = r->vendor_part_id,
		.hw_ver = r->hw_ver,
		.max_qp = (int)r->max_qp,
		.max_qp_wr = (int)r->max_qp_wr,
		.device_cap_flags = r->device_cap_flags,
		.max_sge = (int)r->max_sge,
		.max_sge_rd = (int)r->max_sge_rd,
		.max_cq = (int)r->max_cq,
		.max_cqe = (int)r->max_cqe,
		.max_mr = (int)r->max_mr,
		.max_pd = (int)r->max_pd,
		.max_qp_rd_atom = (int)r->max_qp_rd_atom,
		.max_ee_rd_atom = (int)r->max_ee_rd_atom,
		.max_res_rd_atom = (int)r->max_res_rd_atom,
		.max_qp_init_rd_atom = (int)r->max_qp_init_rd_atom,
		.max_ee_init_rd_atom = (int)r->max_ee_init_rd_atom,
		.atomic_cap = (enum ibv_atomic_cap)r->atomic_cap,
		.max_ee = (int)r->max_ee,
		.max_rdd = (int)r->max_rdd,
		.max_mw = (int)r->max_mw,
		.max_raw_ipv6_qp = (int)r->max_raw_ipv6_qp,
		.max_raw_ethy_qp = (int)r->max_raw_ethy_qp,
		.max_mcast_grp = (int)r->max_mcast_grp,
		.max_mcast_qp_attach = (int)r->max_mcast_qp_attach,
		.max_total_mcast_qp_attach = (int)r->max_total_mcast_qp_attach,
		.max_ah = (int)r->max_ah,
		.max_fmr = (int)r->max_fmr,
		.max_map_per_fmr = (int)r->max_map_per_fmr,
		.max_srq = (int)r->max_srq,
		.max_srq_wr = (int)r->max_srq_wr,
		.max_srq_sge = (int)r->max_srq_sge,
		.max_pkeys = r->max_pkeys,
		.local_ca_ack_delay = r->local_ca_ack_delay,
		.phys_port_cnt = r->phys_port_cnt,
	};
}

/** device_attr_load() - keep the answer to the extended QUERY_DEVICE */
void device_attr_load(struct soft_context *ctx, const struct abi_ex_query_device_resp *resp)
{
	const struct ib_uverbs_ex_query_device_resp *r = &resp->core;
	struct ibv_device_attr_ex *a = &ctx->attr;

	*a = (struct ibv_device_attr_ex){
		.odp_caps = {.general_caps = r->odp_caps.general_caps,
			     .per_transport_caps =
				     {.rc_odp_caps = r->odp_caps.per_transport_caps.rc_odp_caps,
				      .uc_odp_caps = r->odp_caps.per_transport_caps.uc_odp_caps,
				      .ud_odp_caps = r->odp_caps.per_transport_caps.ud_odp_caps}},
		.xrc_odp_caps = r->xrc_odp_caps,
		.completion_timestamp_mask = r->timestamp_mask,
		.hca_core_clock = r->hca_core_clock,
		.device_cap_flags_ex = r->device_cap_flags_ex,
		.max_dm_size = r->max_dm_size,
		.rss_caps = {.supported_qpts = r->rss_caps.supported_qpts,
			     .max_rwq_indirection_tables = r->rss_caps.max_rwq_indirection_tables,
			     .max_rwq_indirection_table_size =
				     r->rss_caps.max_rwq_indirection_table_size,
			     .rx_hash_fields_mask =
				     r->rss_caps.supported_qpts ? SOFT_RX_HASH_FIELDS : 0,
			     .rx_hash_function =
				     r->rss_caps.supported_qpts ? IBV_RX_HASH_FUNC_TOEPLITZ : 0},
		.packet_pacing_caps = {.qp_rate_limit_min = resp->min_rate_limit,
				       .qp_rate_limit_max = resp->max_rate_limit,
				       .supported_qpts = resp->max_rate_limit ?
								 1u << IBV_QPT_RAW_PACKET :
								 0},
		.max_wq_type_rq = r->max_wq_type_rq,
		.tm_caps = {.max_rndv_hdr_size = r->tm_caps.max_rndv_hdr_size,
			    .max_num_tags = r->tm_caps.max_num_tags,
			    .flags = r->tm_caps.flags,
			    .max_ops = r->tm_caps.max_ops,
			    .max_sge = r->tm_caps.max_sge},
		.cq_mod_caps = {.max_cq_count = r->cq_moderation_caps.max_cq_moderation_count,
				.max_cq_period = r->cq_moderation_caps.max_cq_moderation_period},
		.phys_port_cnt_ex = ctx->num_ports,
	};
	load_base(&a->orig_attr, &r->base);
	memcpy(a->orig_attr.fw_ver, ctx->device->info.fw_ver,
	       MIN(sizeof(a->orig_attr.fw_ver), sizeof(ctx->device->info.fw_ver)));
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	if (to_context(context)->dead)
		return verbs_err(-EIO);
	*attr = to_context(context)->attr.orig_attr;
	return 0;
}

/** device_query_ex() - ibv_query_device_ex(); @bytes is the caller's size */
int device_query_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
		    struct ibv_device_attr_ex *attr, size_t bytes)
{
	struct soft_context *ctx = to_context(context);

	if (ctx->dead)
		return verbs_err(-EIO);
	if (input && input->comp_mask)
		return EINVAL;
	if (bytes < sizeof(attr->orig_attr))
		return EINVAL;
	memset(attr, 0, bytes);
	memcpy(attr, &ctx->attr, MIN(bytes, sizeof(ctx->attr)));
	return 0;
}

/** device_query_rt_values() - the clock of completion time stamps */
int device_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	uint32_t wanted = values->comp_mask;

	values->comp_mask = 0;
	if (wanted & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (wanted) {
		uint64_t ns = progress_now(NULL).ns;

		/* as the other providers: raw ticks, all in tv_nsec */
		values->raw_clock = (struct timespec){.tv_nsec = (long)ns};
		values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	}
	return 0;
}

/**
 * device_port_read() - a consistent copy of a port's live attributes
 * Return: 0; -EINVAL no such port; -EIO softibd or the adapter is gone
 */
int device_port_read(struct soft_context *ctx, uint32_t port, struct abi_devport *out)
{
	const struct abi_devpage *page = ctx->devpage;

	if (port < 1 || port > ctx->num_ports)
		return -EINVAL;
	while (!ctx->dead)
		if (abi_devpage_load(page, out, &page->port[port - 1], sizeof(*out)))
			return 0;
	return -EIO;
}

/** device_is_ethernet() - has the port the Ethernet link layer? It never changes */
bool device_is_ethernet(const struct soft_context *ctx, uint32_t port)
{
	return port >= 1 && port <= ctx->num_ports &&
	       ctx->devpage->port[port - 1].link_layer == IBV_LINK_LAYER_ETHERNET;
}

/** device_has_ethernet() - has any port of the adapter the Ethernet link layer? */
bool device_has_ethernet(const struct soft_context *ctx)
{
	for (uint32_t port = 1; port <= ctx->num_ports; port++)
		if (device_is_ethernet(ctx, port))
			return true;
	return false;
}

/* What a port of RoCE does not have, and what its packets need: as the kernel reports it.
 * The number of its station is an address for the engine only. */
static void hide_infiniband(struct ibv_port_attr *a)
{
	a->lid = a->sm_lid = 0;
	a->lmc = a->sm_sl = a->subnet_timeout = a->init_type_reply = 0;
	a->pkey_tbl_len = ROCE_PKEYS;
	a->flags = IBV_QPF_GRH_REQUIRED;
}

/** device_query_port() - ibv_query_port(); @bytes is the caller's size: 48
 *  for the exported function's old struct, 52 for the inline of today */
int device_query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
		      size_t bytes)
{
	struct ibv_port_attr a = {0};
	struct abi_devport live;
	int rc = device_port_read(to_context(context), port, &live);

	if (rc)
		return verbs_err(rc);
	a = (struct ibv_port_attr){
		.state = (enum ibv_port_state)live.state,
		.max_mtu = (enum ibv_mtu)live.max_mtu_enc,
		.active_mtu = (enum ibv_mtu)live.active_mtu_enc,
		.gid_tbl_len = live.num_gids,
		.port_cap_flags = live.cap_mask,
		.max_msg_sz = MAX_MESSAGE_BYTES,
		.bad_pkey_cntr = live.pkey_violations,
		.qkey_viol_cntr = live.qkey_violations,
		.pkey_tbl_len = ABI_PKEYS,
		.lid = live.lid,
		.sm_lid = live.sm_lid,
		.lmc = live.lmc,
		.max_vl_num = live.max_vl_num,
		.sm_sl = live.sm_sl,
		.subnet_timeout = live.subnet_timeout_enc,
		.init_type_reply = live.init_type_reply,
		.active_width = live.width_enc,
		.active_speed = (uint8_t)MIN(live.speed_enc, UINT8_MAX),
		.phys_state = live.phys_state,
		.link_layer = live.link_layer,
	};
	if (live.link_layer == IBV_LINK_LAYER_ETHERNET)
		hide_infiniband(&a);
	memset(attr, 0, bytes);
	memcpy(attr, &a, MIN(bytes, sizeof(a)));
	return 0;
}

/* What today's inline calls when a context has no query_port operation; its
 * struct ends before port_cap_flags2. */
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
			  struct _compat_ibv_port_attr *attr)
{
	return device_query_port(context, port_num, (struct ibv_port_attr *)attr,
				 offsetof(struct ibv_port_attr, port_cap_flags2));
}

static bool gid_is_empty(const uint8_t gid[16])
{
	static const uint8_t zero[16];

	return !memcmp(gid, zero, sizeof(zero));
}

/** ibv_query_gid() - an empty entry reads as zeros. Return: 0; -1 and errno */
EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
			 union ibv_gid *gid)
{
	struct abi_devport live;
	int rc = device_port_read(to_context(context), port_num, &live);

	if (!rc && (index < 0 || index >= live.num_gids))
		rc = -EINVAL;
	if (rc) {
		errno = -rc;
		return -1;
	}
	memcpy(gid->raw, live.gid[index], sizeof(gid->raw));
	return 0;
}

/** _ibv_query_gid_ex() - 0; EINVAL; ENODATA for an empty entry */
EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
			     struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	struct ibv_gid_entry e = {.gid_index = gid_index, .port_num = port_num};
	struct abi_devport live;
	int rc;

	if (flags || entry_size < sizeof(e))
		return verbs_err(-EINVAL);
	rc = device_port_read(to_context(context), port_num, &live);
	if (rc)
		return verbs_err(rc);
	if (gid_index >= live.num_gids)
		return verbs_err(-EINVAL);
	if (gid_is_empty(live.gid[gid_index]))
		return verbs_err(-ENODATA);
	memcpy(e.gid.raw, live.gid[gid_index], sizeof(e.gid.raw));
	e.gid_type = live.gid_type[gid_index];
	memset(entry, 0, entry_size);
	memcpy(entry, &e, sizeof(e));
	return 0;
}

/** _ibv_query_gid_table() - every valid entry of every port
 *  Return: how many; -EINVAL also when @max_entries is too few */
EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
				    size_t max_entries, uint32_t flags, size_t entry_size)
{
	struct soft_context *ctx = to_context(context);
	size_t n = 0;

	if (flags || entry_size < sizeof(*entries))
		return -EINVAL;
	for (uint32_t port = 1; port <= ctx->num_ports; port++) {
		for (uint32_t i = 0; i < ctx->devpage->port[port - 1].num_gids; i++) {
			struct ibv_gid_entry e;
			int rc = _ibv_query_gid_ex(context, port, i, &e, 0, sizeof(e));

			if (rc == ENODATA)
				continue;
			if (rc || n == max_entries)
				return rc ? -rc : -EINVAL;
			memcpy((char *)entries + n++ * entry_size, &e, sizeof(e));
		}
	}
	return (ssize_t)n;
}

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
		       unsigned *type);

/** ibv_query_gid_type() - private, but ibv_devinfo asks. 0: InfiniBand or
 *  RoCE version 1, which it tells apart by the link layer; 1: RoCE version 2 */
EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned index,
			      unsigned *type)
{
	struct abi_devport live;
	int rc = device_port_read(to_context(context), port_num, &live);

	if (rc || index >= live.num_gids) {
		errno = rc ? -rc : EINVAL;
		return -1;
	}
	*type = live.gid_type[index] == ABI_GID_ROCE_V2;
	return 0;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	struct abi_devport live;
	int rc = device_port_read(to_context(context), port_num, &live);

	if (!rc && (index < 0 || index >= (device_is_ethernet(to_context(context), port_num) ?
						 ROCE_PKEYS :
						 ABI_PKEYS)))
		rc = -EINVAL;
	if (rc) {
		errno = -rc;
		return -1;
	}
	*pkey = htobe16(live.pkey[index]);
	return 0;
}

/** ibv_get_pkey_index() - Return: the first index that holds @pkey; -1 */
EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	struct abi_devport live;
	int rc = device_port_read(to_context(context), port_num, &live);

	for (int i = 0; !rc && i < ABI_PKEYS; i++) {
		if (live.pkey[i] == be16toh(pkey))
			return i;
	}
	errno = rc ? -rc : ENOENT;
	return -1;
}
