/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lanes. softibd creates a lane, adds its counters to those of the fabric's
 * ports, and tells each end when the other end is gone. It never reads the
 * packets in a lane.
 *
 * A program asks softibd to resolve a flow (hca_lane_resolve). If no rule,
 * filter or capture affects packets on the flow's way, and another program owns
 * the destination QP at its end, the flow gets a slot in the lane from the one
 * program to the other. The lane is created with its first slot. Flows that
 * differ in nothing but the destination QPN share a slot. The answer is valid
 * for one route epoch. A slot keeps its way until the flow is resolved again,
 * so that packets sent before a change are counted on the ports they passed.
 * softibd maps a lane and keeps no descriptor of it: the two programs own its
 * memory and its doorbell.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/doorbell.h"
#include "abi/lane.h"
#include "hca/private.h"
#include "runtime/posix/closer.h"

#define LANES_PER_USER 4096
/* A program may refuse a lane for lack of resources. It is offered lanes again
 * after a back-off time, which doubles with each refusal and starts at the
 * minimum again when the last refusal is long ago. */
#define REFUSED_MIN_NS (1 * NSEC_PER_SEC)
#define REFUSED_MAX_NS (64 * NSEC_PER_SEC)

/** struct flow - a slot of a lane: the counters of one way. All QPs at the end of the way share
 *  them */
struct flow {
	struct abi_resolve key; /* dest_qpn is ignored */
	uint32_t epoch;		/* route epoch in which the slot may be used */
	struct fab_way *way;	/* NULL: the slot is free */
	struct hca_lane *lane;
	uint64_t packets, dwords; /* these have been added to the ports' counters */
};

struct hca_lane {
	struct list_head in_from, in_to;
	struct hca_user *from, *to;
	unsigned port_num; /* the sender's port */
	struct wire_port_addrs source; /* its addresses; the receiver was told these, and @pkey */
	uint16_t pkey;
	uint32_t id;
	struct abi_lane *memory;
	struct flow flow[ABI_LANE_FLOWS];
};

/* --- counters --- */

static void fold_flow(struct hca_lane *lane, unsigned i)
{
	struct flow *f = &lane->flow[i];
	struct abi_flow_count *c = &lane->memory->flow[i];
	uint64_t packets, dwords;

	if (!f->way)
		return;
	packets = atomic_load_explicit(&c->packets, memory_order_relaxed);
	dwords = atomic_load_explicit(&c->dwords, memory_order_relaxed);
	if (packets == f->packets)
		return;
	fab_way_count(f->way, packets - f->packets, dwords - f->dwords);
	f->packets = packets;
	f->dwords = dwords;
}

static void way_moved(void *ctx)
{
	const struct flow *f = ctx;

	hca_route_moved(f->lane->from->hca);
}

static void fold(void *ctx)
{
	struct flow *f = ctx;

	fold_flow(f->lane, (unsigned)(f - f->lane->flow));
}

/* --- messages to the ends --- */

enum { MEMORY, DOORBELL, LANE_FDS = HCA_LANE_FDS };

/* Announce the lane to its receiver. Return: false: the receiver's socket has no room */
static bool announce(const struct hca_lane *lane, const int fds[LANE_FDS])
{
	struct abi_lane_event event = {
		.kind = ABI_LANE_IN,
		.lane = lane->id,
		.slid = (uint16_t)lane->source.base,
		.slid_mask = (uint16_t)lane->source.mask,
		.pkey = lane->pkey,
		.owner = lane->from->owner,
	};

	return hca_lane_announce(lane->to, &event, fds);
}

/* --- ports --- */

/* The current attributes of the port. The page that programs see is updated a little later. */
static const struct ag_port *port_of(const struct hca_user *user, unsigned port_num)
{
	return &fab_node(user->hca->fab, user->hca->node)->port[port_num];
}

static struct wire_port_addrs addrs_of(const struct ag_port *port)
{
	return wire_port_addrs(port->lid, port->lmc);
}

static bool has_pkey(const struct ag_port *port, uint16_t pkey)
{
	for (unsigned i = 0; i < port->num_pkeys && wire_pkey_is_valid(pkey); i++)
		if (port->pkeys[i] == pkey)
			return true;
	return false;
}

/* --- lanes --- */

