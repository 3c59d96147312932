/* The supervisor's decisions. Two halves: feed() takes note of what happened and touches nothing but the state; next() compares the state
 * with what is wanted and returns one action at a time, changing the state as if it had been carried out. What follows from the state
 * (who is to be stopped, killed, spawned) is never stored as a to-do list, so it cannot go stale; only what an event causes once (log
 * lines, a worker's exit report) waits in a small queue. */
#include "oribi/server/supervisor.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Compared by address. */
static const char cause_asked[] = "asked to stop";
static const char cause_boot_timeout[] = "boot_timeout";
static const char cause_shutdown_timeout[] = "shutdown_timeout";
static const char cause_call_deadline[] = "call deadline";
static const char cause_mold_ended[] = "its mold ended";

/* --- queue and texts --- */

static struct oribi_action *push(struct oribi_supervisor *sup, enum oribi_action_type type)
{
    assert(sup->queue_len < ORIBI_SUPERVISOR_QUEUE_CAP); /* one event causes a handful */
    uint32_t at = (sup->queue_head + sup->queue_len++) % ORIBI_SUPERVISOR_QUEUE_CAP;
    sup->queue[at] = (struct oribi_action){.type = type};
    return &sup->queue[at];
}

static const char *vkeep(struct oribi_supervisor *sup, const char *format, va_list args)
{
    size_t room = sizeof(sup->texts) - sup->text_len;
    if (room < 2)
        return "";
    char *text = sup->texts + sup->text_len;
    int n = vsnprintf(text, room, format, args);
    if (n < 0)
        return "";
    sup->text_len += ((size_t)n < room ? (size_t)n : room - 1) + 1;
    return text;
}

__attribute__((format(printf, 2, 3))) static const char *keep(struct oribi_supervisor *sup, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = vkeep(sup, format, args);
    va_end(args);
    return text;
}

__attribute__((format(printf, 3, 4))) static void say(struct oribi_supervisor *sup, enum oribi_log_level level,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = vkeep(sup, format, args);
    va_end(args);
    struct oribi_action *action = push(sup, ORIBI_ACTION_LOG);
    action->level = level;
    action->text = text;
}

static void send_signal(struct oribi_supervisor *sup, int32_t pid, int number)
{
    struct oribi_action *action = push(sup, ORIBI_ACTION_SIGNAL);
    action->pid = pid;
    action->signal = number;
}

/* --- looking at the state --- */

static bool has_process(enum oribi_place_state state)
{
    return state == ORIBI_PLACE_BOOTING || state == ORIBI_PLACE_SERVING || state == ORIBI_PLACE_LEAVING ||
           state == ORIBI_PLACE_STOPPING || state == ORIBI_PLACE_KILLED;
}

/* Counts as one of the workers that are wanted. */
static bool is_member(enum oribi_place_state state)
{
    return state == ORIBI_PLACE_HELD || state == ORIBI_PLACE_SPAWNING || state == ORIBI_PLACE_BOOTING ||
           state == ORIBI_PLACE_SERVING;
}

static uint32_t member_count(const struct oribi_supervisor *sup)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sup->slot_count; i++)
        count += is_member(sup->places[i].state);
    return count;
}

static uint32_t wanted(const struct oribi_supervisor *sup)
{
    return sup->stopping || !sup->started ? 0 : sup->target;
}

uint32_t oribi_supervisor_serving(const struct oribi_supervisor *sup)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sup->slot_count; i++)
        count += sup->places[i].state == ORIBI_PLACE_SERVING;
    return count;
}

uint32_t oribi_supervisor_alive(const struct oribi_supervisor *sup)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sup->slot_count; i++)
        count += has_process(sup->places[i].state);
    return count;
}

static struct oribi_place *place_of_pid(struct oribi_supervisor *sup, int32_t pid)
{
    for (uint32_t i = 0; i < sup->slot_count; i++)
        if (has_process(sup->places[i].state) && sup->places[i].pid == pid)
            return &sup->places[i];
    return NULL;
}

