/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An iSCSI target (RFC 7143) over TCP that has one disk of src/scsi in memory as LUN 0,
 *so that programs for iSCSI judge what the disk answers. It is for tests alone: on the
 * loopback interface, without authentication, digests, error recovery or discovery.
 * Standard output says its port; it ends with standard input.
 *
 *	iscsi_front [ro]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "scsi/scsi.h"

enum { BHS = 48, CONNECTIONS = 8, TASKS = 128, BURST = 1 << 18, DISK = 64 << 20 };
enum { FINAL = 0x80, READ = 0x40, OVERFLOW = 0x04, UNDERFLOW = 0x02, IMMEDIATE = 0x40 };
enum opcode {
	NOP_OUT,
	COMMAND,
	TASK,
	LOGIN,
	TEXT,
	DATA_OUT,
	LOGOUT,
	NOP_IN = 0x20,
	RESPONSE,
	TASK_DONE,
	LOGIN_DONE,
	TEXT_DONE,
	DATA_IN,
	LOGOUT_DONE,
	R2T = 0x31,
};

/** struct write - a command that waits for its data */
struct write {
	uint8_t bhs[BHS]; /* of the command */
	uint8_t *data;	  /* NULL: this place is free */
	uint32_t have, want;
	uint64_t order;
};

struct connection {
	int fd; /* -1: this place is free */
	uint32_t stat_sn, exp_cmd_sn,
		max_data; /* the longest data segment of the other end */
	uint8_t initiator[SCSI_TRANSPORT_ID_BYTES];
	struct scsi_nexus nexus;
	struct write write[TASKS];
};

static struct connection connections[CONNECTIONS];
static uint8_t medium[DISK], input[SCSI_MAX_TRANSFER_BYTES];
static uint64_t arrivals;

/* --- the disk --------------------------------------------------------------------- */

static int disk_read(void *ctx, uint64_t offset, void *to, size_t bytes)
{
	memcpy(to, medium + offset, bytes);
	return 0;
}

static int disk_write(void *ctx, uint64_t offset, const void *from, size_t bytes)
{
	memcpy(medium + offset, from, bytes);
	return 0;
}

static int disk_discard(void *ctx, uint64_t offset, uint64_t bytes)
{
	memset(medium + offset, 0, bytes);
	return 0;
}

static const struct scsi_backend backend = {
	.read = disk_read, .write = disk_write, .discard = disk_discard};
static struct scsi_unit unit = {.backend = &backend,
				.nr_blocks = DISK / 512,
				.block_bytes = 512,
				.id = 0x1234567};
static const struct scsi_target target = {.units = {&unit}};

/* --- bytes ------------------------------------------------------------------------ */

