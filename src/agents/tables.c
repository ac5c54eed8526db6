/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The tables of a port (GUIDInfo, P_KeyTable, SLtoVL, VLArbitration) and of a
 * switch (LinearForwardingTable, MulticastForwardingTable), each moved in
 * blocks that the attribute modifier numbers (IBA v1 14.2.5.5, .7 to .12).
 */
#include <errno.h>
#include <string.h>

#include "agents/agents_private.h"

/* --- GUIDInfo: modifier = block of 8 --- */

static bool guid_block(const struct ag_request *rq, unsigned int *first)
{
	*first = rq->attr_mod * WIRE_GUIDS_PER_BLOCK;
	return rq->attr_mod <= UINT8_MAX && *first < rq->port->num_guids;
}

uint16_t ag_guid_info_get(struct ag_request *rq)
{
	struct wire_guid_info info = {0};
	unsigned int first;

	if (!guid_block(rq, &first))
		return WIRE_STATUS_BAD_FIELD;
	for (unsigned int i = 0; i < WIRE_GUIDS_PER_BLOCK && first + i < rq->port->num_guids; i++)
		info.guid[i] = rq->port->guids[first + i];
	wire_guid_info_encode(&info, rq->data);
	return WIRE_STATUS_OK;
}

uint16_t ag_guid_info_set(struct ag_request *rq)
{
	struct wire_guid_info info;
	unsigned int first;

	if (!guid_block(rq, &first))
		return WIRE_STATUS_BAD_FIELD;
	wire_guid_info_decode(rq->data, WIRE_SMP_DATA_BYTES, &info);
	for (unsigned int i = 0; i < WIRE_GUIDS_PER_BLOCK && first + i < rq->port->num_guids; i++)
		if (first + i) /* GUID 0 is the port's own */
			rq->port->guids[first + i] = info.guid[i];
	rq->effect->changes |= AG_CHANGED_GIDS;
	return WIRE_STATUS_OK;
}

/* --- P_KeyTable: modifier = port of a switch << 16 | block of 32 --- */

static struct ag_port *pkey_block(struct ag_request *rq, unsigned int *first)
{
	uint8_t num = rq->node->sw ? (uint8_t)(rq->attr_mod >> 16) : rq->port_num;
	struct ag_port *port;

	if (rq->attr_mod >> 16 > UINT8_MAX || !ag_port_exists(rq->node, num))
		return NULL;
	port = &rq->node->port[num];
	*first = (rq->attr_mod & 0xffff) * WIRE_PKEYS_PER_BLOCK;
	rq->effect->port = num;
	return *first < port->num_pkeys ? port : NULL;
}

uint16_t ag_pkey_table_get(struct ag_request *rq)
{
	struct wire_pkey_table table = {0};
	const struct ag_port *port;
	unsigned int first;

	port = pkey_block(rq, &first);
	if (!port)
		return WIRE_STATUS_BAD_FIELD;
	memcpy(table.pkey, port->pkeys + first, sizeof(table.pkey));
	wire_pkey_table_encode(&table, rq->data);
	return WIRE_STATUS_OK;
}

uint16_t ag_pkey_table_set(struct ag_request *rq)
{
	struct wire_pkey_table table;
	struct ag_port *port;
	unsigned int first;

	port = pkey_block(rq, &first);
	if (!port)
		return WIRE_STATUS_BAD_FIELD;
	wire_pkey_table_decode(rq->data, WIRE_SMP_DATA_BYTES, &table);
	memcpy(port->pkeys + first, table.pkey, sizeof(table.pkey));
	rq->effect->changes |= AG_CHANGED_PKEYS;
	return WIRE_STATUS_OK;
}

/* --- SLtoVLMappingTable: modifier = input port << 8 | output port; with
 * optimized programming bit 17 is every input, bit 16 every output port --- */

#define MOD_ALL_OUT (1u << 16)
#define MOD_ALL_IN (1u << 17)

struct port_range {
	uint8_t first, last;
};

static bool sl_ports(const struct ag_request *rq, struct port_range *in, struct port_range *out)
{
	uint8_t top = rq->node->num_ports;

	if (!rq->node->sw) {
		*in = (struct port_range){0, 0};
		*out = (struct port_range){rq->port_num, rq->port_num};
		return true;
	}
	*in = (struct port_range){(uint8_t)(rq->attr_mod >> 8), (uint8_t)(rq->attr_mod >> 8)};
	*out = (struct port_range){(uint8_t)rq->attr_mod, (uint8_t)rq->attr_mod};
	if (rq->attr_mod & MOD_ALL_IN)
		*in = (struct port_range){0, top};
	if (rq->attr_mod & MOD_ALL_OUT)
		*out = (struct port_range){1, top};
	return in->last <= top && out->last <= top;
}

