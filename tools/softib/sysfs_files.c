/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a node's /sys/class/infiniband, infiniband_mad, infiniband_verbs and infiniband_cm say,
 * in the kernel's words: Documentation/ABI/stable/sysfs-class-infiniband.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/ib_user_cm.h"
#include "abi/session.h"
#include "base/types.h"
#include "sysfs.h"

#define DEVICES_MAX 16

static void put_line(struct sysfs_sink *t, const char *path, const char *line, size_t bytes)
{
	if (!t->error)
		t->error = t->put(t, path, line, bytes);
}

/* the file @at/@name with one line */
__attribute__((format(printf, 4, 5)))
static void put(struct sysfs_sink *t, const char *at, const char *name, const char *fmt, ...)
{
	char path[SYSFS_PATH_MAX], line[256];
	va_list ap;
	int n;

	snprintf(path, sizeof(path), "%s/%s", at, name);
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	n = MIN(n, (int)sizeof(line) - 2);
	line[n++] = '\n';
	put_line(t, path, line, (size_t)n);
}

/* "0250:0001:0000:0100" */
static const char *guid_text(uint64_t guid, char text[20])
{
	snprintf(text, 20, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48),
		 (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
		 (unsigned)guid & 0xffff);
	return text;
}

static uint64_t hex_of(struct json_object *o, const char *key)
{
	return strtoull(text_of(o, key), NULL, 16);
}

/* --- what sysfs says of a port -------------------------------------------------- */

static int index_in(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			return i;
	return 0;
}