/* The place an event speaks of, if it still belongs to that spawn. */
static struct oribi_place *place_of_ticket(struct oribi_supervisor *sup, const struct oribi_event *event)
{
    if (event->slot >= sup->slot_count)
        return NULL;
    struct oribi_place *place = &sup->places[event->slot];
    return place->state != ORIBI_PLACE_FREE && place->ticket == event->ticket ? place : NULL;
}

static struct oribi_mold_place *mold_of_pid(struct oribi_supervisor *sup, int32_t pid)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (sup->molds[i].state > ORIBI_MOLD_IS_ASKED && sup->molds[i].pid == pid)
            return &sup->molds[i];
    return NULL;
}

static bool mold_usable(const struct oribi_mold_place *mold, uint32_t generation)
{
    return mold->generation == generation &&
           (mold->state == ORIBI_MOLD_IS_ASKED || mold->state == ORIBI_MOLD_IS_LOADING ||
            mold->state == ORIBI_MOLD_IS_READY);
}

/* The mold that forks workers of `generation`, loading or ready, or NULL. */
static struct oribi_mold_place *mold_of_generation(struct oribi_supervisor *sup, uint32_t generation)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (mold_usable(&sup->molds[i], generation))
            return &sup->molds[i];
    return NULL;
}

static uint32_t number_of(const struct oribi_supervisor *sup, const struct oribi_place *place)
{
    return (uint32_t)(place - sup->places);
}

