/* Workers are measured in turn, those in a call more seldom: for answers of the status listener while somebody asks,
 * and for memory_max always. */
#include "oribi/observe/footprint.h"

#include "supervisor/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"

static bool is_limited(const struct oribi_supervisor *supervisor)
{
    return supervisor->policy.config.memory_max && !supervisor->policy.stopping;
}

static bool asked(const struct oribi_supervisor *supervisor, int64_t now_ms)
{
    const struct oribi__footprints *footprints = &supervisor->footprints;
    return is_limited(supervisor) || (footprints->workers && now_ms - footprints->asked_ms < ORIBI__FOOTPRINT_ASKED_MS);
}

static void make_room(struct oribi_supervisor *supervisor)
{
    if (!supervisor->footprints.workers)
        supervisor->footprints.workers =
            oribi_mem_alloc(supervisor->policy.slot_count, sizeof(*supervisor->footprints.workers));
}

void oribi__footprints_ask(struct oribi_supervisor *supervisor)
{
    struct oribi__footprints *footprints = &supervisor->footprints;
    int64_t now_ms = oribi_clock_ms();
    if (!asked(supervisor, now_ms))
        footprints->next_ms = now_ms;
    footprints->asked_ms = now_ms;
    make_room(supervisor);
}

/* After how long a worker is measured again. */
static int64_t age_max_ms(const struct oribi_supervisor *supervisor)
{
    int64_t few_ms = (int64_t)oribi_policy_serving(&supervisor->policy) * ORIBI__FOOTPRINT_FEW_MS;
    return is_limited(supervisor) && few_ms < ORIBI__FOOTPRINT_AGE_MS ? few_ms : ORIBI__FOOTPRINT_AGE_MS;
}

/* Reading a process's memory map makes it wait if it wants to change the map just then, so a worker in a call is
 * measured more seldom; but one that is always found in a call must not grow for ever. One that a program's library
 * has forked may be told nothing before it has said that it runs (prefork.h). */
static bool is_due(const struct oribi_supervisor *supervisor, uint32_t i, int64_t now_ms)
{
    const struct oribi_worker_record *record = &supervisor->policy.records[i];
    const struct oribi__footprint *footprint = &supervisor->footprints.workers[i];
    uint32_t state = atomic_load(&supervisor->context.board.slots[i].state);
    if (!oribi_policy_has_process(&supervisor->policy, i) || record->pid <= 0 || state == ORIBI_SLOT_STARTING)
        return false;
    if (footprint->pid != record->pid)
        return true;
    return now_ms - footprint->at_ms >= age_max_ms(supervisor) * (state == ORIBI_SLOT_BUSY ? ORIBI__FOOTPRINT_BUSY : 1);
}

static void measure(struct oribi_supervisor *supervisor, uint32_t i)
{
    struct oribi__footprint *footprint = &supervisor->footprints.workers[i];
    pid_t pid = supervisor->policy.records[i].pid;
    *footprint = (struct oribi__footprint){.pid = pid, .descriptors = oribi_process_descriptors(pid)};
    footprint->shares_known = oribi_process_shares(pid, &footprint->shares);
    footprint->at_ms = oribi_clock_ms();
}

/* Where the kernel does not tell the share (no permission, old kernel), all that is resident counts. */
static int64_t memory_of(const struct oribi__footprint *footprint)
{
    struct oribi_process_look look;
    if (footprint->shares_known)
        return footprint->shares.proportional_bytes;
    oribi_process_look(footprint->pid, &look);
    return look.resident_bytes;
}

bool oribi__footprints_turn(struct oribi_supervisor *supervisor, struct oribi_policy_event *event)
{
    struct oribi__footprints *footprints = &supervisor->footprints;
    int64_t now_ms = oribi_clock_ms();
    if (!asked(supervisor, now_ms) || now_ms < footprints->next_ms)
        return false;
    make_room(supervisor);
    for (uint32_t looks = supervisor->policy.slot_count; looks > 0; looks--) {
        uint32_t i = footprints->next++ % supervisor->policy.slot_count;
        if (!is_due(supervisor, i, now_ms))
            continue;
        measure(supervisor, i);
        int64_t took_ms = footprints->workers[i].at_ms - now_ms;
        footprints->next_ms =
            footprints->workers[i].at_ms + ORIBI__FOOTPRINT_PAUSE_MS + took_ms * ORIBI__FOOTPRINT_PART;
        *event = (struct oribi_policy_event){.type = ORIBI_EVENT_MEASURED,
                                             .slot = i,
                                             .ticket = supervisor->policy.records[i].ticket,
                                             .bytes = memory_of(&footprints->workers[i])};
        return is_limited(supervisor);
    }
    footprints->next_ms = now_ms + 1000; /* all are fresh */
    return false;
}

int64_t oribi__footprints_deadline(const struct oribi_supervisor *supervisor)
{
    return asked(supervisor, oribi_clock_ms()) ? supervisor->footprints.next_ms : INT64_MAX;
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
