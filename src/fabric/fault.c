/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Applies the rules of src/fault to packets that cross a link of this fabric. A
 * corrupted bit is detected where hardware detects it: the VCRC covers every
 * byte and is checked at the next port. A rule may also state that the VCRC, or
 * both CRCs, were recomputed after the corruption.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fabric/fabric_private.h"

#define LOG_ROOM 65536 /* hits that are kept; pages are populated as it fills */

/* --- names ------------------------------------------------------------- */

static int find_name(void *ctx, const char *name)
{
	return topo_find(((struct fabric *)ctx)->topo, name);
}

static const char *name_of(void *ctx, int node)
{
	const struct fabric *fab = ctx;

	return node < fab->num_nodes ? fab->topo->node[node].name : "outside";
}

static int num_ports(void *ctx, int node, bool *is_switch)
{
	const struct topo_node *topo = &((struct fabric *)ctx)->topo->node[node];

	*is_switch = topo->kind == TOPO_SWITCH;
	return topo->num_ports;
}

static bool has_cable(void *ctx, int node, int port)
{
	return ((struct fabric *)ctx)->node[node].port[port].peer_node >= 0;
}

static bool has_qp(void *ctx, int node, uint32_t qpn)
{
	const struct fab_fault_ops *ops = &((struct fabric *)ctx)->fault_ops;

	return ops->has_qp(ops->ctx, node, qpn);
}

struct flt_names fab_fault_names(struct fabric *fab)
{
	return (struct flt_names){
		.find = find_name, .name = name_of, .num_ports = num_ports,
		.has_cable = has_cable, .has_qp = fab->fault_ops.has_qp ? has_qp : NULL,
		.ctx = fab,
	};
}

/* --- rules ------------------------------------------------------------- */

void fab_fault_ops_set(struct fabric *fab, const struct fab_fault_ops *ops)
{
	fab->fault_ops = *ops;
}

struct flt_set *fab_faults(struct fabric *fab)
{
	return fab->faults ? &fab->faults->set : NULL;
}

bool fab_faults_make(struct fabric *fab)
{
	struct fab_faults *f;

	if (fab->faults)
		return true;
	f = rt_zalloc(sizeof(*f));
	if (!f)
		return false;
	f->log = rt_zalloc(LOG_ROOM * sizeof(*f->log));
	if (!f->log) {
		rt_free(f);
		return false;
	}
	f->fab = fab;
	flt_set_init(&f->set, rt_random(fab->rt), f->log, LOG_ROOM);
	fab_delayed_init(f);
	fab->faults = f;
	return true;
}

void fab_faults_free(struct fabric *fab)
{
	struct fab_faults *f = fab->faults;

	if (!f)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(f->outage); i++)
		if (f->outage[i].rule)
			rt_timer_disarm(&f->outage[i].timer);
	fab_delayed_free(f);
	rt_free(f->log);
	rt_free(f);
	fab->faults = NULL;
}

static bool is_packet_rule(const struct flt_rule *rule)
{
	return rule->action < FLT_FAIL;
}

static void rules_changed(struct fab_faults *f)
{
	f->num_packet_rules = f->num_qp_rules = 0;
	for (unsigned int i = 0; i < f->set.num_rules; i++) {
		f->num_packet_rules += is_packet_rule(&f->set.rule[i]);
		f->num_qp_rules += f->set.rule[i].place == FLT_QP;
	}
	fab_rules_changed(f->fab);
}

static int nobody_can(const struct fabric *fab, const struct flt_rule *rule, char *err,
		      size_t bytes)
{
	if ((rule->action == FLT_REMOVE && !fab->fault_ops.adapter) ||
	    (rule->action == FLT_EVENT && !fab->fault_ops.event)) {
		snprintf(err, bytes, "%s: this fabric has no adapters that could",
			 flt_action_name(rule->action));
		return -EOPNOTSUPP;
	}
	return 0;
}

/* why a state did not take effect */
static const char *reason(const struct flt_rule *rule, int error)
{
	if (rule->action == FLT_EVENT && error == -ENODEV)
		return "the adapter is removed; 'softib fault list' shows the rule that holds it away";
	if (rule->action == FLT_EVENT && error == -EINVAL)
		return "the queue pair has no such queue: srq-err and srq-limit-reached need a "
		       "shared receive queue, cq-err a send queue";
	return strerror(-error);
}

