/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast groups of a port: members counted, joins and leaves at the SA. */
#include "fake_sa.h"

#define FULL (1 << FULLMEMBER_JOIN)
#define SEND_ONLY (1 << SENDONLY_NONMEBER_JOIN)
#define MASK (IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_JOIN_STATE)

/* a membership, and what its callback was told */
struct user {
	struct ib_sa_multicast *multicast;
	int calls, status;
	int answer; /* what the callback returns */
};

static int told(int status, struct ib_sa_multicast *multicast)
{
	struct user *u = multicast->context;

	u->calls++;
	u->status = status;
	if (u->answer)
		u->multicast = NULL;
	return u->answer;
}

static const struct ib_sa_mcmember_rec *rec_of(u8 last, u8 join_state)
{
	static struct ib_sa_mcmember_rec rec;

	rec = (struct ib_sa_mcmember_rec){.mgid = SA_MGID, .join_state = join_state};
	rec.mgid.raw[15] = last;
	return &rec;
}

static void join_rec(struct user *u, const struct ib_sa_mcmember_rec *rec, ib_sa_comp_mask mask)
{
	*u = (struct user){.answer = u->answer};
	u->multicast = ib_sa_join_multicast(&client, device, 1, rec, mask, GFP_KERNEL, told, u);
	assert_false(IS_ERR(u->multicast));
	assert_int_equal(u->calls, 0); /* never on the caller's stack */
}

static void join(struct user *u, u8 last, u8 join_state)
{
	join_rec(u, rec_of(last, join_state), MASK);
	run_ms(100);
}

static void leave(struct user *u)
{
	ib_sa_free_multicast(u->multicast);
	u->multicast = NULL;
	run_ms(100);
}

static void a_port_of_roce_is_a_member_by_itself(void **state)
{
	struct ib_sa_mcmember_rec rec;
	struct user a = {0}, b = {0};

	net->node[1]->link_layer = IB_LINK_LAYER_ETHERNET;
	net->node[1]->sm_lid = 0;
	port_event(IB_EVENT_PORT_ACTIVE);
	join(&a, 1, FULL);
	join(&b, 1, SEND_ONLY);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.status, 0);
	assert_int_equal(b.status, 0);
	rec = a.multicast->rec;
	assert_int_equal(be16_to_cpu(rec.mlid), IB_MULTICAST_LID_BASE);
	assert_int_equal(rec.mtu, IB_MTU_4096);
	assert_int_equal(rec.mgid.raw[15], 1);
	leave(&a);
	assert_int_equal(ib_sa_get_mcmember_rec(device, 1, &rec.mgid, &rec), 0);
	leave(&b);
	assert_int_equal(ib_sa_get_mcmember_rec(device, 1, &rec.mgid, &rec), -EADDRNOTAVAIL);
	assert_int_equal(sa->method, 0); /* nobody was asked */
}

static void the_first_joins_and_the_last_leaves(void **state)
{
	struct ib_sa_mcmember_rec rec;
	struct user a = {0}, b = {0};

	join(&a, 1, FULL);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.status, 0);
	assert_int_equal(sa->asked, 1);
	assert_int_equal(sa->method, IB_MGMT_METHOD_SET);
	assert_int_equal(sa->comp_mask, MASK | IB_SA_MCMEMBER_REC_PORT_GID);
	assert_int_equal(sa->record[16 + 15], 11); /* this port's GID */
	assert_int_equal(be16_to_cpu(a.multicast->rec.mlid), 0xc005);
	join(&b, 1, FULL);
	assert_int_equal(b.calls, 1);
	assert_int_equal(b.status, 0);
	assert_int_equal(be16_to_cpu(b.multicast->rec.mlid), 0xc005);
	assert_int_equal(sa->asked, 1);
	assert_int_equal(ib_sa_get_mcmember_rec(device, 1, &rec_of(1, 0)->mgid, &rec), 0);
	assert_int_equal(be16_to_cpu(rec.mlid), 0xc005);
	leave(&a);
	assert_int_equal(sa->asked, 1);
	leave(&b);
	assert_int_equal(sa->asked, 2);
	assert_int_equal(sa->method, IB_SA_METHOD_DELETE);
	assert_int_equal(ib_sa_get_mcmember_rec(device, 1, &rec_of(1, 0)->mgid, &rec),
			 -EADDRNOTAVAIL);
	assert_int_equal(ib_sa_get_mcmember_rec(device, 7, &rec_of(1, 0)->mgid, &rec), -ENODEV);
}

