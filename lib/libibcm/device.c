/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Devices, ids, and the exchange of commands with softibd. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "abi/endpoint.h"
#include "abi/hint.h"
#include "cm_private.h"
#include "libibverbs/expect.h"

int cm_result(ssize_t ret)
{
	if (ret >= 0)
		return 0;
	errno = (int)-ret;
	return -1;
}

/* --- devices --- */

/* Return: the socket of events; -errno. @control: set to that of commands */
static int connect_to(const char *name, int *control)
{
	const char *dir = getenv(ABI_ENV_DIR);
	int fd, ret;

	if (!dir) {
		abi_say_no_fabric("libibcm");
		return -ENODEV;
	}
	fd = abi_endpoint_connect(dir, "ucm");
	if (fd < 0)
		return fd;
	ret = abi_endpoint_open(fd, ABI_OPEN_UCM, name, control, 1);
	if (!ret && *control < 0)
		ret = -EPROTO;
	if (!ret)
		return fd;
	if (*control >= 0)
		close(*control);
	close(fd);
	return ret;
}

struct ib_cm_device *ib_cm_open_device(struct ibv_context *device_context)
{
	struct cm_device *device = calloc(1, sizeof(*device));
	int control = -1, fd = device ? connect_to(device_context->device->name, &control) : -ENOMEM;

	if (fd < 0) {
		free(device);
		errno = -fd;
		return NULL;
	}
	device->ib.device_context = device_context;
	device->ib.fd = fd;
	device->control = control;
	pthread_mutex_init(&device->lock, NULL);
	pthread_mutex_init(&device->events_lock, NULL);
	pthread_mutex_init(&device->requests_lock, NULL);
	INIT_LIST_HEAD(&device->requests);
	return &device->ib;
}

void ib_cm_close_device(struct ib_cm_device *ib_device)
{
	struct cm_device *device = cm_device_of(ib_device);

	close(device->control);
	close(device->ib.fd);
	pthread_mutex_destroy(&device->lock);
	pthread_mutex_destroy(&device->events_lock);
	pthread_mutex_destroy(&device->requests_lock);
	free(device);
}

/* --- commands --- */

ssize_t cm_command(struct ib_cm_device *ib_device, uint32_t command, const void *cmd, size_t bytes,
		   const struct iovec *parts, size_t num, void *response, size_t room)
{
	const struct ib_ucm_cmd_hdr hdr = {.cmd = command, .in = (uint16_t)bytes, .out = (uint16_t)room};
	struct iovec all[2 + CM_PARTS_MAX] = {{(void *)&hdr, sizeof(hdr)}, {(void *)cmd, bytes}};
	struct cm_device *device = cm_device_of(ib_device);
	ssize_t n;

	for (size_t i = 0; i < num; i++)
		all[2 + i] = parts[i];
	if (softib_tell_now) /* softibd knows the queue pairs that the messages name */
		softib_tell_now();
	pthread_mutex_lock(&device->lock);
	n = abi_exchange(device->control, all, 2 + num, response, room);
	pthread_mutex_unlock(&device->lock);
	return n;
}

/* --- ids --- */

struct cm_id *cm_id_alloc(struct ib_cm_device *device, void *context, uint32_t handle)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->ib.device = device;
	id->ib.context = context;
	id->ib.handle = handle;
	INIT_LIST_HEAD(&id->node);
	pthread_mutex_init(&id->lock, NULL);
	pthread_cond_init(&id->acked, NULL);
	return id;
}

static void free_id(struct cm_id *id)
{
	struct cm_device *device = cm_device_of(id->ib.device);

	pthread_mutex_lock(&device->requests_lock);
	list_del(&id->node);
	pthread_mutex_unlock(&device->requests_lock);
	pthread_mutex_destroy(&id->lock);
	pthread_cond_destroy(&id->acked);
	free(id);
}

struct cm_id *cm_id_of_request(struct ib_cm_device *ib_device, uint32_t handle)
{
	struct cm_device *device = cm_device_of(ib_device);
	struct cm_id *id, *found = NULL;

	pthread_mutex_lock(&device->requests_lock);
	list_for_each_entry(id, &device->requests, node)
		if (id->ib.handle == handle)
			found = id;
	pthread_mutex_unlock(&device->requests_lock);
	return found;
}

