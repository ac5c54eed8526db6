/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Rings of commands that are not answered, and the processes that have them. told.h says what they are for. */
#include "access/told.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "base/list.h"
#include "runtime/posix/doorbell.h"
#include "runtime/posix/rt_posix.h"

#define RECORDS_PER_TURN 32 /* of a ring */
#define RINGS_MAX	 64 /* of a process: each message of one of its sessions looks at all of them */

struct told_process {
	struct list_head node; /* in the list of the loop */
	struct rt *rt;
	pid_t pid;
	unsigned int users, num_rings;
	struct rt_work refill; /* the next turn: each ring may run records again */
	struct list_head verbs, others; /* rings: of verbs contexts, and others */
};

struct told {
	struct list_head node; /* in a list of the process */
	struct told_process *process;
	const struct told_ops *ops;
	void *session;
	struct abi_ring_rx rx;
	struct rt_poller poller;
	struct rt_io doorbell;
	int doorbell_fd;
	unsigned int left; /* records that it may run in this turn, whoever asks for it */
	bool broken, paused;
};

/* --- processes --- */

static void refill(struct rt_work *work)
{
	struct told_process *process = container_of(work, struct told_process, refill);
	struct told *told;

	list_for_each_entry(told, &process->verbs, node)
		told->left = RECORDS_PER_TURN;
	list_for_each_entry(told, &process->others, node)
		told->left = RECORDS_PER_TURN;
}

static void init_processes(struct rt *rt, void *processes)
{
	INIT_LIST_HEAD((struct list_head *)processes);
}

struct told_process *told_process_get(struct rt *rt, pid_t pid)
{
	struct list_head *processes =
		rt_local_get(rt, RT_LOCAL_TOLD, sizeof(*processes), init_processes);
	struct told_process *process;

	if (!processes)
		return NULL;
	list_for_each_entry(process, processes, node)
		if (process->pid == pid) {
			process->users++;
			return process;
		}
	process = rt_zalloc(sizeof(*process));
	if (!process) {
		if (list_empty(processes))
			rt_local_free(rt, RT_LOCAL_TOLD);
		return NULL;
	}
	process->rt = rt;
	process->pid = pid;
	process->users = 1;
	rt_work_init(&process->refill, refill);
	INIT_LIST_HEAD(&process->verbs);
	INIT_LIST_HEAD(&process->others);
	list_add_tail(&process->node, processes);
	return process;
}

void told_process_put(struct told_process *process)
{
	if (!process || --process->users)
		return;
	rt_work_cancel(&process->refill);
	list_del(&process->node);
	if (list_empty((struct list_head *)rt_local(process->rt, RT_LOCAL_TOLD)))
		rt_local_free(process->rt, RT_LOCAL_TOLD);
	rt_free(process);
}

/* --- records --- */

static uint64_t told_until(const struct told *told)
{
	return atomic_load_explicit(&told->rx.ring->tail, memory_order_acquire);
}

static void stop(struct told *told)
{
	if (!told->paused)
		rt_poller_del(&told->poller);
	rt_io_watch(&told->doorbell, false, false);
}

static void break_off(struct told *told)
{
	told->broken = true;
	stop(told);
	told->ops->broken(told->session);
}

/* Run records that were told before @until, as many as are left for this turn: each message of the process's
 * sessions asks for it. Return: true if none of them remains */
static bool run_records(struct told *told, uint64_t until)
{
	_Alignas(8) uint8_t record[ABI_TOLD_RECORD_MAX];
	const void *shared;
	size_t len = 0;

	for (; told->left && !told->broken && (int64_t)(until - told->rx.head) > 0; told->left--) {
		shared = abi_ring_peek(&told->rx, &len);
		if (!shared || len > sizeof(record)) {
			break_off(told);
			break;
		}
		/* run the bytes that are checked: the program may change the shared ones meanwhile */
		memcpy(record, shared, len);
		abi_ring_skip(&told->rx);
		told->ops->run(told->session, record, len);
	}
	if (told->left < RECORDS_PER_TURN)
		rt_work_queue(told->process->rt, &told->process->refill);
	abi_ring_release(&told->rx);
	return told->broken || (int64_t)(until - told->rx.head) <= 0;
}

static bool run_verbs(struct told_process *process)
{
	struct told *told;
	bool all = true;

	list_for_each_entry(told, &process->verbs, node)
		if (!run_records(told, told_until(told)))
			all = false;
	return all;
}

