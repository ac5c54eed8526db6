/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The ring of an SDP connection (abi/sdp_ring.h): libsdp at both of its ends, and softibd's leases
 * between them. The input is the order of what they do, and of words that somebody overwrites. As
 * long as nobody does, the stream arrives whole and in order, and who waits is served. Afterwards,
 * calls end, touch their buffers alone, and softibd ends a connection whose ring claims too much.
 *
 * The files of both sides are built with trace-loads: before a load from the shared memory, another
 * side may have its turn, or a word may change, as the input says.
 *
 * The input: a byte, the number of interruptions, two bytes for each (after how many loads; what),
 * then actions. While a program sleeps in one, the others go on with the next.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "../../lib/libsdp/sdp_private.h"
#include "check.h"
#include "runtime/sim/rt_sim.h"
#include "ulp/sdp/private.h"

#define UNTRACED    __attribute__((no_sanitize("coverage")))
#define FIFO_BYTES  (1u << 20)
#define WRITE_BYTES (1u << 17)
#define STARVES_MAX 600 /* softibd ends a lease after fewer ticks */
#define NAPS_MAX    1200
#define TICK_NS	    2000000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
long __wrap_syscall(long number, ...);
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __real_clock_gettime(clockid_t clock, struct timespec *ts);
pid_t __wrap_gettid(void);

enum actor { NOBODY, WRITER, READER, SOFTIBD };

struct input {
	const uint8_t *at;
	size_t left;
};

static struct {
	struct rt *rt;
	struct sdp_channel channel;
	struct sdp_conn end[2];
	int fd[2];	/* the programs' */
	const uint8_t *memory[3]; /* as softibd and both programs have mapped it */
	uint64_t moved; /* of the stream: by softibd from the writer, or past it */
	uint32_t in_fifo;
	uint64_t sent, got; /* of the stream, by the programs */
	bool lied;	    /* somebody has overwritten a word */
	bool dead;	    /* softibd's ends are closed */
	bool leaving;	    /* a connection is being destroyed */
	bool busy[SOFTIBD + 1];
	enum actor actor;
	/* --- interruptions --- */
	bool on;
	const uint8_t *script;
	size_t left;
	unsigned int loads;
	struct input *actions;
	unsigned int starves; /* naps of a reader for which bytes are under way */
	unsigned int naps[SOFTIBD]; /* of each program's call */
	uint64_t clock_ns;
} w;

struct sdp_libc sdp_libc;
static struct sdp_fabric fabric;
static uint8_t out[WRITE_BYTES], in[WRITE_BYTES + 16], moving[SDP_REGION_BYTES], fifo[FIFO_BYTES];

static struct {
	size_t bytes;
	int flags;
	bool unseen; /* the library does not see the call */
} writing, reading;

static UNTRACED uint8_t byte_at(uint64_t at)
{
	return (uint8_t)(at * 7 + (at >> 9));
}

/* --- softibd: what ring.c needs of the rest of the shell --- */

void sdp_conn_wake(struct sdp_conn *c)
{
	check(!w.leaving); /* it would have a turn when it is gone */
}

bool sdp_stream_hung_up(const struct sdp_conn *c)
{
	return false;
}

bool sdp_channel_open_bypass(struct sdp_channel *ch)
{
	return true;
}

void sdp_channel_count(struct sdp_channel *ch, int from, u64 bytes)
{
	check(bytes && (w.lied || bytes <= w.sent + WRITE_BYTES)); /* and a write under way */
	w.moved += bytes;
}

static bool is_aborted(void)
{
	return w.end[0].sdp.state == SDP_ENDED && w.end[1].sdp.state == SDP_ENDED;
}

/* what stream.c does: the ring's rest comes before the bytes of the socket */
static void take_from_writer(void)
{
	struct sdp_conn *c = &w.end[0];
	struct pollfd p = {.fd = c->fd, .events = POLLIN};

	c->readable |= poll(&p, 1, 0) == 1;
	while (sdp_ring_yields(c) && FIFO_BYTES - w.in_fifo >= sizeof(moving)) {
		ssize_t n = (ssize_t)sdp_ring_take(c, moving, sizeof(moving));

		check(n <= (ssize_t)sizeof(moving));
		if (!n) {
			n = recv(c->fd, moving, sizeof(moving), MSG_DONTWAIT);
			c->readable = n == sizeof(moving);
		}
		if (n <= 0)
			return;
		for (ssize_t i = 0; i < n; i++)
			check(w.lied || moving[i] == byte_at(w.moved + (uint64_t)i));
		w.moved += (uint64_t)n;
		memcpy(fifo + w.in_fifo, moving, (size_t)n);
		w.in_fifo += (uint32_t)n;
	}
}

