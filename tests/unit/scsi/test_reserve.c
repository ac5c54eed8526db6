/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Persistent reservations: who may do what, and who is told. */
#include "../test.h"

#include "disk.h"

enum {
	WRITE_EXCLUSIVE = 1,
	EXCLUSIVE = 3,
	WRITE_REGISTRANTS = 5,
	WRITE_ALL = 7,
	EXCLUSIVE_ALL
};
enum { REGISTER, RESERVE, RELEASE, CLEAR, PREEMPT, PREEMPT_ABORT, REGISTER_IGNORE };
enum { CONFLICT = -SCSI_RESERVATION_CONFLICT, ABORTED = -SCSI_TASK_ABORTED };
enum { A, B, C, HOSTS };

static uint8_t hosts[HOSTS][SCSI_TRANSPORT_ID_BYTES];
static uint8_t flags; /* of the next parameter lists */
static struct disk d;

static int setup(void **state)
{
	disk_init(&d);
	flags = 0;
	for (int i = 0; i < HOSTS; i++)
		hosts[i][0] = 4, hosts[i][23] = (uint8_t)i;
	return 0;
}

/* The keys of A, B and C are 0xa, 0xb and 0xc. */
static uint64_t key(int host)
{
	return 0xa + (uint64_t)host;
}

static int out(int host, uint8_t action, uint8_t type, uint64_t of, uint64_t to)
{
	const uint8_t cdb[16] = {0x5f, action, type, [8] = 24};
	uint8_t list[24] = {[20] = flags};

	put_be64(list, of);
	put_be64(list + 8, to);
	d.initiator = hosts[host];
	return disk_run(&d, 0, cdb, list, sizeof(list));
}

static int in(uint8_t action)
{
	const uint8_t cdb[16] = {0x5e, action, [7] = 16};

	return disk_run(&d, 0, cdb, NULL, 0);
}

static int run(int host, uint8_t opcode)
{
	static const uint8_t block[1024];
	const uint8_t cdb[16] = {opcode, [8] = opcode != 0x42};

	d.initiator = host < 0 ? NULL : hosts[host];
	return disk_run(&d, 0, cdb, block, sizeof(block));
}

static int read_of(int host)
{
	return run(host, 0x28);
}

static int write_of(int host)
{
	return run(host, 0x2a);
}

static void register_all(void)
{
	for (int i = 0; i < HOSTS; i++)
		assert_int_equal(out(i, REGISTER, 0, 0, key(i)), 0);
}

static void a_host_registers_changes_and_ends_its_key(void **state)
{
	assert_int_equal(out(A, REGISTER, 0, 5, 1), CONFLICT); /* it has no key yet */
	assert_int_equal(out(A, REGISTER, 0, 0, 0), 0);
	assert_int_equal(in(0), 0);
	assert_int_equal(get_be32(d.in), 0); /* nothing happened */
	assert_int_equal(out(A, REGISTER, 0, 0, 1), 0);
	assert_int_equal(out(A, REGISTER, 0, 0, 2), CONFLICT);
	assert_int_equal(out(A, REGISTER, 0, 1, 2), 0);
	assert_int_equal(out(B, REGISTER_IGNORE, 0, 77, 3), 0);
	assert_int_equal(in(0), 0);
	assert_int_equal(d.task.in_bytes, 8 + 16);
	assert_int_equal(get_be32(d.in), 3); /* the generation */
	assert_int_equal(get_be64(d.in + 8), 2);
	assert_int_equal(get_be64(d.in + 16), 3);
	assert_int_equal(out(A, REGISTER, 0, 2, 0), 0);
	assert_int_equal(out(B, REGISTER_IGNORE, 0, 0, 0), 0);
	assert_int_equal(in(0), 0);
	assert_int_equal(get_be32(d.in + 4), 0);
}

