/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tables of communication management, in the order of cm.h. */
#include "wire/cm.h"

#include <string.h>

#include "wire/attrs.h"
#include "wire/fields_table.h"

#define S struct wire_cm_path
static const struct wire_field cm_path_fields[] = {
	F(local_lid, 0, 16),
	F(remote_lid, 16, 16),
	B(local_gid.raw, 32, 16),
	B(remote_gid.raw, 160, 16),
	F(flow_label, 288, 20),
	R(308, 6),
	F(packet_rate, 314, 6),
	F(tclass, 320, 8),
	F(hop_limit, 328, 8),
	F(sl, 336, 4),
	F(subnet_local, 340, 1),
	R(341, 3),
	F(local_ack_timeout_enc, 344, 5),
	R(349, 3),
};
CODEC(cm_path, "path of a REQ", 44);

static const struct wire_field cm_lap_path_fields[] = {
	F(local_lid, 0, 16),
	F(remote_lid, 16, 16),
	B(local_gid.raw, 32, 16),
	B(remote_gid.raw, 160, 16),
	F(flow_label, 288, 20),
	R(308, 4),
	F(tclass, 312, 8),
	F(hop_limit, 320, 8),
	R(328, 2),
	F(packet_rate, 330, 6),
	F(sl, 336, 4),
	F(subnet_local, 340, 1),
	R(341, 3),
	F(local_ack_timeout_enc, 344, 5),
	R(349, 3),
};
CODEC(cm_lap_path, "path of a LAP", 44);
#undef S

#define S struct wire_cm_req
static const struct wire_field cm_req_fields[] = {
	F(local_comm_id, 0, 32),
	R(32, 32),
	F(service_id, 64, 64),
	F(local_ca_guid, 128, 64),
	F(vendor_id, 192, 24),
	R(216, 8),
	F(local_qkey, 224, 32),
	F(local_qpn, 256, 24),
	F(responder_resources, 280, 8),
	F(local_eecn, 288, 24),
	F(initiator_depth, 312, 8),
	F(remote_eecn, 320, 24),
	F(remote_cm_response_timeout_enc, 344, 5),
	F(transport_service, 349, 2),
	F(end_to_end_flow_control, 351, 1),
	F(starting_psn, 352, 24),
	F(local_cm_response_timeout_enc, 376, 5),
	F(retry_count, 381, 3),
	F(pkey, 384, 16),
	F(path_mtu, 400, 4),
	F(rdc_exists, 404, 1),
	F(rnr_retry_count, 405, 3),
	F(max_cm_retries, 408, 4),
	F(srq, 412, 1),
	F(extended_transport, 413, 3),
	N(primary, 416, cm_path),
	N(alternate, 768, cm_path),
	B(private_data, 1120, 92),
};
CODEC(cm_req, "ConnectRequest", WIRE_CM_DATA_BYTES);
#undef S

/* Every later message names both ends */
#define COMM_IDS F(local_comm_id, 0, 32), F(remote_comm_id, 32, 32)

#define S struct wire_cm_mra
static const struct wire_field cm_mra_fields[] = {
	COMM_IDS,
	F(message, 64, 2),
	R(66, 6),
	F(service_timeout_enc, 72, 5),
	R(77, 3),
	B(private_data, 80, 222),
};
CODEC(cm_mra, "MsgRcptAck", WIRE_CM_DATA_BYTES);
#undef S

#define S struct wire_cm_rej
static const struct wire_field cm_rej_fields[] = {
	COMM_IDS,
	F(message, 64, 2),
	R(66, 6),
	F(info_bytes, 72, 7),
	R(79, 1),
	F(reason, 80, 16),
	B(info, 96, 72),
	B(private_data, 672, 148),
};
CODEC(cm_rej, "ConnectReject", WIRE_CM_DATA_BYTES);
#undef S

#define S struct wire_cm_rep
static const struct wire_field cm_rep_fields[] = {
	COMM_IDS,
	F(local_qkey, 64, 32),
	F(local_qpn, 96, 24),
	F(vendor_id_high, 120, 8),
	F(local_eecn, 128, 24),
	F(vendor_id_mid, 152, 8),
	F(starting_psn, 160, 24),
	F(vendor_id_low, 184, 8),
	F(responder_resources, 192, 8),
	F(initiator_depth, 200, 8),
	F(target_ack_delay_enc, 208, 5),
	F(failover_accepted, 213, 2),
	F(end_to_end_flow_control, 215, 1),
	F(rnr_retry_count, 216, 3),
	F(srq, 219, 1),
	R(220, 4),
	F(local_ca_guid, 224, 64),
	B(private_data, 288, 196),
};
CODEC(cm_rep, "ConnectReply", WIRE_CM_DATA_BYTES);
#undef S

#define S struct wire_cm_rtu
static const struct wire_field cm_rtu_fields[] = {
	COMM_IDS,
	B(private_data, 64, 224),
};
CODEC(cm_rtu, "ReadyToUse", WIRE_CM_DATA_BYTES);
#undef S

#define S struct wire_cm_dreq
static const struct wire_field cm_dreq_fields[] = {
	COMM_IDS,
	F(remote_qpn, 64, 24),
	R(88, 8),
	B(private_data, 96, 220),
};
CODEC(cm_dreq, "DisconnectRequest", WIRE_CM_DATA_BYTES);
#undef S

#define S struct wire_cm_drep
static const struct wire_field cm_drep_fields[] = {
	COMM_IDS,
	B(private_data, 64, 224),
};
CODEC(cm_drep, "DisconnectReply", WIRE_CM_DATA_BYTES);
#undef S

