/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Any bytes as an RMPP header, and as the header of each class that has one. */
#include <stdlib.h>
#include <string.h>

#include "wire/sa.h"
#include "wire/vendor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_rmpp rmpp;
	struct wire_vendor vendor;
	struct wire_sa sa;
	uint8_t again[WIRE_RMPP_BYTES];

	if (wire_rmpp_decode(data, size, &rmpp) == WIRE_RMPP_BYTES) {
		wire_rmpp_encode(&rmpp, again); /* RMPP has no reserved bit */
		if (memcmp(again, data, sizeof(again)))
			abort();
	}
	if (wire_sa_decode(data, size, &sa) > 0 &&
	    (wire_vendor_decode(data, size, &vendor) < 0 ||
	     memcmp(&sa.rmpp, &vendor.rmpp, sizeof(rmpp))))
		abort();
	return 0;
}
