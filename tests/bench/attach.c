/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * attach N: open the node's first device N times and do nothing with it, as N
 * programs that are idle. Prints "ready" and ends when its standard input does.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "measure.h"

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int n = argc == 2 ? atoi(argv[1]) : -1;
	char end;

	if (n < 0) {
		fprintf(stderr, "usage: attach N\n");
		return 2;
	}
	measure_raise_descriptor_limit();
	for (int i = 0; i < n; i++) {
		if (list && list[0] && ibv_open_device(list[0]))
			continue;
		perror("attach: cannot open the device");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &end, 1) > 0)
		;
	return 0;
}
