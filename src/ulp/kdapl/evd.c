/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Event dispatchers. Completions stay in the CQ of an EVD until they are asked for; all
 * other events, and completions that were looked at, are in a queue in memory.
 *
 * Upcalls are made by one work item for all EVDs, so that they run neither on the stack
 * of a consumer's call nor within an event of the RDMA CM. It takes the EVDs that are
 * pending one after another, and arms the CQ of one when it has nothing left.
 */
#include "ulp/kdapl/private.h"

#define UPCALLS_PER_TURN 64 /* of an EVD, before others get their turn */

static LIST_HEAD(pending);
static LIST_HEAD(expired); /* RSPs */
static void make_upcalls(struct work_struct *work);
static DECLARE_WORK(upcalls, make_upcalls);

/* --- the queue --- */

bool kd_evd_post(struct kd_evd *evd, const DAT_EVENT *event)
{
	DAT_EVENT copy = *event;

	copy.evd_handle = evd;
	if (!kd_events_push(&evd->events, &copy, false)) {
		if (!evd->overflowed && evd != evd->object.ia->async_evd) {
			evd->overflowed = true;
			kd_async(&evd->object, DAT_ASYNC_ERROR_EVD_OVERFLOW,
				 DAT_EVD_OVERFLOW_ERROR);
		}
		return false;
	}
	kd_evd_wake(evd);
	return true;
}

void kd_evd_fill(struct kd_evd *evd)
{
	struct ib_wc wc;
	DAT_EVENT event;
	bool quiet;

	while (evd->cq && evd->events.count < (u32)evd->qlen &&
	       ib_poll_cq(evd->cq, 1, &wc) > 0) {
		if (!kd_dto_event(&wc, &event, &quiet))
			continue;
		event.evd_handle = evd;
		kd_events_push(&evd->events, &event, quiet);
	}
}

static bool pop(struct kd_evd *evd, DAT_EVENT *event)
{
	if (!evd->events.count)
		kd_evd_fill(evd);
	if (!kd_events_pop(&evd->events, event))
		return false;
	evd->overflowed = false;
	return true;
}

/* --- upcalls --- */

/* The consumer may have crashed, or may have been unloaded without closing its IA. */
static bool wants_upcalls(const struct kd_evd *evd)
{
	return evd->upcall.upcall_func &&
	       (evd->policy == DAT_UPCALL_SINGLE_INSTANCE ||
		evd->policy == DAT_UPCALL_MANY) &&
	       is_module_text_address((unsigned long)evd->upcall.upcall_func);
}

void kd_evd_wake(struct kd_evd *evd)
{
	if (list_empty(&evd->pending))
		list_add_tail(&evd->pending, &pending);
	schedule_work(&upcalls);
}

void kd_later(struct kd_sp *sp)
{
	list_add_tail(&sp->expired, &expired);
	schedule_work(&upcalls);
}

/* Return: is there more? */
static bool deliver(struct kd_evd *evd)
{
	DAT_EVENT event;

	kd_evd_fill(evd);
	for (int n = 0; wants_upcalls(evd) && evd->events.loud; n++) {
		if (n == UPCALLS_PER_TURN)
			return true;
		pop(evd, &event);
		evd->upcall.upcall_func(evd->upcall.instance_data, &event,
					evd->events.count ? DAT_TRUE : DAT_FALSE);
		if (evd->doomed)
			return false;
		kd_evd_fill(evd);
	}
	return false;
}

/* The CQ of an EVD without upcalls is armed as well: a graceful disconnect ends with a
 * completion. Return: have completions come meanwhile? */
static bool arm(const struct kd_evd *evd)
{
	bool solicited = evd->solicited && !evd->signalled;

	return evd->cq && evd->events.count < (u32)evd->qlen &&
	       ib_req_notify_cq(evd->cq, (solicited ? IB_CQ_SOLICITED : IB_CQ_NEXT_COMP) |
						 IB_CQ_REPORT_MISSED_EVENTS) > 0;
}

