/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Contexts of programs: handles, clean-up in the right order, accounts. */
#include "../test.h"

#include "core/uobject.h"
#include "fake_device.h"
#include "runtime/sim/rt_sim.h"

struct world {
	struct rt *rt;
	struct fake *fake;
	struct ib_ucontext *context;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (rt_sim_create(1, &w->rt))
		return -1;
	w->fake = fake_create(w->rt, "n1");
	if (ib_register_device(&w->fake->ib, "softib0"))
		return -1;
	w->context = ib_ucontext_open(&w->fake->ib, 1234, "prog");
	*state = w;
	return IS_ERR(w->context) ? -1 : 0;
}

/* whatever a test leaves behind, closing the context takes it all */
static int teardown(void **state)
{
	struct world *w = *state;
	int left;

	if (w->context)
		ib_ucontext_close(w->context);
	left = fake_end(w->fake);
	rt_sim_destroy(w->rt);
	free(w);
	return left ? -1 : 0;
}

static struct ib_uobject *commit(struct ib_uobject *uobject, void *object)
{
	if (IS_ERR(uobject))
		return uobject;
	if (IS_ERR(object)) {
		ib_uobject_abort(uobject);
		return object;
	}
	ib_uobject_commit(uobject, object);
	return uobject;
}

static struct ib_uobject *make(struct world *w, enum ib_uobject_type type, struct ib_pd *pd,
			       struct ib_cq *cq, struct ib_srq *srq)
{
	struct ib_uobject *u = ib_uobject_alloc(w->context, type);
	struct ib_cq_init_attr cq_attr = {.cqe = 4};
	struct ib_srq_init_attr srq_attr = {.attr = {.max_wr = 2, .max_sge = 1}};
	struct ib_qp_init_attr qp_attr = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IB_QPT_UD};
	struct rdma_ah_attr ah_attr = {.port_num = 1, .dlid = 3};

	if (IS_ERR(u))
		return u;
	switch (type) {
	case IB_UOBJECT_PD:
		return commit(u, ib_alloc_pd_user(u));
	case IB_UOBJECT_CQ:
		return commit(u, ib_create_cq_user(u, &cq_attr));
	case IB_UOBJECT_SRQ:
		return commit(u, ib_create_srq_user(u, pd, &srq_attr));
	case IB_UOBJECT_QP:
		return commit(u, ib_create_qp_user(u, pd, &qp_attr));
	case IB_UOBJECT_AH:
		return commit(u, ib_create_ah_user(u, pd, &ah_attr));
	default:
		return commit(u, ib_reg_user_mr(u, pd, 4096, 4096, 4096, IB_ACCESS_LOCAL_WRITE));
	}
}

static void handles_are_of_a_type_and_a_time(void **state)
{
	struct world *w = *state;
	struct ib_uobject *u = make(w, IB_UOBJECT_PD, NULL, NULL, NULL);
	void *pd = u->object;
	u32 old = u->handle;

	assert_ptr_equal(ib_uobject_get(w->context, IB_UOBJECT_PD, old), pd);
	assert_true(IS_ERR(ib_uobject_get(w->context, IB_UOBJECT_CQ, old)));
	assert_true(IS_ERR(ib_uobject_get(w->context, IB_UOBJECT_PD, old + 1)));
	assert_true(IS_ERR(ib_uobject_get(w->context, IB_UOBJECT_PD, UINT32_MAX)));
	assert_int_equal(ib_uobject_destroy(w->context, IB_UOBJECT_CQ, old), -EINVAL);
	assert_int_equal(ib_uobject_destroy(w->context, IB_UOBJECT_PD, old), 0);
	u = make(w, IB_UOBJECT_PD, NULL, NULL, NULL);
	assert_int_not_equal(u->handle, old); /* same slot, other generation */
	assert_true(IS_ERR(ib_uobject_get(w->context, IB_UOBJECT_PD, old)));
	assert_int_equal(ib_uobject_destroy(w->context, IB_UOBJECT_PD, old), -EINVAL);
}

/* As many as the device says, and not one more; what goes makes room. What the midlayer has
 * does not count. */
