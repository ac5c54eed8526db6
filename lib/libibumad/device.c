/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Devices and ports: what the original reads from /sys/class/infiniband is
 * asked of softibd, each time anew, so that callers see live values.
 */
#include <errno.h>
#include <string.h>

#include "umad_private.h"

int umad_init(void)
{
	return 0;
}

int umad_done(void)
{
	return 0;
}

static bool is_infiniband(const struct abi_port_info *info)
{
	return info->link_layer == 1;
}

/* how good a port is as a default: the higher the better; < 0 not at all. One of Ethernet
 * has no subnet management, which this library is for */
static int port_rank(const char *device, int port)
{
	struct abi_port_info info;

	if (umad_session_port(device, port, &info) || !is_infiniband(&info))
		return -1;
	if (info.state == 4) /* Active */
		return 3;
	if (info.state == 2 || info.state == 3) /* Init, Armed */
		return 2;
	return info.phys_state != 3; /* Disabled */
}

struct candidate {
	const char *device;
	int port, rank;
};

static void consider_device(const struct abi_device_info *dev, int wanted_port,
			    struct candidate *best)
{
	for (int p = 1; p <= (int)dev->num_ports; p++) {
		int rank;

		if (wanted_port && p != wanted_port)
			continue;
		rank = port_rank(dev->name, p);
		if (rank > best->rank)
			*best = (struct candidate){dev->name, p, rank};
	}
}

static bool name_fits(const char *name)
{
	return strlen(name) < UMAD_CA_NAME_LEN;
}

int umad_resolve_port(const char *ca_name, char *name, int *port)
{
	struct candidate best = {.rank = -1};
	struct abi_device_info *list;
	int n = umad_session_list(&list), any = 0;

	for (int i = 0; i < n && best.rank < 3; i++) {
		if ((ca_name && strcmp(ca_name, list[i].name)) || !name_fits(list[i].name))
			continue;
		if (!ca_name || (port && !*port))
			consider_device(&list[i], port ? *port : any, &best);
		else if (!port || (*port > 0 && *port <= (int)list[i].num_ports))
			best = (struct candidate){list[i].name, port ? *port : 0, 3};
	}
	if (best.rank >= 0) {
		strcpy(name, best.device);
		if (port)
			*port = best.port;
	}
	free(list);
	DEBUG("ca %s port %d: rank %d", ca_name ? ca_name : "(any)", port ? *port : 0, best.rank);
	return best.rank >= 0 ? 0 : -ENODEV;
}

/* PortInfo's LinkWidthActive and LinkSpeedActive, in whole Gb/s, rounded
 * down as the original does when it reads "2.5 Gb/sec" */
static unsigned int port_rate(const struct abi_port_info *info)
{
	static const struct {
		uint16_t speed_enc, tenths;
	} speeds[] = {{1, 25}, {2, 50}, {4, 100}, {8, 100}, {16, 140},
		      {32, 250}, {64, 500}, {128, 1000}};
	static const struct {
		uint8_t width_enc, lanes;
	} widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
	unsigned int tenths = 25, lanes = 1;

	for (size_t i = 0; i < ARRAY_SIZE(speeds); i++)
		if (speeds[i].speed_enc == info->speed_enc)
			tenths = speeds[i].tenths;
	for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
		if (widths[i].width_enc == info->width_enc)
			lanes = widths[i].lanes;
	return tenths * lanes / 10;
}

static int fill_port(const char *name, int portnum, umad_port_t *port)
{
	struct abi_port_info info;
	int ret = umad_session_port(name, portnum, &info);

	if (ret)
		return ret;
	memset(port, 0, sizeof(*port));
	strcpy(port->ca_name, name);
	port->portnum = portnum;
	port->base_lid = info.lid;
	port->lmc = info.lmc;
	port->sm_lid = info.sm_lid;
	port->sm_sl = info.sm_sl;
	port->state = info.state;
	port->phys_state = info.phys_state;
	port->rate = port_rate(&info);
	port->capmask = htobe32(info.cap_mask);
	memcpy(&port->gid_prefix, info.gid, 8);
	memcpy(&port->port_guid, info.gid + 8, 8);
	strcpy(port->link_layer, is_infiniband(&info) ? "InfiniBand" : "Ethernet");
	port->pkeys = calloc(info.num_pkeys ? info.num_pkeys : 1, sizeof(*port->pkeys));
	if (!port->pkeys)
		return -ENOMEM;
	port->pkeys_size = info.num_pkeys;
	memcpy(port->pkeys, info.pkey, info.num_pkeys * sizeof(*port->pkeys));
	return 0;
}

static int fail(int error)
{
	errno = -error;
	return error;
}

int umad_get_port(const char *ca_name, int portnum, umad_port_t *port)
{
	char name[UMAD_CA_NAME_LEN];
	int ret;

	DEBUG("ca_name %s portnum %d", ca_name ? ca_name : "(any)", portnum);
	if (umad_resolve_port(ca_name, name, &portnum))
		return fail(-ENODEV);
	ret = fill_port(name, portnum, port);
	return ret ? fail(ret) : 0;
}

int umad_release_port(umad_port_t *port)
{
	free(port->pkeys);
	port->pkeys = NULL;
	port->pkeys_size = 0;
	return 0;
}

