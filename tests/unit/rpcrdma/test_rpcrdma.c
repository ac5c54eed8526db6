/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* RPC-over-RDMA: headers as Linux 6.1 sends them, calls in pieces, ways of replies, records. */
#include "../test.h"

#include <errno.h>

#include "base/bytes.h"
#include "rpcrdma/rpcrdma.h"

#define THRESHOLD 4096

/* --- headers --- */

/* words of headers between a client and a server of Linux 6.1 (NFS 4.1) */
static const uint32_t call_with_reply_chunk[] = {0x02d2ed83, 1, 128, 0, 0, 0, 1, 1,
						 0x00015ce5, 0x1090, 0x02d2ed83, 0x090a0000};
static const uint32_t reply_in_chunk[] = {0x01d2ed83, 1, 64, 1, 0, 0, 1, 1,
					  0x00015db9, 92, 0x01d2ed83, 0x065b2000};
static const uint32_t call_with_read_chunk[] = {0x15d2ed83, 1, 128, 0, 1, 0xb0, 0x00015b5a, 0x20000,
						0x15d2ed83, 0x08c8b000, 0, 0, 0};
static const uint32_t reply_with_write_chunk[] = {0x9a7f003d, 1, 64, 0, 0, 1, 1, 0x00016727,
						  0x20000, 0x9a7f003d, 0x08d1e000, 0, 0};

static uint8_t wire[4096];

static size_t put_words(const uint32_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_be32(wire + 4 * i, words[i]);
	return 4 * n;
}

/* @words are one header, and the same words again when it is written */
static struct rpcrdma_header decoded(const uint32_t *words, size_t n)
{
	size_t bytes = put_words(words, n);
	struct rpcrdma_header h;
	uint8_t again[4096];

	assert_int_equal(rpcrdma_decode(&h, wire, sizeof(wire)), bytes);
	assert_int_equal(rpcrdma_encode(&h, again, sizeof(again)), bytes);
	assert_memory_equal(again, wire, bytes);
	assert_int_equal(rpcrdma_encode(&h, again, bytes - 1), 0);
	return h;
}

#define DECODED(words) decoded(words, ARRAY_SIZE(words))

static void headers_are_those_of_linux(void **state)
{
	struct rpcrdma_header h = DECODED(call_with_reply_chunk);

	assert_int_equal(h.xid, 0x02d2ed83);
	assert_int_equal(h.credits, 128);
	assert_int_equal(h.proc, RPCRDMA_MSG);
	assert_true(h.has_reply);
	assert_int_equal(h.reply.segments, 1);
	assert_int_equal(h.reply.segment[0].bytes, 0x1090);
	assert_int_equal(h.reply.segment[0].offset, 0x02d2ed83090a0000);
	h = DECODED(reply_in_chunk);
	assert_int_equal(h.proc, RPCRDMA_NOMSG);
	assert_int_equal(h.reply.segment[0].bytes, 92);
	h = DECODED(call_with_read_chunk);
	assert_int_equal(h.reads, 1);
	assert_int_equal(h.read[0].position, 0xb0);
	assert_int_equal(h.read[0].from.handle, 0x15b5a);
	h = DECODED(reply_with_write_chunk);
	assert_int_equal(h.writes, 1);
	assert_int_equal(h.write[0].segment[0].bytes, 0x20000);
}

static void headers_that_are_cut_off_are_refused(void **state)
{
	size_t bytes = put_words(call_with_read_chunk, ARRAY_SIZE(call_with_read_chunk));
	struct rpcrdma_header h;

	for (size_t n = 0; n < bytes; n++)
		assert_int_equal(rpcrdma_decode(&h, wire, n), n < 16 ? -EPROTO : -EBADMSG);
}

