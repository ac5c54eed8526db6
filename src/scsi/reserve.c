/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Persistent reservations (SPC-4 5.12, 6.15, 6.16): hosts register a key with a unit; one
 * of them, or all, hold a reservation that keeps the others from writing or reading.
 * Registrations outlast the logins of their hosts, and end with the unit, unless a host wants
 * them to outlast a loss of power (APTPL) and the back end can keep them.
 *
 * An entry whose host was removed by another one stays until its place is needed: it
 * carries the unit attention that tells the host, and which of its commands are aborted.
 */
#include "scsi/private.h"

enum { PARAMETER_BYTES = 24, SPEC_I_PT = 0x08, ALL_TG_PT = 0x04, APTPL = 0x01 };
enum { MOVE_UNREG = 0x02, REGISTER = 0, TARGET_PORT = 1 /* the only one */ };
enum {
	KEYS_BYTES = 8 + 8 * SCSI_MAX_REGISTRANTS,
	STATUS_BYTES = 24 + SCSI_TRANSPORT_ID_BYTES
};

/* What a type of reservation means (SPC-4 table 49); 0: there is no such type. */
enum { VALID = 1, EXCLUDES_READS = 2, REGISTRANTS = 4, ALL_HOLD = 8 };
static const uint8_t types[16] = {
	[1] = VALID,
	[3] = VALID | EXCLUDES_READS,
	[5] = VALID | REGISTRANTS,
	[6] = VALID | REGISTRANTS | EXCLUDES_READS,
	[7] = VALID | REGISTRANTS | ALL_HOLD,
	[8] = VALID | REGISTRANTS | ALL_HOLD | EXCLUDES_READS,
};

bool scsi_is_reservation_type(uint8_t type)
{
	return type < ARRAY_SIZE(types) && types[type];
}

/* --- the table of registrations --------------------------------------------------- */

#define for_each_entry(e, r)                                                             \
	for (struct scsi_registrant *e = (r)->registrants;                               \
	     e < (r)->registrants + SCSI_MAX_REGISTRANTS; e++)
#define for_each_registered(e, r) for_each_entry(e, r) if (e->key)

static struct scsi_reservations *reservations_of(const struct scsi_call *call)
{
	return &call->unit->reservations;
}

static struct scsi_registrant *find_id(struct scsi_reservations *r, const uint8_t *id)
{
	for_each_entry(e, r) if (e->known && !memcmp(e->id, id, sizeof(e->id))) return e;
	return NULL;
}

/* Return: what the unit knows of the host of this command; NULL: nothing */
static struct scsi_registrant *find_host(const struct scsi_call *call)
{
	const uint8_t *id = call->task->initiator;

	return id && call->unit ? find_id(reservations_of(call), id) : NULL;
}

/* Return: a place for a host that registers, preferably not that of a host which is still
 * to be told something; NULL: all are in use */
static struct scsi_registrant *find_place(struct scsi_reservations *r)
{
	struct scsi_registrant *place = NULL;

	for_each_entry(e, r)
	{
		if (!e->known)
			return e;
		if (!e->key && (!place || !e->attention))
			place = e;
	}
	return place;
}

static bool holds(const struct scsi_reservations *r, const struct scsi_registrant *e)
{
	return r->type && e->key &&
	       (types[r->type] & ALL_HOLD || e == &r->registrants[r->holder]);
}

static bool any_registered(struct scsi_reservations *r)
{
	for_each_registered(e, r) return true;
	return false;
}

static void tell_registered(struct scsi_reservations *r,
			    const struct scsi_registrant *but, enum scsi_sense attention)
{
	for_each_registered(e, r) if (e != but) e->attention = attention;
}

static void conflict(struct scsi_call *call)
{
	call->task->status = SCSI_RESERVATION_CONFLICT;
}

/* --- what holds for every command -------------------------------------------------- */

enum scsi_sense scsi_take_attention(struct scsi_call *call)
{
	struct scsi_nexus *nexus = call->task->nexus;
	struct scsi_registrant *e = find_host(call);
	enum scsi_sense *from = nexus && nexus->attention ? &nexus->attention
				: e			  ? &e->attention
							  : NULL;
	enum scsi_sense attention = from ? *from : SCSI_NO_SENSE;

