/* A mount as an operator writes it, in one line:
 *
 *     /assets=public/assets?cache=public, max-age=31536000, immutable&nosniff=off
 *     /=public?index=index.html            public?index=index.html
 *     PREFIX=FOLDER?NAME=VALUE&NAME=VALUE     without PREFIX= the root; relative folders are seen from `chdir`
 *
 *     cache=TEXT        value of Cache-Control in answers of 200, 206 and 304
 *     header=NAME:TEXT  one more header for the same answers; may be repeated
 *     index=NAME        the file that stands for a folder; none: folders are no files
 *     html=on|off       /about is the file about.html where there is no file about
 *     fallthrough=on|off  what is no file goes on to the application (on for the root), else 404 (off elsewhere)
 *     symlinks=FOLDER   links may lead there as well; may be repeated
 *     nosniff=on|off    X-Content-Type-Options: nosniff (on)
 *     etag=content|time  what the entity tag is made of (time, with the size); of larger files always the time
 *
 * In a value `%26` is an ampersand, `%25` a percent sign, and any other byte may be written so. What a folder is called
 * ends at the first question mark. Pure: nothing looks at the disk. */
#ifndef ORIBI_FILES_MOUNT_H
#define ORIBI_FILES_MOUNT_H

#include "oribi/base/buf.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI_MOUNTS_MAX = 64,
    ORIBI_MOUNT_PREFIX_MAX = 255,
    ORIBI_MOUNT_VALUE_MAX = 1024, /* of a header, decoded */
    ORIBI_MOUNT_HEADERS_MAX = 16,
    ORIBI_MOUNT_INDEX_MAX = 255, /* NAME_MAX */
    ORIBI_MOUNT_LINKS_MAX = 16,  /* folders that links may lead to */
};

struct oribi_mount_header {
    const char *name;
    const char *value;
};

/* Texts are NUL-terminated and live in `room`, until the mount is read anew. */
struct oribi_mount {
    const char *prefix; /* as oribi_mount_prefix_read() gives it: empty for the root */
    const char *folder;
    const char *index; /* or NULL */
    const char *links[ORIBI_MOUNT_LINKS_MAX];
    struct oribi_mount_header headers[ORIBI_MOUNT_HEADERS_MAX]; /* Cache-Control is one of them */
    uint32_t link_count;
    uint32_t header_count;
    bool html;
    bool fallthrough;
    bool nosniff;
    bool etag_content;
    char room[4 * PATH_MAX];
};

/* Reads the line. 0, or ORIBI_EINVAL with one line in `error` (ORIBI_ERROR_TEXT_CAP) that names what is wrong; `mount`
 * is unspecified then. Borrows `text`. */
int oribi_mount_read(const char *text, struct oribi_mount *mount, char *error);

/* Reads PREFIX=FOLDER, without settings: the prefix as oribi_mount_prefix_read() gives it, and the folder, both parts
 * of `text`. 0, or ORIBI_EINVAL with one line in `error` that begins with `name` (of the option). */
int oribi_mount_map_read(const char *name, const char *text, struct oribi_slice *prefix, const char **folder,
                         char *error);

#endif
