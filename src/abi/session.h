/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The messages between programs and softibd. The runtime directory of a fabric
 * has seven SOCK_SEQPACKET sockets: "uverbs", "umad", "ucm", "rdma_cm", "netlink", "sdp" and "control". The
 * first message of a connection to all but control names the "device file" that it opens.
 * softibd answers with struct abi_reply: error 0, or the error that open(2) would
 * return, after which softibd closes the connection. The messages that follow are:
 *
 *  uverbs   each message is one command of <rdma/ib_user_verbs.h> (struct
 *           ib_uverbs_cmd_hdr, the command's struct, its `response` field
 *           unused) and is answered by struct abi_reply and the command's
 *           response struct: what write() does on the character device.
 *  umad     a message is what read() or write() moves on the character
 *           device: struct ib_user_mad (with pkey_index) and the MAD. If that
 *           exceeds ABI_UMAD_INLINE, the message has struct ib_user_mad only, and
 *           a memfd (SCM_RIGHTS) has the whole record.
 *           ioctl(2) uses a second socket, which comes with softibd's answer
 *           to the opening message: struct abi_ioctl and its argument, answered by
 *           struct abi_reply and the argument.
 *  ucm      a message announces an event, for the command EVENT. Commands use a second socket, which comes
 *           with softibd's answer to the opening message: what write() takes on the character device
 *           (struct ib_ucm_cmd_hdr, the command, and what its addresses point to: abi/ucm.h), answered by
 *           struct abi_reply and the response.
 *  rdma_cm  a message is an event that GET_EVENT can return (abi/cm_event.h).
 *           Commands use a second socket, which comes with softibd's answer to the
 *           opening message: what write() takes on the character device (struct
 *           rdma_ucm_cmd_hdr, the command, and the value of SET_OPTION), answered by
 *           struct abi_reply and the response. Those of DESTROY_ID, LEAVE_MCAST and MIGRATE_ID
 *           also say how many messages stand for no event. Behind an event may follow answers to
 *           further questions (abi/ahead.h).
 *  netlink  a message is a datagram of a netlink socket of NETLINK_RDMA: requests of the
 *           client NLDEV, and answers (<rdma/rdma_netlink.h>).
 *  sdp      a connection is a socket that is bound or listens (abi/sdp.h).
 *  control  one JSON object per message: docs/CONTROL.md.
 *
 * The environment that names a fabric and a node: SOFTIB_DIR (the runtime
 * directory) and SOFTIB_NODE (a name; the first node when unset).
 */
#ifndef SOFTIB_ABI_SESSION_H
#define SOFTIB_ABI_SESSION_H

#include <errno.h>
#include <stdint.h>

#include <rdma/ib_user_verbs.h>

#define ABI_MAGIC 0x42495453u /* "STIB" */
#define ABI_VERSION 15
#define ABI_ENV_DIR "SOFTIB_DIR"
#define ABI_ENV_NODE "SOFTIB_NODE"
/* the folder of the node's files, for lib/libnodefiles */
#define ABI_ENV_FILES "SOFTIB_FILES"
#define ABI_NAME_BYTES 64
#define ABI_MESSAGE_MAX 65536
#define ABI_UMAD_INLINE 32768
#define ABI_PORT_PKEYS 128

enum abi_open_kind {
	ABI_OPEN_LIST = 0,  /* no device: answer with abi_device_info records */
	ABI_OPEN_UVERBS = 1, /* on "uverbs" */
	ABI_OPEN_UMAD = 2,  /* on "umad": the answer carries the ioctl socket */
	ABI_OPEN_PORT = 3,  /* on "umad": answer with struct abi_port_info */
	ABI_OPEN_RDMA_CM = 4, /* on "rdma_cm": the answer carries the socket of commands */
	ABI_OPEN_SDP = 5, /* on "sdp": messages of abi/sdp.h follow */
	ABI_OPEN_NETLINK = 6, /* on "netlink" */
	ABI_OPEN_UCM = 7, /* on "ucm": the answer carries the socket of commands */
};

/** struct abi_open - the first message of a connection; @device: on "uverbs", "umad" and "ucm" */
struct abi_open {
	uint32_t magic, version;
	uint32_t kind;	/* enum abi_open_kind */
	uint32_t port;	/* umad: port number of the device */
	char node[ABI_NAME_BYTES]; /* "" for the first node */
	char device[ABI_NAME_BYTES];
};

/** struct abi_reply - heads every answer; @error is 0 or a negative errno */
struct abi_reply {
	int32_t error;
	uint32_t bytes; /* that follow */
};

/** abi_reply_error() - @reply.error, or -EPROTO when it can be no errno */
static inline int abi_reply_error(const struct abi_reply *reply)
{
	return reply->error > 0 || reply->error < -4095 ? -EPROTO : reply->error;
}

/** struct abi_device_info - one adapter of the node (ABI_OPEN_LIST) */
struct abi_device_info {
	char name[ABI_NAME_BYTES];	/* "softib0" */
	char node_desc[ABI_NAME_BYTES];
	char fw_ver[ABI_NAME_BYTES];
	char board_id[ABI_NAME_BYTES];
	uint64_t node_guid, sys_image_guid; /* host order */
	uint32_t vendor_id, vendor_part_id, hw_ver;
	uint32_t num_ports;
	uint32_t index;		/* uverbsN */
	uint32_t umad_base;	/* port p is umad(umad_base + p - 1) and issm */
};

