/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands on the uverbs socket for objects that the kernel creates by ioctl(2) and
 * that <rdma/ib_user_verbs.h> has no write() command for. They are framed like the
 * other commands. The comments below describe the descriptors of their answers.
 */
#ifndef SOFTIB_ABI_OBJECTS_H
#define SOFTIB_ABI_OBJECTS_H

#include <stdint.h>

/*
 * Device memory is a memfd, sealed against a change of its size. The answer carries it,
 * for the program to map; a region on it is a region whose memory is that mapping.
 */
#define ABI_CMD_ALLOC_DM 0x5f02u

struct abi_alloc_dm {
	uint64_t length_bytes;
};

struct abi_alloc_dm_resp {
	uint32_t dm_handle, reserved;
};

#define ABI_CMD_FREE_DM 0x5f03u

struct abi_free_dm {
	uint32_t dm_handle, reserved;
};

/* answered by struct ib_uverbs_reg_mr_resp */
#define ABI_CMD_REG_DM_MR 0x5f04u

struct abi_reg_dm_mr {
	uint64_t offset, length_bytes; /* in the device memory */
	uint32_t pd_handle, dm_handle;
	uint32_t access_flags, reserved;
};

#endif
