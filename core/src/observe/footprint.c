/* Workers are measured in turn, those in a call more seldom: for answers of the status listener while somebody asks,
 * and for memory_max always. */
#include "observe/footprint.h"

#include "observe/state.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"

static bool is_limited(const struct oribi__observe *observe)
{
    return observe->view.policy->config.memory_max && !observe->view.policy->stopping;
}

static bool asked(const struct oribi__observe *observe, int64_t now_ms)
{
    const struct oribi__footprints *footprints = &observe->state->footprints;
    return is_limited(observe) || (footprints->workers && now_ms - footprints->asked_ms < ORIBI__FOOTPRINT_ASKED_MS);
}

static void make_room(struct oribi__observe *observe)
{
    if (!observe->state->footprints.workers)
        observe->state->footprints.workers =
            oribi_mem_alloc(observe->view.policy->slot_count, sizeof(*observe->state->footprints.workers));
}

/* After how long a worker is measured again. */
static int64_t age_max_ms(const struct oribi__observe *observe)
{
    int64_t few_ms = (int64_t)oribi_policy_serving(observe->view.policy) * ORIBI__FOOTPRINT_FEW_MS;
    return is_limited(observe) && few_ms < ORIBI__FOOTPRINT_AGE_MS ? few_ms : ORIBI__FOOTPRINT_AGE_MS;
}

/* Reading a process's memory map makes it wait if it wants to change the map just then, so a worker in a call is
 * measured more seldom; but one that is always found in a call must not grow for ever. One that a program's library
 * has forked may be told nothing before it has said that it runs (prefork.h). */
static bool is_due(const struct oribi__observe *observe, uint32_t i, int64_t now_ms)
{
    const struct oribi_worker_record *record = &observe->view.policy->records[i];
    const struct oribi__footprint *footprint = &observe->state->footprints.workers[i];
    uint32_t state = atomic_load(&observe->view.context->board.slots[i].state);
    if (!oribi_policy_has_process(observe->view.policy, i) || record->pid <= 0 || state == ORIBI_SLOT_STARTING)
        return false;
    if (footprint->pid != record->pid)
        return true;
    return now_ms - footprint->at_ms >= age_max_ms(observe) * (state == ORIBI_SLOT_BUSY ? ORIBI__FOOTPRINT_BUSY : 1);
}

static void measure(struct oribi__observe *observe, uint32_t i)
{
    struct oribi__footprint *footprint = &observe->state->footprints.workers[i];
    pid_t pid = observe->view.policy->records[i].pid;
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

static void report(struct oribi__observe *observe, uint32_t i)
{
    const struct oribi_policy_event event = {.type = ORIBI_EVENT_MEASURED,
                                             .slot = i,
                                             .ticket = observe->view.policy->records[i].ticket,
                                             .bytes = memory_of(&observe->state->footprints.workers[i])};
    if (observe->report && is_limited(observe))
        observe->report(observe->owner, &event);
}

/* Measures one worker. Gives the time of the next. */
static int64_t measure_next(struct oribi__observe *observe, int64_t now_ms)
{
    struct oribi__footprints *footprints = &observe->state->footprints;
    make_room(observe);
    for (uint32_t looks = observe->view.policy->slot_count; looks > 0; looks--) {
        uint32_t i = footprints->next++ % observe->view.policy->slot_count;
        if (!is_due(observe, i, now_ms))
            continue;
        measure(observe, i);
        report(observe, i);
        int64_t at_ms = footprints->workers[i].at_ms;
        return at_ms + ORIBI__FOOTPRINT_PAUSE_MS + (at_ms - now_ms) * ORIBI__FOOTPRINT_PART;
    }
    return now_ms + 1000; /* all are fresh */
}

static void measure_expired(void *owner)
{
    struct oribi__observe *observe = owner;
    int64_t now_ms = oribi_clock_ms();
    if (asked(observe, now_ms))
        oribi_dispatcher_arm(observe->dispatcher, &observe->state->footprints.measure, measure_next(observe, now_ms));
}

static void begin(struct oribi__observe *observe)
{
    struct oribi_timer *timer = &observe->state->footprints.measure;
    if (oribi_timer_at(timer) != INT64_MAX)
        return;
    *timer = (struct oribi_timer){.expired = measure_expired, .owner = observe};
    oribi_dispatcher_arm(observe->dispatcher, timer, oribi_clock_ms());
}

void oribi__footprints_ask(struct oribi__observe *observe)
{
    observe->state->footprints.asked_ms = oribi_clock_ms();
    make_room(observe);
    begin(observe);
}

void oribi__footprints_configured(struct oribi__observe *observe)
{
    if (is_limited(observe))
        begin(observe);
}

const struct oribi__footprint *oribi__footprint_of(const struct oribi__observe *observe, uint32_t i)
{
    const struct oribi__footprint *footprint =
        observe->state->footprints.workers ? &observe->state->footprints.workers[i] : NULL;
    return footprint && footprint->pid && footprint->pid == observe->view.policy->records[i].pid ? footprint : NULL;
}

void oribi__footprints_end(struct oribi__observe *observe)
{
    oribi_dispatcher_arm(observe->dispatcher, &observe->state->footprints.measure, INT64_MAX);
    oribi_mem_free(observe->state->footprints.workers);
    observe->state->footprints = (struct oribi__footprints){0};
}
