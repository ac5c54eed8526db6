/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Answers in advance to the queries that librdmacm makes as soon as it has an event, and the change
 * counters by which it finds out whether an answer is still valid (abi/ahead.h). They save a round trip
 * to softibd for each query.
 *
 * The program also learns which command softibd would accept, so that it need not wait for the answer.
 *
 * An id is changed by a command of its program other than a query, by an event, even one that is not
 * reported to the program, and by a change of a port of its device.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/ahead.h"
#include "abi/lane.h"
#include "access/ucma_private.h"
#include "core/uobject.h"

#define PAGE_BYTES sizeof(struct abi_ahead_page)

/* --- counts --- */

void ucma_changed(const struct ucma_page *page, u32 number)
{
	atomic_fetch_add_explicit(&page->shared->changes[number % ABI_AHEAD_COUNTERS], 1,
				  memory_order_release);
}

/* --- changes of devices --- */

static void all_changed(const struct ib_device *device)
{
	const struct ucma_page *page = rt_local(device->rt, RT_LOCAL_UCMA);

	atomic_fetch_add_explicit(&page->shared->all, 1, memory_order_release);
}

static void on_device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	all_changed(event->device);
}

static int add_device(struct ib_device *device);
static void remove_device(struct ib_device *device, void *client_data);
static const struct ib_client client = {
	.name = "ucma", .add = add_device, .remove = remove_device};

static int add_device(struct ib_device *device)
{
	struct ib_event_handler *handler = rt_zalloc(sizeof(*handler));

	if (!handler)
		return -ENOMEM;
	INIT_IB_EVENT_HANDLER(handler, device, on_device_event);
	ib_register_event_handler(handler);
	ib_set_client_data(device, &client, handler);
	return 0;
}

static void remove_device(struct ib_device *device, void *client_data)
{
	all_changed(device);
	ib_unregister_event_handler(client_data);
	rt_free(client_data);
}

/* --- the page --- */

static int map_page(struct ucma_page *page)
{
	void *map;

	page->fd = memfd_create("softib-cm", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (page->fd < 0)
		return -errno;
	map = ftruncate(page->fd, PAGE_BYTES) ? MAP_FAILED :
	      mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, page->fd, 0);
	if (map == MAP_FAILED ||
	    fcntl(page->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)) {
		int ret = -errno;

		if (map != MAP_FAILED)
			munmap(map, PAGE_BYTES);
		close(page->fd);
		return ret;
	}
	page->shared = map;
	return 0;
}

static void unmap_page(struct ucma_page *page)
{
	munmap(page->shared, PAGE_BYTES);
	close(page->fd);
}

int ucma_page_create(struct ucma_page *page, struct rt *rt)
{
	int ret = map_page(page);

	if (ret)
		return ret;
	page->rt = rt;
	rt_set_local(rt, RT_LOCAL_UCMA, page);
	ret = ib_register_client(rt, &client);
	if (!ret)
		return 0;
	rt_set_local(rt, RT_LOCAL_UCMA, NULL);
	unmap_page(page);
	return ret;
}

void ucma_page_destroy(struct ucma_page *page)
{
	ib_unregister_client(page->rt, &client);
	rt_set_local(page->rt, RT_LOCAL_UCMA, NULL);
	unmap_page(page);
}

/* --- answers --- */

#define ASKS_MAX 8

struct ask {
	u16 cmd, option;
};

#define ADDR  {RDMA_USER_CM_CMD_QUERY, RDMA_USER_CM_QUERY_ADDR}
#define GIDS  {RDMA_USER_CM_CMD_QUERY, RDMA_USER_CM_QUERY_GID}
#define PATH  {RDMA_USER_CM_CMD_QUERY, RDMA_USER_CM_QUERY_PATH}
#define ATTR(state) {RDMA_USER_CM_CMD_INIT_QP_ATTR, IB_QPS_##state}

#define FLOW {ABI_AHEAD_FLOW, 0}
#define OK(cmd) {RDMA_USER_CM_CMD_##cmd, 0}

/* The queries of librdmacm after an event, before its program or another event changes the id; and the
 * command that follows, which then only a lack of memory can make fail. */
static const struct {
	enum rdma_cm_event_type event;
	struct ask ask[ASKS_MAX];
} habits[] = {
	{RDMA_CM_EVENT_ADDR_RESOLVED, {ADDR, GIDS, OK(RESOLVE_ROUTE)}},
	{RDMA_CM_EVENT_ROUTE_RESOLVED, {PATH, ATTR(INIT), OK(CONNECT)}},
	{RDMA_CM_EVENT_CONNECT_REQUEST,
	 {ADDR, GIDS, PATH, ATTR(INIT), ATTR(RTR), ATTR(RTS), FLOW, OK(ACCEPT)}},
	{RDMA_CM_EVENT_CONNECT_RESPONSE, {ATTR(INIT), ATTR(RTR), ATTR(RTS), FLOW, OK(ACCEPT)}},
};

