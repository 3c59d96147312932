/* Records and deaths of processes, as events. Reading order: heard, oribi__messages_take, event_of; then deaths. */
#include "supervisor/acme.h"
#include "supervisor/events.h"

#include "supervisor/announced.h"
#include "supervisor/context.h"
#include "supervisor/frontends.h"
#include "supervisor/generation.h"
#include "supervisor/watched.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/supervisor/message.h"

#include <signal.h>
#include <stdio.h>

_Static_assert((int)ORIBI__EVENT_TEXT_CAP > (int)ORIBI_MESSAGE_TEXT_MAX, "an event has the text of a record");

struct oribi__messages {
    int fd;            /* our end of process.message_fd */
    int life_write_fd; /* the last copy goes with us */
    struct oribi_watcher watcher;
    void (*heard)(void *owner, const struct oribi_message *message, int passed); /* NULL: they are events */
    void *owner;
};

/* Records come from processes that run application code: a pid that stands for a group, for all processes, for init
 * or for the supervisor is a lie, and a signal to it would reach other processes. -1 reports a fork that failed. */
static bool names_a_process(const struct oribi__context *context, const struct oribi_message *message)
{
    if (message->kind == ORIBI_MESSAGE_WORKER_FORKED && message->pid == -1)
        return true;
    return message->pid > 1 && message->pid != context->pid;
}

/* Takes `passed`. False when the message is no event. */
static bool event_of(struct oribi__context *context, struct oribi_message *message, int passed,
                     struct oribi_policy_event *event)
{
    static const enum oribi_policy_event_type types[] = {
        [ORIBI_MESSAGE_MOLD_READY] = ORIBI_EVENT_MOLD_READY,
        [ORIBI_MESSAGE_MOLD_FAILED] = ORIBI_EVENT_MOLD_FAILED,
        [ORIBI_MESSAGE_WORKER_FORKED] = ORIBI_EVENT_WORKER_FORKED,
        [ORIBI_MESSAGE_WORKER_READY] = ORIBI_EVENT_WORKER_READY,
        [ORIBI_MESSAGE_WORKER_FAILED] = ORIBI_EVENT_WORKER_FAILED,
        [ORIBI_MESSAGE_WORKER_LEAVING] = ORIBI_EVENT_WORKER_LEAVING,
        [ORIBI_MESSAGE_MOLD_PROMOTED] = ORIBI_EVENT_MOLD_PROMOTED,
        [ORIBI_MESSAGE_MOLD_AT] = ORIBI_EVENT_MOLD_AT,
    };
    switch (message->kind) {
    case ORIBI_MESSAGE_MOLD_OPTIONS:
    case ORIBI_MESSAGE_MOLD_LISTENER:
    case ORIBI_MESSAGE_MOLD_DIFFERING:
    case ORIBI_MESSAGE_MOLD_RESTART_FILE:
    case ORIBI_MESSAGE_MOLD_LOCAL:
        oribi__announced_message(context, message, passed);
        return false;
    case ORIBI_MESSAGE_FILES:
        oribi__watch_message(context, passed);
        return false;
    case ORIBI_MESSAGE_MOLD_PROMOTED:
        if (!oribi__mold_promoted(context, message, passed))
            return false;
        break;
    case ORIBI_MESSAGE_ENDED:
        oribi_os_close(passed);
        return oribi__reaper_reported(context, message, event);
    default:
        oribi_os_close(passed);
        if (message->kind != ORIBI_MESSAGE_MOLD_AT &&
            (message->kind < ORIBI_MESSAGE_MOLD_READY || message->kind > ORIBI_MESSAGE_WORKER_LEAVING))
            return false;
    }
    *event = (struct oribi_policy_event){.type = types[message->kind],
                                         .pid = message->pid,
                                         .generation = message->generation,
                                         .slot = message->slot,
                                         .ticket = message->ticket,
                                         .text = message->text};
    if (message->kind == ORIBI_MESSAGE_MOLD_READY)
        oribi__announced_ready(context, event);
    return true;
}

void oribi__messages_hear_all(struct oribi__context *context)
{
    struct oribi__messages *messages = context->messages;
    struct oribi_message message;
    int passed;
    int got;
    while ((got = oribi_message_receive(messages->fd, &message, &passed)) == 1 || got == ORIBI_EBAD)
        if (got == 1)
            messages->heard(messages->owner, &message, passed);
}

bool oribi__messages_take(struct oribi__context *context)
{
    struct oribi_message message;
    struct oribi_policy_event event;
    int passed;
    int got;
    if (context->messages->heard) {
        oribi__messages_hear_all(context);
        return false;
    }
    while ((got = oribi_message_receive(context->messages->fd, &message, &passed)) == 1 || got == ORIBI_EBAD) {
        if (got != 1 || !names_a_process(context, &message)) {
            oribi_log(ORIBI_LOG_WARN, "dropped a message that no process of this version sends");
            if (got == 1)
                oribi_os_close(passed);
            continue;
        }
        if (!event_of(context, &message, passed, &event))
            continue;
        oribi__happened(context, &event);
        return true;
    }
    return false;
}

static void heard(void *owner, uint8_t ready)
{
    (void)oribi__messages_take(owner);
}

void oribi__messages_hear(struct oribi__context *context,
                          void (*hear)(void *owner, const struct oribi_message *message, int passed), void *owner)
{
    context->messages->heard = hear;
    context->messages->owner = owner;
}