static void limits_are_as_reported(void **state)
{
	struct world *w = *state;
	struct ib_device_attr *most = &w->fake->ib.attrs;
	struct ib_pd *pd = make(w, IB_UOBJECT_PD, NULL, NULL, NULL)->object;
	struct ib_cq *cq = make(w, IB_UOBJECT_CQ, NULL, NULL, NULL)->object;
	struct ib_srq *srq = make(w, IB_UOBJECT_SRQ, pd, NULL, NULL)->object;
	struct ib_pd *own = ib_alloc_pd(&w->fake->ib, 0);
	const struct {
		enum ib_uobject_type type;
		int *limit;
		int now;
	} kinds[] = {
		{IB_UOBJECT_PD, &most->max_pd, 1},   {IB_UOBJECT_CQ, &most->max_cq, 1},
		{IB_UOBJECT_SRQ, &most->max_srq, 1}, {IB_UOBJECT_QP, &most->max_qp, 0},
		{IB_UOBJECT_MR, &most->max_mr, 0},   {IB_UOBJECT_AH, &most->max_ah, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct ib_uobject *u;

		*kinds[i].limit = kinds[i].now + 1;
		u = make(w, kinds[i].type, pd, cq, srq);
		assert_false(IS_ERR(u));
		assert_int_equal(PTR_ERR(make(w, kinds[i].type, pd, cq, srq)), -ENOMEM);
		assert_int_equal(ib_uobject_destroy(w->context, kinds[i].type, u->handle), 0);
		u = make(w, kinds[i].type, pd, cq, srq);
		assert_false(IS_ERR(u));
		assert_int_equal(ib_uobject_destroy(w->context, kinds[i].type, u->handle), 0);
	}
	most->max_pd = 1;
	assert_int_equal(PTR_ERR(ib_alloc_pd(&w->fake->ib, 0)), -ENOMEM);
	assert_int_equal(ib_dealloc_pd(own), 0);
}

static void an_object_in_the_making_is_not_found(void **state)
{
	struct world *w = *state;
	struct ib_uobject *u = ib_uobject_alloc(w->context, IB_UOBJECT_PD);

	assert_true(IS_ERR(ib_uobject_get(w->context, IB_UOBJECT_PD, u->handle)));
	assert_int_equal(ib_uobject_destroy(w->context, IB_UOBJECT_PD, u->handle), -EINVAL);
	ib_uobject_abort(u);
}

static void the_table_grows_and_serves_many(void **state)
{
	struct world *w = *state;
	u32 handle[1000];

	for (int i = 0; i < 1000; i++)
		handle[i] = make(w, IB_UOBJECT_PD, NULL, NULL, NULL)->handle;
	for (int i = 0; i < 1000; i++)
		for (int j = 0; j < i; j += 97)
			assert_int_not_equal(handle[i], handle[j]);
	for (int i = 0; i < 1000; i += 2)
		assert_int_equal(ib_uobject_destroy(w->context, IB_UOBJECT_PD, handle[i]), 0);
	for (int i = 1; i < 1000; i += 2)
		assert_false(IS_ERR(ib_uobject_get(w->context, IB_UOBJECT_PD, handle[i])));
	assert_int_equal(rdma_restrack_count(&w->fake->ib, RDMA_RESTRACK_PD), 500);
}

static void a_death_frees_all_whatever_uses_what(void **state)
{
	struct world *w = *state;
	struct ib_pd *pd = make(w, IB_UOBJECT_PD, NULL, NULL, NULL)->object;
	struct ib_uobject *mr = make(w, IB_UOBJECT_MR, pd, NULL, NULL);
	struct ib_cq *cq = make(w, IB_UOBJECT_CQ, NULL, NULL, NULL)->object;
	struct ib_srq *srq = make(w, IB_UOBJECT_SRQ, pd, NULL, NULL)->object;
	struct ib_qp *qp = make(w, IB_UOBJECT_QP, pd, cq, srq)->object;
	struct ib_pd *younger = make(w, IB_UOBJECT_PD, NULL, NULL, NULL)->object;
	union ib_gid group = {.raw = {0xff}};

	make(w, IB_UOBJECT_AH, pd, NULL, NULL);
	assert_int_equal(ib_attach_mcast(qp, &group, 0xc000), 0);
	/* now the older region is in the younger PD */
	assert_int_equal(ib_rereg_user_mr(mr->object, IB_MR_REREG_PD, 0, 0, 0, 0, younger), 0);
	assert_int_equal(younger->usecnt, 1);
	assert_int_equal(w->fake->live, 8);
	ib_ucontext_close(w->context);
	w->context = NULL;
	assert_int_equal(w->fake->live, 0);
}

static int is_ours(const struct rdma_restrack_entry *entry, void *ctx)
{
	assert_true(entry->user);
	assert_int_equal(entry->pid, 1234);
	assert_string_equal(entry->comm, "prog");
	++*(int *)ctx;
	return 0;
}

static void objects_are_tracked_with_their_process(void **state)
{
	struct world *w = *state;
	struct ib_pd *pd = make(w, IB_UOBJECT_PD, NULL, NULL, NULL)->object;
	int seen = 0;

	make(w, IB_UOBJECT_MR, pd, NULL, NULL);
	rdma_restrack_for_each(&w->fake->ib, RDMA_RESTRACK_PD, is_ours, &seen);
	rdma_restrack_for_each(&w->fake->ib, RDMA_RESTRACK_MR, is_ours, &seen);
	rdma_restrack_for_each(&w->fake->ib, RDMA_RESTRACK_CTX, is_ours, &seen);
	assert_int_equal(seen, 3);
}

static void programs_do_not_get_qp0_and_qp1(void **state)
{
	struct world *w = *state;
	struct ib_pd *pd = make(w, IB_UOBJECT_PD, NULL, NULL, NULL)->object;
	struct ib_cq *cq = make(w, IB_UOBJECT_CQ, NULL, NULL, NULL)->object;
	struct ib_uobject *u = ib_uobject_alloc(w->context, IB_UOBJECT_QP);
	struct ib_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .port_num = 1};

	attr.qp_type = IB_QPT_SMI;
	assert_int_equal(PTR_ERR(ib_create_qp_user(u, pd, &attr)), -EPERM);
	attr.qp_type = IB_QPT_GSI;
	assert_int_equal(PTR_ERR(ib_create_qp_user(u, pd, &attr)), -EPERM);
	ib_uobject_abort(u);
}

