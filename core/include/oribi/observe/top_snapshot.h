/* A snapshot of a server for `ctl top`: every worker, and the server's counters.
 *
 *   supervisor ─ top_answer.c ─► snapshot ─ top_text.c ─► lines ─ control socket ─┐
 *        ┌────────────────────────────────────────────────────────────────────────┘
 *        └─ top_text.c ─► snapshot ─► the screen (command/top.c)
 *
 * A snapshot travels as lines of fields, which are separated by tabs: a word for the kind of line, then name=value.
 *
 *   server   program=oribi   pid=4711   state=serving   requests=1234 …
 *   times    of=call_time    12=5       13=9 …                            counts of the histogram's buckets
 *   worker   worker=0        pid=4712   state=busy … call=GET /report
 *
 * A reader skips lines and fields that it does not know: after an upgrade the server may be newer than the reader. */
#ifndef ORIBI_OBSERVE_TOP_SNAPSHOT_H
#define ORIBI_OBSERVE_TOP_SNAPSHOT_H

#include "oribi/base/buf.h"
#include "oribi/base/histogram.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    uint64_t websockets;         /* open ones */
    uint64_t websocket_messages_in;
    uint64_t websocket_messages_out;
    uint64_t handshakes;
    uint64_t handshakes_resumed; /* of these */
    uint64_t handshakes_failed;  /* not of these */
    struct oribi_histogram_sum times[ORIBI__TOP_TIMES];
    struct oribi__top_worker *workers; /* the snapshot's, `count` of them */
    size_t count;
};

void oribi__top_deinit(struct oribi__top_snapshot *snapshot);

/* top_text.c: appends the lines of this snapshot. */
void oribi__top_write(const struct oribi__top_snapshot *snapshot, struct oribi_buf *out);

/* Reads `snapshot`, which is all-zero or one that was read before, from the text; whatever the text holds,
 * the snapshot's strings are printable ASCII. Borrows text. 0; ORIBI_EBAD: this is no snapshot; ORIBI_ENOMEM. The
 * caller ends the snapshot by oribi__top_deinit() in each case. */
int oribi__top_read(struct oribi__top_snapshot *snapshot, const char *text, size_t len);

#endif