static void put_state(struct sysfs_sink *t, const char *at, struct json_object *port)
{
	static const char *const states[] = {"NOP", "Down", "Init", "Armed", "Active"};
	static const char *const shown[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE"};
	static const char *const phys[] = {"<unknown>",	    "Sleep",	"Polling",
					   "Disabled",	    "Training", "LinkUp",
					   "ErrorRecovery", "PhyTest"};
	int state = index_in(states, ARRAY_SIZE(states), text_of(port, "state"));
	int phys_state = index_in(phys, ARRAY_SIZE(phys), text_of(port, "phys_state"));

	put(t, at, "state", "%d: %s", state, shown[state]);
	put(t, at, "phys_state", "%d: %s", phys_state, phys[phys_state]);
}

/* "100 Gb/sec (4X EDR)": data rate of a lane in units of 100 Mb/s, as the
 * kernel rounds them */
static void put_rate(struct sysfs_sink *t, const char *at, struct json_object *port)
{
	static const struct {
		const char *speed;
		int rate;
	} rates[] = {{"SDR", 25},  {"DDR", 50},	 {"QDR", 100}, {"FDR10", 100},
		     {"FDR", 140}, {"EDR", 250}, {"HDR", 500}, {"NDR", 1000}};
	int lanes = atoi(text_of(port, "width")), rate = 25;
	const char *speed = text_of(port, "speed");

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		if (!strcmp(rates[i].speed, speed))
			rate = rates[i].rate;
	rate *= lanes;
	put(t, at, "rate", "%d%s Gb/sec (%dX %s)", rate / 10, rate % 10 ? ".5" : "",
	    lanes, speed);
}

/* an entry of the GID table: its halves as hexadecimal numbers */
static void put_gid(struct sysfs_sink *t, const char *at, size_t index, uint64_t prefix,
		    uint64_t interface, const char *type, const char *ndev)
{
	char name[32], high[20], low[20];

	snprintf(name, sizeof(name), "gids/%zu", index);
	put(t, at, name, "%s:%s", guid_text(prefix, high), guid_text(interface, low));
	snprintf(name, sizeof(name), "gid_attrs/types/%zu", index);
	put(t, at, name, "%s", type);
	if (!ndev)
		return;
	snprintf(name, sizeof(name), "gid_attrs/ndevs/%zu", index);
	put(t, at, name, "%s", ndev);
}

static void put_gids(struct sysfs_sink *t, const char *at, struct json_object *port)
{
	struct json_object *gids = member_of(port, "gids");

	if (!gids)
		put_gid(t, at, 0, hex_of(port, "gid_prefix"), hex_of(port, "guid"), "IB/RoCE v1",
			NULL);
	for (size_t i = 0; gids && i < count_of(gids); i++)
		put_gid(t, at, i, hex_of(item_of(gids, i), "prefix"),
			hex_of(item_of(gids, i), "interface"), text_of(item_of(gids, i), "type"),
			text_of(item_of(gids, i), "ndev"));
}

static void put_port(struct sysfs_sink *t, const char *device, struct json_object *port)
{
	struct json_object *pkeys = member_of(port, "pkeys");
	char at[128], name[32];

	snprintf(at, sizeof(at), "infiniband/%.*s/ports/%u", ABI_NAME_BYTES, device,
		 (unsigned)number_of(port, "port"));
	put(t, at, "lid", "0x%x", (unsigned)number_of(port, "lid"));
	put(t, at, "lid_mask_count", "%u", (unsigned)number_of(port, "lmc"));
	put(t, at, "sm_lid", "0x%x", (unsigned)number_of(port, "sm_lid"));
	put(t, at, "sm_sl", "%u", (unsigned)number_of(port, "sm_sl"));
	put(t, at, "cap_mask", "0x%08x", (unsigned)hex_of(port, "cap_mask"));
	put(t, at, "link_layer", "%s",
	    member_of(port, "link_layer") ? text_of(port, "link_layer") : "InfiniBand");
	put_state(t, at, port);
	put_rate(t, at, port);
	put_gids(t, at, port);
	for (size_t i = 0; pkeys && i < count_of(pkeys); i++) {
		snprintf(name, sizeof(name), "pkeys/%zu", i);
		put(t, at, name, "0x%04x",
		    json_object_get_int(item_of(pkeys, i)));
	}
}

/* --- counters -------------------------------------------------------------- */

/* The kernel's names, and ours in the answer to "counters". Data counts units of
 * four octets; hw_counters are those of the kernel's rxe that a fabric has. */
static const struct {
	const char *file, *key;
	unsigned unit;
} counters[] = {
	{"counters/port_xmit_data", "xmit_bytes", 4},
	{"counters/port_rcv_data", "rcv_bytes", 4},
	{"counters/port_xmit_packets", "xmit_packets", 1},
	{"counters/port_rcv_packets", "rcv_packets", 1},
	{"counters/unicast_xmit_packets", "unicast_xmit_packets", 1},
	{"counters/unicast_rcv_packets", "unicast_rcv_packets", 1},
	{"counters/multicast_xmit_packets", "multicast_xmit_packets", 1},
	{"counters/multicast_rcv_packets", "multicast_rcv_packets", 1},
	{"counters/port_xmit_wait", "xmit_wait", 1},
	{"counters/port_xmit_discards", "xmit_discards", 1},
	{"counters/symbol_error", "symbol_errors", 1},
	{"counters/link_error_recovery", "link_recovery", 1},
	{"counters/link_downed", "link_downed", 1},
	{"counters/port_rcv_errors", "rcv_errors", 1},
	{"counters/port_rcv_remote_physical_errors", "rcv_remote_physical_errors", 1},
	{"counters/port_rcv_switch_relay_errors", "rcv_switch_relay_errors", 1},
	{"counters/port_xmit_constraint_errors", "xmit_constraint_errors", 1},
	{"counters/port_rcv_constraint_errors", "rcv_constraint_errors", 1},
	{"counters/local_link_integrity_errors", "local_integrity_errors", 1},
	{"counters/excessive_buffer_overrun_errors", "buffer_overrun_errors", 1},
	{"counters/VL15_dropped", "vl15_dropped", 1},
	{"hw_counters/sent_pkts", "xmit_packets", 1},
	{"hw_counters/rcvd_pkts", "rcv_packets", 1},
	{"hw_counters/link_downed", "link_downed", 1},
	{"hw_counters/duplicate_request", "duplicate_request", 1},
	{"hw_counters/duplicate_response", "duplicate_response", 1},
	{"hw_counters/out_of_seq_request", "out_of_seq_request", 1},
	{"hw_counters/send_rnr_err", "send_rnr_err", 1},
	{"hw_counters/rcvd_rnr_err", "rcvd_rnr_err", 1},
	{"hw_counters/rcvd_seq_err", "rcvd_seq_err", 1},
	{"hw_counters/local_ack_timeout_err", "local_ack_timeout_err", 1},
	{"hw_counters/completer_retry_err", "completer_retry_err", 1},
	{"hw_counters/retry_exceeded_err", "retry_exceeded_err", 1},
	{"hw_counters/retry_rnr_exceeded_err", "retry_rnr_exceeded_err", 1},
};

static void put_counters(struct sysfs_sink *t, const char *device, struct json_object *row)
{
	char at[128];

	snprintf(at, sizeof(at), "infiniband/%.*s/ports/%u", ABI_NAME_BYTES, device,
		 (unsigned)number_of(row, "port"));
	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		put(t, at, counters[i].file, "%llu",
		    (unsigned long long)number_of(row, counters[i].key) / counters[i].unit);
}

/* --- what it says of an adapter --------------------------------------------------- */

static void put_class_devices(struct sysfs_sink *t, const struct abi_device_info *info)
{
	static const char *const kinds[] = {"umad", "issm"};
	char at[64];

	snprintf(at, sizeof(at), "infiniband_verbs/uverbs%u", info->index);
	put(t, at, "ibdev", "%s", info->name);
	put(t, at, "abi_version", "1");
	snprintf(at, sizeof(at), "infiniband_cm/ucm%u", info->index);
	put(t, at, "ibdev", "%s", info->name);
	for (unsigned p = 0; p < info->num_ports; p++) {
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
			snprintf(at, sizeof(at), "infiniband_mad/%s%u", kinds[k],
				 info->umad_base + p);
			put(t, at, "ibdev", "%s", info->name);
			put(t, at, "port", "%u", p + 1);
		}
	}
}

