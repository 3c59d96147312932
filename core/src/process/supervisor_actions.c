/* The supervisor's shell, how it carries out what was decided. Reading order: oribi__carry_out at the end, then what
 * it calls. */
#include "process/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/log.h"
#include "oribi/process/sd_notify.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    KEPT_LOOK_MS = 10,
    KEPT_MS_MAX =
        1000, /* one in a long call sees that it is to leave when the call is over, and lets nobody in before */
};

/* What calls are like here is the application's doing, not the worker's: the next one starts with a helper at hand.
 * A call that ended with its worker was long if it had run for long: nobody else could note it. */
static void clear_slot(struct oribi_slot *slot)
{
    int64_t now_us = oribi_clock_us();
    int64_t started_us = atomic_load(&slot->call_started_us);
    int64_t long_call_us =
        started_us && now_us - started_us >= ORIBI_EXPECT_US ? now_us : atomic_load(&slot->long_call_us);
    memset(slot, 0, offsetof(struct oribi_slot, is_idle_waiter)); /* what follows is other workers' too */
    atomic_store(&slot->long_call_us, long_call_us);
}

/* Nobody writes to the slot now: its last worker was reaped, the next is not forked. True when the language is to
 * fork. */
static bool spawn(struct oribi_supervisor *supervisor, const struct oribi_policy_action *action)
{
    struct oribi_slot *slot = &supervisor->ties.board.slots[action->slot];
    clear_slot(slot);
    atomic_store(&slot->generation, action->generation);
    atomic_store(&slot->state, ORIBI_SLOT_STARTING);
    atomic_store(&slot->stop_soon, supervisor->policy.stop_at != 0 ? ORIBI_STOP_SOON : ORIBI_STOP_NONE);
    if (action->pid == supervisor->pid) { /* a library's own mold is the supervisor itself */
        supervisor->spawn = *action;
        supervisor->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_FORK_WORKER};
        return true;
    }
    struct oribi_message message = {
        .kind = ORIBI_MESSAGE_SPAWN, .generation = action->generation, .slot = action->slot, .ticket = action->ticket};
    struct oribi__mold_socket *mold = oribi__mold_socket_of(supervisor, action->pid);
    if (!mold || oribi_message_send(mold->fd, &message, 0) < 0)
        oribi_log(ORIBI_LOG_DEBUG, "mold (pid %d) takes no commands",
                  action->pid); /* its end or boot_timeout settles it */
    return false;
}

/* The supervisor's own mold ends without a process ending. */
static void stop_mold(struct oribi_supervisor *supervisor, int32_t pid)
{
    oribi__mold_socket_close(supervisor, pid);
    if (pid != supervisor->pid)
        return;
    supervisor->has_started = true;
    supervisor->started = (struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = pid};
}

static bool hook(struct oribi_supervisor *supervisor, const char *name, const struct oribi_policy_action *action)
{
    /* reasons are short */
    (void)snprintf(supervisor->reason, sizeof(supervisor->reason), "%s", action->text ? action->text : "");
    supervisor->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_HOOK,
                                                          .hook = name,
                                                          .reason = supervisor->reason,
                                                          .pid = action->pid,
                                                          .status = action->status};
    return true;
}

static bool worker_exited(struct oribi_supervisor *supervisor, const struct oribi_policy_action *action)
{
    struct oribi_slot *slot = &supervisor->ties.board.slots[action->slot];
    oribi__totals_add(&supervisor->totals, slot);
    supervisor->totals.worker_exits++;
    oribi_scoreboard_forget_idle_waiter(&supervisor->ties.board, slot);
    clear_slot(slot); /* siblings must not take it for an idle one */
    oribi_handoff_notify(&supervisor->ties.handoff);
    return hook(supervisor, "on_worker_exit", action);
}

