/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Agents: registration, dispatch, matching, time-outs, local SMPs. */
#include "../test.h"

#include "mad_client.h"
#include "wire/cm.h"

#define GET (1ull << IB_MGMT_METHOD_GET)
#define SET (1ull << IB_MGMT_METHOD_SET)
#define PERF IB_MGMT_CLASS_PERF_MGMT
#define DR IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE

static struct net *net;

static int setup(void **state)
{
	net = net_create(2);
	return net ? 0 : -1;
}

static int teardown(void **state)
{
	assert_int_equal(net_destroy(net), 0);
	return 0;
}

static void run_ms(u64 ms)
{
	rt_sim_run_for(net->rt, ms * NSEC_PER_MSEC);
}

/* a device that answers MADs itself has QP0 and QP1 where an agent is, and only there */
static void test_queue_pairs_come_with_the_first_agent(void **state)
{
	struct ib_device *device = &net->node[0]->ib;
	struct ib_mad_reg_req req = {.mgmt_class = IB_MGMT_CLASS_CM, .mgmt_class_version = 2,
				     .method_mask = {GET}};
	struct ib_mad_agent *agent;

	assert_false(list_empty(&net->node[0]->qps));
	ib_unregister_device(device);
	device->answers_mads = true;
	assert_int_equal(ib_register_device(device, "fake0"), 0);
	assert_true(list_empty(&net->node[0]->qps));
	assert_int_equal(PTR_ERR(ib_register_mad_agent(device, 2, IB_QPT_GSI, &req, 0, client_sent,
						       client_received, NULL, 0)),
			 -ENODEV);
	assert_true(list_empty(&net->node[0]->qps));
	agent = ib_register_mad_agent(device, 1, IB_QPT_GSI, &req, 0, client_sent, client_received,
				      NULL, 0);
	assert_false(IS_ERR(agent));
	assert_false(list_empty(&net->node[0]->qps));
	assert_int_equal(agent->qp->qp_num, 1);
	ib_unregister_mad_agent(agent);
}

/* and when they cannot be made, nothing stays of them */
static void test_a_port_may_fail_to_open(void **state)
{
	struct ib_device *device = &net->node[0]->ib;
	struct ib_mad_reg_req req = {.mgmt_class = IB_MGMT_CLASS_CM, .mgmt_class_version = 2,
				     .method_mask = {GET}};
	struct ib_mad_agent *agent = ERR_PTR(-ENOMEM);

	ib_unregister_device(device);
	device->answers_mads = true;
	assert_int_equal(ib_register_device(device, "fake0"), 0);
	for (uint64_t nth = 1; IS_ERR(agent); nth++) {
		assert_int_equal(PTR_ERR(agent), -ENOMEM);
		rt_fail_alloc(nth);
		agent = ib_register_mad_agent(device, 1, IB_QPT_GSI, &req, 0, client_sent,
					      client_received, NULL, 0);
		assert_true(nth < 100);
	}
	rt_fail_alloc(0);
	ib_unregister_mad_agent(agent);
}

static long register_error(u8 mgmt_class, u8 version, u8 rmpp, enum ib_qp_type qp, u8 oui0)
{
	struct ib_mad_reg_req req = {.mgmt_class = mgmt_class, .mgmt_class_version = version,
				     .oui = {oui0}, .method_mask = {GET}};

	return PTR_ERR(ib_register_mad_agent(&net->node[0]->ib, 1, qp, &req, rmpp, client_sent,
					     client_received, NULL, 0));
}

