/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What units a target has: REPORT LUNS, then the steps of each unit, one command at a time. */
#include <errno.h>
#include <string.h>

#include "ulp/srp/private.h"

static void next_step(struct srp_io *io);

static void finish(struct srp_io *io, const char *error)
{
	struct srp_session *s = io->session;

	srp_io_put(io);
	srp_session_ready(s, error);
}

/* Return: LUN s->probing of the list becomes the unit to ask; false: there are no more */
static bool next_unit(struct srp_io *io)
{
	struct srp_session *s = io->session;
	struct srp_unit *unit;
	u8 lun[8];

	if (!srpi_lun_nth(s->luns, s->luns_bytes, s->probing++, lun))
		return false;
	unit = rt_zalloc(sizeof(*unit));
	if (!unit)
		return false;
	unit->session = s;
	memcpy(unit->lun, lun, sizeof(lun));
	io->unit = unit;
	s->step = SRPI_INQUIRY;
	return true;
}

static void stepped(struct srp_io *io, int error)
{
	struct srp_session *s = io->session;
	u32 bytes = io->command.bytes - io->residual_bytes;

	if (error == ESHUTDOWN) {
		rt_free(io->unit);
		io->unit = NULL;
		list_add(&io->node, &s->free);
		return;
	}
	if (srpi_probe_take(&io->unit->disk, s->step, !error, io->piece[0], bytes)) {
		rt_free(io->unit); /* no disk: it is left out */
		io->unit = NULL;
	} else if (++s->step == SRPI_PROBED) {
		s->unit[s->nr_units++] = io->unit;
		io->unit = NULL;
	}
	next_step(io);
}

static void next_step(struct srp_io *io)
{
	if (!io->unit && !next_unit(io)) {
		finish(io, NULL);
		return;
	}
	memcpy(io->command.lun, io->unit->lun, sizeof(io->command.lun));
	srp_io_data(io, false, 0, srpi_probe_command(io->session->step, io->command.cdb));
	io->done = stepped;
	io->repeats = 0;
	srp_io_submit(io);
}

static void listed(struct srp_io *io, int error)
{
	struct srp_session *s = io->session;
	u32 bytes = io->command.bytes - io->residual_bytes;

	if (error == ESHUTDOWN) {
		list_add(&io->node, &s->free);
		return;
	}
	if (error) {
		finish(io, "the target does not list its units");
		return;
	}
	s->luns_bytes = bytes;
	memcpy(s->luns, io->piece[0], bytes);
	next_step(io);
}

void srp_probe_begin(struct srp_session *s)
{
	struct srp_io *io = srp_io_get(s, 0);

	memset(io->command.lun, 0, sizeof(io->command.lun));
	srp_io_data(io, false, 0, srpi_report_luns(io->command.cdb));
	s->luns = rt_zalloc(io->command.bytes);
	io->done = listed;
	if (s->luns)
		srp_io_submit(io);
	else
		finish(io, "out of memory");
}
