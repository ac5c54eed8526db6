/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Any bytes as a message of SDP; one that is read can be written and read again. */
#include <string.h>

#include "check.h"
#include "wire/sdp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_sdp_msg msg, again;
	uint8_t headers[256], whole[4096];
	int len;

	if (wire_sdp_read(data, size, &msg))
		return 0;
	check(range_covers((uintptr_t)data, size, (uintptr_t)msg.payload,
			   msg.payload_bytes));
	len = wire_sdp_write(&msg, headers);
	check(len > 0 && len + msg.payload_bytes <= size);
	if (len + msg.payload_bytes > sizeof(whole))
		return 0;
	memcpy(whole, headers, (size_t)len);
	memcpy(whole + len, msg.payload, msg.payload_bytes);
	check(!wire_sdp_read(whole, len + msg.payload_bytes, &again));
	check(!memcmp(&again.bsdh, &msg.bsdh, sizeof(msg.bsdh)));
	check(!memcmp(&again.hello, &msg.hello, sizeof(msg.hello)));
	return 0;
}
