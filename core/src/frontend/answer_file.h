/* Files that end answers: a worker has handed one over (worker/channel_ring.h), and the frontend reads it as the client
 * takes the answer. The channel is free, and its worker has nothing to do with the answer any more.
 *
 *   READY ── bytes are not in memory ──► FETCHED ── a moment later ──► READY      each piece goes to the call's client,
 *     └───── the client is behind ─────► BLOCKED ── it has taken ────► READY      as bytes of a channel do
 *
 * The frontend never waits for a disk: what is not in memory is fetched by the system, and looked for again. An answer
 * breaks off where the file ends too early, where it cannot be read, where its bytes do not come for
 * ORIBI__ANSWER_FILE_FETCH_MS, and where the file system cannot tell whether they are in memory. */
#ifndef ORIBI_FRONTEND_ANSWER_FILE_H
#define ORIBI_FRONTEND_ANSWER_FILE_H

#include "oribi/event/timers.h"
#include "oribi/worker/channel_ring.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__frontend;
struct oribi__upstream_request;

enum {
    ORIBI__ANSWER_FILES_MAX = 256, /* at a time; beyond it workers send their files */
    ORIBI__ANSWER_FILE_PIECE_BYTES = 128 * 1024,
    ORIBI__ANSWER_FILE_HIGH_BYTES = 64 * 1024, /* that the client has not taken, see ORIBI__FRONTEND_HIGH_BYTES */
    ORIBI__ANSWER_FILE_LOW_BYTES = 32 * 1024,
    ORIBI__ANSWER_FILE_FETCH_MS = 30 * 1000,
    ORIBI__ANSWER_FILES_PAUSE_MS = 1000, /* in which workers send their files: the system let a descriptor not in */
};

/* Of a call. */
struct oribi__answer_file {
    struct oribi_channel_file part; /* what is left */
    bool open;                      /* there is one */
    struct oribi__upstream_request *prev;
    struct oribi__upstream_request *next;
    struct oribi__upstream_request **list; /* ready or fetched; NULL: in neither */
    int64_t fetched_since_ms;              /* 0: its bytes have come when they were looked for last */
};

struct oribi__answer_files {
    struct oribi__upstream_request *ready;
    struct oribi__upstream_request *fetched;
    struct oribi__upstream_request *at; /* whose piece goes to its client; NULL: that has ended */
    struct oribi_timer look;            /* whether fetched bytes have come */
    uint32_t count;
    int64_t paused_until_ms;
};

/* Checks a file that has come by a channel, with what its answer has left. NULL: it may be read; else why not. */
const char *oribi__answer_file_fault(const struct oribi_channel_file *file, int64_t left);

/* Reads up to n bytes of the file's rest, and takes them from it. Returns how many, ORIBI_AGAIN, or another code: of a
 * file that is too short ORIBI_EBAD. */
ssize_t oribi__answer_file_read(struct oribi_channel_file *file, char *dst, size_t n);

/* The rest of the call's answer is this part of a file, which is taken. The call is on no channel. */
void oribi__answer_file_begin(struct oribi__upstream_request *call, const struct oribi_channel_file *file);
void oribi__answer_file_end(struct oribi__upstream_request *call);   /* closes it; nothing where there is none */
void oribi__answer_file_go_on(struct oribi__upstream_request *call); /* the client has taken what it had */

void oribi__answer_files_turn(struct oribi__frontend *frontend);

#endif
