/* The supervisor's state: looking at it, and the few ways of changing it that both events and steps use. */
#include "policy/policy_private.h"

#include "oribi/base/log.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

const char oribi__cause_asked[] = "asked to stop";
const char oribi__cause_boot_timeout[] = "boot_timeout";
const char oribi__cause_shutdown_timeout[] = "shutdown_timeout";
const char oribi__cause_call_deadline[] = "call deadline";
const char oribi__cause_hang[] = "it hung outside any call";
const char oribi__cause_mold_ended[] = "its mold ended";
const char oribi__cause_age_max[] = "age_max";
const char oribi__cause_memory_max[] = "memory_max";
const char oribi__cause_refork[] = "refork";

/* --- queue and texts --- */

struct oribi_policy_action *oribi__policy_push(struct oribi_policy *policy, enum oribi_policy_action_type type)
{
    assert(policy->queue_len < ORIBI_POLICY_QUEUE_CAP); /* one event causes a handful */
    uint32_t at = (policy->queue_head + policy->queue_len++) % ORIBI_POLICY_QUEUE_CAP;
    policy->queue[at] = (struct oribi_policy_action){.type = type};
    return &policy->queue[at];
}

static const char *vkeep(struct oribi_policy *policy, const char *format, va_list args)
{
    size_t room = sizeof(policy->texts) - policy->text_len;
    if (room < 2)
        return "";
    char *text = policy->texts + policy->text_len;
    int n = vsnprintf(text, room, format, args);
    if (n < 0)
        return "";
    policy->text_len += ((size_t)n < room ? (size_t)n : room - 1) + 1;
    return text;
}

const char *oribi__policy_keep(struct oribi_policy *policy, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = vkeep(policy, format, args);
    va_end(args);
    return text;
}

struct oribi_policy_action *oribi__policy_say(struct oribi_policy *policy, enum oribi_log_level level,
                                              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = vkeep(policy, format, args);
    va_end(args);
    struct oribi_policy_action *action = oribi__policy_push(policy, ORIBI_ACTION_LOG);
    action->level = level;
    action->text = text;
    return action;
}

void oribi__policy_of(struct oribi_policy *policy, const struct oribi_worker_record *record,
                      struct oribi_policy_action *said, bool call)
{
    said->of_worker = true;
    said->slot = oribi__policy_number(policy, record);
    said->generation = record->generation;
    const char *id = policy->slots[said->slot].id;
    if (call && id[0])
        said->request_id = oribi__policy_keep(policy, "%.*s", ORIBI_REQUEST_ID_MAX, id); /* may be torn */
}

const char *oribi__policy_call_text(struct oribi_policy *policy, const struct oribi_worker_record *record)
{
    char text[ORIBI_SLOT_CALL_TEXT_CAP];
    oribi_slot_call_text(&policy->slots[oribi__policy_number(policy, record)], text);
    return oribi__policy_keep(policy, "%s", text);
}

void oribi__policy_signal(struct oribi_policy *policy, int32_t pid, int number)
{
    struct oribi_policy_action *action = oribi__policy_push(policy, ORIBI_ACTION_SIGNAL);
    action->pid = pid;
    action->signal = number;
}

/* --- looking --- */

bool oribi__has_process(enum oribi_worker_record_state state)
{
    return state == ORIBI_RECORD_BOOTING || state == ORIBI_RECORD_SERVING || state == ORIBI_RECORD_LEAVING ||
           state == ORIBI_RECORD_STOPPING || state == ORIBI_RECORD_KILLED;
}

bool oribi__is_member(enum oribi_worker_record_state state)
{
    return state == ORIBI_RECORD_HELD || state == ORIBI_RECORD_SPAWNING || state == ORIBI_RECORD_BOOTING ||
           state == ORIBI_RECORD_SERVING;
}

enum oribi__role oribi__policy_role(const struct oribi_policy *policy, const struct oribi_worker_record *record)
{
    if (record->generation <= policy->left_generation)
        return ORIBI__LEFT;
    if (policy->left_generation && record->generation < policy->generation)
        return ORIBI__ODD; /* of a reload that came to nothing because the program went on */
    if (record->generation > policy->generation)
        return record->generation == policy->next_generation ? ORIBI__NEXT : ORIBI__ODD;
    return record->generation < policy->generation || record->retire ? ORIBI__OLD : ORIBI__CURRENT;
}

struct oribi__tally oribi__policy_tally(const struct oribi_policy *policy)
{
    struct oribi__tally tally = {0};
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        const struct oribi_worker_record *record = &policy->records[i];
        if (!oribi__is_member(record->state))
            continue;
        bool serving = record->state == ORIBI_RECORD_SERVING;
        switch (oribi__policy_role(policy, record)) {
        case ORIBI__CURRENT:
            tally.current++;
            tally.current_serving += serving;
            break;
        case ORIBI__OLD:
            tally.old++;
            break;
        case ORIBI__NEXT:
            tally.next++;
            tally.next_serving += serving;
            break;
        case ORIBI__LEFT:
            tally.left++;
            break;
        case ORIBI__ODD:
            tally.odd++;
        }
    }
    return tally;
}

