/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The uverbs endpoint as a program sees it: over a socket, one command at a
 * time, with a device that counts what was made of it. */
#include "uverbs_program.h"

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* --- opening --- */

static void a_node_lists_its_adapters(void **state)
{
	struct world *w = *state;
	struct fake *other = fake_create(w->rt, "n1"), *far = fake_create(w->rt, "n2");
	struct abi_device_info info[4];
	size_t got;
	int sock = connect_to(w);

	assert_int_equal(ib_register_device(&other->ib, "softib1"), 0);
	assert_int_equal(ib_register_device(&far->ib, "softib0"), 0);
	assert_int_equal(open_as(w, sock, ABI_OPEN_LIST, "", "", info, sizeof(info), &got), 0);
	assert_int_equal(got, 2 * sizeof(info[0]));
	assert_string_equal(info[0].name, "softib0");
	assert_string_equal(info[0].fw_ver, "1.2.3");
	assert_string_equal(info[0].node_desc, "n1 HCA-1");
	assert_int_equal(info[0].node_guid, 0x1122);
	assert_int_equal(info[0].num_ports, 2);
	assert_string_equal(info[1].name, "softib1");
	assert_int_equal(info[1].index, 1);
	assert_int_equal(info[1].umad_base, 2);
	assert_int_equal(receive(w, sock, NULL, 0, NULL), -ECONNRESET);
	close(sock);
	sock = connect_to(w);
	assert_int_equal(open_as(w, sock, ABI_OPEN_LIST, "n9", "", info, sizeof(info), &got),
			 -ENOENT);
	close(sock);
	ib_unregister_device(&other->ib);
	ib_unregister_device(&far->ib);
	ib_dealloc_device(&other->ib);
	ib_dealloc_device(&far->ib);
}

static void a_wrong_opening_is_refused_and_closed(void **state)
{
	static const struct {
		struct abi_open open;
		size_t bytes;
		int error;
	} cases[] = {
		{{ABI_MAGIC, ABI_VERSION, ABI_OPEN_UVERBS, 0, "n1", "mlx5_0"}, 0, -ENOENT},
		{{ABI_MAGIC, ABI_VERSION, ABI_OPEN_UVERBS, 0, "n7", "softib0"}, 0, -ENOENT},
		{{ABI_MAGIC, ABI_VERSION, ABI_OPEN_UMAD, 1, "n1", "softib0"}, 0, -EINVAL},
		{{ABI_MAGIC, ABI_VERSION + 1, ABI_OPEN_UVERBS, 0, "n1", "softib0"}, 0,
		 -EPROTONOSUPPORT},
		{{1, ABI_VERSION, ABI_OPEN_UVERBS, 0, "n1", "softib0"}, 0, -EINVAL},
		{{ABI_MAGIC, ABI_VERSION, ABI_OPEN_UVERBS, 0, "n1", "softib0"}, 9, -EINVAL},
	};
	struct world *w = *state;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t bytes = cases[i].bytes ? cases[i].bytes : sizeof(cases[i].open);
		int sock = connect_to(w);

		assert_int_equal(send(sock, &cases[i].open, bytes, 0), bytes);
		assert_int_equal(receive(w, sock, NULL, 0, NULL), cases[i].error);
		assert_int_equal(receive(w, sock, NULL, 0, NULL), -ECONNRESET);
		close(sock);
	}
	assert_int_equal(uverbs_num_sessions(w->uverbs), 1);
}

static void a_name_without_an_end_is_refused(void **state)
{
	struct world *w = *state;
	struct abi_open open = {ABI_MAGIC, ABI_VERSION, ABI_OPEN_UVERBS, 0, "", ""};
	int sock = connect_to(w);

	memset(open.device, 'x', sizeof(open.device));
	assert_int_equal(send(sock, &open, sizeof(open), 0), sizeof(open));
	assert_int_equal(receive(w, sock, NULL, 0, NULL), -EINVAL);
	close(sock);
}

static void get_context_comes_first_and_once(void **state)
{
	struct world *w = *state;
	struct ib_uverbs_alloc_pd_resp out;
	struct ib_uverbs_alloc_pd in = {0};
	int sock = connect_to(w);

	assert_int_equal(open_as(w, sock, ABI_OPEN_UVERBS, "n1", "softib0", NULL, 0, NULL), 0);
	assert_int_equal(command(w, sock, IB_USER_VERBS_CMD_ALLOC_PD, &in, sizeof(in), &out,
				 sizeof(out)), -EINVAL);
	close_fds(w);
	assert_int_equal(get_context(w, sock), 0);
	assert_int_equal(w->num_fds, ABI_CONTEXT_FDS);
	assert_int_equal(get_context(w, sock), -EINVAL);
	assert_int_equal(command(w, sock, IB_USER_VERBS_CMD_ALLOC_PD, &in, sizeof(in), &out,
				 sizeof(out)), 0);
	close(sock);
}

