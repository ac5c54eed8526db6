/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Traps: notices that a node sends to its subnet manager (IBA v1 13.4.8.2,
 * 14.2.5.1). A trap is sent at once and repeated after each subnet time-out,
 * until the manager represses it or it was sent AG_TRAP_SENDS times. A notice
 * that is still being sent is not queued twice. Without a manager (MasterSMLID
 * 0) no trap is queued.
 */
#include <string.h>

#include "agents/agents_private.h"

#define SUBNET_TIMEOUT_NS(enc) (4096ull << (enc))

struct trap_kind {
	uint16_t number;
	uint8_t type; /* enum wire_notice_type */
};

static const struct trap_kind kinds[] = {
	{WIRE_TRAP_LINK_STATE, WIRE_NOTICE_URGENT},
	{WIRE_TRAP_LINK_INTEGRITY, WIRE_NOTICE_URGENT},
	{WIRE_TRAP_BUFFER_OVERRUN, WIRE_NOTICE_URGENT},
	{WIRE_TRAP_FLOW_CONTROL_WATCHDOG, WIRE_NOTICE_URGENT},
	{WIRE_TRAP_CAPABILITY_CHANGE, WIRE_NOTICE_INFORMATIONAL},
	{WIRE_TRAP_BAD_MKEY, WIRE_NOTICE_SECURITY},
	{WIRE_TRAP_BAD_PKEY, WIRE_NOTICE_SECURITY},
	{WIRE_TRAP_BAD_QKEY, WIRE_NOTICE_SECURITY},
	{WIRE_TRAP_SWITCH_BAD_PKEY, WIRE_NOTICE_SECURITY},
};

static uint8_t type_of(uint16_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (kinds[i].number == number)
			return kinds[i].type;
	return WIRE_NOTICE_INFORMATIONAL;
}

/* a free entry; if there is none, that of the trap that was sent most often */
static struct ag_trap *place(struct ag_node *node)
{
	struct ag_trap *oldest = &node->trap[0];

	for (size_t i = 0; i < AG_TRAPS; i++) {
		if (!node->trap[i].used)
			return &node->trap[i];
		if (node->trap[i].sent > oldest->sent)
			oldest = &node->trap[i];
	}
	return oldest;
}

static struct ag_trap *queued(struct ag_node *node, const uint8_t *notice)
{
	for (size_t i = 0; i < AG_TRAPS; i++)
		if (node->trap[i].used &&
		    !memcmp(node->trap[i].notice, notice, sizeof(node->trap[i].notice)))
			return &node->trap[i];
	return NULL;
}

/* The same notice is raised again while its trap is pending. For a violation the pending
 * trap suffices. A change gets a new transaction ID, so that a TrapRepress that was sent for
 * the earlier change does not end it. */
static void renew(struct ag_node *node, struct ag_trap *trap, mono_t now)
{
	if (type_of(trap->number) == WIRE_NOTICE_SECURITY || !trap->sent)
		return;
	trap->tid = node->next_tid++;
	trap->due = now;
	trap->sent = 0;
}

/* Forget a pending trap 144 of this port, which a new one replaces: it would be sent again after the
 * new one, and its capability mask is no longer true. Return: its change flags */
static uint8_t replace_changes(struct ag_node *node, uint8_t base)
{
	struct wire_trap_capability d;
	struct wire_notice notice;

	for (size_t i = 0; node->trapped && i < AG_TRAPS; i++) {
		struct ag_trap *trap = &node->trap[i];

		if (!trap->used || trap->number != WIRE_TRAP_CAPABILITY_CHANGE || trap->port != base)
			continue;
		trap->used = false;
		wire_smp_notice_decode(trap->notice, sizeof(trap->notice), &notice);
		wire_trap_capability_decode(notice.details, sizeof(notice.details), &d);
		return d.change_flags;
	}
	return 0;
}

static void raise_trap(struct ag_node *node, uint8_t port, uint16_t number, const void *details,
		       mono_t now)
{
	uint8_t base = ag_base_port(node, port);
	struct wire_notice notice = {
		.is_generic = true,
		.type = type_of(number),
		.producer = node->kind,
		.trap_number = number,
		.issuer_lid = node->port[base].lid,
	};
	uint8_t bytes[WIRE_SMP_DATA_BYTES] = {0};
	struct ag_trap *trap;

	if (!node->port[base].sm_lid || !node->port[base].lid)
		return;
	wire_fields_encode(wire_trap_codec(number), details, notice.details);
	wire_smp_notice_encode(&notice, bytes);
	trap = queued(node, bytes);
	if (trap) {
		renew(node, trap, now);
		return;
	}
	trap = place(node);
	node->trapped = true;
	*trap = (struct ag_trap){.used = true, .port = base, .number = number,
				 .tid = node->next_tid++, .due = now};
	memcpy(trap->notice, bytes, sizeof(trap->notice));
}

void ag_trap_link_state(struct ag_node *node, mono_t now)
{
	struct wire_trap_switch d = {.lid = node->port[0].lid};

	raise_trap(node, 0, WIRE_TRAP_LINK_STATE, &d, now);
}

void ag_trap_threshold(struct ag_node *node, uint8_t port, uint16_t number, mono_t now)
{
	struct wire_trap_port d = {.lid = node->port[ag_base_port(node, port)].lid, .port = port};

	raise_trap(node, port, number, &d, now);
}

