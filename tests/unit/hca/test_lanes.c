/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When softibd makes lanes, and when it ends them (two_nodes.h). The receiver of a lane takes
 * what softibd said of the sender's port for true, so a lane may not outlive that.
 */
#include "abi/fds.h"
#include "abi/lane.h"
#include "abi/window.h"
#include "two_nodes.h"

#define PARTITION 0x8123

/* --- what programs ask, and hear --- */

static struct abi_resolve flow(const struct world *w, uint16_t pkey)
{
	return (struct abi_resolve){
		.port_num = 1, .dest_qpn = w->target.qp->qp_num, .dlid = 2, .pkey = pkey};
}

/* Return: the lane that the initiator has; ABI_NO_LANE: it has none */
static uint32_t resolve_with(struct world *w, uint16_t pkey, int *fds, unsigned *num_fds)
{
	struct ib_ucontext *context = w->initiator.context;
	const struct abi_resolve key = flow(w, pkey);
	struct abi_resolve_resp resp;

	assert_int_equal(context->device->ops->driver_command(context, ABI_CMD_RESOLVE, &key,
							      &resp, fds, num_fds), 0);
	return resp.lane;
}

/* Return: the lane that the initiator gets; ABI_NO_LANE. Its descriptors are closed */
static uint32_t resolve(struct world *w, uint16_t pkey)
{
	unsigned num_fds = 0;
	int fds[2];
	uint32_t lane = resolve_with(w, pkey, fds, &num_fds);

	for (unsigned i = 0; i < num_fds; i++)
		close(fds[i]);
	return lane;
}

/* Return: the kind of the next message about lanes that @p has; -1: there is none */
static int hear(struct program *p, struct abi_lane_event *event)
{
	int fd[4];

	if (abi_receive(p->context->driver_fds[ABI_FD_LANES], event, sizeof(*event), MSG_DONTWAIT, fd,
			ARRAY_SIZE(fd)) != (ssize_t)sizeof(*event))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return (int)event->kind;
}

static void hears(struct program *p, uint32_t kind, uint32_t lane)
{
	struct abi_lane_event event;

	assert_int_equal(hear(p, &event), kind);
	assert_int_equal(event.lane, lane);
}

static void hears_nothing(struct program *p)
{
	struct abi_lane_event event;

	assert_int_equal(hear(p, &event), -1);
}

/* a lane from the initiator to the target, of which the target knows */
static uint32_t make_lane(struct world *w, uint16_t pkey)
{
	uint32_t lane = resolve(w, pkey);

	assert_int_not_equal(lane, ABI_NO_LANE);
	hears(&w->target, ABI_LANE_IN, lane);
	hears_nothing(&w->initiator);
	return lane;
}

static struct ag_port *port_of(struct world *w)
{
	return &fab_node(w->fab, w->hca[0]->node)->port[1];
}

/* what a subnet manager changed in the port of n1 */
static void port_changes(struct world *w)
{
	hca_port_changed(&w->hca[0]->port[0], 0);
}

static void both_hear_that_it_ended(struct world *w, uint32_t lane)
{
	hears(&w->initiator, ABI_LANE_OUT_GONE, lane);
	hears(&w->target, ABI_LANE_IN_CUT, lane);
}

/* --- the tests --- */

static void a_lane_outlives_what_does_not_concern_it(void **state)
{
	struct world *w = *state;
	uint32_t lane = make_lane(w, WIRE_PKEY_DEFAULT);

	port_of(w)->pkeys[1] = PARTITION;
	port_changes(w);
	assert_int_equal(resolve(w, WIRE_PKEY_DEFAULT), lane);
	hears_nothing(&w->initiator);
	hears_nothing(&w->target);
}

static void a_lane_ends_with_its_senders_lid(void **state)
{
	struct world *w = *state;
	uint32_t lane = make_lane(w, WIRE_PKEY_DEFAULT);

	port_of(w)->lid = 9;
	port_changes(w);
	both_hear_that_it_ended(w, lane);
}

static void a_lane_ends_with_its_senders_lids(void **state)
{
	struct world *w = *state;
	uint32_t lane = make_lane(w, WIRE_PKEY_DEFAULT);

	port_of(w)->lmc = 1;
	port_changes(w);
	both_hear_that_it_ended(w, lane);
}

static void a_lane_ends_with_its_senders_partition(void **state)
{
	struct world *w = *state;
	uint32_t lane;

	port_of(w)->pkeys[1] = PARTITION;
	lane = make_lane(w, PARTITION);
	port_of(w)->pkeys[1] = 0;
	port_changes(w);
	both_hear_that_it_ended(w, lane);
}

static void no_lane_is_of_a_foreign_partition(void **state)
{
	struct world *w = *state;

	assert_int_equal(resolve(w, PARTITION), ABI_NO_LANE);
	hears_nothing(&w->target);
}

/* as answers ahead are made (abi/ahead.h), which carry no descriptors */
static void without_descriptors_no_lane_is_made(void **state)
{
	struct world *w = *state;
	unsigned num_fds;
	uint32_t lane;

	assert_int_equal(resolve_with(w, 0xffff, NULL, &num_fds), ABI_NO_LANE);
	hears_nothing(&w->target);
	lane = make_lane(w, 0xffff);
	assert_int_equal(resolve_with(w, 0xffff, NULL, &num_fds), lane);
	assert_int_equal(num_fds, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_lane_outlives_what_does_not_concern_it),
		T(a_lane_ends_with_its_senders_lid),
		T(a_lane_ends_with_its_senders_lids),
		T(a_lane_ends_with_its_senders_partition),
		T(no_lane_is_of_a_foreign_partition),
		T(without_descriptors_no_lane_is_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
