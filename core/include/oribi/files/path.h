/* From the path of a request to a path that may be opened beneath a folder, and to the mount that it belongs to. Pure
 * functions: bytes in, a verdict out; no file system, no allocation.
 *
 * A path is decoded once, and what a file system or another program could read differently gets a verdict of its own
 * instead of a guess. The mount decides what each verdict is answered with: 400, 404, or nothing, and then the
 * application is asked. */
#ifndef ORIBI_FILES_PATH_H
#define ORIBI_FILES_PATH_H

#include "oribi/base/slice.h"

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

enum { ORIBI_PATH_BYTES_MAX = PATH_MAX - 1 }; /* decoded; a longer one cannot be opened: 4095 on Linux, 1023 on macOS */

enum oribi_path_verdict {
    ORIBI_PATH_OK,
    ORIBI_PATH_NOT_ROOTED,    /* does not begin with a slash: `*` of OPTIONS */
    ORIBI_PATH_ESCAPE,        /* a `%` without two hex digits behind it, the end of the path included */
    ORIBI_PATH_NUL,           /* a NUL byte, as an escape or as it is */
    ORIBI_PATH_ENCODED_SLASH, /* `%2F` */
    ORIBI_PATH_TOO_LONG,      /* more than ORIBI_PATH_BYTES_MAX bytes after decoding */
    ORIBI_PATH_EMPTY_SEGMENT, /* two slashes in a row */
    ORIBI_PATH_DOT_SEGMENT,   /* `.` or `..`, written out or encoded */
    ORIBI_PATH_HIDDEN,        /* a name that begins with a dot, except `/.well-known` as the first one (RFC 8615) */
};

/* A path that was read: begins with a slash, NUL-terminated, holds no other NUL. A slash at its end is kept: with it
 * the path names a folder, and opening a regular file by it fails. */
struct oribi_path {
    uint32_t n;
    char text[ORIBI_PATH_BYTES_MAX + 1];
};

/* Reads the path of a request target as it came, without its query (`path` of head.h). Borrows `raw`. Faults of single
 * bytes are told before those of segments, each kind in the order of the bytes. Except after ORIBI_PATH_OK, `path` is
 * unspecified. */
enum oribi_path_verdict oribi_path_read(struct oribi_slice raw, struct oribi_path *path);

/* oribi_path_read() for a path that is not encoded: a percent sign and a question mark are characters of a name. */
enum oribi_path_verdict oribi_path_take(struct oribi_slice plain, struct oribi_path *path);

/* A few lower-case words for log lines and tests. Never NULL; static storage. */
const char *oribi_path_verdict_text(enum oribi_path_verdict verdict);

/* Mounts */

/* Reads an operator's prefix, written as it reads after decoding: `/assets`, `/assets/`, `/`. Gives it without a slash
 * at its end (empty for `/`), a part of `text`. ORIBI_EINVAL for what no path that was read can begin with, and for
 * `%`, `?` and `#`, with which an operator would mean something else than a name. */
int oribi_mount_prefix_read(struct oribi_slice text, struct oribi_slice *prefix);

/* Gives the index of the mount that `path` belongs to, among `count` prefixes that oribi_mount_prefix_read() gave: the
 * longest, of equal ones the first; -1 when there is none. `/assets` has `/assets` and `/assets/x`, not `/assetsx`.
 * after: -1, or the index that the last call gave: then the next best one, for a mount that falls through. */
ssize_t oribi_mount_find(const struct oribi_slice *prefixes, uint32_t count, const struct oribi_path *path,
                         ssize_t after);

/* The path beneath a mount's root: the rest of `path` behind the mount's prefix and a slash. A part of `path`,
 * NUL-terminated, with the slash at its end if it has one; empty for the root itself. */
const char *oribi_mount_rest(struct oribi_slice prefix, const struct oribi_path *path);

#endif