static void headers_that_lie_are_refused(void **state)
{
	static const struct {
		size_t word;
		uint32_t value;
		int error;
	} lies[] = {
		{1, 2, -EPROTONOSUPPORT}, {3, RPCRDMA_MSGP, -EBADMSG}, {3, RPCRDMA_DONE, -EBADMSG}, {3, 5, -EBADMSG},
		{4, 2, -EBADMSG},	  {6, 0xffffffff, -EBADMSG},   {7, RPCRDMA_SEGMENTS + 1, -EBADMSG},
	};
	struct rpcrdma_header h;

	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		put_words(call_with_reply_chunk, ARRAY_SIZE(call_with_reply_chunk));
		put_be32(wire + 4 * lies[i].word, lies[i].value);
		assert_int_equal(rpcrdma_decode(&h, wire, sizeof(wire)), lies[i].error);
		assert_int_equal(h.xid, 0x02d2ed83); /* so that it can be answered */
	}
}

static void lists_have_limits(void **state)
{
	struct rpcrdma_header h = {.version = 1, .has_reply = true, .reply.segments = RPCRDMA_SEGMENTS};
	struct rpcrdma_header again;
	size_t bytes;

	h.reads = RPCRDMA_SEGMENTS;
	h.writes = RPCRDMA_WRITES;
	for (uint32_t i = 0; i < RPCRDMA_WRITES; i++)
		h.write[i].segments = RPCRDMA_SEGMENTS;
	bytes = rpcrdma_encode(&h, wire, sizeof(wire));
	assert_in_range(bytes, 1, RPCRDMA_HEADER_BYTES);
	assert_int_equal(rpcrdma_decode(&again, wire, bytes), bytes);
	/* one entry more in the Read list: its 24 bytes once again */
	memmove(wire + 40, wire + 16, bytes - 16);
	assert_int_equal(rpcrdma_decode(&again, wire, bytes + 24), -EBADMSG);
}

static void errors_say_which_versions_there_are(void **state)
{
	struct rpcrdma_header call = DECODED(call_with_reply_chunk), h, again;
	size_t bytes;

	rpcrdma_refuse(&h, &call, 7, -EPROTONOSUPPORT);
	bytes = rpcrdma_encode(&h, wire, sizeof(wire));
	assert_int_equal(bytes, 28);
	assert_int_equal(rpcrdma_decode(&again, wire, bytes), 28);
	assert_int_equal(again.error, RPCRDMA_ERR_VERS);
	assert_int_equal(again.highest, 1);
	assert_int_equal(again.xid, call.xid);
	rpcrdma_refuse(&h, &call, 7, -EBADMSG);
	assert_int_equal(rpcrdma_encode(&h, wire, sizeof(wire)), 20);
	assert_int_equal(h.error, RPCRDMA_ERR_CHUNK);
}

static void ends_say_how_long_a_send_may_be(void **state)
{
	static const uint8_t linux_says[] = {0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3};
	struct rpcrdma_private said = {4096, 300 << 10}, heard;
	uint8_t out[RPCRDMA_PRIVATE_BYTES];

	heard = rpcrdma_private_decode(linux_says, sizeof(linux_says));
	assert_int_equal(heard.send_bytes, 4096);
	assert_int_equal(heard.recv_bytes, 4096);
	rpcrdma_private_encode(&said, out);
	heard = rpcrdma_private_decode(out, sizeof(out));
	assert_int_equal(heard.send_bytes, 4096);
	assert_int_equal(heard.recv_bytes, 256 << 10);
	assert_int_equal(rpcrdma_private_decode(out, 7).recv_bytes, RPCRDMA_THRESHOLD);
	out[0] = 0;
	assert_int_equal(rpcrdma_private_decode(out, 8).recv_bytes, RPCRDMA_THRESHOLD);
}

/* --- calls --- */

static const struct rpcrdma_segment call_at = {1, 1 << 20, 0x10000}, reply_at = {2, 1 << 20, 0x800000};

static void a_call_is_lent_if_it_is_too_long(void **state)
{
	struct rpcrdma_header h;
	size_t header_bytes;

	rpcrdma_call(&h, 5, 32, 1000, THRESHOLD, &call_at, &reply_at);
	assert_int_equal(h.proc, RPCRDMA_MSG);
	assert_int_equal(h.reads, 0);
	header_bytes = rpcrdma_encode(&h, wire, sizeof(wire));
	rpcrdma_call(&h, 5, 32, THRESHOLD - header_bytes, THRESHOLD, &call_at, &reply_at);
	assert_int_equal(h.proc, RPCRDMA_MSG);
	rpcrdma_call(&h, 5, 32, THRESHOLD - header_bytes + 1, THRESHOLD, &call_at, &reply_at);
	assert_int_equal(h.proc, RPCRDMA_NOMSG);
	assert_int_equal(h.read[0].position, 0);
	assert_int_equal(h.read[0].from.handle, 1);
	assert_int_equal(h.read[0].from.bytes, THRESHOLD - header_bytes + 1);
	assert_true(h.has_reply);
	assert_int_equal(h.reply.segment[0].bytes, 1 << 20);
}

