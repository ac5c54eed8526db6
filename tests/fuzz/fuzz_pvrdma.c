/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * MADs of a virtual machine and for it, whose ways are noted. Input: MADs, each behind a byte: bit 0 it
 * arrives, the others the sender's number. An answer goes to somebody who has sent something to the guest,
 * or to whom the guest has sent a request.
 */
#include <stdlib.h>
#include <string.h>

#include "pvrdma/mux.h"
#include "wire/cm.h"
#include "wire/mad.h"

#define KNOWN 512

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static union wire_gid known[KNOWN];
static unsigned int num_known;

static bool is_known(const union wire_gid *gid)
{
	for (unsigned int i = 0; i < num_known; i++)
		if (!memcmp(&known[i], gid, sizeof(*gid)))
			return true;
	return false;
}

static bool asks(const uint8_t *mad)
{
	struct wire_mad header;

	wire_mad_decode(mad, PVRDMA_MAD_BYTES, &header);
	return header.attr_id == WIRE_CM_REQ || header.attr_id == WIRE_CM_SIDR_REQ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pvrdma_routes routes;
	struct pvrdma_message message = {0};

	memset(&routes, 0, sizeof(routes));
	num_known = 0;
	memcpy(&message, data, size < sizeof(message) ? size : sizeof(message));
	if (pvrdma_is_request(&message) && message.operation == PVRDMA_MAD &&
	    message.mad_bytes != PVRDMA_MAD_BYTES)
		abort();
	for (; size > PVRDMA_MAD_BYTES && num_known < KNOWN; size -= 1 + PVRDMA_MAD_BYTES) {
		union wire_gid gid = {.raw = {[15] = data[0] >> 1}};
		/* not a byte more than it has may be read */
		uint8_t *mad = malloc(PVRDMA_MAD_BYTES);

		memcpy(mad, data + 1, PVRDMA_MAD_BYTES);
		if (data[0] & 1)
			pvrdma_route_in(&routes, mad, &gid);
		else if (!pvrdma_route_out(&routes, mad, &gid))
			memset(&gid, 0xff, sizeof(gid));
		else if (!asks(mad) && !is_known(&gid))
			abort();
		known[num_known++] = gid;
		free(mad);
		data += 1 + PVRDMA_MAD_BYTES;
	}
	return 0;
}
