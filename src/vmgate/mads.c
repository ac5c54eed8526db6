/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The guest's GSI. A program that registers for the CM's class gets what the node's own communication
 * manager has no use for; of these, MADs to a GID of the guest go to QEMU.
 *
 * QEMU waits for the answer to a request, and takes the first message that it reads for it. If a MAD
 * has arrived meanwhile, it takes that one, complains, and takes the answer for a MAD when it comes. Therefore
 * an answer to a MAD contains the last MAD that arrived, which is then not lost; otherwise QEMU does not
 * look at it.
 */
#include <errno.h>
#include <infiniband/umad.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmgate/gate.h"

#define CM_CLASS	 7
#define CM_CLASS_VERSION 2
#define METHOD_SEND	 3
#define GSI_QKEY	 0x80010000u

_Static_assert(sizeof(struct ib_user_mad) == PVRDMA_UMAD_BYTES, "as QEMU has it");

/** struct datagram - as umad_send() and umad_recv() take it */
struct datagram {
	struct ib_user_mad umad;
	uint8_t mad[PVRDMA_MAD_BYTES];
};

void gate_mads_answer(struct gate *gate, enum pvrdma_error error)
{
	struct pvrdma_message answer = gate->request;

	if (answer.operation == PVRDMA_MAD)
		answer = gate->last_mad;
	answer.type = PVRDMA_RESPONSE;
	answer.error = error;
	if (send(gate->mads_fd, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
		gate_fail(errno, "QEMU does not take an answer");
	ev_io_start(gate->loop, &gate->mads_io);
}

static enum pvrdma_error send_mad(struct gate *gate)
{
	struct datagram d;
	union wire_gid to;

	memcpy(&d.umad, gate->request.umad, sizeof(d.umad));
	memcpy(d.mad, gate->request.mad, sizeof(d.mad));
	if (!pvrdma_route_out(&gate->routes, d.mad, &to)) {
		gate_say(gate, "a MAD of the guest names no destination that is known");
		return PVRDMA_ENOTFOUND;
	}
	memcpy(d.umad.addr.gid, to.raw, sizeof(d.umad.addr.gid));
	d.umad.addr.qkey = htobe32(GSI_QKEY);
	if (umad_send(gate->umad_fd, gate->umad_agent, &d, sizeof(d.mad), 0, 0)) {
		gate_say(gate, "a MAD of the guest cannot be sent: %s", strerror(errno));
		return PVRDMA_EINVAL;
	}
	return PVRDMA_OK;
}

static void obey(struct gate *gate)
{
	const struct pvrdma_message *m = &gate->request;
	union ibv_gid gid;

	memcpy(gid.raw, m->gid, sizeof(gid.raw));
	if (!pvrdma_is_request(m)) {
		gate_say(gate, "QEMU asks for something that is unknown (%u)", m->operation);
		gate_mads_answer(gate, PVRDMA_EINVAL);
		return;
	}
	switch (m->operation) {
	case PVRDMA_ADD_GID:
		gate_address_add(gate, &gid); /* which answers */
		break;
	case PVRDMA_REMOVE_GID:
		gate_mads_answer(gate, gate_address_remove(gate, &gid) ? PVRDMA_OK : PVRDMA_ENOTFOUND);
		break;
	case PVRDMA_MAD:
		gate_mads_answer(gate, send_mad(gate));
		break;
	}
}

static void on_request(struct ev_loop *loop, ev_io *io, int events)
{
	struct gate *gate = io->data;

	ev_io_stop(loop, io); /* until it is answered */
	if (recv(gate->mads_fd, &gate->request, sizeof(gate->request), MSG_WAITALL) ==
	    sizeof(gate->request))
		obey(gate); /* otherwise QEMU is about to end */
}

static void on_mad(struct ev_loop *loop, ev_io *io, int events)
{
	struct gate *gate = io->data;
	struct pvrdma_message m = {.type = PVRDMA_REQUEST, .operation = PVRDMA_MAD,
				   .mad_bytes = PVRDMA_MAD_BYTES};
	struct datagram d;
	union ibv_gid to;
	union wire_gid from;
	int bytes = sizeof(d.mad);

	if (umad_recv(gate->umad_fd, &d, &bytes, 0) < 0 || umad_status(&d))
		return;
	if (!d.umad.addr.grh_present ||
	    ibv_query_gid(gate->context, gate->opt.port, d.umad.addr.gid_index, &to) ||
	    !gate_address_is_there(gate, &to)) {
		gate_say(gate, "a MAD is for none of the guest's GIDs");
		return;
	}
	memcpy(from.raw, d.umad.addr.gid, sizeof(from.raw));
	pvrdma_route_in(&gate->routes, d.mad, &from);
	memcpy(m.gid, to.raw, sizeof(m.gid));
	memcpy(m.umad, &d.umad, sizeof(m.umad));
	memcpy(m.mad, d.mad, sizeof(m.mad));
	/* a guest that stands still loses MADs, as one whose receive queue is empty does */
	if (send(gate->mads_fd, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(m))
		gate->last_mad = m;
}

int gate_mads_open(struct gate *gate, int fd)
{
	long methods[16 / sizeof(long)] = {1l << METHOD_SEND};
	const char *device = ibv_get_device_name(gate->context->device);

	gate->umad_agent = -1;
	gate->mads_fd = fd;
	gate->last_mad = (struct pvrdma_message){.operation = PVRDMA_MAD};
	gate->umad_fd = umad_open_port(device, gate->opt.port);
	if (gate->umad_fd < 0)
		return gate_fail(-gate->umad_fd, "port %u of %s sends no MADs", gate->opt.port, device);
	gate->umad_agent = umad_register(gate->umad_fd, CM_CLASS, CM_CLASS_VERSION, 0, methods);
	if (gate->umad_agent < 0)
		return gate_fail(errno, "port %u of %s has a program already that is the communication manager "
				 "of a virtual machine", gate->opt.port, device);
	ev_io_init(&gate->mads_io, on_request, fd, EV_READ);
	gate->mads_io.data = gate;
	ev_io_start(gate->loop, &gate->mads_io);
	ev_io_init(&gate->umad_io, on_mad, umad_get_fd(gate->umad_fd), EV_READ);
	gate->umad_io.data = gate;
	ev_io_start(gate->loop, &gate->umad_io);
	return 0;
}

void gate_mads_close(struct gate *gate)
{
	ev_io_stop(gate->loop, &gate->mads_io);
	ev_io_stop(gate->loop, &gate->umad_io);
	if (gate->umad_agent >= 0)
		umad_unregister(gate->umad_fd, gate->umad_agent);
	if (gate->umad_fd >= 0)
		umad_close_port(gate->umad_fd);
}
