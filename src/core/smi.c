/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Directed routes as a channel adapter treats them (IBA v1 14.2.2). An
 * adapter does not forward: a path begins or ends at it. The switches' half
 * of these rules is in src/agents.
 *
 * A path may have a part routed by LID before its directed part (DrSLID says
 * from where) and one behind it (DrDLID says to where); the permissive LID
 * says that there is none. A response goes through them in reverse.
 */
#include "core/mad_priv.h"

static bool no_lid_part(__be16 lid)
{
	return lid == cpu_to_be16(IB_LID_PERMISSIVE);
}

static enum smi_action send_request(struct ib_smp *smp, u32 port_num)
{
	/* C14-9:1: the first hop of the path names the port by which the SMP leaves */
	if (smp->hop_cnt && smp->hop_ptr == 0) {
		smp->hop_ptr++;
		return smp->initial_path[1] == port_num ? SMI_SEND : SMI_DISCARD;
	}
	/* C14-9:3: the path has no hop: the SMP is for this port's own SMA */
	if (smp->hop_ptr == smp->hop_cnt) {
		smp->hop_ptr++;
		return no_lid_part(smp->dr_dlid) ? SMI_LOCAL : SMI_DISCARD;
	}
	/* C14-9:4, C14-9:5 */
	return smp->hop_ptr == smp->hop_cnt + 1 ? SMI_LOCAL : SMI_DISCARD;
}

static enum smi_action send_response(struct ib_smp *smp, u32 port_num)
{
	/* C14-13:1: the return path begins at the port by which the request arrived */
	if (smp->hop_cnt && smp->hop_ptr == smp->hop_cnt + 1) {
		smp->hop_ptr--;
		return smp->return_path[smp->hop_ptr] == port_num ? SMI_SEND : SMI_DISCARD;
	}
	/* C14-13:3: the path has no hop: the SMP is for this port's SM, or is routed by LID to
	 * another one */
	if (smp->hop_ptr == 1) {
		smp->hop_ptr--;
		return no_lid_part(smp->dr_slid) ? SMI_LOCAL : SMI_SEND;
	}
	/* C14-13:4, C14-13:5 */
	return smp->hop_ptr == 0 ? SMI_LOCAL : SMI_DISCARD;
}

enum smi_action smi_send(struct ib_smp *smp, u32 port_num)
{
	/* C14-6: hop counts go from 0 to 63 */
	if (smp->hop_cnt >= IB_SMP_MAX_PATH_HOPS)
		return SMI_DISCARD;
	/* the path begins with a part that is routed by LID: no hop has been taken yet */
	if (!no_lid_part(ib_get_smp_direction(smp) ? smp->dr_dlid : smp->dr_slid))
		return SMI_SEND;
	return ib_get_smp_direction(smp) ? send_response(smp, port_num) :
					   send_request(smp, port_num);
}

static enum smi_action receive_request(struct ib_smp *smp, u32 port_num)
{
	/* C14-9:1: the sender has to count the first hop; C14-9:2: an adapter is never in the
	 * middle of a path */
	if (smp->hop_ptr < smp->hop_cnt)
		return SMI_DISCARD;
	/* C14-9:3: the end of the directed part */
	if (smp->hop_ptr == smp->hop_cnt) {
		if (smp->hop_cnt)
			smp->return_path[smp->hop_ptr] = (u8)port_num;
		smp->hop_ptr++;
		return no_lid_part(smp->dr_dlid) ? SMI_LOCAL : SMI_DISCARD;
	}
	/* C14-9:4, C14-9:5 */
	return smp->hop_ptr == smp->hop_cnt + 1 ? SMI_LOCAL : SMI_DISCARD;
}

static enum smi_action receive_response(struct ib_smp *smp)
{
	/* C14-13:3: the packet has returned to its sender along the path */
	if (smp->hop_ptr == 1) {
		smp->hop_ptr--;
		return no_lid_part(smp->dr_slid) ? SMI_LOCAL : SMI_DISCARD;
	}
	/* C14-13:4: the SMP has left the directed part of its path, and returned by LID. C14-13:1,
	 * :2 and :5: an SMP with any other hop pointer does not arrive at an adapter. */
	return smp->hop_ptr == 0 ? SMI_LOCAL : SMI_DISCARD;
}

enum smi_action smi_receive(struct ib_smp *smp, u32 port_num)
{
	if (smp->hop_cnt >= IB_SMP_MAX_PATH_HOPS) /* C14-6 */
		return SMI_DISCARD;
	return ib_get_smp_direction(smp) ? receive_response(smp) :
					   receive_request(smp, port_num);
}