static void give_to_reader(void)
{
	while (w.in_fifo) {
		ssize_t n = send(w.end[1].fd, fifo, w.in_fifo, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n <= 0)
			break;
		w.in_fifo -= (uint32_t)n;
		memmove(fifo, fifo + n, w.in_fifo);
		sdp_ring_delivered(&w.end[1], (u32)n);
	}
	w.end[0].sdp.tx_seq = w.end[1].sdp.rx_seq + !!w.in_fifo;
}

/* as softibd does at the end of a connection */
static void close_softibd(void)
{
	w.dead = w.leaving = true;
	for (int i = 0; i < 2; i++) {
		sdp_ring_abandon(&w.channel.ring[i]);
		shutdown(w.end[i].fd, SHUT_RDWR);
	}
	w.leaving = false;
}

static void take_turn(void)
{
	if (is_aborted() && !w.dead)
		close_softibd();
	if (w.dead)
		return;
	take_from_writer();
	give_to_reader();
	sdp_channel_update(&w.end[0]);
}

static void tick(void)
{
	const struct sdp_ring *r = &w.channel.ring[0];
	const bool claims = r->state == SDP_RING_LEASED && abi_sdp_used(r->half) > ABI_SDP_RING_BYTES;
	const size_t left = w.left;

	w.clock_ns += TICK_NS;
	rt_sim_run_for(w.rt, TICK_NS);
	check(!claims || left != w.left || is_aborted() || r->state != SDP_RING_LEASED);
}

static UNTRACED void as(enum actor actor, void (*act)(void))
{
	const enum actor before = w.actor;

	if (w.busy[actor])
		return;
	w.busy[actor] = true;
	w.actor = actor;
	act();
	w.actor = before;
	w.busy[actor] = false;
}

static bool may_come(void)
{
	return w.sent > w.got && !w.lied && !w.dead;
}

static void step(struct input *from);

/* A program sleeps: time passes, and others work. A well-behaved one is served in time. */
static void nap(void)
{
	as(SOFTIBD, take_turn);
	as(SOFTIBD, tick);
	if (w.actions->left)
		step(w.actions);
	/* who wants all of so much may wait for a writer */
	w.starves = w.actor == READER && may_come() && !(reading.flags & MSG_WAITALL) && !w.busy[SOFTIBD] ?
			    w.starves + 1 :
			    0;
	check(w.starves < STARVES_MAX);
	if (++w.naps[w.actor] < NAPS_MAX)
		return;
	if (!w.dead)
		close_softibd();
}

/* --- the kernel, as the programs see it --- */

long __wrap_syscall(long number, ...)
{
	va_list args;
	long a[6];

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number != SYS_futex || !w.actor)
		return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (a[1] != FUTEX_WAIT)
		return 0;
	nap();
	errno = ETIMEDOUT;
	return -1;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (!w.actor)
		return __real_clock_gettime(clock, ts);
	*ts = (struct timespec){(time_t)(w.clock_ns / 1000000000), (long)(w.clock_ns % 1000000000)};
	return 0;
}

/* neither is a thread that softibd could look for */
pid_t __wrap_gettid(void)
{
	return (pid_t)(0x80000000u + w.actor);
}

static ssize_t receive(int fd, struct msghdr *msg, int flags)
{
	for (int naps = 0;; naps++) {
		const ssize_t n = recvmsg(fd, msg, flags | MSG_DONTWAIT);

		if (n >= 0 || errno != EAGAIN || flags & MSG_DONTWAIT || (naps > 20 && !may_come()))
			return n;
		nap();
	}
}

static ssize_t transmit(int fd, const struct msghdr *msg, int flags)
{
	for (int naps = 0;; naps++) {
		const ssize_t n = sendmsg(fd, msg, flags | MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0 || errno != EAGAIN || flags & MSG_DONTWAIT || naps > 20)
			return n;
		nap();
	}
}

/* --- the programs --- */

