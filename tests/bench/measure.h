/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What every measuring program needs: a clock, a median, descriptors, and a way out. */
#ifndef SOFTIB_BENCH_MEASURE_H
#define SOFTIB_BENCH_MEASURE_H

#include <stddef.h>
#include <stdint.h>

/** measure_now_ns() - the monotonic clock */
uint64_t measure_now_ns(void);

/** measure_median() - of @n figures, which it sorts */
double measure_median(double *figures, size_t n);

/** measure_check() - end the program, saying @what and errno, unless @ok */
void measure_check(int ok, const char *what);

/** measure_raise_descriptor_limit() - to what the process may have at most */
void measure_raise_descriptor_limit(void);

#endif
