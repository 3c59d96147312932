/* What happened to molds and workers, and what the operator wants. Nothing here decides what to do about it, but for what cannot wait. */
#include "process/supervisor_private.h"

#include "oribi/base/log.h"
#include "oribi/worker/deadline.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define push     oribi__sup_push
#define say      oribi__sup_say
#define place_of oribi__sup_place_of_ticket

static const char *text_of(const struct oribi_event *event)
{
    return event->text && event->text[0] ? event->text : "no reason given";
}

/* The first line of what a process of the next generation says of its failure. The first failure has led to the others. */
static void keep_why(struct oribi_supervisor *sup, uint32_t generation, const struct oribi_event *event)
{
    if (generation == sup->next_generation && event->text && !sup->why[0])
        (void)snprintf(sup->why, sizeof(sup->why), "%.*s", (int)strcspn(event->text, "\n"), event->text); /* cut: a hint */
}

/* --- molds --- */

/* What it means that a mold will never be ready: the end of a start, the end of a reload, or another try later. */
static void mold_lost(struct oribi_supervisor *sup, uint32_t generation, const char *reason, int64_t now_ms)
{
    if (generation == sup->next_generation) {
        oribi__sup_reload_failed(sup, reason);
        return;
    }
    sup->mold_not_before = now_ms + oribi__sup_backoff_ms(sup, ++sup->mold_failures);
    if (!sup->up)
        oribi__sup_begin_stop(sup, 1);
}

static void mold_started(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_place *mold = &sup->molds[i];
        if (mold->state != ORIBI_MOLD_IS_ASKED || mold->generation != event->generation)
            continue;
        *mold = (struct oribi_mold_place){.state = ORIBI_MOLD_IS_LOADING,
                                          .generation = event->generation,
                                          .pid = event->pid,
                                          .until = oribi__deadline_in(sup->config.boot_timeout_ms, now_ms)};
        if (event->pid >= 0)
            return;
        mold->state = ORIBI_MOLD_IS_FREE;
        say(sup, ORIBI_LOG_ERROR, "no process for loading the application: %s", text_of(event));
        if (sup->up || sup->mold_failures + 1 >= ORIBI_BOOT_FAILURES_MAX)
            mold_lost(sup, event->generation, "no process for loading the application", now_ms);
        else
            sup->mold_not_before = now_ms + oribi__sup_backoff_ms(sup, ++sup->mold_failures);
        return;
    }
}

static void mold_ready(struct oribi_supervisor *sup, const struct oribi_event *event)
{
    struct oribi_mold_place *mold = oribi__sup_mold_of_pid(sup, event->pid);
    if (!mold || mold->state != ORIBI_MOLD_IS_LOADING)
        return;
    mold->state = ORIBI_MOLD_IS_READY;
    mold->until = 0;
    sup->mold_failures = 0;
    if (mold->generation != sup->next_generation || !event->config)
        return;
    sup->next_config = *event->config;
    sup->has_next_config = true;
}

static void mold_failed(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    struct oribi_mold_place *mold = oribi__sup_mold_of_pid(sup, event->pid);
    if (!mold || mold->state != ORIBI_MOLD_IS_LOADING)
        return;
    mold->state = ORIBI_MOLD_IS_STOPPING; /* it is on its way out */
    mold->until = now_ms + ORIBI_MOLD_STOP_MS;
    say(sup, ORIBI_LOG_ERROR, "the application did not load: %s", text_of(event));
    keep_why(sup, mold->generation, event);
    mold_lost(sup, mold->generation, "the application did not load", now_ms);
}

static void mold_exited(struct oribi_supervisor *sup, struct oribi_mold_place *mold, int status, int64_t now_ms)
{
    /* Its commands may have died with it, or the fork was done and the report is on its way: nobody can tell for a while. */
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (place->state == ORIBI_PLACE_SPAWNING && place->mold_pid == mold->pid) {
            place->state = ORIBI_PLACE_LOST;
            place->until = now_ms + ORIBI_LOST_MS;
        }
    }
    enum oribi_mold_state state = mold->state;
    mold->state = ORIBI_MOLD_IS_FREE;
    if (sup->stopping)
        return;
    if (state == ORIBI_MOLD_IS_LOADING) {
        const char *reason = oribi__sup_keep(sup, "mold (pid %d) ended while it loaded the application: %s", mold->pid,
                                             oribi__sup_status_text(sup, status));
        if (mold->generation != sup->next_generation)
            say(sup, ORIBI_LOG_ERROR, "%s", reason);
        mold_lost(sup, mold->generation, reason, now_ms);
    } else if (state == ORIBI_MOLD_IS_READY) {
        say(sup, ORIBI_LOG_WARN, "mold (pid %d) ended: %s; its workers live on", mold->pid,
            oribi__sup_status_text(sup, status));
        if (mold->generation == sup->next_generation)
            oribi__sup_reload_failed(sup, "its mold ended");
    }
}

