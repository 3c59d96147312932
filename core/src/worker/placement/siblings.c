/* Siblings, as the scoreboard shows them. Needs no memory of its own, because at the hard deadline of a call it runs in
 * a signal handler. */
#include "worker/placement/placement.h"
#include "worker/worker_private.h"

#include "oribi/base/os/os.h"

enum {
    SHARE_FREE = 1, /* connections that a worker may have more than the others */
    QUEUE_FREE = 2, /* requests that may wait at a worker more than at the others */
};

static uint32_t state_of(const struct oribi_slot *slot)
{
    return atomic_load_explicit(&slot->state, memory_order_acquire); /* partner: the release stores of its worker */
}

/* True for a worker that sleeps and takes what it is given. */
static bool is_free(const struct oribi_slot *slot)
{
    return state_of(slot) == ORIBI_SLOT_IDLE && !atomic_load_explicit(&slot->starved, memory_order_relaxed);
}

/* Threads that are free at an idle worker. */
static uint32_t free_at(const struct oribi_slot *slot)
{
    uint32_t threads = atomic_load_explicit(&slot->threads, memory_order_relaxed);
    uint32_t busy = atomic_load_explicit(&slot->threads_busy, memory_order_relaxed);
    return threads == 0 ? 1 : busy < threads ? threads - busy : 0;
}

/* The slot after `at` that may be an idle sibling's, going round once from our own: so that not all workers look at the
 * same ones first. NULL: there is no other. */
static const struct oribi_slot *next_to_look_at(const struct oribi_worker *w, uint32_t *at)
{
    const struct oribi_scoreboard *board = w->setup.board;
    uint32_t own = (uint32_t)(w->slot - board->slots) < board->count ? (uint32_t)(w->slot - board->slots) : 0;
    while (*at < board->count) {
        uint32_t i = own + (*at)++;
        i -= i >= board->count ? board->count : 0;
        if (!atomic_load_explicit(&board->skips[i], memory_order_relaxed) && &board->slots[i] != w->slot)
            return &board->slots[i];
    }
    return NULL;
}

uint32_t oribi__idle_siblings(const struct oribi_worker *w, uint32_t wanted)
{
    uint32_t own = oribi__shared(w) ? free_at(w->slot) : 0; /* from the slot: the helper asks without the lock */
    own -= own > 0;
    uint32_t count = 0;
    uint32_t at = 0;
    const struct oribi_slot *slot;
    while (w->setup.board && count < wanted && (slot = next_to_look_at(w, &at))) {
        if (!is_free(slot))
            continue;
        uint32_t there = free_at(slot);
        count += there > own ? there - own : 0; /* beside what one of our own threads will take next */
    }
    return count;
}

void oribi__skip(struct oribi_worker *w, bool skip)
{
    if (w->placement.skipped == skip)
        return;
    w->placement.skipped = skip;
    const struct oribi_scoreboard *board = w->setup.board;
    if (board && w->slot >= board->slots && w->slot < board->slots + board->count)
        oribi_scoreboard_skip(board, w->slot, skip);
}

bool oribi__has_siblings(const struct oribi_worker *w)
{
    const struct oribi_scoreboard *board = w->setup.board;
    for (uint32_t i = 0; board && i < board->count; i++) {
        if (&board->slots[i] == w->slot)
            continue;
        uint32_t state = state_of(&board->slots[i]);
        if (state == ORIBI_SLOT_IDLE || state == ORIBI_SLOT_BUSY)
            return true;
    }
    return false;
}

bool oribi__holds_more_than(const struct oribi_worker *w, uint32_t eighths)
{
    const struct oribi_scoreboard *board = w->setup.board;
    uint64_t total = 0;
    uint32_t serving = 0;
    uint32_t idle = 0;
    if (w->placement.queue.give_fd < 0 || oribi__client_count(w) <= SHARE_FREE || oribi__idle_siblings(w, 1) == 0)
        return false;
    for (uint32_t i = 0; i < board->count; i++) {
        uint32_t state = state_of(&board->slots[i]);
        if (&board->slots[i] == w->slot || (state != ORIBI_SLOT_IDLE && state != ORIBI_SLOT_BUSY))
            continue;
        serving++;
        idle += is_free(&board->slots[i]);
        total += atomic_load_explicit(&board->slots[i].connections_open, memory_order_relaxed);
    }
    return idle > 0 &&
           (uint64_t)oribi__client_count(w) * serving * 8 > total * eighths + (uint64_t)SHARE_FREE * serving * 8;
}