/* --- commands --- */

static void queries_answer(void **state)
{
	struct world *w = *state;
	struct ib_uverbs_query_device_resp device;
	struct ib_uverbs_query_port_resp port;

	assert_int_equal(CMD_OUT(w, QUERY_DEVICE, query_device, &device, 0), 0);
	assert_int_equal(device.vendor_part_id, 7);
	assert_int_equal(device.fw_ver, 1ull << 32 | 2 << 16 | 3);
	assert_int_equal(device.phys_port_cnt, 2);
	assert_int_equal(device.max_sge, 4);
	assert_int_equal(CMD_OUT(w, QUERY_PORT, query_port, &port, .port_num = 2), 0);
	assert_int_equal(port.lid, 5);
	assert_int_equal(port.state, IB_PORT_ACTIVE);
	assert_int_equal(port.gid_tbl_len, FAKE_GIDS);
	assert_int_equal(port.link_layer, 1);
	assert_int_equal(CMD_OUT(w, QUERY_PORT, query_port, &port, .port_num = 3), -EINVAL);
}

static void an_extended_command_is_one_of_another_table(void **state)
{
	struct world *w = *state;
	struct ib_uverbs_ex_query_device in = {0};
	struct abi_ex_query_device_resp out;
	const u32 query = IB_USER_VERBS_EX_CMD_QUERY_DEVICE;

	assert_int_equal(command_ex(w, query, &in, sizeof(in), &out, sizeof(out), 0), 0);
	assert_int_equal(out.core.response_length, sizeof(out.core));
	assert_int_equal(out.core.base.vendor_part_id, 7);
	assert_int_equal(out.core.odp_caps.general_caps, IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(out.core.odp_caps.per_transport_caps.rc_odp_caps, 1);
	assert_int_equal(out.core.odp_caps.per_transport_caps.ud_odp_caps, 3);
	assert_int_equal(out.core.xrc_odp_caps, 4);
	assert_int_equal(out.core.hca_core_clock, 156250);
	assert_int_equal(out.min_rate_limit, 10);
	assert_int_equal(out.max_rate_limit, 1000);
	assert_int_equal(command_ex(w, query, &in, sizeof(in), &out, sizeof(out), 1), -EINVAL);
	assert_int_equal(command_ex(w, query, &in, 0, &out, sizeof(out), 0), -EINVAL);
	in.comp_mask = 1;
	assert_int_equal(command_ex(w, query, &in, sizeof(in), &out, sizeof(out), 0), -EINVAL);
	assert_int_equal(command_ex(w, IB_USER_VERBS_EX_CMD_CREATE_FLOW, &in, sizeof(in), &out,
				    sizeof(out), 0), -EOPNOTSUPP);
	assert_int_equal(command_ex(w, 0x7fffffff, &in, sizeof(in), &out, sizeof(out), 0),
			 -EOPNOTSUPP);
}

static void objects_are_made_used_and_destroyed(void **state)
{
	struct world *w = *state;
	struct ib_uverbs_destroy_qp_resp qp;
	struct ib_uverbs_destroy_cq_resp cq;
	struct ib_uverbs_destroy_srq_resp srq;
	struct ib_uverbs_resize_cq_resp resized;
	struct ib_uverbs_query_srq_resp limits;
	struct things t;

	make_things(w, &t);
	assert_int_equal(w->fake->live, 7); /* six and the context */
	assert_int_equal(CMD(w, DEALLOC_PD, dealloc_pd, .pd_handle = t.pd), -EBUSY);
	assert_int_equal(CMD_OUT(w, DESTROY_CQ, destroy_cq, &cq, .cq_handle = t.cq), -EBUSY);
	assert_int_equal(CMD_OUT(w, DESTROY_SRQ, destroy_srq, &srq, .srq_handle = t.srq), -EBUSY);
	assert_int_equal(CMD_OUT(w, RESIZE_CQ, resize_cq, &resized, .cq_handle = t.cq, .cqe = 99),
			 0);
	assert_int_equal(resized.cqe, 99);
	assert_int_equal(CMD_OUT(w, RESIZE_CQ, resize_cq, &resized, .cq_handle = t.cq,
				 .cqe = UINT32_MAX), -EINVAL);
	assert_int_equal(CMD_OUT(w, QUERY_SRQ, query_srq, &limits, .srq_handle = t.srq), 0);
	assert_int_equal(limits.max_wr, 10);
	assert_int_equal(CMD(w, MODIFY_SRQ, modify_srq, .srq_handle = t.srq,
			     .attr_mask = IB_SRQ_LIMIT, .srq_limit = 3), 0);
	assert_int_equal(CMD(w, MODIFY_SRQ, modify_srq, .srq_handle = t.srq, .attr_mask = 8),
			 -EINVAL);
	assert_int_equal(CMD_OUT(w, DESTROY_QP, destroy_qp, &qp, .qp_handle = t.qp), 0);
	assert_int_equal(CMD_OUT(w, DESTROY_QP, destroy_qp, &qp, .qp_handle = t.qp), -EINVAL);
	assert_int_equal(CMD_OUT(w, DESTROY_SRQ, destroy_srq, &srq, .srq_handle = t.srq), 0);
	assert_int_equal(CMD_OUT(w, DESTROY_CQ, destroy_cq, &cq, .cq_handle = t.cq), 0);
	assert_int_equal(CMD(w, DESTROY_AH, destroy_ah, .ah_handle = t.ah), 0);
	assert_int_equal(CMD(w, DEREG_MR, dereg_mr, .mr_handle = t.mr), 0);
	assert_int_equal(CMD(w, DEALLOC_PD, dealloc_pd, .pd_handle = t.pd), 0);
	assert_int_equal(w->fake->live, 1);
}

static void a_qp_is_followed_through_its_states(void **state)
{
	struct world *w = *state;
	struct ib_uverbs_query_qp_resp q;
	struct things t;

	make_things(w, &t);
	assert_int_equal(CMD(w, MODIFY_QP, modify_qp, .qp_handle = t.qp,
			     .attr_mask = IB_QP_STATE, .qp_state = IB_QPS_RTR), -EINVAL);
	assert_int_equal(CMD(w, MODIFY_QP, modify_qp, .qp_handle = t.qp,
			     .attr_mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY,
			     .qp_state = IB_QPS_INIT, .port_num = 2, .qkey = 0x11), 0);
	assert_int_equal(CMD(w, MODIFY_QP, modify_qp, .qp_handle = t.qp,
			     .attr_mask = IB_QP_STATE, .qp_state = IB_QPS_RTR), 0);
	assert_int_equal(CMD(w, MODIFY_QP, modify_qp, .qp_handle = t.qp,
			     .attr_mask = IB_QP_STATE | IB_QP_SQ_PSN, .qp_state = IB_QPS_RTS,
			     .sq_psn = 0x123), 0);
	assert_int_equal(CMD_OUT(w, QUERY_QP, query_qp, &q, .qp_handle = t.qp), 0);
	assert_int_equal(q.qp_state, IB_QPS_RTS);
	assert_int_equal(q.port_num, 2);
	assert_int_equal(q.qkey, 0x11);
	assert_int_equal(q.sq_psn, 0x123);
	assert_int_equal(q.max_send_wr, 5);
	assert_int_equal(CMD(w, ATTACH_MCAST, attach_mcast, .qp_handle = t.qp, .gid = {0xff},
			     .mlid = 0xc005), 0);
	assert_int_equal(CMD(w, DETACH_MCAST, detach_mcast, .qp_handle = t.qp, .gid = {0xff},
			     .mlid = 0xc006), -EINVAL);
	assert_int_equal(CMD(w, DETACH_MCAST, detach_mcast, .qp_handle = t.qp, .gid = {0xff},
			     .mlid = 0xc005), 0);
}

static int modify_rate(struct world *w, u32 qp, u32 rate_limit, u32 reserved)
{
	struct ib_uverbs_ex_modify_qp in = {
		.base = {.qp_handle = qp, .attr_mask = IB_QP_RATE_LIMIT},
		.rate_limit = rate_limit,
		.reserved = reserved,
	};
	struct ib_uverbs_ex_modify_qp_resp out;

	return command_ex(w, IB_USER_VERBS_EX_CMD_MODIFY_QP, &in, sizeof(in), &out, sizeof(out), 0);
}

static u32 make_raw_qp(struct world *w, const struct things *t)
{
	struct ib_uverbs_create_qp_resp qp;

	assert_int_equal(CMD_OUT(w, CREATE_QP, create_qp, &qp, .pd_handle = t->pd,
				 .send_cq_handle = t->cq, .recv_cq_handle = t->cq,
				 .max_send_wr = 1, .max_send_sge = 1,
				 .qp_type = IB_QPT_RAW_PACKET), 0);
	assert_int_equal(CMD(w, MODIFY_QP, modify_qp, .qp_handle = qp.qp_handle,
			     .attr_mask = IB_QP_STATE | IB_QP_PORT, .qp_state = IB_QPS_INIT,
			     .port_num = 1), 0);
	assert_int_equal(CMD(w, MODIFY_QP, modify_qp, .qp_handle = qp.qp_handle,
			     .attr_mask = IB_QP_STATE, .qp_state = IB_QPS_RTR), 0);
	return qp.qp_handle;
}

static void the_rate_of_a_qp_is_within_the_limits(void **state)
{
	struct world *w = *state;
	struct things t;
	u32 qp;

	make_things(w, &t);
	qp = make_raw_qp(w, &t);
	assert_int_equal(modify_rate(w, qp, 100, 0), -EINVAL); /* in RTS only */
	assert_int_equal(CMD(w, MODIFY_QP, modify_qp, .qp_handle = qp,
			     .attr_mask = IB_QP_STATE, .qp_state = IB_QPS_RTS), 0);
	assert_int_equal(modify_rate(w, qp, 10, 0), 0);
	assert_int_equal(modify_rate(w, qp, 1000, 0), 0);
	assert_int_equal(modify_rate(w, qp, 0, 0), 0);
	assert_int_equal(modify_rate(w, qp, 9, 0), -EINVAL);
	assert_int_equal(modify_rate(w, qp, 1001, 0), -EINVAL);
	assert_int_equal(modify_rate(w, qp, 100, 1), -EINVAL);
	assert_int_equal(modify_rate(w, t.qp, 100, 0), -EINVAL); /* no raw packet QP */
	/* the older command has no member for it */
	assert_int_equal(CMD(w, MODIFY_QP, modify_qp, .qp_handle = qp,
			     .attr_mask = IB_QP_RATE_LIMIT), -EOPNOTSUPP);
}

static void a_region_moves_and_is_charged_for_what_it_has(void **state)
{
	struct world *w = *state;
	struct ib_ucontext *context;
	struct ib_uverbs_rereg_mr_resp r;
	struct things t;

	make_things(w, &t);
	context = list_first_entry(&w->fake->ib.ucontext_list, struct ib_ucontext, node);
	assert_int_equal(context->locked_bytes, 8192);
	assert_int_equal(CMD_OUT(w, REREG_MR, rereg_mr, &r, .mr_handle = t.mr,
				 .flags = IB_MR_REREG_TRANS, .start = 8192, .length = 1), 0);
	assert_int_equal(context->locked_bytes, 4096);
	assert_int_equal(CMD_OUT(w, REREG_MR, rereg_mr, &r, .mr_handle = t.mr,
				 .flags = IB_MR_REREG_TRANS | 64, .start = 0, .length = 99999),
			 -EINVAL);
	assert_int_equal(context->locked_bytes, 4096);
	assert_int_equal(CMD_OUT(w, REREG_MR, rereg_mr, &r, .mr_handle = t.mr,
				 .flags = IB_MR_REREG_PD, .pd_handle = t.cq), -EINVAL);
	assert_int_equal(CMD_OUT(w, REREG_MR, rereg_mr, &r, .mr_handle = t.mr,
				 .flags = IB_MR_REREG_PD, .pd_handle = t.pd), 0);
	assert_int_equal(CMD(w, DEREG_MR, dereg_mr, .mr_handle = t.mr), 0);
	assert_int_equal(context->locked_bytes, 0);
}

static void what_is_not_there_is_not_supported(void **state)
{
	struct world *w = *state;
	char zeros[64] = {0};
	static const u32 none[] = {IB_USER_VERBS_CMD_POST_SEND, IB_USER_VERBS_CMD_OPEN_QP + 1, 255, 0x80000000u | 9, 0x1003};

	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_int_equal(command(w, w->sock, none[i], zeros, sizeof(zeros), NULL, 0),
				 -EOPNOTSUPP);
	/* this device has no memory windows */
	assert_int_equal(CMD(w, ALLOC_MW, alloc_mw, .mw_type = 1), -EINVAL);
}

static void malformed_commands_are_refused(void **state)
{
	struct world *w = *state;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_cq body;
	} msg = {.hdr = {IB_USER_VERBS_CMD_CREATE_CQ, sizeof(msg) / 4, 2}, .body.cqe = 5};

	/* shorter than its header */
	assert_int_equal(send(w->sock, &msg, 5, 0), 5);
	assert_int_equal(receive(w, w->sock, NULL, 0, NULL), -EINVAL);
	/* its length is not what it says, though enough for the command */
	msg.hdr.in_words++;
	assert_int_equal(send(w->sock, &msg, sizeof(msg), 0), sizeof(msg));
	assert_int_equal(receive(w, w->sock, NULL, 0, NULL), -EINVAL);
	/* consistent, but less than the command needs */
	msg.hdr.in_words = 4;
	assert_int_equal(send(w->sock, &msg, 16, 0), 16);
	assert_int_equal(receive(w, w->sock, NULL, 0, NULL), -EINVAL);
	assert_int_equal(w->fake->live, 1);
	/* handles of nothing */
	assert_int_equal(CMD(w, DEALLOC_PD, dealloc_pd, .pd_handle = 77), -EINVAL);
	assert_int_equal(CMD(w, CREATE_QP, create_qp, .pd_handle = UINT32_MAX), -EINVAL);
}

