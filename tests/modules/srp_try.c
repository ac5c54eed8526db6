/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * An SRP initiator for tests of the target: it logs in to the target @guid at the port
 * @port_guid, in good and in bad ways, performs commands with each format of descriptors,
 * and prints what it was answered. Everything is compared here; "done" says that all was
 * as it has to be.
 */
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "wire/srp.h"

static char *guid = "", *port_guid = "";
module_param(guid, charp, 0444);
MODULE_PARM_DESC(guid, "of the target's I/O controller, in hex");
module_param(port_guid, charp, 0444);
MODULE_PARM_DESC(port_guid, "of a port of the target, in hex");

#define RECEIVES  64
#define SENDS	  32
#define IU_BYTES  1024
#define OFFSET	  128 /* of immediate data */
#define BLOCK	  512
#define DATA_SIZE (64 * 1024)

/** struct channel - a connection, or the attempt at one */
struct channel {
	struct ib_cm_id *cm;
	struct ib_qp *qp;
	struct completion news; /* of the connection */
	struct completion came; /* a message */
	struct ib_cqe receive_cqe[RECEIVES], send_cqe;
	u8 receive[RECEIVES][IU_BYTES];
	u8 buffer[SENDS][IU_BYTES], *send; /* of the next message */
	u32 nr_sent;
	u32 head, tail; /* of what came, as indices of receives */
	u32 order[RECEIVES];
	u32 reject; /* of the login; 0: established */
	struct wire_srp_login_rsp rsp;
	u32 credits; /* that the answers returned */
	bool gone;
};

static struct ib_device *device;
static struct ib_pd *pd;
static struct ib_mr *mr;
static struct ib_cq *cq;
static struct ib_sa_client sa_client;
static struct sa_path_rec path;
static struct completion answered;
static u8 *data;
static int failures;

#define expect(what, got, want)                                                          \
	do {                                                                             \
		u64 g_ = (u64)(got), w_ = (u64)(want);                                   \
		if (g_ != w_) {                                                          \
			failures++;                                                      \
			pr_err("%s: %#llx, not %#llx (line %d)\n", what,                 \
			       (unsigned long long)g_, (unsigned long long)w_,           \
			       __LINE__);                                                \
		}                                                                        \
	} while (0)

/* --- the connection
 * ------------------------------------------------------------------------ */

static void received(struct ib_cq *from, struct ib_wc *wc)
{
	struct channel *ch = wc->qp->qp_context;
	u32 i = (u32)(wc->wr_cqe - ch->receive_cqe);

	if (wc->status != IB_WC_SUCCESS) {
		ch->gone = true;
		complete(&ch->came);
		return;
	}
	ch->order[ch->tail++ % RECEIVES] = i;
	complete(&ch->came);
}

static void sent(struct ib_cq *from, struct ib_wc *wc)
{
}

static void post_receive(struct channel *ch, u32 i)
{
	struct ib_sge sge = {.addr = (u64)(uintptr_t)ch->receive[i],
			     .length = IU_BYTES,
			     .lkey = pd->local_dma_lkey};
	struct ib_recv_wr wr = {
		.wr_cqe = &ch->receive_cqe[i], .sg_list = &sge, .num_sge = 1};

	ch->receive_cqe[i].done = received;
	ib_post_recv(ch->qp, &wr, NULL);
}

static void send_iu(struct channel *ch, size_t bytes)
{
	struct ib_sge sge = {.addr = (u64)(uintptr_t)ch->send,
			     .length = (u32)bytes,
			     .lkey = pd->local_dma_lkey};
	struct ib_send_wr wr = {.wr_cqe = &ch->send_cqe,
				.sg_list = &sge,
				.num_sge = 1,
				.opcode = IB_WR_SEND,
				.send_flags = IB_SEND_SIGNALED};

	ch->send_cqe.done = sent;
	ib_post_send(ch->qp, &wr, NULL);
	ch->send = ch->buffer[++ch->nr_sent % SENDS];
}

