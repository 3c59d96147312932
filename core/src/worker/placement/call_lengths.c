/* How long calls are (helper_private.h): what is expected of those that begin, and whether the helper has to be awake
 * for them. Reading order: oribi__call_begins, wants_helper, expects_long. */
#include "worker/placement/helper_private.h"

#include "worker/placement/ownership.h"

enum { EXPECT_LOOK_US = 10 * 1000 }; /* between two looks at what siblings have seen */

bool oribi__are_calls_long(const struct oribi_worker *w)
{
    return w->call_lengths.average_us > ORIBI_LONG_US / 2;
}

/* When the worker of this slot last had a long call: now, if it is in one; 0: never. */
static int64_t last_long_us(const struct oribi_slot *slot, int64_t now_us)
{
    int64_t started_us = atomic_load_explicit(&slot->call_started_us, memory_order_relaxed);
    if (started_us && now_us - started_us >= ORIBI_EXPECT_US)
        return now_us;
    return atomic_load_explicit(&slot->long_call_us, memory_order_relaxed);
}

/* One call in a hundred may be long, and cannot be told from the others when it begins: where there are such, here
 * or at a sibling, the helper is awake for all. */
static bool expects_long(struct oribi_worker *w, int64_t now_us)
{
    if (now_us - w->call_lengths.looked_us >= EXPECT_LOOK_US) {
        const struct oribi_scoreboard *board = w->setup.board;
        w->call_lengths.looked_us = now_us;
        for (uint32_t i = 0; board && i < board->count; i++) {
            int64_t seen_us = last_long_us(&board->slots[i], now_us);
            if (seen_us && seen_us + ORIBI_EXPECT_FOR_US > w->call_lengths.long_until_us)
                w->call_lengths.long_until_us = seen_us + ORIBI_EXPECT_FOR_US;
        }
    }
    return now_us < w->call_lengths.long_until_us;
}

/* A limit on waiting holds from the first call on, as does a question of the supervisor's: then the helper is there,
 * and parked it comes by often enough (helper.c). */
static bool wants_helper(struct oribi_worker *w, int64_t now_us)
{
    bool is_asked = w->stacks || w->options->slow_log_ms;
    bool is_missed = !w->helper && (is_asked || oribi__takes_newcomers_in_call(w) || w->cancels_gone);
    return oribi__threads_free(&w->threads) == 0 || is_missed || oribi__are_calls_long(w) || expects_long(w, now_us);
}

void oribi__note_long(struct oribi_worker *w, int64_t now_us)
{
    w->call_lengths.long_until_us = now_us + ORIBI_EXPECT_FOR_US;
    atomic_store_explicit(&w->slot->long_call_us, now_us, memory_order_relaxed); /* a hint: no partner */
}

void oribi__call_begins(struct oribi_worker *w, int64_t now_us)
{
    bool is_long = w->call_lengths.average_us >= ORIBI_EXPECT_US;
    if (w->call_lengths.average_us > ORIBI_PASS_US && !oribi__shared(w))
        oribi__skip(w, true);
    if (atomic_load_explicit(&w->placement.expects_long, memory_order_relaxed) != is_long)
        atomic_store_explicit(&w->placement.expects_long, is_long, memory_order_relaxed);
    if (oribi_helper_asleep(w) && wants_helper(w, now_us))
        oribi_helper_need(w);
}

void oribi__call_took(struct oribi_worker *w, int64_t us, int64_t now_us)
{
    if (us > ORIBI_LONG_US)
        oribi_helper_need(w);
    if (us > ORIBI_EXPECT_US)
        oribi__note_long(w, now_us);
}
