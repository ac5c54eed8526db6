/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the operations "capture" and "trace" have in common: a reader that lasts as long as the
 * connection of its request. */
#include <errno.h>
#include <stdlib.h>

#include "daemon/control_private.h"
#include "daemon/reader.h"

struct held_reader {
	struct control_lease lease;
	struct reader *reader;
};

static void end(struct control_lease *lease)
{
	struct held_reader *held = container_of(lease, struct held_reader, lease);

	held->reader->stop(held->reader);
	free(held);
}

bool control_may_read(struct control_request *req)
{
	if (!control_client_holds(req->client))
		return true;
	control_fail(req, "this connection has a capture or a trace already: open another connection");
	return false;
}

bool control_ring_bytes(struct control_request *req, const struct control_ring *limits,
			uint32_t *ring_bytes)
{
	int64_t wanted = control_number(req, "ring_bytes", limits->most);

	if (wanted == -2)
		return false;
	*ring_bytes = limits->least;
	while (*ring_bytes < (wanted < 0 ? limits->usual : wanted))
		*ring_bytes *= 2;
	return true;
}

int control_pass_reader(struct control_request *req, struct reader *reader)
{
	struct held_reader *held = calloc(1, sizeof(*held));
	int fd[2], ret;

	if (!held) {
		reader->stop(reader);
		return -ENOMEM;
	}
	*held = (struct held_reader){.lease.end = end, .reader = reader};
	ret = reader_dup_fds(reader, fd);
	if (ret) {
		end(&held->lease);
		return ret;
	}
	control_client_lease(req->client, &held->lease);
	control_client_pass(req->client, fd, 2);
	return 0;
}
