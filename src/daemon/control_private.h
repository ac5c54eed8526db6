/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Between the control socket (control.c) and its operations (control_ops.c). */
#ifndef SOFTIB_DAEMON_CONTROL_PRIVATE_H
#define SOFTIB_DAEMON_CONTROL_PRIVATE_H

#include <json-c/json.h>

#include "daemon/control.h"

#define CONTROL_PROTOCOL 1

struct control_client;

/** struct control_request - a parsed request on its way */
struct control_request {
	struct control *control;
	struct control_client *client;
	struct json_object *in;
	struct json_object *out; /* an object: the answer's members go here */
};

/** control_dispatch() - do @req: the answer is in req->out. Return: false
 *  when the answer comes later (control_client_wait() was called) */
bool control_dispatch(struct control_request *req);
/** control_fail() - answer with an error only */
__attribute__((format(printf, 2, 3)))
void control_fail(struct control_request *req, const char *fmt, ...);

/* --- what operations ask of the socket's side --- */
struct rt *control_rt(const struct control *control);
struct fabric *control_fabric(const struct control *control);
const struct control_ops *control_ops(const struct control *control);
mono_t control_started(const struct control *control);
/** control_client_wait() - answer when every cabled port is Active, or
 *  after @timeout_ms (0: never) with an error */
void control_client_wait(struct control_client *client, uint64_t timeout_ms);

/** control_port_inactive() - of the cabled ports from *@node, *@port on, the
 *  first that is not Active. Return: false when there is none */
bool control_port_inactive(struct fabric *fab, int *node, int *port);
/** control_wait_done() - the answer of a wait that ends; @in_time or not */
struct json_object *control_wait_done(struct fabric *fab, bool in_time);

#endif
