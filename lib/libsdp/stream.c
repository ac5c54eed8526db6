/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sending and receiving on a connection: by the ring while there is a lease, else by the socket.
 * abi/sdp_ring.h has the protocol that the functions here follow. A call that cannot use the ring, for
 * whatever reason, uses the socket.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/relax.h"
#include "sdp_private.h"

#define MUCH_BYTES   ((size_t)16 << 10)	 /* a call for so much data shows that a lease is worthwhile */
#define MANY_CALLS   100		 /* so many calls for less data show the same */
#define SOCKET_BYTES ((size_t)64 << 10)	 /* written to the socket at once; a lease may begin after them */
#define PIECE_BYTES  ((size_t)32 << 10)	 /* copied before they are published */
#define LOCKED_BYTES ((size_t)256 << 10) /* copied before the lock is released to other threads */
#define HOLD_MS	     20
#define SPINS	     400		 /* iterations of polling before a thread sleeps */
#define NAPS	     3			 /* timed sleeps before a reader without a lease waits in the kernel */

/** struct call - one call of the program, of whose @msg the first @done bytes have been transferred */
struct call {
	int fd, flags;
	const struct msghdr *msg;
	struct abi_sdp_half *half;
	uint8_t *ring;
	uint32_t self;
	size_t done, total;
	bool by_socket;	 /* the last bytes were read from the socket */
	bool filled;	 /* these filled the buffer, so that the socket may have more */
	uint64_t end_ms; /* when SO_RCVTIMEO or SO_SNDTIMEO expires; 0: not read yet */
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* --- the program's buffers --- */

/* No program has anything in the first page. A call with such a pointer is left to the kernel, which
 * returns the error, as is a call with too many buffers. Checking other pointers would cost more than the
 * copy. */
static bool may_be_mapped(const void *p)
{
	return (uintptr_t)p >= 4096;
}

static bool is_sound(const struct msghdr *msg)
{
	size_t left = SSIZE_MAX;

	if (!may_be_mapped(msg) || msg->msg_iovlen > IOV_MAX ||
	    (msg->msg_iovlen && !may_be_mapped(msg->msg_iov)))
		return false;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		const struct iovec *part = &msg->msg_iov[i];

		if (part->iov_len > left || (part->iov_len && !may_be_mapped(part->iov_base)))
			return false;
		left -= part->iov_len;
	}
	return true;
}

static size_t total_of(const struct msghdr *msg)
{
	size_t total = 0;

	for (size_t i = 0; i < msg->msg_iovlen; i++)
		total += msg->msg_iov[i].iov_len;
	return total;
}

/* Return: the address of byte number @at of the buffers. @bytes: set to the length from there to the end of
 * its buffer */
