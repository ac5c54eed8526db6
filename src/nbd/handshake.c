/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The handshake: the client asks by options until it has chosen an export. */
#include <string.h>

#include "base/bytes.h"
#include "nbd/nbd.h"

#define MAGIC	     0x4e42444d41474943ull /* "NBDMAGIC" */
#define OPTION_MAGIC 0x49484156454f5054ull /* "IHAVEOPT" */
#define REPLY_MAGIC  0x0003e889045565a9ull

enum { FIXED_NEWSTYLE = 1 << 0, NO_ZEROES = 1 << 1 }; /* flags of both ends */

enum option {
	OPT_EXPORT_NAME = 1,
	OPT_ABORT = 2,
	OPT_LIST = 3,
	OPT_INFO = 6,
	OPT_GO = 7,
	OPT_STRUCTURED_REPLY = 8,
};

enum reply {
	REP_ACK = 1,
	REP_SERVER = 2,
	REP_INFO = 3,
	REP_UNSUPPORTED = 0x80000001,
	REP_INVALID = 0x80000003,
	REP_UNKNOWN = 0x80000006,
	REP_TOO_BIG = 0x80000009,
};

enum info { INFO_EXPORT = 0, INFO_NAME = 1, INFO_BLOCK_SIZE = 3 };

#define OPTION_HEAD 16
#define ZEROES	    124 /* behind the answer to OPT_EXPORT_NAME */
#define PREFERRED   4096

/** struct option_in - an option with its data */
struct option_in {
	struct nbd_handshake *hs;
	const struct nbd_server *server;
	uint32_t option;
	const uint8_t *data;
	uint32_t bytes;
};

static void reply(const struct option_in *in, uint32_t type, const void *data,
		  size_t bytes)
{
	uint8_t head[20];

	put_be64(head, REPLY_MAGIC);
	put_be32(head + 8, in->option);
	put_be32(head + 12, type);
	put_be32(head + 16, (uint32_t)bytes);
	in->server->send(in->server->ctx, head, sizeof(head));
	if (bytes)
		in->server->send(in->server->ctx, data, bytes);
}

static enum nbd_verdict refuse(const struct option_in *in, uint32_t type, const char *why)
{
	reply(in, type, why, strlen(why));
	return NBD_MORE;
}

void nbd_greet(const struct nbd_server *server)
{
	uint8_t greeting[18];

	put_be64(greeting, MAGIC);
	put_be64(greeting + 8, OPTION_MAGIC);
	put_be16(greeting + 16, FIXED_NEWSTYLE | NO_ZEROES);
	server->send(server->ctx, greeting, sizeof(greeting));
}

/* --- the options ------------------------------------------------------------------ */

/* Return: is it the name of an export, which hs->name and hs->export then describe? */
static bool choose(const struct option_in *in, const uint8_t *name, uint32_t bytes)
{
	struct nbd_handshake *hs = in->hs;

	if (bytes >= sizeof(hs->name) || memchr(name, 0, bytes))
		return false;
	memcpy(hs->name, name, bytes);
	hs->name[bytes] = '\0';
	return in->server->find(in->server->ctx, hs->name, &hs->export);
}

/* The old way to choose an export: a name that there is not has no answer. */
static enum nbd_verdict on_export_name(const struct option_in *in)
{
	uint8_t answer[10 + ZEROES] = {0};

	if (!choose(in, in->data, in->bytes))
		return NBD_CLOSE;
	put_be64(answer, in->hs->export.bytes);
	put_be16(answer + 8, in->hs->export.flags);
	in->server->send(in->server->ctx, answer,
			 in->hs->no_zeroes ? 10 : sizeof(answer));
	return NBD_TRANSMIT;
}

static enum nbd_verdict on_abort(const struct option_in *in)
{
	reply(in, REP_ACK, NULL, 0);
	return NBD_CLOSE;
}

static enum nbd_verdict on_list(const struct option_in *in)
{
	uint8_t data[4 + NBD_NAME_BYTES];
	char name[NBD_NAME_BYTES];

	if (in->bytes)
		return refuse(in, REP_INVALID, "a list is asked for without data");
	for (unsigned int i = 0; in->server->nth(in->server->ctx, i, name); i++) {
		size_t bytes = strlen(name);

		put_be32(data, (uint32_t)bytes);
		memcpy(data + 4, name, bytes);
		reply(in, REP_SERVER, data, 4 + bytes);
	}
	reply(in, REP_ACK, NULL, 0);
	return NBD_MORE;
}

