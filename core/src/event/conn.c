/* Connection: its life from the accept to the close, and its input up to the bytes of a head or a body. Functions stand
 * in reading order. conn_private.h says what the other sources of the connection do. */
#include "oribi/event/conn.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/event/reactor.h"

#include "event/conn_private.h"

#include <string.h>

/* The way of the bytes, from readable to the exchange. */
static void on_readable(struct oribi_reactor *r, struct oribi_conn *c);
static bool read_once(struct oribi_reactor *r, struct oribi_conn *c);
static char *input_room(struct oribi_reactor *r, struct oribi_conn *c, size_t *room);
static void take_input(struct oribi_reactor *r, struct oribi_conn *c, char *p, size_t n);
static void linger(struct oribi_reactor *r, struct oribi_conn *c, size_t n);

/* Functions that end a connection. */
static void refuse_for_room(struct oribi_reactor *r, struct oribi_conn *c);
static void look_at_head_again(struct oribi_reactor *r, struct oribi_conn *c);
static void give_up_descriptor(struct oribi_reactor *r, struct oribi_conn *c);

struct oribi_conn *oribi_conn_open(struct oribi_reactor *r, int fd, const void *listener)
{
    struct oribi_conn *c = oribi_pool_try_get(&r->conn_pool);
    if (!c) {
        oribi_os_close(fd);
        return NULL;
    }
    memset(c, 0, sizeof(*c));
    c->watch.fd = fd;
    if (!oribi__reactor_claim(r, c)) {
        oribi_pool_put(&r->conn_pool, c);
        oribi_os_close(fd);
        return NULL;
    }
    c->watch.kind = ORIBI_WATCH_STREAM;
    c->watch.interest = ORIBI_READ;
    c->watch.ready = ORIBI_READ | ORIBI_WRITE; /* not asked yet: the first read and write will tell */
    c->listener = listener;
    c->state = ORIBI_CONN_IDLE;
    c->next = r->conns;
    if (c->next)
        c->next->prev = c;
    r->conns = c;
    r->conn_count++;
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_FIRST, r->now_ms);
    return c;
}

void oribi_conn_start(struct oribi_reactor *r, struct oribi_conn *c)
{
    on_readable(r, c);
}

/* A `100 Continue` that the socket did not take: the client may be waiting for it with its body. False when the
 * connection has ended. */
static bool flush_interim(struct oribi_reactor *r, struct oribi_conn *c)
{
    int result = oribi_conn_flush(r, c);
    if (result == ORIBI_AGAIN)
        return true;
    if (result == 0)
        oribi_loop_interest(r->loop, &c->watch, ORIBI_READ);
    else
        oribi__conn_close(r, c);
    return result == 0;
}

void oribi__conn_on_event(struct oribi_reactor *r, struct oribi_conn *c)
{
    switch (c->state) {
    case ORIBI_CONN_BODY:
        if (c->out && !flush_interim(r, c))
            return;
        /* fall through */
    case ORIBI_CONN_IDLE:
    case ORIBI_CONN_HEAD:
    case ORIBI_CONN_LINGER:
        if (c->watch.ready & ORIBI_READ)
            on_readable(r, c);
        break;
    case ORIBI_CONN_FLUSH:
        oribi__conn_flush_on(r, c);
        break;
    case ORIBI_CONN_CALL:
        if (r->hooks.leaving && (c->watch.ready & ORIBI_HANGUP))
            r->hooks.leaving(r->hooks.self, c);
        break;
    default: /* queued or closed: readiness is remembered in the watch */
        break;
    }
}

/* Reads while the state wants input, ORIBI_READS_PER_TURN times at most, and registers a connection that stays open. */
static void on_readable(struct oribi_reactor *r, struct oribi_conn *c)
{
    for (int i = 0; i < ORIBI_READS_PER_TURN && oribi__conn_wants_input(c); i++)
        if (!read_once(r, c))
            break;
    if (!oribi__conn_wants_input(c))
        return;
    if (oribi__conn_register(r, c) == 0 && (c->watch.ready & ORIBI_READ))
        oribi__reactor_post(r, c);
}

