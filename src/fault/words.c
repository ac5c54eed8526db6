/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The words of rules, as tables: a new word needs a new row here, and its action
 * in set.c. Values of statuses and events are those of <infiniband/verbs.h>,
 * opcodes and classes are those on the wire.
 */
#include <errno.h>
#include <string.h>

#include "fault/private.h"
#include "wire/mad.h"
#include "wire/packet.h"

#define AT(place) (1u << FLT_##place)
#define AT_ALL	  (AT(ANYWHERE) | AT(LINK) | AT(PORT) | AT(NODE) | AT(QP))

const char *const flt_places[] = {
	[FLT_ANYWHERE] = "all", [FLT_LINK] = "link", [FLT_PORT] = "port",
	[FLT_NODE] = "node",	[FLT_QP] = "qp",     NULL,
};

const struct flt_word flt_directions[] = {
	{"both", FLT_BOTH}, {"in", FLT_IN}, {"out", FLT_OUT}, {0}};

const struct flt_action_info flt_actions[FLT_NUM_ACTIONS] = {
	[FLT_DROP] = {"drop", FLT_PACKET, AT_ALL},
	[FLT_DUPLICATE] = {"duplicate", FLT_PACKET, AT_ALL, "copies"},
	[FLT_REORDER] = {"reorder", FLT_PACKET, AT_ALL, "packets"},
	[FLT_DELAY] = {"delay", FLT_PACKET, AT_ALL, "time", true},
	[FLT_CORRUPT] = {"corrupt", FLT_PACKET, AT_ALL},
	[FLT_BANDWIDTH] = {"bandwidth", FLT_PACKET, AT_ALL, "limit", true},
	[FLT_RNR] = {"rnr", FLT_PACKET, AT_ALL},
	[FLT_ERRORS] = {"errors", FLT_PACKET, AT_ALL, "counter", true},
	[FLT_NOTE] = {"note", FLT_PACKET, AT_ALL}, /* it only logs */
	[FLT_FAIL] = {"fail", FLT_OBJECT, AT(ANYWHERE) | AT(NODE), "object", true},
	[FLT_COMPLETION] = {"completion", FLT_OBJECT, AT(ANYWHERE) | AT(NODE) | AT(QP), "status",
			    true},
	[FLT_OVERRUN] = {"overrun", FLT_OBJECT, AT(ANYWHERE) | AT(NODE) | AT(QP)},
	[FLT_DOWN] = {"down", FLT_STATE, AT(LINK) | AT(PORT)},
	[FLT_DEATH] = {"death", FLT_STATE, AT(NODE)},
	[FLT_REMOVE] = {"remove", FLT_STATE, AT(NODE)},
	[FLT_EVENT] = {"event", FLT_STATE, AT(PORT) | AT(NODE) | AT(QP), "name", true},
};

static const struct flt_word counters[] = {
	{"symbol-errors", FLT_SYMBOL_ERRORS},
	{"link-recovery", FLT_LINK_RECOVERY},
	{"link-downed", FLT_LINK_DOWNED},
	{"rcv-errors", FLT_RCV_ERRORS},
	{"rcv-remote-physical-errors", FLT_RCV_REMOTE_PHYSICAL},
	{"rcv-switch-relay-errors", FLT_RCV_SWITCH_RELAY},
	{"xmit-discards", FLT_XMIT_DISCARDS},
	{"xmit-constraint-errors", FLT_XMIT_CONSTRAINT},
	{"rcv-constraint-errors", FLT_RCV_CONSTRAINT},
	{"local-integrity-errors", FLT_LOCAL_INTEGRITY},
	{"buffer-overrun-errors", FLT_BUFFER_OVERRUN},
	{"vl15-dropped", FLT_VL15_DROPPED},
	{"xmit-wait", FLT_XMIT_WAIT},
	{0},
};

