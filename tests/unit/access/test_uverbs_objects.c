/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Objects of the uverbs endpoint beyond those of the first verbs: device memory, XRC. */
#include <fcntl.h>

#include "abi/target.h"
#include "uverbs_program.h"

static int alloc_dm(struct world *w, u64 bytes, u32 *handle)
{
	struct abi_alloc_dm in = {.length_bytes = bytes};
	struct abi_alloc_dm_resp out;
	int ret;

	w->num_fds = 0;
	ret = command(w, w->sock, ABI_CMD_ALLOC_DM, &in, sizeof(in), &out, sizeof(out));
	assert_int_equal(w->num_fds, ret ? 0 : 1);
	if (w->num_fds)
		close(w->fds[0]);
	*handle = out.dm_handle;
	return ret;
}

static int free_dm(struct world *w, u32 handle)
{
	struct abi_free_dm in = {.dm_handle = handle};

	return command(w, w->sock, ABI_CMD_FREE_DM, &in, sizeof(in), NULL, 0);
}

static int reg_dm(struct world *w, u32 pd, u32 dm, u64 offset, u64 bytes, int access, u32 *handle)
{
	struct abi_reg_dm_mr in = {.offset = offset, .length_bytes = bytes, .pd_handle = pd,
				   .dm_handle = dm, .access_flags = (u32)access};
	struct ib_uverbs_reg_mr_resp out;
	int ret = command(w, w->sock, ABI_CMD_REG_DM_MR, &in, sizeof(in), &out, sizeof(out));

	*handle = out.mr_handle;
	return ret;
}

static void device_memory_has_regions(void **state)
{
	const int access = IB_ZERO_BASED | IB_ACCESS_LOCAL_WRITE;
	struct world *w = *state;
	struct ib_uverbs_rereg_mr_resp r;
	struct things t;
	u32 dm, mr, none;

	make_things(w, &t);
	assert_int_equal(alloc_dm(w, 0, &none), -EINVAL);
	assert_int_equal(alloc_dm(w, 4097, &none), -EINVAL);
	assert_int_equal(alloc_dm(w, 100, &dm), 0);
	assert_int_equal(reg_dm(w, t.pd, dm, 0, 101, access, &none), -EINVAL);
	assert_int_equal(reg_dm(w, t.pd, dm, 101, 0, access, &none), -EINVAL);
	assert_int_equal(reg_dm(w, t.pd, dm, UINT64_MAX, 2, access, &none), -EINVAL);
	assert_int_equal(reg_dm(w, t.pd, dm, 0, 4, IB_ACCESS_LOCAL_WRITE, &none), -EINVAL);
	assert_int_equal(reg_dm(w, t.pd, dm, 0, 4, IB_ZERO_BASED | IB_ACCESS_REMOTE_WRITE, &none),
			 -EINVAL);
	assert_int_equal(reg_dm(w, t.pd, t.pd, 0, 4, access, &none), -EINVAL);
	assert_int_equal(reg_dm(w, t.pd, dm, 60, 40, access, &mr), 0);
	assert_int_equal(free_dm(w, dm), -EBUSY);
	assert_int_equal(CMD_OUT(w, REREG_MR, rereg_mr, &r, .mr_handle = mr,
				 .flags = IB_MR_REREG_ACCESS), -EOPNOTSUPP);
	assert_int_equal(CMD(w, DEREG_MR, dereg_mr, .mr_handle = mr), 0);
	assert_int_equal(free_dm(w, dm), 0);
	assert_int_equal(free_dm(w, dm), -EINVAL);
	/* what is left goes with the program, the region first */
	assert_int_equal(alloc_dm(w, 4096, &dm), 0);
	assert_int_equal(reg_dm(w, t.pd, dm, 0, 4096, access, &mr), 0);
	close(w->sock);
	turn(w);
	assert_int_equal(w->fake->live, 0);
	w->sock = connect_to(w);
}