	if (from)
		*from = SCSI_NO_SENSE;
	return attention;
}

bool scsi_was_preempted(const struct scsi_call *call)
{
	const struct scsi_registrant *e = find_host(call);

	return e && call->task->order < e->aborted_before;
}

bool scsi_may_access(struct scsi_call *call)
{
	const uint8_t flags = call->command->flags;
	const struct scsi_reservations *r;
	const struct scsi_registrant *me;

	if (!(flags & (SCSI_READS | SCSI_CHANGES | SCSI_STORES)))
		return true;
	r = reservations_of(call);
	if (!r->type || (flags & SCSI_READS && !(types[r->type] & EXCLUDES_READS)))
		return true;
	me = find_host(call);
	if (me && (holds(r, me) || (me->key && types[r->type] & REGISTRANTS)))
		return true;
	conflict(call);
	return false;
}

/* --- PERSISTENT RESERVE IN --------------------------------------------------------- */

static void reply_list(struct scsi_call *call, uint8_t *data, size_t bytes)
{
	put_be32(data, reservations_of(call)->generation);
	put_be32(data + 4, (uint32_t)(bytes - 8));
	scsi_reply(call, data, bytes, get_be16(call->task->cdb + 7));
}

void scsi_read_keys(struct scsi_call *call)
{
	uint8_t data[KEYS_BYTES];
	size_t bytes = 8;

	for_each_registered(e, reservations_of(call))
	{
		put_be64(data + bytes, e->key);
		bytes += 8;
	}
	reply_list(call, data, bytes);
}

/* A reservation that all registrants hold has no key of its own. */
void scsi_read_reservation(struct scsi_call *call)
{
	const struct scsi_reservations *r = reservations_of(call);
	uint8_t data[24] = {0};

	if (r->type && !(types[r->type] & ALL_HOLD))
		put_be64(data + 8, r->registrants[r->holder].key);
	data[21] = r->type;
	reply_list(call, data, r->type ? sizeof(data) : 8);
}

void scsi_report_capabilities(struct scsi_call *call)
{
	/* SIP_C, ATP_C, PTPL_C; TMV, PTPL_A; the mask of types: EA-RO, WE-RO, EA, WE and both of
	 * all registrants */
	const bool can_keep = call->unit->backend->keep, kept = reservations_of(call)->kept;
	const uint8_t data[8] = {0, 8, 0x0c | can_keep, 0x80 | kept, 0xea, 0x01};

	scsi_reply(call, data, sizeof(data), get_be16(call->task->cdb + 7));
}

void scsi_read_full_status(struct scsi_call *call)
{
	struct scsi_reservations *r = reservations_of(call);
	uint8_t data[8 + SCSI_MAX_REGISTRANTS * STATUS_BYTES] = {0}, *at = data + 8;

	for_each_registered(e, r)
	{
		put_be64(at, e->key);
		at[12] = (uint8_t)(e->all_ports << 1 | holds(r, e));
		at[13] = holds(r, e) ? r->type : 0;
		put_be16(at + 18, TARGET_PORT);
		put_be32(at + 20, SCSI_TRANSPORT_ID_BYTES);
		memcpy(at + 24, e->id, sizeof(e->id));
		at += STATUS_BYTES;
	}
	reply_list(call, data, (size_t)(at - data));
}

/* --- PERSISTENT RESERVE OUT -------------------------------------------------------- */

/** struct request - what a PERSISTENT RESERVE OUT asks for */
struct request {
	struct scsi_reservations *r;
	struct scsi_registrant *me; /* NULL: the host is not registered */
	uint64_t key, new_key;	    /* new_key: the SERVICE ACTION RESERVATION KEY */
	uint8_t type, flags;
	const uint8_t *ids; /* with SPEC_I_PT: nr_ids TransportIDs of others */
	uint32_t nr_ids;
};

uint64_t scsi_reserve_bytes(const struct scsi_unit *unit, const uint8_t *cdb)
{
	return get_be32(cdb + 5);
}

