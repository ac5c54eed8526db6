/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * epoll instances that watch connections whose ring may have bytes, which the kernel does not know of.
 * The library records the program's registrations. It adds the events of rings to those that
 * epoll_wait(2) returns. While a thread waits in the kernel, writers use the socket (wait.c).
 *
 * The records are those of this process and of one descriptor of the instance. Registrations that were
 * made by another process or by a duplicate of the descriptor are left to the kernel: softibd ends a
 * lease whose bytes nobody reads, and they arrive by the socket. A registration that was removed in such
 * a way, or whose number has become another instance, must not be reported. Therefore the kernel is
 * asked about each event that a ring adds (KCMP_EPOLL_TFD of kcmp(2)). Where the kernel does not
 * answer, rings add no events.
 *
 * Registrations with EPOLLONESHOT or EPOLLEXCLUSIVE are left to the kernel as well, and so are instances
 * that are themselves watched by another instance, select() or poll().
 */
#include <errno.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sdp_private.h"

#define EXPORT	  __attribute__((visibility("default")))
#define FDS_MAX	  65536
#define NOTES_MAX SDP_WATCHES_MAX /* registrations of an instance; further ones are left to the kernel */
#define READS	  (EPOLLIN | EPOLLRDNORM)

/** struct note - one registration. @seen: with EPOLLET, the tail of the ring when the last event was
 *  reported; @fresh: no event was reported since the registration was made or changed */
struct note {
	int fd;
	ino_t inode;
	struct epoll_event event;
	uint64_t seen;
	bool fresh;
};

