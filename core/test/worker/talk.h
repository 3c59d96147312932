/* What a test needs beside client.h when its worker runs elsewhere, in a thread or a process: conditions are waited
 * for, answers are read as they come. */
#ifndef ORIBI_TEST_SERVER_TALK_H
#define ORIBI_TEST_SERVER_TALK_H

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

__attribute__((unused)) static bool say(struct client *c, const char *text)
{
    size_t n = strlen(text);
    return send(c->fd, text, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* The next answer's status, 0 when none comes. */
__attribute__((unused)) static int heard(struct client *c, struct answer *answer)
{
    size_t len = 0;
    bool found = false;
    (void)wait_for((found = ((void)client_read(c), peek_answer(c, false, answer, &len))) || c->eof || c->error);
    if (!found)
        return 0;
    c->pos += len;
    return answer->status;
}

__attribute__((unused)) static int status_of(struct client *c)
{
    struct answer answer;
    return heard(c, &answer);
}

__attribute__((unused)) static void close_clients(struct site *site)
{
    for (uint32_t i = 0; i < site->client_count; i++)
        if (site->clients[i])
            client_close(site, site->clients[i]);
}

#endif
