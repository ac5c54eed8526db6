/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Long payloads that were received, into the memory of the program: by which copy kernel
 * (base/copy.h).
 *
 * The source was just written by another core. Which kernel is the fastest one depends on
 * the processor and on the length, because some kernels begin slowly. No property that the processor
 * reports tells it. The engine therefore times the kernels against each other on the payloads that it
 * receives, for each class of lengths by itself, and chooses with the state machine of the
 * sender's side (lane_copy.c).
 *
 * Two looks at the clock cost as much as a copy of 2 KiB: one copy in SAMPLE_EVERY is
 * timed. The cost of SPAN_SAMPLES of them, scaled to one length, is one span of the state
 * machine. Only the copy itself is timed, not the wait for the next payload. The time of `rep
 * movsb` is then too short, because it also holds up the instructions behind it: on an AMD EPYC
 * 9004 it costs 8 % less than vectors by itself, and messages of 1 MiB arrive 5 % slower. The
 * receiver therefore begins with vectors, and leaves them only for a kernel that is better by MARGIN.
 *
 * What lies far into a long piece always goes past the caches. They would not keep it until
 * somebody reads the whole, and each line would be fetched to be overwritten. This cannot be
 * timed here, because the cost is the reader's; for the same reason no trial of a shorter
 * payload includes that kernel.
 */
#include "engine/private.h"
#include "transport/guard.h"

#define LONG_BYTES   4096u /* shorter copies gain nothing by any kernel */
#define KEPT_BYTES   (4u << 20)
#define SAMPLE_EVERY 8u
#define SPAN_SAMPLES 16u
#define MARGIN	     8u
#define SPAN_BYTES   (1u << 20) /* of a span's samples, in whose cost it is expressed */
#ifdef __SSE2__
#define KERNELS COPY_PAST /* those before it */
#else
#define KERNELS COPY_KERNELS
#endif

static void put_past(void *ctx, void *to, const void *from, size_t len)
{
	copy_stream(to, from, len);
}

static void put_by(void *ctx, void *to, const void *from, size_t len)
{
	const struct eng_put *put = ctx;

	copy_by(put->copy.method, to, from, len);
}

static void end_sample(struct eng_put *put, uint64_t ns, uint32_t bytes)
{
	put->ns += ns;
	put->bytes += bytes;
	if (++put->samples < SPAN_SAMPLES)
		return;
	eng_copy_note(&put->copy, put->ns * SPAN_BYTES / put->bytes);
	put->ns = put->bytes = 0;
	put->samples = 0;
}

void eng_put_init(struct engine *e)
{
	for (unsigned i = 0; i < ENG_PUT_CLASSES; i++)
		eng_copy_init(&e->put[i].copy, KERNELS, MARGIN);
}

struct eng_put *eng_put_class(struct engine *e, uint32_t len)
{
	unsigned doubled = 31 - (unsigned)__builtin_clz(len / LONG_BYTES);

	return &e->put[MIN(doubled, ENG_PUT_CLASSES - 1u)];
}

void eng_put(struct engine *e, void *to, const void *from, uint32_t len, uint32_t offset)
{
	struct eng_put *put = NULL;
	mono_t since = {0};
	bool timed = false;

	if (len < LONG_BYTES) {
		guard_store(to, from, len);
		return;
	}
	if (likely(offset < KEPT_BYTES)) {
		put = eng_put_class(e, len);
		timed = ++put->copies % SAMPLE_EVERY == 0;
	}
	if (timed)
		since = e->cfg.now(e->cfg.ctx);
	if (unlikely(!guard_run(put ? put_by : put_past, put, to, from, len, to)))
		guard_store(to, from, len);
	else if (timed)
		end_sample(put, e->cfg.now(e->cfg.ctx).ns - since.ns, len);
}
