/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A target that sends anything: the answer to a login, messages on the channel while commands and
 * their aborts are under way, answers of device management, and what a disk says of itself. Only
 * commands that were sent complete, once; a disk that is accepted has a size that can be computed.
 */
#include <string.h>

#include "check.h"
#include "srp/disk.h"
#include "srp/initiator.h"
#include "srp/scan.h"

#define SLOTS 8

struct input {
	const uint8_t *at;
	size_t left;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t take(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

/* Bytes of the input in memory of their own size, so that reads beyond them are found. */
static uint8_t *take_bytes(struct input *in, size_t *n)
{
	uint8_t *bytes;

	*n = MIN(*n, in->left);
	bytes = malloc(*n + !*n);
	memcpy(bytes, in->at, *n);
	in->at += *n;
	in->left -= *n;
	return bytes;
}

/* --- the channel ---------------------------------------------------------------------- */

static void receive(struct srpi_channel *ch, struct input *in, uint32_t *sent)
{
	size_t n = 16 + take(in) % 64;
	uint8_t slot = take(in) % SLOTS, *iu = take_bytes(in, &n);
	uint64_t tag = slot & 1 ? ch->task[slot] : ch->command[slot];
	struct srpi_news news;

	if (n >= 16 && take(in) & 1) /* mostly about what is outstanding */
		for (unsigned int i = 0; i < 8; i++)
			iu[8 + i] = (uint8_t)(tag >> (56 - 8 * i));
	srpi_take(ch, iu, n, &news);
	if (news.event == SRPI_COMPLETED || (news.event == SRPI_TASK_DONE && news.ok)) {
		check(news.slot < SLOTS && *sent & 1u << news.slot);
		*sent &= ~(1u << news.slot);
	}
	check(news.answer_bytes <= sizeof(news.answer));
	if (news.sense)
		check(news.sense >= iu && news.sense_bytes <= n);
	free(iu);
}

static void talk(struct input *in)
{
	struct srpi_channel ch = {.limit = take(in),
				  .iu_bytes = 68 + take(in) % (SRPI_IU_BYTES - 67),
				  .indirect = true};
	const struct wire_srp_desc piece[16] = {{4096, 1, 512}};
	uint8_t table[sizeof(piece) / sizeof(piece[0]) * WIRE_SRP_DESC_BYTES];
	const uint8_t lun[8] = {0};
	uint8_t iu[SRPI_IU_BYTES];
	uint32_t sent = 0;

	while (in->left) {
		const uint8_t what = take(in), slot = what / 4 % SLOTS;
		const struct srpi_command command = {.out = what & 64,
						     .bytes = what,
						     .piece = piece,
						     .nr_pieces = 1 + what / 32,
						     .table = table};

		if (what % 4 == 0 && !(sent & 1u << slot) && srpi_channel_ready(&ch)) {
			check(srpi_command_build(&ch, slot, &command, iu) > 0);
			sent |= 1u << slot;
		} else if (what % 4 == 1) {
			srpi_task_build(&ch, slot, lun, WIRE_SRP_ABORT_TASK, iu);
		} else {
			receive(&ch, in, &sent);
		}
	}
}

/* --- the rest --------------------------------------------------------------------------- */

static void answer_login(struct input *in)
{
	size_t n = in->left;
	uint8_t *bytes = take_bytes(in, &n);
	struct srpi_terms terms;

	if (!srpi_login_take(bytes, n, &terms) && !terms.reject)
		check(terms.limit >= 2 && terms.ti_iu_bytes >= WIRE_SRP_RSP_BYTES);
	check(srpi_reject_text(terms.reject));
	free(bytes);
}

static void scan_port(struct input *in)
{
	struct srpi_scan scan = {0};
	struct srpi_target found[SRPI_FOUND_MOST];
	uint8_t question[WIRE_MAD_BYTES];
	unsigned int nr;
	bool more = true;

	while (more && in->left) {
		size_t n = WIRE_MAD_BYTES;
		uint8_t *mad = take_bytes(in, &n);

		srpi_scan_request(&scan, 1, question);
		more = srpi_scan_take(&scan, n == WIRE_MAD_BYTES ? mad : NULL, found, &nr);
		check(nr <= SRPI_FOUND_MOST);
		free(mad);
	}
}

static void probe_disk(struct input *in)
{
	struct srpi_disk disk = {0};
	uint8_t cdb[SRPI_CDB_BYTES], lun[8];
	int ret = 0, error;

	for (unsigned int step = 0; step < SRPI_PROBED && !ret; step++) {
		bool ok = take(in) & 7;
		size_t n = srpi_probe_command(step, cdb);
		uint8_t *data = take_bytes(in, &n);

		ret = srpi_probe_take(&disk, step, ok, data, (uint32_t)n);
		srpi_judge(take(in), data, (uint32_t)n, &error);
		srpi_lun_nth(data, (uint32_t)n, take(in), lun);
		free(data);
	}
	if (!ret)
		check(disk.blocks <= INT64_MAX / disk.block_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const parts[])(struct input *) = {talk, answer_login, scan_port, probe_disk};
	struct input in = {data, size};

	parts[take(&in) % ARRAY_SIZE(parts)](&in);
	return 0;
}