uint32_t oribi__policy_wanted(const struct oribi_policy *policy)
{
    return oribi_policy_ends(policy) || !policy->started ? 0 : policy->target;
}

uint32_t oribi__policy_roll_max(const struct oribi_policy *policy)
{
    uint32_t tenth = policy->target / 10;
    return policy->config.roll_max ? policy->config.roll_max : tenth ? tenth : 1;
}

uint32_t oribi__policy_number(const struct oribi_policy *policy, const struct oribi_worker_record *record)
{
    return (uint32_t)(record - policy->records);
}

struct oribi_worker_record *oribi__policy_record_of_pid(struct oribi_policy *policy, int32_t pid)
{
    for (uint32_t i = 0; i < policy->slot_count; i++)
        if (oribi__has_process(policy->records[i].state) && policy->records[i].pid == pid)
            return &policy->records[i];
    return NULL;
}

/* The record that an event is about, if it still belongs to that spawn. */
struct oribi_worker_record *oribi__policy_record_of_ticket(struct oribi_policy *policy,
                                                           const struct oribi_policy_event *event)
{
    if (event->slot >= policy->slot_count)
        return NULL;
    struct oribi_worker_record *record = &policy->records[event->slot];
    return record->state != ORIBI_RECORD_FREE && record->ticket == event->ticket ? record : NULL;
}

struct oribi_mold_record *oribi__policy_mold_of_pid(struct oribi_policy *policy, int32_t pid)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (policy->molds[i].state > ORIBI_MOLD_IS_ASKED && policy->molds[i].pid == pid)
            return &policy->molds[i];
    return NULL;
}

/* The mold that forks workers of `generation`, loading or ready, or NULL. */
struct oribi_mold_record *oribi__policy_mold_of_generation(struct oribi_policy *policy, uint32_t generation)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_record *mold = &policy->molds[i];
        if (mold->generation == generation &&
            (mold->state == ORIBI_MOLD_IS_ASKED || mold->state == ORIBI_MOLD_IS_LOADING ||
             mold->state == ORIBI_MOLD_IS_READY))
            return mold;
    }
    return NULL;
}

