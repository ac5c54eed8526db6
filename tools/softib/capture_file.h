/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Writes a capture to a file (capture_file.c). */
#ifndef SOFTIB_TOOLS_CAPTURE_FILE_H
#define SOFTIB_TOOLS_CAPTURE_FILE_H

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/capture.h"
#include "wire/packet.h"

#define CAPTURE_CRC_BYTES (WIRE_ICRC_BYTES + WIRE_VCRC_BYTES)

struct interface;

/** struct capture_file - a file; the caller sets the first group */
struct capture_file {
	struct json_object *nodes; /* the nodes, in softibd's order */
	uint32_t snap;		   /* bytes of a packet; 0: all */
	int out_fd;		   /* to be set before the first flush */
	/* --- to be read --- */
	int error; /* -errno of writing, or 0 */
	uint64_t packets, bytes;
	/* --- private --- */
	struct interface **interface; /* [node][port] */
	uint32_t num_interfaces;
	uint8_t *batch;
	size_t batch_bytes;
	uint8_t known[WIRE_PACKET_MAX + CAPTURE_CRC_BYTES]; /* the last packet, with its CRCs */
	size_t known_bytes;
	uint64_t dropped_seen, last_time_ns;
};

/** capture_file_begin() - Return: 0; EXIT_FAILURE, after printing a message */
int capture_file_begin(struct capture_file *f);
/** capture_file_put() - add @len bytes of a packet, which @record describes */
void capture_file_put(struct capture_file *f, const struct abi_capture_record *record,
		      const uint8_t *bytes, size_t len);
/** capture_file_flush() - write the added packets; sets f->error */
void capture_file_flush(struct capture_file *f);
/** capture_file_end() - write the statistics, and everything that was not written yet
 *  @dropped: records for which the ring had no room */
void capture_file_end(struct capture_file *f, uint64_t dropped);
void capture_file_free(struct capture_file *f);

#endif