/* objects that softibd creates; address handles and channels are created in the program */
static const struct flt_word objects[] = {
	{"any", FLT_OBJECT_ANY}, {"context", FLT_OBJECT_CONTEXT},
	{"pd", FLT_OBJECT_PD},	 {"cq", FLT_OBJECT_CQ},
	{"qp", FLT_OBJECT_QP},	 {"srq", FLT_OBJECT_SRQ},
	{"mr", FLT_OBJECT_MR},	 {"mw", FLT_OBJECT_MW},
	{"multicast", FLT_OBJECT_MULTICAST}, {0},
};

static const struct flt_word errnos[] = {
	{"enomem", ENOMEM}, {"eagain", EAGAIN}, {"einval", EINVAL}, {"eperm", EPERM},
	{"ebusy", EBUSY},   {"enospc", ENOSPC}, {"eio", EIO},	    {"enodev", ENODEV},
	{"emfile", EMFILE}, {"efault", EFAULT}, {"eacces", EACCES}, {"eopnotsupp", EOPNOTSUPP},
	{0},
};

/* enum ibv_wc_status */
static const struct flt_word statuses[] = {
	{"loc-len-err", 1},	  {"loc-qp-op-err", 2},	   {"loc-eec-op-err", 3},
	{"loc-prot-err", 4},	  {"wr-flush-err", 5},	   {"mw-bind-err", 6},
	{"bad-resp-err", 7},	  {"loc-access-err", 8},   {"rem-inv-req-err", 9},
	{"rem-access-err", 10},	  {"rem-op-err", 11},	   {"retry-exc-err", 12},
	{"rnr-retry-exc-err", 13}, {"loc-rdd-viol-err", 14}, {"rem-inv-rd-req-err", 15},
	{"rem-abort-err", 16},	  {"inv-eecn-err", 17},	   {"inv-eec-state-err", 18},
	{"fatal-err", 19},	  {"resp-timeout-err", 20}, {"general-err", 21},
	{"tm-err", 22},		  {"tm-rndv-incomplete", 23}, {0},
};

/* enum ibv_event_type */
static const struct flt_word events[] = {
	{"cq-err", 0},	      {"qp-fatal", 1},	     {"qp-req-err", 2},
	{"qp-access-err", 3}, {"comm-est", 4},	     {"sq-drained", 5},
	{"path-mig", 6},      {"path-mig-err", 7},   {"device-fatal", 8},
	{"port-active", 9},   {"port-err", 10},	     {"lid-change", 11},
	{"pkey-change", 12},  {"sm-change", 13},     {"srq-err", 14},
	{"srq-limit-reached", 15}, {"qp-last-wqe-reached", 16}, {"client-reregister", 17},
	{"gid-change", 18},   {0},
};

/* all other events are of a port or of the device */
#define QP_EVENTS (0xffu | 1u << 14 | 1u << 15 | 1u << 16)

bool flt_event_of_qp(uint32_t event)
{
	return event < 32 && QP_EVENTS & 1u << event;
}

static const struct flt_word crcs[] = {
	{"bad", FLT_CRC_BAD}, {"vcrc", FLT_CRC_VCRC}, {"fixed", FLT_CRC_FIXED}, {0}};

#define BIT(action) (1u << FLT_##action)
#define PACKETS	    (BIT(FAIL) - 1)
#define OBJECTS	    (BIT(FAIL) | BIT(COMPLETION) | BIT(OVERRUN))
#define STATES	    (BIT(DOWN) | BIT(DEATH) | BIT(REMOVE) | BIT(EVENT))
#define MEMBER(m)   offsetof(struct flt_rule, m), sizeof(((struct flt_rule *)0)->m)
#define U32	    0xffffffffull
#define TIME_MOST   (365ull * 24 * 3600 * NSEC_PER_SEC)

