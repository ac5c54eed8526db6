/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Completion queues that the core polls: each completion goes to the function that its work
 * request names (struct ib_cqe). */
#include <limits.h>

#include "core/private.h"

#define BATCH  16
#define BUDGET 256 /* completions that are handled before the loop continues with other work */
#define POOL_CQ_ENTRIES 1024 /* least number of entries of a shared CQ */

/* Call the functions of at most @budget completions. Return: the number of completions */
static int hand_over(struct ib_cq *cq, int budget)
{
	struct ib_wc wc[BATCH];
	int done = 0, n;

	while (done < budget && (n = ib_poll_cq(cq, MIN(BATCH, budget - done), wc)) > 0) {
		done += n;
		for (int i = 0; i < n; i++)
			if (wc[i].wr_cqe)
				wc[i].wr_cqe->done(cq, &wc[i]);
	}
	return done;
}

/* If the CQ is not empty when it is armed, the loop calls this handler again. */
static void on_completion(struct ib_cq *cq, void *context)
{
	hand_over(cq, BUDGET);
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
}

struct ib_cq *ib_alloc_cq_(struct ib_device *device, void *private, int nr_cqe, u32 comp_vector,
			   enum ib_poll_context poll_ctx, const char *client)
{
	const struct ib_cq_init_attr attr = {.cqe = (unsigned)nr_cqe, .comp_vector = comp_vector};
	bool direct = poll_ctx == IB_POLL_DIRECT;
	struct ib_cq *cq;
	int ret;

	if (nr_cqe < 1 || (unsigned)poll_ctx > IB_POLL_UNBOUND_WORKQUEUE)
		return ERR_PTR(-EINVAL);
	cq = ib_create_cq_(device, direct ? NULL : on_completion, NULL, private, &attr, client);
	if (IS_ERR(cq) || direct)
		return cq;
	ret = ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	if (ret >= 0)
		return cq;
	ib_destroy_cq(cq);
	return ERR_PTR(ret);
}

int ib_process_cq_direct(struct ib_cq *cq, int budget)
{
	return hand_over(cq, budget < 0 ? INT_MAX : budget);
}

/* --- CQs that are shared --- */

/* CQs are not shared between clients, because those of a module are destroyed with the module. */
static struct ib_cq *find_room(struct ib_device *device, unsigned int nr_cqe, const char *client)
{
	struct ib_cq *cq;

	list_for_each_entry(cq, &device->cq_pool, pool_node)
		if ((unsigned)cq->cqe - cq->cqe_used >= nr_cqe &&
		    !strncmp(cq->res.comm, client, sizeof(cq->res.comm) - 1))
			return cq;
	return NULL;
}

struct ib_cq *ib_cq_pool_get_(struct ib_device *device, unsigned int nr_cqe, int comp_vector_hint,
			      enum ib_poll_context poll_ctx, const char *client)
{
	unsigned int most = (unsigned)device->attrs.max_cqe;
	struct ib_cq *cq;

	if (poll_ctx == IB_POLL_DIRECT || !nr_cqe || nr_cqe > most)
		return ERR_PTR(-EINVAL);
	cq = find_room(device, nr_cqe, client);
	if (!cq) {
		unsigned int entries = MAX(nr_cqe, POOL_CQ_ENTRIES + 0u);

		cq = ib_alloc_cq_(device, NULL, (int)MIN(entries, most), 0, poll_ctx, client);
		if (IS_ERR(cq))
			return cq;
		list_add_tail(&cq->pool_node, &device->cq_pool);
	}
	cq->cqe_used += nr_cqe;
	return cq;
}

void ib_cq_pool_put(struct ib_cq *cq, unsigned int nr_cqe)
{
	cq->cqe_used -= MIN(nr_cqe, cq->cqe_used);
	if (!cq->cqe_used)
		ib_destroy_cq(cq);
}
