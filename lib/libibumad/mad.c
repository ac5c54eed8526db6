/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The fields of a struct ib_user_mad, and how it is printed. */
#include <string.h>

#include "umad_private.h"

int umad_debug_level;

int umad_debug(int level)
{
	if (level >= 0)
		umad_debug_level = level;
	return umad_debug_level;
}

void *umad_get_mad(void *umad)
{
	return ((struct ib_user_mad *)umad)->data;
}

size_t umad_size(void)
{
	return sizeof(struct ib_user_mad);
}

int umad_status(void *umad)
{
	return (int)((struct ib_user_mad *)umad)->status;
}

ib_mad_addr_t *umad_get_mad_addr(void *umad)
{
	return &((struct ib_user_mad *)umad)->addr;
}

int umad_set_grh(void *umad, void *mad_addr)
{
	ib_mad_addr_t *to = umad_get_mad_addr(umad), *from = mad_addr;

	to->grh_present = from != NULL;
	if (!from)
		return 0;
	memcpy(to->gid, from->gid, sizeof(to->gid));
	to->flow_label = htobe32((uint32_t)from->flow_label);
	to->hop_limit = from->hop_limit;
	to->traffic_class = from->traffic_class;
	return 0;
}

int umad_set_pkey(void *umad, int pkey_index)
{
	umad_get_mad_addr(umad)->pkey_index = (uint16_t)pkey_index;
	return 0;
}

int umad_get_pkey(void *umad)
{
	return umad_get_mad_addr(umad)->pkey_index;
}

int umad_set_addr_net(void *umad, __be16 dlid, __be32 dqp, int sl, __be32 qkey)
{
	ib_mad_addr_t *addr = umad_get_mad_addr(umad);

	addr->qpn = dqp;
	addr->lid = dlid;
	addr->qkey = qkey;
	addr->sl = (uint8_t)sl;
	return 0;
}

int umad_set_addr(void *umad, int dlid, int dqp, int sl, int qkey)
{
	return umad_set_addr_net(umad, htobe16((uint16_t)dlid), htobe32((uint32_t)dqp), sl,
				 htobe32((uint32_t)qkey));
}

void umad_addr_dump(ib_mad_addr_t *addr)
{
	char gid[2 * sizeof(addr->gid) + 1];

	for (size_t i = 0; i < sizeof(addr->gid); i++)
		sprintf(gid + 2 * i, "%02x", addr->gid[i]);
	fprintf(stderr, "ibwarn: [%d] umad_addr_dump: qpn %u qkey 0x%x lid %u sl %u\n",
		(int)getpid(), be32toh(addr->qpn), be32toh(addr->qkey), be16toh(addr->lid),
		addr->sl);
	fprintf(stderr,
		"grh_present %u gid_index %u hop_limit %u traffic_class %u flow_label 0x%x "
		"pkey_index 0x%x\nGid 0x%s\n",
		addr->grh_present, addr->gid_index, addr->hop_limit, addr->traffic_class,
		be32toh(addr->flow_label), addr->pkey_index, gid);
}

void umad_dump(void *umad)
{
	struct ib_user_mad *mad = umad;

	fprintf(stderr, "ibwarn: [%d] umad_dump: agent id %u status %x timeout %u\n",
		(int)getpid(), mad->agent_id, mad->status, mad->timeout_ms);
	umad_addr_dump(&mad->addr);
}
