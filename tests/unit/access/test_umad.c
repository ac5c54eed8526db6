/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The umad endpoint as a program sees it: two sockets, records and ioctls,
 * between two nodes of a virtual wire. A turn of the loop never sleeps; what
 * depends on a time-out is waited for by turning until the record is there.
 */
#include "../test.h"

#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../core/mad_net.h"
#include "abi/fds.h"
#include "abi/session.h"
#include "abi/told.h"
#include "access/quota.h"
#include "access/umad.h"
#include "runtime/posix/rt_posix.h"

#define VENDOR 0x30
#define LARGE 300000

struct world {
	struct rt *rt;
	struct net *net;
	struct umad *umad;
	char dir[64];
};

/* a program with a port open */
struct program {
	struct world *w;
	int data, control;
};

struct record {
	struct ib_user_mad_hdr hdr;
	uint8_t mad[LARGE];
};

static void turn(struct world *w, int n)
{
	while (n--)
		rt_posix_turn(w->rt);
}

static int connect_to(struct world *w)
{
	struct peer peer = {.pid = getpid()};
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	fcntl(pair[1], F_SETFL, O_NONBLOCK);
	umad_serve(w->umad, pair[1], &peer);
	return pair[0];
}

/* Return: bytes of the body; the answer's error; -ECONNRESET */
static int receive(int sock, void *body, size_t size, int *passed)
{
	struct abi_reply reply = {0};
	struct iovec iov[2] = {{&reply, sizeof(reply)}, {body, size}};
	ssize_t n = abi_receivev(sock, iov, 2, MSG_DONTWAIT, passed, passed ? 1 : 0);

	if (n <= 0)
		return n ? (int)n : -ECONNRESET;
	return reply.error ? reply.error : (int)(n - (ssize_t)sizeof(reply));
}

static int ask(struct world *w, const struct abi_open *open, void *body, size_t size)
{
	int sock = connect_to(w), ret;

	send(sock, open, sizeof(*open), 0);
	turn(w, 3);
	ret = receive(sock, body, size, NULL);
	close(sock);
	turn(w, 3);
	return ret;
}

static struct abi_open opening(uint32_t kind, const char *node)
{
	struct abi_open open = {.magic = ABI_MAGIC, .version = ABI_VERSION, .kind = kind, .port = 1,
				.device = "fake0"};

	strcpy(open.node, node);
	return open;
}

static struct program program(struct world *w, const char *node)
{
	struct abi_open open = opening(ABI_OPEN_UMAD, node);
	struct program p = {.w = w, .data = connect_to(w), .control = -1};

	send(p.data, &open, sizeof(open), 0);
	turn(w, 3);
	assert_int_equal(receive(p.data, NULL, 0, &p.control), 0);
	assert_true(p.control >= 0);
	return p;
}

static void leave(struct program *p)
{
	close(p->data);
	close(p->control);
	turn(p->w, 5);
}

/* Return: as ioctl(2), the errno negative; @arg is overwritten */
static int do_ioctl(struct program *p, unsigned request, void *arg, size_t bytes)
{
	struct abi_ioctl head = {request, (uint32_t)bytes};
	struct iovec iov[2] = {{&head, sizeof(head)}, {arg, bytes}};
	struct abi_reply reply;
	ssize_t n;

	assert_true(writev(p->control, iov, 2) > 0);
	turn(p->w, 3);
	iov[0] = (struct iovec){&reply, sizeof(reply)};
	n = readv(p->control, iov, 2);
	assert_true(n >= (ssize_t)sizeof(reply));
	return reply.error;
}

static int enroll(struct program *p, uint8_t mgmt_class, unsigned long methods, uint8_t rmpp)
{
	struct ib_user_mad_reg_req req = {
		.qpn = mgmt_class != 1 && mgmt_class != 0x81, .mgmt_class = mgmt_class,
		.mgmt_class_version = 1, .oui = {1, 2, 3}, .rmpp_version = rmpp,
		.method_mask = {methods}};
	int ret = do_ioctl(p, IB_USER_MAD_REGISTER_AGENT, &req, sizeof(req));

	return ret ? ret : (int)req.id;
}

static struct record out, in;

static struct record *record(int agent, uint16_t lid, uint8_t mgmt_class, uint8_t method,
			     uint64_t tid)
{
	struct ib_mad_hdr *hdr = (void *)out.mad;

	memset(&out, 0, sizeof(out));
	out.hdr.id = (uint32_t)agent;
	out.hdr.qpn = cpu_to_be32(1);
	out.hdr.qkey = cpu_to_be32(0x80010000);
	out.hdr.lid = cpu_to_be16(lid);
	out.hdr.timeout_ms = 1000;
	*hdr = (struct ib_mad_hdr){.base_version = 1, .mgmt_class = mgmt_class, .class_version = 1,
				   .method = method, .tid = cpu_to_be64(tid)};
	memcpy(((struct ib_vendor_mad *)out.mad)->oui, (uint8_t[]){1, 2, 3}, 3);
	return &out;
}

