/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast memberships of programs' ids. Like an id, a membership has a number, and a name that the
 * program has chosen (uid). */
#include <errno.h>
#include <string.h>

#include "access/ucma_private.h"
#include "rdma/ib_sa.h"

/* Return: the JoinState; 0: the flags are invalid */
static u8 join_state(u16 flags)
{
	switch (flags) {
	case RDMA_MC_JOIN_FLAG_FULLMEMBER:
		return 1 << FULLMEMBER_JOIN;
	case RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER:
		return 1 << SENDONLY_FULLMEMBER_JOIN;
	default:
		return 0;
	}
}

int ucma_mcast_join(struct ucma_id *id, u64 uid, const void *addr, size_t bytes,
		    u16 flags, struct ucma_mcast **out)
{
	struct ucma_mcast *mcast;
	int ret;

	if (!bytes || bytes > sizeof(mcast->addr) || !join_state(flags))
		return -EINVAL;
	mcast = id->session->num_mcasts < UCMA_MCASTS_MAX ? rt_zalloc(sizeof(*mcast)) : NULL;
	if (!mcast)
		return -ENOMEM;
	memcpy(&mcast->addr, addr, bytes);
	mcast->id = id;
	mcast->uid = uid;
	mcast->number = ucma_next_number(id->session);
	ret = rdma_join_multicast(id->cm_id, (struct sockaddr *)&mcast->addr,
				  join_state(flags), mcast);
	if (ret) {
		rt_free(mcast);
		return ret;
	}
	list_add_tail(&mcast->node, &id->mcasts);
	list_add_tail(&mcast->hash_node, ucma_mcasts(id->session, mcast->number));
	id->session->num_mcasts++;
	*out = mcast;
	return 0;
}

struct ucma_mcast *ucma_mcast_find(struct ucma_session *session, u32 number)
{
	struct ucma_mcast *mcast;

	list_for_each_entry(mcast, ucma_mcasts(session, number), hash_node)
		if (mcast->number == number && mcast->id->session == session)
			return mcast;
	return NULL;
}

u32 ucma_mcast_leave(struct ucma_mcast *mcast)
{
	u32 told;

	rdma_leave_multicast(mcast->id->cm_id, (struct sockaddr *)&mcast->addr);
	told = ucma_events_drop(mcast->id, mcast);
	list_del(&mcast->node);
	list_del(&mcast->hash_node);
	mcast->id->session->num_mcasts--;
	rt_free(mcast);
	return told;
}