/* Is @id a TransportID of the protocol by which the command came? */
static bool is_port(const struct scsi_call *call, const uint8_t *id)
{
	return call->task->initiator && id[0] == call->task->initiator[0];
}

/* Other ports to be registered (SPC-4 6.16.3); none of them may be yet. */
static bool read_ids(const struct scsi_call *call, struct request *q)
{
	const uint8_t *list = call->task->out + PARAMETER_BYTES;
	const size_t bytes = call->task->out_taken - PARAMETER_BYTES;

	if (call->task->cdb[1] != REGISTER || q->me || bytes < 4 ||
	    get_be32(list) != bytes - 4 || (bytes - 4) % SCSI_TRANSPORT_ID_BYTES)
		return false;
	q->ids = list + 4;
	q->nr_ids = (uint32_t)((bytes - 4) / SCSI_TRANSPORT_ID_BYTES);
	for (uint32_t i = 0; i < q->nr_ids; i++) {
		const uint8_t *id = q->ids + (size_t)i * SCSI_TRANSPORT_ID_BYTES;
		const struct scsi_registrant *e = find_id(q->r, id);

		if (!is_port(call, id) || (e && e->key))
			return false;
	}
	return true;
}

/* Return: false: the parameter list is wrong, and the command failed */
static bool read_request(struct scsi_call *call, struct request *q)
{
	const uint8_t *list = call->task->out;
	const size_t bytes = call->task->out_taken;

	if (bytes < PARAMETER_BYTES ||
	    (bytes > PARAMETER_BYTES && !(list[20] & SPEC_I_PT))) {
		scsi_fail(call, SCSI_PARAMETER_LIST_LENGTH);
		return false;
	}
	*q = (struct request){
		.r = reservations_of(call),
		.me = find_host(call),
		.key = get_be64(list),
		.new_key = get_be64(list + 8),
		.type = call->task->cdb[2] & 0x0f,
		.flags = list[20],
	};
	if (q->me && !q->me->key)
		q->me = NULL;
	if (!(q->flags & SPEC_I_PT) || read_ids(call, q))
		return true;
	scsi_fail(call, SCSI_INVALID_FIELD_IN_PARAMETERS);
	return false;
}

/* Return: false: the request is wrong, or not of a host that registered with the key that
 * it names; the command failed */
static bool read_registered(struct scsi_call *call, struct request *q)
{
	if (!read_request(call, q))
		return false;
	if (q->me && q->me->key == q->key)
		return true;
	conflict(call);
	return false;
}

/* Return: false: scope or type is unknown, and the command failed */
static bool check_type(struct scsi_call *call)
{
	const uint8_t field = call->task->cdb[2];

	if (scsi_is_reservation_type(field))
		return true;
	scsi_bad_cdb(call, 2);
	return false;
}

/* The reservation ends: those whom it let in with its holder are told. */
static void release(struct scsi_reservations *r, const struct scsi_registrant *by)
{
	if (types[r->type] & REGISTRANTS)
		tell_registered(r, by, SCSI_RESERVATIONS_RELEASED);
	r->type = 0;
}

static uint32_t count_places(struct scsi_reservations *r)
{
	uint32_t nr = 0;

	for_each_entry(e, r) nr += !e->key;
	return nr;
}

/* There is a place for it. Return: its registration */
static struct scsi_registrant *put_key(struct scsi_reservations *r, const uint8_t *id,
				       uint64_t key, bool all_ports)
{
	struct scsi_registrant *e = find_id(r, id);

	if (!e) {
		e = find_place(r);
		*e = (struct scsi_registrant){.known = true};
		memcpy(e->id, id, sizeof(e->id));
	}
	e->key = key;
	e->all_ports = all_ports;
	return e;
}

/* The host of the command, and those that it names: all of them or none. */
static void add_registrations(struct scsi_call *call, struct request *q)
{
	const bool all_ports = q->flags & ALL_TG_PT;

	if (!call->task->initiator || count_places(q->r) < 1 + q->nr_ids) {
		scsi_fail(call, SCSI_NO_REGISTRATION_RESOURCES);
		return;
	}
	put_key(q->r, call->task->initiator, q->new_key, all_ports);
	for (uint32_t i = 0; i < q->nr_ids; i++)
		put_key(q->r, q->ids + (size_t)i * SCSI_TRANSPORT_ID_BYTES, q->new_key,
			all_ports);
}

