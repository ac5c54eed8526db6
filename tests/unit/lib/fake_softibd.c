/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/fds.h"
#include "abi/objects.h"
#include "abi/devpage.h"
#include "abi/lane.h"
#include "abi/ring.h"
#include "abi/session.h"
#include "abi/told.h"
#include "fake_softibd.h"

#define MAX_SESSIONS 8
#define RING_BYTES (1u << 16)
#define RING_STRIDE (RING_BYTES + 4096)

struct session {
	int sock;
	bool opened;
	int fd[ABI_CONTEXT_FDS];
	int lanes; /* our end of ABI_FD_LANES */
	bool attached;
	void *link;
	struct abi_ring_tx tx;
	struct abi_ring_rx rx;
	struct abi_ring_rx told; /* no ring: there is none */
	int told_doorbell;
};

#define FDS_OF_A_SESSION 3 /* that poll() waits for */

struct fake_softibd {
	char dir[64];
	int listener, stop_fd;
	pthread_t thread;
	bool dead;
	struct session session[MAX_SESSIONS];
	int num_sessions;
	uint32_t next_handle;
	_Atomic int objects;
	_Atomic uint32_t refuse_command;
	_Atomic int refuse_error;
	int dm_fd; /* of the last device memory */
	uint64_t dm_bytes;
	struct ib_uverbs_modify_qp modify; /* the last; written before it is answered */
	_Atomic int modified;
	_Atomic uint32_t grant; /* QPs that go with the next one that is created */
	uint32_t last_created; /* the handle of a granted QP */
	_Atomic bool disordered; /* one was created after one that was granted after it */
	_Atomic int created, connected; /* QPs of a grant; those that asked for their flow */
	_Atomic bool has_rings; /* for what is told */
	_Atomic int told; /* records of such a ring */
	_Atomic bool has_lane; /* the descriptors of FAKE_LANE come */
};

static void answer(int sock, int error, const void *body, size_t bytes, const int *fds,
		   size_t num_fds)
{
	struct abi_reply reply = {.error = error, .bytes = (uint32_t)bytes};
	struct iovec iov[2] = {{&reply, sizeof(reply)}, {(void *)body, bytes}};

	abi_sendv_fds(sock, iov, 2, fds, (unsigned)num_fds, 0);
}

static void answer_list(int sock)
{
	struct abi_device_info info = {
		.name = "softib0", .node_desc = "n1", .fw_ver = "1.0.0", .board_id = "fake",
		.node_guid = 0x0002c90300000001, .sys_image_guid = 0x0002c90300000003,
		.num_ports = 1,
	};

	answer(sock, 0, &info, sizeof(info), NULL, 0);
}

static int make_devpage(void)
{
	size_t bytes = abi_devpage_bytes(1);
	int fd = memfd_create("devpage", MFD_CLOEXEC);
	struct abi_devpage *page;

	if (fd < 0 || ftruncate(fd, (off_t)bytes))
		abort();
	page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	page->magic = ABI_DEVPAGE_MAGIC;
	page->num_ports = 1;
	page->port[0] = (struct abi_devport){
		.lid = FAKE_LID, .state = IBV_PORT_ACTIVE, .phys_state = 5,
		.active_mtu_enc = IBV_MTU_4096, .max_mtu_enc = IBV_MTU_4096, .sm_lid = 1,
		.width_enc = 2, .speed_enc = 32, .max_vl_num = 4,
		.link_layer = IBV_LINK_LAYER_INFINIBAND,
		.gid[0] = {0xfe, 0x80, [15] = 1}, .num_gids = ABI_GIDS_IB, .pkey[0] = 0xffff,
	};
	munmap(page, bytes);
	return fd;
}

