/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues. One object serves both interfaces: programs make CQs
 * with ibv_create_cq_ex() and poll them with ibv_poll_cq() too.
 */
#include <stdlib.h>

#include "soft.h"

/* of frames */
#define ETHERNET_WC_FLAGS (IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG)
#define SUPPORTED_WC_FLAGS                                                                     \
	(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                         \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_TM_INFO |              \
	 ETHERNET_WC_FLAGS)
#define SUPPORTED_COMP_MASK (IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)
#define SUPPORTED_FLAGS (IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)

/* Send the command to softibd and create the engine's CQ. */
static int create(struct soft_context *ctx, struct soft_cq *cq, uint32_t cqe, int comp_vector)
{
	struct ib_uverbs_create_cq req = {
		.user_handle = cq->object.id,
		.cqe = cqe,
		.comp_vector = (uint32_t)comp_vector,
		.comp_channel = -1, /* softibd does not know the library's channels */
	};
	struct ib_uverbs_create_cq_resp resp;
	struct ib_uverbs_destroy_cq undo = {0};
	struct ib_uverbs_destroy_cq_resp undone;
	int rc = session_command(ctx, IB_USER_VERBS_CMD_CREATE_CQ, &req, sizeof(req), &resp,
				 sizeof(resp));

	if (rc)
		return rc;
	cq->ibv.handle = resp.cq_handle;
	cq->ibv.cqe = (int)cqe; /* softibd does not know the library's queue */
	rc = eng_cq_create_in(ctx->engine, pd_memory(cq->parent), (uint32_t)cq->ibv.cqe,
			      &cq->object, &cq->eng);
	if (rc) {
		undo.cq_handle = resp.cq_handle;
		session_command(ctx, IB_USER_VERBS_CMD_DESTROY_CQ, &undo, sizeof(undo), &undone,
				sizeof(undone));
	}
	return rc;
}

static void hold_channel(struct ibv_comp_channel *channel, int change)
{
	if (!channel)
		return;
	pthread_mutex_lock(&channel->context->mutex);
	channel->refcnt += change;
	pthread_mutex_unlock(&channel->context->mutex);
}

static struct soft_cq *make_cq(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct soft_context *ctx = to_context(context);
	struct soft_cq *cq;
	int rc;

	if (!attr->cqe || attr->cqe > (uint32_t)ctx->attr.orig_attr.max_cqe ||
	    attr->comp_vector >= (uint32_t)context->num_comp_vectors ||
	    (attr->channel && attr->channel->context != context))
		return verbs_null(-EINVAL);
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return verbs_null(-ENOMEM);
	cq->ibv.context = context;
	cq->ibv.channel = attr->channel;
	cq->ibv.cq_context = attr->cq_context;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
	pthread_mutex_init(&cq->poll_lock, NULL);
	INIT_LIST_HEAD(&cq->event);
	cq->parent = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain : NULL;
	object_init(ctx, &cq->object, SOFT_CQ);
	rc = create(ctx, cq, attr->cqe, (int)attr->comp_vector);
	if (rc) {
		free(cq);
		return verbs_null(rc);
	}
	object_show(ctx, &cq->object);
	hold_channel(attr->channel, 1);
	if (cq->parent)
		pd_hold(cq->parent);
	return cq;
}

/**
 * ibv_create_cq() - a completion queue of at least @cqe entries
 * Return: the CQ; NULL and errno: EINVAL size, vector, or the channel of another context, ENOMEM, EIO
 */
EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
				    struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe > 0 ? (uint32_t)cqe : 0,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};
	struct soft_cq *cq = make_cq(context, &attr);

	return cq ? &cq->ibv : NULL;
}

/** cq_create_ex() - ibv_create_cq_ex(). EINVAL: unknown bits, no parent domain; EOPNOTSUPP:
 *  completion fields that no port of the adapter has */
struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	bool flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS;
	bool parent = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD;
	struct soft_cq *cq;

	if (attr->comp_mask & ~(uint32_t)SUPPORTED_COMP_MASK ||
	    (flags && attr->flags & ~(uint32_t)SUPPORTED_FLAGS) ||
	    attr->wc_flags & ~(uint64_t)IBV_CREATE_CQ_SUP_WC_FLAGS ||
	    (parent && (!attr->parent_domain || attr->parent_domain->context != context ||
			!pd_is_parent(attr->parent_domain))))
		return verbs_null(-EINVAL);
	if (attr->wc_flags & ~(uint64_t)SUPPORTED_WC_FLAGS ||
	    (attr->wc_flags & ETHERNET_WC_FLAGS && !device_has_ethernet(to_context(context))))
		return verbs_null(-EOPNOTSUPP);
	if (attr->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP &&
	    !to_context(context)->attr.completion_timestamp_mask)
		return verbs_null(-EOPNOTSUPP);
	cq = make_cq(context, attr);
	if (!cq)
		return NULL;
	cq->single_threaded = flags && attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	cq_ex_fill(cq, attr->wc_flags);
	return &cq->ex;
}

