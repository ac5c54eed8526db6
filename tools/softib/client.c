/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The control socket from a program's side: docs/CONTROL.md. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "abi/fds.h"
#include "abi/await.h"
#include "abi/session.h"
#include "base/types.h"
#include "softib.h"

#define ANSWER_MAX (256u << 20)

struct json_object *request(const char *op)
{
	struct json_object *req = json_object_new_object();

	request_text(req, "op", op);
	return req;
}

void request_text(struct json_object *req, const char *key, const char *text)
{
	json_object_object_add(req, key, json_object_new_string(text));
}

void request_number(struct json_object *req, const char *key, int64_t n)
{
	json_object_object_add(req, key, json_object_new_int64(n));
}

void request_host(struct json_object *req, const char *node)
{
	request_text(req, "node", node);
	json_object_object_add(req, "host", json_object_new_boolean(1));
}

struct json_object *member_of(struct json_object *o, const char *key)
{
	struct json_object *member = NULL;

	json_object_object_get_ex(o, key, &member);
	return member;
}

const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *member = member_of(o, key);

	return member ? json_object_get_string(member) : "";
}

size_t count_of(struct json_object *list)
{
	return json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;
}

struct json_object *item_of(struct json_object *list, size_t i)
{
	return i < count_of(list) ? json_object_array_get_idx(list, i) : NULL;
}

int64_t number_of(struct json_object *o, const char *key)
{
	return json_object_get_int64(member_of(o, key));
}

/* connect() waits for room in the queue of a softibd that does not accept */
static void bound_connect(int fd)
{
	int ms = abi_await_ms();
	struct timeval tv = {.tv_sec = ms < 0 ? 0 : ms / 1000};

	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

int client_open(const char *dir)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int n = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", dir),
	    fd, error;

	if (n < 0 || (size_t)n >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	bound_connect(fd);
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	error = errno == EAGAIN ? -ETIMEDOUT : -errno;
	if (error == -ETIMEDOUT)
		complain("softibd in %s accepts no connection: 'softib down' ends it", dir);
	close(fd);
	return error;
}

static int send_with(int fd, struct json_object *req, const int *pass, unsigned num_pass)
{
	size_t bytes;
	const char *text =
		json_object_to_json_string_length(req, JSON_C_TO_STRING_PLAIN, &bytes);
	int error = abi_send_fds(fd, text, bytes, pass, num_pass, 0);

	return error == -EPIPE ? 0 : error; /* turned away, and the answer says why */
}

int client_send(int fd, struct json_object *req)
{
	return send_with(fd, req, NULL, 0);
}

/* the whole answer lies in a memfd */
static struct json_object *read_memfd(int fd, int64_t bytes)
{
	struct json_object *answer = NULL;
	char *text;
	ssize_t n = 0, got = 0;

	errno = EPROTO;
	if (bytes <= 0 || bytes > (int64_t)ANSWER_MAX)
		return NULL;
	text = malloc((size_t)bytes + 1);
	if (!text)
		return NULL;
	while (got < bytes && (n = pread(fd, text + got, (size_t)(bytes - got), got)) > 0)
		got += n;
	if (got == bytes) {
		text[bytes] = '\0';
		answer = json_tokener_parse(text);
	}
	free(text);
	return answer;
}

/* One message, and the descriptors that came with it: @max at most, -1 behind them */
static struct json_object *receive(int fd, int *passed, unsigned max)
{
	static char text[ABI_MESSAGE_MAX + 1];
	struct json_object *answer;
	ssize_t n = abi_receive_answer(fd, &(struct iovec){text, ABI_MESSAGE_MAX}, 1, passed, max);

	if (n <= 0) {
		errno = n ? (int)-n : ECONNRESET;
		return NULL;
	}
	n = MIN(n, ABI_MESSAGE_MAX);
	text[n] = '\0';
	answer = json_tokener_parse(text);
	errno = EPROTO;
	return answer;
}

struct json_object *client_receive(int fd)
{
	struct json_object *answer, *whole;
	int passed;

	answer = receive(fd, &passed, 1);
	if (passed < 0)
		return answer;
	whole = read_memfd(passed, number_of(answer, "bytes"));
	json_object_put(answer);
	close(passed);
	return whole;
}

int client_say_progress(const char *dir, const char *who)
{
	struct json_object *answer = client_call_quiet(dir, request("status"));
	struct json_object *ports = member_of(answer, "ports");
	int error = !answer && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
	long long active = number_of(ports, "active"), pulled = number_of(ports, "unplugged");
	long long all = active + number_of(ports, "armed") + number_of(ports, "init") +
			number_of(ports, "down");

	if (ports)
		fprintf(stderr, "softib: %s%s%lld of %lld ports Active%s\n", who,
			*who ? ": " : "", active, all,
			!member_of(answer, "sm") ? "; they know no subnet manager" :
			pulled			 ? "; others have no cable now" :
						   "");
	json_object_put(answer);
	return error;
}

/* The answer to a wait is long in coming: how it goes is asked, and said, by the way.
 * Return: 0; -ETIMEDOUT (printed) */
static int await_event(int fd, const char *dir)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};
	int ms = WAIT_QUIET_MS, error;

	while (poll(&pfd, 1, ms) <= 0) {
		error = client_say_progress(dir, "");
		if (error)
			return error;
		ms = WAIT_PROGRESS_MS;
	}
	return 0;
}

