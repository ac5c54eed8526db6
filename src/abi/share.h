/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How a program shares protection domains, regions and device memory with another to which it
 * has given context->cmd_fd (ibv_import_device()). Each program has a context, and an engine,
 * of its own; what they share are the handles and the keys.
 *
 *   cmd_fd    one end of a pair of sockets whose other end is closed. It has one message, struct
 *             abi_share, which whoever has the descriptor reads with MSG_PEEK: where softibd is,
 *             and the token by which it knows the context
 *   SHARE     a new context presents the token, and shares the handles
 *   REACH     the program wants the memory of a region that another program has registered:
 *             softibd gives each of the two one end of a socket (ABI_LANE_PEER, abi/lane.h)
 *
 * On that socket the one program asks for accesses and the other one performs them, one at a
 * time, in a thread that does nothing else. So the memory stays where it is and as it is, and the
 * program that has it decides about each access.
 */
#ifndef SOFTIB_ABI_SHARE_H
#define SOFTIB_ABI_SHARE_H

#include <stdint.h>

#include "abi/session.h"

#define ABI_DIR_BYTES 108 /* as in struct sockaddr_un */

struct abi_share {
	uint32_t magic, version;
	uint8_t token[ABI_TOKEN_BYTES];
	char dir[ABI_DIR_BYTES]; /* the runtime directory */
	char node[ABI_NAME_BYTES];
	char device[ABI_NAME_BYTES];
};

/* Before the context has an object. Fails with ENOENT if the context with the token is gone. */
#define ABI_CMD_SHARE 0x5f0bu

struct abi_share_context {
	uint8_t token[ABI_TOKEN_BYTES];
};

/* The answer carries a socket to the program that registered the region. */
#define ABI_CMD_REACH 0x5f0cu

struct abi_reach {
	uint32_t mr_handle, reserved;
};

enum abi_access_kind { ABI_ACCESS_LOAD, ABI_ACCESS_STORE, ABI_ACCESS_ADD, ABI_ACCESS_SWAP };

#define ABI_ACCESS_MAX 4096 /* bytes that one access loads or stores: of one page */

/** struct abi_access - what is to be done; the bytes of a STORE follow */
struct abi_access {
	uint32_t kind;	 /* enum abi_access_kind */
	uint32_t number; /* of the question, repeated in the answer */
	uint32_t lkey, length_bytes;
	uint64_t offset;	/* from the beginning of the region */
	uint64_t operand, swap; /* ADD: what is added; SWAP: what is compared, and the new value */
};

/** struct abi_access_answer - the bytes of a LOAD follow */
struct abi_access_answer {
	uint32_t number;
	int32_t error; /* 0; -EFAULT: there is no such memory, or no right */
	uint64_t was;  /* ADD, SWAP: the value before */
};

#endif
