/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Queue pairs that a program creates without asking: softibd has granted their numbers. */
#include "abi/told.h"
#include "core/uobject.h"
#include "uverbs_program.h"

#define MOST 64 /* QPs of the fake device */

struct objects {
	u32 pd, cq;
};

static void make_objects(struct world *w, struct objects *o)
{
	struct ib_uverbs_alloc_pd_resp pd;
	struct ib_uverbs_create_cq_resp cq;

	assert_int_equal(CMD_OUT(w, ALLOC_PD, alloc_pd, &pd, 0), 0);
	assert_int_equal(CMD_OUT(w, CREATE_CQ, create_cq, &cq, .cqe = 10, .comp_channel = -1), 0);
	*o = (struct objects){pd.pd_handle, cq.cq_handle};
}

#define REQUEST(o, type)                                                                               \
	{.user_handle = 0x77, .pd_handle = (o)->pd, .send_cq_handle = (o)->cq, .recv_cq_handle = (o)->cq, \
	 .max_send_wr = 1, .max_send_sge = 1, .qp_type = (u8)(type)}

/* Return: the answer's error */
static int ask(struct world *w, const struct objects *o, enum ib_qp_type type, struct abi_created_qp *out)
{
	const struct ib_uverbs_create_qp in = REQUEST(o, type);

	return command(w, w->sock, IB_USER_VERBS_CMD_CREATE_QP, &in, sizeof(in), out, sizeof(*out));
}

static void tell(struct world *w, const struct objects *o, u32 handle)
{
	const struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct abi_create_granted_qp in;
	} message = {{ABI_CMD_CREATED_QP, sizeof(message) / 4, 0},
		     {REQUEST(o, IB_QPT_RC), handle, 0}};

	assert_int_equal(send(w->sock, &message, sizeof(message), 0), sizeof(message));
	turn(w);
}

static int query(struct world *w, u32 handle)
{
	struct ib_uverbs_query_qp_resp q;

	return CMD_OUT(w, QUERY_QP, query_qp, &q, .qp_handle = handle);
}

static void assert_no_event(struct world *w)
{
	char byte;

	assert_int_equal(recv(w->fds[ABI_FD_ASYNC_READ], &byte, 1, MSG_DONTWAIT), -1);
}

/* As many are granted as the program has created, so that one that creates few has none in store. */
static void a_program_is_granted_what_it_has_created(void **state)
{
	struct world *w = *state;
	struct abi_created_qp out;
	struct objects o;
	int live;

	make_objects(w, &o);
	assert_int_equal(ask(w, &o, IB_QPT_UD, &out), 0);
	assert_int_equal(out.count, 0); /* of RC alone */
	assert_int_equal(ask(w, &o, IB_QPT_RC, &out), 0);
	assert_int_equal(out.count, 1);
	live = w->fake->live;
	assert_int_equal(query(w, out.granted[0].handle), -EINVAL);
	tell(w, &o, out.granted[0].handle);
	assert_int_equal(w->fake->live, live + 1);
	assert_int_equal(query(w, out.granted[0].handle), 0);
	assert_no_event(w);
	assert_int_equal(ask(w, &o, IB_QPT_RC, &out), 0);
	assert_int_equal(out.count, 3);
	assert_int_equal(w->fake->reserved, 4); /* with that of the QP that is there */
	assert_int_equal(ask(w, &o, IB_QPT_UD, &out), 0); /* the program may have another three, or these */
	assert_int_equal(out.count, 0);
	assert_int_equal(w->fake->reserved, 1);
	for (int i = 0; i < 12; i++)
		assert_int_equal(ask(w, &o, IB_QPT_RC, &out), 0);
	assert_int_equal(out.count, 15);
	assert_int_equal(ask(w, &o, IB_QPT_RC, &out), 0);
	assert_int_equal(ask(w, &o, IB_QPT_RC, &out), 0);
	assert_int_equal(out.count, 13); /* then half of the device is used or granted */
}