static int start(struct fab_faults *f, const struct flt_rule *rule, char *err, size_t bytes)
{
	int id = flt_add(&f->set, rule), ret;

	if (id < 0) {
		snprintf(err, bytes, "there are %d rules already; clear one first",
			 FLT_RULES_MAX);
		return id;
	}
	rules_changed(f);
	if (!flt_is_state(rule->action))
		return id;
	ret = fab_outage_start(f, flt_find(&f->set, (uint32_t)id));
	if (!ret)
		return id;
	flt_remove(&f->set, (uint32_t)id);
	snprintf(err, bytes, "%s: %s", flt_action_name(rule->action), reason(rule, ret));
	return ret;
}

int fab_fault_add(struct fabric *fab, const char *text, uint64_t seed, char *err, size_t err_bytes)
{
	struct flt_names names = fab_fault_names(fab);
	struct flt_rule rule;
	int ret = flt_parse(text, &names, &rule, err, err_bytes);

	if (!ret)
		ret = nobody_can(fab, &rule, err, err_bytes);
	if (ret)
		return ret;
	if (seed)
		rule.seed = seed;
	if (!fab_faults_make(fab)) {
		snprintf(err, err_bytes, "out of memory");
		return -ENOMEM;
	}
	return start(fab->faults, &rule, err, err_bytes);
}

static void clear_one(struct fab_faults *f, struct flt_rule *rule)
{
	struct flt_rule gone = *rule;

	flt_remove(&f->set, gone.id);
	if (flt_is_state(gone.action))
		fab_outage_end(f, &gone);
}

int fab_fault_clear(struct fabric *fab, uint32_t id)
{
	struct fab_faults *f = fab->faults;
	struct flt_rule *rule;

	if (!id) {
		while (f && f->set.num_rules)
			clear_one(f, &f->set.rule[f->set.num_rules - 1]);
	} else {
		rule = f ? flt_find(&f->set, id) : NULL;
		if (!rule)
			return -ENOENT;
		clear_one(f, rule);
	}
	if (f) {
		rules_changed(f);
		fab_delayed_release(f);
	}
	return 0;
}

/* Does a rule end with its queue pair or adapter? A rule that takes a cable or the
 * adapter away does not, because it has to bring it back. */
static bool goes_along(const struct flt_rule *rule)
{
	return !flt_is_state(rule->action) || rule->action == FLT_EVENT;
}

void fab_fault_gone(struct fabric *fab, int node, uint32_t qpn)
{
	struct fab_faults *f = fab->faults;
	bool any = false;

	for (unsigned int i = f ? f->set.num_rules : 0; i-- > 0;) {
		struct flt_rule *rule = &f->set.rule[i];

		if (rule->node != node || !goes_along(rule) ||
		    (qpn && (rule->place != FLT_QP || rule->qpn != qpn)))
			continue;
		clear_one(f, rule);
		any = true;
	}
	if (any)
		rules_changed(f);
}

int fab_fault_object(struct fabric *fab, int node, enum flt_object_kind kind)
{
	struct flt_object_event ev = {.node = node, .kind = kind};

	if (!fab->faults)
		return 0;
	ev.now = rt_now(fab->rt);
	return flt_object(&fab->faults->set, &ev);
}

int fab_fault_completion(struct fabric *fab, int node, uint32_t qpn, uint32_t wc_opcode)
{
	struct flt_object_event ev = {.node = node, .qpn = qpn, .opcode = wc_opcode};

	if (!fab->faults)
		return 0;
	ev.now = rt_now(fab->rt);
	return flt_completion(&fab->faults->set, &ev);
}

/* --- a packet on a link ------------------------------------------------ */

static struct flt_end end_of(const struct fab_port *port)
{
	return (struct flt_end){port->node, port->num, fab_is_switch(port)};
}

