/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The tables of the common MAD header and common attributes, and the
 * directory of classes. */
#include "wire/attrs.h"
#include "wire/bm.h"
#include "wire/cm.h"
#include "wire/dm.h"
#include "wire/fields_table.h"
#include "wire/pma.h"
#include "wire/sa.h"
#include "wire/smp.h"
#include "wire/vendor.h"

#define S struct wire_mad
static const struct wire_field mad_fields[] = {
	F(base_version, 0, 8),
	F(mgmt_class, 8, 8),
	F(class_version, 16, 8),
	F(method, 24, 8),
	F(status, 32, 16),
	F(class_specific, 48, 16),
	F(tid, 64, 64),
	F(attr_id, 128, 16),
	R(144, 16),
	F(attr_mod, 160, 32),
};
CODEC(mad, "MAD", WIRE_MAD_HEADER_BYTES);
#undef S

#define S struct wire_rmpp
static const struct wire_field rmpp_fields[] = {
	F(version, 0, 8),
	F(type, 8, 8),
	F(resp_time_enc, 16, 5),
	F(flags, 21, 3),
	F(status, 24, 8),
	F(segment, 32, 32),
	F(length, 64, 32),
};
CODEC(rmpp, "RMPP", WIRE_RMPP_BYTES);
#undef S

#define S struct wire_class_port_info
static const struct wire_field class_port_info_fields[] = {
	F(base_version, 0, 8),
	F(class_version, 8, 8),
	F(cap_mask, 16, 16),
	F(cap_mask2, 32, 27),
	F(resp_time_enc, 59, 5),
	B(redirect_gid.raw, 64, 16),
	F(redirect_tclass, 192, 8),
	F(redirect_sl, 200, 4),
	F(redirect_flow_label, 204, 20),
	F(redirect_lid, 224, 16),
	F(redirect_pkey, 240, 16),
	R(256, 8),
	F(redirect_qpn, 264, 24),
	F(redirect_qkey, 288, 32),
	B(trap_gid.raw, 320, 16),
	F(trap_tclass, 448, 8),
	F(trap_sl, 456, 4),
	F(trap_flow_label, 460, 20),
	F(trap_lid, 480, 16),
	F(trap_pkey, 496, 16),
	F(trap_hop_limit, 512, 8),
	F(trap_qpn, 520, 24),
	F(trap_qkey, 544, 32),
};
CODEC(class_port_info, "ClassPortInfo", 72);
#undef S

/* The fields of a Notice in every class */
#define NOTICE_FIELDS                                                                    \
	F(is_generic, 0, 1), F(type, 1, 7), F(producer, 8, 24), F(trap_number, 32, 16),  \
		F(issuer_lid, 48, 16), F(toggle, 64, 1), F(count, 65, 15),               \
		B(details, 80, WIRE_NOTICE_DETAILS_BYTES)
#define S struct wire_notice
static const struct wire_field notice_fields[] = {
	NOTICE_FIELDS,
	B(issuer_gid.raw, 512, 16),
};
CODEC(notice, "Notice", 80);

static const struct wire_field smp_notice_fields[] = {
	NOTICE_FIELDS,
};
CODEC(smp_notice, "Notice", 64);
#undef S

#define S struct wire_inform_info
static const struct wire_field inform_info_fields[] = {
	B(gid.raw, 0, 16),
	F(lid_range_begin, 128, 16),
	F(lid_range_end, 144, 16),
	R(160, 16),
	F(is_generic, 176, 8),
	F(subscribe, 184, 8),
	F(type, 192, 16),
	F(trap_number, 208, 16),
	F(qpn, 224, 24),
	R(248, 3),
	F(resp_time_enc, 251, 5),
	R(256, 8),
	F(producer, 264, 24),
};
CODEC(inform_info, "InformInfo", 36);
#undef S

const struct wire_mgmt_class wire_classes[] = {
	{"SubnLID", WIRE_CLASS_SM_LID, WIRE_CLASS_SM_LID, WIRE_SMP_CLASS_VERSION,
	 &wire_smp_lid_codec, WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, wire_smp_attrs},
	{"SubnDirect", WIRE_CLASS_SM_DIRECT, WIRE_CLASS_SM_DIRECT, WIRE_SMP_CLASS_VERSION,
	 &wire_smp_direct_codec, WIRE_SMP_DATA_OFFSET, WIRE_SMP_DATA_BYTES, wire_smp_attrs},
	{"SubnAdm", WIRE_CLASS_SA, WIRE_CLASS_SA, WIRE_SA_CLASS_VERSION, &wire_sa_codec,
	 WIRE_SA_DATA_OFFSET, WIRE_SA_DATA_BYTES, wire_sa_attrs},
	{"Perf", WIRE_CLASS_PERF, WIRE_CLASS_PERF, WIRE_PMA_CLASS_VERSION,
	 &wire_gmp_codec, WIRE_PMA_DATA_OFFSET, WIRE_PMA_DATA_BYTES,
	 wire_pma_attrs},
	{"BM", WIRE_CLASS_BM, WIRE_CLASS_BM, WIRE_BM_CLASS_VERSION, &wire_bm_codec,
	 WIRE_BM_DATA_OFFSET, WIRE_BM_DATA_BYTES, wire_bm_attrs},
	{"DevMgt", WIRE_CLASS_DM, WIRE_CLASS_DM, WIRE_DM_CLASS_VERSION, &wire_gmp_codec,
	 WIRE_DM_DATA_OFFSET, WIRE_DM_DATA_BYTES, wire_dm_attrs},
	{"ComMgt", WIRE_CLASS_CM, WIRE_CLASS_CM, WIRE_CM_CLASS_VERSION, &wire_mad_codec,
	 WIRE_CM_DATA_OFFSET, WIRE_CM_DATA_BYTES, wire_cm_attrs},
	{"Vendor", WIRE_CLASS_VENDOR_LOW, WIRE_CLASS_VENDOR_LOW_LAST, 1, &wire_mad_codec,
	 WIRE_VENDOR_LOW_DATA_OFFSET, WIRE_VENDOR_LOW_DATA_BYTES, NULL},
	{"VendorOUI", WIRE_CLASS_VENDOR_HIGH, WIRE_CLASS_VENDOR_HIGH_LAST, 1,
	 &wire_vendor_codec, WIRE_VENDOR_HIGH_DATA_OFFSET, WIRE_VENDOR_HIGH_DATA_BYTES, NULL},
};
const unsigned int wire_nr_classes = ARRAY_SIZE(wire_classes);

const struct wire_mgmt_class *wire_class_find(uint8_t mgmt_class)
{
	for (unsigned int i = 0; i < wire_nr_classes; i++)
		if (mgmt_class >= wire_classes[i].first &&
		    mgmt_class <= wire_classes[i].last)
			return &wire_classes[i];
	return NULL;
}

const struct wire_attr *wire_attr_find(const struct wire_mgmt_class *cls,
				       uint16_t attr_id)
{
	for (const struct wire_attr *a = cls->attrs; a && a->codec; a++)
		if (a->id == attr_id)
			return a;
	return NULL;
}

bool wire_class_has_rmpp(uint8_t mgmt_class)
{
	return mgmt_class == WIRE_CLASS_SA || mgmt_class == WIRE_CLASS_DEV_ADM ||
	       mgmt_class == WIRE_CLASS_BIS ||
	       (mgmt_class >= WIRE_CLASS_VENDOR_HIGH &&
		mgmt_class <= WIRE_CLASS_VENDOR_HIGH_LAST);
}
