/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The protocol of a cable: two sessions that talk to each other, and peers that say what they may not. */
#include <errno.h>

#include "../test.h"

#include "base/bytes.h"
#include "heard.h"

struct side {
	struct heard heard;
	struct cable_session session;
	struct side *other;
	uint8_t last_hops;
	size_t last_len;
	bool keeps; /* it does not say that it has consumed what arrived */
};

static const uint8_t key[CABLE_KEY_BYTES] = {1, 2, 3}, other_key[CABLE_KEY_BYTES] = {3, 2, 1};

static uint8_t serial; /* of the random numbers of the next sessions */

static void packet(void *ctx, struct fab_packet *pkt)
{
	struct side *side = ctx;

	side->heard.packets++;
	side->last_hops = pkt->hops;
	side->last_len = pkt->len;
	if (!side->keeps && pkt->lrh.vl != WIRE_VL_MANAGEMENT)
		cable_session_consumed(&side->session, pkt->len);
}

static const struct cable_ops ops = {.opened = heard_opened, .far_link = heard_far_link, .packet = packet};

static void begin(struct side *side, bool listens, const uint8_t *with_key, uint64_t guid)
{
	struct cable_config config = {
		.ops = &ops, .ctx = side, .listens = listens, .key = with_key,
		.own = {.instance = listens ? 1 : 2, .guid = guid},
		.nonce = {listens ? 17 : 18, serial},
	};

	snprintf(config.own.name, sizeof(config.own.name), "lab%d/s1:5", listens);
	assert_int_equal(cable_session_init(&side->session, &config), 0);
}

static struct side *make(const uint8_t *listener_s, const uint8_t *connector_s)
{
	struct side *sides = calloc(2, sizeof(*sides));

	begin(&sides[0], true, listener_s, 100);
	begin(&sides[1], false, connector_s, 200);
	sides[0].other = &sides[1];
	sides[1].other = &sides[0];
	return sides;
}

static void end(struct side *sides)
{
	for (int i = 0; i < 2; i++)
		cable_session_exit(&sides[i].session);
	free(sides);
}

/* what @from has to write, @most bytes of it, reaches the other side. Return: how many; -EPROTO */
static ssize_t carry(struct side *from, size_t most)
{
	static uint8_t bytes[1 << 20];
	size_t len;
	const uint8_t *out = cable_session_output(&from->session, &len);
	ssize_t n;

	len = MIN(len, most);
	memcpy(bytes, out, len);
	n = cable_session_input(&from->other->session, bytes, len);
	if (n > 0)
		cable_session_written(&from->session, (size_t)n);
	return n;
}

/* until both are silent. Return: false: one of them is broken */
static bool talk(struct side *sides)
{
	ssize_t a, b;

	do {
		a = carry(&sides[0], SIZE_MAX);
		b = carry(&sides[1], SIZE_MAX);
	} while (a > 0 || b > 0);
	return a == 0 && b == 0;
}

static struct side *make_open(void)
{
	struct side *sides = make(NULL, NULL);

	assert_true(talk(sides));
	assert_int_equal(sides[0].session.state, CABLE_OPEN);
	assert_int_equal(sides[1].session.state, CABLE_OPEN);
	return sides;
}

/* a UD packet. Return: its length */
static size_t make_packet(struct fab_packet *pkt, uint8_t *buf, uint32_t payload, uint8_t vl)
{
	struct wire_packet p = {
		.lrh = {.vl = vl, .lnh = WIRE_LNH_BTH, .dlid = 2, .slid = 1},
		.bth = {.opcode = WIRE_UD | WIRE_SEND_ONLY, .dest_qpn = 0x42, .pkey = WIRE_PKEY_DEFAULT},
		.payload_bytes = payload,
	};
	int n = wire_packet_encode(&p, buf);

	memset(buf + n, 0xa5, payload);
	assert_int_equal(fab_packet_decode(pkt, buf, (size_t)n + payload), 0);
	return pkt->len;
}

