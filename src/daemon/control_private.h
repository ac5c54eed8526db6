/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The interface between the control socket (control.c) and its operations (control_ops.c
 * and those that it lists). */
#ifndef SOFTIB_DAEMON_CONTROL_PRIVATE_H
#define SOFTIB_DAEMON_CONTROL_PRIVATE_H

#include <json-c/json.h>

#include "daemon/control.h"
#include "rdma/restrack.h"

#define CONTROL_PROTOCOL 1
#define CONTROL_OUTSIDE  "outside" /* the name of the far end of a cable that leaves the fabric */

#define CONTROL_FDS	 5 /* the largest number of descriptors of a message */

struct control_client;
struct reader;
struct trace;

/** struct control_lease - an activity that a request has started, and that ends with its connection */
struct control_lease {
	void (*end)(struct control_lease *lease);
};

/** struct control_request - a parsed request */
struct control_request {
	struct control *control;
	struct control_client *client;
	struct json_object *in;
	struct json_object *out; /* an object, to which the members of the answer are added */
	int fd[CONTROL_FDS];	 /* descriptors that came with the request, or -1. An operation that
				  * keeps one sets it to -1; the others are closed afterwards */
};

/** control_dispatch() - perform @req and put the answer into req->out
 *  Return: false if the answer comes later (control_client_wait() or
 *  control_client_later() was called) */
bool control_dispatch(struct control_request *req);

/* --- functions of the socket for operations --- */
struct rt *control_rt(const struct control *control);
struct fabric *control_fabric(const struct control *control);
const struct control_ops *control_ops(const struct control *control);
struct control_namespaces *control_namespaces(const struct control *control);
mono_t control_started(const struct control *control);
struct trace *control_trace(const struct control *control);
/** control_client_wait() - answer when every cabled port is Active, or with an
 *  error after @timeout_ms (0: no time-out) */
void control_client_wait(struct control_client *client, uint64_t timeout_ms);

/** struct control_later - an operation that answers later; @drop is called if the
 *  connection ends before that */
struct control_later {
	void (*drop)(struct control_later *later);
};

/** control_client_later() - announce that control_client_answer() will be called */
void control_client_later(struct control_client *client, struct control_later *later);
/** control_client_answer() - send the answer that was announced by control_client_later(); the
 *  caller keeps
 *  @out
 *  Return: false if the client was closed */
bool control_client_answer(struct control_client *client, struct json_object *out);

/** control_client_is_owner() - does the client run as softibd's own user? Root does not
 *  count. */
bool control_client_is_owner(const struct control_client *client);

/** control_client_pass() - send the @n descriptors @fd with the answer, then close them */
void control_client_pass(struct control_client *client, const int *fd, int n);

/** control_client_lease() - call @lease->end when the connection ends */
void control_client_lease(struct control_client *client, struct control_lease *lease);

bool control_client_holds(const struct control_client *client);

/* --- readers (control_reader.c) --- */

/** struct control_ring - the sizes in bytes that the ring of a reader may have
 *  @least: a power of two; @usual: the default; @most: the largest size that a request may name */
struct control_ring {
	uint32_t least, usual, most;
};

/** control_may_read() - has the connection no reader yet? Return: false, with an error */
bool control_may_read(struct control_request *req);
/** control_ring_bytes() - get the size of the ring from the request, and round it up to a power of
 *  two
 *  Return: false, after answering with an error: it is invalid */
bool control_ring_bytes(struct control_request *req, const struct control_ring *limits,
			uint32_t *ring_bytes);
/** control_pass_reader() - pass @reader's descriptors with the answer, and stop it when the
 *  connection ends. Return: 0; -ENOMEM, -EMFILE, and @reader has been stopped */
int control_pass_reader(struct control_request *req, struct reader *reader);

/* --- control_message.c --- */
/** control_parse() - parse a JSON object. Return: owned by the caller; NULL and *@why */
struct json_object *control_parse(const char *text, size_t bytes, const char **why);
/** control_memfd() - create a memfd with the contents @text. Return: descriptor; -errno */
int control_memfd(const char *text, size_t bytes);
/** control_send() - send a message
 *  @pass_fd: CONTROL_FDS descriptors to pass, -1 none; may be NULL
 *  Return: 0; -EAGAIN the socket is full; -errno the client has disconnected */
