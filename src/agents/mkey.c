/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The M_Key (IBA v1 14.2.4) protects a port's management state, depending on
 * M_KeyProtectBits:
 *
 *   bits  Get without the key          Set, TrapRepress without the key
 *   0     allowed                      refused
 *   1     allowed, M_Key shown as 0    refused
 *   2, 3  refused                      refused
 *
 * A refused request gets no answer. It is counted as a violation, causes trap
 * 256, and starts the lease period. When that ends, the protect bits become 0, so
 * that a subnet can be managed again after the only manager that knew the key has
 * died.
 */
#include "agents/agents_private.h"

#define PROTECT_HIDES 1
#define PROTECT_READS 2

static bool key_fits(const struct ag_request *rq)
{
	return rq->ctx->ignore_mkey || !rq->port->mkey || rq->port->mkey == rq->mkey;
}

bool ag_mkey_shown(const struct ag_request *rq)
{
	return rq->port->mkey_protect < PROTECT_HIDES || key_fits(rq);
}

bool ag_mkey_check(struct ag_request *rq, const struct wire_smp *smp)
{
	struct ag_port *port = rq->port;

	if (key_fits(rq)) {
		/* C14-15: a request with the right key stops the lease period */
		if (!rq->ctx->ignore_mkey)
			port->mkey_lease_end = MONO_NEVER;
		return true;
	}
	if (smp->mad.method == WIRE_METHOD_GET && port->mkey_protect < PROTECT_READS)
		return true;
	if (port->mkey_violations != UINT16_MAX)
		port->mkey_violations++;
	/* a lease of 0 never ends (14.2.4.2) */
	if (port->mkey_lease_s && port->mkey_lease_end.ns == MONO_NEVER.ns)
		port->mkey_lease_end =
			mono_add(rq->ctx->now, port->mkey_lease_s * NSEC_PER_SEC);
	ag_trap_mkey(rq->node, rq->port_num, rq->ctx->slid, smp, rq->ctx->now);
	rq->effect->changes |= AG_CHANGED_TRAPS;
	return false;
}
