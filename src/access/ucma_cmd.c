/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The commands of <rdma/rdma_user_cm.h>, one function each, and their table. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "access/marshall.h"
#include "access/ucma_private.h"

/* --- ids --- */

/* Return: false: the RDMA CM does not connect QPs of this type */
static bool qp_type_of(const struct rdma_ucm_create_id *cmd, enum ib_qp_type *type)
{
	*type = cmd->ps == RDMA_PS_UDP || cmd->ps == RDMA_PS_IPOIB ? IB_QPT_UD : IB_QPT_RC;
	if (cmd->ps != RDMA_PS_IB)
		return true;
	*type = (enum ib_qp_type)cmd->qp_type;
	return *type == IB_QPT_RC || *type == IB_QPT_UC || *type == IB_QPT_UD ||
	       *type == IB_QPT_XRC_INI || *type == IB_QPT_XRC_TGT;
}

static int create_cm_id(struct ucma_id *id, const struct rdma_ucm_create_id *cmd)
{
	const struct ucma_session *s = id->session;
	struct rdma_cm_id *cm_id;
	enum ib_qp_type qp_type;

	if (!qp_type_of(cmd, &qp_type))
		return -EINVAL;
	cm_id = rdma_create_id(ucma_rt(s), s->node_name, ucma_on_event, id, cmd->ps, qp_type);
	if (IS_ERR(cm_id))
		return (int)PTR_ERR(cm_id);
	rdma_set_owner(cm_id, s->file.pid, s->file.comm);
	id->cm_id = cm_id;
	return 0;
}

/* The program has given the id its number, and goes on with it. If there is no memory, the id's next
 * command fails (run()). */
static int create_told_id(struct ucma_call *call)
{
	const struct rdma_ucm_create_id *cmd = call->in;
	struct ucma_id *id = ucma_id_take(call->session, (u32)cmd->response, cmd->uid);

	if (!id)
		return -EINVAL;
	call->session->created++;
	return create_cm_id(id, cmd);
}

static int create_id(struct ucma_call *call)
{
	const struct rdma_ucm_create_id *cmd = call->in;
	struct abi_cm_created resp = {0};
	struct ucma_id *id;
	int ret;

	if (call->told)
		return create_told_id(call);
	ucma_ids_take_back(call->session);
	id = ucma_id_add(call->session, cmd->uid);
	if (!id)
		return -ENOMEM;
	ret = create_cm_id(id, cmd);
	if (ret) {
		ucma_id_drop(id);
		return ret;
	}
	call->session->created++;
	resp.id = id->number;
	resp.count = ucma_ids_grant(call->session, &resp.first);
	call->room = sizeof(resp);
	ucma_respond(call, &resp, sizeof(resp));
	return 0;
}

/* @excess: events that were sent and are in the queue no more; @from: the session that had them */
static void respond_gone(struct ucma_call *call, u32 events_reported, u32 excess,
			 const struct ucma_session *from)
{
	const struct abi_cm_gone gone = {
		.events_reported = events_reported, .excess = excess, .last = from->file.queue.last_sent};

	call->room = sizeof(gone);
	ucma_respond(call, &gone, sizeof(gone));
}

static int destroy_id(struct ucma_call *call)
{
	u32 reported = call->id->events_reported;

	respond_gone(call, reported, ucma_id_drop(call->id), call->session);
	return 0;
}

static int migrate_id(struct ucma_call *call)
{
	const struct rdma_ucm_migrate_id *cmd = call->in;
	struct ucma_id *id = ucma_id_of_process(call->session, cmd->id);
	struct ucma_session *from;

	if (!id)
		return -ENOENT;
	from = id->session;
	respond_gone(call, id->events_reported, ucma_id_move(id, call->session), from);
	return 0;
}

/* --- addresses and routes --- */

/* The older commands have room for an IPv6 address, which is shorter than an address of AF_IB. */
static bool is_ip(const struct sockaddr_in6 *addr)
{
	return addr->sin6_family == AF_INET || addr->sin6_family == AF_INET6;
}

static int bind_ip(struct ucma_call *call)
{
	struct rdma_ucm_bind_ip cmd = *(const struct rdma_ucm_bind_ip *)call->in;

	if (!is_ip(&cmd.addr))
		return -EINVAL;
	return rdma_bind_addr(call->id->cm_id, (struct sockaddr *)&cmd.addr);
}

static int bind_addr(struct ucma_call *call)
{
	struct rdma_ucm_bind cmd = *(const struct rdma_ucm_bind *)call->in;

	if (!cmd.addr_size || cmd.addr_size > sizeof(cmd.addr))
		return -EINVAL;
	return rdma_bind_addr(call->id->cm_id, (struct sockaddr *)&cmd.addr);
}

