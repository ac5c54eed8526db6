/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Questions to device management about the targets of a port. */
#include <string.h>

#include "srp/scan.h"
#include "wire/pma.h"
#include "wire/srp.h"

#define ENTRIES	      4	     /* of one ServiceEntries */
#define OLD_IO_CLASS  0xff00 /* of revision 10, which some targets still have */
#define ID_EXT_DIGITS 16

void srpi_scan_request(const struct srpi_scan *scan, uint64_t tid, uint8_t mad[WIRE_MAD_BYTES])
{
	const unsigned int last = MIN(scan->service + ENTRIES, scan->nr_services) - 1;
	struct wire_gmp gmp = {.mad = {.base_version = 1,
				       .mgmt_class = WIRE_CLASS_DM,
				       .class_version = WIRE_DM_CLASS_VERSION,
				       .method = WIRE_METHOD_GET,
				       .tid = tid,
				       .attr_id = WIRE_DM_IO_UNIT_INFO}};

	if (scan->nr_services) {
		gmp.mad.attr_id = WIRE_DM_SERVICE_ENTRIES;
		gmp.mad.attr_mod = scan->slot << 16 | last << 8 | scan->service;
	} else if (scan->slot) {
		gmp.mad.attr_id = WIRE_DM_IOC_PROFILE;
		gmp.mad.attr_mod = scan->slot;
	}
	memset(mad, 0, WIRE_MAD_BYTES);
	wire_gmp_encode(&gmp, mad);
}

/* Let the scan stand at the first slot behind @slot with a controller. Return: is there one? */
static bool next_slot(struct srpi_scan *scan)
{
	scan->nr_services = scan->service = 0;
	while (++scan->slot <= scan->unit.max_controllers)
		if (scan->unit.controller[scan->slot - 1] == WIRE_DM_IOC)
			return true;
	return false;
}

static bool is_printable(uint8_t c)
{
	return c >= ' ' && c < 0x7f;
}

/* Return: has the controller services that may be targets? */
static bool take_profile(struct srpi_scan *scan, const uint8_t *data)
{
	struct wire_ioc_profile profile;
	char *to = scan->target.id_string;

	if (wire_ioc_profile_decode(data, WIRE_DM_DATA_BYTES, &profile) < 0 ||
	    (profile.io_class != WIRE_SRP_IO_CLASS && profile.io_class != OLD_IO_CLASS) ||
	    profile.io_subclass != WIRE_SRP_IO_SUBCLASS || profile.protocol != WIRE_SRP_PROTOCOL)
		return false;
	scan->target = (struct srpi_target){.ioc_guid = profile.guid,
					    .vendor_id = profile.vendor_id,
					    .slot = scan->slot};
	for (size_t i = 0; i < sizeof(profile.id_string) && profile.id_string[i]; i++)
		to[i] = is_printable(profile.id_string[i]) ? (char)profile.id_string[i] : '?';
	scan->nr_services = profile.nr_services;
	return scan->nr_services > 0;
}

/* Return: the value of a hexadecimal digit; -1: it is none */
static int digit_of(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Is @name that of an SRP service? Then *@id_ext is what follows it. */
static bool names_target(const uint8_t name[40], uint64_t *id_ext)
{
	const size_t prefix = strlen(WIRE_SRP_SERVICE_NAME);

	if (memcmp(name, WIRE_SRP_SERVICE_NAME, prefix) != 0)
		return false;
	*id_ext = 0;
	for (size_t i = prefix; i < prefix + ID_EXT_DIGITS; i++) {
		if (digit_of(name[i]) < 0)
			return false;
		*id_ext = *id_ext << 4 | (uint64_t)digit_of(name[i]);
	}
	return true;
}

static unsigned int take_services(struct srpi_scan *scan, const uint8_t *data,
				  struct srpi_target *found)
{
	struct wire_service_entries e;
	unsigned int nr = 0;

	if (wire_service_entries_decode(data, WIRE_DM_DATA_BYTES, &e) < 0)
		return 0;
	const struct {
		const uint8_t *name;
		uint64_t id;
	} entries[ENTRIES] = {{e.name0, e.id0}, {e.name1, e.id1}, {e.name2, e.id2}, {e.name3, e.id3}};

	for (unsigned int i = 0; i < ENTRIES && scan->service + i < scan->nr_services; i++) {
		found[nr] = scan->target;
		found[nr].service_id = entries[i].id;
		nr += names_target(entries[i].name, &found[nr].id_ext);
	}
	return nr;
}

bool srpi_scan_take(struct srpi_scan *scan, const uint8_t *mad, struct srpi_target *found,
		    unsigned int *nr)
{
	const uint8_t *data = mad ? mad + WIRE_DM_DATA_OFFSET : NULL;
	struct wire_mad header;
	bool good = mad && wire_mad_decode(mad, WIRE_MAD_BYTES, &header) > 0 && !header.status;

	*nr = 0;
	if (!scan->slot) {
		if (!good || wire_io_unit_info_decode(data, WIRE_DM_DATA_BYTES, &scan->unit) < 0)
			return false;
		return next_slot(scan);
	}
	if (!scan->nr_services)
		return (good && take_profile(scan, data)) || next_slot(scan);
	if (good)
		*nr = take_services(scan, data, found);
	scan->service += ENTRIES;
	return (good && scan->service < scan->nr_services) || next_slot(scan);
}