/* The QP has the number that was granted, and gives it back when it is destroyed. */
static void a_granted_qp_has_its_number(void **state)
{
	struct world *w = *state;
	struct ib_uverbs_destroy_qp_resp gone;
	struct abi_created_qp out;
	struct objects o;
	struct ib_qp *qp;

	make_objects(w, &o);
	assert_int_equal(ask(w, &o, IB_QPT_RC, &out), 0);
	tell(w, &o, out.granted[0].handle);
	qp = ib_uobject_get(list_first_entry(&w->fake->ib.ucontext_list, struct ib_ucontext, node),
			    IB_UOBJECT_QP, out.granted[0].handle);
	assert_int_equal(qp->qp_num, out.granted[0].qpn);
	assert_int_equal(w->fake->ib.reserved_qps, 0);
	assert_int_equal(CMD_OUT(w, DESTROY_QP, destroy_qp, &gone, .qp_handle = out.granted[0].handle), 0);
	assert_int_equal(w->fake->reserved, 0);
}

/* A refusal is an event of the QP, whoever made the mistake. */
static void what_was_not_granted_is_no_qp(void **state)
{
	struct world *w = *state;
	struct abi_created_qp out;
	struct objects o, wrong;
	int live;

	make_objects(w, &o);
	assert_int_equal(ask(w, &o, IB_QPT_RC, &out), 0);
	live = w->fake->live;
	tell(w, &o, out.granted[0].handle + 1);
	expect_event(w, IB_EVENT_QP_FATAL, 0x77);
	tell(w, &o, out.resp.qp_handle);
	expect_event(w, IB_EVENT_QP_FATAL, 0x77);
	wrong = (struct objects){o.cq, o.pd};
	tell(w, &wrong, out.granted[0].handle); /* granted, but softibd refuses it */
	expect_event(w, IB_EVENT_QP_FATAL, 0x77);
	assert_int_equal(w->fake->live, live);
	assert_int_equal(w->fake->reserved, 0);
	assert_int_equal(w->fake->ib.reserved_qps, 0);
	tell(w, &o, out.granted[0].handle); /* once only */
	expect_event(w, IB_EVENT_QP_FATAL, 0x77);
}

/* A message with a smaller struct for the answer is answered as by the kernel. */
static void who_has_no_room_is_granted_none(void **state)
{
	struct world *w = *state;
	struct ib_uverbs_create_qp_resp resp;
	struct objects o;

	make_objects(w, &o);
	for (int i = 0; i < 3; i++) {
		const struct ib_uverbs_create_qp in = REQUEST(&o, IB_QPT_RC);

		assert_int_equal(command(w, w->sock, IB_USER_VERBS_CMD_CREATE_QP, &in, sizeof(in), &resp,
					 sizeof(resp)), 0);
	}
	assert_int_equal(w->fake->reserved, 0);
}

/* What is granted counts as created until it is used or its program asks again, so that it is not refused
 * when another program has used up the device. */
static void granted_qps_have_their_place(void **state)
{
	struct world *w = *state;
	const int first = w->sock;
	struct abi_created_qp out, unused;
	struct objects o, other;
	int made = 0, live;

	make_objects(w, &o);
	while (made < 5) {
		assert_int_equal(ask(w, &o, IB_QPT_RC, &out), 0);
		made++;
	}
	assert_int_equal(out.count, 5);
	close_fds(w);
	w->sock = active_session(w);
	make_objects(w, &other);
	for (int i = 0; i < MOST - made - 5; i++)
		assert_int_equal(ask(w, &other, IB_QPT_RC, &unused), 0);
	assert_int_equal(unused.count, 0);
	assert_int_equal(ask(w, &other, IB_QPT_RC, &unused), -ENOMEM);

	close(w->sock);
	w->sock = first;
	live = w->fake->live;
	for (int i = 0; i < 5; i++) {
		tell(w, &o, out.granted[i].handle);
		assert_int_equal(query(w, out.granted[i].handle), 0);
	}
	assert_true(w->fake->live < live); /* the other program has left */
}

