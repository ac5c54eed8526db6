/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Notifications to programs about lanes. The socket of a program has room for some hundred
 * messages, and many peers may connect at once, or try to fill it. A program whose socket is
 * full gets no new lane until it has read. Messages that end lanes are queued here until then,
 * in order.
 */
#include <errno.h>
#include <sys/socket.h>

#include "abi/fds.h"
#include "abi/lane.h"
#include "hca/private.h"

#define UNSENT_MAX 16384 /* more than a program that reads can have: two events for each of its lanes */

struct unsent {
	struct list_head node;
	struct abi_lane_event event;
};

bool hca_lane_takes_events(const struct hca_user *user)
{
	return !user->lanes_dead && !user->lanes_full;
}

static bool is_full(int error)
{
	return error == -EAGAIN || error == -ENOBUFS || error == -ENOMEM;
}

/* Send one event, and note in @user if its socket is full or closed. Return: 0; -errno */
static int send_event(struct hca_user *user, const struct abi_lane_event *event, const int *fds,
		      unsigned num_fds)
{
	int error = abi_send_fds(user->lanes_fd, event, sizeof(*event), fds, num_fds,
				 MSG_DONTWAIT);

	if (is_full(error)) {
		user->lanes_full = true;
		rt_io_watch(&user->lanes_io, true, true);
	} else if (error && !num_fds) {
		user->lanes_dead = true;
	}
	return error;
}

bool hca_lane_announce(struct hca_user *user, const struct abi_lane_event *event,
		       const int fds[HCA_LANE_FDS])
{
	return hca_lane_takes_events(user) && !send_event(user, event, fds, HCA_LANE_FDS);
}

int hca_introduce(struct ib_ucontext *to, int fd)
{
	struct hca_user *user = container_of(to, struct hca_user, ib);
	const struct abi_lane_event event = {.kind = ABI_LANE_PEER};

	return hca_lane_takes_events(user) && !send_event(user, &event, &fd, 1) ? 0 : -EAGAIN;
}

void hca_lane_notify(struct hca_user *user, const struct abi_lane_event *event)
{
	struct unsent *u;

	if (user->lanes_dead ||
	    (!user->lanes_full && !is_full(send_event(user, event, NULL, 0))))
		return;
	u = user->num_unsent < UNSENT_MAX ? rt_zalloc(sizeof(*u)) : NULL;
	if (!u) {
		user->lanes_dead = true;
		return;
	}
	u->event = *event;
	list_add_tail(&u->node, &user->unsent);
	user->num_unsent++;
}

static void drop_first(struct hca_user *user)
{
	struct unsent *u = list_first_entry(&user->unsent, struct unsent, node);

	list_del(&u->node);
	user->num_unsent--;
	rt_free(u);
}

void hca_lane_notify_rest(struct hca_user *user)
{
	while (!list_empty(&user->unsent)) {
		struct unsent *u = list_first_entry(&user->unsent, struct unsent, node);

		if (is_full(send_event(user, &u->event, NULL, 0)))
			return;
		drop_first(user);
	}
	user->lanes_full = false;
	rt_io_watch(&user->lanes_io, true, false);
}

void hca_lane_forget_unsent(struct hca_user *user)
{
	while (!list_empty(&user->unsent))
		drop_first(user);
}
