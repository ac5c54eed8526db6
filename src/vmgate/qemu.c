/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QEMU's command line: the user's, and behind it the devices. pvrdma is function 1 of a slot whose
 * function 0 is vmxnet3, as its driver expects. Memory of the guest that it registers is mapped a second
 * time, so the RAM has to be shared.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "vmgate/gate.h"

#define WORDS_ADDED 16
#define WORD_BYTES  160

/** struct words - the words that are added, and room for them */
struct words {
	unsigned int num;
	char text[WORDS_ADDED][WORD_BYTES];
};

__attribute__((format(printf, 2, 3))) static void add(struct words *w, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(w->text[w->num++], WORD_BYTES, format, args);
	va_end(args);
}

static void add_all(struct words *w, const struct gate *gate, int mads_fd, int frames_fd)
{
	const struct gate_options *opt = &gate->opt;
	const uint8_t *mac = opt->mac;

	if (opt->memory) {
		add(w, "-m");
		add(w, "%s", opt->memory);
		add(w, "-object");
		add(w, "memory-backend-ram,id=softib-ram,share=on,size=%s", opt->memory);
		add(w, "-machine");
		add(w, "memory-backend=softib-ram");
	}
	add(w, "-chardev");
	add(w, "socket,id=softib-mads,fd=%d", mads_fd);
	add(w, "-netdev");
	add(w, "socket,id=softib-net,fd=%d", frames_fd);
	add(w, "-device");
	add(w, "vmxnet3,addr=10.0,multifunction=on,netdev=softib-net,mac=%02x:%02x:%02x:%02x:%02x:%02x", mac[0],
	    mac[1], mac[2], mac[3], mac[4], mac[5]);
	add(w, "-device");
	add(w, "pvrdma,addr=10.1,ibdev=%s,ibport=%u,netdev=%s,mad-chardev=softib-mads",
	    ibv_get_device_name(gate->context->device), opt->port, gate->interface);
}

/* QEMU ends with this program, however that ends. */
__attribute__((noreturn)) static void become_qemu(char **words)
{
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	execvp(words[0], words);
	gate_fail(errno, "%s", words[0]);
	_exit(127);
}

int gate_qemu_start(struct gate *gate, int mads_fd, int frames_fd)
{
	struct words added = {0};
	unsigned int num = 0;
	pid_t pid;

	while (gate->opt.command[num])
		num++;
	char *words[num + WORDS_ADDED + 1];

	add_all(&added, gate, mads_fd, frames_fd);
	memcpy(words, gate->opt.command, num * sizeof(*words));
	for (unsigned int i = 0; i < added.num; i++)
		words[num + i] = added.text[i];
	words[num + added.num] = NULL;
	pid = fork();
	if (pid < 0)
		return gate_fail(errno, "fork");
	if (!pid)
		become_qemu(words);
	return pid;
}