static void serve(struct kd_evd *evd)
{
	bool more;

	evd->running = true;
	more = deliver(evd);
	evd->running = false;
	if (evd->doomed)
		kfree(evd);
	else if (more || arm(evd))
		kd_evd_wake(evd);
}

static void make_upcalls(struct work_struct *work)
{
	while (!list_empty(&expired))
		kd_sp_destroy(list_first_entry(&expired, struct kd_sp, expired));
	while (!list_empty(&pending)) {
		struct kd_evd *evd = list_first_entry(&pending, struct kd_evd, pending);

		list_del_init(&evd->pending);
		serve(evd);
		cond_resched();
	}
}

void kd_upcalls_stop(void)
{
	cancel_work_sync(&upcalls);
}

static void on_completion(struct ib_cq *cq, void *cq_context)
{
	kd_evd_wake(cq_context);
}

static void on_cq_event(struct ib_event *event, void *cq_context)
{
	struct kd_evd *evd = cq_context;

	kd_async(&evd->object, DAT_ASYNC_ERROR_EVD_OVERFLOW, DAT_EVD_OVERFLOW_ERROR);
}

/* --- EVDs --- */

struct kd_evd *kd_evd_get(DAT_HANDLE handle, DAT_EVD_FLAGS flags)
{
	struct kd_evd *evd = kd_get(handle, DAT_HANDLE_TYPE_EVD);

	return evd && evd->flags & flags ? evd : NULL;
}

static DAT_RETURN create_cq(struct kd_evd *evd)
{
	struct ib_cq_init_attr attr = {.cqe = (u32)evd->qlen};
	struct ib_cq *cq;

	if (!(evd->flags & (DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)))
		return DAT_SUCCESS;
	cq = ib_create_cq(evd->object.ia->device, on_completion, on_cq_event, evd, &attr);
	if (IS_ERR(cq))
		return kd_error(PTR_ERR(cq), DAT_RESOURCE_TEVD);
	evd->cq = cq; /* which is armed when an EP feeds it: by which kind of event
			 depends on it */
	return DAT_SUCCESS;
}

/* Room for as many events from the CQ as the consumer asks for, and for as many others.
 */
static struct kd_event *alloc_events(DAT_COUNT qlen)
{
	return kcalloc((size_t)qlen * 2, sizeof(struct kd_event), GFP_KERNEL);
}

DAT_RETURN kd_evd_create(struct kd_ia *ia, DAT_COUNT qlen, DAT_EVD_FLAGS flags,
			 struct kd_evd **out)
{
	struct kd_evd *evd = kd_alloc(ia, DAT_HANDLE_TYPE_EVD, sizeof(*evd));
	struct kd_event *slot = alloc_events(qlen);
	DAT_RETURN ret;