int control_send(int fd, const char *text, size_t bytes, const int *pass_fd);

/* --- control_members.c --- */
/** control_fail() - answer with an error only */
__attribute__((format(printf, 2, 3)))
void control_fail(struct control_request *req, const char *fmt, ...);
/** control_put_*() - add a member to the answer, or to an object in it */
void control_put_text(struct json_object *o, const char *key, const char *text);
void control_put_number(struct json_object *o, const char *key, uint64_t n);
void control_put_bool(struct json_object *o, const char *key, bool value);
void control_put_hex(struct json_object *o, const char *key, uint64_t n, int digits);
/** control_put_list() - Return: a new list, which is added to @o as member @key */
struct json_object *control_put_list(struct json_object *o, const char *key);
/** control_flag() - is the member @key of the request true? */
bool control_flag(struct control_request *req, const char *key);
/** control_text() - Return: the text @key of the request; NULL: it is absent */
const char *control_text(struct control_request *req, const char *key);
/** control_number() - Return: an integer in 0..@most; -1: it is absent; -2, after answering with an
 *  error: it is invalid */
int64_t control_number(struct control_request *req, const char *key, int64_t most);
/** control_node() - Return: the index of the node in the member "node"; -1: it is absent; -2, after
 *  answering with an error: there is no such node */
int control_node(struct control_request *req);
/** control_node_of() - the same for another member */
int control_node_of(struct control_request *req, const char *key);
/** control_concerns() - does a request for @node (-1: all nodes) include node @i? With the flag
 *  "host" it includes all adapters of the host that @node is in */
bool control_concerns(struct control_request *req, int node, int i);
/** control_device() - Return: the device of adapter @node; NULL: it is a switch, or it is unplugged */
struct ib_device *control_device(struct control_request *req, int node);
/** control_port() - get "node" and "port", both of which are required. Return: false, after
 *  answering with an error: they do not exist */
bool control_port(struct control_request *req, int *node, int *port);
/** control_adapter_port() - the same for the port of an adapter, which has to be plugged in
 *  Return: false, after answering with an error */
bool control_adapter_port(struct control_request *req, struct ib_device **device, u32 *port);
/** control_topology() - the topology of the fabric */
const struct topology *control_topology(struct control_request *req);

/* --- control_core.c: the midlayer's resource tracking --- */
/** struct control_resource - one object of a program or of softibd */
struct control_resource {
	int node;		   /* index in the topology */
	const char *device, *type; /* "softib0"; "pd", "cq", "qp", ... */
	uint32_t id;		   /* unique per device and type */
	uint32_t qpn;		   /* of a "qp" */
	int pid;		   /* the owner's process; 0: softibd itself */
	const char *comm;	   /* the owner's name */
	char details[RDMA_RESTRACK_TEXT_BYTES]; /* the state of the object */
};

struct control_walk;

/** control_walk_begin() - begin to iterate over the objects of node @node, or of all nodes
 *  if -1. Objects may be created and destroyed meanwhile.
 *  Return: owned by the caller, until control_walk_end(); NULL no memory */
struct control_walk *control_walk_begin(const struct fabric *fab, int node);
void control_walk_end(struct control_walk *walk);
/** control_walk_next() - Return: false at the end; *@res is valid until objects change */
bool control_walk_next(struct control_walk *walk, struct control_resource *res);
/** control_num_resources() - Return: the number of objects of all nodes */
uint64_t control_num_resources(const struct fabric *fab);
/** control_client_walk() - Return: the place where @client keeps its walk between two requests. The
 *  walk ends with the connection */
struct control_walk **control_client_walk(struct control_client *client);

/* --- operations in files of their own --- */
/** control_op_topo(), control_op_nodes() - control_topo.c */
bool control_op_topo(struct control_request *req);
bool control_op_nodes(struct control_request *req);
/** control_node_name() - of a node of the topology, or of the far end of a cable that leaves the fabric
 *  control_has_cable() - has the port a cable, be it one that leaves the fabric? (control_topo.c) */
