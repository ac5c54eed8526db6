/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Any bytes of an NBD client, in the portions that the first byte says: the handshake
 * comes to the same end in portions as at once, and requests follow it. */
#include <string.h>

#include "check.h"
#include "nbd/nbd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t sent;

static bool find(void *ctx, const char *name, struct nbd_export *export)
{
	check(strlen(name) < NBD_NAME_BYTES);
	*export = (struct nbd_export){1 << 20, 512, 65536, NBD_HAS_FLAGS | NBD_CAN_FLUSH};
	return name[0] == 'd';
}

static bool nth(void *ctx, unsigned int i, char name[NBD_NAME_BYTES])
{
	memset(name, 'd', NBD_NAME_BYTES - 1);
	name[NBD_NAME_BYTES - 1] = '\0';
	return i < 2;
}

static void count(void *ctx, const void *what, size_t bytes)
{
	sent += bytes + ((const uint8_t *)what)[bytes - 1];
}

static const struct nbd_server server = {NULL, find, nth, count};

static enum nbd_verdict take(const uint8_t *data, size_t size, size_t step, size_t *used)
{
	enum nbd_verdict verdict = NBD_MORE;
	struct nbd_handshake hs = {0};
	size_t have = 0, n;

	*used = sent = 0;
	while (verdict == NBD_MORE && have < size) {
		have += MIN(step, size - have);
		verdict =
			nbd_handshake_take(&hs, &server, data + *used, have - *used, &n);
		check(n <= have - *used);
		*used += n;
		check(verdict != NBD_MORE || have - *used < NBD_OPTION_BYTES);
	}
	return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct nbd_export disk;
	struct nbd_request r;
	uint8_t to[NBD_REPLY_BYTES];
	size_t used, again, bytes;
	enum nbd_verdict verdict;

	if (!size)
		return 0;
	verdict = take(data + 1, size - 1, size, &used);
	bytes = sent;
	check(take(data + 1, size - 1, data[0] + 1u, &again) == verdict);
	check(sent == bytes && (verdict == NBD_CLOSE || again == used));
	find(NULL, "d", &disk);
	for (data += 1 + used, size -= 1 + used; size >= NBD_REQUEST_BYTES;
	     data += NBD_REQUEST_BYTES, size -= NBD_REQUEST_BYTES) {
		if (nbd_request_decode(data, &r))
			break;
		if (!nbd_request_check(&r, &disk) && r.type != NBD_FLUSH)
			check(r.bytes && r.offset + r.bytes <= disk.bytes);
		check(nbd_reply_build(&r, true, 0, to) <= sizeof(to));
	}
	return 0;
}
