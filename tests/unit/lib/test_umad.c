/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libibumad against a scripted softibd: a thread that answers openings and
 * ioctls from a table, and gives the test its end of the data socket, so that
 * each case writes the records that the library shall read.
 */
#include "../test.h"

#include <errno.h>
#include <fcntl.h>
#include <infiniband/umad.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "abi/fds.h"
#include "abi/session.h"
#include "abi/told.h"

#define HDR sizeof(struct ib_user_mad)

/* the ioctl numbers of <infiniband/umad.h> name the kernel's structs, whose
 * header cannot be included beside it: only their sizes matter here */
struct ib_user_mad_reg_req {
	uint8_t bytes[28];
};
struct ib_user_mad_reg_req2 {
	uint8_t bytes[40];
};

/* --- the scripted softibd --- */

static struct {
	char dir[64];
	int listen_fd;
	pthread_t thread;
	uint8_t state[2][4];	/* of device d's port p */
	int refuse_open;	/* negative errno */
	int ioctl_error;
	uint32_t ioctl_id;
	uint32_t flags_back;
	/* what came, for the test to look at once the call has returned */
	struct abi_open open;
	uint32_t request;
	uint8_t arg[64];
	int data;		/* softibd's end of an open port */
	bool gives_ring;
	struct abi_ring_rx ring; /* of the open port; no ring: there is none */
	int told; /* records of it that are run */
} d;

static void reply(int fd, int error, const void *body, size_t bytes, int passed)
{
	struct abi_reply r = {error, (uint32_t)bytes};
	struct iovec iov[2] = {{&r, sizeof(r)}, {(void *)body, bytes}};

	abi_sendv_fds(fd, iov, 2, &passed, passed >= 0, 0);
}

static void answer_list(int fd)
{
	struct abi_device_info list[3] = {
		{.name = "softib1", .fw_ver = "1.2.3", .board_id = "board", .node_guid = 0x11,
		 .sys_image_guid = 0x12, .hw_ver = 0xa0, .num_ports = 2},
		{.name = "softib0", .fw_ver = "4", .node_guid = 0x21, .num_ports = 1, .umad_base = 2},
		{.name = "a_name_that_umad_has_no_room_for", .num_ports = 1},
	};

	reply(fd, 0, list, sizeof(list), -1);
}

static void answer_port(int fd, const struct abi_open *open)
{
	int device = !strcmp(open->device, "softib0");
	struct abi_port_info info = {
		.cap_mask = 0x02510868, .lid = (uint16_t)(7 + open->port), .sm_lid = 3, .lmc = 2,
		.sm_sl = 4, .state = d.state[device][open->port], .phys_state = 5, .width_enc = 2,
		.speed_enc = 32, .num_pkeys = 3, .link_layer = 1, .pkey = {0xffff, 0x8001, 2},
		.gid = {0xfe, 0x80, [8] = 0xab, [15] = (uint8_t)open->port}, .issm = "issm/it"};

	reply(fd, 0, &info, sizeof(info), -1);
}

/* The stand-in and the test take turns by the sockets between them, an order
 * that ThreadSanitizer does not see. The library's own accesses it judges. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race_top:test_umad.c\nrace:serve_control\n";
}

/* Return: as abi_ring_peek(), of the record that is run */
static const void *run_one(size_t *len)
{
	const void *record = abi_ring_peek(&d.ring, len);

	if (!record)
		return NULL;
	d.told++;
	abi_ring_skip(&d.ring);
	abi_ring_release(&d.ring);
	return record;
}