static int send_packet(struct side *side, uint32_t payload, uint8_t vl)
{
	uint8_t buf[WIRE_PACKET_MAX];
	struct fab_packet pkt;

	make_packet(&pkt, buf, payload, vl);
	pkt.hops = 7;
	return cable_session_send(&side->session, &pkt);
}

/* bytes that @side's peer has never sent. Return: cable_session_input()'s */
static ssize_t hear(struct side *side, uint8_t type, const void *body, size_t len)
{
	uint8_t bytes[CABLE_MESSAGE_MAX];

	put_be32(bytes, (uint32_t)len + 1);
	bytes[4] = type;
	memcpy(bytes + 5, body, len);
	return cable_session_input(&side->session, bytes, 5 + len);
}

static void breaks(struct side *side, uint8_t type, const void *body, size_t len, const char *why)
{
	assert_int_equal(hear(side, type, body, len), -EPROTO);
	assert_int_equal(side->session.state, CABLE_BROKEN);
	assert_non_null(strstr(side->session.error, why));
	/* and it says and hears nothing more */
	assert_int_equal(send_packet(side, 64, 0), -ENOTCONN);
	assert_int_equal(hear(side, CABLE_LINK, (uint8_t[5]){0}, 5), -EPROTO);
}

/* --- who it is --- */

static void both_sides_know_each_other(void **state)
{
	struct side *sides = make_open();

	for (int i = 0; i < 2; i++) {
		assert_int_equal(sides[i].heard.opened, 1);
		assert_int_equal(sides[i].heard.links, 1);
		assert_int_equal(sides[i].session.may_send, CABLE_WINDOW);
	}
	assert_string_equal(sides[1].session.far.name, "lab1/s1:5");
	assert_int_equal(sides[1].session.far.guid, 100);
	end(sides);
}

static void bytes_may_come_one_by_one(void **state)
{
	struct side *sides = make(key, key);
	uint8_t buf[256];
	size_t len, have = 0;

	while (!sides[0].heard.opened) {
		const uint8_t *out = cable_session_output(&sides[1].session, &len);
		ssize_t n;

		if (!len) {
			assert_true(carry(&sides[0], SIZE_MAX) > 0);
			continue;
		}
		buf[have++] = out[0];
		cable_session_written(&sides[1].session, 1);
		n = cable_session_input(&sides[0].session, buf, have);
		assert_true(n == 0 || n == (ssize_t)have);
		have -= (size_t)n;
	}
	end(sides);
}

static void the_same_key_opens(void **state)
{
	struct side *sides = make(key, key);

	assert_true(talk(sides));
	assert_int_equal(sides[0].heard.opened + sides[1].heard.opened, 2);
	end(sides);
}

static void another_key_does_not(void **state)
{
	struct side *sides = make(key, other_key);

	assert_false(talk(sides));
	assert_int_equal(sides[0].heard.opened + sides[1].heard.opened, 0);
	assert_non_null(strstr(sides[0].session.error, "another key"));
	end(sides);
}

static void a_key_on_one_side_alone_does_not(void **state)
{
	struct side *sides = make(key, NULL);

	assert_int_equal(carry(&sides[1], SIZE_MAX), -EPROTO);
	assert_non_null(strstr(sides[0].session.error, "has no key"));
	assert_int_equal(carry(&sides[0], SIZE_MAX), -EPROTO);
	assert_non_null(strstr(sides[1].session.error, "has a key"));
	assert_int_equal(sides[0].heard.opened + sides[1].heard.opened, 0);
	end(sides);
}

/* Who has no key sends back what it is sent: the nonce first, then the proof. */
static void a_proof_that_is_sent_back_is_none(void **state)
{
	struct side *sides = make(key, key);
	uint8_t hello[256];
	size_t len;
	const uint8_t *out = cable_session_output(&sides[0].session, &len);

	memcpy(hello, out, len);
	put_be64(hello + 5 + 16 + 32 + 1 + 8, 300); /* of another fabric */
	cable_session_written(&sides[0].session, len);
	assert_int_equal(cable_session_input(&sides[0].session, hello, len), len);
	out = cable_session_output(&sides[0].session, &len);
	assert_int_equal(out[4], CABLE_PROOF);
	memcpy(hello, out, len);
	assert_int_equal(cable_session_input(&sides[0].session, hello, len), -EPROTO);
	assert_int_equal(sides[0].heard.opened, 0);
	end(sides);
}