static void log_start_line(struct oribi_supervisor *supervisor)
{
    char line[1024] = "";
    size_t n = 0;
    const struct oribi_listeners *listeners = supervisor->ties.listeners;
    for (uint32_t i = 0; i < listeners->count && n < sizeof(line); i++)
        n += (size_t)snprintf(line + n, sizeof(line) - n, "%s%s", i ? ", " : "listening on ", listeners->items[i].text);
    oribi_log(ORIBI_LOG_INFO, "%s, %u worker%s, pid %d", listeners->count ? line : "started", supervisor->policy.target,
              oribi_log_plural(supervisor->policy.target), supervisor->pid);
    (void)oribi_sd_ready(line[0] ? line : NULL); /* nobody need have asked for it */
}

/* Unicorn's and Pitchfork's timeout is the application's, Rhebok's and ours the client's: whoever has moved a file
 * should know. */
static void log_timeout_hint(const struct oribi_options *options)
{
    char value[32];
    const struct oribi_option *call_timeout = oribi_options_find("call_timeout");
    if (options->lang != ORIBI_LANG_RUBY || !options->timeout_named ||
        oribi_options_source(options, call_timeout) != ORIBI_FROM_DEFAULT)
        return;
    (void)oribi_options_get(options, call_timeout, value, sizeof(value)); /* a time is short */
    oribi_log(ORIBI_LOG_INFO,
              "timeout is how long the server waits for a client; how long a call may take is call_timeout, %s now",
              value);
}

static bool up(struct oribi_supervisor *supervisor, const struct oribi_policy_action *action)
{
    log_start_line(supervisor);
    log_timeout_hint(supervisor->ties.options);
    oribi__release_starter(supervisor, 0);
    return hook(supervisor, "server_ready", action);
}

/* --- answers that wait for old workers --- */

/* A worker that is to drain and has not seen it yet lets in whoever comes. After an upgrade all are old. */
static bool old_code_may_answer(const struct oribi_supervisor *supervisor)
{
    for (uint32_t i = 0; i < supervisor->policy.slot_count; i++) {
        uint32_t state = atomic_load_explicit(&supervisor->ties.board.slots[i].state, memory_order_acquire);
        enum oribi_worker_record_state record = supervisor->policy.records[i].state;
        bool old = record == ORIBI_RECORD_STOPPING ||
                   (record == ORIBI_RECORD_SERVING && supervisor->deferred_command == ORIBI__COMMAND_UPGRADE);
        if (old && (state == ORIBI_SLOT_IDLE || state == ORIBI_SLOT_BUSY))
            return true;
    }
    return false;
}

void oribi__deferred_reply_now(struct oribi_supervisor *supervisor)
{
    if (!supervisor->deferred_look_at)
        return;
    supervisor->deferred_look_at = 0;
    oribi__control_answer(supervisor, supervisor->deferred_command, 0, supervisor->deferred_text);
}

void oribi__deferred_reply_turn(struct oribi_supervisor *supervisor)
{
    int64_t now_ms = oribi_clock_ms();
    if (!supervisor->deferred_look_at || now_ms < supervisor->deferred_look_at)
        return;
    if (now_ms < supervisor->deferred_until && old_code_may_answer(supervisor))
        supervisor->deferred_look_at = now_ms + KEPT_LOOK_MS;
    else
        oribi__deferred_reply_now(supervisor);
}

/* Whoever asked may connect with the answer in hand, and is to find the new code: the answer waits until the old
 * workers are out of the way. */
static void defer_reply(struct oribi_supervisor *supervisor, enum oribi__command command, const char *text)
{
    oribi__deferred_reply_now(supervisor);
    supervisor->deferred_command = command;
    (void)snprintf(supervisor->deferred_text, sizeof(supervisor->deferred_text), "%s", text); /* fits */
    supervisor->deferred_look_at = oribi_clock_ms(); /* at once: the first look follows in this turn */
    /* other loops let nobody in */
    supervisor->deferred_until = supervisor->deferred_look_at + (supervisor->ties.prefork ? 0 : KEPT_MS_MAX);
}