/* the adapter among @nodes that the node's programs call @device; NULL while it is unplugged */
static struct json_object *adapter_of(struct json_object *nodes, const char *device)
{
	for (size_t i = 0; i < count_of(nodes); i++)
		if (!strcmp(text_of(item_of(nodes, i), "device"), device))
			return item_of(nodes, i);
	return NULL;
}

static void put_device(struct sysfs_sink *t, const struct abi_device_info *info,
		       struct json_object *nodes, struct json_object *rows)
{
	struct json_object *node = adapter_of(nodes, info->name);
	struct json_object *ports = member_of(node, "ports");
	char at[96], guid[20];

	snprintf(at, sizeof(at), "infiniband/%.*s", ABI_NAME_BYTES, info->name);
	put(t, at, "node_type", "1: CA");
	put(t, at, "node_guid", "%s", guid_text(info->node_guid, guid));
	put(t, at, "sys_image_guid", "%s", guid_text(info->sys_image_guid, guid));
	put(t, at, "node_desc", "%s", info->node_desc);
	put(t, at, "fw_ver", "%s", info->fw_ver);
	put(t, at, "board_id", "%s", info->board_id);
	put(t, at, "hca_type", "softib");
	put(t, at, "hw_rev", "%x", info->hw_ver);
	for (size_t i = 0; i < count_of(ports); i++)
		put_port(t, info->name, item_of(ports, i));
	for (size_t i = 0; i < count_of(rows); i++)
		if (!strcmp(text_of(item_of(rows, i), "node"), text_of(node, "name")))
			put_counters(t, info->name, item_of(rows, i));
	put_class_devices(t, info);
}

/* --- what is written to it --------------------------------------------------------- */

/* infiniband/DEVICE/node_desc */
static bool is_description(const char *path)
{
	return !strncmp(path, "infiniband/", 11) && !strcmp(strrchr(path, '/'), "/node_desc");
}

bool sysfs_takes_orders(const char *path)
{
	return is_description(path) || sysfs_net_takes_orders(path);
}

mode_t sysfs_mode(const char *path)
{
	return is_description(path) ? 0644 : sysfs_net_mode(path);
}

/* rdma-ndd writes over the text and leaves what is behind: an end of the old text that is shorter than
 * what has changed is no part of the new one. In Linux each write() is the whole text. */
static void drop_rest(char *text, const char *before)
{
	size_t bytes = strlen(text), same = 0;

	if (strlen(before) != bytes)
		return;
	while (same < bytes && text[bytes - same - 1] == before[bytes - same - 1])
		same++;
	if (same < bytes - same)
		text[bytes - same] = '\0';
}

