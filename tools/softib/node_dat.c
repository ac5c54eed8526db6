/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The registry of uDAPL providers, dat.conf(5), that programs of a node see: the machine's
 * names the adapters that the machine has, and those of a node are others. It has Debian's
 * three providers for each port, under the names that its own file gives them:
 *
 *  ofa-v2-ib0         connections by the RDMA CM
 *  ofa-v2-softib0-1   by a TCP connection (scm)
 *  ofa-v2-softib0-1u  by datagrams (ucm)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softib.h"

#define OVERRIDE "DAT_OVERRIDE"
#define FOLDER	 "dat"

static void print_provider(FILE *out, const char *name, const char *library, const char *of)
{
	fprintf(out, "ofa-v2-%s u2.0 nonthreadsafe default %s.so.2 dapl.2.0 \"%s\" \"\"\n", name,
		library, of);
}

static void print_providers(FILE *out, const struct node_port *port)
{
	char name[32], of[64];

	if (*port->address) {
		snprintf(of, sizeof(of), "%s 0", port->address);
		print_provider(out, port->interface, "libdaplofa", of);
	}
	snprintf(of, sizeof(of), "%s %d", port->device, port->number);
	snprintf(name, sizeof(name), "%s-%d", port->device, port->number);
	print_provider(out, name, "libdaploscm", of);
	snprintf(name, sizeof(name), "%s-%du", port->device, port->number);
	print_provider(out, name, "libdaploucm", of);
}

/* Is it the user's choice, and not what a node had from which this one is entered? */
static bool is_chosen(const char *folder)
{
	const char *file = getenv(OVERRIDE);

	return file && strncmp(file, folder, strlen(folder)) != 0;
}

void node_dat(const struct node_place *at)
{
	char folder[PATH_MAX], path[PATH_MAX + 96], draft[PATH_MAX + 112];
	FILE *out;

	if (snprintf(folder, sizeof(folder), "%s/" FOLDER, at->dir) >= (int)sizeof(folder) ||
	    is_chosen(folder) || (mkdir(folder, 0700) && errno != EEXIST))
		return;
	snprintf(path, sizeof(path), "%s/%s.conf", folder, at->node);
	/* programs that start at the same time read a whole file, this one or theirs */
	snprintf(draft, sizeof(draft), "%s.%d", path, (int)getpid());
	out = fopen(draft, "we");
	if (!out)
		return;
	for (int i = 0; i < at->num_ports; i++)
		print_providers(out, &at->ports[i]);
	if (!fclose(out) && !rename(draft, path))
		setenv(OVERRIDE, path, 1);
	else
		unlink(draft);
}