static void programs_do_not_share_handles(void **state)
{
	struct world *w = *state;
	struct things t;
	int first = w->sock;

	make_things(w, &t);
	close_fds(w);
	w->sock = active_session(w);
	assert_int_equal(CMD(w, DEREG_MR, dereg_mr, .mr_handle = t.mr), -EINVAL);
	close(w->sock);
	w->sock = first;
	assert_int_equal(CMD(w, DEREG_MR, dereg_mr, .mr_handle = t.mr), 0);
}

/* What the program queued leaves first: its command is kept, those behind it wait, and
 * softibd's loop goes on. */
static void a_qp_goes_when_its_packets_have(void **state)
{
	struct world *w = *state;
	struct ib_uverbs_destroy_qp_resp qp;
	struct ib_uverbs_alloc_pd_resp pd;
	struct things t;

	make_things(w, &t);
	w->fake->busy = 7;
	assert_int_equal(CMD_OUT(w, DESTROY_QP, destroy_qp, &qp, .qp_handle = t.qp), -EAGAIN);
	assert_int_equal(CMD_OUT(w, ALLOC_PD, alloc_pd, &pd, 0), -EAGAIN);
	assert_int_equal(w->fake->live, 7);
	assert_int_equal(receive(w, w->sock, &qp, sizeof(qp), NULL), 0);
	assert_int_equal(receive(w, w->sock, &pd, sizeof(pd), NULL), 0);
	assert_int_equal(w->fake->live, 7);
	w->fake->busy = 4;
	assert_int_equal(CMD_OUT(w, DESTROY_QP, destroy_qp, &qp, .qp_handle = t.qp), -EAGAIN);
	assert_int_equal(receive(w, w->sock, &qp, sizeof(qp), NULL), -EINVAL);
}