/* the Read list of a header: {position, bytes} each; memory begins at 0x1000 times its entry */
static struct rpcrdma_header with_reads(enum rpcrdma_proc proc, uint32_t n, const uint32_t (*reads)[2])
{
	struct rpcrdma_header h = {.version = 1, .proc = proc, .reads = n};

	for (uint32_t i = 0; i < n; i++)
		h.read[i] = (struct rpcrdma_read){reads[i][0], {i, reads[i][1], 0x1000 * i}};
	return h;
}

/* each byte of the planned message is in one piece at most, and none is beyond it */
static void expect_sound(const struct rpcrdma_plan *plan)
{
	uint32_t end = 0;

	for (uint32_t i = 0; i < plan->pieces; i++) {
		assert_true(plan->piece[i].at >= end && plan->piece[i].bytes);
		end = plan->piece[i].at + plan->piece[i].bytes;
	}
	assert_true(end <= plan->bytes);
}

static void chunks_go_where_they_were_taken_out(void **state)
{
	static const uint32_t reads[][2] = {{100, 50}, {100, 13}, {200, 4}};
	struct rpcrdma_header h = with_reads(RPCRDMA_MSG, 3, reads);
	struct rpcrdma_plan plan;

	/* 100 sent; 63 fetched, and one of padding; 36 sent; 4 fetched; 24 sent */
	assert_int_equal(rpcrdma_plan(&h, 160, 4096, &plan), 0);
	expect_sound(&plan);
	assert_int_equal(plan.bytes, 228);
	assert_int_equal(plan.pieces, 6);
	assert_true(plan.piece[0].is_sent && plan.piece[3].is_sent && plan.piece[5].is_sent);
	assert_int_equal(plan.piece[1].at, 100);
	assert_int_equal(plan.piece[2].at, 150);
	assert_int_equal(plan.piece[3].at, 164);
	assert_int_equal(plan.piece[3].from.offset, 100);
	assert_int_equal(plan.piece[4].at, 200);
	assert_int_equal(plan.piece[5].from.offset, 136);
	assert_int_equal(plan.piece[5].bytes, 24);
}

static void a_long_call_is_fetched_with_chunks_in_it(void **state)
{
	static const uint32_t reads[][2] = {{0, 60}, {0, 0}, {0, 40}, {80, 8}};
	struct rpcrdma_header h = with_reads(RPCRDMA_NOMSG, 4, reads);
	struct rpcrdma_plan plan;

	assert_int_equal(rpcrdma_plan(&h, 0, 4096, &plan), 0);
	expect_sound(&plan);
	assert_int_equal(plan.bytes, 108);
	assert_int_equal(plan.pieces, 4);
	assert_int_equal(plan.piece[0].bytes, 60);
	assert_int_equal(plan.piece[1].bytes, 20);
	assert_int_equal(plan.piece[1].from.offset, 0x2000);
	assert_int_equal(plan.piece[2].from.offset, 0x3000);
	assert_int_equal(plan.piece[3].at, 88);
	assert_int_equal(plan.piece[3].from.offset, 0x2014);
}

