/* State of the certificates by ACME, for acme.c (the plan), acme_program.c (the child) and acme_shown.c (words). */
#ifndef ORIBI_SUPERVISOR_ACME_PRIVATE_H
#define ORIBI_SUPERVISOR_ACME_PRIVATE_H

#include "oribi/base/error.h"
#include "oribi/config/acme.h"
#include "oribi/observe/observe.h"
#include "oribi/worker/acme_protocol.h"
#include "supervisor/acme.h"
#include "supervisor/context.h"

enum {
    ORIBI__ACME_LOOK_MS = 60 * 60 * 1000, /* between two looks at the files */
    ORIBI__ACME_LOOK_AGAIN_MS = 5 * 1000, /* after a look that has failed, doubled six times at most */
    ORIBI__ACME_AGAIN_MS = 10 * 1000,     /* where another process asks */
    ORIBI__ACME_READY_MS = 2 * 1000,      /* until frontends answer a challenge */
    ORIBI__ACME_END_MS = 2 * 1000,        /* until a child that was told to end is killed */
    ORIBI__ACME_LAST_MS = 500,            /* for that, once nothing else holds the server */
    ORIBI__ACME_RENEW_S = 60,             /* between two orders by ctl */
    ORIBI__ACME_SERIAL_MAX = 80,
    ORIBI__ACME_COMMAND_WORDS_CAP = 512,
};

/* Content of a certificate's file. */
enum oribi__acme_file { ORIBI__ACME_UNKNOWN, ORIBI__ACME_NONE, ORIBI__ACME_GOOD, ORIBI__ACME_NAMES, ORIBI__ACME_BAD };

struct oribi__acme_item {
    struct oribi__acme_certificate shown; /* first: observe has a pointer to it */
    char *names;                          /* of the certificate, with commas between them */
    uint32_t seed;
    enum oribi__acme_file file;
    struct oribi_acme_facts facts;
    char serial[ORIBI__ACME_SERIAL_MAX + 1];
    char served[ORIBI__ACME_SERIAL_MAX + 1]; /* the serial that frontends were told of last */
    char reason[ORIBI_ACME_REASON_MAX + 1];
    /* Where no state can be written, these keep the back-off. */
    uint32_t failures;
    int64_t tried_s; /* when this server has begun its last order; 0: none */
    bool asked;      /* by ctl: now */
};

struct oribi__acme_token {
    char token[ORIBI_ACME_TOKEN_MAX + 1];
    char authorization[ORIBI_ACME_AUTHORIZATION_MAX + 1];
};

enum oribi__acme_said {
    ORIBI__ACME_SAID_NOTHING,
    ORIBI__ACME_SAID_DONE,
    ORIBI__ACME_SAID_FOUND,
    ORIBI__ACME_SAID_REFUSED,
    ORIBI__ACME_SAID_BUSY
};

/*   none ── start ──► runs ── ended and reaped ──► none
 *                      │ its time is over, or the server stops: told to end ── END_MS ──► killed */
struct oribi__acme_child {
    pid_t pid; /* 0: none */
    int fd;    /* -1: none, or it has closed its end */
    struct oribi_watcher watcher;
    struct oribi_timer until; /* told to end; then killed */
    bool orders;              /* else it looks */
    bool for_ctl;             /* a client waits for the look */
    uint32_t index;           /* of the certificate that is asked for */
    int64_t tried_before_s;
    enum oribi__acme_said said;
    bool has_facts;    /* of that certificate */
    const char *ended; /* why it was told to end; NULL: it was not */
    bool is_late;      /* that is a failure */
    char why[ORIBI_ACME_REASON_MAX + 1];
};

struct oribi__acme {
    struct oribi__context *context;
    bool on;
    bool may; /* the server serves, and no other has its addresses */
    int64_t clock_s;
    char dir[1024];
    struct oribi__acme_set set;
    struct oribi__acme_item *items; /* set.count of them */
    struct oribi_timer next;        /* at the next look or order */
    int64_t look_ms;                /* of the next look */
    uint32_t look_failures;         /* in a row */
    char look_error[ORIBI_ACME_REASON_MAX + 1];
    bool look_asked; /* by ctl */
    int64_t busy_until_ms;
    struct oribi__acme_child child;
    struct oribi__acme_token *tokens; /* ORIBI_ACME_TOKENS_MAX */
    uint32_t token_count;
    bool told_tokens;        /* frontends have answers */
    uint32_t ready_owed;     /* READY, so often */
    struct oribi_timer late; /* then READY whatever frontends do */
};

/* --- acme.c --- */

int64_t oribi__acme_now_s(const struct oribi__acme *acme);

/* When it is asked for, by that clock; INT64_MAX: not planned. */
int64_t oribi__acme_due_s(const struct oribi__acme *acme, const struct oribi__acme_item *item);

/* The child has ended, and `acme->child` tells how. */
void oribi__acme_looked(struct oribi__acme *acme);
void oribi__acme_ordered(struct oribi__acme *acme);

/* Begins what is due, else waits for that. */
void oribi__acme_plan(struct oribi__acme *acme);

/* Brings `shown` up to date. */
void oribi__acme_show(struct oribi__acme *acme, struct oribi__acme_item *item);

/* --- acme_program.c --- */

void oribi__acme_child_init(struct oribi__acme *acme);

/* Starts it: to look, or to order the certificate. 0, or ORIBI_ESYS with `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi__acme_child_start(struct oribi__acme *acme, bool orders, uint32_t index, char *error);

/* Tells it to end. `why`: a constant; `is_late`: that is a failure. */
void oribi__acme_child_stop(struct oribi__acme *acme, const char *why, bool is_late);

/* Ends it at once. */
void oribi__acme_child_kill(struct oribi__acme *acme);

/* --- acme_shown.c --- */

enum { ORIBI__ACME_DATE_CAP = 32 };

/* "2026-11-29 13:05 UTC" */
const char *oribi__acme_date(int64_t seconds, char dst[ORIBI__ACME_DATE_CAP]);

/* The certificate that clients see while the file has none: frontends keep what they were told of last. */
const char *oribi__acme_without_file(const struct oribi__acme_item *item);

void oribi__acme_log_begin(const struct oribi__acme *acme, const struct oribi__acme_item *item);
void oribi__acme_log_done(const struct oribi__acme_item *item);
void oribi__acme_log_found(const struct oribi__acme *acme, const struct oribi__acme_item *item);
void oribi__acme_log_failed(const struct oribi__acme *acme, const struct oribi__acme_item *item);

#endif