static void attach(struct session *s)
{
	struct abi_context_resp resp = {.num_ports = 1, .ring_bytes = RING_BYTES, .program = FAKE_PROGRAM,
					.to_daemon_offset = 0, .to_engine_offset = RING_STRIDE};
	struct abi_ring *to_daemon, *to_engine;
	int lanes[2];

	s->fd[ABI_FD_DEVPAGE] = make_devpage();
	s->fd[ABI_FD_LINK] = memfd_create("link", MFD_CLOEXEC);
	s->fd[ABI_FD_DOORBELL] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	for (int i = ABI_FD_LANES; i < ABI_CONTEXT_FDS; i++)
		s->fd[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	close(s->fd[ABI_FD_LANES]);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, &s->fd[ABI_FD_ASYNC_READ]) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, lanes) ||
	    ftruncate(s->fd[ABI_FD_LINK], 2 * RING_STRIDE))
		abort();
	s->fd[ABI_FD_LANES] = lanes[0];
	s->lanes = lanes[1];
	s->link = mmap(NULL, 2 * RING_STRIDE, PROT_READ | PROT_WRITE, MAP_SHARED,
		       s->fd[ABI_FD_LINK], 0);
	to_daemon = s->link;
	to_engine = (void *)((char *)s->link + RING_STRIDE);
	abi_ring_init(to_daemon, RING_BYTES);
	abi_ring_init(to_engine, RING_BYTES);
	s->rx = (struct abi_ring_rx){.ring = to_daemon, .size = RING_BYTES};
	s->tx = (struct abi_ring_tx){.ring = to_engine, .size = RING_BYTES};
	s->attached = true;
	answer(s->sock, 0, &resp, sizeof(resp), s->fd, ABI_CONTEXT_FDS);
}

static uint32_t number_of(uint32_t handle)
{
	return handle + 0x100;
}

static uint32_t key_of(uint32_t handle)
{
	return number_of(handle) << 8;
}

static void grant(struct fake_softibd *fake, struct abi_created_qp *out)
{
	out->count = atomic_exchange(&fake->grant, 0);
	for (uint32_t i = 0; i < out->count; i++) {
		out->granted[i].handle = ++fake->next_handle;
		out->granted[i].qpn = number_of(fake->next_handle);
	}
}

/* Every response of a creation begins with handle and number or key. */
static void answer_create(struct fake_softibd *fake, struct session *s, uint32_t command,
			  const void *req)
{
	union {
		struct ib_uverbs_alloc_pd_resp pd;
		struct ib_uverbs_reg_mr_resp mr;
		struct ib_uverbs_create_cq_resp cq;
		struct ib_uverbs_create_srq_resp srq;
		struct abi_created_qp qp;
	} r = {0};
	size_t bytes = sizeof(r.pd);

	r.pd.pd_handle = ++fake->next_handle;
	if (command == IB_USER_VERBS_CMD_REG_MR || command == ABI_CMD_REG_DM_MR) {
		r.mr.lkey = r.mr.rkey = key_of(fake->next_handle);
		bytes = sizeof(r.mr);
	} else if (command == IB_USER_VERBS_CMD_CREATE_CQ) {
		r.cq.cqe = ((const struct ib_uverbs_create_cq *)req)->cqe;
		bytes = sizeof(r.cq);
	} else if (command == IB_USER_VERBS_CMD_CREATE_SRQ || command == IB_USER_VERBS_CMD_CREATE_XSRQ) {
		if (command == IB_USER_VERBS_CMD_CREATE_XSRQ)
			r.srq.srqn = number_of(fake->next_handle);
		bytes = sizeof(r.srq);
	} else if (command == IB_USER_VERBS_CMD_OPEN_XRCD) { /* and the domain's number */
		r.mr.lkey = fake->next_handle;
		bytes = 2 * sizeof(uint32_t);
	} else if (command == IB_USER_VERBS_CMD_CREATE_QP) {
		r.qp.resp.qpn = number_of(fake->next_handle);
		r.qp.resp.max_inline_data = ((const struct ib_uverbs_create_qp *)req)->max_inline_data;
		grant(fake, &r.qp);
		bytes = sizeof(r.qp);
	}
	fake->objects++;
	answer(s->sock, 0, &r, bytes, NULL, 0);
}

