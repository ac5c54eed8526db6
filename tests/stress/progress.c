/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What waiting costs: processor time and wake-ups of programs that wait in
 * each way a program can, and the round trip of a message between programs
 * that sleep, and how often it makes a thread sleep, beside that of a bare eventfd in the same run. Prints one line
 * a figure: name, value, unit, the limit that was measured (or 0).
 *
 *   progress [NODE1 NODE2 [PART]]: only figures whose name has that part
 */
#include "side.h"

#include <poll.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFER_BYTES 4096
#define IDLE_US 1000000
#define WARM_UP 200
#define BUSY_ROUNDS 1000000

static const char *node[2] = {"n1", "n2"};

/* what the two processes of a measurement share */
struct shared {
	int fd[2];  /* one end each */
	int bell[2]; /* eventfds: who has the turn */
	int pipe_out[2], pipe_in[2];
	alignas(64) _Atomic unsigned turn;
	double result;
	double sleeps[2]; /* of all threads of a side, a round trip */
};

static struct shared *shared;

/* --- bare round trips --- */

static void bare_doorbell(const int read_fd[2], const int write_fd[2], int me, unsigned rounds)
{
	uint64_t n = 1;

	for (unsigned i = 0; i < rounds; i++) {
		if (me == 0 && write(write_fd[1], &n, sizeof(n)) < 0)
			fail("write");
		if (read(read_fd[me], &n, sizeof(n)) < 0)
			fail("read");
		n = 1;
		if (me == 1 && write(write_fd[0], &n, sizeof(n)) < 0)
			fail("write");
	}
}

/* two spinning programs that yield */
static void bare_yield(int me, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		while (atomic_load(&shared->turn) % 2 != (unsigned)me)
			sched_yield();
		atomic_fetch_add(&shared->turn, 1);
	}
}

/* --- the same with verbs --- */

enum waiting { POLLING, GET_EVENT, OWN_POLL };

static void wait_event(struct side_qp *q, enum waiting how)
{
	struct pollfd fd = {.fd = q->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *unused;

	if (how == OWN_POLL && poll(&fd, 1, 10000) != 1)
		fail("no event in 10 s");
	if (ibv_get_cq_event(q->channel, &cq, &unused))
		fail("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
}

/* the next receive completion; sends complete on the way */
static void next_message(struct side_qp *q, enum waiting how)
{
	struct ibv_wc wc;

	for (;;) {
		while (poll_one(q, &wc)) {
			if (wc.status)
				fail("%s", ibv_wc_status_str(wc.status));
			if (wc.opcode & IBV_WC_RECV)
				return;
		}
		if (how == POLLING)
			continue;
		ibv_req_notify_cq(q->cq, 0);
		if (poll_one(q, &wc)) {
			if (wc.opcode & IBV_WC_RECV)
				return; /* the event is stale: as programs do it */
			continue;
		}
		wait_event(q, how);
	}
}

static void pingpong(struct side_qp *q, int me, unsigned rounds, enum waiting how)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(q, &sge, IBV_WR_SEND, 1, 64, 8);

	for (unsigned i = 0; i < rounds; i++) {
		if (me == 0)
			post(q, &wr);
		next_message(q, how);
		post_recv(q, 2, 0, 8);
		if (me == 1)
			post(q, &wr);
	}
}

static void open_qp(struct side *side, struct side_qp *q, int me)
{
	struct side_options options = {.events = true, .unsignaled = true, .inline_bytes = 32};

	side_open(side, node[me], BUFFER_BYTES);
	side_qp_create(q, side, &options);
	for (int i = 0; i < 16; i++)
		post_recv(q, 2, 0, 8);
	join(q, shared->fd[me]);
}

/* --- running two sides --- */

struct plan {
	const char *name;
	enum { EVENTFD, PIPE, YIELD, VERBS } what;
	enum waiting how;
	int cpu[2];
	unsigned rounds;
	bool no_spin;
	const char *limit; /* the plan that this one is held against */
	double result;
};

static void side_run(const struct plan *p, int me)
{
	struct side side;
	struct side_qp q;
	struct rusage before, after;
	uint64_t start;

	pin(p->cpu[me]);
	if (p->no_spin)
		setenv("SOFTIB_SPIN_US", "0", 1);
	if (p->what == VERBS)
		open_qp(&side, &q, me);
	for (int round = 0; round < 2; round++) {
		unsigned n = round ? p->rounds : WARM_UP;

		getrusage(RUSAGE_SELF, &before);
		start = now_ns();
		if (p->what == EVENTFD)
			bare_doorbell(shared->bell, shared->bell, me, n);
		else if (p->what == PIPE)
			bare_doorbell(shared->pipe_out, shared->pipe_in, me, n);
		else if (p->what == YIELD)
			bare_yield(me, n);
		else
			pingpong(&q, me, n, p->how);
	}
	getrusage(RUSAGE_SELF, &after);
	shared->sleeps[me] = (double)(after.ru_nvcsw - before.ru_nvcsw) / p->rounds;
	if (me == 0)
		shared->result = (double)(now_ns() - start) / 1000. / p->rounds;
	_exit(0);
}

static void start_pair(pid_t pid[2], void (*run)(const struct plan *p, int me),
		       const struct plan *p)
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, shared->fd))
		fail("socketpair");
	for (int me = 0; me < 2; me++) {
		int ends[2];

		if (pipe(ends))
			fail("pipe");
		shared->pipe_out[me] = ends[0];
		shared->pipe_in[me] = ends[1];
		shared->bell[me] = eventfd(0, 0);
		atomic_store(&shared->turn, 0);
	}
	for (int me = 0; me < 2; me++) {
		pid[me] = fork();
		if (pid[me] == 0)
			run(p, me);
	}
}

