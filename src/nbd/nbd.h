/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The network block device protocol, the server's side, pure: the fixed newstyle
 * handshake and the messages of the transmission phase. Bytes come in and go out; sockets
 * and disks are the caller's.
 *
 * Source: doc/proto.md of the project NetworkBlockDevice/nbd.
 */
#ifndef SOFTIB_NBD_NBD_H
#define SOFTIB_NBD_NBD_H

#include "base/types.h"

#define NBD_NAME_BYTES	  256  /* of an export, with its NUL */
#define NBD_OPTION_BYTES  4352 /* an option with its data; what is longer is refused */
#define NBD_REQUEST_BYTES 28
#define NBD_REPLY_BYTES	  64 /* the largest reply, without a read's data */

/** enum nbd_export_flags - what an export can do (transmission flags) */
enum nbd_export_flags {
	NBD_HAS_FLAGS = 1 << 0,
	NBD_READ_ONLY = 1 << 1,
	NBD_CAN_FLUSH = 1 << 2,
	NBD_CAN_FUA = 1 << 3,
	NBD_CAN_TRIM = 1 << 5,
	NBD_CAN_ZERO = 1 << 6,
	NBD_CAN_MULTI_CONN = 1 << 8,
};

enum nbd_command {
	NBD_READ = 0,
	NBD_WRITE = 1,
	NBD_DISC = 2,
	NBD_FLUSH = 3,
	NBD_TRIM = 4,
	NBD_CACHE = 5,
	NBD_WRITE_ZEROES = 6,
	NBD_BLOCK_STATUS = 7,
};

enum nbd_command_flags { NBD_FUA = 1 << 0, NBD_NO_HOLE = 1 << 1 };

/** enum nbd_error - the protocol's own numbers, which are Linux's */
enum nbd_error {
	NBD_EPERM = 1,
	NBD_EIO = 5,
	NBD_ENOMEM = 12,
	NBD_EINVAL = 22,
	NBD_ENOSPC = 28,
	NBD_ENOTSUP = 95,
	NBD_ESHUTDOWN = 108,
};

/** struct nbd_export - a disk as clients see it */
struct nbd_export {
	uint64_t bytes;
	uint32_t block_bytes; /* offsets and lengths are multiples */
	uint32_t max_bytes;   /* of a read or write */
	uint16_t flags;	      /* enum nbd_export_flags */
};

/* --- handshake ------------------------------------------------------------------- */

/** struct nbd_server - functions of the caller's */
struct nbd_server {
	void *ctx;
	/** find() - Return: is there an export @name? Then *@export is set */
	bool (*find)(void *ctx, const char *name, struct nbd_export *export);
	/** nth() - the name of export @i. Return: false: there are no more */
	bool (*nth)(void *ctx, unsigned int i, char name[NBD_NAME_BYTES]);
	/** send() - append @bytes to what the client is sent */
	void (*send)(void *ctx, const void *data, size_t bytes);
};

/** struct nbd_handshake - the state of one connection; zero at first */
struct nbd_handshake {
	bool has_flags, no_zeroes;
	bool structured;	   /* reads are answered by structured replies */
	uint64_t skip;		   /* bytes of an option that is too long */
	char name[NBD_NAME_BYTES]; /* of the export that was chosen */
	struct nbd_export export;
};

enum nbd_verdict {
	NBD_MORE,     /* more bytes are needed */
	NBD_TRANSMIT, /* the handshake is over: requests for hs->export follow */
	NBD_CLOSE,    /* the client ended it, or broke the protocol */
};

/** nbd_greet() - what the server says first */
void nbd_greet(const struct nbd_server *server);
/**
 * nbd_handshake_take() - go on with bytes that came
 * @in: those that were not used before, and newer ones; the caller keeps at least
 *	NBD_OPTION_BYTES of them
 * @used: set to how many of them are done with
 */
enum nbd_verdict nbd_handshake_take(struct nbd_handshake *hs,
				    const struct nbd_server *server, const uint8_t *in,
				    size_t len, size_t *used);

/* --- transmission ------------------------------------------------------------------ */

struct nbd_request {
	uint16_t flags; /* enum nbd_command_flags */
	uint16_t type;	/* enum nbd_command */
	uint64_t cookie, offset;
	uint32_t bytes;
};

/** nbd_request_decode() - Return: 0; -EINVAL: no request begins here, and the connection
 *  cannot go on */
int nbd_request_decode(const uint8_t in[NBD_REQUEST_BYTES], struct nbd_request *request);
/** nbd_request_check() - may @request be done? Return: 0; enum nbd_error */
int nbd_request_check(const struct nbd_request *request, const struct nbd_export *export);
/** nbd_request_payload() - Return: bytes of data that follow the request */
uint32_t nbd_request_payload(const struct nbd_request *request);
/**
 * nbd_reply_build() - what the answer begins with; the data of a read that has no @error
 * follows it
 * @structured: as agreed in the handshake
 * @error: 0; enum nbd_error
 * Return: bytes
 */
size_t nbd_reply_build(const struct nbd_request *request, bool structured, int error,
		       uint8_t to[NBD_REPLY_BYTES]);

#endif
