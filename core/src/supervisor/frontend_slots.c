/* What frontends count (worker/frontend_slot.h), as the supervisor reads it. */
#include "supervisor/supervisor_private.h"

#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <sys/mman.h>

void oribi__frontends_make_slots(struct oribi__frontends *frontends)
{
    size_t bytes = ORIBI_FRONTENDS_MAX * sizeof(*frontends->slots);
    void *map = MAP_FAILED;
    if (oribi_process_shared_memory(bytes, &frontends->slots_fd) == 0)
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, frontends->slots_fd, 0);
    if (map != MAP_FAILED) {
        frontends->slots = map;
        return;
    }
    oribi_log(ORIBI_LOG_WARN, "no memory for the counters of frontends: status and metrics do not have them");
    oribi__close(&frontends->slots_fd);
}

void oribi__frontends_note_sole(struct oribi__frontends *frontends, bool sole)
{
    for (uint32_t i = 0; frontends->slots && i < frontends->count; i++)
        atomic_store_explicit(&frontends->slots[i].sole, sole, memory_order_relaxed);
}

const struct oribi_frontend_slot *oribi__frontends_slot(const struct oribi__frontends *frontends, uint32_t i)
{
    return frontends->slots ? &frontends->slots[i] : NULL;
}

void oribi__frontends_fold(const struct oribi__frontends *frontends, uint64_t sums[ORIBI_FRONTEND_COUNTERS],
                           uint64_t workers[ORIBI_SLOT_COUNTERS])
{
    for (uint32_t i = 0; frontends->slots && i < frontends->count; i++)
        oribi_frontend_slot_fold(sums, workers, &frontends->slots[i]);
}

uint32_t oribi__frontends_open(const struct oribi__frontends *frontends)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; frontends->slots && i < frontends->count; i++)
        sum += oribi_frontend_slot_open(&frontends->slots[i]);
    return sum;
}

uint32_t oribi__frontends_waiting(const struct oribi__frontends *frontends, int64_t *oldest_us)
{
    uint32_t sum = 0;
    *oldest_us = 0;
    for (uint32_t i = 0; frontends->slots && i < frontends->count; i++) {
        int64_t since_us = atomic_load_explicit(&frontends->slots[i].queue_oldest_us, memory_order_relaxed);
        sum += atomic_load_explicit(&frontends->slots[i].queue_len, memory_order_relaxed);
        if (since_us && (!*oldest_us || since_us < *oldest_us))
            *oldest_us = since_us;
    }
    return sum;
}

void oribi__frontends_add_connections(const struct oribi__frontends *frontends, uint64_t sums[ORIBI_SLOT_CONN_STATES])
{
    for (uint32_t i = 0; frontends->slots && i < frontends->count; i++)
        for (uint32_t k = 0; k < ORIBI_SLOT_CONN_STATES; k++)
            sums[k] += atomic_load_explicit(&frontends->slots[i].states[k], memory_order_relaxed);
}
