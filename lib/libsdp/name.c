/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whether a descriptor is an SDP socket, and its addresses. They are stored in the name of the Unix
 * socket, because the kernel keeps the name as long as the socket: it survives dup(), fork(), exec() and
 * SCM_RIGHTS. Two more flags are stored in socket options that have no effect on such a socket.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>

#include "sdp_private.h"

#define FORCED_MS      1936989265 /* a time of 22 days, which no program sets */
#define LISTENING_PRIO ABI_SDP_LISTENING_PRIO

/*
 * The name consists of "softib-sdp:", the kind, and in hexadecimal: a random number that makes the name
 * unique, the flags, the local address and the peer's, each as family, port and IP address.
 */
#define PREFIX	     ABI_SDP_NAME
#define PREFIX_CHARS (sizeof(PREFIX) - 1)

struct packed_address {
	uint8_t family; /* 4, 6; 0: none */
	uint8_t port[2], ip[16];
};

struct packed_name {
	uint8_t unique[6], flags;
	struct packed_address local, peer;
};

#define NAME_CHARS (1 + PREFIX_CHARS + 1 + 2 * sizeof(struct packed_name))

static void pack(const union abi_sdp_address *from, struct packed_address *to)
{
	if (from->any.sa_family == AF_UNSPEC)
		return;
	to->family = from->any.sa_family == AF_INET6 ? 6 : 4;
	memcpy(to->port, &from->in.sin_port, 2);
	if (to->family == 6)
		memcpy(to->ip, &from->in6.sin6_addr, 16);
	else
		memcpy(to->ip, &from->in.sin_addr, 4);
}

static void unpack(const struct packed_address *from, union abi_sdp_address *to)
{
	memset(to, 0, sizeof(*to));
	if (!from->family)
		return;
	to->any.sa_family = from->family == 6 ? AF_INET6 : AF_INET;
	memcpy(&to->in.sin_port, from->port, 2);
	if (from->family == 6)
		memcpy(&to->in6.sin6_addr, from->ip, 16);
	else
		memcpy(&to->in.sin_addr, from->ip, 4);
}

static const char digits[] = "0123456789abcdef";

static bool read_hex(const char *text, uint8_t *bytes, size_t n)
{
	for (; n; n--, text += 2) {
		const char *high = memchr(digits, text[0], 16);
		const char *low = memchr(digits, text[1], 16);

		if (!high || !low)
			return false;
		*bytes++ = (uint8_t)((high - digits) << 4 | (low - digits));
	}
	return true;
}

static void write_hex(char *text, const uint8_t *bytes, size_t n)
{
	for (; n; n--, bytes++) {
		*text++ = digits[*bytes >> 4];
		*text++ = digits[*bytes & 15];
	}
}

bool sdp_name_get(int fd, struct sdp_name *name)
{
	union {
		struct sockaddr any;
		struct sockaddr_un un;
	} addr;
	const char *text = addr.un.sun_path + 1;
	socklen_t len = sizeof(addr);
	struct packed_name packed;

	if (sdp_libc.getsockname(fd, &addr.any, &len) || addr.any.sa_family != AF_UNIX ||
	    len != offsetof(struct sockaddr_un, sun_path) + NAME_CHARS || text[-1] ||
	    memcmp(text, PREFIX, PREFIX_CHARS) != 0 ||
	    !read_hex(text + PREFIX_CHARS + 1, (uint8_t *)&packed, sizeof(packed)))
		return false;
	name->kind = (enum sdp_kind)text[PREFIX_CHARS];
	name->flags = packed.flags;
	unpack(&packed.local, &name->names.local);
	unpack(&packed.peer, &name->names.peer);
	return true;
}

int sdp_name_set(int fd, const struct sdp_name *name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	struct packed_name packed = {{0}};
	char *text = addr.sun_path + 1;

	_Static_assert(NAME_CHARS <= sizeof(addr.sun_path), "fits a Unix address");
	if (getrandom(packed.unique, sizeof(packed.unique), 0) < 0)
		return -errno;
	packed.flags = name->flags;
	pack(&name->names.local, &packed.local);
	pack(&name->names.peer, &packed.peer);
	memcpy(text, PREFIX, PREFIX_CHARS);
	text[PREFIX_CHARS] = (char)name->kind;
	write_hex(text + PREFIX_CHARS + 1, (uint8_t *)&packed, sizeof(packed));
	if (sdp_libc.bind(fd, (struct sockaddr *)&addr,
			  offsetof(struct sockaddr_un, sun_path) + NAME_CHARS))
		return -errno;
	return 0;
}

int sdp_outcome(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_un un;
	} addr;
	socklen_t len = sizeof(addr);
	int error;

	if (sdp_libc.getpeername(fd, &addr.any, &len))
		return -ENETDOWN; /* softibd has ended */
	error = abi_sdp_outcome_read(&addr.un, len);
	return error < 0 ? -EINPROGRESS : -error;
}