static void put(struct program *p, const struct record *r, size_t mad_bytes)
{
	assert_true(send(p->data, r, sizeof(r->hdr) + mad_bytes, MSG_DONTWAIT) > 0);
	turn(p->w, 3);
}

/* the next record, when it comes. Return: its bytes */
static ssize_t get(struct program *p)
{
	ssize_t n;
	int fd;

	do {
		turn(p->w, 1);
		n = abi_receive(p->data, &in, sizeof(in), MSG_DONTWAIT, &fd, 1);
	} while (n == -EAGAIN);
	if (n <= 0 || fd < 0)
		return n;
	n = pread(fd, &in, sizeof(in), 0);
	close(fd);
	return n;
}

static bool nothing_to_get(struct program *p)
{
	turn(p->w, 20);
	return recv(p->data, &in, sizeof(in), MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static struct ib_mad_hdr *got(void)
{
	return (void *)in.mad;
}

/* --- the world --- */

static int setup(void **state)
{
	static struct world w;

	w = (struct world){0};
	strcpy(w.dir, "/tmp/softib-test-XXXXXX");
	assert_non_null(mkdtemp(w.dir));
	assert_int_equal(rt_posix_create(&w.rt), 0);
	w.net = net_create_on(w.rt, 2);
	w.net->packet_ns = 0;
	assert_int_equal(umad_create(w.rt, w.dir, &w.umad), 0);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	turn(w, 5);
	umad_destroy(w->umad);
	assert_int_equal(net_take_down(w->net), 0);
	rt_posix_destroy(w->rt);
	assert_int_equal(rmdir(w->dir), 0); /* nothing of ours is left in it */
	return 0;
}

/* --- opening --- */

static void test_list(void **state)
{
	struct abi_open open = opening(ABI_OPEN_LIST, "n1");
	struct abi_device_info info[4];

	assert_int_equal(ask(*state, &open, info, sizeof(info)), sizeof(info[0]));
	assert_string_equal(info[0].name, "fake0");
	assert_string_equal(info[0].fw_ver, "9.9");
	assert_int_equal(info[0].node_guid, 0x1001);
	assert_int_equal(info[0].num_ports, 1);
	open = opening(ABI_OPEN_LIST, "nobody");
	assert_int_equal(ask(*state, &open, info, sizeof(info)), -ENOENT);
}

static void test_port_as_it_is_now(void **state)
{
	struct world *w = *state;
	struct abi_open open = opening(ABI_OPEN_PORT, "n1");
	struct abi_port_info info;

	assert_int_equal(ask(w, &open, &info, sizeof(info)), sizeof(info));
	assert_int_equal(info.lid, 11);
	assert_int_equal(info.sm_lid, 10);
	assert_int_equal(info.state, IB_PORT_ACTIVE);
	assert_int_equal(info.num_pkeys, 1);
	assert_int_equal(info.pkey[0], 0xffff);
	assert_int_equal(info.gid[15], 11);
	w->net->node[1]->lid = 77;
	ask(w, &open, &info, sizeof(info));
	assert_int_equal(info.lid, 77);
}

static void test_bad_openings(void **state)
{
	struct abi_open good = opening(ABI_OPEN_UMAD, "n0"), open;
	int sock;

	open = good, open.magic ^= 1;
	assert_int_equal(ask(*state, &open, NULL, 0), -EINVAL);
	open = good, open.version++;
	assert_int_equal(ask(*state, &open, NULL, 0), -EPROTONOSUPPORT);
	open = good, open.port = 2;
	assert_int_equal(ask(*state, &open, NULL, 0), -ENOENT);
	open = good, open.kind = 99;
	assert_int_equal(ask(*state, &open, NULL, 0), -EINVAL);
	open = good, strcpy(open.device, "softib9");
	assert_int_equal(ask(*state, &open, NULL, 0), -ENOENT);
	open = good, memset(open.node, 'x', sizeof(open.node));
	assert_true(ask(*state, &open, NULL, 0) < 0);
	sock = connect_to(*state);
	send(sock, "hello", 5, 0);
	turn(*state, 3);
	assert_int_equal(receive(sock, NULL, 0, NULL), -EINVAL);
	assert_int_equal(receive(sock, NULL, 0, NULL), -ECONNRESET);
	close(sock);
	assert_int_equal(umad_num_sessions(((struct world *)*state)->umad), 0);
}

/* --- agents --- */

static void test_agents_are_numbered_and_limited(void **state)
{
	struct program p = program(*state, "n0");
	uint32_t id = 5;

	for (int i = 0; i < 32; i++)
		assert_int_equal(enroll(&p, 0, 0, 0), i);
	assert_int_equal(enroll(&p, 0, 0, 0), -ENOMEM);
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_UNREGISTER_AGENT, &id, sizeof(id)), 0);
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_UNREGISTER_AGENT, &id, sizeof(id)), -EINVAL);
	id = 4000000000u;
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_UNREGISTER_AGENT, &id, sizeof(id)), -EINVAL);
	assert_int_equal(enroll(&p, 0, 0, 0), 5);
	leave(&p);
}

