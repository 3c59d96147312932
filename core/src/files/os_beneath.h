/* Private to files/: the system calls below root.c. errno becomes a verdict in os_beneath.c, which is one of the files
 * that read it; os_beneath_linux.c and os_beneath_portable.c have what systems do not have in common. */
#ifndef ORIBI_FILES_OS_BENEATH_H
#define ORIBI_FILES_OS_BENEATH_H

#include "oribi/base/os/os.h"
#include "oribi/files/root.h"

#include <stddef.h>

/* Beside the verdicts of root.h. */
enum {
    ORIBI__BENEATH_LINK = -1,   /* a link, or what may be one, stands in the way: resolve the path, then open it */
    ORIBI__BENEATH_ABSENT = -2, /* the kernel has no openat2(2), or a filter forbids it */
};

/* The purpose of opening a file: its bytes, or only to see what it is (needs no right to read it). */
enum oribi__beneath_for { ORIBI__FOR_READING, ORIBI__FOR_LOOKING };

/* Opens `path` beneath the folder in one call, following links that stay beneath it. A verdict, or one of the above. */
int oribi__beneath_follow(int folder_fd, const char *path, enum oribi__beneath_for purpose, int *fd);

/* Opens `path` in one call, through real folders only. */
int oribi__beneath_unlinked(int folder_fd, const char *path, enum oribi__beneath_for purpose, int *fd);

/* Flags of open(2) for a file, and for a folder on the way to one. */
int oribi__beneath_flags(enum oribi__beneath_for purpose);
int oribi__beneath_folder_flags(void);

/* The meaning of errno for a file that could not be opened: a verdict, or ORIBI__BENEATH_LINK. */
int oribi__beneath_verdict(void);

/* Does the call above work here at all? */
bool oribi__beneath_has_openat2(int folder_fd);

/* Opens `path` beneath the folder through real folders only: with openat2 in one call, else step by step. A verdict, or
 * ORIBI__BENEATH_LINK. A path with `.`, `..` or empty parts is never opened, except `.` alone. */
int oribi__beneath_open(int folder_fd, const char *path, enum oribi__beneath_for purpose, bool openat2, int *fd);

/* Looks at `path`, seen from the folder (for an absolute path -1 will do), the last part not followed. A verdict on the
 * file, or ORIBI__BENEATH_LINK with the link's text, NUL-terminated, in target. */
int oribi__beneath_look(int folder_fd, const char *path, char *target, size_t cap);

/* The kind of an open file, ORIBI_FILE_OK for a regular one, which fills `info`. */
enum oribi_file_verdict oribi__beneath_kind(int fd, struct oribi_file_info *info);

/* Up to n bytes of a file from `offset` on, its own position untouched: their number, 0 at the end, or a code of
 * os.h. */
ssize_t oribi__beneath_read(int fd, void *dst, size_t n, int64_t offset);

/* Gives the folder `path`, opened to find files in it, and its path without links (cap: at least PATH_MAX). 0 or a code
 * of os.h. */
int oribi__beneath_folder(const char *path, int *fd, char *real, size_t cap);

/* Which folder `path` is at this moment, all links followed. 0 or a code of os.h. */
int oribi__beneath_folder_mark(const char *path, struct oribi_fd_mark *mark);

#endif
