/* Footprints of workers, which are slow to find out: how their memory is shared (PSS), how many descriptors they have
 * open. One worker at a time is measured, at a distance that keeps the share of the supervisor's time small, while
 * somebody asks; what was found is kept with its time. No answer waits for a measurement. */
#ifndef ORIBI_OBSERVE_FOOTPRINT_H
#define ORIBI_OBSERVE_FOOTPRINT_H

#include "oribi/base/os/os_process.h"
#include "oribi/event/timers.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI__FOOTPRINT_ASKED_MS = 60 * 1000, /* so long after an answer measuring goes on */
    ORIBI__FOOTPRINT_AGE_MS = 10 * 1000,   /* a worker is measured again after this */
    ORIBI__FOOTPRINT_BUSY = 3, /* a worker in a call, which may have to wait for the kernel: after so many of them */
    ORIBI__FOOTPRINT_FEW_MS = 1000, /* memory_max: a few workers are measured more often, each after so long
                                            * for each of them */
    ORIBI__FOOTPRINT_PAUSE_MS = 50, /* between two workers at least */
    ORIBI__FOOTPRINT_PART = 20,     /* between two workers, so many times as long as the last one took */
};

struct oribi__observe;

struct oribi__footprint {
    int32_t pid;         /* of whom this is told; 0: nobody was measured here */
    bool shares_known;   /* the kernel may refuse to tell */
    int64_t at_ms;       /* oribi_clock_ms() */
    int64_t descriptors; /* -1: not known */
    struct oribi_process_shares shares;
};

/* All-zero: nobody has asked. */
struct oribi__footprints {
    struct oribi__footprint *workers; /* one for each slot; NULL: nobody has asked */
    int64_t asked_ms;
    struct oribi_timer measure; /* the next worker; not armed while nobody asks and memory_max is not set */
    uint32_t next;
};

/* Somebody asks: from now on workers are measured. */
void oribi__footprints_ask(struct oribi__observe *observe);

/* The policy has its options, or others: with memory_max workers are measured from now on, and observe->report
 * (observe.h) hears of each. */
void oribi__footprints_configured(struct oribi__observe *observe);

/* Footprint of the worker in slot `i`; NULL: not known yet. */
const struct oribi__footprint *oribi__footprint_of(const struct oribi__observe *observe, uint32_t i);

void oribi__footprints_end(struct oribi__observe *observe);

#endif
