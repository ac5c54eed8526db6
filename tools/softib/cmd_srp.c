/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* softib srp: disks of nodes by the SCSI RDMA Protocol. The verbs are in files of their
 * own: srp_*.c. */
#include "base/types.h"
#include "verbs.h"

static const struct command verbs[] = {
	{"target", "serve files and block devices from a node", srp_target},
	{"discover", "list the targets that a node reaches", srp_discover},
	{"login", "give a node the disks of a target", srp_login},
	{"list", "list the targets that nodes are logged in to", srp_list},
	{"logout", "take the disks away again", srp_logout},
};

int cmd_srp(int argc, char **argv)
{
	static const struct verbs srp = {
		.name = "softib srp",
		.about = "Disks of nodes by the SCSI RDMA Protocol (SRP).\n",
		.examples = "  softib srp target add n1 --unit disk.img\n"
			    "  softib srp target list\n"
			    "  softib srp login n2 n1\n",
		.table = verbs,
		.nr = ARRAY_SIZE(verbs),
	};

	return verbs_run(&srp, argc, argv);
}
