/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Subscriptions to notices of the subnet, and the Reports that come. */
#include "fake_sa.h"

#define TRAP IB_SA_SM_TRAP_GID_IN_SERVICE

struct user {
	struct ib_inform_info *info;
	int calls, status, notices;
	struct ib_sa_notice last;
	int answer;
	struct user *frees; /* at the first notice */
};

static const union ib_gid gid = {.raw = {0xfe, 0x80, [15] = 12}};

static int told(int status, struct ib_inform_info *info, struct ib_sa_notice *notice)
{
	struct user *u = info->context;

	u->calls++;
	u->status = status;
	if (notice) {
		u->notices++;
		u->last = *notice;
		if (u->frees)
			ib_sa_unregister_inform_info(u->frees->info);
		u->frees = NULL;
	}
	return u->answer;
}

static void subscribe(struct user *u, u16 trap)
{
	u->info = ib_sa_register_inform_info(&client, device, 1, trap, GFP_KERNEL, told, u);
	assert_false(IS_ERR(u->info));
	assert_int_equal(u->calls, 0);
	run_ms(100);
}

static void unsubscribe(struct user *u)
{
	ib_sa_unregister_inform_info(u->info);
	run_ms(100);
}

static struct wire_inform_info asked(void)
{
	struct wire_inform_info info;

	wire_inform_info_decode(sa->record, sizeof(sa->record), &info);
	return info;
}

static void subscribers_share_one_subscription(void **state)
{
	struct user a = {0}, b = {0};

	subscribe(&a, TRAP);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.status, 0);
	assert_int_equal(sa->method, IB_MGMT_METHOD_SET);
	assert_int_equal(sa->attr_id, IB_SA_ATTR_INFORM_INFO);
	assert_int_equal(asked().trap_number, TRAP);
	assert_int_equal(asked().subscribe, 1);
	assert_int_equal(asked().lid_range_begin, 0xffff);
	subscribe(&b, TRAP);
	assert_int_equal(b.calls, 1);
	assert_int_equal(sa->asked, 1);
	unsubscribe(&a);
	assert_int_equal(sa->asked, 1);
	unsubscribe(&b);
	assert_int_equal(sa->asked, 2);
	assert_int_equal(asked().subscribe, 0);
	assert_int_equal(asked().qpn, 1);
}

static void notices_come_to_those_who_asked(void **state)
{
	struct user a = {0}, b = {0}, other = {0};

	subscribe(&a, TRAP);
	subscribe(&b, TRAP);
	subscribe(&other, IB_SA_SM_TRAP_GID_OUT_OF_SERVICE);
	fake_sa_report(sa, 11, TRAP, &gid);
	run_ms(10);
	assert_int_equal(sa->reports_answered, 1);
	assert_int_equal(a.notices, 1);
	assert_int_equal(b.notices, 1);
	assert_int_equal(other.notices, 0);
	assert_int_equal(a.last.trap_number, TRAP);
	assert_int_equal(a.last.issuer_lid, 10);
	assert_memory_equal(ib_sa_notice_gid(&a.last), &gid, 16);
	fake_sa_report(sa, 11, 200, &gid); /* nobody's, but answered */
	run_ms(10);
	assert_int_equal(sa->reports_answered, 2);
	a.frees = &b;
	fake_sa_report(sa, 11, TRAP, &gid);
	run_ms(10);
	assert_int_equal(a.notices, 2);
	assert_int_equal(b.notices, 1);
	a.answer = 1; /* it frees itself */
	fake_sa_report(sa, 11, TRAP, &gid);
	run_ms(100);
	assert_int_equal(a.notices, 3);
	assert_int_equal(asked().subscribe, 0);
	unsubscribe(&other);
}

static void a_refusal_is_told(void **state)
{
	struct user a = {0}, b = {0};

	sa->status = 0x0200;
	subscribe(&a, TRAP);
	assert_int_equal(a.status, -EINVAL);
	unsubscribe(&a);
	assert_int_equal(sa->asked, 1);
	sa->silent = true;
	subscribe(&b, TRAP);
	run_ms(4000);
	assert_int_equal(b.status, -ETIMEDOUT);
	unsubscribe(&b);
}

static void without_a_manager_there_is_nothing_to_hear(void **state)
{
	struct user a = {0};

	net->node[1]->sm_lid = 0;
	subscribe(&a, TRAP);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.status, -EAGAIN);
	unsubscribe(&a);
}

