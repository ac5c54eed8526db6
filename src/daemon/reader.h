/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Readers of the control socket: records in shared memory for another process, which
 * reads them at its own pace (abi/reader.h). A record costs softibd one copy and no
 * system call; a sleeping reader costs one doorbell for each turn of the loop.
 */
#ifndef SOFTIB_DAEMON_READER_H
#define SOFTIB_DAEMON_READER_H

#include "abi/reader.h"
#include "runtime/rt.h"

/** struct reader - softibd's side; the owner embeds it
 *  @stop: ends the reader, which can still read what was copied, and frees the owner */
struct reader {
	struct rt *rt;
	void (*stop)(struct reader *reader);
	struct rt_work publish;
	struct abi_ring_tx tx;
	uint64_t matched, dropped;
	struct abi_reader *shared;
	size_t shared_bytes;
	int memory_fd;
	int doorbell_fd[2]; /* a pipe: the reader's end, and softibd's */
};

/**
 * reader_open() - make the shared memory of @reader
 * @name: of the memfd
 * @ring_bytes: a power of two
 * Return: 0; -errno of the system, and there is nothing to close
 */
int reader_open(struct rt *rt, struct reader *reader, const char *name, uint32_t ring_bytes);
/** reader_close() - publish the last records and close softibd's side. The reader can still read
 *  them */
void reader_close(struct reader *reader);
/** reader_reserve() - Return: room for a record of @bytes, which reader_commit() publishes; NULL:
 *  there is no room, and the record is counted as dropped */
void *reader_reserve(struct reader *reader, size_t bytes);
void reader_commit(struct reader *reader, size_t bytes);
/** reader_dup_fds() - duplicate the reader's descriptors: memfd and doorbell. 0; -EMFILE */
int reader_dup_fds(const struct reader *reader, int fd[2]);

/** reader_time_ns() - Return: the time for records: nanoseconds since 1970 */
uint64_t reader_time_ns(void);

#endif