/** struct abi_port_info - a port as it is now (ABI_OPEN_PORT), host order */
struct abi_port_info {
	uint32_t cap_mask;
	uint16_t lid, sm_lid;
	uint8_t lmc, sm_sl;
	uint8_t state, phys_state; /* enum ibv_port_state and PortInfo's */
	uint8_t width_enc;
	uint8_t link_layer; /* enum ib_link_layer; Ethernet: @lid is 0 */
	uint16_t speed_enc;
	uint16_t num_pkeys;	/* size of the table, at most ABI_PORT_PKEYS */
	uint8_t gid[16];	/* entry 0 */
	char issm[ABI_NAME_BYTES]; /* file below the runtime directory: open is IsSM */
	uint16_t pkey[ABI_PORT_PKEYS];
};

/** ABI_UMAD_TOLD_RING - a request of the umad's ioctl socket, without an argument: a ring for records of at most
 *  ABI_TOLD_RECORD_MAX (abi/told.h) */
#define ABI_UMAD_TOLD_RING 0x5f00u

/** struct abi_ioctl - on the umad's ioctl socket; the argument follows:
 *  struct ib_user_mad_reg_req, ib_user_mad_reg_req2 or a __u32 agent id */
struct abi_ioctl {
	uint32_t request; /* IB_USER_MAD_REGISTER_AGENT ... */
	uint32_t bytes;
};

/*
 * uverbs: IB_USER_VERBS_CMD_GET_CONTEXT answers with struct
 * abi_context_resp and these descriptors, in this order.
 */
enum abi_context_fd {
	ABI_FD_DEVPAGE,	      /* memfd, read-only: struct abi_devpage */
	ABI_FD_LINK,	      /* memfd: struct abi_ring to softibd, to the engine, struct abi_counters */
	ABI_FD_DOORBELL,      /* eventfd: rung by the engine, softibd sleeps on it */
	ABI_FD_ASYNC_READ,    /* SOCK_SEQPACKET: struct ib_uverbs_async_event_desc */
	ABI_FD_ASYNC_WRITE,   /* its other end: for events the engine raises */
	ABI_FD_LANES,	      /* SOCK_SEQPACKET: struct abi_lane_event (abi/lane.h) */
	ABI_FD_WINDOWS,	      /* SOCK_SEQPACKET: struct abi_window_msg (abi/window.h) */
	ABI_FD_WINDOW_PAGE,   /* memfd: struct abi_window_page, the program's to write */
	ABI_FD_PROGRAM_DOORBELL, /* pipe: rung by softibd; lanes have their own doorbells */
	ABI_CONTEXT_FDS
};

/*
 * ABI_CMD_COMPLETION on the uverbs socket, while abi_devpage.completion_faults
 * is set: a request has succeeded, and the rules of `softib fault` decide the status
 * of its completion.
 */
#define ABI_CMD_COMPLETION 0x5f01u

struct abi_completion {
	uint32_t qpn;
	uint32_t opcode; /* enum ibv_wc_opcode */
};

struct abi_completion_resp {
	int32_t status; /* enum ibv_wc_status; ABI_COMPLETION_OVERRUN: its CQ is full */
	uint32_t reserved;
};
#define ABI_COMPLETION_OVERRUN (-1)

/*
 * ABI_CMD_MODIFIED on the uverbs socket: struct ib_uverbs_modify_qp, of a transition that the
 * library has made because softibd cannot refuse it. It is not answered. If softibd refuses it
 * nevertheless, it raises IBV_EVENT_QP_FATAL. Another command may follow it in its message, which has
 * ABI_TOLD_FIRST_MAX commands that are not answered, or those and the one that is answered.
 */
#define ABI_CMD_MODIFIED 0x5f0eu
#define ABI_TOLD_FIRST_MAX 16

/*
 * Queue pairs that softibd grants to a program that has created as many RC QPs: the response to
 * IB_USER_VERBS_CMD_CREATE_QP is struct abi_created_qp if the program has room for it. The program
 * gives RC QPs that it creates later these handles and numbers, and tells softibd by
 * ABI_CMD_CREATED_QP with struct abi_create_granted_qp, which is as ABI_CMD_MODIFIED. softibd has
 * reserved them; if it lacks memory, it raises IBV_EVENT_QP_FATAL. The grant ends when the program asks
 * IB_USER_VERBS_CMD_CREATE_QP again, as it does while abi_devpage.creation_faults is set.
 */
#define ABI_CMD_CREATED_QP 0x5f0fu
#define ABI_QPS_GRANTED	   16

struct abi_created_qp {
	struct ib_uverbs_create_qp_resp resp;
	uint32_t count; /* of the grant */
	struct abi_granted_qp {
		uint32_t handle, qpn;
	} granted[ABI_QPS_GRANTED];
};

struct abi_create_granted_qp {
	struct ib_uverbs_create_qp cmd; /* whose QP is within the limits of the device */
	uint32_t handle;
	uint32_t reserved;
};

/* ABI_CMD_TOLD_RING on the uverbs socket: a ring for the commands above (abi/told.h). Its answer has no body */
#define ABI_CMD_TOLD_RING 0x5f10u

#define ABI_TOKEN_BYTES 16

struct abi_context_resp {
	uint32_t num_ports;
	uint32_t ring_bytes;	   /* data bytes of each ring */
	uint64_t to_daemon_offset; /* in the link memfd */
	uint64_t to_engine_offset;
	uint8_t token[ABI_TOKEN_BYTES]; /* who has it may share the context's objects (abi/share.h) */
	uint32_t program; /* the number by which others know it: abi_lane_event.owner */
	uint32_t counters_offset; /* in the link memfd; 0: nobody reads any */
};

#endif