static void reports_belong_to_one_agent(void **state)
{
	struct ib_mad_reg_req req = {.mgmt_class = IB_MGMT_CLASS_SUBN_ADM,
				     .mgmt_class_version = IB_SA_CLASS_VERSION,
				     .method_mask = {1ul << IB_MGMT_METHOD_REPORT}};
	struct ib_mad_agent *program = ib_register_mad_agent(device, 1, IB_QPT_GSI, &req, 0,
							     fake_sa_sent, fake_sa_received, sa, 0);
	struct user a = {0};

	assert_false(IS_ERR(program));
	subscribe(&a, TRAP);
	assert_int_equal(a.status, -EBUSY);
	unsubscribe(&a);
	ib_unregister_mad_agent(program);
}

static void a_subscription_that_is_lost_is_told(void **state)
{
	struct user a = {0}, b = {.answer = 1}, c = {0};

	subscribe(&a, TRAP);
	port_event(IB_EVENT_CLIENT_REREGISTER);
	assert_int_equal(a.calls, 2);
	assert_int_equal(a.status, -ENETRESET);
	unsubscribe(&a);
	assert_int_equal(sa->asked, 1);
	b.answer = 0;
	subscribe(&b, TRAP);
	assert_int_equal(sa->asked, 2);
	b.answer = 1;
	port_event(IB_EVENT_SM_CHANGE);
	assert_int_equal(b.status, -ENETRESET);
	/* while it is asked for: the other SA is asked, too */
	c.info = ib_sa_register_inform_info(&client, device, 1, TRAP, GFP_KERNEL, told, &c);
	rt_sim_run_for(net->rt, 1000);
	port_event(IB_EVENT_SM_CHANGE);
	run_ms(100);
	assert_int_equal(c.calls, 1);
	assert_int_equal(c.status, 0);
	assert_int_equal(sa->asked, 4);
	unsubscribe(&c);
}

static void who_goes_while_asking_is_not_told(void **state)
{
	struct user a = {0}, b = {0};

	a.info = ib_sa_register_inform_info(&client, device, 1, TRAP, GFP_KERNEL, told, &a);
	ib_sa_unregister_inform_info(a.info);
	run_ms(100);
	assert_int_equal(a.calls, 0);
	assert_int_equal(asked().subscribe, 0);
	/* and who comes while it is left: it stands again */
	subscribe(&b, TRAP);
	ib_sa_unregister_inform_info(b.info);
	b.calls = 0;
	b.info = ib_sa_register_inform_info(&client, device, 1, TRAP, GFP_KERNEL, told, &b);
	run_ms(100);
	assert_int_equal(b.calls, 1);
	assert_int_equal(asked().subscribe, 1);
	unsubscribe(&b);
}

static void a_device_goes_while_asking(void **state)
{
	struct user a = {0}, b = {0};

	sa->silent = true;
	a.info = ib_sa_register_inform_info(&client, device, 1, TRAP, GFP_KERNEL, told, &a);
	b.info = ib_sa_register_inform_info(&client, device, 1, 65, GFP_KERNEL, told, &b);
	ib_sa_unregister_inform_info(a.info);
	ib_sa_unregister_inform_info(b.info);
	ib_unregister_device(device);
	assert_int_equal(PTR_ERR(ib_sa_register_inform_info(&client, device, 1, TRAP, GFP_KERNEL,
							    told, &a)),
			 -ENODEV);
	assert_int_equal(ib_register_device(device, "fake0"), 0);
}

static void no_memory_is_no_disaster(void **state)
{
	for (u64 nth = 1; nth < 30; nth++) {
		struct user a = {0};

		rt_fail_alloc(nth);
		a.info = ib_sa_register_inform_info(&client, device, 1, TRAP, GFP_KERNEL, told, &a);
		run_ms(4000);
		rt_fail_alloc(0);
		if (IS_ERR(a.info)) {
			assert_int_equal(PTR_ERR(a.info), -ENOMEM);
			continue;
		}
		assert_int_equal(a.calls, 1);
		unsubscribe(&a);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, sa_setup, sa_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(subscribers_share_one_subscription),
		T(notices_come_to_those_who_asked),
		T(a_refusal_is_told),
		T(without_a_manager_there_is_nothing_to_hear),
		T(reports_belong_to_one_agent),
		T(a_subscription_that_is_lost_is_told),
		T(who_goes_while_asking_is_not_told),
		T(a_device_goes_while_asking),
		T(no_memory_is_no_disaster),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