void ag_trap_changes(struct ag_node *node, uint8_t num, uint8_t flags, mono_t now)
{
	uint8_t base = ag_base_port(node, num);
	const struct ag_port *port = &node->port[base];
	struct wire_trap_capability d = {
		.lid = port->lid,
		.cap_mask = port->cap_mask,
		.change_flags = flags | replace_changes(node, base),
		.cap_mask2 = port->cap_mask2,
	};

	d.other_local_changes = d.change_flags != 0;
	raise_trap(node, num, WIRE_TRAP_CAPABILITY_CHANGE, &d, now);
}

void ag_trap_mkey(struct ag_node *node, uint8_t port, uint16_t slid, const struct wire_smp *smp,
		  mono_t now)
{
	struct wire_trap_mkey d = {
		.lid = slid,
		.method = smp->mad.method,
		.attr_id = smp->mad.attr_id,
		.attr_mod = smp->mad.attr_mod,
		.mkey = smp->mkey,
	};

	if (smp->mad.mgmt_class == WIRE_CLASS_SM_DIRECT) {
		d.dr_notice = true;
		d.dr_slid = smp->dr_slid;
		d.dr_hop_count = MIN(smp->hop_count, (uint8_t)sizeof(d.dr_return_path));
		d.dr_path_truncated = smp->hop_count > sizeof(d.dr_return_path);
		memcpy(d.dr_return_path, smp->return_path + 1, d.dr_hop_count);
	}
	raise_trap(node, port, WIRE_TRAP_BAD_MKEY, &d, now);
}

static void count_violation(uint16_t *counter)
{
	if (*counter != UINT16_MAX)
		(*counter)++;
}

void ag_trap_pkey(struct ag_node *node, uint8_t port, uint16_t pkey, uint16_t slid, uint16_t dlid,
		  uint8_t sl, uint32_t src_qpn, uint32_t dst_qpn, mono_t now)
{
	struct wire_trap_switch_pkey s = {
		.data_valid = WIRE_VALID_LID1 | WIRE_VALID_LID2 | WIRE_VALID_PKEY | WIRE_VALID_SL |
			      WIRE_VALID_QP2 | (src_qpn ? WIRE_VALID_QP1 : 0),
		.lid1 = slid, .lid2 = dlid, .pkey = pkey, .sl = sl,
		.qpn1 = src_qpn, .qpn2 = dst_qpn, .port = port,
	};
	struct wire_trap_key c = {
		.lid1 = slid, .lid2 = dlid, .key = pkey, .sl = sl, .qpn1 = src_qpn, .qpn2 = dst_qpn,
	};

	count_violation(&node->port[port].pkey_violations);
	if (!node->sw) {
		raise_trap(node, port, WIRE_TRAP_BAD_PKEY, &c, now);
		return;
	}
	s.switch_lid = node->port[0].lid;
	raise_trap(node, port, WIRE_TRAP_SWITCH_BAD_PKEY, &s, now);
}

void ag_trap_qkey(struct ag_node *node, uint8_t port, uint32_t qkey, uint16_t slid, uint16_t dlid,
		  uint8_t sl, uint32_t src_qpn, uint32_t dst_qpn, mono_t now)
{
	struct wire_trap_key d = {
		.lid1 = slid, .lid2 = dlid, .key = qkey, .sl = sl, .qpn1 = src_qpn, .qpn2 = dst_qpn,
	};

	count_violation(&node->port[port].qkey_violations);
	raise_trap(node, port, WIRE_TRAP_BAD_QKEY, &d, now);
}

void ag_count_qkeys(struct ag_node *node, uint8_t port, uint32_t number)
{
	uint16_t *counter = &node->port[port].qkey_violations;

	*counter += MIN(number, (uint32_t)(UINT16_MAX - *counter));
}

bool ag_trap_repress(struct ag_node *node, uint64_t tid, const uint8_t *notice)
{
	struct wire_notice seen;

	wire_smp_notice_decode(notice, WIRE_SMP_DATA_BYTES, &seen);
	for (size_t i = 0; i < AG_TRAPS; i++) {
		struct ag_trap *trap = &node->trap[i];

		/* 13.4.9: the repress has the trap's transaction id and notice */
		if (!trap->used || trap->tid != tid || trap->number != seen.trap_number)
			continue;
		trap->used = false;
		return true;
	}
	return false;
}

static void encode(const struct ag_node *node, const struct ag_trap *trap, uint8_t *mad)
{
	struct wire_smp smp = {
		.mad = {.base_version = WIRE_MAD_BASE_VERSION,
			.mgmt_class = WIRE_CLASS_SM_LID,
			.class_version = WIRE_SMP_CLASS_VERSION,
			.method = WIRE_METHOD_TRAP,
			.tid = trap->tid,
			.attr_id = WIRE_SMP_NOTICE},
		.mkey = node->port[trap->port].mkey,
	};

	memset(mad, 0, WIRE_MAD_BYTES);
	wire_smp_encode(&smp, mad);
	memcpy(mad + WIRE_SMP_DATA_OFFSET, trap->notice, sizeof(trap->notice));
}

bool ag_trap_take(struct ag_node *node, mono_t now, uint8_t *mad, uint8_t *port)
{
	for (size_t i = 0; node->trapped && i < AG_TRAPS; i++) {
		struct ag_trap *trap = &node->trap[i];

		if (!trap->used || mono_before(now, trap->due))
			continue;
		encode(node, trap, mad);
		*port = trap->port;
		trap->due = mono_add(now, SUBNET_TIMEOUT_NS(node->port[*port].subnet_timeout_enc));
		if (++trap->sent == AG_TRAP_SENDS)
			trap->used = false;
		return true;
	}
	return false;
}