static int modify(struct channel *ch, enum ib_qp_state state)
{
	struct ib_qp_attr attr = {.qp_state = state};
	int mask, ret = ib_cm_init_qp_attr(ch->cm, &attr, &mask);

	return ret ? ret : ib_modify_qp(ch->qp, &attr, mask);
}

static int on_cm(struct ib_cm_id *cm, const struct ib_cm_event *event)
{
	struct channel *ch = cm->context;
	struct wire_srp_login_rej rej;

	switch (event->event) {
	case IB_CM_REP_RECEIVED:
		wire_srp_login_rsp_decode(event->private_data, 196, &ch->rsp);
		modify(ch, IB_QPS_RTR);
		modify(ch, IB_QPS_RTS);
		ib_send_cm_rtu(cm, NULL, 0);
		complete(&ch->news);
		break;
	case IB_CM_REJ_RECEIVED:
		wire_srp_login_rej_decode(event->private_data, 148, &rej);
		ch->reject = event->param.rej_rcvd.reason == IB_CM_REJ_CONSUMER_DEFINED
				     ? rej.reason
				     : 1;
		complete(&ch->news);
		break;
	case IB_CM_REQ_ERROR:
		ch->reject = 2;
		complete(&ch->news);
		break;
	case IB_CM_DREQ_RECEIVED:
		ib_send_cm_drep(cm, NULL, 0);
		ch->gone = true;
		complete(&ch->came);
		break;
	default:
		break;
	}
	return 0;
}

static struct wire_srp_login_req good_login(void)
{
	struct wire_srp_login_req req = {
		.opcode = WIRE_SRP_LOGIN_REQ,
		.tag = 0x1234,
		.it_iu_bytes = IU_BYTES,
		.formats = WIRE_SRP_DIRECT_OK | WIRE_SRP_INDIRECT_OK,
		.flags = WIRE_SRP_MULTI | WIRE_SRP_IMMEDIATE,
		.immediate_offset = OFFSET,
		.initiator = "initiator port 1",
	};

	put_be64(req.target, strtoull(guid, NULL, 16));
	put_be64(req.target + 8, strtoull(guid, NULL, 16));
	return req;
}

static void ask(struct channel *ch, const struct wire_srp_login_req *login)
{
	u8 private_data[64];
	struct ib_cm_req_param req = {
		.primary_path = &path,
		.service_id = cpu_to_be64(strtoull(guid, NULL, 16) | 1ull << 60),
		.qp_num = ch->qp->qp_num,
		.qp_type = IB_QPT_RC,
		.private_data = private_data,
		.private_data_len = sizeof(private_data),
		.responder_resources = 4,
		.remote_cm_response_timeout = 20,
		.local_cm_response_timeout = 20,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.max_cm_retries = 15,
		.flow_control = 1,
	};

	wire_srp_login_req_encode(login, private_data);
	ib_send_cm_req(ch->cm, &req);
	wait_for_completion(&ch->news);
}