void oribi__messages_await_end(struct oribi__context *context, int64_t ms)
{
    struct oribi_message message;
    int fd = context->messages->fd;
    int64_t end_ms = oribi_clock_ms() + ms;
    oribi__close(&context->process.message_fd);
    for (int64_t left_ms = ms; left_ms > 0 && oribi_message_receive(fd, &message, NULL) != ORIBI_ECLOSED;
         left_ms = end_ms - oribi_clock_ms())
        oribi_process_poll(&fd, 1, left_ms);
}

/* --- the module --- */

static void init(struct oribi__context *context)
{
    context->messages->fd = context->messages->life_write_fd = -1;
}

static int fail(char *error)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot make pipes: %s", oribi_os_error_text());
    return ORIBI_ESYS;
}

static int begin(struct oribi__context *context, char *error)
{
    struct oribi__messages *messages = context->messages;
    int fds[2];
    if (oribi_message_pair(fds) < 0)
        return fail(error);
    messages->fd = fds[0];
    context->process.message_fd = fds[1];
    if (oribi_os_pipe(fds) < 0)
        return fail(error);
    context->process.life_fd = fds[0];
    messages->life_write_fd = fds[1];
    messages->watcher.ready = heard;
    messages->watcher.owner = context;
    if (oribi_dispatcher_watch(&context->dispatcher, &messages->watcher, messages->fd, ORIBI_READ) < 0)
        return fail(error);
    return 0;
}

static void let_go(struct oribi__context *context)
{
    oribi__close(&context->messages->fd);
    oribi__close(&context->messages->life_write_fd);
}

static void end(struct oribi__context *context)
{
    oribi_dispatcher_forget(&context->dispatcher, &context->messages->watcher);
    let_go(context);
}

const struct oribi__module oribi__messages_module = {
    .bytes = sizeof(struct oribi__messages),
    .init = init,
    .begin = begin,
    .let_go = let_go,
    .end = end,
};

/* --- deaths --- */

enum {
    MISSING_LOOK_MS = 1000,
    REAPERS_MS = 1000, /* that they are waited for */
};

struct oribi__deaths {
    bool looks;
    struct oribi_timer missing; /* where no process but init adopts orphans (reaper.c) */
};

/* False: no child has ended that the policy knows nothing of. */
static bool look(struct oribi__context *context)
{
    int status;
    pid_t pid = oribi_process_ended();
    if (pid <= 0)
        return false;
    if (oribi__messages_take(context))
        return true;
    if (oribi_process_reap(pid, false, &status) != pid)
        return false;
    if (oribi__frontends_ended(context, pid, status) || oribi__acme_ended(context, pid, status))
        return true;
    oribi__mold_socket_close(context, pid);
    oribi__happened(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = pid, .status = status});
    return true;
}

bool oribi__deaths_take(struct oribi__context *context)
{
    while (context->deaths->looks && context->events.count == 0 && look(context))
        continue;
    return context->events.count > 0;
}

static void deaths_settle(struct oribi__context *context)
{
    (void)oribi__deaths_take(context);
}

/* A process that has gone without a report; 0: none. It may have been reported since. */
static pid_t missing(const struct oribi__context *context)
{
    const struct oribi_policy *policy = &context->policy;
    for (uint32_t i = 0; i < policy->slot_count; i++)
        if (oribi_policy_has_process(policy, i) && oribi_process_is_gone(policy->records[i].pid))
            return policy->records[i].pid;
    return 0;
}

/* A worker has gone that no process reaps for us: its reaper may have reported since. If not, both are gone, which a
 * kill is the likeliest reason for. */
static void look_for_missing(void *owner)
{
    struct oribi__context *context = owner;
    struct oribi__deaths *deaths = context->deaths;
    pid_t pid = missing(context);
    oribi_dispatcher_arm(&context->dispatcher, &deaths->missing, pid > 0 ? 0 : oribi_clock_ms() + MISSING_LOOK_MS);
    if (pid > 0 && !oribi__messages_take(context))
        oribi__happened(context,
                        &(struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = pid, .status = SIGKILL});
}

void oribi__deaths_begin(struct oribi__context *context)
{
    struct oribi__deaths *deaths = context->deaths;
    deaths->looks = true;
    deaths->missing = (struct oribi_timer){.expired = look_for_missing, .owner = context};
    if (!oribi_os_adopts_orphans())
        oribi_dispatcher_arm(&context->dispatcher, &deaths->missing, 0);
}

bool oribi__reaper_reported(struct oribi__context *context, const struct oribi_message *message,
                            struct oribi_policy_event *event)
{
    if (oribi_os_adopts_orphans())
        return false;
    oribi__mold_socket_close(context, message->pid);
    *event =
        (struct oribi_policy_event){.type = ORIBI_EVENT_EXITED, .pid = message->pid, .status = (int)message->ticket};
    return true;
}

/* The end of the socket that all of them report to is theirs. */
void oribi__reapers_await(struct oribi__context *context)
{
    if (!oribi_os_adopts_orphans())
        oribi__messages_await_end(context, REAPERS_MS);
}

static void deaths_end(struct oribi__context *context)
{
    oribi_dispatcher_arm(&context->dispatcher, &context->deaths->missing, INT64_MAX);
}

const struct oribi__module oribi__deaths_module = {
    .bytes = sizeof(struct oribi__deaths),
    .settle = deaths_settle,
    .end = deaths_end,
};