static const char *status_text(struct oribi_supervisor *sup, int status)
{
    if (WIFSIGNALED(status))
        return keep(sup, "signal %d", WTERMSIG(status));
    return keep(sup, "exit code %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* err_respawn_interval, doubled for each further failure in a row. */
static int64_t backoff_ms(const struct oribi_supervisor *sup, uint32_t failures)
{
    int64_t delay = sup->config.err_respawn_interval_ms;
    for (uint32_t i = 1; i < failures && delay < ORIBI_RESPAWN_DELAY_MS_MAX; i++)
        delay *= 2;
    bool doubled_too_far = failures > 1 && delay > ORIBI_RESPAWN_DELAY_MS_MAX;
    return doubled_too_far ? ORIBI_RESPAWN_DELAY_MS_MAX : delay;
}

/* A timeout of 0 is none. */
static int64_t deadline_in(int64_t timeout_ms, int64_t now_ms)
{
    return timeout_ms ? now_ms + timeout_ms : 0;
}

static int64_t stop_deadline(const struct oribi_supervisor *sup, int64_t now_ms)
{
    return sup->config.shutdown_timeout_ms ? now_ms + sup->config.shutdown_timeout_ms + ORIBI_KILL_MS : 0;
}

/* --- changing the state --- */

static void kill_place(struct oribi_supervisor *sup, struct oribi_place *place, const char *cause, int64_t now_ms)
{
    assert(has_process(place->state) && place->state != ORIBI_PLACE_KILLED);
    place->state = ORIBI_PLACE_KILLED;
    place->until = now_ms + ORIBI_UNKILLABLE_MS;
    place->cause = cause;
    send_signal(sup, place->pid, SIGKILL);
}

static void stop_place(struct oribi_supervisor *sup, struct oribi_place *place, int64_t now_ms)
{
    place->state = ORIBI_PLACE_STOPPING;
    place->until = stop_deadline(sup, now_ms);
    place->cause = cause_asked;
    send_signal(sup, place->pid, SIGTERM);
}

static void hold_place(struct oribi_supervisor *sup, struct oribi_place *place, uint32_t failures, int64_t now_ms)
{
    place->state = sup->stopping ? ORIBI_PLACE_FREE : ORIBI_PLACE_HELD;
    place->until = now_ms + backoff_ms(sup, failures);
}

static void kill_mold(struct oribi_supervisor *sup, struct oribi_mold_place *mold, int64_t now_ms)
{
    mold->state = ORIBI_MOLD_IS_KILLED;
    mold->until = now_ms + ORIBI_UNKILLABLE_MS;
    send_signal(sup, mold->pid, SIGKILL);
}

/* A ready mold leaves at the end of its command socket; one that is still loading does not look at it and gets the signal as well. */
static void stop_mold(struct oribi_supervisor *sup, struct oribi_mold_place *mold, int64_t now_ms)
{
    push(sup, ORIBI_ACTION_STOP_MOLD)->pid = mold->pid;
    if (mold->state == ORIBI_MOLD_IS_LOADING)
        send_signal(sup, mold->pid, SIGTERM);
    mold->state = ORIBI_MOLD_IS_STOPPING;
    mold->until = now_ms + (sup->stopping_now ? ORIBI_KILL_MS : ORIBI_MOLD_STOP_MS);
}

static void begin_stop(struct oribi_supervisor *sup, int exit_code)
{
    if (sup->stopping)
        return;
    sup->stopping = true;
    sup->exit_code = exit_code;
    push(sup, ORIBI_ACTION_STOPPING);
}

/* --- events --- */

static void mold_started(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_place *mold = &sup->molds[i];
        if (mold->state != ORIBI_MOLD_IS_ASKED || mold->generation != event->generation)
            continue;
        if (event->pid >= 0) {
            *mold = (struct oribi_mold_place){.state = ORIBI_MOLD_IS_LOADING,
                                              .generation = event->generation,
                                              .pid = event->pid,
                                              .until = deadline_in(sup->config.boot_timeout_ms, now_ms)};
            return;
        }
        mold->state = ORIBI_MOLD_IS_FREE;
        sup->mold_not_before = now_ms + backoff_ms(sup, ++sup->mold_failures);
        say(sup, ORIBI_LOG_ERROR, "no process for loading the application: %s", event->text ? event->text : "");
        if (!sup->up && sup->mold_failures >= ORIBI_BOOT_FAILURES_MAX)
            begin_stop(sup, 1);
        return;
    }
}

static void mold_failed(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    struct oribi_mold_place *mold = mold_of_pid(sup, event->pid);
    if (!mold || mold->state != ORIBI_MOLD_IS_LOADING)
        return;
    say(sup, ORIBI_LOG_ERROR, "the application did not load: %s", event->text ? event->text : "no reason given");
    mold->state = ORIBI_MOLD_IS_STOPPING; /* it is on its way out */
    mold->until = now_ms + ORIBI_MOLD_STOP_MS;
    sup->mold_not_before = now_ms + backoff_ms(sup, ++sup->mold_failures);
    if (!sup->up)
        begin_stop(sup, 1);
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
    if (state == ORIBI_MOLD_IS_READY)
        say(sup, ORIBI_LOG_WARN, "mold (pid %d) ended: %s; its workers live on", mold->pid, status_text(sup, status));
    if (state != ORIBI_MOLD_IS_LOADING || sup->stopping)
        return;
    say(sup, ORIBI_LOG_ERROR, "mold (pid %d) ended while it loaded the application: %s", mold->pid,
        status_text(sup, status));
    sup->mold_not_before = now_ms + backoff_ms(sup, ++sup->mold_failures);
    if (!sup->up)
        begin_stop(sup, 1);
}

static void worker_forked(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    struct oribi_place *place = place_of_ticket(sup, event);
    if (!place || (place->state != ORIBI_PLACE_SPAWNING && place->state != ORIBI_PLACE_LOST))
        return; /* the intermediate and the worker both report; the second report is no news */
    if (event->pid < 0) {
        say(sup, ORIBI_LOG_ERROR, "no process for worker %u: %s", event->slot, event->text ? event->text : "");
        sup->boot_failed_at = now_ms;
        hold_place(sup, place, ++sup->boot_failures, now_ms);
        return;
    }
    place->pid = event->pid;
    bool lost = place->state == ORIBI_PLACE_LOST;
    place->state = ORIBI_PLACE_BOOTING;
    place->until = deadline_in(sup->config.boot_timeout_ms, now_ms);
    if (lost)
        kill_place(sup, place, cause_mold_ended, now_ms); /* its successor was ordered already */
}

static void worker_ready(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    worker_forked(sup, event, now_ms); /* when the intermediate was slower than the worker */
    struct oribi_place *place = place_of_ticket(sup, event);
    if (!place || place->state != ORIBI_PLACE_BOOTING)
        return;
    place->state = ORIBI_PLACE_SERVING;
    place->until = 0;
    place->ready_at = now_ms;
    if (sup->up)
        return;
    sup->up = true;
    push(sup, ORIBI_ACTION_UP);
}

static void worker_failed(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    worker_forked(sup, event, now_ms);
    struct oribi_place *place = place_of_ticket(sup, event);
    if (place && place->state == ORIBI_PLACE_BOOTING)
        say(sup, ORIBI_LOG_ERROR, "worker %u (pid %d) could not start: %s", event->slot, event->pid,
            event->text ? event->text : "no reason given");
}

static void worker_leaving(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    struct oribi_place *place = place_of_ticket(sup, event);
    if (!place || place->state != ORIBI_PLACE_SERVING)
        return;
    place->state = ORIBI_PLACE_LEAVING;
    place->until = stop_deadline(sup, now_ms);
}

static void worker_exited(struct oribi_supervisor *sup, struct oribi_place *place, int status, int64_t now_ms)
{
    bool never_ready = place->ready_at == 0;
    bool failed = !place->cause && (status != 0 || never_ready);
    const char *reason = place->cause ? place->cause : status_text(sup, status);
    say(sup, failed ? ORIBI_LOG_WARN : ORIBI_LOG_DEBUG, "worker %u (pid %d) ended%s: %s", number_of(sup, place),
        place->pid, never_ready && failed ? " before it was ready" : "", reason);
    struct oribi_action *action = push(sup, ORIBI_ACTION_WORKER_EXIT);
    action->pid = place->pid;
    action->status = status;
    action->slot = number_of(sup, place);
    action->generation = place->generation;
    action->text = reason;

    bool booted_in_vain = never_ready && (failed || reason == cause_boot_timeout);
    bool early = booted_in_vain || (failed && now_ms - place->ready_at < ORIBI_EARLY_EXIT_MS);
    bool long_ago = now_ms - sup->boot_failed_at > 2 * ORIBI_RESPAWN_DELAY_MS_MAX;
    if (!early || long_ago)
        sup->boot_failures = 0;
    if (early) {
        sup->boot_failures++;
        sup->boot_failed_at = now_ms;
    }
    if (failed || early)
        hold_place(sup, place, sup->boot_failures, now_ms);
    else
        place->state = ORIBI_PLACE_FREE;
    place->pid = 0;
}

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
    for (uint32_t i = 0; i < sup->slot_count; i++)
        sup->places[i].reopen = is_member(sup->places[i].state) || has_process(sup->places[i].state);
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        sup->molds[i].reopen = sup->molds[i].state != ORIBI_MOLD_IS_FREE;
}

