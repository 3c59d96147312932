/* The control socket: a few clients at a time, one command each. A command that takes time gets its reply when it is
 * done, and a good one to a reload or an upgrade is deferred until no old worker accepts connections any more. No reply
 * is waited for: what a client does not read goes out when it does, for ORIBI__CONTROL_REPLY_MS at most. */
#ifndef ORIBI_SUPERVISOR_CONTROL_SOCKET_H
#define ORIBI_SUPERVISOR_CONTROL_SOCKET_H

#include <stdbool.h>

struct oribi__context;
struct oribi_buf;

enum {
    ORIBI__CONTROL_CLIENTS_MAX = 8,
    ORIBI__CONTROL_LINE_CAP = 128,
    ORIBI__CONTROL_LINE_MS = 5000,  /* for the line of a client */
    ORIBI__CONTROL_REPLY_MS = 5000, /* for the client to read a reply */
};

/* Command whose end a client of the control socket waits for. */
enum oribi__command {
    ORIBI__COMMAND_NONE,
    ORIBI__COMMAND_RELOAD,
    ORIBI__COMMAND_UPGRADE,
    ORIBI__COMMAND_STOP,
    ORIBI__COMMAND_STACKS,
    ORIBI__COMMAND_CERTIFICATES,
    ORIBI__COMMAND_SOCKETS,
};

/* Opens the socket under the name that it has; `replace`: also where a predecessor answers there. 0, also where it has
 * no name, or a code with `error`. */
int oribi__control_open(struct oribi__context *context, bool replace, char *error);

/* The file's path; "": none. */
const char *oribi__control_path(const struct oribi__context *context);

/* To every client that waits for this command. */
void oribi__control_answer(struct oribi__context *context, enum oribi__command command, int code, const char *text);

/* To the clients that asked before the command began: the next one is for the others. */
void oribi__control_answer_first(struct oribi__context *context, enum oribi__command command, int code,
                                 const char *text);

/* A reload has ended, for the clients that wait for it; `code` 0: it is done. */
void oribi__control_reloaded(struct oribi__context *context, int code, const char *text);
void oribi__control_upgraded(struct oribi__context *context, int code, const char *text);
void oribi__control_upgrade_refused(struct oribi__context *context, const char *text);
void oribi__control_stopping(struct oribi__context *context);
void oribi__control_stopped(struct oribi__context *context);

/* Where the calls stand, for the clients that wait for it. */
void oribi__control_stacks(struct oribi__context *context);

/* The WebSockets, for the clients that wait for them. */
void oribi__control_sockets(struct oribi__context *context, const struct oribi_buf *text, const struct oribi_buf *json);

void oribi__control_close(struct oribi__context *context, bool unlink_path);

#endif
