/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * paths DLIDS N ROUNDS: how many path records a client asks for in a second, the median of
 * rounds of N queries by libibumad, from its port to the LIDs 1 to DLIDS in turn.
 *
 * Each query is a SubnAdmGet(PathRecord) of its own; WINDOW of them are under way at once, as
 * many as an SA takes without losing any. An answer that is late is asked for again by
 * softibd's MAD layer. Each path record is checked for its DLID, so an empty answer fails.
 */
#include <endian.h>
#include <infiniband/umad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "wire/sa.h"

#define ROUNDS_MAX 1000
#define WINDOW	   64
#define TRY_MS	   1000
#define RETRIES	   3
#define SA_QKEY	   0x80010000

static int port, agent;
static unsigned dlids;
static umad_port_t own;

static uint16_t dlid_of(unsigned n)
{
	return (uint16_t)(1 + n % dlids);
}

static void ask(unsigned n, void *umad)
{
	struct wire_sa hdr = {
		.mad = {.base_version = 1, .mgmt_class = WIRE_CLASS_SA,
			.class_version = WIRE_SA_CLASS_VERSION, .method = WIRE_METHOD_GET,
			.attr_id = WIRE_SA_PATH_RECORD, .tid = n},
		.comp_mask = WIRE_PR_SLID | WIRE_PR_DLID | WIRE_PR_NUMB_PATH,
	};
	struct wire_path_record want = {
		.slid = (uint16_t)own.base_lid, .dlid = dlid_of(n), .numb_path = 1};
	uint8_t *mad = umad_get_mad(umad);

	memset(umad, 0, umad_size() + WIRE_MAD_BYTES);
	measure_check(wire_sa_encode(&hdr, mad) > 0 &&
			      wire_fields_encode(&wire_path_record_codec, &want,
						 mad + WIRE_SA_DATA_OFFSET) > 0,
		      "encode");
	umad_set_addr(umad, (int)own.sm_lid, 1, (int)own.sm_sl, SA_QKEY);
	measure_check(!umad_send(port, agent, umad, WIRE_MAD_BYTES, TRY_MS, RETRIES), "umad_send");
}

static void take(void *umad)
{
	struct wire_path_record path;
	int bytes = WIRE_MAD_BYTES;
	struct wire_sa hdr;
	uint8_t *mad = umad_get_mad(umad);

	measure_check(umad_recv(port, umad, &bytes, -1) == agent && !umad_status(umad), "umad_recv");
	measure_check(wire_sa_decode(mad, WIRE_MAD_BYTES, &hdr) > 0 && !hdr.mad.status &&
			      wire_fields_decode(&wire_path_record_codec, mad + WIRE_SA_DATA_OFFSET,
						 WIRE_MAD_BYTES - WIRE_SA_DATA_OFFSET, &path) > 0 &&
			      path.dlid == dlid_of((uint32_t)hdr.mad.tid),
		      "answer");
}

/* Return: ns for @n queries */
static uint64_t ask_all(unsigned n, void *umad)
{
	uint64_t start = measure_now_ns();
	unsigned sent = 0;

	for (unsigned got = 0; got < n; got++) {
		while (sent < n && sent - got < WINDOW)
			ask(sent++, umad);
		take(umad);
	}
	return measure_now_ns() - start;
}

int main(int argc, char **argv)
{
	static double rate[ROUNDS_MAX];
	void *umad = umad_alloc(1, umad_size() + WIRE_MAD_BYTES);
	unsigned n = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
	int rounds = argc == 4 ? atoi(argv[3]) : 0;

	if (!n || !(dlids = (unsigned)atoi(argv[1])) || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: paths DLIDS N ROUNDS\n");
		return 2;
	}
	port = umad_open_port(NULL, 0);
	measure_check(port >= 0 && umad && !umad_get_port(NULL, 0, &own), "umad_open_port");
	agent = umad_register(port, WIRE_CLASS_SA, WIRE_SA_CLASS_VERSION, 0, NULL);
	measure_check(agent >= 0, "umad_register");
	ask_all(n, umad); /* the caches are warm */
	for (int i = 0; i < rounds; i++)
		rate[i] = n / (double)ask_all(n, umad) * 1e9;
	umad_release_port(&own);
	printf("paths %.1f k/s\n", measure_median(rate, (size_t)rounds) / 1000);
	return 0;
}