static void lists_that_make_no_message_are_refused(void **state)
{
	static const struct {
		enum rpcrdma_proc proc;
		size_t sent;
		uint32_t n, reads[3][2];
	} bad[] = {
		{RPCRDMA_NOMSG, 0, 0, {{0}}},			/* nothing at all */
		{RPCRDMA_NOMSG, 8, 1, {{0, 100}}},		/* something behind the header */
		{RPCRDMA_NOMSG, 0, 1, {{4, 100}}},		/* a message without a beginning */
		{RPCRDMA_MSG, 100, 1, {{0, 100}}},		/* two beginnings */
		{RPCRDMA_MSG, 100, 1, {{104, 8}}},		/* beyond the end */
		{RPCRDMA_MSG, 100, 2, {{40, 8}, {20, 8}}},	/* backwards */
		{RPCRDMA_MSG, 100, 2, {{40, 8}, {44, 8}}},	/* one in the other */
		{RPCRDMA_MSG, 100, 1, {{40, 4096}}},		/* too long */
		{RPCRDMA_MSG, 100, 1, {{40, 0xffffffff}}},
		{RPCRDMA_MSG, 100, 3, {{40, 0x7fffffff}, {40, 0x7fffffff}, {40, 8}}},
		{RPCRDMA_NOMSG, 0, 2, {{0, 0xffffffff}, {0, 0xffffffff}}},
		{RPCRDMA_MSG, 7, 0, {{0}}},			/* no RPC message */
		{RPCRDMA_MSG, 5000, 0, {{0}}},
		{RPCRDMA_ERROR, 100, 0, {{0}}},
	};
	struct rpcrdma_plan plan;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct rpcrdma_header h = with_reads(bad[i].proc, bad[i].n, bad[i].reads);

		assert_int_equal(rpcrdma_plan(&h, bad[i].sent, 4096, &plan), -EBADMSG);
	}
}

/* --- replies --- */

static struct rpcrdma_header call_that_offers(uint32_t segments, uint32_t bytes)
{
	struct rpcrdma_header h = {.xid = 9, .version = 1, .has_reply = segments, .reply.segments = segments};

	for (uint32_t i = 0; i < segments; i++)
		h.reply.segment[i] = (struct rpcrdma_segment){i, bytes, 0x1000 * i};
	return h;
}

static void a_short_reply_follows_its_header(void **state)
{
	struct rpcrdma_header call = call_that_offers(1, 100), h;

	call.writes = 1;
	call.write[0] = call.reply;
	rpcrdma_reply(&h, &call, 8, 200, 1024);
	assert_int_equal(h.proc, RPCRDMA_MSG);
	assert_int_equal(h.xid, 9);
	assert_false(h.has_reply);
	assert_int_equal(h.writes, 1); /* returned, and not used */
	assert_int_equal(h.write[0].segment[0].bytes, 0);
}

static void a_long_reply_fills_the_segments_in_order(void **state)
{
	struct rpcrdma_header call = call_that_offers(3, 1000), h;

	rpcrdma_reply(&h, &call, 8, 1500, 1024);
	assert_int_equal(h.proc, RPCRDMA_NOMSG);
	assert_int_equal(h.reply.segment[0].bytes, 1000);
	assert_int_equal(h.reply.segment[1].bytes, 500);
	assert_int_equal(h.reply.segment[2].bytes, 0);
	rpcrdma_reply(&h, &call, 8, 3000, 1024);
	assert_int_equal(h.proc, RPCRDMA_NOMSG);
	rpcrdma_reply(&h, &call, 8, 3001, 1024);
	assert_int_equal(h.proc, RPCRDMA_ERROR);
	assert_int_equal(h.error, RPCRDMA_ERR_CHUNK);
	call = call_that_offers(0, 0);
	rpcrdma_reply(&h, &call, 8, 1500, 1024);
	assert_int_equal(h.proc, RPCRDMA_ERROR);
}

