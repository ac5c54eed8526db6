/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The files that /sys/class/net/ib0 has of IPoIB's own: Documentation/ABI/testing/
 * sysfs-class-net and Documentation/infiniband/ipoib.rst of Linux.
 *
 * The kernel's folder of a TUN device has none of them and takes none. So a folder of the fabric's,
 * sys/NODE/net/ib0, is laid over it in the node's mount namespace. The kernel's is bound into it as
 * KERNEL, and each of its entries that is not replaced is a symbolic link to there, so that it
 * stays what it is, also for writing.
 *
 * What is written into a file is seen once the writer has closed it (sysfs_live.c), so the writer
 * hears of no error: what is not accepted goes into softibd's log.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/types.h"
#include "netdev.h"
#include "sysfs.h"
#include "wire/packet.h"

#define DEVICES "/sys/devices/virtual/net"
#define KERNEL	".kernel"
#define FOLDER	"net"

/** struct row - a file of an interface
 *  @orders: it takes what is written to it
 *  @of_parent: only the interface of the default partition has it; of_child: only others */
static const struct row {
	const char *name;
	mode_t mode;
	bool live, orders, of_parent, of_child;
} rows[] = {
	{"mode", 0644, .live = true, .orders = true},
	{"create_child", 0200, .live = true, .orders = true, .of_parent = true},
	{"delete_child", 0200, .live = true, .orders = true, .of_parent = true},
	{"address", 0444, .live = true},
	{"pkey", 0444},
	{"parent", 0444, .of_child = true},
	{"umcast", 0444},
	{"broadcast", 0444},
	{"addr_len", 0444},
	{"dev_id", 0444},
	{"dev_port", 0444},
};

static const struct row *find_row(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(name, rows[i].name))
			return &rows[i];
	return NULL;
}

/* Return: the row of net/INTERFACE/NAME; NULL: @path is something else */
static const struct row *row_of(const char *path)
{
	return strncmp(path, FOLDER "/", sizeof(FOLDER)) ? NULL :
							   find_row(strrchr(path, '/') + 1);
}

bool sysfs_net_is_live(const char *path)
{
	const struct row *row = row_of(path);

	return row && row->live;
}

bool sysfs_net_takes_orders(const char *path)
{
	const struct row *row = row_of(path);

	return row && row->orders;
}

mode_t sysfs_net_mode(const char *path)
{
	const struct row *row = row_of(path);

	return row ? row->mode : 0444;
}

/* --- the interfaces of a node ------------------------------------------------ */

/** struct interface - one of them, and what softibd says of it */
struct interface {
	char name[32];
	const char *adapter, *parent;
	unsigned port, pkey;
	struct json_object *state;
};

static struct json_object *ask_state(const struct node_place *at, const struct interface *i)
{
	struct json_object *req = request("ipoib"), *answer;

	request_text(req, "node", i->adapter);
	request_number(req, "port", i->port);
	request_number(req, "pkey", i->pkey);
	answer = client_call_quiet(at->dir, req);
	if (answer && member_of(answer, "error")) {
		json_object_put(answer);
		return NULL;
	}
	return answer;
}

typedef void interface_fn(void *ctx, const struct node_place *at, const struct interface *i);

/* of port @each->port: the first one, which names the others */
static void visit_port(const struct node_place *at, struct interface *each, interface_fn *fn,
		       void *ctx)
{
	struct json_object *first, *pkeys;

	each->pkey = WIRE_PKEY_DEFAULT;
	node_child_name(each->name, each->parent, each->pkey);
	first = each->state = ask_state(at, each);
	if (!first)
		return;
	fn(ctx, at, each);
	pkeys = member_of(first, "pkeys");
	for (size_t i = 0; i < count_of(pkeys); i++) {
		each->pkey = (unsigned)json_object_get_int64(item_of(pkeys, i));
		node_child_name(each->name, each->parent, each->pkey);
		each->state = each->pkey == WIRE_PKEY_DEFAULT ? NULL : ask_state(at, each);
		if (each->state)
			fn(ctx, at, each);
		json_object_put(each->state);
	}
	json_object_put(first);
}