bool told_run_one(struct told *told)
{
	uint64_t until;

	if (!told || told->paused)
		return true;
	until = told_until(told); /* first: what was told of verbs contexts before it is seen below */
	return (told->ops->verbs || run_verbs(told->process)) && run_records(told, until);
}

bool told_run(struct told_process *process)
{
	struct told *told;
	bool all;

	if (!process)
		return true;
	all = run_verbs(process);
	list_for_each_entry(told, &process->others, node)
		if (!told_run_one(told))
			all = false;
	return all;
}

bool told_by_rings(const struct told_process *process)
{
	return process && (!list_empty(&process->verbs) || !list_empty(&process->others));
}

/* --- the loop --- */

static bool poll_ring(struct rt_poller *p)
{
	struct told *told = container_of(p, struct told, poller);

	if (told_until(told) == told->rx.head)
		return false;
	told_run_one(told);
	return true;
}

static bool prepare(struct rt_poller *p)
{
	return !abi_ring_sleep(&container_of(p, struct told, poller)->rx);
}

static void awake(struct rt_poller *p)
{
	abi_ring_wake(&container_of(p, struct told, poller)->rx);
}

static void doorbell_rang(struct rt_io *io, bool readable, bool writable)
{
	struct told *told = container_of(io, struct told, doorbell);

	rt_doorbell_clear(io->ev.fd);
	if (!told->paused)
		rt_poller_wake(told->process->rt, &told->poller);
}

void told_pause(struct told *told, bool paused)
{
	if (!told || told->broken || told->paused == paused)
		return;
	told->paused = paused;
	if (paused)
		rt_poller_del(&told->poller);
	else
		rt_poller_add(told->process->rt, &told->poller);
}

/* --- coming and going --- */

/* Map the memory of a ring. It is sealed: a program that shrinks it would cause a SIGBUS in softibd.
 * Return: 0; -errno */
static int make_ring(struct told *told, int fd)
{
	const size_t bytes = abi_ring_bytes(ABI_TOLD_RING_BYTES);
	struct abi_ring *ring;

	if (ftruncate(fd, (off_t)bytes) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return -errno;
	ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		return -errno;
	abi_ring_init(ring, ABI_TOLD_RING_BYTES);
	told->rx = (struct abi_ring_rx){.ring = ring, .size = ABI_TOLD_RING_BYTES};
	return 0;
}

static void free_ring(struct told *told)
{
	if (told->rx.ring)
		munmap(told->rx.ring, abi_ring_bytes(ABI_TOLD_RING_BYTES));
	if (told->doorbell_fd >= 0)
		close(told->doorbell_fd);
	rt_free(told);
}

/* Return: 0; -errno, and what was made is closed by the caller */
static int make_fds(struct told *told, int fds[ABI_TOLD_FDS])
{
	fds[0] = memfd_create("softib-told", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fds[0] < 0)
		return -errno;
	told->doorbell_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (told->doorbell_fd < 0)
		return -errno;
	fds[1] = fcntl(told->doorbell_fd, F_DUPFD_CLOEXEC, 0);
	return fds[1] < 0 ? -errno : make_ring(told, fds[0]);
}

static void watch(struct told *told)
{
	struct rt *rt = told->process->rt;

	told->poller = (struct rt_poller){
		.poll = poll_ring, .prepare = prepare, .awake = awake, .may_rest = true};
	rt_poller_add(rt, &told->poller);
	rt_io_init(rt, &told->doorbell, told->doorbell_fd, doorbell_rang);
	rt_io_watch(&told->doorbell, true, false);
	list_add_tail(&told->node, told->ops->verbs ? &told->process->verbs : &told->process->others);
}

int told_open(struct told_process *process, const struct told_ops *ops, void *session, int fds[ABI_TOLD_FDS],
	      struct told **out)
{
	struct told *told;
	int ret;

	if (process->num_rings >= RINGS_MAX)
		return -ENOSPC;
	told = rt_zalloc(sizeof(*told));
	if (!told)
		return -ENOMEM;
	told->process = process;
	told->ops = ops;
	told->session = session;
	told->left = RECORDS_PER_TURN;
	told->doorbell_fd = fds[0] = fds[1] = -1;
	INIT_LIST_HEAD(&told->node);
	ret = make_fds(told, fds);
	if (ret) {
		for (int i = 0; i < ABI_TOLD_FDS; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		free_ring(told);
		return ret;
	}
	watch(told);
	process->num_rings++;
	*out = told;
	return 0;
}

void told_close(struct told *told)
{
	if (!told)
		return;
	told->process->num_rings--;
	list_del(&told->node);
	if (!told->broken)
		stop(told);
	free_ring(told);
}
