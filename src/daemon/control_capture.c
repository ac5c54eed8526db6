/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operation "capture": it lasts as long as its connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/capture.h"
#include "daemon/control_private.h"

#define RING_BYTES_MIN 65536

struct held_capture {
	struct control_lease lease;
	struct capture *capture;
};

static void end(struct control_lease *lease)
{
	struct held_capture *held = container_of(lease, struct held_capture, lease);

	capture_stop(held->capture);
	free(held);
}

static bool get_scope(struct control_request *req, struct capture_config *config)
{
	config->port = 0;
	if (json_object_object_get_ex(req->in, "port", NULL))
		return control_port(req, &config->node, &config->port);
	config->node = control_node(req);
	return config->node != -2;
}

static bool get_sizes(struct control_request *req, struct capture_config *config)
{
	int64_t snap = control_number(req, "snap", UINT16_MAX);
	int64_t ring =
		snap == -2 ? -2
			   : control_number(req, "ring_bytes", CAPTURE_RING_BYTES_MAX);

	if (ring == -2)
		return false;
	config->snap_bytes = snap < 0 ? 0 : (uint32_t)snap;
	config->ring_bytes = RING_BYTES_MIN;
	while (config->ring_bytes < (ring < 0 ? CAPTURE_RING_BYTES : ring))
		config->ring_bytes *= 2;
	return true;
}

static bool get_filter(struct control_request *req, struct capture_config *config)
{
	const char *text = control_text(req, "filter");
	char err[512];

	if (!fab_filter_parse(text ? text : "",
			      fab_topology(control_fabric(req->control)), &config->filter,
			      err, sizeof(err)))
		return true;
	control_fail(req, "%s", err);
	return false;
}

/* Return: 0; -errno, and no capture was started */
static int start(struct control_request *req, const struct capture_config *config)
{
	struct held_capture *held = calloc(1, sizeof(*held));
	int fd[2], ret;

	if (!held)
		return -ENOMEM;
	ret = capture_start(control_rt(req->control), control_fabric(req->control),
			    config, &held->capture);
	if (ret) {
		free(held);
		return ret;
	}
	held->lease.end = end;
	ret = capture_dup_fds(held->capture, fd);
	if (ret) {
		end(&held->lease);
		return ret;
	}
	control_client_lease(req->client, &held->lease);
	control_client_pass(req->client, fd, 2);
	return 0;
}

bool control_op_capture(struct control_request *req)
{
	struct capture_config config;
	int ret;

	if (control_client_holds(req->client)) {
		control_fail(req, "this connection has a capture already: open another connection");
		return true;
	}
	if (!get_scope(req, &config) || !get_sizes(req, &config) ||
	    !get_filter(req, &config))
		return true;
	ret = start(req, &config);
	if (ret)
		control_fail(req, "cannot capture: %s", strerror(-ret));
	else
		json_object_object_add(req->out, "ring_bytes",
				       json_object_new_int64(config.ring_bytes));
	return true;
}