const struct flt_param flt_params[] = {
	{"rate", PACKETS | OBJECTS, MEMBER(rate_ppm), FLT_UNIT_PPM, FLT_PPM, FLT_PPM},
	{"count", ~0u, MEMBER(count), FLT_UNIT_NUMBER, 0, U32},
	{"every", PACKETS | OBJECTS, MEMBER(every), FLT_UNIT_NUMBER, 0, U32},
	{"first", PACKETS | OBJECTS, MEMBER(first), FLT_UNIT_NUMBER, 0, U32},
	{"after", PACKETS | OBJECTS, MEMBER(after), FLT_UNIT_ZERO, 0, U32},
	{"time", BIT(DELAY), MEMBER(delay_ns), FLT_UNIT_TIME, 0, TIME_MOST},
	{"jitter", BIT(DELAY), MEMBER(jitter_ns), FLT_UNIT_TIME, 0, U32},
	{"packets", BIT(REORDER), MEMBER(packets), FLT_UNIT_NUMBER, 1, 4096},
	{"time", BIT(REORDER), MEMBER(hold_ns), FLT_UNIT_TIME, NSEC_PER_MSEC, TIME_MOST},
	{"copies", BIT(DUPLICATE), MEMBER(copies), FLT_UNIT_NUMBER, 1, 64},
	{"offset", BIT(CORRUPT), MEMBER(offset), FLT_UNIT_ZERO, FLT_RANDOM_BIT, 4400},
	{"mask", BIT(CORRUPT), MEMBER(mask), FLT_UNIT_BYTE, 1, 0xff},
	{"crc", BIT(CORRUPT), MEMBER(crc), FLT_UNIT_WORD, FLT_CRC_BAD, 0, crcs},
	{"limit", BIT(BANDWIDTH), MEMBER(bytes_per_s), FLT_UNIT_SPEED, 0, 1ull << 50},
	{"timer", BIT(RNR), MEMBER(timer_enc), FLT_UNIT_ZERO, FLT_RNR_OWN, 31},
	{"counter", BIT(ERRORS), MEMBER(what), FLT_UNIT_WORD, 0, 0, counters},
	{"add", BIT(ERRORS), MEMBER(add), FLT_UNIT_NUMBER, 1, U32},
	{"object", BIT(FAIL), MEMBER(what), FLT_UNIT_WORD, 0, 0, objects},
	{"errno", BIT(FAIL), MEMBER(error), FLT_UNIT_WORD, ENOMEM, 0, errnos},
	{"status", BIT(COMPLETION), MEMBER(what), FLT_UNIT_WORD, 0, 0, statuses},
	{"name", BIT(EVENT), MEMBER(what), FLT_UNIT_WORD, ~0u, 0, events},
	{"for", STATES & ~BIT(EVENT), MEMBER(for_ns), FLT_UNIT_TIME, 0, TIME_MOST},
	{"period", STATES, MEMBER(period_ns), FLT_UNIT_TIME, 0, TIME_MOST},
	{"seed", PACKETS | OBJECTS, MEMBER(seed), FLT_UNIT_SEED, 0, UINT64_MAX},
	{0},
};

static const struct flt_word transports[] = {
	{"rc", WIRE_RC}, {"uc", WIRE_UC}, {"rd", WIRE_RD}, {"ud", WIRE_UD}, {"xrc", WIRE_XRC}, {0}};

static const struct flt_word operations[] = {
	{"send", FLT_SEND}, {"write", FLT_WRITE}, {"read", FLT_READ}, {"atomic", FLT_ATOMIC},
	{"ack", FLT_ACK},   {"recv", FLT_RECV},   {0}};

static const struct flt_word classes[] = {
	{"sm", WIRE_CLASS_SM_LID}, {"sm-direct", WIRE_CLASS_SM_DIRECT}, {"sa", WIRE_CLASS_SA},
	{"perf", WIRE_CLASS_PERF}, {"bm", WIRE_CLASS_BM}, {"dm", WIRE_CLASS_DM},
	{"cm", WIRE_CLASS_CM},	   {"snmp", WIRE_CLASS_SNMP}, {"cc", WIRE_CLASS_CC}, {0}};