/* the source QP is in the DETH, or the adapter finds it among its connections */
static uint32_t source_qpn(const struct fab_step *step, const struct fab_packet *pkt)
{
	const struct fab_fault_ops *ops = &step->from_port->fab->fault_ops;

	if (pkt->src_qpn || !ops->source_qpn || !step->from_port->fab->faults->num_qp_rules)
		return pkt->src_qpn;
	return ops->source_qpn(ops->ctx, step->from_port->node, pkt->lrh.dlid, pkt->dest_qpn);
}

static void make_event(struct flt_event *ev, const struct fab_step *step,
		       const struct fab_packet *pkt, int hops)
{
	flt_event_packet(ev, pkt->bytes, pkt->len);
	ev->now = rt_now(step->from_port->fab->rt);
	ev->from = end_of(step->from_port);
	ev->to = end_of(step->to_port);
	ev->first = pkt->hops + hops == 0;
	ev->from_qpn = ev->first && !ev->from.is_switch ? source_qpn(step, pkt) : 0;
	if (!fab_is_inside(step))
		ev->field[FLT_VL] = step->vl;
}

static void add_errors(const struct fab_step *step, const struct flt_verdict *v)
{
	static const uint8_t counters[FLT_NUM_COUNTERS] = {
		[FLT_SYMBOL_ERRORS] = AG_SYMBOL_ERRORS,
		[FLT_LINK_RECOVERY] = AG_LINK_RECOVERY,
		[FLT_LINK_DOWNED] = AG_LINK_DOWNED,
		[FLT_RCV_ERRORS] = AG_RCV_ERRORS,
		[FLT_RCV_REMOTE_PHYSICAL] = AG_RCV_REMOTE_PHYSICAL,
		[FLT_RCV_SWITCH_RELAY] = AG_RCV_SWITCH_RELAY,
		[FLT_XMIT_DISCARDS] = AG_XMIT_DISCARDS,
		[FLT_XMIT_CONSTRAINT] = AG_XMIT_CONSTRAINT,
		[FLT_RCV_CONSTRAINT] = AG_RCV_CONSTRAINT,
		[FLT_LOCAL_INTEGRITY] = AG_LOCAL_INTEGRITY,
		[FLT_BUFFER_OVERRUN] = AG_BUFFER_OVERRUN,
		[FLT_VL15_DROPPED] = AG_VL15_DROPPED,
		[FLT_XMIT_WAIT] = AG_XMIT_WAIT,
	};

	for (size_t i = 0; i < FLT_NUM_COUNTERS; i++)
		step->to->count.raw[counters[i]] += v->errors[i];
}

/* The port at the end of @step detects the corruption, by the VCRC or because the
 * headers do not decode. It cannot attribute the packet to a sender. */
static void found_bad(const struct fab_step *step, const struct fab_packet *pkt)
{
	uint64_t *raw = step->to->count.raw;

	if (step->to_port->watches)
		fab_show(step, pkt, false);
	raw[AG_RCV_ERRORS]++;
	if (!(pkt->wrong_crcs & FAB_WRONG_VCRC)) {
		raw[AG_RCV_MALFORMED]++;
		return;
	}
	raw[AG_RCV_LOCAL_PHYSICAL]++;
	raw[AG_SYMBOL_ERRORS]++;
}

/* flip bits of @pkt in @bytes. Return: false if the packet is dropped for it */
static bool spoil(const struct fab_step *step, struct fab_packet *pkt, uint8_t *bytes,
		  const struct flt_verdict *v)
{
	struct fab_packet was = *pkt;
	uint32_t icrc = wire_icrc(pkt->bytes, pkt->len);
	int ret;

	memcpy(bytes, pkt->bytes, pkt->len);
	bytes[v->corrupt_offset] ^= (uint8_t)v->corrupt_mask;
	ret = fab_packet_decode(pkt, bytes, was.len);
	if (ret < 0) {
		pkt->bytes = bytes;
		pkt->len = was.len;
	}
	pkt->hops = was.hops;
	pkt->copied = was.copied;
	pkt->rnr_mark = was.rnr_mark;
	pkt->wrong_crcs = was.wrong_crcs;
	if (v->crc != FLT_CRC_FIXED && wire_icrc(bytes, was.len) != icrc)
		pkt->wrong_crcs |= FAB_WRONG_ICRC;
	if (v->crc == FLT_CRC_BAD)
		pkt->wrong_crcs |= FAB_WRONG_VCRC;
	if (ret == 0 && v->crc != FLT_CRC_BAD)
		return true;
	found_bad(step, pkt);
	return false;
}

