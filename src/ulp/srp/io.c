/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands. A command that takes too long is aborted. If the target does not answer that within
 * TASK_NS, the unit is reset, and if this is not answered, either, the channel is taken down. An
 * aborted command is sent again, since reads and writes of a disk may be repeated.
 */
#include <errno.h>
#include <string.h>

#include "ulp/srp/private.h"
#include "ulp/srp/trace.h"

#define TASK_NS	  (5 * NSEC_PER_SEC)
#define BUSY_NS	  (20 * 1000 * 1000ull) /* delay before a command for a busy unit is repeated */
#define QUIET_NS  NSEC_PER_SEC /* after this time without an answer, the path is tested */

static u8 *piece_at(const struct srp_session *s, unsigned int i)
{
	return s->arena + (size_t)SRPI_SLOTS * SRP_TABLE_BYTES + (size_t)i * SRP_PIECE_BYTES;
}

void srp_io_init(struct srp_session *s)
{
	INIT_LIST_HEAD(&s->free);
	INIT_LIST_HEAD(&s->waiting);
	for (unsigned int i = 0; i < SRPI_SLOTS; i++) {
		s->io[i].session = s;
		s->io[i].slot = i;
		s->io[i].piece[0] = piece_at(s, i);
		s->io[i].nr_pieces = 1;
		s->io[i].command.table = s->arena + (size_t)i * SRP_TABLE_BYTES;
		list_add_tail(&s->io[i].node, &s->free);
	}
	for (unsigned int i = SRP_PIECES; i > SRPI_SLOTS; i--)
		s->spare[s->nr_spare++] = piece_at(s, i - 1);
	s->probe.io = srp_io_get(s, 0);
}

/* The slot that was freed last is used first, because its memory is in the caches. */
struct srp_io *srp_io_get(struct srp_session *s, u32 bytes)
{
	const u32 pieces = MAX(DIV_ROUND_UP(bytes, SRP_PIECE_BYTES), 1);
	struct srp_io *io;

	if (list_empty(&s->free) || s->nr_spare < pieces - 1)
		return NULL;
	io = list_first_entry(&s->free, struct srp_io, node);
	list_del_init(&io->node);
	while (io->nr_pieces < pieces)
		io->piece[io->nr_pieces++] = s->spare[--s->nr_spare];
	io->repeats = 0;
	io->unit = NULL;
	io->connection = NULL;
	return io;
}

void srp_io_put(struct srp_io *io)
{
	struct srp_session *s = io->session;

	if (io->unit && !--io->unit->requests && io->unit->gone)
		rt_free(io->unit);
	io->unit = NULL;
	while (io->nr_pieces > 1)
		s->spare[s->nr_spare++] = io->piece[--io->nr_pieces];
	list_add(&io->node, &s->free);
	srp_connections_resume(s);
}

size_t srp_io_iovec(const struct srp_io *io, size_t from, size_t bytes, struct iovec *iov)
{
	size_t nr = 0;

	while (bytes) {
		const size_t at = from % SRP_PIECE_BYTES, n = MIN(bytes, SRP_PIECE_BYTES - at);

		iov[nr++] = (struct iovec){io->piece[from / SRP_PIECE_BYTES] + at, n};
		from += n;
		bytes -= n;
	}
	return nr;
}

void srp_io_data(struct srp_io *io, bool out, u32 from, u32 bytes)
{
	const u32 rkey = io->session->mr->rkey;
	struct iovec part[SRP_PIECES_MOST];
	const size_t nr = srp_io_iovec(io, from, bytes, part);

	for (size_t i = 0; i < nr; i++)
		io->desc[i] = (struct wire_srp_desc){(uintptr_t)part[i].iov_base, rkey,
						     (u32)part[i].iov_len};
	io->command.out = out;
	io->command.bytes = bytes;
	io->command.piece = io->desc;
	io->command.nr_pieces = (u32)nr;
	io->command.table_at = (struct wire_srp_desc){(uintptr_t)io->command.table, rkey, 0};
}

/* --- the queue --- */

/* Choose the channel for the next command; the channels take turns. */
static struct srp_channel *choose_channel(struct srp_session *s)
{
	for (unsigned int i = 0; i < s->config.nr_paths; i++) {
		struct srp_channel *ch = &s->channel[(s->next_channel + i) % s->config.nr_paths];

		if (ch->state == SRP_UP && srpi_channel_ready(&ch->machine)) {
			s->next_channel = (unsigned int)(ch - s->channel) + 1;
			return ch;
		}
	}
	return NULL;
}