static uint8_t *place(const struct msghdr *msg, size_t at, size_t *bytes)
{
	size_t i = 0;

	while (at >= msg->msg_iov[i].iov_len)
		at -= msg->msg_iov[i++].iov_len;
	*bytes = msg->msg_iov[i].iov_len - at;
	return (uint8_t *)msg->msg_iov[i].iov_base + at;
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* --- waiting --- */

static bool may_wait(const struct call *c)
{
	return !(c->flags & MSG_DONTWAIT) && !(fcntl(c->fd, F_GETFL) & O_NONBLOCK);
}

/* Return: for how long to sleep; 0: the program's time-out has expired */
static unsigned int nap_ms(struct call *c, int option)
{
	struct timeval tv = {0};
	socklen_t len = sizeof(tv);
	uint64_t now = now_ms();

	if (!c->end_ms && !sdp_libc.getsockopt(c->fd, SOL_SOCKET, option, &tv, &len))
		c->end_ms = tv.tv_sec || tv.tv_usec ? now + (uint64_t)tv.tv_sec * 1000 +
							      (uint64_t)(tv.tv_usec + 999) / 1000 :
						      UINT64_MAX;
	return now >= c->end_ms ? 0 : (unsigned int)min(c->end_ms - now, ABI_SDP_NAP_MS);
}

/* Try to take a lock for about as long as its owner may be copying. Return: does this thread have it? */
static bool lock(const struct call *c, _Atomic uint32_t *word)
{
	for (int i = 0; i < 200; i++) {
		if (abi_sdp_try_lock(word, c->self))
			return true;
		if (atomic_load(word) == c->self)
			return false; /* this is a signal handler, which has interrupted the owner */
		sched_yield();
	}
	return false;
}

/* --- writing --- */

/* May this thread, which has the lock, write to the ring under @lease? The socket must have no unread bytes,
 * which would be read after those of the ring. */
static bool may_put(const struct call *c, uint32_t lease)
{
	int unread = 1;

	return !ioctl(c->fd, SIOCOUTQ, &unread) && !unread &&
	       atomic_load(&c->half->lease) == lease && !atomic_load(&c->half->readers_in_kernel);
}

/* Copy to the ring as much as it has room for. Return: the number of bytes; 0: the ring is full */
static size_t put(struct call *c)
{
	uint64_t tail = atomic_load_explicit(&c->half->tail, memory_order_relaxed);
	const size_t before = c->done;

	while (c->done < c->total && c->done - before < LOCKED_BYTES) {
		const uint64_t used = abi_sdp_used(c->half);
		size_t n;
		const uint8_t *from = place(c->msg, c->done, &n);

		if (used >= ABI_SDP_RING_BYTES)
			break;
		n = min(min(n, PIECE_BYTES), ABI_SDP_RING_BYTES - used);
		abi_sdp_put(c->half, c->ring, tail, from, n);
		tail += n;
		c->done += n;
		abi_sdp_wake(&c->half->reader_sleeps);
	}
	return c->done - before;
}

enum outcome { MOVED, FULL, NO_LEASE };

static enum outcome write_to_ring(struct call *c)
{
	const uint32_t lease = atomic_load(&c->half->lease);
	enum outcome outcome = NO_LEASE;

	if (!abi_sdp_is_lease(lease) || !lock(c, &c->half->writer))
		return NO_LEASE;
	if (may_put(c, lease))
		outcome = put(c) ? MOVED : FULL;
	abi_sdp_unlock(&c->half->writer);
	return outcome;
}

static bool is_full(const struct call *c)
{
	return abi_sdp_used(c->half) >= ABI_SDP_RING_BYTES &&
	       abi_sdp_is_lease(atomic_load(&c->half->lease));
}

/* Has softibd ended? Then errno is set to EPIPE. */
static bool is_gone(const struct call *c)
{
	struct pollfd p = {.fd = c->fd};

	if (poll(&p, 1, 0) != 1 || !(p.revents & (POLLHUP | POLLERR)))
		return false;
	errno = EPIPE;
	return true;
}

/* Wait until the ring has room. Return: 0: try again; -1 and errno: the call ends */
static int wait_for_room(struct call *c)
{
	unsigned int ms;

	for (int i = 0; i < SPINS; i++, cpu_relax())
		if (!is_full(c))
			return 0;
	if (!may_wait(c)) {
		errno = EAGAIN;
		return -1;
	}
	ms = nap_ms(c, SO_SNDTIMEO);
	if (!ms) {
		errno = EAGAIN;
		return -1;
	}
	abi_sdp_will_sleep(&c->half->writer_sleeps);
	if (is_full(c) && !abi_sdp_sleep(&c->half->writer_sleeps, 1, ms)) {
		errno = EINTR;
		return -1;
	}
	pthread_testcancel();
	return is_gone(c) ? -1 : 0;
}

/* softibd is about to grant a lease. Wait until it has emptied the socket, at most HOLD_MS. */
static void wait_for_lease(const struct call *c)
{
	const uint64_t end = now_ms() + HOLD_MS;
	uint64_t now;

	while (atomic_load(&c->half->hold) && (now = now_ms()) < end)
		if (!abi_sdp_sleep(&c->half->hold, 1, (unsigned int)(end - now)))
			return;
	if (atomic_load(&c->half->hold))
		atomic_store(&c->half->hold, 0);
}

/* Transfer at most @bytes by the socket. Return: as sendmsg(2) and recvmsg(2) */
static ssize_t by_socket(struct call *c, size_t bytes, int flags, bool writes)
{
	struct iovec part;
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};

	ssize_t n;

	part.iov_base = place(c->msg, c->done, &part.iov_len);
	part.iov_len = min(part.iov_len, bytes);
	n = writes ? sdp_libc.sendmsg(c->fd, &msg, flags) : sdp_libc.recvmsg(c->fd, &msg, flags);
	c->filled = n == (ssize_t)part.iov_len;
	return n;
}