static void reloaded(struct oribi_supervisor *supervisor, const struct oribi_policy_action *action)
{
    char text[sizeof(supervisor->deferred_text)];
    oribi__deferred_reply_now(supervisor);
    oribi__generation_failed(supervisor); /* nothing is pending any more, whichever way it ended */
    (void)snprintf(text, sizeof(text), "generation %u, %u worker%s", action->generation,
                   oribi_policy_serving(&supervisor->policy),
                   oribi_log_plural(oribi_policy_serving(&supervisor->policy))); /* fits */
    if (supervisor->policy.up && !supervisor->policy.stopping)
        (void)oribi_sd_ready(text);
    /* another one has begun already: whoever asked during this one waits for that */
    if (supervisor->policy.next_generation)
        oribi__control_answer_first(supervisor, ORIBI__COMMAND_RELOAD, action->code,
                                    action->code ? action->text : text);
    else if (action->code)
        oribi__control_answer(supervisor, ORIBI__COMMAND_RELOAD, action->code, action->code ? action->text : text);
    else
        defer_reply(supervisor, ORIBI__COMMAND_RELOAD, text);
}

static void upgraded(struct oribi_supervisor *supervisor, const struct oribi_policy_action *action)
{
    char text[sizeof(supervisor->successor_why) + 128];
    if (action->code) {
        (void)oribi__successor_ready(supervisor); /* what it wrote before its end */
        bool told = supervisor->successor_why_len > 0;
        (void)snprintf(text, sizeof(text), "%.120s%s%s", action->text, told ? ": " : "",
                       told ? supervisor->successor_why : ""); /* cut when longer: a hint */
        oribi__successor_failed(supervisor);
        oribi__control_answer(supervisor, ORIBI__COMMAND_UPGRADE, action->code, text);
    } else {
        (void)snprintf(text, sizeof(text), "pid %d serves", action->pid); /* fits */
        (void)oribi_sd_main_pid(action->pid);
        defer_reply(supervisor, ORIBI__COMMAND_UPGRADE, text);
    }
}

/* The answer is for those who have asked too soon or too late, not for whoever waits for an upgrade that goes on. */
static void upgrade_refused(struct oribi_supervisor *supervisor, const struct oribi_policy_action *action)
{
    if (supervisor->policy.upgrade_pid)
        oribi__control_answer_later(supervisor, ORIBI__COMMAND_UPGRADE, 1, action->text);
    else
        oribi__control_answer(supervisor, ORIBI__COMMAND_UPGRADE, 1, action->text);
}

static void stop_soon(struct oribi_supervisor *supervisor)
{
    for (uint32_t i = 0; i < supervisor->ties.board.count; i++)
        atomic_store(&supervisor->ties.board.slots[i].stop_soon, ORIBI_STOP_SOON);
    (void)oribi_sd_stopping();
}

static void stopping(struct oribi_supervisor *supervisor, bool handed_over)
{
    if (!handed_over)
        (void)oribi_sd_stopping(); /* else it is the successor's to say */
    oribi__end_listening(supervisor, handed_over);
    if (supervisor->deferred_command == ORIBI__COMMAND_RELOAD)
        oribi__deferred_reply_now(supervisor);
    oribi__control_answer(supervisor, ORIBI__COMMAND_RELOAD, 1, "the server stops");
    if (!supervisor->deferred_look_at)
        oribi__control_answer(supervisor, ORIBI__COMMAND_UPGRADE, 1, "the server stops");
}

static void log_memory(struct oribi_supervisor *supervisor, const char *when)
{
    int64_t private_sum = 0;
    int64_t shared_sum = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < supervisor->policy.slot_count; i++) {
        int64_t private_bytes;
        int64_t shared_bytes;
        if (supervisor->policy.records[i].state != ORIBI_RECORD_SERVING)
            continue;
        oribi_process_memory_split(supervisor->policy.records[i].pid, &private_bytes, &shared_bytes);
        private_sum += private_bytes;
        shared_sum += shared_bytes;
        count++;
    }
    if (count > 0)
        oribi_log(ORIBI_LOG_INFO, "memory of a worker %s refork: %lld KB of its own, %lld KB shared (mean of %u)", when,
                  (long long)(private_sum / count / 1024), (long long)(shared_sum / count / 1024), count);
}

