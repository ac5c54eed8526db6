/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef SOFTIB_DAEMON_SDP_BYPASS_H
#define SOFTIB_DAEMON_SDP_BYPASS_H

/** daemon_set_sdp_bypass() - connect SDP, which has no access to adapters, with the function by which
 *  adapters decide whether bytes may bypass the fabric (hca/bypass.h) */
void daemon_set_sdp_bypass(void);

#endif