static void end_pair(const pid_t pid[2])
{
	int status, bad = 0;

	for (int me = 0; me < 2; me++)
		if (waitpid(pid[me], &status, 0) < 0 || status)
			bad = 1;
	for (int me = 0; me < 2; me++) {
		close(shared->fd[me]);
		close(shared->bell[me]);
		close(shared->pipe_out[me]);
		close(shared->pipe_in[me]);
	}
	if (bad)
		exit(1);
}

static struct plan plans[] = {
	{"eventfd, two cores", EVENTFD, 0, {0, 1}, 10000, false, NULL, 0},
	{"pipe, two cores", PIPE, 0, {0, 1}, 10000, false, "eventfd, two cores", 0},
	{"event, asleep, two cores", VERBS, GET_EVENT, {0, 1}, 10000, true, "eventfd, two cores", 0},
	{"own poll(), two cores", VERBS, OWN_POLL, {0, 1}, 10000, false, "eventfd, two cores", 0},
	{"own poll(), asleep, two cores", VERBS, OWN_POLL, {0, 1}, 10000, true, "eventfd, two cores", 0},
	{"event, busy, two cores", VERBS, GET_EVENT, {0, 1}, 50000, false, "eventfd, two cores", 0},
	{"polling, two cores", VERBS, POLLING, {0, 1}, 100000, false, NULL, 0},
	{"eventfd, one core", EVENTFD, 0, {0, 0}, 50000, false, NULL, 0},
	{"pipe, one core", PIPE, 0, {0, 0}, 50000, false, "eventfd, one core", 0},
	{"event, asleep, one core", VERBS, GET_EVENT, {0, 0}, 20000, true, "eventfd, one core", 0},
	{"event, busy, one core", VERBS, GET_EVENT, {0, 0}, 20000, false, "eventfd, one core", 0},
	{"own poll(), one core", VERBS, OWN_POLL, {0, 0}, 20000, false, "eventfd, one core", 0},
	{"own poll(), asleep, one core", VERBS, OWN_POLL, {0, 0}, 20000, true, "eventfd, one core", 0},
	{"sched_yield, one core", YIELD, 0, {0, 0}, 50000, false, NULL, 0},
	{"polling, one core", VERBS, POLLING, {0, 0}, 20000, false, "sched_yield, one core", 0},
};

