/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Any bytes as frames of IP over InfiniBand: no distributed program sends malformed ones.
 *
 *	ipoib_frames LID QPN HEX...
 *
 * Each HEX is a frame from its encapsulation header on, sent as a datagram. Prints the number
 * of those that the adapter has sent.
 */
#include "fixture.h"

#define QKEY	   0x0b1b /* of the broadcast group, from softib-sm and opensm */
#define MOST_BYTES 4096

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t frame[MOST_BYTES];

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD,
					.cap = {.max_send_wr = 1, .max_recv_wr = 1,
						.max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	CHECK(qp);
	raise_datagram_qp(qp, QKEY);
	return qp;
}

static uint32_t read_hex(const char *hex)
{
	uint32_t bytes = (uint32_t)strlen(hex) / 2;

	CHECK(bytes <= MOST_BYTES);
	for (uint32_t i = 0; i < bytes; i++)
		CHECK(sscanf(hex + 2 * i, "%2hhx", &frame[i]) == 1);
	return bytes;
}

static int send_frame(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)frame, .length = bytes, .lkey = mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY}}, *bad;
	struct ibv_wc wc;

	CHECK(!ibv_post_send(qp, &wr, &bad));
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	return wc.status == IBV_WC_SUCCESS;
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;
	struct ibv_ah_attr to = {.port_num = 1};
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	int sent = 0;

	CHECK(argc > 3 && list && *list);
	context = ibv_open_device(*list);
	CHECK(context && (pd = ibv_alloc_pd(context)));
	CHECK((cq = ibv_create_cq(context, 4, NULL, NULL, 0)));
	CHECK((mr = ibv_reg_mr(pd, frame, sizeof(frame), 0)));
	to.dlid = (uint16_t)strtoul(argv[1], NULL, 0);
	CHECK((ah = ibv_create_ah(pd, &to)));
	qp = make_qp();
	for (int i = 3; i < argc; i++)
		sent += send_frame(qp, ah, (uint32_t)strtoul(argv[2], NULL, 0), read_hex(argv[i]));
	printf("%d\n", sent);
	return 0;
}
