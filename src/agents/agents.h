/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The management agents of a node: its subnet management agent (SMA, IBA v1
 * chapter 14) and its performance management agent (PMA, chapter 16.1), as a
 * function from (state, MAD) to (state, MAD). The state of one channel
 * adapter or switch is struct ag_node: the settings of the subnet manager, the
 * ports' counters, and the pending traps. There is no clock and no allocator:
 * time is an argument and the caller provides memory.
 *
 * The fabric (src/fabric) forwards packets by this state and counts them in it;
 * the adapter (src/hca) reports it to the midlayer. The caller serialises access
 * per node.
 */
#ifndef SOFTIB_AGENTS_H
#define SOFTIB_AGENTS_H

#include "base/types.h"
#include "wire/pma.h"
#include "wire/smp.h"

#define AG_LFT_BLOCKS 768  /* of 64 LIDs: 0 to 0xbfff */
#define AG_MFT_BLOCKS 128  /* of 32 MLIDs: 0xc000 to 0xcfff */
#define AG_CHAPTER_BLOCKS 16
#define AG_VLARB_ENTRIES 8 /* in each of the two tables */
#define AG_SAMPLE_COUNTERS 5
#define AG_VLS 16
#define AG_TRAPS 8	   /* notices waiting for their TrapRepress */

/* Link speeds as one mask, slowest in bit 0; PortInfo spreads it over
 * LinkSpeed, LinkSpeedExt and the vendor's FDR10 bit. */
enum ag_speed {
	AG_SDR = 1, AG_DDR = 2, AG_QDR = 4, AG_FDR10 = 8,
	AG_FDR = 16, AG_EDR = 32, AG_HDR = 64, AG_NDR = 128
};

/* What a MAD or the link changed at a port; fab_sink.changed() passes it on */
enum ag_change {
	AG_CHANGED_STATE = 1 << 0,     /* PortState */
	AG_CHANGED_LID = 1 << 1,       /* LID or LMC */
	AG_CHANGED_SM = 1 << 2,	       /* MasterSMLID or MasterSMSL */
	AG_CHANGED_PKEYS = 1 << 3,
	AG_CHANGED_GIDS = 1 << 4,      /* GUIDInfo or GidPrefix */
	AG_CHANGED_REREGISTER = 1 << 5, /* ClientReregister was set */
	AG_CHANGED_ATTRIBUTES = 1 << 6, /* other: MTU, VLs, time-outs, capabilities */
	AG_CHANGED_ROUTES = 1 << 7,    /* a switch's LFT, MFT, SLtoVL, enforcement */
	AG_CHANGED_PHYS = 1 << 8,      /* the link has to be (re)trained: phys_request */
	AG_CHANGED_TRAPS = 1 << 9,     /* a notice was queued or repressed */
	AG_CHANGED_NAME = 1 << 10,     /* NodeDescription */
};

/* The counters of a port, of 64 bits each, which are never reset: see struct ag_counters */
enum ag_counter {
	AG_SYMBOL_ERRORS,
	AG_LINK_RECOVERY,
	AG_LINK_DOWNED,
	AG_RCV_ERRORS,
	AG_RCV_REMOTE_PHYSICAL,
	AG_RCV_SWITCH_RELAY,
	AG_XMIT_DISCARDS,
	AG_XMIT_CONSTRAINT,
	AG_RCV_CONSTRAINT,
	AG_LOCAL_INTEGRITY,
	AG_BUFFER_OVERRUN,
	AG_VL15_DROPPED,
	AG_QP1_DROPPED,
	AG_XMIT_DATA, /* dwords from LRH to ICRC, without the bytes of the link itself (16.1.3.5) */
	AG_RCV_DATA,
	AG_XMIT_PACKETS,
	AG_RCV_PACKETS,
	AG_XMIT_WAIT,
	AG_UNICAST_XMIT,
	AG_UNICAST_RCV,
	AG_MULTICAST_XMIT,
	AG_MULTICAST_RCV,
	/* --- PortRcvErrorDetails --- */
	AG_RCV_LOCAL_PHYSICAL,
	AG_RCV_MALFORMED,
	AG_RCV_BUFFER_OVERRUN,
	AG_RCV_DLID_MAPPING,
	AG_RCV_VL_MAPPING,
	AG_RCV_LOOPING,
	/* --- PortXmitDiscardDetails --- */
	AG_DISCARD_INACTIVE,
	AG_DISCARD_NEIGHBOR_MTU,
	AG_DISCARD_SW_LIFETIME,
	AG_DISCARD_SW_HOQ,
	AG_NUM_COUNTERS
};