static int ask(int fd, const char *dir, struct json_object *req, const struct client_fds *fds)
{
	int error = send_with(fd, req, fds ? fds->send : NULL, fds ? fds->num_send : 0);

	if (error)
		return error;
	return strcmp(text_of(req, "op"), "wait") ? abi_await(fd, "softib") : await_event(fd, dir);
}

struct json_object *client_call_quiet(const char *dir, struct json_object *req)
{
	struct json_object *answer = NULL;
	int fd = client_open(dir), error;

	if (fd < 0) {
		errno = -fd;
	} else {
		error = ask(fd, dir, req, NULL);
		if (error)
			errno = -error;
		else
			answer = client_receive(fd);
		error = errno;
		close(fd);
		errno = error;
	}
	json_object_put(req);
	return answer;
}

/* say why there is no answer, or what it complains of.
 * Return: @answer; NULL when something was said */
static struct json_object *check_answer(const char *dir, struct json_object *answer)
{
	if (!answer && (errno == ENOENT || errno == ECONNREFUSED)) {
		complain("no fabric is up in %s: 'softib list' shows those that are",
			 dir);
		log_say_left(dir);
	} else if (!answer && errno != ETIMEDOUT) /* which was said */
		complain("softibd in %s does not answer: %s", dir, strerror(errno));
	if (!answer || !member_of(answer, "error"))
		return answer;
	complain("%s", text_of(answer, "error"));
	json_object_put(answer);
	return NULL;
}

struct json_object *client_call(const char *dir, struct json_object *req)
{
	return check_answer(dir, client_call_quiet(dir, req));
}

struct json_object *client_ask(const struct common *common, struct json_object *req)
{
	char dir[PATH_MAX];

	if (!place_choose(common->fabric, dir))
		return client_call(dir, req);
	json_object_put(req);
	return NULL;
}

/* Return: the answer to @req, which stays the caller's; NULL when something was said */
static struct json_object *ask_page(int fd, const char *dir, struct json_object *req)
{
	int error = ask(fd, dir, req, NULL);

	errno = -error;
	return check_answer(dir, error ? NULL : client_receive(fd));
}

/* append what the pages of @list hold. Return: false when something was said */
static bool read_pages(const char *dir, struct json_object *req, const char *list,
		       struct json_object *all)
{
	int fd = client_open(dir);
	struct json_object *answer = NULL;
	bool ok = fd >= 0, more = ok;

	errno = -fd;
	if (fd < 0)
		check_answer(dir, NULL);
	while (more) {
		answer = ask_page(fd, dir, req);
		for (size_t i = 0; i < count_of(member_of(answer, list)); i++)
			json_object_array_add(all, json_object_get(item_of(member_of(answer, list), i)));
		ok = answer;
		more = member_of(answer, "more");
		json_object_put(answer);
		json_object_object_add(req, "more", json_object_new_boolean(true));
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

struct json_object *client_ask_list(const struct common *common, struct json_object *req,
				    const char *list)
{
	struct json_object *all = json_object_new_array();
	char dir[PATH_MAX];

	if (place_choose(common->fabric, dir) || !read_pages(dir, req, list, all)) {
		json_object_put(all);
		all = NULL;
	}
	json_object_put(req);
	return all;
}

/* @control_fd: set to the connection, which stays open; -errno when there is none */
/* Return: 0; -EPERM (printed): softibd is not of this user, so that nothing of it is entered */
static int check_owner(int fd, const char *dir)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -errno;
	if (peer.uid == geteuid())
		return 0;
	complain("the fabric in %s belongs to another user (uid %u): run this command as that user",
		 dir, peer.uid);
	return -EPERM;
}

int client_check_owner(const char *dir)
{
	int fd = client_open(dir), error;

	if (fd < 0)
		return 0; /* whoever asks something of it says so */
	error = check_owner(fd, dir);
	close(fd);
	return error;
}

static struct json_object *call_with(const char *dir, struct json_object *req,
				     const struct client_fds *fds, int *control_fd)
{
	struct json_object *answer = NULL;

	for (unsigned i = 0; i < fds->max_passed; i++)
		fds->passed[i] = -1;
	*control_fd = client_open(dir);
	errno = *control_fd < 0 ? -*control_fd : 0;
	if (!errno && fds->own_user && check_owner(*control_fd, dir)) {
		json_object_put(req);
		return NULL;
	}
	if (!errno)
		errno = -ask(*control_fd, dir, req, fds);
	if (!errno)
		answer = receive(*control_fd, fds->passed, fds->max_passed);
	json_object_put(req);
	return check_answer(dir, answer);
}

struct json_object *client_call_fds(const char *dir, struct json_object *req,
				    const struct client_fds *fds)
{
	int control_fd;
	struct json_object *answer = call_with(dir, req, fds, &control_fd);

	if (control_fd >= 0)
		close(control_fd);
	return answer;
}

struct json_object *client_call_hold(const char *dir, struct json_object *req, int *control_fd,
				     int passed[2])
{
	const struct client_fds fds = {.passed = passed, .max_passed = 2};
	struct json_object *answer = call_with(dir, req, &fds, control_fd);

	if (answer && passed[1] < 0) {
		complain("softibd in %s passes no capture", dir);
		json_object_put(answer);
		return NULL;
	}
	return answer;
}
