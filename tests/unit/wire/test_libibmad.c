/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Where fields lie, judged by libibmad, the library of infiniband-diags: both
 * decode the same pseudo-random bytes and must see the same values.
 */
#include "../test.h"

#include <infiniband/mad.h>

#include "codecs.h"
#include "wire/pma.h"
#include "wire/sa.h"
#include "wire/smp.h"

#define SEEDS 40

/*
 * @count scalars of a table, from member @first on, are those of libibmad's
 * list from @theirs on, in the same order. Left out: PortCounters.QP1Dropped
 * and the FEC modes for HDR, which libibmad 44 takes from the wrong half of
 * their word (OpenSM's structs have them where we do).
 */
static const struct range {
	const struct wire_codec *codec;
	const char *first;
	int theirs, count;
} ranges[] = {
    {&wire_node_info_codec,			    "base_version",	    IB_NODE_FIRST_F,		     12},
    {&wire_switch_info_codec,			      "lft_cap",		 IB_SW_FIRST_F,			18},
    {&wire_port_info_codec,			    "mkey",		    IB_PORT_FIRST_F,		     46},
    {&wire_port_info_codec,			    "link_round_trip_latency", IB_PORT_LINK_ROUND_TRIP_F,	  1 },
    {&wire_port_info_codec,			    "cap_mask2",		 IB_PORT_CAPMASK2_F,		     4 },
    {&wire_guid_info_codec,			    "guid",		    IB_GI_GUID0_F,			   8 },
    {&wire_sm_info_codec,			     "guid",			  IB_SMINFO_GUID_F,		    5 },
    {&wire_port_info_extended_codec,		     "cap_mask",		 IB_PORT_EXT_CAPMASK_F,		6 },
    {&wire_mlnx_ext_port_info_codec,		     "state_change_enable",
     IB_MLNX_EXT_PORT_STATE_CHG_ENABLE_F,									   4 },
    {&wire_smp_notice_codec,			     "is_generic",		   IB_NOTICE_IS_GENERIC_F,		   7 },
    {&wire_class_port_info_codec,			  "base_version",		  IB_CPI_BASEVER_F,		    5 },
    {&wire_class_port_info_codec,			  "redirect_tclass",	     IB_CPI_REDIRECT_TC_F,		   7 },
    {&wire_class_port_info_codec,			  "trap_tclass",		 IB_CPI_TRAP_TC_F,		   8 },
    {&wire_guid_info_record_codec,			   "lid",			  IB_SA_GIR_LID_F,		   10},
    {&wire_node_record_codec,			      "lid",		     IB_SA_NR_LID_F,		     13},
    {&wire_path_record_codec,			      "dlid",		      IB_SA_PR_DLID_F,		       2 },
    {&wire_path_record_codec,			      "numb_path",		   IB_SA_PR_NPATH_F,		     1 },
    {&wire_path_record_codec,			      "sl",			    IB_SA_PR_SL_F,			   1 },
    {&wire_mcmember_record_codec,			  "qkey",			  IB_SA_MCM_QKEY_F,		    2 },
    {&wire_mcmember_record_codec,			  "sl",			IB_SA_MCM_SL_F,			1 },
    {&wire_mcmember_record_codec,			  "mtu",			 IB_SA_MCM_MTU_F,			  1 },
    {&wire_mcmember_record_codec,			  "rate",			  IB_SA_MCM_RATE_F,		    1 },
    {&wire_mcmember_record_codec,			  "tclass",		    IB_SA_MCM_TCLASS_F,		2 },
    {&wire_mcmember_record_codec,			  "flow_label",		IB_SA_MCM_FLOW_LABEL_F,		1 },
    {&wire_mcmember_record_codec,			  "join_state",		IB_SA_MCM_JOIN_STATE_F,		2 },
    {&wire_multipath_record_codec,			   "numb_path",		IB_SA_MP_NPATH_F,		  1 },
    {&wire_multipath_record_codec,			   "sgid_count",		 IB_SA_MP_NSRC_F,			  2 },
    {&wire_service_record_codec,			 "id",		       IB_SA_SR_ID_F,		      1 },
    {&wire_service_record_codec,			 "pkey",			 IB_SA_SR_PKEY_F,			  2 },
    {&wire_port_samples_control_codec,		       "op_code",		  IB_PSC_OPCODE_F,		   30},
    {&wire_port_samples_result_codec,		      "tag",		     IB_PSR_TAG_F,			   17},
    {&wire_port_counters_codec,			"port_select",	       IB_PC_FIRST_F,		      14},
    {&wire_port_counters_codec,			"vl15_dropped",		IB_PC_VL15_DROPPED_F,	      6 },
    {&wire_port_counters_extended_codec,		 "port_select",		IB_PC_EXT_FIRST_F,		   2 },
    {&wire_port_counters_extended_codec,		 "xmit_data_dwords",	     IB_PC_EXT_XMT_BYTES_F,		    8 },
    {&wire_port_counters_extended_codec,		 "counter_select2",	    IB_PC_EXT_COUNTER_SELECT2_F,
     1														},
    {&wire_port_counters_extended_codec,		 "symbol_errors",		  IB_PC_EXT_ERR_SYM_F,	       14},
    {&wire_port_rcv_error_details_codec,		 "local_physical_errors",
     IB_PC_RCV_LOCAL_PHY_ERR_F,										     6 },
    {&wire_port_xmit_discard_details_codec,	    "inactive_discards",	 IB_PC_XMT_INACT_DISC_F,
     4														},
    {&wire_port_op_rcv_counters_codec,		       "rcv_pkts",		   IB_PC_PORT_OP_RCV_PKTS_F,	     2 },
    {&wire_port_flow_ctl_counters_codec,		 "xmit_flow_pkts",	   IB_PC_PORT_XMIT_FLOW_PKTS_F,
     2														},
    {&wire_port_vl_op_packets_codec,		     "pkts",		     IB_PC_PORT_VL_OP_PACKETS0_F,	  16},
    {&wire_port_vl_op_data_codec,			  "data_dwords",		 IB_PC_PORT_VL_OP_DATA0_F,	   16},
    {&wire_port_vl_xmit_flow_ctl_update_errors_codec, "errors",
     IB_PC_PORT_VL_XMIT_FLOW_CTL_UPDATE_ERRORS0_F,								  16},
    {&wire_port_vl_xmit_wait_counters_codec,	     "wait",		     IB_PC_PORT_VL_XMIT_WAIT0_F,	 16},
    {&wire_port_ext_speeds_counters_codec,		   "port_select",		  IB_PESC_PORT_SELECT_F,		 40},
    {&wire_port_ext_speeds_counters_codec,		   "fec_correctable_blocks",
     IB_PESC_PORT_FEC_CORR_BLOCK_CTR_F,									     3 },
    {&wire_sw_port_vl_congestion_codec,		"congestion",	      IB_PC_SW_PORT_VL_CONGESTION0_F,    16},
    {&wire_port_rcv_con_ctrl_codec,		    "pkt_rcv_fecn",	    IB_PC_RCV_CON_CTRL_PKT_RCV_FECN_F, 2 },
    {&wire_port_sl_rcv_fecn_codec,			   "fecn",			   IB_PC_SL_RCV_FECN0_F,		 16},
    {&wire_port_sl_rcv_becn_codec,			   "becn",			   IB_PC_SL_RCV_BECN0_F,		 16},
    {&wire_port_xmit_con_ctrl_codec,		     "time_congested",	       IB_PC_XMIT_CON_CTRL_TIME_CONG_F,
     1														},
    {&wire_port_vl_xmit_time_cong_codec,		 "time_congested",	   IB_PC_VL_XMIT_TIME_CONG0_F,
     15													       },
    {&wire_port_xmit_data_sl_codec,		    "data_dwords",		   IB_PC_XMT_DATA_SL0_F,		 16},
    {&wire_port_rcv_data_sl_codec,			   "data_dwords",		  IB_PC_RCV_DATA_SL0_F,		16},
};

