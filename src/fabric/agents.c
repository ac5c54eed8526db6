/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Connects the agents to the fabric. MADs for a switch's port 0, or for a CA
 * without an adapter, are queued and answered from the loop; the answers are
 * sent as packets. The traps of every node are sent here too, because an
 * adapter's SMA is firmware, not host software.
 */
#include "agents/directed_route.h"
#include "fabric/fabric_private.h"

#include <string.h>

#define PACKET_BYTES 512

/* the port whose LID is the SLID of the answer */
static struct fab_port *speaker(struct fab_port *at)
{
	return fab_is_switch(at) ? &fab_node_of(at)->port[0] : at;
}

static bool accepted(struct fab_port *at, const struct fab_packet *pkt)
{
	if (pkt->payload_bytes != WIRE_MAD_BYTES || pkt->dest_qpn > 1)
		return false;
	if (pkt->wrong_crcs & FAB_WRONG_ICRC) {
		fab_ag_port(at)->count.raw[AG_RCV_ERRORS]++;
		return false;
	}
	if (pkt->dest_qpn == 0 || pkt->qkey == WIRE_QKEY_GSI)
		return true;
	ag_trap_qkey(fab_node_of(at)->ag, speaker(at)->num, pkt->qkey, pkt->lrh.slid,
		     pkt->lrh.dlid, pkt->lrh.sl, pkt->src_qpn, pkt->dest_qpn,
		     rt_now(at->fab->rt));
	fab_rearm(fab_node_of(at));
	return false;
}

void fab_agents_queue(struct fab_port *at, const struct fab_packet *pkt)
{
	struct fabric *fab = at->fab;
	struct fab_job *job;

	if (!accepted(at, pkt))
		return;
	job = fab->num_jobs < FAB_JOBS_MAX ? rt_zalloc(sizeof(*job)) : NULL;
	if (!job) {
		fab_ag_port(at)->count.raw[pkt->dest_qpn ? AG_QP1_DROPPED : AG_VL15_DROPPED]++;
		return;
	}
	job->at = at;
	job->slid = pkt->lrh.slid;
	job->sl = pkt->lrh.sl;
	job->pkey = pkt->pkey;
	job->qpn = pkt->dest_qpn;
	job->src_qpn = pkt->src_qpn;
	memcpy(job->mad, pkt->bytes + pkt->len - WIRE_MAD_BYTES, WIRE_MAD_BYTES);
	list_add_tail(&job->node, &fab->jobs);
	fab->num_jobs++;
	rt_work_queue(fab->rt, &fab->agents_work);
}

/* Return: false if what was encoded into @buf is not a packet */
static bool encode(const struct fab_job *job, uint16_t slid, uint16_t dlid, uint8_t *buf,
		   struct fab_packet *pkt)
{
	struct fabric *fab = job->at->fab;
	size_t len = fab_mad_encode(job, slid, dlid, fab->next_psn, buf);

	fab->next_psn = psn_add(fab->next_psn, 1);
	return fab_packet_decode(pkt, buf, len) == 0;
}

static void no_room(struct fab_port *from, const struct fab_packet *pkt)
{
	if (from->fab->faults) /* a rule may delay it */
		fab_delay_for_room(from, pkt);
	else /* without room the answer is dropped; the client repeats its request */
		fab_ag_port(from)->count.raw[AG_XMIT_DISCARDS]++;
}

static void send_by_lid(const struct fab_job *job, uint16_t dlid)
{
	struct fab_port *from = speaker(job->at);
	uint8_t buf[PACKET_BYTES];
	struct fab_packet pkt;

	if (!encode(job, fab_ag_port(from)->lid, dlid, buf, &pkt))
		return;
	if (job->qpn == 0)
		fab_smp_send(from, &pkt);
	else if (fab_forward(from, &pkt))
		no_room(from, &pkt);
}