static u8 asked_join_state(void)
{
	struct wire_mcmember_record wire;

	wire_mcmember_record_decode(sa->record, sizeof(sa->record), &wire);
	return wire.join_state;
}

static void states_are_counted_each(void **state)
{
	struct user full = {0}, sender = {0};

	join(&full, 1, FULL);
	join(&sender, 1, SEND_ONLY);
	assert_int_equal(sa->asked, 2);
	assert_int_equal(asked_join_state(), SEND_ONLY);
	assert_int_equal(sender.status, 0);
	assert_int_equal(sender.multicast->rec.join_state, SEND_ONLY);
	leave(&full);
	assert_int_equal(sa->asked, 3);
	assert_int_equal(sa->method, IB_SA_METHOD_DELETE);
	assert_int_equal(asked_join_state(), FULL);
	leave(&sender);
	assert_int_equal(sa->asked, 4);
	assert_int_equal(asked_join_state(), SEND_ONLY);
}

static void groups_are_apart(void **state)
{
	struct user a = {0}, b = {0};

	join(&a, 1, FULL);
	join(&b, 2, FULL);
	assert_int_equal(sa->asked, 2);
	leave(&a);
	assert_int_equal(sa->record[15], 1);
	leave(&b);
	assert_int_equal(sa->record[15], 2);
}

static void a_member_who_asks_for_another_group_is_refused(void **state)
{
	const ib_sa_comp_mask mtu = MASK | IB_SA_MCMEMBER_REC_MTU_SELECTOR | IB_SA_MCMEMBER_REC_MTU;
	struct ib_sa_mcmember_rec rec = *rec_of(1, FULL);
	struct user a = {0}, b = {0}, c = {0}, d = {0};

	join(&a, 1, FULL); /* an MTU of 2048, the SA says */
	rec.mtu_selector = IB_SA_GT;
	rec.mtu = IB_MTU_2048;
	join_rec(&b, &rec, mtu);
	rec.mtu_selector = IB_SA_EQ;
	join_rec(&c, &rec, mtu);
	rec.qkey = cpu_to_be32(5);
	join_rec(&d, &rec, MASK | IB_SA_MCMEMBER_REC_QKEY);
	run_ms(100);
	assert_int_equal(b.status, -EINVAL);
	assert_int_equal(c.status, 0);
	assert_int_equal(d.status, -EINVAL);
	assert_int_equal(sa->asked, 1);
	leave(&a);
	leave(&b);
	leave(&d);
	assert_int_equal(sa->asked, 1);
	leave(&c);
	assert_int_equal(sa->asked, 2);
}

static void what_the_sa_refuses_is_told(void **state)
{
	struct user a = {0}, b = {.answer = 1};

	sa->status = 0x0200;
	join(&a, 1, FULL);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.status, -EINVAL);
	join(&b, 1, FULL);
	assert_int_equal(b.status, -EINVAL); /* and it freed itself */
	sa->status = 0;
	leave(&a);
	assert_int_equal(sa->asked, 2);
	sa->silent = true;
	b.answer = 0;
	join(&b, 1, FULL);
	run_ms(4000);
	assert_int_equal(b.status, -ETIMEDOUT);
	leave(&b);
}

static void bad_arguments_are_refused(void **state)
{
	struct ib_sa_mcmember_rec rec = *rec_of(1, FULL);

	assert_int_equal(PTR_ERR(ib_sa_join_multicast(&client, device, 2, &rec, MASK, 1, told, NULL)),
			 -ENODEV);
	assert_int_equal(PTR_ERR(ib_sa_join_multicast(&client, device, 1, &rec,
						      IB_SA_MCMEMBER_REC_MGID, 1, told, NULL)),
			 -EINVAL);
	rec.join_state = 0;
	assert_int_equal(PTR_ERR(ib_sa_join_multicast(&client, device, 1, &rec, MASK, 1, told, NULL)),
			 -EINVAL);
}

static void the_sa_invents_an_mgid(void **state)
{
	struct ib_sa_mcmember_rec rec = {.join_state = FULL};
	struct user a = {0}, b = {0};

	join_rec(&a, &rec, MASK);
	run_ms(100);
	assert_int_equal(a.status, 0);
	assert_int_equal(sa->comp_mask & IB_SA_MCMEMBER_REC_MGID, 0);
	assert_memory_equal(&a.multicast->rec.mgid, &rec_of(1, 0)->mgid, 16);
	join(&b, 1, FULL); /* it is a group as any */
	assert_int_equal(sa->asked, 1);
	assert_int_equal(b.status, 0);
	leave(&a);
	leave(&b);
	assert_int_equal(sa->method, IB_SA_METHOD_DELETE);
}

