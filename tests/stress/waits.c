/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Every way to wait for a completion event, in turn: in ibv_get_cq_event()
 * alone and several threads at once, in the program's own poll(), not at all
 * (O_NONBLOCK); interrupted by signals, cancelled, and while softibd's client
 * on the other side sends, one message a wait; and beside a peer that takes all
 * it can from the descriptors it was given. Prints each case as it passes.
 *
 *   waits [NODE1 NODE2 [ROUNDS]]
 */
#include "side.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUFFER_BYTES 65536
#define NUM_QPS 3 /* threads that wait at once */
#define RECEIVES 16
#define LATE_MS 5000 /* an answer that takes longer was not waited for */

static const char *node[2] = {"n1", "n2"};
static unsigned rounds = 300;
static int tell[2]; /* to the sender: which QP, after how many us */
static int let[2];  /* the thief may begin; closed: it ends */

/* --- the sender --- */

struct order {
	uint8_t qp;
	uint32_t delay_us;
};

static void send_one(struct side_qp *q)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = send_wr(q, &sge, IBV_WR_SEND, 1, 0, 8);

	post(q, &wr);
	await(q, 10);
}

static void sender(int fd)
{
	static struct side side;
	static struct side_qp q[NUM_QPS];
	struct side_options options = {0};
	struct order order;

	side_open(&side, node[1], BUFFER_BYTES);
	for (int i = 0; i < NUM_QPS; i++) {
		side_qp_create(&q[i], &side, &options);
		join(&q[i], fd);
	}
	while (read(tell[0], &order, sizeof(order)) == sizeof(order)) {
		if (order.delay_us)
			usleep(order.delay_us);
		send_one(&q[order.qp]);
	}
	_exit(0);
}

static void want(int qp, uint32_t delay_us)
{
	struct order order = {.qp = (uint8_t)qp, .delay_us = delay_us};

	if (write(tell[1], &order, sizeof(order)) != sizeof(order))
		fail("the sender is gone");
}

/* --- the thief: a peer with a lane that reads its doorbell as fast as it can --- */

/* Return: how many descriptors of this process are doorbells, or may be */
static unsigned find_doorbells(int *fds, unsigned most)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char target[64];
	unsigned n = 0;
	ssize_t len;

	while (dir && n < most && (entry = readdir(dir))) {
		len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		target[len < 0 ? 0 : len] = '\0';
		if (!strcmp(target, "anon_inode:[eventfd]") ||
		    !strcmp(target, "anon_inode:[timerfd]"))
			fds[n++] = atoi(entry->d_name);
	}
	closedir(dir);
	return n;
}

static void thief(int fd)
{
	static struct side side;
	struct side_qp q;
	struct side_options options = {0};
	int doorbell[64];
	unsigned n;
	uint64_t loot;
	char go;

	side_open(&side, node[1], BUFFER_BYTES);
	side_qp_create(&q, &side, &options);
	join(&q, fd);
	if (read(let[0], &go, 1) != 1)
		_exit(1);
	send_one(&q);
	n = find_doorbells(doorbell, sizeof(doorbell) / sizeof(doorbell[0]));
	fcntl(let[0], F_SETFL, O_NONBLOCK);
	for (unsigned i = 0; i < n; i++)
		fcntl(doorbell[i], F_SETFL, O_NONBLOCK);
	while (read(let[0], &go, 1) < 0)
		for (unsigned i = 0; i < n; i++)
			if (read(doorbell[i], &loot, sizeof(loot)) < 0 && errno != EAGAIN)
				_exit(1);
	_exit(0);
}

/* --- the receiver --- */

static struct side_qp qps[NUM_QPS];
static struct side_qp thieves_qp;

/* the messages whose event was taken; arms the CQ for the next. Return: how
 * many: the event may be of one that was taken with those before it */
static unsigned take_messages(struct side_qp *q)
{
	struct ibv_wc wc;
	unsigned n = 0;

	for (ibv_req_notify_cq(q->cq, 0); poll_one(q, &wc); n++) {
		if (wc.status)
			fail("%s", ibv_wc_status_str(wc.status));
		post_recv(q, 1, 0, 8);
	}
	return n;
}

static void take_message(struct side_qp *q)
{
	unsigned n = take_messages(q);

	if (n != 1)
		fail("an event, and %u completions", n);
}

static void get_event(struct side_qp *q)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(q->channel, &cq, &context))
		fail("ibv_get_cq_event: %s", strerror(errno));
	if (cq != q->cq || context != q)
		fail("an event of another CQ");
	ibv_ack_cq_events(cq, 1);
}