static void what_cannot_be_had_is_refused(void **state)
{
	const uint8_t short_list[16] = {0x5f, REGISTER, [8] = 20};
	uint8_t list[24] = {0};

	for (flags = 1; flags <= 8; flags <<= 3) /* APTPL; SPEC_I_PT without a list */
		assert_int_equal(out(A, REGISTER, 0, 0, 1),
				 SCSI_INVALID_FIELD_IN_PARAMETERS);
	flags = 0;
	assert_int_equal(disk_run(&d, 0, short_list, list, 24),
			 SCSI_PARAMETER_LIST_LENGTH);
	assert_int_equal(out(A, RESERVE, WRITE_EXCLUSIVE, 0, 0), CONFLICT);
	assert_int_equal(out(A, REGISTER, 0, 0, 1), 0);
	assert_int_equal(out(A, RESERVE, 2, 1, 0), SCSI_INVALID_FIELD_IN_CDB);
	assert_int_equal(out(A, RESERVE, 0x11, 1, 0), SCSI_INVALID_FIELD_IN_CDB);
	assert_int_equal(out(A, RESERVE, WRITE_EXCLUSIVE, 2, 0), CONFLICT);
	d.initiator = NULL;
	assert_int_equal(disk_run(&d, 0, (const uint8_t[16]){0x5f, 6, [8] = 24},
				  memset(list, 1, 16), 24),
			 SCSI_NO_REGISTRATION_RESOURCES);
}

/* What each type lets the holder, a registrant and a stranger do. */
static void each_type_excludes_whom_it_says(void **state)
{
	static const struct {
		uint8_t type;
		int registrant_reads, registrant_writes, reads, writes;
	} rows[] = {
		{1, 0, CONFLICT, 0, CONFLICT},
		{3, CONFLICT, CONFLICT, CONFLICT, CONFLICT},
		{5, 0, 0, 0, CONFLICT},
		{6, 0, 0, CONFLICT, CONFLICT},
		{7, 0, 0, 0, CONFLICT},
		{8, 0, 0, CONFLICT, CONFLICT},
	};
	static const uint8_t writers[] = {0x2a, 0x35, 0x41, 0x42},
			     readers[] = {0x28, 0x2f};
	static const uint8_t harmless[] = {0x00, 0x03, 0x12, 0x1a, 0x25, 0x5a, 0xa0};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		setup(state);
		out(A, REGISTER, 0, 0, key(A));
		out(B, REGISTER, 0, 0, key(B));
		assert_int_equal(out(A, RESERVE, rows[i].type, key(A), 0), 0);
		for (size_t k = 0; k < ARRAY_SIZE(writers); k++) {
			assert_int_equal(run(A, writers[k]), 0);
			assert_int_equal(run(B, writers[k]), rows[i].registrant_writes);
			assert_int_equal(run(C, writers[k]), rows[i].writes);
			assert_int_equal(run(-1, writers[k]), rows[i].writes);
		}
		for (size_t k = 0; k < ARRAY_SIZE(readers); k++) {
			assert_int_equal(run(A, readers[k]), 0);
			assert_int_equal(run(B, readers[k]), rows[i].registrant_reads);
			assert_int_equal(run(C, readers[k]), rows[i].reads);
		}
		for (size_t k = 0; k < ARRAY_SIZE(harmless); k++)
			assert_int_not_equal(run(C, harmless[k]), CONFLICT);
		assert_int_equal(in(1), 0);
		assert_int_equal(d.in[21], rows[i].type);
		assert_int_equal(get_be64(d.in + 8), rows[i].type < 7 ? key(A) : 0);
	}
}

static void only_the_holder_reserves_again_and_releases(void **state)
{
	register_all();
	assert_int_equal(out(A, RESERVE, WRITE_REGISTRANTS, key(A), 0), 0);
	assert_int_equal(out(A, RESERVE, WRITE_REGISTRANTS, key(A), 0), 0);
	assert_int_equal(out(A, RESERVE, EXCLUSIVE, key(A), 0), CONFLICT);
	assert_int_equal(out(B, RESERVE, WRITE_REGISTRANTS, key(B), 0), CONFLICT);
	assert_int_equal(out(B, RELEASE, WRITE_REGISTRANTS, key(B), 0), 0); /* nothing */
	assert_int_equal(in(1), 0);
	assert_int_equal(d.task.in_bytes, 24);
	assert_int_equal(out(A, RELEASE, EXCLUSIVE, key(A), 0), SCSI_INVALID_RELEASE);
	assert_int_equal(out(A, RELEASE, WRITE_REGISTRANTS, key(A), 0), 0);
	assert_int_equal(in(1), 0);
	assert_int_equal(d.task.in_bytes, 8);
	assert_int_equal(write_of(B), SCSI_RESERVATIONS_RELEASED);
	assert_int_equal(write_of(B), 0);
	assert_int_equal(write_of(A), 0);
}

