/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The host's end of a network interface (tun.h). */
#include "ulp/net/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/major.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "runtime/posix/closer.h"

#define TUN_MINOR 200 /* /dev/net/tun: Linux, Documentation/admin-guide/devices.txt */

static bool is_routing_socket(int fd)
{
	int domain = 0, protocol = -1;
	socklen_t length = sizeof(int);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) &&
	       !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) &&
	       domain == AF_NETLINK && protocol == NETLINK_ROUTE;
}

/* Only of a device an ioctl is asked: who serves the file system of a file may never answer one. */
static bool is_tun_device(int fd)
{
	struct statx st;

	return !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) && S_ISCHR(st.stx_mode) &&
	       st.stx_rdev_major == MISC_MAJOR && st.stx_rdev_minor == TUN_MINOR;
}

int net_tun_check(int tun_fd, int rtnl_fd, int kind)
{
	int header_bytes = sizeof(struct virtio_net_hdr), wanted = kind | IFF_NO_PI | IFF_VNET_HDR;
	struct ifreq request = {.ifr_flags = 0};

	if (!is_tun_device(tun_fd) || ioctl(tun_fd, TUNGETIFF, &request) ||
	    (request.ifr_flags & wanted) != wanted || !is_routing_socket(rtnl_fd))
		return -EINVAL;
	if (ioctl(tun_fd, TUNSETVNETHDRSZ, &header_bytes) ||
	    ioctl(tun_fd, TUNSETOFFLOAD, (unsigned long)NET_OFFLOADS) ||
	    fcntl(tun_fd, F_SETFL, O_RDWR | O_NONBLOCK))
		return -errno;
	return 0;
}

void net_tun_name(int tun_fd, char *name)
{
	struct ifreq request = {.ifr_flags = 0};

	if (ioctl(tun_fd, TUNGETIFF, &request))
		request.ifr_name[0] = 0;
	memcpy(name, request.ifr_name, IFNAMSIZ);
}

/* Others share the open file, and may have made it blocking. Linux before 5.11 knows no such flag for
 * this device: there, its owner is trusted. */
static ssize_t without_waiting(int tun_fd, const struct iovec *part, int parts,
			       ssize_t (*call)(int, const struct iovec *, int, off_t, int),
			       ssize_t (*waiting)(int, const struct iovec *, int))
{
	ssize_t n = call(tun_fd, part, parts, -1, RWF_NOWAIT);

	return n < 0 && errno == EOPNOTSUPP ? waiting(tun_fd, part, parts) : n;
}

ssize_t net_tun_read(int tun_fd, const struct iovec *part, int parts)
{
	return without_waiting(tun_fd, part, parts, preadv2, readv);
}

bool net_tun_write_parts(int tun_fd, const struct virtio_net_hdr *h, struct iovec *part,
			 unsigned int num)
{
	part[0] = (struct iovec){(void *)(uintptr_t)h, sizeof(*h)};
	return without_waiting(tun_fd, part, (int)num, pwritev2, writev) > 0;
}

bool net_tun_write(int tun_fd, const struct virtio_net_hdr *h, const void *packet, size_t bytes)
{
	struct iovec part[] = {[1] = {(void *)(uintptr_t)packet, bytes}};

	return net_tun_write_parts(tun_fd, h, part, ARRAY_SIZE(part));
}

void net_tun_set_carrier(int tun_fd, bool up)
{
	int on = up;

	ioctl(tun_fd, TUNSETCARRIER, &on);
}

static bool leaves_devices;

void net_tun_leave(void)
{
	leaves_devices = true;
}

void net_tun_close(int tun_fd)
{
	if (leaves_devices && tun_fd >= 0)
		ioctl(tun_fd, TUNSETPERSIST, 1);
	rt_close_foreign(tun_fd);
}
