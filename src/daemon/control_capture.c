/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operation "capture": it lasts as long as its connection. */
#include <string.h>

#include "daemon/capture.h"
#include "daemon/control_private.h"

static const struct control_ring ring = {65536, CAPTURE_RING_BYTES, CAPTURE_RING_BYTES_MAX};

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

	config->snap_bytes = snap < 0 ? 0 : (uint32_t)snap;
	return snap != -2 && control_ring_bytes(req, &ring, &config->ring_bytes);
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

bool control_op_capture(struct control_request *req)
{
	struct capture_config config;
	struct reader *reader;
	int ret;

	if (!control_may_read(req) || !get_scope(req, &config) || !get_sizes(req, &config) ||
	    !get_filter(req, &config))
		return true;
	ret = capture_start(control_rt(req->control), control_fabric(req->control), &config,
			    &reader);
	if (!ret)
		ret = control_pass_reader(req, reader);
	if (ret)
		control_fail(req, "cannot capture: %s", strerror(-ret));
	else
		json_object_object_add(req->out, "ring_bytes",
				       json_object_new_int64(config.ring_bytes));
	return true;
}
