/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The attributes that the adapter reports of itself and its ports, and the answers of its agents. */
#include <stddef.h>
#include <string.h>

#include "base/bytes.h"
#include "base/vendor.h"
#include "fabric/ethernet.h"
#include "hca/private.h"
#include "profile/profile.h"
#include "wire/mad.h"

/* On-demand paging is supported for all operations alike: a page is faulted in when the engine or a
 * peer accesses it, whatever the operation. */
#define ODP_DATAGRAM (IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_SRQ_RECV)
#define ODP_UC	     (ODP_DATAGRAM | IB_ODP_SUPPORT_WRITE)
#define ODP_RC                                                                                 \
	(ODP_UC | IB_ODP_SUPPORT_READ | IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_FLUSH |         \
	 IB_ODP_SUPPORT_ATOMIC_WRITE)

/* what the engine can do; profiles take away from it */
static void own_attr(const struct hca *hca, struct ib_device_attr *attr)
{
	const struct ag_node *node = fab_node(hca->fab, hca->node);

	*attr = (struct ib_device_attr){
		.fw_ver = SOFTIB_VERSION,
		.sys_image_guid = cpu_to_be64(node->sys_guid ? node->sys_guid : node->guid),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 0xfffff000,
		.vendor_id = SOFTIB_VENDOR_ID,
		.vendor_part_id = TOPO_DEVICE_ID(TOPO_CA),
		.hw_ver = 1,
		.max_qp = 262144,
		.max_qp_wr = 32768,
		.device_cap_flags = IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_CURR_QP_STATE_MOD |
				    IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID |
				    IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_SRQ_RESIZE |
				    IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2B |
				    IB_DEVICE_XRC | IB_DEVICE_AUTO_PATH_MIG |
				    IB_DEVICE_N_NOTIFY_CQ | IB_DEVICE_MEM_MGT_EXTENSIONS |
				    IB_DEVICE_UD_IP_CSUM | IB_DEVICE_UD_TSO |
				    IB_DEVICE_FLUSH_GLOBAL | IB_DEVICE_ATOMIC_WRITE,
		.max_send_sge = TP_MAX_SGE,
		.max_recv_sge = TP_MAX_SGE,
		.max_sge_rd = TP_MAX_SGE,
		.max_cq = 65536,
		.max_cqe = 4194303,
		.max_mr = 1 << 20,
		.max_mw = 1 << 20,
		.max_fmr = 1 << 20,
		.max_map_per_fmr = 32,
		.max_fast_reg_page_list_len = 8192,
		.max_pd = 1 << 16,
		.max_qp_rd_atom = TP_MAX_DEST_RD,
		.max_res_rd_atom = 16 * 262144,
		.max_qp_init_rd_atom = TP_MAX_DEST_RD,
		.atomic_cap = IB_ATOMIC_HCA,
		.max_mcast_grp = 8192,
		.max_mcast_qp_attach = 248,
		.max_total_mcast_qp_attach = 8192 * 248,
		.max_ah = 1 << 20,
		.max_srq = 65536,
		.max_srq_wr = 32768,
		.max_srq_sge = TP_MAX_SGE,
		.max_pkeys = ABI_PKEYS,
		.local_ca_ack_delay = 15, /* 134 ms: a program may not be scheduled for so long */
		.odp_caps = {.general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT,
			     .per_transport_caps = {.rc_odp_caps = ODP_RC,
						    .uc_odp_caps = ODP_UC,
						    .ud_odp_caps = ODP_DATAGRAM,
						    .xrc_odp_caps = ODP_RC}},
		.cq_caps = {.max_cq_moderation_count = UINT16_MAX,
			    .max_cq_moderation_period = UINT16_MAX},
		.tm_caps = {.max_rndv_hdr_size = ENG_RNDV_HEADER_BYTES,
			    .max_num_tags = ENG_TAGS_MAX,
			    .max_ops = ENG_TAGS_MAX, /* they complete when they are posted */
			    .max_sge = ENG_TAG_SGES,
			    .flags = IB_TM_CAP_RC},
		.timestamp_mask = UINT64_MAX, /* the engine's clock counts nanoseconds */
		.hca_core_clock_khz = 1000000,
		.max_dm_size = HCA_DM_BYTES,
		.max_inline_data = TP_MAX_INLINE,
		.max_inline_data_ud = TP_MAX_INLINE,
		.qp_types = 1 << IB_QPT_RC | 1 << IB_QPT_UC | 1 << IB_QPT_UD |
			    1 << IB_QPT_XRC_INI | 1 << IB_QPT_XRC_TGT | 1 << IB_QPT_RD |
			    1 << IB_QPT_EEC,
	};
}

/* Sizes that a profile does not name: some programs ask for as much as they can get, and pay for it
 * with memory. */