uint16_t ag_sl_to_vl_get(struct ag_request *rq)
{
	struct port_range in, out;
	struct wire_sl_to_vl table;

	if (!sl_ports(rq, &in, &out))
		return WIRE_STATUS_BAD_FIELD;
	memcpy(table.vl, rq->node->port[out.first].sl2vl[in.first], sizeof(table.vl));
	wire_sl_to_vl_encode(&table, rq->data);
	return WIRE_STATUS_OK;
}

uint16_t ag_sl_to_vl_set(struct ag_request *rq)
{
	struct port_range in, out;
	struct wire_sl_to_vl table;

	if (!sl_ports(rq, &in, &out))
		return WIRE_STATUS_BAD_FIELD;
	wire_sl_to_vl_decode(rq->data, WIRE_SMP_DATA_BYTES, &table);
	for (unsigned int o = out.first; o <= out.last; o++)
		for (unsigned int i = in.first; i <= in.last; i++)
			memcpy(rq->node->port[o].sl2vl[i], table.vl, sizeof(table.vl));
	rq->effect->changes |= AG_CHANGED_ROUTES;
	return WIRE_STATUS_OK;
}

/* --- VLArbitrationTable: modifier = block 1..4 << 16 | port --- */

static struct ag_vlarb_entry *vlarb_block(struct ag_request *rq)
{
	unsigned int block = rq->attr_mod >> 16;
	uint8_t num = rq->node->sw ? (uint8_t)rq->attr_mod : rq->port_num;

	/* blocks 2 and 4 are the upper halves of tables of more than 32 */
	if ((block != 1 && block != 3) || (rq->attr_mod & 0xffff) > UINT8_MAX ||
	    !ag_port_exists(rq->node, num))
		return NULL;
	return rq->node->port[num].vlarb[block == 3];
}

uint16_t ag_vl_arb_get(struct ag_request *rq)
{
	const struct ag_vlarb_entry *entry = vlarb_block(rq);
	struct wire_vl_arb table = {0};

	if (!entry)
		return WIRE_STATUS_BAD_FIELD;
	for (unsigned int i = 0; i < AG_VLARB_ENTRIES; i++) {
		table.entry[i].vl = entry[i].vl;
		table.entry[i].weight = entry[i].weight;
	}
	wire_vl_arb_encode(&table, rq->data);
	return WIRE_STATUS_OK;
}

uint16_t ag_vl_arb_set(struct ag_request *rq)
{
	struct ag_vlarb_entry *entry = vlarb_block(rq);
	struct wire_vl_arb table;

	if (!entry)
		return WIRE_STATUS_BAD_FIELD;
	wire_vl_arb_decode(rq->data, WIRE_SMP_DATA_BYTES, &table);
	for (unsigned int i = 0; i < AG_VLARB_ENTRIES; i++) {
		entry[i].vl = table.entry[i].vl;
		entry[i].weight = table.entry[i].weight;
	}
	return WIRE_STATUS_OK;
}

/* --- forwarding tables of a switch --- */

/* Return: a block to be written, which is allocated, and each byte set to @fill, if it is the first time; NULL: no memory */
static void *written_block(struct ag_switch *sw, void **chapters[], unsigned int block, size_t bytes, uint8_t fill)
{
	void ***chapter = &chapters[block / AG_CHAPTER_BLOCKS], **place;

	if (!*chapter)
		*chapter = sw->memory.alloc(sw->memory.ctx, AG_CHAPTER_BLOCKS * sizeof(**chapter));
	if (!*chapter)
		return NULL;
	place = *chapter + block % AG_CHAPTER_BLOCKS;
	if (!*place) {
		*place = sw->memory.alloc(sw->memory.ctx, bytes);
		if (*place)
			memset(*place, fill, bytes);
	}
	return *place;
}

static void free_chapters(void **chapters[], unsigned int num, void (*release)(void *memory))
{
	for (unsigned int i = 0; i < num; i++) {
		for (unsigned int k = 0; chapters[i] && k < AG_CHAPTER_BLOCKS; k++)
			release(chapters[i][k]);
		release(chapters[i]);
	}
}

void ag_node_free_tables(struct ag_node *node, void (*release)(void *memory))
{
	if (!node->sw)
		return;
	free_chapters(node->sw->lft, ARRAY_SIZE(node->sw->lft), release);
	free_chapters(node->sw->mft, ARRAY_SIZE(node->sw->mft), release);
}