static void answer_ring(int fd)
{
	const size_t bytes = abi_ring_bytes(ABI_TOLD_RING_BYTES);
	struct abi_reply r = {d.ring.ring ? -EEXIST : 0, 0};
	int fds[ABI_TOLD_FDS];
	size_t len;

	if (d.ring.ring) {
		while (run_one(&len))
			;
		abi_send_fds(fd, &r, sizeof(r), NULL, 0, 0);
		return;
	}
	fds[0] = memfd_create("told", 0);
	fds[1] = eventfd(0, EFD_NONBLOCK);
	ftruncate(fds[0], (off_t)bytes);
	d.ring = (struct abi_ring_rx){
		.ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0), .size = ABI_TOLD_RING_BYTES};
	abi_ring_init(d.ring.ring, ABI_TOLD_RING_BYTES);
	abi_send_fds(fd, &r, sizeof(r), fds, ABI_TOLD_FDS, 0);
	close(fds[0]);
	close(fds[1]);
}

/* serve the ioctls of an open port until the library closes it */
static void serve_control(int fd)
{
	struct abi_ioctl head;
	struct iovec iov[2] = {{&head, sizeof(head)}, {d.arg, sizeof(d.arg)}};

	while (readv(fd, iov, 2) > 0) {
		d.request = head.request;
		if (head.request == ABI_UMAD_TOLD_RING && d.gives_ring) {
			answer_ring(fd);
			continue;
		}
		if (!d.ioctl_error)
			memcpy(d.arg, &d.ioctl_id, sizeof(d.ioctl_id));
		else if (d.flags_back)
			memcpy(d.arg + 12, &d.flags_back, sizeof(d.flags_back));
		reply(fd, d.ioctl_error, d.arg, head.bytes, -1);
	}
	close(fd);
}

static void *control_thread(void *arg)
{
	serve_control((int)(intptr_t)arg);
	return NULL;
}

static void open_port(int fd)
{
	pthread_t thread;
	int pair[2];

	socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
	d.data = fd;
	pthread_create(&thread, NULL, control_thread, (void *)(intptr_t)pair[0]);
	pthread_detach(thread);
	reply(fd, 0, NULL, 0, pair[1]);
	close(pair[1]);
}

static void *serve(void *unused)
{
	int fd;

	while ((fd = accept(d.listen_fd, NULL, NULL)) >= 0) {
		struct abi_open open;

		if (recv(fd, &open, sizeof(open), 0) != sizeof(open)) {
			close(fd);
			continue;
		}
		d.open = open;
		if (open.kind == ABI_OPEN_UMAD && !d.refuse_open) {
			open_port(fd); /* it stays */
			continue;
		}
		if (open.kind == ABI_OPEN_LIST)
			answer_list(fd);
		else if (open.kind == ABI_OPEN_PORT)
			answer_port(fd, &open);
		else
			reply(fd, d.refuse_open, NULL, 0, -1);
		close(fd);
	}
	return NULL;
}