static int resolve_ip(struct ucma_call *call)
{
	struct rdma_ucm_resolve_ip cmd = *(const struct rdma_ucm_resolve_ip *)call->in;

	if ((cmd.src_addr.sin6_family && !is_ip(&cmd.src_addr)) || !is_ip(&cmd.dst_addr))
		return -EINVAL;
	return rdma_resolve_addr(call->id->cm_id, (struct sockaddr *)&cmd.src_addr,
				 (struct sockaddr *)&cmd.dst_addr, cmd.timeout_ms);
}

static int resolve_addr(struct ucma_call *call)
{
	struct rdma_ucm_resolve_addr cmd =
		*(const struct rdma_ucm_resolve_addr *)call->in;

	if (!cmd.dst_size || cmd.dst_size > sizeof(cmd.dst_addr) ||
	    cmd.src_size > sizeof(cmd.src_addr))
		return -EINVAL;
	return rdma_resolve_addr(call->id->cm_id,
				 cmd.src_size ? (struct sockaddr *)&cmd.src_addr : NULL,
				 (struct sockaddr *)&cmd.dst_addr, cmd.timeout_ms);
}

static int resolve_route(struct ucma_call *call)
{
	const struct rdma_ucm_resolve_route *cmd = call->in;

	return rdma_resolve_route(call->id->cm_id, cmd->timeout_ms);
}

/* --- connections --- */

static struct rdma_conn_param conn_param(const struct rdma_ucm_conn_param *from)
{
	return (struct rdma_conn_param){
		.private_data = from->private_data,
		.private_data_len = from->private_data_len,
		.responder_resources = from->responder_resources,
		.initiator_depth = from->initiator_depth,
		.flow_control = from->flow_control,
		.retry_count = from->retry_count,
		.rnr_retry_count = from->rnr_retry_count,
		.srq = from->srq,
		.qp_num = from->qp_num & 0xffffff,
		.qkey = from->qkey,
	};
}

static struct ib_cm_ece ece_of(const struct rdma_ucm_ece *from)
{
	return (struct ib_cm_ece){.vendor_id = from->vendor_id, .attr_mod = from->attr_mod};
}

static int connect_id(struct ucma_call *call)
{
	const struct rdma_ucm_connect *cmd = call->in;
	struct rdma_conn_param param = conn_param(&cmd->conn_param);
	struct ib_cm_ece ece = {0};

	if (call->in_bytes >= sizeof(*cmd)) /* the command of an older program ends before ece */
		ece = ece_of(&cmd->ece);
	if (!cmd->conn_param.valid)
		return -EINVAL;
	return rdma_connect_ece(call->id->cm_id, &param, &ece);
}

static int listen_id(struct ucma_call *call)
{
	const struct rdma_ucm_listen *cmd = call->in;
	u32 backlog = cmd->backlog > 0 && cmd->backlog < 1024 ? cmd->backlog : 1024;

	return rdma_listen(call->id->cm_id, (int)backlog);
}

static int accept_id(struct ucma_call *call)
{
	const struct rdma_ucm_accept *cmd = call->in;
	struct rdma_conn_param param = conn_param(&cmd->conn_param);
	struct ib_cm_ece ece = {0};
	int ret;

	if (call->in_bytes >= sizeof(*cmd))
		ece = ece_of(&cmd->ece);
	ret = rdma_accept_ece(call->id->cm_id, cmd->conn_param.valid ? &param : NULL, &ece);
	if (!ret && cmd->conn_param.valid)
		call->id->uid = cmd->uid;
	return ret;
}

static int reject_id(struct ucma_call *call)
{
	const struct rdma_ucm_reject *cmd = call->in;

	return rdma_reject(call->id->cm_id, cmd->private_data, cmd->private_data_len,
			   cmd->reason);
}

static int disconnect_id(struct ucma_call *call)
{
	return rdma_disconnect(call->id->cm_id);
}

static int notify_id(struct ucma_call *call)
{
	const struct rdma_ucm_notify *cmd = call->in;

	return rdma_notify(call->id->cm_id, (enum ib_event_type)cmd->event);
}

static int init_qp_attr(struct ucma_call *call)
{
	const struct rdma_ucm_init_qp_attr *cmd = call->in;
	struct ib_qp_attr attr = {.qp_state = (enum ib_qp_state)cmd->qp_state};
	struct ib_uverbs_qp_attr resp = {0};
	int mask = 0, ret;

	ret = rdma_init_qp_attr(call->id->cm_id, &attr, &mask);
	if (ret)
		return ret;
	marshall_qp_attr(&resp, &attr, mask);
	ucma_respond(call, &resp, sizeof(resp));
	return 0;
}

