/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Profiles as text, from ibv_devinfo's output, and what they make of an adapter. */
#include "../test.h"

#include <errno.h>
#include <unistd.h>

#include "profile/profile.h"
#include "rdma/ib_verbs.h"

static const struct ib_device_attr ours = {
	.fw_ver = "0.1", .max_mr_size = UINT64_MAX, .page_size_cap = 0xfffff000,
	.vendor_id = 1, .max_qp = 1000, .max_qp_wr = 1000, .max_send_sge = 30,
	.max_recv_sge = 30, .device_cap_flags = IB_DEVICE_XRC | IB_DEVICE_SRQ_RESIZE,
	.atomic_cap = IB_ATOMIC_HCA, .local_ca_ack_delay = 15,
	.odp_caps.per_transport_caps.rc_odp_caps = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV,
	.cq_caps.max_cq_moderation_count = UINT16_MAX, .timestamp_mask = UINT64_MAX,
	.max_dm_size = 1000, .max_inline_data = 512, .qp_types = UINT32_MAX,
};

static void parse(const char *text, struct profile *p)
{
	char err[256] = "";

	if (profile_parse("p", text, p, err, sizeof(err)))
		fail_msg("%s", err);
}

static void expect_wrong(const char *text, const char *message)
{
	struct profile p;
	char err[256];

	assert_int_equal(profile_parse("p", text, &p, err, sizeof(err)), -EINVAL);
	assert_string_equal(err, message);
}