static int query_object(struct world *w, u32 object, u32 handle, struct abi_query_object_resp *out)
{
	struct abi_query_object in = {.object = object, .handle = handle};

	w->num_fds = 0;
	return command(w, w->sock, ABI_CMD_QUERY_OBJECT, &in, sizeof(in), out, sizeof(*out));
}

static void a_handle_says_what_it_names(void **state)
{
	const int access = IB_ZERO_BASED | IB_ACCESS_LOCAL_WRITE;
	struct world *w = *state;
	struct abi_query_object_resp out;
	struct things t;
	u32 dm, mr;

	make_things(w, &t);
	assert_int_equal(alloc_dm(w, 100, &dm), 0);
	assert_int_equal(reg_dm(w, t.pd, dm, 60, 40, access, &mr), 0);
	assert_int_equal(query_object(w, ABI_OBJECT_PD, t.pd, &out), 0);
	assert_int_equal(query_object(w, ABI_OBJECT_MR, mr, &out), 0);
	assert_int_equal(out.length_bytes, 40);
	assert_int_equal(out.lkey, out.rkey);
	assert_int_equal(out.dm_offset, 60);
	assert_int_equal(out.iova, 0);
	assert_int_equal(out.access, access);
	assert_int_equal(out.pd_handle, t.pd);
	assert_int_equal(out.owner, 0);
	assert_int_equal(w->num_fds, 1); /* its memory is device memory */
	close(w->fds[0]);
	assert_int_equal(query_object(w, ABI_OBJECT_DM, dm, &out), 0);
	assert_int_equal(out.length_bytes, 100);
	assert_int_equal(w->num_fds, 1);
	close(w->fds[0]);
	/* of its kind alone */
	assert_int_equal(query_object(w, ABI_OBJECT_PD, mr, &out), -EINVAL);
	assert_int_equal(query_object(w, ABI_OBJECT_DM, t.pd, &out), -EINVAL);
	assert_int_equal(query_object(w, ABI_OBJECT_DM + 1, dm, &out), -EINVAL);
	assert_int_equal(query_object(w, UINT32_MAX, dm, &out), -EINVAL);
}

static int create_half(struct world *w, enum ib_qp_type type, u32 pd_or_xrcd, u32 cq, u32 *handle)
{
	struct ib_uverbs_create_qp_resp qp;
	int ret = CMD_OUT(w, CREATE_QP, create_qp, &qp, .pd_handle = pd_or_xrcd,
			  .send_cq_handle = cq, .max_send_sge = 1, .qp_type = type);

	*handle = qp.qp_handle;
	return ret;
}

static int modify_half(struct world *w, u32 qp, enum ib_qp_state to, u32 mask)
{
	return CMD(w, MODIFY_QP, modify_qp, .qp_handle = qp, .attr_mask = IB_QP_STATE | mask,
		   .qp_state = to, .path_mtu = IB_MTU_1024, .port_num = 1,
		   .dest = {.port_num = 1, .dlid = 5});
}

struct opened {
	u32 handle, number;
};

/* @inode: of the file; -1: none */
static int open_xrcd_at(struct world *w, int sock, int inode, int oflags, struct opened *xrcd)
{
	struct {
		struct ib_uverbs_open_xrcd req;
		struct abi_open_xrcd file;
	} in = {{.fd = inode < 0 ? UINT32_MAX : 3, .oflags = (u32)oflags}, {1, (u64)inode}};

	return command(w, sock, IB_USER_VERBS_CMD_OPEN_XRCD, &in, sizeof(in), xrcd, sizeof(*xrcd));
}

static int open_xrcd(struct world *w, int inode, int oflags, struct opened *xrcd)
{
	return open_xrcd_at(w, w->sock, inode, oflags, xrcd);
}

static int open_target(struct world *w, int sock, u32 xrcd, u32 qpn, u32 *handle)
{
	struct ib_uverbs_open_qp in = {.pd_handle = xrcd, .qpn = qpn, .qp_type = IB_QPT_XRC_TGT};
	struct ib_uverbs_create_qp_resp out;
	int ret = command(w, sock, IB_USER_VERBS_CMD_OPEN_QP, &in, sizeof(in), &out, sizeof(out));

	*handle = out.qp_handle;
	return ret;
}

