/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When the programs may use the ring of a direction: leases (abi/sdp_ring.h has the rules of
 * order).
 *
 * States:	OFF -> LEASED -> ENDING -> OFF. What the ring still has when it is OFF again is sent
 *		as if it came from the program's socket, before that.
 *
 * Events:	both libraries want a lease: softibd lets the writer wait (`hold`), and grants it
 *		when nothing of this direction is under way.
 *		The sender's socket has bytes, or its end; either connection ends; the way
 *		through the fabric has changed, or is observed: the lease ends.
 *
 * Timer:	every TICK_NS while there is a lease. It ends one whose ring has bytes that
 *		nobody takes, because the receiver reads in a way that no library sees, and one
 *		that nobody uses. The former makes the next one wait for ever more bytes.
 */
#include <errno.h>
#include <signal.h>

#include "ulp/sdp/private.h"

#define TICK_NS		 2000000
#define TICKS_UNREAD	 5		     /* until a lease ends whose bytes nobody takes... */
#define TICKS_ASLEEP	 500		     /* ...though a thread waits for them */
#define TICKS_UNUSED	 50		     /* until one ends that nobody uses */
#define TICKS_TAKEN	 1000		     /* until a lock is thought to be a dead thread's */
#define FIRST_WAIT_BYTES (4u << 20)	     /* after a lease that did not help */
#define SHORT_WAIT_BYTES (256u << 10)	     /* after a reader that was in the kernel */
#define LAST_WAIT_BYTES	 ((u64)1 << 30)
#define WORTH_BYTES	 (8 * ABI_SDP_RING_BYTES) /* of a lease that did */

static struct sdp_conn *sender(const struct sdp_ring *r)
{
	return r->channel->end[r->side];
}

static struct sdp_conn *receiver(const struct sdp_ring *r)
{
	return r->channel->end[!r->side];
}

void sdp_ring_init(struct sdp_ring *r, struct sdp_channel *ch, int side)
{
	r->channel = ch;
	r->side = side;
	r->half = &ch->memory->half[side];
	r->bytes = ch->memory->ring[side];
	r->wait_more = FIRST_WAIT_BYTES;
}

static struct sdp_ring *ring_from(const struct sdp_conn *c)
{
	return &c->channel->ring[sdp_channel_side(c)];
}

static struct sdp_ring *ring_to(const struct sdp_conn *c)
{
	return &c->channel->ring[!sdp_channel_side(c)];
}

static void abort_both(struct sdp_ring *r)
{
	for (int i = 0; i < 2; i++) {
		if (!r->channel->end[i])
			continue;
		sdp_abort(&r->channel->end[i]->sdp);
		sdp_conn_wake(r->channel->end[i]);
	}
}

/* The programs have moved bytes: those up to `head`. */
void sdp_ring_account(struct sdp_ring *r)
{
	struct sdp_stats *stats = &sdp_fabric(r->channel->rt)->stats;
	const u64 head = atomic_load(&r->half->head), bytes = head - r->counted;

	if (r->state == SDP_RING_OFF || !bytes || bytes > INT64_MAX)
		return;
	r->counted = head;
	sdp_channel_count(r->channel, r->side, bytes);
	stats->tx_bytes += bytes;
	stats->rx_bytes += bytes;
	stats->shared_bytes += bytes;
}

/* --- the end of a lease --- */

static void arm_tick(struct sdp_channel *ch)
{
	if (!rt_timer_armed(&ch->tick))
		rt_timer_arm(&ch->tick, mono_add(rt_now(ch->rt), TICK_NS));
}

/* Does a thread live that has this lock? Of one in another namespace of PIDs, nothing is known. */
static bool has_owner(_Atomic u32 *lock)
{
	const u32 owner = atomic_load(lock);

	return owner && (owner > INT32_MAX || !kill((pid_t)owner, 0) || errno != ESRCH);
}

/* May a process at end @c have this lock? Not if none has the socket any more. */
static bool is_taken(_Atomic u32 *lock, const struct sdp_conn *c)
{
	return atomic_load(lock) && c && !sdp_stream_hung_up(c);
}

