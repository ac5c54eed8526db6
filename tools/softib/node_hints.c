/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a program on a node shows or is told of where it is. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/session.h"
#include "softib.h"

#define UCX_TLS	      "UCX_TLS"
#define UCX_WAS_TOLD  "SOFTIB_UCX_TOLD"
#define PROMPT_PREFIX "($" ABI_ENV_NODE ") "

void node_say_ucx(char **argv)
{
	if (getenv(UCX_TLS) || getenv(UCX_WAS_TOLD))
		return;
	for (char **word = argv; *word; word++)
		if (strstr(*word, UCX_TLS))
			return;
	setenv(UCX_WAS_TOLD, "1", 1);
	fputs("softib: UCX_TLS is not set: between nodes UCX takes this machine's shared "
	      "memory, which is faster than any fabric. UCX_TLS=rc,ud,self makes it use "
	      "the fabric\n",
	      stderr);
}

/*
 * bash's start-up files set PS1, so the node goes in front of it before each
 * prompt; other shells take PS1 from the environment. The variable is expanded
 * by the shell, so that a shell within a shell shows its own node.
 */
void node_prompt(const char *node)
{
	static const char before[] = "case $PS1 in \"" PROMPT_PREFIX "\"*) ;; "
				     "*) PS1=\"" PROMPT_PREFIX "$PS1\" ;; esac";
	const char *old = getenv("PROMPT_COMMAND"), *prompt = getenv("PS1");
	const char *was = getenv(ABI_ENV_NODE);
	char *text;

	if (!isatty(STDIN_FILENO))
		return;
	if (!old || !strstr(old, before)) {
		if (asprintf(&text, "%s%s%s", old ? old : "", old && *old ? "\n" : "",
			     before) < 0)
			return;
		setenv("PROMPT_COMMAND", text, 1);
		free(text);
	}
	if (!prompt || was) { /* with @was it is one that we made */
		if (asprintf(&text, "(%s) $ ", node) < 0)
			return;
		setenv("PS1", text, 1);
		free(text);
	}
}
