/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The built-in profiles. The values are from outputs of `ibv_devinfo -v` that users have
 * published: firmware 2.33.5100 of a ConnectX-3 (4099), 16.27.1016 of a ConnectX-5 (4119),
 * 28.43.2566 of a ConnectX-7 (4129), and the kernel's rdma_rxe, whose limits are also in its
 * rxe_param.h. The output does not contain the limit of inline data; for ConnectX it is the
 * value that programs have found with ConnectX-4 and later.
 *
 * "efa-like" resembles Amazon's adapter, which has no connected transports. softib does not
 * implement that adapter's own transport (SRD), so only datagrams remain.
 */
#include <stddef.h>
#include <string.h>

#include "profile/profile.h"

#define CONNECTX_5_AND_LATER                                                                   \
	"max_mr_size: 0xffffffffffffffff\n"                                                    \
	"page_size_cap: 0xfffffffffffff000\n"                                                  \
	"max_qp_wr: 32768\n"                                                                   \
	"device_cap_flags: 0xed721c36\n"                                                       \
	"max_sge: 30\n"                                                                        \
	"max_sge_rd: 30\n"                                                                     \
	"max_cq: 16777216\n"                                                                   \
	"max_cqe: 4194303\n"                                                                   \
	"max_mr: 16777216\n"                                                                   \
	"max_qp_rd_atom: 16\n"                                                                 \
	"max_qp_init_rd_atom: 16\n"                                                            \
	"atomic_cap: ATOMIC_HCA\n"                                                             \
	"max_mw: 16777216\n"                                                                   \
	"max_mcast_grp: 2097152\n"                                                             \
	"max_mcast_qp_attach: 240\n"                                                           \
	"max_total_mcast_qp_attach: 503316480\n"                                               \
	"max_ah: 2147483647\n"                                                                 \
	"max_srq: 8388608\n"                                                                   \
	"max_srq_wr: 32767\n"                                                                  \
	"max_srq_sge: 31\n"                                                                    \
	"local_ca_ack_delay: 16\n"                                                             \
	"general_odp_caps: ODP_SUPPORT ODP_SUPPORT_IMPLICIT\n"                                 \
	"rc_odp_caps: SUPPORT_SEND SUPPORT_RECV SUPPORT_WRITE SUPPORT_READ SUPPORT_SRQ\n"      \
	"uc_odp_caps: none\n"                                                                  \
	"ud_odp_caps: SUPPORT_SEND\n"                                                          \
	"xrc_odp_caps: SUPPORT_SEND SUPPORT_WRITE SUPPORT_READ SUPPORT_SRQ\n"                  \
	"completion_timestamp_mask: 0x7fffffffffffffff\n"                                      \
	"max_cq_count: 65535\n"                                                                \
	"max_cq_period: 4095\n"                                                                \
	"max_num_tags: 127\n"                                                                  \
	"max_dm_size: 131072\n"                                                                \
	"max_inline_data: 988\n"                                                               \
	"max_inline_data_ud: 512\n"

/* no on-demand paging */
#define NO_ODP                                                                         \
	"general_odp_caps: none\n"                                                      \
	"rc_odp_caps: none\n"                                                           \
	"uc_odp_caps: none\n"                                                           \
	"ud_odp_caps: none\n"                                                           \
	"xrc_odp_caps: none\n"
/* no completion timestamps, no moderation of completion events, no device memory */
#define NO_EXTRAS                                                                      \
	"completion_timestamp_mask: 0x0\n"                                              \
	"max_cq_count: 0\n"                                                             \
	"max_cq_period: 0\n"                                                            \
	"max_num_tags: 0\n"                                                             \
	"max_dm_size: 0\n"

