/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Directed routes (IBA v1 14.2.2). An SMP contains its route as a list of egress
 * ports (initial path), and collects the ingress ports (return path). The hop
 * pointer and the D bit give its position on the route:
 *
 *   request   hop pointer 0 -> hop count + 1    C14-9
 *   response  hop pointer hop count + 1 -> 0    C14-13
 *
 * Either end may be LID routed: the part before the first hop if DrSLID is a LID,
 * and the part after the last hop if DrDLID is one.
 */
#include "agents/directed_route.h"

#include "wire/smp.h"

static enum ag_dr_verdict leave_by(const struct ag_dr_at *at, uint8_t port, uint8_t *out_port)
{
	if (port == 0 || port > at->num_ports)
		return AG_DR_DISCARD;
	*out_port = port;
	return AG_DR_FORWARD;
}

/* the directed part ends: the SMP is for this node, or continues by @lid */
static enum ag_dr_verdict end_of_route(const struct ag_dr_at *at, uint16_t lid)
{
	if (lid == WIRE_LID_PERMISSIVE)
		return AG_DR_LOCAL;
	/* only a switch can forward it by LID */
	return at->is_switch ? AG_DR_LID_ROUTE : AG_DR_DISCARD;
}

static enum ag_dr_verdict route_request(const struct ag_dr_at *at, struct wire_smp *smp,
					uint8_t *out_port)
{
	if (smp->hop_count && smp->hop_pointer == 0) { /* C14-9:1 */
		/* another node's directed route cannot begin at a CA */
		if (!at->is_switch && at->port)
			return AG_DR_DISCARD;
		smp->hop_pointer++;
		return leave_by(at, smp->initial_path[1], out_port);
	}
	if (smp->hop_pointer < smp->hop_count) { /* C14-9:2 */
		if (!at->is_switch)
			return AG_DR_DISCARD;
		smp->return_path[smp->hop_pointer++] = at->port;
		return leave_by(at, smp->initial_path[smp->hop_pointer], out_port);
	}
	if (smp->hop_pointer == smp->hop_count) { /* C14-9:3 */
		if (smp->hop_count)
			smp->return_path[smp->hop_pointer] = at->port;
		smp->hop_pointer++;
		return end_of_route(at, smp->dr_dlid);
	}
	if (smp->hop_pointer == smp->hop_count + 1) /* C14-9:4 */
		return AG_DR_LOCAL;
	return AG_DR_DISCARD; /* C14-9:5 */
}

static enum ag_dr_verdict route_response(const struct ag_dr_at *at, struct wire_smp *smp,
					 uint8_t *out_port)
{
	if (smp->hop_count && smp->hop_pointer == smp->hop_count + 1) { /* C14-13:1 */
		if (!at->is_switch && at->port)
			return AG_DR_DISCARD;
		smp->hop_pointer--;
		return leave_by(at, smp->return_path[smp->hop_pointer], out_port);
	}
	if (smp->hop_pointer >= 2 && smp->hop_pointer <= smp->hop_count) { /* C14-13:2 */
		if (!at->is_switch)
			return AG_DR_DISCARD;
		smp->hop_pointer--;
		return leave_by(at, smp->return_path[smp->hop_pointer], out_port);
	}
	if (smp->hop_pointer == 1) { /* C14-13:3 */
		smp->hop_pointer--;
		return end_of_route(at, smp->dr_slid);
	}
	if (smp->hop_pointer == 0) /* C14-13:4 */
		return AG_DR_LOCAL;
	return AG_DR_DISCARD; /* C14-13:5 */
}

static enum ag_dr_verdict route(const struct ag_dr_at *at, uint8_t *bytes, struct wire_smp *smp,
				uint8_t *out_port)
{
	enum ag_dr_verdict verdict;

	verdict = smp->direction ? route_response(at, smp, out_port) :
				   route_request(at, smp, out_port);
	if (verdict != AG_DR_DISCARD)
		wire_smp_direct_encode(smp, bytes);
	return verdict;
}

static bool decode(const uint8_t *bytes, struct wire_smp *smp)
{
	return wire_smp_direct_decode(bytes, WIRE_MAD_BYTES, smp) > 0 &&
	       smp->mad.mgmt_class == WIRE_CLASS_SM_DIRECT &&
	       smp->hop_count <= AG_DR_MAX_HOPS && smp->hop_pointer <= AG_DR_MAX_HOPS + 1;
}

enum ag_dr_verdict ag_dr_receive(const struct ag_dr_at *at, uint8_t *smp, uint8_t *out_port)
{
	struct wire_smp s;

	if (!decode(smp, &s))
		return AG_DR_DISCARD;
	return route(at, smp, &s, out_port);
}

enum ag_dr_verdict ag_dr_send(const struct ag_dr_at *at, uint8_t *smp, uint8_t *out_port)
{
	struct ag_dr_at here = *at;
	struct wire_smp s;

	if (!decode(smp, &s))
		return AG_DR_DISCARD;
	/* 14.2.2: the LID routed part comes first; the directed part begins where it ends */
	if (!s.direction && s.hop_pointer == 0 && s.dr_slid != WIRE_LID_PERMISSIVE)
		return AG_DR_LID_ROUTE;
	if (s.direction && s.hop_pointer == s.hop_count + 1 && s.dr_dlid != WIRE_LID_PERMISSIVE)
		return AG_DR_LID_ROUTE;
	here.port = 0;
	return route(&here, smp, &s, out_port);
}
