/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Adapter profiles: the limits, capabilities, vendor and part numbers that another adapter
 * reports, so that a program can be tested against the limits of its production adapter. A
 * profile is a text with one line for each field, named as in ibv_devinfo(1); some profiles
 * are built in. Fields that a profile does not name are not changed.
 *
 * A profile lowers limits and removes capabilities, and never does the opposite, so a softib
 * adapter never reports what it does not support.
 */
#ifndef SOFTIB_PROFILE_H
#define SOFTIB_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROFILE_MAX_FIELDS 48
#define PROFILE_TEXT_BYTES 4096 /* length of the longest profile */

struct ib_device_attr;

/** struct profile - the values of a profile, by row of the table of fields (fields.c) */
struct profile {
	char name[64];
	char fw_ver[32];
	uint64_t given; /* a bit for each field that it names */
	uint64_t value[PROFILE_MAX_FIELDS];
};

/** profile_builtin() - the name of the @i-th built-in profile; NULL if there are no more */
const char *profile_builtin(unsigned i);
/** profile_builtin_text() - the text of a built-in profile; NULL if there is none of this
 *  name */
const char *profile_builtin_text(const char *name);

/**
 * profile_parse() - read a profile
 * @name: the name of the profile, also used in messages
 * Return: 0; -EINVAL and a message in @err, with the number of the line
 */
int profile_parse(const char *name, const char *text, struct profile *profile, char *err,
		  size_t err_bytes);
/** profile_load() - read a built-in profile or the file @name
 *  Return: as profile_parse(); -errno of the file */
int profile_load(const char *name, struct profile *profile, char *err, size_t err_bytes);
/**
 * profile_from_devinfo() - make a profile from the output of ibv_devinfo
 * @text: the output of `ibv_devinfo -v`, of any version
 * @device: the adapter; NULL: the first one
 * Return: as profile_parse()
 */
int profile_from_devinfo(const char *text, const char *device, struct profile *profile,
			 char *err, size_t err_bytes);
/** profile_print() - print a profile as text for profile_parse(); the text is always
 *  terminated by a NUL */
void profile_print(const struct profile *profile, char *text, size_t bytes);

/** profile_gives() - does @profile say what the member at @offset of struct ib_device_attr is? */
bool profile_gives(const struct profile *profile, size_t offset);

/**
 * profile_apply() - change @attr, the attributes of a softib adapter, to those of @profile
 * @less: set to the limits of the profile that softib does not reach, "max_cq 65536 (of
 *	  16777216), ..."; may be NULL
 * Return: the number of these limits
 */
unsigned profile_apply(const struct profile *profile, struct ib_device_attr *attr, char *less,
		       size_t less_bytes);

#endif
