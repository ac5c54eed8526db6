/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The trace points of the midlayer (runtime/trace.h): connections, queries to the subnet
 * administrator, MADs, queue pairs and the events of devices.
 *
 * Ids of the CM are communication ids of this end, which `softib resource show` lists too;
 * an id 0 is not known yet. Ids of the RDMA CM are told apart by their first PSN.
 */
#ifndef SOFTIB_CORE_TRACE_H
#define SOFTIB_CORE_TRACE_H

#include <inttypes.h>

#include "base/bytes.h"
#include "runtime/trace.h"

struct sockaddr_storage;

/* clang-format off */
#define CORE_TRACE_POINTS(P)                                                             \
	P(CM, cm_send,                                                                   \
	  (const char *message, uint32_t id, uint32_t peer, const char *more, int error),\
	  (message, id, peer, more, error),                                              \
	  "message=%s id=0x%08x peer=0x%08x%s error=%d",                                 \
	  "A message is sent, or sent again; error is not 0 if it could not be.")        \
	P(CM, cm_receive, (const char *message, uint32_t id, uint32_t peer, const char *more), \
	  (message, id, peer, more), "message=%s id=0x%08x peer=0x%08x%s",               \
	  "A message arrived, and is about to be processed.")                            \
	P(CM, cm_ignore, (const char *message, uint32_t id, uint32_t peer),              \
	  (message, id, peer), "message=%s id=0x%08x peer=0x%08x",                       \
	  "The message that arrived last belongs to no connection, or changes nothing in its state.") \
	P(CM, cm_state, (uint32_t id, uint32_t peer, uint64_t service, const char *from, \
	   const char *to), (id, peer, service, from, to),                               \
	  "id=0x%08x peer=0x%08x service=0x%016" PRIx64 " from=%s to=%s",                \
	  "A communication id changes its state.")                                       \
	P(CM, cm_lap_state, (uint32_t id, uint32_t peer, const char *from, const char *to), \
	  (id, peer, from, to), "id=0x%08x peer=0x%08x from=%s to=%s",                   \
	  "The exchange about the alternate path of a connection changes its state.")    \
	P(CM, cm_event, (uint32_t id, uint32_t peer, const char *event),                 \
	  (id, peer, event), "id=0x%08x peer=0x%08x event=%s",                           \
	  "The consumer of a communication id is told what happened.")                   \
	P(RDMA_CM, rdma_cm_call, (uint32_t id, const char *call), (id, call),            \
	  "id=0x%06x call=%s", "The owner of an id of the RDMA CM calls a function.")    \
	P(RDMA_CM, rdma_cm_event, (uint32_t id, const char *event, int status,           \
	   const struct sockaddr_storage *src, const struct sockaddr_storage *dst),      \
	  (id, event, status, trace_address(src, (char[TRACE_ADDRESS_BYTES]){0}),        \
	   trace_address(dst, (char[TRACE_ADDRESS_BYTES]){0})),                          \
	  "id=0x%06x event=%s status=%d src=%s dst=%s",                                  \
	  "The owner of an id of the RDMA CM is told what happened.")                    \
	P(SA, sa_query, (int id, unsigned int method, unsigned int attr, uint64_t mask,  \
	   unsigned long timeout_ms), (id, method, attr, mask, timeout_ms),              \
	  "id=%d method=0x%02x attr=0x%04x mask=0x%" PRIx64 " timeout_ms=%lu",           \
	  "Somebody asks the subnet administrator.")                                     \
	P(SA, sa_cached, (int id), (id), "id=%d",                                        \
	  "A question is answered without the subnet administrator, by the cache of paths.") \
	P(SA, sa_send, (int id, int timeout_ms, int error), (id, timeout_ms, error),     \
	  "id=%d timeout_ms=%d error=%d",                                                \
	  "A try of a question is sent; error is not 0 if it could not be.")             \
	P(SA, sa_timeout, (int id), (id), "id=%d", "A try of a question was not answered in its time.") \
	P(SA, sa_busy, (int id), (id), "id=%d", "The subnet administrator is busy: the question is asked again.") \
	P(SA, sa_answer, (int id, unsigned int status), (id, status), "id=%d status=0x%04x", \
	  "The subnet administrator has answered.")                                      \
	P(SA, sa_done, (int id, int status, unsigned int records), (id, status, records), \
	  "id=%d status=%d records=%u", "A question is over, and its asker is told.")    \
	P(SA, sa_member, (const uint8_t *mgid, const char *what, unsigned int join_state, int status), \
	  (get_be64(mgid), get_be64(mgid + 8), what, join_state, status),                        \
	  "mgid=%016" PRIx64 "%016" PRIx64 " what=%s join_state=0x%x status=%d",         \
	  "A member of a multicast group joins, joined, was refused or leaves.")         \
	P(SA, sa_notice, (unsigned int trap, unsigned int lid), (trap, lid), "trap=%u issuer_lid=%u", \
	  "A Report of the subnet administrator arrived.")                               \
	P(SA, sa_subscribe, (unsigned int trap, const char *what, int error), (trap, what, error), \
	  "trap=%u what=%s error=%d", "A subscription to the reports of a trap is asked for or given up.") \
	P(MAD, mad_agent, (uint32_t agent, const char *what, unsigned int mgmt_class,    \
	   unsigned int version, const char *client), (agent, what, mgmt_class, version, client), \
	  "agent=0x%08x what=%s class=0x%02x version=%u client=%s",                      \
	  "A MAD agent is registered or unregistered; class 0: it receives only answers.") \
	P(MAD, mad_send, (uint32_t agent, const void *mad, int timeout_ms, int retries), \
	  (agent, MAD_TRACE_FIELDS(mad), timeout_ms, retries),                           \
	  "agent=0x%08x " MAD_TRACE_FORMAT " timeout_ms=%d retries=%d", "An agent sends a MAD.") \
	P(MAD, mad_retry, (uint32_t agent, const void *mad, int left),                   \
	  (agent, MAD_TRACE_FIELDS(mad), left), "agent=0x%08x " MAD_TRACE_FORMAT " left=%d", \
	  "A MAD was not answered in its time, and is sent again if left is not below 0.") \
	P(MAD, mad_done, (uint32_t agent, const void *mad, int status),                  \
	  (agent, MAD_TRACE_FIELDS(mad), status), "agent=0x%08x " MAD_TRACE_FORMAT " wc_status=%d", \
	  "A MAD that was sent is over: it was sent, answered, cancelled or has timed out.") \
	P(MAD, mad_receive, (const void *mad, unsigned int slid, uint32_t src_qpn),      \
	  (MAD_TRACE_FIELDS(mad), slid, src_qpn), MAD_TRACE_FORMAT " slid=%u src_qpn=0x%06x", \
	  "A MAD arrived.")                                                              \
	P(MAD, mad_deliver, (uint32_t agent, const void *mad), (agent, MAD_TRACE_FIELDS(mad)), \
	  "agent=0x%08x " MAD_TRACE_FORMAT, "A MAD is for this agent.")                  \
	P(MAD, mad_unwanted, (const void *mad), (MAD_TRACE_FIELDS(mad)), MAD_TRACE_FORMAT, \
	  "No agent takes a MAD that arrived.")                                          \
	P(QP, qp_create, (uint32_t qpn, int type, const char *owner, int pid), (qpn, type, owner, pid), \
	  "qpn=0x%06x type=%d owner=%s pid=%d", "A queue pair is created.")              \
	P(QP, qp_modify, (uint32_t qpn, const char *from, const char *to, int mask, int error), \
	  (qpn, from, to, (unsigned int)mask, error), "qpn=0x%06x from=%s to=%s mask=0x%x error=%d", \
	  "A queue pair is modified; error is not 0 if it was not.")                     \
	P(QP, qp_destroy, (uint32_t qpn, const char *state), (qpn, state), "qpn=0x%06x state=%s", \
	  "A queue pair is destroyed.")                                                  \
	P(QP, qp_event, (uint32_t qpn, const char *event), (qpn, event), "qpn=0x%06x event=%s", \
	  "An asynchronous event of a queue pair is delivered.")                         \
	P(HCA, hca_event, (const char *event), (event), "event=%s",                      \
	  "An asynchronous event of a port or of the adapter is delivered.")