static void stop(struct oribi_supervisor *sup, bool now)
{
    if (sup->stopping)
        now = true;
    if (now && !sup->stopping_now)
        say(sup, ORIBI_LOG_INFO, "stopping now");
    else if (!now)
        say(sup, ORIBI_LOG_INFO, "stopping: %u workers finish what they have begun", oribi_supervisor_alive(sup));
    sup->stopping_now |= now;
    begin_stop(sup, 0);
}

static void exited(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    struct oribi_mold_place *mold = mold_of_pid(sup, event->pid);
    if (mold)
        mold_exited(sup, mold, event->status, now_ms);
    struct oribi_place *place = place_of_pid(sup, event->pid);
    if (place)
        worker_exited(sup, place, event->status, now_ms);
    /* Anything else is an intermediate whose mold died, or a child that a worker's child left behind: reaped, and that is all. */
}

void oribi_supervisor_init(struct oribi_supervisor *sup, const struct oribi_supervisor_config *config,
                           const struct oribi_slot *slots, uint32_t slot_count)
{
    assert(slot_count <= ORIBI_SLOTS_MAX && config->workers <= config->workers_max);
    assert(slot_count >= 2 * config->workers_max);
    memset(sup, 0, sizeof(*sup));
    sup->config = *config;
    sup->slots = slots;
    sup->slot_count = slot_count;
    sup->target = config->workers;
    sup->spawned_at = -1;
}

