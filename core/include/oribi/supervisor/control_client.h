/* The parts of a request to the control socket, for those who do not want to block: oribi_control_request() in
 * oribi/supervisor/control.h is all of them. */
#ifndef ORIBI_SUPERVISOR_CONTROL_CLIENT_H
#define ORIBI_SUPERVISOR_CONTROL_CLIENT_H

#include "oribi/base/buf.h"

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

#endif