/**
 * struct ag_counters - the counters of a port that every packet changes. The PMA reports
 * raw - base, and a reset moves the base (struct ag_seldom). So two attributes that report
 * the same counter with different widths (PortCounters saturates, PortCountersExtended
 * wraps) are reset independently (16.1.3.5, 16.1.4.11).
 */
struct ag_counters {
	uint64_t raw[AG_NUM_COUNTERS];
};

/** struct ag_op_count - counter of packets that arrive with a selected opcode; three
 *  attributes have one each (16.1.4.3, 16.1.4.5, 16.1.4.6) */
struct ag_op_count {
	uint8_t opcode;
	uint64_t count[AG_VLS]; /* by VL; AG_OP_RCV: [0] packets, [1] dwords */
};
enum ag_op { AG_OP_RCV, AG_OP_VL_PACKETS, AG_OP_VL_DATA, AG_OPS };

/** struct ag_samples - PortSamplesControl and its result (16.1.3.2) */
struct ag_samples {
	uint8_t status; /* enum ag_sample_status */
	uint16_t tag;
	uint32_t start_ticks, interval_ticks; /* of AG_TICK_NS */
	uint16_t select[AG_SAMPLE_COUNTERS];
	uint64_t first[AG_SAMPLE_COUNTERS]; /* at the beginning of the interval */
	uint32_t result[AG_SAMPLE_COUNTERS];
	mono_t start, end;
};
enum ag_sample_status { AG_SAMPLE_DONE, AG_SAMPLE_WAITS, AG_SAMPLE_RUNS };
#define AG_TICK_NS 4 /* one byte at 2.5 Gb/s: PortSamplesControl.Tick 0 */

/**
 * struct ag_seldom - state of a port that is zero until packets pass the port, or a manager
 * resets its counters, samples them or lets it count an opcode. It is separate from the port,
 * so that its pages are not populated for thousands of idle ports.
 */
struct ag_seldom {
	uint64_t xmit_sl[AG_VLS], rcv_sl[AG_VLS]; /* dwords by SL */
	uint64_t xmit_wait_vl[AG_VLS];
	uint64_t base[AG_NUM_COUNTERS];	    /* of PortCounters and the details */
	uint64_t base_ext[AG_NUM_COUNTERS]; /* of PortCountersExtended */
	uint64_t base_xmit_sl[AG_VLS], base_rcv_sl[AG_VLS];
	struct ag_op_count op[AG_OPS];
	struct ag_samples samples;
};

struct ag_vlarb_entry {
	uint8_t vl, weight;
};

/** struct ag_port - one port; [0] is the management port of a switch */
struct ag_port {
	/* --- immutable after ag_node_init --- */
	uint64_t guid; /* of a switch: the node's, for every port */
	uint16_t num_pkeys;
	uint8_t num_guids;
	uint8_t vl_cap_enc, mtu_cap_enc;
	uint16_t speed_supported; /* enum ag_speed mask */
	uint8_t width_supported;  /* enum wire_link_width mask */

	/* --- the link: set by ag_port_link() --- */
	uint8_t state;	    /* enum wire_port_state */
	uint8_t phys_state; /* enum wire_phys_state */
	uint8_t phys_request; /* with AG_CHANGED_PHYS: Polling, Disabled, Sleep */
	uint8_t width_active;
	uint16_t speed_active;

