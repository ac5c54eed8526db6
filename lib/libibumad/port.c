/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An open port. Its id is the data socket, which callers may poll; the
 * control socket beside it takes the registrations. One record on the data
 * socket is what one read() or write() moves on the character device; a
 * record too large for that travels as its header with a memfd.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "abi/fds.h"
#include "umad_private.h"

#define MAD_BYTES 256
#define INLINE_BYTES (sizeof(struct ib_user_mad) + ABI_UMAD_INLINE)

struct open_port {
	struct open_port *next;
	int fd, control;
	int users; /* calls that are in it, and the table */
	pthread_mutex_t control_lock; /* one request at a time */
	pthread_mutex_t recv_lock;    /* a peek and its receive belong together */
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct open_port *table;

/* every successful port_get() needs its port_put() */
static struct open_port *port_get(int fd)
{
	struct open_port *p;

	pthread_mutex_lock(&table_lock);
	for (p = table; p && p->fd != fd; p = p->next)
		;
	if (p)
		p->users++;
	pthread_mutex_unlock(&table_lock);
	return p;
}

static void port_put(struct open_port *p)
{
	bool last;

	pthread_mutex_lock(&table_lock);
	last = --p->users == 0;
	pthread_mutex_unlock(&table_lock);
	if (!last)
		return;
	close(p->control);
	pthread_mutex_destroy(&p->control_lock);
	pthread_mutex_destroy(&p->recv_lock);
	free(p);
}

int umad_open_port(const char *ca_name, int portnum)
{
	char name[UMAD_CA_NAME_LEN];
	struct open_port *p;

	DEBUG("ca %s port %d", ca_name ? ca_name : "(any)", portnum);
	if (umad_resolve_port(ca_name, name, &portnum)) {
		errno = ENODEV;
		return -ENODEV;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->fd = umad_session_open(name, portnum, &p->control);
	if (p->fd < 0) {
		errno = -p->fd;
		DEBUG("open %s port %d failed: %m", name, portnum);
		free(p);
		return -EIO;
	}
	pthread_mutex_init(&p->control_lock, NULL);
	pthread_mutex_init(&p->recv_lock, NULL);
	p->users = 1;
	pthread_mutex_lock(&table_lock);
	p->next = table;
	table = p;
	pthread_mutex_unlock(&table_lock);
	DEBUG("opened %s port %d fd %d", name, portnum, p->fd);
	return p->fd;
}

int umad_close_port(int portid)
{
	struct open_port **link, *p;

	pthread_mutex_lock(&table_lock);
	for (link = &table; *link && (*link)->fd != portid; link = &(*link)->next)
		;
	p = *link;
	if (p)
		*link = p->next;
	pthread_mutex_unlock(&table_lock);
	if (!p)
		return -EINVAL;
	close(p->fd);
	port_put(p);
	DEBUG("closed fd %d", portid);
	return 0;
}

int umad_get_fd(int portid)
{
	return portid;
}

/* --- agents --- */

static int port_ioctl(int portid, unsigned int request, void *arg, size_t bytes)
{
	struct open_port *p = port_get(portid);
	int ret;

	if (!p)
		return -EBADF;
	pthread_mutex_lock(&p->control_lock);
	ret = umad_session_ioctl(p->control, request, arg, bytes);
	pthread_mutex_unlock(&p->control_lock);
	port_put(p);
	return ret;
}

/* <rdma/ib_user_mad.h> cannot be included beside <infiniband/umad.h> */
struct ib_user_mad_reg_req {
	uint32_t id;
	uint32_t method_mask[4];
	uint8_t qpn;
	uint8_t mgmt_class;
	uint8_t mgmt_class_version;
	uint8_t oui[3];
	uint8_t rmpp_version;
};

struct ib_user_mad_reg_req2 {
	uint32_t id;
	uint32_t qpn;
	uint8_t mgmt_class;
	uint8_t mgmt_class_version;
	uint16_t res;
	uint32_t flags;
	uint64_t method_mask[2];
	uint32_t oui;
	uint8_t rmpp_version;
	uint8_t reserved[3];
};

static uint8_t class_qpn(int mgmt_class)
{
	return mgmt_class == 0x01 || mgmt_class == 0x81 ? 0 : 1;
}

static int register_agent(int portid, struct ib_user_mad_reg_req *req, const uint8_t oui[3],
			  const long *method_mask)
{
	int ret;

	memcpy(req->oui, oui, sizeof(req->oui));
	if (method_mask)
		memcpy(req->method_mask, method_mask, sizeof(req->method_mask));
	ret = port_ioctl(portid, IB_USER_MAD_REGISTER_AGENT, req, sizeof(*req));
	if (ret) {
		errno = -ret;
		DEBUG("fd %d class 0x%x version %d: %m", portid, req->mgmt_class,
		      req->mgmt_class_version);
		return -EPERM;
	}
	DEBUG("fd %d class 0x%x is agent %u", portid, req->mgmt_class, req->id);
	return (int)req->id;
}

int umad_register(int portid, int mgmt_class, int mgmt_version, uint8_t rmpp_version,
		  long method_mask[16 / sizeof(long)])
{
	static const uint8_t openib_oui[3] = {0x00, 0x14, 0x05};
	struct ib_user_mad_reg_req req = {
		.qpn = class_qpn(mgmt_class),
		.mgmt_class = (uint8_t)mgmt_class,
		.mgmt_class_version = (uint8_t)mgmt_version,
		.rmpp_version = rmpp_version,
	};

	return register_agent(portid, &req, openib_oui, method_mask);
}

int umad_register_oui(int portid, int mgmt_class, uint8_t rmpp_version, uint8_t oui[3],
		      long method_mask[16 / sizeof(long)])
{
	struct ib_user_mad_reg_req req = {
		.qpn = 1,
		.mgmt_class = (uint8_t)mgmt_class,
		.mgmt_class_version = 1,
		.rmpp_version = rmpp_version,
	};

	if (mgmt_class < 0x30 || mgmt_class > 0x4f) {
		DEBUG("mgmt class %d not in vendor range 2", mgmt_class);
		return -EINVAL;
	}
	return register_agent(portid, &req, oui, method_mask);
}

int umad_register2(int port_fd, struct umad_reg_attr *attr, uint32_t *agent_id)
{
	struct ib_user_mad_reg_req2 req = {0};
	int ret;

	if (!attr || !agent_id)
		return EINVAL;
	if (attr->mgmt_class >= 0x30 && attr->mgmt_class <= 0x4f &&
	    (!(attr->oui & 0xffffff) || (attr->oui & 0xff000000))) {
		DEBUG("class 0x%x needs a valid OUI, not 0x%x", attr->mgmt_class, attr->oui);
		return EINVAL;
	}
	req.qpn = class_qpn(attr->mgmt_class);
	req.mgmt_class = attr->mgmt_class;
	req.mgmt_class_version = attr->mgmt_class_version;
	req.flags = attr->flags;
	memcpy(req.method_mask, attr->method_mask, sizeof(req.method_mask));
	req.oui = attr->oui;
	req.rmpp_version = attr->rmpp_version;
	ret = port_ioctl(port_fd, IB_USER_MAD_REGISTER_AGENT2, &req, sizeof(req));
	if (ret) {
		attr->flags = req.flags; /* what is supported, when that was it */
		return -ret;
	}
	*agent_id = req.id;
	return 0;
}

int umad_unregister(int portid, int agentid)
{
	uint32_t id = (uint32_t)agentid;
	int ret;

	DEBUG("fd %d unregistering agent %d", portid, agentid);
	ret = port_ioctl(portid, IB_USER_MAD_UNREGISTER_AGENT, &id, sizeof(id));
	if (!ret)
		return 0;
	errno = -ret;
	return -1;
}

/* --- sending --- */

static int wait_for(int fd, short events, int timeout_ms)
{
	struct pollfd pfd = {.fd = fd, .events = events};
	int n = poll(&pfd, 1, timeout_ms);

	if (n < 0)
		return -errno;
	if (n == 0)
		return -ETIMEDOUT;
	return pfd.revents & POLLNVAL ? -EBADF : 0;
}

/* a full socket is waited for: writing to the character device never fails
 * for lack of room */
static int send_record(int fd, const void *bytes, size_t len, const int *fds, unsigned n)
{
	int ret;

	while ((ret = abi_send_fds(fd, bytes, len, fds, n, MSG_DONTWAIT)) == -EAGAIN)
		wait_for(fd, POLLOUT, -1);
	return ret;
}

static int send_large(int fd, struct ib_user_mad *mad, size_t bytes)
{
	int memfd = memfd_create("umad", MFD_CLOEXEC);
	size_t done = 0;
	int ret = 0;

	if (memfd < 0)
		return -errno;
	while (!ret && done < bytes) {
		ssize_t n = write(memfd, (char *)mad + done, bytes - done);

		if (n > 0)
			done += (size_t)n;
		else if (errno != EINTR)
			ret = n ? -errno : -EIO;
	}
	if (!ret)
		ret = send_record(fd, mad, sizeof(*mad), &memfd, 1);
	close(memfd);
	return ret;
}

int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms, int retries)
{
	struct ib_user_mad *mad = umad;
	size_t bytes = sizeof(*mad) + (size_t)length;
	int ret;

	if (length < 0) {
		errno = EINVAL;
		return -EINVAL;
	}
	mad->timeout_ms = (uint32_t)timeout_ms;
	mad->retries = (uint32_t)retries;
	mad->agent_id = (uint32_t)agentid;
	DEBUG("fd %d agentid %d timeout %d length %d", portid, agentid, timeout_ms, length);
	if (umad_debug_level > 1)
		umad_dump(umad);
	if (bytes > INLINE_BYTES)
		ret = send_large(portid, mad, bytes);
	else
		ret = send_record(portid, mad, bytes, NULL, 0);
	if (!ret)
		return 0;
	errno = -ret;
	return -EIO;
}

/* --- receiving --- */

int umad_poll(int portid, int timeout_ms)
{
	DEBUG("fd %d timeout %d", portid, timeout_ms);
	return wait_for(portid, POLLIN, timeout_ms);
}

static int read_memfd(int memfd, void *buf, size_t bytes)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t n = pread(memfd, (char *)buf + done, bytes - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

/* the first segment must fit, so that the message's length can be told */
static int too_small(const struct ib_user_mad *mad, size_t size, size_t needed)
{
	size_t first = sizeof(*mad) + MIN(needed - sizeof(*mad), (size_t)MAD_BYTES);

	return size < first ? -EINVAL : -ENOSPC;
}

/*
 * One record into @mad of @size bytes, as read(2) of the character device:
 * one that does not fit stays first in the queue, and as much of it as one
 * MAD was copied. Return: its bytes; -EINVAL, -ENOSPC too small; -errno
 */
static ssize_t receive_record(int fd, struct ib_user_mad *mad, size_t size)
{
	int memfd = -1, ret = 0;
	ssize_t n = abi_receive(fd, mad, size, MSG_PEEK | MSG_TRUNC, &memfd, 1);
	size_t needed;

	if (n < 0)
		return n;
	needed = memfd >= 0 && n >= (ssize_t)sizeof(*mad) ? mad->length : (size_t)n;
	if (n < (ssize_t)sizeof(*mad) || needed < sizeof(*mad))
		ret = -EIO; /* of no bytes: the other end is gone */
	else if (needed > size)
		ret = too_small(mad, size, needed);
	if (memfd >= 0 && (!ret || ret == -ENOSPC)) {
		int err = read_memfd(memfd, mad, ret ? sizeof(*mad) + MAD_BYTES : needed);

		ret = err ? err : ret;
	}
	if (memfd >= 0)
		close(memfd);
	if (ret)
		return ret;
	/* take it off the queue; a large one was read from the memfd already */
	n = abi_receive(fd, mad, memfd >= 0 ? sizeof(*mad) : size, 0, &memfd, 1);
	if (memfd >= 0)
		close(memfd);
	return n < 0 ? n : (ssize_t)needed;
}

int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	struct ib_user_mad *mad = umad;
	struct open_port *p;
	ssize_t n;
	int ret;

	DEBUG("fd %d timeout %d", portid, timeout_ms);
	ret = timeout_ms ? wait_for(portid, POLLIN, timeout_ms) : 0;
	if (ret) {
		errno = -ret;
		return ret;
	}
	p = *length < 0 ? NULL : port_get(portid);
	if (!p) {
		errno = EINVAL;
		return -EINVAL;
	}
	pthread_mutex_lock(&p->recv_lock);
	n = receive_record(portid, mad, sizeof(*mad) + (size_t)*length);
	pthread_mutex_unlock(&p->recv_lock);
	port_put(p);
	if (n >= 0) {
		*length = (int)((size_t)n - sizeof(*mad));
		DEBUG("mad received by agent %u length %d", mad->agent_id, *length);
		return (int)mad->agent_id;
	}
	if (n == -ENOSPC || n == -EINVAL) {
		DEBUG("a record of %u does not fit in %d", mad->length, *length);
		*length = (int)(mad->length - sizeof(*mad));
	}
	errno = (int)-n;
	return (int)n;
}