static void answer_destroy(struct fake_softibd *fake, struct session *s)
{
	uint64_t events = 0;

	fake->objects--;
	answer(s->sock, 0, &events, sizeof(events), NULL, 0);
}

static void answer_limits(struct session *s)
{
	struct abi_ex_query_device_resp r = {.core = {
		.base = {.max_qp = 100, .max_ah = 3, .max_qp_wr = 4096, .max_sge = 16, .max_sge_rd = 16,
			 .max_cq = 100, .max_cqe = 65535, .max_mr = 100, .max_pd = 100,
			 .max_qp_rd_atom = 8, .max_srq = 10, .max_srq_wr = 4096,
			 .max_srq_sge = 16, .max_pkeys = ABI_PKEYS, .phys_port_cnt = 1,
			 .max_mr_size = UINT64_MAX},
		.response_length = sizeof(r.core),
		.max_dm_size = 4096,
		.timestamp_mask = UINT64_MAX,
		.cq_moderation_caps = {.max_cq_moderation_count = 100,
				       .max_cq_moderation_period = 1000},
	}};

	answer(s->sock, 0, &r, sizeof(r), NULL, 0);
}

/* there is a lane; its descriptors come once, if at all */
static void answer_resolve(struct fake_softibd *fake, struct session *s)
{
	const struct abi_resolve_resp r = {.lane = FAKE_LANE, .epoch = 1, .mtu_bytes = 4096};
	const bool comes = atomic_exchange(&fake->has_lane, false);
	int fds[2];

	if (comes) {
		fds[0] = memfd_create("lane", MFD_CLOEXEC);
		fds[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (ftruncate(fds[0], (off_t)abi_lane_bytes()))
			abort();
	}
	answer(s->sock, 0, &r, sizeof(r), fds, comes ? 2 : 0);
	if (comes) {
		close(fds[0]);
		close(fds[1]);
	}
}

static void answer_alloc_dm(struct fake_softibd *fake, struct session *s, const void *req)
{
	struct abi_alloc_dm_resp r = {.dm_handle = ++fake->next_handle};
	int fd = memfd_create("device-memory", MFD_CLOEXEC);

	if (ftruncate(fd, (off_t)((const struct abi_alloc_dm *)req)->length_bytes))
		abort();
	fake->objects++;
	answer(s->sock, 0, &r, sizeof(r), &fd, 1);
	if (fake->dm_fd)
		close(fake->dm_fd);
	fake->dm_fd = fd;
	fake->dm_bytes = ((const struct abi_alloc_dm *)req)->length_bytes;
}

static void answer_query_object(struct fake_softibd *fake, struct session *s, const void *req)
{
	const struct abi_query_object *in = req;
	struct abi_query_object_resp r = {0};

	if (in->object == ABI_OBJECT_MR)
		r.lkey = r.rkey = key_of(in->handle);
	else if (in->object == ABI_OBJECT_DM)
		r.length_bytes = fake->dm_bytes;
	answer(s->sock, in->handle > fake->next_handle ? -EINVAL : 0, &r, sizeof(r), &fake->dm_fd,
	       in->object == ABI_OBJECT_DM);
}

/* --- the ring by which a program tells --- */

static void answer_told_ring(struct session *s)
{
	const size_t bytes = abi_ring_bytes(ABI_TOLD_RING_BYTES);
	struct abi_ring *ring;
	int fds[ABI_TOLD_FDS];

	if (s->told.ring) {
		answer(s->sock, -EEXIST, NULL, 0, NULL, 0);
		return;
	}
	fds[0] = memfd_create("told", MFD_CLOEXEC);
	fds[1] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ftruncate(fds[0], (off_t)bytes))
		abort();
	ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	abi_ring_init(ring, ABI_TOLD_RING_BYTES);
	s->told = (struct abi_ring_rx){.ring = ring, .size = ABI_TOLD_RING_BYTES};
	answer(s->sock, 0, NULL, 0, fds, ABI_TOLD_FDS);
	close(fds[0]);
	s->told_doorbell = fds[1];
}

