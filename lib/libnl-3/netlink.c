/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Link-layer addresses of IPoIB interfaces for programs that use libnl: ibacm, which dies of an
 * interface of InfiniBand without one. They load this library by the name libnl-3.so.200 and, through
 * it, the distribution's, whose calls of recvmsg() are led here (redirect.h).
 */
#include <stdlib.h>

#include "abi/session.h"
#include "links/links.h"
#include "redirect/redirect.h"

static const struct redirection redirections[] = {
	{"recvmsg", (void (*)(void))links_receive},
};

__attribute__((constructor)) static void redirect(void)
{
	if (getenv(ABI_ENV_DIR))
		redirect_or_warn(GENUINE, redirections, 1, "libnl-3", "softib's lib/links",
				 "interfaces of IPoIB have no address");
}
