/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The channel by which QEMU's device pvrdma reaches the GSI of its host's adapter. A virtual machine
 * has a QP1 of its own, but the host's adapter has one for all; so QEMU hands the MADs of the guest's
 * communication manager to a program beside it, and gets those that arrive for the guest from there.
 * What travels are messages of one size, in host byte order, on a stream. QEMU's are requests: here is
 * a GID that the guest has now, or no longer has, or a MAD to send; each is answered with the same
 * message and an error code. A MAD that arrives is a request to QEMU, which has no answer.
 *
 * QEMU does not say where a MAD is to go. The messages of the CM do, or those to which they are an
 * answer did (IBA v1 chapter 12), so that struct pvrdma_routes knows.
 */
#ifndef SOFTIB_PVRDMA_MUX_H
#define SOFTIB_PVRDMA_MUX_H

#include "base/types.h"
#include "wire/packet.h"

#define PVRDMA_UMAD_BYTES 64 /* a struct ib_user_mad of <rdma/ib_user_mad.h>, before its MAD */
#define PVRDMA_MAD_BYTES  256
#define PVRDMA_ROUTES	  4096 /* a power of 2 */

enum pvrdma_type { PVRDMA_REQUEST, PVRDMA_RESPONSE };
enum pvrdma_operation { PVRDMA_ADD_GID, PVRDMA_REMOVE_GID, PVRDMA_MAD };
enum pvrdma_error { PVRDMA_OK, PVRDMA_EINVAL, PVRDMA_EEXIST, PVRDMA_EACCES, PVRDMA_ENOTFOUND };

/**
 * struct pvrdma_message - a message as it travels
 * @gid: the guest's: that was added or removed, that sends @mad or that receives it
 * @mad_bytes: of @mad
 * @umad: of a MAD that arrived, its source; of a MAD to send, the number of @gid in the GID table of
 *	  the host's port
 */
struct pvrdma_message {
	uint32_t type;	    /* enum pvrdma_type */
	uint32_t operation; /* enum pvrdma_operation */
	_Alignas(8) uint8_t gid[16];
	uint32_t error; /* enum pvrdma_error */
	uint32_t reserved;
	uint32_t mad_bytes;
	uint8_t umad[PVRDMA_UMAD_BYTES];
	uint8_t mad[PVRDMA_MAD_BYTES];
	uint32_t padding;
};

/** struct pvrdma_routes - which GID belongs to a communication id; begins zeroed. The oldest of
 *  PVRDMA_ROUTES is forgotten first */
struct pvrdma_routes {
	uint32_t num; /* that were ever noted */
	struct pvrdma_route {
		uint32_t id;
		bool is_own; /* the guest's id of a connection that it has requested; otherwise the peer's */
		union wire_gid gid; /* of the peer */
	} route[PVRDMA_ROUTES];
};

/** pvrdma_is_request() - is @m a request of QEMU that can be obeyed? Otherwise the answer to it is
 *  PVRDMA_EINVAL */
bool pvrdma_is_request(const struct pvrdma_message *m);
/** pvrdma_route_out() - where a MAD of the guest is to go
 *  @mad: PVRDMA_MAD_BYTES
 *  Return: false: nobody knows */
bool pvrdma_route_out(struct pvrdma_routes *routes, const uint8_t *mad, union wire_gid *gid);
/** pvrdma_route_in() - note who sent a MAD to the guest */
void pvrdma_route_in(struct pvrdma_routes *routes, const uint8_t *mad, const union wire_gid *gid);

#endif