static void log_in(struct channel *ch, const struct wire_srp_login_req *login)
{
	struct ib_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_context = ch,
		.cap = {.max_send_wr = 256,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};

	memset(ch, 0, sizeof(*ch));
	ch->send = ch->buffer[0];
	init_completion(&ch->news);
	init_completion(&ch->came);
	ch->qp = ib_create_qp(pd, &init);
	ch->cm = ib_create_cm_id(device, on_cm, ch);
	ib_modify_qp(ch->qp,
		     &(struct ib_qp_attr){.qp_state = IB_QPS_INIT,
					  .port_num = 1,
					  .qp_access_flags = IB_ACCESS_REMOTE_WRITE |
							     IB_ACCESS_REMOTE_READ},
		     IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	for (u32 i = 0; i < RECEIVES; i++)
		post_receive(ch, i);
	ask(ch, login);
}

static void log_out(struct channel *ch)
{
	ib_destroy_cm_id(ch->cm);
	ib_destroy_qp(ch->qp);
}

/* Return: the next message; NULL: the channel is gone */
static const u8 *next_message(struct channel *ch)
{
	while (ch->head == ch->tail && !ch->gone)
		wait_for_completion(&ch->came);
	return ch->head == ch->tail ? NULL : ch->receive[ch->order[ch->head % RECEIVES]];
}

/* The next answer is over: its buffer is used again. */
static void done_with_message(struct channel *ch)
{
	post_receive(ch, ch->order[ch->head++ % RECEIVES]);
}

/* --- commands
 * --------------------------------------------------------------------------------- */

static struct wire_srp_rsp rsp;
static u32 sense; /* of the last answer: 0xKCCQQ */

static void take_answer(struct channel *ch)
{
	const u8 *iu = next_message(ch), *response, *bytes;

	memset(&rsp, 0, sizeof(rsp));
	rsp.status = 0xff;
	if (!iu)
		return;
	while (iu && iu[0] == WIRE_SRP_CRED_REQ) {
		struct wire_srp_cred_req req;

		wire_srp_cred_req_decode(iu, 16, &req);
		done_with_message(ch);
		wire_srp_cred_rsp_encode(
			&(struct wire_srp_i_logout){.opcode = WIRE_SRP_CRED_RSP,
						    .tag = req.tag},
			ch->send);
		send_iu(ch, 16);
		iu = next_message(ch);
	}
	if (!iu)
		return;
	wire_srp_rsp_decode(iu, IU_BYTES, &rsp);
	sense = 0;
	if (!wire_srp_rsp_split(&rsp, iu, IU_BYTES, &response, &bytes) && bytes)
		sense = (u32)(bytes[2] & 0xf) << 16 | get_be16(bytes + 12);
	if (response)
		sense = 0xf0000 | response[3];
	ch->credits += rsp.limit_delta;
	done_with_message(ch);
}

static void send_command(struct channel *ch, u64 tag, int lun, const u8 *cdb,
			 const struct wire_srp_cmd_parts *parts)
{
	struct wire_srp_cmd cmd = {
		.opcode = WIRE_SRP_CMD, .tag = tag, .lun = {0, (u8)lun}};

	memcpy(cmd.cdb, cdb, 16);
	send_iu(ch, (size_t)wire_srp_cmd_build(&cmd, parts, ch->send, IU_BYTES));
}

static u8 perform(struct channel *ch, const u8 *cdb,
		  const struct wire_srp_cmd_parts *parts)
{
	send_command(ch, 7, 0, cdb, parts);
	take_answer(ch);
	if (rsp.status != 0xff)
		expect("tag", rsp.tag, 7);
	return rsp.status;
}

#define CDB(...) ((const u8[16]){__VA_ARGS__})

static struct wire_srp_data direct(u32 at, u32 bytes)
{
	return (struct wire_srp_data){
		.format = WIRE_SRP_DIRECT,
		.bytes = bytes,
		.where = {(u64)(uintptr_t)data + at, mr->rkey, bytes}};
}

/* @nr descriptors of @each bytes, in reverse order of memory, of which @here are in the
 * IU */
static struct wire_srp_data indirect(u8 *table, u32 at, u32 nr, u32 each, u32 here)
{
	for (u32 i = 0; i < nr; i++)
		wire_srp_desc_encode(&(struct wire_srp_desc){(u64)(uintptr_t)data + at +
								     (nr - 1 - i) * each,
							     mr->rkey, each},
				     table + i * WIRE_SRP_DESC_BYTES);
	return (struct wire_srp_data){
		.format = WIRE_SRP_INDIRECT,
		.bytes = nr * each,
		.where = {(u64)(uintptr_t)table, mr->rkey, nr * WIRE_SRP_DESC_BYTES},
		.nr_descs = nr,
		.nr_here = here,
		.here = table,
	};
}

static void fill(u32 at, u32 bytes, u8 seed)
{
	for (u32 i = 0; i < bytes; i++)
		data[at + i] = (u8)(i * 13 + i / 256 + seed);
}

static void start(struct channel *ch)
{
	const struct wire_srp_cmd_parts in = {.in = direct(0, 36)};

	expect("channel", ch->reject, 0);
	expect("limit", ch->rsp.limit_delta >= 32, 1);
	expect("tag of the login", ch->rsp.tag, 0x1234);
	expect("INQUIRY", perform(ch, CDB(0x12, 0, 0, 0, 36), &in), 0);
	expect("vendor", memcmp(data + 8, "softib  SCSI disk", 17), 0);
	perform(ch, CDB(0),
		&(struct wire_srp_cmd_parts){}); /* tells of power on, or not */
	expect("TEST UNIT READY", perform(ch, CDB(0), &(struct wire_srp_cmd_parts){}), 0);
}

/* What a write with @out puts on 16 blocks from @lba, a read with @in gets. */
static void round_trip(struct channel *ch, u8 lba, struct wire_srp_data out,
		       struct wire_srp_data in, u32 reversed_in_parts_of)
{
	const u32 bytes = 16 * BLOCK, part = reversed_in_parts_of;

	fill(0, bytes, lba);
	memset(data + bytes, 0xee, bytes);
	expect("WRITE",
	       perform(ch, CDB(0x2a, 0, 0, 0, 0, lba, 0, 0, 16),
		       &(struct wire_srp_cmd_parts){.out = out}),
	       0);
	expect("READ",
	       perform(ch, CDB(0x28, 0, 0, 0, 0, lba, 0, 0, 16),
		       &(struct wire_srp_cmd_parts){.in = in}),
	       0);
	for (u32 i = 0; i < bytes / part; i++)
		expect("data",
		       memcmp(data + i * part,
			      data + bytes + (bytes / part - 1 - i) * part, part),
		       0);
}

static void try_formats(struct channel *ch)
{
	const u32 bytes = 16 * BLOCK;
	u8 *table = kzalloc(64 * WIRE_SRP_DESC_BYTES, GFP_KERNEL);

	round_trip(ch, 0, direct(0, bytes), direct(bytes, bytes), bytes);
	round_trip(ch, 16, direct(0, bytes), indirect(table, bytes, 16, BLOCK, 16),
		   BLOCK);
	round_trip(ch, 32, direct(0, bytes), indirect(table, bytes, 16, BLOCK, 3), BLOCK);
	round_trip(ch, 48, indirect(table, 0, 16, BLOCK, 0), direct(bytes, bytes), BLOCK);
	kfree(table);
}

static void try_immediate(struct channel *ch)
{
	struct wire_srp_cmd cmd = {.opcode = WIRE_SRP_CMD,
				   .tag = 9,
				   .out_format = 3,
				   .cdb = {0x2a, 0, 0, 0, 0, 100, 0, 0, 1}};

	expect("immediate data", ch->rsp.flags & WIRE_SRP_IMMEDIATE, WIRE_SRP_IMMEDIATE);
	wire_srp_cmd_encode(&cmd, ch->send);
	put_be32(ch->send + 48, BLOCK);
	memset(ch->send + OFFSET, 0x5a, BLOCK);
	send_iu(ch, OFFSET + BLOCK);
	take_answer(ch);
	expect("immediate WRITE", rsp.status, 0);
	expect("READ",
	       perform(ch, CDB(0x28, 0, 0, 0, 0, 100, 0, 0, 1),
		       &(struct wire_srp_cmd_parts){.in = direct(0, BLOCK)}),
	       0);
	expect("data", data[0] == 0x5a && data[BLOCK - 1] == 0x5a, 1);
}

static void try_residuals(struct channel *ch)
{
	perform(ch, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 1),
		&(struct wire_srp_cmd_parts){.in = direct(0, 4 * BLOCK)});
	expect("under", rsp.flags & WIRE_SRP_IN_UNDER, WIRE_SRP_IN_UNDER);
	expect("residual", rsp.in_residual_bytes, 3 * BLOCK);
	perform(ch, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 4),
		&(struct wire_srp_cmd_parts){.in = direct(0, BLOCK)});
	expect("over", rsp.flags & WIRE_SRP_IN_OVER, WIRE_SRP_IN_OVER);
	expect("residual", rsp.in_residual_bytes, 3 * BLOCK);
	perform(ch, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 2),
		&(struct wire_srp_cmd_parts){.out = direct(0, BLOCK)});
	expect("too short", sense, 0xb4b00);
}

