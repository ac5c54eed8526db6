/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What softib's librdmacm says to its libibverbs in the same process. The functions are weak for a librdmacm
 * that runs with another libibverbs. */
#ifndef SOFTIB_LIBIBVERBS_EXPECT_H
#define SOFTIB_LIBIBVERBS_EXPECT_H

#include "abi/lane.h"

/**
 * softib_expect_flow() - a queue pair is about to go to RTR, and this is what softibd would answer
 * about its flow
 *
 * ibv_modify_qp() then need not wait for softibd. An answer that is not used is forgotten after some
 * time, and so is one about a context that this process does not have.
 * Context: any thread
 */
void softib_expect_flow(const struct abi_flow_answer *answer) __attribute__((weak));

/**
 * softib_tell_now() - tell softibd of what all contexts have kept until their next command
 *
 * A program that calls this before commands of the RDMA CM need not tell softibd of a queue pair as soon
 * as it has created it.
 * Context: any thread
 */
void softib_tell_now(void) __attribute__((weak));

#endif
