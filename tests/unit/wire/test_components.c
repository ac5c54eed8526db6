/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Component masks: a field's bit is its position in the table. OpenSM's
 * header, which no one here wrote, names the same bits.
 */
#include "../test.h"

#include <infiniband/iba/ib_types.h>

#include "wire/sa.h"

#define SAME(ours, theirs)                                                               \
	{                                                                                \
#ours, (uint64_t)(ours), be64toh(theirs)                                 \
	}

static void bits_are_opensms(void **state)
{
	const struct {
		const char *name;
		uint64_t ours, theirs;
	} cases[] = {
	    SAME(WIRE_NR_LID, IB_NR_COMPMASK_LID),
	    SAME(WIRE_NR_NODE_TYPE, IB_NR_COMPMASK_NODETYPE),
	    SAME(WIRE_NR_NR_PORTS, IB_NR_COMPMASK_NUMPORTS),
	    SAME(WIRE_NR_SYSTEM_GUID, IB_NR_COMPMASK_SYSIMAGEGUID),
	    SAME(WIRE_NR_NODE_GUID, IB_NR_COMPMASK_NODEGUID),
	    SAME(WIRE_NR_PORT_GUID, IB_NR_COMPMASK_PORTGUID),
	    SAME(WIRE_NR_LOCAL_PORT, IB_NR_COMPMASK_PORTNUM),
	    SAME(WIRE_NR_DESCRIPTION, IB_NR_COMPMASK_NODEDESC),
	    SAME(WIRE_PIR_LID, IB_PIR_COMPMASK_LID),
	    SAME(WIRE_PIR_PORT, IB_PIR_COMPMASK_PORTNUM),
	    SAME(WIRE_PIR_BASE_LID, IB_PIR_COMPMASK_BASELID),
	    SAME(WIRE_PIR_SM_LID, IB_PIR_COMPMASK_SMLID),
	    SAME(WIRE_PIR_CAP_MASK, IB_PIR_COMPMASK_CAPMASK),
	    SAME(WIRE_PIR_PORT_STATE, IB_PIR_COMPMASK_PORTSTATE),
	    SAME(WIRE_SLVL_OUT_PORT, IB_SLVL_COMPMASK_OUT_PORT),
	    SAME(WIRE_LFTR_BLOCK, IB_LFTR_COMPMASK_BLOCK),
	    SAME(WIRE_MFTR_POSITION, IB_MFTR_COMPMASK_POSITION),
	    SAME(WIRE_MFTR_BLOCK, IB_MFTR_COMPMASK_BLOCK),
	    SAME(WIRE_SMIR_STATE, IB_SMIR_COMPMASK_SMSTATE),
	    SAME(WIRE_LR_TO_LID, IB_LR_COMPMASK_TO_LID),
	    SAME(WIRE_LR_TO_PORT, IB_LR_COMPMASK_TO_PORT),
	    SAME(WIRE_GIR_GUID0, IB_GIR_COMPMASK_GID0),
	    SAME(WIRE_SR_NAME, IB_SR_COMPMASK_SNAME),
	    SAME(WIRE_SR_DATA8(15), IB_SR_COMPMASK_SDATA8_15),
	    SAME(WIRE_SR_DATA16(7), IB_SR_COMPMASK_SDATA16_7),
	    SAME(WIRE_SR_DATA32(3), IB_SR_COMPMASK_SDATA32_3),
	    SAME(WIRE_SR_DATA64(1), IB_SR_COMPMASK_SDATA64_1),
	    SAME(WIRE_PKR_PORT, IB_PKEY_COMPMASK_PORT),
	    SAME(WIRE_PR_SERVICE_ID, IB_PR_COMPMASK_SERVICEID),
	    SAME(WIRE_PR_DGID, IB_PR_COMPMASK_DGID),
	    SAME(WIRE_PR_SLID, IB_PR_COMPMASK_SLID),
	    SAME(WIRE_PR_REVERSIBLE, IB_PR_COMPMASK_REVERSIBLE),
	    SAME(WIRE_PR_PKEY, IB_PR_COMPMASK_PKEY),
	    SAME(WIRE_PR_LIFE, IB_PR_COMPMASK_PKTLIFETIME),
	    SAME(WIRE_VLAR_BLOCK, IB_VLA_COMPMASK_BLOCK),
	    SAME(WIRE_MCM_QKEY, IB_MCR_COMPMASK_QKEY),
	    SAME(WIRE_MCM_JOIN_STATE, IB_MCR_COMPMASK_JOIN_STATE),
	    SAME(WIRE_MCM_PROXY_JOIN, IB_MCR_COMPMASK_PROXY),
	    SAME(WIRE_MPR_SERVICE_ID_LSB, IB_MPR_COMPMASK_SERVICEID_LSB),
	    SAME(WIRE_MPR_SGID_COUNT, IB_MPR_COMPMASK_SGIDCOUNT),
	    SAME(WIRE_IIR_TRAP_NUMBER, IB_IIR_COMPMASK_TRAPNUMB),
	    SAME(WIRE_IIR_PRODUCER, IB_IIR_COMPMASK_PRODTYPE),
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		if (cases[i].ours != cases[i].theirs)
			fail_msg("%s", cases[i].name);
}

/* Set one member of the record and ask which mask bits see the difference */
#define SEES(thing, member, value, mask)                                                 \
	do {                                                                             \
		struct wire_##thing a = {0}, b = {.member = value};                      \
		for (int bit = 0; bit < 64; bit++)                                       \
			assert_int_equal(!wire_fields_match(&wire_##thing##_codec,       \
							    1ull << bit, &a, &b),        \
					 (uint64_t)(mask) >> bit & 1);                   \
		assert_false(wire_fields_match(&wire_##thing##_codec, ~0ull, &a, &b));   \
		assert_true(wire_fields_match(&wire_##thing##_codec, 0, &a, &b));        \
	} while (0)

static void tables_have_these_bits(void **state)
{
	SEES(node_record, lid, 7, WIRE_NR_LID);
	SEES(node_record, info.node_guid, 7, WIRE_NR_NODE_GUID);
	SEES(node_record, info.local_port, 7, WIRE_NR_LOCAL_PORT);
	SEES(node_record, description.text[63], 'x', WIRE_NR_DESCRIPTION);
	SEES(port_info_record, info.cap_mask, 7, WIRE_PIR_CAP_MASK);
	SEES(port_info_record, info.state, 4, WIRE_PIR_PORT_STATE);
	SEES(port_info_record, info.link_round_trip_latency, 4,
	     be64toh(IB_PIR_COMPMASK_LINKRTLAT));
	SEES(port_info_record, info.link_speed_ext_enabled, 4,
	     be64toh(IB_PIR_COMPMASK_LINKSPDEXTENAB));
	SEES(mft_record, position, 4, WIRE_MFTR_POSITION);
	SEES(mft_record, block, 4, WIRE_MFTR_BLOCK);
	SEES(sm_info_record, info.state, 3, WIRE_SMIR_STATE);
	SEES(link_record, to_lid, 3, WIRE_LR_TO_LID);
	SEES(guid_info_record, table.guid[7], 3, WIRE_GIR_GUID0 << 7);
	SEES(service_record, name[0], 'x', WIRE_SR_NAME);
	SEES(service_record, data8[15], 1, WIRE_SR_DATA8(15));
	SEES(service_record, data16[2], 1, WIRE_SR_DATA16(2));
	SEES(service_record, data64[1], 1, WIRE_SR_DATA64(1));
	SEES(pkey_table_record, port, 1, WIRE_PKR_PORT);
	SEES(path_record, service_id, 1, WIRE_PR_SERVICE_ID);
	SEES(path_record, sgid.raw[15], 1, WIRE_PR_SGID);
	SEES(path_record, sl, 1, WIRE_PR_SL);
	SEES(path_record, preference, 1, WIRE_PR_PREFERENCE);
	SEES(vl_arb_record, block, 1, WIRE_VLAR_BLOCK);
	SEES(mcmember_record, mlid, 1, WIRE_MCM_MLID);
	SEES(mcmember_record, proxy_join, 1, WIRE_MCM_PROXY_JOIN);
	SEES(multipath_record, service_id_56lsb, 1, WIRE_MPR_SERVICE_ID_LSB);
	SEES(inform_info_record, inform_info.trap_number, 1, WIRE_IIR_TRAP_NUMBER);
	SEES(inform_info_record, inform_info.producer, 1, WIRE_IIR_PRODUCER);
}

/* OpenSM's structs end with padding to the 8 bytes of AttributeOffset */
static void record_sizes_are_opensms(void **state)
{
	const struct {
		const struct wire_codec *ours;
		size_t theirs;
	} cases[] = {
	    {&wire_node_record_codec,	      sizeof(ib_node_record_t)	      },
	    {&wire_port_info_record_codec,   sizeof(ib_portinfo_record_t)    },
	    {&wire_sl_to_vl_record_codec,	  sizeof(ib_slvl_table_record_t)	},
	    {&wire_switch_info_record_codec, sizeof(ib_switch_info_record_t) },
	    {&wire_lft_record_codec,	     sizeof(ib_lft_record_t)	    },
	    {&wire_mft_record_codec,	     sizeof(ib_mft_record_t)	    },
	    {&wire_sm_info_record_codec,	 sizeof(ib_sminfo_record_t)	   },
	    {&wire_link_record_codec,	      sizeof(ib_link_record_t)	      },
	    {&wire_guid_info_record_codec,   sizeof(ib_guidinfo_record_t)    },
	    {&wire_service_record_codec,	 sizeof(ib_service_record_t)	    },
	    {&wire_pkey_table_record_codec,  sizeof(ib_pkey_table_record_t)  },
	    {&wire_path_record_codec,	      sizeof(ib_path_rec_t)	   },
	    {&wire_vl_arb_record_codec,	sizeof(ib_vl_arb_table_record_t)},
	    {&wire_mcmember_record_codec,	  sizeof(ib_member_rec_t)	 },
	    {&wire_inform_info_record_codec, sizeof(ib_inform_info_record_t) },
	    {&wire_notice_codec,		 sizeof(ib_mad_notice_attr_t)    },
	    {&wire_class_port_info_codec,	  sizeof(ib_class_port_info_t)    },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++)
		if (wire_sa_attr_offset(cases[i].ours) !=
		    DIV_ROUND_UP(cases[i].theirs, 8))
			fail_msg("%s: %u, not %zu", cases[i].ours->name,
				 cases[i].ours->bytes, cases[i].theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bits_are_opensms),
	    cmocka_unit_test(tables_have_these_bits),
	    cmocka_unit_test(record_sizes_are_opensms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
