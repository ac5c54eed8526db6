/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Any bytes of the other side of a cable. The first byte tells the role, whether there is a key, whether the session
 * is open before the others come, and in which portions they do: all portions come to the same end. */
#include <errno.h>
#include <string.h>

#include "cable/session.h"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LEFT_BYTES 2000 /* of data packets that a session still has room for when the bytes come */

struct side {
	struct cable_session session;
	unsigned int opened, links, packets;
	bool consumes;
};

static void opened(void *ctx)
{
	((struct side *)ctx)->opened++;
}

static void far_link(void *ctx, const struct fab_outlet_link *link)
{
	struct side *side = ctx;

	check(side->opened == 1);
	side->links++;
	cable_session_link(&side->session, link);
}

static void packet(void *ctx, struct fab_packet *pkt)
{
	struct side *side = ctx;
	uint8_t copy[WIRE_PACKET_MAX];

	check(side->opened == 1 && pkt->len <= sizeof(copy));
	memcpy(copy, pkt->bytes, pkt->len);
	check(side->session.received <= side->session.granted);
	side->packets++;
	cable_session_send(&side->session, pkt);
	check(side->session.sent <= side->session.may_send);
	if (side->consumes && pkt->lrh.vl != WIRE_VL_MANAGEMENT)
		cable_session_consumed(&side->session, pkt->len);
}

static const struct cable_ops ops = {.opened = opened, .far_link = far_link, .packet = packet};

static void begin(struct side *side, bool listens, bool has_key)
{
	static const uint8_t key[CABLE_KEY_BYTES] = "a key";
	struct cable_config config = {
		.ops = &ops, .ctx = side, .listens = listens, .key = has_key ? key : NULL, .nonce = {listens},
		.own = {.instance = listens, .guid = 2u + listens, .name = "lab/s1:5"},
	};

	*side = (struct side){0};
	check(!cable_session_init(&side->session, &config));
}

static void carry(struct side *from, struct side *to)
{
	size_t len;
	const uint8_t *bytes = cable_session_output(&from->session, &len);

	check(cable_session_input(&to->session, bytes, len) == (ssize_t)len);
	cable_session_written(&from->session, len);
}

/* An honest peer opens the session, and leaves it to somebody else. */
static void open_session(struct side *side)
{
	struct side peer;

	begin(&peer, !side->session.config.listens, side->session.config.key);
	for (int i = 0; i < 3; i++) {
		carry(&peer, side);
		carry(side, &peer);
	}
	check(side->opened == 1 && peer.opened == 1 && peer.session.state == CABLE_OPEN);
	side->session.received = side->session.granted - LEFT_BYTES;
	cable_session_exit(&peer.session);
}

static void is_sound(const struct side *side)
{
	const struct cable_session *s = &side->session;

	check((s->state == CABLE_BROKEN) == (s->error != NULL));
	check(side->opened == (s->state == CABLE_OPEN || (side->opened && s->state == CABLE_BROKEN)));
	check(s->state == CABLE_BROKEN || s->received <= s->granted);
	check(s->sent <= s->may_send && s->consumed <= s->received);
	check(strnlen(s->far.name, CABLE_NAME_BYTES) < CABLE_NAME_BYTES);
	for (const char *c = s->far.name; *c; c++)
		check(*c >= ' ' && *c <= '~');
}

static void play(struct side *side, uint8_t how, const uint8_t *data, size_t size, size_t step)
{
	size_t have = 0, used = 0;
	uint8_t *portion;
	ssize_t n = 0;

	begin(side, how & 1, how & 2);
	side->consumes = how & 8;
	if (how & 4)
		open_session(side);
	while (n >= 0 && have < size) {
		have += MIN(step, size - have);
		portion = malloc(have - used); /* so that a read beyond its end is seen */
		memcpy(portion, data + used, have - used);
		n = cable_session_input(&side->session, portion, have - used);
		free(portion);
		is_sound(side);
		check((n < 0) == (side->session.state == CABLE_BROKEN));
		check(n < 0 || (size_t)n <= have - used);
		used += n < 0 ? 0 : (size_t)n;
	}
	check(n < 0 || have - used < CABLE_MESSAGE_MAX);
	check(n >= 0 || cable_session_input(&side->session, data, size) == -EPROTO);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct side whole, parts;

	if (!size)
		return 0;
	play(&whole, data[0], data + 1, size - 1, size);
	play(&parts, data[0], data + 1, size - 1, 1u + (data[0] >> 4));
	check(whole.session.state == parts.session.state && whole.session.error == parts.session.error);
	check(whole.links == parts.links && whole.packets == parts.packets && whole.opened == parts.opened);
	check(whole.session.received == parts.session.received && whole.session.may_send == parts.session.may_send);
	cable_session_exit(&whole.session);
	cable_session_exit(&parts.session);
	return 0;
}
