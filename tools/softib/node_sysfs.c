/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A node's own /sys/class/infiniband, infiniband_mad and infiniband_verbs,
 * for scripts such as ibstatus that read files instead of calling a library.
 * The process gets a mount namespace (without root inside a user namespace of
 * its own), /sys/class becomes a tmpfs with everything else of the real one
 * bound into it, and files as the Linux kernel's sysfs has them are written:
 * Documentation/ABI/stable/sysfs-class-infiniband. They tell how the ports
 * were when the program started.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/session.h"
#include "base/types.h"
#include "softib.h"

#define CLASS	    "/sys/class"
#define DEVICES_MAX 16

/* --- files ------------------------------------------------------------------- */

/** struct tree - where files are written; the first error stays */
struct tree {
	int dir, error;
};

static void make_parents(struct tree *t, char *path)
{
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdirat(t->dir, path, 0755) && errno != EEXIST)
			t->error = -errno;
		*slash = '/';
	}
}

/* the file @at/@name with one line */
__attribute__((format(printf, 4, 5)))
static void put(struct tree *t, const char *at, const char *name, const char *fmt, ...)
{
	char path[256], line[256];
	va_list ap;
	int n, fd;

	if (t->error)
		return;
	snprintf(path, sizeof(path), "%s/%s", at, name);
	make_parents(t, path);
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	n = MIN(n, (int)sizeof(line) - 2);
	line[n++] = '\n';
	fd = openat(t->dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0444);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		t->error = -errno;
	if (fd >= 0)
		close(fd);
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

static void put_state(struct tree *t, const char *at, struct json_object *port)
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
static void put_rate(struct tree *t, const char *at, struct json_object *port)
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

static void put_port(struct tree *t, const char *device, struct json_object *port)
{
	struct json_object *pkeys = member_of(port, "pkeys");
	char at[128], name[32], prefix[20], guid[20];

	snprintf(at, sizeof(at), "infiniband/%.*s/ports/%u", ABI_NAME_BYTES, device,
		 (unsigned)number_of(port, "port"));
	put(t, at, "lid", "0x%x", (unsigned)number_of(port, "lid"));
	put(t, at, "lid_mask_count", "%u", (unsigned)number_of(port, "lmc"));
	put(t, at, "sm_lid", "0x%x", (unsigned)number_of(port, "sm_lid"));
	put(t, at, "sm_sl", "%u", (unsigned)number_of(port, "sm_sl"));
	put(t, at, "cap_mask", "0x%08x", (unsigned)hex_of(port, "cap_mask"));
	put(t, at, "link_layer", "InfiniBand");
	put_state(t, at, port);
	put_rate(t, at, port);
	put(t, at, "gids/0", "%s:%s", guid_text(hex_of(port, "gid_prefix"), prefix),
	    guid_text(hex_of(port, "guid"), guid));
	put(t, at, "gid_attrs/types/0", "IB/RoCE v1");
	for (size_t i = 0; pkeys && i < count_of(pkeys); i++) {
		snprintf(name, sizeof(name), "pkeys/%zu", i);
		put(t, at, name, "0x%04x",
		    json_object_get_int(item_of(pkeys, i)));
	}
}

/* --- what it says of an adapter --------------------------------------------------- */

static void put_class_devices(struct tree *t, const struct abi_device_info *info)
{
	static const char *const kinds[] = {"umad", "issm"};
	char at[64];

	snprintf(at, sizeof(at), "infiniband_verbs/uverbs%u", info->index);
	put(t, at, "ibdev", "%s", info->name);
	put(t, at, "abi_version", "1");
	for (unsigned p = 0; p < info->num_ports; p++) {
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
			snprintf(at, sizeof(at), "infiniband_mad/%s%u", kinds[k],
				 info->umad_base + p);
			put(t, at, "ibdev", "%s", info->name);
			put(t, at, "port", "%u", p + 1);
		}
	}
}

static void put_device(struct tree *t, const struct abi_device_info *info,
		       struct json_object *node)
{
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
	put_class_devices(t, info);
}

