/* `ctl top`: the live view of a server on a terminal.
 *
 *   supervisor ─ top_answer.c ─► snapshot ─ top_text.c ─► lines ─ control socket ─┐
 *        ┌────────────────────────────────────────────────────────────────────────┘
 *        └─ top_text.c ─► snapshot ─┬─► top.c ─► screen ─► top_terminal.c
 *           the one before ─────────┘
 *
 * A snapshot travels as lines of fields, which are separated by tabs: a word for the kind of line, then name=value.
 *
 *   server   program=oribi   pid=4711   state=serving   requests=1234 …
 *   times    of=call_time    12=5       13=9 …                            counts of the histogram's buckets
 *   worker   worker=0        pid=4712   state=busy … call=GET /report
 *
 * A reader skips lines and fields that it does not know: after an upgrade the server may be newer than the reader. */
#ifndef ORIBI_COMMAND_TOP_H
#define ORIBI_COMMAND_TOP_H

#include "oribi/base/buf.h"
#include "oribi/base/histogram.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oribi_supervisor;

struct oribi__top_worker {
    uint64_t worker; /* number of its slot */
    uint64_t pid;
    uint64_t generation;
    uint64_t requests;
    uint64_t connections_open;
    uint64_t queued;
    uint64_t threads;
    uint64_t threads_busy;
    uint64_t memory_bytes; /* resident */
    uint64_t cpu_ms;
    uint64_t up_ms;
    uint64_t call_us; /* age of the call under way; 0: none */
    char state[12];   /* oribi__worker_state() */
    char call[ORIBI_SLOT_LINE_CAP];
};

enum oribi__top_times {
    ORIBI__TOP_QUEUE_WAIT,
    ORIBI__TOP_CALL_TIME,
    ORIBI__TOP_TOTAL_TIME,
    ORIBI__TOP_TIMES,
};

/* All-zero: nothing is known. Counters count from the start of the supervisor. */
struct oribi__top_snapshot {
    char program[32];
    char version[32]; /* "": not known, as of a library's program */
    char state[24];   /* "serving", "reloading" */
    uint64_t pid;
    uint64_t taken_us; /* by the server's clock; only differences have a meaning */
    uint64_t up_ms;
    uint64_t generation;
    uint64_t serving;   /* workers */
    uint64_t wanted;    /* workers that there should be */
    uint64_t deaths;    /* workers that ended unasked */
    uint64_t waiting;   /* requests */
    uint64_t oldest_us; /* how long the oldest of them has waited */
    uint64_t requests;
    uint64_t uncalled;
    uint64_t cut; /* answers by class */
    uint64_t status_4xx;
    uint64_t status_5xx;
    uint64_t refused;
    uint64_t shed;
    uint64_t overdue;
    uint64_t connections;
    uint64_t connections_open;
    uint64_t bytes_in;
    uint64_t bytes_out;
    uint64_t frontends; /* 0: all below is 0, too */
    uint64_t frontends_serving;
    uint64_t frontend_clients;
    uint64_t frontend_clients_h2; /* of these */
    uint64_t frontend_streams;
    uint64_t frontend_calls_out; /* requests of frontends that workers have */
    uint64_t handshakes;
    uint64_t handshakes_resumed; /* of these */
    uint64_t handshakes_failed;  /* not of these */
    struct oribi_histogram_sum times[ORIBI__TOP_TIMES];
    struct oribi__top_worker *workers; /* the snapshot's, `count` of them */
    size_t count;
};

void oribi__top_deinit(struct oribi__top_snapshot *snapshot);

/* top_answer.c: appends the lines of a snapshot. Where memory is out the rest is missing. */
void oribi__top_answer(const struct oribi_supervisor *supervisor, struct oribi_buf *out);

/* top_text.c: the same of a snapshot, and back. */
void oribi__top_write(const struct oribi__top_snapshot *snapshot, struct oribi_buf *out);

/* Reads `snapshot`, which is all-zero or one that was read before, from the text; whatever the text holds,
 * the snapshot's strings are printable ASCII. Borrows text. 0; ORIBI_EBAD: this is no snapshot; ORIBI_ENOMEM. The
 * caller ends the snapshot by oribi__top_deinit() in each case. */
int oribi__top_read(struct oribi__top_snapshot *snapshot, const char *text, size_t len);

/* --- the screen --- */

enum oribi__top_sort {
    ORIBI__TOP_BY_AGE, /* of the call under way */
    ORIBI__TOP_BY_STATE,
    ORIBI__TOP_BY_REQUESTS,
    ORIBI__TOP_BY_RATE,
    ORIBI__TOP_BY_MEMORY,
    ORIBI__TOP_BY_CPU,
    ORIBI__TOP_BY_WORKER,
    ORIBI__TOP_SORTS,
};

enum { ORIBI__TOP_COLUMNS_MAX = 500 }; /* a wider screen stays empty on its right */

struct oribi__top_view {
    uint32_t columns; /* 0: lines are as long as they are */
    uint32_t rows;    /* 0: as many as there are workers */
    bool live;        /* for a terminal: with escape sequences, over what stands there */
    bool color;       /* if live */
    bool help;        /* the keys in the place of the workers */
    bool reverse;
    enum oribi__top_sort sort;
    const char *note; /* a line at the end of the header: what is wrong; NULL: none. Borrowed */
};

/* top.c: appends the screen for `now`; rates and quantiles are those since `before`, or since the server's start where
 * `before` is NULL or of another server. Pure. */
void oribi__top_render(struct oribi_buf *out, const struct oribi__top_snapshot *now,
                       const struct oribi__top_snapshot *before, const struct oribi__top_view *view);

/* The word for an order ("age"), and the key for it ('a'). */
const char *oribi__top_sort_name(enum oribi__top_sort sort);
char oribi__top_sort_key(enum oribi__top_sort sort);

/* --- the terminal --- */

enum {
    ORIBI__TOP_INTERVAL_MS_DEFAULT = 1000,
    ORIBI__TOP_INTERVAL_MS_MIN = 100,
    ORIBI__TOP_INTERVAL_MS_MAX = 60 * 60 * 1000,
};

/* top_terminal.c: shows the server whose control socket is `path` until the user ends it, where standard input and
 * output are terminals; else prints once, after two looks `interval_ms` apart. Messages go to stderr behind `program`.
 * Returns the exit code of `ctl`. */
int oribi__top_run(const char *path, const char *program, int64_t interval_ms, enum oribi__top_sort sort);

#endif