static struct oribi_mold_place *free_mold(struct oribi_supervisor *sup)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (sup->molds[i].state == ORIBI_MOLD_IS_FREE)
            return &sup->molds[i];
    return NULL;
}

/* A mold made of a warm worker takes the place of the one that loaded the generation; its workers replace the others as at a reload. One that
 * comes too late is stopped like every mold of a generation that is not wanted. */
static void mold_promoted(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    struct oribi_mold_place *mold = free_mold(sup);
    bool welcome = mold && !sup->stopping && event->generation == sup->generation;
    if (!welcome) {
        push(sup, ORIBI_ACTION_STOP_MOLD)->pid = event->pid;
        return;
    }
    struct oribi_mold_place *before = oribi__sup_mold_of_generation(sup, sup->generation);
    if (before && before->state != ORIBI_MOLD_IS_ASKED)
        oribi__sup_stop_mold(sup, before, now_ms);
    *mold = (struct oribi_mold_place){.state = ORIBI_MOLD_IS_READY, .generation = event->generation, .pid = event->pid};
    sup->reforking = true;
    sup->refork_until = 0;
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (oribi__is_member(place->state) && place->generation == sup->generation && !place->retire)
            place->retire = "refork";
    }
    say(sup, ORIBI_LOG_INFO, "refork: workers of generation %u come from a warm mold (pid %d) now", event->generation,
        event->pid);
}

/* --- workers --- */

static void worker_forked(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    struct oribi_place *place = place_of(sup, event);
    if (!place || (place->state != ORIBI_PLACE_SPAWNING && place->state != ORIBI_PLACE_LOST))
        return; /* the intermediate and the worker both report; the second report is no news */
    if (event->pid < 0) {
        say(sup, ORIBI_LOG_ERROR, "no process for worker %u: %s", event->slot, text_of(event));
        sup->boot_failed_at = now_ms;
        if (place->generation == sup->next_generation)
            oribi__sup_reload_failed(sup, "no process for a worker");
        oribi__sup_hold(sup, place, oribi__sup_backoff_ms(sup, ++sup->boot_failures), now_ms);
        return;
    }
    place->pid = event->pid;
    bool lost = place->state == ORIBI_PLACE_LOST;
    place->state = ORIBI_PLACE_BOOTING;
    place->until = oribi__deadline_in(sup->config.boot_timeout_ms, now_ms);
    if (lost)
        oribi__sup_kill(sup, place, oribi__cause_mold_ended, now_ms); /* its successor was ordered already */
}

static void worker_ready(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    worker_forked(sup, event, now_ms); /* when the intermediate was slower than the worker */
    struct oribi_place *place = place_of(sup, event);
    if (!place || place->state != ORIBI_PLACE_BOOTING)
        return;
    place->state = ORIBI_PLACE_SERVING;
    place->until = place->cause ? oribi__sup_stop_deadline(sup, now_ms) : 0; /* the program has asked it to end already */
    place->ready_at = now_ms;
    if (!sup->config.patient && place->generation == sup->generation)
        sup->boot_failures = 0;
    if (sup->up)
        return;
    sup->up = true;
    push(sup, ORIBI_ACTION_UP);
}

static void worker_failed(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    worker_forked(sup, event, now_ms);
    struct oribi_place *place = place_of(sup, event);
    if (!place || place->state != ORIBI_PLACE_BOOTING)
        return;
    say(sup, ORIBI_LOG_ERROR, "worker %u (pid %d) could not start: %s", event->slot, event->pid, text_of(event));
    keep_why(sup, place->generation, event);
}

static void worker_leaving(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    struct oribi_place *place = place_of(sup, event);
    if (!place || place->state != ORIBI_PLACE_SERVING)
        return;
    place->state = ORIBI_PLACE_LEAVING;
    place->until = oribi__sup_stop_deadline(sup, now_ms);
}

