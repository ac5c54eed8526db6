/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The guest's GIDs. QEMU sends the guest's packets from the entry of the host's GID table that has the
 * same GID, and the table of a port of Ethernet follows the addresses of its interface. So the interface
 * gets the guest's IP addresses. They are there for RDMA alone: frames to them go to the guest by its MAC
 * address, and the node does not answer when ARP asks for them (arp_ignore 3: not for addresses of
 * scope "host").
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vmgate/gate.h"

#define WAIT_SECONDS 5.0 /* for an address to appear in the GID table */

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

static bool is_ipv4(const union ibv_gid *gid)
{
	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/* --- rtnetlink --- */

static void put_attribute(struct nlmsghdr *h, unsigned short type, const void *data, unsigned short bytes)
{
	struct rtattr *attr = (void *)((char *)h + NLMSG_ALIGN(h->nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = (unsigned short)RTA_LENGTH(bytes);
	memcpy(RTA_DATA(attr), data, bytes);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + RTA_LENGTH(bytes);
}

/* Return: 0; -errno of the kernel */
static int ask_kernel(const struct nlmsghdr *h)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[512];
	} answer = {0};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), error = 0;

	if (fd < 0 || send(fd, h, h->nlmsg_len, 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0)
		error = -errno;
	if (fd >= 0)
		close(fd);
	return error ? error : answer.error.error;
}

/* @type: RTM_NEWADDR, RTM_DELADDR */
static int change(const struct gate *gate, unsigned short type, const union ibv_gid *gid)
{
	bool ipv4 = is_ipv4(gid);
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg m;
		char attributes[128];
	} request = {
		.header = {.nlmsg_len = NLMSG_LENGTH(sizeof(request.m)), .nlmsg_type = type,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK |
					  (type == RTM_NEWADDR ? NLM_F_CREATE | NLM_F_EXCL : 0)},
		.m = {.ifa_family = ipv4 ? AF_INET : AF_INET6, .ifa_prefixlen = ipv4 ? 32 : 128,
		      .ifa_flags = ipv4 ? 0 : IFA_F_NODAD, .ifa_scope = ipv4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE,
		      .ifa_index = if_nametoindex(gate->interface)},
	};
	const uint8_t *address = gid->raw + (ipv4 ? sizeof(mapped) : 0);

	put_attribute(&request.header, IFA_LOCAL, address, ipv4 ? 4 : 16);
	put_attribute(&request.header, IFA_ADDRESS, address, ipv4 ? 4 : 16);
	return ask_kernel(&request.header);
}

static void say(const struct gate *gate, const char *what, const union ibv_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	gate_say(gate, "%s %s", what, inet_ntop(AF_INET6, gid->raw, text, sizeof(text)));
}

/* --- the GID table --- */

static bool is_in_table(const struct gate *gate, const union ibv_gid *gid)
{
	struct ibv_port_attr attr;
	union ibv_gid entry;

	if (ibv_query_port(gate->context, gate->opt.port, &attr))
		return false;
	for (int i = 0; i < attr.gid_tbl_len; i++)
		if (!ibv_query_gid(gate->context, gate->opt.port, i, &entry) &&
		    !memcmp(&entry, gid, sizeof(entry)))
			return true;
	return false;
}

static void end_wait(struct gate *gate, enum pvrdma_error error)
{
	gate->is_waiting = false;
	ev_timer_stop(gate->loop, &gate->wait_limit);
	gate_mads_answer(gate, error);
}

static void on_limit(struct ev_loop *loop, ev_timer *timer, int events)
{
	struct gate *gate = timer->data;

	gate_fail(0, "the port has no room for another GID of the guest");
	gate_address_remove(gate, &gate->waiting);
	end_wait(gate, PVRDMA_EINVAL);
}