static void end_registration(struct request *q)
{
	const bool held = holds(q->r, q->me);

	q->me->key = 0;
	if (held && (!(types[q->r->type] & ALL_HOLD) || !any_registered(q->r)))
		release(q->r, q->me);
}

static void change_registration(struct scsi_call *call, struct request *q)
{
	if (q->flags & APTPL && !call->unit->backend->keep) {
		scsi_fail(call, SCSI_INVALID_FIELD_IN_PARAMETERS);
		return;
	}
	if (!q->me && !q->new_key)
		return;
	if (!q->me)
		add_registrations(call, q);
	else if (q->new_key)
		q->me->key = q->new_key;
	else
		end_registration(q);
	if (call->task->status != SCSI_GOOD)
		return;
	q->r->kept = q->flags & APTPL;
	q->r->generation++;
}

static void register_key(struct scsi_call *call)
{
	struct request q;

	if (!read_request(call, &q))
		return;
	if (q.key != (q.me ? q.me->key : 0))
		conflict(call);
	else
		change_registration(call, &q);
}

static void register_ignore(struct scsi_call *call)
{
	struct request q;

	if (read_request(call, &q))
		change_registration(call, &q);
}

/* --- REGISTER AND MOVE (SPC-4 5.12.8, 6.16.4) --- */

/* Return: the TransportID that the reservation moves to; NULL: the parameter list is wrong */
static const uint8_t *read_move(const struct scsi_call *call)
{
	const uint8_t *list = call->task->out, *id = list + PARAMETER_BYTES;

	if (get_be32(list + 20) != SCSI_TRANSPORT_ID_BYTES || !get_be64(list + 8) ||
	    get_be16(list + 18) != TARGET_PORT || list[17] & ~(MOVE_UNREG | APTPL) ||
	    (list[17] & APTPL && !call->unit->backend->keep) ||
	    !is_port(call, id) || !memcmp(id, call->task->initiator, SCSI_TRANSPORT_ID_BYTES))
		return NULL;
	return id;
}

static void move_to(struct request *q, const uint8_t *id, uint8_t flags)
{
	struct scsi_registrant *to = put_key(q->r, id, q->new_key, false);

	q->r->holder = (uint8_t)(to - q->r->registrants);
	if (flags & MOVE_UNREG)
		q->me->key = 0;
	q->r->kept = flags & APTPL;
	q->r->generation++;
}

static void register_and_move(struct scsi_call *call)
{
	const uint8_t *list = call->task->out, *id;
	struct request q = {.r = reservations_of(call), .me = find_host(call)};

	if (call->task->out_taken != PARAMETER_BYTES + SCSI_TRANSPORT_ID_BYTES) {
		scsi_fail(call, SCSI_PARAMETER_LIST_LENGTH);
		return;
	}
	q.new_key = get_be64(list + 8);
	id = read_move(call);
	if (!q.me || !q.me->key || q.me->key != get_be64(list))
		conflict(call);
	else if (!q.r->type)
		scsi_bad_cdb(call, 1); /* there is nothing to move */
	else if (!holds(q.r, q.me) || types[q.r->type] & ALL_HOLD)
		conflict(call);
	else if (!id)
		scsi_fail(call, SCSI_INVALID_FIELD_IN_PARAMETERS);
	else if (!find_id(q.r, id) && !count_places(q.r))
		scsi_fail(call, SCSI_NO_REGISTRATION_RESOURCES);
	else
		move_to(&q, id, list[17]);
}

/* Reserving again what one holds changes nothing. */
static void begin_reservation(struct scsi_call *call)
{
	struct request q;

	if (!read_registered(call, &q) || !check_type(call))
		return;
	if (!q.r->type) {
		q.r->type = q.type;
		q.r->holder = (uint8_t)(q.me - q.r->registrants);
	} else if (!holds(q.r, q.me) || q.r->type != q.type) {
		conflict(call);
	}
}