static void command(struct fake_softibd *fake, struct session *s, const void *message);

static void run_told(struct fake_softibd *fake, struct session *s)
{
	_Alignas(8) uint8_t record[ABI_TOLD_RECORD_MAX]; /* those of the ring are aligned to 4 bytes */
	const void *shared;
	size_t len;

	while (s->told.ring && (shared = abi_ring_peek(&s->told, &len))) {
		if (len > sizeof(record))
			abort();
		memcpy(record, shared, len);
		command(fake, s, record);
		fake->told++;
		abi_ring_consume(&s->told);
	}
	if (s->told.ring)
		abi_ring_release(&s->told);
}

/* --- commands --- */

static void note_order(struct fake_softibd *fake, const void *body)
{
	const uint32_t handle = ((const struct abi_create_granted_qp *)body)->handle;

	if (handle < fake->last_created)
		fake->disordered = true;
	fake->last_created = handle;
}

static void command(struct fake_softibd *fake, struct session *s, const void *message)
{
	const struct ib_uverbs_cmd_hdr *hdr = message;
	uint64_t nothing[4] = {0};

	if (hdr->command == fake->refuse_command && fake->refuse_error) {
		/* first, since the answer lets the test set the next one */
		int error = atomic_exchange(&fake->refuse_error, 0);

		answer(s->sock, error, NULL, 0, NULL, 0);
		return;
	}
	if (hdr->command == IB_USER_VERBS_CMD_MODIFY_QP || hdr->command == ABI_CMD_CONNECT ||
	    hdr->command == ABI_CMD_MODIFIED) {
		memcpy(&fake->modify, hdr + 1, sizeof(fake->modify));
		fake->modified++;
	}
	switch (hdr->command) {
	case IB_USER_VERBS_CMD_GET_CONTEXT:
		attach(s);
		break;
	case ABI_CMD_CONNECT:
		fake->connected++;
		answer_resolve(fake, s);
		break;
	case ABI_CMD_RESOLVE:
		answer_resolve(fake, s);
		break;
	case ABI_CMD_CREATED_QP: /* is not answered */
		note_order(fake, hdr + 1);
		fake->created++;
		fake->objects++;
		break;
	case IB_USER_VERBS_EX_CMD_QUERY_DEVICE | IB_USER_VERBS_CMD_FLAG_EXTENDED:
		answer_limits(s);
		break;
	case ABI_CMD_MODIFIED: /* is not answered */
		break;
	case ABI_CMD_TOLD_RING:
		if (fake->has_rings)
			answer_told_ring(s);
		else
			answer(s->sock, -EOPNOTSUPP, NULL, 0, NULL, 0);
		break;
	case ABI_CMD_ALLOC_DM:
		answer_alloc_dm(fake, s, hdr + 1);
		break;
	case ABI_CMD_QUERY_OBJECT:
		answer_query_object(fake, s, hdr + 1);
		break;
	case IB_USER_VERBS_CMD_ALLOC_PD:
	case IB_USER_VERBS_CMD_OPEN_XRCD:
	case IB_USER_VERBS_CMD_REG_MR:
	case ABI_CMD_REG_DM_MR:
	case IB_USER_VERBS_CMD_CREATE_CQ:
	case IB_USER_VERBS_CMD_CREATE_SRQ:
	case IB_USER_VERBS_CMD_CREATE_XSRQ:
	case IB_USER_VERBS_CMD_CREATE_QP:
		answer_create(fake, s, hdr->command, hdr + 1);
		break;
	case ABI_CMD_FREE_DM:
	case IB_USER_VERBS_CMD_DEALLOC_PD:
	case IB_USER_VERBS_CMD_CLOSE_XRCD:
	case IB_USER_VERBS_CMD_DEREG_MR:
	case IB_USER_VERBS_CMD_DESTROY_CQ:
	case IB_USER_VERBS_CMD_DESTROY_SRQ:
	case IB_USER_VERBS_CMD_DESTROY_QP:
		answer_destroy(fake, s);
		break;
	default:
		answer(s->sock, 0, nothing, sizeof(nothing), NULL, 0);
	}
}