static void start_in(const char *dir)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int dirfd = open(dir, O_PATH | O_DIRECTORY);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/umad", dirfd);
	d.listen_fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	assert_int_equal(bind(d.listen_fd, (void *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(d.listen_fd, 16), 0);
	close(dirfd);
	pthread_create(&d.thread, NULL, serve, NULL);
	setenv("SOFTIB_DIR", dir, 1);
}

static void stop_in(const char *dir)
{
	char path[400];

	shutdown(d.listen_fd, SHUT_RDWR);
	pthread_join(d.thread, NULL);
	close(d.listen_fd);
	snprintf(path, sizeof(path), "%s/umad", dir);
	unlink(path);
	unsetenv("SOFTIB_DIR");
}

static int setup(void **state)
{
	memset(&d, 0, sizeof(d));
	memset(d.state, 1, sizeof(d.state)); /* Down */
	strcpy(d.dir, "/tmp/softib-test-XXXXXX");
	assert_non_null(mkdtemp(d.dir));
	start_in(d.dir);
	return 0;
}

static int teardown(void **state)
{
	stop_in(d.dir);
	if (d.ring.ring)
		munmap(d.ring.ring, abi_ring_bytes(ABI_TOLD_RING_BYTES));
	return rmdir(d.dir);
}

/* --- devices and ports --- */

static void test_names(void **state)
{
	char cas[8][UMAD_CA_NAME_LEN];

	assert_int_equal(umad_init(), 0);
	assert_int_equal(umad_get_cas_names(cas, 8), 2); /* the third has no room */
	assert_string_equal(cas[0], "softib1");
	assert_string_equal(cas[1], "softib0");
	assert_int_equal(umad_get_cas_names(cas, 1), 1);
}

static void test_device_list_is_sorted_on_demand(void **state)
{
	struct umad_device_node *list = umad_get_ca_device_list();

	assert_string_equal(list->ca_name, "softib1");
	assert_int_equal(umad_sort_ca_device_list(&list, 7), EINVAL);
	assert_int_equal(umad_sort_ca_device_list(&list, 0), 0);
	assert_string_equal(list->ca_name, "a_name_that_umad_has_no_room_for");
	assert_string_equal(list->next->ca_name, "softib0");
	assert_string_equal(list->next->next->ca_name, "softib1");
	umad_free_ca_device_list(list);
}

static void test_ca(void **state)
{
	umad_ca_t ca;
	__be64 guids[3];

	assert_int_equal(umad_get_ca("softib1", &ca), 0);
	assert_string_equal(ca.ca_name, "softib1");
	assert_string_equal(ca.fw_ver, "1.2.3");
	assert_string_equal(ca.ca_type, "board");
	assert_string_equal(ca.hw_ver, "a0");
	assert_int_equal(ca.node_type, 1);
	assert_int_equal(ca.numports, 2);
	assert_int_equal(be64toh(ca.node_guid), 0x11);
	assert_int_equal(be64toh(ca.system_guid), 0x12);
	assert_null(ca.ports[0]);
	assert_int_equal(ca.ports[2]->base_lid, 9);
	umad_release_ca(&ca);
	assert_int_equal(umad_get_ca_portguids("softib1", guids, 3), 3);
	assert_int_equal(guids[0], 0);
	assert_int_equal(be64toh(guids[2]), 0xab00000000000002ull);
	assert_int_equal(umad_get_ca_portguids("softib1", guids, 2), -ENOMEM);
	assert_true(umad_get_ca("softib9", &ca) < 0);
}

static void test_port(void **state)
{
	umad_port_t port;

	assert_int_equal(umad_get_port("softib1", 2, &port), 0);
	assert_string_equal(port.ca_name, "softib1");
	assert_int_equal(port.portnum, 2);
	assert_int_equal(port.base_lid, 9);
	assert_int_equal(port.lmc, 2);
	assert_int_equal(port.sm_lid, 3);
	assert_int_equal(port.sm_sl, 4);
	assert_int_equal(port.state, 1);
	assert_int_equal(port.phys_state, 5);
	assert_int_equal(port.rate, 100); /* 4x of 25 */
	assert_int_equal(be32toh(port.capmask), 0x02510868);
	assert_int_equal(be64toh(port.gid_prefix), 0xfe80000000000000ull);
	assert_int_equal(be64toh(port.port_guid), 0xab00000000000002ull);
	assert_int_equal(port.pkeys_size, 3);
	assert_int_equal(port.pkeys[1], 0x8001);
	assert_string_equal(port.link_layer, "InfiniBand");
	umad_release_port(&port);
	assert_int_equal(umad_get_port("softib1", 3, &port), -ENODEV);
	assert_int_equal(umad_get_port(NULL, 5, &port), -ENODEV);
}

static void default_port(const char *ca, int portnum, const char *want_ca, int want_port)
{
	umad_port_t port;

	assert_int_equal(umad_get_port(ca, portnum, &port), 0);
	assert_string_equal(port.ca_name, want_ca);
	assert_int_equal(port.portnum, want_port);
	umad_release_port(&port);
}

static void test_defaults_prefer_active_ports(void **state)
{
	default_port(NULL, 0, "softib1", 1); /* all down: the first */
	d.state[1][1] = 2;
	default_port(NULL, 0, "softib0", 1); /* one is coming up */
	d.state[0][2] = 4;
	default_port(NULL, 0, "softib1", 2);
	default_port("softib0", 0, "softib0", 1);
	default_port("softib1", 0, "softib1", 2);
	default_port(NULL, 2, "softib1", 2);
	d.state[1][1] = 4;
	default_port(NULL, 1, "softib0", 1);
}

static void test_node_and_issm(void **state)
{
	char path[128], want[128];

	setenv("SOFTIB_NODE", "n7", 1);
	assert_int_equal(umad_get_issm_path("softib0", 1, path, sizeof(path)), 0);
	unsetenv("SOFTIB_NODE");
	assert_string_equal(d.open.node, "n7");
	snprintf(want, sizeof(want), "%s/issm/it", d.dir);
	assert_string_equal(path, want);
	assert_true(umad_get_issm_path("softib0", 9, path, sizeof(path)) < 0);
}

static void test_a_long_directory(void **state)
{
	char dir[300], cas[4][UMAD_CA_NAME_LEN];

	stop_in(d.dir);
	snprintf(dir, sizeof(dir), "%s/%0150d", d.dir, 1);
	assert_int_equal(mkdir(dir, 0700), 0);
	start_in(dir);
	assert_int_equal(umad_get_cas_names(cas, 4), 2);
	stop_in(dir);
	rmdir(dir);
	start_in(d.dir);
}

static void test_nobody_listens(void **state)
{
	char cas[4][UMAD_CA_NAME_LEN];

	setenv("SOFTIB_DIR", "/nonexistent", 1);
	assert_int_equal(umad_get_cas_names(cas, 4), 0);
	assert_true(umad_open_port(NULL, 0) < 0);
}

/* --- agents --- */

static void test_open_is_refused(void **state)
{
	d.refuse_open = -EMFILE;
	assert_int_equal(umad_open_port("softib0", 1), -EIO);
	assert_int_equal(errno, EMFILE);
}

static void test_register(void **state)
{
	int port = umad_open_port("softib0", 1);
	long mask[16 / sizeof(long)] = {0x6};
	uint8_t oui[3] = {9, 8, 7};

	assert_true(port >= 0);
	assert_int_equal(umad_get_fd(port), port);
	d.ioctl_id = 5;
	assert_int_equal(umad_register(port, 0x81, 1, 0, mask), 5);
	assert_int_equal(d.request, IB_USER_MAD_REGISTER_AGENT);
	assert_memory_equal(d.arg + 4, mask, 16);
	assert_memory_equal(d.arg + 20, "\0\x81\1\0\x14\5\0", 7); /* QP0, class, version, OUI */
	assert_int_equal(umad_register(port, 3, 2, 1, NULL), 5);
	assert_memory_equal(d.arg + 20, "\1\3\2\0\x14\5\1", 7);
	assert_int_equal(umad_register_oui(port, 0x32, 1, oui, mask), 5);
	assert_memory_equal(d.arg + 20, "\1\x32\1\x9\x8\x7\1", 7);
	assert_int_equal(umad_register_oui(port, 0x0a, 0, oui, mask), -EINVAL);
	d.ioctl_error = -EBUSY;
	assert_int_equal(umad_register(port, 3, 2, 1, mask), -EPERM);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(umad_unregister(port, 5), -1);
	d.ioctl_error = 0;
	assert_int_equal(umad_unregister(port, 5), 0);
	assert_int_equal(d.request, IB_USER_MAD_UNREGISTER_AGENT);
	close(d.data);
	umad_close_port(port);
	assert_int_equal(umad_close_port(port), -EINVAL);
}

static void test_register2(void **state)
{
	int port = umad_open_port("softib0", 1);
	struct umad_reg_attr attr = {.mgmt_class = 0x32, .mgmt_class_version = 1, .oui = 0x1405,
				     .rmpp_version = 1, .flags = UMAD_USER_RMPP};
	uint32_t id;

	d.ioctl_id = 3;
	assert_int_equal(umad_register2(port, &attr, &id), 0);
	assert_int_equal(id, 3);
	assert_int_equal(d.request, IB_USER_MAD_REGISTER_AGENT2);
	assert_int_equal(umad_register2(port, NULL, &id), EINVAL);
	attr.oui = 0;
	assert_int_equal(umad_register2(port, &attr, &id), EINVAL);
	attr.oui = 0x1405;
	d.ioctl_error = -EINVAL;
	d.flags_back = 1;
	attr.flags = 0xff;
	assert_int_equal(umad_register2(port, &attr, &id), EINVAL);
	assert_int_equal(attr.flags, 1); /* what is supported */
	close(d.data);
	umad_close_port(port);
}

/* --- records --- */

struct record {
	struct ib_user_mad umad;
	uint8_t mad[200000];
};

static struct record rec, in;

static void softibd_sends(uint32_t agent, size_t mad_bytes, uint32_t status)
{
	memset(&rec, 0, HDR);
	rec.umad.agent_id = agent;
	rec.umad.status = status;
	rec.umad.length = (uint32_t)(HDR + mad_bytes);
	for (size_t i = 0; i < mad_bytes; i++)
		rec.mad[i] = (uint8_t)(i * 5 + i / 256);
	assert_true(send(d.data, &rec, HDR + mad_bytes, 0) > 0);
}

static void softibd_sends_memfd(uint32_t agent, size_t mad_bytes)
{
	int fd = memfd_create("test", 0);

	memset(&rec, 0, HDR);
	rec.umad.agent_id = agent;
	rec.umad.length = (uint32_t)(HDR + mad_bytes);
	for (size_t i = 0; i < mad_bytes; i++)
		rec.mad[i] = (uint8_t)(i * 5 + i / 256);
	assert_int_equal(write(fd, &rec, HDR + mad_bytes), HDR + mad_bytes);
	assert_int_equal(abi_send_fds(d.data, &rec, HDR, &fd, 1, 0), 0);
	close(fd);
}

static void finish(int port)
{
	close(d.data);
	umad_close_port(port);
}

static void test_receive(void **state)
{
	int port = umad_open_port("softib0", 1), len = 256;

	softibd_sends(4, 256, 0);
	assert_int_equal(umad_poll(port, -1), 0);
	assert_int_equal(umad_recv(port, &in, &len, -1), 4);
	assert_int_equal(len, 256);
	assert_memory_equal(&in, &rec, HDR + 256);
	finish(port);
}

static void test_nothing_to_receive(void **state)
{
	int port = umad_open_port("softib0", 1), len = 256;

	assert_int_equal(umad_recv(port, &in, &len, 0), -EWOULDBLOCK);
	assert_int_equal(errno, EWOULDBLOCK);
	assert_int_equal(len, 256);
	assert_int_equal(umad_poll(port, 1), -ETIMEDOUT);
	assert_int_equal(umad_recv(port, &in, &len, 1), -ETIMEDOUT);
	assert_int_equal(errno, ETIMEDOUT);
	finish(port);
}

static void test_a_small_buffer_leaves_the_record(void **state)
{
	int port = umad_open_port("softib0", 1), len;

	softibd_sends(1, 5000, 0);
	for (int again = 0; again < 3; again++) {
		len = 256;
		memset(&in, 0, sizeof(in));
		assert_int_equal(umad_recv(port, &in, &len, 1000), -ENOSPC);
		assert_int_equal(errno, ENOSPC);
		assert_int_equal(len, 5000);
		assert_memory_equal(in.mad, rec.mad, 256); /* the first segment is there */
	}
	len = 100;
	assert_int_equal(umad_recv(port, &in, &len, 1000), -EINVAL);
	assert_int_equal(len, 5000);
	assert_int_equal(umad_recv(port, &in, &len, 1000), 1);
	assert_int_equal(len, 5000);
	assert_memory_equal(in.mad, rec.mad, 5000);
	len = 256;
	assert_int_equal(umad_recv(port, &in, &len, 0), -EWOULDBLOCK); /* now it is gone */
	finish(port);
}

static void test_large_records(void **state)
{
	int port = umad_open_port("softib0", 1), len = 256;

	softibd_sends_memfd(2, 150000);
	softibd_sends(3, 256, 0);
	assert_int_equal(umad_recv(port, &in, &len, 1000), -ENOSPC);
	assert_int_equal(len, 150000);
	assert_memory_equal(in.mad, rec.mad, 256);
	assert_int_equal(umad_recv(port, &in, &len, 1000), 2);
	assert_int_equal(len, 150000);
	for (int i = 0; i < len; i++)
		assert_int_equal(in.mad[i], (uint8_t)(i * 5 + i / 256));
	assert_int_equal(umad_recv(port, &in, &len, 1000), 3); /* the one behind it */
	assert_int_equal(len, 256);
	finish(port);
}

/* others come and go in the stand-in's threads */
static int open_memfds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GET_SEALS) >= 0;
	return n;
}

