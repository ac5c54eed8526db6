/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "ahead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/fds.h"
#include "abi/lane.h"

/** struct ahead_answers - about the id @head.id; @bytes: struct abi_ahead_answer and so on */
struct ahead_answers {
	struct abi_ahead head;
	size_t len;
	_Alignas(8) char bytes[];
};

int ahead_open(struct ahead *ahead, int page_fd)
{
	void *map;

	*ahead = (struct ahead){0};
	if (!abi_fd_holds(page_fd, sizeof(*ahead->page)))
		return -EPROTO;
	map = mmap(NULL, sizeof(*ahead->page), PROT_READ, MAP_SHARED, page_fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	ahead->page = map;
	ahead->slot = calloc(ABI_AHEAD_COUNTERS, sizeof(struct ahead_answers *));
	return ahead->slot ? 0 : -ENOMEM;
}

void ahead_close(struct ahead *ahead)
{
	for (size_t i = 0; ahead->slot && i < ABI_AHEAD_COUNTERS; i++)
		free(ahead->slot[i]);
	free(ahead->slot);
	if (ahead->page)
		munmap((void *)ahead->page, sizeof(*ahead->page));
}

void ahead_keep(struct ahead *ahead, const void *bytes, size_t len)
{
	struct ahead_answers *answers, **slot;
	struct abi_ahead head;

	if (len < sizeof(head))
		return;
	memcpy(&head, bytes, sizeof(head));
	slot = &ahead->slot[head.id % ABI_AHEAD_COUNTERS];
	free(*slot);
	*slot = answers = malloc(sizeof(*answers) + len - sizeof(head));
	if (!answers)
		return;
	answers->head = head;
	answers->len = len - sizeof(head);
	memcpy(answers->bytes, (const char *)bytes + sizeof(head), answers->len);
}

static bool holds(const struct ahead *ahead, const struct abi_ahead *head)
{
	return abi_ahead_changes(ahead->page, head->id) == head->changes;
}

/* Return: the bytes of the response that @answers have to a question, and *@response; -1 */
static ssize_t find(const struct ahead_answers *answers, uint32_t cmd, uint32_t option,
		    const void **response)
{
	struct abi_ahead_answer head;
	size_t at = 0;

	while (answers->len - at >= sizeof(head)) {
		memcpy(&head, answers->bytes + at, sizeof(head));
		at += sizeof(head);
		if (head.bytes > answers->len - at)
			return -1;
		*response = answers->bytes + at;
		if (head.cmd == cmd && head.option == option)
			return head.bytes;
		at += head.bytes;
	}
	return -1;
}

/* Return: the answers about an id, as long as they hold; NULL */
static const struct ahead_answers *answers_of(struct ahead *ahead, uint32_t id)
{
	struct ahead_answers **slot = &ahead->slot[id % ABI_AHEAD_COUNTERS];

	if (!*slot || (*slot)->head.id != id)
		return NULL;
	if (holds(ahead, &(*slot)->head))
		return *slot;
	ahead_drop(ahead, id);
	return NULL;
}

void ahead_drop(struct ahead *ahead, uint32_t id)
{
	struct ahead_answers **slot = &ahead->slot[id % ABI_AHEAD_COUNTERS];

	if (!*slot || (*slot)->head.id != id)
		return;
	free(*slot);
	*slot = NULL;
}

ssize_t ahead_find(struct ahead *ahead, const struct rdma_ucm_cmd_hdr *hdr, size_t len, void *to,
		   size_t room)
{
	/* struct rdma_ucm_init_qp_attr has the same members, the state for the option */
	struct rdma_ucm_query question;
	const struct ahead_answers *answers;
	const void *response;
	ssize_t n;

	if ((hdr->cmd != RDMA_USER_CM_CMD_QUERY && hdr->cmd != RDMA_USER_CM_CMD_INIT_QP_ATTR) ||
	    len < sizeof(*hdr) + sizeof(question))
		return -1;
	memcpy(&question, hdr + 1, sizeof(question));
	answers = answers_of(ahead, question.id);
	n = answers ? find(answers, hdr->cmd, question.option, &response) : -1;
	if (n < 0 || (size_t)n > room)
		return -1;
	memcpy(to, response, (size_t)n);
	return n;
}

const void *ahead_flow(struct ahead *ahead, uint32_t id)
{
	const struct ahead_answers *answers = answers_of(ahead, id);
	const void *answer;

	return answers && find(answers, ABI_AHEAD_FLOW, 0, &answer) == sizeof(struct abi_flow_answer) ?
		       answer : NULL;
}

bool ahead_accepts(struct ahead *ahead, uint32_t id, uint32_t cmd)
{
	const struct ahead_answers *answers = answers_of(ahead, id);
	const void *response;

	return answers && find(answers, cmd, 0, &response) == 0;
}