void oribi_supervisor_feed(struct oribi_supervisor *sup, const struct oribi_event *event, int64_t now_ms)
{
    assert(sup->queue_len == 0); /* the caller has taken what the last event caused */
    sup->text_len = 0;
    switch (event->type) {
    case ORIBI_EVENT_TICK:
        break;
    case ORIBI_EVENT_START:
        sup->started = true;
        sup->generation = sup->last_generation = 1;
        break;
    case ORIBI_EVENT_MOLD_STARTED:
        mold_started(sup, event, now_ms);
        break;
    case ORIBI_EVENT_MOLD_READY: {
        struct oribi_mold_place *mold = mold_of_pid(sup, event->pid);
        if (mold && mold->state == ORIBI_MOLD_IS_LOADING) {
            mold->state = ORIBI_MOLD_IS_READY;
            mold->until = 0;
            sup->mold_failures = 0;
        }
        break;
    }
    case ORIBI_EVENT_MOLD_FAILED:
        mold_failed(sup, event, now_ms);
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
        stop(sup, false);
        break;
    case ORIBI_EVENT_STOP_NOW:
        stop(sup, true);
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
    }
}

/* --- what follows from the state; each step queues actions for one thing and says so, or has nothing to do --- */

static bool place_expired(struct oribi_supervisor *sup, struct oribi_place *place, int64_t now_ms)
{
    uint32_t number = number_of(sup, place);
    struct oribi_mold_place *mold;
    switch (place->state) {
    case ORIBI_PLACE_HELD:
    case ORIBI_PLACE_LOST:
        place->state = ORIBI_PLACE_FREE;
        return false; /* no action by itself */
    case ORIBI_PLACE_SPAWNING:
        mold = mold_of_pid(sup, place->mold_pid);
        place->state = ORIBI_PLACE_LOST;
        place->until = now_ms + ORIBI_LOST_MS;
        if (!mold || mold->state == ORIBI_MOLD_IS_KILLED)
            return false;
        say(sup, ORIBI_LOG_ERROR, "mold (pid %d) did not fork worker %u within boot_timeout: killed", mold->pid, number);
        kill_mold(sup, mold, now_ms);
        return true;
    case ORIBI_PLACE_BOOTING:
        say(sup, ORIBI_LOG_ERROR, "worker %u (pid %d) was not ready within boot_timeout: killed", number, place->pid);
        kill_place(sup, place, cause_boot_timeout, now_ms);
        return true;
    case ORIBI_PLACE_LEAVING:
    case ORIBI_PLACE_STOPPING:
        if (!place->interrupted)
            say(sup, ORIBI_LOG_WARN, "worker %u (pid %d) did not end within shutdown_timeout: killed", number,
                place->pid);
        kill_place(sup, place, place->interrupted ? cause_asked : cause_shutdown_timeout, now_ms);
        return true;
    case ORIBI_PLACE_KILLED:
        place->until = 0;
        say(sup, ORIBI_LOG_ERROR, "worker %u (pid %d) was killed and does not end", number, place->pid);
        return true;
    case ORIBI_PLACE_FREE:
    case ORIBI_PLACE_SERVING:
        break;
    }
    place->until = 0;
    return false;
}

