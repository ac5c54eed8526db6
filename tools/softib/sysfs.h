/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The files of a node's /sys/class/infiniband*. They stand in the fabric's
 * folder, in sys/NODE, and are laid over /sys/class for the programs of that node
 * (node_sysfs.c). What says how a port is, is live (sysfs_live.c).
 */
#ifndef SOFTIB_TOOLS_SYSFS_H
#define SOFTIB_TOOLS_SYSFS_H

#include <net/if.h>
#include <sys/types.h>

#include "softib.h"

#define SYSFS_PATH_MAX 256

/** struct sysfs_sink - takes the files, each a line
 *  @put: @path is relative, for example infiniband/softib0/ports/1/lid
 *        Return: 0; -errno, which ends it */
struct sysfs_sink {
	int (*put)(struct sysfs_sink *sink, const char *path, const char *line, size_t bytes);
	int error;
};

/** sysfs_put_all() - all files as they are to be at this moment
 *  Return: 0; -EIO softibd does not answer; what @put returned */
int sysfs_put_all(const struct node_place *at, struct sysfs_sink *sink);

/** sysfs_takes_orders() - do programs write into @path? sysfs_mode() - its permissions */
bool sysfs_takes_orders(const char *path);
mode_t sysfs_mode(const char *path);
/** sysfs_order() - do what a program has written into @path; @text is changed. What cannot be done is
 *  noted in softibd's log. @before: what the file said, which a program that does not truncate it has
 *  overwritten in part */
void sysfs_order(const struct node_place *at, const char *path, char *text, const char *before);

/** sysfs_prepare() - make the node's files, and see that a process stands by that
 *  keeps them live
 *  @path: set to their folder
 *  Return: 0; -errno */
int sysfs_prepare(const struct node_place *at, char path[PATH_MAX]);

/** sysfs_make_folders() - only the folders that the node's files come into
 *  Return: 0 and *@path; -errno */
int sysfs_make_folders(const struct node_place *at, char path[PATH_MAX]);

/* --- sysfs_net.c: of the interfaces of a node with a network of its own --- */

/** sysfs_net_put_all() - their files, unless @sink->error says that it has failed */
void sysfs_net_put_all(const struct node_place *at, struct sysfs_sink *sink);
/** sysfs_net_is_live(), sysfs_net_takes_orders() - is @path such a file, which changes, or into
 *  which programs write? sysfs_net_mode() - permissions of any file */
bool sysfs_net_is_live(const char *path);
bool sysfs_net_takes_orders(const char *path);
mode_t sysfs_net_mode(const char *path);
/** sysfs_net_order() - do what a program has written into @path; @text is changed */
void sysfs_net_order(const struct node_place *at, const char *path, char *text);
/** sysfs_net_lay() - in the node's namespaces: lay the folder of @interface over the kernel's.
 *  Return: 0; -errno */
int sysfs_net_lay(const struct node_place *at, const char *interface);

/** sysfs_serve() - be that process: 'softib node-files'
 *  Return: exit status */
int sysfs_serve(int argc, char **argv);

#endif
