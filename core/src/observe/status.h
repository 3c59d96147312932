/* State of the server and of a worker, and sums of counters, which status, metrics, history and `top` show. */
#ifndef ORIBI_OBSERVE_STATUS_H
#define ORIBI_OBSERVE_STATUS_H

#include "oribi/base/buf.h"
#include "oribi/base/os/os_process.h"
#include "oribi/observe/totals.h"
#include "oribi/policy/policy.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__observe;

enum { ORIBI__TOTALS_MS = 100 };

/* State of the server: "serving", "reloading" … */
const char *oribi__server_state(const struct oribi__observe *observe);
/* "starting", "idle", "busy", "draining", "killed", "held"; NULL: there is no worker. */
const char *oribi__worker_state(const struct oribi_worker_record *record, const struct oribi_slot *slot);
/* State of a worker with what a look at its process says: "stopped", for one that a signal has stopped. */
const char *oribi__worker_shown(const struct oribi_worker_record *record, const struct oribi_slot *slot,
                                const struct oribi_process_look *look);
/* Places of workers that should be there and are not. */
uint32_t oribi__workers_missing(const struct oribi_policy *policy);
/* Calls being made and calls that can be made at a time. */
void oribi__worker_threads(const struct oribi_slot *slot, uint32_t *busy, uint32_t *threads);
/* Requests in the hand-off queue, which no worker has at the moment, and since when the oldest waits; 0, 0: none. */
uint32_t oribi__handed_off(const struct oribi__observe *observe, int64_t *oldest_us);
/* Requests that no worker has: in the hand-off queue and in frontends. */
uint32_t oribi__waiting(const struct oribi__observe *observe, int64_t *oldest_us);
/* The server's counters since its start: those of workers and frontends, ended ones and predecessors included, and the
 * supervisor's own. */
void oribi__status_totals(const struct oribi__observe *observe, struct oribi__totals *all);
/* The workers' part of them. */
void oribi__status_sum(const struct oribi__observe *observe, uint64_t sums[ORIBI_SLOT_COUNTERS]);

#endif
