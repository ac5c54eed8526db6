/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a program may make the rdma_cm endpoint keep: ids and news that nobody reads, of a session and
 * of all programs of its node.
 */
#include "../test.h"

#include <errno.h>
#include <rdma/rdma_user_cm.h>
#include <unistd.h>

#include "../core/rdma_cm_net.h"
#include "abi/lane.h"
#include "abi/session.h"
#include "abi/told.h"
#include "access/listener.h"
#include "access/quota.h"
#include "access/ucma.h"
#include "access/ucma_private.h"
#include "runtime/posix/closer.h"
#include "runtime/posix/rt_posix.h"

#define AT_ONCE 16 /* commands in a turn */

static struct rt *rt;
static struct ucma *ucma;
static int news, commands; /* of a program of n1 */
static struct quota_share other; /* another session of a program of n1 */

static void turn(int n)
{
	while (n--)
		rt_posix_turn(rt);
}

static void drop_other(struct quota_share *quota)
{
	quota_leave(quota);
}

static int open_all(void **state)
{
	struct abi_open open = {.magic = ABI_MAGIC, .version = ABI_VERSION,
				.kind = ABI_OPEN_RDMA_CM, .port = 1, .node = "n1",
				.device = "fake0"};
	struct peer peer = {.pid = getpid()};
	int pair[2], fds[2];
	char reply[64];

	assert_int_equal(rt_posix_create(&rt), 0);
	net = net_create_on(rt, 4);
	net->packet_ns = 0;
	assert_int_equal(ib_sa_init(rt), 0);
	assert_int_equal(ib_cm_init(rt), 0);
	assert_int_equal(rdma_cm_init(rt), 0);
	assert_int_equal(rdma_cm_set_hosts(rt, &hosts), 0);
	assert_int_equal(ucma_create(rt, NULL, &ucma), 0);
	sa = fake_sa_open(net->node[0]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	news = pair[0];
	ucma_serve(ucma, pair[1], &peer);
	assert_true(send(news, &open, sizeof(open), 0) > 0);
	turn(2);
	assert_true(rt_receive(news, reply, sizeof(reply), MSG_DONTWAIT, fds, 2) > 0);
	commands = fds[0];
	close(fds[1]);
	other = (struct quota_share){0};
	quota_arrive(&other, rt, news, 1, drop_other);
	assert_int_equal(quota_open(&other, "n1"), 0);
	return 0;
}

static int close_all(void **state)
{
	quota_leave(&other);
	close(news);
	close(commands);
	turn(8);
	ucma_destroy(ucma);
	rdma_cm_set_hosts(rt, NULL);
	rdma_cm_cleanup(rt);
	ib_cm_cleanup(rt);
	ib_sa_cleanup(rt);
	fake_sa_close(sa);
	assert_int_equal(net_take_down(net), 0);
	rt_posix_destroy(rt);
	return 0;
}

static void say(u32 command, const void *body, size_t bytes, size_t room)
{
	struct rdma_ucm_cmd_hdr head = {command, (u16)bytes, (u16)room};
	u8 message[512];

	memcpy(message, &head, sizeof(head));
	if (bytes)
		memcpy(message + sizeof(head), body, bytes);
	assert_true(send(commands, message, sizeof(head) + bytes, 0) > 0);
}

/* Return: the error of the next answer. @number: the first word of what it has; NULL */
static int answered(u32 *number)
{
	struct {
		struct abi_reply reply;
		u32 body[512];
	} in;

	assert_true(recv(commands, &in, sizeof(in), MSG_DONTWAIT) > 0);
	if (number)
		*number = in.body[0];
	return in.reply.error;
}

/* Return: how many ids of @most the program gets; @number: of the last */
static unsigned int make_ids(unsigned int most, u32 *number)
{
	const struct rdma_ucm_create_id cmd = {.uid = 1, .ps = RDMA_PS_TCP};
	unsigned int made = 0;

	while (made < most) {
		unsigned int batch = MIN(most - made, (unsigned int)AT_ONCE);
		bool refused = false;

		for (unsigned int i = 0; i < batch; i++)
			say(RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), 4);
		turn((int)batch);
		while (batch--) {
			int ret = answered(number);

			assert_true(ret == 0 || ret == -ENOMEM);
			refused |= ret != 0;
			made += !ret;
		}
		if (refused)
			break;
	}
	return made;
}