static void visit_all(const struct node_place *at, interface_fn *fn, void *ctx)
{
	struct json_object *req = request("nodes"), *answer, *list;

	request_host(req, at->node);
	answer = client_call_quiet(at->dir, req);
	list = member_of(item_of(member_of(answer, "nodes"), 0), "addresses");
	for (size_t i = 0; i < count_of(list); i++) {
		struct interface each = {.adapter = text_of(item_of(list, i), "adapter"),
					 .parent = text_of(item_of(list, i), "interface"),
					 .port = (unsigned)number_of(item_of(list, i), "port")};

		visit_port(at, &each, fn, ctx);
	}
	json_object_put(answer);
}

/* --- what the files say ---------------------------------------------------------- */

/* RFC 4391 section 4: the link address of the broadcast group */
static void print_broadcast(char *line, size_t room, unsigned pkey)
{
	snprintf(line, room, "00:ff:ff:ff:ff:12:40:1b:%02x:%02x:00:00:00:00:00:00:ff:ff:ff:ff",
		 pkey >> 8, pkey & 0xff);
}

static void print_line(const struct interface *i, const char *name, char *line, size_t room)
{
	*line = '\0';
	if (!strcmp(name, "mode"))
		snprintf(line, room, "%s", text_of(i->state, "mode"));
	else if (!strcmp(name, "address"))
		snprintf(line, room, "%s", text_of(i->state, "link"));
	else if (!strcmp(name, "pkey"))
		snprintf(line, room, "0x%04x", i->pkey);
	else if (!strcmp(name, "parent"))
		snprintf(line, room, "%s", i->parent);
	else if (!strcmp(name, "umcast"))
		snprintf(line, room, "0"); /* the groups that programs join are their own */
	else if (!strcmp(name, "broadcast"))
		print_broadcast(line, room, i->pkey);
	else if (!strcmp(name, "addr_len"))
		snprintf(line, room, "20");
	else if (!strcmp(name, "dev_id"))
		snprintf(line, room, "0x%x", i->port - 1);
	else if (!strcmp(name, "dev_port"))
		snprintf(line, room, "%u", i->port - 1);
}

static bool has(const struct interface *i, const struct row *row)
{
	return i->pkey == WIRE_PKEY_DEFAULT ? !row->of_child : !row->of_parent;
}

static void put_interface(void *ctx, const struct node_place *at, const struct interface *i)
{
	struct sysfs_sink *sink = ctx;
	char path[SYSFS_PATH_MAX], line[SYSFS_PATH_MAX];

	for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
		if (sink->error || !has(i, &rows[r]))
			continue;
		snprintf(path, sizeof(path), FOLDER "/%s/%s", i->name, rows[r].name);
		print_line(i, rows[r].name, line, sizeof(line) - 1);
		if (*line)
			strcat(line, "\n");
		sink->error = sink->put(sink, path, line, strlen(line));
	}
}

static int folder_of(const struct node_place *at, const char *interface, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s/sys/%s/" FOLDER "%s%s", at->dir, at->node,
			*interface ? "/" : "", interface) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

void sysfs_net_put_all(const struct node_place *at, struct sysfs_sink *sink)
{
	char path[PATH_MAX];

	if (!sink->error && !folder_of(at, "", path) && !access(path, F_OK))
		visit_all(at, put_interface, sink);
}

/* --- what is written to them -------------------------------------------------------- */

/** struct order - @text is written into file @name of the interface @interface */
struct order {
	const char *interface, *name, *text;
	const char *problem; /* NULL: done */
};

static const char *set_mode(const struct node_place *at, const struct interface *i, const char *mode)
{
	struct json_object *req = request("ipoib_mode"), *answer;
	const char *problem = "softibd refuses it";

	if (strcmp(mode, "connected") && strcmp(mode, "datagram"))
		problem = "the mode is connected or datagram";
	request_text(req, "node", i->adapter);
	request_number(req, "port", i->port);
	request_number(req, "pkey", i->pkey);
	request_text(req, "mode", mode);
	answer = client_call_quiet(at->dir, req);
	if (answer && !member_of(answer, "error"))
		problem = NULL;
	json_object_put(answer);
	return problem;
}