static void regions_are_checked(void **state)
{
	struct world *w = *state;
	struct ib_pd *pd = make(w, IB_UOBJECT_PD, NULL, NULL, NULL)->object;
	struct ib_uobject *u = ib_uobject_alloc(w->context, IB_UOBJECT_MR);
	struct ib_mr *mr;

	assert_int_equal(PTR_ERR(ib_reg_user_mr(u, pd, UINT64_MAX, 2, 0, 0)), -EINVAL);
	assert_int_equal(PTR_ERR(ib_reg_user_mr(u, pd, 0, 2, UINT64_MAX, 0)), -EINVAL);
	assert_int_equal(PTR_ERR(ib_reg_user_mr(u, pd, 0, 2, 0, IB_ACCESS_REMOTE_ATOMIC)),
			 -EINVAL);
	assert_int_equal(PTR_ERR(ib_reg_user_mr(u, pd, 0, 2, 0, 1 << 12)), -EINVAL);
	assert_int_equal(PTR_ERR(ib_reg_user_mr(u, pd, 0, 0, 0, 0)), -EINVAL);
	assert_int_equal(PTR_ERR(ib_reg_user_mr(u, pd, 8192, 0, 1, 0)), -EINVAL);
	pd->device->attrs.odp_caps.general_caps = 0;
	assert_int_equal(PTR_ERR(ib_reg_user_mr(u, pd, 0, 2, 0, IB_ACCESS_ON_DEMAND)),
			 -EOPNOTSUPP);
	mr = ib_reg_user_mr(u, pd, 0, 2, 0, IB_ACCESS_REMOTE_READ);
	assert_false(IS_ERR(mr));
	ib_uobject_commit(u, mr);
	assert_int_equal(ib_rereg_user_mr(mr, 0, 0, 0, 0, 0, NULL), -EINVAL);
	assert_int_equal(ib_rereg_user_mr(mr, 8, 0, 0, 0, 0, NULL), -EINVAL);
	assert_int_equal(ib_rereg_user_mr(mr, IB_MR_REREG_ACCESS, 0, 0, 0,
					  IB_ACCESS_REMOTE_WRITE, NULL), -EINVAL);
	assert_int_equal(mr->access, IB_ACCESS_REMOTE_READ);
}

