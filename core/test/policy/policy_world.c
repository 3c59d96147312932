/* Reading order: feed, note (what follows from an action), settle (what processes do by themselves). */
#include "policy/policy_world.h"

#include <string.h>

struct world w;

struct proc *proc_of(int32_t pid)
{
    for (uint32_t i = 0; i < w.proc_count; i++)
        if (w.procs[i].pid == pid)
            return &w.procs[i];
    return NULL;
}

struct proc *add_proc(int32_t pid, bool is_mold, uint32_t generation)
{
    struct proc *proc = &w.procs[w.proc_count++];
    *proc = (struct proc){.pid = pid, .is_mold = is_mold, .generation = generation, .alive = true};
    return proc;
}

void event_exit(struct proc *proc, int status)
{
    proc->alive = false;
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = proc->pid, .status = status});
}

void event_forked(struct proc *proc)
{
    feed((struct oribi_policy_event){
        .type = ORIBI_EVENT_WORKER_FORKED, .slot = proc->slot, .ticket = proc->ticket, .pid = proc->pid});
}

void event_ready(struct proc *proc)
{
    proc->ready = true;
    feed((struct oribi_policy_event){
        .type = ORIBI_EVENT_WORKER_READY, .slot = proc->slot, .ticket = proc->ticket, .pid = proc->pid});
}

static void note_signal(const struct oribi_policy_action *action)
{
    struct proc *proc = proc_of(action->pid);
    if (!proc || !proc->alive) {
        fail("signal %d goes to a process that is there (pid %d)", action->signal, action->pid);
        return;
    }
    proc->terms += action->signal == SIGTERM;
    proc->ints += action->signal == SIGINT;
    proc->usr1s += action->signal == SIGUSR1;
    proc->usr2s += action->signal == SIGUSR2;
    proc->reminders += action->signal == SIGURG;
    proc->kills += action->signal == SIGKILL;
    w.killed_twice |= proc->kills > 1;
}

static void note(const struct oribi_policy_action *action)
{
    size_t used = strlen(w.log);
    switch (action->type) {
    case ORIBI_ACTION_LOG:
        snprintf(w.log + used, sizeof(w.log) - used, "%s\n", action->text);
        break;
    case ORIBI_ACTION_RELOADING:
        w.reloadings++;
        break;
    case ORIBI_ACTION_COMMITTED:
        w.commits++;
        break;
    case ORIBI_ACTION_RELOADED:
        w.reloads_done += action->code == 0;
        w.reloads_failed += action->code != 0;
        break;
    case ORIBI_ACTION_START_UPGRADE:
        w.upgrades_asked++;
        break;
    case ORIBI_ACTION_UPGRADED:
        w.upgrades_done += action->code == 0;
        w.upgrades_failed += action->code != 0;
        break;
    case ORIBI_ACTION_UPGRADE_REFUSED:
        w.upgrades_refused++;
        break;
    case ORIBI_ACTION_STOP_SOON:
        w.stop_soons++;
        break;
    case ORIBI_ACTION_REFORK:
        w.reforks_asked++;
        w.refork_pid = action->pid;
        break;
    case ORIBI_ACTION_REFORKED:
        w.reforks_done++;
        break;
    case ORIBI_ACTION_START_MOLD:
        w.fresh = action->fresh;
        add_proc(MOLD_PID_FIRST + w.mold_starts++, true, action->generation);
        break;
    case ORIBI_ACTION_STOP_MOLD:
        proc_of(action->pid)->socket_closed = true;
        break;
    case ORIBI_ACTION_SPAWN: {
        struct proc *proc = add_proc(WORKER_PID_FIRST + w.spawns++, false, action->generation);
        proc->slot = action->slot;
        proc->ticket = action->ticket;
        break;
    }
    case ORIBI_ACTION_SIGNAL:
        note_signal(action);
        break;
    case ORIBI_ACTION_UP:
        w.ups++;
        break;
    case ORIBI_ACTION_WORKER_EXIT:
        w.worker_exits++;
        snprintf(w.last_reason, sizeof(w.last_reason), "%s", action->text);
        break;
    case ORIBI_ACTION_REOPEN:
        w.reopens++;
        break;
    case ORIBI_ACTION_FRONTENDS_END:
        w.frontend_ends++;
        break;
    case ORIBI_ACTION_STOPPING:
        w.stoppings++;
        break;
    case ORIBI_ACTION_EXIT:
        w.exits++;
        w.exit_code = action->code;
        snprintf(w.exit_text, sizeof(w.exit_text), "%s", action->text ? action->text : "");
        break;
    }
}

static void drain(void)
{
    struct oribi_policy_action action;
    int guard = 0;
    while (oribi_policy_next(&w.policy, w.now, &action)) {
        note(&action);
        if (++guard > 5000) {
            fail("the actions of one event come to an end");
            return;
        }
    }
    uint32_t serving = oribi_policy_serving(&w.policy);
    w.serving_max = serving > w.serving_max ? serving : w.serving_max;
}

void feed(struct oribi_policy_event event)
{
    oribi_policy_feed(&w.policy, &event, w.now);
    drain();
}