uint32_t oribi__queue_surplus(const struct oribi_worker *w, uint32_t waiting)
{
    const struct oribi_scoreboard *board = w->setup.board;
    uint64_t total = 0;
    uint32_t serving = 0;
    if (waiting <= QUEUE_FREE)
        return 0;
    for (uint32_t i = 0; board && i < board->count; i++) {
        uint32_t state = state_of(&board->slots[i]);
        if (&board->slots[i] == w->slot || (state != ORIBI_SLOT_IDLE && state != ORIBI_SLOT_BUSY))
            continue;
        serving++;
        total += atomic_load_explicit(&board->slots[i].queue_len, memory_order_relaxed);
    }
    if ((uint64_t)(waiting - QUEUE_FREE) * serving <= total)
        return 0;
    uint64_t surplus = waiting - QUEUE_FREE - total / serving;
    return surplus < serving ? (uint32_t)surplus : serving;
}

int64_t oribi__oldest_elsewhere_us(const struct oribi_worker *w)
{
    const struct oribi_scoreboard *board = w->setup.board;
    int64_t oldest_us = 0;
    for (uint32_t i = 0; board && i < board->count; i++) {
        uint32_t state = state_of(&board->slots[i]);
        if (&board->slots[i] == w->slot || (state != ORIBI_SLOT_IDLE && state != ORIBI_SLOT_BUSY))
            continue;
        int64_t there_us = atomic_load_explicit(&board->slots[i].queue_oldest_us, memory_order_relaxed);
        if (there_us && (!oldest_us || there_us < oldest_us))
            oldest_us = there_us;
    }
    return oldest_us;
}

bool oribi__holds_newcomers_back(const struct oribi_worker *w)
{
    return oribi__limits_waiting(w->options) && oribi__queue_surplus(w, w->reactor.queue_len) > 0;
}

uint32_t oribi__evened_out(struct oribi_worker *w, uint32_t waiting)
{
    if (w->call_lengths.average_us <= ORIBI_PASS_US || w->placement.way.computes ||
        w->reactor.now_us - w->placement.evened_us < ORIBI_LONG_US)
        return 0;
    w->placement.evened_us = w->reactor.now_us;
    uint32_t surplus = oribi__queue_surplus(w, waiting);
    if (surplus == 0)
        return 0;
    int64_t given = atomic_load_explicit(&w->setup.board->slots->handed_off, memory_order_relaxed); /* a hint */
    return given < surplus ? surplus : 0;
}

bool oribi__has_room_elsewhere(const struct oribi_worker *w)
{
    uint32_t at = 0;
    const struct oribi_slot *slot;
    while (w->setup.board && (slot = next_to_look_at(w, &at))) {
        uint32_t open = atomic_load_explicit(&slot->connections_open, memory_order_relaxed);
        if (is_free(slot) && open < w->options->connections_max)
            return true;
    }
    return false;
}

/* --- waiting for one --- */

void oribi__idle_waiter_sleep(struct oribi_worker *w, int timeout_ms)
{
    struct oribi_slot *first = w->setup.board->slots;
    atomic_fetch_add(&first->idle_waiters, 1);
    atomic_store(&w->slot->is_idle_waiter, 1);
    uint32_t seen = atomic_load(&first->idle_waiters_wake);
    if (oribi__idle_siblings(w, 1) == 0)
        oribi_os_word_wait(&first->idle_waiters_wake, seen, timeout_ms);
    oribi_scoreboard_forget_idle_waiter(w->setup.board, w->slot);
}

void oribi__idle_waiter_wake(const struct oribi_worker *w)
{
    struct oribi_slot *first = w->setup.board ? w->setup.board->slots : NULL;
    if (!first || atomic_load_explicit(&first->idle_waiters, memory_order_relaxed) == 0)
        return;
    atomic_fetch_add(&first->idle_waiters_wake, 1);
    oribi_os_word_wake(&first->idle_waiters_wake);
}
