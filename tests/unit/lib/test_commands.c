/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the RDMA CM's library says to softibd of ids whose numbers it was granted. */
#include "../test.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../lib/librdmacm/commands.h"
#include "abi/fds.h"

struct fixture {
	struct commands commands;
	int softibd, page_fd;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int pair[2];

	f->page_fd = memfd_create("page", MFD_CLOEXEC);
	assert_int_equal(ftruncate(f->page_fd, sizeof(struct abi_ahead_page)), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	f->softibd = pair[1];
	assert_int_equal(commands_open(&f->commands, pair[0], f->page_fd), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	commands_close(&f->commands);
	close(f->softibd);
	close(f->page_fd);
	free(f);
	return 0;
}

/** struct create - CREATE_ID, as librdmacm writes it */
struct create {
	struct rdma_ucm_cmd_hdr hdr;
	struct rdma_ucm_create_id cmd;
};

static ssize_t create(struct fixture *f, uint16_t ps, uint32_t *id)
{
	const struct create command = {
		{RDMA_USER_CM_CMD_CREATE_ID, sizeof(command.cmd), sizeof(struct rdma_ucm_create_id_resp)},
		{.uid = 1, .ps = ps}};
	struct answer answer;
	ssize_t n = commands_exchange(&f->commands, &command.hdr, sizeof(command), &answer);

	memcpy(id, answer.body, sizeof(*id));
	return n;
}

/* softibd's answer to the next CREATE_ID that is asked */
static void will_answer(struct fixture *f, struct abi_cm_created created)
{
	const struct {
		struct abi_reply reply;
		struct abi_cm_created created;
	} out = {{0, sizeof(created)}, created};

	assert_int_equal(send(f->softibd, &out, sizeof(out), 0), sizeof(out));
}

static void will_refuse(struct fixture *f, int error)
{
	const struct abi_reply reply = {.error = error};

	assert_int_equal(send(f->softibd, &reply, sizeof(reply), 0), sizeof(reply));
}

/* Return: the bytes of the next message to softibd; -1: there is none */
static ssize_t heard(struct fixture *f, void *bytes, size_t room)
{
	return recv(f->softibd, bytes, room, MSG_DONTWAIT);
}

static void is_asked(const struct create *create)
{
	assert_int_equal(create->hdr.cmd, RDMA_USER_CM_CMD_CREATE_ID);
}

static void is_told(const struct create *create, uint32_t number)
{
	assert_int_equal(create->hdr.cmd, RDMA_USER_CM_CMD_CREATE_ID | ABI_CM_TOLD);
	assert_int_equal(create->hdr.in, sizeof(create->cmd));
	assert_int_equal(create->cmd.response, number);
	assert_int_equal(create->cmd.uid, 1);
}

static void an_id_that_is_granted_is_told_with_the_next_command(void **state)
{
	struct fixture *f = *state;
	struct create message[4];
	uint32_t id;

	will_answer(f, (struct abi_cm_created){7, 20, 2});
	assert_int_equal(create(f, RDMA_PS_TCP, &id), sizeof(id));
	assert_int_equal(id, 7);
	assert_int_equal(heard(f, message, sizeof(message)), sizeof(message[0]));
	is_asked(&message[0]);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(create(f, RDMA_PS_UDP, &id), sizeof(id));
		assert_int_equal(id, 20 + i);
	}
	assert_int_equal(heard(f, message, sizeof(message)), -1);
	will_answer(f, (struct abi_cm_created){22, 0, 0});
	assert_int_equal(create(f, RDMA_PS_TCP, &id), sizeof(id));
	assert_int_equal(id, 22);
	assert_int_equal(heard(f, message, sizeof(message)), 3 * sizeof(message[0]));
	is_told(&message[0], 20);
	is_told(&message[1], 21);
	is_asked(&message[2]);
}

/* An error is that of the call. What softibd might refuse is asked, and so ends the grant. */
static void what_may_be_refused_is_asked(void **state)
{
	struct fixture *f = *state;
	struct create message[2];
	uint32_t id;

	will_answer(f, (struct abi_cm_created){7, 20, 2});
	create(f, RDMA_PS_TCP, &id);
	heard(f, message, sizeof(message));
	will_refuse(f, -EINVAL);
	assert_int_equal(create(f, 0x999, &id), -EINVAL);
	assert_int_equal(heard(f, message, sizeof(message)), sizeof(message[0]));
	is_asked(&message[0]);
	will_refuse(f, -ENOMEM);
	assert_int_equal(create(f, RDMA_PS_TCP, &id), -ENOMEM);
	assert_int_equal(heard(f, message, sizeof(message)), sizeof(message[0]));
	is_asked(&message[0]);
}

/* They are sent when there is no room for more: no message gets longer than softibd takes. */
static void many_ids_are_told_in_several_messages(void **state)
{
	enum { IDS = 100 };
	struct fixture *f = *state;
	struct create message[ABI_CM_TOLD_MAX];
	uint32_t id, next = 20;
	ssize_t n;

	will_answer(f, (struct abi_cm_created){7, 20, IDS});
	create(f, RDMA_PS_TCP, &id);
	heard(f, message, sizeof(message));
	for (int i = 0; i < IDS; i++)
		create(f, RDMA_PS_TCP, &id);
	while ((n = heard(f, message, sizeof(message))) > 0) {
		assert_int_equal(n % sizeof(message[0]), 0);
		for (size_t i = 0; i < n / sizeof(message[0]); i++)
			is_told(&message[i], next++);
	}
	assert_in_range(next, 20 + IDS - ABI_CM_TOLD_MAX, 20 + IDS - 1);
}

/* --- addresses --- */

/** struct resolve - RESOLVE_ADDR, as librdmacm writes it */
struct resolve {
	struct rdma_ucm_cmd_hdr hdr;
	struct rdma_ucm_resolve_addr cmd;
};

static struct resolve to_address(uint32_t id, uint8_t last)
{
	struct resolve command = {{RDMA_USER_CM_CMD_RESOLVE_ADDR, sizeof(command.cmd), 0},
				  {.id = id, .timeout_ms = 1000, .dst_size = 8}};

