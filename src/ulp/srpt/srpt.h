/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * SRP target: files, block devices and memory of softibd's user as SCSI disks, an
 * upper-level protocol on the midlayer's interface. An adapter has a target for each I/O controller
 * in the slots of its I/O unit, 1 to SRP_CONTROLLERS, which listens on all of its ports. The protocol is in srp/, the disk in scsi/.
 */
#ifndef SOFTIB_ULP_SRPT_H
#define SOFTIB_ULP_SRPT_H

#include "rdma/ib_verbs.h"
#include "scsi/scsi.h"
#include "srp/describe.h"

struct srpt;

/** struct srpt_unit_config - a unit
 *  @slot: of its target
 *  @fd: a file, a block device or a memfd
 *  @kept_fd: a file, empty at first, in which its reservations outlast the unit; -1: none
 *  @name: for people
 *  @block_bytes: 512 or 4096
 *  @read_only: writes are refused
 *  @write_through: what is acknowledged is on the medium
 *  @sparse: blocks can be discarded; those of a memfd always can */
struct srpt_unit_config {
	unsigned int slot;
	int fd, kept_fd;
	const char *name;
	u32 block_bytes;
	bool read_only, write_through, sparse;
};

/** struct srpt_unit_info - a unit, for people */
struct srpt_unit_info {
	unsigned int lun;
	const char *name;
	u64 bytes;
	u32 block_bytes;
	bool read_only, write_through, sparse, in_memory, keeps_reservations;
};

/** struct srpt_channel_info - a channel, for people */
struct srpt_channel_info {
	u8 initiator[16];
	union ib_gid gid;
	u32 port_num, qpn;
	u32 outstanding, limit;
	u64 commands;
};

/** srpt_init() - start the targets of the fabric whose loop is @rt, after ib_cm_init()
 *  Return: 0; -ENOMEM; -EEXIST: they were started already */
int srpt_init(struct rt *rt);
/** srpt_cleanup() - end all targets of the fabric. Waits for commands that a medium has in work */
void srpt_cleanup(struct rt *rt);

/**
 * srpt_unit_add() - serve one more unit from an adapter; the first one starts its target
 * @lun: set to its logical unit number
 * config->fd and config->kept_fd are the unit's from now on, unless it fails.
 * Return: 0; -ENODEV no such adapter; -EINVAL neither a file nor a block device, or
 * smaller than a block; -EACCES not open for writing; -ENOSPC SCSI_MAX_LUNS units; -EBUSY
 * a program has the device management class of a port; -ENOTSUP memory cannot keep
 * reservations; -EBADMSG, -ETXTBSY, -EBADF config->kept_fd has something else, is that of another
 * unit, is no file; -ENOMEM; -errno
 */
int srpt_unit_add(struct ib_device *device, const struct srpt_unit_config *config,
		  unsigned int *lun);
/** srpt_unit_remove() - the last one ends the target. Return: 0; -ENOENT */
int srpt_unit_remove(struct ib_device *device, unsigned int slot, unsigned int lun);
/** srpt_remove() - end the target in @slot (0: all of the adapter's). Its initiators are
 *  disconnected. Return: 0; -ENOENT */
int srpt_remove(struct ib_device *device, unsigned int slot);

/** srpt_find() - Return: the target in a slot of an adapter; NULL */
struct srpt *srpt_find(struct ib_device *device, unsigned int slot);
/** srpt_guid() - the target's I/O controller GUID; the identifier extension of its port,
 * too */
u64 srpt_guid(const struct srpt *srpt);
u64 srpt_service_id(const struct srpt *srpt);
/** srpt_each_unit(), srpt_each_channel() - until @fn returns non-zero: that; else 0 */
int srpt_each_unit(struct srpt *srpt,
		   int (*fn)(void *ctx, const struct srpt_unit_info *info), void *ctx);
int srpt_each_channel(struct srpt *srpt,
		      int (*fn)(void *ctx, const struct srpt_channel_info *info),
		      void *ctx);

#endif