static void try_errors(struct channel *ch)
{
	struct wire_srp_cmd_parts none = {};
	u8 *table = kzalloc(64 * WIRE_SRP_DESC_BYTES, GFP_KERNEL);
	struct wire_srp_data lying = indirect(table, 0, 8, BLOCK, 0);

	perform(ch, CDB(0xff), &none);
	expect("opcode", sense, 0x52000);
	send_command(ch, 8, 9, CDB(0), &none);
	take_answer(ch);
	expect("LUN", sense, 0x52500);
	perform(ch, CDB(0x28, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 1),
		&(struct wire_srp_cmd_parts){.in = direct(0, BLOCK)});
	expect("LBA", sense, 0x52100);
	lying.bytes = 16 * BLOCK; /* twice what the table describes */
	perform(ch, CDB(0x2a, 0, 0, 0, 0, 0, 0, 0, 16),
		&(struct wire_srp_cmd_parts){.out = lying});
	expect("lying table", sense, 0xf0000 | WIRE_SRP_RESPONSE_BAD_FIELDS);
	kfree(table);
}

static void try_tasks(struct channel *ch)
{
	static const struct {
		u8 function, lun, answer;
	} rows[] = {{WIRE_SRP_ABORT_TASK, 0, 0},     {WIRE_SRP_ABORT_TASK_SET, 0, 0},
		    {WIRE_SRP_CLEAR_TASK_SET, 0, 0}, {WIRE_SRP_LUN_RESET, 0, 0},
		    {WIRE_SRP_LUN_RESET, 9, 5},	     {WIRE_SRP_CLEAR_ACA, 0, 4}};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct wire_srp_tsk_mgmt task = {.opcode = WIRE_SRP_TSK_MGMT,
						 .tag = 100 + i,
						 .lun = {0, rows[i].lun},
						 .function = rows[i].function,
						 .task_tag = 1};

		wire_srp_tsk_mgmt_encode(&task, ch->send);
		send_iu(ch, 48);
		take_answer(ch);
		expect("function", sense, 0xf0000u | rows[i].answer);
		expect("tag", rsp.tag, 100 + i);
	}
	perform(ch, CDB(0), &(struct wire_srp_cmd_parts){});
	expect("unit attention", sense, 0x62903);
}

