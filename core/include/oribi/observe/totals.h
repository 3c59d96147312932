/* Counters of the supervisor's own, and those of workers that have ended. Those of living workers are in the
 * scoreboard; both together are the server's counters since its start. */
#ifndef ORIBI_OBSERVE_TOTALS_H
#define ORIBI_OBSERVE_TOTALS_H

#include "oribi/worker/frontend_slot.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdint.h>

/* Why workers end. */
enum oribi__exit_reason {
    ORIBI__EXIT_ASKED,    /* by an operator, a reload or a stop */
    ORIBI__EXIT_RECYCLED, /* with code 0, by itself: requests_max; or for age_max, memory_max or a refork */
    ORIBI__EXIT_CALL_DEADLINE,
    ORIBI__EXIT_BOOT_TIMEOUT,
    ORIBI__EXIT_SHUTDOWN_TIMEOUT,
    ORIBI__EXIT_SIGNAL,
    ORIBI__EXIT_CODE, /* other than 0 */
    ORIBI__EXIT_OTHER,
    ORIBI__EXIT_REASONS,
};

struct oribi__totals {
    uint64_t ended[ORIBI_SLOT_COUNTERS]; /* of workers that have ended */
    uint64_t exits[ORIBI__EXIT_REASONS];
    uint64_t reloads_done;
    uint64_t reloads_failed;
    uint64_t frontend_exits;                     /* frontends that ended unasked */
    uint64_t acme_orders;                        /* begun, for certificates of the option acme */
    uint64_t acme_failures;                      /* of them */
    uint64_t frontends[ORIBI_FRONTEND_COUNTERS]; /* what frontends have counted, predecessors' included */
    int64_t reload_ms; /* how long the last reload took, whichever way it ended; 0: there was none */
    int64_t reload_began_ms;
};

/* A worker has been reaped: its slot's counters are added, once, before the slot is cleared. `reason` is the policy's
 * line (policy.h, ORIBI_ACTION_WORKER_EXIT). Borrows all. */
void oribi__totals_exit(struct oribi__totals *totals, const struct oribi_slot *slot, const char *reason);

void oribi__totals_reloading(struct oribi__totals *totals, int64_t now_ms);
void oribi__totals_reloaded(struct oribi__totals *totals, bool failed, int64_t now_ms);

uint64_t oribi__totals_exits(const struct oribi__totals *totals);

/* The word for exits[i]: "asked", "call_deadline". */
const char *oribi__exit_reason_name(uint32_t i);

/* --- over an upgrade --- */

/* Counters that outlive the supervisor: at an upgrade the predecessor writes its totals to a shared mapping, again and
 * again until its end, and the successor adds them to its own wherever it shows them. So no counter of the server goes
 * back, and what workers of the predecessor still finish is in it. The mapping outlives a predecessor that is killed.
 *
 *   ORIBI_TOTALS  "fd": the mapping's descriptor, in the successor's environment
 *
 * Counters go by their names in the mapping: of a predecessor of another version those that both have count on. */
struct oribi__totals_page;

struct oribi__inherited_totals {
    const struct oribi__totals_page *from; /* the predecessor's; NULL: none */
    struct oribi__totals_page *to;         /* what a successor reads; NULL: there is none */
    int to_fd;                             /* -1: none */
};

/* Makes the mapping for a successor and keeps its descriptor until oribi__inherited_totals_given(). 0, or a code of
 * os.h: the successor then begins at 0. */
int oribi__inherited_totals_make(struct oribi__inherited_totals *inherited);

/* The successor has been started, or not: the descriptor is closed. */
void oribi__inherited_totals_given(struct oribi__inherited_totals *inherited);

/* Writes `totals` for the successor, if there is a mapping. */
void oribi__inherited_totals_write(const struct oribi__inherited_totals *inherited, const struct oribi__totals *totals);

/* The successor has failed: there is no mapping any more. */
void oribi__inherited_totals_drop(struct oribi__inherited_totals *inherited);

/* In a successor: maps what ORIBI_TOTALS names, and clears that. What is no such mapping is left alone, with a line in
 * the log. */
void oribi__inherited_totals_take(struct oribi__inherited_totals *inherited);

/* Adds what is inherited to the counters of `totals`. */
void oribi__inherited_totals_add(const struct oribi__inherited_totals *inherited, struct oribi__totals *totals);

void oribi__inherited_totals_close(struct oribi__inherited_totals *inherited);

#endif
