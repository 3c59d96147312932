/* Context of a process of the server: options, listeners, shared memory and descriptors that it keeps when it is forked
 * from supervisor to mold to worker. */
#ifndef ORIBI_OBSERVE_CONTEXT_H
#define ORIBI_OBSERVE_CONTEXT_H

#include "oribi/observe/app_store.h"
#include "oribi/worker/logs/access_log.h"
#include "oribi/worker/placement/handoff.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>
#include <sys/types.h>

struct oribi_listeners;
struct oribi_options;

struct oribi__process_context {
    const struct oribi_options *options;
    struct oribi_listeners *listeners; /* never NULL */
    const char *program;
    struct oribi_scoreboard board;
    struct oribi__app_store app;         /* metrics of the application */
    struct oribi_handoff handoff;        /* all workers of all generations share it */
    struct oribi_access_log *access_log; /* NULL: off */
    struct oribi_log_owner log_owner;    /* the workers' user, while we are root */
    char log_user[64];
    int message_fd; /* to the supervisor; shared by all its molds and workers */
    int life_fd;    /* never written to: at its end the supervisor is dead */
    pid_t supervisor;
    bool prefork;      /* a library's: prefork.h */
    bool usr1_foreign; /* a library's program uses USR1 itself, so that it is sent to no process */
};

#endif
