/* What doors count (worker/frontend_slot.h), as the supervisor reads it. */
#include "supervisor/supervisor_private.h"

#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <sys/mman.h>

void oribi__doors_make_slots(struct oribi__doors *doors)
{
    size_t bytes = ORIBI_DOORS_MAX * sizeof(*doors->slots);
    void *map = MAP_FAILED;
    if (oribi_process_shared_memory(bytes, &doors->slots_fd) == 0)
        map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, doors->slots_fd, 0);
    if (map != MAP_FAILED) {
        doors->slots = map;
        return;
    }
    oribi_log(ORIBI_LOG_WARN, "no memory for the counters of doors: status and metrics do not have them");
    oribi__close(&doors->slots_fd);
}

void oribi__doors_note_sole(struct oribi__doors *doors, bool sole)
{
    for (uint32_t i = 0; doors->slots && i < doors->count; i++)
        atomic_store_explicit(&doors->slots[i].sole, sole, memory_order_relaxed);
}

const struct oribi_door_slot *oribi__doors_slot(const struct oribi__doors *doors, uint32_t i)
{
    return doors->slots ? &doors->slots[i] : NULL;
}

void oribi__doors_fold(const struct oribi__doors *doors, uint64_t sums[ORIBI_DOOR_COUNTERS],
                       uint64_t workers[ORIBI_SLOT_COUNTERS])
{
    for (uint32_t i = 0; doors->slots && i < doors->count; i++)
        oribi_door_slot_fold(sums, workers, &doors->slots[i]);
}

uint32_t oribi__doors_open(const struct oribi__doors *doors)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; doors->slots && i < doors->count; i++)
        sum += oribi_door_slot_open(&doors->slots[i]);
    return sum;
}

uint32_t oribi__doors_waiting(const struct oribi__doors *doors, int64_t *oldest_us)
{
    uint32_t sum = 0;
    *oldest_us = 0;
    for (uint32_t i = 0; doors->slots && i < doors->count; i++) {
        int64_t since_us = atomic_load_explicit(&doors->slots[i].queue_oldest_us, memory_order_relaxed);
        sum += atomic_load_explicit(&doors->slots[i].queue_len, memory_order_relaxed);
        if (since_us && (!*oldest_us || since_us < *oldest_us))
            *oldest_us = since_us;
    }
    return sum;
}

void oribi__doors_add_connections(const struct oribi__doors *doors, uint64_t sums[ORIBI_SLOT_CONN_STATES])
{
    for (uint32_t i = 0; doors->slots && i < doors->count; i++)
        for (uint32_t k = 0; k < ORIBI_SLOT_CONN_STATES; k++)
            sums[k] += atomic_load_explicit(&doors->slots[i].states[k], memory_order_relaxed);
}