static void limit_sizes(const struct profile *profile, struct ib_device_attr *attr)
{
#define SIZE(field, usual) {offsetof(struct ib_device_attr, field), &attr->field, usual}
	const struct {
		size_t offset;
		int *value, usual;
	} sizes[] = {
		SIZE(max_qp_wr, 16384),
		SIZE(max_srq_wr, 16384),
		SIZE(max_qp_rd_atom, 16),
		SIZE(max_qp_init_rd_atom, 16),
	};
#undef SIZE

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (!profile || !profile_gives(profile, sizes[i].offset))
			*sizes[i].value = sizes[i].usual;
}

/* Set the attributes of an adapter that has a port of Ethernet. */
static void add_ethernet(struct ib_device_attr *attr)
{
	attr->device_cap_flags |= IB_DEVICE_MANAGED_FLOW_STEERING;
	attr->qp_types |= 1 << IB_QPT_RAW_PACKET;
	attr->max_raw_ethy_qp = attr->max_qp;
	attr->rss_fields = IB_RX_HASH_ALL;
	attr->min_rate_limit = 1;
	attr->max_rate_limit = 100000000;
}

/* Adapt the attributes that no profile names to those that the profile has limited. */
static void limit_dependent(struct ib_device_attr *attr)
{
	attr->max_raw_ethy_qp = MIN(attr->max_raw_ethy_qp, attr->max_qp);
	if (!(attr->qp_types & 1 << IB_QPT_RAW_PACKET)) {
		attr->device_cap_flags &= ~(u64)IB_DEVICE_MANAGED_FLOW_STEERING;
		attr->max_raw_ethy_qp = 0;
		attr->rss_fields = 0;
		attr->min_rate_limit = attr->max_rate_limit = 0;
	}
	if (!(attr->device_cap_flags & (IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2A |
					IB_DEVICE_MEM_WINDOW_TYPE_2B)))
		attr->max_mw = 0;
}

bool hca_has_ethernet(const struct hca *hca)
{
	for (unsigned port = 1; port <= hca->ib.phys_port_cnt; port++)
		if (fab_is_ethernet(hca->fab, hca->node, (int)port))
			return true;
	return false;
}

int hca_query_device(struct ib_device *device, struct ib_device_attr *attr)
{
	const struct hca *hca = hca_of(device);

	own_attr(hca, attr);
	if (hca_has_ethernet(hca))
		add_ethernet(attr);
	if (hca->set->profile)
		profile_apply(hca->set->profile, attr, NULL, 0);
	limit_sizes(hca->set->profile, attr);
	limit_dependent(attr);
	return 0;
}

unsigned hca_profile_less(const struct hca *hca, char *less, size_t bytes)
{
	struct ib_device_attr attr;

	own_attr(hca, &attr);
	return hca->set->profile ? profile_apply(hca->set->profile, &attr, less, bytes) : 0;
}

int hca_modify_device(struct ib_device *device, int mask, struct ib_device_modify *modify)
{
	struct ag_node *node = fab_node(hca_of(device)->fab, hca_of(device)->node);

	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	ag_set_description(node, modify->node_desc, rt_now(hca_of(device)->rt));
	fab_traps_changed(hca_of(device)->fab, hca_of(device)->node);
	memcpy(device->node_desc, modify->node_desc, sizeof(modify->node_desc));
	return 0;
}

/* A16: a port of RoCE has the default partition only */
static u16 num_pkeys(const struct ag_port *p, const struct abi_devport *d)
{
	return d->link_layer == IB_LINK_LAYER_ETHERNET ?
		       1 :
		       (u16)MIN((unsigned)p->num_pkeys, (unsigned)ABI_PKEYS);
}

int hca_query_port(struct ib_device *device, u32 port_num, struct ib_port_attr *attr)
{
	const struct ag_node *node = fab_node(hca_of(device)->fab, hca_of(device)->node);
	const struct ag_port *p = &node->port[port_num];
	const struct abi_devport *d = hca_devport(hca_of(device), port_num);

	*attr = (struct ib_port_attr){
		.subnet_prefix = p->gid_prefix,
		.state = d->state,
		.max_mtu = d->max_mtu_enc,
		.active_mtu = d->active_mtu_enc,
		.gid_tbl_len = d->num_gids,
		.port_cap_flags = d->cap_mask,
		.max_msg_sz = HCA_MAX_MSG_BYTES,
		.bad_pkey_cntr = d->pkey_violations,
		.qkey_viol_cntr = d->qkey_violations,
		.pkey_tbl_len = num_pkeys(p, d),
		.lid = d->lid,
		.sm_lid = d->sm_lid,
		.lmc = d->lmc,
		.max_vl_num = d->max_vl_num,
		.sm_sl = d->sm_sl,
		.subnet_timeout = d->subnet_timeout_enc,
		.init_type_reply = d->init_type_reply,
		.active_width = d->width_enc,
		.active_speed = d->speed_enc,
		.phys_state = d->phys_state,
		.link_layer = d->link_layer,
	};
	return 0;
}

