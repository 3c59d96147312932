/* The supervisor's state: looking at it, and the few ways of changing it that both events and steps use. */
#include "process/supervisor_private.h"

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
const char oribi__cause_mold_ended[] = "its mold ended";

/* --- queue and texts --- */

struct oribi_action *oribi__sup_push(struct oribi_supervisor *sup, enum oribi_action_type type)
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

const char *oribi__sup_keep(struct oribi_supervisor *sup, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = vkeep(sup, format, args);
    va_end(args);
    return text;
}

void oribi__sup_say(struct oribi_supervisor *sup, enum oribi_log_level level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = vkeep(sup, format, args);
    va_end(args);
    struct oribi_action *action = oribi__sup_push(sup, ORIBI_ACTION_LOG);
    action->level = level;
    action->text = text;
}

void oribi__sup_signal(struct oribi_supervisor *sup, int32_t pid, int number)
{
    struct oribi_action *action = oribi__sup_push(sup, ORIBI_ACTION_SIGNAL);
    action->pid = pid;
    action->signal = number;
}

/* --- looking --- */

bool oribi__has_process(enum oribi_place_state state)
{
    return state == ORIBI_PLACE_BOOTING || state == ORIBI_PLACE_SERVING || state == ORIBI_PLACE_LEAVING ||
           state == ORIBI_PLACE_STOPPING || state == ORIBI_PLACE_KILLED;
}

bool oribi__is_member(enum oribi_place_state state)
{
    return state == ORIBI_PLACE_HELD || state == ORIBI_PLACE_SPAWNING || state == ORIBI_PLACE_BOOTING ||
           state == ORIBI_PLACE_SERVING;
}

enum oribi__role oribi__sup_role(const struct oribi_supervisor *sup, const struct oribi_place *place)
{
    if (place->generation <= sup->left_generation)
        return ORIBI__LEFT;
    if (sup->left_generation && place->generation < sup->generation)
        return ORIBI__ODD; /* of a reload that came to nothing because the program went on */
    if (place->generation > sup->generation)
        return place->generation == sup->next_generation ? ORIBI__NEXT : ORIBI__ODD;
    return place->generation < sup->generation || place->retire ? ORIBI__OLD : ORIBI__CURRENT;
}

struct oribi__tally oribi__sup_tally(const struct oribi_supervisor *sup)
{
    struct oribi__tally tally = {0};
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        const struct oribi_place *place = &sup->places[i];
        if (!oribi__is_member(place->state))
            continue;
        bool serving = place->state == ORIBI_PLACE_SERVING;
        switch (oribi__sup_role(sup, place)) {
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

uint32_t oribi__sup_wanted(const struct oribi_supervisor *sup)
{
    return sup->stopping || !sup->started ? 0 : sup->target;
}

uint32_t oribi__sup_roll_max(const struct oribi_supervisor *sup)
{
    uint32_t tenth = sup->target / 10;
    return sup->config.roll_max ? sup->config.roll_max : tenth ? tenth : 1;
}

uint32_t oribi__sup_number(const struct oribi_supervisor *sup, const struct oribi_place *place)
{
    return (uint32_t)(place - sup->places);
}

struct oribi_place *oribi__sup_place_of_pid(struct oribi_supervisor *sup, int32_t pid)
{
    for (uint32_t i = 0; i < sup->slot_count; i++)
        if (oribi__has_process(sup->places[i].state) && sup->places[i].pid == pid)
            return &sup->places[i];
    return NULL;
}

/* The place an event speaks of, if it still belongs to that spawn. */
struct oribi_place *oribi__sup_place_of_ticket(struct oribi_supervisor *sup, const struct oribi_event *event)
{
    if (event->slot >= sup->slot_count)
        return NULL;
    struct oribi_place *place = &sup->places[event->slot];
    return place->state != ORIBI_PLACE_FREE && place->ticket == event->ticket ? place : NULL;
}

struct oribi_mold_place *oribi__sup_mold_of_pid(struct oribi_supervisor *sup, int32_t pid)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (sup->molds[i].state > ORIBI_MOLD_IS_ASKED && sup->molds[i].pid == pid)
            return &sup->molds[i];
    return NULL;
}

/* The mold that forks workers of `generation`, loading or ready, or NULL. */
struct oribi_mold_place *oribi__sup_mold_of_generation(struct oribi_supervisor *sup, uint32_t generation)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        struct oribi_mold_place *mold = &sup->molds[i];
        if (mold->generation == generation &&
            (mold->state == ORIBI_MOLD_IS_ASKED || mold->state == ORIBI_MOLD_IS_LOADING ||
             mold->state == ORIBI_MOLD_IS_READY))
            return mold;
    }
    return NULL;
}

