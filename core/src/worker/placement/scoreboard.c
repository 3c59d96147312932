/* The shared mapping behind the scoreboard. Anonymous and MAP_SHARED: every process forked later sees the same
 * pages, nothing is left behind when the last one ends, and no name in a file system has to be found or guarded. A
 * program started by exec gets a descriptor instead. */
#include "oribi/worker/placement/scoreboard.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/http/status.h"
#include "oribi/worker/placement/handoff.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

_Static_assert(sizeof(struct oribi_slot) % 128 == 0, "slots of two workers never share a cache line or its neighbour");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_CHAR_LOCK_FREE == 2,
               "an atomic with a lock inside cannot be shared between processes");

_Static_assert(offsetof(struct oribi_slot, total_time) + sizeof(struct oribi_histogram) ==
                   offsetof(struct oribi_slot, long_call_us),
               "the counters end with total_time");

/* The slots, then the stacks, whose pages are touched when they are asked for and not before, then the skips: a slot
 * has some kilobytes, so that looking through a thousand of them is a thousand pages, but of skips a quarter of one. */
static size_t skip_bytes(uint32_t count)
{
    return (count + 63) / 64 * 64;
}

static size_t bytes_of(uint32_t count)
{
    return count * (sizeof(struct oribi_slot) + sizeof(struct oribi_stacks)) + skip_bytes(count) +
           ORIBI_FRONTENDS_MAX * sizeof(struct oribi_frontend_word) +
           (ORIBI_CHANNELS_MAX + 1) * sizeof(_Atomic uint16_t);
}

static int map_slots(struct oribi_scoreboard *board, uint32_t count, int flags, int fd)
{
    void *slots = mmap(NULL, bytes_of(count), PROT_READ | PROT_WRITE, flags, fd, 0);
    if (slots == MAP_FAILED)
        return ORIBI_ENOMEM;
    struct oribi_stacks *stacks = (void *)((struct oribi_slot *)slots + count);
    char *skips = (char *)(stacks + count);
    char *frontends = skips + skip_bytes(count);
    *board = (struct oribi_scoreboard){
        .slots = slots,
        .stacks = stacks,
        .skips = (_Atomic uint8_t *)skips,
        .frontends = (struct oribi_frontend_word *)(void *)frontends,
        .channels = (_Atomic uint16_t *)(void *)(frontends + ORIBI_FRONTENDS_MAX * sizeof(struct oribi_frontend_word)),
        .count = count,
        .fd = fd}; /* page-aligned, and the kernel zeroed it */
    return 0;
}

int oribi_scoreboard_create(struct oribi_scoreboard *board, uint32_t count)
{
    assert(count > 0 && count <= ORIBI_SLOTS_MAX);
    return map_slots(board, count, MAP_SHARED | MAP_ANONYMOUS, -1);
}

int oribi_scoreboard_create_named(struct oribi_scoreboard *board, uint32_t count)
{
    int fd;
    assert(count > 0 && count <= ORIBI_SLOTS_MAX);
    int code = oribi_process_shared_memory(bytes_of(count), &fd);
    if (code < 0)
        return code;
    code = oribi_scoreboard_attach(board, count, fd);
    if (code < 0)
        oribi_os_close(fd);
    return code;
}

int oribi_scoreboard_attach(struct oribi_scoreboard *board, uint32_t count, int fd)
{
    return map_slots(board, count, MAP_SHARED, fd);
}

/* Relaxed: nothing else is read because of it but the slot, whose state has an order of its own. Whoever sees it late
 * reads a slot in vain, or misses a worker that has become idle just now, as it does who has looked just before. */
void oribi_scoreboard_skip(const struct oribi_scoreboard *board, const struct oribi_slot *slot, bool skip)
{
    atomic_store_explicit(&board->skips[slot - board->slots], skip, memory_order_relaxed);
}

void oribi_scoreboard_forget_idle_waiter(const struct oribi_scoreboard *board, struct oribi_slot *slot)
{
    if (atomic_exchange(&slot->is_idle_waiter, 0))
        atomic_fetch_sub(&board->slots[0].idle_waiters, 1);
}

/* --- counters --- */

static const char *const method_names[ORIBI_SLOT_METHODS] = {"GET",   "HEAD",   "POST",    "PUT",
                                                             "PATCH", "DELETE", "OPTIONS", "other"};

const char *oribi_slot_method_name(uint32_t i)
{
    return method_names[i];
}

static bool is(struct oribi_slice method, enum oribi_slot_method which)
{
    return memcmp(method.p, method_names[which], method.n) == 0;
}

enum oribi_slot_method oribi_slot_method_of(struct oribi_slice method)
{
    switch (method.n) { /* so many bytes have these */
    case 3:
        return is(method, ORIBI_SLOT_GET)   ? ORIBI_SLOT_GET
               : is(method, ORIBI_SLOT_PUT) ? ORIBI_SLOT_PUT
                                            : ORIBI_SLOT_METHOD_OTHER;
    case 4:
        return is(method, ORIBI_SLOT_HEAD)   ? ORIBI_SLOT_HEAD
               : is(method, ORIBI_SLOT_POST) ? ORIBI_SLOT_POST
                                             : ORIBI_SLOT_METHOD_OTHER;
    case 5:
        return is(method, ORIBI_SLOT_PATCH) ? ORIBI_SLOT_PATCH : ORIBI_SLOT_METHOD_OTHER;
    case 6:
        return is(method, ORIBI_SLOT_DELETE) ? ORIBI_SLOT_DELETE : ORIBI_SLOT_METHOD_OTHER;
    case 7:
        return is(method, ORIBI_SLOT_OPTIONS) ? ORIBI_SLOT_OPTIONS : ORIBI_SLOT_METHOD_OTHER;
    default:
        return ORIBI_SLOT_METHOD_OTHER;
    }
}

