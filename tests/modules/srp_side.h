/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What modules share that test SRP targets: channels to the target @guid at the port
 * @port_guid, commands, and what was answered.
 */
#ifndef SOFTIB_TEST_SRP_SIDE_H
#define SOFTIB_TEST_SRP_SIDE_H

#include <linux/completion.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "expect.h"
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
}

/* Its answer completes ch->news. */
static void begin_login(struct channel *ch, const struct wire_srp_login_req *login)
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

static void log_in(struct channel *ch, const struct wire_srp_login_req *login)
{
	begin_login(ch, login);
	wait_for_completion(&ch->news);
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

static u8 task_attr; /* of the next commands */

static void send_command(struct channel *ch, u64 tag, int lun, const u8 *cdb,
			 const struct wire_srp_cmd_parts *parts)
{
	struct wire_srp_cmd cmd = {.opcode = WIRE_SRP_CMD,
				   .tag = tag,
				   .lun = {0, (u8)lun},
				   .task_attr = task_attr};

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

__attribute__((unused)) static void fill(u32 at, u32 bytes, u8 seed)
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

/* @how: the type of a reservation; the flags of a REGISTER
 * Return: the status of a PERSISTENT RESERVE OUT with the keys @of and @to */
__attribute__((unused)) static u8 reserve_out(struct channel *ch, u8 action, u8 how, u64 of, u64 to)
{
	memset(data, 0, 24);
	put_be64(data, of);
	put_be64(data + 8, to);
	data[20] = action ? 0 : how;
	return perform(ch, CDB(0x5f, action, action ? how : 0, [8] = 24),
		       &(struct wire_srp_cmd_parts){.out = direct(0, 24)});
}

__attribute__((unused)) static u8 write_block(struct channel *ch)
{
	return perform(ch, CDB(0x2a, [8] = 1),
		       &(struct wire_srp_cmd_parts){.out = direct(0, BLOCK)});
}

/* --- the module --- */

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

static void open_device(struct ib_device *dev)
{
	device = dev;
	data = kzalloc(DATA_SIZE, GFP_KERNEL);
	pd = ib_alloc_pd(device, 0);
	mr = ib_get_dma_mr(pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
				       IB_ACCESS_REMOTE_WRITE);
	cq = ib_alloc_cq(device, NULL, 1024, 0, IB_POLL_WORKQUEUE);
	find_path();
}

static void close_device(struct ib_device *dev, void *client_data)
{
	ib_free_cq(cq);
	ib_dereg_mr(mr);
	ib_dealloc_pd(pd);
	kfree(data);
}

#endif
