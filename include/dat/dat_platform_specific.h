/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The types that DAT leaves to each system. */
#ifndef DAT_PLATFORM_SPECIFIC_H
#define DAT_PLATFORM_SPECIFIC_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

typedef uint32_t DAT_UINT32;
typedef uint64_t DAT_UINT64;
typedef unsigned long long DAT_UVERYLONG;
typedef void *DAT_PVOID;
typedef int DAT_COUNT;
/** DAT_PADDR - a physical address: of softibd, where the memory of modules is */
typedef DAT_UINT64 DAT_PADDR;
typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;

#endif
