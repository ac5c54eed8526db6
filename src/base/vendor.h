/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The vendor of softib's adapters and switches: no OUI of anyone's, so that programs that know
 * vendors see a new one. */
#ifndef SOFTIB_BASE_VENDOR_H
#define SOFTIB_BASE_VENDOR_H

/** SOFTIB_VENDOR_ID - 24 bits: of adapters (ibv_device_attr.vendor_id) that no profile describes, of
 *  NodeInfo where a topology names none, and of ECE always */
#define SOFTIB_VENDOR_ID 0x025000u

#endif
