/* The parts of a request to the control socket, for those who do not want to block: oribi_control_request() in
 * oribi/supervisor/control.h is all of them. */
#ifndef ORIBI_SUPERVISOR_CONTROL_CLIENT_H
#define ORIBI_SUPERVISOR_CONTROL_CLIENT_H

#include "oribi/base/buf.h"
#include "oribi/config/address.h"
#include "oribi/config/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

/* The address of a control socket; false when the path is too long for one, or empty. */
bool oribi__control_address(const char *path, struct sockaddr_un *where);

/* Connects and sends the command. Gives the descriptor from which the answer comes; -1 with a line in `out` when no
 * server answers. Where it must not block, a server that does not accept is one that does not answer. */
int oribi__control_ask(const char *path, const char *command, bool nonblocking, struct oribi_buf *out);

/* Appends what has come of the answer. As oribi_os_read(): 0 is its end. */
ssize_t oribi__control_read(int fd, struct oribi_buf *out);

/* Of the answer out[from …], all of which has come: cuts off the first word, and gives the exit code that it stands
 * for. Leaves the text NUL-terminated behind its length. An answer without a byte becomes a line that says so. */
int oribi__control_judge(struct oribi_buf *out, size_t from, const char *path);

/* Appends "PATH: what" and gives the exit code 2. */
int oribi__control_fail(struct oribi_buf *out, const char *path, const char *what);

/* --- control_place.c ---
 *
 * The control socket of a server whose options name none: a file in a folder of the user's own, /tmp/oribi-<uid> (mode
 * 0700), whose name is made of the folder in which the server runs, so that `ctl` finds it from there.
 *
 *   <hash of the real path>-<hash of the path as the operator says it>-<process id>.ctl
 *
 * Two paths, because a deployment leads a symbolic link to a new folder while the server runs. The hashes are FNV-1a of
 * 64 bits. Neither XDG_RUNTIME_DIR nor TMPDIR is asked: the server and the operator's shell need not share them. */

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
