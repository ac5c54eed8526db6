/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The transmission phase: requests and replies. */
#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "nbd/nbd.h"

#define REQUEST_MAGIC	 0x25609513
#define SIMPLE_MAGIC	 0x67446698
#define STRUCTURED_MAGIC 0x668e33ef

enum { CHUNK_DONE = 1 << 0 };
enum chunk { CHUNK_OFFSET_DATA = 1, CHUNK_ERROR = 0x8001 };

/** struct rule - what a command needs */
struct rule {
	uint16_t needs;	  /* of the export; enum nbd_export_flags */
	uint16_t may;	  /* enum nbd_command_flags */
	bool changes;	  /* the disk */
	bool is_range;	  /* offset and length are of the disk */
	bool is_transfer; /* max_bytes is its limit */
};

static const struct rule rules[] = {
	[NBD_READ] = {0, NBD_FUA, false, true, true},
	[NBD_WRITE] = {0, NBD_FUA, true, true, true},
	[NBD_FLUSH] = {NBD_CAN_FLUSH, NBD_FUA, false, false, false},
	[NBD_TRIM] = {NBD_CAN_TRIM, NBD_FUA, true, true, false},
	[NBD_WRITE_ZEROES] = {NBD_CAN_ZERO, NBD_FUA | NBD_NO_HOLE, true, true, false},
};

int nbd_request_decode(const uint8_t in[NBD_REQUEST_BYTES], struct nbd_request *request)
{
	if (get_be32(in) != REQUEST_MAGIC)
		return -EINVAL;
	*request = (struct nbd_request){
		.flags = get_be16(in + 4),
		.type = get_be16(in + 6),
		.cookie = get_be64(in + 8),
		.offset = get_be64(in + 16),
		.bytes = get_be32(in + 24),
	};
	return 0;
}

uint32_t nbd_request_payload(const struct nbd_request *request)
{
	return request->type == NBD_WRITE ? request->bytes : 0;
}

static int check_range(const struct nbd_request *r, const struct nbd_export *export,
		       const struct rule *rule)
{
	bool beyond = r->offset > export->bytes || r->bytes > export->bytes - r->offset;

	if (beyond)
		return rule->changes ? NBD_ENOSPC : NBD_EINVAL;
	if (!r->bytes || (r->offset | r->bytes) & (export->block_bytes - 1))
		return NBD_EINVAL;
	return rule->is_transfer && r->bytes > export->max_bytes ? NBD_EINVAL : 0;
}

int nbd_request_check(const struct nbd_request *r, const struct nbd_export *export)
{
	const struct rule *rule = r->type < ARRAY_SIZE(rules) ? &rules[r->type] : NULL;

	if (!rule || !rule->may)
		return NBD_EINVAL;
	if (r->flags & ~rule->may ||
	    (r->flags & NBD_FUA && !(export->flags & NBD_CAN_FUA)))
		return NBD_EINVAL;
	if (rule->changes && export->flags & NBD_READ_ONLY)
		return NBD_EPERM;
	if ((export->flags & rule->needs) != rule->needs)
		return NBD_EINVAL;
	return rule->is_range ? check_range(r, export, rule) : 0;
}

static size_t build_simple(const struct nbd_request *r, int error, uint8_t *to)
{
	put_be32(to, SIMPLE_MAGIC);
	put_be32(to + 4, (uint32_t)error);
	put_be64(to + 8, r->cookie);
	return 16;
}

/* One chunk is the whole reply. */
static size_t build_chunk(const struct nbd_request *r, int error, uint8_t *to)
{
	put_be32(to, STRUCTURED_MAGIC);
	put_be16(to + 4, CHUNK_DONE);
	put_be16(to + 6, error ? CHUNK_ERROR : CHUNK_OFFSET_DATA);
	put_be64(to + 8, r->cookie);
	put_be32(to + 16, error ? 6 : 8 + r->bytes);
	if (!error) {
		put_be64(to + 20, r->offset);
		return 28;
	}
	put_be32(to + 20, (uint32_t)error);
	put_be16(to + 24, 0); /* no message */
	return 26;
}

/* Only reads must be answered by chunks. */
size_t nbd_reply_build(const struct nbd_request *r, bool structured, int error,
		       uint8_t to[NBD_REPLY_BYTES])
{
	return structured && r->type == NBD_READ ? build_chunk(r, error, to)
						 : build_simple(r, error, to);
}