static void a_membership_that_is_lost_is_told(void **state)
{
	static const enum ib_event_type events[] = {IB_EVENT_PORT_ERR, IB_EVENT_LID_CHANGE,
						    IB_EVENT_CLIENT_REREGISTER};

	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		struct user a = {0}, b = {0};
		int asked;

		join(&a, 1, FULL);
		join(&b, 1, FULL);
		asked = sa->asked;
		a.answer = 1;
		port_event(events[i]);
		assert_int_equal(a.calls, 2);
		assert_int_equal(a.status, -ENETRESET);
		assert_null(a.multicast);
		assert_int_equal(b.status, -ENETRESET);
		leave(&b);
		assert_int_equal(sa->asked, asked); /* the SA has forgotten already */
	}
}

static void a_join_under_way_is_lost_too(void **state)
{
	struct user a = {0};

	join_rec(&a, rec_of(1, FULL), MASK);
	rt_sim_run_for(net->rt, 1000); /* sent, not answered */
	assert_int_equal(a.calls, 0);
	port_event(IB_EVENT_LID_CHANGE);
	run_ms(100);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.status, -ENETRESET);
	leave(&a);
}

static void who_goes_while_joining_is_not_told(void **state)
{
	struct user a = {0}, b = {0};

	join_rec(&a, rec_of(1, FULL), MASK);
	rt_sim_run_for(net->rt, 1000);
	ib_sa_free_multicast(a.multicast);
	run_ms(100);
	assert_int_equal(a.calls, 0);
	assert_int_equal(sa->asked, 2); /* it was joined, and is left again */
	assert_int_equal(sa->method, IB_SA_METHOD_DELETE);
	join_rec(&b, rec_of(2, FULL), MASK); /* not even begun */
	ib_sa_free_multicast(b.multicast);
	run_ms(100);
	assert_int_equal(b.calls, 0);
	assert_int_equal(sa->asked, 2);
}

static void who_comes_while_leaving_joins_anew(void **state)
{
	struct user a = {0}, b = {0};

	join(&a, 1, FULL);
	ib_sa_free_multicast(a.multicast);
	rt_sim_run_for(net->rt, 1000); /* Delete is under way */
	join_rec(&b, rec_of(1, FULL), MASK);
	run_ms(100);
	assert_int_equal(b.status, 0);
	assert_int_equal(sa->asked, 3);
	assert_int_equal(sa->method, IB_MGMT_METHOD_SET);
	leave(&b);
}

static void a_device_goes_with_joins_under_way(void **state)
{
	struct user a = {.answer = 1}, b = {0};

	join_rec(&a, rec_of(1, FULL), MASK);
	join(&b, 2, FULL);
	sa->silent = true;
	ib_sa_free_multicast(b.multicast);
	rt_sim_run_for(net->rt, 1000);
	a.answer = 1;
	if (a.multicast)
		ib_sa_free_multicast(a.multicast);
	ib_unregister_device(device);
	assert_int_equal(ib_register_device(device, "fake0"), 0);
}

static void no_memory_is_no_disaster(void **state)
{
	for (u64 nth = 1; nth < 30; nth++) {
		struct user a = {0};

		rt_fail_alloc(nth);
		a.multicast = ib_sa_join_multicast(&client, device, 1, rec_of(1, FULL), MASK,
						   GFP_KERNEL, told, &a);
		run_ms(4000);
		rt_fail_alloc(0);
		if (IS_ERR(a.multicast)) {
			assert_int_equal(PTR_ERR(a.multicast), -ENOMEM);
			continue;
		}
		assert_int_equal(a.calls, 1);
		leave(&a);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, sa_setup, sa_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_first_joins_and_the_last_leaves),
		T(a_port_of_roce_is_a_member_by_itself),
		T(states_are_counted_each),
		T(groups_are_apart),
		T(a_member_who_asks_for_another_group_is_refused),
		T(what_the_sa_refuses_is_told),
		T(bad_arguments_are_refused),
		T(the_sa_invents_an_mgid),
		T(a_membership_that_is_lost_is_told),
		T(a_join_under_way_is_lost_too),
		T(who_goes_while_joining_is_not_told),
		T(who_comes_while_leaving_joins_anew),
		T(a_device_goes_with_joins_under_way),
		T(no_memory_is_no_disaster),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