static void send_io(struct srp_channel *ch, struct srp_io *io)
{
	size_t bytes = srpi_command_build(&ch->machine, io->slot, &io->command, io->iu);

	if (!bytes) { /* the target was replaced since the command was made, and accepts less */
		io->done(io, EIO);
		return;
	}
	ch->session->tables += io->command.nr_pieces > 1;
	ch->session->fetched_tables += srpi_command_fetched(&ch->machine, io->command.nr_pieces);
	io->channel = ch;
	io->task = SRP_NO_TASK;
	io->sent_at = rt_now(ch->session->fabric->rt);
	if (list_empty(&ch->sent)) {
		ch->received_at = io->sent_at;
		if (!rt_timer_armed(&ch->watch))
			rt_timer_arm(&ch->watch, mono_add(io->sent_at, QUIET_NS));
	}
	list_add_tail(&io->node, &ch->sent);
	ch->commands++;
	ch->session->commands++;
	trace_srp_command(srp_trace_at(ch->session), ch->session->config.name, srp_trace_path(ch),
			  io->slot, io->command.cdb[0], io->command.out, io->command.bytes);
	srp_channel_send(ch, io->iu, bytes); /* an error takes the channel down, which repeats the command */
}

/* Return: the command to be sent next; NULL: none may be sent now */
static struct srp_io *next_waiting(struct srp_session *s)
{
	struct srp_io *probe = s->probe.io;

	if (s->probe.holding)
		return probe->channel || list_empty(&probe->node) ? NULL : probe;
	return list_empty(&s->waiting) ? NULL
				       : list_first_entry(&s->waiting, struct srp_io, node);
}

void srp_io_kick(struct srp_session *s)
{
	struct srp_channel *ch;
	struct srp_io *io;

	while ((io = next_waiting(s)) && (ch = choose_channel(s))) {
		list_del_init(&io->node);
		send_io(ch, io);
	}
}

void srp_io_submit(struct srp_io *io)
{
	struct srp_session *s = io->session;

	io->residual_bytes = 0;
	if (s->recovery.state == SRPI_FAIL_FAST || s->recovery.state == SRPI_LOST) {
		io->done(io, EIO);
		return;
	}
	if (io->unit && io->unit->gone) {
		io->done(io, ESHUTDOWN);
		return;
	}
	if (io == s->probe.io)
		list_add(&io->node, &s->waiting);
	else
		list_add_tail(&io->node, &s->waiting);
	if (!rt_timer_armed(&s->busy))
		srp_io_kick(s);
}

void srp_io_fail_waiting(struct srp_session *s, const struct srp_unit *unit, int error)
{
	struct srp_io *each, *next;
	LIST_HEAD(failed);

	list_for_each_entry_safe(each, next, &s->waiting, node)
		if (!unit || each->unit == unit) {
			list_del(&each->node);
			list_add_tail(&each->node, &failed);
		}
	while (!list_empty(&failed)) {
		struct srp_io *io = list_first_entry(&failed, struct srp_io, node);

		list_del_init(&io->node);
		io->done(io, error);
	}
}

void srp_io_requeue(struct srp_channel *ch)
{
	struct srp_session *s = ch->session;

	while (!list_empty(&ch->sent)) { /* from the newest on, so that the oldest will be first in the queue */
		struct srp_io *io = list_entry(ch->sent.prev, struct srp_io, node);

		list_del(&io->node);
		io->channel = NULL;
		s->repeated++;
		list_add(&io->node, &s->waiting);
	}
	for (unsigned int i = 0; i < SRPI_SLOTS; i++)
		if (s->io[i].unit && s->io[i].unit->gone)
			srp_io_fail_waiting(s, s->io[i].unit, ESHUTDOWN);
}

/* --- outcomes --- */

static void repeat(struct srp_io *io, bool later)
{
	struct srp_session *s = io->session;

	if (io->unit && io->unit->gone) {
		io->done(io, ESHUTDOWN);
		return;
	}
	s->repeated++;
	list_add(&io->node, &s->waiting);
	if (later && !rt_timer_armed(&s->busy))
		rt_timer_arm(&s->busy, mono_add(rt_now(s->fabric->rt), BUSY_NS));
	if (!rt_timer_armed(&s->busy))
		srp_io_kick(s);
}

