/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A softibd of one adapter with one active port whose cable ends in itself:
 * every packet that a program sends comes back to it. It speaks the uverbs
 * socket (src/abi/session.h) in a thread of the test and gives out handles,
 * QPNs and keys, so that the library is tested as programs meet it, and it
 * can die at a chosen moment.
 */
#ifndef SOFTIB_TESTS_FAKE_SOFTIBD_H
#define SOFTIB_TESTS_FAKE_SOFTIBD_H

#include <rdma/ib_user_verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct fake_softibd;

#define FAKE_LID 7
#define FAKE_LANE 77 /* the answer to every question; its descriptors come if fake_give_lane() says so */
#define FAKE_PROGRAM 5 /* abi_context_resp.program */

/** fake_start() - listen in a new directory and set SOFTIB_DIR to it */
struct fake_softibd *fake_start(void);
/** fake_die() - close every socket as a killed process would. Idempotent */
void fake_die(struct fake_softibd *fake);
/** fake_stop() - fake_die(), remove the directory, free */
void fake_stop(struct fake_softibd *fake);
/** fake_refuse_next() - answer the next command @command with @error */
void fake_refuse_next(struct fake_softibd *fake, uint32_t command, int error);
/** fake_hear_refusal() - wait for a word about lanes. Return: the one refused */
uint32_t fake_hear_refusal(struct fake_softibd *fake);
/** fake_modified() - how many QPs were modified; @last: set to the last request, zero: none */
int fake_modified(struct fake_softibd *fake, struct ib_uverbs_modify_qp *last);
/** fake_grant() - grant @count QPs with the answer to the next CREATE_QP */
void fake_grant(struct fake_softibd *fake, uint32_t count);
/** fake_created() - QPs of a grant that it was told of */
int fake_created(struct fake_softibd *fake);
/** fake_connected() - QPs that asked for their flow on their way to RTR */
int fake_connected(struct fake_softibd *fake);
/** fake_give_rings() - programs that ask for a ring for what they tell (abi/told.h) get one */
void fake_give_rings(struct fake_softibd *fake);
/** fake_disordered() - were granted QPs created in another order than they were granted? */
bool fake_disordered(struct fake_softibd *fake);
/** fake_told() - records of such rings */
int fake_told(struct fake_softibd *fake);
/** fake_give_lane() - the next answer about a flow brings the descriptors of FAKE_LANE */
void fake_give_lane(struct fake_softibd *fake);
/** fake_refuse_creations() - a rule may (not) make the creation of objects fail */
void fake_refuse_creations(struct fake_softibd *fake, bool on);
/** fake_objects() - created and not yet destroyed */
int fake_objects(struct fake_softibd *fake);

#endif