	/* --- PortInfo as the subnet manager set it (14.2.5.6) --- */
	uint64_t mkey, gid_prefix;
	uint16_t lid, sm_lid, mkey_lease_s;
	uint8_t mkey_protect;
	uint8_t lmc, sm_sl;
	uint32_t cap_mask;
	uint16_t cap_mask2;
	uint16_t speed_enabled;
	uint8_t width_enabled;
	uint8_t link_down_default; /* 1 Sleep, 2 Polling */
	uint8_t neighbor_mtu_enc, oper_vls_enc;
	uint8_t vl_high_limit, init_type, init_type_reply;
	uint8_t vl_stall_count, hoq_life_enc;
	bool pkey_enforce_in, pkey_enforce_out, filter_raw_in, filter_raw_out;
	uint8_t subnet_timeout_enc, resp_time_enc;
	uint8_t local_phys_errors, overrun_errors;
	bool client_reregister;
	uint16_t mkey_violations, pkey_violations, qkey_violations;
	uint16_t max_credit_hint;
	/* --- of @seldom, here where they fill a hole --- */
	uint8_t op_counted; /* bit: of seldom->op those that a Set has begun */
	/* a Set has begun a sample. Before that seldom->samples is not read: newer kernels count a page
	 * that was only read, too, as memory of the process */
	bool sampled;
	/* --- PortInfo again --- */
	uint32_t roundtrip_latency; /* 24 bits */
	mono_t mkey_lease_end; /* MONO_NEVER: not counting down */

	/* --- tables --- */
	uint64_t *guids; /* num_guids; [0] is guid */
	uint16_t *pkeys; /* num_pkeys */
	uint8_t (*sl2vl)[AG_VLS]; /* of a CA [0]; of a switch's port by input port */
	/* low, then high priority */
	struct ag_vlarb_entry vlarb[2][AG_VLARB_ENTRIES];

	struct ag_counters count;
	struct ag_seldom *seldom;
};

/** struct ag_trap - a notice on its way to the subnet manager (14.2.5.1) */
struct ag_trap {
	bool used;
	uint8_t port;
	uint16_t number;
	uint8_t sent;	/* how often; the trap ends after AG_TRAP_SENDS */
	uint64_t tid;
	mono_t due;	/* next (re)transmission */
	uint8_t notice[64]; /* the Notice attribute as on the wire */
};
#define AG_TRAP_SENDS 16

/** struct ag_memory - allocates a block of a switch's tables, or a chapter of blocks, when it is first written; it
 *  is not freed while the node exists */
struct ag_memory {
	void *(*alloc)(void *ctx, size_t bytes); /* zeroed; NULL: out of memory */
	void *ctx;
};

/** struct ag_switch - the state that only a switch has (14.2.5.4) */
struct ag_switch {
	uint16_t lft_top; /* LinearFDBTop */
	uint8_t default_port, default_mcast_primary, default_mcast_other;
	uint8_t life_time_enc;
	bool port_state_change;
	uint8_t optimized_sl2vl; /* bit 0 */
	uint16_t mft_top;
	bool enhanced_port0;
	struct ag_memory memory;
	/* blocks, by chapters of AG_CHAPTER_BLOCKS; NULL: a chapter or a block that was never written */
	void **lft[AG_LFT_BLOCKS / AG_CHAPTER_BLOCKS]; /* uint8_t by LID; NULL: all WIRE_LFT_NO_PORT */
	void **mft[AG_MFT_BLOCKS / AG_CHAPTER_BLOCKS]; /* uint16_t [position * 32 + mlid % 32] */
};

/** struct ag_node - the management state of one channel adapter or switch */
struct ag_node {
	uint8_t kind; /* enum wire_node_type */
	uint8_t num_ports;
	bool trapped; /* there was a trap. Before that @trap is not read, as ag_port.sampled */
	uint16_t device_id;
	uint64_t guid, sys_guid;
	uint32_t vendor_id, revision;
	char desc[64]; /* not terminated when full */
	uint64_t next_tid;
	struct ag_trap *trap; /* [AG_TRAPS] */
	struct ag_switch *sw; /* NULL for a CA */
	struct ag_port *port; /* [0..num_ports]; a CA leaves [0] unused: it has no tables */
};