/* A program waits for an answer before it sends anything else, so softibd does not look for more. */
static void test_an_answer_ends_a_sessions_turn(void **state)
{
	const struct rdma_ucm_create_id cmd = {.uid = 1, .ps = RDMA_PS_TCP};
	char answer[64];

	for (int i = 0; i < 2; i++)
		say(RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), 4);
	for (int i = 0; i < 2; i++) {
		turn(1);
		assert_true(recv(commands, answer, sizeof(answer), MSG_DONTWAIT) > 0);
		assert_int_equal(recv(commands, answer, sizeof(answer), MSG_DONTWAIT), -1);
	}
}

/* Return: what makes the programs of n1 have all of their share */
static struct quota_node *fill_node(size_t but)
{
	struct quota_node *charged = quota_take(&other, QUOTA_NODE_BYTES - but);

	assert_non_null(charged);
	return charged;
}

static void test_a_session_has_so_many_ids(void **state)
{
	u32 number;

	assert_int_equal(make_ids(UCMA_IDS_MAX + 20, &number), UCMA_IDS_MAX);
}

static void test_ids_are_of_the_share_of_their_node(void **state)
{
	const size_t left = (size_t)100 * UCMA_ID_BYTES;
	struct quota_node *charged = fill_node(left);
	u32 number;

	assert_in_range(make_ids(1000, &number), 100 - AT_ONCE, 100);
	quota_give(charged, &other, QUOTA_NODE_BYTES - left);
	assert_int_equal(make_ids(1000, &number), 1000);
}

static void test_a_session_has_some_in_any_case(void **state)
{
	struct quota_node *charged = fill_node(0);
	u32 number;

	assert_int_equal(make_ids(1000, &number), QUOTA_FREE_BYTES / UCMA_ID_BYTES);
	quota_give(charged, &other, QUOTA_NODE_BYTES);
}

/* Three nodes have all that a node may have. What is left is for others, each as much as an equal share. */
static void test_the_last_eighth_is_for_nodes_with_less(void **state)
{
	static const char *const names[] = {"n0", "n2", "n3"};
	struct quota_share quota[ARRAY_SIZE(names)] = {0};
	struct quota_node *charged[ARRAY_SIZE(names) + 1];
	const size_t share = QUOTA_TOTAL_BYTES / 5; /* four nodes, and one that may come */

	charged[3] = fill_node(0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		quota_arrive(&quota[i], rt, news, 1, drop_other);
		assert_int_equal(quota_open(&quota[i], names[i]), 0);
		if (i < 2) {
			charged[i] = quota_take(&quota[i], QUOTA_NODE_BYTES);
			assert_non_null(charged[i]);
		}
	}
	assert_null(quota_take(&quota[2], share + 1));
	charged[2] = quota_take(&quota[2], share);
	assert_non_null(charged[2]);
	assert_null(quota_take(&quota[2], 1 << 20));
	quota_give(charged[2], &quota[2], share);
	quota_give(charged[3], &other, QUOTA_NODE_BYTES);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (i < 2)
			quota_give(charged[i], &quota[i], QUOTA_NODE_BYTES);
		quota_leave(&quota[i]);
	}
}

/* A program resolves an address that nobody has, over and over, and does not read that it failed. */
static void test_news_that_nobody_reads_are_of_the_share_of_their_node(void **state)
{
	struct rdma_ucm_resolve_ip cmd = {.timeout_ms = 1};
	struct sockaddr_in nobody = ip("10.9.9.9", PORT);
	struct rdma_ucm_get_event get = {.response = 0};
	struct quota_node *charged;
	unsigned int kept = 0;

	assert_int_equal(make_ids(1, &cmd.id), 1);
	charged = fill_node(QUOTA_FREE_BYTES);
	memcpy(&cmd.dst_addr, &nobody, sizeof(nobody));
	for (int i = 0; i < 1000; i++) {
		say(RDMA_USER_CM_CMD_RESOLVE_IP, &cmd, sizeof(cmd), 0);
		turn(3);
		assert_int_equal(answered(NULL), 0);
	}
	do {
		say(RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), sizeof(struct rdma_ucm_event_resp));
		turn(1);
	} while (!answered(NULL) && ++kept);
	assert_in_range(kept, 10, QUOTA_FREE_BYTES / sizeof(struct ucma_event));
	quota_give(charged, &other, QUOTA_NODE_BYTES - QUOTA_FREE_BYTES);
}

/* Return: the type of the next event that the program reads; -1: there is none */
static int next_event(void)
{
	const struct rdma_ucm_get_event get = {.response = 0};
	struct {
		struct abi_reply reply;
		struct rdma_ucm_event_resp resp;
		u8 ahead[512];
	} in = {0};

	turn(8);
	say(RDMA_USER_CM_CMD_GET_EVENT, &get, sizeof(get), sizeof(in.resp));
	turn(1);
	assert_true(recv(commands, &in, sizeof(in), MSG_DONTWAIT) > 0);
	return in.reply.error ? -1 : (int)in.resp.event;
}