/* Return: is the lease over? */
static bool finish(struct sdp_ring *r)
{
	if (r->state != SDP_RING_ENDING)
		return r->state == SDP_RING_OFF;
	if (is_taken(&r->half->writer, sender(r)) || is_taken(&r->half->reader, receiver(r)))
		return false;
	sdp_ring_account(r);
	r->state = SDP_RING_OFF;
	r->has_rest = true;
	if (sender(r))
		sdp_conn_wake(sender(r));
	return true;
}

static void withdraw(struct sdp_ring *r)
{
	atomic_store(&r->half->lease, ++r->lease);
	r->state = SDP_RING_ENDING;
	r->ticks = 0;
	abi_sdp_wake(&r->half->writer_sleeps);
	abi_sdp_wake(&r->half->reader_sleeps);
}

void sdp_ring_end_lease(struct sdp_ring *r)
{
	if (r->state != SDP_RING_LEASED)
		return;
	withdraw(r);
	if (!finish(r))
		arm_tick(r->channel);
}

/* What is left in the ring is lost. No connection is woken: the sender may be the one that goes. */
void sdp_ring_abandon(struct sdp_ring *r)
{
	if (r->state == SDP_RING_LEASED)
		withdraw(r);
	sdp_ring_account(r);
	r->state = SDP_RING_OFF;
	r->has_rest = false;
	abi_sdp_wake(&r->half->hold);
	abi_sdp_wake(&r->half->reader_sleeps);
}

/* The receiver does not read as a lease needs it. */
static void end_unhelpful(struct sdp_ring *r)
{
	sdp_ring_end_lease(r);
	if (r->counted - r->first >= WORTH_BYTES) {
		r->wait_more = FIRST_WAIT_BYTES;
		return;
	}
	r->wait_bytes = r->wait_more;
	r->wait_more = MIN(2 * r->wait_more, LAST_WAIT_BYTES);
}

/* --- the beginning --- */

static bool is_up(const struct sdp_conn *c)
{
	return c && c->established && c->sdp.state == SDP_OPEN && !sdp_is_leaving(&c->sdp) && !c->qp_failed &&
	       !c->cm_gone;
}

/* Could there be a lease for longer than this moment? */
static bool is_sound(const struct sdp_ring *r)
{
	const struct sdp_conn *from = sender(r), *to = receiver(r);

	return is_up(from) && is_up(to) && !from->tx_eof && !to->rx_eof && !to->sdp.rx_shut;
}

static bool is_wanted(const struct sdp_ring *r)
{
	return !r->wait_bytes &&
	       atomic_load_explicit(&r->half->reads_much, memory_order_relaxed) &&
	       atomic_load_explicit(&r->half->writes_much, memory_order_relaxed);
}

/* Has the receiver's socket got all that the sender's program has written? */
static bool is_drained(const struct sdp_ring *r)
{
	const struct sdp_conn *from = sender(r), *to = receiver(r);

	return !from->readable && !from->pending && !from->lent.num_regions &&
	       from->sdp.tx_seq == to->sdp.rx_seq && !to->sdp.num_items && !to->reading &&
	       to->read_at == to->read_bytes;
}

static void begin(struct sdp_ring *r)
{
	r->state = SDP_RING_LEASED;
	r->first = r->counted = r->head_seen = atomic_load(&r->half->head);
	r->ticks = 0;
	atomic_store(&r->half->lease, ++r->lease);
	abi_sdp_wake(&r->half->hold);
	r->holds = false;
	arm_tick(r->channel);
}

/* A writer that has waited for too long has taken `hold` back. */
static void hold(struct sdp_ring *r)
{
	if (!r->holds && !sdp_channel_open_bypass(r->channel)) {
		r->wait_bytes = FIRST_WAIT_BYTES;
	} else if (!r->holds) {
		atomic_store(&r->half->hold, 1);
		r->holds = true;
	} else if (!atomic_load(&r->half->hold)) {
		r->holds = false;
		r->wait_bytes = FIRST_WAIT_BYTES;
	}
}

