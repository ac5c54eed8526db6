/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the owner of a session hears of it. It is the first member of the owner, which is the context. */
#ifndef SOFTIB_TESTS_CABLE_HEARD_H
#define SOFTIB_TESTS_CABLE_HEARD_H

#include "cable/session.h"

struct heard {
	int opened, links, packets;
	struct fab_outlet_link link; /* the last one */
};

static inline void heard_opened(void *ctx)
{
	((struct heard *)ctx)->opened++;
}

static inline void heard_far_link(void *ctx, const struct fab_outlet_link *link)
{
	struct heard *heard = ctx;

	heard->links++;
	heard->link = *link;
}

#endif