static void test_large_records_leave_no_descriptor(void **state)
{
	int port = umad_open_port("softib0", 1), before = open_memfds();

	for (int i = 0; i < 10; i++) {
		int len = 256;

		softibd_sends_memfd(2, 40000);
		assert_int_equal(umad_recv(port, &in, &len, 1000), -ENOSPC);
		assert_int_equal(umad_recv(port, &in, &len, 1000), 2);
	}
	assert_int_equal(open_memfds(), before);
	finish(port);
}

static void test_timed_out_request(void **state)
{
	int port = umad_open_port("softib0", 1), len = 256;

	softibd_sends(6, 24, ETIMEDOUT);
	assert_int_equal(umad_recv(port, &in, &len, 1000), 6);
	assert_int_equal(umad_status(&in), ETIMEDOUT);
	assert_int_equal(len, 24);
	finish(port);
}

static void test_softibd_goes(void **state)
{
	int port = umad_open_port("softib0", 1), len = 256;
	struct timespec before, after;

	close(d.data);
	clock_gettime(CLOCK_MONOTONIC, &before);
	for (int i = 0; i < 10; i++) /* as opensm does, which does not end */
		assert_int_equal(umad_recv(port, &in, &len, 1000), -EIO);
	clock_gettime(CLOCK_MONOTONIC, &after);
	assert_true(after.tv_sec > before.tv_sec); /* and does not use a whole processor for it */
	memset(&rec, 0, HDR);
	assert_int_equal(umad_send(port, 0, &rec, 256, 100, 0), -EIO);
	umad_close_port(port);
}

