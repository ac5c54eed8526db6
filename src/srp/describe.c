/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The attributes of device management, one function for each that can be read. */
#include "srp/describe.h"

#include <string.h>

#include "base/bytes.h"
#include "wire/pma.h"
#include "wire/srp.h"

#define RESP_TIME_ENC 18 /* 1 s */
#define LOCAL_BIT     (2ull << 56)
#define SLOT_BIT      58 /* up to 59: service ids begin with 0x1 */

/* bits of IOControllerProfile:ControllerOperationsCapabilityMask: SENDs in both
 * directions, RDMA READs and WRITEs from the controller */
enum { SEND_TO = 1 << 0, SEND_FROM = 1 << 1, READ_FROM = 1 << 3, WRITE_FROM = 1 << 5 };

uint64_t srp_controller_guid(uint64_t node_guid, unsigned int slot)
{
	return slot == 1 ? node_guid
			 : (node_guid | LOCAL_BIT) ^ (uint64_t)(slot - 1) << SLOT_BIT;
}

uint64_t srp_service_id(uint64_t guid)
{
	return guid | 1ull << 60;
}

void srp_service_name(uint64_t guid, char name[SRP_SERVICE_NAME_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	const size_t prefix = strlen(WIRE_SRP_SERVICE_NAME);

	memset(name, 0, SRP_SERVICE_NAME_BYTES);
	memcpy(name, WIRE_SRP_SERVICE_NAME, prefix);
	for (unsigned i = 0; i < 16; i++)
		name[prefix + i] = digits[guid >> (60 - 4 * i) & 0xf];
}

void srp_port_id(uint64_t guid, uint8_t id[16])
{
	put_be64(id, guid);
	put_be64(id + 8, guid);
}

void srp_transport_id(const uint8_t id[16], uint8_t to[24])
{
	memset(to, 0, 8);
	to[0] = 4; /* the protocol identifier of SRP */
	memcpy(to + 8, id, 16);
}

/* --- attributes: each returns the status
 * ------------------------------------------------ */

/* Return: the controller in @slot; NULL: there is none */
static const struct srp_description *find(const struct srp_io_unit *u, uint32_t slot)
{
	return slot && slot <= SRP_CONTROLLERS && u->controller[slot - 1].guid
		       ? &u->controller[slot - 1]
		       : NULL;
}

static uint16_t get_class_port_info(const struct srp_io_unit *u, uint32_t mod,
				    uint8_t *to)
{
	const struct wire_class_port_info info = {
		.base_version = 1,
		.class_version = WIRE_DM_CLASS_VERSION,
		.resp_time_enc = RESP_TIME_ENC,
	};

	wire_class_port_info_encode(&info, to);
	return WIRE_STATUS_OK;
}

static uint16_t get_io_unit_info(const struct srp_io_unit *u, uint32_t mod,
				 uint8_t *to)
{
	struct wire_io_unit_info info = {.change_id = u->change_id,
					 .max_controllers = SRP_CONTROLLERS};

	for (unsigned i = 0; i < SRP_CONTROLLERS; i++)
		info.controller[i] = u->controller[i].guid ? WIRE_DM_IOC : WIRE_DM_NO_IOC;
	wire_io_unit_info_encode(&info, to);
	return WIRE_STATUS_OK;
}

static uint16_t get_ioc_profile(const struct srp_io_unit *u, uint32_t slot,
				uint8_t *to)
{
	const struct srp_description *d = find(u, slot);
	struct wire_ioc_profile profile;

	if (!d)
		return WIRE_STATUS_BAD_FIELD;
	profile = (struct wire_ioc_profile){
		.guid = d->guid,
		.vendor_id = d->vendor_id,
		.device_id = d->device_id,
		.device_version = 1,
		.subsystem_vendor_id = d->vendor_id,
		.subsystem_id = d->device_id,
		.io_class = WIRE_SRP_IO_CLASS,
		.io_subclass = WIRE_SRP_IO_SUBCLASS,
		.protocol = WIRE_SRP_PROTOCOL,
		.protocol_version = WIRE_SRP_PROTOCOL_VERSION,
		.send_queue_depth = d->send_queue_depth,
		.rdma_read_depth = 4,
		.send_size_bytes = d->send_size_bytes,
		.rdma_size_bytes = d->rdma_size_bytes,
		.operations = SEND_TO | SEND_FROM | READ_FROM | WRITE_FROM,
		.nr_services = 1,
	};

	memcpy(profile.id_string, d->id_string,
	       strnlen(d->id_string, sizeof(d->id_string)));
	wire_ioc_profile_encode(&profile, to);
	return WIRE_STATUS_OK;
}

static uint16_t get_service_entries(const struct srp_io_unit *u, uint32_t mod,
				    uint8_t *to)
{
	const struct srp_description *d = find(u, mod >> 16);
	const uint32_t last = mod >> 8 & 0xff, first = mod & 0xff;
	struct wire_service_entries entries = {0};

	if (!d || first > last || first > 0)
		return WIRE_STATUS_BAD_FIELD;
	entries.id0 = srp_service_id(d->guid);
	srp_service_name(d->guid, (char *)entries.name0);
	wire_service_entries_encode(&entries, to);
	return WIRE_STATUS_OK;
}

/* There are no tests to wait for, and nothing to report. */
static uint16_t get_no_diagnostics(const struct srp_io_unit *u, uint32_t slot,
				   uint8_t *to)
{
	return slot && !find(u, slot) ? WIRE_STATUS_BAD_FIELD : WIRE_STATUS_OK;
}

static const struct {
	uint16_t attr;
	uint16_t (*get)(const struct srp_io_unit *u, uint32_t mod, uint8_t *to);
} attributes[] = {
	{WIRE_DM_CLASS_PORT_INFO, get_class_port_info},
	{WIRE_DM_IO_UNIT_INFO, get_io_unit_info},
	{WIRE_DM_IOC_PROFILE, get_ioc_profile},
	{WIRE_DM_SERVICE_ENTRIES, get_service_entries},
	{WIRE_DM_DIAGNOSTIC_TIMEOUT, get_no_diagnostics},
	{WIRE_DM_DIAG_CODE, get_no_diagnostics},
};

static uint16_t read_attribute(const struct srp_io_unit *unit,
			       const struct wire_mad *mad, uint8_t *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
		if (attributes[i].attr == mad->attr_id)
			return attributes[i].get(unit, mad->attr_mod, to);
	return WIRE_STATUS_BAD_METHOD_ATTR;
}

bool srp_describe(const struct srp_io_unit *unit, const uint8_t in[WIRE_MAD_BYTES],
		  uint8_t out[WIRE_MAD_BYTES])
{
	struct wire_gmp gmp;

	wire_gmp_decode(in, WIRE_MAD_BYTES, &gmp);
	if (gmp.mad.method != WIRE_METHOD_GET && gmp.mad.method != WIRE_METHOD_SET)
		return false;
	memset(out, 0, WIRE_MAD_BYTES);
	if (gmp.mad.class_version != WIRE_DM_CLASS_VERSION)
		gmp.mad.status = WIRE_STATUS_BAD_VERSION;
	else if (gmp.mad.method == WIRE_METHOD_SET) /* nothing can be set */
		gmp.mad.status = WIRE_STATUS_BAD_METHOD_ATTR;
	else
		gmp.mad.status = read_attribute(unit, &gmp.mad, out + WIRE_DM_DATA_OFFSET);
	gmp.mad.method = WIRE_METHOD_GET_RESP;
	wire_gmp_encode(&gmp, out);
	return true;
}