static bool mold_expired(struct oribi_supervisor *sup, struct oribi_mold_place *mold, int64_t now_ms)
{
    mold->until = 0;
    if (mold->state == ORIBI_MOLD_IS_LOADING) {
        say(sup, ORIBI_LOG_ERROR, "the application did not load within boot_timeout");
        sup->mold_not_before = now_ms + backoff_ms(sup, ++sup->mold_failures);
        kill_mold(sup, mold, now_ms);
        if (!sup->up)
            begin_stop(sup, 1);
    } else if (mold->state == ORIBI_MOLD_IS_STOPPING) {
        kill_mold(sup, mold, now_ms);
    } else if (mold->state == ORIBI_MOLD_IS_KILLED) {
        say(sup, ORIBI_LOG_ERROR, "mold (pid %d) was killed and does not end", mold->pid);
    } else {
        return false;
    }
    return true;
}

static bool step_deadlines(struct oribi_supervisor *sup, int64_t now_ms)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (place->state != ORIBI_PLACE_FREE && place->until && place->until <= now_ms &&
            place_expired(sup, place, now_ms))
            return true;
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_place *mold = &sup->molds[i];
        if (mold->state != ORIBI_MOLD_IS_FREE && mold->until && mold->until <= now_ms &&
            mold_expired(sup, mold, now_ms))
            return true;
    }
    return false;
}

/* Remembers since when a worker's call has been over its deadline. A look that comes late (the machine slept, we were stopped) forgives
 * everything: the workers have not run in that time either. */
static void look_at_calls(struct oribi_supervisor *sup, int64_t now_ms)
{
    bool jumped = now_ms - sup->watched_at > ORIBI_WATCH_JUMP_MS;
    sup->watched_at = now_ms;
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        const struct oribi_slot *slot = &sup->slots[i];
        /* Pairs with the worker's release stores; a started time of another call than the deadline's only delays us by one look. */
        int64_t deadline = atomic_load_explicit(&slot->call_deadline_us, memory_order_acquire);
        int64_t started = atomic_load_explicit(&slot->call_started_us, memory_order_acquire);
        bool overdue = has_process(place->state) && deadline && started && deadline <= now_ms * 1000;
        if (!overdue || jumped)
            place->overdue_since = 0;
        else if (!place->overdue_since || started != place->call_started)
            place->overdue_since = now_ms;
        place->call_started = started;
    }
}

static bool step_watch(struct oribi_supervisor *sup, int64_t now_ms)
{
    if (!sup->config.watch)
        return false;
    if (now_ms - sup->watched_at >= ORIBI_WATCH_MS)
        look_at_calls(sup, now_ms);
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (!place->overdue_since || now_ms - place->overdue_since < ORIBI_CALL_GRACE_MS ||
            !has_process(place->state) || place->state == ORIBI_PLACE_KILLED)
            continue;
        char line[ORIBI_SLOT_LINE_CAP];
        memcpy(line, sup->slots[i].line, sizeof(line)); /* may be torn: it is only shown */
        line[sizeof(line) - 1] = '\0';
        say(sup, ORIBI_LOG_ERROR, "worker %u (pid %d) killed, a call is %lld ms old and %lld ms over call_timeout: %s", i,
            place->pid, (long long)(now_ms - place->call_started / 1000),
            (long long)(now_ms - sup->slots[i].call_deadline_us / 1000), line);
        kill_place(sup, place, cause_call_deadline, now_ms);
        return true;
    }
    return false;
}

static bool step_give_up(struct oribi_supervisor *sup)
{
    if (sup->up || sup->stopping || sup->boot_failures < ORIBI_BOOT_FAILURES_MAX)
        return false;
    for (uint32_t i = 0; i < sup->slot_count; i++)
        if (sup->places[i].state == ORIBI_PLACE_SPAWNING || sup->places[i].state == ORIBI_PLACE_BOOTING)
            return false;
    (void)snprintf(sup->exit_text, sizeof(sup->exit_text), "giving up: no worker came up, %u attempts",
                   sup->boot_failures);
    begin_stop(sup, 1);
    return true;
}