static void close_session(struct session *s)
{
	if (s->attached) {
		for (int i = 0; i < ABI_CONTEXT_FDS; i++)
			close(s->fd[i]);
		close(s->lanes);
		munmap(s->link, 2 * RING_STRIDE);
	}
	if (s->told.ring) {
		munmap(s->told.ring, abi_ring_bytes(ABI_TOLD_RING_BYTES));
		close(s->told_doorbell);
	}
	if (s->sock >= 0)
		close(s->sock);
	*s = (struct session){.sock = -1};
}

static void message(struct fake_softibd *fake, struct session *s)
{
	uint64_t bytes[512];
	const struct abi_open *open = (void *)bytes;
	ssize_t n = recv(s->sock, bytes, sizeof(bytes), 0);

	run_told(fake, s);
	if (n <= 0) {
		close_session(s);
	} else if (s->opened) {
		for (size_t at = 0; at < (size_t)n;) { /* others may follow one that is told */
			const struct ib_uverbs_cmd_hdr *hdr = (void *)((char *)bytes + at);

			command(fake, s, hdr);
			at += hdr->command == ABI_CMD_MODIFIED || hdr->command == ABI_CMD_CREATED_QP ?
				      hdr->in_words * 4u : (size_t)n;
		}
	} else if (open->kind == ABI_OPEN_LIST) {
		answer_list(s->sock);
	} else {
		s->opened = true;
		answer(s->sock, 0, NULL, 0, NULL, 0);
	}
}

/* The cable: what comes out goes in again. */
static void turn_around(struct session *s)
{
	const void *packet;
	uint64_t one = 1;
	size_t len;

	while ((packet = abi_ring_peek(&s->rx, &len))) {
		void *room = abi_ring_reserve(&s->tx, len);

		if (!room)
			break;
		memcpy(room, packet, len);
		abi_ring_commit(&s->tx, len);
		abi_ring_consume(&s->rx);
	}
	abi_ring_release(&s->rx);
	if (abi_ring_publish(&s->tx) &&
	    write(s->fd[ABI_FD_PROGRAM_DOORBELL], &one, sizeof(one)) < 0)
		abort();
}

/* Return: whether packets wait, so that poll() must not sleep */
static bool links_turn(struct fake_softibd *fake)
{
	bool busy = false;

	for (int i = 0; i < fake->num_sessions; i++) {
		struct session *s = &fake->session[i];

		if (!s->attached)
			continue;
		abi_ring_wake(&s->rx);
		turn_around(s);
		busy |= !abi_ring_sleep(&s->rx);
		run_told(fake, s);
		busy |= s->told.ring && !abi_ring_sleep(&s->told);
	}
	return busy;
}

static void *serve(void *arg)
{
	struct fake_softibd *fake = arg;

	for (;;) {
		struct pollfd fds[2 + FDS_OF_A_SESSION * MAX_SESSIONS] = {{.fd = fake->listener, .events = POLLIN},
							   {.fd = fake->stop_fd, .events = POLLIN}};
		bool busy = links_turn(fake);
		uint64_t count;

		for (int i = 0; i < fake->num_sessions; i++) {
			struct session *s = &fake->session[i];
			struct pollfd *of = &fds[2 + FDS_OF_A_SESSION * i];

			of[0] = (struct pollfd){.fd = s->sock, .events = POLLIN};
			of[1] = (struct pollfd){
				.fd = s->attached ? s->fd[ABI_FD_DOORBELL] : -1, .events = POLLIN};
			of[2] = (struct pollfd){
				.fd = s->told.ring ? s->told_doorbell : -1, .events = POLLIN};
		}
		poll(fds, 2 + FDS_OF_A_SESSION * (nfds_t)fake->num_sessions, busy ? 0 : -1);
		if (fds[1].revents)
			return NULL;
		for (int i = 0; i < fake->num_sessions; i++) {
			const struct pollfd *of = &fds[2 + FDS_OF_A_SESSION * i];

			for (int bell = 1; bell < FDS_OF_A_SESSION; bell++)
				if (of[bell].revents & POLLIN && read(of[bell].fd, &count, sizeof(count)) < 0)
					continue;
			if (of[0].revents)
				message(fake, &fake->session[i]);
		}
		if (fds[0].revents & POLLIN && fake->num_sessions < MAX_SESSIONS)
			fake->session[fake->num_sessions++] = (struct session){
				.sock = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC)};
	}
}