static void test_registration_is_checked(void **state)
{
	struct ib_device *dev = &net->node[0]->ib;

	assert_int_equal(register_error(0x50, 1, 0, IB_QPT_GSI, 0), -EINVAL);
	assert_int_equal(register_error(0, 1, 0, IB_QPT_GSI, 0), -EINVAL);
	assert_int_equal(register_error(PERF, 0x83, 0, IB_QPT_GSI, 0), -EINVAL);
	assert_int_equal(register_error(PERF, 1, 1, IB_QPT_GSI, 0), -EINVAL); /* no RMPP there */
	assert_int_equal(register_error(3, 1, 2, IB_QPT_GSI, 0), -EINVAL);   /* RMPP version */
	assert_int_equal(register_error(PERF, 1, 0, IB_QPT_SMI, 0), -EINVAL);
	assert_int_equal(register_error(1, 1, 0, IB_QPT_GSI, 0), -EINVAL);
	assert_int_equal(register_error(PERF, 1, 0, IB_QPT_UD, 0), -EINVAL);
	assert_int_equal(register_error(0x30, 1, 0, IB_QPT_GSI, 0), -EINVAL); /* needs an OUI */
	assert_int_equal(PTR_ERR(ib_register_mad_agent(dev, 2, IB_QPT_GSI, NULL, 0, client_sent,
						       NULL, NULL, 0)), -ENODEV);
	assert_int_equal(PTR_ERR(ib_register_mad_agent(dev, 1, IB_QPT_GSI, NULL, 0, NULL,
						       client_received, NULL, 0)), -EINVAL);
}

static void test_a_method_has_one_agent(void **state)
{
	struct client *a = client_open(net->node[0], PERF, GET | SET, 0);
	struct client *other_method = client_open(net->node[0], PERF, 1 << 5, 0);
	struct client *other_class = client_open(net->node[0], 0x32, GET, 0);
	struct ib_mad_agent *other_oui;
	struct ib_mad_reg_req req;

	assert_int_equal(register_error(PERF, 1, 0, IB_QPT_GSI, 0), -EBUSY);
	/* the OUI tells vendors apart: 1,2,3 is taken, 1,0,0 is not */
	req = (struct ib_mad_reg_req){.mgmt_class = 0x32, .mgmt_class_version = 1,
				      .oui = {1}, .method_mask = {GET}};
	other_oui = ib_register_mad_agent(&net->node[0]->ib, 1, IB_QPT_GSI, &req, 0, client_sent,
					  client_received, NULL, 0);
	assert_false(IS_ERR(other_oui));
	ib_unregister_mad_agent(other_oui);
	client_close(a);
	client_close(other_method);
	client_close(other_class);
}

static bool passes_on;

static void receive_or_pass_on(struct ib_mad_agent *agent, struct ib_mad_send_buf *send_buf,
			       struct ib_mad_recv_wc *recv_wc)
{
	if (!passes_on || !ib_pass_on_recv_mad(agent, recv_wc))
		client_received(agent, send_buf, recv_wc);
}

/* whichever was registered first: the agent that shares decides who gets a MAD */
static void an_agent_shares(bool is_first)
{
	struct ib_mad_reg_req req = {.mgmt_class = PERF, .mgmt_class_version = 1, .method_mask = {GET}};
	struct client *c = client_open(net->node[0], PERF, 0, 0), sharing = {.node = net->node[1]};
	struct client *s = is_first ? NULL : client_open(net->node[1], PERF, GET, 0);

	sharing.agent = ib_register_mad_agent(&net->node[1]->ib, 1, IB_QPT_GSI, &req, 0, client_sent,
					      receive_or_pass_on, &sharing, IB_MAD_SHARES);
	assert_false(IS_ERR(sharing.agent));
	assert_int_equal(PTR_ERR(ib_register_mad_agent(&net->node[1]->ib, 1, IB_QPT_GSI, &req, 0,
						       client_sent, client_received, NULL, IB_MAD_SHARES)),
			 -EBUSY); /* with one other alone */
	passes_on = is_first; /* there is nobody */
	assert_int_equal(ib_post_send_mad(client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, 7), NULL), 0);
	run_ms(1);
	assert_int_equal(sharing.received, 1);
	if (is_first)
		s = client_open(net->node[1], PERF, GET, 0);
	assert_int_equal(s->received, 0);
	passes_on = true;
	assert_int_equal(ib_post_send_mad(client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, 8), NULL), 0);
	run_ms(1);
	assert_int_equal(sharing.received, 1);
	assert_int_equal(s->received, 1);
	ib_unregister_mad_agent(sharing.agent);
	free(sharing.bytes);
	client_close(s);
	client_close(c);
}

