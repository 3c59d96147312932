/* Servers that follow on each other in upgrades and share one store, and the workers of each. */
#include "base/metric_private.h"

enum {
    SERVER_GENERATIONS = 1 << 20, /* more than a server has */
    SERVER_SLOTS = 1 << 16,       /* likewise */
    SERVERS = 2,                  /* at a time: a third one takes the numbers of the first, which has ended */
};

uint32_t oribi_metric_store_generation(const struct oribi_metric_store *store, uint32_t generation)
{
    return store->server * SERVER_GENERATIONS + generation;
}

int32_t oribi_metric_store_worker(const struct oribi_metric_store *store, int32_t slot)
{
    return slot == ORIBI_METRIC_NOBODY ? slot : (int32_t)(store->server % SERVERS) * SERVER_SLOTS + slot;
}

/* Ends the parts of all workers with numbers from `first` to `last`. */
static void end_workers(const struct oribi_metric_store *store, int32_t first, int32_t last)
{
    if (!store->head || !atomic_load_explicit(&store->head->parts, memory_order_relaxed))
        return;
    for (uint32_t i = 0; i < store->max * INDEX_ENTRIES; i++) {
        uint32_t at = atomic_load_explicit(&store->series_index[i], memory_order_acquire);
        if (at && at <= store->max && store->series[at - 1].worker >= first && store->series[at - 1].worker <= last)
            oribi_metric_unset(&store->series[at - 1]);
    }
}

void oribi_metric_store_worker_ended(const struct oribi_metric_store *store, int32_t worker)
{
    end_workers(store, worker, worker);
}

void oribi_metric_store_take_over(struct oribi_metric_store *store)
{
    store->server = atomic_fetch_add(&store->head->servers, 1) + 1;
    int32_t first = oribi_metric_store_worker(store, 0);
    end_workers(store, first, first + SERVER_SLOTS - 1); /* of a supervisor that was killed, for one */
}