static void test_registration_version_2(void **state)
{
	struct program p = program(*state, "n0");
	struct ib_user_mad_reg_req2 good = {.qpn = 1, .mgmt_class = VENDOR, .mgmt_class_version = 1,
					    .method_mask = {2}, .oui = 0x010203, .rmpp_version = 1};
	struct ib_user_mad_reg_req2 req = good;

	req.flags = 0x80 | IB_USER_MAD_USER_RMPP;
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_REGISTER_AGENT2, &req, sizeof(req)), -EINVAL);
	assert_int_equal(req.flags, IB_USER_MAD_REG_FLAGS_CAP); /* what there is */
	req = good, req.oui = 0x1010203;
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_REGISTER_AGENT2, &req, sizeof(req)), -EINVAL);
	req = good, req.qpn = 2;
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_REGISTER_AGENT2, &req, sizeof(req)), -EINVAL);
	req = good;
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_REGISTER_AGENT2, &req, sizeof(req)), 0);
	assert_int_equal(req.id, 0);
	leave(&p);
}

static void test_bad_ioctls(void **state)
{
	struct program p = program(*state, "n0");
	uint64_t arg = 0;

	assert_int_equal(do_ioctl(&p, 0x1234, &arg, 4), -ENOTTY);
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_UNREGISTER_AGENT, &arg, 8), -EINVAL);
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_ENABLE_PKEY, &arg, 0), 0);
	leave(&p);
}

static void test_the_dead_leave_their_classes(void **state)
{
	struct program p = program(*state, "n0");

	assert_int_equal(enroll(&p, VENDOR, 1 << 1, 0), 0);
	assert_int_equal(enroll(&p, VENDOR, 1 << 1, 0), -EBUSY);
	leave(&p);
	p = program(*state, "n0");
	assert_int_equal(enroll(&p, VENDOR, 1 << 1, 0), 0);
	leave(&p);
}

/* a session that leaves a thousand requests behind does not keep the loop until all
 * are cancelled, and its class is free when they are */
static void test_many_requests_are_left_behind(void **state)
{
	struct world *w = *state;
	struct program p = program(w, "n0");
	int64_t before = rt_alloc_balance(), left;

	enroll(&p, VENDOR, 1 << 1, 0);
	for (uint32_t i = 0; i < 1000; i++) {
		record(0, 99, VENDOR, IB_MGMT_METHOD_GET, i)->hdr.timeout_ms = 1000000;
		put(&p, &out, 256);
	}
	close(p.data);
	close(p.control);
	turn(w, 1);
	left = rt_alloc_balance();
	assert_true(left > before + 1000);
	turn(w, 20);
	assert_true(rt_alloc_balance() < before);
	p = program(w, "n0");
	assert_int_equal(enroll(&p, VENDOR, 1 << 1, 0), 0);
	leave(&p);
}

static void test_unplugged_while_agents_end(void **state)
{
	struct world *w = *state;
	struct program p = program(w, "n0");

	enroll(&p, 0, 0, 0);
	for (uint32_t i = 0; i < 200; i++)
		put(&p, record(0, 99, VENDOR, IB_MGMT_METHOD_GET, i), 256);
	close(p.data);
	close(p.control);
	turn(w, 1);
	ib_unregister_device(&w->net->node[0]->ib);
	turn(w, 5);
	ib_register_device(&w->net->node[0]->ib, "fake0");
}

/* --- records --- */

/* answer the request that is in @in */
static void answer(struct program *p, size_t mad_bytes)
{
	out = in;
	out.hdr.qkey = cpu_to_be32(0x80010000);
	out.hdr.timeout_ms = 0;
	((struct ib_mad_hdr *)out.mad)->method |= IB_MGMT_METHOD_RESP;
	put(p, &out, mad_bytes);
}

