/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a program and softibd say on the socket "ucm" (abi/session.h).
 *
 * A command is what write() takes on the character device (abi/ib_user_cm.h), hdr.in being the size of the
 * command's struct. Of an address of the program, softibd sees only whether it is 0. What is there follows
 * the struct, without padding:
 *
 *  SEND_REQ		  the private data; the primary path; the alternate path, if its address is not 0
 *  SEND_LAP, SEND_SIDR_REQ the private data; the path
 *  SEND_REJ, SEND_APR,
 *  SEND_SIDR_REP	  the private data; the additional information
 *  others with "len"	  the private data
 *
 * where a path is struct ib_user_path_rec, and data have the length that the struct says. The message
 * ends there. The answer is struct abi_reply and the response; those of DESTROY_ID and EVENT are below.
 *
 * The socket of events has one message of one byte for each event of the queue, so that a program can
 * poll it like the device file. A program reads one such message, and then asks EVENT.
 */
#ifndef SOFTIB_ABI_UCM_H
#define SOFTIB_ABI_UCM_H

#include <stdint.h>

#include "abi/ib_user_cm.h"

/** struct abi_ucm_event - the response to EVENT. The private data and the additional information follow, of
 *  which the room in the command was enough */
struct abi_ucm_event {
	struct ib_ucm_event_resp resp;
	uint32_t data_len, info_len; /* bytes */
};

/** struct abi_ucm_gone - the response to DESTROY_ID, which of the kernel's has the first member. @excess:
 *  messages on the socket of events that stand for an event of the id, which the program will not get. It
 *  reads as many of them, whichever they are; if another thread has already read one, softibd
 *  answers that thread's EVENT by -EAGAIN, and it waits again */
struct abi_ucm_gone {
	uint32_t events_reported;
	uint32_t excess;
};

#endif
