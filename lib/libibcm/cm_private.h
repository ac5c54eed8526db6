/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libibcm: the CM of <infiniband/cm.h> spoken to softibd instead of to /dev/infiniband/ucmN.
 *
 *  device.c  devices and ids, and the exchange of commands
 *  send.c    messages of the CM
 *  event.c   events
 */
#ifndef SOFTIB_LIBIBCM_PRIVATE_H
#define SOFTIB_LIBIBCM_PRIVATE_H

#include <pthread.h>
#include <stddef.h>
#include <sys/uio.h>

#include "abi/session.h"
#include "abi/ucm.h"
#include "base/list.h"

/* the published names, and only they, leave this library */
#pragma GCC visibility push(default)
#include <infiniband/cm.h>
#pragma GCC visibility pop

/** struct cm_device - @ib.fd is the socket of events, @control that of commands */
struct cm_device {
	struct ib_cm_device ib;
	int control;
	pthread_mutex_t lock; /* one command at a time on @control */
	/* The id of a request is in @requests before its next event is converted. Taken before the other locks */
	pthread_mutex_t events_lock;
	pthread_mutex_t requests_lock;
	/* --- protected by requests_lock --- */
	struct list_head requests; /* struct cm_id of requests, whose events have no name before the REP */
};

/** struct cm_id - an id. Its address is the name that softibd knows it by
 *  @node: in cm_device.requests, or in no list */
struct cm_id {
	struct ib_cm_id ib;
	struct list_head node;
	pthread_mutex_t lock;
	pthread_cond_t acked;
	/* --- protected by lock --- */
	uint32_t events_acked;
};

static inline struct cm_device *cm_device_of(struct ib_cm_device *device)
{
	return container_of(device, struct cm_device, ib);
}

static inline struct cm_id *cm_id_of(struct ib_cm_id *id)
{
	return container_of(id, struct cm_id, ib);
}

/** cm_result() - Return: what the published functions return: 0; -1, and errno is set, if @ret is -errno */
int cm_result(ssize_t ret);

/**
 * cm_command() - perform a command
 * @command: IB_USER_CM_CMD_...; @cmd: its struct, of @bytes
 * @parts: @num parts that follow it (abi/ucm.h), of at most CM_PARTS_MAX
 * @response: room for @room bytes of response
 * Return: bytes of the response; -errno: the command's own; -ENODEV: softibd is gone; -EPROTO
 */
#define CM_PARTS_MAX 3
ssize_t cm_command(struct ib_cm_device *device, uint32_t command, const void *cmd, size_t bytes,
		   const struct iovec *parts, size_t num, void *response, size_t room);

/** cm_id_alloc() - Return: an id with this number in softibd; NULL: no memory */
struct cm_id *cm_id_alloc(struct ib_cm_device *device, void *context, uint32_t handle);
/** cm_id_of_request() - Return: the id of a request with this number; NULL */
struct cm_id *cm_id_of_request(struct ib_cm_device *device, uint32_t handle);

#endif