static void test_request_and_response(void **state)
{
	struct program client = program(*state, "n0"), server = program(*state, "n1");
	int c, s;

	enroll(&client, 0, 0, 0);
	c = enroll(&client, 0, 0, 0); /* id 1: replies name their agent */
	s = enroll(&server, VENDOR, 1 << IB_MGMT_METHOD_GET, 0);
	put(&client, record(c, 11, VENDOR, IB_MGMT_METHOD_GET, 0xaaaaaaaa12345678ull), 256);

	assert_int_equal(get(&server), sizeof(in.hdr) + 256);
	assert_int_equal(in.hdr.id, s);
	assert_int_equal(in.hdr.length, sizeof(in.hdr) + 256);
	assert_int_equal(in.hdr.status, 0);
	assert_int_equal(be16_to_cpu(in.hdr.lid), 10);
	assert_int_equal(be32_to_cpu(in.hdr.qpn), 1);
	answer(&server, 256);

	assert_int_equal(get(&client), sizeof(in.hdr) + 256);
	assert_int_equal(in.hdr.id, c);
	assert_int_equal(got()->method, IB_MGMT_METHOD_GET_RESP);
	/* the lower half of the TID is the program's, the upper is not */
	assert_int_equal(be64_to_cpu(got()->tid) & 0xffffffff, 0x12345678);
	assert_int_not_equal(be64_to_cpu(got()->tid) >> 32, 0xaaaaaaaa);
	leave(&client);
	leave(&server);
}

/* Who answers for somebody else has to know for whom: the number of the GID in the GRH. */
static void test_the_gid_that_a_mad_was_sent_to(void **state)
{
	struct program client = program(*state, "n0"), server = program(*state, "n1");
	int c = enroll(&client, 0, 0, 0);

	enroll(&server, VENDOR, 1 << IB_MGMT_METHOD_GET, 0);
	for (uint8_t index = 0; index < NET_GIDS; index++) {
		const uint8_t to[16] = {0xfe, 0x80, [14] = index, 11};
		const uint8_t from[16] = {0xfe, 0x80, [14] = !index, 10};

		record(c, 11, VENDOR, IB_MGMT_METHOD_GET, 1);
		out.hdr.grh_present = 1;
		out.hdr.gid_index = !index;
		memcpy(out.hdr.gid, to, sizeof(to));
		put(&client, &out, 256);
		assert_int_equal(get(&server), sizeof(in.hdr) + 256);
		assert_int_equal(in.hdr.grh_present, 1);
		assert_int_equal(in.hdr.gid_index, index);
		assert_memory_equal(in.hdr.gid, from, sizeof(from));
	}
	leave(&client);
	leave(&server);
}

static void test_two_programs_with_one_tid(void **state)
{
	struct program a = program(*state, "n0"), b = program(*state, "n0");
	struct program server = program(*state, "n1");

	enroll(&a, 0, 0, 0);
	enroll(&b, 0, 0, 0);
	enroll(&server, VENDOR, 1 << IB_MGMT_METHOD_GET, 0);
	record(0, 11, VENDOR, IB_MGMT_METHOD_GET, 1)->mad[200] = 'a';
	put(&a, &out, 256);
	record(0, 11, VENDOR, IB_MGMT_METHOD_GET, 1)->mad[200] = 'b';
	put(&b, &out, 256);
	for (int i = 0; i < 2; i++) {
		get(&server);
		answer(&server, 256);
	}
	get(&b);
	assert_int_equal(in.mad[200], 'b');
	get(&a);
	assert_int_equal(in.mad[200], 'a');
	leave(&a);
	leave(&b);
	leave(&server);
}

static void test_timeout_is_a_record(void **state)
{
	struct program p = program(*state, "n0");

	enroll(&p, 0, 0, 0);
	record(0, 99, VENDOR, IB_MGMT_METHOD_GET, 42)->hdr.timeout_ms = 1;
	put(&p, &out, 256);
	assert_int_equal(get(&p), sizeof(in.hdr) + IB_MGMT_MAD_HDR);
	assert_int_equal(in.hdr.status, ETIMEDOUT);
	assert_int_equal(in.hdr.id, 0);
	assert_int_equal(be64_to_cpu(got()->tid) & 0xffffffff, 42);
	leave(&p);
}

static void test_bad_records(void **state)
{
	struct program p = program(*state, "n0");

	enroll(&p, 0, 0, 0);
	put(&p, record(7, 11, VENDOR, IB_MGMT_METHOD_GET, 1), 256); /* no such agent */
	get(&p);
	assert_int_equal(in.hdr.status, EINVAL);
	put(&p, record(0, 11, VENDOR, IB_MGMT_METHOD_GET, 1), 300); /* longer than a MAD */
	get(&p);
	assert_int_equal(in.hdr.status, EINVAL);
	record(0, 11, VENDOR, IB_MGMT_METHOD_GET, 1)->hdr.sl = 16;
	put(&p, &out, 256);
	get(&p);
	assert_int_equal(in.hdr.status, EINVAL);
	put(&p, record(0, 11, VENDOR, IB_MGMT_METHOD_GET, 1), 10); /* no header */
	assert_true(nothing_to_get(&p));
	put(&p, record(0, 99, VENDOR, 0x03, 1), 256); /* and it still works */
	leave(&p);
}

/* --- the ring by which a program sends --- */