static bool step_stop_now(struct oribi_supervisor *sup, int64_t now_ms)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (place->interrupted || !has_process(place->state) || place->state == ORIBI_PLACE_KILLED)
            continue;
        place->interrupted = true;
        place->state = ORIBI_PLACE_STOPPING;
        place->until = now_ms + ORIBI_KILL_MS;
        place->cause = cause_asked;
        send_signal(sup, place->pid, SIGINT);
        return true;
    }
    return false;
}

/* True while something of ours may still be alive. A process that kill -9 does not end is left to init. */
static bool anything_left(const struct oribi_supervisor *sup)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        const struct oribi_place *place = &sup->places[i];
        bool hopeless = place->state == ORIBI_PLACE_KILLED && !place->until;
        if (place->state == ORIBI_PLACE_SPAWNING || (has_process(place->state) && !hopeless))
            return true;
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (sup->molds[i].state != ORIBI_MOLD_IS_FREE &&
            !(sup->molds[i].state == ORIBI_MOLD_IS_KILLED && !sup->molds[i].until))
            return true;
    return false;
}

static bool step_stop(struct oribi_supervisor *sup, int64_t now_ms)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_place *mold = &sup->molds[i];
        if (mold->state == ORIBI_MOLD_IS_LOADING || mold->state == ORIBI_MOLD_IS_READY) {
            stop_mold(sup, mold, now_ms);
            return true;
        }
        if (sup->stopping_now && mold->state == ORIBI_MOLD_IS_STOPPING && mold->until > now_ms + ORIBI_KILL_MS)
            mold->until = now_ms + ORIBI_KILL_MS;
    }
    if (sup->stopping_now && step_stop_now(sup, now_ms))
        return true;
    if (anything_left(sup))
        return false;
    sup->exited = true;
    struct oribi_action *action = push(sup, ORIBI_ACTION_EXIT);
    action->code = sup->exit_code;
    action->text = sup->exit_text[0] ? sup->exit_text : NULL;
    return true;
}

/* One worker too many: first a place that is merely held, then the one with the highest number. */
static bool step_surplus(struct oribi_supervisor *sup, int64_t now_ms)
{
    if (member_count(sup) <= wanted(sup))
        return false;
    struct oribi_place *last = NULL;
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (place->state == ORIBI_PLACE_HELD) {
            place->state = ORIBI_PLACE_FREE;
            if (member_count(sup) <= wanted(sup))
                return false;
        } else if (place->state == ORIBI_PLACE_BOOTING || place->state == ORIBI_PLACE_SERVING) {
            last = place;
        }
    }
    if (!last)
        return false; /* not forked yet: it is stopped when it is */
    stop_place(sup, last, now_ms);
    return true;
}

static bool start_mold(struct oribi_supervisor *sup, uint32_t generation, bool fresh)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        if (sup->molds[i].state != ORIBI_MOLD_IS_FREE)
            continue;
        sup->molds[i] = (struct oribi_mold_place){.state = ORIBI_MOLD_IS_ASKED, .generation = generation};
        struct oribi_action *action = push(sup, ORIBI_ACTION_START_MOLD);
        action->generation = generation;
        action->fresh = fresh;
        return true;
    }
    return false; /* killed ones that do not end take all the room: nothing to do but wait */
}

static bool spawn(struct oribi_supervisor *sup, struct oribi_mold_place *mold, int64_t now_ms)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (place->state != ORIBI_PLACE_FREE)
            continue;
        *place = (struct oribi_place){.state = ORIBI_PLACE_SPAWNING,
                                      .generation = mold->generation,
                                      .ticket = ++sup->last_ticket,
                                      .mold_pid = mold->pid,
                                      .until = deadline_in(sup->config.boot_timeout_ms, now_ms)};
        sup->spawned_at = now_ms;
        struct oribi_action *action = push(sup, ORIBI_ACTION_SPAWN);
        action->pid = mold->pid;
        action->generation = mold->generation;
        action->slot = i;
        action->ticket = place->ticket;
        return true;
    }
    return false; /* every place is taken by workers that are leaving */
}

