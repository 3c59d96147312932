/* The control socket of a server whose options name none: a file in a folder of the user's own, /tmp/oribi-<uid> (mode
 * 0700), whose name is made of the folder in which the server runs, so that `ctl` finds it from there.
 *
 *   <hash of the real path>-<hash of the path as the operator says it>-<process id>.ctl
 *
 * Two paths, because a deployment leads a symbolic link to a new folder while the server runs. The hashes are FNV-1a of
 * 64 bits. Neither XDG_RUNTIME_DIR nor TMPDIR is asked: the server and the operator's shell need not share them. */
#ifndef ORIBI_SUPERVISOR_CONTROL_PLACE_H
#define ORIBI_SUPERVISOR_CONTROL_PLACE_H

#include "oribi/config/address.h"
#include "oribi/config/options.h"

#include <stddef.h>

enum {
    ORIBI__CONTROL_PATH_CAP = ORIBI_ADDRESS_PATH_MAX + 1,
    ORIBI__CONTROL_FOUND_MAX = 8,   /* servers of one folder that ctl names */
    ORIBI__CONTROL_SWEPT_MAX = 256, /* entries that a start looks at to remove stale ones */
};

#define ORIBI__CONTROL_ROOT "/tmp"

struct oribi__control_found {
    char paths[ORIBI__CONTROL_FOUND_MAX][ORIBI__CONTROL_PATH_CAP];
    size_t count; /* may be more than there is room for */
};

/* Makes the user's folder below `root` and the path of this process's socket in it; removes what servers that are gone
 * have left there. 0; or ORIBI_ESYS with oribi_os_error_text(): no file can be made there, or the folder is another
 * user's. */
int oribi__control_place(const char *root, const struct oribi_options *options, char path[ORIBI__CONTROL_PATH_CAP]);

/* The sockets of servers that answer and run in this folder: the working directory, or `chdir`. */
void oribi__control_find(const char *root, const struct oribi_options *options, struct oribi__control_found *found);

#endif