void just(enum oribi_policy_event_type type)
{
    feed((struct oribi_policy_event){.type = type});
}

/* Lets processes do what they would do by themselves, until nothing moves. */
void settle(void)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t i = 0; i < w.proc_count; i++) {
            struct proc *proc = &w.procs[i];
            if (!proc->alive || proc->undead)
                continue;
            if (proc->is_mold && !proc->ready && w.molds_load && !proc->kills) {
                proc->ready = moved = true;
                feed((struct oribi_policy_event){
                    .type = ORIBI_EVENT_MOLD_STARTED, .generation = proc->generation, .pid = proc->pid});
                feed((struct oribi_policy_event){
                    .type = ORIBI_EVENT_MOLD_READY, .pid = proc->pid, .config = w.next_config});
            } else if (!proc->is_mold && !proc->ready && w.workers_boot && !proc->kills && !proc->terms) {
                moved = true;
                event_forked(proc);
                event_ready(proc);
            } else if (proc->kills || proc->ints) {
                moved = true;
                event_exit(proc, proc->kills ? SIGKILL : 0);
            } else if (proc->is_mold ? w.molds_obey && proc->socket_closed : w.workers_obey && proc->terms) {
                moved = true;
                event_exit(proc, 0);
            }
        }
    }
}

/* Sleeps as a supervisor does: from deadline to deadline. */
void pass_ms(int64_t ms)
{
    int64_t end = w.now + ms;
    for (int guard = 0; guard < 100000; guard++) {
        int64_t at = oribi_policy_deadline(&w.policy, w.now);
        if (at >= end)
            break;
        w.now = at > w.now ? at : w.now;
        just(ORIBI_EVENT_TICK);
        settle();
        if (at == w.now && oribi_policy_deadline(&w.policy, w.now) == at && guard > 1000) {
            fail("a deadline that has passed is not one any more");
            return;
        }
    }
    w.now = end;
    just(ORIBI_EVENT_TICK);
    settle();
}

void begin(uint32_t workers)
{
    memset(&w, 0, sizeof(w));
    w.now = 1000000;
    w.molds_load = w.workers_boot = w.workers_obey = w.molds_obey = true;
    struct oribi_policy_config config = {.workers = workers,
                                         .workers_max = SLOTS / 2,
                                         .boot_timeout_ms = 60000,
                                         .shutdown_timeout_ms = 30000,
                                         .err_respawn_interval_ms = 1000,
                                         .watch = true};
    oribi_policy_init(&w.policy, &config, w.slots, SLOTS);
}

void start(uint32_t workers)
{
    begin(workers);
    just(ORIBI_EVENT_START);
    settle();
}

struct proc *worker(uint32_t nth)
{
    for (uint32_t i = 0; i < w.proc_count; i++)
        if (!w.procs[i].is_mold && w.procs[i].alive && nth-- == 0)
            return &w.procs[i];
    return NULL;
}

struct proc *mold(void)
{
    for (uint32_t i = 0; i < w.proc_count; i++)
        if (w.procs[i].is_mold && w.procs[i].alive)
            return &w.procs[i];
    return NULL;
}

bool logged(const char *text)
{
    return strstr(w.log, text) != NULL;
}

int count_signalled(int which)
{
    int count = 0;
    for (uint32_t i = 0; i < w.proc_count; i++)
        if (!w.procs[i].is_mold)
            count += which == SIGTERM ? w.procs[i].terms : which == SIGUSR1 ? w.procs[i].usr1s : w.procs[i].kills;
    return count;
}
void put_call(uint32_t slot, int64_t started_ms, int64_t deadline_ms, const char *line)
{
    w.slots[slot].call_started_us = started_ms * 1000;
    w.slots[slot].call_deadline_us = deadline_ms * 1000;
    snprintf(w.slots[slot].line, sizeof(w.slots[slot].line), "%s", line);
}

uint32_t serving_of(uint32_t generation)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < SLOTS; i++)
        count += w.policy.records[i].state == ORIBI_RECORD_SERVING && w.policy.records[i].generation == generation;
    return count;
}

/* The one live mold of a generation. */
struct proc *mold_of(uint32_t generation)
{
    for (uint32_t i = 0; i < w.proc_count; i++)
        if (w.procs[i].is_mold && w.procs[i].alive && w.procs[i].generation == generation)
            return &w.procs[i];
    return NULL;
}

void report_mold(struct proc *proc)
{
    feed((struct oribi_policy_event){
        .type = ORIBI_EVENT_MOLD_STARTED, .generation = proc->generation, .pid = proc->pid});
}

void event_measured(struct proc *proc, int64_t bytes)
{
    feed((struct oribi_policy_event){
        .type = ORIBI_EVENT_MEASURED, .slot = proc->slot, .ticket = proc->ticket, .bytes = bytes});
}

void pause_with(int signal, int64_t interval_ms)
{
    feed((struct oribi_policy_event){.type = ORIBI_EVENT_PAUSE, .status = signal, .bytes = interval_ms});
}
