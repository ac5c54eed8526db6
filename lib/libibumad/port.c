/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An open port: its agents, sending and receiving. Its id is the descriptor of the device
 * file (file.c), which callers may poll.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>

#include "umad_private.h"

int umad_open_port(const char *ca_name, int portnum)
{
	char name[UMAD_CA_NAME_LEN];
	int fd;

	DEBUG("ca %s port %d", ca_name ? ca_name : "(any)", portnum);
	if (umad_resolve_port(ca_name, name, &portnum)) {
		errno = ENODEV;
		return -ENODEV;
	}
	fd = umad_file_open(name, portnum);
	if (fd == -ENOMEM)
		return fd;
	if (fd < 0) {
		errno = -fd;
		DEBUG("open %s port %d failed: %m", name, portnum);
		return -EIO;
	}
	DEBUG("opened %s port %d fd %d", name, portnum, fd);
	return fd;
}

int umad_close_port(int portid)
{
	if (umad_file_close(portid))
		return -EINVAL;
	DEBUG("closed fd %d", portid);
	return 0;
}

int umad_get_fd(int portid)
{
	return portid;
}

/* --- agents --- */

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
	ret = umad_file_ioctl(portid, IB_USER_MAD_REGISTER_AGENT, req, sizeof(*req));
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
	ret = umad_file_ioctl(port_fd, IB_USER_MAD_REGISTER_AGENT2, &req, sizeof(req));
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
	ret = umad_file_ioctl(portid, IB_USER_MAD_UNREGISTER_AGENT, &id, sizeof(id));
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
	ret = umad_file_write(portid, mad, bytes);
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

/* Return: bytes of the record; -errno */
static ssize_t receive(int portid, struct ib_user_mad *mad, int length, int timeout_ms)
{
	int ret = timeout_ms ? wait_for(portid, POLLIN, timeout_ms) : 0;

	if (ret || length < 0)
		return ret ? ret : -EBADF;
	return umad_file_read(portid, mad, sizeof(*mad) + (size_t)length);
}

int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
	struct ib_user_mad *mad = umad;
	ssize_t n;

	DEBUG("fd %d timeout %d", portid, timeout_ms);
	n = receive(portid, mad, *length, 0); /* the common case: one call of the system less */
	if (n == -EAGAIN && timeout_ms)
		n = receive(portid, mad, *length, timeout_ms);
	if (n >= 0) {
		*length = (int)((size_t)n - sizeof(*mad));
		DEBUG("mad received by agent %u length %d", mad->agent_id, *length);
		return (int)mad->agent_id;
	}
	if (n == -EBADF) {
		errno = EINVAL;
		return -EINVAL;
	}
	if (n == -ENOSPC || n == -EINVAL) {
		DEBUG("a record of %u does not fit in %d", mad->length, *length);
		*length = (int)(mad->length - sizeof(*mad));
	}
	errno = (int)-n;
	return (int)n;
}
