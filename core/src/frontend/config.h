/* The configuration that the supervisor gives a frontend, and the messages between them afterwards. config.c is in the
 * frontend; the supervisor's side is supervisor/frontends.c and supervisor/frontend_text.c. */
#ifndef ORIBI_FRONTEND_CONFIG_H
#define ORIBI_FRONTEND_CONFIG_H

#include "frontend/tls.h"
#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "oribi/worker/frontend_protocol.h"
#include "oribi/worker/frontend_slot.h"
#include "oribi/worker/placement/handoff.h"
#include "oribi/worker/placement/scoreboard.h"

/* One listener of the frontend. `index` and `hash` are those of the server's list (hand-off message). */
struct oribi_frontend_listener {
    struct oribi_listener listener; /* fd is open */
    uint32_t index;
    uint32_t hash;
    bool tls;                   /* tls://; else frontend=on */
    struct oribi_tls *contexts; /* tls: made of the certificates that came; replaced by oribi_frontend_control_take() */
};

struct oribi_frontend_config {
    const struct oribi_options *options; /* as the supervisor has them */
    struct oribi_options *local;         /* what the newest generation says of answers without the application */
    bool has_access_log;                 /* standard output is it, wherever the supervisor has it */
    struct oribi_frontend_listener listeners[ORIBI_LISTENERS_MAX];
    uint32_t listener_count;
    struct oribi_scoreboard board;           /* attached; has the owner table of channels */
    struct oribi_handoff handoff;            /* only given to */
    const struct oribi_tls_tickets *tickets; /* NULL: none */
    struct oribi_frontend_slot *slots;       /* of all frontends, ORIBI_FRONTENDS_MAX; NULL: nobody reads them */
    struct oribi_frontend_slot *slot;        /* of this one, in which it counts */
    uint32_t channel_first;                  /* numbers of this frontend's channels: … */
    uint32_t channel_count;
    int rows_fd;      /* of ORIBI_FRONTEND_SOCKETS */
    int inbox_new_fd; /* of ORIBI_FRONTEND_INBOX */
    /* Of publish.h; 0 or -1: none. The first frontend alone reads. */
    int inbox_fd;
    int inbox_write_fd;
    int joins_fd;
    int joins_write_fd;
    int predecessor_fd; /* to the `joins` of the server that this one replaces */
    int control_fd;     /* SOCK_SEQPACKET to the supervisor; its end means that the supervisor is dead */
};

/* In the executable, first thing: takes what ORIBI_FRONTEND names, and becomes the user that the options name. 0, or a
 * code with one line in `error`. All of it lives until the process ends. */
int oribi_frontend_config_take(struct oribi_frontend_config *config, char *error);

enum oribi_frontend_command {
    ORIBI_FRONTEND_NOTHING,
    ORIBI_FRONTEND_CERTIFICATES, /* listeners[i].contexts have been replaced (old ones released) */
    ORIBI_FRONTEND_DRAIN,        /* end without a loss: stop accepting, close what is idle, GOAWAY, exit 0 when empty */
    ORIBI_FRONTEND_STOP,         /* the same, with all who have connected to addresses that end with the server */
    ORIBI_FRONTEND_GIVE_UP,      /* workers end: what waits for them is answered 503 */
    ORIBI_FRONTEND_REOPEN,       /* standard output leads to the access log that has been opened anew */
    ORIBI_FRONTEND_SOCKETS,      /* rows of WebSockets are wanted in rows_fd, the caller's from now on */
    ORIBI_FRONTEND_LOCAL,        /* `local` is new */
    ORIBI_FRONTEND_INBOX,        /* inbox_new_fd, the caller's from now on, stands for inbox_fd */
    ORIBI_FRONTEND_ORPHANED,     /* the supervisor is gone, and workers end: what waits for them is answered 503 */
};

/* The next message on control_fd; never blocks. */
enum oribi_frontend_command oribi_frontend_control_take(struct oribi_frontend_config *config);

/* Tells the supervisor that this frontend serves; or why it cannot (then exit with 1). */
void oribi_frontend_ready(const struct oribi_frontend_config *config);
void oribi_frontend_failed(const struct oribi_frontend_config *config, const char *text);

/* Tells the supervisor that the rows are written. */
void oribi_frontend_rows_written(const struct oribi_frontend_config *config);

/* Tells the supervisor that the inbox was shut. */
void oribi_frontend_inbox_ended(const struct oribi_frontend_config *config);

/* Tells the supervisor that this frontend answers by a new `local`. */
void oribi_frontend_local_taken(const struct oribi_frontend_config *config);

#endif