/* If the target reports that its units have changed, begin a probe. A command whose LUN may be
 * another disk now is not repeated before the probe has ended. */
static void look_at_units(struct srp_io *io, const struct srpi_news *news)
{
	const bool is_probe = io == io->session->probe.io;

	if (srpi_units_changed(news->sense, news->sense_bytes) ||
	    (!is_probe && srpi_unit_is_new(news->sense, news->sense_bytes)))
		srp_probe_begin(io->session, !is_probe);
}

static const char *verdict_name(enum srpi_verdict verdict)
{
	if (verdict == SRPI_LATER || verdict == SRPI_REPEAT)
		return "repeat";
	return verdict == SRPI_FAILED ? "failed" : "done";
}

static void complete(struct srp_io *io, const struct srpi_news *news)
{
	enum srpi_verdict verdict = SRPI_FAILED;
	int error = EIO;

	list_del_init(&io->node);
	io->channel = NULL;
	if (news->ok)
		look_at_units(io, news);
	if (news->ok)
		verdict = srpi_judge(news->status, news->sense, news->sense_bytes, &error);
	trace_srp_response(srp_trace_at(io->session), io->session->config.name, io->slot, news->status,
			   verdict_name(verdict));
	io->residual_bytes = MIN(news->residual_bytes, io->command.bytes);
	if (verdict == SRPI_LATER || (verdict == SRPI_REPEAT && ++io->repeats < SRP_REPEATS_MOST))
		repeat(io, verdict == SRPI_LATER);
	else
		io->done(io, verdict == SRPI_REPEAT ? EIO : error);
}

static void begin_task(struct srp_channel *ch, struct srp_io *io,
		       enum wire_srp_task_function function, enum srp_task task)
{
	size_t bytes = srpi_task_build(&ch->machine, io->slot, io->command.lun, function,
				       io->task_iu);

	io->task = task;
	io->task_at = rt_now(ch->session->fabric->rt);
	if (!bytes)
		return; /* there is no credit for the request: it is treated as one that is not answered */
	ch->session->aborted++;
	trace_srp_task(srp_trace_at(ch->session), ch->session->config.name, io->slot, function);
	srp_channel_send(ch, io->task_iu, bytes);
}

static void task_done(struct srp_channel *ch, struct srp_io *io, bool ok)
{
	trace_srp_task_done(srp_trace_at(ch->session), ch->session->config.name, io->slot, ok);
	if (io->channel != ch) /* the command was answered meanwhile */
		return;
	if (!ok && io->task == SRP_ABORTING) {
		begin_task(ch, io, WIRE_SRP_LUN_RESET, SRP_RESETTING);
		return;
	}
	if (!ok) {
		srp_channel_fail(ch, "the target refused to reset a unit that did not answer");
		return;
	}
	list_del_init(&io->node);
	io->channel = NULL;
	if (++io->repeats < SRP_REPEATS_MOST)
		repeat(io, false);
	else
		io->done(io, EIO);
}

void srp_io_take(struct srp_channel *ch, const struct srpi_news *news)
{
	struct srp_io *io = &ch->session->io[news->slot];

	if (news->event == SRPI_TASK_DONE)
		task_done(ch, io, news->ok);
	else if (io->channel == ch)
		complete(io, news);
	if (!list_empty(&ch->session->waiting) && !rt_timer_armed(&ch->session->busy))
		srp_io_kick(ch->session);
}

/* --- time --- */

static bool is_over(mono_t since, u64 ns, mono_t now)
{
	return !mono_before(now, mono_add(since, ns));
}

void srp_io_watch(struct srp_channel *ch)
{
	mono_t now = rt_now(ch->session->fabric->rt);
	u64 limit = ch->session->config.command_timeout_s * NSEC_PER_SEC;
	struct srp_io *io, *next;

	if (list_empty(&ch->sent))
		return;
	if (is_over(ch->received_at, QUIET_NS, now))
		srp_channel_ask(ch);
	list_for_each_entry_safe(io, next, &ch->sent, node) {
		if (io->task == SRP_NO_TASK && is_over(io->sent_at, limit, now)) {
			begin_task(ch, io, WIRE_SRP_ABORT_TASK, SRP_ABORTING);
		} else if (io->task != SRP_NO_TASK && is_over(io->task_at, TASK_NS, now)) {
			srp_channel_fail(ch, "a command and its abort were not answered");
			break;
		}
	}
	rt_timer_arm(&ch->watch, mono_add(now, QUIET_NS));
}