static void test_an_agent_shares_its_class(void **state)
{
	an_agent_shares(true);
	an_agent_shares(false);
}

static void test_request_and_response(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct client *s = client_open(net->node[1], PERF, GET, 0);

	s->answer = client_answer;
	assert_int_equal(ib_post_send_mad(client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, 7), NULL), 0);
	assert_int_equal(c->sent, 0); /* nothing on the caller's stack */
	run_ms(1);
	assert_int_equal(s->received, 1);
	assert_false(s->matched);
	assert_int_equal(c->received, 1);
	assert_true(c->matched);
	assert_int_equal(c->hdr.method, IB_MGMT_METHOD_GET_RESP);
	assert_int_equal(c->sent, 1);
	assert_int_equal(c->status, IB_WC_SUCCESS);
	client_close(c);
	client_close(s);
}

static void test_timeout_after_the_retries(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct ib_mad_send_buf *buf = client_mad(c, 99, PERF, IB_MGMT_METHOD_GET, 7);
	mono_t start = rt_now(net->rt);

	buf->retries = 3;
	assert_int_equal(ib_post_send_mad(buf, NULL), 0);
	run_ms(1000);
	assert_int_equal(net->packets, 4);
	assert_int_equal(c->sent, 1);
	assert_int_equal(c->status, IB_WC_RESP_TIMEOUT_ERR);
	assert_int_equal((c->when.ns - start.ns) / NSEC_PER_MSEC, 400);
	client_close(c);
}

static void test_a_lost_request_is_sent_again(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct client *s = client_open(net->node[1], PERF, GET, 0);
	struct ib_mad_send_buf *buf = client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, 7);

	s->answer = client_answer;
	buf->retries = 1;
	net->lose_nth = 1;
	ib_post_send_mad(buf, NULL);
	run_ms(150);
	assert_int_equal(c->status, IB_WC_SUCCESS);
	assert_int_equal(c->received, 1);
	assert_int_equal(s->received, 1);
	client_close(c);
	client_close(s);
}

static void test_without_timeout_it_is_done_when_sent(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct ib_mad_send_buf *buf = client_mad(c, 99, PERF, 0x03, 7);

	buf->timeout_ms = 0;
	ib_post_send_mad(buf, NULL);
	run_ms(1);
	assert_int_equal(c->sent, 1);
	assert_int_equal(c->status, IB_WC_SUCCESS);
	client_close(c);
}

/* a response that is not to be matched: wrong TID, class, or direction */
static int answer_wrong(struct client *c, struct ib_mad_recv_wc *recv_wc)
{
	struct ib_mad_hdr *hdr = &recv_wc->recv_buf.mad->mad_hdr;

	if (c->received == 1)
		hdr->tid ^= cpu_to_be64(1);
	else
		hdr->mgmt_class = IB_MGMT_CLASS_BM;
	return client_answer(c, recv_wc);
}

static void test_strangers_do_not_match(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct client *s = client_open(net->node[1], PERF, GET, 0);
	struct ib_mad_send_buf *buf = client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, 7);

	s->answer = answer_wrong;
	buf->retries = 1;
	ib_post_send_mad(buf, NULL);
	run_ms(300);
	assert_int_equal(s->received, 2);
	assert_int_equal(c->received, 0);
	assert_int_equal(c->status, IB_WC_RESP_TIMEOUT_ERR);
	client_close(c);
	client_close(s);
}

static struct ib_mad saved_mad;
static struct ib_wc saved_wc;

static int save(struct client *c, struct ib_mad_recv_wc *recv_wc)
{
	saved_mad = *recv_wc->recv_buf.mad;
	saved_wc = *recv_wc->wc;
	return 0;
}