static bool transfer(int fd, void *at, size_t bytes, bool out)
{
	while (bytes) {
		ssize_t n = out ? send(fd, at, bytes, MSG_NOSIGNAL) : read(fd, at, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at = (uint8_t *)at + n;
		bytes -= (size_t)n;
	}
	return true;
}

static uint8_t *start(uint8_t bhs[BHS], enum opcode opcode, uint8_t flags,
		      const uint8_t *to)
{
	memset(bhs, 0, BHS);
	bhs[0] = (uint8_t)opcode;
	bhs[1] = flags;
	memcpy(bhs + 16, to + 16, 4); /* initiator task tag */
	return bhs;
}

static void send_pdu(struct connection *c, uint8_t bhs[BHS], const void *data,
		     uint32_t bytes, bool counts)
{
	static uint8_t zero[4];

	put_be24(bhs + 5, bytes);
	put_be32(bhs + 24, c->stat_sn);
	c->stat_sn += counts;
	put_be32(bhs + 28, c->exp_cmd_sn);
	put_be32(bhs + 32, c->exp_cmd_sn + TASKS - 1);
	transfer(c->fd, bhs, BHS, true);
	transfer(c->fd, (void *)(uintptr_t)data, bytes, true);
	transfer(c->fd, zero, -bytes & 3, true);
}

/* --- commands --------------------------------------------------------------------- */

static void set_residual(uint8_t *bhs, uint64_t needed, uint32_t expected)
{
	if (needed > expected)
		bhs[1] |= OVERFLOW;
	else if (needed < expected)
		bhs[1] |= UNDERFLOW;
	put_be32(bhs + 44,
		 (uint32_t)(needed > expected ? needed - expected : expected - needed));
}

static void send_data(struct connection *c, const uint8_t *command, uint32_t bytes)
{
	uint8_t bhs[BHS];
	uint32_t at = 0;

	for (uint32_t sn = 0; at < bytes; sn++) {
		uint32_t part = MIN(bytes - at, c->max_data);

		start(bhs, DATA_IN, at + part == bytes ? FINAL : 0, command);
		put_be32(bhs + 20, UINT32_MAX);
		put_be32(bhs + 36, sn);
		put_be32(bhs + 40, at);
		send_pdu(c, bhs, input + at, part, false);
		at += part;
	}
}

static void perform(struct connection *c, const uint8_t *command, const uint8_t *out,
		    uint32_t out_bytes, uint64_t order)
{
	const bool reads = command[1] & READ;
	const uint32_t expected = get_be32(command + 20);
	const int64_t takes = scsi_data_out_bytes(&unit, command + 32, 16);
	struct scsi_task t = {
		.cdb = command + 32,
		.cdb_bytes = 16,
		.out = out,
		.out_bytes = out_bytes,
		.in = input,
		.in_room = reads ? MIN(expected, sizeof(input)) : 0,
		.nexus = &c->nexus,
		.initiator = c->initiator,
		.order = order,
	};
	uint8_t bhs[BHS], sense[2 + SCSI_SENSE_BYTES];

	memcpy(t.lun, command + 8, sizeof(t.lun));
	scsi_execute(&target, &t);
	if (reads)
		send_data(c, command, (uint32_t)MIN(t.in_bytes, t.in_room));
	start(bhs, RESPONSE, FINAL, command);
	bhs[3] = (uint8_t)t.status;
	set_residual(bhs, takes > 0 ? (uint64_t)takes : t.in_bytes, expected);
	put_be16(sense, SCSI_SENSE_BYTES);
	memcpy(sense + 2, t.sense, SCSI_SENSE_BYTES);
	send_pdu(c, bhs, sense, t.sense_bytes ? sizeof(sense) : 0, true);
}

static void end_write(struct write *w)
{
	free(w->data);
	w->data = NULL;
}

/* Ask for the next part of the data, or perform the command that has all of it. */
static void continue_write(struct connection *c, struct write *w)
{
	uint8_t bhs[BHS];

	if (w->have == w->want) {
		perform(c, w->bhs, w->data, w->have, w->order);
		end_write(w);
		return;
	}
	start(bhs, R2T, FINAL, w->bhs);
	put_be32(bhs + 20, (uint32_t)(w - c->write));
	put_be32(bhs + 36, w->have / BURST);
	put_be32(bhs + 40, w->have);
	put_be32(bhs + 44, MIN(w->want - w->have, (uint32_t)BURST));
	send_pdu(c, bhs, NULL, 0, false);
}

static bool on_command(struct connection *c, const uint8_t *bhs, const uint8_t *data,
		       uint32_t bytes)
{
	uint32_t want = bhs[1] & READ ? 0 : get_be32(bhs + 20);

	arrivals++;
	if (want <= bytes ||
	    want > SCSI_MAX_TRANSFER_BYTES) { /* which the disk refuses */
		perform(c, bhs, data, MIN(want, bytes), arrivals);
		return true;
	}
	for (struct write *w = c->write; w < c->write + TASKS; w++) {
		if (w->data)
			continue;
		*w = (struct write){.have = bytes,
				    .want = want,
				    .order = arrivals,
				    .data = malloc(want)};
		memcpy(w->bhs, bhs, BHS);
		if (bytes)
			memcpy(w->data, data, bytes);
		continue_write(c, w);
		return true;
	}
	return false;
}

static bool on_data(struct connection *c, const uint8_t *bhs, const uint8_t *data,
		    uint32_t bytes)
{
	uint32_t tag = get_be32(bhs + 20);
	struct write *w = tag < TASKS ? &c->write[tag] : NULL;

	if (!w || !w->data || get_be32(bhs + 40) != w->have || bytes > w->want - w->have)
		return false;
	if (bytes)
		memcpy(w->data + w->have, data, bytes);
	w->have += bytes;
	if (bhs[1] & FINAL)
		continue_write(c, w);
	return true;
}

/* --- everything else -------------------------------------------------------------- */

/* Functions that abort end what waits for its data; those that reset tell everybody. */
static bool on_task(struct connection *c, const uint8_t *bhs)
{
	const uint8_t function = bhs[1] & 0x7f;
	uint8_t answer[BHS];

	for (struct connection *each = connections; each < connections + CONNECTIONS;
	     each++) {
		if (function >= 5)
			each->nexus.attention = SCSI_UNIT_RESET;
		for (struct write *w = each->write; w < each->write + TASKS; w++)
			if (function >= 5 ||
			    (each == c &&
			     (function != 1 || !memcmp(w->bhs + 16, bhs + 20, 4))))
				end_write(w);
	}
	send_pdu(c, start(answer, TASK_DONE, FINAL, bhs), NULL, 0, true);
	return true;
}

static const char *const answers[][2] = {
	{"AuthMethod", "None"},
	{"HeaderDigest", "None"},
	{"DataDigest", "None"},
	{"InitialR2T", "Yes"},
	{"ImmediateData", "Yes"},
	{"MaxBurstLength", "262144"},
	{"FirstBurstLength", "65536"},
	{"MaxOutstandingR2T", "1"},
	{"MaxConnections", "1"},
	{"DataPDUInOrder", "Yes"},
	{"DataSequenceInOrder", "Yes"},
	{"DefaultTime2Wait", "2"},
	{"DefaultTime2Retain", "0"},
	{"ErrorRecoveryLevel", "0"},
	{"IFMarker", "No"},
	{"OFMarker", "No"},
};

/* What @key of a login is answered with. Return: bytes, behind @to */
static size_t answer_key(struct connection *c, const char *key, char *to, size_t room)
{
	const char *value = strchr(key, '=');
	size_t name = value ? (size_t)(value - key) : 0, tail;

	if (!value++)
		return 0;
	tail = strlen(value);
	if (!strncmp(key, "InitiatorName", name)) { /* names differ in their ends */
		c->initiator[0] = 5;
		tail = tail > 20 ? tail - 20 : 0;
		memcpy(c->initiator + 4, value + tail, MIN(strlen(value + tail), 20ul));
	}
	if (!strncmp(key, "MaxRecvDataSegmentLength", name))
		c->max_data = (uint32_t)MAX(strtoul(value, NULL, 10), 512ul);
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
		if (name == strlen(answers[i][0]) && !strncmp(key, answers[i][0], name))
			return (size_t)snprintf(to, room, "%s=%s", answers[i][0],
						answers[i][1]) +
			       1;
	return 0;
}

static bool on_login(struct connection *c, const uint8_t *bhs, const uint8_t *data,
		     uint32_t bytes)
{
	char text[1024] = "TargetPortalGroupTag=1\0MaxRecvDataSegmentLength=262144";
	size_t used = strlen(text) + 1;
	uint8_t answer[BHS];

	used += strlen(text + used) + 1;
	for (uint32_t at = 0; at < bytes;
	     at += (uint32_t)strlen((const char *)data + at) + 1)
		used += answer_key(c, (const char *)data + at, text + used,
				   sizeof(text) - used);
	c->exp_cmd_sn = get_be32(bhs + 24);
	start(answer, LOGIN_DONE, bhs[1], bhs);
	memcpy(answer + 8, bhs + 8, 6); /* ISID */
	put_be16(answer + 14, (uint16_t)(c - connections + 1));
	send_pdu(c, answer, text, (uint32_t)used, true);
	return true;
}

static bool on_nop(struct connection *c, const uint8_t *bhs, const uint8_t *data,
		   uint32_t bytes)
{
	uint8_t answer[BHS];

	if (get_be32(bhs + 16) == UINT32_MAX)
		return true;
	start(answer, NOP_IN, FINAL, bhs);
	put_be32(answer + 20, UINT32_MAX);
	send_pdu(c, answer, data, bytes, true);
	return true;
}

static bool on_logout(struct connection *c, const uint8_t *bhs)
{
	uint8_t answer[BHS];

	send_pdu(c, start(answer, LOGOUT_DONE, FINAL, bhs), NULL, 0, true);
	return false;
}

/* --- connections ------------------------------------------------------------------ */

static bool dispatch(struct connection *c, const uint8_t *bhs, const uint8_t *data,
		     uint32_t bytes)
{
	const uint8_t opcode = bhs[0] & 0x3f;

	if (!(bhs[0] & IMMEDIATE) && opcode != DATA_OUT)
		c->exp_cmd_sn++;
	switch (opcode) {
	case NOP_OUT:
		return on_nop(c, bhs, data, bytes);
	case COMMAND:
		return on_command(c, bhs, data, bytes);
	case TASK:
		return on_task(c, bhs);
	case LOGIN:
		return on_login(c, bhs, data, bytes);
	case DATA_OUT:
		return on_data(c, bhs, data, bytes);
	case LOGOUT:
		return on_logout(c, bhs);
	default:
		return false;
	}
}

/* Return: false: the connection is over */
static bool receive(struct connection *c)
{
	static uint8_t data[BURST + 4 + 1];
	uint8_t bhs[BHS];
	uint32_t bytes;

	if (!transfer(c->fd, bhs, BHS, false))
		return false;
	bytes = get_be24(bhs + 5);
	if (bhs[4] || bytes > BURST || !transfer(c->fd, data, (bytes + 3) & ~3u, false))
		return false;
	data[bytes] = 0;
	return dispatch(c, bhs, data, bytes);
}

static void hang_up(struct connection *c)
{
	for (struct write *w = c->write; w < c->write + TASKS; w++)
		end_write(w);
	close(c->fd);
	c->fd = -1;
}

static void take(int fd)
{
	const int yes = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	for (struct connection *c = connections; c < connections + CONNECTIONS; c++)
		if (c->fd < 0) {
			memset(c, 0, sizeof(*c));
			c->fd = fd;
			c->max_data = 8192;
			c->nexus.attention = SCSI_POWER_ON;
			return;
		}
	close(fd);
}

static int listen_at_loopback(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) || listen(fd, CONNECTIONS) ||
	    getsockname(fd, (struct sockaddr *)&at, &len)) {
		perror("iscsi_front");
		exit(1);
	}
	printf("%u\n", ntohs(at.sin_port));
	fflush(stdout);
	return fd;
}

int main(int argc, char **argv)
{
	struct pollfd fds[2 + CONNECTIONS] = {{.fd = 0, .events = POLLIN}};

	unit.read_only = argc > 1;
	for (int i = 0; i < CONNECTIONS; i++)
		connections[i].fd = -1;
	fds[1] = (struct pollfd){.fd = listen_at_loopback(), .events = POLLIN};
	while (!fds[0].revents) {
		for (int i = 0; i < CONNECTIONS; i++)
			fds[2 + i] = (struct pollfd){.fd = connections[i].fd,
						     .events = POLLIN};
		if (poll(fds, ARRAY_SIZE(fds), -1) < 0)
			break;
		for (int i = 0; i < CONNECTIONS; i++)
			if (fds[2 + i].revents && !receive(&connections[i]))
				hang_up(&connections[i]);
		if (fds[1].revents)
			take(accept(fds[1].fd, NULL, NULL));
	}
	return 0;
}
