/* Counters of frontends; see the header. */
#include "oribi/worker/frontend_slot.h"

#include <string.h>

const uint16_t oribi_frontend_close_codes[ORIBI_FRONTEND_CLOSE_CODES] = {1000, 1001, 1002, 1003, 1005, 1006, 1007,
                                                                         1008, 1009, 1011, 1012, 1013, 0};

/* One writer: a plain load and a store. */
void oribi_frontend_slot_count(_Atomic uint64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

static _Atomic uint64_t *counters(const struct oribi_frontend_slot *slot)
{
    return (_Atomic uint64_t *)(uintptr_t)((const char *)slot + offsetof(struct oribi_frontend_slot, uncalled_count));
}

#define SAME(field)                                                                                                    \
    {                                                                                                                  \
        (offsetof(struct oribi_frontend_slot, field) - offsetof(struct oribi_frontend_slot, uncalled_count)) /         \
            sizeof(uint64_t),                                                                                          \
            (offsetof(struct oribi_slot, field) - offsetof(struct oribi_slot, request_count)) / sizeof(uint64_t),      \
            sizeof(((struct oribi_slot *)0)->field) / sizeof(uint64_t)                                                 \
    }

/* Counters that both kinds of slots have. */
static const struct {
    uint32_t frontend;
    uint32_t worker;
    uint32_t count;
} alike[] = {
    SAME(uncalled_count), SAME(connection_count), SAME(status_class), SAME(method_count),  SAME(refusals),
    SAME(timeouts),       SAME(shed_count),       SAME(gone_count),   SAME(evicted_count), SAME(passed_count),
};

void oribi_frontend_slot_fold(uint64_t sums[ORIBI_FRONTEND_COUNTERS], uint64_t workers[ORIBI_SLOT_COUNTERS],
                              const struct oribi_frontend_slot *slot)
{
    uint64_t own[ORIBI_FRONTEND_COUNTERS];
    for (uint32_t i = 0; i < ORIBI_FRONTEND_COUNTERS; i++) {
        own[i] = atomic_load_explicit(&counters(slot)[i], memory_order_relaxed);
        sums[i] += own[i];
    }
    for (size_t i = 0; i < sizeof(alike) / sizeof(alike[0]); i++)
        for (uint32_t k = 0; k < alike[i].count; k++)
            workers[alike[i].worker + k] += own[alike[i].frontend + k];
}

void oribi_frontend_slot_unfold(const uint64_t sums[ORIBI_FRONTEND_COUNTERS], struct oribi_frontend_slot *slot)
{
    memset(slot, 0, sizeof(*slot));
    for (uint32_t i = 0; i < ORIBI_FRONTEND_COUNTERS; i++)
        atomic_store_explicit(&counters(slot)[i], sums[i], memory_order_relaxed);
}

void oribi_frontend_slot_ended(struct oribi_frontend_slot *slot)
{
    memset(slot, 0, offsetof(struct oribi_frontend_slot, uncalled_count));
}

uint32_t oribi_frontend_slot_open(const struct oribi_frontend_slot *slot)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < ORIBI_FRONTEND_CLIENTS; i++)
        sum += atomic_load_explicit(&slot->clients[i], memory_order_relaxed);
    uint32_t carried = atomic_load_explicit(&slot->carried, memory_order_relaxed);
    return sum > carried ? sum - carried : 0; /* another moment's */
}
