/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A page (or more) of shared memory that softibd writes and every engine of
 * one adapter reads: the live attributes of its ports. Readers take the
 * sequence lock; epoch changes whenever a route, table or port changed.
 */
#ifndef SOFTIB_ABI_DEVPAGE_H
#define SOFTIB_ABI_DEVPAGE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define ABI_GIDS 32 /* at most; num_gids of a port are its table */
#define ABI_GIDS_IB 8
#define ABI_PKEYS 128

/** enum abi_gid_type - as enum ib_uverbs_gid_type; of a port of InfiniBand the first */
enum abi_gid_type { ABI_GID_IB = 0, ABI_GID_ROCE_V1 = 1, ABI_GID_ROCE_V2 = 2 };

struct abi_devport {
	/* base LID; of a port of Ethernet the number of its station (fabric/ethernet.h), by
	 * which the data path addresses it, and which programs do not see */
	uint16_t lid;
	uint8_t lmc;
	uint8_t state;	   /* enum ibv_port_state */
	uint8_t phys_state;
	uint8_t active_mtu_enc, max_mtu_enc; /* enum ibv_mtu */
	uint16_t frame_mtu; /* of a port of Ethernet: bytes of a frame behind its header */
	uint8_t sm_sl, subnet_timeout_enc, max_vl_num, init_type_reply;
	uint8_t width_enc;
	uint8_t link_layer; /* IBV_LINK_LAYER_... */
	uint16_t speed_enc;
	uint16_t sm_lid;
	uint32_t cap_mask;
	uint32_t qkey_violations, pkey_violations;
	uint8_t gid[ABI_GIDS][16];
	uint8_t gid_type[ABI_GIDS]; /* enum abi_gid_type */
	/* --- of Ethernet: the VLAN of an entry --- */
	uint8_t gid_path[ABI_GIDS]; /* its number in the fabric: the low bits of the station's */
	uint16_t gid_vlan[ABI_GIDS]; /* its id; 0: untagged */
	uint8_t num_gids;
	uint16_t pkey[ABI_PKEYS];
};

struct abi_devpage {
	uint32_t magic;
	uint32_t num_ports;
	_Atomic uint32_t seq;   /* odd while being written */
	_Atomic uint32_t epoch; /* grows with every change */
	_Atomic uint32_t route_epoch; /* of this adapter: a change ends all flows resolved before */
	/* A rule may fail completions, and engines must ask about each (ABI_CMD_COMPLETION).
	 * It changes immediately before route_epoch. */
	_Atomic uint32_t completion_faults;
	/* a rule may make the creation of objects fail */
	_Atomic uint32_t creation_faults;
	/* the shortest ACK time-out of a QP (tp_qp_init.min_ack_ns); constant */
	uint32_t min_ack_timeout_us;
	struct abi_devport port[]; /* port 1 is port[0] */
};

#define ABI_DEVPAGE_MAGIC 0x53694450u

static inline size_t abi_devpage_bytes(unsigned num_ports)
{
	return sizeof(struct abi_devpage) + num_ports * sizeof(struct abi_devport);
}

#endif