/* A proof is of this connection's random numbers. */
static void a_proof_of_another_connection_is_none(void **state)
{
	struct side *before = make(key, key), *sides;
	uint8_t bytes[512];
	const uint8_t *out;
	size_t len;

	serial = 1;
	sides = make(key, key);
	serial = 0;
	assert_true(carry(&before[0], SIZE_MAX) > 0);
	out = cable_session_output(&before[1].session, &len); /* its HELLO and its proof */
	memcpy(bytes, out, len);
	assert_int_equal(cable_session_input(&sides[0].session, bytes, len), -EPROTO);
	assert_int_equal(sides[0].heard.opened, 0);
	end(before);
	end(sides);
}

static void fabrics_of_one_name_are_refused(void **state)
{
	struct side *sides = calloc(2, sizeof(*sides));

	begin(&sides[0], true, NULL, 100);
	begin(&sides[1], false, NULL, 100);
	sides[0].other = &sides[1];
	sides[1].other = &sides[0];
	assert_int_equal(carry(&sides[1], SIZE_MAX), -EPROTO);
	assert_non_null(strstr(sides[0].session.error, "same name"));
	end(sides);
}

static void a_fabric_may_have_both_ends(void **state)
{
	struct side *sides = calloc(2, sizeof(*sides));

	begin(&sides[0], true, NULL, 100);
	begin(&sides[1], false, NULL, 100);
	sides[0].session.config.own.instance = sides[1].session.config.own.instance;
	sides[0].other = &sides[1];
	sides[1].other = &sides[0];
	assert_true(carry(&sides[1], SIZE_MAX) > 0);
	assert_int_equal(sides[0].heard.opened, 1);
	end(sides);
}

/* --- what is said --- */

static void a_link_is_told_when_it_changes(void **state)
{
	struct side *sides = make_open();
	struct fab_outlet_link link = {.plugged = true, .phys_request = 2, .width_enabled = 3, .speed_enabled = 0x123};

	cable_session_link(&sides[0].session, &link);
	cable_session_link(&sides[0].session, &link);
	assert_true(talk(sides));
	assert_int_equal(sides[1].heard.links, 2);
	assert_true(fab_outlet_links_equal(&sides[1].heard.link, &link));
	end(sides);
}

static void packets_cross_with_their_hops(void **state)
{
	struct side *sides = make_open();

	assert_int_equal(send_packet(&sides[0], 4096, 0), 0);
	assert_true(talk(sides));
	assert_int_equal(sides[1].heard.packets, 1);
	assert_int_equal(sides[1].last_hops, 7);
	assert_int_equal(sides[1].last_len, WIRE_LRH_BYTES + 12 + 8 + 4096);
	end(sides);
}

static void nothing_is_sent_before_it_is_open(void **state)
{
	struct side *sides = make(NULL, NULL);

	assert_int_equal(send_packet(&sides[0], 64, 0), -ENOTCONN);
	assert_int_equal(send_packet(&sides[0], 256, WIRE_VL_MANAGEMENT), -ENOTCONN);
	end(sides);
}

/* Data packets leave room for the others, and the room comes back when bytes are written. */
static void what_cannot_be_written_waits(void **state)
{
	struct side *sides = make_open();
	size_t len;
	int n = 0;

	while (!send_packet(&sides[0], 4096, 0))
		n++;
	assert_in_range(n, 50, 100);
	assert_int_equal(sides[0].session.waits, 1);
	assert_int_equal(send_packet(&sides[0], 256, WIRE_VL_MANAGEMENT), 0);
	cable_session_output(&sides[0].session, &len);
	assert_true(len > 4096u * (size_t)n);
	assert_true(talk(sides));
	assert_int_equal(sides[1].heard.packets, n + 1);
	assert_int_equal(send_packet(&sides[0], 4096, 0), 0);
	end(sides);
}