/* --- multicast --- */

static int join(struct ucma_call *call, u64 uid, const void *addr, size_t bytes, u16 flags)
{
	struct rdma_ucm_create_id_resp resp;
	struct ucma_mcast *mcast;
	int ret = ucma_mcast_join(call->id, uid, addr, bytes, flags, &mcast);

	if (ret)
		return ret;
	resp.id = mcast->number;
	ucma_respond(call, &resp, sizeof(resp));
	return 0;
}

static int join_ip_mcast(struct ucma_call *call)
{
	const struct rdma_ucm_join_ip_mcast *cmd = call->in;

	if (!is_ip(&cmd->addr))
		return -EINVAL;
	return join(call, cmd->uid, &cmd->addr, sizeof(cmd->addr),
		    RDMA_MC_JOIN_FLAG_FULLMEMBER);
}

static int join_mcast(struct ucma_call *call)
{
	const struct rdma_ucm_join_mcast *cmd = call->in;

	return join(call, cmd->uid, &cmd->addr, cmd->addr_size, cmd->join_flags);
}

static int leave_mcast(struct ucma_call *call)
{
	const struct rdma_ucm_destroy_id *cmd = call->in;
	struct ucma_mcast *mcast = ucma_mcast_find(call->session, cmd->id);
	u32 reported;

	if (!mcast)
		return -ENOENT;
	reported = mcast->events_reported;
	respond_gone(call, reported, ucma_mcast_leave(mcast), call->session);
	return 0;
}

/* --- events and options --- */

/* The whole response is sent, even if the program has room for only a part of it. An event that was
 * not sent to the program is not sent any more. */
static int get_event(struct ucma_call *call)
{
	struct ucma_session *s = call->session;
	struct queued_event *first = event_queue_first(&s->file.queue);

	if (!first)
		return -EAGAIN;
	if (!first->sent)
		first->number = ++s->file.queue.last_sent;
	*call->out_bytes = ucma_event_put(&s->file.queue, first, call->out);
	ucma_event_taken(container_of(first, struct ucma_event, queued));
	return 0;
}

/* An event may have left the queue since, with its id. */
static int event_taken(struct ucma_call *call)
{
	const struct abi_cm_taken *cmd = call->in;
	struct ucma_event *event = ucma_event_find(call->session, cmd->number);

	if (event)
		ucma_event_taken(event);
	return 0;
}

static const struct {
	u32 name;
	int (*set)(struct rdma_cm_id *id, int value);
} int_options[] = {
	{RDMA_OPTION_ID_REUSEADDR, rdma_set_reuseaddr},
	{RDMA_OPTION_ID_AFONLY, rdma_set_afonly},
};

static int set_int_option(struct ucma_call *call, u32 name, const u8 *bytes)
{
	int value;

	memcpy(&value, bytes, sizeof(value));
	for (size_t i = 0; i < ARRAY_SIZE(int_options); i++)
		if (int_options[i].name == name)
			return int_options[i].set(call->id->cm_id, value);
	return -ENOSYS;
}

/* Set the path of the connection, in place of rdma_resolve_route(): the first record that is for both
 * directions and for MADs as well. The event ROUTE_RESOLVED follows, as after rdma_resolve_route(). */
static int set_ib_path(struct ucma_call *call, const u8 *records, size_t bytes)
{
	struct rdma_cm_event event = {.event = RDMA_CM_EVENT_ROUTE_RESOLVED};
	struct ib_path_rec_data record;
	struct sa_path_rec path;
	int ret;

	if (!bytes || bytes % sizeof(record) || !call->id->cm_id->device)
		return -EINVAL;
	do {
		if (!bytes)
			return -EINVAL;
		memcpy(&record, records, sizeof(record));
		records += sizeof(record);
		bytes -= sizeof(record);
	} while (record.flags != (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL));
	ib_sa_unpack_path(record.path_rec, &path);
	ret = rdma_set_ib_path(call->id->cm_id, &path);
	return ret ? ret : ucma_on_event(call->id->cm_id, &event);
}

