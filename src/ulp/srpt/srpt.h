/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The SRP target, an upper-level protocol on the midlayer's interface. It exports files, block
 * devices and memory of softibd's user as SCSI disks. The I/O unit of an adapter has SRP_CONTROLLERS
 * slots, and each I/O controller in a slot is a target, which listens on all ports of the adapter.
 * src/srp has the protocol, src/scsi the disk.
 */
#ifndef SOFTIB_ULP_SRPT_H
#define SOFTIB_ULP_SRPT_H

#include "rdma/ib_verbs.h"
#include "scsi/scsi.h"
#include "srp/describe.h"

struct srpt;
struct srpt_adding;

/** struct srpt_unit_config - the parameters of a logical unit
 *  @slot: slot of its target
 *  @fd: a file, a block device or a memfd
 *  @kept_fd: a file, empty at first, that preserves its reservations; -1: none
 *  @name: its name for users
 *  @block_bytes: 512 or 4096
 *  @read_only: writes are refused
 *  @write_through: a write is acknowledged when it is on the medium
 *  @sparse: blocks can be discarded; those of a memfd always can */
struct srpt_unit_config {
	unsigned int slot;
	int fd, kept_fd;
	const char *name;
	u32 block_bytes;
	bool read_only, write_through, sparse;
};

/** struct srpt_unit_info - attributes of a unit that softib shows to users */
struct srpt_unit_info {
	unsigned int lun;
	const char *name;
	u64 bytes;
	u32 block_bytes;
	bool read_only, write_through, sparse, in_memory, keeps_reservations;
};

/** struct srpt_channel_info - attributes of a channel that softib shows to users */
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
/** srpt_cleanup() - end all targets of the fabric. Waits until no medium performs a command any more */
void srpt_cleanup(struct rt *rt);

/**
 * srpt_unit_add() - add a logical unit to a target; the first one starts the target
 * @config: on success the unit owns config->fd and config->kept_fd, whatever @done is called with
 * @done: called by the loop, once, with the unit's logical unit number, unless it is forgotten before.
 *	@result: 0; -ENODEV: the adapter is gone; -EINVAL: fd is neither a file nor a block device, or
 *	is smaller than a block; -EACCES: it is not open for writing; -ENOSPC: there are SCSI_MAX_LUNS
 *	units; -EBUSY: a program has registered the device management class of a port; -EBADMSG: kept_fd
 *	has other contents; -ETXTBSY: another unit uses it; -EBADF: it is not a regular file; -ENOMEM;
 *	-errno
 * @adding: the unit, until @done is called
 *
 * Threads look at the files, because their server may be elsewhere and not answer.
 * Return: 0; -EINVAL: block_bytes is neither 512 nor 4096; -ENOTSUP: reservations of a unit in memory
 * cannot be preserved; -EAGAIN: the files of as many units as can be examined at a time do not
 * answer; -ENOMEM; -errno
 */
int srpt_unit_add(struct ib_device *device, const struct srpt_unit_config *config,
		  void (*done)(void *ctx, int result, unsigned int lun), void *ctx,
		  struct srpt_adding **adding);
/** srpt_adding_forget() - do not add the unit: its files are closed as soon as they answer, and done() is
 *  not called */
void srpt_adding_forget(struct srpt_adding *adding);
/** srpt_unit_remove() - remove a logical unit; the last one ends the target. Return: 0; -ENOENT */
int srpt_unit_remove(struct ib_device *device, unsigned int slot, unsigned int lun);
/** srpt_remove() - end the target in @slot (0: all of the adapter's). Its initiators are
 *  disconnected. Return: 0; -ENOENT */
int srpt_remove(struct ib_device *device, unsigned int slot);

/** srpt_find() - Return: the target in a slot of an adapter; NULL */
struct srpt *srpt_find(struct ib_device *device, unsigned int slot);
/** srpt_guid() - Return: the target's I/O controller GUID, which is also the identifier extension of
 *  its SRP target port */
u64 srpt_guid(const struct srpt *srpt);
u64 srpt_service_id(const struct srpt *srpt);
/** srpt_each_unit(), srpt_each_channel() - call @fn for each, until it returns non-zero. Return: the
 *  last value of @fn; 0: there is none */
int srpt_each_unit(struct srpt *srpt,
		   int (*fn)(void *ctx, const struct srpt_unit_info *info), void *ctx);
int srpt_each_channel(struct srpt *srpt,
		      int (*fn)(void *ctx, const struct srpt_channel_info *info),
		      void *ctx);

#endif
