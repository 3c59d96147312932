/* Folders whose files may be sent (root.c), and the paths of requests within them (path.c). */
#ifndef ORIBI_FILES_ROOT_H
#define ORIBI_FILES_ROOT_H

#include "oribi/base/buf.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- path ---- */

/* From the path of a request to a path that may be opened beneath a folder, and to the mount that it belongs to. Pure
 * functions: bytes in, a verdict out; no file system, no allocation.
 *
 * A path is decoded once, and what a file system or another program could read differently gets a verdict of its own
 * instead of a guess. The mount decides what each verdict is answered with: 400, 404, or nothing, and then the
 * application is asked. */

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

/* ---- root ---- */

/* A folder whose files may be sent, opened once; and files opened beneath it.
 *
 * Links are followed as the system would, relative and absolute ones, and may lead through any place; but the file that
 * they end at must lie, all links resolved, in the root or in one of the folders that links may lead to. What is opened
 * is opened step by step from a folder that is held open, through real folders only, so that a name or a link that is
 * changed at the same moment can make a file missing, and can never make it one from outside.
 *
 * Where the kernel has openat2(2), a path without links, or with relative links that stay inside, is one system call;
 * the rest is resolved here. Without it (old kernels, seccomp filters of containers) every path with links is, with the
 * same results but two: a path whose resolved form is much longer than PATH_MAX is missing, and links of others in
 * folders with the sticky bit are followed, which fs.protected_symlinks forbids (proc(5)); where they may lead is the
 * same.
 *
 * A root has one owner at a time, like the reactor of its worker. */

enum {
    ORIBI_ROOT_FOLDERS_MAX = 16, /* that the links of one root may lead to */
    ORIBI_ROOT_LINKS_MAX = 40,   /* followed on one path; the kernel's own maximum, path_resolution(7) */
    ORIBI_ROOT_ATTEMPTS_MAX = 8, /* at a path that is changed while it is resolved */
};

enum oribi_file_verdict {
    ORIBI_FILE_OK,
    ORIBI_FILE_MISSING, /* no such name, or one longer than the file system allows, or a part of it is no folder */
    ORIBI_FILE_FOLDER,
    ORIBI_FILE_DEVICE,
    ORIBI_FILE_FIFO,
    ORIBI_FILE_SOCKET,
    ORIBI_FILE_OUTSIDE,  /* a link leads to where it may not */
    ORIBI_FILE_LOOP,     /* more than ORIBI_ROOT_LINKS_MAX links */
    ORIBI_FILE_DENIED,   /* this process may not read it */
    ORIBI_FILE_CHANGING, /* it was another file at every attempt */
    ORIBI_FILE_LIMIT,    /* out of descriptors or memory: a later try may succeed */
    ORIBI_FILE_FAILED,   /* the system failed, with the text in oribi_os_error_text(): a broken disk */
};

/* Facts that tell one state of a file from another. Times are those of the file system. */
struct oribi_file_info {
    uint64_t device;
    uint64_t inode;
    int64_t size;
    int64_t mtime_s;
    int64_t ctime_s;
    uint32_t mtime_ns;
    uint32_t ctime_ns;
    bool stored; /* it has blocks of its own */
};

struct oribi_root;

/* Gives the root `path`, whose links may lead to `folder_count` folders besides. Borrows the texts; relative ones are
 * seen from the working directory of this moment. 0, ORIBI_EINVAL for more than ORIBI_ROOT_FOLDERS_MAX folders, or a
 * code of os.h when one of them is no folder or cannot be opened; `bad`, if not NULL, is then its index (-1: the root).
 * End it with oribi_root_destroy(), which takes NULL too. */
int oribi_root_create(struct oribi_root **root, const char *path, const char *const *folders, uint32_t folder_count,
                      int *bad);
void oribi_root_destroy(struct oribi_root *root);

/* Closes its descriptors, and nothing else, in a child of a process that goes on. */
void oribi_root_abandon(struct oribi_root *root);

/* Opens the regular file `path` for reading. ORIBI_FILE_OK gives a descriptor, CLOEXEC and above 2, and what it stands
 * for; with every other verdict nothing is open and `fd` and `info` are untouched. Never waits for a fifo's writer.
 * path: what oribi_mount_rest() gave; with a slash at its end no file is found, and the empty path is the root itself.
 * A path that was not checked is safe too, and means what a link of that text in the root would: `..` and a slash at
 * its front are followed, and must end inside. */
enum oribi_file_verdict oribi_root_open(struct oribi_root *root, const char *path, int *fd,
                                        struct oribi_file_info *info);

/* Looks at the path of the root and of each folder again, two system calls each: a deployment may have changed a link
 * on the way there, and an application may have closed our descriptor. Gives 1 when one of them is another folder now,
 * or the same one opened again, 0 when none is, or a code of os.h when one is gone or cannot be opened; that one stays
 * what it was. A folder that was only renamed is the same folder. */
int oribi_root_refresh(struct oribi_root *root);

/* Grows with every refresh that gave 1: what was found before need not be there now. */
uint32_t oribi_root_generation(const struct oribi_root *root);

/* Reads the present state of an open file: false when the system cannot tell. */
bool oribi_file_look(int fd, struct oribi_file_info *info);

/* Does the file have another length than its size says? /proc has files of 0 bytes with content, /sys has files of a
 * page with less. A file with blocks of its own costs no system call; any other is read at one place. Of one that
 * cannot be read the answer is true. */
bool oribi_file_size_is_doubtful(int fd, const struct oribi_file_info *info);

/* Are both the same state of the same file, as far as the file system's clock can tell? */
bool oribi_file_info_equal(const struct oribi_file_info *a, const struct oribi_file_info *b);

/* A few lower-case words for log lines and tests. Never NULL; static storage. */
const char *oribi_file_verdict_text(enum oribi_file_verdict verdict);

#endif
