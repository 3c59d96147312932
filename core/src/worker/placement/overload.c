/* More requests than can be called in time: some are refused at once, so that the rest is still worth answering.
 * Requests whose client has gone are dropped. */
#include "worker/logs/exchange_log.h"
#include "worker/placement/accept.h"

#include "oribi/base/clock.h"

/* A request that waited longer is worth a system call: poll(2) as a source, and connections not registered yet, tell of
 * no hang-up. */
enum { LOOK_US = 10000 };

/* A proxy's clock is not ours: a start in the future or too long ago is a wrong clock and says nothing. */
static const int64_t start_age_us_max = 3600 * (int64_t)1000000;

/* --- X-Request-Start --- */

/* The number that begins at *p, which moves behind it. */
static int64_t digits(const char **p, const char *end)
{
    int64_t number = 0;
    for (; *p < end && **p >= '0' && **p <= '9' && number < (int64_t)1 << 58; (*p)++)
        number = number * 10 + (**p - '0');
    return number;
}

/* "t=1700000000.123", "1700000000123" or "1700000000123456": seconds, milliseconds or microseconds since the epoch,
 * told apart by their size. 0 when it is none of these. Without strtod, whose decimal point depends on the locale
 * that the application has set. */
static int64_t start_us(struct oribi_slice value)
{
    const char *p = value.p;
    const char *end = value.p + value.n;
    if (value.n > 2 && p[0] == 't' && p[1] == '=')
        p += 2;
    int64_t whole = digits(&p, end);
    if (p < end && *p == '.') {
        int64_t fraction_us = 0;
        p++;
        for (int i = 0; i < 6; i++)
            fraction_us = fraction_us * 10 + (p < end && *p >= '0' && *p <= '9' ? *p++ - '0' : 0);
        (void)digits(&p, end); /* finer than we are */
        return p == end && whole < 100000000000 ? whole * 1000000 + fraction_us : 0;
    }
    if (p != end)
        return 0;
    return whole < 100000000000 ? whole * 1000000 : whole < 100000000000000 ? whole * 1000 : whole;
}

/* When the proxy in front had the request, by its clock; 0 when no field says so. */
static int64_t proxy_start_us(const struct oribi_head *head)
{
    const struct oribi_field *field = oribi_head_field(head, ORIBI_FIELD_X_REQUEST_START);
    return field ? start_us(oribi_slice(field->value, field->value_len)) : 0;
}

/* How long ago that was; -1 when it is not known, or cannot be. */
static int64_t proxy_age_us(const struct oribi_head *head)
{
    int64_t start = proxy_start_us(head);
    int64_t age_us = start ? oribi_clock_wall_ms() * 1000 - start : -1;
    return age_us <= start_age_us_max ? age_us : -1;
}

int64_t oribi__upstream_us(const struct oribi_head *head, int64_t complete_wall_us)
{
    int64_t start = proxy_start_us(head);
    int64_t waited_us = complete_wall_us - start;
    if (!start || waited_us > start_age_us_max)
        return -1;
    return waited_us > 0 ? waited_us : 0; /* clocks of two machines differ */
}

static int64_t queue_us(const struct oribi_conn_request *exchange, int64_t now_us)
{
    int64_t own_us = now_us - exchange->complete_us;
    int64_t proxy_us = proxy_age_us(&exchange->head);
    return proxy_us > own_us ? proxy_us : own_us;
}

/* --- refusing --- */

static bool too_late(const struct oribi_worker *w, int64_t waited_us)
{
    return w->options->queue_time_max_ms > 0 && waited_us > w->options->queue_time_max_ms * 1000;
}

void oribi__shed(struct oribi_worker *w)
{
    struct oribi_reactor *r = &w->reactor;
    uint32_t max = w->options->queue_max;
    while (w->options->queue_time_max_ms > 0 && r->run_first &&
           too_late(w, queue_us(r->run_first->exchange, r->now_us)))
        oribi_conn_refuse_busy(r, r->run_first, ORIBI__RETRY_AFTER_S, ORIBI_REFUSAL_QUEUE_TIME,
                               "waited longer than queue_time_max");
    if (max == 0 || r->queue_len <= max)
        return;
    struct oribi_conn *c = r->run_first;
    for (uint32_t i = 0; i < max; i++)
        c = c->run_next;
    while (c) {
        struct oribi_conn *next = c->run_next;
        oribi_conn_refuse_busy(r, c, ORIBI__RETRY_AFTER_S, ORIBI_REFUSAL_QUEUE, "more requests than queue_max wait");
        c = next;
    }
}

/* --- the client has gone --- */

static void drop(struct oribi_worker *w, struct oribi__exchange *exchange, int64_t now_us)
{
    struct oribi_slot *slot = w->slot;
    const struct oribi_conn *c = exchange->base.conn;
    oribi__count(&slot->gone_count, 1);
    exchange->worker = w;
    exchange->req.client = c->channel ? &c->channel->head : NULL; /* as a call that begins has it */
    exchange->started_us = now_us;
    exchange->body_sent = 0;
    exchange->aborted = false;
    exchange->phase = ORIBI_PHASE_OPEN;
    exchange->closes = true;
    exchange->req.head = &exchange->base.head;
    exchange->req.queue_us = now_us - exchange->base.complete_us;
    oribi__logged_begin(exchange);
    oribi__peer_of(exchange);
    if (w->setup.access_log)
        oribi__log_access(exchange, 499, now_us);
    oribi_conn_abort(&w->reactor, exchange->base.conn, false);
}

bool oribi__admit(struct oribi_worker *w, struct oribi__exchange *exchange, int64_t now_us)
{
    struct oribi_conn *c = exchange->base.conn;
    bool asks = c->transport && c->transport->left ? c->transport->left(c->transport)
                                                   : now_us - exchange->base.complete_us > LOOK_US;
    bool doubtful = (c->watch.ready & ORIBI_HANGUP) || asks;
    if (doubtful && oribi_os_peer_gone(c->watch.fd)) {
        drop(w, exchange, now_us);
        return false;
    }
    exchange->req.queue_us = queue_us(&exchange->base, now_us);
    if (!too_late(w, exchange->req.queue_us))
        return true;
    oribi_conn_refuse_busy(&w->reactor, c, ORIBI__RETRY_AFTER_S, ORIBI_REFUSAL_QUEUE_TIME,
                           "waited longer than queue_time_max");
    return false;
}