static const char *act_on_child(const struct node_place *at, const struct interface *i,
				const char *text, enum node_child_action action)
{
	char *end;
	unsigned long pkey = strtoul(text, &end, 0);
	struct node_place place = *at;
	const struct node_child child = {
		.at = &place, .port = i->port, .pkey = (unsigned)pkey | WIRE_PKEY_FULL};

	if (end == text || *end || *text == '-' || pkey > 0xffff ||
	    !wire_pkey_is_valid((uint16_t)pkey) || child.pkey == WIRE_PKEY_DEFAULT)
		return "it takes a P_Key such as 0x8001, other than that of the interface itself";
	place.net = NET_NODE;
	snprintf(place.adapter, sizeof(place.adapter), "%s", i->adapter);
	return node_child_act(&child, action) ?
		       "'softib ipoib NODE create' or 'delete' would say why it is refused" : NULL;
}

static void act(void *ctx, const struct node_place *at, const struct interface *i)
{
	struct order *order = ctx;

	if (strcmp(i->name, order->interface))
		return;
	if (!strcmp(order->name, "mode"))
		order->problem = set_mode(at, i, order->text);
	else
		order->problem = act_on_child(at, i, order->text,
					      strcmp(order->name, "create_child") ?
						      NODE_CHILD_DELETE : NODE_CHILD_CREATE);
}

void sysfs_net_order(const struct node_place *at, const char *path, char *text)
{
	char interface[32];
	const char *name = strrchr(path, '/') + 1, *from = path + sizeof(FOLDER);
	struct order order = {.interface = interface, .name = name, .text = text,
			      .problem = "there is no such interface"};

	snprintf(interface, sizeof(interface), "%.*s", (int)(name - 1 - from), from);
	text[strcspn(text, "\n")] = '\0';
	visit_all(at, act, &order);
	if (order.problem)
		log_note(at->dir, LOG_SOFTIBD, "%s: \"%.32s\" into /sys/class/net/%s/%s: %s", at->node,
			 text, interface, name, order.problem);
}

/* --- the folder --------------------------------------------------------------------- */

/* The kernel's own links lead from where they are to others of its folders. */
static void link_entry(int kernel, int dir, const char *name)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(kernel, name, target, sizeof(target) - 1);

	if (n < 0)
		n = snprintf(target, sizeof(target), KERNEL "/%s", name);
	target[n] = '\0';
	(void)!symlinkat(target, dir, name);
}

static void link_entries(int kernel, int dir)
{
	DIR *entries = fdopendir(openat(kernel, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *entry;

	while (entries && (entry = readdir(entries)))
		if (entry->d_name[0] != '.' && !find_row(entry->d_name))
			link_entry(kernel, dir, entry->d_name);
	if (entries)
		closedir(entries);
}

static int make_folder(const struct node_place *at, const char *interface, char path[PATH_MAX])
{
	int error = folder_of(at, "", path);

	if (!error && mkdir(path, 0755) && errno != EEXIST)
		error = -errno;
	if (!error)
		error = folder_of(at, interface, path);
	if (!error && mkdir(path, 0755) && errno != EEXIST)
		error = -errno;
	return error;
}

/* Who serves the node's files hears of a new folder as somebody opens one of them. */
static void wake_server(const struct node_place *at, const char *parent)
{
	char path[PATH_MAX + 8];
	int fd;

	if (folder_of(at, parent, path))
		return;
	strcat(path, "/mode");
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

int sysfs_net_lay(const struct node_place *at, const char *interface)
{
	char path[PATH_MAX], over[64 + IF_NAMESIZE], from[64], to[96 + IF_NAMESIZE], parent[32];
	int kernel, dir, error;

	snprintf(over, sizeof(over), DEVICES "/%s", interface);
	kernel = open(over, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (kernel < 0)
		return -errno; /* the node shows the machine's interfaces: node_setup.c */
	error = make_folder(at, interface, path);
	dir = error ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!error && (dir < 0 || (mkdirat(dir, KERNEL, 0755) && errno != EEXIST)))
		error = -errno;
	if (!error) {
		link_entries(kernel, dir);
		snprintf(from, sizeof(from), "/proc/self/fd/%d", kernel);
		snprintf(to, sizeof(to), "%s/" KERNEL, over);
		if (mount(path, over, NULL, MS_BIND, NULL) || mount(from, to, NULL, MS_BIND, NULL))
			error = -errno;
	}
	if (dir >= 0)
		close(dir);
	close(kernel);
	snprintf(parent, sizeof(parent), "%.*s", (int)strcspn(interface, "."), interface);
	if (!error && strcmp(parent, interface))
		wake_server(at, parent);
	return error;
}