/* One writer: a plain load and a store. */
static void count_one(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

void oribi_slot_count_answer(struct oribi_slot *slot, struct oribi_slice method, int status)
{
    count_one(&slot->status_class[oribi_status_class(status)]);
    count_one(&slot->method_count[oribi_slot_method_of(method)]);
}

void oribi_slot_count_refusal(struct oribi_slot *slot, enum oribi_refusal refusal)
{
    count_one(&slot->status_class[oribi_refusal_status(refusal) / 100]);
    count_one(&slot->refusals[refusal]);
}

/* Those without a deadline wait or are in a call. */
void oribi_slot_call_text(const struct oribi_slot *slot, char dst[ORIBI_SLOT_CALL_TEXT_CAP])
{
    uint32_t threads = atomic_load_explicit(&slot->threads_busy, memory_order_relaxed);
    dst[0] = '\0';
    if (atomic_load_explicit(&slot->call_started_us, memory_order_acquire) == 0)
        return;
    if (threads > 1)
        (void)snprintf(dst, ORIBI_SLOT_CALL_TEXT_CAP, " during %u calls, one of them %.*s", threads,
                       ORIBI_SLOT_LINE_CAP - 1, slot->line);
    else
        (void)snprintf(dst, ORIBI_SLOT_CALL_TEXT_CAP, " during %.*s", ORIBI_SLOT_LINE_CAP - 1, slot->line);
}

void oribi_slot_add_counted(uint64_t sums[ORIBI_SLOT_CONN_STATES], uint32_t open, uint32_t waiting,
                            const _Atomic uint32_t armed[ORIBI_TIMEOUT_CLASSES])
{
    static const uint8_t states[ORIBI_TIMEOUT_CLASSES] = {
        [ORIBI_TIMEOUT_FIRST] = ORIBI_SLOT_CONN_IDLE,    [ORIBI_TIMEOUT_HEAD] = ORIBI_SLOT_CONN_READING,
        [ORIBI_TIMEOUT_BODY] = ORIBI_SLOT_CONN_READING,  [ORIBI_TIMEOUT_IDLE] = ORIBI_SLOT_CONN_IDLE,
        [ORIBI_TIMEOUT_WRITE] = ORIBI_SLOT_CONN_WRITING, [ORIBI_TIMEOUT_LINGER] = ORIBI_SLOT_CONN_CLOSING,
    };
    uint64_t elsewhere = waiting;
    sums[ORIBI_SLOT_CONN_WAITING] += waiting;
    for (int c = ORIBI_TIMEOUT_NONE + 1; c < ORIBI_TIMEOUT_CLASSES; c++) {
        uint32_t count = atomic_load_explicit(&armed[c], memory_order_relaxed);
        sums[states[c]] += count;
        elsewhere += count;
    }
    sums[ORIBI_SLOT_CONN_CALLING] += open > elsewhere ? open - elsewhere : 0;
}

void oribi_slot_add_connections(uint64_t sums[ORIBI_SLOT_CONN_STATES], const struct oribi_slot *slot)
{
    oribi_slot_add_counted(sums, atomic_load_explicit(&slot->connections_open, memory_order_relaxed),
                           atomic_load_explicit(&slot->queue_len, memory_order_relaxed), slot->armed);
}

const char *oribi_slot_connections_name(uint32_t i)
{
    static const char *const names[] = {"idle", "reading", "waiting", "calling", "writing", "closing"};
    return names[i];
}

static _Atomic uint64_t *counters(struct oribi_slot *slot)
{
    return (_Atomic uint64_t *)((char *)slot + offsetof(struct oribi_slot, request_count));
}

void oribi_slot_fold(uint64_t sums[ORIBI_SLOT_COUNTERS], const struct oribi_slot *slot)
{
    const _Atomic uint64_t *from = counters((struct oribi_slot *)(uintptr_t)slot); /* only read */
    for (uint32_t i = 0; i < ORIBI_SLOT_COUNTERS; i++)
        sums[i] += atomic_load_explicit(&from[i], memory_order_relaxed);
}

void oribi_slot_unfold(const uint64_t sums[ORIBI_SLOT_COUNTERS], struct oribi_slot *slot)
{
    memset(slot, 0, sizeof(*slot));
    for (uint32_t i = 0; i < ORIBI_SLOT_COUNTERS; i++)
        atomic_store_explicit(&counters(slot)[i], sums[i], memory_order_relaxed);
}

void oribi_scoreboard_destroy(struct oribi_scoreboard *board)
{
    if (board->slots) {
        (void)munmap(board->slots, bytes_of(board->count)); /* fails for wrong arguments only */
        oribi_os_close(board->fd);
    }
    *board = (struct oribi_scoreboard){.fd = -1};
}
