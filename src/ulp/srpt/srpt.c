/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Targets and their logical units: their creation, search and end. */
#include <errno.h>

#include "base/bytes.h"
#include "ulp/srpt/private.h"

static const struct ib_client srpt_client;

/* --- units --- */

struct srpt_unit *srpt_unit_of(struct srpt *srpt, const u8 lun[8])
{
	int i = scsi_lun_index(lun);

	return i >= 0 && i < SCSI_MAX_LUNS ? srpt->unit[i] : NULL;
}

void srpt_unit_release(struct srpt_unit *unit)
{
	unit->users--;
	if (!unit->users && !unit->srpt)
		rt_work_queue(unit->rt, &unit->gone);
}

/* Tell all initiators that the units have changed. Each gets an asynchronous event on one of its
 * channels at once, and a unit attention with its next command for any unit (SPC-4 6.33). */
static void tell_of_units(struct srpt *srpt)
{
	struct srpt_initiator *i;
	struct srpt_channel *ch;

	list_for_each_entry(i, &srpt->initiators, node) {
		for (unsigned int lun = 0; lun < SCSI_MAX_LUNS; lun++)
			if (srpt->unit[lun] && !i->nexus[lun].attention)
				i->nexus[lun].attention = SCSI_LUNS_CHANGED;
		list_for_each_entry(ch, &srpt->channels, node)
			if (ch->initiator == i && !ch->ending) {
				srpt_channel_report(ch, SCSI_LUNS_CHANGED);
				break;
			}
	}
}

static void detach_unit(struct srpt *srpt, unsigned int lun)
{
	struct srpt_unit *unit = srpt->unit[lun];

	srpt->unit[lun] = NULL;
	srpt->scsi.units[lun] = NULL;
	srpt->nr_units--;
	unit->srpt = NULL;
	list_add_tail(&unit->node, &srpt_fabric_of(unit->rt)->leaving);
	if (!unit->users)
		srpt_unit_leave(unit);
}

/* Return: a name made from adapter, LUN and medium (FNV-1a of the three), so that a host can tell
 * from the name that a LUN is not the same disk any more. */
static u64 name_unit(const u64 parts[3])
{
	const u8 *byte = (const u8 *)parts;
	u64 hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < 3 * sizeof(*parts); i++)
		hash = (hash ^ byte[i]) * 0x100000001b3;
	return hash;
}

static void give_lun(struct srpt *srpt, struct srpt_unit *unit, unsigned int lun)
{
	struct srpt_initiator *i;

	unit->srpt = srpt;
	unit->lun = lun;
	unit->scsi.id = name_unit((const u64[3]){srpt->guid, lun, unit->file});
	list_for_each_entry(i, &srpt->initiators, node)
		i->nexus[lun].attention = SCSI_POWER_ON;
	srpt->unit[lun] = unit;
	srpt->scsi.units[lun] = &unit->scsi;
	srpt->nr_units++;
}

/* --- targets --- */

static struct srpt_adapter *find_adapter(struct ib_device *device)
{
	return ib_get_client_data(device, &srpt_client);
}

static bool has_targets(const struct srpt_adapter *adapter)
{
	for (unsigned int i = 0; i < SRP_CONTROLLERS; i++)
		if (adapter->target[i])
			return true;
	return false;
}

static void close_adapter(struct srpt_adapter *adapter)
{
	ib_set_client_data(adapter->device, &srpt_client, NULL);
	srpt_agent_close(adapter);
	rt_free(adapter);
}

/* Return: the adapter of @device, which is made if need be; NULL: no memory */
static struct srpt_adapter *open_adapter(struct ib_device *device)
{
	struct srpt_adapter *a = find_adapter(device);

	if (a)
		return a;
	a = rt_zalloc(sizeof(*a));
	if (!a)
		return NULL;
	a->device = device;
	ib_set_client_data(device, &srpt_client, a);
	return a;
}

