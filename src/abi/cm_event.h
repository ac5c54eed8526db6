/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Events of the RDMA CM, and commands that softibd does not answer.
 *
 * A message on the socket of events has one event, so that a program that reads it need not ask
 * softibd. The event stays in softibd's queue until the program says that it has taken it: an
 * id that is destroyed, or moves to another channel, takes along the events that the program has
 * not taken. As many messages as were sent of them are then in excess. The program reads as many,
 * whichever they are, and asks GET_EVENT instead of believing the messages that were sent
 * until then.
 */
#ifndef SOFTIB_ABI_CM_EVENT_H
#define SOFTIB_ABI_CM_EVENT_H

#include <stdint.h>

#include <rdma/rdma_user_cm.h>

/** struct abi_cm_event - a message on the socket of events, and the response to GET_EVENT; struct
 *  abi_ahead may follow. @number: of the event in its channel, in the order in which they were sent */
struct abi_cm_event {
	struct rdma_ucm_event_resp resp;
	uint32_t number;
	uint32_t reserved;
};

/** struct abi_cm_gone - the response to DESTROY_ID, LEAVE_MCAST and MIGRATE_ID, which of the kernel's
 *  has the first member. @excess: messages of events that are in the queue no more; @last: the number
 *  of the event that was sent last. Both are of the channel that the id has left */
struct abi_cm_gone {
	uint32_t events_reported;
	uint32_t excess;
	uint32_t last;
};

/*
 * A flag of struct rdma_ucm_cmd_hdr.cmd: softibd does not answer this command, whose hdr.in is a
 * multiple of eight. Behind ABI_CM_TAKEN and CREATE_ID with this flag, other commands may follow in the
 * message, of which it may have ABI_CM_TOLD_MAX.
 */
#define ABI_CM_TOLD 0x80000000u

/** struct abi_cm_created - the response to CREATE_ID, which of the kernel's has the first member.
 *  @first, @count: numbers that are granted: the program gives the next ids these numbers, in their order,
 *  and tells softibd (CREATE_ID with ABI_CM_TOLD and the number in place of the response's address). softibd
 *  has the memory for these ids. The grant ends when the program asks CREATE_ID again */
struct abi_cm_created {
	uint32_t id;
	uint32_t first, count;
};

/** ABI_CM_TAKEN - the program has taken an event that was sent. Without ABI_CM_TOLD it is answered */
#define ABI_CM_TAKEN	0x5f00u
#define ABI_CM_TOLD_MAX 64

/** ABI_CM_TOLD_RING - a ring for the commands with ABI_CM_TOLD (abi/told.h). The answer has no body */
#define ABI_CM_TOLD_RING 0x5f01u

struct abi_cm_taken {
	uint32_t number; /* of the event */
	uint32_t reserved;
};

#endif
