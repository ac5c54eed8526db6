/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How an initiator finds the SRP targets of a port (IBA v1 16.3, annex A1; SRP annex B.7):
 * it asks device management for the I/O unit, for the controller in each slot, and for
 * the services of each controller whose class is SRP's. Pure: requests and answers are bytes.
 */
#ifndef SOFTIB_SRP_SCAN_H
#define SOFTIB_SRP_SCAN_H

#include "wire/dm.h"

#define SRPI_FOUND_MOST 4 /* of one answer: ServiceEntries has four */

/** struct srpi_target - a target, as device management describes it */
struct srpi_target {
	uint64_t id_ext, ioc_guid; /* its port identifier */
	uint64_t service_id;
	uint32_t vendor_id;
	uint32_t slot; /* of its I/O controller; 1 is the first */
	char id_string[65]; /* printable ASCII */
};

/** struct srpi_scan - of one port; zero at first */
struct srpi_scan {
	unsigned int slot;	  /* that is asked about; 0: the I/O unit itself */
	unsigned int service;	  /* of its controller; the first of the next answer */
	unsigned int nr_services; /* 0: the controller's profile is asked for */
	struct wire_io_unit_info unit;
	struct srpi_target target; /* of the slot */
};

/** srpi_scan_request() - the next MAD. @tid: its transaction ID */
void srpi_scan_request(const struct srpi_scan *scan, uint64_t tid, uint8_t mad[WIRE_MAD_BYTES]);
/**
 * srpi_scan_take() - go on with the answer
 * @mad: WIRE_MAD_BYTES; NULL: there was none
 * @found: SRPI_FOUND_MOST; @nr: set to how many of them
 * Return: is there a next request?
 */
bool srpi_scan_take(struct srpi_scan *scan, const uint8_t *mad, struct srpi_target *found,
		    unsigned int *nr);

#endif