int oribi__conn_watch(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (oribi_loop_add(r->loop, &c->watch, c->watch.fd, ORIBI_WATCH_STREAM, c->watch.interest) == 0) {
        r->registered_count++;
        return 0;
    }
    oribi__conn_close(r, c);
    return ORIBI_ESYS;
}

bool oribi_conn_tells_leaving(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (oribi_loop_fd(r->loop) < 0 || c->lost)
        return false; /* poll(2) as a source tells of no end while nothing is to be read */
    if (!c->watch.added && oribi_loop_add(r->loop, &c->watch, c->watch.fd, ORIBI_WATCH_STREAM, c->watch.interest) == 0)
        r->registered_count++;
    return c->watch.added;
}

/* True while reading should go on. */
static bool read_once(struct oribi_reactor *r, struct oribi_conn *c)
{
    size_t room = 0;
    char *p = input_room(r, c, &room);
    if (!p) {
        refuse_for_room(r, c);
        return false;
    }
    ssize_t n = oribi_transport_read(c->transport, c->watch.fd, p, room);
    if (n == ORIBI_AGAIN) {
        c->watch.ready &= (uint8_t)~ORIBI_READ;
        if (c->state == ORIBI_CONN_IDLE)
            oribi__conn_give_buf_back(r, c);
        return false;
    }
    if (n <= 0) { /* the end, or a reset: half a request gets no answer */
        c->lost = n == ORIBI_ELOST;
        if (n == 0 && c->state == ORIBI_CONN_IDLE)
            oribi__conn_end(r, c);
        else
            oribi__conn_close(r, c);
        return false;
    }
    if (r->hooks.read)
        r->hooks.read(r->hooks.self, n);
    /* A short read has emptied the socket (epoll(7)), unless the end of the stream follows. */
    bool emptied = (size_t)n < room && !(c->watch.ready & ORIBI_HANGUP);
    if (emptied)
        c->watch.ready &= (uint8_t)~ORIBI_READ;
    take_input(r, c, p, (size_t)n);
    return !emptied;
}

static size_t smaller(int64_t a, int64_t b)
{
    return (size_t)(a < b ? a : b);
}

/* One byte more than a head may have: the parser must see that there is more to say 431. */
static size_t head_cap_max(const struct oribi_reactor *r, const struct oribi_conn *c)
{
    size_t max = (size_t)oribi__conn_limits(r, c)->head_bytes_max + 1;
    if (__builtin_expect(c->channel != NULL, 0) && !c->channel->known)
        max += ORIBI_CHANNEL_HEAD_BYTES_MAX;
    return max > ORIBI_READ_BUF_BYTES ? max : ORIBI_READ_BUF_BYTES + 1;
}

/* Where the next read goes, and how much: behind the head, straight into a body in memory, or into the scratch
 * buffer. NULL when memory is out, or there are too many long heads at a time. */
static char *input_room(struct oribi_reactor *r, struct oribi_conn *c, size_t *room)
{
    if (c->state == ORIBI_CONN_LINGER) {
        *room = ORIBI_SCRATCH_BYTES;
        return r->scratch;
    }
    if (c->state == ORIBI_CONN_BODY)
        return oribi__conn_body_room(r, c->exchange, room);
    if (!c->buf && !oribi__conn_lend_buf(r, c))
        return NULL;
    if (c->len == c->cap) {
        size_t cap = smaller((int64_t)c->cap * 4, (int64_t)head_cap_max(r, c));
        if (oribi_budget_memory(&r->budget, 0, (int64_t)cap) < (int64_t)cap || !oribi__conn_grow_buf(r, c, cap))
            return NULL;
    }
    *room = c->cap - c->len;
    return c->buf + c->len;
}

