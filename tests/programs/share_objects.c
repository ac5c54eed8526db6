/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A program that shares objects with another one, by its descriptor. It does what it reads from
 * standard input, a line each, and answers with a line.
 *
 * The one that has them:
 *   make BYTES AT         a PD, a region on BYTES bytes that begin AT bytes into a page, device
 *                         memory of 4096 bytes and a region on it: their four handles
 *   give PATH             the descriptor to who connects to the socket PATH
 *   fork                  from here on a child answers, which has inherited the descriptor
 *   fill N | check N      the memory, by the pattern N
 *   dereg | unmap         the region; its memory
 * The other one:
 *   take PATH             the descriptor, and the device that it names
 *   inherit               the device of the inherited descriptor
 *   import PD MR DM MR    the four
 *   pair                  a QP on the imported PD, connected to one of a context of its own
 *   send MR BYTES AT N    from region 0 or 1, to where the pattern N is checked: the status
 *   receive MR BYTES AT N the pattern N into it
 *   write MR BYTES AT N | read MR BYTES AT N | add MR AT N | swap MR AT OLD NEW
 *                         by the other QP, in the region
 *   dm N | has N          store the word N into the device memory; is it there?
 *   own                   a region of its own on the imported PD, which "send 2" uses
 *   unimport | end        the objects; the device, too
 *   twice                 import the region once more, and undo that
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fixture.h"

enum { PEER_BYTES = 1 << 20, DM_BYTES = 4096, REMOTE = IBV_ACCESS_LOCAL_WRITE |
       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

static struct ibv_context *context, *peer_context;
static struct ibv_pd *pd, *peer_pd;
static struct ibv_mr *mr[3], *peer_mr;
static struct ibv_dm *dm;
static struct ibv_cq *cq, *peer_cq;
static struct ibv_qp *qp, *peer_qp;
static uint8_t *memory, *map;
static size_t memory_bytes, map_bytes;
static uint64_t base; /* the address of region 0 for its users */
static uint8_t peer_memory[PEER_BYTES], own_memory[4096];

static uint8_t pattern(uint32_t n, size_t i)
{
	return (uint8_t)(n * 31 + i * 7 + i / 251);
}

static void fill(uint8_t *to, size_t bytes, uint32_t n)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = pattern(n, i);
}

static bool holds(const uint8_t *at, size_t bytes, uint32_t n)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != pattern(n, i))
			return false;
	return true;
}

static void make(size_t bytes, size_t at)
{
	struct ibv_alloc_dm_attr attr = {.length = DM_BYTES};

	context = open_first_device();
	pd = ibv_alloc_pd(context);
	CHECK(pd);
	map_bytes = at + bytes;
	map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(map != MAP_FAILED);
	memory = map + at;
	memory_bytes = bytes;
	mr[0] = ibv_reg_mr(pd, memory, bytes, REMOTE);
	dm = ibv_alloc_dm(context, &attr);
	CHECK(mr[0] && dm);
	mr[1] = ibv_reg_dm_mr(pd, dm, 1024, 2048, REMOTE | IBV_ACCESS_ZERO_BASED);
	CHECK(mr[1]);
	printf("%u %u %u %u %lu\n", pd->handle, mr[0]->handle, dm->handle, mr[1]->handle,
	       (uintptr_t)memory);
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	CHECK(strlen(path) < sizeof(address.sun_path));
	strcpy(address.sun_path, path);
	return address;
}