	memset(&command.cmd.dst_addr, last, 8);
	return command;
}

static ssize_t exchange(struct fixture *f, const void *command, size_t bytes)
{
	struct answer answer;

	return commands_exchange(&f->commands, command, bytes, &answer);
}

/* @refusal: softibd's answer if it is asked. Return: is it asked? What was sent is read. */
static bool is_address_asked(struct fixture *f, struct resolve command, int refusal)
{
	uint8_t message[2048];
	struct rdma_ucm_cmd_hdr hdr;
	ssize_t n, ret;

	will_refuse(f, refusal);
	ret = exchange(f, &command, sizeof(command));
	n = heard(f, message, sizeof(message));
	assert_true(n >= (ssize_t)sizeof(command)); /* ids that are told may stand before it */
	memcpy(&hdr, message + n - sizeof(command), sizeof(hdr));
	assert_int_equal(hdr.cmd & ~ABI_CM_TOLD, RDMA_USER_CM_CMD_RESOLVE_ADDR);
	if (!(hdr.cmd & ABI_CM_TOLD)) {
		assert_int_equal(ret, refusal);
		return true;
	}
	assert_int_equal(ret, 0);
	assert_int_equal(recv(f->commands.control, message, sizeof(message), MSG_DONTWAIT),
			 sizeof(struct abi_reply)); /* nobody waits for the answer */
	return false;
}

/* softibd grants ids from 20 on, and the first one is asked. Return: the first one */
static uint32_t with_granted_ids(struct fixture *f, uint32_t count)
{
	struct create message;
	uint32_t id;

	will_answer(f, (struct abi_cm_created){7, 20, count});
	create(f, RDMA_PS_TCP, &id);
	heard(f, &message, sizeof(message));
	return id;
}

static void an_address_is_asked_once(void **state)
{
	struct fixture *f = *state;
	uint32_t id = with_granted_ids(f, 9);

	assert_true(is_address_asked(f, to_address(id, 1), -EADDRNOTAVAIL));
	create(f, RDMA_PS_TCP, &id);
	assert_true(is_address_asked(f, to_address(id, 1), 0)); /* it was refused */
	create(f, RDMA_PS_TCP, &id);
	assert_false(is_address_asked(f, to_address(id, 1), 0));
	assert_true(is_address_asked(f, to_address(id, 1), -EINVAL)); /* the id had a command */
	create(f, RDMA_PS_TCP, &id);
	assert_true(is_address_asked(f, to_address(id, 2), 0)); /* another address */
	create(f, RDMA_PS_UDP, &id);
	assert_true(is_address_asked(f, to_address(id, 2), 0)); /* another port space */
	create(f, RDMA_PS_TCP, &id);
	assert_false(is_address_asked(f, to_address(id, 2), 0));
	assert_true(is_address_asked(f, to_address(999, 2), -ENOENT)); /* no id */
}

/* The addresses of the machine's ports may have changed, or the id is bound. */
static void an_address_that_may_be_refused_is_asked(void **state)
{
	const struct {
		struct rdma_ucm_cmd_hdr hdr;
		struct rdma_ucm_bind cmd;
	} bind = {{RDMA_USER_CM_CMD_BIND, sizeof(bind.cmd), 0}, {.id = 20}};
	struct fixture *f = *state;
	uint32_t id = with_granted_ids(f, 9), all = 1;
	uint8_t message[1024];

	assert_true(is_address_asked(f, to_address(id, 1), 0));
	create(f, RDMA_PS_TCP, &id);
	will_refuse(f, 0);
	exchange(f, &bind, sizeof(bind));
	heard(f, message, sizeof(message));
	assert_true(is_address_asked(f, to_address(id, 1), 0));
	create(f, RDMA_PS_TCP, &id);
	assert_int_equal(pwrite(f->page_fd, &all, sizeof(all), offsetof(struct abi_ahead_page, all)), sizeof(all));
	assert_true(is_address_asked(f, to_address(id, 1), 0));
	create(f, RDMA_PS_TCP, &id);
	assert_false(is_address_asked(f, to_address(id, 1), 0));
}

/* --- the ring --- */

/* softibd's answer to ABI_CM_TOLD_RING. Return: softibd's side of the ring */
static struct abi_ring_rx will_give_ring(struct fixture *f)
{
	const size_t bytes = abi_ring_bytes(ABI_TOLD_RING_BYTES);
	const int fds[ABI_TOLD_FDS] = {memfd_create("told", MFD_CLOEXEC), eventfd(0, EFD_CLOEXEC)};
	const struct abi_reply reply = {0};
	struct abi_ring *ring;

