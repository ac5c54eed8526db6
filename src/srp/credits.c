/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The request limit of a channel (SRP 6.1.2): who may send how many requests. */
#include <errno.h>

#include "srp/target.h"

int srp_credits_take(struct srp_credits *credits)
{
	if (credits->outstanding >= credits->limit)
		return -EINVAL;
	credits->outstanding++;
	return 0;
}

uint32_t srp_credits_return(struct srp_credits *credits, uint32_t nr)
{
	nr = MIN(nr, credits->outstanding);
	credits->outstanding -= nr;
	return nr;
}

size_t srp_credits_grow(struct srp_credits *credits, uint32_t *more,
			uint8_t to[SRP_RSP_IU_BYTES])
{
	struct wire_srp_cred_req req = {.opcode = WIRE_SRP_CRED_REQ};

	if (credits->asking || credits->outstanding < credits->limit ||
	    credits->limit >= credits->max)
		return 0;
	*more = MIN(credits->limit, credits->max - credits->limit);
	credits->limit += *more;
	credits->asking = true;
	req.limit_delta = *more;
	req.tag = ++credits->tag;
	return (size_t)wire_srp_cred_req_encode(&req, to);
}

int srp_credits_answered(struct srp_credits *credits, uint64_t tag)
{
	if (!credits->asking || tag != credits->tag)
		return -EINVAL;
	credits->asking = false;
	return 0;
}