static void test_send(void **state)
{
	int port = umad_open_port("softib0", 1);
	ssize_t n;

	memset(&rec, 0, HDR);
	umad_set_addr(&rec, 5, 1, 2, 0x80010000);
	memset(rec.mad, 0x5a, 256);
	assert_int_equal(umad_send(port, 7, &rec, 256, 1500, 3), 0);
	n = recv(d.data, &in, sizeof(in), 0);
	assert_int_equal(n, HDR + 256);
	assert_int_equal(in.umad.agent_id, 7);
	assert_int_equal(in.umad.timeout_ms, 1500);
	assert_int_equal(in.umad.retries, 3);
	assert_int_equal(be16toh(in.umad.addr.lid), 5);
	assert_memory_equal(in.mad, rec.mad, 256);
	assert_int_equal(umad_send(port, 7, &rec, -1, 0, 0), -EINVAL);
	finish(port);
}

static void test_send_large(void **state)
{
	int port = umad_open_port("softib0", 1), fd;

	memset(&rec, 0, HDR);
	for (int i = 0; i < 100000; i++)
		rec.mad[i] = (uint8_t)(i / 3);
	assert_int_equal(umad_send(port, 7, &rec, 100000, 0, 0), 0);
	assert_int_equal(abi_receive(d.data, &in, sizeof(in), 0, &fd, 1), HDR);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &in, sizeof(in), 0), HDR + 100000);
	assert_memory_equal(&in, &rec, HDR + 100000);
	close(fd);
	finish(port);
}

