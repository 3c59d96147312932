/* Connection: bytes on their way to a file, and the writer of the reactor. Reading order: oribi__conn_temp_file,
 * oribi__conn_store, on_ended. */
#include "oribi/event/conn.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/event/reactor.h"

#include "event/conn_private.h"

#include <stddef.h>

enum { UNSTORED_MAX = 8 * 1024 * 1024 };

static void on_ended(void *self, struct oribi_watch *watch);

static void tell_writer(const struct oribi_reactor *r)
{
    if (r->hooks.writer)
        r->hooks.writer(r->hooks.self, r->writer ? oribi_writer_wake(r->writer) : NULL);
}

static void start_writer(struct oribi_reactor *r)
{
    r->writer = oribi_writer_try_start();
    if (r->writer) {
        r->writer_watch.handler = on_ended;
        if (oribi_loop_add(r->loop, &r->writer_watch, oribi_writer_fd(r->writer), ORIBI_WATCH_SIGNAL, ORIBI_READ) < 0) {
            oribi_writer_stop(r->writer);
            r->writer = NULL;
        }
    }
    r->writer_failed = !r->writer;
    tell_writer(r);
}

struct oribi_temp_file *oribi__conn_temp_file(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (!r->writer && !r->writer_failed)
        start_writer(r);
    return oribi_temp_file_try_create(r->writer, c);
}

/* The client is not late while our disk is: the timer is set anew when it runs out (conn.c). */
bool oribi__conn_store(struct oribi_reactor *r, struct oribi_conn *c)
{
    const struct oribi_conn_request *exchange = c->exchange;
    bool busy = exchange->parts ? oribi_parts_busy(exchange->parts, &exchange->body) : oribi_body_busy(&exchange->body);
    if (!busy)
        return false;
    c->state = ORIBI_CONN_STORE;
    c->exchange->store_started_ms = r->now_ms;
    oribi_loop_interest(r->loop, &c->watch, 0);
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_BODY, r->now_ms);
    return true;
}

static void body_stored(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->state = ORIBI_CONN_BODY;
    c->exchange->body_started_ms += r->now_ms - c->exchange->store_started_ms;
    oribi_loop_interest(r->loop, &c->watch, c->out ? ORIBI_READ | ORIBI_WRITE : ORIBI_READ);
    oribi__conn_body_stored(r, c);
    /* Bytes that have come meanwhile are in `ready`, and will not be reported once more. */
    if (c->state == ORIBI_CONN_BODY && oribi__conn_register(r, c) == 0 && c->watch.ready)
        oribi__reactor_post(r, c);
}

/* A temporary file whose connection has gone is not collected (base/writer.h). */
void oribi_reactor_stored(struct oribi_reactor *r)
{
    struct oribi_temp_file *temp_file;
    while (r->writer && (temp_file = oribi_writer_collect(r->writer)) != NULL) {
        struct oribi_conn *c = temp_file->owner;
        if (c->out && oribi_out_temp_file(c->out) == temp_file)
            oribi__conn_out_stored(r, c);
        else if (c->state == ORIBI_CONN_STORE)
            body_stored(r, c);
    }
}

static void on_ended(void *self, struct oribi_watch *watch)
{
    struct oribi_reactor *r = (struct oribi_reactor *)((char *)watch - offsetof(struct oribi_reactor, writer_watch));
    oribi_writer_clear(r->writer);
    oribi_reactor_stored(r);
}

int64_t oribi_reactor_unstored_max(const struct oribi_reactor *r)
{
    int64_t quarter = r->budget.memory_max / 4;
    return quarter > UNSTORED_MAX ? quarter : UNSTORED_MAX;
}
