/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Adapter profiles: the limits, capabilities and numbers of vendor and part that another
 * adapter reports, for a program to meet on softib what it will meet in production. A profile
 * is text, a line for each field, whose names are those of ibv_devinfo(1); some are built in.
 * One that names few fields leaves the others as they are.
 *
 * No adapter of softib says that it can do what it cannot: limits are lowered and capabilities
 * taken away, never the other way round.
 */
#ifndef SOFTIB_PROFILE_H
#define SOFTIB_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#define PROFILE_MAX_FIELDS 48
#define PROFILE_TEXT_BYTES 4096 /* of the longest profile */

struct ib_device_attr;

/** struct profile - what a profile says, by the row of the table of fields (fields.c) */
struct profile {
	char name[64];
	char fw_ver[32];
	uint64_t given; /* a bit for each field that it names */
	uint64_t value[PROFILE_MAX_FIELDS];
};

/** profile_builtin() - the name of the @i-th that is built in; NULL: there are no more */
const char *profile_builtin(unsigned i);
/** profile_builtin_text() - what it says. NULL: there is none of this name */
const char *profile_builtin_text(const char *name);

/**
 * profile_parse() - read a profile
 * @name: what messages call it; also that of the profile
 * Return: 0; -EINVAL and in @err what is wrong, with the number of the line
 */
int profile_parse(const char *name, const char *text, struct profile *profile, char *err,
		  size_t err_bytes);
/** profile_load() - that is built in, or in the file @name. Return: as profile_parse();
 *  -errno of the file */
int profile_load(const char *name, struct profile *profile, char *err, size_t err_bytes);
/**
 * profile_from_devinfo() - the profile of the adapter @device, of the first one when NULL
 * @text: what `ibv_devinfo -v` has printed, of any version
 * Return: as profile_parse()
 */
int profile_from_devinfo(const char *text, const char *device, struct profile *profile,
			 char *err, size_t err_bytes);
/** profile_print() - as text, which profile_parse() reads; it ends in 0 whatever @bytes */
void profile_print(const struct profile *profile, char *text, size_t bytes);

/**
 * profile_apply() - make @attr, of an adapter of softib, that of @profile
 * @less: set to what the profile has more of, "max_cq 65536 (of 16777216), ..."; may be NULL
 * Return: of how many fields
 */
unsigned profile_apply(const struct profile *profile, struct ib_device_attr *attr, char *less,
		       size_t less_bytes);

#endif