/* A LUN RESET overtakes commands, none of which is lost: each has an answer, or was
 * aborted. */
static void try_many(struct channel *ch)
{
	struct wire_srp_tsk_mgmt task = {.opcode = WIRE_SRP_TSK_MGMT,
					 .tag = 1000,
					 .function = WIRE_SRP_ABORT_TASK_SET};
	const u32 nr = 20;

	ch->credits = 0;
	for (u32 i = 0; i < nr; i++) {
		send_command(ch, 200 + i, 0, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 16),
			     &(struct wire_srp_cmd_parts){.in = direct(0, 16 * BLOCK)});
		if (i % 2)
			take_answer(ch);
	}
	wire_srp_tsk_mgmt_encode(&task, ch->send);
	send_iu(ch, 48);
	do
		take_answer(ch);
	while (rsp.tag != 1000 && rsp.status != 0xff);
	while (ch->credits < nr + 1 && rsp.status != 0xff)
		take_answer(ch);
	expect("credits", ch->credits, nr + 1);
}

/* --- logins
 * -------------------------------------------------------------------------------------
 */

/* The initiator goes while a disk has commands in work, and while a function waits for them. */
static void try_leaving(struct channel *ch)
{
	struct wire_srp_tsk_mgmt task = {.opcode = WIRE_SRP_TSK_MGMT, .tag = 1000,
					 .function = WIRE_SRP_LUN_RESET};
	struct wire_srp_login_req login = good_login();
	const struct wire_srp_cmd_parts parts = {.in = direct(0, 16 * BLOCK)};

	for (int i = 0; i < 8; i++) {
		log_in(ch, &login);
		start(ch);
		for (u32 k = 0; k < 8; k++)
			send_command(ch, 200 + k, 0, CDB(0x28, 0, 0, 0, 0, 0, 0, 0, 16), &parts);
		wire_srp_tsk_mgmt_encode(&task, ch->send);
		send_iu(ch, 48);
		if (i % 2)
			take_answer(ch);
		log_out(ch);
	}
}