/** struct instance - one epoll instance. @owes: the last call had no room for the event of a ring */
struct instance {
	struct note *notes;
	unsigned int num;
	bool is_watched, owes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* --- protected by lock --- */
static struct instance *instances[FDS_MAX];

/* --- fork() waits until no thread is inside of these functions --- */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void on_load(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* --- notes --- */

/* Return: the record of an instance; NULL: there is none */
static struct instance *find(int epoll)
{
	return epoll >= 0 && epoll < FDS_MAX ? instances[epoll] : NULL;
}

static struct note *note_of(struct instance *it, int fd)
{
	for (unsigned int i = 0; it && i < it->num; i++)
		if (it->notes[i].fd == fd)
			return &it->notes[i];
	return NULL;
}

static struct instance *make(int epoll)
{
	struct instance *it = find(epoll);

	if (it || epoll < 0 || epoll >= FDS_MAX)
		return it;
	it = calloc(1, sizeof(*it));
	instances[epoll] = it;
	return it;
}

/* Is the array full? It is when its length is a power of two. */
static struct note *add_note(struct instance *it)
{
	struct note *notes = it->notes;

	if (it->num == NOTES_MAX)
		return NULL;
	if (!(it->num & (it->num - 1)))
		notes = realloc(notes, (it->num ? 2 * it->num : 1) * sizeof(*notes));
	if (!notes)
		return NULL;
	it->notes = notes;
	return &notes[it->num++];
}

static void drop_note(struct instance *it, struct note *note)
{
	if (note)
		*note = it->notes[--it->num];
}

/* Record a registration that the kernel has accepted. @event: NULL: it was removed */
static void register_connection(int epoll, int fd, const struct sdp_memory *m,
				const struct epoll_event *event)
{
	const bool wanted = event && event->events & READS &&
			    !(event->events & (EPOLLONESHOT | EPOLLEXCLUSIVE));
	struct instance *it = wanted ? make(epoll) : find(epoll);
	struct note *note = note_of(it, fd);

	if (!wanted || !it) {
		drop_note(it, note);
		return;
	}
	note = note ? note : add_note(it);
	if (note)
		*note = (struct note){.fd = fd, .inode = m->inode, .event = *event, .fresh = true};
}

static void watch_instance(int epoll)
{
	struct instance *it = make(epoll);

	if (it)
		it->is_watched = true;
}

static void forget_instance(int epoll)
{
	struct instance *it = find(epoll);

	if (!it)
		return;
	instances[epoll] = NULL;
	free(it->notes);
	free(it);
}

static bool has_instance(int epoll)
{
	return epoll >= 0 && epoll < FDS_MAX && __atomic_load_n(&instances[epoll], __ATOMIC_RELAXED);
}

void sdp_epoll_forget(int epoll)
{
	if (!has_instance(epoll))
		return;
	pthread_mutex_lock(&lock);
	forget_instance(epoll);
	pthread_mutex_unlock(&lock);
}

void sdp_epoll_is_polled(int fd)
{
	if (!has_instance(fd))
		return;
	pthread_mutex_lock(&lock);
	if (find(fd))
		watch_instance(fd);
	pthread_mutex_unlock(&lock);
}

/* --- events of rings --- */

static bool is_registered(int epoll, int fd)
{
	const struct kcmp_epoll_slot slot = {.efd = (uint32_t)epoll, .tfd = (uint32_t)fd};
	const pid_t self = getpid();

	return !syscall(SYS_kcmp, self, self, KCMP_EPOLL_TFD, fd, &slot);
}

/* Add @events of the registration with @data to the kernel's @n events. They are merged into an event of the
 * same registration, because the program may end the registration when it handles the first of two events.
 * Return: the number of events */
static int merge(struct epoll_event *events, int n, int max, const struct epoll_event *one)
{
	for (int i = 0; i < n; i++) {
		if (events[i].data.u64 != one->data.u64)
			continue;
		events[i].events |= one->events;
		return n;
	}
	if (n < max)
		events[n] = *one;
	return n + 1;
}

static bool is_edge(const struct note *note)
{
	return note->event.events & EPOLLET && !note->fresh;
}

/* Return: the number of events; more than @max: some had no room */
static int add_rings(int epoll, const struct sdp_watches *w, struct epoll_event *events, int n,
		     int max)
{
	struct instance *it;

	pthread_mutex_lock(&lock);
	it = find(epoll);
	for (unsigned int i = 0; it && n >= 0 && n <= max && i < w->num; i++) {
		const uint64_t tail = atomic_load(&w->of[i].half->tail);
		struct note *note = note_of(it, w->of[i].fd);
		struct epoll_event one;

		if (!note || !sdp_watch_has_news(&w->of[i]) || (is_edge(note) && note->seen == tail))
			continue;
		if (!is_registered(epoll, note->fd) || !sdp_memory_is_of(w->of[i].memory, note->fd)) {
			drop_note(it, note);
			continue;
		}
		one = (struct epoll_event){note->event.events & READS, note->event.data};
		n = merge(events, n, max, &one);
		it->owes = n > max;
		if (it->owes)
			break;
		note->seen = tail;
		note->fresh = false;
	}
	pthread_mutex_unlock(&lock);
	return n;
}

/* Is @fd still the connection of @note? */
static bool is_known(const struct note *note)
{
	const struct sdp_memory *m = sdp_memory_enter(note->fd);
	bool known;

	if (!m)
		return false;
	known = m->inode == note->inode;
	sdp_memory_leave(note->fd);
	return known;
}

/* Collect the connections that the instance watches and from which the program reads much. Return: did the
 * event of a ring have no room in the last call? */
static bool collect(int epoll, struct sdp_watches *w)
{
	struct instance *it;
	bool owes;

	pthread_mutex_lock(&lock);
	it = find(epoll);
	for (unsigned int i = 0; it && !it->is_watched && i < it->num;) {
		struct note *note = &it->notes[i];
		const struct sdp_watch one = {
			.fd = note->fd, .seen = note->seen, .has_seen = is_edge(note)};

		if (!is_known(note)) {
			drop_note(it, note);
			continue;
		}
		if (sdp_watch_add(w, &one))
			sdp_watch_want(&w->of[w->num - 1]);
		i++;
	}
	owes = it && it->owes;
	pthread_mutex_unlock(&lock);
	return owes;
}

/* --- waiting --- */

/** struct wait - one call of the program. @timeout: NULL: no limit; in milliseconds, if the program has used
 *  a function that takes these */
struct wait {
	int epoll, max, ms;
	struct epoll_event *events;
	const struct timespec *timeout;
	bool by_timespec;
	const sigset_t *mask;
};

static int ask_kernel(const struct wait *c, int max, bool waits)
{
	static const struct timespec zero;

	if (c->by_timespec)
		return sdp_libc.epoll_pwait2(c->epoll, c->events, max, waits ? c->timeout : &zero,
					     c->mask);
	return sdp_libc.epoll_pwait(c->epoll, c->events, max, waits ? c->ms : 0, c->mask);
}

static bool may_wait(const struct wait *c)
{
	if (c->by_timespec)
		return !c->timeout || c->timeout->tv_sec || c->timeout->tv_nsec;
	return c->ms;
}

/* Collect the events that are there now. @owes: reserve room for the event of a ring */
static int look(const struct wait *c, const struct sdp_watches *w, bool owes)
{
	const int n = owes && c->max == 1 ? 0 : ask_kernel(c, c->max - owes, false);

	return add_rings(c->epoll, w, c->events, n, c->max);
}

/* Wait in the kernel, while writers use the sockets. @again: set if a ring had bytes, but another thread has
 * read them */
static int sleep_in_kernel(const struct wait *c, const struct sdp_watches *w, bool *again)
{
	const bool news = sdp_watches_begin(w, true);
	int n = ask_kernel(c, c->max, !news);
	const int error = errno;

	n = add_rings(c->epoll, w, c->events, n, c->max);
	*again = !n && news;
	sdp_watches_end(w, !news);
	errno = error;
	return n;
}

static int wait_with_rings(const struct wait *c, const struct sdp_watches *w, bool owes, bool *again)
{
	const bool waits = may_wait(c);

	if (!waits || owes || sdp_watches_are_leased(w)) {
		const int n = look(c, w, owes);

		if (n || !waits) {
			sdp_watches_end(w, false);
			return n;
		}
	}
	return sleep_in_kernel(c, w, again);
}

static int wait_once(const struct wait *c, bool *again)
{
	struct sdp_watches w = {.num = 0};
	const bool owes = collect(c->epoll, &w);
	int n;

	*again = false;
	if (!w.num)
		return ask_kernel(c, c->max, true);
	n = wait_with_rings(c, &w, owes, again);
	return n > c->max ? c->max : n;
}

static bool has_error(const struct instance *it, const struct epoll_event *event)
{
	for (unsigned int i = 0; it && i < it->num; i++)
		if (it->notes[i].event.data.u64 == event->data.u64 && sdp_memory_has_error(it->notes[i].fd))
			return true;
	return false;
}

/* A connection that was reset has an error, which the kernel does not know of a Unix socket. */
static void add_errors(int epoll, struct epoll_event *events, int n)
{
	for (int i = 0; i < n; i++) {
		if (!(events[i].events & EPOLLHUP))
			continue;
		pthread_mutex_lock(&lock);
		events[i].events |= has_error(find(epoll), &events[i]) ? EPOLLERR : 0;
		pthread_mutex_unlock(&lock);
	}
}

static int wait_for_events(const struct wait *c)
{
	bool again = true;
	int n = 0;

	if (!sdp_begin() || !c->events || c->max <= 0 || !has_instance(c->epoll))
		return ask_kernel(c, c->max, true);
	while (again)
		n = wait_once(c, &again);
	add_errors(c->epoll, c->events, n);
	return n;
}

/* --- the calls --- */

EXPORT int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout)
{
	return wait_for_events(
		&(struct wait){.epoll = epoll, .events = events, .max = max, .ms = timeout});
}

EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int max, int timeout,
		       const sigset_t *mask)
{
	return wait_for_events(&(struct wait){
		.epoll = epoll, .events = events, .max = max, .ms = timeout, .mask = mask});
}

