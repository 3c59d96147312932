/* Pieces of a streamed answer, gathered while they come fast. */
#include "worker/burst.h"

#include "worker/compress.h"
#include "worker/exchange.h"
#include "worker/placement/ownership.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"

enum {
    QUIET_TICKS = 24, /* without a burst before the helper sleeps as long as it likes again: 20 ms */
    RETRY_US = 100,   /* the own thread is in the core, which is short */
};

/* --- the thread of the call --- */

/* Content-Type: text/event-stream, whatever parameters it has. */
static bool is_event_stream(const struct oribi_header *header)
{
    const struct oribi_slice type = ORIBI_SLICE("text/event-stream");
    if (!oribi_slice_equal_fold(oribi_slice(header->name, header->name_len), ORIBI_SLICE("content-type")))
        return false;
    return header->value && header->value_len >= type.n &&
           oribi_slice_equal_fold(oribi_slice(header->value, type.n), type);
}

void oribi__burst_begin(struct oribi__exchange *exchange, const struct oribi_header *headers, uint32_t header_count)
{
    atomic_store_explicit(&exchange->thread->burst_us, 0, memory_order_relaxed);
    exchange->piece_us = 0;
    exchange->by_piece = !exchange->worker->options->helper || exchange->lends_fd;
    for (uint32_t i = 0; i < header_count && !exchange->by_piece; i++)
        exchange->by_piece = is_event_stream(&headers[i]);
}

static bool lies_too_long(const struct oribi__exchange *exchange, int64_t now_us)
{
    int64_t since_us = atomic_load_explicit(&exchange->thread->burst_us, memory_order_relaxed);
    return since_us && now_us - since_us >= ORIBI__BURST_US;
}

bool oribi__burst_takes(struct oribi__exchange *exchange, size_t bytes)
{
    if (exchange->by_piece)
        return false;
    struct oribi_buf *pieces = exchange->coder ? oribi__compress_pieces(exchange) : &exchange->held;
    size_t cap = exchange->coder ? ORIBI__BURST_CODED_BYTES : ORIBI__BURST_BYTES;
    int64_t now_us = exchange->now_us;
    int64_t before_us = exchange->piece_us;
    exchange->piece_us = now_us;
    if (now_us - before_us >= ORIBI__GAP_US || bytes > ORIBI__BURST_PIECE_BYTES || bytes > cap - pieces->len ||
        lies_too_long(exchange, now_us))
        return false;
    return pieces->cap >= cap || oribi_buf_try_reserve(pieces, cap - pieces->len);
}

/* Will the helper look in time? Else it is woken, or started, if that helps. */
static bool is_watched(struct oribi_worker *w)
{
    uint32_t watch = ORIBI__BURST_UNWATCHED;
    if (!w->helper)
        oribi_helper_need(w);
    if (!w->helper ||
        (!atomic_compare_exchange_strong(&w->bursts.watch, &watch, ORIBI__BURST_WATCHED) && watch == ORIBI__BURST_DEAF))
        return false;
    if (watch == ORIBI__BURST_UNWATCHED)
        oribi__helper_wake(w);
    return true;
}

int oribi__burst_gathered(struct oribi__exchange *exchange)
{
    struct oribi_worker *w = exchange->worker;
    struct oribi_thread *thread = exchange->thread;
    if (atomic_load_explicit(&thread->burst_us, memory_order_relaxed))
        return 0;
    uint32_t begun = atomic_load_explicit(&w->bursts.begun, memory_order_relaxed) + 1; /* ours: with the reactor */
    atomic_store_explicit(&w->bursts.begun, begun, memory_order_relaxed);
    atomic_store(&thread->burst_us, exchange->piece_us);
    return is_watched(w) ? 0 : oribi__burst_send(exchange);
}

void oribi__burst_sent(struct oribi__exchange *exchange)
{
    exchange->held.len = 0; /* its bytes stay where they are */
    atomic_store_explicit(&exchange->thread->burst_us, 0, memory_order_relaxed);
}

int oribi__burst_send(struct oribi__exchange *exchange)
{
    if (exchange->phase == ORIBI_PHASE_STARTED && exchange->coder)
        return oribi__compress_burst(exchange);
    if (exchange->phase != ORIBI_PHASE_STARTED || exchange->held.len == 0)
        return 0;
    struct iovec vec = {exchange->held.p, exchange->held.len};
    oribi__burst_sent(exchange);
    return oribi_conn_send(&exchange->worker->reactor, exchange->base.conn, &vec, 1, false);
}

/* --- the helper --- */

/* False: the own thread has the reactor. */
static bool send_of(struct oribi_worker *w, struct oribi_thread *thread)
{
    uint32_t expected = ORIBI_OWNER_CALL;
    if (!atomic_compare_exchange_strong_explicit(&w->owner, &expected, ORIBI_OWNER_HELPER, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    atomic_store_explicit(&thread->burst_us, 0, memory_order_relaxed);
    if (thread->exchange)
        (void)oribi__burst_send(thread->exchange); /* the application's next write finds the connection broken */
    oribi__helper_give_back(w);
    return true;
}

static int64_t look_at(struct oribi_worker *w, struct oribi_thread *thread, int64_t sleep_us)
{
    int64_t since_us = atomic_load(&thread->burst_us);
    if (!since_us || !atomic_load_explicit(thread->started_us, memory_order_relaxed))
        return sleep_us;
    int64_t left_us = since_us + ORIBI__BURST_US - oribi_clock_us();
    if (left_us <= 0 && send_of(w, thread))
        return sleep_us;
    if (left_us <= 0)
        left_us = RETRY_US;
    return oribi_earlier(left_us, sleep_us);
}

int64_t oribi__bursts_look(struct oribi_worker *w, int64_t sleep_us, bool deaf)
{
    struct oribi__bursts *bursts = &w->bursts;
    uint32_t begun = atomic_load_explicit(&bursts->begun, memory_order_relaxed);
    bursts->quiet = begun != bursts->seen ? 0 : bursts->quiet < QUIET_TICKS ? bursts->quiet + 1 : QUIET_TICKS;
    bursts->seen = begun;
    bool ticks = begun > 0 && bursts->quiet < QUIET_TICKS && sleep_us > ORIBI__TICK_US;
    if (ticks)
        sleep_us = ORIBI__TICK_US;
    else if (sleep_us > ORIBI__TICK_US)
        atomic_store(&bursts->watch, deaf ? ORIBI__BURST_DEAF : ORIBI__BURST_UNWATCHED);
    if (sleep_us <= ORIBI__TICK_US)
        atomic_store(&bursts->watch, ORIBI__BURST_WATCHED);
    for (uint32_t i = 0; i < w->threads.count; i++)
        sleep_us = look_at(w, &w->threads.list[i], sleep_us);
    return sleep_us;
}
