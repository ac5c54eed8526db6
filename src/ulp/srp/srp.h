/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The SRP initiator: an upper-level protocol on the midlayer's interface alone. A session is
 * an adapter's login to one target, by one or more channels; each of its units is a disk
 * that programs reach by NBD, on one socket of the fabric.
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

/** struct srp_path - a port of the adapter, and one of the target */
struct srp_path {
	u32 port_num;
	union ib_gid dgid;
};

/** struct srp_found - a target, and how it is reached */
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

/* --- discovery --------------------------------------------------------------------- */

struct srp_discovery;

/**
 * srp_discover() - ask the ports of the fabric for their SRP targets
 * @only: ports to ask, @nr_only of them; 0: all that the subnet administrator knows paths to
 * @done: from the loop, once; @status: 0, or why no port could be asked; then the discovery
 *	is over
 * Return: the discovery; ERR_PTR(-ENOMEM, -ENODEV; -EAGAIN: the port has no subnet manager)
 */
struct srp_discovery *srp_discover(struct ib_device *device, u32 port_num,
				   const union ib_gid *only, unsigned int nr_only,
				   void (*done)(void *ctx, int status,
						const struct srp_found *found, unsigned int nr),
				   void *ctx);
/** srp_discover_cancel() - @done is not called. Context: not from @done */
void srp_discover_cancel(struct srp_discovery *d);

/* --- sessions ------------------------------------------------------------------------ */

struct srp_session;

/** struct srp_session_config - a login
 *  @name: of the target, for people and in the names of exports
 *  @done: from the loop, once: @error is NULL if the session is there and its units are
 *  known, else why it is not, in words, and the session is gone */
struct srp_session_config {
	struct ib_device *device;
	char name[SRP_TARGET_NAME];
	struct srpi_target target;
	struct srp_path path[SRP_CHANNELS_MOST]; /* a channel each */
	unsigned int nr_paths;
	struct srpi_timeouts timeouts;
	unsigned int command_timeout_s; /* then a command is aborted */
	void (*done)(void *ctx, struct srp_session *session, const char *error);
	void *ctx;
};

/** srp_login() - Return: 0: @config->done will be called; -EEXIST: there is a session with the
 *  target; -ENOMEM, -ENODEV, -EMFILE, what making the socket said */
int srp_login(const struct srp_session_config *config);
/** srp_login_forget() - config.done of @ctx is not called. @rt: the fabric's loop */
void srp_login_forget(struct rt *rt, void *ctx);
/** srp_logout() - end a session at once: commands and connections of its units end */
void srp_logout(struct srp_session *session);
/** srp_find() - Return: the session of that adapter and name; NULL */
struct srp_session *srp_find(const struct ib_device *device, const char *name);

/** struct srp_channel_info, srp_unit_info, srp_session_info - for people */
struct srp_channel_info {
	struct srp_path path;
	bool up;
	u64 commands;
	int64_t limit;
	const char *error; /* why it is down */
};

struct srp_unit_info {
	u8 lun[8];
	const struct srpi_disk *disk;
	char export[256]; /* its name */
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
