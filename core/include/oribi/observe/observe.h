/* The room as the supervisor has it: one struct oribi__observe, whose handlers and timers the supervisor's dispatcher
 * calls. The room reads a view of what others have, and nothing in it waits. A feature that is off has neither handlers
 * nor timers. */
#ifndef ORIBI_OBSERVE_OBSERVE_H
#define ORIBI_OBSERVE_OBSERVE_H

#include "oribi/base/buf.h"
#include "oribi/config/options.h"
#include "oribi/observe/totals.h"
#include "oribi/worker/frontend_slot.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi__observe_state;
struct oribi__process_context;
struct oribi_dispatcher;
struct oribi_policy;
struct oribi_policy_event;

/* --- the view --- */

/* The server's frontends: their processes, and the slots in which they count (worker/frontend_slot.h). */
struct oribi__frontend_process {
    pid_t pid; /* 0: none */
    bool ready;
};

struct oribi__frontend_set {
    uint32_t count; /* 0: none are wanted */
    const struct oribi__frontend_process *processes[ORIBI_FRONTENDS_MAX];
    struct oribi_frontend_slot *slots; /* mapped; NULL: no frontends, or no memory for that */
};

/* A certificate of the option acme. Times are seconds since 1970, 0: none. */
struct oribi__acme_certificate {
    const char *name;   /* the first of its names */
    const char *names;  /* all of them, with commas between */
    const char *state;  /* "unknown", "placeholder", "good", "expired", "renewing", "failed" */
    const char *reason; /* why the last order has failed, or what is wrong; "": nothing */
    bool placeholder;   /* no authority has issued what serves */
    uint32_t failures;  /* of orders, in a row */
    int64_t begins_s;
    int64_t expires_s;
    int64_t next_s; /* the next order */
};

enum { ORIBI__ACME_SET_MAX = 32 };

struct oribi__acme_set {
    uint32_t count; /* 0: the option is not set */
    const struct oribi__acme_certificate *items[ORIBI__ACME_SET_MAX];
};

/* For how many of them a placeholder serves. NULL: there are none. */
uint32_t oribi__acme_placeholders(const struct oribi__acme_set *acme);

/* Borrowed, all of it, for as long as the room is used. */
struct oribi__view {
    const struct oribi__process_context *context;
    const struct oribi_policy *policy;
    const struct oribi__frontend_set *frontends;
    const struct oribi__acme_set *acme; /* NULL: none */
    const int *predecessor_fd;          /* -1: no predecessor has the addresses any more */
    const char *version;                /* of the program; "": it has not told it */
    const char *restart_file;           /* path of the file whose touch reloads; "": none */
};

struct oribi__observe {
    struct oribi__view view;
    struct oribi_dispatcher *dispatcher; /* borrowed */
    /* the supervisor's; both are called from handlers, with the owner; NULL: it has no ears for that */
    void *owner;
    void (*report)(void *owner, const struct oribi_policy_event *event); /* memory_max; borrows the event */
    void (*stacks_found)(void *owner);                                   /* the open question is answered */
    int64_t started_ms; /* when the server began, oribi_clock_ms() and oribi_clock_wall_ms() */
    int64_t started_wall_ms;
    struct oribi__totals totals;
    struct oribi__inherited_totals inherited;
    struct oribi__observe_state *state; /* private (state.h) */
};

/* --- life --- */

/* All-zero becomes: nothing is open. The fields that others set may be set before or after it. */
void oribi__observe_init(struct oribi__observe *observe);

/* Opens the addresses of the options `status` and `agent`. 0 or a code with `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi__observe_open(struct oribi__observe *observe, char *error);

/* The policy has its options, or others: memory_max may be among them. */
void oribi__observe_configured(struct oribi__observe *observe);

/* Closes the addresses, and ends the history; `unlink_paths` removes the socket files if they are ours. */
void oribi__observe_close(struct oribi__observe *observe, bool unlink_paths);

/* In a child that shares the descriptors: closes them and does nothing else. */
void oribi__observe_let_go(struct oribi__observe *observe);

/* After oribi__observe_close(): frees what is left. */
void oribi__observe_deinit(struct oribi__observe *observe);

/* Writes the totals where a successor reads them, if there is one, now and then each 100 ms. */
void oribi__export_totals(struct oribi__observe *observe);

/* --- answers of the control socket --- */

void oribi__status_text(struct oribi__observe *observe, struct oribi_buf *out);

/* `quick`: without what takes long to find out, which is how memory is shared. */
void oribi__status_json(struct oribi__observe *observe, struct oribi_buf *out, bool quick);

/* Appends the lines of a snapshot (top_snapshot.h). Where memory is out the rest is missing. */
void oribi__top_answer(const struct oribi__observe *observe, struct oribi_buf *out);

/* Asks the workers where their calls stand, unless a question is open. Gives the number to wait for:
 * observe->stacks_found is called when it is answered, and never from within this call. */
uint32_t oribi__stacks_ask(struct oribi__observe *observe);

/* The last answer, as text or as JSON; kept until the next one. */
const struct oribi_buf *oribi__stacks_answer_to(const struct oribi__observe *observe, bool json);

#endif