/* Return: packets that @side could send before it had to wait */
static int send_all(struct side *sides)
{
	int n = 0;

	while (!send_packet(&sides[0], 4096, 0)) {
		n++;
		assert_true(talk(sides));
	}
	return n;
}

static void nobody_sends_without_credits(void **state)
{
	struct side *sides = make_open();
	const int most = CABLE_WINDOW / (4096 + 28);

	sides[1].keeps = true;
	assert_int_equal(send_all(sides), most);
	assert_int_equal(send_packet(&sides[0], 4096, 0), -EAGAIN);
	assert_int_equal(send_packet(&sides[0], 256, WIRE_VL_MANAGEMENT), 0); /* which needs none */
	cable_session_consumed(&sides[1].session, CABLE_WINDOW / 2);
	assert_true(talk(sides));
	assert_in_range(send_all(sides), most / 2, most / 2 + 1);
	end(sides);
}

static void credits_come_back_in_steps(void **state)
{
	struct side *sides = make_open();
	int packets = 3 * CABLE_WINDOW / 4096;

	for (int i = 0; i < packets; i++) {
		assert_int_equal(send_packet(&sides[0], 4096, 0), 0);
		assert_true(talk(sides));
	}
	assert_int_equal(sides[1].heard.packets, packets);
	end(sides);
}

/* --- what may not be said --- */

static void what_is_no_softibd_is_told_so(void **state)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: softib\r\n\r\n";
	struct side *sides = make(NULL, NULL);

	assert_int_equal(cable_session_input(&sides[0].session, (const uint8_t *)http, sizeof(http)), -EPROTO);
	assert_non_null(strstr(sides[0].session.error, "no softibd"));
	end(sides);
	sides = make(NULL, NULL);
	breaks(&sides[0], CABLE_HELLO, "softib cable 2\n", 16, "another version");
	end(sides);
	sides = make(NULL, NULL);
	assert_int_equal(cable_session_input(&sides[0].session, (const uint8_t[8]){0}, 8), -EPROTO); /* of length 0 */
	end(sides);
}

static void a_name_may_not_be_longer_than_its_room(void **state)
{
	struct side *sides = make(NULL, NULL);
	size_t len;
	const uint8_t *out = cable_session_output(&sides[1].session, &len);
	uint8_t body[256] = {0};

	memcpy(body, out + 5, 16 + 32 + 17);
	assert_int_equal(hear(&sides[0], CABLE_HELLO, body, 16 + 32 + 17 + CABLE_NAME_BYTES - 1), 5 + 16 + 32 + 17 + 63);
	end(sides);
	sides = make(NULL, NULL);
	breaks(&sides[0], CABLE_HELLO, body, 16 + 32 + 17 + CABLE_NAME_BYTES, "another version");
	end(sides);
}

static void a_name_is_printable(void **state)
{
	struct side *sides = make(NULL, NULL);
	uint8_t bytes[256];
	size_t len;
	const uint8_t *out = cable_session_output(&sides[1].session, &len);

	memcpy(bytes, out, len);
	memcpy(bytes + len - 4, "\x1b[\xc3\x7f", 4);
	assert_int_equal(cable_session_input(&sides[0].session, bytes, len), len);
	assert_string_equal(sides[0].session.far.name, "lab0/?[??");
	end(sides);
}

static void messages_out_of_turn_break_it(void **state)
{
	static const struct {
		bool open, has_key;
		uint8_t type;
	} cases[] = {
		{false, false, CABLE_LINK}, {false, false, CABLE_PACKET}, {false, false, CABLE_CREDIT},
		{false, true, CABLE_PROOF}, {true, false, CABLE_HELLO},	  {true, false, CABLE_PROOF},
		{true, false, 0},	    {true, false, 6},		  {true, false, 255},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct side *sides = cases[i].open ? make_open() :
						     make(cases[i].has_key ? key : NULL, cases[i].has_key ? key : NULL);

		breaks(&sides[0], cases[i].type, (uint8_t[32]){0}, 32, "the other side");
		assert_int_equal(sides[0].heard.links, cases[i].open);
		end(sides);
	}
}

