/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A page (or more) of shared memory that softibd writes and every engine of one adapter reads: the
 * live attributes of its ports. softibd alone writes; no program can.
 *
 * Memory order. Who needs several attributes of a port as they were at one time reads them by the
 * sequence lock (abi_devpage_store(), abi_devpage_load()). The data path reads one attribute at a
 * time, without it. These are aligned and have four bytes at most, so a load returns an old value
 * or a new one and no mixture; a GID has more, and a packet that leaves while its entry changes may
 * have a mixture of both as its source, as an adapter's may. An old value lasts until softibd's
 * store arrives, as if the packet had left before the change.
 *
 * route_epoch is stored with release, after everything that it announces, and loaded with acquire:
 * who reads the new epoch also reads the attributes and the completion_faults that led to it. An
 * engine may therefore load completion_faults with relaxed order.
 */
#ifndef SOFTIB_ABI_DEVPAGE_H
#define SOFTIB_ABI_DEVPAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
	_Atomic uint32_t route_epoch; /* of this adapter: a change ends all flows resolved before */
	/* A rule may fail completions, and engines must ask about each (ABI_CMD_COMPLETION).
	 * It changes immediately before route_epoch. */
	_Atomic uint32_t completion_faults;
	/* A rule may make the creation of objects fail. It is a hint, of relaxed order: softibd decides */
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

/** abi_devpage_store() - change @bytes at @to, a part of @page. Context: softibd, which is the only
 *  writer
 *
 *  The release fence orders the odd number before the stores of the data: with an acquire of its
 *  store alone, these could pass it. It pairs with the acquire fence of abi_devpage_load(): a reader
 *  that has read any of the new data then reads the odd number, or a later one. The second store,
 *  with release, pairs with the reader's first load: a reader that begins with that number reads
 *  all of the new data. */
static inline void abi_devpage_store(struct abi_devpage *page, void *to, const void *from,
				     size_t bytes)
{
	uint32_t seq = atomic_load_explicit(&page->seq, memory_order_relaxed);

	atomic_store_explicit(&page->seq, seq + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy(to, from, bytes);
	atomic_store_explicit(&page->seq, seq + 2, memory_order_release);
}

/** abi_devpage_load() - copy @bytes at @from, a part of @page. Return: true; false: softibd was
 *  changing them, and *@out may be a mixture of old and new */
static inline bool abi_devpage_load(const struct abi_devpage *page, void *out, const void *from,
				    size_t bytes)
{
	uint32_t seq = atomic_load_explicit(&page->seq, memory_order_acquire);

	if (seq & 1)
		return false;
	memcpy(out, from, bytes);
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&page->seq, memory_order_relaxed) == seq;
}

#endif