static void open_ring(struct program *p, struct abi_told *ring)
{
	const struct abi_ioctl head = {ABI_UMAD_TOLD_RING, 0};
	struct abi_reply reply;
	int fds[ABI_TOLD_FDS];

	assert_int_equal(send(p->control, &head, sizeof(head), 0), sizeof(head));
	turn(p->w, 3);
	assert_int_equal(abi_receive(p->control, &reply, sizeof(reply), MSG_DONTWAIT, fds, ABI_TOLD_FDS), sizeof(reply));
	assert_int_equal(reply.error, 0);
	assert_true(abi_told_map(ring, fds));
}

static void put_by_ring(struct abi_told *ring, const struct record *r, size_t mad_bytes)
{
	assert_true(abi_told_put(ring, &(struct iovec){(void *)r, sizeof(r->hdr) + mad_bytes}, 1));
	abi_told_flush(ring);
}

static void test_records_of_a_ring(void **state)
{
	struct program client = program(*state, "n0"), server = program(*state, "n1");
	uint32_t agent = (uint32_t)enroll(&client, 0, 0, 0);
	struct abi_told ring;
	char none;

	enroll(&server, VENDOR, 1 << IB_MGMT_METHOD_GET, 0);
	open_ring(&client, &ring);
	assert_int_equal(do_ioctl(&client, ABI_UMAD_TOLD_RING, &none, 0), -EEXIST);
	for (uint64_t tid = 1; tid < 4; tid++) {
		put_by_ring(&ring, record((int)agent, 11, VENDOR, IB_MGMT_METHOD_GET, tid), 256);
		assert_int_equal(get(&server), sizeof(in.hdr) + 256);
		answer(&server, 256);
		assert_int_equal(get(&client), sizeof(in.hdr) + 256);
		assert_int_equal(be64_to_cpu(got()->tid) & 0xffffffff, tid);
	}
	/* the agent is there when the record was put, and the ioctl comes behind it */
	put_by_ring(&ring, record((int)agent, 11, VENDOR, IB_MGMT_METHOD_GET, 9), 256);
	assert_int_equal(do_ioctl(&client, IB_USER_MAD_UNREGISTER_AGENT, &agent, sizeof(agent)), 0);
	assert_int_equal(get(&server), sizeof(in.hdr) + 256);
	put_by_ring(&ring, record((int)agent, 11, VENDOR, IB_MGMT_METHOD_GET, 10), 256);
	assert_int_equal(get(&client), sizeof(in.hdr) + IB_MGMT_MAD_HDR);
	assert_int_equal(in.hdr.status, EINVAL);
	abi_told_unmap(&ring);
	leave(&client);
	leave(&server);
}

static void test_nonsense_in_a_ring_ends_the_session(void **state)
{
	struct program p = program(*state, "n0");
	struct abi_told ring;

	open_ring(&p, &ring);
	memset(ring.tx.ring->data, 0x77, 8);
	atomic_store(&ring.tx.ring->tail, 8);
	turn(p.w, 8);
	assert_int_equal(recv(p.data, &in, sizeof(in), MSG_DONTWAIT), 0);
	assert_int_equal(umad_num_sessions(p.w->umad), 0);
	abi_told_unmap(&ring);
	leave(&p);
}

/* --- long messages --- */

#define DATA_OF(r) ((r)->mad + IB_MGMT_VENDOR_HDR)

static void pass_memfd(struct program *p, size_t mad_bytes)
{
	int fd = memfd_create("test", 0);

	assert_int_equal(write(fd, &out, sizeof(out.hdr) + mad_bytes), sizeof(out.hdr) + mad_bytes);
	assert_int_equal(abi_send_fds(p->data, &out, sizeof(out.hdr), &fd, 1, 0), 0);
	close(fd);
}

static void put_large(struct program *p, size_t mad_bytes)
{
	pass_memfd(p, mad_bytes);
	turn(p->w, 3);
}

static void test_long_messages(void **state)
{
	static const size_t lengths[] = {1, 216, 217, 30000, 40000, 90000, 280000};
	struct program client = program(*state, "n0"), server = program(*state, "n1");

	enroll(&client, VENDOR, 0, 1);
	enroll(&server, VENDOR, 1 << IB_MGMT_METHOD_SEND, 1);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t n = lengths[i], mad = IB_MGMT_VENDOR_HDR + n;

		record(0, 11, VENDOR, IB_MGMT_METHOD_SEND, i)->hdr.timeout_ms = 0;
		((struct ib_rmpp_mad *)out.mad)->rmpp_hdr.rmpp_rtime_flags = 1;
		for (size_t b = 0; b < n; b++)
			DATA_OF(&out)[b] = (uint8_t)(b * 3 + b / 256);
		if (mad > ABI_UMAD_INLINE)
			put_large(&client, mad);
		else
			put(&client, &out, mad);
		assert_int_equal(get(&server), sizeof(in.hdr) + mad);
		assert_int_equal(in.hdr.length, sizeof(in.hdr) + mad);
		assert_memory_equal(DATA_OF(&in), DATA_OF(&out), n);
	}
	leave(&client);
	leave(&server);
}