/** struct paths - the option RDMA_OPTION_IB_PATH with so many paths */
struct paths {
	struct rdma_ucm_set_option cmd;
	struct ib_path_rec_data of[2];
};

/* Return: the error. @bytes: of paths; @len: what the command says of them */
static int set_paths(struct paths *paths, size_t bytes, size_t len)
{
	paths->cmd.level = RDMA_OPTION_IB;
	paths->cmd.optname = RDMA_OPTION_IB_PATH;
	paths->cmd.optlen = (u32)len;
	say(RDMA_USER_CM_CMD_SET_OPTION, paths, sizeof(paths->cmd) + bytes, 0);
	turn(1);
	return answered(NULL);
}

/* What librdmacm does with a path of ibacm: it stands in place of a query */
static void test_a_program_brings_its_path(void **state)
{
	struct rdma_ucm_resolve_ip resolve = {.timeout_ms = 1000};
	const struct sockaddr_in to = ip("10.0.0.2", PORT);
	struct paths paths = {0};
	const size_t one = sizeof(paths.of[0]);

	assert_int_equal(make_ids(1, &paths.cmd.id), 1);
	paths.of[0].flags = IB_PATH_ALTERNATE;
	paths.of[1].flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	assert_int_equal(set_paths(&paths, 2 * one, 2 * one), -EINVAL); /* no address is resolved */
	resolve.id = paths.cmd.id;
	memcpy(&resolve.dst_addr, &to, sizeof(to));
	say(RDMA_USER_CM_CMD_RESOLVE_IP, &resolve, sizeof(resolve), 0);
	turn(1);
	assert_int_equal(answered(NULL), 0);
	assert_int_equal(next_event(), RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(set_paths(&paths, 0, 0), -EINVAL);
	assert_int_equal(set_paths(&paths, one - 1, one - 1), -EINVAL);
	assert_int_equal(set_paths(&paths, one, 2 * one), -EINVAL);
	assert_int_equal(set_paths(&paths, one, one), -EINVAL); /* none that goes both ways */
	assert_int_equal(next_event(), -1);
	assert_int_equal(set_paths(&paths, 2 * one, 2 * one), 0);
	assert_int_equal(next_event(), RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_int_equal(set_paths(&paths, 2 * one, 2 * one), -EINVAL); /* there is one */
}

/** struct message - what the program reads on the socket of events */
struct message {
	struct abi_cm_event event;
	u8 ahead[UCMA_RESPONSE_MAX];
};

/* Return: its length; -1: there is none */
static ssize_t next_message(struct message *message)
{
	turn(8);
	return recv(news, message, sizeof(*message), MSG_DONTWAIT);
}

/* It comes by the clock, on a busy machine after many turns. Return: its length */
static ssize_t await_message(struct message *message)
{
	ssize_t n;

	do
		n = next_message(message);
	while (n < 0);
	return n;
}

/* A new id has an event, which is sent. Return: its number */
static u32 make_resolved(void)
{
	const struct sockaddr_in to = ip("10.0.0.2", PORT);
	struct rdma_ucm_resolve_ip resolve = {.timeout_ms = 1000};

	assert_int_equal(make_ids(1, &resolve.id), 1);
	memcpy(&resolve.dst_addr, &to, sizeof(to));
	say(RDMA_USER_CM_CMD_RESOLVE_IP, &resolve, sizeof(resolve), 0);
	turn(4);
	assert_int_equal(answered(NULL), 0);
	return resolve.id;
}

static void say_taken(u32 number)
{
	const struct abi_cm_taken cmd = {.number = number};

	say(ABI_CM_TAKEN | ABI_CM_TOLD, &cmd, sizeof(cmd), 0);
}

static struct abi_cm_gone destroy(u32 id)
{
	const struct rdma_ucm_destroy_id cmd = {.id = id};
	struct {
		struct abi_reply reply;
		struct abi_cm_gone gone;
	} in;

	say(RDMA_USER_CM_CMD_DESTROY_ID, &cmd, sizeof(cmd), sizeof(struct rdma_ucm_destroy_id_resp));
	turn(1);
	assert_int_equal(recv(commands, &in, sizeof(in), MSG_DONTWAIT), sizeof(in));
	assert_int_equal(in.reply.error, 0);
	return in.gone;
}

static void destroyed(u32 id, u32 events_reported, u32 excess, u32 last)
{
	struct abi_cm_gone gone = destroy(id);

	assert_int_equal(gone.events_reported, events_reported);
	assert_int_equal(gone.excess, excess);
	assert_int_equal(gone.last, last);
}

static void test_a_message_brings_its_event(void **state)
{
	struct message message;
	u32 id = make_resolved();
	const struct abi_ahead *ahead = (const void *)message.ahead;

	assert_true(await_message(&message) > (ssize_t)sizeof(message.event));
	assert_int_equal(message.event.number, 1);
	assert_int_equal(message.event.resp.event, RDMA_CM_EVENT_ADDR_RESOLVED);
	assert_int_equal(message.event.resp.id, id);
	assert_int_equal(ahead->id, id);
	say_taken(1);
	assert_int_equal(next_event(), -1);
	destroyed(id, 1, 0, 1);
	assert_int_equal(next_message(&message), -1);
}

/* It is reported when it is taken, and goes with its id before. */
static void test_an_event_that_is_not_taken_is_in_excess(void **state)
{
	struct message message;
	u32 first = make_resolved(), second = make_resolved();

	assert_true(await_message(&message) > 0);
	destroyed(first, 0, 1, 2);
	say_taken(1); /* too late: it is gone */
	assert_int_equal(next_event(), RDMA_CM_EVENT_ADDR_RESOLVED);
	say_taken(2); /* GET_EVENT was faster */
	destroyed(second, 1, 0, 2);
	make_resolved();
	assert_true(await_message(&message) > 0);
	assert_int_equal(message.event.number, 2);
	assert_true(await_message(&message) > 0);
	assert_int_equal(message.event.number, 3);
}

/* Events that find no room in the socket are sent later, and are in nobody's way before. */
static void test_events_wait_for_room(void **state)
{
	enum { IDS = 1000 };
	struct message message;
	u32 id[IDS];

	for (u32 i = 0; i < IDS; i++)
		id[i] = make_resolved();
	assert_int_equal(destroy(id[IDS - 1]).excess, 0); /* its event was not sent */
	for (u32 i = 0; i < IDS - 1; i++) {
		assert_true(await_message(&message) > 0);
		assert_int_equal(message.event.number, i + 1);
		assert_int_equal(message.event.resp.id, id[i]);
		say_taken(i + 1);
	}
	assert_int_equal(next_message(&message), -1);
	assert_int_equal(next_event(), -1);
}

/* Commands that are not answered come before the one that is, in the same message. */
static void test_told_commands_precede_the_asked_one(void **state)
{
	struct {
		struct rdma_ucm_cmd_hdr told;
		struct abi_cm_taken taken;
		struct rdma_ucm_cmd_hdr asked;
		struct rdma_ucm_destroy_id destroy;
	} both = {
		.told = {ABI_CM_TAKEN | ABI_CM_TOLD, sizeof(both.taken), 0},
		.taken = {1, 0},
		.asked = {RDMA_USER_CM_CMD_DESTROY_ID, sizeof(both.destroy), 4},
		.destroy = {.id = make_resolved()},
	};
	u32 reported;

	assert_true(send(commands, &both, sizeof(both), 0) > 0);
	turn(1);
	assert_int_equal(answered(&reported), 0);
	assert_int_equal(reported, 1);
	say(ABI_CM_TAKEN, &both.taken, sizeof(both.taken), 0);
	turn(1);
	assert_int_equal(answered(NULL), 0);
	say(ABI_CM_TAKEN | ABI_CM_TOLD, &both.taken, 4, 0); /* the next one would not be aligned */
	turn(1);
	assert_int_equal(answered(NULL), -EINVAL);
}

/* --- ids that are granted --- */

static void tell_to_resolve_route(u32 id)
{
	const struct rdma_ucm_resolve_route cmd = {.id = id, .timeout_ms = 1000};

	say(RDMA_USER_CM_CMD_RESOLVE_ROUTE | ABI_CM_TOLD, &cmd, sizeof(cmd), 0);
}

/* Return: the answer to CREATE_ID */
static struct abi_cm_created ask_id(void)
{
	const struct rdma_ucm_create_id cmd = {.uid = 1, .ps = RDMA_PS_TCP};
	struct {
		struct abi_reply reply;
		struct abi_cm_created created;
	} in;

	say(RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), sizeof(struct rdma_ucm_create_id_resp));
	turn(1);
	assert_int_equal(recv(commands, &in, sizeof(in), MSG_DONTWAIT), sizeof(in));
	assert_int_equal(in.reply.error, 0);
	return in.created;
}

static void tell_id(u32 number)
{
	const struct rdma_ucm_create_id cmd = {.uid = 1, .response = number, .ps = RDMA_PS_TCP};

	say(RDMA_USER_CM_CMD_CREATE_ID | ABI_CM_TOLD, &cmd, sizeof(cmd), 0);
	turn(1);
}

/* Return: the error of a command for the id, which does nothing */
static int try_id(u32 number)
{
	const struct rdma_ucm_query cmd = {.id = number, .option = RDMA_USER_CM_QUERY_GID};

	say(RDMA_USER_CM_CMD_QUERY, &cmd, sizeof(cmd), 512);
	turn(1);
	return answered(NULL);
}

static void test_a_program_is_granted_as_many_ids_as_it_has_created(void **state)
{
	u32 created = 0, granted = 0;

	while (granted < UCMA_GRANT_MAX) {
		struct abi_cm_created got = ask_id();

		granted = got.count;
		assert_int_equal(granted, MIN(++created, (u32)UCMA_GRANT_MAX));
		for (u32 i = 0; i < granted; i++, created++) {
			assert_int_equal(try_id(got.first + i), -ENOENT);
			tell_id(got.first + i);
			assert_int_equal(try_id(got.first + i), 0);
		}
	}
	destroyed(1, 0, 0, 0);
}

/* Numbers are given in their order, each once, and those of an earlier grant are nobody's. */
static void test_no_other_number_is_created(void **state)
{
	struct abi_cm_created first, second;

	ask_id();
	first = ask_id();
	assert_int_equal(first.count, 2);
	tell_id(first.first + 1);
	assert_int_equal(try_id(first.first + 1), -ENOENT);
	tell_id(first.first);
	tell_id(first.first);
	assert_int_equal(try_id(first.first), 0);
	second = ask_id();
	tell_id(first.first + 1);
	assert_int_equal(try_id(first.first + 1), -ENOENT);
	tell_id(second.first);
	assert_int_equal(try_id(second.first), 0);
	tell_id(second.id);
	assert_int_equal(try_id(second.id), 0);
}

/* The memory was charged when they were granted: none is left for another session. */
static void test_granted_ids_are_of_the_share_of_their_node(void **state)
{
	struct quota_node *charged = fill_node(0);
	unsigned int ids = 0;
	struct abi_cm_created got;

	do {
		got = ask_id();
		ids += 1 + got.count;
		for (u32 i = 0; i < got.count; i++) {
			tell_id(got.first + i);
			assert_int_equal(try_id(got.first + i), 0);
		}
	} while (ids < QUOTA_FREE_BYTES / UCMA_ID_BYTES);
	assert_int_equal(ids, QUOTA_FREE_BYTES / UCMA_ID_BYTES);
	assert_int_equal(make_ids(1, &got.id), 0);
	quota_give(charged, &other, QUOTA_NODE_BYTES);
}

/* The program hears of it by the id's next command. */
static void test_an_id_without_memory_fails(void **state)
{
	struct abi_cm_created got = ask_id();
	const struct rdma_ucm_resolve_route route = {.id = got.first, .timeout_ms = 1};

	assert_int_equal(got.count, 1);
	rt_fail_alloc(1);
	tell_id(got.first);
	rt_fail_alloc(0);
	assert_int_equal(try_id(got.first), -ENOMEM);
	tell_to_resolve_route(got.first);
	say(RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0);
	turn(1);
	assert_int_equal(answered(NULL), -ENOMEM);
	destroyed(got.first, 0, 0, 0);
	assert_int_equal(try_id(got.first), -ENOENT);
}

/* What a program tells of before it has an answer is one message with what it asks next. */
static void test_ids_are_told_with_a_command(void **state)
{
	struct abi_cm_created got = ask_id();
	struct {
		struct rdma_ucm_cmd_hdr told;
		struct rdma_ucm_create_id create;
		struct rdma_ucm_cmd_hdr asked;
		struct rdma_ucm_query query;
	} both = {
		.told = {RDMA_USER_CM_CMD_CREATE_ID | ABI_CM_TOLD, sizeof(both.create), 0},
		.create = {.uid = 1, .response = got.first, .ps = RDMA_PS_TCP},
		.asked = {RDMA_USER_CM_CMD_QUERY, sizeof(both.query), 512},
		.query = {.id = got.first, .option = RDMA_USER_CM_QUERY_GID},
	};

	assert_true(send(commands, &both, sizeof(both), 0) > 0);
	turn(1);
	assert_int_equal(answered(NULL), 0);
}

/* A message is as long a piece of work for softibd as one command, or little longer. */
static void test_few_commands_are_told_in_a_message(void **state)
{
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct abi_cm_taken taken;
	} many[ABI_CM_TOLD_MAX + 1];
	struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_resolve_route cmd;
	} two[2];

	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		many[i].hdr = (struct rdma_ucm_cmd_hdr){ABI_CM_TAKEN | ABI_CM_TOLD, sizeof(many[i].taken), 0};
		many[i].taken = (struct abi_cm_taken){.number = 1};
	}
	assert_true(send(commands, many, sizeof(many), 0) > 0);
	turn(1);
	assert_int_equal(answered(NULL), -EINVAL);
	assert_true(send(commands, many, sizeof(many) - sizeof(many[0]), 0) > 0);
	turn(1);
	assert_int_equal(recv(commands, many, sizeof(many), MSG_DONTWAIT), -1);
	for (size_t i = 0; i < ARRAY_SIZE(two); i++) {
		two[i].hdr = (struct rdma_ucm_cmd_hdr){RDMA_USER_CM_CMD_RESOLVE_ROUTE | ABI_CM_TOLD,
						       sizeof(two[i].cmd), 0};
		two[i].cmd = (struct rdma_ucm_resolve_route){.id = 1};
	}
	assert_true(send(commands, two, sizeof(two), 0) > 0);
	turn(1);
	assert_int_equal(answered(NULL), -EINVAL);
}

