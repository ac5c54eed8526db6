/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Two contexts that share protection domains, regions and device memory (abi/share.h). */
#include "abi/share.h"
#include "uverbs_program.h"

static int active_session_with(struct world *w, struct abi_context_resp *resp)
{
	struct ib_uverbs_get_context in = {0};
	int sock = connect_to(w);

	assert_int_equal(open_as(w, sock, ABI_OPEN_UVERBS, "n1", "softib0", NULL, 0, NULL), 0);
	assert_int_equal(command(w, sock, IB_USER_VERBS_CMD_GET_CONTEXT, &in, sizeof(in), resp,
				 sizeof(*resp)), 0);
	close_fds(w);
	return sock;
}

static int share(struct world *w, int sock, const uint8_t token[ABI_TOKEN_BYTES])
{
	struct abi_share_context in;

	memcpy(in.token, token, sizeof(in.token));
	return command(w, sock, ABI_CMD_SHARE, &in, sizeof(in), NULL, 0);
}

/* what CMD_OUT() does, by @sock */
#define BY(w, sock_, call)                                                     \
	({                                                                     \
		int kept_ = (w)->sock, ret_;                                   \
		(w)->sock = (sock_);                                           \
		ret_ = (call);                                                 \
		(w)->sock = kept_;                                             \
		ret_;                                                          \
	})

static int query(struct world *w, int sock, u32 object, u32 handle,
		 struct abi_query_object_resp *out)
{
	struct abi_query_object in = {.object = object, .handle = handle};
	int ret;

	w->num_fds = 0;
	ret = command(w, sock, ABI_CMD_QUERY_OBJECT, &in, sizeof(in), out, sizeof(*out));
	close_fds(w);
	return ret;
}

static int reach(struct world *w, int sock, u32 mr)
{
	struct abi_reach in = {.mr_handle = mr};

	w->num_fds = 0;
	return command(w, sock, ABI_CMD_REACH, &in, sizeof(in), NULL, 0);
}

static u32 alloc_pd(struct world *w, int sock)
{
	struct ib_uverbs_alloc_pd_resp pd;

	assert_int_equal(BY(w, sock, CMD_OUT(w, ALLOC_PD, alloc_pd, &pd, 0)), 0);
	return pd.pd_handle;
}

static u32 reg_mr(struct world *w, int sock, u32 pd, u32 *lkey)
{
	struct ib_uverbs_reg_mr_resp mr;

	assert_int_equal(BY(w, sock, CMD_OUT(w, REG_MR, reg_mr, &mr, .start = 4096, .length = 5000,
					     .hca_va = 8192, .pd_handle = pd,
					     .access_flags = IB_ACCESS_LOCAL_WRITE)), 0);
	*lkey = mr.lkey;
	return mr.mr_handle;
}

/* The exporter of the tests, w->sock's, is replaced by one whose token is known. */
static void become_exporter(struct world *w, struct abi_context_resp *resp)
{
	close(w->sock);
	close_fds(w);
	w->sock = active_session_with(w, resp);
}

static void only_the_token_opens_a_context(void **state)
{
	struct world *w = *state;
	struct abi_context_resp exporter, other;
	struct abi_query_object_resp object;
	uint8_t wrong[ABI_TOKEN_BYTES];
	u32 pd;
	int sock;

	become_exporter(w, &exporter);
	pd = alloc_pd(w, w->sock);
	alloc_pd(w, w->sock);
	sock = active_session_with(w, &other);
	assert_memory_not_equal(exporter.token, other.token, sizeof(other.token));
	memcpy(wrong, exporter.token, sizeof(wrong));
	wrong[ABI_TOKEN_BYTES - 1] ^= 1;
	assert_int_equal(share(w, sock, wrong), -ENOENT);
	assert_int_equal(share(w, sock, other.token), -EINVAL); /* it is its own */
	assert_int_equal(query(w, sock, ABI_OBJECT_PD, pd, &object), -EINVAL);
	assert_int_equal(share(w, sock, exporter.token), 0);
	assert_int_equal(query(w, sock, ABI_OBJECT_PD, pd, &object), 0);
	assert_int_equal(share(w, sock, exporter.token), -EINVAL);
	close(sock);
	sock = active_session_with(w, &other);
	alloc_pd(w, sock);
	assert_int_equal(share(w, sock, exporter.token), -EINVAL); /* it has an object */
	close(sock);
}