static void describe(const struct node_place *at, const char *path, char *text, const char *before)
{
	struct json_object *req = request("describe"), *answer;
	char device[ABI_NAME_BYTES];
	const char *name = strchr(path, '/') + 1;

	snprintf(device, sizeof(device), "%.*s", (int)strcspn(name, "/"), name);
	drop_rest(text, before);
	text[strcspn(text, "\n")] = '\0';
	request_text(req, "node", at->node);
	request_text(req, "device", device);
	request_text(req, "text", text);
	answer = client_call_quiet(at->dir, req);
	if (!answer || member_of(answer, "error"))
		log_note(at->dir, LOG_SOFTIBD, "%s: \"%.64s\" into /sys/class/%s: %s", at->node, text, path,
			 answer ? text_of(answer, "error") : "softibd does not answer");
	json_object_put(answer);
}

void sysfs_order(const struct node_place *at, const char *path, char *text, const char *before)
{
	if (is_description(path))
		describe(at, path, text, before);
	else
		sysfs_net_order(at, path, text);
}

/* one question to the socket "umad". Return: bytes of the answer's body in @body; -1 */
static ssize_t ask_umad(const struct node_place *at, const struct abi_open *open, void *body,
			size_t room)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct abi_reply reply;
	struct iovec parts[] = {{&reply, sizeof(reply)}, {body, room}};
	ssize_t n = -1;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/umad", at->dir) <
		    (int)sizeof(address.sun_path) &&
	    !connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
	    send(fd, open, sizeof(*open), MSG_NOSIGNAL) == sizeof(*open))
		n = readv(fd, parts, ARRAY_SIZE(parts));
	close(fd);
	return n < (ssize_t)sizeof(reply) || reply.error ? -1 : n - (ssize_t)sizeof(reply);
}

int node_devices(const struct node_place *at, struct abi_device_info *info, int max)
{
	struct abi_open open = {ABI_MAGIC, ABI_VERSION, ABI_OPEN_LIST, 0, "", ""};
	ssize_t n;

	snprintf(open.node, sizeof(open.node), "%s", at->node);
	n = ask_umad(at, &open, info, (size_t)max * sizeof(*info));
	return n < 0 ? 0 : (int)((size_t)n / sizeof(*info));
}

int node_issm(const struct node_place *at, const char *device, unsigned int port,
	      char path[PATH_MAX])
{
	struct abi_open open = {ABI_MAGIC, ABI_VERSION, ABI_OPEN_PORT, port, "", ""};
	struct abi_port_info info;

	snprintf(open.node, sizeof(open.node), "%s", at->node);
	snprintf(open.device, sizeof(open.device), "%.*s", ABI_NAME_BYTES - 1, device);
	if (ask_umad(at, &open, &info, sizeof(info)) != sizeof(info))
		return -ENODEV;
	info.issm[ABI_NAME_BYTES - 1] = '\0';
	return snprintf(path, PATH_MAX, "%s/%s", at->dir, info.issm) < PATH_MAX ? 0
										: -ENAMETOOLONG;
}

/* --- all of it -------------------------------------------------------------- */

static struct json_object *ask(const struct node_place *at, const char *op)
{
	struct json_object *req = request(op);

	request_host(req, at->node);
	json_object_object_add(req, "detail", json_object_new_boolean(1));
	return client_call_quiet(at->dir, req);
}

int sysfs_put_all(const struct node_place *at, struct sysfs_sink *sink)
{
	struct json_object *answer = ask(at, "topo"), *nodes = member_of(answer, "nodes");
	struct json_object *counted = ask(at, "counters");
	struct abi_device_info info[DEVICES_MAX];
	int count;

	sink->error = nodes && counted ? 0 : -EIO;
	count = sink->error ? 0 : node_devices(at, info, DEVICES_MAX);
	put(sink, "infiniband_verbs", "abi_version", "6");
	put(sink, "infiniband_mad", "abi_version", "5");
	put(sink, "infiniband_cm", "abi_version", "%d", IB_USER_CM_ABI_VERSION);
	for (int i = 0; i < count; i++)
		put_device(sink, &info[i], nodes, member_of(counted, "counters"));
	json_object_put(answer);
	json_object_put(counted);
	sysfs_net_put_all(at, sink);
	return sink->error;
}