int hca_find_station(struct ib_device *device, u32 port_num, unsigned int sgid_index,
		     const union ib_gid *gid, u16 *station)
{
	const struct hca *hca = hca_of(device);
	const struct abi_devport *port = hca_devport(hca, port_num);
	union wire_gid wire;

	memcpy(wire.raw, gid->raw, sizeof(wire.raw));
	*station = fab_is_ethernet(hca->fab, hca->node, (int)port_num) && sgid_index < port->num_gids ?
			   fab_ethernet_find_gid(hca->fab, &wire, port->gid_path[sgid_index]) : 0;
	return *station ? 0 : -EHOSTUNREACH;
}

bool hca_ask_station(const struct hca *hca, u32 port_num, unsigned int sgid_index, const union ib_gid *gid)
{
	const struct abi_devport *port = hca_devport(hca, port_num);
	union wire_gid wire;

	memcpy(wire.raw, gid->raw, sizeof(wire.raw));
	return fab_is_ethernet(hca->fab, hca->node, (int)port_num) && sgid_index < port->num_gids &&
	       fab_ethernet_ask(hca->fab, hca->node, (int)port_num, &wire, port->gid_path[sgid_index]);
}

void hca_set_mtu(struct ib_device *device, u32 port_num, unsigned int bytes)
{
	const struct hca *hca = hca_of(device);

	if (fab_is_ethernet(hca->fab, hca->node, (int)port_num))
		fab_ethernet_set_mtu(hca->fab, hca->node, (int)port_num, bytes);
}

void hca_set_addresses(struct ib_device *device, u32 port_num, const struct ib_port_address *address,
		       unsigned int num)
{
	const struct hca *hca = hca_of(device);
	struct fab_roce_address to[FAB_ROCE_GIDS]; /* including those of the address plan */

	if (!fab_is_ethernet(hca->fab, hca->node, (int)port_num))
		return;
	num = MIN(num, (unsigned int)ARRAY_SIZE(to));
	for (unsigned int i = 0; i < num; i++) {
		memcpy(to[i].gid.raw, address[i].gid.raw, sizeof(to[i].gid.raw));
		to[i].vlan_id = address[i].vlan_id;
	}
	fab_ethernet_set_added(hca->fab, hca->node, (int)port_num, to, num);
}

int hca_modify_port(struct ib_device *device, u32 port_num, int mask, struct ib_port_modify *modify)
{
	struct hca *hca = hca_of(device);
	const u32 changeable = IB_PORT_SM | IB_PORT_DEVICE_MGMT_SUP;

	if (mask & ~IB_PORT_SHUTDOWN ||
	    (modify->set_port_cap_mask | modify->clr_port_cap_mask) & ~changeable)
		return -EOPNOTSUPP;
	fab_set_capability(hca->fab, hca->node, (int)port_num, modify->set_port_cap_mask, true);
	fab_set_capability(hca->fab, hca->node, (int)port_num, modify->clr_port_cap_mask, false);
	if (mask & IB_PORT_SHUTDOWN)
		return fab_link_set(hca->fab, hca->node, (int)port_num, false);
	return 0;
}

int hca_query_gid(struct ib_device *device, u32 port_num, int index, union ib_gid *gid)
{
	if (index < 0 || index >= hca_devport(hca_of(device), port_num)->num_gids)
		return -EINVAL;
	memcpy(gid->raw, hca_devport(hca_of(device), port_num)->gid[index], sizeof(gid->raw));
	return 0;
}

int hca_query_pkey(struct ib_device *device, u32 port_num, u16 index, u16 *pkey)
{
	if (index >= ABI_PKEYS)
		return -EINVAL;
	*pkey = hca_devport(hca_of(device), port_num)->pkey[index];
	return 0;
}

int hca_process_mad(struct ib_device *device, int flags, u32 port_num, const struct ib_wc *in_wc,
		    const struct ib_grh *in_grh, const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_mad_bytes, u16 *out_mad_pkey_index)
{
	struct hca *hca = hca_of(device);
	struct ag_mad_context context = {
		.now = rt_now(hca->rt),
		.slid = in_wc ? (uint16_t)in_wc->slid : hca_devport(hca, port_num)->lid,
		.sl = in_wc ? in_wc->sl : 0,
		.src_qpn = in_wc ? in_wc->src_qp : 0,
		.pkey = WIRE_PKEY_DEFAULT,
		.ignore_mkey = flags & IB_MAD_IGNORE_MKEY,
	};
	int result = fab_process_mad(hca->fab, hca->node, (int)port_num, &context, in, out);

	if (out_mad_bytes)
		*out_mad_bytes = WIRE_MAD_BYTES;
	if (out_mad_pkey_index && in_wc)
		*out_mad_pkey_index = in_wc->pkey_index;
	if (result & AG_REPLY)
		return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
	return IB_MAD_RESULT_SUCCESS | (result & AG_CONSUMED ? IB_MAD_RESULT_CONSUMED : 0);
}