static void take_event(struct side_qp *q)
{
	get_event(q);
	take_message(q);
}

static void alone(void)
{
	for (unsigned i = 0; i < rounds; i++) {
		/* near enough to be spun for, and too far */
		want(0, i % 2 ? 0 : 200);
		take_event(&qps[0]);
	}
}

static void own_poll(void)
{
	struct pollfd fd = {.fd = qps[0].channel->fd, .events = POLLIN};

	for (unsigned i = 0; i < rounds; i++) {
		want(0, i % 3 ? 0 : 200);
		if (poll(&fd, 1, 10000) != 1)
			fail("no event in 10 s");
		take_event(&qps[0]);
	}
}

/* a program that changes its mind */
static void both_in_turn(void)
{
	uint64_t start = now_ns();

	for (unsigned i = 0; i < rounds; i++) {
		struct pollfd fd = {.fd = qps[i % 2].channel->fd, .events = POLLIN};

		want((int)i % 2, 100);
		if (i % 2 && poll(&fd, 1, 10000) != 1)
			fail("no event in 10 s");
		take_event(&qps[i % 2]);
	}
	if (now_ns() - start > rounds * 100000000ull)
		fail("%u rounds took %lu ms", rounds, (unsigned long)((now_ns() - start) / 1000000));
}

/* also where the call before it slept */
static void not_blocking(void)
{
	struct side_qp *q = &qps[0];
	int flags = fcntl(q->channel->fd, F_GETFL);
	struct ibv_cq *cq;
	void *context;

	want(0, 100);
	take_event(q);
	fcntl(q->channel->fd, F_SETFL, flags | O_NONBLOCK);
	if (!ibv_get_cq_event(q->channel, &cq, &context) || errno != EAGAIN)
		fail("an event out of nothing");
	want(0, 100);
	while (ibv_get_cq_event(q->channel, &cq, &context))
		if (errno != EAGAIN)
			fail("ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
	take_message(q);
	fcntl(q->channel->fd, F_SETFL, flags);
}

static void *wait_often(void *arg)
{
	struct side_qp *q = arg;

	for (unsigned i = 0; i < rounds; i += take_messages(q))
		get_event(q);
	return NULL;
}

/* One event may be left of a message that was taken before it. */
static void settle(void)
{
	struct ibv_cq *cq;
	void *context;

	for (int i = 0; i < NUM_QPS; i++) {
		int fd = qps[i].channel->fd, flags = fcntl(fd, F_GETFL);

		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
		if (!ibv_get_cq_event(qps[i].channel, &cq, &context))
			ibv_ack_cq_events(cq, 1);
		fcntl(fd, F_SETFL, flags);
		if (take_messages(&qps[i]))
			fail("a message too many");
	}
}

static void several_threads(void)
{
	pthread_t thread[NUM_QPS];
	unsigned sent[NUM_QPS] = {0};
	struct rng rng = {1};

	for (int i = 0; i < NUM_QPS; i++)
		pthread_create(&thread[i], NULL, wait_often, &qps[i]);
	for (unsigned n = 0; n < rounds * NUM_QPS;) {
		int i = (int)rng_below(&rng, NUM_QPS);

		if (sent[i] == rounds)
			continue;
		sent[i]++;
		n++;
		want(i, rng_below(&rng, 3) ? 0 : 100);
	}
	for (int i = 0; i < NUM_QPS; i++)
		pthread_join(thread[i], NULL);
	settle();
}

/* --- interrupted --- */

static _Atomic unsigned signals;

static void on_signal(int number)
{
	signals++;
}

static void *wait_once(void *arg)
{
	struct side_qp *q = arg;
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(q->channel, &cq, &context))
		return (void *)(intptr_t)errno;
	ibv_ack_cq_events(cq, 1);
	return NULL;
}

/* Send signals until the thread has run a handler, and without SA_RESTART until it has ended: a
 * signal that comes before the thread sleeps ends no sleep, on a busy machine even after a while */
static void *interrupt(pthread_t thread, bool ends)
{
	uint64_t start = now_ns();
	unsigned before = signals;
	void *result = NULL;

	do {
		if (now_ns() - start > 60000000000ull)
			fail("signals do not end a wait");
		pthread_kill(thread, SIGUSR1);
		usleep(1000);
	} while (ends ? pthread_tryjoin_np(thread, &result) : signals == before);
	return result;
}

