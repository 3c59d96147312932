/* Workers are measured in turn, those in a call more seldom. */
#include "process/footprint.h"

#include "process/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"

static bool asked(const struct oribi__footprints *footprints, int64_t now_ms)
{
    return footprints->workers && now_ms - footprints->asked_ms < ORIBI__FOOTPRINT_ASKED_MS;
}

void oribi__footprints_ask(struct oribi_supervisor *supervisor)
{
    struct oribi__footprints *footprints = &supervisor->footprints;
    int64_t now_ms = oribi_clock_ms();
    if (!asked(footprints, now_ms))
        footprints->next_ms = now_ms;
    footprints->asked_ms = now_ms;
    if (!footprints->workers)
        footprints->workers = oribi_mem_alloc(supervisor->policy.slot_count, sizeof(*footprints->workers));
}

/* One that a program's library has forked may be told nothing before it has said that it runs (prefork.h). */
static bool is_due(const struct oribi_supervisor *supervisor, uint32_t i, int64_t now_ms)
{
    const struct oribi_worker_record *record = &supervisor->policy.records[i];
    const struct oribi__footprint *footprint = &supervisor->footprints.workers[i];
    uint32_t state = atomic_load(&supervisor->ties.board.slots[i].state);
    if (!oribi_policy_has_process(&supervisor->policy, i) || record->pid <= 0 || state == ORIBI_SLOT_STARTING)
        return false;
    if (footprint->pid != record->pid)
        return true;
    return now_ms - footprint->at_ms >= (state == ORIBI_SLOT_BUSY ? ORIBI__FOOTPRINT_BUSY_MS : ORIBI__FOOTPRINT_AGE_MS);
}

static void measure(struct oribi_supervisor *supervisor, uint32_t i)
{
    struct oribi__footprint *footprint = &supervisor->footprints.workers[i];
    pid_t pid = supervisor->policy.records[i].pid;
    *footprint = (struct oribi__footprint){.pid = pid, .descriptors = oribi_process_descriptors(pid)};
    footprint->shares_known = oribi_process_shares(pid, &footprint->shares);
    footprint->at_ms = oribi_clock_ms();
}

void oribi__footprints_turn(struct oribi_supervisor *supervisor)
{
    struct oribi__footprints *footprints = &supervisor->footprints;
    int64_t now_ms = oribi_clock_ms();
    if (!asked(footprints, now_ms) || now_ms < footprints->next_ms)
        return;
    for (uint32_t looks = supervisor->policy.slot_count; looks > 0; looks--) {
        uint32_t i = footprints->next++ % supervisor->policy.slot_count;
        if (!is_due(supervisor, i, now_ms))
            continue;
        measure(supervisor, i);
        int64_t took_ms = footprints->workers[i].at_ms - now_ms;
        footprints->next_ms =
            footprints->workers[i].at_ms + ORIBI__FOOTPRINT_PAUSE_MS + took_ms * ORIBI__FOOTPRINT_PART;
        return;
    }
    footprints->next_ms = now_ms + 1000; /* all are fresh */
}

int64_t oribi__footprints_deadline(const struct oribi_supervisor *supervisor)
{
    return asked(&supervisor->footprints, oribi_clock_ms()) ? supervisor->footprints.next_ms : INT64_MAX;
}

const struct oribi__footprint *oribi__footprint_of(const struct oribi_supervisor *supervisor, uint32_t i)
{
    const struct oribi__footprint *footprint =
        supervisor->footprints.workers ? &supervisor->footprints.workers[i] : NULL;
    return footprint && footprint->pid && footprint->pid == supervisor->policy.records[i].pid ? footprint : NULL;
}

void oribi__footprints_end(struct oribi_supervisor *supervisor)
{
    oribi_mem_free(supervisor->footprints.workers);
    supervisor->footprints = (struct oribi__footprints){0};
}
