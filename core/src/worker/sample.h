/* sample - where a call stands, found out while it runs and goes on: frames of its language, then native ones. By the
 * helper, for whoever asks (stacks.c) and for the log of slow calls (slow_log.c); the post-mortem of a call that
 * nothing could end reads its frames here, too. */
#ifndef ORIBI_WORKER_SAMPLE_H
#define ORIBI_WORKER_SAMPLE_H

#include "oribi/base/os/os_process.h"
#include "oribi/worker/logs/access_log.h"
#include "oribi/worker/placement/scoreboard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oribi_thread;
struct oribi_worker;

enum {
    ORIBI__STAND_TEXT_CAP = 6 * 1024, /* two thirds of what a block of the log holds */
    ORIBI__STAND_NATIVE_MAX = 8,
    ORIBI__SAMPLE_SIGNAL_MS = 30,   /* how long the helper waits for a thread to take the signal */
    ORIBI__SAMPLE_HANDLER_MS = 100, /* how long the helper waits for the thread's handler to end */
};

/* The frames of a call, as they are read. */
struct oribi__stand {
    const struct oribi_thread *thread;
    bool own_thread;         /* the reader is the call's own thread, in a signal handler */
    const void *interrupted; /* where that handler has interrupted the thread */
    size_t len;
    char text[ORIBI__STAND_TEXT_CAP]; /* lines, innermost first */
    int native_count;
    void *native[ORIBI__STAND_NATIVE_MAX];
};

/* Reads frames into `stand`, whose thread, own_thread and interrupted are given; `native` too. Async-signal-safe. */
void oribi__stand_read(struct oribi__stand *stand, bool native);

/* Appends the names of the native frames to the text. */
void oribi__stand_name(struct oribi__stand *stand);

/* Facts of a call that are known without asking it. */
struct oribi__call_facts {
    int64_t started_us;
    bool begun; /* its answer has begun */
    bool after; /* its request is answered, and the application runs on */
    uint8_t id_len;
    uint8_t trace_len;
    char id[ORIBI_REQUEST_ID_MAX];
    char trace[ORIBI_TRACE_ID_LEN];
    char line[ORIBI_SLOT_LINE_CAP];
};

/* By the helper, without the reactor. False: the thread makes no call. */
bool oribi__call_facts(struct oribi_thread *thread, struct oribi__call_facts *out);

struct oribi__sample {
    struct oribi_os_thread_state state; /* when it was looked at first */
    struct oribi__stand stand;
};

/* A member of struct oribi_worker: what the helper and the signal's handler share. */
struct oribi__sampler {
    _Atomic uint32_t state; /* see sample.c */
    pthread_t target;
    struct oribi__stand stand;
    struct oribi__sample sample; /* the helper's alone */
};

/* Installs the signal's handler for this process's worker. */
void oribi__sample_install(void);

/* Looks where the thread's call stands; the call goes on. Gives the worker's one sample, good until the next call of
 * this; its text is empty where the thread takes no signals. By the helper, without the reactor. */
const struct oribi__sample *oribi__sample_take(struct oribi_thread *thread);

#endif