/* --- the ring by which a program tells --- */

static void open_ring(struct abi_told *ring)
{
	int fds[ABI_TOLD_FDS];
	char reply[64];

	say(ABI_CM_TOLD_RING, NULL, 0, 0);
	turn(1);
	assert_true(rt_receive(commands, reply, sizeof(reply), MSG_DONTWAIT, fds, ABI_TOLD_FDS) > 0);
	assert_true(abi_told_map(ring, fds));
}

static void test_a_ring_is_run_before_the_next_command(void **state)
{
	struct abi_cm_created got = ask_id();
	const struct rdma_ucm_create_id cmd = {.uid = 1, .response = got.first, .ps = RDMA_PS_TCP};
	const struct rdma_ucm_cmd_hdr hdr = {RDMA_USER_CM_CMD_CREATE_ID | ABI_CM_TOLD, sizeof(cmd), 0};
	const struct iovec record[2] = {{(void *)&hdr, sizeof(hdr)}, {(void *)&cmd, sizeof(cmd)}};
	struct abi_told ring;

	open_ring(&ring);
	turn(2 * RT_POLLER_LINGER); /* softibd looks at the ring no more */
	assert_true(abi_told_put(&ring, record, 2));
	assert_true(abi_ring_publish(&ring.tx)); /* the doorbell is not rung */
	assert_int_equal(try_id(got.first), 0);
	say(ABI_CM_TOLD_RING, NULL, 0, 0);
	turn(1);
	assert_int_equal(answered(NULL), -EEXIST);
	abi_told_unmap(&ring);
}