/* clang-format on */

/* of a MAD's header: numbers as the specification has them */
#define MAD_TRACE_FORMAT                                                                 \
	"class=0x%02x method=0x%02x attr=0x%04x mod=0x%08x tid=0x%016" PRIx64 " status=0x%04x"
#define MAD_TRACE_FIELDS(mad)                                                            \
	((const uint8_t *)(mad))[1], ((const uint8_t *)(mad))[3],                        \
		get_be16((const uint8_t *)(mad) + 16), get_be32((const uint8_t *)(mad) + 20), \
		get_be64((const uint8_t *)(mad) + 8), get_be16((const uint8_t *)(mad) + 4)

#define TRACE_ADDRESS_BYTES 80
/** trace_address() - "10.1.0.1:7174", "[::1]:7174" or a GID; "-" where there is none. Return: @text */
const char *trace_address(const struct sockaddr_storage *addr, char text[TRACE_ADDRESS_BYTES]);

enum { CORE_TRACE_POINTS(RT_TRACE_ID) CORE_NUM_TRACE_POINTS };
extern const struct rt_trace_point core_trace_points[CORE_NUM_TRACE_POINTS];

#define RT_TRACE_TABLE core_trace_points
CORE_TRACE_POINTS(RT_TRACE_FUNCTION)
#undef RT_TRACE_TABLE

/** trace_qp_state_name() - "RTS" of IB_QPS_RTS, and so on
 *  trace_event_name() - "PORT_ACTIVE" of IB_EVENT_PORT_ACTIVE */
const char *trace_qp_state_name(unsigned int state);
const char *trace_event_name(unsigned int event);
/** trace_cm_event_name() - "ESTABLISHED" of RDMA_CM_EVENT_ESTABLISHED */
const char *trace_cm_event_name(unsigned int event);

#endif