static const struct flt_word methods[] = {
	{"get", WIRE_METHOD_GET}, {"set", WIRE_METHOD_SET}, {"send", WIRE_METHOD_SEND},
	{"trap", WIRE_METHOD_TRAP}, {"report", WIRE_METHOD_REPORT},
	{"trap-repress", WIRE_METHOD_TRAP_REPRESS}, {"get-table", WIRE_METHOD_GET_TABLE},
	{"delete", WIRE_METHOD_DELETE}, {"get-resp", WIRE_METHOD_GET_RESP},
	{"report-resp", WIRE_METHOD_REPORT_RESP}, {"get-table-resp", WIRE_METHOD_GET_TABLE_RESP},
	{"delete-resp", WIRE_METHOD_DELETE_RESP}, {0}};

const struct flt_condition flt_conditions[FLT_NUM_FIELDS] = {
	[FLT_OPCODE] = {"opcode", 0xff, NULL, true},
	[FLT_TRANSPORT] = {"transport", 0xff, transports},
	[FLT_OPERATION] = {"op", FLT_RECV, operations},
	[FLT_DEST_QPN] = {"qpn", 0xffffff, NULL, true},
	[FLT_SRC_QPN] = {"src-qpn", 0xffffff, NULL, true},
	[FLT_PSN] = {"psn", 0xffffff, NULL, true},
	[FLT_CLASS] = {"class", 0xff, classes, true},
	[FLT_METHOD] = {"method", 0xff, methods, true},
	[FLT_ATTRIBUTE] = {"attr", 0xffff, NULL, true},
	[FLT_MODIFIER] = {"mod", 0xffffffff, NULL, true},
	[FLT_VL] = {"vl", 15},
	[FLT_SL] = {"sl", 15},
	[FLT_SLID] = {"slid", 0xffff},
	[FLT_DLID] = {"dlid", 0xffff},
	[FLT_PKEY] = {"pkey", 0xffff, NULL, true},
	[FLT_BYTES] = {"bytes", 5000},
};

static char fold(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c == '_' || c == ' ' ? '-' : c;
}

bool flt_same_word(const char *a, const char *b)
{
	for (; *a || *b; a++, b++)
		if (fold(*a) != fold(*b))
			return false;
	return true;
}

/* the name without the prefix of the verbs header */
static const char *bare(const char *name)
{
	static const char *const prefixes[] = {"ibv-wc-", "ibv-event-"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t n = 0;

		while (prefixes[i][n] && fold(name[n]) == prefixes[i][n])
			n++;
		if (!prefixes[i][n])
			return name + n;
	}
	return name;
}

int flt_word_value(const struct flt_word *words, const char *name, uint32_t *value)
{
	for (; words->name; words++)
		if (flt_same_word(words->name, bare(name))) {
			*value = words->value;
			return 0;
		}
	return -EINVAL;
}

const char *flt_word_name(const struct flt_word *words, uint32_t value)
{
	for (; words && words->name; words++)
		if (words->value == value)
			return words->name;
	return NULL;
}

int flt_opcode_value(const char *name, uint32_t *value)
{
	for (uint32_t i = 0; i < 256; i++)
		if (wire_opcodes[i].name && flt_same_word(wire_opcodes[i].name, name)) {
			*value = i;
			return 0;
		}
	return -EINVAL;
}

uint64_t flt_get(const struct flt_rule *rule, const struct flt_param *param)
{
	const char *at = (const char *)rule + param->offset;
	uint64_t wide;
	uint32_t narrow;

	if (param->size == sizeof(wide)) {
		memcpy(&wide, at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

void flt_put(struct flt_rule *rule, const struct flt_param *param, uint64_t value)
{
	char *at = (char *)rule + param->offset;
	uint32_t narrow = (uint32_t)value;

	if (param->size == sizeof(value))
		memcpy(at, &value, sizeof(value));
	else
		memcpy(at, &narrow, sizeof(narrow));
}
