/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What an open device file says to softibd: commands, one at a time, and which events the program has taken
 * (abi/cm_event.h). What softibd has answered ahead is not asked (ahead.h).
 */
#ifndef SOFTIB_LIBRDMACM_COMMANDS_H
#define SOFTIB_LIBRDMACM_COMMANDS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/rdma_user_cm.h>

#include "abi/cm_event.h"
#include "abi/lane.h"
#include "abi/session.h"
#include "abi/told.h"
#include "ahead.h"
#include "resolved.h"

/** struct told - commands that softibd does not answer, which go out with the next one */
struct told {
	_Alignas(8) char bytes[512];
	size_t len;
};

/** struct commands - the socket of commands of a device file */
struct commands {
	int control;
	/** expect_flow(), tell_now() - libibverbs' functions with such names (expect.h); NULL: it has none */
	void (*expect_flow)(const struct abi_flow_answer *answer);
	void (*tell_now)(void);
	pthread_mutex_t lock; /* one command at a time on @control */
	/* --- protected by lock --- */
	struct ahead ahead;
	struct told told;
	struct abi_told ring;
	uint32_t granted, num_granted; /* numbers of the next ids (struct abi_cm_created) */
	struct resolved resolved;
	uint32_t asked_until; /* softibd is asked for events whose message has no larger number */
};

/** struct answer - what softibd says; @body: the response, or a message with an event */
struct answer {
	_Alignas(8) char body[4096];
};

/** commands_open() - @control: the socket, which commands_close() closes; @page_fd: as ahead_open()
 *  Return: 0; -errno: @control stays the caller's */
int commands_open(struct commands *commands, int control, int page_fd);
void commands_close(struct commands *commands);
/**
 * commands_exchange() - perform a command
 * @hdr: the command, @bytes with its header
 * Context: waits for softibd, unless the answer is known
 * Return: bytes of the response, in answer->body; -errno: the command's own, or -ENODEV softibd is gone
 */
ssize_t commands_exchange(struct commands *commands, const struct rdma_ucm_cmd_hdr *hdr, size_t bytes,
			  struct answer *answer);
/**
 * commands_take_event() - perform GET_EVENT
 * @hdr: the command, @bytes with its header
 * @answer: has the message of @n bytes that announced the event; then the event
 * Return: bytes of the response; -EAGAIN: another thread took it, or its id is gone; -errno
 */
ssize_t commands_take_event(struct commands *commands, const struct rdma_ucm_cmd_hdr *hdr, size_t bytes,
			    struct answer *answer, ssize_t n);
/** commands_distrust() - some of the messages up to the number @last are of events that are gone */
void commands_distrust(struct commands *commands, uint32_t last);

#endif
