/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib srp: disks of nodes by the SCSI RDMA Protocol. The verbs are in files of their
 * own: srp_*.c. */
#include "base/types.h"
#include "verbs.h"

static const struct command verbs[] = {
	{"target", "serve files and block devices from a node", srp_target},
};

int cmd_srp(int argc, char **argv)
{
	static const struct verbs srp = {
		.name = "softib srp",
		.about = "Disks of nodes by the SCSI RDMA Protocol (SRP).\n",
		.examples = "  softib srp target add n1 --unit disk.img\n"
			    "  softib srp target list\n",
		.table = verbs,
		.nr = ARRAY_SIZE(verbs),
	};

	return verbs_run(&srp, argc, argv);
}