static void update(struct sdp_ring *r)
{
	finish(r);
	if (r->state == SDP_RING_LEASED && !is_sound(r))
		sdp_ring_end_lease(r);
	if (r->state != SDP_RING_OFF || r->has_rest || !is_wanted(r) || !is_sound(r))
		return;
	hold(r);
	if (!r->holds || !is_drained(r))
		return;
	if (atomic_load(&r->half->readers_in_kernel)) { /* the writer would not use the ring */
		r->holds = false;
		r->wait_bytes = SHORT_WAIT_BYTES;
		abi_sdp_wake(&r->half->hold);
	} else if (sdp_channel_open_bypass(r->channel)) {
		begin(r);
	}
}

void sdp_channel_update(struct sdp_conn *c)
{
	if (!c->channel || !c->channel->end[1])
		return;
	for (int i = 0; i < 2; i++)
		update(&c->channel->ring[i]);
}

void sdp_channel_account(struct sdp_conn *c)
{
	for (int i = 0; c->channel && i < 2; i++)
		sdp_ring_account(&c->channel->ring[i]);
}

/* --- the timer --- */

/* Nobody has taken a byte for r->ticks. Has everybody gone who could? */
static bool is_unread(const struct sdp_ring *r)
{
	const unsigned int ticks = atomic_load(&r->half->readers) ? TICKS_ASLEEP : TICKS_UNREAD;

	return r->ticks >= ticks && !atomic_load(&r->half->reader);
}

static void tick_leased(struct sdp_ring *r)
{
	const u64 head = atomic_load(&r->half->head), used = abi_sdp_used(r->half);

	if (used > ABI_SDP_RING_BYTES) {
		abort_both(r);
	} else if (head != r->head_seen) {
		r->ticks = 0;
	} else if (r->ticks++, used && is_unread(r)) {
		end_unhelpful(r);
	} else if (!used && r->ticks >= TICKS_UNUSED) {
		sdp_ring_end_lease(r);
	}
	r->head_seen = head;
}

static void tick_ending(struct sdp_ring *r)
{
	if (finish(r) || ++r->ticks < TICKS_TAKEN || has_owner(&r->half->writer) ||
	    has_owner(&r->half->reader))
		return;
	abort_both(r); /* a process died while it copied, and others have its descriptor */
}

void sdp_channel_tick(struct rt_timer *timer)
{
	struct sdp_channel *ch = container_of(timer, struct sdp_channel, tick);

	for (int i = 0; i < 2; i++) {
		struct sdp_ring *r = &ch->ring[i];

		if (r->state == SDP_RING_LEASED)
			tick_leased(r);
		else if (r->state == SDP_RING_ENDING)
			tick_ending(r);
		if (r->state != SDP_RING_OFF)
			arm_tick(ch);
	}
}

/* --- the connection's stream --- */

bool sdp_ring_yields(struct sdp_conn *c)
{
	struct sdp_ring *r;

	if (!c->channel)
		return true;
	r = ring_from(c);
	if (c->readable)
		sdp_ring_end_lease(r);
	return finish(r);
}

u32 sdp_ring_rest(struct sdp_conn *c)
{
	struct sdp_ring *r = c->channel ? ring_from(c) : NULL;
	u64 used;

	if (!r || !r->has_rest)
		return 0;
	used = abi_sdp_used(r->half);
	if (used > ABI_SDP_RING_BYTES) {
		abort_both(r);
		used = 0;
	}
	r->has_rest = used;
	return (u32)used;
}

u32 sdp_ring_take(struct sdp_conn *c, void *to, u32 room)
{
	const u32 n = MIN(room, sdp_ring_rest(c));
	struct sdp_ring *r;
	u64 head;

	if (!n)
		return 0;
	r = ring_from(c);
	head = atomic_load(&r->half->head);
	abi_sdp_get(r->bytes, head, to, n);
	atomic_store(&r->half->head, head + n);
	return n;
}

void sdp_ring_delivered(struct sdp_conn *c, u32 bytes)
{
	struct sdp_ring *r;

	if (!c->channel)
		return;
	r = ring_to(c);
	r->wait_bytes -= MIN(r->wait_bytes, bytes);
	abi_sdp_wake(&r->half->reader_sleeps);
}
