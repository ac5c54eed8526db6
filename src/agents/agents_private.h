/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Shared by the agents' files: a request that is being processed. */
#ifndef SOFTIB_AGENTS_PRIVATE_H
#define SOFTIB_AGENTS_PRIVATE_H

#include "agents/agents.h"

/** ag_block() - a block of a switch's table. @chapters: ag_switch.lft, mft. Return: NULL: it was never written */
static inline void *ag_block(void **const *chapters, unsigned int block)
{
	void **chapter = chapters[block / AG_CHAPTER_BLOCKS];

	return chapter ? chapter[block % AG_CHAPTER_BLOCKS] : NULL;
}

#define AG_GUIDS_CA 16
#define AG_GUIDS_SWITCH 1
#define AG_PKEYS_CA 128
#define AG_PKEYS_SWITCH 32

/** struct ag_request - one Get or Set being answered */
struct ag_request {
	struct ag_node *node;
	struct ag_port *port; /* the port whose M_Key and LID apply: port 0 of a switch */
	uint8_t port_num;     /* of @port */
	uint8_t in_port;      /* the ingress port; of a switch 0 if unknown */
	const struct ag_mad_context *ctx;
	bool set;
	uint32_t attr_mod;
	uint64_t mkey;
	uint8_t *data; /* the attribute of the request, which becomes that of the answer */
	struct ag_effect *effect;
};

/** ag_attr_fn - Get or Set of an attribute: a Get copies state to rq->data, a Set copies
 *  rq->data to the state. Return: enum wire_status */
typedef uint16_t (*ag_attr_fn)(struct ag_request *rq);

/** struct ag_attr - an attribute that the agent supports; NULL: unsupported method */
struct ag_attr {
	uint16_t id;
	bool switch_only;
	ag_attr_fn get, set;
};

/** ag_attr_run() - find the attribute in @table and execute the request's method */
uint16_t ag_attr_run(const struct ag_attr *table, size_t n, uint16_t attr_id,
		     struct ag_request *rq);

uint16_t ag_port_info_get(struct ag_request *rq);
uint16_t ag_port_info_set(struct ag_request *rq);
uint16_t ag_guid_info_get(struct ag_request *rq);
uint16_t ag_guid_info_set(struct ag_request *rq);
uint16_t ag_pkey_table_get(struct ag_request *rq);
uint16_t ag_pkey_table_set(struct ag_request *rq);
uint16_t ag_sl_to_vl_get(struct ag_request *rq);
uint16_t ag_sl_to_vl_set(struct ag_request *rq);
uint16_t ag_vl_arb_get(struct ag_request *rq);
uint16_t ag_vl_arb_set(struct ag_request *rq);
uint16_t ag_lft_block_get(struct ag_request *rq);
uint16_t ag_lft_block_set(struct ag_request *rq);
uint16_t ag_mft_block_get(struct ag_request *rq);
uint16_t ag_mft_block_set(struct ag_request *rq);

/** ag_mkey_check() - does the M_Key permit @rq (14.2.4)? If not, count and queue a trap */
bool ag_mkey_check(struct ag_request *rq, const struct wire_smp *smp);
/** ag_mkey_shown() - may @rq read PortInfo.M_Key? */
bool ag_mkey_shown(const struct ag_request *rq);

/** ag_sma() - answer an SMP in @mad, in place. Return: enum ag_result */
int ag_sma(struct ag_node *node, uint8_t port, const struct ag_mad_context *ctx, uint8_t *mad,
	   struct ag_effect *effect);
/** ag_pma() - answer a performance MAD in @mad, in place */
int ag_pma(struct ag_node *node, uint8_t port, const struct ag_mad_context *ctx, uint8_t *mad,
	   struct ag_effect *effect);

/** ag_is_request() - does a MAD of this method wait for an answer? (13.4.5) */
bool ag_is_request(uint8_t method);

/** ag_trap_mkey() - trap 256 */
void ag_trap_mkey(struct ag_node *node, uint8_t port, uint16_t slid, const struct wire_smp *smp,
		  mono_t now);
/** ag_trap_link_state() - trap 128 of a switch */
void ag_trap_link_state(struct ag_node *node, mono_t now);
/** ag_trap_changes() - trap 144 for the capability mask, or for enum wire_trap_change */
void ag_trap_changes(struct ag_node *node, uint8_t port, uint8_t flags, mono_t now);
/** ag_trap_repress() - the SM has received the notice. Return: true if a trap was ended */
bool ag_trap_repress(struct ag_node *node, uint64_t tid, const uint8_t *notice);

/** ag_samples_expire() - advance a port's sampling to @now */
void ag_samples_expire(struct ag_port *port, mono_t now);
uint16_t ag_samples_control_get(struct ag_request *rq);
uint16_t ag_samples_control_set(struct ag_request *rq);
uint16_t ag_samples_result_get(struct ag_request *rq);
uint16_t ag_samples_result_ext_get(struct ag_request *rq);

/** ag_pma_ports() - the ports that PortSelect selects. Return: false if there are none */
bool ag_pma_ports(const struct ag_request *rq, uint8_t select, unsigned int *first,
		  unsigned int *last);
uint16_t ag_op_rcv_get(struct ag_request *rq);
uint16_t ag_op_rcv_set(struct ag_request *rq);
uint16_t ag_vl_op_packets_get(struct ag_request *rq);
uint16_t ag_vl_op_packets_set(struct ag_request *rq);
uint16_t ag_vl_op_data_get(struct ag_request *rq);
uint16_t ag_vl_op_data_set(struct ag_request *rq);
uint16_t ag_vl_xmit_wait_get(struct ag_request *rq);
uint16_t ag_vl_xmit_wait_set(struct ag_request *rq);
/* counters of events that do not occur here: always zero, the same function for Get and Set */
uint16_t ag_port_flow_ctl_counters(struct ag_request *rq);
uint16_t ag_port_vl_xmit_flow_ctl_update_errors(struct ag_request *rq);
uint16_t ag_port_ext_speeds_counters(struct ag_request *rq);
uint16_t ag_sw_port_vl_congestion(struct ag_request *rq);
uint16_t ag_port_rcv_con_ctrl(struct ag_request *rq);
uint16_t ag_port_sl_rcv_fecn(struct ag_request *rq);
uint16_t ag_port_sl_rcv_becn(struct ag_request *rq);
uint16_t ag_port_xmit_con_ctrl(struct ag_request *rq);
uint16_t ag_port_vl_xmit_time_cong(struct ag_request *rq);

/** ag_base_port() - the port whose PortInfo has the M_Key and LID for @port */
static inline uint8_t ag_base_port(const struct ag_node *node, uint8_t port)
{
	return node->kind == WIRE_NODE_SWITCH ? 0 : port;
}

/** ag_port_exists() - does the node have this port? Only a switch has port 0. */
static inline bool ag_port_exists(const struct ag_node *node, unsigned int port)
{
	return port <= node->num_ports && (port || node->kind == WIRE_NODE_SWITCH);
}

#endif
