/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The interfaces that a node has beside those of its plan: one for each further partition
 * of a port, named as Linux names them ("ib0.8001"). Each is made in the node's network
 * namespace, which this process enters in a child.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "netdev.h"
#include "node_namespaces.h"
#include "wire/packet.h"

/* Return: the plan's row of addresses for port @port of the node, a part of *@answer;
 * NULL (printed) */
static struct json_object *planned(const struct node_place *at, unsigned port,
				   struct json_object **answer)
{
	struct json_object *req = request("nodes"), *list;

	request_text(req, "node", at->node);
	*answer = client_call(at->dir, req);
	list = member_of(item_of(member_of(*answer, "nodes"), 0), "addresses");
	for (size_t i = 0; i < count_of(list); i++)
		if (number_of(item_of(list, i), "port") == port &&
		    !strcmp(text_of(item_of(list, i), "adapter"), at->adapter))
			return item_of(list, i);
	if (*answer)
		complain("%s has no port %u", at->adapter, port);
	return NULL;
}

/* Return: 0; -1 (printed) */
static int create(const struct node_child *child, const char *interface,
		  const char *link_local)
{
	int error = netdev_ipoib(child->at, child->at->adapter, child->port, child->pkey, interface);

	if (!error)
		error = node_add_address(interface, link_local);
	if (error == -EBUSY)
		complain("%s has an interface %s already", child->at->node, interface);
	else if (error && error != -EPROTO)
		complain("cannot make %s on %s: %s", interface, child->at->node,
			 strerror(-error));
	return error ? -1 : 0;
}

/* softibd forgets it first, so that it is gone when this returns. Return: 0; -1 (printed) */
static int delete (const struct node_child *child, const char *interface)
{
	struct json_object *req = request("ipoib_close"), *answer;
	int error;

	request_text(req, "node", child->at->adapter);
	request_number(req, "port", child->port);
	request_number(req, "pkey", child->pkey);
	answer = client_call(child->at->dir, req);
	if (!answer)
		return -1;
	json_object_put(answer);
	error = netdev_delete(interface);
	if (error)
		complain("cannot delete %s on %s: %s", interface, child->at->node,
			 strerror(-error));
	return error ? -1 : 0;
}

/* Return: 0; -1 (printed) */
static int set_mode(const struct node_child *child, const char *mode)
{
	struct json_object *req = request("ipoib_mode"), *answer;

	request_text(req, "node", child->at->adapter);
	request_number(req, "port", child->port);
	request_number(req, "pkey", child->pkey);
	request_text(req, "mode", mode);
	answer = client_call(child->at->dir, req);
	json_object_put(answer);
	return answer ? 0 : -1;
}

/* Return: 0; -1 (printed) */
static int perform(const struct node_child *child, enum node_child_action action,
		   const char *interface, const char *link_local)
{
	switch (action) {
	case NODE_CHILD_CREATE:
		return create(child, interface, link_local);
	case NODE_CHILD_DELETE:
		return delete (child, interface);
	case NODE_CHILD_CONNECTED:
		return set_mode(child, "connected");
	case NODE_CHILD_DATAGRAM:
		return set_mode(child, "datagram");
	}
	return -1;
}

/* in a child process, which ends: it enters the node. Return: exit status (printed) */
static int act_there(const struct node_child *child, enum node_child_action action,
		     struct json_object *row)
{
	char interface[32];

	node_child_name(interface, text_of(row, "interface"), child->pkey);
	if (node_enter(child->at) ||
	    perform(child, action, interface, text_of(row, "link_local")))
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}

void node_child_name(char name[32], const char *parent, unsigned pkey)
{
	if (pkey == WIRE_PKEY_DEFAULT)
		snprintf(name, 32, "%.16s", parent);
	else
		snprintf(name, 32, "%.16s.%04x", parent, pkey);
}

int node_child_act(const struct node_child *child, enum node_child_action action)
{
	struct json_object *answer, *row = planned(child->at, child->port, &answer);
	int status = -1;
	pid_t pid = row ? fork() : -1;

	if (!pid)
		_exit(act_there(child, action, row));
	if (row && pid < 0)
		complain("cannot start a process on %s: %s", child->at->node,
			 strerror(errno));
	if (pid > 0 && waitpid(pid, &status, 0) != pid)
		status = -1;
	json_object_put(answer);
	return status ? -1 : 0;
}
