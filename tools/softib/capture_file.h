/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A capture on its way into a file (capture_file.c). */
#ifndef SOFTIB_TOOLS_CAPTURE_FILE_H
#define SOFTIB_TOOLS_CAPTURE_FILE_H

#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/capture.h"
#include "wire/packet.h"

#define CAPTURE_CRC_BYTES (WIRE_ICRC_BYTES + WIRE_VCRC_BYTES)

struct interface;

/** struct capture_file - the first group is its user's to set */
struct capture_file {
	struct json_object *nodes; /* names, in softibd's order */
	uint32_t snap;		   /* bytes of a packet; 0: all */
	int out_fd;		   /* before the first flush */
	/* --- to be read --- */
	int error; /* of writing: -errno */
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

/** capture_file_begin() - Return: 0; EXIT_FAILURE (said) */
int capture_file_begin(struct capture_file *f);
/** capture_file_put() - the packet @bytes, @len of it, which @record describes */
void capture_file_put(struct capture_file *f, const struct abi_capture_record *record,
		      const uint8_t *bytes, size_t len);
/** capture_file_flush() - write what was put; f->error tells how it went */
void capture_file_flush(struct capture_file *f);
/** capture_file_end() - the statistics, and all that was not written.
 *  @dropped: records that found no room */
void capture_file_end(struct capture_file *f, uint64_t dropped);
void capture_file_free(struct capture_file *f);

#endif
