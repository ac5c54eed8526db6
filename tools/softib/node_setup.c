/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a node's new namespaces get: a host name, interfaces, files of its own. */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/types.h"
#include "netdev.h"
#include "node_namespaces.h"
#include "wire/packet.h"

#define SYS "/sys"

/* --- the network ------------------------------------------------------------- */

/* ping(8) needs no privilege, as on other machines. The link-local addresses are those
 * of the plan, made of the ports' GUIDs. Routers are asked for three times (RFC 4861 section 10):
 * Linux asks for ever, and a thousand idle nodes would never rest. */
static void set_parameters(void)
{
	char text[32];

	node_write("/proc/sys/net/ipv6/conf/default/addr_gen_mode", "1");
	node_write("/proc/sys/net/ipv6/conf/default/router_solicitations", "3");
	if (node_write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647"))
		return;
	snprintf(text, sizeof(text), "%u %u", getegid(), getegid());
	node_write("/proc/sys/net/ipv4/ping_group_range", text);
}

/* --- files ------------------------------------------------------------------- */

/* the folders of sysfs that are made for other file systems to be mounted on */
static void bind_mounts(int below)
{
	static const char *const folders[] = {
		"firmware/efi/efivars", "fs/bpf",	 "fs/cgroup",
		"fs/fuse/connections",	"fs/pstore",	 "fs/selinux",
		"fs/smackfs",		"kernel/config", "kernel/debug",
		"kernel/security",	"kernel/tracing"};
	char from[128], to[128];

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(from, sizeof(from), "/proc/self/fd/%d/%s", below, folders[i]);
		snprintf(to, sizeof(to), SYS "/%s", folders[i]);
		mount(from, to, NULL, MS_BIND | MS_REC, NULL);
	}
}

/* /sys/class/net of a sysfs is that of the network namespace in which it was mounted.
 * Where the kernel does not let us mount one (a container that covers parts of /sys),
 * the node's shows the machine's interfaces. */
static void mount_sysfs(void)
{
	unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
	int below = open(SYS, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (below < 0)
		return;
	if (!mount("softib", SYS, "sysfs", flags, NULL) ||
	    !mount("softib", SYS, "sysfs", flags | MS_RDONLY, NULL))
		bind_mounts(below);
	close(below);
}

/* Return: 0; -errno; -EPROTO (printed) */
static int set_up_interface(const struct node_place *at, struct json_object *planned)
{
	const char *adapter = text_of(planned, "adapter"), *interface = text_of(planned, "interface");
	unsigned port = (unsigned)number_of(planned, "port");

	if (member_of(planned, "vlan"))
		return netdev_ethernet(at, adapter, port, (unsigned)number_of(planned, "vlan"), interface);
	if (member_of(planned, "link_layer"))
		return netdev_ethernet(at, adapter, port, 0, interface);
	return netdev_ipoib(at, adapter, port, WIRE_PKEY_DEFAULT, interface);
}

/* Without an interface of an adapter the node has its addresses all the same: what
 * keeps it from having one has been said, here or by who brought the fabric up. */
static int set_up_interfaces(const struct node_place *at, struct json_object *node)
{
	static const char *const lists[] = {"addresses", "vlans"};

	for (size_t l = 0; netdev_is_possible() && l < ARRAY_SIZE(lists); l++) {
		struct json_object *list = member_of(node, lists[l]);

		for (size_t i = 0; i < count_of(list); i++) {
			int error = set_up_interface(at, item_of(list, i));

			if (error && error != -EPROTO)
				complain("%s has no %s: %s", at->node,
					 text_of(item_of(list, i), "interface"), strerror(-error));
		}
	}
	return node_add_addresses(node);
}

static int set_up_addresses(const struct node_place *at)
{
	struct json_object *req = request("nodes"), *answer;
	int error = node_write_names(at->dir);

	if (!error)
		error = node_lay_names(at->dir);
	request_text(req, "node", at->node);
	answer = client_call_quiet(at->dir, req);
	if (!error)
		error = answer ? set_up_interfaces(at, item_of(member_of(answer, "nodes"), 0)) :
				 -EIO;
	json_object_put(answer);
	return error;
}

/* --- all of it ----------------------------------------------------------------- */

int node_set_up(const struct node_place *at, const char *files)
{
	int error = node_keep_mounts(SYS);

	if (error)
		return error;
	mount_sysfs();
	error = node_lay_class(files);
	if (!error && sethostname(at->node, strlen(at->node)))
		error = -errno;
	if (!error)
		error = netdev_up("lo");
	set_parameters();
	return error ? error : set_up_addresses(at);
}