/* --- turns --- */

/* A program waits for an answer before it sends anything else, so softibd does not look for more. */
static void an_answer_ends_a_sessions_turn(void **state)
{
	const struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_alloc_pd cmd;
	} alloc = {.hdr = {IB_USER_VERBS_CMD_ALLOC_PD, sizeof(alloc) / 4,
			   sizeof(struct ib_uverbs_alloc_pd_resp) / 4}};
	struct world *w = *state;
	char answer[64];

	rt_posix_turn(w->rt);
	for (int i = 0; i < 2; i++)
		assert_int_equal(send(w->sock, &alloc, sizeof(alloc), 0), sizeof(alloc));
	for (int i = 0; i < 2; i++) {
		rt_posix_turn(w->rt);
		assert_true(recv(w->sock, answer, sizeof(answer), MSG_DONTWAIT) > 0);
		assert_int_equal(recv(w->sock, answer, sizeof(answer), MSG_DONTWAIT), -1);
	}
}

/* --- ends --- */

static void a_context_goes_when_its_packets_have(void **state)
{
	struct world *w = *state;
	struct things t;
	int keep = w->sock;

	w->sock = active_session(w);
	make_things(w, &t);
	w->fake->busy = 5;
	close_fds(w);
	close(w->sock);
	turn(w);
	assert_int_equal(w->fake->live, 8);
	turn(w);
	assert_int_equal(w->fake->live, 1);
	w->sock = active_session(w); /* killed in the middle of it */
	make_things(w, &t);
	w->fake->busy = 5;
	CMD(w, DESTROY_QP, destroy_qp, .qp_handle = t.qp);
	close_fds(w);
	close(w->sock);
	turn(w);
	turn(w);
	assert_int_equal(w->fake->live, 1);
	w->sock = keep;
}