/**
 * ibv_resize_cq() - at least @cqe entries from now on; keeps completions
 * Return: 0; EINVAL when they would not fit, or size; EIO
 */
EXPORT int ibv_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct soft_context *ctx = to_context(ibcq->context);
	struct ib_uverbs_resize_cq req = {.cq_handle = ibcq->handle, .cqe = (uint32_t)cqe};
	struct ib_uverbs_resize_cq_resp resp;
	struct soft_cq *cq = to_cq(ibcq);
	int rc;

	if (cqe < 1 || cqe > ctx->attr.orig_attr.max_cqe)
		return verbs_err(-EINVAL);
	rc = eng_cq_resize(cq->eng, (uint32_t)cqe);
	if (rc)
		return verbs_err(rc);
	rc = session_command(ctx, IB_USER_VERBS_CMD_RESIZE_CQ, &req, sizeof(req), &resp,
			     sizeof(resp));
	if (rc) {
		eng_cq_resize(cq->eng, (uint32_t)ibcq->cqe);
		return verbs_err(rc);
	}
	ibcq->cqe = cqe;
	return 0;
}

/**
 * cq_modify() - ibv_modify_cq(): how many completions an event waits for, and how long
 * Return: 0; EINVAL other attributes, or beyond the device's cq_mod_caps; EOPNOTSUPP it has none
 */
int cq_modify(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	const struct ibv_cq_moderation_caps *caps = &to_context(ibcq->context)->attr.cq_mod_caps;
	const struct ibv_moderate_cq *m = &attr->moderate;

	if (!caps->max_cq_count)
		return verbs_err(-EOPNOTSUPP);
	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE || m->cq_count > caps->max_cq_count ||
	    m->cq_period > caps->max_cq_period)
		return verbs_err(-EINVAL);
	eng_cq_moderate(to_cq(ibcq)->eng, m->cq_count, m->cq_period * NSEC_PER_USEC);
	return 0;
}

static void wait_for_acks(struct soft_context *ctx, struct soft_cq *cq)
{
	pthread_mutex_lock(&cq->ibv.mutex);
	while (cq->ibv.comp_events_completed != cq->events_reported)
		pthread_cond_wait(&cq->ibv.cond, &cq->ibv.mutex);
	pthread_mutex_unlock(&cq->ibv.mutex);
	object_wait(ctx, &cq->object, &cq->ibv.mutex, &cq->ibv.cond,
		    &cq->ibv.async_events_completed);
}

/**
 * ibv_destroy_cq() - Context: waits until every event got from the channel
 * is acknowledged. Return: 0; EBUSY while a QP uses it
 */
EXPORT int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct soft_context *ctx = to_context(ibcq->context);
	struct ib_uverbs_destroy_cq req = {.cq_handle = ibcq->handle};
	struct ib_uverbs_destroy_cq_resp resp;
	struct soft_cq *cq = to_cq(ibcq);
	int rc = session_destroy(ctx, IB_USER_VERBS_CMD_DESTROY_CQ, &req, sizeof(req), &resp,
				 sizeof(resp));

	if (rc)
		return verbs_err(rc);
	object_hide(ctx, &cq->object);
	if (!ctx->forked) { /* in a child, the queue and the channel's descriptor are the parent's */
		eng_cq_destroy(cq->eng);
		progress_disarmed(ctx, cq);
		channel_forget_cq(cq);
		object_purge(ctx, &cq->object);
		wait_for_acks(ctx, cq);
	}
	hold_channel(ibcq->channel, -1);
	if (cq->parent)
		pd_release(cq->parent);
	free(cq);
	return 0;
}

/**
 * cq_poll() - ibv_poll_cq(): the hot path, no message
 *
 * A program that finds nothing for a while, and moves nothing, gives its core away:
 * the peer, or softibd, may need it to answer. Where cores are free this is a short
 * call.
 */
int cq_poll(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct soft_cq *cq = to_cq(ibcq);
	int found;

	progress_polled(&to_context(ibcq->context)->progress);
	found = eng_cq_poll(cq->eng, n, wc);
	if (found)
		poll_yield_found(&cq->yield);
	else if (!eng_moved(to_context(ibcq->context)->engine) && poll_yield_empty(&cq->yield))
		progress_ring_overdue(to_context(ibcq->context));
	return found;
}

int cq_req_notify(struct ibv_cq *ibcq, int solicited_only)
{
	struct soft_context *ctx = to_context(ibcq->context);
	struct soft_cq *cq = to_cq(ibcq);

	progress_armed(ctx, cq);
	eng_cq_arm(cq->eng, solicited_only != 0);
	return 0;
}
