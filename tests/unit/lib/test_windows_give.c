/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which of our memory peers get, and when they lose it. Memory does not really move. */
#include <stdlib.h>

#include "../test.h"
#include "engine/window.h"
#include "soft.h"
#include "windows_private.h"

#define PAGE  4096u
#define RKEY  0x1234u
#define QPN   7u
#define BYTES (4 * PAGE)

static alignas(4096) char memory[BYTES + PAGE];

/* --- what others would do --- */

static struct {
	struct eng_offer offer;
	int refuses_from; /* which call of eng_window_offer() is the first that fails; 0: none */
	int offers, tokens_taken, tokens_given, taken_back;
	bool sealed_read_only;
	bool bound; /* what eng_mw_is_bound() says */
	int revoked;
	struct abi_window_msg said[4];
	int num_said;
} world;

static struct abi_window_page page;

int eng_window_offer(struct engine *engine, uint32_t qpn, uint32_t rkey, struct eng_offer *offer)
{
	assert_int_equal(qpn, QPN);
	assert_int_equal(rkey, RKEY);
	if (++world.offers >= world.refuses_from && world.refuses_from)
		return -EACCES;
	*offer = world.offer;
	return 0;
}

uint32_t eng_token_take(struct engine *engine, uint64_t *value)
{
	*value = 99;
	world.tokens_taken++;
	return 5;
}

void eng_token_give(struct engine *engine, uint32_t token)
{
	world.tokens_given++;
}

bool eng_mw_is_bound(struct engine *engine, uint32_t key)
{
	return world.bound;
}

void eng_mw_revoke(struct engine *engine, uint32_t key)
{
	assert_int_equal(key, RKEY);
	world.revoked++;
}

bool memory_area_at(const char *addr, struct area *a)
{
	*a = (struct area){.start = memory, .end = memory + sizeof(memory), .movable = true};
	return addr >= memory && addr < memory + sizeof(memory);
}

bool memory_can_move(void)
{
	return true;
}

enum memory_moves memory_moves(void)
{
	return MEMORY_MOVES;
}

int memory_make_file(struct extent *x)
{
	return -ENOMEM;
}

void memory_drop_file(struct extent *x)
{
}

int memory_move_out(struct extent *x)
{
	return 0;
}

void memory_take_back(struct extent *x)
{
	world.taken_back++;
}

bool memory_seal(struct extent *x, bool read_only)
{
	world.sealed_read_only = read_only;
	return true;
}

const struct abi_window_page *windows_peer_take(struct windows *w, uint32_t id, int fd)
{
	return &page;
}

void windows_say(struct windows *w, const struct abi_window_msg *m, int fd)
{
	assert_true(world.num_said < (int)ARRAY_SIZE(world.said));
	world.said[world.num_said++] = *m;
}

bool windows_sections_end(struct windows *w)
{
	return true;
}

/* --- */

static struct soft_context ctx;

/* a region that begins @from bytes into the memory */
static void offer_region(size_t from, size_t length, int access)
{
	memset(&world, 0, sizeof(world));
	world.offer = (struct eng_offer){
		.mr = {.addr = memory + from, .length = length, .iova = 0x10000 + from,
		       .access = access},
		.access = access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ),
		.token = 3,
		.value = 42,
	};
	ctx.windows = (struct windows){.on = true, .max_extents = 8};
	INIT_LIST_HEAD(&ctx.windows.extents);
	pthread_mutex_init(&ctx.windows.lock, NULL);
}

/* Return: the answer to a peer that wants the byte at @offset of the memory */
static const struct abi_window_msg *want(size_t offset)
{
	const struct abi_window_msg m = {.kind = ABI_WINDOW_WANT, .id = 77, .qpn = QPN,
					 .rkey = RKEY, .va = 0x10000 + offset};

	windows_wanted(&ctx, &m, -1);
	return &world.said[world.num_said - 1];
}