static void write_now(void)
{
	struct iovec part[2] = {{out, writing.bytes / 3},
				{out + writing.bytes / 3, writing.bytes - writing.bytes / 3}};
	const struct msghdr msg = {.msg_iov = part, .msg_iovlen = 2};
	ssize_t n = -1;

	for (size_t i = 0; i < writing.bytes; i++)
		out[i] = byte_at(w.sent + i);
	w.naps[WRITER] = 0;
	if (writing.unseen || !sdp_write(w.fd[0], &msg, writing.flags, &n))
		n = transmit(w.fd[0], &msg, writing.flags);
	check(n <= (ssize_t)writing.bytes);
	w.sent += n > 0 ? (uint64_t)n : 0;
}

static void read_now(void)
{
	struct iovec part[2] = {{in, reading.bytes / 2},
				{in + reading.bytes / 2, reading.bytes - reading.bytes / 2}};
	struct msghdr msg = {.msg_iov = part, .msg_iovlen = 2};
	ssize_t n = -1;

	memset(in + reading.bytes, 0xa5, 16);
	w.naps[READER] = 0;
	if (reading.unseen || !sdp_read(w.fd[1], &msg, reading.flags, &n))
		n = receive(w.fd[1], &msg, reading.flags);
	check(n <= (ssize_t)reading.bytes);
	for (int i = 0; i < 16; i++)
		check(in[reading.bytes + (size_t)i] == 0xa5);
	for (ssize_t i = 0; i < n; i++)
		check(w.lied || in[i] == byte_at(w.got + (uint64_t)i));
	if (n > 0 && !(reading.flags & MSG_PEEK))
		w.got += (uint64_t)n;
}

/* --- what the input says --- */

static uint32_t take(struct input *from, unsigned int bytes)
{
	uint32_t value = 0;

	for (; bytes && from->left; bytes--, from->left--)
		value = value << 8 | *from->at++;
	return value;
}

static UNTRACED void overwrite(uint32_t word, uint32_t value)
{
	uint32_t *words = (uint32_t *)w.channel.memory;

	w.lied = true;
	words[word % (sizeof(struct abi_sdp_half) / sizeof(*words))] = value;
}

static UNTRACED void write_amid(uint8_t what)
{
	if (w.busy[WRITER])
		return;
	writing.bytes = (what & 0xf8) << 6;
	writing.flags = MSG_DONTWAIT;
	writing.unseen = what & 1;
	as(WRITER, write_now);
}

static UNTRACED void read_amid(uint8_t what)
{
	if (w.busy[READER])
		return;
	reading.bytes = 1 + ((what & 0xf8u) << 6);
	reading.flags = MSG_DONTWAIT;
	reading.unseen = false;
	as(READER, read_now);
}

static UNTRACED void interrupt(uint8_t what)
{
	switch (what & 7) {
	case 0:
		overwrite(what >> 3, w.loads * 0x01010101u);
		break;
	case 1:
		as(SOFTIBD, tick);
		break;
	case 2:
	case 3:
		write_amid(what);
		break;
	case 4:
		read_amid(what);
		break;
	default:
		as(SOFTIBD, take_turn);
	}
}

static UNTRACED bool is_shared(const uint8_t *address)
{
	for (size_t i = 0; i < ARRAY_SIZE(w.memory); i++)
		if (address >= w.memory[i] && address < w.memory[i] + 2 * sizeof(struct abi_sdp_half))
			return true;
	return false;
}

static UNTRACED void before_load(const void *address)
{
	if (!w.on || !w.left || !is_shared(address))
		return;
	if (w.loads++ < w.script[0])
		return;
	w.on = false;
	interrupt(w.script[1]);
	w.script += 2;
	w.left--;
	w.loads = 0;
	w.on = true;
}

#define LOAD_OF(bytes)                                                                   \
	void __sanitizer_cov_load##bytes(void *address);                                 \
	UNTRACED void __sanitizer_cov_load##bytes(void *address)                         \
	{                                                                                \
		before_load(address);                                                    \
	}
LOAD_OF(1)
LOAD_OF(2)
LOAD_OF(4)
LOAD_OF(8)
LOAD_OF(16)

static void lease_ends(void)
{
	sdp_ring_end_lease(&w.channel.ring[0]);
}

static void write_as_told(uint8_t what, uint32_t bytes)
{
	if (w.busy[WRITER])
		return;
	writing.bytes = bytes;
	writing.flags = what & 8 ? MSG_DONTWAIT : 0;
	writing.unseen = what >> 4 == 15;
	as(WRITER, write_now);
}