	assert_int_equal(ftruncate(fds[0], (off_t)bytes), 0);
	ring = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	assert_ptr_not_equal(ring, MAP_FAILED);
	abi_ring_init(ring, ABI_TOLD_RING_BYTES);
	assert_int_equal(abi_send_fds(f->softibd, &reply, sizeof(reply), fds, ABI_TOLD_FDS, 0), 0);
	for (int i = 0; i < ABI_TOLD_FDS; i++)
		close(fds[i]);
	return (struct abi_ring_rx){.ring = ring, .size = ABI_TOLD_RING_BYTES};
}

static void drop_ring(struct abi_ring_rx *ring)
{
	munmap(ring->ring, abi_ring_bytes(ABI_TOLD_RING_BYTES));
}

/* Tell so often by messages that a ring is asked for behind the next one. Return: the id to tell of then */
static uint32_t tell_by_messages(struct fixture *f)
{
	uint32_t id = with_granted_ids(f, 40);

	assert_true(is_address_asked(f, to_address(id, 1), 0));
	for (int i = 1; i < ABI_TOLD_TIMES; i++) {
		create(f, RDMA_PS_TCP, &id);
		assert_false(is_address_asked(f, to_address(id, 1), 0));
	}
	create(f, RDMA_PS_TCP, &id);
	return id;
}

/* Return: the command of the next message; 0: there is none */
static uint32_t heard_command(struct fixture *f)
{
	struct rdma_ucm_cmd_hdr hdr = {0};

	heard(f, &hdr, sizeof(hdr));
	return hdr.cmd;
}

/* The message behind which a ring is asked for, to which softibd has answered already */
static void last_message(struct fixture *f, uint32_t id)
{
	struct resolve command = to_address(id, 1);

	assert_int_equal(exchange(f, &command, sizeof(command)), 0);
	assert_int_equal(heard_command(f), RDMA_USER_CM_CMD_CREATE_ID | ABI_CM_TOLD); /* and more */
	assert_int_equal(heard_command(f), ABI_CM_TOLD_RING);
}

static void what_is_told_often_goes_by_a_ring(void **state)
{
	struct fixture *f = *state;
	struct abi_ring_rx ring;
	struct {
		struct create create;
		struct resolve resolve;
	} record;
	uint32_t id = tell_by_messages(f);
	const void *shared;
	size_t len;

	ring = will_give_ring(f);
	last_message(f, id);
	for (int i = 0; i < 3; i++) {
		struct resolve command;

		create(f, RDMA_PS_TCP, &id);
		command = to_address(id, 1);
		assert_int_equal(exchange(f, &command, sizeof(command)), 0);
		assert_int_equal(heard_command(f), 0);
		shared = abi_ring_peek(&ring, &len);
		assert_non_null(shared);
		assert_int_equal(len, sizeof(record));
		memcpy(&record, shared, sizeof(record));
		abi_ring_consume(&ring);
		is_told(&record.create, id);
		assert_int_equal(record.resolve.hdr.cmd, RDMA_USER_CM_CMD_RESOLVE_ADDR | ABI_CM_TOLD);
		assert_int_equal(record.resolve.cmd.id, id);
	}
	assert_true(is_address_asked(f, to_address(7, 2), -EINVAL)); /* by a message, as ever */
	drop_ring(&ring);
}

static void who_gets_no_ring_tells_by_messages(void **state)
{
	struct fixture *f = *state;
	uint32_t id = tell_by_messages(f);

	will_refuse(f, -ENOMEM);
	last_message(f, id);
	create(f, RDMA_PS_TCP, &id);
	assert_false(is_address_asked(f, to_address(id, 1), 0)); /* is not asked again */
}

/* softibd answers EEXIST when it has run the ring. One that does not is gone. */
static void a_full_ring_is_run_by_softibd(void **state)
{
	struct fixture *f = *state;
	uint32_t id = tell_by_messages(f);
	struct abi_ring_rx ring = will_give_ring(f);
	struct resolve command;
	char fill[1024] = {0};

	last_message(f, id);
	while (abi_told_put(&f->commands.ring, &(struct iovec){fill, sizeof(fill)}, 1))
		;
	while (abi_told_put(&f->commands.ring, &(struct iovec){fill, 4}, 1))
		;
	create(f, RDMA_PS_TCP, &id);
	command = to_address(id, 1);
	will_refuse(f, -EEXIST);
	assert_int_equal(exchange(f, &command, sizeof(command)), -ENODEV);
	assert_int_equal(heard_command(f), ABI_CM_TOLD_RING);
	drop_ring(&ring);
}

/* --- libibverbs --- */

static int told_now;
static struct abi_flow_answer expected;

static void tell_now(void)
{
	told_now++;
}

static void expect_flow(const struct abi_flow_answer *answer)
{
	expected = *answer;
}

/* What the program has done to its QPs, softibd hears before a command that it may depend on. */
static void libibverbs_tells_before_a_command(void **state)
{
	struct fixture *f = *state;
	uint32_t id;

	f->commands.tell_now = tell_now;
	told_now = 0;
	id = with_granted_ids(f, 2);
	assert_int_equal(told_now, 1);
	assert_true(is_address_asked(f, to_address(id, 1), 0));
	assert_int_equal(told_now, 2);
	create(f, RDMA_PS_TCP, &id); /* is kept */
	assert_int_equal(told_now, 2);
	assert_false(is_address_asked(f, to_address(id, 1), 0));
	assert_int_equal(told_now, 3);
}

/* What softibd says of a flow with an event, libibverbs hears before the program has the event. */
static void a_flow_is_passed_on(void **state)
{
	const struct rdma_ucm_cmd_hdr hdr = {.cmd = RDMA_USER_CM_CMD_GET_EVENT};
	struct fixture *f = *state;
	struct {
		struct abi_cm_event event;
		struct abi_ahead ahead;
		struct abi_ahead_answer head;
		struct abi_flow_answer flow;
	} message = {.event.number = 1, .ahead.id = 20, .head = {ABI_AHEAD_FLOW, 0, sizeof(message.flow)},
		     .flow = {.program = 3, .key.dest_qpn = 4}};
	struct answer answer;

	f->commands.expect_flow = expect_flow;
	memcpy(answer.body, &message, sizeof(message));
	assert_true(commands_take_event(&f->commands, &hdr, sizeof(hdr), &answer, sizeof(message)) > 0);
	assert_memory_equal(&expected, &message.flow, sizeof(expected));
	expected = (struct abi_flow_answer){0};
	message.event.number++;
	message.head.bytes -= 8; /* not one */
	memcpy(answer.body, &message, sizeof(message));
	assert_true(commands_take_event(&f->commands, &hdr, sizeof(hdr), &answer, sizeof(message)) > 0);
	assert_int_equal(expected.program, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_id_that_is_granted_is_told_with_the_next_command),
		CASE(what_may_be_refused_is_asked),
		CASE(many_ids_are_told_in_several_messages),
		CASE(an_address_is_asked_once),
		CASE(an_address_that_may_be_refused_is_asked),
		CASE(what_is_told_often_goes_by_a_ring),
		CASE(who_gets_no_ring_tells_by_messages),
		CASE(a_full_ring_is_run_by_softibd),
		CASE(libibverbs_tells_before_a_command),
		CASE(a_flow_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
