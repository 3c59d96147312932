/* Helpers of a test beside client.h whose worker runs elsewhere, in a thread or a process: conditions are waited for,
 * answers are read as they come. */
#ifndef ORIBI_TEST_WORKER_TALK_H
#define ORIBI_TEST_WORKER_TALK_H

#include "worker/client.h"

#include "oribi/base/clock.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define GET(target) "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"

/* Looks every millisecond, at most PUMP_MS_MAX; true when it came to hold. */
#define wait_for(condition)                                                                                            \
    ({                                                                                                                 \
        int64_t deadline_ = oribi_clock_ms() + PUMP_MS_MAX;                                                            \
        bool met_;                                                                                                     \
        while (!(met_ = (condition)) && oribi_clock_ms() < deadline_)                                                  \
            (void)poll(NULL, 0, 1);                                                                                    \
        met_;                                                                                                          \
    })

bool say(struct client *c, const char *text);

/* The next answer's status, 0 when none comes: each of its bytes is waited for as above. */
int heard(struct client *c, struct answer *answer);

int status_of(struct client *c);

void close_clients(struct site *site);

#endif