static bool finish(struct oribi_supervisor *supervisor, const struct oribi_policy_action *action)
{
    if (action->text)
        oribi__log_text(supervisor, ORIBI_LOG_ERROR, action->text);
    oribi__release_starter(supervisor, action->code);
    oribi__control_answer(supervisor, ORIBI__COMMAND_STOP, 0, "stopped");
    uint32_t refused =
        oribi_handoff_refuse(&supervisor->ties.handoff); /* of workers that were killed before they could empty it */
    if (refused)
        oribi_log(ORIBI_LOG_WARN, "%u connections between workers were answered 503", refused);
    supervisor->action = (struct oribi_supervisor_action){
        .type = ORIBI_SUPERVISOR_EXIT, .exit_code = action->code, .signal = supervisor->reraise};
    return true;
}

/* A child that we have not reaped: the pid is its own. But workers told us which it is, and where they have given up
 * rights that we have, one that lies must not make us strike what it could not. */
static void signal_process(pid_t pid, int number)
{
    if (oribi_process_is_below(pid))
        (void)kill(pid, number);
    else
        oribi_log(ORIBI_LOG_DEBUG, "no signal %d to %d, which is none of our processes", number, (int)pid);
}

/* Before the signal: a worker that was stopped by nobody's word but a signal waits for ours. */
static void stop_alone(struct oribi_supervisor *supervisor, const struct oribi_policy_action *action)
{
    if (action->signal != SIGTERM && action->signal != SIGQUIT)
        return;
    for (uint32_t i = 0; i < supervisor->policy.slot_count; i++) {
        _Atomic uint32_t *word = &supervisor->ties.board.slots[i].stop_soon;
        if (supervisor->policy.records[i].pid == action->pid && atomic_load(word) < ORIBI_STOP_TOLD)
            atomic_store(word, ORIBI_STOP_TOLD); /* we alone write it */
    }
}

bool oribi__carry_out(struct oribi_supervisor *supervisor, const struct oribi_policy_action *action)
{
    switch (action->type) {
    case ORIBI_ACTION_LOG:
        oribi__log_text(supervisor, action->level, action->text);
        return false;
    case ORIBI_ACTION_START_MOLD:
        supervisor->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_FORK_MOLD};
        return oribi__start_mold(supervisor, action->generation, action->fresh);
    case ORIBI_ACTION_STOP_MOLD:
        stop_mold(supervisor, action->pid);
        return false;
    case ORIBI_ACTION_SPAWN:
        return spawn(supervisor, action);
    case ORIBI_ACTION_SIGNAL:
        stop_alone(supervisor, action);
        if (action->pid != supervisor->pid) /* a library's own mold: whatever it is to be told, it has done itself */
            signal_process(action->pid, action->signal);
        return false;
    case ORIBI_ACTION_UP:
        return up(supervisor, action);
    case ORIBI_ACTION_WORKER_EXIT:
        return worker_exited(supervisor, action);
    case ORIBI_ACTION_REOPEN:
        oribi__reopen_logs(&supervisor->ties);
        return false;
    case ORIBI_ACTION_STOP_SOON:
        stop_soon(supervisor);
        return false;
    case ORIBI_ACTION_STOPPING:
        stopping(supervisor, action->code != 0);
        return false;
    case ORIBI_ACTION_RELOADING:
        (void)oribi_sd_reloading();
        return hook(supervisor, "before_reload", action);
    case ORIBI_ACTION_COMMITTED:
        oribi__generation_committed(supervisor);
        return false;
    case ORIBI_ACTION_RELOADED:
        reloaded(supervisor, action);
        return false;
    case ORIBI_ACTION_START_UPGRADE:
        oribi__start_successor(supervisor);
        return false;
    case ORIBI_ACTION_UPGRADED:
        upgraded(supervisor, action);
        return false;
    case ORIBI_ACTION_UPGRADE_REFUSED:
        upgrade_refused(supervisor, action);
        return false;
    case ORIBI_ACTION_REFORK:
        log_memory(supervisor, "before the");
        return false;
    case ORIBI_ACTION_REFORKED:
        log_memory(supervisor, "after the");
        return false;
    case ORIBI_ACTION_EXIT:
        return finish(supervisor, action);
    }
    return false;
}