static void objects_are_found_by_all_but_queues_are_not(void **state)
{
	struct world *w = *state;
	struct abi_context_resp exporter, importer;
	struct abi_query_object_resp object;
	struct ib_uverbs_rereg_mr_resp rereg;
	struct ib_uverbs_create_qp_resp qp;
	struct ib_uverbs_create_cq_resp cq;
	struct things t;
	u32 own, lkey;
	int sock;

	become_exporter(w, &exporter);
	make_things(w, &t);
	sock = active_session_with(w, &importer);
	assert_int_equal(share(w, sock, exporter.token), 0);
	assert_int_equal(query(w, sock, ABI_OBJECT_MR, t.mr, &object), 0);
	assert_int_equal(object.length_bytes, 5000);
	assert_int_equal(object.iova, 4096);
	assert_int_equal(object.pd_handle, t.pd);
	assert_int_not_equal(object.owner, 0);
	assert_int_equal(BY(w, sock, CMD(w, DEREG_MR, dereg_mr, .mr_handle = t.mr)), -EINVAL);
	assert_int_equal(BY(w, sock, CMD_OUT(w, REREG_MR, rereg_mr, &rereg, .mr_handle = t.mr,
					     .flags = IB_MR_REREG_ACCESS)), -EINVAL);
	assert_int_equal(BY(w, sock, CMD_OUT(w, CREATE_QP, create_qp, &qp, .pd_handle = t.pd,
					     .send_cq_handle = t.cq, .recv_cq_handle = t.cq,
					     .qp_type = IB_QPT_RC)), -EINVAL);
	assert_int_equal(BY(w, sock, CMD_OUT(w, CREATE_CQ, create_cq, &cq, .cqe = 10,
					     .comp_channel = -1)), 0);
	assert_int_equal(BY(w, sock, CMD_OUT(w, CREATE_QP, create_qp, &qp, .pd_handle = t.pd,
					     .send_cq_handle = cq.cq_handle,
					     .recv_cq_handle = cq.cq_handle,
					     .max_send_sge = 1, .max_recv_sge = 1,
					     .qp_type = IB_QPT_RC)), 0);
	own = reg_mr(w, sock, t.pd, &lkey);
	assert_int_equal(query(w, w->sock, ABI_OBJECT_MR, own, &object), 0);
	assert_int_equal(object.lkey, lkey);
	assert_int_not_equal(object.owner, 0);
	assert_int_equal(query(w, sock, ABI_OBJECT_MR, own, &object), 0);
	assert_int_equal(object.owner, 0);
	assert_int_equal(CMD(w, DEALLOC_PD, dealloc_pd, .pd_handle = t.pd), -EBUSY);
	close(sock);
}

static void who_has_memory_is_introduced(void **state)
{
	struct world *w = *state;
	struct abi_context_resp exporter, importer;
	char byte = 1, got = 0;
	u32 pd, mr, lkey;
	int sock;

	become_exporter(w, &exporter);
	pd = alloc_pd(w, w->sock);
	mr = reg_mr(w, w->sock, pd, &lkey);
	sock = active_session_with(w, &importer);
	assert_int_equal(reach(w, sock, mr), -EINVAL);
	assert_int_equal(share(w, sock, exporter.token), 0);
	assert_int_equal(reach(w, w->sock, mr), -EINVAL); /* it is its own */
	assert_int_equal(reach(w, sock, pd), -EINVAL);
	w->fake->refuse_introduce = -EAGAIN;
	assert_int_equal(reach(w, sock, mr), -EAGAIN);
	w->fake->refuse_introduce = 0;
	assert_int_equal(reach(w, sock, mr), 0);
	assert_int_equal(w->num_fds, 1);
	assert_int_equal(send(w->fds[0], &byte, 1, 0), 1);
	assert_int_equal(recv(w->fake->introduced, &got, 1, MSG_DONTWAIT), 1);
	assert_int_equal(got, byte);
	close(w->fake->introduced);
	close_fds(w);
	close(sock);
}

static void what_does_not_need_the_program_outlives_it(void **state)
{
	struct world *w = *state;
	struct abi_context_resp exporter, importer;
	struct abi_query_object_resp object;
	struct abi_alloc_dm alloc = {.length_bytes = 100};
	struct abi_reg_dm_mr reg = {.length_bytes = 100,
				    .access_flags = IB_ZERO_BASED | IB_ACCESS_LOCAL_WRITE};
	struct ib_uverbs_reg_mr_resp on_dm;
	struct abi_alloc_dm_resp dm;
	struct things t;
	u32 lkey;
	int sock;

	become_exporter(w, &exporter);
	make_things(w, &t);
	assert_int_equal(command(w, w->sock, ABI_CMD_ALLOC_DM, &alloc, sizeof(alloc), &dm,
				 sizeof(dm)), 0);
	close_fds(w);
	reg.dm_handle = dm.dm_handle;
	reg.pd_handle = t.pd;
	assert_int_equal(command(w, w->sock, ABI_CMD_REG_DM_MR, &reg, sizeof(reg), &on_dm,
				 sizeof(on_dm)), 0);
	sock = active_session_with(w, &importer);
	assert_int_equal(share(w, sock, exporter.token), 0);
	reg_mr(w, sock, t.pd, &lkey);
	close(w->sock);
	w->sock = sock;
	turn(w);
	assert_int_equal(query(w, sock, ABI_OBJECT_MR, t.mr, &object), -EINVAL);
	assert_int_equal(query(w, sock, ABI_OBJECT_PD, t.pd, &object), 0);
	assert_int_equal(query(w, sock, ABI_OBJECT_DM, dm.dm_handle, &object), 0);
	assert_int_equal(query(w, sock, ABI_OBJECT_MR, on_dm.mr_handle, &object), 0);
	assert_int_equal(object.owner, 0); /* it is this one's now */
	assert_int_equal(w->fake->live, 1 + 4); /* the context; a PD, a DM and two regions */
	/* the token is good for as long as one of them lives */
	sock = active_session_with(w, &importer);
	assert_int_equal(share(w, sock, exporter.token), 0);
	close(sock);
	turn(w);
	assert_int_equal(w->fake->live, 1 + 4);
	/* teardown() checks that nothing is left of them */
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(only_the_token_opens_a_context),
		T(objects_are_found_by_all_but_queues_are_not),
		T(who_has_memory_is_introduced),
		T(what_does_not_need_the_program_outlives_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