/* as if 200 programs were killed one after the other with all they have */
static void deaths_leave_nothing(void **state)
{
	struct world *w = *state;
	struct things t;
	int before, keep = w->sock;

	close_fds(w);
	before = count_fds();
	for (int i = 0; i < 200; i++) {
		w->sock = active_session(w);
		make_things(w, &t);
		CMD(w, ATTACH_MCAST, attach_mcast, .qp_handle = t.qp, .gid = {0xff},
		    .mlid = 0xc005);
		close_fds(w);
		close(w->sock);
		turn(w);
		assert_int_equal(w->fake->live, 1);
	}
	w->sock = keep;
	assert_int_equal(uverbs_num_sessions(w->uverbs), 1);
	assert_int_equal(count_fds(), before);
	for (int type = 0; type < RDMA_RESTRACK_MAX; type++)
		assert_int_equal(rdma_restrack_count(&w->fake->ib, type),
				 type == RDMA_RESTRACK_CTX ? 1 : 0);
}

static void port_events_reach_the_program(void **state)
{
	struct world *w = *state;
	struct ib_event event = {.device = &w->fake->ib, .element.port_num = 2,
				 .event = IB_EVENT_LID_CHANGE};

	ib_dispatch_event(&event);
	expect_event(w, IB_EVENT_LID_CHANGE, 2);
	event.event = IB_EVENT_PORT_ERR;
	/* nobody reads: events are lost, softibd does not wait */
	for (int i = 0; i < 5000; i++)
		ib_dispatch_event(&event);
	expect_event(w, IB_EVENT_PORT_ERR, 2);
}

static void tell_modified(struct world *w, u32 qp, u32 mask, enum ib_qp_state qp_state)
{
	const struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_modify_qp in;
	} message = {
		.hdr = {.command = ABI_CMD_MODIFIED, .in_words = sizeof(message) / 4},
		.in = {.qp_handle = qp, .attr_mask = mask, .qp_state = (u8)qp_state, .port_num = 1},
	};

	assert_int_equal(send(w->sock, &message, sizeof(message), 0), sizeof(message));
}