static void expect_reject(struct channel *ch, const char *what,
			  const struct wire_srp_login_req *login, u32 reason)
{
	log_in(ch, login);
	expect(what, ch->reject, reason);
	log_out(ch);
}

static void try_rejects(struct channel *ch)
{
	struct wire_srp_login_req login = good_login();

	login.it_iu_bytes = 1 << 20;
	expect_reject(ch, "long IU", &login, WIRE_SRP_REJECT_IU_TOO_LARGE);
	login = good_login();
	login.target[15] ^= 1;
	expect_reject(ch, "other target", &login, WIRE_SRP_REJECT_ASSOCIATION);
	login = good_login();
	login.formats = 8;
	expect_reject(ch, "formats", &login, WIRE_SRP_REJECT_FORMATS);
	login = good_login();
	login.opcode = WIRE_SRP_CMD;
	expect_reject(ch, "opcode", &login, WIRE_SRP_REJECT_UNSPECIFIED);
	login = good_login();
	login.it_iu_bytes = 63;
	expect_reject(ch, "short IU", &login, WIRE_SRP_REJECT_UNSPECIFIED);
}

static void expect_logout(struct channel *ch, const char *what, size_t bytes, u32 reason)
{
	const u8 *iu;

	send_iu(ch, bytes);
	iu = next_message(ch);
	while (iu && iu[0] == WIRE_SRP_RSP) {
		done_with_message(ch);
		iu = next_message(ch);
	}
	expect(what, iu ? iu[0] : 0, WIRE_SRP_T_LOGOUT);
	if (iu)
		expect(what, get_be32(iu + 4), reason);
}

static void try_bad_messages(struct channel *ch)
{
	static const struct {
		u8 opcode;
		size_t bytes;
		u8 formats;
		u32 reason;
	} rows[] = {{0x55, 64, 0, 2},
		    {WIRE_SRP_CMD, 47, 0, 2},
		    {WIRE_SRP_CRED_RSP, 16, 0, 3},
		    {WIRE_SRP_AER_RSP, 16, 0, 3},
		    {WIRE_SRP_CMD, 48, 0x50, 6},
		    {WIRE_SRP_CMD, 48, 0x05, 7},
		    {WIRE_SRP_CMD, 48, 0x10, 8},
		    {WIRE_SRP_CMD, 50, 0x01, 9}};
	struct wire_srp_login_req login = good_login();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		log_in(ch, &login);
		expect("login", ch->reject, 0);
		memset(ch->send, 0, IU_BYTES);
		ch->send[0] = rows[i].opcode;
		ch->send[5] = rows[i].formats;
		expect_logout(ch, "bad message", rows[i].bytes, rows[i].reason);
		log_out(ch);
	}
}