/* Counts starts that failed, in a row. Where workers are always ready at once (patient), one that lasts less than a second is one of them. */
static bool count_failed_start(struct oribi_supervisor *sup, const struct oribi_place *place, bool failed,
                               const char *reason, int64_t now_ms)
{
    bool in_vain = place->ready_at == 0 && (failed || reason == oribi__cause_boot_timeout);
    bool early = sup->config.patient && failed && now_ms - place->ready_at < ORIBI_EARLY_EXIT_MS;
    bool long_ago = now_ms - sup->boot_failed_at > 2 * ORIBI_RESPAWN_DELAY_MS_MAX;
    if (long_ago || (sup->config.patient && !in_vain && !early))
        sup->boot_failures = 0;
    if (!in_vain && !early)
        return false;
    sup->boot_failures++;
    sup->boot_failed_at = now_ms;
    return true;
}

/* How long the slot of a worker that has ended stays empty. A worker that served and died holds up nothing but its own slot, and that only
 * when deaths there become a series. */
static int64_t respawn_wait_ms(struct oribi_supervisor *sup, struct oribi_place *place, bool failed, const char *reason,
                               int64_t now_ms)
{
    if (place->generation != sup->generation)
        return 0;
    if (count_failed_start(sup, place, failed, reason, now_ms))
        return oribi__sup_backoff_ms(sup, sup->boot_failures);
    if (!failed)
        return 0;
    return sup->config.patient ? sup->config.err_respawn_interval_ms : oribi__sup_death_wait_ms(sup, place, now_ms);
}

/* The call that the worker was in when it died, as words for the log; "" when it was in none. May be torn: it is only shown. */
static const char *call_text(struct oribi_supervisor *sup, const struct oribi_place *place)
{
    const struct oribi_slot *slot = &sup->slots[oribi__sup_number(sup, place)];
    uint32_t threads = atomic_load_explicit(&slot->threads_busy, memory_order_relaxed);
    if (atomic_load_explicit(&slot->call_started_us, memory_order_acquire) == 0)
        return "";
    if (threads > 1)
        return oribi__sup_keep(sup, " during %u calls, one of them %.*s", threads, ORIBI_SLOT_LINE_CAP - 1, slot->line);
    return oribi__sup_keep(sup, " during %.*s", ORIBI_SLOT_LINE_CAP - 1, slot->line);
}

static void say_ended(struct oribi_supervisor *sup, const struct oribi_place *place, bool failed, const char *what,
                      int64_t wait_ms)
{
    const char *then = "";
    if (failed && place->generation == sup->generation && !sup->stopping)
        then = wait_ms ? oribi__sup_keep(sup, "; replacing it in %lld ms", (long long)wait_ms) : "; replacing it";
    say(sup, failed ? ORIBI_LOG_WARN : ORIBI_LOG_DEBUG, "%s%s", what, then);
}

static void worker_exited(struct oribi_supervisor *sup, struct oribi_place *place, int status, int64_t now_ms)
{
    uint32_t number = oribi__sup_number(sup, place);
    bool never_ready = place->ready_at == 0;
    if (!place->cause && !never_ready && WIFEXITED(status) && WEXITSTATUS(status) == ORIBI_EXIT_CALL_DEADLINE)
        place->cause = oribi__cause_call_deadline; /* it has said why, and the next one is wanted at once */
    const char *call = place->cause || never_ready ? "" : call_text(sup, place);
    bool failed = !place->cause && (status != 0 || never_ready || (call[0] && !sup->config.patient));
    const char *reason = place->cause ? place->cause : oribi__sup_status_text(sup, status);
    const char *what = oribi__sup_keep(sup, "worker %u (pid %d) ended%s: %s%s", number, place->pid,
                                       never_ready && failed ? " before it was ready" : "", reason, call);
    int64_t wait_ms = respawn_wait_ms(sup, place, failed, reason, now_ms);
    say_ended(sup, place, failed, what, wait_ms);
    struct oribi_action *action = push(sup, ORIBI_ACTION_WORKER_EXIT);
    action->pid = place->pid;
    action->status = status;
    action->slot = number;
    action->generation = place->generation;
    action->text = reason;
    oribi__sup_hold(sup, place, wait_ms, now_ms);
    place->pid = 0;
    if (place->generation == sup->next_generation && (failed || never_ready))
        oribi__sup_reload_failed(sup, what);
}

/* --- the operator --- */

static void resize(struct oribi_supervisor *sup, int32_t delta)
{
    int64_t target = (int64_t)sup->target + delta;
    if (target < 1)
        target = 1;
    if (target > sup->config.workers_max)
        target = sup->config.workers_max;
    if (target == sup->target)
        say(sup, ORIBI_LOG_WARN, "the number of workers stays %u: that is the %s", sup->target,
            delta < 0 ? "least" : "most");
    else
        say(sup, ORIBI_LOG_INFO, "workers: %lld, were %u", (long long)target, sup->target);
    sup->target = (uint32_t)target;
}

