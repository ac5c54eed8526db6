/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operations cable_add, cable_remove and cables: cables to other softibds. */
#include <string.h>

#include "daemon/cable.h"
#include "daemon/control_private.h"

#define SECRET_MIN 16
#define SECRET_MAX 1024

/* Return: the digit's value; 16: it is none */
static unsigned int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (unsigned int)(at - digits) : 16;
}

/* Read the key of the request. Return: false, after answering with an error */
static bool read_key(struct control_request *req, uint8_t key[CABLE_KEY_BYTES], bool *has_key)
{
	const char *text = control_text(req, "key");
	size_t n = text ? strlen(text) / 2 : 0, good = 0;
	uint8_t secret[SECRET_MAX];

	*has_key = text != NULL;
	if (!text)
		return true;
	while (good < n && n <= SECRET_MAX && hex_digit(text[2 * good]) < 16 && hex_digit(text[2 * good + 1]) < 16) {
		secret[good] = (uint8_t)(hex_digit(text[2 * good]) << 4 | hex_digit(text[2 * good + 1]));
		good++;
	}
	if (good < n || n < SECRET_MIN || text[2 * n]) {
		control_fail(req, "\"key\" has to be %d to %d bytes, as hexadecimal digits", SECRET_MIN, SECRET_MAX);
		return false;
	}
	cable_key_of(secret, n, key);
	return true;
}

static struct cables *cables_of(const struct control_request *req)
{
	return control_ops(req->control)->cables;
}

/* Return: false, after answering with an error */
static bool may(struct control_request *req)
{
	if (!cables_of(req))
		control_fail(req, "this fabric has no cables that leave it");
	else if (!control_client_is_owner(req->client))
		control_fail(req, "only the user who has started the fabric may plug cables that leave it");
	else
		return true;
	return false;
}

bool control_op_cable_add(struct control_request *req)
{
	struct cable_request cable = {0};
	const char *listen = control_text(req, "listen"), *connect = control_text(req, "connect");
	uint8_t key[CABLE_KEY_BYTES];
	char err[CABLE_ERROR_BYTES];
	bool has_key;

	if (!may(req) || !control_port(req, &cable.node, &cable.port) || !read_key(req, key, &has_key))
		return true;
	if (!listen == !connect) {
		control_fail(req, "one of \"listen\" and \"connect\" is required, with an address");
		return true;
	}
	cable.listens = listen != NULL;
	cable.address = listen ? listen : connect;
	cable.key = has_key ? key : NULL;
	if (cables_add(cables_of(req), &cable, err))
		control_fail(req, "%s:%d: %s", control_topology(req)->node[cable.node].name, cable.port, err);
	return true;
}

bool control_op_cable_remove(struct control_request *req)
{
	int node, port;

	if (!may(req) || !control_port(req, &node, &port))
		return true;
	if (cables_remove(cables_of(req), node, port))
		control_fail(req, "%s:%d has no cable that leaves the fabric; 'softib cable' lists them",
			     control_topology(req)->node[node].name, port);
	return true;
}

static struct json_object *cable_json(struct control_request *req, const struct cable_status *status)
{
	struct json_object *o = json_object_new_object();
	const struct ag_node *node = fab_node(control_fabric(req->control), status->node);

	control_put_text(o, "node", control_topology(req)->node[status->node].name);
	control_put_number(o, "port", (uint64_t)status->port);
	control_put_text(o, status->listens ? "listen" : "connect", status->address);
	control_put_bool(o, "key", status->has_key);
	control_put_bool(o, "connected", status->connected);
	control_put_text(o, "peer", status->far);
	control_put_text(o, "state", control_state_name(node->port[status->port].state));
	control_put_text(o, "reason", status->error);
	control_put_number(o, "packets_sent", status->packets_sent);
	control_put_number(o, "packets_received", status->packets_received);
	control_put_number(o, "bytes_sent", status->bytes_sent);
	control_put_number(o, "bytes_received", status->bytes_received);
	control_put_number(o, "waits", status->waits);
	control_put_number(o, "discarded", status->discarded);
	control_put_bool(o, "ethernet", status->is_ethernet);
	if (status->is_ethernet) {
		control_put_number(o, "malformed", status->malformed);
		control_put_number(o, "spoofed", status->spoofed);
	}
	return o;
}

const char *control_outside(const struct control_request *req, int node, int port)
{
	struct cable_status status;

	for (unsigned int i = 0; cables_of(req) && cables_get(cables_of(req), i, &status); i++)
		if (status.node == node && status.port == port)
			return *status.far ? status.far : CONTROL_OUTSIDE;
	return NULL;
}

bool control_op_cables(struct control_request *req)
{
	struct json_object *list = control_put_list(req->out, "cables");
	struct cable_status status;

	for (unsigned int i = 0; cables_of(req) && cables_get(cables_of(req), i, &status); i++)
		json_object_array_add(list, cable_json(req, &status));
	return true;
}
