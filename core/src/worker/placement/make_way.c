/* Where all workers share one processor; see the header. Whether calls compute is told by the kernel's count of how
 * often the thread has waited: a call that asks a database waits once at least. Waiting for requests counts too, so
 * that only a worker which is hardly ever idle can be found to compute: others need not make way. */
#include "worker/placement/placement.h"
#include "worker/worker_private.h"

#include "oribi/base/os/os.h"

enum {
    LOOK_US = 50 * 1000,
    YOUNG_US = 5000,  /* a sibling in an older call may be in it for long */
    PASS_BATCH = 256, /* connections a look */
    CALLS_A_WAIT = 8, /* calls that wait less often than one in so many do compute */
};

void oribi__way_init(struct oribi_worker *w)
{
    w->placement.way.one_cpu = w->placement.queue.give_fd >= 0 && w->options->workers > 1 && oribi_os_cpu_count() == 1;
}

/* Since the last look. */
static bool calls_compute(const struct oribi_worker *w, int64_t waits)
{
    const struct oribi__way *way = &w->placement.way;
    int64_t calls = (int64_t)(w->request_count - way->calls);
    return waits >= 0 && (waits - way->waits) * CALLS_A_WAIT < calls && w->call_lengths.average_us < ORIBI_LONG_US &&
           !w->local; /* what needs no call is not to wait for one */
}

/* The first of those before us that compute; NULL: it is us. */
static const struct oribi_slot *sibling_before(const struct oribi_worker *w)
{
    const struct oribi_scoreboard *board = w->setup.board;
    for (const struct oribi_slot *slot = board->slots; slot < board->slots + board->count && slot != w->slot; slot++)
        if (atomic_load_explicit(&slot->state, memory_order_acquire) == ORIBI_SLOT_BUSY &&
            atomic_load_explicit(&slot->computes, memory_order_relaxed))
            return slot;
    return NULL;
}

/* It has begun calls since the last look, and is not in a long one. */
static bool gets_on(struct oribi_worker *w, const struct oribi_slot *slot)
{
    struct oribi__way *way = &w->placement.way;
    uint64_t calls = atomic_load_explicit(&slot->request_count, memory_order_relaxed);
    int64_t started_us = atomic_load_explicit(&slot->call_started_us, memory_order_relaxed);
    bool more = way->sibling_calls > 0 && calls > way->sibling_calls;
    way->sibling_calls = calls;
    return more && (!started_us || w->reactor.now_us - started_us < YOUNG_US);
}

/* The next message is for the sibling, which is awake: we would take our own back. */
static void stay_away(struct oribi_worker *w)
{
    w->placement.way.away_until_us = w->reactor.now_us + ORIBI__AWAY_MS * 1000;
    oribi__handoff_watch(w, false);
}

static void pass_everything(struct oribi_worker *w)
{
    uint32_t passed = 0;
    for (struct oribi_conn *c = w->reactor.run_first, *next; c && passed < PASS_BATCH; c = next) {
        next = c->run_next;
        if (!oribi__pass_conn(w, c))
            continue;
        oribi_conn_leave(&w->reactor, c);
        passed++;
    }
    for (struct oribi_conn *c = w->reactor.conns, *next; c && passed < PASS_BATCH; c = next) {
        next = c->next;
        if (c->state != ORIBI_CONN_IDLE || !oribi__pass_conn(w, c))
            continue;
        oribi_conn_leave(&w->reactor, c);
        passed++;
    }
    if (passed == 0)
        return;
    oribi__count(&w->slot->passed_count, passed);
    stay_away(w);
}

void oribi__make_way(struct oribi_worker *w)
{
    struct oribi__way *way = &w->placement.way;
    if (way->away_until_us && w->reactor.now_us >= way->away_until_us) {
        way->away_until_us = 0;
        oribi__handoff_watch(w, !w->accept_sources_closed);
    }
    if (w->reactor.now_us - way->looked_us < LOOK_US || w->stopping || oribi__shared(w))
        return;
    int64_t waits = oribi_os_thread_waits();
    way->computes = calls_compute(w, waits);
    way->looked_us = w->reactor.now_us;
    way->waits = waits;
    way->calls = w->request_count;
    atomic_store_explicit(&w->slot->computes, way->computes, memory_order_relaxed); /* a hint: no partner */
    const struct oribi_slot *before = way->computes ? sibling_before(w) : NULL;
    if (!before)
        way->sibling_calls = 0;
    else if (gets_on(w, before))
        pass_everything(w);
}
