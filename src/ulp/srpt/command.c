/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands. srp/target.h has the steps of a command; each step is begun here when the
 * previous one has ended. Data are transferred by up to SRPT_MOVES outstanding RDMA requests.
 * The answer is posted behind RDMA WRITEs without waiting for their completion, since a
 * reliable connection preserves the order.
 */
#include "ulp/srpt/private.h"
#include "ulp/srpt/trace.h"

static void run(struct srpt_request *r);

/* --- memory --- */

/* Return: a buffer, whose size counts against the target's limit; NULL: the limit is reached */
static u8 *hold(struct srpt_request *r, size_t bytes)
{
	struct srpt *srpt = r->channel->srpt;
	u8 *buffer;

	if (srpt->held_bytes + bytes > SRPT_HELD_MOST)
		return NULL;
	buffer = rt_zalloc(bytes);
	if (buffer) {
		srpt->held_bytes += bytes;
		r->held_bytes += bytes;
	}
	return buffer;
}

void srpt_command_drop(struct srpt_request *r)
{
	if (r->channel->srpt)
		r->channel->srpt->held_bytes -= r->held_bytes;
	rt_free(r->out);
	rt_free(r->in);
	rt_free(r->table[SRP_OUT]);
	rt_free(r->table[SRP_IN]);
	srpt_line_leave(r);
	if (r->unit)
		srpt_unit_release(r->unit);
}

/* --- RDMA --- */

static void moved(struct ib_cq *cq, struct ib_wc *wc)
{
	struct srpt_request *r = container_of(wc->wr_cqe, struct srpt_request, moved);

	r->in_flight--;
	if (wc->status != IB_WC_SUCCESS) {
		r->answered =
			true; /* the queue pair is in the error state: no answer can be sent */
		srpt_channel_end(r->channel);
	} else if (!r->answered && r->moving) {
		run(r);
		return;
	}
	srpt_request_finish(r);
}

/* Find the next bytes of the initiator's memory; a table of descriptors is described by the command.
 * Return: 0; -errno: there is no descriptor for them */
static int find_segment(const struct srpt_request *r, struct wire_srp_desc *segment)
{
	const struct srp_command *c = &r->command;

	switch (c->step) {
	case SRP_FETCH_OUT_TABLE:
		*segment = c->parts.out.where;
		break;
	case SRP_FETCH_IN_TABLE:
		*segment = c->parts.in.where;
		break;
	default:
		return srp_command_segment(c, c->step == SRP_PUT_DATA ? SRP_IN : SRP_OUT,
					   r->move.at, segment);
	}
	return 0;
}

static int post_move(struct srpt_request *r, const struct wire_srp_desc *segment)
{
	struct srpt_move *m = &r->move;
	const u32 bytes = MIN(segment->bytes, m->bytes - m->at);
	struct ib_sge sge = {
		.addr = ib_dma_map_single(r->channel->qp->device, m->buffer + m->at,
					  bytes, DMA_BIDIRECTIONAL),
		.length = bytes,
		.lkey = r->channel->srpt->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {.wr_cqe = &r->moved,
		       .sg_list = &sge,
		       .num_sge = 1,
		       .opcode = m->opcode,
		       .send_flags = IB_SEND_SIGNALED},
		.remote_addr = segment->address,
		.rkey = segment->rkey,
	};
	int ret = srpt_post_send(r->channel, &wr.wr);

	if (!ret) {
		m->at += bytes;
		r->in_flight++;
	}
	return ret;
}

/* Post further RDMA requests. Return: true if the step has ended */
static bool move(struct srpt_request *r)
{
	struct srpt_move *m = &r->move;

	while (m->at < m->bytes && !r->command.aborted && r->in_flight < SRPT_MOVES) {
		struct wire_srp_desc segment;

		if (find_segment(r, &segment)) { /* the descriptors describe less than their total length */
			r->command.bad_fields = true;
			m->bytes = m->at;
			break;
		}
		if (post_move(r, &segment)) {
			r->answered = true;
			return false;
		}
	}
	if (m->opcode == IB_WR_RDMA_WRITE)
		return m->at == m->bytes || r->command.aborted;
	return !r->in_flight;
}

