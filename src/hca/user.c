/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Programs. Each has a ring to softibd and a ring from it, in memory that both write, so
 * everything that is read from there is validated. A packet may leave if its headers are
 * consistent, its source is an address of the port, its partition is in the port's table, and
 * its source QP is neither QP0, QP1 nor that of another program. A program that corrupts its
 * rings is disconnected.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/lane.h"
#include "abi/objects.h"
#include "fabric/ethernet.h"
#include "hca/private.h"
#include "runtime/posix/closer.h"
#include "runtime/posix/doorbell.h"
#include "wire/frame.h"

#define PACKETS_PER_TURN 64

/* --- to the program --- */

static void ring_doorbell(int fd)
{
	uint64_t one = 1;

	/* The doorbell is a pipe, and only softibd has this open file description of its writing
	 * end. If a program shared it, it could make it blocking. */
	if (write(fd, &one, sizeof(one)) < 0) {
		/* EAGAIN: the pipe is full, so the sleeper is being woken already */
	}
}

void hca_users_flush(struct hca_set *set)
{
	while (!list_empty(&set->dirty)) {
		struct hca_user *user = list_first_entry(&set->dirty, struct hca_user, dirty);

		list_del(&user->dirty);
		if (abi_ring_publish(&user->tx))
			ring_doorbell(user->program_doorbell_fd);
	}
	rt_work_cancel(&set->flush);
}

static void flush(struct rt_work *work)
{
	hca_users_flush(container_of(work, struct hca_set, flush));
}

void hca_users_init(struct hca_set *set)
{
	INIT_LIST_HEAD(&set->dirty);
	rt_work_init(&set->flush, flush);
}

int hca_user_deliver(struct hca_user *user, const void *bytes, size_t len)
{
	void *room;

	if (user->broken)
		return 0;
	room = abi_ring_reserve(&user->tx, len);
	if (!room)
		return -EAGAIN;
	memcpy(room, bytes, len);
	abi_ring_commit(&user->tx, len);
	if (list_empty(&user->dirty)) {
		list_add_tail(&user->dirty, &user->hca->set->dirty);
		rt_work_queue(user->hca->rt, &user->hca->set->flush);
	}
	return 0;
}

bool hca_user_wants(const struct hca_user *user, const union wire_gid *gid)
{
	const struct hca_mcast *m;

	list_for_each_entry(m, &user->mcast, node)
		if (!memcmp(m->gid.raw, gid->raw, sizeof(m->gid.raw)))
			return true;
	return false;
}

/* --- from the program --- */

/* Return: the number of the port that has the packet's source address; 0: no port of the adapter
 * has it */
static unsigned source_port(const struct hca *hca, const struct fab_packet *pkt)
{
	for (unsigned i = 1; i <= hca->ib.phys_port_cnt; i++) {
		const struct abi_devport *port = hca_devport(hca, i);

		if (wire_addr_is_of(wire_addr_of_lid(pkt->lrh.slid),
				    wire_port_addrs(port->lid, port->lmc)))
			return i;
	}
	return 0;
}

static bool gid_is_ours(const struct abi_devport *port, union wire_gid gid)
{
	for (unsigned i = 0; i < ABI_GIDS; i++)
		if (!memcmp(port->gid[i], gid.raw, sizeof(gid.raw)))
			return true;
	return false;
}

static bool pkey_is_ours(const struct abi_devport *port, uint16_t pkey)
{
	for (unsigned i = 0; i < ABI_PKEYS; i++)
		if (port->pkey[i] == pkey && wire_pkey_is_valid(pkey))
			return true;
	return false;
}

bool hca_vlan_is_ours(const struct hca *hca, unsigned port_num, uint16_t slid, uint16_t dlid)
{
	return !fab_is_ethernet(hca->fab, hca->node, (int)port_num) ||
	       fab_ethernet_may_send(hca->fab, hca->node, (int)port_num, slid, dlid);
}