struct walk {
	const struct range *range;
	uint8_t *bytes;
	bool started;
	int done;
};

static void compare(void *ctx, const struct wire_field *f, unsigned int index,
		    uint64_t value)
{
	struct walk *w = ctx;
	uint64_t theirs = 0;

	if (!w->started && !strcmp(f->name, w->range->first))
		w->started = true;
	if (!w->started || w->done == w->range->count)
		return;
	mad_decode_field(w->bytes, (enum MAD_FIELDS)(w->range->theirs + w->done),
			 &theirs);
	if (theirs != value)
		fail_msg("%s.%s[%u]: ours %#lx, %s %#lx", w->range->codec->name, f->name,
			 index, value,
			 mad_field_name((enum MAD_FIELDS)(w->range->theirs + w->done)),
			 theirs);
	w->done++;
}

static void libibmad_sees_the_same(void **state)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(ranges); i++) {
		for (uint64_t seed = 0; seed < SEEDS; seed++) {
			uint8_t bytes[CODEC_BYTES_MAX];
			uint64_t obj[CODEC_BYTES_MAX / 8];
			struct walk w = {&ranges[i], bytes};

			codecs_random(seed * 100 + i, bytes, sizeof(bytes));
			wire_fields_decode(ranges[i].codec, bytes, sizeof(bytes), obj);
			wire_fields_visit(ranges[i].codec, obj, compare, &w);
			if (w.done != ranges[i].count)
				fail_msg("%s.%s: only %d", ranges[i].codec->name,
					 ranges[i].first, w.done);
		}
	}
}