static void what_is_wrong_is_said_with_its_line(void **state)
{
	char longer[600];

	expect_wrong("max_qp: 100\n\n# more\nmax_qps: 1\n",
		     "p:4: there is no field 'max_qps'; 'softib profile show connectx5' prints "
		     "them");
	expect_wrong("max_qp", "p:1: a line is \"field: value\", not 'max_qp'");
	expect_wrong("max_qp:", "p:1: max_qp has no value");
	expect_wrong("max_qp: many", "p:1: max_qp takes a number, not 'many'");
	expect_wrong("max_qp: 100 or so", "p:1: max_qp takes a number, not '100 or so'");
	expect_wrong("max_qp: -1", "p:1: max_qp takes a number, not '-1'");
	expect_wrong("max_qp: 0x", "p:1: max_qp takes a number, not '0x'");
	expect_wrong("max_qp: 18446744073709551616",
		     "p:1: max_qp takes a number, not '18446744073709551616'");
	expect_wrong("max_qp: 15", "p:1: max_qp must be 16 or more: softib itself needs so many");
	expect_wrong("max_qp: 16\nmax_qp: 17", "p:2: max_qp stands in line 1 already");
	expect_wrong("vendor_id: 0x100000000",
		     "p:1: vendor_id is 4294967295 at most, not 0x100000000");
	expect_wrong("local_ca_ack_delay: 32", "p:1: local_ca_ack_delay is 31 at most, not 32");
	expect_wrong("atomic_cap: HCA",
		     "p:1: atomic_cap knows ATOMIC_NONE ATOMIC_HCA ATOMIC_GLOB, not 'HCA'");
	expect_wrong("atomic_cap: ATOMIC_HCA ATOMIC_NONE",
		     "p:1: atomic_cap takes one word, not 'ATOMIC_NONE' as well");
	expect_wrong("qp_types: RC DC", "p:1: qp_types knows RC UC UD XRC RAW RD and none, not 'DC'");
	expect_wrong("fw_ver: 0123456789012345678901234567890123456789",
		     "p:1: fw_ver takes 31 characters at most");
	memset(longer, ' ', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = 0;
	expect_wrong(longer, "p:1: the line is too long");
}

static void what_is_printed_is_read_again(void **state)
{
	char text[PROFILE_TEXT_BYTES], again[PROFILE_TEXT_BYTES];
	struct profile p;

	for (unsigned i = 0; profile_builtin(i); i++) {
		char err[256] = "";

		if (profile_load(profile_builtin(i), &p, err, sizeof(err)))
			fail_msg("%s", err);
		assert_string_equal(p.name, profile_builtin(i));
		profile_print(&p, text, sizeof(text));
		assert_true(strlen(text) < sizeof(text) - 1);
		parse(text, &p);
		profile_print(&p, again, sizeof(again));
		assert_string_equal(text, again);
	}
	assert_null(profile_builtin_text("connectx"));
	profile_print(&p, text, 0);
	profile_print(&p, text, 1);
	assert_int_equal(text[0], 0);
}

static void a_profile_lowers_and_never_raises(void **state)
{
	struct ib_device_attr attr = ours;
	struct profile p;
	char less[256];

	parse("fw_ver: 1.2.3\nvendor_id: 0x2c9\nmax_qp: 100\nmax_qp_wr: 2000\nmax_sge: 4\n"
	      "device_cap_flags: 0xffffdfff\natomic_cap: ATOMIC_GLOB\nlocal_ca_ack_delay: 14\n"
	      "rc_odp_caps: SUPPORT_RECV SUPPORT_READ\nmax_cq_count: 4294967296\n"
	      "completion_timestamp_mask: 0xff\nmax_dm_size: 0\nqp_types: UD\n", &p);
	assert_int_equal(profile_apply(&p, &attr, less, sizeof(less)), 3);
	assert_string_equal(less, "max_qp_wr 1000 (of 2000), atomic_cap 1 (of 2), "
				  "max_cq_count 65535 (of 4294967296)");
	assert_string_equal(attr.fw_ver, "1.2.3");
	assert_int_equal(attr.vendor_id, 0x2c9);
	assert_int_equal(attr.max_qp, 100);
	assert_int_equal(attr.max_qp_wr, 1000);
	assert_int_equal(attr.max_send_sge, 4);
	assert_int_equal(attr.max_recv_sge, 4);
	assert_int_equal(attr.device_cap_flags, IB_DEVICE_XRC);
	assert_int_equal(attr.atomic_cap, IB_ATOMIC_HCA);
	assert_int_equal(attr.local_ca_ack_delay, 15);
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps, IB_ODP_SUPPORT_RECV);
	assert_int_equal(attr.cq_caps.max_cq_moderation_count, UINT16_MAX);
	assert_int_equal(attr.timestamp_mask, 0xff);
	assert_int_equal(attr.max_dm_size, 0);
	assert_int_equal(attr.qp_types, 1 << IB_QPT_UD);
	assert_int_equal(attr.max_inline_data, 512); /* it was not named */
	assert_false(profile_gives(&p, offsetof(struct ib_device_attr, max_inline_data)));
	assert_true(profile_gives(&p, offsetof(struct ib_device_attr, max_qp_wr)));
	assert_true(profile_gives(&p, offsetof(struct ib_device_attr, max_recv_sge)));
	parse("local_ca_ack_delay: 16", &p);
	assert_int_equal(profile_apply(&p, &attr, NULL, 0), 0);
	assert_int_equal(attr.local_ca_ack_delay, 16);
	assert_int_equal(profile_apply(&p, &attr, less, 4), 0);
}

/* as ibv_devinfo of rdma-core 44 prints it, with two adapters */
static const char devinfo[] =
	"hca_id:\tmlx4_0\n\ttransport:\t\t\tInfiniBand (0)\n\tfw_ver:\t\t\t\t2.33.5100\n"
	"\tvendor_id:\t\t\t0x02c9\n\tmax_qp:\t\t\t\t131000\n\tmax_mr_size:\t\t0x10000000\n"
	"\tdevice_cap_flags:\t\t0x057e9c66\n\t\t\t\t\tBAD_PKEY_CNTR\n"
	"\t\t\t\t\tUnknown flags: 0x488000\n\tatomic_cap:\t\t\tATOMIC_HCA (1)\n"
	"\trc_odp_caps:\n\t\t\t\t\tNO SUPPORT\n\tcompletion_timestamp_mask not supported\n"
	"\t\tport:\t1\n\t\t\tmax_mtu:\t\t4096 (5)\n"
	"\nhca_id:\tmlx5_0\n\tvendor_part_id:\t\t\t4119\n\tmax_qp:\t\t\t\t262144\n"
	"\tmax_sge:\t\t\t30\n"
	"\trc_odp_caps:\n\t\t\t\t\tSUPPORT_SEND\n\t\t\t\t\tSUPPORT_SRQ\n"
	"\tcompletion timestamp_mask:\t\t\t0x7fffffffffffffff\n\thca_core_clock:\t\t\t156250kHZ\n"
	"\tmax_rndv_hdr_size:\t\t64\n\tmax_num_tags:\t\t\t127\n\tmax_ops:\t\t\t32768\n"
	"\tmax_sge:\t\t\t1\n\tflags:\n\t\t\t\t\tIBV_TM_CAP_RC\n\n"
	"\tcq moderation caps:\n\t\tmax_cq_count:\t65535\n\t\tmax_cq_period:\t4095 us\n\n"
	"\tmaximum available device memory:\t131072Bytes\n\t\tport:\t1\n";