/** struct ag_node_config - the properties with which a node is created */
struct ag_node_config {
	uint8_t kind; /* enum wire_node_type */
	uint8_t num_ports;
	uint64_t guid, sys_guid;
	uint32_t vendor_id;
	uint16_t device_id;
	const char *desc;
	struct ag_memory memory; /* for a switch's tables */
	/* ag_node_seldom_size() zeroed bytes, owned by the caller like @memory of
	 * ag_node_init(); NULL: they are at the end of that memory */
	void *seldom;
};

/** ag_node_free_tables() - give to @release what ag_memory.alloc() has allocated, once nobody uses the node */
void ag_node_free_tables(struct ag_node *node, void (*release)(void *memory));
/** ag_node_size() - bytes that a node of this kind needs, 8-byte aligned */
size_t ag_node_size(const struct ag_node_config *config);
/** ag_node_seldom_size() - bytes of it that are not written before packets pass, or a
 *  manager uses rarely used functions: struct ag_seldom, SLtoVL tables, and the traps of a CA (a
 *  switch has a trap whenever a link comes up) */
size_t ag_node_seldom_size(const struct ag_node_config *config);
/**
 * ag_node_init() - initialise a node in @memory
 * @memory: ag_node_size() zeroed bytes, owned by the caller
 *
 * Ports are Down and Polling, with default GUIDs: guid + port for a CA. Set
 * other values (guid, speed_supported, ...) before the first MAD.
 */
struct ag_node *ag_node_init(const struct ag_node_config *config, void *memory);

/** struct ag_mad_context - the source of a MAD and the time */
struct ag_mad_context {
	mono_t now;
	uint16_t slid; /* as in the LRH */
	uint8_t sl;
	uint32_t src_qpn;
	uint16_t pkey;
	bool ignore_mkey; /* the node's own midlayer issued it (IB_MAD_IGNORE_MKEY) */
};

/** struct ag_effect - what processing a MAD changed */
struct ag_effect {
	uint8_t port;	  /* the port concerned */
	uint32_t changes; /* enum ag_change */
};

enum ag_result {
	AG_PASS = 0,	      /* not for the agents: pass it to the host */
	AG_CONSUMED = 1 << 0, /* it was for the agents */
	AG_REPLY = 1 << 1,    /* @out holds the answer */
};

/**
 * ag_process() - let the SMA and PMA of @node answer a MAD that reached @port
 * @in: 256 bytes; a directed-route SMP is passed only after the SMI found that
 *      its route ends here (agents/directed_route.h)
 * @out: 256 bytes, may be @in; written if the result has AG_REPLY. In the answer
 *       to a directed-route SMP the D bit is set; the SMI sends it back.
 * @effect: always set
 *
 * The agents answer the classes 0x01, 0x81 (except SMInfo, which is for the
 * subnet manager) and 0x04. They answer an unsupported method or attribute with
 * status 0x08 or 0x0c (13.4.7). They do not answer a MAD with a wrong M_Key, but
 * queue trap 256 (14.2.4).
 * Return: enum ag_result bits
 */
int ag_process(struct ag_node *node, uint8_t port, const struct ag_mad_context *ctx,
	       const uint8_t *in, uint8_t *out, struct ag_effect *effect);

/**
 * ag_refuse() - answer a request that nobody on the node serves
 * @mad: 256 bytes, the request; it is turned into the answer
 *
 * A request of an unsupported class, or SMInfo without a subnet manager, is
 * answered with "unsupported method and attribute" (13.4.7); one for a connection
 * is rejected (wire_cm_refuse()). Responses, traps and other Sends get no answer.
 * Return: true if @mad is an answer to be sent
 */
bool ag_refuse(uint8_t *mad);

/**
 * ag_port_link() - the link at @port came up (trained to @width, @speed) or went
 * down (@width 0, into @phys_state)
 *
 * A link that comes up enters LinkUp and Init. One that goes down enters Down,
 * and LinkDowned counts it if it was up. A switch sets PortStateChange and queues
 * trap 128 (14.2.5.1).
 * Return: enum ag_change bits of this port
 */