const char *oribi__sup_status_text(struct oribi_supervisor *sup, int status)
{
    if (WIFSIGNALED(status))
        return oribi__sup_keep(sup, "signal %d", WTERMSIG(status));
    return oribi__sup_keep(sup, "exit code %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* err_respawn_interval, doubled for each further failure in a row. */
int64_t oribi__sup_backoff_ms(const struct oribi_supervisor *sup, uint32_t failures)
{
    int64_t delay = sup->config.err_respawn_interval_ms;
    for (uint32_t i = 1; i < failures && delay < ORIBI_RESPAWN_DELAY_MS_MAX; i++)
        delay *= 2;
    bool doubled_too_far = failures > 1 && delay > ORIBI_RESPAWN_DELAY_MS_MAX;
    return doubled_too_far ? ORIBI_RESPAWN_DELAY_MS_MAX : delay;
}

static bool has_company(const struct oribi_supervisor *sup, const struct oribi_place *place)
{
    for (uint32_t i = 0; i < sup->slot_count; i++) {
        const struct oribi_place *other = &sup->places[i];
        if (other != place && other->generation == place->generation && oribi__is_member(other->state) &&
            other->state != ORIBI_PLACE_HELD)
            return true;
    }
    return false;
}

/* Each death costs its slot one interval; a slot may owe ORIBI_DEATHS_AT_ONCE of them before it has to wait. So a request that kills its
 * worker now and then costs nothing, a storm of them is bounded for each slot by itself, and the last worker is never missed for long. */
int64_t oribi__sup_death_wait_ms(struct oribi_supervisor *sup, struct oribi_place *place, int64_t now_ms)
{
    int64_t interval = sup->config.err_respawn_interval_ms < ORIBI_DEATHS_INTERVAL_MS_MAX
                           ? sup->config.err_respawn_interval_ms
                           : ORIBI_DEATHS_INTERVAL_MS_MAX;
    int64_t most = now_ms + (ORIBI_DEATHS_AT_ONCE + 1) * interval;
    int64_t paid_at = (place->deaths_paid_at > now_ms ? place->deaths_paid_at : now_ms) + interval;
    place->deaths_paid_at = paid_at < most ? paid_at : most;
    int64_t wait = place->deaths_paid_at - now_ms - ORIBI_DEATHS_AT_ONCE * interval;
    if (wait > ORIBI_LAST_RESPAWN_MS && !has_company(sup, place))
        return ORIBI_LAST_RESPAWN_MS;
    return wait > 0 ? wait : 0;
}

int64_t oribi__deadline_in(int64_t timeout_ms, int64_t now_ms)
{
    return timeout_ms ? now_ms + timeout_ms : 0;
}

int64_t oribi__sup_stop_deadline(const struct oribi_supervisor *sup, int64_t now_ms)
{
    return sup->config.shutdown_timeout_ms ? now_ms + sup->config.shutdown_timeout_ms + ORIBI_KILL_MS : 0;
}

bool oribi__sup_spawn_paced(const struct oribi_supervisor *sup, int64_t now_ms)
{
    return sup->spawned_at < 0 || now_ms - sup->spawned_at >= sup->config.spawn_interval_ms;
}

/* --- changing --- */

void oribi__sup_kill(struct oribi_supervisor *sup, struct oribi_place *place, const char *cause, int64_t now_ms)
{
    assert(oribi__has_process(place->state) && place->state != ORIBI_PLACE_KILLED);
    place->state = ORIBI_PLACE_KILLED;
    place->until = now_ms + ORIBI_UNKILLABLE_MS;
    place->cause = cause;
    oribi__sup_signal(sup, place->pid, SIGKILL);
}

void oribi__sup_stop(struct oribi_supervisor *sup, struct oribi_place *place, int64_t now_ms)
{
    assert(place->state == ORIBI_PLACE_BOOTING || place->state == ORIBI_PLACE_SERVING);
    place->state = ORIBI_PLACE_STOPPING;
    place->until = oribi__sup_stop_deadline(sup, now_ms);
    place->cause = place->retire ? place->retire : oribi__cause_asked;
    oribi__sup_signal(sup, place->pid, SIGTERM);
}

/* Only the current generation is worth waiting for. */
void oribi__sup_hold(struct oribi_supervisor *sup, struct oribi_place *place, int64_t wait_ms, int64_t now_ms)
{
    bool wanted = wait_ms > 0 && !sup->stopping && place->generation == sup->generation && !place->retire;
    place->state = wanted ? ORIBI_PLACE_HELD : ORIBI_PLACE_FREE;
    place->until = now_ms + wait_ms;
}

void oribi__sup_kill_mold(struct oribi_supervisor *sup, struct oribi_mold_place *mold, int64_t now_ms)
{
    assert(mold->state > ORIBI_MOLD_IS_ASKED && mold->state != ORIBI_MOLD_IS_KILLED);
    mold->state = ORIBI_MOLD_IS_KILLED;
    mold->until = now_ms + ORIBI_UNKILLABLE_MS;
    oribi__sup_signal(sup, mold->pid, SIGKILL);
}

/* A ready mold leaves at the end of its command socket; one that is still loading does not look at it and gets the signal as well. */
void oribi__sup_stop_mold(struct oribi_supervisor *sup, struct oribi_mold_place *mold, int64_t now_ms)
{
    oribi__sup_push(sup, ORIBI_ACTION_STOP_MOLD)->pid = mold->pid;
    if (mold->state == ORIBI_MOLD_IS_LOADING)
        oribi__sup_signal(sup, mold->pid, SIGTERM);
    mold->state = ORIBI_MOLD_IS_STOPPING;
    mold->until = now_ms + (sup->stopping_now ? ORIBI_KILL_MS : ORIBI_MOLD_STOP_MS);
}

void oribi__sup_begin_stop(struct oribi_supervisor *sup, int exit_code)
{
    if (sup->stopping)
        return;
    if (sup->next_generation) {
        sup->reload_again = false;
        oribi__sup_reload_failed(sup, "the server stops");
    }
    sup->stopping = true;
    sup->exit_code = exit_code;
    oribi__sup_push(sup, ORIBI_ACTION_STOPPING)->code = sup->handed_over;
    if (sup->upgrade_pid > 0 && !sup->handed_over)
        oribi__sup_signal(sup, sup->upgrade_pid, SIGTERM);
}

void oribi__sup_reload(struct oribi_supervisor *sup)
{
    if (sup->stopping || sup->stop_at)
        return;
    if (!sup->up) {
        oribi__sup_say(sup, ORIBI_LOG_WARN, "no reload: the server is not up yet");
        struct oribi_action *action = oribi__sup_push(sup, ORIBI_ACTION_RELOADED);
        action->code = 1;
        action->text = "the server is not up yet";
        return;
    }
    if (sup->next_generation || sup->rolling) {
        sup->reload_again = true;
        oribi__sup_say(sup, ORIBI_LOG_INFO, "a reload is under way; another one follows it");
        return;
    }
    sup->next_generation = ++sup->last_generation;
    sup->next_asked = sup->has_next_config = false;
    sup->why[0] = '\0';
    oribi__sup_say(sup, ORIBI_LOG_INFO, "reload: loading generation %u", sup->next_generation);
    oribi__sup_push(sup, ORIBI_ACTION_RELOADING)->generation = sup->next_generation;
}

static void reload_ended(struct oribi_supervisor *sup, int code, const char *text)
{
    struct oribi_action *action = oribi__sup_push(sup, ORIBI_ACTION_RELOADED);
    action->code = code;
    action->text = text;
    action->generation = sup->generation;
    if (!sup->reload_again)
        return;
    sup->reload_again = false;
    oribi__sup_reload(sup);
}

void oribi__sup_reload_failed(struct oribi_supervisor *sup, const char *reason)
{
    oribi__sup_say(sup, ORIBI_LOG_ERROR, "reload failed, generation %u goes on serving: %s", sup->generation, reason);
    sup->next_generation = 0;
    reload_ended(sup, 1, sup->why[0] ? oribi__sup_keep(sup, "%s: %s", reason, sup->why) : reason);
}

void oribi__sup_reload_done(struct oribi_supervisor *sup)
{
    sup->rolling = false;
    oribi__sup_say(sup, ORIBI_LOG_INFO, "reload done: %u worker%s of generation %u", oribi_supervisor_serving(sup),
                   oribi_log_plural(oribi_supervisor_serving(sup)), sup->generation);
    reload_ended(sup, 0, NULL);
}

void oribi__sup_upgrade_failed(struct oribi_supervisor *sup, const char *reason)
{
    sup->upgrade_pid = 0;
    sup->upgrade_until = 0;
    oribi__sup_say(sup, ORIBI_LOG_ERROR, "upgrade failed, this server goes on: %s", reason);
    struct oribi_action *action = oribi__sup_push(sup, ORIBI_ACTION_UPGRADED);
    action->code = 1;
    action->text = reason;
}
