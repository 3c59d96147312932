/* Output of calls on its way to a file. Whoever has the reactor looks at what the writer has ended: the waiting thread
 * does it too, since there may be no helper. */
#include "worker/call.h"
#include "worker/exchange.h"
#include "worker/placement/ownership.h"
#include "worker/reply.h"

#include <poll.h>

enum {
    AWAIT_MS = 100,
    LOOK_MS = 10, /* the helper may have seen first that something is written */
};

void oribi__await_writer(void *self, struct oribi_conn *c)
{
    struct oribi_worker *w = self;
    struct oribi_reactor *r = &w->reactor;
    struct oribi__exchange *exchange = (struct oribi__exchange *)c->exchange;
    if (!exchange->thread || r->unstored <= oribi_reactor_unstored_max(r))
        return;
    oribi__clock_stop(exchange->thread);
    while (!c->broken && r->unstored > oribi_reactor_unstored_max(r)) {
        uint64_t seen = oribi_writer_ended(r->writer);
        oribi_reactor_stored(r);
        if (r->unstored <= oribi_reactor_unstored_max(r))
            break;
        oribi__leave(w);
        oribi_writer_wait(r->writer, seen, AWAIT_MS);
        oribi__enter(w);
    }
    oribi__clock_go_on(exchange->thread);
}

void oribi__on_stored(void *self, struct oribi_conn *c)
{
    oribi__exchange_stored((struct oribi__exchange *)c->exchange);
}

bool oribi__wait_stored(struct oribi_worker *w, const struct oribi_wake *wake, int timeout_ms)
{
    struct pollfd fds[2] = {{.fd = wake->read_fd, .events = POLLIN},
                            {.fd = oribi_writer_fd(w->reactor.writer), .events = POLLIN}};
    int ms = timeout_ms >= 0 && timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS;
    if (poll(fds, 2, ms) <= 0)
        return false;
    return fds[0].revents && oribi_wake_clear(wake);
}
