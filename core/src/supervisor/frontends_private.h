/* State of the frontends, for frontends.c (life and end), frontend_start.c (start) and frontend_renewal.c (new
 * certificates). */
#ifndef ORIBI_SUPERVISOR_FRONTENDS_STATE_H
#define ORIBI_SUPERVISOR_FRONTENDS_STATE_H

#include "oribi/observe/observe.h"
#include "oribi/supervisor/frontend_text.h"
#include "supervisor/context.h"
#include "supervisor/frontend_inbox.h"
#include "supervisor/frontend_passwords.h"
#include "supervisor/frontends.h"

/*   none ── its time has come ──► starts ── ready ──► serves
 *     ▲                            │ READY_MS: killed  │
 *     └──── dies, BACKOFF_MS ◄─────┴───────────────────┘ */
struct oribi__frontend {
    struct oribi__context *context;
    uint32_t number;
    struct oribi__frontend_process process;
    int control_fd; /* -1: none */
    struct oribi_watcher watcher;
    struct oribi_timer until;           /* none: when it is started again; starts: when it is killed */
    uint32_t owed;                      /* answers to new certificates: the last one counts */
    int sockets_fd;                     /* memory that it writes its WebSockets to, while ctl sockets asks; -1: none */
    bool sockets_owed;                  /* it has not yet */
    uint32_t locals_owed;               /* answers to changes of local content: the last one counts */
    int64_t start_at;                   /* when it is started again; 0: it is there */
    uint32_t failures;                  /* in a row */
    struct oribi__frontend_files files; /* that it was started with, until it serves */
    char refused[128];                  /* why it did not serve with what the files have now; "": it did */
};

/* Certificates that are read, while a command prints the password of a key. */
struct oribi__reading {
    struct oribi__context *context;
    struct oribi__passwords *passwords; /* NULL: nothing is read */
    struct oribi_watcher watcher;
    struct oribi_timer look;
    void (*known)(struct oribi__context *context); /* the password, or that there is none: reads again */
};

/* New certificates on their way to frontends:
 *
 * asked for ─► READS the files, and passwords ─► each frontend is told: WAITS ─► all have answered, or time is over */
enum oribi__renewal { ORIBI__RENEWAL_NONE, ORIBI__RENEWAL_READS, ORIBI__RENEWAL_WAITS };

struct oribi__frontends {
    struct oribi__frontend items[ORIBI_FRONTENDS_MAX];
    struct oribi__frontend_set set;
    char program[512];
    int tickets_fd;
    struct oribi_tls_tickets *tickets; /* mapped */
    struct oribi_timer tickets_turn;
    int slots_fd;
    struct oribi__frontend_inbox inbox;
    bool beginning; /* the server is not up before all of them are ready */
    uint32_t begun; /* so many of them were started */
    struct oribi_timer begin_late;
    bool ending;
    char error[256];   /* of the last that has failed at its start; "": none */
    char refusal[256]; /* of the last that has refused new certificates; "": none */
    uint32_t taken;    /* frontends that have taken new certificates */
    char warning[256]; /* of the last that has taken certificates; "": none */
    enum oribi__renewal renewing;
    bool renew_again; /* it was asked for while one was under way */
    struct oribi_timer renewal_late;
    struct oribi_timer sockets_late;      /* armed: ctl sockets waits for frontends */
    struct oribi_timer locals_late;       /* armed: a reload's reply waits for its local content */
    struct oribi__frontend_files renewed; /* what was read, until a frontend has taken it */
    struct oribi__reading of_renewal;
    struct oribi__reading of_start;    /* of the frontend that is to start */
    uint32_t starting;                 /* number of that frontend */
    char renewal[256];                 /* why a reload has not renewed certificates; "": it has */
    struct oribi__frontend_files kept; /* of the certificates that frontends have taken last */
    struct oribi_buf local;            /* oribi__frontend_text_local() of the generation in force */
    struct oribi_buf challenges;       /* records that are added to it (acme.h) */
};

/* --- frontend_start.c --- */

/* Gives the passwords of a reading, which is begun if it is not. */
struct oribi__passwords *oribi__reading_begin(struct oribi__reading *reading);

/* The reading has broken off for a password: it goes on when that is known. */
void oribi__reading_await(struct oribi__reading *reading);

/* Ends it, and the command. In a child: frees memory alone. */
void oribi__reading_end(struct oribi__reading *reading, bool in_child);

/* A child has ended: was it the command? */
bool oribi__reading_ended(struct oribi__reading *reading, pid_t pid, int status);

void oribi__reading_init(struct oribi__context *context, struct oribi__reading *reading,
                         void (*known)(struct oribi__context *context));

/* The descriptor of the access log, -1: there is none. */
int oribi__frontends_access_log_fd(const struct oribi__context *context);

/* While the server begins: has one failed, or are all ready? */
void oribi__frontends_look_at_begin(struct oribi__context *context);

/* The frontend has died: it is started again after a while. */
void oribi__frontend_plan_start(struct oribi__frontend *frontend, int64_t now_ms);

/* Handlers of a reading and of timers. */
void oribi__frontends_password_known(struct oribi__context *context);
void oribi__frontend_time_is_over(void *frontend);
void oribi__frontends_begin_late(void *context);

/* --- frontend_renewal.c --- */

/* Have all frontends answered? */
void oribi__frontends_look_at_renewal(struct oribi__context *context);

/* Reads, and gives to the frontends; handlers of a reading and of a timer. */
void oribi__frontends_renew(struct oribi__context *context);
void oribi__frontends_renewal_late(void *context);

/* --- frontend_sockets.c --- */

/* Have all frontends answered that were asked? Then ctl gets its reply. */
void oribi__frontend_sockets_look(struct oribi__context *context);
void oribi__frontend_sockets_late(void *context);

/* --- frontends.c --- */

/* Appends all of the local content. 0 or ORIBI_ENOMEM. */
int oribi__frontends_local_text(const struct oribi__frontends *frontends, struct oribi_buf *out);

/* Ends all of them at once. */
void oribi__frontends_close(struct oribi__context *context);

#endif
