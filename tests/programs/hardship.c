/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What programs do to a library around its data path. Each case moves messages between two QPs
 * of one port, checks every byte and every completion, and prints "fine".
 *
 *   signals             a storm of signals while it posts and polls
 *   threads             two threads post on one QP and poll one CQ
 *   fork PHASE [init]   fork() before the device is opened, with registered memory, while
 *                       another thread's traffic flows, or when the device was closed again
 *                       (before, registered, traffic, closed); with ibv_fork_init() or without.
 *                       One child leaves its parent's objects alone, and uses a device that it
 *                       opens itself; one tries its parent's; one posts to its parent's QP.
 *                       PHASE events: while the parent has one event to acknowledge and one to get
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

#define DEPTH	16
#define BYTES	4096u
#define SIGNALS 2000
#define EACH	20000 /* messages of each of two threads */
#define FORKS	20

/** struct link - two QPs that are connected, and memory */
struct link {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* of recv_cq */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *from, *to;
	struct ibv_mr *mr;
	unsigned char *memory; /* DEPTH messages to send, then DEPTH that are received */
};

static struct ibv_qp *make_qp(struct link *l)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = l->send_cq, .recv_cq = l->recv_cq, .sq_sig_all = 1,
		.cap = {.max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			.max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(l->pd, &init);

	CHECK(qp);
	return qp;
}

static unsigned char *given; /* the memory of links to come; NULL: each maps its own */

static unsigned char *map_memory(void)
{
	void *memory = mmap(NULL, 2 * DEPTH * BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

static void open_link(struct link *l)
{
	*l = (struct link){.context = open_first_device()};
	CHECK((l->pd = ibv_alloc_pd(l->context)));
	CHECK((l->send_cq = ibv_create_cq(l->context, 4 * DEPTH, NULL, NULL, 0)));
	CHECK((l->channel = ibv_create_comp_channel(l->context)));
	CHECK((l->recv_cq = ibv_create_cq(l->context, 4 * DEPTH, NULL, l->channel, 0)));
	l->memory = given ? given : map_memory();
	CHECK((l->mr = ibv_reg_mr(l->pd, l->memory, 2 * DEPTH * BYTES,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)));
	l->from = make_qp(l);
	l->to = make_qp(l);
	connect_qp(l->from, (struct ibv_qp_attr){.dest_qp_num = l->to->qp_num}, lid_of(l->context), 1);
	connect_qp(l->to, (struct ibv_qp_attr){.dest_qp_num = l->from->qp_num,
					       .qp_access_flags = IBV_ACCESS_REMOTE_WRITE},
		   lid_of(l->context), 1);
}

static void close_link(struct link *l)
{
	CHECK(!ibv_destroy_qp(l->from) && !ibv_destroy_qp(l->to) && !ibv_dereg_mr(l->mr));
	CHECK(!ibv_destroy_cq(l->send_cq) && !ibv_destroy_cq(l->recv_cq));
	CHECK(!ibv_destroy_comp_channel(l->channel) && !ibv_dealloc_pd(l->pd));
	CHECK(!ibv_close_device(l->context));
	CHECK(given || !munmap(l->memory, 2 * DEPTH * BYTES));
}

static struct ibv_sge slot(struct link *l, unsigned i, uint32_t bytes)
{
	return (struct ibv_sge){(uintptr_t)l->memory + (size_t)i * BYTES, bytes, l->mr->lkey};
}

static void receive(struct link *l, unsigned i)
{
	struct ibv_sge sge = slot(l, DEPTH + i, BYTES);
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(l->to, &wr, &bad));
}

static void send_slot(struct link *l, unsigned i, uint32_t bytes)
{
	struct ibv_sge sge = slot(l, i, bytes);
	struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1},
			   *bad;

	CHECK(!ibv_post_send(l->from, &wr, &bad));
}

static void write_slot(struct link *l, unsigned i, uint32_t bytes)
{
	struct ibv_sge sge = slot(l, i, bytes);
	struct ibv_send_wr wr = {.wr_id = i, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge,
				 .num_sge = 1}, *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)l->memory + (size_t)(DEPTH + i) * BYTES;
	wr.wr.rdma.rkey = l->mr->rkey;
	CHECK(!ibv_post_send(l->from, &wr, &bad));
}