static void give(const char *path)
{
	struct sockaddr_un address = address_of(path);
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	struct iovec iov = {"x", 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int sock = socket(AF_UNIX, SOCK_STREAM, 0), taker;

	CHECK(!bind(sock, (void *)&address, sizeof(address)) && !listen(sock, 1));
	printf("listening\n");
	fflush(stdout);
	taker = accept(sock, NULL, NULL);
	memcpy(CMSG_DATA(&control.head), &context->cmd_fd, sizeof(int));
	CHECK(sendmsg(taker, &msg, 0) == 1);
	close(taker);
	close(sock);
	printf("given\n");
}

static void become_child(void)
{
	int fd = dup(context->cmd_fd);

	if (fork()) {
		close(fd);
		pause(); /* until it is killed */
	}
	CHECK(dup2(fd, 100) == 100);
	printf("%d\n", getppid());
}

static void import_device(int fd)
{
	context = ibv_import_device(fd);
	printf("%s\n", context ? "imported" : strerrorname_np(errno));
	if (!context)
		close(fd);
}

static void take(const char *path)
{
	struct sockaddr_un address = address_of(path);
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int sock = socket(AF_UNIX, SOCK_STREAM, 0), fd;

	CHECK(!connect(sock, (void *)&address, sizeof(address)));
	CHECK(recvmsg(sock, &msg, 0) == 1 && control.head.cmsg_type == SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	close(sock);
	import_device(fd);
}

static void import(uint32_t pd_handle, uint32_t mr_handle, uint32_t dm_handle,
		   uint32_t on_dm_handle, uint64_t address)
{
	pd = ibv_import_pd(context, pd_handle);
	CHECK(pd);
	mr[0] = ibv_import_mr(pd, mr_handle);
	mr[1] = ibv_import_mr(pd, on_dm_handle);
	dm = ibv_import_dm(context, dm_handle);
	base = address;
	printf("%s\n", mr[0] && mr[1] && dm ? "imported" : strerrorname_np(errno));
}

static struct ibv_qp *make_qp(struct ibv_pd *of, struct ibv_cq *to)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = to, .recv_cq = to, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *made = ibv_create_qp(of, &attr);

	CHECK(made);
	return made;
}

static void connect_to(struct ibv_qp *one, uint32_t other)
{
	connect_qp(one, (struct ibv_qp_attr){.qp_access_flags = REMOTE, .dest_qp_num = other},
		   lid_of(context), 1);
}

static void pair(void)
{
	if (!peer_context) {
		peer_context = open_first_device();
		peer_pd = ibv_alloc_pd(peer_context);
		peer_cq = ibv_create_cq(peer_context, 16, NULL, NULL, 0);
		CHECK(peer_pd && peer_cq);
		peer_mr = ibv_reg_mr(peer_pd, peer_memory, PEER_BYTES, REMOTE);
		cq = ibv_create_cq(context, 16, NULL, NULL, 0);
		CHECK(peer_mr && cq);
	} else {
		CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer_qp));
	}
	qp = make_qp(pd, cq);
	peer_qp = make_qp(peer_pd, peer_cq);
	connect_to(qp, peer_qp->qp_num);
	connect_to(peer_qp, qp->qp_num);
	printf("connected\n");
}

/* Both ends make progress. Return: of the next completion of @of */
static enum ibv_wc_status completed(struct ibv_cq *of)
{
	struct ibv_cq *other = of == cq ? peer_cq : cq;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(of, 1, &wc);
		CHECK(n >= 0);
		if (!n)
			ibv_poll_cq(other, 0, NULL);
	} while (!n);
	return wc.status;
}

static struct ibv_sge in_region(unsigned which, size_t bytes, size_t at)
{
	return (struct ibv_sge){(which ? (uintptr_t)mr[which]->addr : base) + at,
				(uint32_t)bytes, mr[which]->lkey};
}

static struct ibv_sge in_peer(size_t bytes)
{
	return (struct ibv_sge){(uintptr_t)peer_memory, (uint32_t)bytes, peer_mr->lkey};
}

static void post_recv(struct ibv_qp *to, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	CHECK(!ibv_post_recv(to, &wr, &bad));
}

static enum ibv_wc_status post(struct ibv_qp *by, struct ibv_send_wr wr, struct ibv_sge sge)
{
	struct ibv_send_wr *bad;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	CHECK(!ibv_post_send(by, &wr, &bad));
	return completed(by == qp ? cq : peer_cq);
}

static void report(enum ibv_wc_status status, bool right)
{
	printf("%s\n", status ? ibv_wc_status_str(status) : right ? "right" : "wrong bytes");
}

static void send_from(unsigned which, size_t bytes, size_t at, uint32_t n)
{
	enum ibv_wc_status status;

	memset(peer_memory, 0, bytes);
	post_recv(peer_qp, in_peer(bytes));
	status = post(qp, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, in_region(which, bytes, at));
	if (!status)
		CHECK(!completed(peer_cq));
	report(status, holds(peer_memory, bytes, n));
}

static void receive_into(unsigned which, size_t bytes, size_t at, uint32_t n)
{
	enum ibv_wc_status status;

	fill(peer_memory, bytes, n);
	post_recv(qp, in_region(which, bytes, at));
	status = post(peer_qp, (struct ibv_send_wr){.opcode = IBV_WR_SEND}, in_peer(bytes));
	report(status ? status : completed(cq), true);
}

static void one_sided(enum ibv_wr_opcode opcode, unsigned which, size_t bytes, size_t at,
		      uint32_t n)
{
	struct ibv_send_wr wr = {.opcode = opcode};
	enum ibv_wc_status status;

	wr.wr.rdma.remote_addr = in_region(which, bytes, at).addr;
	wr.wr.rdma.rkey = mr[which]->rkey;
	fill(peer_memory, bytes, opcode == IBV_WR_RDMA_READ ? ~n : n);
	status = post(peer_qp, wr, in_peer(bytes));
	report(status, holds(peer_memory, bytes, n));
}