static int close_target(struct world *w, int sock, u32 handle, u32 *lives)
{
	struct ib_uverbs_destroy_qp in = {.qp_handle = handle};
	struct ib_uverbs_destroy_qp_resp out;
	int ret = command(w, sock, IB_USER_VERBS_CMD_DESTROY_QP, &in, sizeof(in), &out,
			  sizeof(out));

	*lives = out.events_reported;
	return ret;
}

static int close_domain(struct world *w, int sock, u32 handle)
{
	struct ib_uverbs_close_xrcd in = {.xrcd_handle = handle};

	return command(w, sock, IB_USER_VERBS_CMD_CLOSE_XRCD, &in, sizeof(in), NULL, 0);
}

static void a_file_names_an_xrc_domain(void **state)
{
	struct world *w = *state;
	struct opened a, b, c;
	struct things t;
	int other;

	make_things(w, &t);
	other = active_session(w);
	assert_int_equal(open_xrcd(w, 7, 0, &a), -EINVAL);
	assert_int_equal(open_xrcd(w, 7, O_CREAT | O_EXCL, &a), 0);
	assert_int_equal(open_xrcd_at(w, other, 7, O_CREAT | O_EXCL, &b), -EINVAL);
	assert_int_equal(open_xrcd_at(w, other, 7, 0, &b), 0);
	assert_int_equal(open_xrcd_at(w, other, 8, O_CREAT, &c), 0);
	assert_int_equal(a.number, b.number);
	assert_int_not_equal(a.number, c.number);
	assert_int_equal(close_domain(w, other, c.handle), 0);
	assert_int_equal(open_xrcd_at(w, other, -1, O_CREAT, &c), 0);
	assert_int_not_equal(a.number, c.number);
	/* it is of the file as long as anybody has it */
	assert_int_equal(close_domain(w, w->sock, a.handle), 0);
	assert_int_equal(open_xrcd(w, 7, 0, &a), 0);
	assert_int_equal(a.number, b.number);
	assert_int_equal(close_domain(w, w->sock, a.handle), 0);
	close(other);
	turn(w);
	assert_int_equal(open_xrcd(w, 7, 0, &a), -EINVAL);
}

static void a_target_ends_with_its_last_handle(void **state)
{
	struct world *w = *state;
	u32 qp, opened, again, lives, none;
	struct opened a, b, c;
	struct things t;
	int other;

	make_things(w, &t);
	other = active_session(w);
	assert_int_equal(open_xrcd(w, 7, O_CREAT, &a), 0);
	assert_int_equal(open_xrcd_at(w, other, 7, O_CREAT, &b), 0);
	assert_int_equal(open_xrcd_at(w, other, 8, O_CREAT, &c), 0);
	assert_int_equal(create_half(w, IB_QPT_XRC_TGT, a.handle, 0, &qp), 0);
	assert_int_equal(open_target(w, other, c.handle, 0x101, &none), -EINVAL);
	assert_int_equal(open_target(w, other, b.handle, 0x100, &none), -EINVAL);
	assert_int_equal(open_target(w, other, b.handle, 0x101, &opened), 0);
	assert_int_equal(open_target(w, other, b.handle, 0x101, &again), 0);
	assert_int_equal(close_target(w, other, again, &lives), 0);
	assert_int_equal(lives, ABI_TARGET_LIVES);
	assert_int_equal(close_domain(w, other, b.handle), -EBUSY);
	/* its creator goes: the other has it now, and the last to close it ends it */
	assert_int_equal(close_domain(w, w->sock, a.handle), -EBUSY);
	assert_int_equal(close_target(w, w->sock, qp, &lives), 0);
	assert_int_equal(lives, ABI_TARGET_LIVES);
	assert_int_equal(close_domain(w, w->sock, a.handle), 0);
	assert_int_equal(close_target(w, other, opened, &lives), 0);
	assert_int_equal(lives, 0);
	assert_int_equal(open_target(w, other, b.handle, 0x101, &opened), -EINVAL);
	assert_int_equal(close_domain(w, other, b.handle), 0);
	close(other);
}

