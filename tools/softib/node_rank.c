/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The node of an MPI rank. Whatever starts a rank tells it its number and the
 * number of ranks in the environment. Consecutive ranks share a node, as with
 * Open MPI's own mapping by slot; nodes differ by one rank at most.
 */
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "softib.h"

static const struct {
	const char *rank, *size;
} launchers[] = {
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, /* Open MPI */
	{"PMI_RANK", "PMI_SIZE"},			  /* MPICH, Intel MPI, MVAPICH */
	{"SLURM_PROCID", "SLURM_NTASKS"},		  /* srun */
};

static int read_rank(size_t *rank, size_t *size)
{
	for (size_t i = 0; i < ARRAY_SIZE(launchers); i++) {
		const char *r = getenv(launchers[i].rank), *n = getenv(launchers[i].size);

		if (!r || !n)
			continue;
		*rank = strtoul(r, NULL, 10);
		*size = strtoul(n, NULL, 10);
		return *rank < *size ? 0 : -1;
	}
	return -1;
}

size_t node_index_of_rank(size_t rank, size_t size, size_t nodes)
{
	size_t each = size / nodes,
	       more = size % nodes; /* the first ones have one more */

	if (rank < more * (each + 1))
		return rank / (each + 1);
	return more + (rank - more * (each + 1)) / each;
}

static size_t count_names(const char *list)
{
	size_t n = 1;

	for (; *list; list++)
		n += *list == ',';
	return n;
}

/* the @n-th name of a list with commas. Return: the caller's; NULL no memory */
static char *nth_name(const char *list, size_t n)
{
	for (; n; n--)
		list = strchr(list, ',') + 1;
	return strndup(list, strcspn(list, ","));
}

static int find_in_list(struct node_place *at, const char *list, size_t n)
{
	char *name = nth_name(list, n);
	int error = name ? node_find(at, name) : -1;

	free(name);
	return error;
}

int node_check_list(struct node_place *at, const char *list)
{
	size_t n = strcmp(list, NODES_ALL) ? count_names(list) : 0;
	int error = 0;

	for (size_t i = 0; i < n && !error; i++)
		error = find_in_list(at, list, i);
	return error;
}

int node_first(struct node_place *at, const char *list)
{
	return strcmp(list, NODES_ALL) ? find_in_list(at, list, 0) : node_nth(at, 0);
}

int node_find_by_rank(struct node_place *at, const char *list)
{
	bool all = !strcmp(list, NODES_ALL);
	size_t rank, size, nodes = all ? node_count(at) : count_names(list), n;

	if (read_rank(&rank, &size)) {
		complain(
			"this program has no MPI rank: --ranks is for those that "
			"mpirun, mpiexec or srun start");
		return -1;
	}
	n = nodes ? node_index_of_rank(rank, size, nodes) : 0;
	return all ? node_nth(at, n) : find_in_list(at, list, n);
}
