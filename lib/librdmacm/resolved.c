/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "resolved.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int resolved_open(struct resolved *r)
{
	*r = (struct resolved){.fresh = calloc(ABI_AHEAD_COUNTERS, sizeof(uint32_t))};
	return r->fresh ? 0 : -ENOMEM;
}

void resolved_close(struct resolved *r)
{
	free(r->fresh);
}

void resolved_created(struct resolved *r, uint32_t id, uint16_t ps)
{
	r->last_created = id;
	r->fresh[id % ABI_AHEAD_COUNTERS] = ps == RDMA_PS_TCP ? id : 0;
}

void resolved_touched(struct resolved *r)
{
	r->fresh_from = r->last_created + 1;
}

bool resolved_takes(struct resolved *r, uint32_t id)
{
	uint32_t *slot = &r->fresh[id % ABI_AHEAD_COUNTERS];
	/* numbers of ids are compared as serial numbers */
	bool fresh = id && *slot == id && (int32_t)(id - r->fresh_from) >= 0;

	if (fresh)
		*slot = 0;
	return fresh;
}

void resolved_keep(struct resolved *r, const struct rdma_ucm_resolve_addr *cmd, uint32_t all)
{
	r->cmd = *cmd;
	r->all = all;
	r->valid = true;
}

bool resolved_before(const struct resolved *r, const struct rdma_ucm_resolve_addr *cmd, uint32_t all)
{
	return r->valid && r->all == all && cmd->src_size == r->cmd.src_size &&
	       cmd->dst_size == r->cmd.dst_size && cmd->src_size <= sizeof(cmd->src_addr) &&
	       cmd->dst_size <= sizeof(cmd->dst_addr) &&
	       !memcmp(&cmd->src_addr, &r->cmd.src_addr, cmd->src_size) &&
	       !memcmp(&cmd->dst_addr, &r->cmd.dst_addr, cmd->dst_size);
}