static void atomic(unsigned which, size_t at, bool is_swap, uint64_t one, uint64_t other)
{
	struct ibv_send_wr wr = {.opcode = is_swap ? IBV_WR_ATOMIC_CMP_AND_SWP :
						     IBV_WR_ATOMIC_FETCH_AND_ADD};
	enum ibv_wc_status status;

	wr.wr.atomic.remote_addr = in_region(which, 8, at).addr;
	wr.wr.atomic.rkey = mr[which]->rkey;
	wr.wr.atomic.compare_add = one;
	wr.wr.atomic.swap = other;
	status = post(peer_qp, wr, in_peer(8));
	if (status)
		report(status, false);
	else
		printf("%lu\n", *(uint64_t *)peer_memory);
}

static void own(void)
{
	mr[2] = ibv_reg_mr(pd, own_memory, sizeof(own_memory), REMOTE);
	CHECK(mr[2]);
	fill(own_memory, sizeof(own_memory), 9);
	printf("registered\n");
}

static void twice(uint32_t handle)
{
	struct ibv_mr *again = ibv_import_mr(pd, handle);

	CHECK(again && again->lkey == mr[0]->lkey);
	CHECK(ibv_dereg_mr(again) == EOPNOTSUPP);
	ibv_unimport_mr(again);
	printf("undone\n");
}

static void unimport(void)
{
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(peer_qp) && !ibv_destroy_cq(cq));
	ibv_unimport_mr(mr[0]);
	ibv_unimport_mr(mr[1]);
	ibv_unimport_dm(dm);
	ibv_unimport_pd(pd);
	printf("unimported\n");
}

static void make_or_change(const char *word, const uint64_t *n, const char *path)
{
	uint32_t number = (uint32_t)n[0];
	bool right;

	if (!strcmp(word, "make")) {
		make(n[0], n[1]);
	} else if (!strcmp(word, "give")) {
		give(path);
	} else if (!strcmp(word, "fork")) {
		become_child();
	} else if (!strcmp(word, "fill")) {
		fill(memory, memory_bytes, number);
		printf("filled\n");
	} else if (!strcmp(word, "check")) {
		right = holds(memory + n[1], n[2], number);
		printf("%s\n", right ? "right" : "wrong bytes");
	} else if (!strcmp(word, "dereg")) {
		printf("%d\n", ibv_dereg_mr(mr[0]));
	} else if (!strcmp(word, "unmap")) {
		printf("%d\n", munmap(map, map_bytes));
	} else {
		printf("what is %s\n", word);
	}
}

static bool use(const char *word, const uint64_t *n)
{
	unsigned which = (unsigned)n[0];

	if (!strcmp(word, "send"))
		send_from(which, n[1], n[2], (uint32_t)n[3]);
	else if (!strcmp(word, "receive"))
		receive_into(which, n[1], n[2], (uint32_t)n[3]);
	else if (!strcmp(word, "write"))
		one_sided(IBV_WR_RDMA_WRITE, which, n[1], n[2], (uint32_t)n[3]);
	else if (!strcmp(word, "read"))
		one_sided(IBV_WR_RDMA_READ, which, n[1], n[2], (uint32_t)n[3]);
	else if (!strcmp(word, "add"))
		atomic(which, n[1], false, n[2], 0);
	else if (!strcmp(word, "swap"))
		atomic(which, n[1], true, n[2], n[3]);
	else
		return false;
	return true;
}

static void obey(const char *line)
{
	char word[16] = "", path[256] = "";
	uint64_t n[5] = {0};
	uint32_t stored;

	sscanf(line, "%15s %lu %lu %lu %lu %lu", word, &n[0], &n[1], &n[2], &n[3], &n[4]);
	sscanf(line, "%*s %255s", path);
	stored = (uint32_t)n[0];
	if (!strcmp(word, "take")) {
		take(path);
	} else if (!strcmp(word, "inherit")) {
		import_device(100);
	} else if (!strcmp(word, "import")) {
		import(stored, (uint32_t)n[1], (uint32_t)n[2], (uint32_t)n[3], n[4]);
	} else if (!strcmp(word, "pair")) {
		pair();
	} else if (!strcmp(word, "own")) {
		own();
	} else if (!strcmp(word, "twice")) {
		twice(stored);
	} else if (!strcmp(word, "dm")) {
		printf("%d\n", ibv_memcpy_to_dm(dm, 1024, &stored, sizeof(stored)));
	} else if (!strcmp(word, "has")) {
		CHECK(!ibv_memcpy_from_dm(&stored, dm, 1024, sizeof(stored)));
		printf("%u\n", stored);
	} else if (!strcmp(word, "unimport")) {
		unimport();
	} else if (!strcmp(word, "end")) {
		printf("%d\n", ibv_close_device(context));
	} else if (!use(word, n)) {
		make_or_change(word, n, path);
	}
}

int main(void)
{
	char line[512];

	while (fgets(line, sizeof(line), stdin)) {
		obey(line);
		fflush(stdout);
	}
	return 0;
}
