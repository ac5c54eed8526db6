/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef SOFTIB_DAEMON_SDP_BYPASS_H
#define SOFTIB_DAEMON_SDP_BYPASS_H

/** daemon_set_sdp_bypass() - let SDP, which knows no adapter, ask the adapters whether bytes may
 *  bypass the fabric */
void daemon_set_sdp_bypass(void);

#endif
