/* Folders in which the kernel reports changes: inotify(7) on Linux. What has changed in a folder is for the caller to
 * look up; a report says only in which folder something may have. The source for Linux is os_watch_linux.c. */
#ifndef ORIBI_BASE_OS_OS_WATCH_H
#define ORIBI_BASE_OS_OS_WATCH_H

#include <stdbool.h>

struct oribi_os_watch {
    int fd; /* readable when there are reports; -1: none */
};

/* Does this system report changes at all? */
bool oribi_os_watches(void);

/* 0, or ORIBI_ESYS (ORIBI_ELIMIT for descriptors) with oribi_os_error_text(): the kernel has no such thing, or a user's
 * instances are used up (fs.inotify.max_user_instances). */
int oribi_os_watch_open(struct oribi_os_watch *watch);
void oribi_os_watch_close(struct oribi_os_watch *watch);

/* Watches the folder: files in it that are written and closed, made, renamed, removed, whose times are set. Gives the
 * number (> 0) that reports have; the same one for a folder that is watched already. Negative: ORIBI_ESYS with
 * oribi_os_error_text(); it is not there, or the user's watches are used up (fs.inotify.max_user_watches). */
int oribi_os_watch_add(const struct oribi_os_watch *watch, const char *folder);

enum { ORIBI_OS_WATCH_ALL = -1 }; /* in the place of a number: reports were lost, anything may have changed */

/* Something may have changed in the folder; `gone`: it is there no more, or elsewhere, and is not watched any more. */
typedef void (*oribi_os_watch_fn)(void *self, int number, int gone);

/* Takes all reports that there are, without waiting. */
void oribi_os_watch_read(const struct oribi_os_watch *watch, oribi_os_watch_fn report, void *self);

#endif