static void test_a_late_response_is_dropped(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct client *s = client_open(net->node[1], PERF, GET, 0);
	struct ib_mad_recv_wc late = {.wc = &saved_wc, .recv_buf = {.mad = &saved_mad}};

	s->answer = save;
	ib_post_send_mad(client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, 7), NULL);
	run_ms(200);
	assert_int_equal(c->status, IB_WC_RESP_TIMEOUT_ERR);
	client_answer(s, &late);
	run_ms(1);
	assert_int_equal(net->packets, 2);
	assert_int_equal(c->received, 0);
	client_close(c);
	client_close(s);
}

static void test_response_before_the_sends_completion(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct client *s = client_open(net->node[1], PERF, GET, 0);

	s->answer = client_answer;
	net->node[0]->hold_sends = true;
	ib_post_send_mad(client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, 7), NULL);
	run_ms(1);
	assert_int_equal(c->received, 1);
	assert_int_equal(c->sent, 0); /* the device still has its buffer */
	net_release(net->node[0]);
	run_ms(1);
	assert_int_equal(c->sent, 1);
	assert_int_equal(c->status, IB_WC_SUCCESS);
	client_close(c);
	client_close(s);
}

static void test_cancel(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct ib_mad_send_buf *buf = client_mad(c, 99, PERF, IB_MGMT_METHOD_GET, 7);

	ib_post_send_mad(buf, NULL);
	run_ms(10);
	ib_cancel_mad(buf);
	assert_int_equal(c->sent, 0);
	run_ms(1);
	assert_int_equal(c->sent, 1);
	assert_int_equal(c->status, IB_WC_WR_FLUSH_ERR);
	client_close(c);
}

static void test_modify_counts_from_now(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct ib_mad_send_buf *buf = client_mad(c, 99, PERF, IB_MGMT_METHOD_GET, 7);

	ib_post_send_mad(buf, NULL);
	run_ms(50);
	assert_int_equal(ib_modify_mad(buf, 500), 0);
	run_ms(450);
	assert_int_equal(c->sent, 0);
	run_ms(51);
	assert_int_equal(c->status, IB_WC_RESP_TIMEOUT_ERR);
	client_close(c);
}

static void test_unregister_flushes(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct ib_mad_agent *agent = c->agent;

	for (u32 i = 0; i < 200; i++) /* posted, and in line behind them */
		ib_post_send_mad(client_mad(c, 99, PERF, IB_MGMT_METHOD_GET, i), NULL);
	ib_unregister_mad_agent(agent);
	assert_int_equal(c->sent, 200);
	assert_int_equal(c->status, IB_WC_WR_FLUSH_ERR);
	run_ms(200); /* completions of what was posted come to nobody */
	assert_int_equal(c->sent, 200);
	ib_dealloc_pd(c->pd);
	rt_free(c);
}

static void test_more_sends_than_the_queue_has(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct client *s = client_open(net->node[1], PERF, GET, 0);

	s->answer = client_answer;
	for (u32 i = 0; i < 1000; i++) {
		struct ib_mad_send_buf *buf = client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, i);

		buf->retries = 10;
		assert_int_equal(ib_post_send_mad(buf, NULL), 0);
	}
	run_ms(2000);
	assert_int_equal(c->sent, 1000);
	assert_int_equal(c->received, 1000);
	assert_int_equal(net->node[1]->most_receives, 16);
	client_close(c);
	client_close(s);
}

/* Return: how many receives the answering port has posted, once it has answered @num MADs in turn */
static int receives_after(struct client *c, u32 num)
{
	for (u32 i = 0; i < num; i++) {
		net->node[1]->most_receives = 0;
		ib_post_send_mad(client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, i), NULL);
		run_ms(1);
	}
	return net->node[1]->most_receives;
}

static void test_receives_grow_with_bursts(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct client *s = client_open(net->node[1], PERF, GET, 0);

	s->answer = client_answer;
	net->packet_ns = 0;
	for (u32 i = 0; i < 60; i++) {
		struct ib_mad_send_buf *buf = client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, i);

		buf->retries = 3;
		ib_post_send_mad(buf, NULL);
	}
	run_ms(500);
	assert_int_equal(c->received, 60);
	assert_in_range(net->node[1]->most_receives, 32, 39);
	assert_true(net->node[1]->no_receive > 0); /* that is why */
	assert_in_range(receives_after(c, 10), 32, 39);
	run_ms(10000);
	assert_int_equal(receives_after(c, 40), 16); /* the port has become quiet */
	assert_int_equal(c->received, 110);
	client_close(c);
	client_close(s);
}