static void take_input(struct oribi_reactor *r, struct oribi_conn *c, char *p, size_t n)
{
    if (c->state == ORIBI_CONN_LINGER) {
        linger(r, c, n);
        return;
    }
    if (c->state != ORIBI_CONN_BODY) {
        c->len += (uint32_t)n;
        oribi__conn_begin(r, c);
        return;
    }
    oribi__conn_body_input(r, c, p, n);
}

/* Drops n bytes that came behind our last answer. */
static void linger(struct oribi_reactor *r, struct oribi_conn *c, size_t n)
{
    if (n > c->linger_left || (uint32_t)r->now_ms - c->linger_since_ms >= ORIBI_LINGER_MS_MAX) {
        oribi__conn_close(r, c);
        return;
    }
    c->linger_left -= (uint32_t)n;
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_LINGER, r->now_ms);
}

static void refuse_for_room(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->state != ORIBI_CONN_HEAD || !c->exchange) {
        oribi__conn_close(r, c);
        return;
    }
    look_at_head_again(r, c);
    oribi_conn_refuse_busy(r, c, ORIBI__FULL_RETRY_AFTER_S, ORIBI_REFUSAL_BUFFERS_MEMORY,
                           "no memory for a long head: buffers_memory_max");
}

/* Parses an unfinished head once more, for the log line: its slices point into the buffer as it was when the head
 * began, which may have moved since. */
static void look_at_head_again(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_parser parser = {0};
    (void)oribi_parser_head(&parser, oribi__conn_limits(r, c), c->buf, c->len,
                            &c->exchange->head); /* again not complete */
}

void oribi__conn_on_timeout(struct oribi_reactor *r, struct oribi_conn *c, enum oribi_timeout_class timeout_class)
{
    bool idle = timeout_class == ORIBI_TIMEOUT_IDLE || timeout_class == ORIBI_TIMEOUT_FIRST;
    if (timeout_class == ORIBI_TIMEOUT_WRITE && oribi__conn_reads(r, c))
        return;
    if (c->state == ORIBI_CONN_STORE) { /* it waits for us */
        oribi_timeouts_arm(&r->timeouts, &c->timer, timeout_class, r->now_ms);
        return;
    }
    if (idle && !oribi__conn_close_idle(r, c))
        return;
    if (r->hooks.timed_out)
        r->hooks.timed_out(r->hooks.self, c, timeout_class);
    switch (timeout_class) {
    case ORIBI_TIMEOUT_HEAD:
        if (!c->exchange) { /* no PROXY header has come: the proxy's mistake, and no client reads an answer */
            oribi__conn_close(r, c);
            break;
        }
        look_at_head_again(r, c);
        oribi__conn_refuse(r, c, ORIBI_REFUSAL_HEAD_TIMEOUT, "head not finished in time");
        break;
    case ORIBI_TIMEOUT_BODY:
        oribi__conn_refuse(r, c, ORIBI_REFUSAL_BODY_TIMEOUT, "body without progress");
        break;
    default: /* closed already as idle, or the peer does not read: closing says it all */
        oribi__conn_close(r, c);
    }
}

/* A connection whose head has begun has the deadline of a head. Empty lines begin none: their connection keeps the
 * deadline of an idle one. */
bool oribi__conn_close_idle(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->watch.ready |= ORIBI_READ;
    on_readable(r, c);
    bool begun =
        c->state != ORIBI_CONN_IDLE && (c->state != ORIBI_CONN_HEAD || c->timer.timeout_class == ORIBI_TIMEOUT_HEAD);
    if (!begun)
        oribi__conn_end(r, c);
    return c->state == ORIBI_CONN_CLOSED;
}