static void send_by_route(struct fab_job *job)
{
	struct fab_node *node = fab_node_of(job->at);
	struct ag_dr_at at = {node->ag->sw != NULL, node->ag->num_ports, 0};
	uint8_t buf[PACKET_BYTES], out;
	struct fab_packet pkt;

	switch (ag_dr_send(&at, job->mad, &out)) {
	case AG_DR_FORWARD:
		if (encode(job, WIRE_LID_PERMISSIVE, WIRE_LID_PERMISSIVE, buf, &pkt))
			fab_smp_leave(&node->port[out], &pkt);
		break;
	case AG_DR_LID_ROUTE:
		send_by_lid(job, job->slid);
		break;
	case AG_DR_LOCAL:
	case AG_DR_DISCARD:
		break;
	}
}

/* the agents answer only directed-route SMPs whose route ends here */
static bool route_ends_here(struct fab_job *job)
{
	struct fab_node *node = fab_node_of(job->at);
	struct ag_dr_at at = {false, node->ag->num_ports, job->at->num};
	uint8_t out;

	/* a switch has applied the rules of directed routes on arrival (smp.c) */
	return job->mad[1] != WIRE_CLASS_SM_DIRECT || node->ag->sw ||
	       ag_dr_receive(&at, job->mad, &out) == AG_DR_LOCAL;
}

static bool is_smp(const struct fab_job *job)
{
	return job->mad[1] == WIRE_CLASS_SM_LID || job->mad[1] == WIRE_CLASS_SM_DIRECT;
}

static void run(struct fab_job *job)
{
	struct fab_node *node = fab_node_of(job->at);
	struct ag_mad_context context = {
		.now = rt_now(node->fab->rt), .slid = job->slid, .sl = job->sl,
		.src_qpn = job->src_qpn, .pkey = job->pkey,
	};
	struct ag_effect effect;
	int result;

	if (node->dead || is_smp(job) != (job->qpn == 0) || !route_ends_here(job))
		return; /* 13.5.1: SMPs go to QP0, all others to QP1 */
	if (job->mad[1] == WIRE_CLASS_PERF)
		fab_fold_node(node->fab, job->at->node);
	result = ag_process(node->ag, job->at->num, &context, job->mad, job->mad, &effect);
	fab_changed(&node->port[effect.port], effect.changes);
	/* no host behind these agents could handle the MAD */
	if (result == AG_PASS && ag_refuse(job->mad))
		result = AG_REPLY;
	if (!(result & AG_REPLY))
		return;
	if (job->mad[1] == WIRE_CLASS_SM_DIRECT)
		send_by_route(job);
	else
		send_by_lid(job, job->slid);
}

static void drop_job(struct fab_job *job)
{
	job->at->fab->num_jobs--;
	list_del_init(&job->node);
	rt_free(job);
}

/* MADs that are queued meanwhile wait for the next turn of the loop */
static void run_jobs(struct rt_work *work)
{
	struct fabric *fab = container_of(work, struct fabric, agents_work);
	LIST_HEAD(batch);

	list_splice_tail_init(&fab->jobs, &batch);
	while (!list_empty(&batch)) {
		struct fab_job *job = list_first_entry(&batch, struct fab_job, node);

		run(job);
		drop_job(job);
	}
}

void fab_agents_traps(struct fab_node *node)
{
	struct fab_job job = {.pkey = WIRE_PKEY_DEFAULT};
	uint8_t port;

	while (ag_trap_take(node->ag, rt_now(node->fab->rt), job.mad, &port)) {
		job.at = &node->port[port];
		job.sl = node->ag->port[port].sm_sl;
		send_by_lid(&job, node->ag->port[port].sm_lid);
	}
}

void fab_agents_init(struct fabric *fab)
{
	INIT_LIST_HEAD(&fab->jobs);
	rt_work_init(&fab->agents_work, run_jobs);
}

void fab_agents_exit(struct fabric *fab)
{
	rt_work_cancel(&fab->agents_work);
	while (!list_empty(&fab->jobs))
		drop_job(list_first_entry(&fab->jobs, struct fab_job, node));
}