/* A program that sends often sends by a ring; what a record of it has no room for goes by the socket. */
static void test_sends_go_by_a_ring(void **state)
{
	int port = umad_open_port("softib0", 1);
	const struct ib_user_mad *record;
	size_t len;

	d.gives_ring = true;
	memset(&rec, 0, sizeof(rec));
	for (int i = 0; i < ABI_TOLD_TIMES; i++) {
		assert_null(d.ring.ring);
		assert_int_equal(umad_send(port, 7, &rec, 256, 1500, 3), 0);
		assert_int_equal(recv(d.data, &in, sizeof(in), 0), HDR + 256);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(umad_send(port, 7, &rec, 256, 1500 + i, 3), 0);
		record = run_one(&len);
		assert_non_null(record);
		assert_int_equal(len, HDR + 256);
		assert_int_equal(record->agent_id, 7);
		assert_int_equal(record->timeout_ms, 1500 + i);
	}
	assert_int_equal(umad_send(port, 7, &rec, ABI_TOLD_RECORD_MAX, 0, 0), 0);
	assert_int_equal(recv(d.data, &in, sizeof(in), MSG_DONTWAIT), HDR + ABI_TOLD_RECORD_MAX);
	assert_null(run_one(&len));
	finish(port);
}

static void test_a_full_ring_is_waited_for(void **state)
{
	enum { SENDS = 3 * ABI_TOLD_RING_BYTES / 256 };
	int port = umad_open_port("softib0", 1);
	size_t len;

	d.gives_ring = true;
	memset(&rec, 0, HDR);
	for (int i = 0; i < ABI_TOLD_TIMES; i++)
		assert_int_equal(umad_send(port, 0, &rec, 256, 0, 0), 0);
	for (int i = 0; i < SENDS; i++)
		assert_int_equal(umad_send(port, 0, &rec, 256, 0, 0), 0);
	while (run_one(&len))
		;
	assert_int_equal(d.told, SENDS);
	finish(port);
}