/* Those that were never used go with the session. */
static void a_grant_ends_with_its_session(void **state)
{
	struct world *w = *state;
	struct abi_created_qp out;
	struct objects o;

	make_objects(w, &o);
	assert_int_equal(ask(w, &o, IB_QPT_RC, &out), 0);
	assert_int_equal(w->fake->ib.reserved_qps, 1);
	close_fds(w);
	close(w->sock);
	turn(w);
	assert_int_equal(w->fake->reserved, 0);
	assert_int_equal(w->fake->ib.reserved_qps, 0);
	w->sock = active_session(w);
}

/* --- the ring by which a program tells --- */

static void open_ring(struct world *w, struct abi_told *ring)
{
	close_fds(w);
	assert_int_equal(command(w, w->sock, ABI_CMD_TOLD_RING, NULL, 0, NULL, 0), 0);
	assert_int_equal(w->num_fds, ABI_TOLD_FDS);
	assert_true(abi_told_map(ring, w->fds));
	w->num_fds = 0;
}

/* A record has several commands, as a message. Each is known when the socket's next message is answered, whether
 * softibd has been woken for the ring or not. */
static void what_a_ring_has_is_run_before_the_next_message(void **state)
{
	struct world *w = *state;
	struct told_qp {
		struct ib_uverbs_cmd_hdr hdr;
		struct abi_create_granted_qp in;
	} record[2];
	struct abi_created_qp out;
	struct abi_told ring;
	struct objects o;

	make_objects(w, &o);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(w, &o, IB_QPT_RC, &out), 0);
	assert_int_equal(out.count, 3);
	open_ring(w, &ring);
	for (int i = 0; i < RT_POLLER_LINGER; i++)
		turn(w);
	for (int i = 0; i < 2; i++)
		record[i] = (struct told_qp){{ABI_CMD_CREATED_QP, sizeof(record[i]) / 4, 0},
					     {REQUEST(&o, IB_QPT_RC), out.granted[i].handle, 0}};
	assert_true(abi_told_put(&ring, &(struct iovec){record, sizeof(record)}, 1));
	assert_true(abi_ring_publish(&ring.tx)); /* the doorbell is not rung */
	for (int i = 0; i < 2; i++)
		assert_int_equal(query(w, out.granted[i].handle), 0);
	assert_int_equal(query(w, out.granted[2].handle), -EINVAL);
	assert_int_equal(command(w, w->sock, ABI_CMD_TOLD_RING, NULL, 0, NULL, 0), -EEXIST);
	abi_told_unmap(&ring);
}

/* A command that is answered has no answer there, and does nothing. */
static void a_ring_is_for_what_is_not_answered(void **state)
{
	struct world *w = *state;
	const struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_alloc_pd in;
	} record = {{IB_USER_VERBS_CMD_ALLOC_PD, sizeof(record) / 4, 2}, {0}};
	struct abi_told ring;
	const int live = w->fake->live;
	char byte;

	open_ring(w, &ring);
	assert_true(abi_told_put(&ring, &(struct iovec){(void *)&record, sizeof(record)}, 1));
	assert_true(abi_told_put(&ring, &(struct iovec){(void *)&record, 3}, 1));
	abi_told_flush(&ring);
	turn(w);
	assert_int_equal(recv(w->sock, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(w->fake->live, live);
	abi_told_unmap(&ring);
}

static void nonsense_in_a_ring_ends_the_session(void **state)
{
	struct world *w = *state;
	struct abi_told ring;
	char byte;

	open_ring(w, &ring);
	atomic_store(&ring.tx.ring->tail, 8);
	memset(ring.tx.ring->data, 0x77, 8);
	for (int i = 0; i < 4; i++)
		turn(w);
	assert_int_equal(recv(w->sock, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(uverbs_num_sessions(w->uverbs), 0);
	abi_told_unmap(&ring);
	close(w->sock);
	w->sock = active_session(w);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_program_is_granted_what_it_has_created),
		CASE(a_granted_qp_has_its_number),
		CASE(what_was_not_granted_is_no_qp),
		CASE(who_has_no_room_is_granted_none),
		CASE(granted_qps_have_their_place),
		CASE(a_grant_ends_with_its_session),
		CASE(what_a_ring_has_is_run_before_the_next_message),
		CASE(a_ring_is_for_what_is_not_answered),
		CASE(nonsense_in_a_ring_ends_the_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
