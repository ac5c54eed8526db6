/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* XRC targets that programs share: what softibd believes of what a program says about one. */
#include "world.h"

#include "abi/target.h"

/** struct shared - a target that @owner holds; @other has joined its domain */
struct shared {
	struct world *w;
	struct program owner, other;
	struct hca_qp *qp;
	int events;
	enum ib_event_type last;
};

static void on_event(struct ib_event *event, void *ctx)
{
	struct shared *s = ctx;

	s->events++;
	s->last = event->event;
}

static void *join_domain(struct ib_uobject *u, void *arg)
{
	return ib_alloc_xrcd_user(u, arg, O_CREAT);
}

static struct hca_user *user_of(const struct program *p)
{
	return container_of(p->context, struct hca_user, ib);
}

static void begin(struct world *w, struct shared *s)
{
	struct ib_xrcd_file file = {1, 2};
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_XRC_TGT, .event_handler = on_event, .qp_context = NULL};
	struct ib_qp *qp;

	memset(s, 0, sizeof(*s));
	s->w = w;
	make_program(w, &s->owner);
	make_program(w, &s->other);
	attr.xrcd = object(s->owner.context, IB_UOBJECT_XRCD, join_domain, &file);
	object(s->other.context, IB_UOBJECT_XRCD, join_domain, &file);
	qp = object(s->owner.context, IB_UOBJECT_QP, make_qp, &attr);
	qp->event_handler = on_event;
	qp->qp_context = s;
	s->qp = container_of(qp, struct hca_qp, ib);
	s->qp->target.holder = user_of(&s->owner);
	assert_true(hca_target_is_shared(s->qp));
}

static void end(struct shared *s)
{
	end_program(&s->other);
	end_program(&s->owner);
}

static void say(struct shared *s, const struct program *by, enum abi_target_kind kind,
		uint32_t event)
{
	struct abi_target_message m = {.mark = ABI_TARGET_MARK, .kind = kind, .event = event,
				       .qpn = s->qp->ib.qp_num, .state = {.epsn = 77}};

	hca_target_message(user_of(by), &m, sizeof(m));
	turn(s->w);
}

/* its holder, when it was asked */
static void who_gives_the_state_back(void **state)
{
	struct hca_user *holder;
	struct shared s;

	begin(*state, &s);
	holder = user_of(&s.owner);
	say(&s, &s.owner, ABI_TARGET_RELEASED, 0); /* nobody has asked */
	assert_ptr_equal(s.qp->target.holder, holder);
	s.qp->target.is_asked = true;
	say(&s, &s.other, ABI_TARGET_RELEASED, 0);
	assert_ptr_equal(s.qp->target.holder, holder);
	assert_int_not_equal(s.qp->target.state.epsn, 77);
	say(&s, &s.owner, ABI_TARGET_RELEASED, 0);
	assert_null(s.qp->target.holder);
	assert_int_equal(s.qp->target.state.epsn, 77);
	end(&s);
}

static void which_events_a_program_raises(void **state)
{
	static const uint32_t no_targets[] = {IB_EVENT_SQ_DRAINED, IB_EVENT_QP_LAST_WQE_REACHED,
					      IB_EVENT_DEVICE_FATAL, 32, UINT32_MAX};
	struct shared s;

	begin(*state, &s);
	for (size_t i = 0; i < ARRAY_SIZE(no_targets); i++)
		say(&s, &s.owner, ABI_TARGET_EVENT, no_targets[i]);
	say(&s, &s.other, ABI_TARGET_EVENT, IB_EVENT_COMM_EST);
	assert_int_equal(s.events, 0);
	say(&s, &s.owner, ABI_TARGET_EVENT, IB_EVENT_COMM_EST);
	assert_int_equal(s.events, 1);
	assert_int_equal(s.last, IB_EVENT_COMM_EST);
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_gives_the_state_back, setup, teardown),
		cmocka_unit_test_setup_teardown(which_events_a_program_raises, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
