/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Any bytes as an Ethernet frame: its fields are those of the frame, whatever its headers say
 * of lengths, and a rule made of them matches. */
#include <stdlib.h>
#include <string.h>

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_frame_key key, mask;

	if (wire_frame_parse(data, size, &key) < 0)
		return 0;
	memset(&mask, 0xff, sizeof(mask));
	if (memcmp(key.dst_mac, data, sizeof(key.dst_mac)) || !wire_frame_matches(&key, &key, &mask))
		abort();
	if ((key.has & WIRE_FRAME_IPV4 && key.has & WIRE_FRAME_IPV6) ||
	    (key.has & WIRE_FRAME_TCP && key.has & WIRE_FRAME_UDP) ||
	    (key.has & (WIRE_FRAME_TCP | WIRE_FRAME_UDP) &&
	     !(key.has & (WIRE_FRAME_IPV4 | WIRE_FRAME_IPV6))))
		abort();
	wire_toeplitz(data[0] & 1 ? (const uint8_t *)&mask : (const uint8_t *)&key, key.src_ip,
		      WIRE_TOEPLITZ_KEY_BYTES - 4);
	return 0;
}