/* Both ends have closed the connection, or it was reset: by TCP it is in state CLOSED now. */
static bool is_closed(int fd)
{
	struct pollfd p = {.fd = fd};

	return sdp_libc.poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

bool sdp_is_connected(int fd, const struct sdp_name *name)
{
	return (name->kind == SDP_CONNECTED || (name->kind == SDP_PENDING && !sdp_outcome(fd))) &&
	       !is_closed(fd);
}

bool sdp_is_tcp(int fd, int *family)
{
	int type = 0, protocol = 0;
	socklen_t len = sizeof(int);

	return !sdp_libc.getsockopt(fd, SOL_SOCKET, SO_DOMAIN, family, &len) &&
	       (*family == AF_INET || *family == AF_INET6) &&
	       !sdp_libc.getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) &&
	       type == SOCK_STREAM &&
	       !sdp_libc.getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
	       protocol == IPPROTO_TCP;
}

/* The mark is a socket option, which has no effect on a TCP socket that never sends anything. */
int sdp_force(int fd)
{
	const unsigned int mark = FORCED_MS;

	return sdp_libc.setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &mark, sizeof(mark));
}

bool sdp_is_forced(int fd)
{
	unsigned int value = 0;
	socklen_t len = sizeof(value);

	return !sdp_libc.getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &len) &&
	       value == FORCED_MS;
}

void sdp_set_listening(int fd)
{
	const int mark = LISTENING_PRIO;

	sdp_libc.setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &mark, sizeof(mark));
}

bool sdp_is_listening(int fd)
{
	int value = 0;
	socklen_t len = sizeof(value);

	return !sdp_libc.getsockopt(fd, SOL_SOCKET, SO_PRIORITY, &value, &len) &&
	       value == LISTENING_PRIO;
}

/* --- addresses --- */

static socklen_t bytes_of(int family)
{
	return family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

bool sdp_address_of(union abi_sdp_address *to, const struct sockaddr *addr, socklen_t len)
{
	union abi_sdp_address copy = {0};
	socklen_t n = len < sizeof(copy) ? len : sizeof(copy);

	if (!addr || len < offsetof(struct sockaddr, sa_data) || sdp_copy_in(&copy, addr, n))
		return false;
	/* Old programs for libsdp use AF_INET_SDP in addresses as well. */
	if (copy.any.sa_family == ABI_SDP_FAMILY)
		copy.any.sa_family = AF_INET;
	if ((copy.any.sa_family != AF_INET && copy.any.sa_family != AF_INET6) ||
	    len < bytes_of(copy.any.sa_family))
		return false;
	memset(to, 0, sizeof(*to));
	memcpy(to, &copy, bytes_of(copy.any.sa_family));
	return true;
}

int sdp_address_put(const union abi_sdp_address *from, struct sockaddr *addr, socklen_t *len)
{
	return addr ? sdp_put(addr, len, from, bytes_of(from->any.sa_family), true) : 0;
}

bool sdp_address_is_loopback(const union abi_sdp_address *address)
{
	if (address->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&address->in6.sin6_addr);
	return address->any.sa_family == AF_INET &&
	       ntohl(address->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool sdp_address_is_any(const union abi_sdp_address *address)
{
	if (address->any.sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&address->in6.sin6_addr);
	return address->any.sa_family != AF_INET || !address->in.sin_addr.s_addr;
}

void sdp_address_copy_ip(union abi_sdp_address *to, const union abi_sdp_address *from)
{
	const in_port_t port = to->in.sin_port; /* sin6_port has the same offset */

	*to = *from;
	to->in.sin_port = port;
}

void sdp_address_map(union abi_sdp_address *address, int family)
{
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6};

	if (family != AF_INET6 || address->any.sa_family != AF_INET)
		return;
	mapped.sin6_port = address->in.sin_port;
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&mapped.sin6_addr.s6_addr[12], &address->in.sin_addr, 4);
	address->in6 = mapped;
}

/* --- sockets that are bound, and not connected --- */

#define FDS_MAX 65536

static _Atomic bool may_be_bound[FDS_MAX]; /* a hint, which is checked by the name */

void sdp_note_bound(int fd)
{
	if (fd >= 0 && fd < FDS_MAX)
		atomic_store_explicit(&may_be_bound[fd], true, memory_order_relaxed);
}

bool sdp_is_unconnected(int fd)
{
	struct sdp_name name;

	if (fd < 0 || fd >= FDS_MAX ||
	    !atomic_load_explicit(&may_be_bound[fd], memory_order_relaxed))
		return false;
	if (sdp_name_get(fd, &name) && name.kind == SDP_BOUND)
		return true;
	atomic_store_explicit(&may_be_bound[fd], false, memory_order_relaxed);
	return false;
}
