/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The protocol of a cable: session.h has the messages. */
#include "cable/session_private.h"

#include <errno.h>
#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/crypto_hash_sha256.h>
#include <sodium/utils.h>
#include <string.h>

#include "base/bytes.h"

#define HEADER_BYTES  5 /* length and type */
#define TX_BYTES      (512u << 10)
#define TX_DATA_BYTES (256u << 10) /* data packets leave this much for the other messages */
#define CREDIT_STEP   (CABLE_WINDOW / 4)

_Static_assert(CABLE_KEY_BYTES == crypto_auth_hmacsha256_KEYBYTES && CABLE_KEY_BYTES == crypto_hash_sha256_BYTES,
	       "a key is the hash of a secret, and that of an HMAC");

static const char magic[16] = "softib cable 1\n";

/** struct hello - the body of a HELLO, which the name follows */
struct hello {
	char magic[16];
	uint8_t nonce[CABLE_NONCE_BYTES];
	uint8_t has_key;
	uint8_t instance[8], guid[8];
};

void cable_key_of(const void *secret, size_t len, uint8_t key[CABLE_KEY_BYTES])
{
	crypto_hash_sha256(key, secret, len);
}

/* --- writing --- */

size_t cable_tx_room(const struct cable_session *s)
{
	return TX_BYTES - (s->tx_end - s->tx_begin);
}

uint8_t *cable_tx_reserve(struct cable_session *s, size_t len)
{
	if (TX_BYTES - s->tx_end < len) {
		memmove(s->tx, s->tx + s->tx_begin, s->tx_end - s->tx_begin);
		s->tx_end -= s->tx_begin;
		s->tx_begin = 0;
	}
	s->tx_end += len;
	return s->tx + s->tx_end - len;
}

/* Return: where the body of a new message is to be written, of which there has to be room */
static uint8_t *put_message(struct cable_session *s, enum cable_message type, size_t body)
{
	uint8_t *at = cable_tx_reserve(s, HEADER_BYTES + body);

	put_be32(at, (uint32_t)(1 + body));
	at[4] = (uint8_t)type;
	return at + HEADER_BYTES;
}

static void put_hello(struct cable_session *s)
{
	const struct cable_identity *own = &s->config.own;
	size_t name = strnlen(own->name, sizeof(own->name) - 1);
	uint8_t *body = put_message(s, CABLE_HELLO, sizeof(struct hello) + name);
	struct hello hello = {.has_key = s->config.key != NULL};

	memcpy(hello.magic, magic, sizeof(magic));
	memcpy(hello.nonce, s->config.nonce, sizeof(hello.nonce));
	put_be64(hello.instance, own->instance);
	put_be64(hello.guid, own->guid);
	memcpy(body, &hello, sizeof(hello));
	memcpy(body + sizeof(hello), own->name, name);
}

/* The proof of the side that listens, or of the one that connects. Each side's own nonce comes second, so no
 * proof can be sent back to whom it came from. */
static void prove(const struct cable_session *s, bool listens, uint8_t proof[crypto_auth_hmacsha256_BYTES])
{
	const bool own = listens == s->config.listens;
	uint8_t text[1 + 2 * CABLE_NONCE_BYTES] = {listens};

	memcpy(text + 1, own ? s->far_nonce : s->config.nonce, CABLE_NONCE_BYTES);
	memcpy(text + 1 + CABLE_NONCE_BYTES, own ? s->config.nonce : s->far_nonce, CABLE_NONCE_BYTES);
	crypto_auth_hmacsha256(proof, text, sizeof(text), s->key);
}

static void put_link(struct cable_session *s)
{
	uint8_t *body = put_message(s, CABLE_LINK, 5);

	body[0] = s->link.plugged;
	body[1] = s->link.phys_request;
	body[2] = s->link.width_enabled;
	put_be16(body + 3, s->link.speed_enabled);
	s->link_due = false;
}

static void put_credit(struct cable_session *s)
{
	s->granted = s->consumed + CABLE_WINDOW;
	put_be64(put_message(s, CABLE_CREDIT, 8), s->granted);
	s->credit_due = false;
}

/* Messages about a state are written when there is room, with the state at that time. */
static void put_due(struct cable_session *s)
{
	if (s->state != CABLE_OPEN || cable_tx_room(s) < 64)
		return;
	if (s->link_due)
		put_link(s);
	if (s->credit_due)
		put_credit(s);
}