/* Commands that are answered are not answered there, and a ring in a ring is none. */
static void test_nothing_in_a_ring_is_answered(void **state)
{
	const struct rdma_ucm_cmd_hdr hdr = {.cmd = ABI_CM_TOLD_RING};
	struct abi_told ring;
	char byte;

	open_ring(&ring);
	assert_true(abi_told_put(&ring, &(struct iovec){(void *)&hdr, sizeof(hdr)}, 1));
	assert_true(abi_told_put(&ring, &(struct iovec){(void *)&hdr, 3}, 1));
	abi_told_flush(&ring);
	turn(2);
	assert_int_equal(recv(commands, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	abi_told_unmap(&ring);
}

static void test_nonsense_in_a_ring_ends_the_session(void **state)
{
	struct abi_told ring;
	char byte;

	open_ring(&ring);
	memset(ring.tx.ring->data, 0x77, 8);
	atomic_store(&ring.tx.ring->tail, 8);
	turn(8);
	assert_int_equal(recv(commands, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(recv(news, &byte, 1, MSG_DONTWAIT), 0);
	abi_told_unmap(&ring);
}

/* Who reads thousands of events and takes the last one first does not make softibd search for it. */
static void test_an_event_far_from_the_oldest_is_not_sought(void **state)
{
	enum { EVENTS = 1100 };
	struct message message;
	u32 first = 0, last = 0;

	for (u32 i = 0; i < EVENTS; i++) {
		last = make_resolved();
		first = first ? first : last;
		assert_true(await_message(&message) > 0);
	}
	say_taken(EVENTS);
	destroyed(last, 0, 1, EVENTS);
	say_taken(1);
	destroyed(first, 1, 0, EVENTS);
}

/* Does a message say that softibd would accept the command? */
static bool accepts(const struct message *message, u32 cmd)
{
	const u8 *at = message->ahead + sizeof(struct abi_ahead);
	struct abi_ahead_answer answer;

	for (;;) {
		memcpy(&answer, at, sizeof(answer));
		if (!answer.cmd || answer.cmd == cmd)
			return answer.cmd;
		at += sizeof(answer) + answer.bytes;
	}
}

static void test_a_command_that_is_told_succeeds(void **state)
{
	struct message message = {0};
	u32 id = make_resolved();

	assert_true(await_message(&message) > 0);
	assert_true(accepts(&message, RDMA_USER_CM_CMD_RESOLVE_ROUTE));
	assert_false(accepts(&message, RDMA_USER_CM_CMD_CONNECT));
	say_taken(1);
	tell_to_resolve_route(id);
	message = (struct message){0};
	assert_true(await_message(&message) > 0);
	assert_int_equal(message.event.resp.event, RDMA_CM_EVENT_ROUTE_RESOLVED);
	assert_true(accepts(&message, RDMA_USER_CM_CMD_CONNECT));
	assert_int_equal(recv(commands, &message, sizeof(message), MSG_DONTWAIT), -1);
}

/* The event that tells why it fails comes in place of the answer; if there is one, it suffices. */
static void test_a_command_that_is_told_fails_by_an_event(void **state)
{
	struct message message;
	u32 id = make_resolved();

	assert_true(await_message(&message) > 0);
	say_taken(1);
	tell_to_resolve_route(id);
	assert_true(await_message(&message) > 0);
	tell_to_resolve_route(id);
	assert_int_equal(next_message(&message), -1);
	say_taken(2);
	tell_to_resolve_route(id); /* it is resolved */
	assert_true(await_message(&message) > 0);
	assert_int_equal(message.event.resp.event, RDMA_CM_EVENT_ROUTE_ERROR);
	assert_int_equal((int)message.event.resp.status, -EINVAL);
	assert_int_equal(message.event.resp.id, id);
	tell_to_resolve_route(id + 1); /* there is none */
	assert_int_equal(next_message(&message), -1);
}

static void tell_to_resolve_addr(u32 id)
{
	const struct sockaddr_in to = ip("10.0.0.2", PORT);
	struct rdma_ucm_resolve_addr cmd = {.id = id, .timeout_ms = 1000, .dst_size = sizeof(to)};

	memcpy(&cmd.dst_addr, &to, sizeof(to));
	say(RDMA_USER_CM_CMD_RESOLVE_ADDR | ABI_CM_TOLD, &cmd, sizeof(cmd), 0);
}

/* An address is resolved, or it is not, and both is told by an event. */
static void test_an_address_is_resolved_by_telling(void **state)
{
	struct message message;
	u32 id;

	assert_int_equal(make_ids(1, &id), 1);
	tell_to_resolve_addr(id);
	assert_true(await_message(&message) > 0);
	assert_int_equal(message.event.resp.event, RDMA_CM_EVENT_ADDR_RESOLVED);
	say_taken(1);
	tell_to_resolve_addr(id); /* it is resolved */
	assert_true(await_message(&message) > 0);
	assert_int_equal(message.event.resp.event, RDMA_CM_EVENT_ADDR_ERROR);
	assert_int_equal((int)message.event.resp.status, -EINVAL);
	assert_int_equal(message.event.resp.id, id);
	assert_int_equal(recv(commands, &message, sizeof(message), MSG_DONTWAIT), -1);
}

/* --- flows that are answered ahead --- */

static struct abi_resolve asked;
static struct abi_resolve_resp resolved;

static int driver_command(struct ib_ucontext *context, u32 command, const void *in, void *out, int fds[2],
			  unsigned int *num_fds)
{
	assert_int_equal(command, ABI_CMD_RESOLVE);
	assert_null(fds); /* none could be passed on */
	memcpy(&asked, in, sizeof(asked));
	memcpy(out, &resolved, sizeof(resolved));
	return 0;
}

/* The program connects to n2. Return: the event that says so is in @message */
static void connect_to_n2(struct message *message)
{
	struct rdma_ucm_connect cmd = {.id = make_resolved(), .conn_param = {.qp_num = 0x222, .valid = 1}};
	struct rdma_conn_param param = param_of(0x111, "");

	assert_true(await_message(message) > 0);
	say_taken(message->event.number);
	tell_to_resolve_route(cmd.id);
	assert_true(await_message(message) > 0);
	say_taken(message->event.number);
	server.num = 0;
	say(RDMA_USER_CM_CMD_CONNECT | ABI_CM_TOLD, &cmd, sizeof(cmd) / 8 * 8, 0);
	while (!server.num)
		turn(1);
	assert_int_equal(rdma_accept(server.peer, &param), 0);
	memset(message, 0, sizeof(*message));
	assert_true(await_message(message) > 0);
	assert_int_equal(message->event.resp.event, RDMA_CM_EVENT_CONNECT_RESPONSE);
	destroy(cmd.id);
	rdma_destroy_id(server.peer);
	server.peer = NULL;
}

/* Return: the flow that came with an event; NULL */
static const struct abi_flow_answer *flow_of(const struct message *message)
{
	struct abi_ahead_answer answer;
	size_t at = sizeof(struct abi_ahead);

	do {
		memcpy(&answer, message->ahead + at, sizeof(answer));
		at += sizeof(answer);
		if (answer.cmd == ABI_AHEAD_FLOW)
			return (const void *)(message->ahead + at);
		at += answer.bytes;
	} while (answer.cmd);
	return NULL;
}

/* The flow of a QP goes with the event after which librdmacm takes the QP to RTR, if the process has one
 * context alone and softibd knows the way and the owner of the peer. */
static void test_a_flow_is_answered_ahead(void **state)
{
	struct ib_device *device = &net->node[1]->ib;
	const struct abi_context_resp resp = {.program = 5};
	struct ib_ucontext context[2] = {{.device = device, .pid = getpid(), .driver_resp = &resp},
					 {.device = device, .pid = getpid(), .driver_resp = &resp}};
	struct ib_device_ops ops = *device->ops;
	const struct ib_device_ops *before = device->ops;
	const struct abi_flow_answer *flow;
	struct message message;

	ops.driver_command = driver_command;
	device->ops = &ops;
	listen_at("0.0.0.0", RDMA_PS_TCP);
	resolved = (struct abi_resolve_resp){.lane = 4, .flow = 1, .epoch = 2, .owner = 7, .mtu_bytes = 2048};
	connect_to_n2(&message);
	assert_null(flow_of(&message)); /* no context */

	list_add_tail(&context[0].node, &device->ucontext_list);
	connect_to_n2(&message);
	flow = flow_of(&message);
	assert_non_null(flow);
	assert_int_equal(flow->program, 5);
	assert_int_equal(flow->key.dest_qpn, 0x111);
	assert_int_equal(flow->key.port_num, 1);
	assert_int_equal(flow->key.pkey, 0xffff);
	assert_memory_equal(&flow->key, &asked, sizeof(asked));
	assert_memory_equal(&flow->resp, &resolved, sizeof(resolved));

	resolved.owner = 0;
	connect_to_n2(&message);
	assert_null(flow_of(&message));
	resolved.owner = 7;
	resolved.lane = ABI_NO_LANE;
	connect_to_n2(&message);
	assert_null(flow_of(&message));
	resolved.lane = 4;
	list_add_tail(&context[1].node, &device->ucontext_list);
	connect_to_n2(&message); /* which of the two? */
	assert_null(flow_of(&message));
	list_del(&context[0].node);
	list_del(&context[1].node);
	rdma_destroy_id(server.id);
	server.id = NULL;
	device->ops = before;
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_an_answer_ends_a_sessions_turn),
		CASE(test_a_session_has_so_many_ids),
		CASE(test_ids_are_of_the_share_of_their_node),
		CASE(test_a_session_has_some_in_any_case),
		CASE(test_the_last_eighth_is_for_nodes_with_less),
		CASE(test_news_that_nobody_reads_are_of_the_share_of_their_node),
		CASE(test_a_program_brings_its_path),
		CASE(test_a_message_brings_its_event),
		CASE(test_an_event_that_is_not_taken_is_in_excess),
		CASE(test_events_wait_for_room),
		CASE(test_told_commands_precede_the_asked_one),
		CASE(test_a_program_is_granted_as_many_ids_as_it_has_created),
		CASE(test_no_other_number_is_created),
		CASE(test_granted_ids_are_of_the_share_of_their_node),
		CASE(test_an_id_without_memory_fails),
		CASE(test_ids_are_told_with_a_command),
		CASE(test_few_commands_are_told_in_a_message),
		CASE(test_a_ring_is_run_before_the_next_command),
		CASE(test_nothing_in_a_ring_is_answered),
		CASE(test_nonsense_in_a_ring_ends_the_session),
		CASE(test_an_event_far_from_the_oldest_is_not_sought),
		CASE(test_a_command_that_is_told_succeeds),
		CASE(test_a_command_that_is_told_fails_by_an_event),
		CASE(test_an_address_is_resolved_by_telling),
		CASE(test_a_flow_is_answered_ahead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
