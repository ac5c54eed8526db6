/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Multicast memberships of programs' ids. The program knows each by a number and a name
 * of its own, as it does an id. */
#include <errno.h>
#include <string.h>

#include "access/ucma_private.h"
#include "rdma/ib_sa.h"

#define MCASTS_MAX 8192 /* of one id: as many groups as an adapter has */

/* Return: the join state; 0: the flags are none */
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
	mcast = id->num_mcasts < MCASTS_MAX ? rt_zalloc(sizeof(*mcast)) : NULL;
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
	id->num_mcasts++;
	*out = mcast;
	return 0;
}

struct ucma_mcast *ucma_mcast_find(struct ucma_session *session, u32 number)
{
	struct ucma_mcast *mcast;
	struct ucma_id *id;

	list_for_each_entry(id, &session->ids, node)
		list_for_each_entry(mcast, &id->mcasts, node)
			if (mcast->number == number)
				return mcast;
	return NULL;
}

u32 ucma_mcast_leave(struct ucma_mcast *mcast)
{
	u32 told;

	rdma_leave_multicast(mcast->id->cm_id, (struct sockaddr *)&mcast->addr);
	told = ucma_events_drop(mcast->id, mcast);
	list_del(&mcast->node);
	mcast->id->num_mcasts--;
	rt_free(mcast);
	return told;
}