static void try_channels(struct channel *ch)
{
	struct channel *second = kzalloc(sizeof(*second), GFP_KERNEL);
	struct wire_srp_login_req login = good_login();
	const u8 *iu;

	log_in(ch, &login);
	expect("first", ch->rsp.flags & 3, WIRE_SRP_NONE_BEFORE);
	log_in(second, &login);
	expect("second", second->rsp.flags & 3, WIRE_SRP_MAINTAINED);
	start(ch);
	start(second);
	log_out(second);
	login.flags = WIRE_SRP_SINGLE;
	log_in(second, &login);
	expect("single", second->rsp.flags & 3, WIRE_SRP_TERMINATED);
	iu = next_message(ch);
	expect("logout of the first", iu ? iu[0] : 0, WIRE_SRP_T_LOGOUT);
	expect("reason", iu ? get_be32(iu + 4) : 0, 4);
	start(second);
	log_out(second);
	log_out(ch);
	kfree(second);
}

/* Return: the status of a PERSISTENT RESERVE OUT with the keys @of and @to */
static u8 reserve_out(struct channel *ch, u8 action, u8 type, u64 of, u64 to)
{
	memset(data, 0, 24);
	put_be64(data, of);
	put_be64(data + 8, to);
	return perform(ch, CDB(0x5f, action, type, [8] = 24),
		       &(struct wire_srp_cmd_parts){.out = direct(0, 24)});
}

static u8 write_block(struct channel *ch)
{
	return perform(ch, CDB(0x2a, [8] = 1),
		       &(struct wire_srp_cmd_parts){.out = direct(0, BLOCK)});
}

/* A host that reserved the unit is the only one that writes, also after it logged in
 * anew; the other one takes the reservation away from it. */
static void try_reservations(struct channel *ch)
{
	struct channel *other = kzalloc(sizeof(*other), GFP_KERNEL);
	struct wire_srp_login_req login = good_login(), others = good_login();

	others.initiator[15] = '2';
	log_in(ch, &login);
	log_in(other, &others);
	start(ch);
	start(other);
	expect("REGISTER", reserve_out(ch, 0, 0, 0, 1), 0);
	expect("REGISTER", reserve_out(other, 0, 0, 0, 2), 0);
	expect("RESERVE", reserve_out(ch, 1, 1, 1, 0), 0);
	expect("WRITE of the other", write_block(other), 0x18);
	log_out(ch);
	log_in(ch, &login);
	start(ch);
	expect("WRITE of the holder", write_block(ch), 0);
	expect("WRITE of the other", write_block(other), 0x18);
	expect("PREEMPT AND ABORT", reserve_out(other, 5, 1, 2, 1), 0);
	expect("WRITE of the new holder", write_block(other), 0);
	expect("WRITE of the old one", write_block(ch), 2);
	expect("unit attention", sense, 0x62a05);
	expect("WRITE of the old one", write_block(ch), 0x18);
	expect("READ FULL STATUS",
	       perform(ch, CDB(0x5e, 3, [8] = 255),
		       &(struct wire_srp_cmd_parts){.in = direct(0, 255)}),
	       0);
	expect("length", get_be32(data + 4), 48);
	expect("initiator", memcmp(data + 8 + 32, others.initiator, 16), 0);
	expect("CLEAR", reserve_out(other, 3, 0, 2, 0), 0);
	expect("WRITE", write_block(ch), 0);
	log_out(other);
	log_out(ch);
	kfree(other);
}

/* Descriptors that reach beyond the memory that was granted: the adapter refuses the access,
 * and the connection is over. Nothing is stored beyond it. */