static void round_trips(const char *only)
{
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct plan *p = &plans[i], *limit = NULL;
		pid_t pid[2];

		if (only && !strstr(p->name, only))
			continue;
		start_pair(pid, side_run, p);
		end_pair(pid);
		p->result = shared->result;
		for (size_t j = 0; p->limit && j < i; j++)
			if (plans[j].name == p->limit)
				limit = &plans[j];
		printf("%-30s %9.2f us  %4.1f sleeps", p->name, p->result,
		       shared->sleeps[0] + shared->sleeps[1]);
		if (limit)
			printf("  %5.2f times %s", p->result / limit->result, limit->name);
		putchar('\n');
		fflush(stdout);
	}
}

/* --- what waiting costs --- */

struct cost {
	double cpu_us;
	long wakes;
};

static struct cost cost_of(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return (struct cost){(double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
				     (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec),
			     r.ru_nvcsw};
}

static void print_cost(const char *what, struct cost from, struct cost to, double seconds)
{
	printf("%-30s %9.1f us of processor, %.1f wake-ups a second\n", what,
	       (to.cpu_us - from.cpu_us) / seconds, (double)(to.wakes - from.wakes) / seconds);
	fflush(stdout);
}

/* the peer of a program that waits: sends one message, @after_us from now */
__attribute__((noreturn)) static void send_late(struct side_qp *q, useconds_t after_us)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(q, &sge, IBV_WR_SEND, 1, 64, 8);

	usleep(after_us);
	post(q, &wr);
	usleep(100000);
	_exit(0);
}

static void quiet_peer(const struct plan *p, int me)
{
	struct side side;
	struct side_qp q;
	struct cost from;

	open_qp(&side, &q, me);
	usleep(100000); /* what connecting made is over */
	if (me == 1)
		send_late(&q, IDLE_US + 200000);
	from = cost_of(RUSAGE_SELF);
	usleep(IDLE_US);
	print_cost("open device, asleep", from, cost_of(RUSAGE_SELF), IDLE_US / 1e6);
	_exit(0);
}

static void waits_in_get_event(const struct plan *p, int me)
{
	struct side side;
	struct side_qp q;
	struct cost from;

	open_qp(&side, &q, me);
	if (me == 1)
		send_late(&q, IDLE_US);
	from = cost_of(RUSAGE_SELF);
	next_message(&q, GET_EVENT);
	print_cost("asleep in ibv_get_cq_event", from, cost_of(RUSAGE_SELF), IDLE_US / 1e6);
	_exit(0);
}

/* the engine's thread alone, while the program plays ping-pong */
static void polls(const struct plan *p, int me)
{
	struct side side;
	struct side_qp q;
	struct cost all, mine, all_end, mine_end;
	unsigned rounds = 0;
	uint64_t start;

	open_qp(&side, &q, me);
	pingpong(&q, me, 100000, POLLING);
	all = cost_of(RUSAGE_SELF);
	mine = cost_of(RUSAGE_THREAD);
	for (start = now_ns(); rounds < BUSY_ROUNDS; rounds += WARM_UP)
		pingpong(&q, me, WARM_UP, POLLING);
	all_end = cost_of(RUSAGE_SELF);
	mine_end = cost_of(RUSAGE_THREAD);
	if (me == 0)
		print_cost("thread beside a poller",
			   (struct cost){all.cpu_us - mine.cpu_us, all.wakes - mine.wakes},
			   (struct cost){all_end.cpu_us - mine_end.cpu_us, all_end.wakes - mine_end.wakes},
			   (double)(now_ns() - start) / 1e9);
	_exit(0);
}

static const struct {
	const char *name;
	void (*run)(const struct plan *p, int me);
} costs[] = {
	{"open device", quiet_peer},
	{"asleep in ibv_get_cq_event", waits_in_get_event},
	{"thread beside a poller", polls},
};

int main(int argc, char **argv)
{
	const char *only = argc > 3 ? argv[3] : NULL;
	pid_t pid[2];

	if (argc > 2) {
		node[0] = argv[1];
		node[1] = argv[2];
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	round_trips(only);
	for (size_t i = 0; i < sizeof(costs) / sizeof(costs[0]); i++) {
		if (only && !strstr(costs[i].name, only))
			continue;
		start_pair(pid, costs[i].run, NULL);
		end_pair(pid);
	}
	return 0;
}
