/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The fabric "pair", up without a subnet manager: n1 has LID 1, n2 LID 2. */
#ifndef SOFTIB_TESTS_FUZZ_PAIR_H
#define SOFTIB_TESTS_FUZZ_PAIR_H

#include <string.h>

#include "check.h"
#include "fabric/fabric.h"
#include "fabric/topology.h"

/** pair_configure() - every port that has a cable is Active, and the switch
 *  knows the ways */
static inline void pair_configure(struct fabric *fab)
{
	static const uint8_t lft[] = {0xff, 1, 2};
	const struct topology *topo = fab_topology(fab);
	const int n1 = topo_find(topo, "n1");

	for (int i = 0; i < topo->num_nodes; i++) {
		struct ag_node *ag = fab_node(fab, i);

		for (int p = 0; p <= ag->num_ports; p++)
			if (ag->port[p].state == WIRE_PORT_INIT)
				ag->port[p].state = WIRE_PORT_ACTIVE;
		if (!ag->sw) {
			ag->port[1].lid = i == n1 ? 1 : 2;
			continue;
		}
		for (uint16_t lid = 0; lid < WIRE_LFT_PER_BLOCK; lid++)
			check(!ag_lft_put(ag, lid, lid < sizeof(lft) ? lft[lid] : 0));
	}
}

#endif