static void messages_of_another_length_break_it(void **state)
{
	static const struct {
		uint8_t type;
		size_t len;
	} cases[] = {
		{CABLE_LINK, 4}, {CABLE_LINK, 6}, {CABLE_CREDIT, 7}, {CABLE_CREDIT, 9}, {CABLE_PACKET, 0}, {CABLE_PACKET, 20},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct side *sides = make_open();

		breaks(&sides[0], cases[i].type, (uint8_t[32]){0}, cases[i].len, "that is none");
		end(sides);
	}
}

/* also before the first one, of which the limit is 0 */
static void a_first_credit_of_another_length_is_none(void **state)
{
	struct side *sides = make(NULL, NULL);
	size_t len;
	const uint8_t *out = cable_session_output(&sides[1].session, &len);

	assert_int_equal(cable_session_input(&sides[0].session, out, len), len); /* a HELLO alone */
	breaks(&sides[0], CABLE_CREDIT, (uint8_t[8]){0}, 7, "CREDIT");
	end(sides);
}

static void credits_are_neither_taken_back_nor_invented(void **state)
{
	static const uint64_t limits[] = {0, CABLE_WINDOW - 1, CABLE_WINDOW + 1, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		struct side *sides = make_open();
		uint8_t body[8];

		put_be64(body, limits[i]);
		breaks(&sides[0], CABLE_CREDIT, body, sizeof(body), "CREDIT");
		end(sides);
	}
}

static void data_beyond_the_credits_break_it(void **state)
{
	struct side *sides = make_open();
	uint8_t body[1 + WIRE_PACKET_MAX] = {0};
	struct fab_packet pkt;
	size_t len = 1 + make_packet(&pkt, body + 1, 4096, 0);

	sides[0].keeps = true;
	for (size_t sent = 0; sent + pkt.len <= CABLE_WINDOW; sent += pkt.len)
		assert_int_equal(hear(&sides[0], CABLE_PACKET, body, len), 5 + len);
	breaks(&sides[0], CABLE_PACKET, body, len, "credits");
	end(sides);
}

static void keys_follow_from_their_files(void **state)
{
	uint8_t a[CABLE_KEY_BYTES], b[CABLE_KEY_BYTES];

	cable_key_of("a secret of 16 b", 16, a);
	cable_key_of("a secret of 16 c", 16, b);
	assert_memory_not_equal(a, b, sizeof(a));
	cable_key_of("a secret of 16 b", 16, b);
	assert_memory_equal(a, b, sizeof(a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_sides_know_each_other),
		cmocka_unit_test(bytes_may_come_one_by_one),
		cmocka_unit_test(the_same_key_opens),
		cmocka_unit_test(another_key_does_not),
		cmocka_unit_test(a_key_on_one_side_alone_does_not),
		cmocka_unit_test(a_proof_that_is_sent_back_is_none),
		cmocka_unit_test(a_proof_of_another_connection_is_none),
		cmocka_unit_test(fabrics_of_one_name_are_refused),
		cmocka_unit_test(a_fabric_may_have_both_ends),
		cmocka_unit_test(a_link_is_told_when_it_changes),
		cmocka_unit_test(packets_cross_with_their_hops),
		cmocka_unit_test(nothing_is_sent_before_it_is_open),
		cmocka_unit_test(what_cannot_be_written_waits),
		cmocka_unit_test(nobody_sends_without_credits),
		cmocka_unit_test(credits_come_back_in_steps),
		cmocka_unit_test(what_is_no_softibd_is_told_so),
		cmocka_unit_test(a_name_may_not_be_longer_than_its_room),
		cmocka_unit_test(a_name_is_printable),
		cmocka_unit_test(messages_out_of_turn_break_it),
		cmocka_unit_test(messages_of_another_length_break_it),
		cmocka_unit_test(a_first_credit_of_another_length_is_none),
		cmocka_unit_test(credits_are_neither_taken_back_nor_invented),
		cmocka_unit_test(data_beyond_the_credits_break_it),
		cmocka_unit_test(keys_follow_from_their_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