bool oribi__conn_close_head(struct oribi_reactor *r, struct oribi_conn *c)
{
    c->watch.ready |= ORIBI_READ;
    on_readable(r, c);
    if (c->state == ORIBI_CONN_HEAD && c->exchange) {
        look_at_head_again(r, c);
        oribi_conn_refuse_busy(r, c, ORIBI__FULL_RETRY_AFTER_S, ORIBI_REFUSAL_CONNECTIONS,
                               "head not finished, and a new connection needs room");
        oribi__conn_close(r, c);              /* does not linger: that would take as much room */
    } else if (c->state == ORIBI_CONN_HEAD) { /* not even its PROXY header has come */
        oribi__conn_close(r, c);
    }
    return c->state == ORIBI_CONN_CLOSED;
}

void oribi_conn_abort(struct oribi_reactor *r, struct oribi_conn *c, bool reset)
{
    if (reset) {
        struct linger now = {.l_onoff = 1, .l_linger = 0};
        (void)setsockopt(c->watch.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)); /* at worst an ordinary close */
    }
    oribi__conn_close(r, c);
}

bool oribi_conn_be_channel(struct oribi_reactor *r, struct oribi_conn *c, uint16_t number)
{
    c->channel = oribi_mem_try_alloc(1, sizeof(*c->channel));
    if (!c->channel) {
        oribi__conn_close(r, c);
        return false;
    }
    c->channel->number = number;
    r->channel_count++;
    if (c->transport && c->transport->waits) {
        c->channel->polled_next = r->polled;
        if (r->polled)
            r->polled->channel->polled_prev = c;
        r->polled = c;
    }
    oribi__conn_arm_rest(r, c, ORIBI_TIMEOUT_NONE);
    return true;
}

/* After the hook: who logs the end of a call looks at it. */
static void drop_channel(struct oribi_reactor *r, struct oribi_conn *c)
{
    struct oribi_conn *next = c->channel->polled_next;
    struct oribi_conn *prev = c->channel->polled_prev;
    if (next)
        next->channel->polled_prev = prev;
    if (prev)
        prev->channel->polled_next = next;
    else if (r->polled == c)
        r->polled = next;
    oribi_buf_deinit(&c->channel->text);
    oribi_mem_free(c->channel);
    c->channel = NULL;
    r->channel_count--;
}

void oribi__conn_shut(struct oribi_conn *c)
{
    if (c->transport)
        c->transport->shut(c->transport);
}

void oribi__conn_end(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->state != ORIBI_CONN_CLOSED)
        oribi__conn_shut(c);
    oribi__conn_close(r, c);
}

void oribi__conn_close(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->state == ORIBI_CONN_CLOSED)
        return;
    bool queued = c->state == ORIBI_CONN_QUEUED;
    c->state = ORIBI_CONN_CLOSED;
    if (r->hooks.closed)
        r->hooks.closed(r->hooks.self, c);
    oribi__conn_drop_exchange(r, c);
    oribi__conn_give_buf_back(r, c);
    oribi__conn_drop_out(r, c);
    oribi_timeouts_arm(&r->timeouts, &c->timer, ORIBI_TIMEOUT_NONE, r->now_ms);
    give_up_descriptor(r, c);
    if (__builtin_expect(c->channel != NULL, 0))
        drop_channel(r, c);
    oribi__reactor_forget(r, c, queued);
}

/* The loop knows whether a registered descriptor is still the one that it watched; for others the last read or write
 * has told (ORIBI_ELOST). */
static void give_up_descriptor(struct oribi_reactor *r, struct oribi_conn *c)
{
    if (c->watch.added)
        c->lost = !oribi_loop_remove(r->loop, &c->watch);
    oribi__reactor_disclaim(r, c);
    if (__builtin_expect(c->transport != NULL, 0)) {
        c->transport->release(c->transport);
        c->transport = NULL;
    }
    if (!c->lost)
        oribi_os_close(c->watch.fd);
    else if (r->hooks.lost)
        r->hooks.lost(r->hooks.self, c);
}
