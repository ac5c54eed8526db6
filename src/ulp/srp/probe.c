/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The probe of a target's logical units: REPORT LUNS, then several commands for each unit, one at a
 * time. A unit that has not changed is kept. A unit that is not listed any more, or has become
 * another disk, is removed, and its connections are closed. A new unit becomes an export.
 */
#include <errno.h>
#include <string.h>

#include "ulp/srp/private.h"

static void list_units(struct srp_session *s);
static void next_step(struct srp_session *s);

/* End the probe. @error: NULL; the reason why the units are not known */
static void finish(struct srp_session *s, const char *error)
{
	struct srp_probe *p = &s->probe;

	p->active = false;
	rt_free(p->unit);
	p->unit = NULL;
	if (p->again && s->recovery.state == SRPI_RUNNING) {
		p->again = false;
		list_units(s);
		return;
	}
	p->again = p->holding = false;
	if (!s->ready)
		srp_session_ready(s, error);
	srp_io_kick(s);
}

/* --- new and removed units --- */

static void end_unit(struct srp_session *s, unsigned int i)
{
	struct srp_unit *unit = s->unit[i];

	memmove(s->unit + i, s->unit + i + 1, (--s->nr_units - i) * sizeof(*s->unit));
	unit->gone = true;
	unit->requests++; /* a reference, so that @unit is valid until the end of this function */
	srp_connections_end(s, unit);
	srp_io_fail_waiting(s, unit, ESHUTDOWN);
	if (!--unit->requests)
		rt_free(unit);
}

/* Return: the index of the unit with @lun, or the index at which it has to be inserted. *@found:
 * does it exist? */
static unsigned int find_unit(const struct srp_session *s, const u8 lun[8], bool *found)
{
	unsigned int i = 0;
	int order = 1;

	while (i < s->nr_units && (order = memcmp(s->unit[i]->lun, lun, 8)) < 0)
		i++;
	*found = i < s->nr_units && !order;
	return i;
}

static bool is_listed(const struct srp_session *s, const u8 lun[8])
{
	u8 each[8];

	for (u32 i = 0; srpi_lun_nth(s->probe.luns, s->probe.luns_bytes, i, each); i++)
		if (!memcmp(each, lun, sizeof(each)))
			return true;
	return false;
}

static void end_those_not_listed(struct srp_session *s)
{
	for (unsigned int i = s->nr_units; i-- > 0;)
		if (!is_listed(s, s->unit[i]->lun))
			end_unit(s, i);
}

/* The properties of the unit are known: keep it, add it or remove it. @is_disk: it can be used */
static void settle(struct srp_session *s, bool is_disk)
{
	struct srp_unit *unit = s->probe.unit;
	bool found;
	unsigned int i = find_unit(s, unit->lun, &found);

	if (is_disk && found && srpi_is_same(&s->unit[i]->disk, &unit->disk))
		return;
	if (found)
		end_unit(s, i);
	if (!is_disk || s->nr_units == SRPI_MAX_UNITS)
		return;
	memmove(s->unit + i + 1, s->unit + i, (s->nr_units++ - i) * sizeof(*s->unit));
	s->unit[i] = unit;
	s->probe.unit = NULL;
}

/* --- steps --- */

/* Let the next LUN of the list be the unit to ask. Return: false: there are no more */
static bool next_unit(struct srp_session *s)
{
	struct srp_probe *p = &s->probe;
	struct srp_unit *unit;
	u8 lun[8];

	if (!srpi_lun_nth(p->luns, p->luns_bytes, p->next++, lun))
		return false;
	unit = rt_zalloc(sizeof(*unit));
	if (!unit)
		return false;
	unit->session = s;
	memcpy(unit->lun, lun, sizeof(lun));
	p->unit = unit;
	p->step = SRPI_INQUIRY;
	return true;
}

/* Did a command of the probe fail because the target cannot be reached? Then end the probe, since
 * its units are not known. */
static bool is_cut_off(struct srp_session *s, int error)
{
	if (error == ESHUTDOWN)
		return true;
	if (!error || s->recovery.state == SRPI_RUNNING)
		return false;
	finish(s, "the target cannot be reached any more");
	return true;
}

static void stepped(struct srp_io *io, int error)
{
	struct srp_session *s = io->session;
	struct srp_probe *p = &s->probe;
	u32 bytes = io->command.bytes - io->residual_bytes;
	bool is_disk;

	if (is_cut_off(s, error))
		return;
	is_disk = !srpi_probe_take(&p->unit->disk, p->step, !error, io->piece[0], bytes);
	if (!is_disk || ++p->step == SRPI_PROBED) {
		settle(s, is_disk);
		rt_free(p->unit);
		p->unit = NULL;
	}
	next_step(s);
}

static void submit(struct srp_session *s, const u8 lun[8], u32 bytes,
		   void (*done)(struct srp_io *io, int error))
{
	struct srp_io *io = s->probe.io;

	memcpy(io->command.lun, lun, sizeof(io->command.lun));
	srp_io_data(io, false, 0, bytes);
	io->done = done;
	io->repeats = 0;
	srp_io_submit(io);
}

static void next_step(struct srp_session *s)
{
	struct srp_probe *p = &s->probe;

	if (!p->unit && !next_unit(s)) {
		finish(s, NULL);
		return;
	}
	submit(s, p->unit->lun, srpi_probe_command(p->step, p->io->command.cdb), stepped);
}

static void listed(struct srp_io *io, int error)
{
	struct srp_session *s = io->session;
	struct srp_probe *p = &s->probe;

	if (is_cut_off(s, error))
		return;
	if (error) {
		finish(s, "the target does not list its units");
		return;
	}
	p->luns_bytes = io->command.bytes - io->residual_bytes;
	memcpy(p->luns, io->piece[0], p->luns_bytes);
	p->next = 0;
	end_those_not_listed(s);
	next_step(s);
}

static void list_units(struct srp_session *s)
{
	struct srp_probe *p = &s->probe;
	u32 bytes = srpi_report_luns(p->io->command.cdb);

	p->active = true;
	if (!p->luns)
		p->luns = rt_zalloc(bytes);
	if (p->luns)
		submit(s, (const u8[8]){0}, bytes, listed);
	else
		finish(s, "out of memory");
}

void srp_probe_begin(struct srp_session *s, bool hold)
{
	struct srp_probe *p = &s->probe;

	p->holding |= hold;
	if (!p->active) {
		list_units(s);
		return;
	}
	p->again = true;
	/* with @hold, all other commands wait: if the probe's command is still in the queue, it has
	 * to be first */
	if (hold && !p->io->channel) {
		list_del(&p->io->node);
		list_add(&p->io->node, &s->waiting);
	}
}
