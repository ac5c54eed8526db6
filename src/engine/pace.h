/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Packet pacing (pace.c). Included by engine/private.h, which has struct eng_qp. */
#ifndef SOFTIB_ENGINE_PACE_H
#define SOFTIB_ENGINE_PACE_H

/** eng_pace_set() - eng_qp_pace() under the lock */
void eng_pace_set(struct eng_qp *qp, uint32_t kbps, uint32_t burst_bytes, uint32_t frame_bytes);
/** eng_pace_waits() - must the next frame of @qp, which is paced, wait? Reads the clock */
bool eng_pace_waits(struct eng_qp *qp);
/** eng_pace_next() - when the next frame may leave */
mono_t eng_pace_next(const struct eng_qp *qp);
/** eng_pace_pay() - account for a frame of @bytes, which has left */
void eng_pace_pay(struct eng_qp *qp, uint32_t bytes);

#endif