static void end_reservation(struct scsi_call *call)
{
	struct request q;

	if (!read_registered(call, &q) || !holds(q.r, q.me))
		return;
	if (call->task->cdb[2] != q.r->type)
		scsi_fail(call, SCSI_INVALID_RELEASE);
	else
		release(q.r, q.me);
}

static void clear(struct scsi_call *call)
{
	struct request q;

	if (!read_registered(call, &q))
		return;
	tell_registered(q.r, q.me, SCSI_RESERVATIONS_PREEMPTED);
	for_each_registered(e, q.r) e->key = 0;
	q.r->type = 0;
	q.r->generation++;
}

/* --- preempting (SPC-4 5.12.11.2) --- */

static bool is_preempted(const struct request *q, const struct scsi_registrant *e,
			 bool takes_over)
{
	if (takes_over && e == q->me)
		return false;
	return e->key == q->new_key || (takes_over && types[q->r->type] & ALL_HOLD);
}

/* Return: how many registrations ended */
static unsigned remove_preempted(struct request *q, bool takes_over,
				 uint64_t aborted_before)
{
	unsigned nr = 0;

	for_each_registered(e, q->r)
	{
		if (!is_preempted(q, e, takes_over))
			continue;
		e->key = 0;
		nr++;
		if (e == q->me)
			continue;
		e->attention = SCSI_REGISTRATIONS_PREEMPTED;
		e->aborted_before = MAX(e->aborted_before, aborted_before);
	}
	return nr;
}

static void take_over(struct request *q, uint64_t aborted_before)
{
	remove_preempted(q, true, aborted_before);
	if (q->type != q->r->type)
		tell_registered(q->r, q->me, SCSI_RESERVATIONS_RELEASED);
	q->r->type = q->type;
	q->r->holder = (uint8_t)(q->me - q->r->registrants);
}

static void preempt(struct scsi_call *call, uint64_t aborted_before)
{
	bool takes_over, all;
	struct request q;

	if (!read_registered(call, &q))
		return;
	all = types[q.r->type] & ALL_HOLD;
	takes_over = q.r->type &&
		     (all ? !q.new_key : q.new_key == q.r->registrants[q.r->holder].key);
	if (!q.new_key && !all) {
		scsi_fail(call, SCSI_INVALID_FIELD_IN_PARAMETERS);
		return;
	}
	if (takes_over) {
		if (!check_type(call))
			return;
		take_over(&q, aborted_before);
	} else if (!remove_preempted(&q, false, aborted_before)) {
		conflict(call);
		return;
	} else if (all && !any_registered(q.r)) {
		q.r->type = 0;
	}
	q.r->generation++;
}

static void preempt_only(struct scsi_call *call)
{
	preempt(call, 0);
}

/* What the preempted hosts sent before this command, and was not performed yet, is
 * aborted when its turn comes. */
static void preempt_and_abort(struct scsi_call *call)
{
	preempt(call, call->task->order);
}

/* --- what outlasts a loss of power (SPC-4 5.12.5) ----------------------------------- */

/* Return: true: there is nothing to store, or it is stored */
static bool keep(struct scsi_call *call, const struct scsi_reservations *before)
{
	const struct scsi_reservations *now = reservations_of(call);
	uint8_t state[SCSI_SAVED_BYTES];

	if (!before->kept && !now->kept)
		return true;
	return !call->unit->backend->keep(call->unit->ctx, state,
					  scsi_reservations_save(now, state));
}

static void (*const actions[])(struct scsi_call *call) = {
	register_key, begin_reservation, end_reservation, clear,
	preempt_only, preempt_and_abort, register_ignore, register_and_move,
};

/* What cannot be stored does not happen. */
void scsi_reserve_out(struct scsi_call *call)
{
	struct scsi_reservations *r = reservations_of(call), before = *r;

	actions[call->command->action](call);
	if (call->task->status != SCSI_GOOD || keep(call, &before))
		return;
	*r = before;
	scsi_fail(call, SCSI_TARGET_FAILURE);
}
