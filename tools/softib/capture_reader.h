/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The reader's side of a capture (abi/capture.h): it asks softibd for the packets of a
 * place, takes them out of the ring in shared memory, and gives each to its user.
 */
#ifndef SOFTIB_TOOLS_CAPTURE_READER_H
#define SOFTIB_TOOLS_CAPTURE_READER_H

#include <argp.h>
#include <json-c/json.h>
#include <limits.h>

#include "abi/capture.h"

#define CAPTURE_PORT_ALL LONG_MIN

/** struct capture_place - the ports whose packets are captured */
struct capture_place {
	const char *node; /* NULL: all */
	long port;	  /* CAPTURE_PORT_ALL: all of the node */
};

/** capture_place_parse() - "NODE:PORT", "NODE" or "all"; @arg is cut at the colon */
void capture_place_parse(struct capture_place *place, char *arg);
/** capture_amount_parse() - the value of an option that takes a number from 1 to @most;
 *  any other ends the program, 64 and a message */
long capture_amount_parse(struct argp_state *state, const char *option, const char *arg,
			  long most);

/** struct capture_reader - the first group is its user's to set; zero the others */
struct capture_reader {
	struct capture_place place;
	const char *filter;   /* NULL: every packet */
	uint32_t snap;	      /* bytes of a packet; 0: all */
	uint32_t ring_bytes;  /* a power of two; 0: softibd's choice */
	int progress_ms;      /* call @idle so often; -1: only when packets came */
	/** one packet, @len bytes of it from its LRH on */
	void (*put)(struct capture_reader *r, const struct abi_capture_record *record,
		    const uint8_t *bytes, size_t len);
	/** all packets that were there have been put */
	void (*idle)(struct capture_reader *r);
	/* --- to be read --- */
	bool ended;	  /* capture_reader_end() was called */
	uint64_t dropped; /* packets for which the ring had no room */
	/* --- private --- */
	int control_fd, doorbell_fd;
	struct abi_capture *shared;
	size_t shared_bytes;
	struct abi_ring_rx rx;
};

/** capture_reader_start() - begin the capture at the fabric of @dir; from now on SIGINT,
 *  SIGTERM and SIGHUP end it, and a second one the program.
 *  Return: 0; EXIT_FAILURE (said) */
int capture_reader_start(struct capture_reader *r, const char *dir);
/** capture_reader_run() - put packets until a signal, capture_reader_end() or the end of
 *  softibd; then what was captured before is put as well */
void capture_reader_run(struct capture_reader *r);
/** capture_reader_end() - end the capture; no packet is put after this call.
 *  Context: @put or @idle */
void capture_reader_end(struct capture_reader *r);
/** capture_reader_close() - also of a reader that did not start */
void capture_reader_close(struct capture_reader *r);

/** capture_nodes() - the fabric's nodes as the control socket's "topo" has them, in the
 *  order of abi_capture_record.node. Return: the caller's; NULL (said) */
struct json_object *capture_nodes(const char *dir);

#endif
