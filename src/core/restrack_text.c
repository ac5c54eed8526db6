/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The text that `softib resource show` prints for an object beside its owner. */
#include <stdio.h>

#include "core/cm_priv.h"
#include "core/mad_priv.h"
#include "core/private.h"
#include "core/rdma_cm_priv.h"
#include "core/sa_priv.h"

static const char *name_in(const char *const *names, size_t num, unsigned int i)
{
	return i < num && names[i] ? names[i] : "?";
}
#define NAME_IN(names, i) name_in(names, ARRAY_SIZE(names), (unsigned int)(i))

static void describe_qp(const struct rdma_restrack_entry *entry, char *text, size_t bytes)
{
	static const char *const types[] = {
		[IB_QPT_SMI] = "SMI", [IB_QPT_GSI] = "GSI", [IB_QPT_RC] = "RC",
		[IB_QPT_UC] = "UC",   [IB_QPT_UD] = "UD",   [IB_QPT_XRC_INI] = "XRC_INI",
		[IB_QPT_XRC_TGT] = "XRC_TGT", [IB_QPT_RD] = "RD", [IB_QPT_EEC] = "EEC",
		[IB_QPT_RAW_PACKET] = "RAW",
	};
	static const char *const states[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	const struct ib_qp *qp = container_of(entry, const struct ib_qp, res);
	int n = snprintf(text, bytes, "%s, %s", NAME_IN(types, qp->qp_type),
			 NAME_IN(states, qp->state));

	if (qp->attr.dest_qp_num && n > 0 && (size_t)n < bytes)
		snprintf(text + n, bytes - (size_t)n, ", to QP 0x%06x", qp->attr.dest_qp_num);
}

static void describe_cq(const struct rdma_restrack_entry *entry, char *text, size_t bytes)
{
	const struct ib_cq *cq = container_of(entry, const struct ib_cq, res);

	snprintf(text, bytes, "%d entries, %u users", cq->cqe, cq->usecnt);
}

static void describe_pd(const struct rdma_restrack_entry *entry, char *text, size_t bytes)
{
	snprintf(text, bytes, "%u users", container_of(entry, const struct ib_pd, res)->usecnt);
}

static void describe_mr(const struct rdma_restrack_entry *entry, char *text, size_t bytes)
{
	const struct ib_mr *mr = container_of(entry, const struct ib_mr, res);

	if (!mr->length && !mr->uobject && mr->made_of == IB_MR_WHOLE)
		snprintf(text, bytes, "all memory");
	else if (mr->length)
		snprintf(text, bytes, "%llu bytes", (unsigned long long)mr->length);
}

static void describe_fmr(const struct rdma_restrack_entry *entry, char *text, size_t bytes)
{
	const struct ib_fmr *fmr = container_of(entry, const struct ib_fmr, res);

	snprintf(text, bytes, "%u pages at most, mapped %d of %d times", fmr->max_pages, fmr->maps,
		 fmr->max_maps);
}

static void describe_cm_id(const struct rdma_restrack_entry *entry, char *text, size_t bytes)
{
	static const char *const states[] = {
		"idle",		"listening",	"REQ sent", "REQ received", "MRA of REQ sent",
		"MRA of REQ received", "REP sent", "REP received", "MRA of REP sent",
		"MRA of REP received", "established", "DREQ sent", "DREQ received", "time-wait",
		"SIDR REQ sent", "SIDR REQ received"};
	const struct cm_id *id = container_of(entry, const struct cm_id, res);

	snprintf(text, bytes, "%s, service 0x%016llx", NAME_IN(states, id->id.state),
		 (unsigned long long)be64_to_cpu(id->id.service_id));
}

static void describe_rdma_cm_id(const struct rdma_restrack_entry *entry, char *text, size_t bytes)
{
	static const char *const states[] = {
		"idle", "bound", "address query", "address resolved", "route query", "route resolved",
		"connected", "disconnected", "listening", "device gone"};
	const struct rcm_id *id = container_of(entry, const struct rcm_tracked, res)->id;
	const struct rdma_addr *addr = &id->id.route.addr;
	char from[TRACE_ADDRESS_BYTES], to[TRACE_ADDRESS_BYTES];
	int n = snprintf(text, bytes, "%s, %s", NAME_IN(states, id->state),
			 trace_address(&addr->src_addr, from));

	if (addr->dst_addr.ss_family && n > 0 && (size_t)n < bytes)
		snprintf(text + n, bytes - (size_t)n, " to %s", trace_address(&addr->dst_addr, to));
}

static void describe_agent(const struct rdma_restrack_entry *entry, char *text, size_t bytes)
{
	const struct ib_mad_agent *mad = container_of(entry, const struct ib_mad_agent, res);
	const struct mad_agent *agent = container_of(mad, const struct mad_agent, agent);
	unsigned int qpn = agent->mqp == &agent->port->qp[IB_QPT_SMI] ? 0 : 1;

	if (mad->snoop_handler || agent->snoop_flags)
		snprintf(text, bytes, "port %u, QP%u, sees all", mad->port_num, qpn);
	else if (agent->registered)
		snprintf(text, bytes, "port %u, QP%u, class 0x%02x version %u", mad->port_num, qpn,
			 agent->reg_req.mgmt_class, agent->reg_req.mgmt_class_version);
	else
		snprintf(text, bytes, "port %u, QP%u, sends alone", mad->port_num, qpn);
}

static void describe_query(const struct rdma_restrack_entry *entry, char *text, size_t bytes)
{
	const struct ib_sa_query *query = container_of(entry, const struct ib_sa_query, res);
	const struct ib_mad_hdr *hdr = (const void *)query->mad;

	snprintf(text, bytes, "port %u, method 0x%02x, attribute 0x%04x%s", query->port->port_num,
		 hdr->method, be16_to_cpu(hdr->attr_id), query->buf ? "" : ", waits");
}

const char *rdma_restrack_describe(const struct rdma_restrack_entry *entry,
				   char text[RDMA_RESTRACK_TEXT_BYTES])
{
	static void (*const describe[])(const struct rdma_restrack_entry *entry, char *text,
					size_t bytes) = {
		[RDMA_RESTRACK_PD] = describe_pd,
		[RDMA_RESTRACK_CQ] = describe_cq,
		[RDMA_RESTRACK_QP] = describe_qp,
		[RDMA_RESTRACK_CM_ID] = describe_cm_id,
		[RDMA_RESTRACK_MR] = describe_mr,
		[RDMA_RESTRACK_FMR] = describe_fmr,
		[RDMA_RESTRACK_MAD_AGENT] = describe_agent,
		[RDMA_RESTRACK_SA_QUERY] = describe_query,
		[RDMA_RESTRACK_RDMA_CM_ID] = describe_rdma_cm_id,
	};

	text[0] = 0;
	if (entry->type < ARRAY_SIZE(describe) && describe[entry->type])
		describe[entry->type](entry, text, RDMA_RESTRACK_TEXT_BYTES);
	return text;
}