static void reopen(struct oribi_supervisor *sup)
{
    push(sup, ORIBI_ACTION_REOPEN);
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        enum oribi_place_state state = sup->places[i].state;
        sup->places[i].reopen = oribi__is_member(state) || oribi__has_process(state);
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        sup->molds[i].reopen = sup->molds[i].state != ORIBI_MOLD_IS_FREE;
}

/* The first wish to stop is granted gracefully, after drain_delay if there is one; the second at once. */
static void stop(struct oribi_supervisor *sup, bool now, int64_t now_ms)
{
    now = now || sup->stopping || sup->stop_at;
    if (now) {
        if (!sup->stopping_now)
            say(sup, ORIBI_LOG_INFO, "stopping now");
        sup->stopping_now = true;
        oribi__sup_begin_stop(sup, 0);
    } else if (sup->config.drain_delay_ms > 0 && sup->up) {
        sup->stop_at = now_ms + sup->config.drain_delay_ms;
        say(sup, ORIBI_LOG_INFO, "stopping in %lld ms", (long long)sup->config.drain_delay_ms);
        push(sup, ORIBI_ACTION_STOP_SOON);
    } else {
        say(sup, ORIBI_LOG_INFO, "stopping: %u worker%s to finish what has begun", oribi_supervisor_alive(sup),
            oribi_log_plural(oribi_supervisor_alive(sup)));
        oribi__sup_begin_stop(sup, 0);
    }
}

static void upgrade(struct oribi_supervisor *sup)
{
    if (sup->stopping || sup->stop_at)
        return;
    const char *reason = !sup->up             ? "the server is not up yet"
                         : sup->upgrade_pid   ? "one is under way"
                         : sup->config.is_init ? "this server is process 1, with which its container ends: reload it (HUP), or start "
                                                 "another container"
                                              : NULL;
    if (reason) {
        say(sup, ORIBI_LOG_WARN, "no upgrade: %s", reason);
        push(sup, ORIBI_ACTION_UPGRADE_REFUSED)->text = reason;
        return;
    }
    say(sup, ORIBI_LOG_INFO, "upgrade: starting a successor");
    sup->upgrade_pid = -1;
    push(sup, ORIBI_ACTION_START_UPGRADE);
}

static void upgrade_started(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    if (event->pid < 0) {
        oribi__sup_upgrade_failed(sup, text_of(event));
        return;
    }
    sup->upgrade_pid = event->pid;
    sup->upgrade_until = oribi__deadline_in(sup->config.boot_timeout_ms * 2, now_ms);
    if (sup->upgrade_until)
        sup->upgrade_until += ORIBI_UPGRADE_SPARE_MS;
    if (sup->stopping)
        oribi__sup_signal(sup, event->pid, SIGTERM);
}

static void upgrade_ready(struct oribi_supervisor *sup)
{
    if (sup->upgrade_pid <= 0 || sup->stopping)
        return;
    say(sup, ORIBI_LOG_INFO, "upgrade: pid %d serves, leaving to it", sup->upgrade_pid);
    sup->handed_over = true;
    sup->upgrade_until = 0;
    struct oribi_action *action = push(sup, ORIBI_ACTION_UPGRADED);
    action->pid = sup->upgrade_pid;
    oribi__sup_begin_stop(sup, 0);
}

static void successor_exited(struct oribi_supervisor *sup, int status)
{
    if (sup->stopping)
        sup->upgrade_pid = 0, sup->upgrade_until = 0;
    else
        oribi__sup_upgrade_failed(sup,
                                  oribi__sup_keep(sup, "the successor ended: %s", oribi__sup_status_text(sup, status)));
}

static void exited(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    struct oribi_mold_place *mold = oribi__sup_mold_of_pid(sup, event->pid);
    struct oribi_place *place = oribi__sup_place_of_pid(sup, event->pid);
    if (mold)
        mold_exited(sup, mold, event->status, now_ms);
    else if (place)
        worker_exited(sup, place, event->status, now_ms);
    else if (event->pid == sup->upgrade_pid && !sup->handed_over)
        successor_exited(sup, event->status);
    /* Anything else is an intermediate whose mold died, or a child that a worker's child left behind: reaped, and that is all. */
}