int ib_cm_create_id(struct ib_cm_device *device, struct ib_cm_id **cm_id, void *context)
{
	struct cm_id *id = cm_id_alloc(device, context, 0);
	const struct ib_ucm_create_id cmd = {.uid = (uintptr_t)id};
	struct ib_ucm_create_id_resp resp;
	ssize_t n;

	if (!id)
		return cm_result(-ENOMEM);
	n = cm_command(device, IB_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), NULL, 0, &resp, sizeof(resp));
	if (n >= 0 && n != sizeof(resp))
		n = -EPROTO;
	if (n < 0) {
		free_id(id);
		return cm_result(n);
	}
	id->ib.handle = resp.id;
	*cm_id = &id->ib;
	return 0;
}

/* Announcements of events that are gone: those that another thread has read, it asks about in vain. */
static void take_back(struct ib_cm_device *device, uint32_t excess)
{
	char byte;

	while (excess-- && recv(device->fd, &byte, 1, MSG_DONTWAIT) == 1)
		;
}

int ib_cm_destroy_id(struct ib_cm_id *cm_id)
{
	const struct ib_ucm_destroy_id cmd = {.id = cm_id->handle};
	struct cm_id *id = cm_id_of(cm_id);
	struct abi_ucm_gone gone;
	ssize_t n = cm_command(cm_id->device, IB_USER_CM_CMD_DESTROY_ID, &cmd, sizeof(cmd), NULL, 0, &gone,
			       sizeof(gone));

	if (n >= 0 && n != sizeof(gone))
		n = -EPROTO;
	if (n < 0)
		return cm_result(n);
	take_back(cm_id->device, gone.excess);
	pthread_mutex_lock(&id->lock);
	while (id->events_acked < gone.events_reported)
		pthread_cond_wait(&id->acked, &id->lock);
	pthread_mutex_unlock(&id->lock);
	free_id(id);
	return 0;
}

int ib_cm_attr_id(struct ib_cm_id *cm_id, struct ib_cm_attr_param *param)
{
	const struct ib_ucm_attr_id cmd = {.id = cm_id->handle};
	struct ib_ucm_attr_id_resp resp;
	ssize_t n;

	if (!param)
		return cm_result(-EINVAL);
	n = cm_command(cm_id->device, IB_USER_CM_CMD_ATTR_ID, &cmd, sizeof(cmd), NULL, 0, &resp, sizeof(resp));
	if (n != sizeof(resp))
		return cm_result(n < 0 ? n : -EPROTO);
	*param = (struct ib_cm_attr_param){
		.service_id = resp.service_id,
		.service_mask = resp.service_mask,
		.local_id = resp.local_id,
		.remote_id = resp.remote_id,
	};
	return 0;
}

/* librdmacm and the users of libibverbs' marshall.c declare it themselves: Debian's headers do not */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);

int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	struct ib_ucm_init_qp_attr cmd = {.id = cm_id->handle};
	struct ib_uverbs_qp_attr resp;
	ssize_t n;

	if (!qp_attr || !qp_attr_mask)
		return cm_result(-EINVAL);
	cmd.qp_state = qp_attr->qp_state;
	n = cm_command(cm_id->device, IB_USER_CM_CMD_INIT_QP_ATTR, &cmd, sizeof(cmd), NULL, 0, &resp, sizeof(resp));
	if (n != sizeof(resp))
		return cm_result(n < 0 ? n : -EPROTO);
	*qp_attr_mask = (int)resp.qp_attr_mask;
	ibv_copy_qp_attr_from_kern(qp_attr, &resp);
	return 0;
}

int ib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id, __be64 service_mask)
{
	const struct ib_ucm_listen cmd = {.service_id = service_id, .service_mask = service_mask, .id = cm_id->handle};

	return cm_result(cm_command(cm_id->device, IB_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), NULL, 0, NULL, 0));
}

int ib_cm_notify(struct ib_cm_id *cm_id, enum ibv_event_type event)
{
	const struct ib_ucm_notify cmd = {.id = cm_id->handle, .event = event};

	return cm_result(cm_command(cm_id->device, IB_USER_CM_CMD_NOTIFY, &cmd, sizeof(cmd), NULL, 0, NULL, 0));
}