/* Headers: libibmad's offsets count from the start of the MAD */
static void headers_are_libibmads(void **state)
{
	uint8_t b[WIRE_MAD_BYTES] = {0};
	struct wire_smp smp;
	struct wire_sa sa;

	mad_set_field(b, 0, IB_MAD_BASEVER_F, 1);
	mad_set_field(b, 0, IB_MAD_MGMTCLASS_F, WIRE_CLASS_SM_DIRECT);
	mad_set_field(b, 0, IB_MAD_CLASSVER_F, 3);
	mad_set_field(b, 0, IB_MAD_METHOD_F, 0x12);
	mad_set_field(b, 0, IB_MAD_RESPONSE_F, 1);
	mad_set_field(b, 0, IB_DRSMP_HOPCNT_F, 5);
	mad_set_field(b, 0, IB_DRSMP_HOPPTR_F, 6);
	mad_set_field(b, 0, IB_DRSMP_STATUS_F, 0x1234);
	mad_set_field(b, 0, IB_DRSMP_DIRECTION_F, 1);
	mad_set_field64(b, 0, IB_MAD_TRID_F, 0x1122334455667788);
	mad_set_field(b, 0, IB_MAD_ATTRID_F, 0xff90);
	mad_set_field(b, 0, IB_MAD_ATTRMOD_F, 0x89abcdef);
	mad_set_field64(b, 0, IB_MAD_MKEY_F, 0xaabbccddeeff0011);
	mad_set_field(b, 0, IB_DRSMP_DRDLID_F, 0x5566);
	mad_set_field(b, 0, IB_DRSMP_DRSLID_F, 0x7788);
	assert_int_equal(wire_smp_decode(b, sizeof(b), &smp), sizeof(b));
	assert_int_equal(smp.mad.base_version, 1);
	assert_int_equal(smp.mad.class_version, 3);
	assert_int_equal(smp.mad.method, WIRE_METHOD_GET_TABLE_RESP);
	assert_int_equal(smp.hop_count, 5);
	assert_int_equal(smp.hop_pointer, 6);
	assert_int_equal(smp.mad.status, 0x1234);
	assert_true(smp.direction);
	assert_int_equal(smp.mad.tid, 0x1122334455667788);
	assert_int_equal(smp.mad.attr_id, 0xff90);
	assert_int_equal(smp.mad.attr_mod, 0x89abcdef);
	assert_int_equal(smp.mkey, 0xaabbccddeeff0011);
	assert_int_equal(smp.dr_dlid, 0x5566);
	assert_int_equal(smp.dr_slid, 0x7788);

	memset(b, 0, sizeof(b));
	mad_set_field(b, 0, IB_SA_RMPP_VERS_F, 1);
	mad_set_field(b, 0, IB_SA_RMPP_TYPE_F, WIRE_RMPP_ACK);
	mad_set_field(b, 0, IB_SA_RMPP_RESP_F, 0x15);
	mad_set_field(b, 0, IB_SA_RMPP_FLAGS_F, WIRE_RMPP_ACTIVE | WIRE_RMPP_LAST);
	mad_set_field(b, 0, IB_SA_RMPP_STATUS_F, WIRE_RMPP_BAD_TYPE);
	mad_set_field(b, 0, IB_SA_RMPP_SEGNUM_F, 77);
	mad_set_field(b, 0, IB_SA_RMPP_NEWWIN_F, 99);
	mad_set_field64(b, 0, IB_SA_MKEY_F, 0x0102030405060708);
	mad_set_field(b, 0, IB_SA_ATTROFFS_F, 14);
	mad_set_field64(b, 0, IB_SA_COMPMASK_F, 0x8000000000000001);
	assert_int_equal(wire_sa_decode(b, sizeof(b), &sa), WIRE_SA_DATA_OFFSET);
	assert_int_equal(sa.rmpp.version, 1);
	assert_int_equal(sa.rmpp.type, WIRE_RMPP_ACK);
	assert_int_equal(sa.rmpp.resp_time_enc, 0x15);
	assert_int_equal(sa.rmpp.flags, WIRE_RMPP_ACTIVE | WIRE_RMPP_LAST);
	assert_int_equal(sa.rmpp.status, WIRE_RMPP_BAD_TYPE);
	assert_int_equal(sa.rmpp.segment, 77);
	assert_int_equal(sa.rmpp.length, 99);
	assert_int_equal(sa.sm_key, 0x0102030405060708);
	assert_int_equal(sa.attr_offset, 14);
	assert_int_equal(sa.comp_mask, 0x8000000000000001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(libibmad_sees_the_same),
	    cmocka_unit_test(headers_are_libibmads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