const char *control_node_name(const struct fabric *fab, int node);
bool control_has_cable(const struct fabric *fab, int node, int port);
/** control_state_name() - "Active" for WIRE_PORT_ACTIVE (control_topo.c) */
const char *control_state_name(unsigned state);
/** control_op_path() - control_path.c */
bool control_op_path(struct control_request *req);
/** control_op_capture() - the operation "capture" (control_capture.c) */
bool control_op_capture(struct control_request *req);

/** control_op_trace(), control_op_trace_points() - control_trace.c */
bool control_op_trace(struct control_request *req);
bool control_op_trace_points(struct control_request *req);
/** control_op_trace_provide() - control_trace_program.c */
bool control_op_trace_provide(struct control_request *req);

/** control_op_namespaces(), control_op_hold_namespaces() - control_namespaces.c */
bool control_op_namespaces(struct control_request *req);
bool control_op_hold_namespaces(struct control_request *req);

/** struct control_namespaces - descriptors of the namespaces of all nodes
 *  control_namespaces_create() - Return: owned by the caller; NULL no memory */
struct control_namespaces *control_namespaces_create(void);
void control_namespaces_destroy(struct control_namespaces *ns);
/** control_namespaces_network() - the inode of the network namespace of the node with
 *  this index in the topology; 0: it has none */
uint64_t control_namespaces_network(const struct control_namespaces *ns, int index);

/** control_op_eth_open(), control_op_eth() - the operations on Ethernet interfaces (control_eth.c) */
bool control_op_eth_open(struct control_request *req);
bool control_op_eth(struct control_request *req);
/** control_op_ipoib_*() - the operations on IP interfaces (control_ipoib.c) */
bool control_op_ipoib_open(struct control_request *req);
bool control_op_ipoib_close(struct control_request *req);
bool control_op_ipoib_mode(struct control_request *req);
bool control_op_ipoib_moderation(struct control_request *req);
bool control_op_ipoib(struct control_request *req);

/** control_op_srp_*() - the operations on SRP targets (control_srpt.c) */
bool control_op_srp_unit_add(struct control_request *req);
bool control_op_srp_unit_remove(struct control_request *req);
bool control_op_srp_targets(struct control_request *req);
/** ... and on SRP initiators (control_srp.c) */
bool control_op_srp_discover(struct control_request *req);
bool control_op_srp_login(struct control_request *req);
bool control_op_srp_logout(struct control_request *req);
bool control_op_srp_sessions(struct control_request *req);

/** control_op_sdp_move() - move the connections of a node (control_protocols.c) */
bool control_op_sdp_move(struct control_request *req);

/** control_protocols() - Return: the numbers of objects of the upper-level protocols
 *  (control_protocols.c) */
struct json_object *control_protocols(struct control_request *req);

/** control_op_module_load() ... - control_modules.c */
bool control_op_module_load(struct control_request *req);
bool control_op_module_unload(struct control_request *req);
bool control_op_modules(struct control_request *req);

/** control_op_cable_add() ... - cables that leave the fabric (control_cable.c) */
bool control_op_cable_add(struct control_request *req);
bool control_op_cable_remove(struct control_request *req);
bool control_op_cables(struct control_request *req);
/** control_outside() - Return: what a cable at this port leads to that leaves the fabric: the name that the port at its
 *  other end has for itself, CONTROL_OUTSIDE when it is not connected; NULL: there is no such cable */
const char *control_outside(const struct control_request *req, int node, int port);

/** control_op_fault_*() - the operations on faults (control_fault.c) */
bool control_op_fault_add(struct control_request *req);
bool control_op_fault_list(struct control_request *req);
bool control_op_fault_clear(struct control_request *req);
bool control_op_fault_log(struct control_request *req);

/** control_port_inactive() - find the first cabled port that is not Active, from *@node, *@port on.
 *  A cable that a rule has disconnected for a limited time counts as cabled
 *  Return: false if there is none */
bool control_port_inactive(struct fabric *fab, int *node, int *port);
/** control_wait_done() - Return: the answer to a wait. @in_time: it did not time out */
struct json_object *control_wait_done(struct fabric *fab, bool in_time);

#endif