/* The value of the option follows the command. */
static int set_option(struct ucma_call *call)
{
	const struct rdma_ucm_set_option *cmd = call->in;
	const u8 *value = (const u8 *)(cmd + 1);

	if (cmd->optlen != call->in_bytes - sizeof(*cmd))
		return -EINVAL;
	if (cmd->level == RDMA_OPTION_IB && cmd->optname == RDMA_OPTION_IB_PATH)
		return set_ib_path(call, value, cmd->optlen);
	if (cmd->level != RDMA_OPTION_ID)
		return -ENOSYS;
	if (cmd->optname == RDMA_OPTION_ID_ACK_TIMEOUT && cmd->optlen == sizeof(u8))
		return rdma_set_ack_timeout(call->id->cm_id, *value);
	if (cmd->optname == RDMA_OPTION_ID_TOS && cmd->optlen == sizeof(u8))
		rdma_set_service_type(call->id->cm_id, *value);
	/* A value of another length, which Linux refuses, is ignored. */
	if (cmd->optname == RDMA_OPTION_ID_TOS)
		return cmd->optlen ? 0 : -EINVAL;
	return cmd->optlen == sizeof(int) ? set_int_option(call, cmd->optname, value)
					  : -ENOSYS;
}

/* --- the table --- */

#define NO_ID SIZE_MAX
#define WHOLE(type) sizeof(struct rdma_ucm_##type), offsetof(struct rdma_ucm_##type, id)
#define UP_TO(member, type) \
	offsetof(struct rdma_ucm_##type, member), offsetof(struct rdma_ucm_##type, id)

/* clang-format off */
static const struct command {
	size_t in_bytes; /* the least length; additions of newer programs are ignored */
	size_t id_at; /* offset of the number of an id of the session; NO_ID */
	int (*run)(struct ucma_call *call);
	bool asks; /* the command is a query, and changes nothing */
} commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] = {sizeof(struct rdma_ucm_create_id), NO_ID, create_id},
	[RDMA_USER_CM_CMD_DESTROY_ID] = {WHOLE(destroy_id), destroy_id},
	[RDMA_USER_CM_CMD_BIND_IP] = {WHOLE(bind_ip), bind_ip},
	[RDMA_USER_CM_CMD_RESOLVE_IP] = {WHOLE(resolve_ip), resolve_ip},
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = {WHOLE(resolve_route), resolve_route},
	[RDMA_USER_CM_CMD_QUERY_ROUTE] = {UP_TO(option, query), ucma_query_route, true},
	[RDMA_USER_CM_CMD_QUERY] = {WHOLE(query), ucma_query, true},
	[RDMA_USER_CM_CMD_CONNECT] = {UP_TO(ece, connect), connect_id},
	[RDMA_USER_CM_CMD_LISTEN] = {WHOLE(listen), listen_id},
	[RDMA_USER_CM_CMD_ACCEPT] = {UP_TO(ece, accept), accept_id},
	[RDMA_USER_CM_CMD_REJECT] = {WHOLE(reject), reject_id},
	[RDMA_USER_CM_CMD_DISCONNECT] = {WHOLE(disconnect), disconnect_id},
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = {WHOLE(init_qp_attr), init_qp_attr, true},
	[RDMA_USER_CM_CMD_GET_EVENT] = {sizeof(struct rdma_ucm_get_event), NO_ID, get_event},
	[RDMA_USER_CM_CMD_SET_OPTION] = {WHOLE(set_option), set_option},
	[RDMA_USER_CM_CMD_NOTIFY] = {WHOLE(notify), notify_id},
	[RDMA_USER_CM_CMD_MIGRATE_ID] = {sizeof(struct rdma_ucm_migrate_id), NO_ID, migrate_id},
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = {WHOLE(join_ip_mcast), join_ip_mcast},
	[RDMA_USER_CM_CMD_LEAVE_MCAST] = {sizeof(struct rdma_ucm_destroy_id), NO_ID, leave_mcast},
	[RDMA_USER_CM_CMD_JOIN_MCAST] = {WHOLE(join_mcast), join_mcast},
	[RDMA_USER_CM_CMD_BIND] = {WHOLE(bind), bind_addr},
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = {WHOLE(resolve_addr), resolve_addr},
};
/* clang-format on */

static int open_told(struct ucma_call *call)
{
	return devfile_open_told(&call->session->file);
}

static const struct command told_ring = {0, NO_ID, open_told, true};
static const struct command taken = {sizeof(struct abi_cm_taken), NO_ID, event_taken, true};

/* Return: NULL: there is none */
static const struct command *command_of(u32 number)
{
	if (number == ABI_CM_TAKEN)
		return &taken;
	if (number == ABI_CM_TOLD_RING)
		return &told_ring;
	return number < ARRAY_SIZE(commands) && commands[number].run ? &commands[number] : NULL;
}

static bool find_id(struct ucma_call *call, size_t id_at)
{
	u32 number;

	if (id_at == NO_ID)
		return true;
	memcpy(&number, (const u8 *)call->in + id_at, sizeof(number));
	call->id = ucma_id_find(call->session, number);
	return call->id;
}