struct fake_softibd *fake_start(void)
{
	struct fake_softibd *fake = calloc(1, sizeof(*fake));
	struct sockaddr_un addr = {.sun_family = AF_UNIX};

	strcpy(fake->dir, "/tmp/softib-fake-XXXXXX");
	if (!mkdtemp(fake->dir))
		abort();
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/uverbs", fake->dir);
	fake->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	fake->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (bind(fake->listener, (struct sockaddr *)&addr, sizeof(addr)) ||
	    listen(fake->listener, 8) ||
	    pthread_create(&fake->thread, NULL, serve, fake))
		abort();
	setenv(ABI_ENV_DIR, fake->dir, 1);
	return fake;
}

void fake_die(struct fake_softibd *fake)
{
	uint64_t one = 1;

	if (fake->dead)
		return;
	fake->dead = true;
	if (write(fake->stop_fd, &one, sizeof(one)) < 0)
		abort();
	pthread_join(fake->thread, NULL);
	for (int i = 0; i < fake->num_sessions; i++)
		close_session(&fake->session[i]);
	close(fake->listener);
	if (fake->dm_fd)
		close(fake->dm_fd);
}

void fake_stop(struct fake_softibd *fake)
{
	char path[128];

	fake_die(fake);
	snprintf(path, sizeof(path), "%s/uverbs", fake->dir);
	unlink(path);
	rmdir(fake->dir);
	close(fake->stop_fd);
	unsetenv(ABI_ENV_DIR);
	free(fake);
}

void fake_refuse_next(struct fake_softibd *fake, uint32_t command_number, int error)
{
	fake->refuse_command = command_number;
	fake->refuse_error = error;
}

int fake_modified(struct fake_softibd *fake, struct ib_uverbs_modify_qp *last)
{
	*last = fake->modify;
	return fake->modified;
}

void fake_grant(struct fake_softibd *fake, uint32_t count)
{
	fake->grant = count;
}

int fake_created(struct fake_softibd *fake)
{
	return fake->created;
}

int fake_connected(struct fake_softibd *fake)
{
	return fake->connected;
}

void fake_give_rings(struct fake_softibd *fake)
{
	fake->has_rings = true;
}

bool fake_disordered(struct fake_softibd *fake)
{
	return fake->disordered;
}

int fake_told(struct fake_softibd *fake)
{
	return fake->told;
}

void fake_give_lane(struct fake_softibd *fake)
{
	fake->has_lane = true;
}

void fake_refuse_creations(struct fake_softibd *fake, bool on)
{
	for (int i = 0; i < fake->num_sessions; i++) {
		struct session *s = &fake->session[i];
		const uint32_t word = on;

		if (s->attached && pwrite(s->fd[ABI_FD_DEVPAGE], &word, sizeof(word),
					  offsetof(struct abi_devpage, creation_faults)) < 0)
			abort();
	}
}

int fake_objects(struct fake_softibd *fake)
{
	return fake->objects;
}

uint32_t fake_hear_refusal(struct fake_softibd *fake)
{
	struct abi_lane_event event = {.lane = ABI_NO_LANE};

	for (int i = 0; i < fake->num_sessions; i++)
		if (fake->session[i].attached)
			recv(fake->session[i].lanes, &event, sizeof(event), 0);
	return event.kind == ABI_LANE_REFUSED ? event.lane : ABI_NO_LANE;
}
