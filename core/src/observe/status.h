/* Status of the server: state and sums of counters, which all others show too; and the texts that are made of it and of
 * the application's metrics. status.c, metrics.c, app_export.c, page.c. */
#ifndef ORIBI_OBSERVE_STATUS_H
#define ORIBI_OBSERVE_STATUS_H

#include "oribi/base/buf.h"
#include "oribi/base/metric.h"
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

/* --- metrics as text for Prometheus and its like: doc/monitoring.md has the table of them --- */

/* Appends all metrics, in OpenMetrics 1.0 or in Prometheus' text format 0.0.4. Reads the scoreboard, and of each worker
 * one small file of /proc. The size depends on the number of workers alone. Where memory is out the rest is missing. */
void oribi__metrics(const struct oribi__observe *observe, struct oribi_buf *out, bool open_metrics);

/* metrics_format.c: Whether a client with this Accept field prefers OpenMetrics; without the field it does not. */
bool oribi__metrics_open_wanted(struct oribi_slice accept);

/* Appends the rows of the table in doc/monitoring.md. */
void oribi__metrics_doc(struct oribi_buf *out);

/* --- the application's own metrics, out of the store that it shares with the supervisor --- */

/* Appends the families that are shown while the application's `generation` serves, in OpenMetrics 1.0 (without the
 * line # EOF) or in Prometheus' text format 0.0.4. Where memory is out the rest is missing. */
void oribi__app_export_text(const struct oribi_metric_store *store, uint32_t generation, bool open_metrics,
                            struct oribi_buf *out);

/* Appends them as an object of JSON. */
void oribi__app_export_json(const struct oribi_metric_store *store, uint32_t generation, struct oribi_buf *out);

/* --- page.html, which is part of the binary: it holds no data, and asks for /status.json and /history.json --- */

enum { ORIBI__PAGE_NONCE_CAP = 33 };

/* Makes a nonce of 128 random bits, in hexadecimal and NUL-terminated: with it the page's own script and style may run,
 * and no other (Content Security Policy 3, section 7.1). 0, or ORIBI_ESYS. */
int oribi__page_nonce(char nonce[ORIBI__PAGE_NONCE_CAP]);

/* Appends the page with this nonce. Where memory is out the rest is missing. */
void oribi__page(const char *nonce, struct oribi_buf *out);

#endif