static int interrupted(int flags)
{
	struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};
	pthread_t thread;
	void *result;

	sigaction(SIGUSR1, &sa, NULL);
	pthread_create(&thread, NULL, wait_once, &qps[0]);
	usleep(20000); /* it sleeps, most probably */
	result = interrupt(thread, !(flags & SA_RESTART));
	if (flags & SA_RESTART) {
		want(0, 0);
		pthread_join(thread, &result);
		if (!result)
			take_message(&qps[0]);
	}
	return (int)(intptr_t)result;
}

/* a program that reports its crashes */
static void on_crash(int number)
{
	_exit(1);
}

static void by_signals(void)
{
	struct sigaction crash = {.sa_handler = on_crash}, was;
	int error = interrupted(0);

	if (error != EINTR)
		fail("a signal without SA_RESTART: %s", strerror(error));
	sigaction(SIGSEGV, &crash, &was);
	error = interrupted(SA_RESTART);
	if (error)
		fail("a signal with SA_RESTART: %s", strerror(error));
	sigaction(SIGSEGV, &was, NULL);
	signal(SIGUSR1, SIG_DFL);
}

static void cancelled(void)
{
	struct rng rng = {2};

	for (unsigned i = 0; i < rounds; i++) {
		pthread_t thread;
		void *result;

		pthread_create(&thread, NULL, wait_once, &qps[1]);
		usleep(rng_below(&rng, 300));
		pthread_cancel(thread);
		pthread_join(thread, &result);
		if (result != PTHREAD_CANCELED)
			fail("not cancelled");
	}
	want(1, 100);
	take_event(&qps[1]);
}

/* a request that takes a timer: the wait must not outlast it */
static void with_timers(void)
{
	uint64_t start;

	for (int i = 0; i < 3; i++) {
		want(2, 0);
		take_event(&qps[2]);
		start = now_ns();
		want(2, 1000);
		take_event(&qps[2]);
		if (now_ns() - start > LATE_MS * 1000000ull)
			fail("a message took %lu ms", (unsigned long)((now_ns() - start) / 1000000));
	}
}

static void beside_a_thief(void)
{
	uint64_t start = now_ns();

	if (write(let[1], "", 1) != 1)
		fail("the thief is gone");
	take_event(&thieves_qp);
	alone();
	own_poll();
	close(let[1]);
	if (now_ns() - start > rounds * 100000000ull)
		fail("%u rounds took %lu ms", 2 * rounds,
		     (unsigned long)((now_ns() - start) / 1000000));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"alone in ibv_get_cq_event", alone},
	{"in its own poll", own_poll},
	{"both in turn", both_in_turn},
	{"not blocking", not_blocking},
	{"several threads", several_threads},
	{"alone again", alone},
	{"interrupted by signals", by_signals},
	{"cancelled", cancelled},
	{"several threads again", several_threads},
	{"late messages", with_timers},
	{"beside a thief", beside_a_thief},
};

static pid_t start(void (*run)(int fd), int *fd)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		fail("socketpair");
	pid = fork();
	if (pid == 0) {
		close(tell[1]);
		close(let[1]);
		run(pair[1]);
	}
	close(pair[1]);
	*fd = pair[0];
	return pid;
}

static void end(pid_t pid, const char *who)
{
	int status;

	if (waitpid(pid, &status, 0) < 0 || status)
		fail("the %s: status %d", who, status);
}

static void open_qp(struct side_qp *q, struct side *side, int fd)
{
	struct side_options options = {.events = true};

	side_qp_create(q, side, &options);
	for (int i = 0; i < RECEIVES; i++)
		post_recv(q, 1, 0, 8);
	ibv_req_notify_cq(q->cq, 0);
	join(q, fd);
}

int main(int argc, char **argv)
{
	static struct side side;
	pid_t sends, steals;
	int fd[2];

	if (argc > 2) {
		node[0] = argv[1];
		node[1] = argv[2];
	}
	rounds = argc > 3 ? (unsigned)atoi(argv[3]) : rounds;
	if (pipe(tell) || pipe(let))
		fail("pipe");
	sends = start(sender, &fd[0]);
	steals = start(thief, &fd[1]);
	side_open(&side, node[0], BUFFER_BYTES);
	for (int i = 0; i < NUM_QPS; i++)
		open_qp(&qps[i], &side, fd[0]);
	open_qp(&thieves_qp, &side, fd[1]);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cases[i].run();
		printf("ok %s\n", cases[i].name);
		fflush(stdout);
	}
	close(tell[1]);
	end(sends, "sender");
	end(steals, "thief");
	for (int i = 0; i < NUM_QPS; i++)
		side_qp_destroy(&qps[i]);
	side_qp_destroy(&thieves_qp);
	side_close(&side);
	return 0;
}