/* Carry out the verdict on a packet. What is left of the packet is forwarded from
 * the link's end, now or later. */
static void carry_out(const struct fab_step *step, const struct fab_packet *pkt, int hops,
		      const struct flt_verdict *v)
{
	struct fab_packet p = *pkt;
	uint8_t bytes[WIRE_PACKET_MAX];
	uint32_t copies = pkt->copied ? 0 : v->copies;

	p.hops = (uint8_t)MIN(pkt->hops + hops + 1, 255);
	if (!fab_is_inside(step)) /* counted unchanged: faults happen on the link */
		fab_count_sent(step, pkt);
	if (v->drop || (v->corrupt && !spoil(step, &p, bytes, v)))
		return;
	p.copied |= copies > 0;
	if (v->rnr)
		p.rnr_mark = v->timer_enc == FLT_RNR_OWN ?
				     WIRE_RNR_OWN :
				     (uint8_t)(WIRE_RNR_TIMER | v->timer_enc);
	for (uint32_t i = 0; i <= copies; i++) {
		if (i && !fab_is_inside(step))
			fab_count_sent(step, &p);
		if (v->delay_ns || v->hold_ns)
			fab_delay(step, &p, v);
		else if (fab_is_late(step, &p))
			fab_delay_behind(step, &p);
		else
			fab_land(step, &p);
	}
}

static bool changes_packet(const struct flt_verdict *v)
{
	return v->drop || v->corrupt || v->rnr || v->copies || v->delay_ns || v->hold_ns;
}

/* Return: false if the packet was dropped, changed or delayed */
static bool judge(struct fab_faults *f, const struct fab_step *step, const struct fab_packet *pkt,
		  int hops)
{
	struct flt_verdict verdict;
	struct flt_event ev;
	bool any;

	make_event(&ev, step, pkt, hops);
	any = flt_packet(&f->set, &ev, &verdict);
	if (f->num_reordered) /* after this packet has arrived */
		rt_work_queue(f->fab->rt, &f->reordered);
	if (flt_take_spent(&f->set))
		fab_rules_changed(f->fab);
	if (!any)
		return true;
	if (verdict.counts)
		add_errors(step, &verdict);
	if (!changes_packet(&verdict))
		return true;
	carry_out(step, pkt, hops, &verdict);
	return false;
}

bool fab_cross(const struct fab_step *step, const struct fab_packet *pkt, int hops)
{
	struct fab_faults *f = step->from_port->fab->faults;

	if (!fab_is_inside(step) && !fab_tap(step->from_port, true, pkt))
		return false;
	if (f && f->num_packet_rules && !judge(f, step, pkt, hops))
		return false;
	if (fab_is_late(step, pkt)) {
		carry_out(step, pkt, hops, &(struct flt_verdict){0});
		return false;
	}
	return fab_is_inside(step) || fab_tap(step->to_port, false, pkt);
}

bool fab_busy(const struct fab_step *steps, int n, const struct fab_packet *pkt)
{
	struct fab_faults *f = n ? steps[0].from_port->fab->faults : NULL;
	bool limits = f && flt_has_action(&f->set, FLT_BANDWIDTH);
	struct flt_event ev;

	if (!f)
		return false;
	if (fab_delayed_full(f))
		return true;
	for (int i = 0; i < n; i++) {
		if (!list_empty(&steps[i].to_port->waiting))
			return true;
		if (!limits)
			continue;
		make_event(&ev, &steps[i], pkt, i);
		if (flt_busy(&f->set, &ev))
			return true;
	}
	return false;
}

bool fab_way_watched(const struct fab_step *step)
{
	struct fab_faults *f = step->from_port->fab->faults;

	return f && f->num_packet_rules &&
	       flt_watches(&f->set, end_of(step->from_port), end_of(step->to_port));
}