/* Nobody reads what the call would write, which fails by the error of the connection, if it was reset; if
 * not, by EPIPE and SIGPIPE. */
static void fail_without_reader(const struct call *c)
{
	const int error = sdp_memory_take_error(c->fd);

	if (!error && !(c->flags & MSG_NOSIGNAL))
		raise(SIGPIPE);
	errno = error ? error : EPIPE;
}

static ssize_t write_to_socket(struct call *c)
{
	ssize_t n;

	if (atomic_load_explicit(&c->half->hold, memory_order_relaxed)) {
		wait_for_lease(c);
		return 0; /* try again, perhaps by the ring */
	}
	n = by_socket(c, SOCKET_BYTES, c->flags | MSG_NOSIGNAL, true);
	c->done += n > 0 ? (size_t)n : 0;
	if (n < 0 && errno == EPIPE && !c->done)
		fail_without_reader(c);
	return n;
}

/* A call that must not wait continues by the socket when the ring is full. If it cannot write all, the
 * socket is full, too, and the kernel reports when it is writable. */
static ssize_t write_all(struct call *c)
{
	while (c->done < c->total) {
		enum outcome outcome = write_to_ring(c);

		if (outcome == MOVED)
			continue;
		if (outcome == FULL && !wait_for_room(c))
			continue;
		if (outcome == FULL && errno != EPIPE && (errno != EAGAIN || c->end_ms))
			break;
		if (write_to_socket(c) < 0)
			break;
	}
	return c->done || !c->total ? (ssize_t)c->done : -1;
}

/* --- reading --- */

/* Copy from the ring. Return: the number of bytes */
static size_t get(struct call *c, bool peek)
{
	uint64_t head = atomic_load_explicit(&c->half->head, memory_order_relaxed), used;
	const size_t before = c->done;

	while (c->done < c->total && c->done - before < LOCKED_BYTES) {
		size_t n;
		uint8_t *to = place(c->msg, c->done, &n);

		used = atomic_load_explicit(&c->half->tail, memory_order_acquire) - head;
		if (!used || used > ABI_SDP_RING_BYTES)
			break;
		n = min(min(n, PIECE_BYTES), used);
		abi_sdp_get(c->ring, head, to, n);
		head += n;
		c->done += n;
		if (!peek)
			atomic_store_explicit(&c->half->head, head, memory_order_release);
	}
	return c->done - before;
}

/* Return: the number of bytes that were copied from the ring; -1: it has none */
static ssize_t get_some(struct call *c)
{
	c->by_socket = false;
	return (ssize_t)get(c, c->flags & MSG_PEEK) ?: -1;
}

static ssize_t read_from_socket(struct call *c, int flags)
{
	ssize_t n = by_socket(c, SIZE_MAX, (c->flags & ~MSG_WAITALL) | flags, false);

	c->by_socket = true;
	c->done += n > 0 ? (size_t)n : 0;
	return n;
}

/* Read from the socket and then from the ring, as bytes in the socket precede those in the ring. @look: try
 * the socket even if it was empty before during this lease. Return: the number of bytes; 0: the stream has
 * ended; -1 and errno */
