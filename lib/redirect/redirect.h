/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Calls of another library, led to functions of this one. */
#ifndef SOFTIB_LIB_REDIRECT_H
#define SOFTIB_LIB_REDIRECT_H

#include <stddef.h>

/** struct redirection - calls of the function @symbol go to @function */
struct redirection {
	const char *symbol;
	void (*function)(void);
};

/**
 * redirect_calls() - lead the calls that a loaded library makes to functions of others
 * @path: of the library; NULL: the program; only its own calls change, not those of any other object
 *
 * It writes the slots of the library's global offset table, which the dynamic linker has
 * filled or would fill at the first call. To be called while the library is not in use.
 * Return: how many slots were written; -ENOENT @path is not loaded; -errno of mprotect(2)
 * Spec: System V ABI, "Dynamic Linking"
 */
int redirect_calls(const char *path, const struct redirection *redirections, size_t num);
/**
 * redirect_or_warn() - redirect_calls() of all of them, or say on stderr that it did not succeed
 * @name: of this library; @lead_to: where calls go; @else_what: what programs go without
 * Context: a constructor, which runs after the distribution's own, and before whoever loads both
 * calls it
 */
void redirect_or_warn(const char *path, const struct redirection *redirections, size_t num,
		      const char *name, const char *lead_to, const char *else_what);

#endif