/* Later records wait while a long one is read, those of a ring as well. */
static void test_a_ring_waits_for_a_long_message(void **state)
{
	struct program p = program(*state, "n0");
	struct abi_told ring;

	enroll(&p, VENDOR, 0, 1);
	open_ring(&p, &ring);
	record(0, 11, VENDOR, IB_MGMT_METHOD_SEND, 1)->hdr.timeout_ms = 0;
	((struct ib_rmpp_mad *)out.mad)->rmpp_hdr.rmpp_rtime_flags = 1;
	pass_memfd(&p, 280000);
	turn(p.w, 1);
	put_by_ring(&ring, record(0, 11, VENDOR, IB_MGMT_METHOD_SEND, 2), 256);
	turn(p.w, 1);
	assert_int_equal(atomic_load(&ring.tx.ring->head), 0);
	turn(p.w, 10);
	assert_int_not_equal(atomic_load(&ring.tx.ring->head), 0);
	abi_told_unmap(&ring);
	leave(&p);
}

static void put_long(struct program *client, uint64_t tid, size_t mad_bytes)
{
	record(0, 11, VENDOR, IB_MGMT_METHOD_SEND, tid)->hdr.timeout_ms = 0;
	((struct ib_rmpp_mad *)out.mad)->rmpp_hdr.rmpp_rtime_flags = 1;
	pass_memfd(client, mad_bytes);
}

/* one turn. Return: how many pieces of memory it has freed */
static int64_t freed_in_a_turn(struct world *w)
{
	int64_t before = rt_alloc_balance();

	turn(w, 1);
	return before - rt_alloc_balance();
}

/* Nobody waits while a long message goes to its reader: a turn moves a part of it. Its reader
 * may leave in between, and what comes behind it waits. */
static void test_a_long_message_is_handed_over_by_and_by(void **state)
{
	enum { BYTES = 299000, SEGMENTS = BYTES / IB_MGMT_VENDOR_DATA, A_PART = SEGMENTS / 2 };
	struct program client = program(*state, "n0"), server = program(*state, "n1");
	int64_t before, most = 0;

	enroll(&client, VENDOR, 0, 1);
	enroll(&server, VENDOR, 1 << IB_MGMT_METHOD_SEND, 1);
	before = rt_alloc_balance();
	put_long(&client, 1, BYTES);
	while (most < SEGMENTS / 10)
		most = freed_in_a_turn(client.w);
	record(0, 11, VENDOR, IB_MGMT_METHOD_SEND, 2);
	assert_true(send(client.data, &out, sizeof(out.hdr) + 256, MSG_DONTWAIT) > 0);
	while (recv(server.data, &in, sizeof(in), MSG_DONTWAIT | MSG_PEEK) < 0)
		most = MAX(most, freed_in_a_turn(client.w));
	assert_in_range(most, SEGMENTS / 10, A_PART);
	assert_int_equal(get(&server), sizeof(in.hdr) + BYTES);
	assert_int_equal(get(&server), sizeof(in.hdr) + 256);
	put_long(&client, 3, BYTES);
	while (freed_in_a_turn(client.w) < SEGMENTS / 10)
		;
	leave(&server);
	assert_in_range(rt_alloc_balance(), 0, before + SEGMENTS / 10);
	leave(&client);
}

/* Return: a program of n0 whose message of many turns is being read */
static struct program reads_long(struct world *w)
{
	struct program p = program(w, "n0");

	enroll(&p, VENDOR, 0, 1);
	record(0, 99, VENDOR, IB_MGMT_METHOD_SEND, 1);
	((struct ib_rmpp_mad *)out.mad)->rmpp_hdr.rmpp_rtime_flags = 1;
	pass_memfd(&p, 280000);
	turn(w, 1);
	return p;
}

static void test_left_while_a_long_message_is_read(void **state)
{
	struct world *w = *state;
	struct program p = reads_long(w);
	uint32_t id = 0;

	leave(&p);
	p = reads_long(w);
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_UNREGISTER_AGENT, &id, sizeof(id)), 0);
	assert_int_equal(enroll(&p, VENDOR, 0, 1), 0);
	put(&p, record(7, 11, VENDOR, IB_MGMT_METHOD_GET, 1), 256); /* what follows is read */
	get(&p);
	assert_int_equal(in.hdr.status, EINVAL);
	leave(&p);
	p = reads_long(w);
	ib_unregister_device(&w->net->node[0]->ib);
	turn(w, 5);
	ib_register_device(&w->net->node[0]->ib, "fake0");
	leave(&p);
}

static void send_large(struct program *p, uint64_t tid, size_t mad_bytes)
{
	record(0, 99, VENDOR, IB_MGMT_METHOD_SEND, tid)->hdr.timeout_ms = 1000000;
	((struct ib_rmpp_mad *)out.mad)->rmpp_hdr.rmpp_rtime_flags = 1;
	put_large(p, mad_bytes);
}