#define MANY 5000

static void *drain(void *unused)
{
	int got = 0;

	while (got < MANY && recv(d.data, &in, sizeof(in), 0) > 0)
		got++;
	return (void *)(intptr_t)got;
}

/* the character device never says EAGAIN to a writer; nor do we */
static void test_a_full_socket_is_waited_for(void **state)
{
	int port = umad_open_port("softib0", 1), sent = 0;
	struct pollfd pfd = {.fd = port, .events = POLLOUT};
	pthread_t reader;
	void *got;

	memset(&rec, 0, HDR);
	for (; poll(&pfd, 1, 0) == 1; sent++)
		assert_int_equal(umad_send(port, 0, &rec, 256, 0, 0), 0);
	assert_in_range(sent, 1, MANY - 1);
	pthread_create(&reader, NULL, drain, NULL);
	for (; sent < MANY; sent++)
		assert_int_equal(umad_send(port, 0, &rec, 256, 0, 0), 0);
	pthread_join(reader, &got);
	assert_int_equal((intptr_t)got, MANY);
	finish(port);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_names),
		CASE(test_device_list_is_sorted_on_demand),
		CASE(test_ca),
		CASE(test_port),
		CASE(test_defaults_prefer_active_ports),
		CASE(test_node_and_issm),
		CASE(test_a_long_directory),
		CASE(test_nobody_listens),
		CASE(test_open_is_refused),
		CASE(test_register),
		CASE(test_register2),
		CASE(test_receive),
		CASE(test_nothing_to_receive),
		CASE(test_a_small_buffer_leaves_the_record),
		CASE(test_large_records),
		CASE(test_large_records_leave_no_descriptor),
		CASE(test_timed_out_request),
		CASE(test_softibd_goes),
		CASE(test_send),
		CASE(test_send_large),
		CASE(test_sends_go_by_a_ring),
		CASE(test_a_full_ring_is_waited_for),
		CASE(test_a_full_socket_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