const char *oribi__policy_status_text(struct oribi_policy *policy, int status)
{
    if (WIFSIGNALED(status))
        return oribi__policy_keep(policy, "signal %d", WTERMSIG(status));
    return oribi__policy_keep(policy, "exit code %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* err_respawn_interval, doubled for each further failure in a row. */
int64_t oribi__policy_backoff_ms(const struct oribi_policy *policy, uint32_t failures)
{
    int64_t delay = policy->config.err_respawn_interval_ms;
    for (uint32_t i = 1; i < failures && delay < ORIBI_RESPAWN_DELAY_MS_MAX; i++)
        delay *= 2;
    bool doubled_too_far = failures > 1 && delay > ORIBI_RESPAWN_DELAY_MS_MAX;
    return doubled_too_far ? ORIBI_RESPAWN_DELAY_MS_MAX : delay;
}

static bool has_company(const struct oribi_policy *policy, const struct oribi_worker_record *record)
{
    for (uint32_t i = 0; i < policy->slot_count; i++) {
        const struct oribi_worker_record *other = &policy->records[i];
        if (other != record && other->generation == record->generation && oribi__is_member(other->state) &&
            other->state != ORIBI_RECORD_HELD)
            return true;
    }
    return false;
}

/* Each death costs its slot one interval; a slot may owe ORIBI_DEATHS_AT_ONCE of them before it has to wait. So a
 * request that kills its worker now and then costs nothing, a storm of them is bounded for each slot by itself, and
 * the last worker is never missed for long. */
int64_t oribi__policy_death_wait_ms(struct oribi_policy *policy, struct oribi_worker_record *record, int64_t now_ms)
{
    int64_t interval = policy->config.err_respawn_interval_ms < ORIBI_DEATHS_INTERVAL_MS_MAX
                           ? policy->config.err_respawn_interval_ms
                           : ORIBI_DEATHS_INTERVAL_MS_MAX;
    int64_t most = now_ms + (ORIBI_DEATHS_AT_ONCE + 1) * interval;
    int64_t paid_at = (record->deaths_paid_at > now_ms ? record->deaths_paid_at : now_ms) + interval;
    record->deaths_paid_at = paid_at < most ? paid_at : most;
    int64_t wait = record->deaths_paid_at - now_ms - ORIBI_DEATHS_AT_ONCE * interval;
    if (wait > ORIBI_LAST_RESPAWN_MS && !has_company(policy, record))
        return ORIBI_LAST_RESPAWN_MS;
    return wait > 0 ? wait : 0;
}

int64_t oribi__deadline_in(int64_t timeout_ms, int64_t now_ms)
{
    return timeout_ms ? now_ms + timeout_ms : 0;
}

int64_t oribi__policy_stop_deadline(const struct oribi_policy *policy, int64_t now_ms)
{
    bool bounded = policy->config.shutdown_timeout_ms > 0 && (policy->stopping || !policy->config.reload_waits);
    int64_t until = bounded ? now_ms + policy->config.shutdown_timeout_ms : 0;
    if (bounded && policy->stop_until && policy->stop_until < until)
        until = policy->stop_until > now_ms ? policy->stop_until : now_ms;
    return bounded ? until + ORIBI_KILL_MS : 0;
}

bool oribi__policy_spawn_paced(const struct oribi_policy *policy, int64_t now_ms)
{
    return policy->spawned_at < 0 || now_ms - policy->spawned_at >= policy->config.spawn_interval_ms;
}

/* --- changing --- */

void oribi__policy_kill(struct oribi_policy *policy, struct oribi_worker_record *record, const char *cause,
                        int64_t now_ms)
{
    assert(oribi__has_process(record->state) && record->state != ORIBI_RECORD_KILLED);
    record->state = ORIBI_RECORD_KILLED;
    record->until = now_ms + ORIBI_UNKILLABLE_MS;
    record->cause = cause;
    oribi__policy_signal(policy, record->pid, SIGKILL);
}

void oribi__policy_stop(struct oribi_policy *policy, struct oribi_worker_record *record, int64_t now_ms)
{
    assert(record->state == ORIBI_RECORD_BOOTING || record->state == ORIBI_RECORD_SERVING);
    record->state = ORIBI_RECORD_STOPPING;
    record->until = oribi__policy_stop_deadline(policy, now_ms);
    record->cause = record->retire ? record->retire : oribi__cause_asked;
    oribi__policy_signal(policy, record->pid, SIGTERM);
}

/* Only the current generation is worth waiting for. */
void oribi__policy_hold(struct oribi_policy *policy, struct oribi_worker_record *record, int64_t wait_ms,
                        int64_t now_ms)
{
    bool wanted =
        wait_ms > 0 && !oribi_policy_ends(policy) && record->generation == policy->generation && !record->retire;
    record->state = wanted ? ORIBI_RECORD_HELD : ORIBI_RECORD_FREE;
    record->until = now_ms + wait_ms;
}

void oribi__policy_kill_mold(struct oribi_policy *policy, struct oribi_mold_record *mold, int64_t now_ms)
{
    assert(mold->state > ORIBI_MOLD_IS_ASKED && mold->state != ORIBI_MOLD_IS_KILLED);
    mold->state = ORIBI_MOLD_IS_KILLED;
    mold->until = now_ms + ORIBI_UNKILLABLE_MS;
    oribi__policy_signal(policy, mold->pid, SIGKILL);
}

/* A ready mold leaves at the end of its command socket; one that is still loading does not look at it and gets the
 * signal as well. */
void oribi__policy_stop_mold(struct oribi_policy *policy, struct oribi_mold_record *mold, int64_t now_ms)
{
    oribi__policy_push(policy, ORIBI_ACTION_STOP_MOLD)->pid = mold->pid;
    if (mold->state == ORIBI_MOLD_IS_LOADING)
        oribi__policy_signal(policy, mold->pid, SIGTERM);
    mold->state = ORIBI_MOLD_IS_STOPPING;
    mold->until = now_ms + (policy->stopping_now ? ORIBI_KILL_MS : ORIBI_MOLD_STOP_MS);
}

static void note_stop(struct oribi_policy *policy, int exit_code)
{
    if (policy->next_generation) {
        policy->reload_again = false;
        oribi__policy_reload_failed(policy, "the server stops");
    }
    policy->stopping = true;
    policy->exit_code = exit_code;
    if (policy->upgrade_pid > 0 && !policy->handed_over)
        oribi__policy_signal(policy, policy->upgrade_pid, SIGTERM);
}

void oribi__policy_begin_stop(struct oribi_policy *policy, int exit_code)
{
    oribi__policy_frontends_ended(policy);
    if (policy->stopping)
        return;
    note_stop(policy, exit_code);
    oribi__policy_push(policy, ORIBI_ACTION_STOPPING)->code = policy->handed_over;
}

void oribi__policy_begin_drain(struct oribi_policy *policy, int64_t now_ms)
{
    if (!policy->config.frontends || policy->stopping) {
        oribi__policy_begin_stop(policy, 0);
        return;
    }
    note_stop(policy, 0);
    policy->frontends_end = true;
    policy->stop_until = oribi__deadline_in(policy->config.shutdown_timeout_ms, now_ms);
    oribi__policy_push(policy, ORIBI_ACTION_FRONTENDS_END)->code = policy->handed_over;
}

void oribi__policy_frontends_ended(struct oribi_policy *policy)
{
    if (!policy->frontends_end)
        return;
    policy->frontends_end = false;
    oribi__policy_push(policy, ORIBI_ACTION_STOPPING)->code = policy->handed_over;
}