int ucma_ask(struct ucma_id *id, u32 cmd, u32 option, void *out, size_t *out_bytes)
{
	/* struct rdma_ucm_init_qp_attr has the same layout, with the state in the place of the option */
	const struct rdma_ucm_query in = {.id = id->number, .option = option};
	struct ucma_call call = {
		.session = id->session,
		.id = id,
		.in = &in,
		.in_bytes = sizeof(in),
		.out = out,
		.out_bytes = out_bytes,
		.room = UCMA_RESPONSE_MAX,
	};

	return commands[cmd].run(&call);
}

static int run(struct ucma_session *session, const void *in, size_t bytes, void *out,
	       size_t *out_bytes)
{
	const struct rdma_ucm_cmd_hdr *hdr = in;
	const struct command *command = command_of(hdr->cmd & ~ABI_CM_TOLD);
	struct ucma_call call = {
		.session = session,
		.told = hdr->cmd & ABI_CM_TOLD,
		.in = hdr + 1,
		.in_bytes = bytes - sizeof(*hdr),
		.out = out,
		.out_bytes = out_bytes,
	};

	if (!command)
		return -ENOSYS;
	if (hdr->in < command->in_bytes)
		return -EINVAL;
	if (!find_id(&call, command->id_at))
		return -ENOENT;
	call.room = MIN(hdr->out, (size_t)UCMA_RESPONSE_MAX);
	if (call.id && !call.id->cm_id && command->run != destroy_id)
		return -ENOMEM;
	if (call.id && !command->asks)
		ucma_changed(ucma_page_of(session), call.id->number);
	return command->run(&call);
}

/* Events in place of the answer to a command that is told */
static const struct {
	u32 cmd;
	enum rdma_cm_event_type event;
} failures[] = {
	{RDMA_USER_CM_CMD_RESOLVE_ADDR, RDMA_CM_EVENT_ADDR_ERROR},
	{RDMA_USER_CM_CMD_RESOLVE_ROUTE, RDMA_CM_EVENT_ROUTE_ERROR},
	{RDMA_USER_CM_CMD_CONNECT, RDMA_CM_EVENT_CONNECT_ERROR},
	{RDMA_USER_CM_CMD_ACCEPT, RDMA_CM_EVENT_CONNECT_ERROR},
};

static void report_failure(struct ucma_session *session, const struct rdma_ucm_cmd_hdr *hdr, int error)
{
	const u32 cmd = hdr->cmd & ~ABI_CM_TOLD;
	const struct command *command = command_of(cmd);
	struct rdma_cm_event event = {.status = error};
	struct ucma_call call = {.session = session, .in = hdr + 1};

	if (!command || hdr->in < command->in_bytes || !find_id(&call, command->id_at) || !call.id ||
	    !call.id->cm_id || !list_empty(&call.id->events))
		return;
	if (cmd == RDMA_USER_CM_CMD_ACCEPT && !call.id->uid) /* the id has its name, and its events */
		call.id->uid = ((const struct rdma_ucm_accept *)call.in)->uid;
	for (size_t i = 0; i < ARRAY_SIZE(failures); i++) {
		event.event = failures[i].event;
		if (failures[i].cmd == cmd)
			ucma_on_event(call.id->cm_id, &event);
	}
}

/* May other commands follow one that is told? */
static bool may_precede(u32 cmd)
{
	return cmd == (ABI_CM_TAKEN | ABI_CM_TOLD) || cmd == (RDMA_USER_CM_CMD_CREATE_ID | ABI_CM_TOLD);
}

int ucma_command(struct ucma_session *session, const void *in, size_t bytes, void *out,
		 size_t *out_bytes)
{
	const struct rdma_ucm_cmd_hdr *hdr;
	size_t len;
	int ret;

	for (int i = 0; i < ABI_CM_TOLD_MAX; i++) {
		hdr = in;
		if (bytes < sizeof(*hdr) || hdr->in > bytes - sizeof(*hdr))
			return -EINVAL;
		if (!(hdr->cmd & ABI_CM_TOLD))
			return run(session, in, bytes, out, out_bytes);
		if (hdr->in % 8)
			return -EINVAL;
		len = sizeof(*hdr) + hdr->in;
		ret = run(session, in, len, out, out_bytes);
		if (ret)
			report_failure(session, hdr, ret);
		in = (const u8 *)in + len;
		bytes -= len;
		if (!bytes)
			return DEVFILE_NO_ANSWER;
		if (!may_precede(hdr->cmd))
			return -EINVAL;
	}
	return -EINVAL;
}