static void a_reservation_ends_with_its_last_holder(void **state)
{
	register_all();
	assert_int_equal(out(A, RESERVE, EXCLUSIVE_ALL, key(A), 0), 0);
	assert_int_equal(out(A, REGISTER, 0, key(A), 0), 0);
	assert_int_equal(read_of(A), CONFLICT);
	assert_int_equal(out(B, REGISTER, 0, key(B), 0), 0);
	assert_int_equal(read_of(C), 0);
	assert_int_equal(out(C, REGISTER, 0, key(C), 0), 0);
	assert_int_equal(read_of(A), 0);
	register_all();
	assert_int_equal(out(A, RESERVE, EXCLUSIVE, key(A), 0), 0);
	assert_int_equal(out(A, REGISTER, 0, key(A), 0), 0);
	assert_int_equal(write_of(B), 0);
}

static void clearing_takes_all_away_and_tells_the_others(void **state)
{
	register_all();
	out(A, RESERVE, EXCLUSIVE, key(A), 0);
	assert_int_equal(out(B, CLEAR, 0, key(B), 0), 0);
	assert_int_equal(read_of(B), 0);
	assert_int_equal(read_of(A), SCSI_RESERVATIONS_PREEMPTED);
	assert_int_equal(read_of(C), SCSI_RESERVATIONS_PREEMPTED);
	assert_int_equal(read_of(C), 0);
	assert_int_equal(in(0), 0);
	assert_int_equal(d.task.in_bytes, 8);
}