static void test_a_failed_send_completes_with_its_status(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);

	net->node[0]->send_status = IB_WC_LOC_QP_OP_ERR;
	ib_post_send_mad(client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, 1), NULL);
	run_ms(1);
	assert_int_equal(c->sent, 1);
	assert_int_equal(c->status, IB_WC_LOC_QP_OP_ERR);
	client_close(c);
}

static void test_unsupported_is_answered(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);

	ib_post_send_mad(client_mad(c, 11, 0x0a, IB_MGMT_METHOD_SET, 7), NULL);
	run_ms(1);
	assert_int_equal(c->received, 1);
	assert_int_equal(c->hdr.method, IB_MGMT_METHOD_GET_RESP);
	assert_int_equal(be16_to_cpu(c->hdr.status), 0x000c);
	client_close(c);
}

/* a node of which nobody uses the CM rejects what it is asked for, and says no more */
static void test_a_connection_that_nobody_serves_is_rejected(void **state)
{
	static const struct {
		uint16_t message, answer;
	} cases[] = {
		{WIRE_CM_REQ, WIRE_CM_REJ},
		{WIRE_CM_SIDR_REQ, WIRE_CM_SIDR_REP},
		{WIRE_CM_DREQ, WIRE_CM_DREP},
		{WIRE_CM_REP, 0},
		{WIRE_CM_REJ, 0},
	};
	struct client *c = client_open(net->node[0], IB_MGMT_CLASS_CM, 1 << IB_MGMT_METHOD_SEND, 0);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ib_mad_send_buf *buf =
			client_mad(c, 11, IB_MGMT_CLASS_CM, IB_MGMT_METHOD_SEND, 7);

		((struct ib_mad_hdr *)buf->mad)->attr_id = cpu_to_be16(cases[i].message);
		buf->timeout_ms = 0;
		c->received = 0;
		ib_post_send_mad(buf, NULL);
		run_ms(1);
		assert_int_equal(c->received, cases[i].answer != 0);
		if (c->received)
			assert_int_equal(be16_to_cpu(c->hdr.attr_id), cases[i].answer);
	}
	client_close(c);
}

/* 13.5.1: SMPs are QP0's, all others QP1's. At the other one they are no MADs, and nobody
 * answers; nor one of another version. */
static void test_a_mad_at_the_wrong_qp_is_dropped(void **state)
{
	static const struct {
		u8 class_of_agent, mgmt_class, base_version;
	} cases[] = {{PERF, 0x01, 1}, {0x01, PERF, 1}, {PERF, 0x0a, 2}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct client *c = client_open(net->node[0], cases[i].class_of_agent, 0, 0);
		struct ib_mad_send_buf *buf =
			client_mad(c, 11, cases[i].mgmt_class, IB_MGMT_METHOD_SET, 7);

		((struct ib_mad_hdr *)buf->mad)->base_version = cases[i].base_version;
		ib_post_send_mad(buf, NULL);
		run_ms(200);
		assert_int_equal(c->received, 0);
		assert_int_equal(c->status, IB_WC_RESP_TIMEOUT_ERR);
		client_close(c);
	}
}

static void test_a_response_nobody_asked_for_is_not_answered(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);

	ib_post_send_mad(client_mad(c, 11, PERF, IB_MGMT_METHOD_GET_RESP, 7), NULL);
	run_ms(200);
	assert_int_equal(net->packets, 1);
	client_close(c);
}