static struct ibv_wc await(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq, 1, &wc);
	while (!n);
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
	return wc;
}

/* one message there, by a SEND or a WRITE, and a look at it */
static void exchange(struct link *l, unsigned n)
{
	static const uint32_t sizes[] = {8, 64, 1000, BYTES};
	uint32_t bytes = sizes[n / 2 % 4];
	unsigned char *to = l->memory + (size_t)DEPTH * BYTES;

	memset(l->memory, (int)n, bytes);
	if (n % 2) {
		write_slot(l, 0, bytes);
	} else {
		receive(l, 0);
		send_slot(l, 0, bytes);
		CHECK(await(l->recv_cq).byte_len == bytes);
	}
	await(l->send_cq);
	CHECK(!memcmp(l->memory, to, bytes));
}

/* --- signals --- */

static _Atomic unsigned signals;

static void on_signal(int number)
{
	signals++;
}

static void under_signals(void)
{
	struct sigaction act = {.sa_handler = on_signal};
	struct itimerspec every = {.it_interval.tv_nsec = 20000, .it_value.tv_nsec = 20000};
	timer_t timer;
	struct link l;

	open_link(&l);
	CHECK(!sigaction(SIGALRM, &act, NULL) && !timer_create(CLOCK_MONOTONIC, NULL, &timer) &&
	      !timer_settime(timer, 0, &every, NULL));
	for (unsigned n = 0; signals < SIGNALS; n++)
		exchange(&l, n);
	close_link(&l); /* commands, too */
	CHECK(!timer_delete(timer));
}

/* --- threads --- */

static struct link shared;
static _Atomic unsigned sent[2], received; /* completions; of sends, by who posted them */

/* Each thread sends from half of the slots, and takes the completions of both. */
static void *poster(void *arg)
{
	unsigned mine = *(unsigned *)arg, posted = 0;
	struct ibv_wc wc;

	while (sent[0] + sent[1] < 2 * EACH || received < 2 * EACH) {
		if (posted < EACH && posted - sent[mine] < DEPTH / 2) {
			send_slot(&shared, mine * DEPTH / 2 + posted % (DEPTH / 2), 8);
			posted++;
		}
		while (ibv_poll_cq(shared.send_cq, 1, &wc) == 1) {
			CHECK(wc.status == IBV_WC_SUCCESS);
			sent[wc.wr_id / (DEPTH / 2)]++;
		}
		while (ibv_poll_cq(shared.recv_cq, 1, &wc) == 1) {
			CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == 8);
			receive(&shared, (unsigned)wc.wr_id);
			received++;
		}
	}
	return NULL;
}

static void two_threads(void)
{
	unsigned number[2] = {0, 1};
	pthread_t thread[2];
	struct ibv_wc wc;

	open_link(&shared);
	for (unsigned i = 0; i < DEPTH; i++)
		receive(&shared, i);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&thread[i], NULL, poster, &number[i]));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(thread[i], NULL));
	CHECK(sent[0] == EACH && sent[1] == EACH && received == 2 * EACH);
	CHECK(!ibv_poll_cq(shared.send_cq, 1, &wc) && !ibv_poll_cq(shared.recv_cq, 1, &wc));
	close_link(&shared);
}

/* --- fork --- */

/* a device of its own, after which nothing of the parent's has changed */
static void in_child(void)
{
	struct link l;

	open_link(&l);
	for (unsigned n = 0; n < 100; n++)
		exchange(&l, n);
	close_link(&l);
	_exit(0);
}

/* The parent's objects: commands are the parent's to give, what was registered is a copy here, and
 * what was made can be given back. */
static void use_parents_objects(struct link *l)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .send_cq = l->send_cq,
					.recv_cq = l->recv_cq};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	CHECK(!ibv_alloc_pd(l->context) && errno == EIO);
	CHECK(!ibv_create_cq(l->context, 1, NULL, NULL, 0) && errno == EIO);
	CHECK(!ibv_create_qp(l->pd, &init) && errno == EIO);
	CHECK(!ibv_reg_mr(l->pd, l->memory, BYTES, 0) && errno == EIO);
	CHECK(ibv_modify_qp(l->from, &attr, IBV_QP_STATE) == EIO);
	memset(l->memory, 0xee, 2 * DEPTH * BYTES);
	close_link(l);
	_exit(0);
}

