/* The control socket's client: what `oribi ctl` and `oribi-psgi ctl` call.
 *
 * One command a connection, one line; the answer's first line begins with "ok" or "error", what follows is for
 * people or programs:
 *
 *   status            a table                       status json       the same as JSON
 *   top               a snapshot for `ctl top` (observe/top_snapshot.h)
 *   stacks            where every call stands       stacks json       the same as JSON
 *   sockets           every WebSocket, 1000 rows at most; sockets json
 *   reload            when it is done or has failed  upgrade           the same
 *   stop              when everything has ended      stop now
 *   workers +N|-N|N   the new number at once         reopen            log files
 *   publisher         "ok", and with it the descriptor of the inbox of publications (oribi/supervisor/publish.h)
 *
 * The socket answers root and the user it runs as. */
#ifndef ORIBI_SUPERVISOR_CONTROL_H
#define ORIBI_SUPERVISOR_CONTROL_H

#include "oribi/base/buf.h"

/* Sends `command` to the server whose control socket is `path` and waits for the answer, which is appended to `out`
 * (without the word ok or error, NUL-terminated behind its length). Blocks: call it without the VM lock. Returns the
 * exit code: 0 done, 1 refused or failed, 2 no server answers there. */
int oribi_control_request(const char *path, const char *command, struct oribi_buf *out);

#endif
