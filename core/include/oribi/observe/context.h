/* Context of a process of the server: options, listeners, shared memory and descriptors that it keeps when it is forked
 * from supervisor to mold to worker. */
#ifndef ORIBI_OBSERVE_CONTEXT_H
#define ORIBI_OBSERVE_CONTEXT_H

#include "oribi/base/log.h"
#include "oribi/base/metric.h"
#include "oribi/worker/placement/handoff.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>
#include <sys/types.h>

/* --- app_store.c --- */

/* The memory of the application's metrics, and its way to the processes of a server: forked ones have it, a mold that
 * is started by exec finds it by a descriptor, and so does the successor in an upgrade, which counts on where its
 * predecessor's workers still count.
 *
 *   ORIBI_METRICS  "layout descriptor server", in the environment of both; empty: there is no store */
enum { ORIBI__APP_STORE_TEXT_CAP = 64 };

struct oribi__app_store {
    struct oribi_metric_store view; /* without head: there is none */
    void *memory;                   /* NULL: none */
    size_t bytes;
    int fd; /* -1: none */
};

/* In a supervisor: takes over the predecessor's store, if it has handed one down that is of this layout and has as many
 * series; otherwise makes one. series_max 0: none. 0, ORIBI_ENOMEM or a code of os.h. */
int oribi__app_store_create(struct oribi__app_store *store, uint32_t series_max);

/* In a mold that was started by exec: maps its supervisor's. What cannot be mapped is none, with a line in the log. */
void oribi__app_store_inherit(struct oribi__app_store *store);

/* Writes ORIBI_METRICS=… for such a process. */
void oribi__app_store_text(const struct oribi__app_store *store, char text[ORIBI__APP_STORE_TEXT_CAP]);

/* Unmaps it and closes the descriptor. */
void oribi__app_store_destroy(struct oribi__app_store *store);

/* --- the context --- */

struct oribi_access_log;
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
    int inbox_fd;   /* of publications (worker/inbox.h), for writing; -1: the server has no frontend */
    int life_fd;    /* never written to: at its end the supervisor is dead */
    pid_t supervisor;
    bool prefork;      /* a library's: prefork.h */
    bool usr1_foreign; /* a library's program uses USR1 itself, so that it is sent to no process */
};

#endif