static const struct {
	const char *name, *text;
} profiles[] = {
	{"connectx3",
	 "fw_ver: 2.33.5100\n"
	 "vendor_id: 0x02c9\n"
	 "vendor_part_id: 4099\n"
	 "hw_ver: 0x0\n"
	 "max_mr_size: 0xffffffffffffffff\n"
	 "page_size_cap: 0xfffffe00\n"
	 "max_qp: 131000\n"
	 "max_qp_wr: 16351\n"
	 "device_cap_flags: 0x057e9c66\n"
	 "max_sge: 32\n"
	 "max_sge_rd: 30\n"
	 "max_cq: 65408\n"
	 "max_cqe: 4194303\n"
	 "max_mr: 524032\n"
	 "max_pd: 32764\n"
	 "max_qp_rd_atom: 16\n"
	 "max_res_rd_atom: 2096000\n"
	 "max_qp_init_rd_atom: 128\n"
	 "atomic_cap: ATOMIC_HCA\n"
	 "max_mcast_grp: 8192\n"
	 "max_mcast_qp_attach: 248\n"
	 "max_total_mcast_qp_attach: 2031616\n"
	 "max_ah: 2147483647\n"
	 "max_srq: 65472\n"
	 "max_srq_wr: 16383\n"
	 "max_srq_sge: 31\n"
	 "local_ca_ack_delay: 15\n"
	 NO_ODP
	 "max_num_tags: 0\n"
	 "max_dm_size: 0\n"},
	{"connectx5",
	 "fw_ver: 16.27.1016\n"
	 "vendor_id: 0x02c9\n"
	 "vendor_part_id: 4119\n"
	 "hw_ver: 0x0\n"
	 "max_qp: 262144\n"
	 "max_pd: 16777216\n"
	 "max_res_rd_atom: 4194304\n"
	 CONNECTX_5_AND_LATER
	 "qp_types: RC UC UD XRC RAW\n"},
	{"connectx7",
	 "fw_ver: 28.43.2566\n"
	 "vendor_id: 0x02c9\n"
	 "vendor_part_id: 4129\n"
	 "hw_ver: 0x0\n"
	 "max_qp: 131072\n"
	 "max_pd: 8388608\n"
	 "max_res_rd_atom: 2097152\n"
	 CONNECTX_5_AND_LATER},
	{"rxe",
	 "fw_ver: 0.0.0\n"
	 "vendor_id: 0xffffff\n"
	 "vendor_part_id: 0\n"
	 "hw_ver: 0x0\n"
	 "max_mr_size: 0xffffffffffffffff\n"
	 "page_size_cap: 0xfffff000\n"
	 "max_qp: 65536\n"
	 "max_qp_wr: 16384\n"
	 "device_cap_flags: 0x00203c76\n"
	 "max_sge: 32\n"
	 "max_sge_rd: 32\n"
	 "max_cq: 16384\n"
	 "max_cqe: 32767\n"
	 "max_mr: 262144\n"
	 "max_pd: 32764\n"
	 "max_qp_rd_atom: 128\n"
	 "max_res_rd_atom: 258048\n"
	 "max_qp_init_rd_atom: 128\n"
	 "atomic_cap: ATOMIC_HCA\n"
	 "max_mw: 0\n"
	 "max_mcast_grp: 8192\n"
	 "max_mcast_qp_attach: 56\n"
	 "max_total_mcast_qp_attach: 458752\n"
	 "max_ah: 100\n"
	 "max_srq: 960\n"
	 "max_srq_wr: 16384\n"
	 "max_srq_sge: 27\n"
	 "local_ca_ack_delay: 15\n"
	 NO_ODP NO_EXTRAS
	 "max_inline_data: 512\n"
	 "qp_types: RC UC UD\n"},
	{"efa-like",
	 "fw_ver: 0.0.0.0\n"
	 "vendor_id: 0x1d0f\n"
	 "vendor_part_id: 61344\n"
	 "hw_ver: 0xefa0\n"
	 "max_qp: 256\n"
	 "max_qp_wr: 4096\n"
	 "device_cap_flags: 0x0\n"
	 "max_sge: 2\n"
	 "max_sge_rd: 1\n"
	 "max_cq: 512\n"
	 "max_cqe: 32768\n"
	 "max_mr: 131072\n"
	 "max_pd: 256\n"
	 "max_qp_rd_atom: 0\n"
	 "max_res_rd_atom: 0\n"
	 "max_qp_init_rd_atom: 0\n"
	 "atomic_cap: ATOMIC_NONE\n"
	 "max_mw: 0\n"
	 "max_mcast_grp: 0\n"
	 "max_mcast_qp_attach: 0\n"
	 "max_total_mcast_qp_attach: 0\n"
	 "max_ah: 32768\n"
	 "max_srq: 0\n"
	 "max_srq_wr: 0\n"
	 "max_srq_sge: 0\n"
	 NO_ODP NO_EXTRAS
	 "max_inline_data: 32\n"
	 "qp_types: UD\n"},
	{"max", ""}, /* softib's own limits */
};

const char *profile_builtin(unsigned i)
{
	return i < sizeof(profiles) / sizeof(*profiles) ? profiles[i].name : NULL;
}

const char *profile_builtin_text(const char *name)
{
	for (unsigned i = 0; profile_builtin(i); i++)
		if (!strcmp(profiles[i].name, name))
			return profiles[i].text;
	return NULL;
}