static bool is_query(u32 cmd)
{
	return cmd == RDMA_USER_CM_CMD_QUERY || cmd == RDMA_USER_CM_CMD_INIT_QP_ATTR;
}

/* Is a lack of memory all that can make the command fail? On Ethernet a route needs no query, so
 * RESOLVE_ROUTE is refused at once if there is none, and programs expect that as an error of the call. */
static bool is_certain(const struct rdma_cm_id *cm_id, u32 cmd)
{
	return cm_id->qp_type == IB_QPT_RC &&
	       (cmd != RDMA_USER_CM_CMD_RESOLVE_ROUTE ||
		!rdma_protocol_roce(cm_id->device, cm_id->port_num));
}

/* The flow of the packets of a queue pair that goes to RTR. Return: 0; -errno */
static int flow_of(struct ucma_id *id, struct abi_resolve *flow)
{
	struct ib_qp_attr attr = {.qp_state = IB_QPS_RTR}, init = {.qp_state = IB_QPS_INIT};
	int mask, ret = rdma_init_qp_attr(id->cm_id, &init, &mask);

	if (!ret)
		ret = rdma_init_qp_attr(id->cm_id, &attr, &mask);
	*flow = (struct abi_resolve){
		.port_num = attr.ah_attr.port_num,
		.dest_qpn = attr.dest_qp_num,
		.dlid = (u16)attr.ah_attr.dlid,
		.sl = attr.ah_attr.sl,
	};
	return ret ?: ib_get_cached_pkey(id->cm_id->device, attr.ah_attr.port_num, init.pkey_index,
					 &flow->pkey);
}

/* A lane that exists already needs no descriptors, so the program need not ask for it. Return: 0; -errno */
static int answer_flow(struct ucma_id *id, u8 *out, size_t *bytes)
{
	struct ib_device *device = id->cm_id->device;
	struct ib_ucontext *context = id->session->file.pid ? ib_ucontext_of_process(device, id->session->file.pid)
						       : NULL;
	struct abi_flow_answer answer;
	unsigned int num_fds;
	int ret;

	if (!context || rdma_protocol_roce(device, id->cm_id->port_num))
		return -ENOENT;
	answer.program = ((const struct abi_context_resp *)context->driver_resp)->program;
	ret = flow_of(id, &answer.key);
	if (!ret)
		ret = device->ops->driver_command(context, ABI_CMD_RESOLVE, &answer.key, &answer.resp,
						  NULL, &num_fds);
	if (ret || answer.resp.lane == ABI_NO_LANE || !answer.resp.owner)
		return ret ?: -ENOENT;
	memcpy(out, &answer, sizeof(answer));
	*bytes = sizeof(answer);
	return 0;
}

static int make_answer(struct ucma_id *id, const struct ask *ask, u8 *out, size_t *bytes)
{
	if (ask->cmd == ABI_AHEAD_FLOW)
		return answer_flow(id, out, bytes);
	if (is_query(ask->cmd))
		return ucma_ask(id, ask->cmd, ask->option, out, bytes);
	return is_certain(id->cm_id, ask->cmd) ? 0 : -EINVAL;
}

/* Return: the length of the answer; 0: the query fails, or there is no room for the answer */
static size_t put_answer(struct ucma_id *id, const struct ask *ask, u8 *out, size_t room)
{
	struct abi_ahead_answer head = {.cmd = ask->cmd, .option = ask->option};
	_Alignas(8) u8 body[UCMA_RESPONSE_MAX];
	size_t bytes = 0, whole;

	if (make_answer(id, ask, body, &bytes))
		return 0;
	whole = (bytes + 7) / 8 * 8;
	if (sizeof(head) + whole > room)
		return 0;
	head.bytes = (u32)whole;
	memcpy(out, &head, sizeof(head));
	memcpy(out + sizeof(head), body, bytes);
	memset(out + sizeof(head) + bytes, 0, whole - bytes);
	return sizeof(head) + whole;
}

size_t ucma_put_ahead(const struct ucma_page *page, struct ucma_id *id, u32 event, void *to,
		      size_t room)
{
	struct abi_ahead head = {.id = id->number,
				 .changes = abi_ahead_changes(page->shared, id->number)};
	size_t used = sizeof(head);
	u8 *out = to;

	for (size_t i = 0; i < ARRAY_SIZE(habits); i++)
		for (int j = 0; habits[i].event == event && j < ASKS_MAX && habits[i].ask[j].cmd; j++)
			used += put_answer(id, &habits[i].ask[j], out + used, room - used);
	memcpy(out, &head, sizeof(head));
	return used > sizeof(head) ? used : 0;
}