/* ABI_CMD_MODIFIED has no answer: the next one belongs to the next command. */
static void a_transition_that_is_told_is_not_answered(void **state)
{
	const u32 init = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY;
	struct ib_uverbs_query_qp_resp q;
	struct world *w = *state;
	struct things t;

	make_things(w, &t);
	tell_modified(w, t.qp, init, IB_QPS_INIT);
	assert_int_equal(CMD_OUT(w, QUERY_QP, query_qp, &q, .qp_handle = t.qp), 0);
	assert_int_equal(q.qp_state, IB_QPS_INIT);

	tell_modified(w, t.qp, init | IB_QP_AV, IB_QPS_RTS); /* no library of ours tells this */
	expect_event(w, IB_EVENT_QP_FATAL, 0);
	tell_modified(w, 12345, init, IB_QPS_INIT); /* no QP, no event */
	assert_int_equal(CMD_OUT(w, QUERY_QP, query_qp, &q, .qp_handle = t.qp), 0);
	assert_int_equal(q.qp_state, IB_QPS_INIT);
	assert_int_equal(recv(w->fds[ABI_FD_ASYNC_READ], &q, sizeof(q), MSG_DONTWAIT), -1);
}

/** struct modified - a transition that is told */
struct modified {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_modify_qp in;
};

/* Transitions that are told may stand before a command, which is answered; no more than a few. */
static void transitions_precede_a_command(void **state)
{
	struct world *w = *state;
	struct things t;
	struct {
		struct modified told[ABI_TOLD_FIRST_MAX + 1];
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_query_qp query;
	} m = {.hdr = {IB_USER_VERBS_CMD_QUERY_QP, (sizeof(m.hdr) + sizeof(m.query)) / 4,
		       sizeof(struct ib_uverbs_query_qp_resp) / 4}};
	struct ib_uverbs_query_qp_resp q;
	size_t got;

	make_things(w, &t);
	m.query.qp_handle = t.qp;
	for (size_t i = 0; i < ARRAY_SIZE(m.told); i++)
		m.told[i] = (struct modified){
			.hdr = {ABI_CMD_MODIFIED, sizeof(m.told[i]) / 4, 0},
			.in = {.qp_handle = t.qp, .qp_state = IB_QPS_INIT, .port_num = 1,
			       .attr_mask = IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY},
		};
	assert_int_equal(send(w->sock, &m.told[1], sizeof(m) - sizeof(m.told[0]), 0),
			 sizeof(m) - sizeof(m.told[0]));
	assert_int_equal(receive(w, w->sock, &q, sizeof(q), &got), 0);
	assert_int_equal(q.qp_state, IB_QPS_INIT);
	assert_int_equal(send(w->sock, &m, sizeof(m), 0), sizeof(m));
	assert_int_equal(receive(w, w->sock, &q, sizeof(q), &got), -EINVAL);
}

static void an_unplugged_device_leaves_zombies(void **state)
{
	struct world *w = *state;
	struct ib_uverbs_alloc_pd_resp pd;
	struct things t;

	make_things(w, &t);
	ib_unregister_device(&w->fake->ib);
	assert_int_equal(w->fake->live, 0); /* before the driver frees what is its own */
	expect_event(w, IB_EVENT_DEVICE_FATAL, 0);
	assert_int_equal(CMD_OUT(w, ALLOC_PD, alloc_pd, &pd, 0), -EIO);
	assert_int_equal(get_context(w, w->sock), -EIO);
	assert_int_equal(ib_register_device(&w->fake->ib, "softib0"), 0);
	assert_int_equal(CMD_OUT(w, ALLOC_PD, alloc_pd, &pd, 0), -EIO); /* for good */
}

static void one_that_breaks_the_rules_falls_alone(void **state)
{
	struct world *w = *state;
	struct ib_ucontext *context =
		list_first_entry(&w->fake->ib.ucontext_list, struct ib_ucontext, node);
	struct ib_uverbs_alloc_pd_resp pd;
	int bad = w->sock;

	ib_ucontext_fatal(context);
	expect_event(w, IB_EVENT_DEVICE_FATAL, 0);
	assert_int_equal(CMD_OUT(w, ALLOC_PD, alloc_pd, &pd, 0), -EIO);
	close_fds(w);
	w->sock = active_session(w);
	assert_int_equal(CMD_OUT(w, ALLOC_PD, alloc_pd, &pd, 0), 0);
	close(bad);
}

/* --- the socket in the file system --- */

static int dial(const char *dir)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
		close(fd);
		return -errno;
	}
	return fd < 0 ? -errno : fd;
}

static int accepted_fd;

static void accept_one(void *ctx, int fd, const struct peer *peer)
{
	assert_int_equal(peer->pid, getpid());
	accepted_fd = fd;
}