uint32_t ag_port_link(struct ag_node *node, uint8_t port, uint8_t width, uint16_t speed,
		      uint8_t phys_state, mono_t now);

/** ag_width_negotiate() - the widest in both masks; 0 none */
uint8_t ag_width_negotiate(uint8_t a, uint8_t b);
/** ag_speed_negotiate() - the fastest in both masks; 0 none */
uint16_t ag_speed_negotiate(uint16_t a, uint16_t b);
/** ag_width_lanes() - lanes of one wire_link_width bit */
unsigned int ag_width_lanes(uint8_t width);
/** ag_speed_mbps() - signalling rate per lane of one ag_speed bit */
unsigned int ag_speed_mbps(uint16_t speed);

/** ag_lft_get() - output port for @lid; WIRE_LFT_NO_PORT */
uint8_t ag_lft_get(const struct ag_node *node, uint16_t lid);
/** ag_mft_get() - is @port an output port of @mlid? */
bool ag_mft_get(const struct ag_node *node, uint16_t mlid, uint8_t port);
/** ag_lft_put(), ag_mft_put() - set one entry of a switch without a subnet manager; the
 *  caller invalidates routes. Return: 0; -ENOMEM */
int ag_lft_put(struct ag_node *node, uint16_t lid, uint8_t port);
int ag_mft_put(struct ag_node *node, uint16_t mlid, uint8_t port, bool member);

/** ag_op_count() - a packet with @opcode arrived on @vl; @dwords as in its LRH
 *  To be called for each packet while port->op_counted is not zero. */
void ag_op_count(struct ag_port *port, uint8_t opcode, uint8_t vl, uint32_t dwords);

/** ag_set_capability() - set or clear the bits @mask of PortInfo:CapabilityMask of a CA port,
 *  and queue trap 144 if that changes it. Return: enum ag_change bits */
uint32_t ag_set_capability(struct ag_node *node, uint8_t port, uint32_t mask, bool on,
			   mono_t now);

/** ag_set_description() - set NodeDescription on behalf of the node, and queue trap 144
 *  @desc: up to its NUL, at most 64 bytes */
void ag_set_description(struct ag_node *node, const char *desc, mono_t now);

/** ag_expiry() - when to call ag_expire() and ag_trap_take() next; MONO_NEVER */
mono_t ag_expiry(const struct ag_node *node);
/** ag_expire() - handle the end of sampling intervals and M_Key leases */
void ag_expire(struct ag_node *node, mono_t now);

/* --- traps --- */
/** ag_trap_pkey() - trap 257 (a CA port) or 259 (a switch's ingress) */
void ag_trap_pkey(struct ag_node *node, uint8_t port, uint16_t pkey, uint16_t slid, uint16_t dlid,
		  uint8_t sl, uint32_t src_qpn, uint32_t dst_qpn, mono_t now);
/** ag_trap_qkey() - trap 258: a Q_Key violation at a CA port */
void ag_trap_qkey(struct ag_node *node, uint8_t port, uint32_t qkey, uint16_t slid, uint16_t dlid,
		  uint8_t sl, uint32_t src_qpn, uint32_t dst_qpn, mono_t now);
/** ag_count_qkeys() - count Q_Key violations without sending a trap for them */
void ag_count_qkeys(struct ag_node *node, uint8_t port, uint32_t number);
/** ag_trap_threshold() - traps 129 (local integrity), 130 (overrun),
 *  131 (flow control watchdog) at a port */
void ag_trap_threshold(struct ag_node *node, uint8_t port, uint16_t number, mono_t now);
/**
 * ag_trap_take() - get the next Trap SMP that is due
 * @mad: 256 bytes
 * @port: set to the port that sends it (0 of a switch)
 *
 * The caller sends it to port->sm_lid with port->sm_sl. A trap is repeated after
 * each subnet time-out until its TrapRepress, at most AG_TRAP_SENDS times (13.4.9).
 * Return: true if @mad was filled
 */
bool ag_trap_take(struct ag_node *node, mono_t now, uint8_t *mad, uint8_t *port);

#endif