static bool spawn_paced(const struct oribi_supervisor *sup, int64_t now_ms)
{
    return sup->spawned_at < 0 || now_ms - sup->spawned_at >= sup->config.spawn_interval_ms;
}

/* Commands the mold has not carried out yet; more would only fill its socket. */
static bool mold_busy(const struct oribi_supervisor *sup, const struct oribi_mold_place *mold)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sup->slot_count; i++)
        count += sup->places[i].state == ORIBI_PLACE_SPAWNING && sup->places[i].mold_pid == mold->pid;
    return count >= ORIBI_SPAWNS_PENDING_MAX;
}

static bool step_missing(struct oribi_supervisor *sup, int64_t now_ms)
{
    if (member_count(sup) >= wanted(sup))
        return false;
    struct oribi_mold_place *mold = mold_of_generation(sup, sup->generation);
    if (!mold)
        return now_ms >= sup->mold_not_before && start_mold(sup, sup->generation, sup->generation > 1);
    if (mold_busy(sup, mold))
        return false;
    return mold->state == ORIBI_MOLD_IS_READY && spawn_paced(sup, now_ms) && spawn(sup, mold, now_ms);
}

/* Who has handlers for it by now: a worker's signals wait until they are installed, a loading mold would die of it. */
static bool step_reopen(struct oribi_supervisor *sup)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        struct oribi_place *place = &sup->places[i];
        if (!place->reopen || !has_process(place->state) || place->state == ORIBI_PLACE_KILLED)
            continue;
        place->reopen = false;
        send_signal(sup, place->pid, SIGUSR1);
        return true;
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_place *mold = &sup->molds[i];
        if (!mold->reopen || mold->state != ORIBI_MOLD_IS_READY)
            continue;
        mold->reopen = false;
        send_signal(sup, mold->pid, SIGUSR1);
        return true;
    }
    return false;
}

static bool step(struct oribi_supervisor *sup, int64_t now_ms)
{
    if (sup->exited || !sup->started)
        return false;
    return step_deadlines(sup, now_ms) || step_watch(sup, now_ms) || step_give_up(sup) || step_surplus(sup, now_ms) ||
           (sup->stopping && step_stop(sup, now_ms)) || step_missing(sup, now_ms) || step_reopen(sup);
}

bool oribi_supervisor_next(struct oribi_supervisor *sup, int64_t now_ms, struct oribi_action *action)
{
    if (sup->queue_len == 0) {
        sup->text_len = 0;
        if (!step(sup, now_ms))
            return false;
    }
    *action = sup->queue[sup->queue_head];
    sup->queue_head = (sup->queue_head + 1) % ORIBI_SUPERVISOR_QUEUE_CAP;
    sup->queue_len--;
    return true;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t oribi_supervisor_deadline(const struct oribi_supervisor *sup, int64_t now_ms)
{
    if (sup->queue_len > 0)
        return now_ms;
    int64_t at = INT64_MAX;
    if (sup->exited || !sup->started)
        return at;
    bool alive = false;
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        const struct oribi_place *place = &sup->places[i];
        if (place->state != ORIBI_PLACE_FREE && place->until)
            at = earlier(at, place->until);
        alive |= has_process(place->state);
    }
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (sup->molds[i].state != ORIBI_MOLD_IS_FREE && sup->molds[i].until)
            at = earlier(at, sup->molds[i].until);
    if (alive && sup->config.watch)
        at = earlier(at, sup->watched_at + ORIBI_WATCH_MS);
    if (member_count(sup) < wanted(sup)) {
        at = earlier(at, sup->mold_not_before > now_ms ? sup->mold_not_before : INT64_MAX);
        if (sup->spawned_at >= 0 && !spawn_paced(sup, now_ms))
            at = earlier(at, sup->spawned_at + sup->config.spawn_interval_ms);
    }
    return at > now_ms ? at : now_ms;
}