static bool begin_move(struct srpt_request *r, enum ib_wr_opcode opcode, u8 **buffer,
		       u32 bytes)
{
	if (!*buffer)
		*buffer = hold(r, bytes);
	if (!*buffer) {
		srp_command_fail(&r->command, SCSI_TASK_SET_FULL, SCSI_NO_SENSE);
		return false;
	}
	r->move = (struct srpt_move){.buffer = *buffer, .bytes = bytes, .opcode = opcode};
	r->moving = true;
	return true;
}

/* --- execution --- */

/* Return: the nexus of the command. While a command is performed, it has the unit attention of the
 * nexus, so that no other command reports it (take_nexus(), return_nexus()). */
static struct scsi_nexus *nexus_of(struct srpt_request *r)
{
	return r->unit ? &r->channel->initiator->nexus[r->unit->lun] : NULL;
}

static void take_nexus(struct srpt_request *r)
{
	struct scsi_nexus *nexus = nexus_of(r);

	r->nexus = nexus ? *nexus : (struct scsi_nexus){0};
	if (nexus)
		nexus->attention = SCSI_NO_SENSE;
}

static void return_nexus(struct srpt_request *r)
{
	struct scsi_nexus *nexus = nexus_of(r);

	if (nexus && !nexus->attention)
		*nexus = r->nexus;
}

/* The initiator has got the list of all units, which clears the unit attention (SPC-4 6.33). */
static void note_listing(struct srpt_request *r)
{
	struct srpt_initiator *i = r->channel->initiator;

	if (!r->command.task.luns_reported)
		return;
	for (size_t lun = 0; lun < ARRAY_SIZE(i->nexus); lun++)
		if (i->nexus[lun].attention == SCSI_LUNS_CHANGED)
			i->nexus[lun].attention = SCSI_NO_SENSE;
}

static void execute(struct srpt_job *job)
{
	struct srpt_request *r = container_of(job, struct srpt_request, job);
	bool admitted;

	pthread_mutex_lock(&r->unit->admission);
	admitted = scsi_admit(&r->target, &r->command.task);
	pthread_mutex_unlock(&r->unit->admission);
	if (admitted)
		scsi_perform(&r->target, &r->command.task);
}

/* Reads and writes may run at the same time. All other commands run alone: SYNCHRONIZE CACHE,
 * commands that compare or discard, and reservations. */
static enum srpt_job_order order_of(const struct srpt_request *r)
{
	const struct srp_command *c = &r->command;

	return scsi_is_parallel(&r->unit->scsi, c->cdb, c->cdb_bytes) ? SRPT_BESIDE : SRPT_ALONE;
}

static void executed(struct srpt_job *job)
{
	struct srpt_request *r = container_of(job, struct srpt_request, job);

	r->executing = false;
	srpt_line_leave(r);
	return_nexus(r);
	if (r->channel->ending) { /* no answer can be sent */
		r->answered = true;
		srpt_request_finish(r);
		return;
	}
	note_listing(r);
	srp_command_next(&r->command);
	run(r);
}

/* Begin to perform the command. Return: true if the step has ended */
static bool begin_execution(struct srpt_request *r)
{
	struct srpt *srpt = r->channel->srpt;
	const u32 room = srp_command_in_room(&r->command);

	if (!srpt_line_turn(r))
		return false;
	if (srpt_unit_of(srpt, r->command.cmd.lun) != r->unit) {
		/* The LUN has no unit any more, or another one than when the command arrived. The
		 * initiator gets a unit attention for that. */
		srp_command_fail(&r->command, SCSI_BUSY, SCSI_NO_SENSE);
		return false;
	}
	if (room && !r->in)
		r->in = hold(r, room);
	if (room && !r->in) {
		srp_command_fail(&r->command, SCSI_TASK_SET_FULL, SCSI_NO_SENSE);
		return false;
	}
	take_nexus(r);
	srp_command_task(&r->command, r->out, r->in, &r->nexus);
	r->command.task.initiator = r->channel->initiator->transport_id;
	r->command.task.order = r->order;
	if (!r->unit || !r->unit->worker) {
		scsi_execute(&srpt->scsi, &r->command.task);
		srpt_line_leave(r);
		return_nexus(r);
		note_listing(r);
		return true;
	}
	r->target = srpt->scsi;
	r->executing = true;
	r->job.run = execute;
	r->job.done = executed;
	r->job.order = order_of(r);
	r->job.first = r->command.cmd.task_attr == WIRE_SRP_HEAD_OF_QUEUE;
	srpt_worker_add(r->unit->worker, &r->job);
	return false;
}