/* --- LinearForwardingTable: modifier = block of 64 LIDs --- */

uint16_t ag_lft_block_get(struct ag_request *rq)
{
	struct wire_lft table;
	const void *block;

	if (rq->attr_mod >= AG_LFT_BLOCKS)
		return WIRE_STATUS_BAD_FIELD;
	memset(table.port, WIRE_LFT_NO_PORT, sizeof(table.port));
	block = ag_block(rq->node->sw->lft, rq->attr_mod);
	if (block)
		memcpy(table.port, block, sizeof(table.port));
	wire_lft_encode(&table, rq->data);
	return WIRE_STATUS_OK;
}

static uint8_t *lft_block(struct ag_switch *sw, unsigned int block)
{
	return written_block(sw, sw->lft, block, WIRE_LFT_PER_BLOCK, WIRE_LFT_NO_PORT);
}

uint16_t ag_lft_block_set(struct ag_request *rq)
{
	struct wire_lft table;
	uint8_t *block;

	if (rq->attr_mod >= AG_LFT_BLOCKS)
		return WIRE_STATUS_BAD_FIELD;
	wire_lft_decode(rq->data, WIRE_SMP_DATA_BYTES, &table);
	block = lft_block(rq->node->sw, rq->attr_mod);
	if (!block)
		return WIRE_STATUS_BUSY;
	memcpy(block, table.port, sizeof(table.port));
	rq->effect->changes |= AG_CHANGED_ROUTES;
	return WIRE_STATUS_OK;
}

int ag_lft_put(struct ag_node *node, uint16_t lid, uint8_t port)
{
	uint8_t *block;

	if (ag_lft_get(node, lid) == port)
		return 0;
	block = lft_block(node->sw, lid / WIRE_LFT_PER_BLOCK);
	if (!block)
		return -ENOMEM;
	block[lid % WIRE_LFT_PER_BLOCK] = port;
	return 0;
}

/* --- MulticastForwardingTable: modifier = position << 28 | block of 32 --- */

static bool mft_block(const struct ag_request *rq, unsigned int *block, unsigned int *position)
{
	*block = rq->attr_mod & 0x1ff;
	*position = rq->attr_mod >> 28;
	return *block < AG_MFT_BLOCKS && *position <= rq->node->num_ports / 16;
}

static uint16_t *mft_masks(struct ag_node *node, unsigned int block)
{
	size_t positions = node->num_ports / 16 + 1u;

	return written_block(node->sw, node->sw->mft, block, positions * WIRE_MFT_PER_BLOCK * sizeof(uint16_t), 0);
}

uint16_t ag_mft_block_get(struct ag_request *rq)
{
	unsigned int block, position;
	struct wire_mft table = {0};
	const uint16_t *masks;

	if (!mft_block(rq, &block, &position))
		return WIRE_STATUS_BAD_FIELD;
	masks = ag_block(rq->node->sw->mft, block);
	if (masks)
		memcpy(table.port_mask, masks + position * WIRE_MFT_PER_BLOCK,
		       sizeof(table.port_mask));
	wire_mft_encode(&table, rq->data);
	return WIRE_STATUS_OK;
}

uint16_t ag_mft_block_set(struct ag_request *rq)
{
	unsigned int block, position;
	struct wire_mft table;
	uint16_t *masks;

	if (!mft_block(rq, &block, &position))
		return WIRE_STATUS_BAD_FIELD;
	wire_mft_decode(rq->data, WIRE_SMP_DATA_BYTES, &table);
	masks = mft_masks(rq->node, block);
	if (!masks)
		return WIRE_STATUS_BUSY;
	memcpy(masks + position * WIRE_MFT_PER_BLOCK, table.port_mask, sizeof(table.port_mask));
	rq->effect->changes |= AG_CHANGED_ROUTES;
	return WIRE_STATUS_OK;
}

int ag_mft_put(struct ag_node *node, uint16_t mlid, uint8_t port, bool member)
{
	unsigned int i = mlid - WIRE_LID_MULTICAST;
	uint16_t *masks, bit = (uint16_t)(1u << port % 16);

	if (ag_mft_get(node, mlid, port) == member)
		return 0;
	masks = mft_masks(node, i / WIRE_MFT_PER_BLOCK);
	if (!masks)
		return -ENOMEM;
	masks += port / 16 * WIRE_MFT_PER_BLOCK + i % WIRE_MFT_PER_BLOCK;
	*masks = (uint16_t)(member ? *masks | bit : *masks & ~bit);
	return 0;
}
