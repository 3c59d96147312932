/* Where the calls of a worker stand: the supervisor asks through shared memory, the worker's helper answers there. Each
 * question has a number, and neither side waits for the other.
 *
 *   supervisor                         worker's helper
 *   asked = n; signal to the helper ─► writes bytes and len, then answered = n
 *   answered == n: reads  ◄──────────┘
 *
 * A worker whose application writes into this memory can answer nonsense; the reader believes nothing of it. */
#ifndef ORIBI_WORKER_STACKS_H
#define ORIBI_WORKER_STACKS_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    ORIBI_STACKS_BYTES = 32 * 1024, /* of one worker */
    ORIBI_STACKS_FRAMES_BYTES_MAX = 6 * 1024,
    ORIBI_STACKS_MS = 60, /* after that a worker answers without the frames that it has not read yet */
};

/* One for each slot, in the same mapping. */
struct oribi_stacks {
    _Atomic uint32_t asked;     /* by the supervisor; 0: never */
    _Atomic uint32_t answered;  /* by the worker */
    _Atomic int32_t helper_tid; /* the thread that the signal goes to; 0: the worker has none */
    _Atomic uint32_t len;       /* of bytes: struct oribi_stack one after the other, each with its frames behind it */
    _Atomic uint32_t left_out;  /* calls that there was no room for */
    _Alignas(8) char bytes[ORIBI_STACKS_BYTES - 6 * 4];
};

/* One call under way. */
struct oribi_stack {
    uint32_t size; /* with its frames, a multiple of 8 */
    uint32_t thread;
    int32_t tid; /* 0: not known */
    uint32_t frames_len;
    int64_t age_us;
    char state;    /* as in os_process.h */
    char call[32]; /* the system call that it waits in, NUL-terminated; "": none, or not known */
    uint8_t begun; /* its answer has begun */
    uint8_t after; /* its request is answered, and the application runs on */
    uint8_t id_len;
    char id[128];
    char line[164]; /* "GET /path", NUL-terminated */
};

#endif
