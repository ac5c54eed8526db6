/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Units whose files are being examined. Events, and what follows:
 *
 *  examined, success    the unit is attached, and done() called
 *  examined, failure    the unit leaves; done() is called when its files are closed, so that its caller
 *                       can use the file of its reservations again at once
 *  examined, -ETXTBSY   if a unit that was removed has that file still: as soon as that one has left, this
 *                       one is examined again
 *  forgotten, or its device removed: it leaves when it has been examined
 */
#include <errno.h>

#include "ulp/srpt/private.h"

static void refuse(struct srpt_adding *a, int result)
{
	struct srpt_fabric *fabric = srpt_fabric_of(a->rt);

	a->result = result;
	a->waits = false;
	a->unit->adding = a;
	list_add_tail(&a->unit->node, &fabric->leaving);
	srpt_unit_leave(a->unit);
}

/* Has a unit that is leaving locked the file of @unit's reservations? */
static bool is_left_soon(const struct srpt_fabric *fabric, const struct srpt_unit *unit)
{
	const struct srpt_unit *u;

	list_for_each_entry(u, &fabric->leaving, node)
		if (u->kept_fd >= 0 && u->kept_file[0] == unit->kept_file[0] &&
		    u->kept_file[1] == unit->kept_file[1])
			return true;
	return false;
}

static void examine(struct srpt_job *job)
{
	struct srpt_adding *a = container_of(job, struct srpt_adding, job);

	a->result = srpt_unit_examine(a->unit);
}

static void examined(struct srpt_job *job)
{
	struct srpt_adding *a = container_of(job, struct srpt_adding, job);
	int ret = a->result;

	if (!a->done)
		ret = -ECANCELED;
	else if (!a->device)
		ret = -ENODEV;
	else if (ret == -ETXTBSY && is_left_soon(srpt_fabric_of(a->rt), a->unit))
		a->waits = true;
	else if (!ret)
		ret = srpt_unit_attach(a->device, a->slot, a->unit);
	if (a->waits)
		return;
	if (ret)
		refuse(a, ret);
	else
		srpt_adding_end(a, 0);
}

/* What is in memory is examined by the loop. */
static void turn(struct rt_work *work)
{
	struct srpt_adding *a = container_of(work, struct srpt_adding, turn);

	examine(&a->job);
	examined(&a->job);
}

static void begin(struct srpt_adding *a)
{
	a->waits = false;
	if (a->unit->worker)
		srpt_worker_add(a->unit->worker, &a->job);
	else
		rt_work_queue(a->rt, &a->turn);
}

int srpt_unit_add(struct ib_device *device, const struct srpt_unit_config *config,
		  void (*done)(void *ctx, int result, unsigned int lun), void *ctx,
		  struct srpt_adding **adding)
{
	struct srpt_fabric *fabric = srpt_fabric_of(device->rt);
	struct srpt_adding *a;
	int ret;

	if (fabric->nr_adding >= SRPT_ADDING_MOST)
		return -EAGAIN;
	a = rt_zalloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	ret = srpt_unit_make(device->rt, config, &a->unit);
	if (ret) {
		rt_free(a);
		return ret;
	}
	a->rt = device->rt;
	a->device = device;
	a->slot = config->slot;
	a->done = done;
	a->ctx = ctx;
	a->job.run = examine;
	a->job.done = examined;
	rt_work_init(&a->turn, turn);
	list_add_tail(&a->node, &fabric->adding);
	fabric->nr_adding++;
	begin(a);
	*adding = a;
	return 0;
}

void srpt_adding_end(struct srpt_adding *a, int result)
{
	const unsigned int lun = a->unit->lun;
	void (*done)(void *ctx, int result, unsigned int lun) = a->done;
	void *ctx = a->ctx;

	rt_work_cancel(&a->turn);
	list_del(&a->node);
	srpt_fabric_of(a->rt)->nr_adding--;
	rt_free(a);
	if (done)
		done(ctx, result, lun);
}

void srpt_adding_forget(struct srpt_adding *adding)
{
	adding->done = NULL;
	if (adding->waits)
		refuse(adding, -ECANCELED);
}

void srpt_adding_retry(struct srpt_fabric *fabric)
{
	struct srpt_adding *a;

	list_for_each_entry(a, &fabric->adding, node)
		if (a->waits)
			begin(a);
}

void srpt_adding_lose(struct srpt_fabric *fabric, const struct ib_device *device)
{
	struct srpt_adding *a;

	list_for_each_entry(a, &fabric->adding, node) {
		if (a->device != device)
			continue;
		a->device = NULL;
		if (a->waits)
			refuse(a, -ENODEV);
	}
}

void srpt_adding_finish(struct srpt_fabric *fabric)
{
	struct srpt_adding *a;

	list_for_each_entry(a, &fabric->adding, node) {
		a->device = NULL;
		if (a->unit->adding)
			continue; /* it is leaving */
		if (a->unit->worker && !a->waits)
			srpt_worker_finish(a->unit->worker);
		else
			refuse(a, -ENODEV);
	}
}
