/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Parses and sends messages of the control socket. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/fds.h"
#include "daemon/control_private.h"

#define MAX_DEPTH 8 /* of a request's JSON */

struct json_object *control_parse(const char *text, size_t bytes, const char **why)
{
	struct json_tokener *tok = json_tokener_new_ex(MAX_DEPTH);
	struct json_object *in;

	if (!tok) {
		*why = "out of memory";
		return NULL;
	}
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	in = json_tokener_parse_ex(tok, text, (int)bytes);
	*why = json_tokener_get_error(tok) == json_tokener_success
		       ? "the request is not one object; expected {\"op\": ...}"
	       : json_tokener_get_error(tok) == json_tokener_continue
		       ? "the request ends too early"
		       : json_tokener_error_desc(json_tokener_get_error(tok));
	if (in && (json_tokener_get_parse_end(tok) != bytes ||
		   !json_object_is_type(in, json_type_object))) {
		*why = "the request is not one object; expected {\"op\": ...}";
		json_object_put(in);
		in = NULL;
	}
	json_tokener_free(tok);
	return in;
}

int control_memfd(const char *text, size_t bytes)
{
	int fd = memfd_create("softib-control", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n <= 0) {
			close(fd);
			return -ENOSPC;
		}
		text += n;
		bytes -= (size_t)n;
	}
	return fd;
}

int control_send(int fd, const char *text, size_t bytes, const int *pass_fd)
{
	unsigned n = 0;

	while (pass_fd && n < CONTROL_FDS && pass_fd[n] >= 0)
		n++;
	return abi_send_fds(fd, text, bytes, pass_fd, n, MSG_DONTWAIT);
}