static bool may_leave(const struct hca_user *user, unsigned port_num, const struct fab_packet *pkt)
{
	const struct abi_devport *port = hca_devport(user->hca, port_num);
	const struct hca_qp *src;

	if (pkt->lrh.vl == WIRE_VL_MANAGEMENT || pkt->dest_qpn == 0)
		return false;
	if (pkt->lrh.lnh == WIRE_LNH_GRH && !gid_is_ours(port, fab_packet_grh(pkt).sgid))
		return false;
	if (!pkey_is_ours(port, pkt->pkey))
		return false;
	if (!hca_vlan_is_ours(user->hca, port_num, pkt->lrh.slid, pkt->lrh.dlid))
		return false;
	if (!(wire_opcodes[pkt->opcode].flags & WIRE_HAS_DETH))
		return true; /* packets of connected services do not have the source QPN */
	src = eng_table_get(&user->hca->qps, pkt->src_qpn);
	return src && src->user == user &&
	       (src->ib.qp_type == IB_QPT_RAW_PACKET) == (pkt->dest_qpn == WIRE_QPN_FRAME);
}

static bool is_held(const struct hca_user *user)
{
	return user->held_since.ns != MONO_NEVER.ns;
}

static void stop_retrying(struct hca_user *user)
{
	user->held_since = MONO_NEVER;
	user->retry_ns = FAB_RETRY_MIN_NS;
}

/* The destination has no room for the packet at the head of the ring. Offer it again from a
 * timer, because nothing reports when there is room.
 * Return: true if it has waited for the head-of-queue lifetime, and is dropped */
static bool retry_later(struct hca_user *user, unsigned port_num)
{
	struct hca *hca = user->hca;
	mono_t now = rt_now(hca->rt);

	if (!is_held(user))
		user->held_since = now;
	if (now.ns - user->held_since.ns >= FAB_HOQ_NS) {
		fab_discard(hca->fab, hca->node, (int)port_num);
		stop_retrying(user);
		return true;
	}
	rt_timer_arm(&user->retry, mono_add(now, user->retry_ns));
	user->retry_ns = MIN(2 * user->retry_ns, FAB_RETRY_MAX_NS);
	return false;
}

/* Return: false if the packet has to wait */
static bool forward(struct hca_user *user, const void *shared, size_t len)
{
	uint8_t bytes[WIRE_PACKET_MAX];
	struct hca *hca = user->hca;
	struct fab_packet pkt;
	unsigned port_num;

	if (len > sizeof(bytes))
		return true;
	/* send the bytes that were checked: the program may change the shared ones meanwhile */
	memcpy(bytes, shared, len);
	if (unlikely(len && bytes[0] == ABI_TARGET_MARK)) {
		hca_target_message(user, bytes, len);
		return true;
	}
	if (fab_packet_decode(&pkt, bytes, len) < 0)
		return true;
	pkt.source = 1 + (uint32_t)hca->node;
	pkt.owner = user->owner;
	port_num = source_port(hca, &pkt);
	if (unlikely(pkt.dest_qpn == WIRE_QPN_FRAME) && port_num &&
	    !hca_frame_route(hca, port_num, &pkt, bytes))
		return true;
	if (!port_num || !may_leave(user, port_num, &pkt))
		return true;
	if (fab_send(hca->fab, hca->node, (int)port_num, &pkt) == -EAGAIN)
		return retry_later(user, port_num);
	stop_retrying(user);
	return true;
}

static void try_again(struct rt_timer *timer)
{
	struct hca_user *user = container_of(timer, struct hca_user, retry);

	rt_poller_wake(user->hca->rt, &user->poller);
}

static void cut_off(struct hca_user *user)
{
	user->broken = true;
	rt_poller_del(&user->poller);
	rt_timer_disarm(&user->retry);
	rt_io_watch(&user->doorbell, false, false);
	ib_ucontext_fatal(&user->ib); /* takes effect later, since the caller still uses @user */
}

static bool user_poll(struct rt_poller *p)
{
	struct hca_user *user = container_of(p, struct hca_user, poller);
	const void *bytes;
	unsigned n = 0;
	size_t len = 0;

	if (rt_timer_armed(&user->retry))
		return false;
	while (n < PACKETS_PER_TURN && (bytes = abi_ring_peek(&user->rx, &len))) {
		if (!forward(user, bytes, len))
			break;
		abi_ring_skip(&user->rx);
		n++;
	}
	/* Publish before releasing: a program that finds its ring to softibd empty assumes that
	 * the packets are in the rings of their receivers (abi/lane.h). */
	hca_users_flush(user->hca->set);
	abi_ring_release(&user->rx);
	if (len == ABI_RING_WRAP)
		cut_off(user);
	return n > 0;
}

/* The poller forwards the packets, and no more of them in a turn than usual, so that a program
 * that fills its ring and destroys a QP does not delay others. */
