/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libibumad: the user MAD interface of <infiniband/umad.h> spoken to softibd
 * instead of to /dev/infiniband/umadN and /sys/class/infiniband.
 *
 *  session.c  the conversation: opening messages, requests and answers
 *  file.c     the device file of a port
 *  port.c     an open port: agents, sending, receiving
 *  device.c   devices, ports and their attributes
 *  mad.c      the fields of a struct ib_user_mad, and how it prints
 *  str.c      names of classes, methods, attributes and status values
 */
#ifndef SOFTIB_UMAD_PRIVATE_H
#define SOFTIB_UMAD_PRIVATE_H

#include <stdio.h>
#include <unistd.h>

#include "abi/session.h"
#include "base/types.h"

/* the published names, and only they, leave this library */
#pragma GCC visibility push(default)
#include <infiniband/umad.h>
#include <infiniband/umad_str.h>
#pragma GCC visibility pop

/** umad_debug_level - as umad_debug() set it; 0 is silent */
extern int umad_debug_level;

#define DEBUG(fmt, ...)                                                        \
	do {                                                                   \
		if (umad_debug_level)                                          \
			fprintf(stderr, "ibwarn: [%d] %s: " fmt "\n",          \
				(int)getpid(), __func__, ##__VA_ARGS__);       \
	} while (0)

/**
 * umad_session_list() - the devices of this program's node
 * @list: set to an array that the caller frees; NULL when there is none
 * Return: their number: 0 when SOFTIB_DIR is not set; -errno
 */
int umad_session_list(struct abi_device_info **list);

/** umad_session_port() - attributes of a port, now. Return: 0; -errno */
int umad_session_port(const char *device, int port, struct abi_port_info *info);

/**
 * umad_session_open() - open the umad file of a port
 * @control: set to the socket that takes what would be ioctls
 * Return: the data socket, not blocking; -errno
 */
int umad_session_open(const char *device, int port, int *control);

/**
 * umad_session_ioctl() - one request on a control socket
 * @arg: the argument, overwritten by the answer's
 * Return: 0; -errno as ioctl(2) of the umad device would fail
 */
int umad_session_ioctl(int control, unsigned int request, void *arg, size_t bytes);

/** umad_session_ask_for_ring() - ABI_UMAD_TOLD_RING. @fds: set to ABI_TOLD_FDS descriptors, or -1
 *  Return: 0; -EEXIST: there is a ring, and softibd has run it; -errno */
int umad_session_ask_for_ring(int control, int *fds);

/**
 * umad_file_open() - open the device file of a port
 * Return: its descriptor, not blocking; -errno
 */
int umad_file_open(const char *device, int port);

/** umad_file_close() - Return: 0; -EBADF: @fd is not that of a device file, and stays open */
int umad_file_close(int fd);

/**
 * umad_file_ioctl() - as ioctl(2) of the device file
 * @bytes: of @arg, which the answer overwrites
 * Return: 0; -EBADF: @fd is not that of a device file; -errno
 */
int umad_file_ioctl(int fd, unsigned int request, void *arg, size_t bytes);

/**
 * umad_file_write() - as write(2) of the device file: send a record, struct ib_user_mad and
 * the MAD, @bytes in all. It waits while softibd has no room.
 * Return: 0; -EBADF: @fd is not that of a device file; -errno
 */
int umad_file_write(int fd, const struct ib_user_mad *mad, size_t bytes);

/**
 * umad_file_read() - as read(2) of the device file: receive a record
 * @bytes: room in @mad. A record that needs more stays the first of the queue; its header is
 *	   copied, and with room for one MAD the first MAD
 * Return: bytes of the record; -EBADF: @fd is not that of a device file; -ENOSPC: no room
 * for the whole record; -EINVAL: not even for the first MAD; -EAGAIN; -errno
 * Spec: Documentation/infiniband/user_mad.rst
 */
ssize_t umad_file_read(int fd, struct ib_user_mad *mad, size_t bytes);

/** umad_session_dir() - the runtime directory; NULL when there is no fabric */
const char *umad_session_dir(void);

/**
 * umad_resolve_port() - choose what the caller left open
 * @ca_name: the caller's; NULL: any device
 * @name: room for UMAD_CA_NAME_LEN bytes: the device's name
 * @port: in: a port number or 0 for any; out: the port chosen. NULL: only a
 *	  device is looked for
 * An active port is preferred to one that is coming up, that to any other.
 * Return: 0; -ENODEV nothing fits
 */
int umad_resolve_port(const char *ca_name, char *name, int *port);

#endif
