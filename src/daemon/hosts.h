/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fabric's host table for the RDMA CM: it maps ports to addresses of the address plan
 * (fabric/topo_plan.h), even if all nodes share the machine's network.
 */
#ifndef SOFTIB_DAEMON_HOSTS_H
#define SOFTIB_DAEMON_HOSTS_H

#include "fabric/fabric.h"
#include "fabric/topo_plan.h"
#include "fabric/topology.h"
#include "fabric/vlan.h"
#include "rdma/rdma_cm.h"

struct hosts;

/** hosts_create() - create the table for @fab and call rdma_cm_set_hosts()
 *  @fab: also finds the addresses that the interfaces of ports of Ethernet have beside the plan's
 *  @plan: copied
 *  @vlans: outlive the table
 *  Return: 0; -ENOMEM */
int hosts_create(struct rt *rt, struct fabric *fab, const struct topo_plan *plan,
		 const struct fab_vlans *vlans, struct hosts **out);
void hosts_destroy(struct hosts *hosts);

#endif
