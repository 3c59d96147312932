/* State of the frontends' processes, and sums of what they count. */
#include "oribi/observe/frontend_set.h"

#include "oribi/base/os/os_process.h"

#include <string.h>

const char *oribi__frontend_state(const struct oribi__frontend_process *process)
{
    struct oribi_process_look look;
    if (!process->ready)
        return "starting";
    oribi_process_look(process->pid, &look);
    return look.stopped ? "stopped" : "serving";
}

uint32_t oribi__frontends_serving(const struct oribi__frontend_set *frontends)
{
    uint32_t serving = 0;
    for (uint32_t i = 0; i < frontends->count; i++)
        serving += strcmp(oribi__frontend_state(frontends->processes[i]), "serving") == 0;
    return serving;
}

bool oribi__frontends_missing(const struct oribi__frontend_set *frontends)
{
    return frontends->count > 0 && oribi__frontends_serving(frontends) == 0;
}

const struct oribi_frontend_slot *oribi__frontends_slot(const struct oribi__frontend_set *frontends, uint32_t i)
{
    return frontends->slots ? &frontends->slots[i] : NULL;
}

void oribi__frontends_fold(const struct oribi__frontend_set *frontends, uint64_t sums[ORIBI_FRONTEND_COUNTERS],
                           uint64_t workers[ORIBI_SLOT_COUNTERS])
{
    for (uint32_t i = 0; frontends->slots && i < frontends->count; i++)
        oribi_frontend_slot_fold(sums, workers, &frontends->slots[i]);
}

uint32_t oribi__frontends_open(const struct oribi__frontend_set *frontends)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; frontends->slots && i < frontends->count; i++)
        sum += oribi_frontend_slot_open(&frontends->slots[i]);
    return sum;
}

uint32_t oribi__frontends_waiting(const struct oribi__frontend_set *frontends, int64_t *oldest_us)
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

void oribi__frontends_add_connections(const struct oribi__frontend_set *frontends,
                                      uint64_t sums[ORIBI_SLOT_CONN_STATES])
{
    for (uint32_t i = 0; frontends->slots && i < frontends->count; i++)
        for (uint32_t k = 0; k < ORIBI_SLOT_CONN_STATES; k++)
            sums[k] += atomic_load_explicit(&frontends->slots[i].states[k], memory_order_relaxed);
}