static void read_as_told(uint8_t what, uint32_t bytes)
{
	static const int how[] = {0, MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL};

	if (w.busy[READER])
		return;
	reading.bytes = bytes;
	reading.flags = how[what >> 3 & 3];
	reading.unseen = what >> 5 == 7;
	as(READER, read_now);
}

static void step(struct input *from)
{
	const uint8_t what = (uint8_t)take(from, 1);

	switch (what & 7) {
	case 0:
	case 1:
		write_as_told(what, 1 + (take(from, 2) << 1));
		break;
	case 2:
	case 3:
		read_as_told(what, 1 + (take(from, 2) << 1));
		break;
	case 4:
		for (int i = 0; i <= what >> 3; i++)
			as(SOFTIBD, tick);
		break;
	case 5:
		as(SOFTIBD, lease_ends);
		break;
	case 6:
		overwrite((uint32_t)what >> 3 | take(from, 1) << 5, take(from, 4));
		break;
	default:
		as(SOFTIBD, take_turn);
	}
}

/* Nothing is lost, as nobody has lied. */
static void read_the_rest(void)
{
	reading.bytes = WRITE_BYTES;
	reading.flags = 0;
	reading.unseen = false;
	while (may_come())
		as(READER, read_now);
}

/* --- a connection --- */

static void open_end(int i, int memory)
{
	int pair[2];

	check(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	w.fd[i] = pair[0];
	w.end[i].fd = pair[1];
	w.end[i].rt = w.rt;
	w.end[i].channel = &w.channel;
	w.end[i].established = true;
	w.end[i].sdp.state = SDP_OPEN;
	w.channel.end[i] = &w.end[i];
	sdp_memory_keep(pair[0], dup(memory), i);
	w.memory[i] = (const uint8_t *)sdp_memory_enter(pair[0])->memory;
	sdp_memory_leave(pair[0]);
}

static void open_world(int memory, void *mapped)
{
	struct rt *rt;

	check(!rt_sim_create(1, &rt));
	memset(&w, 0, sizeof(w));
	w.rt = rt;
	rt_set_local(rt, RT_LOCAL_SDP, &fabric);
	w.clock_ns = 1000000000;
	w.channel.rt = rt;
	w.channel.memory = mapped;
	w.memory[2] = mapped;
	memset(mapped, 0, sizeof(((struct abi_sdp_memory *)mapped)->half));
	for (int i = 0; i < 2; i++) {
		open_end(i, memory);
		sdp_ring_init(&w.channel.ring[i], &w.channel, i);
	}
	rt_timer_init(rt, &w.channel.tick, sdp_channel_tick);
}

static void close_world(void)
{
	w.leaving = true;
	rt_timer_disarm(&w.channel.tick);
	for (int i = 0; i < 2; i++) {
		sdp_ring_abandon(&w.channel.ring[i]);
		sdp_memory_forget(w.fd[i]);
		close(w.fd[i]);
		close(w.end[i].fd);
	}
	rt_set_local(w.rt, RT_LOCAL_SDP, NULL);
	rt_sim_destroy(w.rt);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int memory = -1;
	static void *mapped;
	struct input from = {data, size};

	if (memory < 0) {
		signal(SIGPIPE, SIG_IGN); /* of writes to an end that has gone */
		sdp_libc.getsockopt = getsockopt;
		sdp_libc.sendmsg = transmit;
		sdp_libc.recvmsg = receive;
		memory = memfd_create("fuzz", MFD_CLOEXEC);
		check(memory >= 0 && !ftruncate(memory, sizeof(struct abi_sdp_memory)));
		mapped = mmap(NULL, sizeof(struct abi_sdp_memory), PROT_READ | PROT_WRITE,
			      MAP_SHARED, memory, 0);
		check(mapped != MAP_FAILED);
	}
	open_world(memory, mapped);
	w.actions = &from;
	w.left = take(&from, 1);
	if (w.left > from.left / 2)
		w.left = from.left / 2;
	w.script = from.at;
	from.at += 2 * w.left;
	from.left -= 2 * w.left;
	w.on = true;
	while (from.left)
		step(&from);
	w.on = false;
	read_the_rest();
	check(w.lied || w.dead || w.got == w.sent);
	close_world();
	return 0;
}