static void preempting_the_holder_takes_over(void **state)
{
	register_all();
	out(A, RESERVE, WRITE_EXCLUSIVE, key(A), 0);
	assert_int_equal(out(B, PREEMPT, EXCLUSIVE, key(B), 0),
			 SCSI_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(out(B, PREEMPT, EXCLUSIVE, key(B), 99), CONFLICT);
	assert_int_equal(out(B, PREEMPT, 2, key(B), key(A)), SCSI_INVALID_FIELD_IN_CDB);
	assert_int_equal(out(B, PREEMPT, EXCLUSIVE, key(B), key(A)), 0);
	assert_int_equal(write_of(B), 0);
	assert_int_equal(write_of(A), SCSI_REGISTRATIONS_PREEMPTED);
	assert_int_equal(write_of(A), CONFLICT);
	assert_int_equal(write_of(C), SCSI_RESERVATIONS_RELEASED); /* another type */
	assert_int_equal(out(A, RESERVE, EXCLUSIVE, key(A), 0), CONFLICT);
	assert_int_equal(in(0), 0);
	assert_int_equal(d.task.in_bytes, 8 + 16);
}

static void preempting_others_ends_their_registrations(void **state)
{
	register_all();
	out(A, RESERVE, WRITE_REGISTRANTS, key(A), 0);
	assert_int_equal(out(B, PREEMPT, EXCLUSIVE, key(B), key(C)), 0);
	assert_int_equal(in(1), 0);
	assert_int_equal(d.in[21], WRITE_REGISTRANTS);
	assert_int_equal(write_of(B), 0);
	assert_int_equal(write_of(C), SCSI_REGISTRATIONS_PREEMPTED);
	assert_int_equal(write_of(C), CONFLICT);
}

static void a_reservation_of_all_is_preempted_by_no_key(void **state)
{
	register_all();
	out(A, RESERVE, WRITE_ALL, key(A), 0);
	assert_int_equal(out(C, PREEMPT, EXCLUSIVE, key(C), 0), 0);
	assert_int_equal(read_of(C), 0);
	assert_int_equal(read_of(A), SCSI_REGISTRATIONS_PREEMPTED);
	assert_int_equal(read_of(B), SCSI_REGISTRATIONS_PREEMPTED);
	assert_int_equal(read_of(B), CONFLICT);
}

static void preempt_and_abort_ends_what_came_before(void **state)
{
	register_all();
	d.order = 10;
	assert_int_equal(out(B, PREEMPT_ABORT, 0, key(B), key(A)), 0);
	d.order = 9; /* sent before, and its data came later */
	assert_int_equal(write_of(A), ABORTED);
	assert_int_equal(write_of(C), 0);
	d.order = 11;
	assert_int_equal(write_of(A), SCSI_REGISTRATIONS_PREEMPTED);
	assert_int_equal(out(A, REGISTER, 0, 0, key(A)), 0);
	d.order = 8;
	assert_int_equal(write_of(A), ABORTED);
	d.order = 12;
	assert_int_equal(write_of(A), 0);
}

static void the_full_status_names_every_host(void **state)
{
	flags = 4; /* ALL_TG_PT */
	assert_int_equal(out(A, REGISTER, 0, 0, key(A)), 0);
	flags = 0;
	assert_int_equal(out(B, REGISTER, 0, 0, key(B)), 0);
	assert_int_equal(out(B, RESERVE, EXCLUSIVE, key(B), 0), 0);
	assert_int_equal(in(3), 0);
	assert_int_equal(d.task.in_bytes, 8 + 2 * 48);
	assert_int_equal(d.in[8 + 12], 2);
	assert_memory_equal(d.in + 8 + 24, hosts[A], 24);
	assert_int_equal(get_be64(d.in + 8 + 48), key(B));
	assert_int_equal(d.in[8 + 48 + 12], 1);
	assert_int_equal(d.in[8 + 48 + 13], EXCLUSIVE);
	assert_memory_equal(d.in + 8 + 48 + 24, hosts[B], 24);
	assert_int_equal(in(2), 0);
	assert_int_equal(d.task.in_bytes, 8);
	assert_int_equal(get_be16(d.in + 4), 0xea01);
}

/* REGISTER by @host of itself and of @nr others, from @first on */
static int register_others(int host, uint8_t action, int first, int nr, size_t cut)
{
	const size_t bytes = 28 + 24 * (size_t)nr - cut;
	const uint8_t cdb[16] = {0x5f, action, [8] = (uint8_t)bytes};
	uint8_t list[128] = {[20] = 8 /* SPEC_I_PT */};

	put_be64(list + 8, key(host));
	put_be32(list + 24, 24 * (uint32_t)nr);
	for (int i = 0; i < nr; i++)
		memcpy(list + 28 + 24 * i, hosts[first + i], 24);
	d.initiator = hosts[host];
	return disk_run(&d, 0, cdb, list, bytes);
}

static void others_are_registered_with_a_host(void **state)
{
	assert_int_equal(register_others(A, REGISTER_IGNORE, B, 2, 0),
			 SCSI_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(register_others(A, REGISTER, B, 2, 1), SCSI_INVALID_FIELD_IN_PARAMETERS);
	hosts[C][0] = 5; /* a port of another protocol */
	assert_int_equal(register_others(A, REGISTER, B, 2, 0), SCSI_INVALID_FIELD_IN_PARAMETERS);
	hosts[C][0] = 4;
	in(0);
	assert_int_equal(get_be32(d.in + 4), 0); /* nobody was */
	assert_int_equal(register_others(A, REGISTER, B, 2, 0), 0);
	in(0);
	assert_int_equal(get_be32(d.in), 1);
	assert_int_equal(get_be32(d.in + 4), 24);
	assert_int_equal(out(C, RESERVE, EXCLUSIVE, key(A), 0), 0); /* by A's key */
	assert_int_equal(write_of(B), CONFLICT);
	assert_int_equal(register_others(A, REGISTER, B, 1, 0), SCSI_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(out(B, REGISTER, 0, key(A), 0), 0);
	in(2);
	assert_int_equal(d.in[2], 0x0c); /* SIP_C, ATP_C */
}

/* REGISTER AND MOVE by @host to @to, whose key becomes its own */
static int move(int host, uint64_t of, int to, uint64_t new_key, uint8_t unreg, uint8_t port)
{
	const uint8_t cdb[16] = {0x5f, 7, [8] = 48};
	uint8_t list[48] = {[17] = unreg, [19] = port, [23] = 24};

	put_be64(list, of);
	put_be64(list + 8, new_key);
	memcpy(list + 24, hosts[to], 24);
	d.initiator = hosts[host];
	return disk_run(&d, 0, cdb, list, sizeof(list));
}

static void a_reservation_moves(void **state)
{
	assert_int_equal(move(A, 0, B, 7, 0, 1), CONFLICT); /* A has no key */
	assert_int_equal(out(A, REGISTER, 0, 0, key(A)), 0);
	assert_int_equal(move(A, key(A), B, 7, 0, 1), SCSI_INVALID_FIELD_IN_CDB);
	assert_int_equal(out(A, RESERVE, EXCLUSIVE, key(A), 0), 0);
	assert_int_equal(move(A, 1, B, 7, 0, 1), CONFLICT);
	assert_int_equal(move(A, key(A), B, 0, 0, 1), SCSI_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(move(A, key(A), A, 7, 0, 1), SCSI_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(move(A, key(A), B, 7, 1 /* APTPL */, 1), SCSI_INVALID_FIELD_IN_PARAMETERS);
	assert_int_equal(move(A, key(A), B, 7, 0, 2), SCSI_INVALID_FIELD_IN_PARAMETERS);
	hosts[B][0] ^= 1; /* the TransportID of another protocol */
	assert_int_equal(move(A, key(A), B, 7, 0, 1), SCSI_INVALID_FIELD_IN_PARAMETERS);
	hosts[B][0] ^= 1;
	assert_int_equal(write_of(A), 0);
	assert_int_equal(move(A, key(A), B, 7, 0, 1), 0);
	assert_int_equal(write_of(A), CONFLICT);
	assert_int_equal(write_of(B), 0);
	assert_int_equal(move(A, key(A), C, 7, 0, 1), CONFLICT); /* not the holder any more */
	assert_int_equal(move(B, 7, C, 8, 2 /* UNREG */, 1), 0);
	in(1);
	assert_int_equal(get_be64(d.in + 8), 8);
	assert_int_equal(d.in[21], EXCLUSIVE);
	in(0);
	assert_int_equal(get_be32(d.in + 4), 16); /* A and C: B's registration ended */
	assert_int_equal(out(C, RELEASE, EXCLUSIVE, 8, 0), 0);
	assert_int_equal(out(A, RESERVE, WRITE_ALL, key(A), 0), 0);
	assert_int_equal(move(A, key(A), B, 7, 0, 1), CONFLICT); /* all hold it */
}

static void a_full_table_takes_the_places_of_those_who_left(void **state)
{
	for (int i = 0; i < SCSI_MAX_REGISTRANTS; i++) {
		hosts[A][22] = (uint8_t)(i + 1);
		assert_int_equal(out(A, REGISTER, 0, 0, 1), 0);
	}
	assert_int_equal(out(B, REGISTER, 0, 0, key(B)), SCSI_NO_REGISTRATION_RESOURCES);
	assert_int_equal(out(A, REGISTER, 0, 1, 0), 0);
	assert_int_equal(out(B, REGISTER, 0, 0, key(B)), 0);
	assert_int_equal(out(C, REGISTER, 0, 0, key(C)), SCSI_NO_REGISTRATION_RESOURCES);
	assert_int_equal(out(B, CLEAR, 0, key(B), 0), 0);
	assert_int_equal(out(C, REGISTER, 0, 0, key(C)), 0);
}

/* --- loss of power --- */

/* The unit has its power back: what it kept is all that it knows. */
static void lose_power(void)
{
	uint8_t kept[SCSI_SAVED_BYTES];
	size_t bytes = d.kept_bytes;

	memcpy(kept, d.kept, sizeof(kept));
	disk_init(&d);
	d.backend.keep = disk_keep;
	assert_int_equal(scsi_reservations_restore(&d.unit.reservations, kept, bytes), 0);
	memcpy(d.kept, kept, sizeof(kept));
	d.kept_bytes = bytes;
}

static uint16_t capabilities(void)
{
	assert_int_equal(in(2), 0);
	return get_be16(d.in + 2) & 0x0101; /* PTPL_C, PTPL_A */
}

static void what_a_host_wants_kept_outlasts_a_loss_of_power(void **state)
{
	assert_int_equal(capabilities(), 0);
	d.backend.keep = disk_keep;
	assert_int_equal(capabilities(), 0x100);
	register_all();
	flags = 1;
	assert_int_equal(out(B, REGISTER, 0, key(B), key(B)), 0);
	assert_int_equal(capabilities(), 0x101);
	assert_int_equal(out(B, RESERVE, EXCLUSIVE, key(B), 0), 0);
	lose_power();
	assert_int_equal(capabilities(), 0x101);
	assert_int_equal(read_of(B), 0);
	assert_int_equal(read_of(A), CONFLICT);
	assert_int_equal(in(0), 0);
	assert_int_equal(get_be32(d.in + 4), 8 * HOSTS);
	assert_int_equal(in(1), 0);
	assert_int_equal(get_be64(d.in + 8), key(B));
	assert_int_equal(out(C, PREEMPT, WRITE_EXCLUSIVE, key(C), key(B)), 0);
	lose_power();
	assert_int_equal(write_of(C), 0);
	assert_int_equal(write_of(B), CONFLICT);
	assert_int_equal(out(C, CLEAR, 0, key(C), 0), 0);
	lose_power();
	assert_int_equal(in(0), 0);
	assert_int_equal(get_be32(d.in + 4), 0);
}

static void the_last_registration_says_whether_they_are_kept(void **state)
{
	d.backend.keep = disk_keep;
	flags = 1;
	assert_int_equal(out(A, REGISTER, 0, 0, key(A)), 0);
	flags = 0;
	assert_int_equal(out(B, REGISTER, 0, 0, key(B)), 0);
	assert_int_equal(capabilities(), 0x100);
	lose_power();
	assert_int_equal(in(0), 0);
	assert_int_equal(get_be32(d.in + 4), 0);
}

static void what_cannot_be_kept_does_not_happen(void **state)
{
	d.backend.keep = disk_keep;
	flags = 1;
	assert_int_equal(out(A, REGISTER, 0, 0, key(A)), 0);
	d.err = -ENOSPC;
	assert_int_equal(out(A, RESERVE, EXCLUSIVE, key(A), 0), SCSI_TARGET_FAILURE);
	assert_int_equal(out(B, REGISTER, 0, 0, key(B)), SCSI_TARGET_FAILURE);
	d.err = 0;
	assert_int_equal(read_of(C), 0);
	assert_int_equal(in(0), 0);
	assert_int_equal(get_be32(d.in + 4), 8);
}

/* Each byte that counts, and each length, is looked at. */
static void other_bytes_are_no_reservations(void **state)
{
	struct scsi_reservations r = {.generation = 7};
	uint8_t bytes[SCSI_SAVED_BYTES];
	static const struct {
		size_t at;
		uint8_t value;
	} rows[] = {{0, 2}, {0, 65}, {1, 2}, {1, 0xff}, {2, 3}, {3, 1}, {4 + 32, 2}, {4 + 31, 0}};

	d.backend.keep = disk_keep;
	flags = 1;
	register_all();
	assert_int_equal(out(A, RESERVE, EXCLUSIVE, key(A), 0), 0);
	for (size_t n = 0; n <= SCSI_SAVED_BYTES; n++)
		assert_int_equal(!scsi_reservations_restore(&r, d.kept, n), n == d.kept_bytes);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		memcpy(bytes, d.kept, sizeof(bytes));
		bytes[rows[i].at] = rows[i].value;
		r = (struct scsi_reservations){.generation = 7};
		assert_int_equal(scsi_reservations_restore(&r, bytes, d.kept_bytes), -EINVAL);
		assert_int_equal(r.generation, 7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_host_registers_changes_and_ends_its_key, setup),
		cmocka_unit_test_setup(what_cannot_be_had_is_refused, setup),
		cmocka_unit_test_setup(each_type_excludes_whom_it_says, setup),
		cmocka_unit_test_setup(only_the_holder_reserves_again_and_releases,
				       setup),
		cmocka_unit_test_setup(a_reservation_ends_with_its_last_holder, setup),
		cmocka_unit_test_setup(clearing_takes_all_away_and_tells_the_others,
				       setup),
		cmocka_unit_test_setup(preempting_the_holder_takes_over, setup),
		cmocka_unit_test_setup(preempting_others_ends_their_registrations, setup),
		cmocka_unit_test_setup(a_reservation_of_all_is_preempted_by_no_key,
				       setup),
		cmocka_unit_test_setup(preempt_and_abort_ends_what_came_before, setup),
		cmocka_unit_test_setup(the_full_status_names_every_host, setup),
		cmocka_unit_test_setup(others_are_registered_with_a_host, setup),
		cmocka_unit_test_setup(a_reservation_moves, setup),
		cmocka_unit_test_setup(a_full_table_takes_the_places_of_those_who_left,
				       setup),
		cmocka_unit_test_setup(what_a_host_wants_kept_outlasts_a_loss_of_power, setup),
		cmocka_unit_test_setup(the_last_registration_says_whether_they_are_kept, setup),
		cmocka_unit_test_setup(what_cannot_be_kept_does_not_happen, setup),
		cmocka_unit_test_setup(other_bytes_are_no_reservations, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
