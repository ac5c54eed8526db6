/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands of programs that share objects (abi/share.h). A context is identified by a token of random
 * bits, which its library passes on only together with context->cmd_fd. softibd connects the two
 * programs; it takes no part in the accesses of one to the memory of the other.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "access/uverbs_private.h"

int share_make_token(struct session *s)
{
	return getrandom(s->token, sizeof(s->token), 0) == sizeof(s->token) ? 0 : -EIO;
}

int cmd_share(struct call *call)
{
	const struct abi_share_context *in = call->in;
	struct session *s = call->session, *with = uverbs_session_of(s->uverbs, in->token);
	int ret;

	if (!with)
		return -ENOENT;
	ret = ib_ucontext_share(s->context, with->context);
	if (!ret) /* one token identifies all sessions of a shared context */
		memcpy(s->token, with->token, sizeof(s->token));
	return ret;
}

int cmd_reach(struct call *call)
{
	const struct abi_reach *in = call->in;
	struct session *s = call->session;
	struct ib_mr *mr = ib_uobject_get(s->context, IB_UOBJECT_MR, in->mr_handle);
	int pair[2], ret;

	if (IS_ERR(mr))
		return (int)PTR_ERR(mr);
	if (mr->uobject->context == s->context || mr->dm)
		return -EINVAL;
	if (!s->device->ops->introduce)
		return -EOPNOTSUPP;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	ret = s->device->ops->introduce(mr->uobject->context, pair[0]);
	close(pair[0]);
	if (ret) {
		close(pair[1]);
		return ret;
	}
	call->fds = call->driver_fds;
	call->driver_fds[0] = pair[1];
	call->num_fds = 1;
	return 0;
}
