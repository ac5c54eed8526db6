/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The SRP initiator: an upper-level protocol that uses only the midlayer's public interface. A
 * session is the login of an adapter to one target, with one or more channels. Programs access its
 * logical units as disks by NBD, through one socket of the fabric.
 */
#ifndef SOFTIB_ULP_SRP_H
#define SOFTIB_ULP_SRP_H

#include "rdma/ib_verbs.h"
#include "srp/disk.h"
#include "srp/initiator.h"
#include "srp/scan.h"

#define SRP_CHANNELS_MOST 16
#define SRP_TARGET_NAME	  64
#define SRP_ERROR_BYTES	  192

/** struct srp_path - a path: a port of the adapter, and a port of the target */
struct srp_path {
	u32 port_num;
	union ib_gid dgid;
};

/** struct srp_found - a target that was discovered, and a path to it */
struct srp_found {
	struct srpi_target target;
	struct srp_path path;
};

/** srp_init() - start the initiators of the fabric whose loop is @rt, after ib_cm_init()
 *  @dir: the folder in which the first session makes the socket of its units
 *  Return: 0; -ENAMETOOLONG, -ENOMEM, -EEXIST: they were started already */
int srp_init(struct rt *rt, const char *dir);
/** srp_cleanup() - end all sessions and discoveries of the fabric */
void srp_cleanup(struct rt *rt);

/* --- discovery --- */

struct srp_discovery;

/**
 * srp_discover() - discover the SRP targets of ports of the fabric
 * @only: the ports to ask, @nr_only of them; 0: all ports to which the subnet administrator knows paths
 * @done: called once, from the loop, when the discovery has ended. @status: 0; -errno: no port could be
 *	  asked
 * Return: the discovery; ERR_PTR(-ENOMEM, -ENODEV; -EAGAIN: the port has no subnet manager)
 */
struct srp_discovery *srp_discover(struct ib_device *device, u32 port_num,
				   const union ib_gid *only, unsigned int nr_only,
				   void (*done)(void *ctx, int status,
						const struct srp_found *found, unsigned int nr),
				   void *ctx);
/** srp_discover_cancel() - end a discovery without a call of @done. Context: not from @done */
void srp_discover_cancel(struct srp_discovery *d);

/* --- sessions --- */

struct srp_session;

/** struct srp_session_config - the parameters of a login
 *  @name: name of the target, which is also in the names of exports
 *  @done: called once, from the loop. @error: NULL: the session is established, and its units are
 *  known; else a message, and there is no session */
struct srp_session_config {
	struct ib_device *device;
	char name[SRP_TARGET_NAME];
	struct srpi_target target;
	struct srp_path path[SRP_CHANNELS_MOST]; /* one for each channel */
	unsigned int nr_paths;
	struct srpi_timeouts timeouts;
	unsigned int command_timeout_s; /* after this time a command is aborted */
	void (*done)(void *ctx, struct srp_session *session, const char *error);
	void *ctx;
};

/** srp_login() - begin to log in to a target
 *  Return: 0: @config->done will be called; -EEXIST: there is a session with the target already;
 *  -ENOMEM; -ENODEV; -EMFILE; an error of srp_exports_open() */
int srp_login(const struct srp_session_config *config);
/** srp_login_forget() - do not call config.done of the login with @ctx. @rt: the fabric's loop */
void srp_login_forget(struct rt *rt, void *ctx);
/** srp_logout() - end a session at once, with the commands and the connections of its units */
void srp_logout(struct srp_session *session);
/** srp_find() - Return: the session of an adapter with the target @name; NULL */
struct srp_session *srp_find(const struct ib_device *device, const char *name);

/** struct srp_channel_info, srp_unit_info, srp_session_info - attributes that softib shows to users */
struct srp_channel_info {
	struct srp_path path;
	bool up;
	u64 commands;
	int64_t limit;
	const char *error; /* the reason why it is down */
};

struct srp_unit_info {
	u8 lun[8];
	const struct srpi_disk *disk;
	char export[256]; /* the name of its export */
	u32 clients;
};

struct srp_session_info {
	struct ib_device *device;
	const char *name, *socket;
	struct srpi_target target;
	enum srpi_state state;
	unsigned int nr_channels, nr_units;
	u64 commands, repeated, aborted;
	u64 tables, fetched_tables; /* commands with indirect descriptors; of these, those
				     * whose table the target fetches */
};

/** srp_each_session() - call @fn for each session of the fabric whose loop is @rt, until it returns
 *  non-zero, which is returned. @fn may end the session */
int srp_each_session(struct rt *rt, int (*fn)(void *ctx, struct srp_session *session), void *ctx);
void srp_session_describe(const struct srp_session *session, struct srp_session_info *info);
void srp_channel_describe(const struct srp_session *session, unsigned int i,
			  struct srp_channel_info *info);
void srp_unit_describe(const struct srp_session *session, unsigned int i,
		       struct srp_unit_info *info);

#endif