/* As write(2) on the character device would, when there is no memory: what is under
 * way is bounded, and who waits until some is done, or gives up its agent, goes on. */
static void test_sends_under_way_are_bounded(void **state)
{
	struct program p = program(*state, "n0");
	const size_t mad = 60000, most = (64u << 20) / mad;
	size_t sent = 0;
	uint32_t id = 0;

	enroll(&p, VENDOR, 0, 1);
	do {
		send_large(&p, sent++, mad);
		assert_true(sent <= most + 1);
	} while (recv(p.data, &in, sizeof(in), MSG_DONTWAIT) < 0);
	assert_int_equal(in.hdr.status, ENOMEM);
	assert_int_equal(be64_to_cpu(got()->tid) & 0xffffffff, sent - 1);
	assert_true(sent > most / 2);
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_UNREGISTER_AGENT, &id, sizeof(id)), 0);
	enroll(&p, VENDOR, 0, 1);
	send_large(&p, sent, mad);
	assert_true(nothing_to_get(&p));
	leave(&p);
}

static void leave_node(struct quota_share *quota)
{
	quota_leave(quota);
}

/* another session of a program of @node */
static void enter_node(struct world *w, struct quota_share *quota, const char *node)
{
	*quota = (struct quota_share){0};
	quota_arrive(quota, w->rt, 0, 1, leave_node);
	assert_int_equal(quota_open(quota, node), 0);
}

static bool is_room(struct quota_share *quota, size_t bytes)
{
	struct quota_node *charged = quota_take(quota, bytes);

	if (charged)
		quota_give(charged, quota, bytes);
	return charged;
}

/* What it had under way is its node's until it is cancelled, which takes some turns, and the session's no
 * more. */
static void test_sends_of_an_agent_that_is_unregistered(void **state)
{
	enum { SENDS = 6000, LEFT = 1 << 20 }; /* more than three turns cancel */
	struct world *w = *state;
	struct program p = program(w, "n0");
	struct quota_share other;
	uint32_t id = 0;

	enter_node(w, &other, "n0");
	enroll(&p, VENDOR, 0, 0);
	for (uint32_t i = 0; i < SENDS; i++) {
		record(0, 99, VENDOR, IB_MGMT_METHOD_GET, i)->hdr.timeout_ms = 1000000;
		put(&p, &out, 256);
	}
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_UNREGISTER_AGENT, &id, sizeof(id)), 0);
	assert_false(is_room(&other, QUOTA_NODE_BYTES - LEFT));
	enroll(&p, VENDOR, 0, 0);
	put(&p, record(0, 99, VENDOR, IB_MGMT_METHOD_GET, SENDS), 256);
	assert_true(nothing_to_get(&p)); /* no refusal */
	assert_true(is_room(&other, QUOTA_NODE_BYTES - LEFT));
	quota_leave(&other);
	leave(&p);
}

/* The segments of a message that comes are charged to the node of their reader: one for which there is no
 * room is aborted, and what it had is free again. */
static void test_reassembly_is_of_the_share_of_its_node(void **state)
{
	enum { BYTES = 290000 };
	struct program client = program(*state, "n0"), server = program(*state, "n1");
	struct quota_node *charged;
	struct quota_share other;

	enroll(&client, VENDOR, 0, 1);
	enroll(&server, VENDOR, 1 << IB_MGMT_METHOD_SEND, 1);
	enter_node(client.w, &other, "n1");
	charged = quota_take(&other, QUOTA_NODE_BYTES - BYTES);
	assert_non_null(charged);
	put_long(&client, 1, BYTES);
	for (int i = 0; is_room(&other, BYTES); i++) /* until its segments are charged */
		assert_true(nothing_to_get(&server) && i < 1000);
	for (int i = 0; !is_room(&other, BYTES); i++) /* and free again */
		assert_true(nothing_to_get(&server) && i < 1000);
	quota_give(charged, &other, QUOTA_NODE_BYTES - BYTES);
	put_long(&client, 2, BYTES);
	assert_int_equal(get(&server), sizeof(in.hdr) + BYTES);
	assert_int_equal(be64_to_cpu(got()->tid) & 0xffffffff, 2);
	quota_leave(&other);
	leave(&client);
	leave(&server);
}

static void test_only_memfds_are_read(void **state)
{
	struct program p = program(*state, "n0");
	int pipe_fds[2], text = open("/proc/self/status", O_RDONLY);

	enroll(&p, 0, 0, 0);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(abi_send_fds(p.data, &out, sizeof(out.hdr), &pipe_fds[0], 1, 0), 0);
	assert_true(nothing_to_get(&p)); /* and the loop did not wait on the pipe */
	assert_int_equal(abi_send_fds(p.data, &out, sizeof(out.hdr), &text, 1, 0), 0);
	assert_true(nothing_to_get(&p)); /* no record was found in the text */
	close(text);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	leave(&p);
}