int node_devices(const struct node_place *at, struct abi_device_info *info, int max)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct abi_open open = {ABI_MAGIC, ABI_VERSION, ABI_OPEN_LIST, 0, "", ""};
	struct {
		struct abi_reply reply;
		struct abi_device_info info[DEVICES_MAX];
	} answer;
	ssize_t n = -1;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), count;

	snprintf(open.node, sizeof(open.node), "%s", at->node);
	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s/umad", at->dir) <
		    (int)sizeof(address.sun_path) &&
	    !connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
	    send(fd, &open, sizeof(open), MSG_NOSIGNAL) == sizeof(open))
		n = recv(fd, &answer, sizeof(answer), 0);
	close(fd);
	if (n < (ssize_t)sizeof(answer.reply) || answer.reply.error)
		return 0;
	count = MIN((int)(((size_t)n - sizeof(answer.reply)) / sizeof(*info)), max);
	memcpy(info, answer.info, (size_t)count * sizeof(*info));
	return count;
}

static struct json_object *ask_node(const struct node_place *at)
{
	struct json_object *req = request("topo");

	request_text(req, "node", at->node);
	json_object_object_add(req, "detail", json_object_new_boolean(1));
	return client_call_quiet(at->dir, req);
}

static int write_files(const struct node_place *at, int dir)
{
	struct json_object *answer = ask_node(at), *nodes = member_of(answer, "nodes");
	struct abi_device_info info[DEVICES_MAX];
	struct tree tree = {.dir = dir, .error = nodes ? 0 : -EIO};
	int count = nodes ? node_devices(at, info, DEVICES_MAX) : 0;

	put(&tree, "infiniband_verbs", "abi_version", "6");
	put(&tree, "infiniband_mad", "abi_version", "5");
	for (int i = 0; i < count; i++)
		put_device(&tree, &info[i], item_of(nodes, 0));
	json_object_put(answer);
	return tree.error;
}

/* --- namespaces --------------------------------------------------------------------- */

static bool write_line(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

/* user_namespaces(7): without privilege one may map oneself, to oneself */
static int enter_user_namespace(void)
{
	unsigned uid = geteuid(), gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
		return -errno;
	write_line("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	if (!write_line("/proc/self/uid_map", map))
		return -EPERM;
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return write_line("/proc/self/gid_map", map) ? 0 : -EPERM;
}

static int mount_class(void)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("softib", CLASS, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "mode=755,size=4m"))
		return -errno;
	return 0;
}

/* A user namespace cannot be left again: a child tries first whether it gets
 * this program anywhere */
static bool user_namespace_helps(void)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(enter_user_namespace() || mount_class());
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int enter_namespaces(void)
{
	if (!unshare(CLONE_NEWNS))
		return 0;
	return user_namespace_helps() ? enter_user_namespace() : -EPERM;
}

static bool is_ours(const char *name)
{
	return !strncmp(name, "infiniband", strlen("infiniband"));
}

/* every other class stays what it is: bound from below the new tmpfs */
static void bind_others(int below)
{
	char from[64 + NAME_MAX], to[64 + NAME_MAX];
	DIR *dir = fdopendir(dup(below));
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || is_ours(entry->d_name))
			continue;
		snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", below, entry->d_name);
		snprintf(to, sizeof(to), CLASS "/%s", entry->d_name);
		if (!mkdir(to, 0755))
			mount(from, to, NULL, MS_BIND | MS_REC, NULL);
	}
	if (dir)
		closedir(dir);
}

int node_sysfs(const struct node_place *at)
{
	int below, dir, error = enter_namespaces();

	if (error)
		return error;
	below = open(CLASS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (below < 0)
		return -errno;
	error = mount_class();
	dir = error ? -1 : open(CLASS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0) {
		bind_others(below);
		error = write_files(at, dir);
		close(dir);
		if (error)
			umount2(CLASS, MNT_DETACH);
	}
	close(below);
	return error;
}