/* --- steps --- */

static void finish_move(struct srpt_request *r)
{
	struct srp_command *c = &r->command;

	r->moving = false;
	if (c->bad_fields) {
		srp_command_refuse(c);
		return;
	}
	if (c->step == SRP_FETCH_OUT_TABLE)
		c->out_table = r->table[SRP_OUT];
	if (c->step == SRP_FETCH_IN_TABLE)
		c->in_table = r->table[SRP_IN];
	srp_command_next(c);
}

static void begin_step(struct srpt_request *r)
{
	struct srp_command *c = &r->command;

	switch (c->step) {
	case SRP_FETCH_OUT_TABLE:
		begin_move(r, IB_WR_RDMA_READ, &r->table[SRP_OUT],
			   c->parts.out.where.bytes);
		break;
	case SRP_FETCH_IN_TABLE:
		begin_move(r, IB_WR_RDMA_READ, &r->table[SRP_IN],
			   c->parts.in.where.bytes);
		break;
	case SRP_FETCH_DATA:
		begin_move(r, IB_WR_RDMA_READ, &r->out, c->out_bytes);
		break;
	case SRP_PUT_DATA:
		begin_move(r, IB_WR_RDMA_WRITE, &r->in, c->in_bytes);
		break;
	case SRP_EXECUTE:
		if (begin_execution(r))
			srp_command_next(c);
		break;
	case SRP_RESPOND:
		trace_srpt_response(SRPT_TRACE_AT(r->channel), r->channel->qp->qp_num, c->cmd.tag,
				    (unsigned int)c->task.status);
		srpt_request_answer(
			r,
			srp_command_answer(c, srp_credits_return(&r->channel->credits, 1),
					   r->answer));
		break;
	case SRP_DONE:
		r->answered = true;
		break;
	}
}

/* Perform the steps of the command until it has ended, or a step has to wait. */
static void run(struct srpt_request *r)
{
	while (!r->answered && !r->executing && !r->waiting) {
		if (r->moving && !move(r))
			break;
		if (r->moving)
			finish_move(r);
		else
			begin_step(r);
	}
	srpt_request_finish(r);
}

void srpt_command_go_on(struct srpt_request *r)
{
	if (r->command.aborted) {
		return_nexus(r);
		srp_command_next(&r->command);
	}
	run(r);
}

/* If the disk has not begun to perform the command, do not perform it. Otherwise let later commands
 * wait until it has ended, because it may be a write, and the initiator does not know that it is
 * still being performed. */
void srpt_command_abandon(struct srpt_request *r)
{
	if (r->executing && srpt_worker_cancel(r->unit->worker, &r->job)) {
		r->executing = false;
		return_nexus(r);
	}
	if (r->executing)
		srpt_line_hold(r);
	else
		srpt_line_leave(r);
	r->answered = true;
}

void srpt_command_begin(struct srpt_request *r, const u8 *iu, size_t len)
{
	struct srpt_channel *ch = r->channel;
	u32 reason;

	r->is_command = true;
	r->moved.done = moved;
	ch->commands++;
	if (srp_command_read(&r->command, iu, len, ch->immediate_offset, &reason)) {
		r->answered = true;
		srpt_channel_logout(ch, reason);
		srpt_request_finish(r);
		return;
	}
	r->unit = srpt_unit_of(ch->srpt, r->command.cmd.lun);
	if (r->unit) {
		r->unit->users++;
		r->order = ++r->unit->arrivals;
		srpt_line_join(r);
	}
	trace_srpt_command(SRPT_TRACE_AT(ch), ch->qp->qp_num, r->command.cmd.tag, r->command.cmd.cdb[0],
			   r->unit ? (int)r->unit->lun : -1);
	srp_command_size(&r->command, r->unit ? &r->unit->scsi : NULL);
	run(r);
}
