/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "fabric/vlan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology.h"
#include "runtime/rt.h"

struct reader {
	struct fab_vlans *vlans;
	const struct topology *topo;
	char *err;
	size_t err_bytes;
};

/* all adapters of the host; a node without a port of Ethernet has no interface to add one to */
static int add_host(const struct reader *r, unsigned int v, int node, const char *name)
{
	bool found = false;

	for (int i = r->topo->node[node].host; i >= 0; i = r->topo->node[i].next)
		for (int p = 1; p <= r->topo->node[i].num_ports; p++) {
			if (!r->topo->node[i].port[p].ethernet)
				continue;
			r->vlans->member[i] |= (uint8_t)(1u << v);
			found = true;
		}
	if (found || !name)
		return 0;
	snprintf(r->err, r->err_bytes, "--vlan: %s has no port of Ethernet", name);
	return -EINVAL;
}

static int add_named(const struct reader *r, unsigned int v, const char *name)
{
	int node = topo_find(r->topo, name);

	if (node < 0 || r->topo->node[node].kind != TOPO_CA) {
		snprintf(r->err, r->err_bytes, "--vlan: '%s' is no node with an adapter", name);
		return -EINVAL;
	}
	return add_host(r, v, node, name);
}

static void add_all(const struct reader *r, unsigned int v)
{
	for (int i = 0; i < r->topo->num_nodes; i++)
		if (r->topo->node[i].kind == TOPO_CA)
			add_host(r, v, i, NULL);
}

/* "100" or "200:n1+n2" */
static int add_vlan(const struct reader *r, char *text)
{
	char *nodes = strchr(text, ':'), *end, *rest = NULL;
	struct fab_vlans *vlans = r->vlans;
	unsigned long id;
	int ret = 0;

	if (nodes)
		*nodes++ = '\0';
	id = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || id < 1 || id > FAB_VLAN_ID) {
		snprintf(r->err, r->err_bytes, "--vlan takes ids from 1 to %d, each with :NODE+NODE.. "
					       "or for all nodes, not '%s'", FAB_VLAN_ID, text);
		return -EINVAL;
	}
	for (unsigned int i = 0; i < vlans->num; i++)
		if (vlans->id[i] == id) {
			snprintf(r->err, r->err_bytes, "--vlan: %lu is there twice", id);
			return -EINVAL;
		}
	if (vlans->num == FAB_VLANS) {
		snprintf(r->err, r->err_bytes, "--vlan: a fabric has at most %d VLANs", FAB_VLANS);
		return -EINVAL;
	}
	vlans->id[vlans->num] = (uint16_t)id;
	if (!nodes)
		add_all(r, vlans->num);
	for (char *name = nodes ? strtok_r(nodes, "+", &rest) : NULL; name && !ret;
	     name = strtok_r(NULL, "+", &rest))
		ret = add_named(r, vlans->num, name);
	vlans->num++;
	return ret;
}

int fab_vlans_parse(struct fab_vlans *vlans, const struct topology *topo, const char *text,
		    char *err, size_t err_bytes)
{
	struct reader r = {vlans, topo, err, err_bytes};
	size_t bytes = strlen(text) + 1;
	char *copy = rt_zalloc(bytes), *rest = NULL;
	int ret = 0;

	*vlans = (struct fab_vlans){.member = rt_zalloc((size_t)topo->num_nodes + 1)};
	if (!copy || !vlans->member)
		ret = -ENOMEM;
	else
		memcpy(copy, text, bytes);
	if (!ret && !topo_has_link(topo, true)) {
		snprintf(err, err_bytes, "--vlan: no port is Ethernet's; see --link-layer");
		ret = -EINVAL;
	}
	for (char *each = ret ? NULL : strtok_r(copy, ",", &rest); each && !ret;
	     each = strtok_r(NULL, ",", &rest))
		ret = add_vlan(&r, each);
	rt_free(copy);
	if (!ret && !vlans->num) {
		snprintf(err, err_bytes, "--vlan takes ids from 1 to %d, not '%s'", FAB_VLAN_ID, text);
		ret = -EINVAL;
	}
	if (ret)
		fab_vlans_free(vlans);
	return ret;
}

void fab_vlans_free(struct fab_vlans *vlans)
{
	rt_free(vlans->member);
	*vlans = (struct fab_vlans){.num = 0};
}

bool fab_vlans_has(const struct fab_vlans *vlans, int node, unsigned int v)
{
	return !v || (v <= vlans->num && vlans->member[node] >> (v - 1) & 1);
}