	if (!evd || !slot) {
		kfree(slot);
		if (evd)
			kd_release(&evd->object);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	INIT_LIST_HEAD(&evd->pending);
	evd->qlen = qlen;
	evd->flags = flags;
	kd_events_init(&evd->events, slot, (u32)qlen * 2);
	ret = create_cq(evd);
	if (ret != DAT_SUCCESS) {
		kfree(slot);
		kd_release(&evd->object);
		return ret;
	}
	*out = evd;
	return DAT_SUCCESS;
}

static bool policy_is_known(DAT_UPCALL_POLICY policy)
{
	return policy == DAT_UPCALL_DISABLE || policy == DAT_UPCALL_SINGLE_INSTANCE ||
	       policy == DAT_UPCALL_MANY || policy == DAT_UPCALL_TEARDOWN;
}

DAT_RETURN dat_evd_kcreate(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			   DAT_UPCALL_POLICY upcall_policy,
			   const DAT_UPCALL_OBJECT *upcall, DAT_EVD_FLAGS evd_flags,
			   DAT_EVD_HANDLE *evd_handle)
{
	const unsigned int all = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG;
	struct kd_ia *ia = kd_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kd_evd *evd = NULL;
	DAT_RETURN ret;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (evd_min_qlen <= 0 || evd_min_qlen > ia->device->attrs.max_cqe)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!policy_is_known(upcall_policy))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	if (!evd_flags || evd_flags & ~all)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	if (!evd_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	ret = kd_evd_create(ia, evd_min_qlen, evd_flags, &evd);
	if (ret != DAT_SUCCESS)
		return ret;
	evd->policy = upcall_policy;
	evd->upcall = upcall ? *upcall : DAT_UPCALL_NULL;
	*evd_handle = evd;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_evd_kcreate);

DAT_RETURN dat_evd_modify_upcall(DAT_EVD_HANDLE evd_handle,
				 DAT_UPCALL_POLICY upcall_policy,
				 const DAT_UPCALL_OBJECT *upcall)
{
	struct kd_evd *evd = kd_get(evd_handle, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!policy_is_known(upcall_policy))
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	evd->policy = upcall_policy;
	if (upcall != DAT_UPCALL_SAME)
		evd->upcall = *upcall;
	kd_evd_wake(evd);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_evd_modify_upcall);

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen)
{
	struct kd_evd *evd = kd_get(evd_handle, DAT_HANDLE_TYPE_EVD);
	struct kd_event *slot;

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (evd_min_qlen <= 0 || evd_min_qlen > evd->object.ia->device->attrs.max_cqe)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (evd->events.count > (u32)evd_min_qlen * 2)
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	slot = alloc_events(evd_min_qlen);
	if (!slot)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (evd->cq && ib_resize_cq(evd->cq, evd_min_qlen)) {
		kfree(slot);
		return DAT_ERROR(DAT_INVALID_STATE, 0);
	}
	kfree(kd_events_move(&evd->events, slot, (u32)evd_min_qlen * 2));
	evd->qlen = evd_min_qlen;
	kd_evd_wake(evd);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_evd_resize);

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	struct kd_evd *evd = kd_evd_get(evd_handle, DAT_EVD_SOFTWARE_FLAG);
	DAT_EVENT copy;

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!event || event->event_number != DAT_SOFTWARE_EVENT)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	copy = *event;
	copy.evd_handle = evd;
	if (!kd_events_push(&evd->events, &copy, false))
		return DAT_ERROR(DAT_QUEUE_FULL, 0);
	kd_evd_wake(evd);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_evd_post_se);

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	struct kd_evd *evd = kd_find(evd_handle, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!event)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	return pop(evd, event) ? DAT_SUCCESS : DAT_ERROR(DAT_QUEUE_EMPTY, 0);
}
EXPORT_SYMBOL(dat_evd_dequeue);

DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
			 DAT_EVD_PARAM *evd_param)
{
	const struct kd_evd *evd = kd_find(evd_handle, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (evd_param_mask & ~(unsigned int)DAT_EVD_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!evd_param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	*evd_param = (DAT_EVD_PARAM){.ia_handle = evd->object.ia,
				     .evd_qlen = evd->qlen,
				     .upcall_policy = evd->policy,
				     .upcall = evd->upcall,
				     .evd_flags = evd->flags};
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_evd_query);

void kd_evd_stop(struct kd_evd *evd)
{
	if (evd->cq)
		ib_destroy_cq(evd->cq);
	evd->cq = NULL;
}

void kd_evd_destroy(struct kd_evd *evd)
{
	kd_evd_stop(evd);
	list_del_init(&evd->pending);
	kfree(evd->events.slot);
	if (!evd->running) {
		kd_release(&evd->object);
		return;
	}
	kd_forget(&evd->object);
	evd->doomed = true;
}

/* The peers of connection requests that the consumer did not take are told. */
static void refuse_requests(struct kd_evd *evd)
{
	DAT_EVENT event;

	while (kd_events_pop(&evd->events, &event)) {
		struct kd_cr *cr = NULL;

		if (event.event_number == DAT_CONNECTION_REQUEST_EVENT)
			cr = kd_get(event.event_data.cr_arrival_event_data.cr_handle,
				    DAT_HANDLE_TYPE_CR);
		if (cr)
			kd_cr_destroy(cr);
	}
}

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle)
{
	struct kd_evd *evd = kd_find(evd_handle, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (evd->object.users)
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	refuse_requests(evd);
	kd_evd_destroy(evd);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_evd_free);
