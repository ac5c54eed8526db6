/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Requests of a target to its initiator: the request limit of a channel (SRP 6.1.2), which says
 * who may send how many, and asynchronous events (SRP 6.13). */
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

/* --- asynchronous events --- */

size_t srp_event_build(struct srp_events *events, enum scsi_sense sense,
		       uint8_t to[SRP_RSP_IU_BYTES])
{
	struct wire_srp_aer_req req = {.opcode = WIRE_SRP_AER_REQ,
				       .sense_bytes = SCSI_SENSE_BYTES};
	int bytes;

	if (events->asking) {
		events->again = true;
		return 0;
	}
	req.tag = events->tag + 1;
	bytes = wire_srp_aer_req_encode(&req, to);
	if (bytes <= 0)
		return 0;
	scsi_put_sense(to + bytes, sense);
	events->asking = true;
	events->tag++;
	return (size_t)bytes + SCSI_SENSE_BYTES;
}

int srp_event_answered(struct srp_events *events, uint64_t tag, bool *again)
{
	if (!events->asking || tag != events->tag)
		return -EINVAL;
	*again = events->again;
	events->asking = events->again = false;
	return 0;
}