static void test_oui_chooses_the_vendor_agent(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct client *s = client_open(net->node[1], 0x32, GET, 0);
	struct ib_mad_send_buf *buf = client_mad(c, 11, 0x32, IB_MGMT_METHOD_GET, 1);

	ib_post_send_mad(buf, NULL); /* OUI 0: nobody's */
	run_ms(1);
	assert_int_equal(s->received, 0);
	assert_int_equal(be16_to_cpu(c->hdr.status), 0x000c);
	buf = client_mad(c, 11, 0x32, IB_MGMT_METHOD_GET, 2);
	memcpy(((struct ib_vendor_mad *)buf->mad)->oui, (u8[]){1, 2, 3}, 3);
	ib_post_send_mad(buf, NULL);
	run_ms(1);
	assert_int_equal(s->received, 1);
	client_close(c);
	client_close(s);
}

/* --- the device's own agents --- */

static int answer_perf(struct net_node *node, const struct ib_mad *in, struct ib_mad *out)
{
	if (in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MAD_RESULT_SUCCESS;
	*out = *in;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	out->data[0] = (u8)node->lid;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

static void test_the_device_comes_before_agents(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct client *s = client_open(net->node[1], PERF, GET, 0);

	net->node[1]->process_mad = answer_perf;
	ib_post_send_mad(client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, 7), NULL);
	run_ms(1);
	assert_int_equal(s->received, 0);
	assert_int_equal(c->received, 1);
	assert_int_equal(c->bytes[IB_MGMT_MAD_HDR], 11);
	client_close(c);
	client_close(s);
}

static struct ib_mad_send_buf *directed(struct client *c, u8 hops, u8 first)
{
	struct ib_mad_send_buf *buf = client_mad(c, IB_LID_PERMISSIVE, DR, IB_MGMT_METHOD_GET, 7);
	struct ib_smp *smp = buf->mad;

	smp->dr_slid = smp->dr_dlid = cpu_to_be16(IB_LID_PERMISSIVE);
	smp->hop_cnt = hops;
	smp->initial_path[1] = first;
	return buf;
}

static void test_hop_count_0_is_the_own_port(void **state)
{
	struct client *c = client_open(net->node[0], DR, 0, 0);

	net->node[0]->process_mad = answer_perf;
	assert_int_equal(ib_post_send_mad(directed(c, 0, 0), NULL), 0);
	assert_int_equal(c->received, 0);
	run_ms(1);
	assert_int_equal(net->packets, 0);
	assert_int_equal(c->received, 1);
	assert_true(c->matched);
	assert_int_equal(be16_to_cpu(c->hdr.status), 0x8000); /* D */
	assert_int_equal(c->sent, 1);
	client_close(c);
}

static void test_one_hop_and_back(void **state)
{
	struct client *c = client_open(net->node[0], DR, 0, 0);

	net->node[1]->process_mad = answer_perf;
	assert_int_equal(ib_post_send_mad(directed(c, 1, 1), NULL), 0);
	run_ms(1);
	assert_int_equal(net->packets, 2);
	assert_int_equal(c->received, 1);
	assert_int_equal(((struct ib_smp *)c->bytes)->hop_ptr, 0);
	assert_int_equal(((struct ib_smp *)c->bytes)->return_path[1], 1);
	client_close(c);
}

static void test_a_route_that_cannot_be_is_refused(void **state)
{
	struct client *c = client_open(net->node[0], DR, 0, 0);
	struct ib_mad_send_buf *buf = directed(c, 1, 3), *bad = NULL;

	assert_int_equal(ib_post_send_mad(buf, &bad), -EINVAL);
	assert_ptr_equal(bad, buf);
	rdma_destroy_ah(buf->ah, 0);
	ib_free_send_mad(buf);
	client_close(c);
}

static void test_smp_to_the_own_lid_stays_here(void **state)
{
	struct client *c = client_open(net->node[0], DR, 0, 0);

	net->node[0]->process_mad = answer_perf;
	ib_post_send_mad(client_mad(c, 10, 1, IB_MGMT_METHOD_GET, 3), NULL);
	run_ms(1);
	assert_int_equal(net->packets, 0);
	assert_int_equal(c->received, 1);
	assert_int_equal(c->bytes[IB_MGMT_MAD_HDR], 10);
	client_close(c);
}

/* an SM asks itself: SMInfo is not the SMA's, the SM's agent answers */
static void test_a_local_request_reaches_the_local_agent(void **state)
{
	struct client *sm = client_open(net->node[0], DR, GET, 0);
	struct client *c = client_open(net->node[0], DR, 0, 0);

	sm->answer = client_answer;
	ib_post_send_mad(directed(c, 0, 0), NULL);
	run_ms(1);
	assert_int_equal(net->packets, 0);
	assert_int_equal(sm->received, 1);
	assert_int_equal(c->received, 1);
	assert_true(c->matched);
	assert_int_equal(c->status, IB_WC_SUCCESS);
	client_close(sm);
	client_close(c);
}

/* --- snooping --- */

static int snooped_sends, snooped_recvs;

static void on_snoop(struct ib_mad_agent *agent, struct ib_mad_send_buf *send_buf,
		     struct ib_mad_send_wc *send_wc)
{
	snooped_sends++;
}

static void on_snoop_recv(struct ib_mad_agent *agent, struct ib_mad_send_buf *send_buf,
			  struct ib_mad_recv_wc *recv_wc)
{
	snooped_recvs++;
}

static void test_snoop_sees_all(void **state)
{
	struct ib_mad_agent *snoop = ib_register_mad_snoop(
		&net->node[0]->ib, 1, IB_QPT_GSI,
		IB_MAD_SNOOP_POSTED_SENDS | IB_MAD_SNOOP_SEND_COMPLETIONS | IB_MAD_SNOOP_RECVS,
		on_snoop, on_snoop_recv, NULL);
	struct client *c = client_open(net->node[0], PERF, 0, 0);

	snooped_sends = snooped_recvs = 0;
	ib_post_send_mad(client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, 7), NULL);
	assert_int_equal(snooped_sends, 1);
	run_ms(1);
	assert_int_equal(snooped_sends, 2);
	assert_int_equal(snooped_recvs, 1);
	ib_unregister_mad_agent(snoop);
	client_close(c);
}