bool hca_quiesce(struct ib_ucontext *context)
{
	struct hca_user *user = container_of(context, struct hca_user, ib);

	if (!user->broken && !user->quiet_at) {
		user->quiet_at = atomic_load_explicit(&user->rx.ring->tail, memory_order_acquire);
		rt_timer_disarm(&user->retry); /* offer it immediately, for the last time */
		user_poll(&user->poller);
		if (!user->broken)
			rt_poller_wake(user->hca->rt, &user->poller);
	}
	if (!user->broken && !is_held(user) && (int64_t)(user->quiet_at - user->rx.head) > 0)
		return false;
	user->quiet_at = 0;
	return true;
}

static bool user_prepare(struct rt_poller *p)
{
	struct hca_user *user = container_of(p, struct hca_user, poller);

	/* while a packet waits the doorbell is ignored, because the timer is armed */
	return !rt_timer_armed(&user->retry) && !abi_ring_sleep(&user->rx);
}

static void user_awake(struct rt_poller *p)
{
	abi_ring_wake(&container_of(p, struct hca_user, poller)->rx);
}

static void doorbell_rang(struct rt_io *io, bool readable, bool writable)
{
	struct hca_user *user = container_of(io, struct hca_user, doorbell);

	rt_doorbell_clear(io->ev.fd);
	rt_poller_wake(user->hca->rt, &user->poller);
}

/* --- coming and going --- */