#define S struct wire_cm_lap
static const struct wire_field cm_lap_fields[] = {
	COMM_IDS,
	R(64, 32),
	F(remote_qpn, 96, 24),
	F(remote_cm_response_timeout_enc, 120, 5),
	R(125, 3),
	R(128, 32),
	N(alternate, 160, cm_lap_path),
	B(private_data, 512, 168),
};
CODEC(cm_lap, "LoadAlternatePath", WIRE_CM_DATA_BYTES);
#undef S

#define S struct wire_cm_apr
static const struct wire_field cm_apr_fields[] = {
	COMM_IDS,
	F(info_bytes, 64, 8),
	F(status, 72, 8),
	R(80, 16),
	B(info, 96, 72),
	B(private_data, 672, 148),
};
CODEC(cm_apr, "AlternatePathResponse", WIRE_CM_DATA_BYTES);
#undef S

#define S struct wire_cm_sidr_req
static const struct wire_field cm_sidr_req_fields[] = {
	F(request_id, 0, 32),
	F(pkey, 32, 16),
	R(48, 16),
	F(service_id, 64, 64),
	B(private_data, 128, 216),
};
CODEC(cm_sidr_req, "ServiceIDResReq", WIRE_CM_DATA_BYTES);
#undef S

#define S struct wire_cm_sidr_rep
static const struct wire_field cm_sidr_rep_fields[] = {
	F(request_id, 0, 32),
	F(status, 32, 8),
	F(info_bytes, 40, 8),
	R(48, 16),
	F(qpn, 64, 24),
	R(88, 8),
	F(service_id, 96, 64),
	F(qkey, 160, 32),
	B(info, 192, 72),
	B(private_data, 768, 136),
};
CODEC(cm_sidr_rep, "ServiceIDResReqResp", WIRE_CM_DATA_BYTES);
#undef S

const struct wire_attr wire_cm_attrs[] = {
	{WIRE_CM_CLASS_PORT_INFO, &wire_class_port_info_codec},
	{WIRE_CM_REQ, &wire_cm_req_codec},
	{WIRE_CM_MRA, &wire_cm_mra_codec},
	{WIRE_CM_REJ, &wire_cm_rej_codec},
	{WIRE_CM_REP, &wire_cm_rep_codec},
	{WIRE_CM_RTU, &wire_cm_rtu_codec},
	{WIRE_CM_DREQ, &wire_cm_dreq_codec},
	{WIRE_CM_DREP, &wire_cm_drep_codec},
	{WIRE_CM_SIDR_REQ, &wire_cm_sidr_req_codec},
	{WIRE_CM_SIDR_REP, &wire_cm_sidr_rep_codec},
	{WIRE_CM_LAP, &wire_cm_lap_codec},
	{WIRE_CM_APR, &wire_cm_apr_codec},
	{0, NULL},
};

static uint16_t reject_req(const uint8_t *in, uint8_t *out)
{
	struct wire_cm_req req;
	struct wire_cm_rej rej = {.reason = WIRE_CM_REJ_INVALID_SERVICE_ID};

	wire_cm_req_decode(in, WIRE_CM_DATA_BYTES, &req);
	rej.remote_comm_id = req.local_comm_id;
	wire_cm_rej_encode(&rej, out);
	return WIRE_CM_REJ;
}

static uint16_t reject_sidr_req(const uint8_t *in, uint8_t *out)
{
	struct wire_cm_sidr_req req;
	struct wire_cm_sidr_rep rep = {.status = WIRE_CM_SIDR_UNSUPPORTED};

	wire_cm_sidr_req_decode(in, WIRE_CM_DATA_BYTES, &req);
	rep.request_id = req.request_id;
	rep.service_id = req.service_id;
	wire_cm_sidr_rep_encode(&rep, out);
	return WIRE_CM_SIDR_REP;
}

static uint16_t confirm_dreq(const uint8_t *in, uint8_t *out)
{
	struct wire_cm_dreq req;
	struct wire_cm_drep rep = {0};

	wire_cm_dreq_decode(in, WIRE_CM_DATA_BYTES, &req);
	rep.local_comm_id = req.remote_comm_id;
	rep.remote_comm_id = req.local_comm_id;
	wire_cm_drep_encode(&rep, out);
	return WIRE_CM_DREP;
}

bool wire_cm_refuse(uint8_t *mad)
{
	uint8_t in[WIRE_CM_DATA_BYTES], *data = mad + WIRE_CM_DATA_OFFSET;
	struct wire_mad hdr;

	wire_mad_decode(mad, WIRE_MAD_BYTES, &hdr);
	if (hdr.mgmt_class != WIRE_CLASS_CM || hdr.class_version != WIRE_CM_CLASS_VERSION ||
	    hdr.method != WIRE_METHOD_SEND)
		return false;
	memcpy(in, data, sizeof(in));
	memset(data, 0, WIRE_CM_DATA_BYTES);
	switch (hdr.attr_id) {
	case WIRE_CM_REQ:
		hdr.attr_id = reject_req(in, data);
		break;
	case WIRE_CM_SIDR_REQ:
		hdr.attr_id = reject_sidr_req(in, data);
		break;
	case WIRE_CM_DREQ:
		hdr.attr_id = confirm_dreq(in, data);
		break;
	default:
		memcpy(data, in, sizeof(in));
		return false;
	}
	hdr.status = 0;
	wire_mad_encode(&hdr, mad);
	return true;
}