/* --- a program that starts and stops of its own accord (prefork.h) --- */

static void pause_spawning(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    sup->paused = true;
    if (!event->status)
        return;
    sup->send_signal = event->status; /* one that is still under way has nobody left to go to who would not get this one */
    sup->send_interval_ms = event->bytes;
    sup->send_at = now_ms;
    sup->send_after = 0;
    sup->send_upto = sup->last_ticket;
}

/* The mold is the process that goes on, so that it needs no loading: it serves the new generation as it served the one before. */
static void resume(struct oribi_supervisor *sup)
{
    if (sup->stopping || !sup->paused)
        return;
    sup->paused = false;
    if (sup->next_generation) {
        sup->reload_again = false;
        oribi__sup_reload_failed(sup, "the program starts a generation of its own");
    }
    struct oribi_mold_place *mold = oribi__sup_mold_of_generation(sup, sup->own_generation);
    sup->rolling = false;
    sup->boot_failures = 0;
    sup->mold_failures = 0;
    sup->mold_not_before = 0;
    sup->left_generation = sup->generation;
    sup->generation = sup->own_generation = ++sup->last_generation;
    if (mold)
        mold->generation = sup->generation;
    for (uint32_t i = 0; i < sup->slot_count; i++)
        if (sup->places[i].state == ORIBI_PLACE_HELD)
            sup->places[i].state = ORIBI_PLACE_FREE; /* the failure was another generation's */
}

static void measured(struct oribi_supervisor *sup, const struct oribi_event *event)
{
    struct oribi_place *place = place_of(sup, event);
    if (!place || place->state != ORIBI_PLACE_SERVING || place->retire || !sup->config.memory_max ||
        event->bytes <= sup->config.memory_max)
        return;
    place->retire = "memory_max";
    say(sup, ORIBI_LOG_INFO, "worker %u (pid %d) has %lld MB, memory_max is %lld MB: it is replaced", event->slot,
        place->pid, (long long)(event->bytes >> 20), (long long)(sup->config.memory_max >> 20));
}

void oribi__sup_note(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    switch (event->type) {
    case ORIBI_EVENT_TICK:
        break;
    case ORIBI_EVENT_START:
        sup->started = true;
        sup->generation = sup->last_generation = sup->own_generation = 1;
        break;
    case ORIBI_EVENT_MOLD_STARTED:
        mold_started(sup, event, now_ms);
        break;
    case ORIBI_EVENT_MOLD_READY:
        mold_ready(sup, event);
        break;
    case ORIBI_EVENT_MOLD_FAILED:
        mold_failed(sup, event, now_ms);
        break;
    case ORIBI_EVENT_MOLD_PROMOTED:
        mold_promoted(sup, event, now_ms);
        break;
    case ORIBI_EVENT_WORKER_FORKED:
        worker_forked(sup, event, now_ms);
        break;
    case ORIBI_EVENT_WORKER_READY:
        worker_ready(sup, event, now_ms);
        break;
    case ORIBI_EVENT_WORKER_FAILED:
        worker_failed(sup, event, now_ms);
        break;
    case ORIBI_EVENT_WORKER_LEAVING:
        worker_leaving(sup, event, now_ms);
        break;
    case ORIBI_EVENT_EXITED:
        exited(sup, event, now_ms);
        break;
    case ORIBI_EVENT_STOP:
    case ORIBI_EVENT_STOP_NOW:
        stop(sup, event->type == ORIBI_EVENT_STOP_NOW, now_ms);
        break;
    case ORIBI_EVENT_RESIZE:
        resize(sup, event->delta);
        break;
    case ORIBI_EVENT_WINCH:
        say(sup, ORIBI_LOG_INFO, "workers: 0, were %u", sup->target);
        sup->target = 0;
        break;
    case ORIBI_EVENT_REOPEN:
        reopen(sup);
        break;
    case ORIBI_EVENT_MEASURED:
        measured(sup, event);
        break;
    case ORIBI_EVENT_RELOAD:
        oribi__sup_reload(sup);
        break;
    case ORIBI_EVENT_UPGRADE:
        upgrade(sup);
        break;
    case ORIBI_EVENT_UPGRADE_STARTED:
        upgrade_started(sup, event, now_ms);
        break;
    case ORIBI_EVENT_UPGRADE_READY:
        upgrade_ready(sup);
        break;
    case ORIBI_EVENT_PAUSE:
        pause_spawning(sup, event, now_ms);
        break;
    case ORIBI_EVENT_RESUME:
        resume(sup);
        break;
    }
}