static int make_link(struct hca_user *user)
{
	size_t ring = ALIGN_UP(abi_ring_bytes(ABI_LINK_RING_BYTES), (size_t)4096);
	size_t counters = user->hca->ib.phys_port_cnt * sizeof(*user->counters);
	struct abi_ring *out, *in;
	int fd = memfd_create("softib-link", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	user->fd[ABI_FD_LINK] = fd;
	user->link_bytes = 2 * ring + ALIGN_UP(counters, (size_t)4096);
	/* sealed: a program that shrinks it would cause a SIGBUS in softibd */
	if (ftruncate(fd, (off_t)user->link_bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	user->link_memory =
		mmap(NULL, user->link_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (user->link_memory == MAP_FAILED) {
		user->link_memory = NULL;
		return -errno;
	}
	out = user->link_memory;
	in = (void *)((char *)user->link_memory + ring);
	user->counters = (void *)((char *)user->link_memory + 2 * ring);
	abi_ring_init(out, ABI_LINK_RING_BYTES);
	abi_ring_init(in, ABI_LINK_RING_BYTES);
	user->rx = (struct abi_ring_rx){.ring = out, .size = ABI_LINK_RING_BYTES};
	user->tx = (struct abi_ring_tx){.ring = in, .size = ABI_LINK_RING_BYTES};
	user->resp = (struct abi_context_resp){
		.num_ports = user->hca->ib.phys_port_cnt,
		.ring_bytes = ABI_LINK_RING_BYTES,
		.to_daemon_offset = 0,
		.to_engine_offset = ring,
		.counters_offset = (uint32_t)(2 * ring),
		.program = user->owner,
	};
	return 0;
}

static int make_fds(struct hca_user *user)
{
	int pair[2];
	int ret = hca_page_share(user->hca);

	if (ret)
		return ret;
	user->fd[ABI_FD_DEVPAGE] = fcntl(user->hca->shared_fd, F_DUPFD_CLOEXEC, 0);
	user->fd[ABI_FD_DOORBELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (user->fd[ABI_FD_DEVPAGE] < 0 || user->fd[ABI_FD_DOORBELL] < 0)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	user->fd[ABI_FD_ASYNC_READ] = pair[0];
	user->fd[ABI_FD_ASYNC_WRITE] = pair[1];
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	user->fd[ABI_FD_PROGRAM_DOORBELL] = pair[0]; /* kept open here: writing never raises SIGPIPE */
	user->program_doorbell_fd = pair[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	user->fd[ABI_FD_LANES] = pair[0];
	user->lanes_fd = pair[1];
	rt_refuse_fds(user->lanes_fd);
	ret = hca_windows_open(user);
	return ret ? ret : make_link(user);
}

static void free_user(struct hca_user *user)
{
	if (user->link_memory)
		munmap(user->link_memory, user->link_bytes);
	/* the program has both ends of the sockets, and may have sent descriptors of any kind by
	 * them */
	for (unsigned i = ABI_FD_ASYNC_READ; i <= ABI_FD_ASYNC_WRITE; i++)
		rt_note_sender(user->fd[i], user->ib.pid);
	rt_close_foreign_all(user->fd + ABI_FD_ASYNC_READ, 2);
	for (unsigned i = 0; i < ABI_CONTEXT_FDS; i++)
		if (user->fd[i] >= 0)
			close(user->fd[i]);
	rt_close_socket(user->lanes_fd);
	if (user->program_doorbell_fd >= 0)
		close(user->program_doorbell_fd);
	hca_windows_close(user);
	rt_free(user);
}

struct ib_ucontext *hca_alloc_ucontext(struct ib_device *device)
{
	int ret = hca_refused(hca_of(device), FLT_OBJECT_CONTEXT);
	struct hca_user *user;

	if (ret)
		return ERR_PTR(ret);
	user = rt_zalloc(sizeof(*user));
	if (!user)
		return ERR_PTR(-ENOMEM);
	user->hca = hca_of(device);
	user->owner = ++user->hca->set->last_owner;
	user->held_since = MONO_NEVER;
	INIT_LIST_HEAD(&user->mcast);
	INIT_LIST_HEAD(&user->dirty);
	INIT_LIST_HEAD(&user->lanes_out);
	INIT_LIST_HEAD(&user->lanes_in);
	INIT_LIST_HEAD(&user->unsent);
	user->lanes_fd = -1;
	user->program_doorbell_fd = -1;
	for (unsigned i = 0; i < ABI_CONTEXT_FDS; i++)
		user->fd[i] = -1;
	ret = make_fds(user);
	if (ret) {
		free_user(user);
		return ERR_PTR(ret);
	}
	user->ib.driver_resp = &user->resp;
	user->ib.driver_resp_bytes = sizeof(user->resp);
	user->ib.driver_fds = user->fd;
	user->ib.num_driver_fds = ABI_CONTEXT_FDS;
	user->poller = (struct rt_poller){
		.poll = user_poll, .prepare = user_prepare, .awake = user_awake, .may_rest = true};
	rt_timer_init(user->hca->rt, &user->retry, try_again);
	user->retry_ns = FAB_RETRY_MIN_NS;
	rt_poller_add(user->hca->rt, &user->poller);
	rt_io_init(user->hca->rt, &user->doorbell, user->fd[ABI_FD_DOORBELL], doorbell_rang);
	rt_io_watch(&user->doorbell, true, false);
	rt_io_init(user->hca->rt, &user->lanes_io, user->lanes_fd, hca_lanes_readable);
	rt_io_watch(&user->lanes_io, true, false);
	return &user->ib;
}

void hca_dealloc_ucontext(struct ib_ucontext *context)
{
	struct hca_user *user = container_of(context, struct hca_user, ib);

	hca_counters_keep(user);
	hca_targets_leave(user);
	hca_lanes_drop(user);
	rt_io_watch(&user->lanes_io, false, false);
	list_del(&user->dirty);
	if (!user->broken) {
		rt_poller_del(&user->poller);
		rt_timer_disarm(&user->retry);
		rt_io_watch(&user->doorbell, false, false);
	}
	free_user(user);
}

static int find_station(const struct hca *hca, const struct abi_find_station *in,
			struct abi_find_station_resp *out)
{
	union ib_gid gid;
	u16 station;
	int ret;

	memcpy(gid.raw, in->gid, sizeof(gid.raw));
	if (!rdma_is_port_valid(&hca->ib, in->port_num))
		return -EINVAL;
	ret = hca_find_station((struct ib_device *)&hca->ib, in->port_num, in->sgid_index, &gid, &station);
	if (ret)
		return hca_ask_station(hca, in->port_num, in->sgid_index, &gid) ? -EAGAIN : ret;
	out->station = station;
	if (station >= FAB_STATION_ALL)
		fab_ethernet_group_mac(in->gid, out->mac);
	else
		fab_ethernet_mac(hca->fab, station, out->mac);
	return 0;
}

int hca_driver_command(struct ib_ucontext *context, u32 command, const void *in, void *out,
		       int fds[2], unsigned int *num_fds)
{
	struct hca_user *user = container_of(context, struct hca_user, ib);

	*num_fds = 0;
	switch (command) {
	case ABI_CMD_RESOLVE:
		return hca_lane_resolve(user, in, out, fds, num_fds);
	case ABI_CMD_COMPLETION:
		hca_completion(user, in, out);
		return 0;
	case ABI_CMD_FIND_STATION:
		return find_station(user->hca, in, out);
	default:
		return -EOPNOTSUPP;
	}
}
