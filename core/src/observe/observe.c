/* Life of the room's modules; the frontends' state, and sums of what they count. */
#include "oribi/observe/observe.h"

#include "observe/state.h"

#include "oribi/base/mem.h"
#include "oribi/base/os/os_process.h"

#include <string.h>

/* --- life --- */

void oribi__observe_init(struct oribi__observe *observe)
{
    observe->state = oribi_mem_alloc(1, sizeof(*observe->state));
    observe->inherited.to_fd = -1;
    oribi__status_init(&observe->state->status);
    oribi__agent_init(&observe->state->agent);
}

int oribi__observe_open(struct oribi__observe *observe, char *error)
{
    int code = oribi__status_open(observe, error);
    return code < 0 ? code : oribi__agent_open(observe, error);
}

void oribi__observe_configured(struct oribi__observe *observe)
{
    oribi__footprints_configured(observe);
}

void oribi__observe_close(struct oribi__observe *observe, bool unlink_paths)
{
    oribi__agent_close(observe, unlink_paths);
    oribi__status_close(observe, unlink_paths);
    oribi__history_end(observe);
    oribi__footprints_end(observe);
}

void oribi__observe_let_go(struct oribi__observe *observe)
{
    oribi__agent_let_go(&observe->state->agent);
    oribi__status_let_go(&observe->state->status);
}

void oribi__observe_deinit(struct oribi__observe *observe)
{
    oribi__stacks_close(observe);
    oribi_dispatcher_arm(observe->dispatcher, &observe->state->export_totals, INT64_MAX);
    oribi_mem_free(observe->state);
    observe->state = NULL;
}

/* --- frontends --- */

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

uint32_t oribi__acme_placeholders(const struct oribi__acme_set *acme)
{
    uint32_t count = 0;
    for (uint32_t i = 0; acme && i < acme->count; i++)
        count += acme->items[i]->placeholder;
    return count;
}