/* A target was added or removed: announce it, or free the adapter if it was the last one. */
static void follow_targets(struct srpt_adapter *adapter)
{
	adapter->change_id++;
	if (has_targets(adapter))
		srpt_agent_announce(adapter);
	else
		close_adapter(adapter);
}

static void close_target(struct srpt *srpt)
{
	struct srpt_initiator *initiator, *next;

	srpt->adapter->target[srpt->slot - 1] = NULL;
	if (srpt->listener)
		ib_destroy_cm_id(srpt->listener);
	while (!list_empty(&srpt->channels))
		srpt_channel_close(
			list_first_entry(&srpt->channels, struct srpt_channel, node));
	/* initiators whose channels still have commands exist longer than the target */
	list_for_each_entry_safe(initiator, next, &srpt->initiators, node)
		list_del(&initiator->node);
	for (unsigned int lun = 0; lun < SCSI_MAX_LUNS; lun++)
		if (srpt->unit[lun])
			detach_unit(srpt, lun);
	if (srpt->pd)
		ib_dealloc_pd(srpt->pd);
	follow_targets(srpt->adapter);
	rt_free(srpt);
}

/* Let the adapter's device management agent report @srpt. Return: 0; -errno */
static int publish(struct srpt *srpt)
{
	struct srpt_adapter *adapter = srpt->adapter;

	adapter->change_id++;
	if (!adapter->agent)
		return srpt_agent_open(adapter);
	srpt_agent_announce(adapter);
	return 0;
}

/* Create the target in a slot. Return: 0 and *@srpt; -errno */
static int open_target(struct ib_device *device, unsigned int slot, struct srpt **srpt)
{
	struct srpt *s = rt_zalloc(sizeof(*s));
	struct ib_pd *pd;
	int ret;

	if (s)
		s->adapter = open_adapter(device);
	if (!s || !s->adapter) {
		rt_free(s);
		return -ENOMEM;
	}
	s->device = device;
	s->slot = slot;
	s->guid = srp_controller_guid(be64_to_cpu(device->node_guid), slot);
	INIT_LIST_HEAD(&s->channels);
	INIT_LIST_HEAD(&s->initiators);
	s->adapter->target[slot - 1] = s;
	pd = ib_alloc_pd(device, 0);
	ret = IS_ERR(pd) ? (int)PTR_ERR(pd) : 0;
	if (!ret) {
		s->pd = pd;
		ret = srpt_listen(s);
	}
	if (!ret)
		ret = publish(s);
	if (ret) {
		close_target(s);
		return ret;
	}
	*srpt = s;
	return 0;
}

static int free_lun(const struct srpt *srpt)
{
	for (int lun = 0; lun < SCSI_MAX_LUNS; lun++)
		if (!srpt->unit[lun])
			return lun;
	return -ENOSPC;
}

int srpt_unit_attach(struct ib_device *device, unsigned int slot, struct srpt_unit *unit)
{
	struct srpt *srpt = srpt_find(device, slot);
	int lun = srpt ? free_lun(srpt) : 0;
	int ret = srpt || lun < 0 ? 0 : open_target(device, slot, &srpt);

	if (lun < 0 || ret)
		return lun < 0 ? lun : ret;
	give_lun(srpt, unit, (unsigned int)lun);
	tell_of_units(srpt);
	return 0;
}

int srpt_unit_remove(struct ib_device *device, unsigned int slot, unsigned int lun)
{
	struct srpt *srpt = srpt_find(device, slot);

	if (!srpt || lun >= SCSI_MAX_LUNS || !srpt->unit[lun])
		return -ENOENT;
	if (srpt->nr_units == 1) {
		close_target(srpt);
		return 0;
	}
	detach_unit(srpt, lun);
	tell_of_units(srpt);
	return 0;
}

