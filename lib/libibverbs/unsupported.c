/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Names that must exist although softib has nothing behind them.
 *
 * IBVERBS_PRIVATE_34 is the interface of the distribution's providers
 * (libmlx5, libefa). Programs load those libraries, which bind all names at
 * once and call verbs_register_driver_34() from their constructors; no device
 * of theirs is ever found, so nothing else is called. Each of the others
 * answers EOPNOTSUPP, or NULL and EOPNOTSUPP.
 */
#include "soft.h"

#define REFUSE_INT(name)                                                                       \
	EXPORT int name(void);                                                                 \
	int name(void)                                                                         \
	{                                                                                      \
		return verbs_err(-EOPNOTSUPP);                                                 \
	}
#define REFUSE_PTR(name)                                                                       \
	EXPORT void *name(void);                                                               \
	void *name(void)                                                                       \
	{                                                                                      \
		return verbs_null(-EOPNOTSUPP);                                                \
	}
#define REFUSE_VOID(name)                                                                      \
	EXPORT void name(void);                                                                \
	void name(void)                                                                        \
	{                                                                                      \
	}

REFUSE_INT(execute_ioctl)
REFUSE_INT(ibv_cmd_advise_mr)
REFUSE_INT(ibv_cmd_alloc_dm)
REFUSE_INT(ibv_cmd_alloc_mw)
REFUSE_INT(ibv_cmd_alloc_pd)
REFUSE_INT(ibv_cmd_attach_mcast)
REFUSE_INT(ibv_cmd_close_xrcd)
REFUSE_INT(ibv_cmd_create_ah)
REFUSE_INT(ibv_cmd_create_counters)
REFUSE_INT(ibv_cmd_create_cq)
REFUSE_INT(ibv_cmd_create_cq_ex)
REFUSE_INT(ibv_cmd_create_flow)
REFUSE_INT(ibv_cmd_create_flow_action_esp)
REFUSE_INT(ibv_cmd_create_qp)
REFUSE_INT(ibv_cmd_create_qp_ex)
REFUSE_INT(ibv_cmd_create_qp_ex2)
REFUSE_INT(ibv_cmd_create_rwq_ind_table)
REFUSE_INT(ibv_cmd_create_srq)
REFUSE_INT(ibv_cmd_create_srq_ex)
REFUSE_INT(ibv_cmd_create_wq)
REFUSE_INT(ibv_cmd_dealloc_mw)
REFUSE_INT(ibv_cmd_dealloc_pd)
REFUSE_INT(ibv_cmd_dereg_mr)
REFUSE_INT(ibv_cmd_destroy_ah)
REFUSE_INT(ibv_cmd_destroy_counters)
REFUSE_INT(ibv_cmd_destroy_cq)
REFUSE_INT(ibv_cmd_destroy_flow)
REFUSE_INT(ibv_cmd_destroy_flow_action)
REFUSE_INT(ibv_cmd_destroy_qp)
REFUSE_INT(ibv_cmd_destroy_rwq_ind_table)
REFUSE_INT(ibv_cmd_destroy_srq)
REFUSE_INT(ibv_cmd_destroy_wq)
REFUSE_INT(ibv_cmd_detach_mcast)
REFUSE_INT(ibv_cmd_free_dm)
REFUSE_INT(ibv_cmd_get_context)
REFUSE_INT(ibv_cmd_modify_cq)
REFUSE_INT(ibv_cmd_modify_flow_action_esp)
REFUSE_INT(ibv_cmd_modify_qp)
REFUSE_INT(ibv_cmd_modify_qp_ex)
REFUSE_INT(ibv_cmd_modify_srq)
REFUSE_INT(ibv_cmd_modify_wq)
REFUSE_INT(ibv_cmd_open_qp)
REFUSE_INT(ibv_cmd_open_xrcd)
REFUSE_INT(ibv_cmd_poll_cq)
REFUSE_INT(ibv_cmd_post_recv)
REFUSE_INT(ibv_cmd_post_send)
REFUSE_INT(ibv_cmd_post_srq_recv)
REFUSE_INT(ibv_cmd_query_context)
REFUSE_INT(ibv_cmd_query_device_any)
REFUSE_INT(ibv_cmd_query_mr)
REFUSE_INT(ibv_cmd_query_port)
REFUSE_INT(ibv_cmd_query_qp)
REFUSE_INT(ibv_cmd_query_srq)
REFUSE_INT(ibv_cmd_read_counters)
REFUSE_INT(ibv_cmd_reg_dm_mr)
REFUSE_INT(ibv_cmd_reg_dmabuf_mr)
REFUSE_INT(ibv_cmd_reg_mr)
REFUSE_INT(ibv_cmd_req_notify_cq)
REFUSE_INT(ibv_cmd_rereg_mr)
REFUSE_INT(ibv_cmd_resize_cq)
REFUSE_INT(ibv_read_ibdev_sysfs_file)
REFUSE_INT(verbs_init_cq)
REFUSE_INT(__ioctl_final_num_attrs)
REFUSE_PTR(_verbs_init_and_alloc_context)
REFUSE_PTR(verbs_open_device)
REFUSE_VOID(verbs_register_driver_34)
REFUSE_VOID(verbs_set_ops)
REFUSE_VOID(verbs_uninit_context)

EXPORT void __verbs_log(struct verbs_context *ctx, uint32_t level, const char *format, ...);
void __verbs_log(struct verbs_context *ctx, uint32_t level, const char *format, ...)
{
}

EXPORT bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy;

/*
 * Fork. An engine reaches memory through the page tables of its own process,
 * not of a device: a write after fork() that moves a page is no problem, and
 * no range must be kept from children.
 */
EXPORT int ibv_fork_init(void)
{
	return 0;
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

EXPORT int ibv_dontfork_range(void *base, size_t size);
int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

EXPORT int ibv_dofork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}