/* An adapter's doorbell is not in the child's memory, nor are softib's rings: the child may die, or
 * its request go nowhere. */
static void post_to_parents_qp(struct link *l)
{
	signal(SIGSEGV, SIG_DFL);
	memset(l->memory, 0xdd, 2 * DEPTH * BYTES);
	send_slot(l, 0, 8);
	write_slot(l, 0, 8);
	_exit(0);
}

static int status_of(pid_t child)
{
	int status;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	return status;
}

/* @l: the parent's, with which it goes on; NULL: none is open */
static void fork_all(struct link *l)
{
	pid_t child = fork();
	int status;

	if (!child)
		in_child();
	CHECK(!status_of(child));
	if (!l)
		return;
	child = fork();
	if (!child)
		use_parents_objects(l);
	CHECK(!status_of(child));
	child = fork();
	if (!child)
		post_to_parents_qp(l);
	status = status_of(child);
	CHECK(!status || (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV));
}

/* What the library has kept of its closed device is the parent's: the child's memory moves into a
 * window, and not the parent's, which is at the same place and can be written as ever. */
static void fork_closed(void)
{
	struct link l;

	open_link(&l);
	for (unsigned n = 0; n < 200; n++)
		exchange(&l, n);
	close_link(&l);
	given = map_memory();
	fork_all(NULL);
	memset(given, 1, 2 * DEPTH * BYTES);
	given = NULL;
}

static void get_event(struct link *l)
{
	struct ibv_cq *cq;
	void *context;

	CHECK(!ibv_get_cq_event(l->channel, &cq, &context) && cq == l->recv_cq);
}

/* The child ends what it has inherited, and does not wait for the parent's acknowledgement. The
 * event that the parent has not got yet is still there for it. */
static void fork_with_events(struct link *l)
{
	struct pollfd readable = {.fd = l->channel->fd, .events = POLLIN};
	pid_t child;

	for (unsigned n = 0; n < 4; n += 2) {
		CHECK(!ibv_req_notify_cq(l->recv_cq, 0));
		exchange(l, n);
		CHECK(poll(&readable, 1, -1) == 1);
		if (!n)
			get_event(l);
	}
	child = fork();
	if (!child) {
		alarm(30); /* a hang, not a measure of speed */
		close_link(l);
		_exit(0);
	}
	CHECK(!status_of(child));
	CHECK(poll(&readable, 1, 0) == 1);
	get_event(l);
	ibv_ack_cq_events(l->recv_cq, 2);
}

static atomic_bool ends;

static void *traffic(void *arg)
{
	for (unsigned n = 0; !ends; n++)
		exchange(arg, n);
	return NULL;
}

static void forks(const char *phase)
{
	pthread_t thread;
	struct link l;

	if (!strcmp(phase, "before"))
		fork_all(NULL);
	if (!strcmp(phase, "closed"))
		fork_closed();
	open_link(&l);
	if (!strcmp(phase, "registered"))
		fork_all(&l);
	for (unsigned n = 0; n < 200; n++) /* windows and lanes are there */
		exchange(&l, n);
	if (!strcmp(phase, "registered"))
		fork_all(&l);
	if (!strcmp(phase, "events"))
		fork_with_events(&l);
	if (!strcmp(phase, "traffic")) {
		CHECK(!pthread_create(&thread, NULL, traffic, &l));
		for (unsigned n = 0; n < FORKS; n++)
			fork_all(&l);
		ends = true;
		CHECK(!pthread_join(thread, NULL));
	}
	for (unsigned n = 0; n < 200; n++)
		exchange(&l, n);
	close_link(&l);
}

int main(int argc, char **argv)
{
	CHECK(argc > 1);
	if (!strcmp(argv[1], "signals"))
		under_signals();
	else if (!strcmp(argv[1], "threads"))
		two_threads();
	else
		CHECK(argc > 2 && (argc == 3 || !ibv_fork_init()));
	if (argc > 2)
		forks(argv[2]);
	printf("fine\n");
	return 0;
}
