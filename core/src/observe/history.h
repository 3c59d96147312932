/* The last ten minutes of the server, for the page of the status listener and for everyone who asks for /history.json:
 * one sample each two seconds, in the memory of the supervisor, of fixed size (37 KB of samples, 12 KB of counters as
 * they were last time, 8 bytes for each slot of the policy). A supervisor without `status` has none and does not wake
 * up for it.
 *
 *   reading ──► difference to the last reading ──► sample ──► ring of 300, the oldest one is overwritten
 *
 * Counters of a sample are what happened since the reading before, quantiles those of the calls that ended in between;
 * the rest is as it was when the reading was taken. A supervisor that has no time takes its next reading late: the
 * sample then says how much time it covers, and readers show the gap. */
#ifndef ORIBI_OBSERVE_HISTORY_H
#define ORIBI_OBSERVE_HISTORY_H

#include "oribi/base/buf.h"
#include "oribi/event/timers.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdint.h>

enum {
    ORIBI__HISTORY_MS = 2000, /* between two samples */
    ORIBI__HISTORY_SAMPLES = 300,
};

/* Fields of a sample, in the order in which they are sent; history.c has their names. */
enum oribi__history_field {
    ORIBI__HISTORY_SPAN, /* ms that the sample covers */
    ORIBI__HISTORY_CUT,  /* answers by class of their status, in the order of oribi_slot.status_class */
    ORIBI__HISTORY_1XX,
    ORIBI__HISTORY_2XX,
    ORIBI__HISTORY_3XX,
    ORIBI__HISTORY_4XX,
    ORIBI__HISTORY_5XX,
    ORIBI__HISTORY_REFUSED, /* of them the server's own */
    ORIBI__HISTORY_CRASHES, /* workers that ended without being asked to */
    ORIBI__HISTORY_CALLS,   /* calls that ended */
    ORIBI__HISTORY_QUEUE_P50,
    ORIBI__HISTORY_QUEUE_P95,
    ORIBI__HISTORY_QUEUE_P99,
    ORIBI__HISTORY_CALL_P50,
    ORIBI__HISTORY_CALL_P95,
    ORIBI__HISTORY_CALL_P99,
    ORIBI__HISTORY_TOTAL_P50,
    ORIBI__HISTORY_TOTAL_P95,
    ORIBI__HISTORY_TOTAL_P99,
    ORIBI__HISTORY_WAITING,     /* requests */
    ORIBI__HISTORY_OLDEST_WAIT, /* ms */
    ORIBI__HISTORY_OLDEST_CALL, /* ms */
    ORIBI__HISTORY_MEMORY,      /* kB resident in all workers together */
    ORIBI__HISTORY_CPU,         /* of one processor, in thousandths; all workers together */
    ORIBI__HISTORY_UTILISATION, /* time in calls of the time there was for calls, in thousandths */
    ORIBI__HISTORY_BUSY,        /* calls under way */
    ORIBI__HISTORY_THREADS,     /* calls that could be */
    ORIBI__HISTORY_WORKERS,     /* that serve */
    ORIBI__HISTORY_CONNECTIONS,
    ORIBI__HISTORY_FIELDS,
};

#define ORIBI__HISTORY_NONE UINT32_MAX /* a quantile of no calls; sent as null */

struct oribi__history_sample {
    int64_t at_ms; /* of the reading, as the caller's clock had it */
    uint32_t values[ORIBI__HISTORY_FIELDS];
};

/* A reading: the state of the server at one time. Gauges stand in `values` already; the other fields are history.c's to
 * fill. */
struct oribi__history_reading {
    int64_t
        now_ms; /* a clock that does not jump; should it go back all the same, the history begins a new difference */
    const uint64_t *sums; /* borrowed; ORIBI_SLOT_COUNTERS, those of ended workers included */
    uint64_t crashes;     /* since the server's start */
    uint64_t calls_us;    /* how long the calls under way have run, together */
    uint64_t cpu_ms;      /* processor time of the workers since the last reading */
    uint32_t values[ORIBI__HISTORY_FIELDS];
};

/* All-zero: empty. */
struct oribi__history {
    uint64_t count; /* samples there have ever been: the last one's number */
    int64_t last_ms;
    bool begun; /* the counters of a first reading are there */
    uint64_t crashes;
    uint64_t calls_us;
    uint64_t sums[ORIBI_SLOT_COUNTERS];
    struct oribi__history_sample samples[ORIBI__HISTORY_SAMPLES]; /* sample n is at (n - 1) % ORIBI__HISTORY_SAMPLES */
};

/* Adds a sample; of the first reading it remembers the counters alone. Borrows all. */
void oribi__history_add(struct oribi__history *history, const struct oribi__history_reading *reading);

/* Appends {"first":…,"last":…,"fields":[…],"samples":[[at_ms,…],…]} without the braces: the samples after number
 * `since`, from the oldest one on, with at_ms counted from `origin_ms`. A number that is not yet there stands for a
 * server before this one: all samples follow. Where memory is out the rest is missing. */
void oribi__history_put(const struct oribi__history *history, uint64_t since, int64_t origin_ms, struct oribi_buf *out);

struct oribi__observe;

/* Takes the supervisor's readings. All-zero: no readings are taken. */
struct oribi__history_readings {
    struct oribi__history *history; /* NULL: none is kept */
    int64_t next_ms;                /* when `reading` expires, or has */
    struct oribi_timer reading;
    struct {
        int32_t pid;
        uint32_t cpu_ms;
    } * workers; /* by slot, as they were at the last reading */
};

/* Begins and ends the readings; either may be called twice. */
void oribi__history_begin(struct oribi__observe *observe);
void oribi__history_end(struct oribi__observe *observe);

/* Appends the answer to /history.json: the history, and what tells one server from the next. */
void oribi__history_json(const struct oribi__observe *observe, uint64_t since, struct oribi_buf *out);

#endif