int srpt_remove(struct ib_device *device, unsigned int slot)
{
	struct srpt *srpt;
	int ret = -ENOENT;

	for (unsigned int i = 1; i <= SRP_CONTROLLERS; i++) {
		srpt = !slot || slot == i ? srpt_find(device, i) : NULL;
		if (!srpt)
			continue;
		close_target(srpt);
		ret = 0;
	}
	return ret;
}

/* --- search --- */

struct srpt *srpt_find(struct ib_device *device, unsigned int slot)
{
	struct srpt_adapter *adapter = find_adapter(device);

	return adapter && slot && slot <= SRP_CONTROLLERS ? adapter->target[slot - 1] : NULL;
}

u64 srpt_guid(const struct srpt *srpt)
{
	return srpt->guid;
}

u64 srpt_service_id(const struct srpt *srpt)
{
	return srp_service_id(srpt->guid);
}

int srpt_each_unit(struct srpt *srpt,
		   int (*fn)(void *ctx, const struct srpt_unit_info *info), void *ctx)
{
	int ret = 0;

	for (unsigned int lun = 0; !ret && lun < SCSI_MAX_LUNS; lun++) {
		const struct srpt_unit *u = srpt->unit[lun];

		if (u)
			ret = fn(ctx,
				 &(struct srpt_unit_info){
					 .lun = lun,
					 .name = u->name,
					 .bytes = u->scsi.nr_blocks * u->scsi.block_bytes,
					 .block_bytes = u->scsi.block_bytes,
					 .read_only = u->scsi.read_only,
					 .write_through =
						 !u->scsi.write_back && !u->in_memory,
					 .sparse = u->sparse,
					 .in_memory = u->in_memory,
					 .keeps_reservations = u->kept_fd >= 0,
				 });
	}
	return ret;
}

int srpt_each_channel(struct srpt *srpt,
		      int (*fn)(void *ctx, const struct srpt_channel_info *info),
		      void *ctx)
{
	struct srpt_channel *ch;
	int ret = 0;

	list_for_each_entry(ch, &srpt->channels, node) {
		struct srpt_channel_info info = {
			.gid = ch->gid,
			.port_num = ch->port_num,
			.qpn = ch->qp->qp_num,
			.outstanding = ch->credits.outstanding,
			.limit = ch->credits.limit,
			.commands = ch->commands,
		};

		memcpy(info.initiator, ch->initiator->id, sizeof(info.initiator));
		ret = fn(ctx, &info);
		if (ret)
			break;
	}
	return ret;
}

/* --- devices --- */

static int add_device(struct ib_device *device)
{
	ib_set_client_data(device, &srpt_client, NULL);
	return 0;
}

static void remove_device(struct ib_device *device, void *client_data)
{
	srpt_adding_lose(srpt_fabric_of(device->rt), device);
	if (client_data)
		srpt_remove(device, 0);
}

static const struct ib_client srpt_client = {
	.name = "srpt",
	.add = add_device,
	.remove = remove_device,
};

static void init_fabric(struct rt *rt, void *state)
{
	struct srpt_fabric *fabric = state;

	INIT_LIST_HEAD(&fabric->adding);
	INIT_LIST_HEAD(&fabric->leaving);
}

int srpt_init(struct rt *rt)
{
	int ret;

	if (srpt_fabric_of(rt))
		return -EEXIST;
	if (!rt_local_get(rt, RT_LOCAL_SRPT, sizeof(struct srpt_fabric), init_fabric))
		return -ENOMEM;
	ret = ib_register_client(rt, &srpt_client);
	if (ret)
		rt_local_free(rt, RT_LOCAL_SRPT);
	return ret;
}

void srpt_cleanup(struct rt *rt)
{
	struct srpt_fabric *fabric = srpt_fabric_of(rt);

	if (!fabric)
		return;
	ib_unregister_client(rt, &srpt_client);
	srpt_adding_finish(fabric);
	while (!list_empty(&fabric->leaving))
		srpt_unit_finish(list_first_entry(&fabric->leaving, struct srpt_unit, node));
	rt_local_free(rt, RT_LOCAL_SRPT);
}