static void a_stale_socket_is_replaced_a_live_one_not(void **state)
{
	struct world *w = *state;
	char dir[] = "/tmp/softib-test-XXXXXX", path[64], longdir[200];
	struct sockaddr_un addr;
	struct listener *a, *b;
	int fd;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	assert_int_equal(listener_create(w->rt, dir, "sock", accept_one, NULL, &a), 0);
	assert_int_equal(listener_create(w->rt, dir, "sock", accept_one, NULL, &b), -EADDRINUSE);
	turn(w); /* the probe of the line above was a connection, too */
	close(accepted_fd);
	fd = dial(dir);
	assert_true(fd >= 0);
	turn(w);
	assert_true(accepted_fd >= 0);
	close(fd);
	close(accepted_fd);
	listener_destroy(a);
	assert_int_equal(access(path, F_OK), -1);
	/* a file whose owner died without removing it */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	addr.sun_family = AF_UNIX;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(listener_create(w->rt, dir, "sock", accept_one, NULL, &a), 0);
	fd = dial(dir);
	assert_true(fd >= 0);
	close(fd);
	listener_destroy(a);
	memset(longdir, 'x', sizeof(longdir) - 1);
	longdir[sizeof(longdir) - 1] = 0;
	assert_int_equal(listener_create(w->rt, longdir, "sock", accept_one, NULL, &a),
			 -ENAMETOOLONG);
	assert_int_equal(listener_create(w->rt, "/nonexistent", "sock", accept_one, NULL, &a),
			 -ENOENT);
	rmdir(dir);
}

static void without_descriptors_a_peer_is_told_so(void **state)
{
	struct world *w = *state;
	char dir[] = "/tmp/softib-test-XXXXXX";
	struct rlimit old, low;
	struct listener *l;
	int fd;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(listener_create(w->rt, dir, "sock", accept_one, NULL, &l), 0);
	fd = dial(dir);
	assert_true(fd >= 0);
	getrlimit(RLIMIT_NOFILE, &old);
	low = old;
	low.rlim_cur = (rlim_t)fd + 1;
	setrlimit(RLIMIT_NOFILE, &low);
	accepted_fd = -1;
	turn(w);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(accepted_fd, -1);
	assert_int_equal(receive(w, fd, NULL, 0, NULL), -EMFILE);
	assert_int_equal(receive(w, fd, NULL, 0, NULL), -ECONNRESET);
	close(fd);
	fd = dial(dir); /* and everything goes on */
	turn(w);
	assert_true(accepted_fd >= 0);
	close(accepted_fd);
	close(fd);
	listener_destroy(l);
	rmdir(dir);
}

static void without_descriptors_a_context_is_refused(void **state)
{
	struct world *w = *state;
	struct rlimit old, low;
	int sock, ret;

	close_fds(w);
	sock = connect_to(w);
	assert_int_equal(open_as(w, sock, ABI_OPEN_UVERBS, "n1", "softib0", NULL, 0, NULL), 0);
	getrlimit(RLIMIT_NOFILE, &old);
	low = old;
	low.rlim_cur = (rlim_t)sock + 3;
	setrlimit(RLIMIT_NOFILE, &low);
	ret = get_context(w, sock);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(ret, -EMFILE);
	assert_int_equal(w->fake->live, 1);
	assert_int_equal(get_context(w, sock), 0); /* the session may try again */
	close(sock);
}

/* --- locked memory --- */

/* a session of a process without CAP_IPC_LOCK, as @w->sock, and a PD */
static u32 session_of(struct world *w, pid_t pid)
{
	struct ib_uverbs_alloc_pd_resp pd;
	struct peer peer = {.pid = pid, .uid = getuid()};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fcntl(pair[1], F_SETFL, O_NONBLOCK);
	uverbs_serve(w->uverbs, pair[1], &peer);
	w->sock = pair[0];
	assert_int_equal(open_as(w, w->sock, ABI_OPEN_UVERBS, "n1", "softib0", NULL, 0, NULL), 0);
	close_fds(w);
	assert_int_equal(get_context(w, w->sock), 0);
	assert_int_equal(CMD_OUT(w, ALLOC_PD, alloc_pd, &pd, 0), 0);
	return pd.pd_handle;
}

static int reg_mr(struct world *w, u32 pd, u64 start, u64 length, u32 *handle)
{
	struct ib_uverbs_reg_mr_resp mr;
	int ret = CMD_OUT(w, REG_MR, reg_mr, &mr, .start = start, .length = length,
			  .hca_va = start, .pd_handle = pd);

	if (!ret && handle)
		*handle = mr.mr_handle;
	return ret;
}

