/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults other than those of packets: the adapter refuses to create objects,
 * changes the status of programs' completions, and raises events. The rules
 * belong to the fabric (src/fault). A program's engine asks softibd for the
 * verdict on each of its completions (src/abi).
 */
#include <errno.h>

#include "hca/private.h"

/* --- objects --------------------------------------------------------------- */

int hca_refused(struct hca *hca, enum flt_object_kind kind)
{
	return -fab_fault_object(hca->fab, hca->node, kind);
}

bool hca_refuses(struct fabric *fab)
{
	const struct flt_set *rules = fab_faults(fab);

	return rules && flt_has_action(rules, FLT_FAIL);
}

/* --- completions ----------------------------------------------------------- */

void hca_completion(struct hca_user *user, const struct abi_completion *in,
		    struct abi_completion_resp *out)
{
	const struct hca_qp *qp = eng_table_get(&user->hca->qps, in->qpn);
	int status = 0;

	if (qp && qp->user == user)
		status = fab_fault_completion(user->hca->fab, user->hca->node, in->qpn, in->opcode);
	out->status = status == FLT_OVERRUN_CQ ? ABI_COMPLETION_OVERRUN : status;
}

bool hca_spoils(struct fabric *fab)
{
	const struct flt_set *rules = fab_faults(fab);

	return rules && (flt_has_action(rules, FLT_COMPLETION) || flt_has_action(rules, FLT_OVERRUN));
}

/* --- events that rules raise ----------------------------------------------- */

bool hca_has_qp(const struct hca *hca, uint32_t qpn)
{
	return qpn >= 2 && eng_table_get(&hca->qps, qpn);
}

static uint32_t connected(const struct list_head *list, uint16_t dlid, uint32_t dest_qpn)
{
	const struct hca_qp *qp;

	list_for_each_entry(qp, list, node)
		if (qp->ib.qp_type != IB_QPT_UD && qp->ib.qp_num >= 2 &&
		    qp->ib.attr.dest_qp_num == dest_qpn && qp->ib.attr.ah_attr.dlid == dlid)
			return qp->ib.qp_num;
	return 0;
}

uint32_t hca_source_qpn(const struct hca *hca, uint16_t dlid, uint32_t dest_qpn)
{
	uint32_t qpn = connected(&hca->user_qps, dlid, dest_qpn);

	return qpn ? qpn : connected(&hca->kernel_qps, dlid, dest_qpn);
}

/* Set the object that the event is about: @qp, its (send) CQ or its SRQ; without @qp, a port or the device.
 * Return: false: it is not there, or the event is about another kind of object */
static bool choose_element(struct ib_event *event, struct ib_qp *qp, int port)
{
	switch (ib_subject_of_event(event->event)) {
	case IB_EVENT_OF_PORT:
	case IB_EVENT_OF_DEVICE:
		event->element.port_num = (u32)(port ? port : 1);
		return !qp;
	case IB_EVENT_OF_QP:
		event->element.qp = qp;
		return qp;
	case IB_EVENT_OF_CQ: /* an XRC target has no CQ */
		event->element.cq = qp ? qp->send_cq : NULL;
		return event->element.cq;
	case IB_EVENT_OF_SRQ:
		event->element.srq = qp ? qp->srq : NULL;
		return event->element.srq;
	default:
		return false;
	}
}

int hca_raise(struct hca *hca, int port, uint32_t qpn, uint32_t type)
{
	struct ib_event event = {.device = &hca->ib, .event = (enum ib_event_type)type};
	struct hca_qp *qp = qpn ? eng_table_get(&hca->qps, qpn) : NULL;

	if ((qpn && !qp) || !choose_element(&event, qp ? &qp->ib : NULL, port))
		return -EINVAL;
	ib_dispatch_event(&event);
	return 0;
}