/* --- redirection --- */

struct manager {
	struct client *client;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 buffer[8][296];
};

static void manager_poll(struct ib_cq *cq, void *context)
{
	struct manager *m = context;
	struct ib_wc wc;

	while (ib_poll_cq(cq, 1, &wc) > 0)
		assert_int_equal(ib_process_mad_wc(m->client->agent, &wc), 0);
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
}

static void manager_open(struct manager *m, struct client *c)
{
	struct ib_cq_init_attr cq_attr = {.cqe = 64};
	struct ib_qp_init_attr init = {.qp_type = IB_QPT_UD,
				       .cap = {.max_send_wr = 64, .max_recv_wr = 64,
					       .max_send_sge = 2, .max_recv_sge = 1}};
	struct ib_qp_attr attr = {.qp_state = IB_QPS_INIT, .port_num = 1, .qkey = 0x80010000};

	m->client = c;
	m->cq = ib_create_cq(&c->node->ib, manager_poll, NULL, m, &cq_attr);
	init.send_cq = init.recv_cq = m->cq;
	m->qp = ib_create_qp(c->pd, &init);
	ib_modify_qp(m->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
	attr.qp_state = IB_QPS_RTR;
	ib_modify_qp(m->qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	ib_modify_qp(m->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
	for (int i = 0; i < 8; i++) {
		struct ib_sge sge = {.addr = (uintptr_t)m->buffer[i], .length = 296};
		struct ib_recv_wr wr = {.wr_id = sge.addr, .sg_list = &sge, .num_sge = 1};

		ib_post_recv(m->qp, &wr, NULL);
	}
	ib_req_notify_cq(m->cq, IB_CQ_NEXT_COMP);
}

static void test_a_redirected_qp_serves_requests(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct client *s = client_open(net->node[1], PERF, GET, 0);
	struct ib_mad_agent *on_qp1 = s->agent;
	struct ib_mad_send_buf *buf;
	struct manager m;

	manager_open(&m, s);
	s->answer = client_answer;
	s->agent = ib_redirect_mad_qp(m.qp, 0, client_sent, client_received, s);
	assert_false(IS_ERR(s->agent));
	buf = ib_create_send_mad(c->agent, m.qp->qp_num, 0, 0, IB_MGMT_MAD_HDR, IB_MGMT_MAD_DATA,
				 GFP_KERNEL, 1);
	*(struct ib_mad_hdr *)buf->mad = (struct ib_mad_hdr){
		.base_version = 1, .mgmt_class = PERF, .class_version = 1,
		.method = IB_MGMT_METHOD_GET, .tid = cpu_to_be64((u64)c->agent->hi_tid << 32 | 1)};
	buf->ah = client_ah(c, 11);
	buf->timeout_ms = 100;
	ib_post_send_mad(buf, NULL);
	run_ms(5);
	assert_int_equal(s->received, 1);
	assert_int_equal(s->sent, 1);
	assert_int_equal(c->received, 1);
	assert_int_equal(c->status, IB_WC_SUCCESS);
	ib_unregister_mad_agent(s->agent);
	s->agent = on_qp1;
	ib_destroy_qp(m.qp);
	ib_destroy_cq(m.cq);
	client_close(c);
	client_close(s);
}

static void test_process_wc_is_for_redirected_qps(void **state)
{
	struct client *c = client_open(net->node[0], PERF, 0, 0);
	struct ib_wc wc = {0};

	assert_int_equal(ib_process_mad_wc(c->agent, &wc), -EINVAL);
	client_close(c);
}

/* --- lack of memory --- */

/* whichever allocation fails, the request completes: answered when a retry
 * gets through, which it does as only one fails */
static void test_any_allocation_may_fail(void **state)
{
	for (u64 nth = 1; nth < 30; nth++) {
		struct client *c = client_open(net->node[0], PERF, 0, 0);
		struct client *s = client_open(net->node[1], PERF, GET, 0);
		struct ib_mad_send_buf *buf = client_mad(c, 11, PERF, IB_MGMT_METHOD_GET, 7);

		s->answer = client_answer;
		buf->retries = 1;
		rt_fail_alloc(nth);
		assert_int_equal(ib_post_send_mad(buf, NULL), 0);
		run_ms(500);
		rt_fail_alloc(0);
		assert_int_equal(c->sent, 1);
		assert_int_equal(c->status, IB_WC_SUCCESS);
		client_close(c);
		client_close(s);
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_queue_pairs_come_with_the_first_agent),
		CASE(test_a_port_may_fail_to_open),
		CASE(test_registration_is_checked),
		CASE(test_a_method_has_one_agent),
		CASE(test_an_agent_shares_its_class),
		CASE(test_request_and_response),
		CASE(test_timeout_after_the_retries),
		CASE(test_a_lost_request_is_sent_again),
		CASE(test_without_timeout_it_is_done_when_sent),
		CASE(test_strangers_do_not_match),
		CASE(test_a_late_response_is_dropped),
		CASE(test_response_before_the_sends_completion),
		CASE(test_cancel),
		CASE(test_modify_counts_from_now),
		CASE(test_unregister_flushes),
		CASE(test_more_sends_than_the_queue_has),
		CASE(test_receives_grow_with_bursts),
		CASE(test_a_failed_send_completes_with_its_status),
		CASE(test_unsupported_is_answered),
		CASE(test_a_connection_that_nobody_serves_is_rejected),
		CASE(test_a_mad_at_the_wrong_qp_is_dropped),
		CASE(test_a_response_nobody_asked_for_is_not_answered),
		CASE(test_oui_chooses_the_vendor_agent),
		CASE(test_the_device_comes_before_agents),
		CASE(test_hop_count_0_is_the_own_port),
		CASE(test_one_hop_and_back),
		CASE(test_a_route_that_cannot_be_is_refused),
		CASE(test_smp_to_the_own_lid_stays_here),
		CASE(test_a_local_request_reaches_the_local_agent),
		CASE(test_snoop_sees_all),
		CASE(test_a_redirected_qp_serves_requests),
		CASE(test_process_wc_is_for_redirected_qps),
		CASE(test_any_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