/* --- readers, devices, IsSM --- */

static void test_a_sleeping_reader_stops_nobody(void **state)
{
	struct program sleeper = program(*state, "n1"), client = program(*state, "n0");
	unsigned long last = 0;

	enroll(&sleeper, VENDOR, 1 << IB_MGMT_METHOD_SEND, 0);
	enroll(&client, 0, 0, 0);
	for (uint32_t i = 1; i <= 3000; i++) {
		record(0, 11, VENDOR, IB_MGMT_METHOD_SEND, i)->hdr.timeout_ms = 0;
		put(&client, &out, 256);
		turn(*state, 3);
	}
	for (int i = 1; i <= 3000; i++) { /* in order, none missing */
		get(&sleeper);
		assert_int_equal(be64_to_cpu(got()->tid) & 0xffffffff, ++last);
	}
	leave(&sleeper);
	leave(&client);
}

static void test_unplugged(void **state)
{
	struct world *w = *state;
	struct program p = program(w, "n0");
	struct ib_user_mad_reg_req req = {.qpn = 1};

	enroll(&p, 0, 0, 0);
	put(&p, record(0, 99, VENDOR, IB_MGMT_METHOD_GET, 1), 256); /* outstanding */
	ib_unregister_device(&w->net->node[0]->ib);
	put(&p, record(0, 11, VENDOR, IB_MGMT_METHOD_GET, 2), 256);
	get(&p);
	assert_int_equal(in.hdr.status, EIO);
	assert_int_equal(do_ioctl(&p, IB_USER_MAD_REGISTER_AGENT, &req, sizeof(req)), -EIO);
	leave(&p);
	ib_register_device(&w->net->node[0]->ib, "fake0");
}

/* n1's */
static void issm_file(struct world *w, char path[200])
{
	struct abi_open open = opening(ABI_OPEN_PORT, "n1");
	struct abi_port_info info;

	ask(w, &open, &info, sizeof(info));
	snprintf(path, 200, "%s/%s", w->dir, info.issm);
}

static void test_a_held_issm_file_is_is_sm(void **state)
{
	struct world *w = *state;
	struct net_node *node = w->net->node[1];
	char path[200];
	int first, second;

	issm_file(w, path);
	turn(w, 5);
	assert_false(node->cap_mask & IB_PORT_SM);
	first = openat(AT_FDCWD, path, O_NONBLOCK | O_CLOEXEC);
	assert_true(first >= 0);
	turn(w, 5);
	assert_true(node->cap_mask & IB_PORT_SM);
	second = openat(AT_FDCWD, path, O_NONBLOCK | O_CLOEXEC);
	turn(w, 5);
	close(first);
	turn(w, 5);
	assert_true(node->cap_mask & IB_PORT_SM); /* somebody still holds it */
	close(second);
	turn(w, 5);
	assert_false(node->cap_mask & IB_PORT_SM);
}

/* inotify merges equal events that nobody has read yet */
static void test_two_opens_between_two_looks(void **state)
{
	struct world *w = *state;
	struct net_node *node = w->net->node[1];
	char path[200];
	int first, second;

	issm_file(w, path);
	first = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	second = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	turn(w, 5);
	close(first);
	turn(w, 5);
	assert_true(node->cap_mask & IB_PORT_SM);
	close(second);
	turn(w, 5);
	assert_false(node->cap_mask & IB_PORT_SM);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_list),
		CASE(test_port_as_it_is_now),
		CASE(test_bad_openings),
		CASE(test_agents_are_numbered_and_limited),
		CASE(test_registration_version_2),
		CASE(test_bad_ioctls),
		CASE(test_the_dead_leave_their_classes),
		CASE(test_many_requests_are_left_behind),
		CASE(test_unplugged_while_agents_end),
		CASE(test_request_and_response),
		CASE(test_the_gid_that_a_mad_was_sent_to),
		CASE(test_two_programs_with_one_tid),
		CASE(test_timeout_is_a_record),
		CASE(test_bad_records),
		CASE(test_records_of_a_ring),
		CASE(test_nonsense_in_a_ring_ends_the_session),
		CASE(test_long_messages),
		CASE(test_a_ring_waits_for_a_long_message),
		CASE(test_a_long_message_is_handed_over_by_and_by),
		CASE(test_left_while_a_long_message_is_read),
		CASE(test_sends_under_way_are_bounded),
		CASE(test_sends_of_an_agent_that_is_unregistered),
		CASE(test_reassembly_is_of_the_share_of_its_node),
		CASE(test_only_memfds_are_read),
		CASE(test_a_sleeping_reader_stops_nobody),
		CASE(test_unplugged),
		CASE(test_a_held_issm_file_is_is_sm),
		CASE(test_two_opens_between_two_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