static void an_xrc_domain_has_targets_and_srqs(void **state)
{
	const u32 rtr = IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	const u32 rts = IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_MAX_QP_RD_ATOMIC;
	struct world *w = *state;
	struct opened xrcd;
	struct ib_uverbs_create_srq_resp srq;
	struct ib_uverbs_destroy_srq_resp gone;
	struct ib_uverbs_destroy_qp_resp qp;
	struct ib_uverbs_destroy_cq_resp cq;
	u32 initiator, target, none;
	struct things t;

	make_things(w, &t);
	assert_int_equal(open_xrcd(w, -1, O_CREAT, &xrcd), 0);
	assert_int_equal(CMD_OUT(w, CREATE_XSRQ, create_xsrq, &srq, .srq_type = IB_UVERBS_SRQT_TM),
			 -EOPNOTSUPP);
	assert_int_equal(CMD_OUT(w, CREATE_XSRQ, create_xsrq, &srq, .srq_type = IB_UVERBS_SRQT_XRC,
				 .pd_handle = t.pd, .max_wr = 4, .cq_handle = t.cq,
				 .xrcd_handle = t.pd), -EINVAL);
	assert_int_equal(CMD_OUT(w, CREATE_XSRQ, create_xsrq, &srq, .srq_type = IB_UVERBS_SRQT_XRC,
				 .pd_handle = t.pd, .max_wr = 4, .cq_handle = t.cq,
				 .xrcd_handle = xrcd.handle), 0);
	assert_int_equal(create_half(w, IB_QPT_XRC_TGT, t.pd, t.cq, &none), -EINVAL);
	assert_int_equal(create_half(w, IB_QPT_XRC_INI, xrcd.handle, t.cq, &none), -EINVAL);
	assert_int_equal(create_half(w, IB_QPT_XRC_TGT, xrcd.handle, 0, &target), 0);
	assert_int_equal(create_half(w, IB_QPT_XRC_INI, t.pd, t.cq, &initiator), 0);
	/* both are set up as an RC QP: what their half does not have is passed over */
	for (unsigned i = 0; i < 2; i++) {
		u32 half = i ? target : initiator;

		assert_int_equal(modify_half(w, half, IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT |
					     IB_QP_ACCESS_FLAGS), 0);
		assert_int_equal(modify_half(w, half, IB_QPS_RTR, rtr), 0);
		assert_int_equal(modify_half(w, half, IB_QPS_RTS, rts), 0);
	}
	assert_int_equal(CMD(w, CLOSE_XRCD, close_xrcd, .xrcd_handle = xrcd.handle), -EBUSY);
	assert_int_equal(CMD_OUT(w, DESTROY_SRQ, destroy_srq, &gone, .srq_handle = srq.srq_handle),
			 0);
	assert_int_equal(CMD(w, CLOSE_XRCD, close_xrcd, .xrcd_handle = xrcd.handle), -EBUSY);
	assert_int_equal(CMD_OUT(w, DESTROY_QP, destroy_qp, &qp, .qp_handle = target), 0);
	assert_int_equal(CMD(w, CLOSE_XRCD, close_xrcd, .xrcd_handle = xrcd.handle), 0);
	assert_int_equal(CMD_OUT(w, DESTROY_CQ, destroy_cq, &cq, .cq_handle = t.cq), -EBUSY);
	/* whoever dies with a domain in use leaves nothing */
	assert_int_equal(open_xrcd(w, -1, O_CREAT, &xrcd), 0);
	assert_int_equal(create_half(w, IB_QPT_XRC_TGT, xrcd.handle, 0, &target), 0);
	close(w->sock);
	turn(w);
	assert_int_equal(w->fake->live, 0);
	w->sock = connect_to(w);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(device_memory_has_regions),
		T(a_handle_says_what_it_names),
		T(an_xrc_domain_has_targets_and_srqs),
		T(a_file_names_an_xrc_domain),
		T(a_target_ends_with_its_last_handle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