static struct rlimit limit_to_two_pages(void)
{
	struct rlimit old, low;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	low = (struct rlimit){.rlim_cur = 8192, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	return old;
}

static void locked_memory_is_not_limited(void **state)
{
	struct world *w = *state;
	struct rlimit old = limit_to_two_pages();
	int keep = w->sock;
	u32 pd = session_of(w, getpid());

	assert_int_equal(reg_mr(w, pd, 4096, 1 << 30, NULL), 0);
	setrlimit(RLIMIT_MEMLOCK, &old);
	close(w->sock);
	w->sock = keep;
}

static void asked_to_a_peers_limit_binds(void **state)
{
	struct world *w = *state;
	struct rlimit old = limit_to_two_pages();
	struct ib_uverbs_reg_mr_resp all;
	int keep = w->sock;
	u32 pd, mr;

	uverbs_enforce_memlock(w->uverbs);
	pd = session_of(w, getpid());
	assert_int_equal(reg_mr(w, pd, 4096, 8193, NULL), -ENOMEM);
	assert_int_equal(reg_mr(w, pd, 4095, 8192, NULL), -ENOMEM); /* parts of three pages */
	assert_int_equal(reg_mr(w, pd, 4096, 8192, &mr), 0);
	assert_int_equal(CMD(w, DEREG_MR, dereg_mr, .mr_handle = mr), 0);
	assert_int_equal(reg_mr(w, pd, 4096, 4096, NULL), 0);
	assert_int_equal(reg_mr(w, pd, 4096, 4096, NULL), 0); /* the same page counts twice */
	assert_int_equal(reg_mr(w, pd, 4096, 1, NULL), -ENOMEM);
	/* what is paged on demand is locked nowhere */
	assert_int_equal(CMD_OUT(w, REG_MR, reg_mr, &all, .length = UINT64_MAX, .pd_handle = pd,
				 .access_flags = IB_ACCESS_ON_DEMAND), 0);
	setrlimit(RLIMIT_MEMLOCK, &old);
	close(w->sock);
	w->sock = keep;
}

static void the_limit_is_a_processs_not_a_sessions(void **state)
{
	struct world *w = *state;
	struct rlimit old = limit_to_two_pages();
	int keep = w->sock, first, other, second;
	u32 pd;

	uverbs_enforce_memlock(w->uverbs);
	assert_int_equal(reg_mr(w, session_of(w, getpid()), 0, 4096, NULL), 0);
	first = w->sock;
	assert_int_equal(reg_mr(w, session_of(w, getppid()), 0, 8192, NULL), 0);
	other = w->sock;
	pd = session_of(w, getpid());
	second = w->sock;
	assert_int_equal(reg_mr(w, pd, 0, 8192, NULL), -ENOMEM);
	assert_int_equal(reg_mr(w, pd, 0, 4096, NULL), 0);
	assert_int_equal(reg_mr(w, pd, 0, 4096, NULL), -ENOMEM);
	close(first);
	turn(w);
	assert_int_equal(reg_mr(w, pd, 0, 4096, NULL), 0);
	setrlimit(RLIMIT_MEMLOCK, &old);
	close(other);
	close(second);
	w->sock = keep;
}

static void who_may_lock_is_not_limited(void **state)
{
	struct world *w = *state;
	struct rlimit old = limit_to_two_pages();
	struct ib_uverbs_alloc_pd_resp pd;

	uverbs_enforce_memlock(w->uverbs);
	assert_int_equal(CMD_OUT(w, ALLOC_PD, alloc_pd, &pd, 0), 0);
	assert_int_equal(reg_mr(w, pd.pd_handle, 4096, 1 << 30, NULL), 0);
	setrlimit(RLIMIT_MEMLOCK, &old);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_node_lists_its_adapters),
		T(a_wrong_opening_is_refused_and_closed),
		T(a_name_without_an_end_is_refused),
		T(get_context_comes_first_and_once),
		T(queries_answer),
		T(an_extended_command_is_one_of_another_table),
		T(objects_are_made_used_and_destroyed),
		T(a_qp_goes_when_its_packets_have),
		T(an_answer_ends_a_sessions_turn),
		T(transitions_precede_a_command),
		T(a_context_goes_when_its_packets_have),
		T(a_qp_is_followed_through_its_states),
		T(the_rate_of_a_qp_is_within_the_limits),
		T(a_region_moves_and_is_charged_for_what_it_has),
		T(what_is_not_there_is_not_supported),
		T(malformed_commands_are_refused),
		T(programs_do_not_share_handles),
		T(deaths_leave_nothing),
		T(port_events_reach_the_program),
		T(a_transition_that_is_told_is_not_answered),
		T(an_unplugged_device_leaves_zombies),
		T(one_that_breaks_the_rules_falls_alone),
		T(a_stale_socket_is_replaced_a_live_one_not),
		T(without_descriptors_a_peer_is_told_so),
		T(without_descriptors_a_context_is_refused),
		T(locked_memory_is_not_limited),
		T(asked_to_a_peers_limit_binds),
		T(the_limit_is_a_processs_not_a_sessions),
		T(who_may_lock_is_not_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