static void try_outside(struct channel *ch)
{
	const struct ib_phys_buf buffer = {.addr = (u64)(uintptr_t)data, .size = 4 * BLOCK};
	struct wire_srp_login_req login = good_login();
	u64 start_of = buffer.addr;
	struct ib_mr *granted = ib_reg_phys_mr(pd, (struct ib_phys_buf *)&buffer, 1,
					       IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
						       IB_ACCESS_REMOTE_WRITE,
					       &start_of);
	u8 *table = kzalloc(4 * WIRE_SRP_DESC_BYTES, GFP_KERNEL);

	for (int i = 0; i < 4; i++) {
		struct wire_srp_data bad = i < 2 ? direct(BLOCK, 4 * BLOCK)
						 : indirect(table, 0, 4, BLOCK, i == 2 ? 4 : 0);
		struct wire_srp_cmd_parts parts = {.in = bad};

		if (i == 1)
			parts = (struct wire_srp_cmd_parts){.out = bad};
		/* of a whole table, one entry is not granted; one that is fetched is not itself */
		parts.in.where.rkey = parts.out.where.rkey = granted->rkey;
		put_be32(table + WIRE_SRP_DESC_BYTES + 8, granted->rkey ^ 0x100);
		log_in(ch, &login);
		start(ch);
		memset(data + 4 * BLOCK, 0xee, BLOCK);
		expect("beyond", perform(ch, CDB(i == 1 ? 0x2a : 0x28, [8] = 4), &parts), 0xff);
		expect("the channel is over", ch->gone, 1);
		expect("what is behind", data[4 * BLOCK], 0xee);
		log_out(ch);
	}
	kfree(table);
	ib_dereg_mr(granted);
}

static void try_all(void)
{
	struct channel *ch = kzalloc(sizeof(*ch), GFP_KERNEL);
	struct wire_srp_login_req login = good_login();

	log_in(ch, &login);
	start(ch);
	try_formats(ch);
	try_immediate(ch);
	try_residuals(ch);
	try_errors(ch);
	try_tasks(ch);
	try_many(ch);
	log_out(ch);
	try_leaving(ch);
	try_rejects(ch);
	try_channels(ch);
	try_reservations(ch);
	try_outside(ch);
	try_bad_messages(ch);
	kfree(ch);
}

/* --- the module
 * ------------------------------------------------------------------------------------ */

static void on_path(int status, struct sa_path_rec *rec, unsigned int num, void *context)
{
	if (!status)
		path = *rec;
	else
		failures++;
	complete(&answered);
}

static void find_path(void)
{
	struct sa_path_rec rec = {.numb_path = 1};

	ib_query_gid(device, 1, 0, &rec.sgid);
	rec.dgid = rec.sgid;
	rec.dgid.global.interface_id = cpu_to_be64(strtoull(port_guid, NULL, 16));
	ib_sa_path_rec_get(&sa_client, device, 1, &rec,
			   IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_DGID |
				   IB_SA_PATH_REC_NUMB_PATH,
			   5000, GFP_KERNEL, on_path, NULL, NULL);
	wait_for_completion(&answered);
}

static int add_one(struct ib_device *dev)
{
	device = dev;
	data = kzalloc(DATA_SIZE, GFP_KERNEL);
	pd = ib_alloc_pd(device, 0);
	mr = ib_get_dma_mr(pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
				       IB_ACCESS_REMOTE_WRITE);
	cq = ib_alloc_cq(device, NULL, 1024, 0, IB_POLL_WORKQUEUE);
	find_path();
	if (!failures)
		try_all();
	pr_info("done, %d failures\n", failures);
	return 0;
}

static void remove_one(struct ib_device *dev, void *client_data)
{
	ib_free_cq(cq);
	ib_dereg_mr(mr);
	ib_dealloc_pd(pd);
	kfree(data);
}

static struct ib_client client = {
	.name = "srp_try", .add = add_one, .remove = remove_one};

static int __init srp_try_init(void)
{
	init_completion(&answered);
	ib_sa_register_client(&sa_client);
	return ib_register_client(&client);
}

static void __exit srp_try_exit(void)
{
	ib_unregister_client(&client);
	ib_sa_unregister_client(&sa_client);
}

module_init(srp_try_init);
module_exit(srp_try_exit);
MODULE_LICENSE("Dual BSD/GPL");