static ssize_t read_what_is_there(struct call *c, bool look)
{
	const uint32_t lease = atomic_load(&c->half->lease);
	struct abi_sdp_half *h = c->half;
	ssize_t n = -1;

	if (!abi_sdp_is_lease(lease) || !lock(c, &h->reader))
		return read_from_socket(c, MSG_DONTWAIT);
	errno = EAGAIN;
	if (atomic_load(&h->lease) != lease) {
		n = -1; /* try again */
	} else if (look || atomic_load(&h->socket_is_empty) != lease) {
		n = read_from_socket(c, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			atomic_store(&h->socket_is_empty, lease);
	}
	if (n < 0 && errno == EAGAIN && atomic_load(&h->socket_is_empty) == lease &&
	    atomic_load(&h->lease) == lease)
		n = get_some(c);
	abi_sdp_unlock(&h->reader);
	if (n > 0 && abi_sdp_used(h) <= ABI_SDP_RING_BYTES / 2)
		abi_sdp_wake(&h->writer_sleeps);
	if (n < 0)
		errno = errno ? errno : EAGAIN;
	return n;
}

/* Has the ring bytes, or has the lease ended? Then a thread must not sleep. */
static bool is_ready(const struct call *c, uint32_t lease)
{
	return abi_sdp_used(c->half) || atomic_load(&c->half->lease) != lease;
}

static void spin(const struct call *c)
{
	const uint32_t lease = atomic_load(&c->half->lease);

	for (int i = 0; abi_sdp_is_lease(lease) && i < SPINS && !is_ready(c, lease); i++)
		cpu_relax();
}

static void leave_kernel(void *call)
{
	atomic_fetch_sub(&((struct call *)call)->half->readers_in_kernel, 1);
}

static bool is_leased(const struct call *c)
{
	return abi_sdp_is_lease(atomic_load(&c->half->lease));
}

static ssize_t read_without_lease(struct call *c, bool *leased)
{
	*leased = is_leased(c);
	return *leased ? 0 : read_from_socket(c, 0);
}

/* Wait in the kernel, while writers use the socket. Return: as recv(2); 0 with *@leased set: there is a lease
 * now, and nothing was read */
static ssize_t wait_in_kernel(struct call *c, bool *leased)
{
	ssize_t n;

	atomic_fetch_add(&c->half->readers_in_kernel, 1);
	pthread_cleanup_push(leave_kernel, c);
	n = read_without_lease(c, leased);
	pthread_cleanup_pop(1);
	return n;
}

/* Wait for bytes by polling and by timed sleeps, during which a lease may begin. After NAPS of these, wait in
 * the kernel, because the connection may be idle for a long time. Return: the number of bytes; 0: the stream
 * has ended; -1 and errno */
static ssize_t wait_in_turns(struct call *c)
{
	for (int naps = 0;; naps++) {
		unsigned int ms;
		bool leased;
		ssize_t n;

		if (naps >= NAPS && c->end_ms == UINT64_MAX) {
			n = wait_in_kernel(c, &leased);
			if (!leased)
				return n;
		}

		spin(c);
		n = read_what_is_there(c, false);
		if (n >= 0 || errno != EAGAIN)
			return n;
		ms = nap_ms(c, SO_RCVTIMEO);
		abi_sdp_will_sleep(&c->half->reader_sleeps);
		n = read_what_is_there(c, true);
		if (n >= 0 || errno != EAGAIN || !ms)
			return n;
		if (!abi_sdp_sleep(&c->half->reader_sleeps, 1, ms)) {
			errno = EINTR;
			return -1;
		}
		pthread_testcancel();
	}
}

static void leave(void *call)
{
	atomic_fetch_sub(&((struct call *)call)->half->readers, 1);
}

/* Wait for bytes, while `readers` tells softibd that a thread is going to read. Return: as wait_in_turns() */
static ssize_t wait_for_bytes(struct call *c)
{
	ssize_t n;

	atomic_fetch_add(&c->half->readers, 1);
	pthread_cleanup_push(leave, c);
	n = wait_in_turns(c);
	pthread_cleanup_pop(1);
	return n;
}

/* Wait for bytes, as neither the socket nor the ring has any. Return: as recv(2) */
static ssize_t wait_and_read(struct call *c)
{
	atomic_store_explicit(&c->half->reads_much, 1, memory_order_relaxed);
	/* No lease begins while the writer writes little, so that bytes arrive by the socket. */
	if (!atomic_load(&c->half->writes_much))
		return read_from_socket(c, 0);
	return wait_for_bytes(c);
}

/* Is the socket at the mark of out-of-band data? A read that has some bytes ends there, since the program may
 * look for the mark. */
static bool at_mark(const struct call *c)
{
	int mark = 0;

	return ioctl(c->fd, SIOCATMARK, &mark) || mark;
}

/* Is the read to continue? With EPOLLET, a program concludes from a read that does not fill its buffers that
 * there are no more bytes. */
static bool goes_on(const struct call *c)
{
	if (c->done == c->total || c->flags & MSG_PEEK)
		return false;
	if (!c->by_socket)
		return c->flags & MSG_WAITALL || is_leased(c);
	return (c->flags & MSG_WAITALL || c->filled || is_leased(c)) && !at_mark(c);
}

static ssize_t read_some(struct call *c)
{
	ssize_t n;

	do {
		n = read_what_is_there(c, false);
		if (n < 0 && errno == EAGAIN && may_wait(c) &&
		    (!c->done || c->flags & MSG_WAITALL))
			n = wait_and_read(c);
	} while (n > 0 && goes_on(c));
	return c->done || !n || !c->total ? (ssize_t)c->done : -1;
}

/* --- the calls --- */

/* Is a lease worthwhile for this direction, judged by this call and those before it? */
static bool moves_much(struct sdp_memory *m, size_t bytes, bool writes)
{
	_Atomic unsigned int *calls = &m->calls[writes];

	return bytes >= MUCH_BYTES ||
	       atomic_load_explicit(calls, memory_order_relaxed) >= MANY_CALLS ||
	       atomic_fetch_add_explicit(calls, 1, memory_order_relaxed) >= MANY_CALLS;
}

/* Prepare a call, whose buffers are sound, that may use the ring. Return: false: it does not. Once a call has used the
 * ring, all later calls do, because a reader that waits in the kernel would not notice bytes in the ring. */
static bool begins(struct call *c, struct sdp_memory *m, bool writes)
{
	const int i = writes ? m->side : !m->side;

	c->half = &m->memory->half[i];
	c->ring = m->memory->ring[i];
	c->total = total_of(c->msg);
	if (moves_much(m, c->total, writes)) {
		if (writes)
			atomic_store_explicit(&c->half->writes_much, 1, memory_order_relaxed);
		else
			atomic_store_explicit(&m->reads_much, true, memory_order_relaxed);
	}
	if (!c->total || c->flags & (MSG_OOB | MSG_ERRQUEUE) || c->msg->msg_controllen ||
	    c->msg->msg_name)
		return false;
	if (!(writes ? atomic_load_explicit(&c->half->writes_much, memory_order_relaxed) :
		       atomic_load_explicit(&m->reads_much, memory_order_relaxed)) &&
	    !is_leased(c))
		return false;
	c->self = (uint32_t)gettid();
	return true;
}

/* Has the connection ended by an error that this write has to report? Then errno is set to it. */
static bool is_told(const struct call *c, const struct sdp_memory *m)
{
	int error = atomic_load_explicit(&m->memory->half[m->side].error, memory_order_relaxed) ?
			    sdp_memory_take_error(c->fd) :
			    0;

	if (error)
		errno = error;
	return error != 0;
}

/* A write that does not use the ring. Return: as sendmsg(2) */
static ssize_t write_without_ring(const struct call *c)
{
	const ssize_t n = sdp_libc.sendmsg(c->fd, c->msg, c->flags | MSG_NOSIGNAL);

	if (n < 0 && errno == EPIPE)
		fail_without_reader(c);
	return n;
}

static ssize_t write_by(struct call *c, struct sdp_memory *m)
{
	if (is_told(c, m))
		return -1;
	return begins(c, m, true) ? write_all(c) : write_without_ring(c);
}

bool sdp_write(int fd, const struct msghdr *msg, int flags, ssize_t *n)
{
	struct call c = {.fd = fd, .flags = flags, .msg = msg};
	struct sdp_memory *m = sdp_memory_enter(fd);
	bool is_ours;

	if (!m)
		return false;
	is_ours = is_sound(msg) && sdp_memory_is_of(m, fd);
	if (is_ours)
		*n = write_by(&c, m);
	sdp_memory_leave(fd);
	return is_ours;
}

bool sdp_read(int fd, const struct msghdr *msg, int flags, ssize_t *n)
{
	struct call c = {.fd = fd, .flags = flags, .msg = msg};
	struct sdp_memory *m = sdp_memory_enter(fd);
	bool is_ours;

	if (!m)
		return false;
	is_ours = is_sound(msg) && begins(&c, m, false) && sdp_memory_is_of(m, fd);
	if (is_ours)
		*n = read_some(&c);
	sdp_memory_leave(fd);
	return is_ours;
}
