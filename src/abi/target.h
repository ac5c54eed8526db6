/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * XRC targets that several programs share. A packet for such a target belongs to the program
 * whose SRQ it names, and one program at a time, the holder, has the state of the target's
 * responder. softibd moves the state by messages that travel in the rings of packets, so that
 * they keep their order with the packets:
 *
 *   softibd           program
 *   TAKE     ----->             it is the holder from now on, with this state
 *   RELEASE  ----->             send what the target has to send, and give the state back
 *            <-----   RELEASED  here it is
 *            <-----   EVENT     an asynchronous event of the target, for all who opened it
 *   FAILED   ----->             the target went to the error state elsewhere
 *   FORGET   ----->             the target is destroyed
 *   SHARED   ----->             its events are for softibd from now on
 *
 * Packets begin with an LRH, whose link version is 0: a message begins with another.
 */
#ifndef SOFTIB_ABI_TARGET_H
#define SOFTIB_ABI_TARGET_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define ABI_TARGET_MARK 0x0f

enum abi_target_kind {
	ABI_TARGET_TAKE,
	ABI_TARGET_RELEASE,
	ABI_TARGET_RELEASED,
	ABI_TARGET_EVENT,
	ABI_TARGET_FAILED,
	ABI_TARGET_FORGET,
	ABI_TARGET_SHARED,
};

/** struct abi_target_state - of the responder: the PSN that it expects, messages received, whether
 *  it has asked for the expected packet already, and whether IBV_EVENT_COMM_EST was raised */
struct abi_target_state {
	uint32_t epsn, msn;
	bool nak_sent, established;
	bool is_guess; /* the last holder died with it: a program that held it later knows better */
};

struct abi_target_message {
	uint8_t mark; /* ABI_TARGET_MARK */
	uint8_t kind; /* enum abi_target_kind */
	bool is_new;  /* TAKE: @attr is not what the program knows of the target */
	bool failed;  /* EVENT: the target went to the error state with it */
	uint32_t qpn;
	uint32_t xrcd; /* TAKE */
	uint32_t event; /* EVENT: enum ibv_event_type */
	struct abi_target_state state; /* TAKE, RELEASED */
	struct ibv_qp_attr attr; /* TAKE: of a target that is set up */
};

/* What OPEN_XRCD has behind struct ib_uverbs_open_xrcd: the file that its fd is of. The
 * answer has the number of the domain behind struct ib_uverbs_open_xrcd_resp. */
struct abi_open_xrcd {
	uint64_t device, inode;
};

/* The answer to DESTROY_QP, in events_reported: others have opened the target, so it goes on */
#define ABI_TARGET_LIVES 1u

#endif