static void an_adapter_is_recorded(void **state)
{
	char text[PROFILE_TEXT_BYTES], err[256];
	struct profile p;

	assert_int_equal(profile_from_devinfo(devinfo, NULL, &p, err, sizeof(err)), 0);
	assert_string_equal(p.name, "mlx4_0");
	profile_print(&p, text, sizeof(text));
	assert_string_equal(text, "fw_ver: 2.33.5100\nvendor_id: 0x2c9\nmax_mr_size: 0x10000000\n"
				  "max_qp: 131000\ndevice_cap_flags: 0x57e9c66\n"
				  "atomic_cap: ATOMIC_HCA\nrc_odp_caps: none\n"
				  "completion_timestamp_mask: 0x0\n");
	assert_int_equal(profile_from_devinfo(devinfo, "mlx5_0", &p, err, sizeof(err)), 0);
	profile_print(&p, text, sizeof(text));
	assert_string_equal(text, "vendor_part_id: 4119\nmax_qp: 262144\nmax_sge: 30\n"
				  "rc_odp_caps: SUPPORT_SEND SUPPORT_SRQ\n"
				  "completion_timestamp_mask: 0x7fffffffffffffff\n"
				  "max_cq_count: 65535\nmax_cq_period: 4095\n"
				  "max_num_tags: 127\nmax_dm_size: 131072\n");
	parse(text, &p);
	assert_int_equal(profile_from_devinfo(devinfo, "mlx5_1", &p, err, sizeof(err)), -EINVAL);
	assert_string_equal(err, "no adapter 'mlx5_1' is in it");
	assert_int_equal(profile_from_devinfo("No IB devices found\n", NULL, &p, err, sizeof(err)),
			 -EINVAL);
	assert_string_equal(err, "it is not what ibv_devinfo -v prints: no line begins with "
				 "hca_id:");
	assert_int_equal(profile_from_devinfo("hca_id: a\n\tfw_ver: 1\n", NULL, &p, err,
					      sizeof(err)), -EINVAL);
	assert_string_equal(err, "there is no max_qp of a: ibv_devinfo needs -v");
}

static void files_are_read(void **state)
{
	char path[] = "/tmp/softib-profile-XXXXXX", err[512];
	int fd = mkstemp(path);
	struct profile p;

	assert_int_equal(write(fd, "max_qp: 99\n", 11), 11);
	assert_int_equal(profile_load(path, &p, err, sizeof(err)), 0);
	assert_string_equal(p.name, path);
	assert_int_equal(write(fd, "\0", 1), 1);
	assert_int_equal(profile_load(path, &p, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "is no profile: it is no text"));
	close(fd);
	unlink(path);
	assert_int_equal(profile_load(path, &p, err, sizeof(err)), -ENOENT);
	assert_non_null(strstr(err, "(connectx3, connectx5, connectx7, rxe, efa-like, max), and "
				    "no such file"));
	assert_int_equal(profile_load("/", &p, err, sizeof(err)), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_said_with_its_line),
		cmocka_unit_test(what_is_printed_is_read_again),
		cmocka_unit_test(a_profile_lowers_and_never_raises),
		cmocka_unit_test(an_adapter_is_recorded),
		cmocka_unit_test(files_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