int umad_release_ca(umad_ca_t *ca)
{
	for (int i = 0; i < UMAD_CA_MAX_PORTS; i++) {
		if (!ca->ports[i])
			continue;
		umad_release_port(ca->ports[i]);
		free(ca->ports[i]);
		ca->ports[i] = NULL;
	}
	return 0;
}

static int fill_ca(const struct abi_device_info *dev, umad_ca_t *ca)
{
	int ret = 0;

	memset(ca, 0, sizeof(*ca));
	strcpy(ca->ca_name, dev->name);
	ca->node_type = 1; /* NodeInfo: a channel adapter */
	ca->numports = (int)dev->num_ports;
	snprintf(ca->fw_ver, sizeof(ca->fw_ver), "%.19s", dev->fw_ver);
	snprintf(ca->ca_type, sizeof(ca->ca_type), "%.39s", dev->board_id);
	snprintf(ca->hw_ver, sizeof(ca->hw_ver), "%x", dev->hw_ver);
	ca->node_guid = htobe64(dev->node_guid);
	ca->system_guid = htobe64(dev->sys_image_guid);
	for (int p = 1; p <= ca->numports && !ret; p++) {
		ca->ports[p] = calloc(1, sizeof(umad_port_t));
		ret = ca->ports[p] ? fill_port(dev->name, p, ca->ports[p]) : -ENOMEM;
	}
	if (ret)
		umad_release_ca(ca);
	return ret;
}

int umad_get_ca(const char *ca_name, umad_ca_t *ca)
{
	struct abi_device_info *list;
	char name[UMAD_CA_NAME_LEN];
	int n, ret = -ENODEV;

	DEBUG("ca_name %s", ca_name ? ca_name : "(any)");
	if (umad_resolve_port(ca_name, name, NULL))
		return fail(-ENODEV);
	n = umad_session_list(&list);
	for (int i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			ret = fill_ca(&list[i], ca);
	free(list);
	return ret ? fail(ret) : 0;
}

int umad_get_cas_names(char cas[][UMAD_CA_NAME_LEN], int max)
{
	struct abi_device_info *list;
	int n = umad_session_list(&list), found = 0;

	for (int i = 0; i < n && found < max; i++)
		if (name_fits(list[i].name))
			strcpy(cas[found++], list[i].name);
	free(list);
	DEBUG("return %d cas", found);
	return found;
}

int umad_get_ca_portguids(const char *ca_name, __be64 *portguids, int max)
{
	umad_ca_t ca;
	int n;

	if (umad_get_ca(ca_name, &ca) < 0)
		return -1;
	n = ca.numports + 1; /* entry 0 is a switch's management port */
	if (portguids && n > max)
		n = -ENOMEM;
	for (int i = 0; portguids && i < n; i++)
		portguids[i] = ca.ports[i] ? ca.ports[i]->port_guid : 0;
	umad_release_ca(&ca);
	return n;
}

int umad_get_issm_path(const char *ca_name, int portnum, char path[], int max)
{
	struct abi_port_info info;
	char name[UMAD_CA_NAME_LEN];

	if (umad_resolve_port(ca_name, name, &portnum))
		return fail(-ENODEV);
	if (umad_session_port(name, portnum, &info) || !info.issm[0])
		return fail(-EINVAL);
	snprintf(path, (size_t)max, "%s/%s", umad_session_dir(), info.issm);
	return 0;
}

struct umad_device_node *umad_get_ca_device_list(void)
{
	struct umad_device_node *head = NULL, **tail = &head;
	struct abi_device_info *list;
	int n = umad_session_list(&list);

	errno = n < 0 ? -n : 0;
	for (int i = 0; i < n; i++) {
		struct umad_device_node *node = calloc(1, sizeof(*node));

		if (node)
			node->ca_name = strdup(list[i].name);
		if (!node || !node->ca_name) {
			free(node);
			umad_free_ca_device_list(head);
			head = NULL;
			errno = ENOMEM;
			break;
		}
		*tail = node;
		tail = &node->next;
	}
	free(list);
	return head;
}

void umad_free_ca_device_list(struct umad_device_node *head)
{
	while (head) {
		struct umad_device_node *next = head->next;

		free((void *)head->ca_name);
		free(head);
		head = next;
	}
}

static int by_name(const void *a, const void *b)
{
	const struct umad_device_node *const *x = a, *const *y = b;

	return strcmp((*x)->ca_name, (*y)->ca_name);
}

int umad_sort_ca_device_list(struct umad_device_node **head, size_t size)
{
	struct umad_device_node **nodes, *node;
	size_t n = 0, i = 0;

	for (node = *head; node; node = node->next)
		n++;
	if (size && size != n)
		return EINVAL;
	if (n < 2)
		return 0;
	nodes = calloc(n, sizeof(*nodes));
	if (!nodes)
		return ENOMEM;
	for (node = *head; node; node = node->next)
		nodes[i++] = node;
	qsort(nodes, n, sizeof(*nodes), by_name);
	for (i = 0; i < n; i++)
		nodes[i]->next = i + 1 < n ? nodes[i + 1] : NULL;
	*head = nodes[0];
	free(nodes);
	return 0;
}
