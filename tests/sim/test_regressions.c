/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The seeds of bugs that were fixed pass (tests/sim/regressions). */
#include "../unit/test.h"

#include <inttypes.h>

#include "sim.h"

/* lines of "SEED KIND FAULTS OPS  what it was"; '-': as the seed says */
static void fixed_bugs_stay_fixed(void **state)
{
	FILE *list = fopen(SIM_REGRESSIONS, "r");
	char line[300], kind[16], faults[64];
	struct sim_result r;
	uint64_t seed;
	uint32_t ops;

	assert_non_null(list);
	while (fgets(line, sizeof(line), list)) {
		struct sim_options o = {.sabotage = -1, .kind = -1};

		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (sscanf(line, "%" SCNu64 " %15s %63s %" SCNu32, &seed, kind, faults,
			   &ops) != 4)
			fail_msg("regressions: not understood: %s", line);
		o.seed = seed;
		o.max_ops = ops;
		o.keep_faults = strcmp(faults, "-") ? faults : NULL;
		for (int k = 0; k < KIND_NUM; k++)
			if (!strcmp(kind, plan_kind_names[k]))
				o.kind = k;
		run_child(&o, &r);
		if (r.failed)
			fail_msg("%s: %s", line, r.text);
	}
	fclose(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fixed_bugs_stay_fixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