EXPORT int epoll_pwait2(int epoll, struct epoll_event *events, int max,
			const struct timespec *timeout, const sigset_t *mask)
{
	return wait_for_events(&(struct wait){.epoll = epoll,
					      .events = events,
					      .max = max,
					      .timeout = timeout,
					      .by_timespec = true,
					      .mask = mask});
}

static void note_change(int epoll, int fd, const struct epoll_event *event)
{
	struct sdp_memory *m = sdp_memory_enter(fd);
	const bool is_ours = m && sdp_memory_is_of(m, fd), is_epoll = !is_ours && sdp_is_epoll(fd);

	if (is_ours || is_epoll) {
		pthread_mutex_lock(&lock);
		if (is_ours)
			register_connection(epoll, fd, m, event);
		else if (event)
			watch_instance(fd);
		pthread_mutex_unlock(&lock);
	}
	if (m)
		sdp_memory_leave(fd);
}

EXPORT int epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	const bool is_active = sdp_begin();
	const int ret = sdp_libc.epoll_ctl(epoll, op, fd, event);

	if (!ret && is_active)
		note_change(epoll, fd, op == EPOLL_CTL_DEL ? NULL : event);
	return ret;
}

/* The descriptor number may have belonged to another instance, which was closed by a direct system call. */
static int begin_anew(int epoll)
{
	sdp_epoll_forget(epoll);
	return epoll;
}

EXPORT int epoll_create(int size)
{
	sdp_begin();
	return begin_anew(sdp_libc.epoll_create(size));
}

EXPORT int epoll_create1(int flags)
{
	sdp_begin();
	return begin_anew(sdp_libc.epoll_create1(flags));
}