static void on_async(struct ev_loop *loop, ev_io *io, int events)
{
	struct gate *gate = io->data;
	struct ibv_async_event event;

	if (ibv_get_async_event(gate->context, &event))
		return;
	ibv_ack_async_event(&event);
	if (gate->is_waiting && is_in_table(gate, &gate->waiting))
		end_wait(gate, PVRDMA_OK);
}

/* --- addresses --- */

static struct gate_address *find(const struct gate *gate, const union ibv_gid *gid)
{
	for (unsigned int i = 0; i < GATE_ADDRESSES; i++)
		if (gate->address[i].is_there && !memcmp(&gate->address[i].gid, gid, sizeof(*gid)))
			return (struct gate_address *)&gate->address[i];
	return NULL;
}

bool gate_address_is_there(const struct gate *gate, const union ibv_gid *gid)
{
	return find(gate, gid);
}

void gate_address_add(struct gate *gate, const union ibv_gid *gid)
{
	struct gate_address *a = find(gate, gid);
	int error;

	if (a) {
		gate_mads_answer(gate, PVRDMA_EEXIST);
		return;
	}
	for (unsigned int i = 0; i < GATE_ADDRESSES && !a; i++)
		if (!gate->address[i].is_there)
			a = &gate->address[i];
	error = a ? change(gate, RTM_NEWADDR, gid) : -ENOSPC;
	if (error && error != -EEXIST) {
		gate_fail(-error, "%s takes no address of the guest", gate->interface);
		gate_mads_answer(gate, PVRDMA_EINVAL);
		return;
	}
	say(gate, "the guest has", gid);
	*a = (struct gate_address){.gid = *gid, .is_there = true, .is_ours = !error};
	if (is_in_table(gate, gid)) {
		gate_mads_answer(gate, PVRDMA_OK);
		return;
	}
	gate->waiting = *gid;
	gate->is_waiting = true;
	ev_timer_again(gate->loop, &gate->wait_limit);
}

static void drop(struct gate *gate, struct gate_address *a)
{
	if (a->is_ours)
		change(gate, RTM_DELADDR, &a->gid);
	a->is_there = false;
}

bool gate_address_remove(struct gate *gate, const union ibv_gid *gid)
{
	struct gate_address *a = find(gate, gid);

	if (!a)
		return false;
	say(gate, "the guest no longer has", gid);
	drop(gate, a);
	return true;
}

/* --- the interface --- */

static void be_silent_for_guest(const struct gate *gate)
{
	char path[64 + IF_NAMESIZE];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/arp_ignore", gate->interface);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "3", 1) != 1)
		gate_fail(errno, "%s answers ARP for the guest, too", gate->interface);
	if (fd >= 0)
		close(fd);
}

static int read_interface(struct gate *gate)
{
	char path[256];
	ssize_t bytes;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/0",
		 ibv_get_device_name(gate->context->device), gate->opt.port);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	bytes = read(fd, gate->interface, sizeof(gate->interface) - 1);
	close(fd);
	gate->interface[bytes > 0 ? bytes : 0] = 0;
	gate->interface[strcspn(gate->interface, "\n")] = 0;
	return if_nametoindex(gate->interface) ? 0 : -1;
}

int gate_addresses_open(struct gate *gate)
{
	if (read_interface(gate))
		return gate_fail(0, "the port has no Ethernet interface here: softib up --link-layer ethernet --net node");
	be_silent_for_guest(gate);
	ev_io_init(&gate->async_io, on_async, gate->context->async_fd, EV_READ);
	gate->async_io.data = gate;
	ev_io_start(gate->loop, &gate->async_io);
	ev_timer_init(&gate->wait_limit, on_limit, 0, WAIT_SECONDS);
	gate->wait_limit.data = gate;
	return 0;
}

void gate_addresses_close(struct gate *gate)
{
	ev_io_stop(gate->loop, &gate->async_io);
	ev_timer_stop(gate->loop, &gate->wait_limit);
	for (unsigned int i = 0; i < GATE_ADDRESSES; i++)
		if (gate->address[i].is_there)
			drop(gate, &gate->address[i]);
}
