/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * hello - one RDMA WRITE with immediate data over a reliable connection.
 *
 *	hello PORT		the server: prints what was written into its memory
 *	hello PORT SERVER	the client: writes a greeting into the server's memory
 *
 * The two exchange QP number, LID, address and R_Key by TCP, as
 * ibv_rc_pingpong and perftest do, and connect their QPs by hand. Both run on
 * one machine, so the exchange sends a struct as it lies in memory.
 */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER 42 /* the immediate data, in host byte order */

struct endpoint {
	uint64_t addr;
	uint32_t rkey, qpn;
	uint16_t lid;
};

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "hello: %s failed\n", what);
	exit(1);
}

/* a TCP connection: accepted by the server, opened by the client */
static int meet(const char *server, const char *port)
{
	struct addrinfo hints = {
		.ai_family = AF_INET,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = server ? 0 : AI_PASSIVE,
	};
	struct addrinfo *ai;
	int on = 1, fd;

	check(!getaddrinfo(server, port, &hints, &ai), "getaddrinfo");
	fd = socket(ai->ai_family, ai->ai_socktype, 0);
	check(fd >= 0, "socket");
	if (server) {
		check(!connect(fd, ai->ai_addr, ai->ai_addrlen), "connect");
	} else {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		check(!bind(fd, ai->ai_addr, ai->ai_addrlen), "bind");
		check(!listen(fd, 1), "listen");
		fd = accept(fd, NULL, NULL);
		check(fd >= 0, "accept");
	}
	freeaddrinfo(ai);
	return fd;
}

/* RESET to RTS: what the RDMA CM or a program's own exchange does for each connection */
static void connect_qp(struct ibv_qp *qp, const struct endpoint *peer)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_2048,
		.dest_qp_num = peer->qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = peer->lid, .port_num = 1},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 12, /* 4.096 us * 2^12 = 17 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	check(!ibv_modify_qp(qp, &init,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS),
	      "ibv_modify_qp to INIT");
	check(!ibv_modify_qp(qp, &rtr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
	      "ibv_modify_qp to RTR");
	check(!ibv_modify_qp(qp, &rts,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC),
	      "ibv_modify_qp to RTS");
}

static struct ibv_wc wait_for_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
	} while (!n);
	check(n == 1, "ibv_poll_cq");
	check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	return wc;
}

/* writes the text into the server's memory and takes the completion */
static void client(struct ibv_qp *qp, struct ibv_mr *mr, const struct endpoint *peer,
		   int tcp)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, mr->length, mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(ANSWER),
		.wr.rdma = {.remote_addr = peer->addr, .rkey = peer->rkey},
	};
	struct ibv_send_wr *bad;
	char ready;

	check(read(tcp, &ready, 1) == 1, "waiting for the server");
	check(!ibv_post_send(qp, &wr, &bad), "ibv_post_send");
	wait_for_completion(qp->send_cq);
	printf("client: written and acknowledged\n");
}

/* The immediate data consumes a receive: without one the client would get an RNR NAK. */
static void serve(struct ibv_qp *qp, const char *text, int tcp)
{
	struct ibv_recv_wr wr = {.wr_id = 1};
	struct ibv_recv_wr *bad;
	struct ibv_wc wc;
	char ready = 1;

	check(!ibv_post_recv(qp, &wr, &bad), "ibv_post_recv");
	check(write(tcp, &ready, 1) == 1, "telling the client");
	wc = wait_for_completion(qp->recv_cq);
	printf("server: \"%s\", immediate %u\n", text, ntohl(wc.imm_data));
	check(ntohl(wc.imm_data) == ANSWER, "comparing the immediate data");
	/* the QP stays until the client has its acknowledgement and hangs up */
	check(read(tcp, &ready, 1) == 0, "waiting for the client's end");
}

int main(int argc, char **argv)
{
	const char *server = argc == 3 ? argv[2] : NULL;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_port_attr port;
	struct endpoint here, peer;
	struct ibv_context *ctx;
	struct ibv_device **list;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	char text[64] = "";
	int tcp;

	check(argc == 2 || argc == 3,
	      "usage: hello PORT [SERVER]: reading the arguments");
	list = ibv_get_device_list(NULL);
	check(list && list[0], "looking for an RDMA device");
	ctx = ibv_open_device(list[0]);
	check(ctx && !ibv_query_port(ctx, 1, &port), "opening the device");
	pd = ibv_alloc_pd(ctx);
	attr.send_cq = attr.recv_cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	check(pd && attr.send_cq, "allocating a PD and a CQ");
	mr = ibv_reg_mr(pd, text, sizeof(text),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	qp = ibv_create_qp(pd, &attr);
	check(mr && qp, "registering memory and creating a QP");

	here = (struct endpoint){(uintptr_t)text, mr->rkey, qp->qp_num, port.lid};
	tcp = meet(server, argv[1]);
	check(write(tcp, &here, sizeof(here)) == sizeof(here), "writing to the peer");
	check(recv(tcp, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer),
	      "reading from the peer");
	connect_qp(qp, &peer);
	if (server) {
		snprintf(text, sizeof(text), "hello from LID %u", here.lid);
		client(qp, mr, &peer, tcp);
	} else {
		serve(qp, text, tcp);
	}
	close(tcp);
	check(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(attr.send_cq) &&
		      !ibv_dealloc_pd(pd) && !ibv_close_device(ctx),
	      "releasing the verbs objects");
	ibv_free_device_list(list);
	return 0;
}