const uint8_t *cable_session_output(struct cable_session *s, size_t *len)
{
	if (s->protocol->due)
		s->protocol->due(s);
	*len = s->tx_end - s->tx_begin;
	return s->tx + s->tx_begin;
}

void cable_session_written(struct cable_session *s, size_t len)
{
	s->tx_begin += len;
	if (s->tx_begin == s->tx_end)
		s->tx_begin = s->tx_end = 0;
}

static int send_packet(struct cable_session *s, const struct fab_packet *pkt)
{
	const bool vl15 = pkt->lrh.vl == WIRE_VL_MANAGEMENT;
	uint8_t *body;

	if (s->state != CABLE_OPEN)
		return -ENOTCONN;
	if (cable_tx_room(s) < HEADER_BYTES + 1 + pkt->len + (vl15 ? 0 : TX_BYTES - TX_DATA_BYTES) ||
	    (!vl15 && s->sent + pkt->len > s->may_send)) {
		s->waits++;
		return -EAGAIN;
	}
	body = put_message(s, CABLE_PACKET, 1 + pkt->len);
	body[0] = pkt->hops;
	memcpy(body + 1, pkt->bytes, pkt->len);
	s->packets_sent++;
	if (!vl15)
		s->sent += pkt->len;
	return 0;
}

static void send_link(struct cable_session *s, const struct fab_outlet_link *link)
{
	if (fab_outlet_links_equal(&s->link, link))
		return;
	s->link = *link;
	s->link_due = true;
	put_due(s);
}

void cable_session_consumed(struct cable_session *s, size_t bytes)
{
	s->consumed += bytes;
	s->credit_due |= s->consumed + CABLE_WINDOW - s->granted >= CREDIT_STEP;
}

bool cable_session_is_full(const struct cable_session *s)
{
	return s->config.frames && s->received - s->consumed > CABLE_WINDOW;
}

/* --- reading --- */

ssize_t cable_session_break(struct cable_session *s, const char *why)
{
	s->state = CABLE_BROKEN;
	s->error = why;
	return -EPROTO;
}

static ssize_t open_session(struct cable_session *s)
{
	s->state = CABLE_OPEN;
	s->link_due = s->credit_due = true;
	s->config.ops->opened(s->config.ctx);
	return 0;
}

/* The name is for people: what it has that no terminal and no text may get becomes "?". */
static void take_name(struct cable_session *s, const uint8_t *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		s->far.name[i] = name[i] >= ' ' && name[i] <= '~' ? (char)name[i] : '?';
}

static ssize_t take_hello(struct cable_session *s, const uint8_t *body, size_t len)
{
	const struct cable_identity *own = &s->config.own;
	struct hello hello;

	if (len < sizeof(hello) || len - sizeof(hello) >= CABLE_NAME_BYTES || memcmp(body, magic, sizeof(magic)))
		return cable_session_break(s, "the other side is no softibd, or one of another version");
	memcpy(&hello, body, sizeof(hello));
	memcpy(s->far_nonce, hello.nonce, sizeof(s->far_nonce));
	s->far = (struct cable_identity){.instance = get_be64(hello.instance), .guid = get_be64(hello.guid)};
	take_name(s, body + sizeof(hello), len - sizeof(hello));
	if (hello.has_key != (s->config.key != NULL))
		return cable_session_break(s, s->config.key ? "the other side has no key; give it this one by --key" :
						 "the other side has a key; give it here by --key, too");
	if (s->far.guid == own->guid && s->far.instance != own->instance)
		return cable_session_break(s, "both fabrics have the same GUIDs, because they have the same name; "
				 "start one of them by another name");
	if (!s->config.key)
		return open_session(s);
	prove(s, s->config.listens, put_message(s, CABLE_PROOF, crypto_auth_hmacsha256_BYTES));
	s->state = CABLE_EXPECTS_PROOF;
	return 0;
}

static ssize_t take_proof(struct cable_session *s, const uint8_t *body, size_t len)
{
	uint8_t proof[crypto_auth_hmacsha256_BYTES];

	prove(s, !s->config.listens, proof);
	if (len != sizeof(proof) || sodium_memcmp(body, proof, sizeof(proof)))
		return cable_session_break(s, "the other side has another key");
	return open_session(s);
}