static void a_requester_believes_no_more_than_it_offered(void **state)
{
	struct rpcrdma_segment offered = {1, 1000, 0};
	struct rpcrdma_header h = {.version = 1, .proc = RPCRDMA_NOMSG, .has_reply = true,
				   .reply = {.segments = 1, .segment = {{1, 1000, 0}}}};

	assert_int_equal(rpcrdma_reply_bytes(&h, &offered), 1000);
	h.reply.segment[0].bytes = 1001;
	assert_int_equal(rpcrdma_reply_bytes(&h, &offered), -EBADMSG);
	h.reply.segment[0].bytes = 0;
	assert_int_equal(rpcrdma_reply_bytes(&h, &offered), -EBADMSG);
	h.reply = (struct rpcrdma_chunk){2, {{1, 10, 0}, {1, 10, 0}}};
	assert_int_equal(rpcrdma_reply_bytes(&h, &offered), -EBADMSG);
	h.has_reply = false;
	assert_int_equal(rpcrdma_reply_bytes(&h, &offered), -EBADMSG);
	h.proc = RPCRDMA_MSG;
	assert_int_equal(rpcrdma_reply_bytes(&h, &offered), 0);
	h.writes = 1;
	assert_int_equal(rpcrdma_reply_bytes(&h, &offered), -EBADMSG);
	h.proc = RPCRDMA_ERROR;
	assert_int_equal(rpcrdma_reply_bytes(&h, &offered), -EREMOTEIO);
}

static void a_client_is_told_that_its_call_failed(void **state)
{
	static const uint32_t words[] = {77, 1, 0, 0, 0, 5};
	uint8_t out[RPC_ERROR_BYTES];

	put_words(words, ARRAY_SIZE(words));
	rpc_system_error(77, out);
	assert_memory_equal(out, wire, sizeof(out));
	assert_int_equal(rpc_xid(out), 77);
	assert_int_equal(rpc_kind(out), RPC_REPLY);
}

/* --- records --- */

/* "abcdefgh" in fragments of 3, 0 and 5 bytes, and the beginning of another record */
static const uint8_t stream[] = "\0\0\0\3abc\0\0\0\0\200\0\0\5defgh\200\0\0\1";

static void a_record_is_put_together_in_any_portions(void **state)
{
	for (size_t step = 1; step < sizeof(stream); step++) {
		uint8_t to[8];
		struct rpc_record record = {to, sizeof(to)};
		enum rpc_record_state said = RPC_RECORD_MORE;
		size_t at = 0, used;

		while (said == RPC_RECORD_MORE) {
			said = rpc_record_take(&record, stream + at, MIN(step, sizeof(stream) - at), &used);
			at += used;
		}
		assert_int_equal(said, RPC_RECORD_WHOLE);
		assert_int_equal(at, sizeof(stream) - 1 - 4);
		assert_int_equal(record.bytes, 8);
		assert_memory_equal(to, "abcdefgh", 8);
	}
}

static void a_record_that_is_too_long_is_refused(void **state)
{
	uint8_t to[7];
	struct rpc_record record = {to, sizeof(to)};
	size_t used;

	assert_int_equal(rpc_record_take(&record, stream, sizeof(stream), &used), RPC_RECORD_TOO_LONG);
	record = (struct rpc_record){to, sizeof(to)};
	assert_int_equal(rpc_record_take(&record, (const uint8_t *)"\377\377\377\377", 4, &used),
			 RPC_RECORD_TOO_LONG);
}

static void a_message_is_one_fragment(void **state)
{
	uint8_t mark[RPC_MARK_BYTES];

	rpc_record_mark(mark, 5);
	assert_memory_equal(mark, "\200\0\0\5", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_those_of_linux),
		cmocka_unit_test(headers_that_are_cut_off_are_refused),
		cmocka_unit_test(headers_that_lie_are_refused),
		cmocka_unit_test(lists_have_limits),
		cmocka_unit_test(errors_say_which_versions_there_are),
		cmocka_unit_test(ends_say_how_long_a_send_may_be),
		cmocka_unit_test(a_call_is_lent_if_it_is_too_long),
		cmocka_unit_test(chunks_go_where_they_were_taken_out),
		cmocka_unit_test(a_long_call_is_fetched_with_chunks_in_it),
		cmocka_unit_test(lists_that_make_no_message_are_refused),
		cmocka_unit_test(a_short_reply_follows_its_header),
		cmocka_unit_test(a_long_reply_fills_the_segments_in_order),
		cmocka_unit_test(a_requester_believes_no_more_than_it_offered),
		cmocka_unit_test(a_client_is_told_that_its_call_failed),
		cmocka_unit_test(a_record_is_put_together_in_any_portions),
		cmocka_unit_test(a_record_that_is_too_long_is_refused),
		cmocka_unit_test(a_message_is_one_fragment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