static void locked_memory_is_counted_in_pages(void **state)
{
	struct world *w = *state;

	assert_int_equal(ib_locked_bytes(0, 0), 0);
	assert_int_equal(ib_locked_bytes(4095, 1), 4096);
	assert_int_equal(ib_locked_bytes(4095, 2), 8192);
	assert_int_equal(ib_locked_bytes(4096, 4096), 4096);
	assert_int_equal(ib_ucontext_lock_memory(w->context, 8192, 8192), 0);
	assert_int_equal(ib_ucontext_lock_memory(w->context, 1, 8192), -ENOMEM);
	assert_int_equal(ib_ucontext_lock_memory(w->context, 4096, 4095), -ENOMEM);
	ib_ucontext_unlock_memory(w->context, 4096);
	assert_int_equal(ib_ucontext_lock_memory(w->context, 4096, 8192), 0);
	ib_ucontext_unlock_memory(w->context, 8192);
	assert_int_equal(w->context->locked_bytes, 0);
}

/* Return: false when an allocation failed on the way */
static bool whole_life(struct world *w)
{
	struct ib_uobject *pd, *cq, *qp;

	w->context = ib_ucontext_open(&w->fake->ib, 1, "x");
	if (IS_ERR(w->context)) {
		w->context = NULL;
		return false;
	}
	pd = make(w, IB_UOBJECT_PD, NULL, NULL, NULL);
	cq = make(w, IB_UOBJECT_CQ, NULL, NULL, NULL);
	if (IS_ERR(pd) || IS_ERR(cq))
		return false;
	qp = make(w, IB_UOBJECT_QP, pd->object, cq->object, NULL);
	return !IS_ERR(qp) && !IS_ERR(make(w, IB_UOBJECT_MR, pd->object, NULL, NULL));
}

static void each_allocation_may_fail(void **state)
{
	struct world *w = *state;
	bool whole = false;
	int rounds = 0;

	ib_ucontext_close(w->context);
	for (uint64_t nth = 1; !whole; nth++, rounds++) {
		rt_fail_alloc(nth);
		whole = whole_life(w);
		rt_fail_alloc(0);
		if (w->context)
			ib_ucontext_close(w->context);
		w->context = NULL;
		assert_int_equal(w->fake->live, 0);
	}
	assert_true(rounds > 8);
}

static struct ib_ucontext *told;

static void on_fatal(struct ib_ucontext *context)
{
	told = context;
}

static void a_context_is_given_up_later_or_not_at_all(void **state)
{
	struct world *w = *state;

	told = NULL;
	w->context->fatal = on_fatal;
	ib_ucontext_fatal(w->context);
	assert_null(told); /* not on the driver's stack */
	assert_true(rt_sim_run(w->rt, 10));
	assert_ptr_equal(told, w->context);
	told = NULL;
	ib_ucontext_fatal(w->context);
	ib_ucontext_close(w->context); /* it went by itself first */
	w->context = NULL;
	assert_true(rt_sim_run(w->rt, 10));
	assert_null(told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(handles_are_of_a_type_and_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(limits_are_as_reported, setup, teardown),
		cmocka_unit_test_setup_teardown(an_object_in_the_making_is_not_found, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_table_grows_and_serves_many, setup, teardown),
		cmocka_unit_test_setup_teardown(a_death_frees_all_whatever_uses_what, setup,
						teardown),
		cmocka_unit_test_setup_teardown(objects_are_tracked_with_their_process, setup,
						teardown),
		cmocka_unit_test_setup_teardown(programs_do_not_get_qp0_and_qp1, setup, teardown),
		cmocka_unit_test_setup_teardown(regions_are_checked, setup, teardown),
		cmocka_unit_test_setup_teardown(locked_memory_is_counted_in_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(each_allocation_may_fail, setup, teardown),
		cmocka_unit_test_setup_teardown(a_context_is_given_up_later_or_not_at_all, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
