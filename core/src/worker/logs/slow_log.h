/* slow_log - calls that take longer than the option slow_log are logged: where they stand while they run, and how long
 * they took at their end. What counts is the time until the answer begins: streams, taken sockets and what runs after
 * the answer are long by nature, and are not looked at. */
#ifndef ORIBI_WORKER_LOGS_SLOW_LOG_H
#define ORIBI_WORKER_LOGS_SLOW_LOG_H

#include "oribi/base/log.h"

#include <stdatomic.h>
#include <stdint.h>

struct oribi_worker;
struct oribi__exchange;

enum {
    ORIBI__SLOW_LOOKS_MAX = 8, /* samples of one call: at slow_log, at twice, four times that and so on */
    ORIBI__SLOW_BURST = 20,    /* samples that are logged, each 10 s */
};

/* Of a thread; the helper's, but for `said`. */
struct oribi__slow {
    int64_t started_us; /* of the call that the rest is about */
    int64_t next_us;    /* when it is looked at again; INT64_MAX: not */
    uint32_t looks;
    _Atomic int64_t said_us; /* started_us of a call that was logged, whose end is to be logged; read at that end */
};

/* By the helper, without the reactor: logs what is due. Returns in how many ms the next may be. */
int64_t oribi__slow_look(struct oribi_worker *worker, int64_t now_us);

/* At the end of a call that was longer than ORIBI_LONG_US, by its thread, with the reactor. */
void oribi__slow_end(const struct oribi__exchange *exchange, int status, int64_t now_us);

#endif