static void send_info(const struct option_in *in, bool name_too)
{
	const struct nbd_export *export = &in->hs->export;
	uint8_t data[2 + NBD_NAME_BYTES];
	size_t bytes = strlen(in->hs->name);

	put_be16(data, INFO_EXPORT);
	put_be64(data + 2, export->bytes);
	put_be16(data + 10, export->flags);
	reply(in, REP_INFO, data, 12);
	put_be16(data, INFO_BLOCK_SIZE);
	put_be32(data + 2, export->block_bytes);
	put_be32(data + 6, MAX(export->block_bytes, PREFERRED));
	put_be32(data + 10, export->max_bytes);
	reply(in, REP_INFO, data, 14);
	if (!name_too)
		return;
	put_be16(data, INFO_NAME);
	memcpy(data + 2, in->hs->name, bytes);
	reply(in, REP_INFO, data, 2 + bytes);
}

/* The data: a name with its length, and the number and list of kinds of information. */
static enum nbd_verdict on_info(const struct option_in *in)
{
	const uint8_t *kinds;
	bool name_too = false;
	uint32_t name, nr;

	if (in->bytes < 6)
		return refuse(in, REP_INVALID, "the name of an export is missing");
	name = get_be32(in->data);
	if (name > in->bytes - 6)
		return refuse(in, REP_INVALID, "the name is longer than the option");
	kinds = in->data + 4 + name;
	nr = get_be16(kinds);
	if (in->bytes != 6 + name + 2 * nr)
		return refuse(in, REP_INVALID, "the list is not as long as it says");
	for (uint32_t i = 0; i < nr; i++)
		name_too |= get_be16(kinds + 2 + 2 * i) == INFO_NAME;
	if (!choose(in, in->data + 4, name))
		return refuse(in, REP_UNKNOWN,
			      "no unit has this name: 'softib srp list' shows them");
	send_info(in, name_too);
	reply(in, REP_ACK, NULL, 0);
	return in->option == OPT_GO ? NBD_TRANSMIT : NBD_MORE;
}

static enum nbd_verdict on_structured_reply(const struct option_in *in)
{
	if (in->bytes)
		return refuse(in, REP_INVALID,
			      "structured replies are asked for without data");
	in->hs->structured = true;
	reply(in, REP_ACK, NULL, 0);
	return NBD_MORE;
}

static const struct {
	enum option option;
	enum nbd_verdict (*take)(const struct option_in *in);
} options[] = {
	{OPT_EXPORT_NAME, on_export_name},
	{OPT_ABORT, on_abort},
	{OPT_LIST, on_list},
	{OPT_INFO, on_info},
	{OPT_GO, on_info},
	{OPT_STRUCTURED_REPLY, on_structured_reply},
};

static enum nbd_verdict take_option(const struct option_in *in)
{
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (options[i].option == in->option)
			return options[i].take(in);
	return refuse(in, REP_UNSUPPORTED, "this server has no such option");
}

/* --- bytes to options ----------------------------------------------------------------
 */

static enum nbd_verdict take_flags(struct nbd_handshake *hs, uint32_t flags)
{
	hs->has_flags = true;
	hs->no_zeroes = flags & NO_ZEROES;
	return flags & ~(uint32_t)(FIXED_NEWSTYLE | NO_ZEROES) ? NBD_CLOSE : NBD_MORE;
}

enum nbd_verdict nbd_handshake_take(struct nbd_handshake *hs,
				    const struct nbd_server *server, const uint8_t *in,
				    size_t len, size_t *used)
{
	enum nbd_verdict verdict = NBD_MORE;
	size_t at = 0;

	while (verdict == NBD_MORE) {
		struct option_in o = {hs, server};
		size_t skip = (size_t)MIN(hs->skip, (uint64_t)(len - at));

		hs->skip -= skip;
		at += skip;
		if (len - at < (hs->has_flags ? OPTION_HEAD : 4))
			break;
		if (!hs->has_flags) {
			verdict = take_flags(hs, get_be32(in + at));
			at += 4;
			continue;
		}
		if (get_be64(in + at) != OPTION_MAGIC) {
			verdict = NBD_CLOSE;
			break;
		}
		o.option = get_be32(in + at + 8);
		o.bytes = get_be32(in + at + 12);
		o.data = in + at + OPTION_HEAD;
		if (o.bytes > NBD_OPTION_BYTES - OPTION_HEAD) {
			hs->skip = o.bytes;
			at += OPTION_HEAD;
			verdict = refuse(&o, REP_TOO_BIG, "the option is too long");
			continue;
		}
		if (len - at - OPTION_HEAD < o.bytes)
			break;
		at += OPTION_HEAD + o.bytes;
		verdict = take_option(&o);
	}
	*used = at;
	return verdict;
}