static void whole_pages_of_a_region_are_given(void **state)
{
	const struct abi_window_msg *m;

	offer_region(100, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	m = want(PAGE + 8);
	assert_int_equal(m->kind, ABI_WINDOW_GIVE);
	assert_int_equal(m->id, 77);
	assert_int_equal(m->va, 0x10000 + PAGE);
	assert_int_equal(m->length_bytes, BYTES - PAGE); /* to its last whole page */
	assert_int_equal(m->access, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(m->qp_token, 3);
	assert_int_equal(m->window_token, 5);
	assert_false(world.sealed_read_only);
	windows_end_extents(&ctx);
	assert_int_equal(world.taken_back, 1);
}

static void what_is_only_read_is_sealed_so(void **state)
{
	offer_region(0, BYTES, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(want(0)->kind, ABI_WINDOW_GIVE);
	assert_true(world.sealed_read_only);
	windows_end_extents(&ctx);
}

/* its other bytes are not the region's */
static void a_page_that_is_not_whole_is_not_given(void **state)
{
	offer_region(100, BYTES, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(want(200)->kind, ABI_WINDOW_DENY);
	assert_int_equal(world.tokens_taken, 0);
}

/* The program may map it anew at any time, and the window would stay on the old pages. */
static void memory_that_is_paged_on_demand_is_not_given(void **state)
{
	offer_region(0, BYTES, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	assert_int_equal(want(0)->kind, ABI_WINDOW_DENY);
	assert_int_equal(world.tokens_taken, 0);
}

static void nothing_beyond_the_region_is_given(void **state)
{
	offer_region(0, BYTES, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(want(BYTES)->kind, ABI_WINDOW_DENY);
	offer_region(PAGE, BYTES, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(want(0)->kind, ABI_WINDOW_DENY);
}

static void a_key_that_the_peer_may_not_use_is_refused(void **state)
{
	offer_region(0, BYTES, IBV_ACCESS_REMOTE_READ);
	world.refuses_from = 1;
	assert_int_equal(want(0)->kind, ABI_WINDOW_DENY);
}

static void a_key_that_goes_while_pages_move_takes_the_window_along(void **state)
{
	offer_region(0, BYTES, IBV_ACCESS_REMOTE_READ);
	world.refuses_from = 2;
	assert_int_equal(want(0)->kind, ABI_WINDOW_DENY);
	assert_int_equal(world.taken_back, 1);
	assert_int_equal(world.tokens_given, world.tokens_taken);
	assert_true(list_empty(&ctx.windows.extents));
}

static void a_deregistered_key_closes_the_window(void **state)
{
	offer_region(0, BYTES, IBV_ACCESS_REMOTE_READ);
	want(0);
	windows_key_gone(&ctx, RKEY + 1);
	assert_int_equal(world.taken_back, 0);
	windows_key_gone(&ctx, RKEY);
	assert_int_equal(world.said[world.num_said - 1].kind, ABI_WINDOW_CLOSE);
	assert_int_equal(world.taken_back, 1);
	assert_int_equal(ctx.windows.num_extents, 0);
}

/* the token of a memory window stands for what it is bound to; when that is no more, nor is the
 * peer's mapping */
static void an_unbound_window_takes_its_memory_along(void **state)
{
	const struct abi_window_msg *m;

	offer_region(0, BYTES, IBV_ACCESS_REMOTE_WRITE);
	world.offer.key_token = 8;
	world.offer.key_value = 80;
	world.bound = true;
	m = want(0);
	assert_int_equal(m->kind, ABI_WINDOW_GIVE);
	assert_int_equal(m->window_token, 8);
	assert_int_equal(m->window_value, 80);
	windows_unbound(&ctx);
	assert_int_equal(world.taken_back, 0);
	world.bound = false;
	windows_unbound(&ctx);
	assert_int_equal(world.said[world.num_said - 1].kind, ABI_WINDOW_CLOSE);
	assert_int_equal(world.taken_back, 1);
	assert_int_equal(ctx.windows.num_extents, 0);
	assert_int_equal(world.revoked, 0); /* the engine did it when it was unbound */
}

/* memory that ends for another reason ends for the memory window, which stays bound */
static void memory_that_ends_revokes_the_window(void **state)
{
	offer_region(0, BYTES, IBV_ACCESS_REMOTE_WRITE);
	world.offer.key_token = 8;
	world.bound = true;
	want(0);
	windows_end_extents(&ctx);
	assert_int_equal(world.revoked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_pages_of_a_region_are_given),
		cmocka_unit_test(what_is_only_read_is_sealed_so),
		cmocka_unit_test(a_page_that_is_not_whole_is_not_given),
		cmocka_unit_test(memory_that_is_paged_on_demand_is_not_given),
		cmocka_unit_test(nothing_beyond_the_region_is_given),
		cmocka_unit_test(a_key_that_the_peer_may_not_use_is_refused),
		cmocka_unit_test(a_key_that_goes_while_pages_move_takes_the_window_along),
		cmocka_unit_test(a_deregistered_key_closes_the_window),
		cmocka_unit_test(an_unbound_window_takes_its_memory_along),
		cmocka_unit_test(memory_that_ends_revokes_the_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
