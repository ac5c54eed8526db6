/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* kDAPL's queues of events and DTOs, the states of an EP, and the names of errors. */
#include "../test.h"

#include "ulp/kdapl/queue.h"

static DAT_EVENT event_of(void *pointer)
{
	return (DAT_EVENT){.event_number = DAT_SOFTWARE_EVENT,
			   .event_data.software_event_data.pointer = pointer};
}

static void *pop(struct kd_events *q)
{
	DAT_EVENT event;

	return kd_events_pop(q, &event) ? event.event_data.software_event_data.pointer
					: NULL;
}

static void events_keep_their_order(void **state)
{
	struct kd_event few[3], many[5];
	struct kd_events q;
	char at[8];
	DAT_EVENT e;

	kd_events_init(&q, few, 3);
	for (int i = 0; i < 4; i++) {
		e = event_of(&at[i]);
		assert_int_equal(kd_events_push(&q, &e, i == 1), i < 3);
	}
	assert_int_equal(q.loud, 2);
	assert_ptr_equal(pop(&q), &at[0]);
	e = event_of(&at[4]);
	assert_true(kd_events_push(&q, &e, false)); /* around the end */
	assert_ptr_equal(kd_events_move(&q, many, 5), few);
	assert_ptr_equal(pop(&q), &at[1]);
	assert_int_equal(q.loud, 2); /* that one was quiet */
	assert_ptr_equal(pop(&q), &at[2]);
	assert_ptr_equal(pop(&q), &at[4]);
	assert_null(pop(&q));
	assert_int_equal(q.loud, 0);
}

static void post(struct kd_dtos *q, DAT_UINT64 cookie)
{
	struct kd_dto *dto = kd_dtos_next(q);

	assert_non_null(dto);
	dto->cookie.as_64 = cookie;
	kd_dtos_posted(q);
}

static void dtos_complete_in_order(void **state)
{
	struct kd_dto slot[4];
	struct kd_dtos q;

	kd_dtos_init(&q, slot, 4);
	q.head = q.tail = UINT32_MAX - 1; /* the number wraps */
	for (DAT_UINT64 i = 0; i < 4; i++)
		post(&q, i);
	assert_null(kd_dtos_next(&q));
	/* number 1 tells of number 0, too, which had no event */
	assert_int_equal(kd_dtos_done(&q, UINT32_MAX)->cookie.as_64, 1);
	assert_int_equal(kd_dtos_count(&q), 2);
	assert_null(kd_dtos_done(&q, UINT32_MAX)); /* twice */
	assert_null(kd_dtos_done(&q, 2));	   /* not posted yet */
	post(&q, 4);
	assert_int_equal(kd_dtos_done(&q, 2)->cookie.as_64, 4);
	assert_int_equal(kd_dtos_count(&q), 0);
}

static void states_have_their_pairs(void **state)
{
	for (int s = 0; s <= DAT_EP_STATE_COMPLETION_PENDING; s++) {
		DAT_EP_STATE none = kd_state_unconfigured((DAT_EP_STATE)s);

		assert_int_not_equal(kd_state_subtype((DAT_EP_STATE)s), DAT_NO_SUBTYPE);
		if (none != (DAT_EP_STATE)s)
			assert_int_equal(kd_state_configured(none), s);
	}
	assert_int_equal(kd_state_configured(DAT_EP_STATE_UNCONFIGURED_TENTATIVE),
			 DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	assert_int_equal(kd_state_unconfigured(DAT_EP_STATE_CONNECTED),
			 DAT_EP_STATE_CONNECTED);
}

static void errors_have_names(void **state)
{
	const char *major, *minor;

	assert_int_equal(
		dat_strerror(DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP), &major,
			     &minor),
		DAT_SUCCESS);
	assert_string_equal(major, "DAT_INVALID_HANDLE");
	assert_string_equal(minor, "DAT_INVALID_HANDLE_EP");
	for (DAT_UINT32 i = 0; i <= DAT_THREAD_SAFETY_NOT_FOUND; i++) {
		assert_int_equal(dat_strerror(i, &major, &minor), DAT_SUCCESS);
		assert_non_null(minor);
	}
	for (DAT_UINT32 i = 0; i <= DAT_CONN_QUAL_UNAVAILABLE >> 16; i++) {
		assert_int_equal(dat_strerror(i << 16, &major, &minor), DAT_SUCCESS);
		assert_non_null(major);
	}
	assert_int_equal(dat_strerror(DAT_ERROR(DAT_NOT_IMPLEMENTED, 0), &major, &minor),
			 DAT_SUCCESS);
	assert_string_equal(major, "DAT_NOT_IMPLEMENTED");
	assert_int_equal(dat_strerror(DAT_THREAD_SAFETY_NOT_FOUND + 1, &major, &minor),
			 DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
	assert_int_equal(dat_strerror(0x00150000, &major, &minor),
			 DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_keep_their_order),
		cmocka_unit_test(dtos_complete_in_order),
		cmocka_unit_test(states_have_their_pairs),
		cmocka_unit_test(errors_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