static ssize_t take_link(struct cable_session *s, const uint8_t *body, size_t len)
{
	struct fab_outlet_link link = {0};

	if (len != 5 || body[0] > 1)
		return cable_session_break(s, "the other side sent a LINK that is none");
	link.plugged = body[0];
	link.phys_request = body[1];
	link.width_enabled = body[2];
	link.speed_enabled = get_be16(body + 3);
	s->config.ops->far_link(s->config.ctx, &link);
	return 0;
}

static ssize_t take_credit(struct cable_session *s, const uint8_t *body, size_t len)
{
	const uint64_t limit = len == 8 ? get_be64(body) : 0;

	if (len != 8 || limit < s->may_send || limit < s->sent || limit > s->sent + CABLE_WINDOW)
		return cable_session_break(s, "the other side sent a CREDIT that is none");
	s->may_send = limit;
	return 0;
}

static ssize_t take_packet(struct cable_session *s, const uint8_t *body, size_t len)
{
	struct fab_packet pkt;

	if (len < 1 || fab_packet_decode(&pkt, body + 1, len - 1))
		return cable_session_break(s, "the other side sent a packet that is none");
	pkt.hops = body[0];
	if (pkt.lrh.vl != WIRE_VL_MANAGEMENT)
		s->received += pkt.len;
	if (s->received > s->granted)
		return cable_session_break(s, "the other side sent more than it had credits for");
	s->packets_received++;
	s->config.ops->packet(s->config.ctx, &pkt);
	return 0;
}

/* the message that is allowed in each state, and what takes it */
static ssize_t take(struct cable_session *s, uint8_t type, const uint8_t *body, size_t len)
{
	static const struct {
		enum cable_state state;
		ssize_t (*fn)(struct cable_session *s, const uint8_t *body, size_t len);
	} takes[] = {
		[CABLE_HELLO] = {CABLE_EXPECTS_HELLO, take_hello},
		[CABLE_PROOF] = {CABLE_EXPECTS_PROOF, take_proof},
		[CABLE_LINK] = {CABLE_OPEN, take_link},
		[CABLE_CREDIT] = {CABLE_OPEN, take_credit},
		[CABLE_PACKET] = {CABLE_OPEN, take_packet},
	};

	if (type >= ARRAY_SIZE(takes) || !takes[type].fn || takes[type].state != s->state)
		return cable_session_break(s, s->state == CABLE_EXPECTS_HELLO ?
					 "the other side is no softibd, or one of another version" :
					 "the other side sent a message that does not belong there");
	return takes[type].fn(s, body, len);
}

static ssize_t take_messages(struct cable_session *s, const uint8_t *bytes, size_t len)
{
	size_t at = 0;

	while (s->state != CABLE_BROKEN && len - at >= HEADER_BYTES) {
		const uint32_t n = get_be32(bytes + at);

		if (n < 1 || n > CABLE_MESSAGE_MAX - 4)
			return cable_session_break(s, "the other side is no softibd, or one of another version");
		if (len - at < 4 + n)
			break;
		if (take(s, bytes[at + 4], bytes + at + HEADER_BYTES, n - 1) < 0)
			return -EPROTO;
		at += 4 + n;
	}
	return s->state == CABLE_BROKEN ? -EPROTO : (ssize_t)at;
}

static const struct cable_protocol softibd = {
	.input = take_messages, .send = send_packet, .link = send_link, .due = put_due};

/* --- either protocol --- */

ssize_t cable_session_input(struct cable_session *s, const uint8_t *bytes, size_t len)
{
	return s->protocol->input(s, bytes, len);
}

int cable_session_send(struct cable_session *s, const struct fab_packet *pkt)
{
	return s->protocol->send(s, pkt);
}

void cable_session_link(struct cable_session *s, const struct fab_outlet_link *link)
{
	s->protocol->link(s, link);
}

/* --- begin and end --- */

int cable_session_init(struct cable_session *s, const struct cable_config *config)
{
	*s = (struct cable_session){.config = *config, .protocol = config->frames ? &cable_frames : &softibd};
	s->tx = rt_alloc(TX_BYTES);
	if (!s->tx)
		return -ENOMEM;
	if (config->key)
		memcpy(s->key, config->key, sizeof(s->key));
	if (!config->frames)
		put_hello(s);
	return 0;
}

void cable_session_start(struct cable_session *s)
{
	if (s->config.frames)
		open_session(s);
}

void cable_session_exit(struct cable_session *s)
{
	rt_free(s->tx);
	sodium_memzero(s, sizeof(*s));
}