static void close_fds(const int fds[LANE_FDS])
{
	int error = errno;

	for (int i = 0; i < LANE_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	errno = error;
}

/* Make the memory and the doorbell of a lane, and map the memory. Return: 0, and the caller owns both
 * descriptors; -errno */
static int map_lane(struct hca_lane *lane, int fds[LANE_FDS])
{
	fds[MEMORY] = memfd_create("softib-lane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	fds[DOORBELL] = abi_doorbell_open();
	if (fds[MEMORY] < 0 || fds[DOORBELL] < 0 ||
	    ftruncate(fds[MEMORY], (off_t)abi_lane_bytes()) ||
	    fcntl(fds[MEMORY], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		goto undo_fds;
	lane->memory = mmap(NULL, abi_lane_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
			    fds[MEMORY], 0);
	if (lane->memory != MAP_FAILED)
		return 0;
	lane->memory = NULL;
undo_fds:
	close_fds(fds);
	return -errno;
}

static void free_lane(struct hca_lane *lane)
{
	for (unsigned i = 0; lane->memory && i < ABI_LANE_FLOWS; i++) {
		fold_flow(lane, i);
		if (lane->flow[i].way)
			fab_way_free(lane->flow[i].way);
	}
	list_del(&lane->in_from);
	list_del(&lane->in_to);
	if (lane->memory)
		munmap(lane->memory, abi_lane_bytes());
	rt_free(lane);
}

/* The sender continues through softibd. What it had sent by the lane and was not received is lost,
 * as on a bad link. */
static void end_for_sender(struct hca_lane *lane)
{
	struct abi_lane_event event = {.kind = ABI_LANE_OUT_GONE, .lane = lane->id};

	hca_lane_notify(lane->from, &event);
	lane->from->num_lanes--;
	free_lane(lane);
}

static void end_for_receiver(struct hca_lane *lane)
{
	struct abi_lane_event event = {.kind = ABI_LANE_IN_GONE, .lane = lane->id};

	if (lane->to != lane->from)
		hca_lane_notify(lane->to, &event);
	lane->from->num_lanes--;
	free_lane(lane);
}

/* End a lane at both ends: the sender may ignore its notification and go on writing, so the
 * receiver is notified as well. */
static void cut(struct hca_lane *lane)
{
	hca_lane_notify(lane->to,
		      &(struct abi_lane_event){.kind = ABI_LANE_IN_CUT, .lane = lane->id});
	end_for_sender(lane);
}

/* --- ports that change --- */

/* Has the sender's port still the addresses and the P_Key that the receiver was told? */
static bool is_current(const struct hca_lane *lane)
{
	const struct ag_port *port = port_of(lane->from, lane->port_num);
	const struct wire_port_addrs now = addrs_of(port);

	return lane->source.base == now.base && lane->source.mask == now.mask &&
	       has_pkey(port, lane->pkey);
}

void hca_lanes_check(struct hca *hca)
{
	struct ib_ucontext *context;

	list_for_each_entry(context, &hca->ib.ucontext_list, node) {
		struct hca_user *user = container_of(context, struct hca_user, ib);
		struct hca_lane *lane, *tmp;

		list_for_each_entry_safe(lane, tmp, &user->lanes_out, in_from)
			if (!is_current(lane))
				cut(lane);
	}
}

/* --- flows --- */

static struct hca_lane *find_lane(const struct hca_user *from, const struct hca_user *to,
				  const struct abi_resolve *key)
{
	struct hca_lane *lane;

	list_for_each_entry(lane, &from->lanes_out, in_from)
		if (lane->to == to && lane->port_num == key->port_num &&
		    lane->pkey == key->pkey && is_current(lane))
			return lane;
	return NULL;
}

static bool has_refused(const struct hca_user *user)
{
	return mono_before(rt_now(user->hca->rt), user->refused_until);
}

static void note_refusal(struct hca_user *user)
{
	const mono_t now = rt_now(user->hca->rt), calm = mono_add(user->refused_until, user->refused_ns);

	user->refused_ns = mono_before(now, calm) ? MIN(2 * user->refused_ns, REFUSED_MAX_NS) :
						    REFUSED_MIN_NS;
	user->refused_until = mono_add(now, user->refused_ns);
}

/* @fds: set on success; the descriptors of the lane for its sender */
static struct hca_lane *make_lane(struct hca_user *from, struct hca_user *to,
				  const struct abi_resolve *key, int fds[LANE_FDS])
{
	const struct ag_port *port = port_of(from, key->port_num);
	struct hca_lane *lane;

	if (from->num_lanes >= LANES_PER_USER || !hca_lane_takes_events(to) || to->broken ||
	    has_refused(from) || has_refused(to))
		return NULL;
	lane = rt_zalloc(sizeof(*lane));
	if (!lane)
		return NULL;
	INIT_LIST_HEAD(&lane->in_from);
	INIT_LIST_HEAD(&lane->in_to);
	lane->from = from;
	lane->to = to;
	lane->port_num = key->port_num;
	lane->source = addrs_of(port);
	lane->pkey = key->pkey;
	lane->id = from->hca->set->next_lane++;
	if (map_lane(lane, fds)) {
		free_lane(lane);
		return NULL;
	}
	list_add_tail(&lane->in_from, &from->lanes_out);
	list_add_tail(&lane->in_to, &to->lanes_in);
	from->num_lanes++;
	if (!announce(lane, fds)) { /* the receiver would not read what the sender writes */
		from->num_lanes--;
		free_lane(lane);
		close_fds(fds);
		return NULL;
	}
	return lane;
}

static bool same_way(const struct abi_resolve *a, const struct abi_resolve *b)
{
	return a->port_num == b->port_num && a->dlid == b->dlid && a->pkey == b->pkey &&
	       a->sl == b->sl;
}

/* Return: the slot that the flow has already, or a free one; -1: no slot is free */
static int find_slot(struct hca_lane *lane, const struct abi_resolve *key)
{
	int unused = -1;

	for (int i = 0; i < ABI_LANE_FLOWS; i++) {
		if (!lane->flow[i].way)
			unused = unused < 0 ? i : unused;
		else if (same_way(&lane->flow[i].key, key))
			return i;
	}
	return unused;
}

/* When no slot is free, reuse one whose way is of an earlier epoch. */
static int reclaim_slot(struct hca_lane *lane, uint32_t epoch)
{
	for (int i = 0; i < ABI_LANE_FLOWS; i++) {
		struct flow *f = &lane->flow[i];

		if (f->epoch == epoch)
			continue;
		fold_flow(lane, (unsigned)i);
		fab_way_free(f->way);
		f->way = NULL;
		return i;
	}
	return -1;
}

static int take_slot(struct hca_lane *lane, const struct abi_resolve *key, uint32_t epoch,
		     struct fab_way *way)
{
	int i = find_slot(lane, key);

	if (i < 0)
		i = reclaim_slot(lane, epoch);
	if (i < 0)
		return -1;
	fold_flow(lane, (unsigned)i);
	if (lane->flow[i].way)
		fab_way_free(lane->flow[i].way);
	lane->flow[i].way = way;
	lane->flow[i].lane = lane;
	lane->flow[i].key = *key;
	lane->flow[i].epoch = epoch;
	fab_way_use(way, &(struct fab_way_user){.moved = way_moved,
						.fold = fold,
						.ctx = &lane->flow[i]});
	return i;
}

/* All packets from and to an XRC target that several programs share pass through softibd. */
static bool is_of_shared_target(const struct hca *from, const struct hca_qp *to)
{
	const struct hca_qp *peer = eng_table_get(&from->qps, to->ib.attr.dest_qp_num & 0xffffff);

	return hca_target_is_shared(to) ||
	       (to->ib.qp_type == IB_QPT_XRC_INI && peer && hca_target_is_shared(peer));
}

/* Return: the program that owns the QP at the end of the way; NULL: no program owns it, or its
 * packets must pass through softibd */
static struct hca_user *owner_at(const struct hca *from, const struct fab_way *way, uint32_t qpn)
{
	const struct fab_sink *sink = fab_way_sink(way);
	struct hca_port *port = sink->ctx;
	struct hca_qp *qp = sink->deliver == hca_port_deliver && qpn >= 2 ?
				    eng_table_get(&port->hca->qps, qpn) :
				    NULL;

	return qp && !is_of_shared_target(from, qp) ? qp->user : NULL;
}

static bool flow_is_sound(const struct hca_user *user, const struct abi_resolve *in)
{
	const struct ag_port *port;

	if (in->port_num < 1 || in->port_num > user->hca->ib.phys_port_cnt || in->sl > 15)
		return false;
	port = port_of(user, in->port_num);
	/* The request has no source address, because each record has its own. So only the
	 * destination is compared with the VLANs of the port. */
	if (!hca_vlan_is_ours(user->hca, in->port_num, in->dlid, in->dlid))
		return false;
	return port->lid != 0 && has_pkey(port, in->pkey);
}

int hca_lane_resolve(struct hca_user *user, const struct abi_resolve *in,
		     struct abi_resolve_resp *out, int fds[LANE_FDS], unsigned int *num_fds)
{
	struct hca_user *to;
	struct hca_lane *lane;
	struct fab_way *way;
	int slot;

	*num_fds = 0;
	*out = (struct abi_resolve_resp){.lane = ABI_NO_LANE, .epoch = user->hca->route_epoch};
	if (user->broken || !flow_is_sound(user, in) ||
	    fab_way_create(user->hca->fab, user->hca->node, (int)in->port_num, in->dlid, in->sl,
			   in->pkey, &way))
		return 0;
	to = owner_at(user->hca, way, in->dest_qpn);
	out->owner = to ? to->owner : 0;
	lane = to ? find_lane(user, to, in) : NULL;
	if (to && to->lanes_dead) { /* the receiver may not have read the announcement of the lane */
		to = NULL;
		lane = NULL;
	}
	if (to && !lane && fds) {
		lane = make_lane(user, to, in, fds);
		*num_fds = lane ? LANE_FDS : 0;
	}
	slot = lane ? take_slot(lane, in, out->epoch, way) : -1;
	out->mtu_bytes = fab_way_mtu(way);
	if (lane)
		out->lane = lane->id;
	if (slot < 0) {
		fab_way_free(way);
		out->epoch--; /* an epoch that is over: the lane exists, but the sender must not use it */
		return 0;
	}
	out->flow = (uint32_t)slot;
	return 0;
}

static bool is_to(const struct hca_user *user, uint32_t id)
{
	const struct hca_lane *lane;

	list_for_each_entry(lane, &user->lanes_in, in_to)
		if (lane->id == id)
			return true;
	return false;
}

static void bad_qkeys(struct hca_user *user, const struct abi_lane_event *event)
{
	const struct hca_qp *qp = eng_table_get(&user->hca->qps, event->dest_qpn & 0xffffff);

	if (!is_to(user, event->lane))
		return;
	if (qp && qp->user == user)
		hca_qkey_violations(qp, event);
	hca_lane_notify(user, &(struct abi_lane_event){.kind = ABI_LANE_BAD_QKEY,
						     .lane = event->lane});
}

static void refused(struct hca_user *user, uint32_t id)
{
	struct hca_lane *lane, *tmp;

	list_for_each_entry_safe(lane, tmp, &user->lanes_in, in_to) {
		if (lane->id != id)
			continue;
		note_refusal(user);
		end_for_sender(lane);
	}
	list_for_each_entry_safe(lane, tmp, &user->lanes_out, in_from) {
		if (lane->id != id)
			continue;
		note_refusal(user);
		end_for_receiver(lane);
	}
}

void hca_lanes_readable(struct rt_io *io, bool readable, bool writable)
{
	struct hca_user *user = container_of(io, struct hca_user, lanes_io);
	struct abi_lane_event event;
	ssize_t n;

	if (writable)
		hca_lane_notify_rest(user);
	n = rt_receive(user->lanes_fd, &event, sizeof(event), MSG_DONTWAIT, NULL, 0);
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) { /* the program has closed its end: the session ends, or it wants no more lanes */
		user->lanes_dead = true;
		rt_io_watch(io, false, false);
		return;
	}
	if (n != (ssize_t)sizeof(event))
		return;
	if (event.kind == ABI_LANE_REFUSED)
		refused(user, event.lane);
	else if (event.kind == ABI_LANE_BAD_QKEY)
		bad_qkeys(user, &event);
}

void hca_lanes_drop(struct hca_user *user)
{
	while (!list_empty(&user->lanes_out))
		end_for_receiver(list_first_entry(&user->lanes_out, struct hca_lane, in_from));
	while (!list_empty(&user->lanes_in))
		end_for_sender(list_first_entry(&user->lanes_in, struct hca_lane, in_to));
	hca_lane_notify(user, &(struct abi_lane_event){.kind = ABI_LANE_CLOSED});
	hca_lane_forget_unsent(user);
}
