/* Frontends from their messages to their end. Reading order: local content, hearing, death, the end, the module. */
#include "supervisor/frontends_private.h"

#include "supervisor/acme.h"
#include "supervisor/actions.h"
#include "supervisor/frontend_memory.h"
#include "supervisor/start.h"
#include "supervisor/upgrade.h"
#include "oribi/observe/observe.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    KILLED_MS = 1000,    /* until a frontend that was killed has ended */
    LOCAL_MS = 2 * 1000, /* until it answers by what a reload says */
    HEARD_MAX = 16,      /* messages of a frontend at a time: it has one or two to say */
};

/* --- what is answered without the application --- */

/* A reload has ended when what it has changed is seen. A frontend whose disk stands still takes the local content
 * later. */
static bool locals_wait(const struct oribi__frontends *frontends)
{
    for (uint32_t i = 0; i < frontends->set.count; i++)
        if (frontends->items[i].process.ready && frontends->items[i].locals_owed)
            return true;
    return false;
}

bool oribi__frontends_settle(const struct oribi__context *context)
{
    const struct oribi__frontends *frontends = context->frontends;
    return frontends->renewing != ORIBI__RENEWAL_NONE ||
           (oribi_timer_at(&frontends->locals_late) != INT64_MAX && locals_wait(frontends));
}

static void locals_late(void *owner)
{
    oribi__reload_settled(owner);
}

int oribi__frontends_local_text(const struct oribi__frontends *frontends, struct oribi_buf *out)
{
    int code = oribi_buf_try_append(out, frontends->local.p, frontends->local.len);
    return code < 0 ? code : oribi_buf_try_append(out, frontends->challenges.p, frontends->challenges.len);
}

bool oribi__frontends_locals_taken(const struct oribi__context *context)
{
    return !locals_wait(context->frontends);
}

/* Gives them a text. `own` is the part of it that has changed: it becomes `part`. */
static int tell_local(struct oribi__context *context, struct oribi_buf *own, const struct oribi_buf *part)
{
    struct oribi__frontends *frontends = context->frontends;
    struct oribi_buf text = {0};
    struct oribi_buf before = *own;
    char error[ORIBI_ERROR_TEXT_CAP];
    int fd = ORIBI_ENOMEM;
    *own = (struct oribi_buf){0};
    if (oribi_buf_try_append(own, part->p, part->len) == 0 && oribi__frontends_local_text(frontends, &text) == 0)
        fd = oribi__frontend_text_fd(&text, error);
    oribi_buf_deinit(&text);
    oribi_buf_deinit(fd < 0 ? own : &before);
    if (fd < 0) {
        *own = before;
        return ORIBI_ENOMEM;
    }
    for (uint32_t i = 0; i < frontends->set.count; i++) {
        struct oribi__frontend *frontend = &frontends->items[i];
        if (frontend->control_fd < 0)
            continue; /* it gets the text when it starts */
        if (oribi__frontend_text_send(frontend->control_fd, ORIBI_FRONTEND_TOLD_LOCAL, fd) == 0)
            frontend->locals_owed++;
        else
            oribi_log(ORIBI_LOG_ERROR, "frontend %u takes no messages: it keeps its files and fixed answers", i);
    }
    oribi_os_close(fd);
    return 0;
}

void oribi__frontends_local(struct oribi__context *context, const struct oribi_buf *local)
{
    struct oribi__frontends *frontends = context->frontends;
    if (frontends->set.count == 0)
        return;
    if (tell_local(context, &frontends->local, local) < 0)
        oribi_log(ORIBI_LOG_ERROR,
                  "out of memory: frontends keep the files and fixed answers of the previous generation");
    else
        oribi_dispatcher_arm(&context->dispatcher, &frontends->locals_late, oribi_clock_ms() + LOCAL_MS);
}

int oribi__frontends_challenges(struct oribi__context *context, const struct oribi_buf *challenges)
{
    return tell_local(context, &context->frontends->challenges, challenges);
}

/* --- hearing --- */

/* A frontend answers in the order in which it was told: a late answer to an earlier one is none to the last. */
static bool is_last(uint32_t *owed)
{
    return *owed > 0 && --*owed == 0;
}

static void shut(struct oribi__frontend *frontend)
{
    oribi_dispatcher_forget(&frontend->context->dispatcher, &frontend->watcher);
    oribi__close(&frontend->control_fd);
    frontend->owed = frontend->locals_owed = 0;
}

static void is_up(struct oribi__frontends *frontends, struct oribi__frontend *frontend)
{
    if (!frontends->beginning && !frontend->process.ready)
        oribi_log(ORIBI_LOG_INFO, "frontend %u (pid %d) serves again", frontend->number, (int)frontend->process.pid);
    frontend->process.ready = true;
    frontend->failures = 0;
    oribi_dispatcher_arm(&frontend->context->dispatcher, &frontend->until, INT64_MAX);
    if (frontend->files.len > 0)
        oribi__frontend_files_move(&frontends->kept, &frontend->files);
}

/* The first frontend cannot read the inbox any more. */
static void renew_inbox(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    int code = oribi__frontend_inbox_renew(&frontends->inbox, &context->process);
    if (code < 0) {
        if (code != ORIBI_AGAIN)
            oribi_log(ORIBI_LOG_ERROR,
                      "publish: cannot make another inbox: %s; nothing is published from outside of "
                      "the first frontend until a restart",
                      oribi_os_error_text());
        return;
    }
    for (uint32_t i = 0; i < frontends->set.count; i++) {
        int fd = frontends->items[i].control_fd; /* else it gets the inbox when it starts */
        if (fd >= 0 &&
            (oribi__frontend_text_send(fd, ORIBI_FRONTEND_TOLD_INBOX_WRITE, context->process.inbox_fd) < 0 ||
             (i == 0 && oribi__frontend_text_send(fd, ORIBI_FRONTEND_TOLD_INBOX, frontends->inbox.read_fd) < 0)))
            oribi_log(ORIBI_LOG_ERROR, "frontend %u takes no messages: it has no inbox of publications", i);
    }
}

/* One message. False: there is none. */
static bool hear(struct oribi__frontends *frontends, struct oribi__frontend *frontend)
{
    char line[ORIBI_ERROR_TEXT_CAP + 2];
    if (frontend->control_fd < 0)
        return false;
    ssize_t n = oribi_os_read(frontend->control_fd, line, sizeof(line) - 1);
    if (n <= 0) {
        if (n != ORIBI_AGAIN)
            shut(frontend); /* its death is told by waitpid(2) */
        return false;
    }
    line[n] = '\0';
    switch (line[0]) {
    case ORIBI_FRONTEND_SAYS_READY:
        is_up(frontends, frontend);
        break;
    case ORIBI_FRONTEND_SAYS_TAKEN:
        if (!is_last(&frontend->owed))
            break;
        frontends->taken++;
        (void)snprintf(frontends->warning, sizeof(frontends->warning), "%.*s", (int)sizeof(frontends->warning) - 1,
                       line + 1);
        break;
    case ORIBI_FRONTEND_SAYS_LOCAL:
        (void)is_last(&frontend->locals_owed);
        break;
    case ORIBI_FRONTEND_SAYS_SOCKETS:
        frontend->sockets_owed = false;
        break;
    case ORIBI_FRONTEND_SAYS_INBOX:
        if (frontend->number == 0)
            renew_inbox(frontend->context);
        break;
    case ORIBI_FRONTEND_SAYS_REFUSED:
        if (!is_last(&frontend->owed))
            break;
        (void)snprintf(frontends->refusal, sizeof(frontends->refusal), "%.*s", (int)sizeof(frontends->refusal) - 1,
                       line + 1);
        break;
    case ORIBI_FRONTEND_SAYS_FAILED:
        (void)snprintf(frontends->error, sizeof(frontends->error), "%.*s", (int)sizeof(frontends->error) - 1, line + 1);
        break;
    default:
        break;
    }
    return true;
}

/* Messages that are there. A frontend that writes without an end, which none of ours does, holds up nobody. */
static void hear_some(struct oribi__frontend *frontend)
{
    for (int i = 0; i < HEARD_MAX && hear(frontend->context->frontends, frontend); i++)
        continue;
}

/* Looks at all that waits for a message or a death of a frontend. */
static void look_at_waits(struct oribi__context *context)
{
    if (context->frontends->beginning)
        oribi__frontends_look_at_begin(context);
    oribi__frontends_look_at_renewal(context);
    oribi__reload_settled(context);
    oribi__acme_look_at_challenges(context);
    oribi__frontend_sockets_look(context);
}

static void says(void *owner, uint8_t ready)
{
    struct oribi__frontend *frontend = owner;
    hear_some(frontend);
    look_at_waits(frontend->context);
}

static void died(struct oribi__context *context, struct oribi__frontend *frontend, int status)
{
    struct oribi__frontends *frontends = context->frontends;
    pid_t pid = frontend->process.pid;
    hear_some(frontend);
    shut(frontend);
    oribi_dispatcher_arm(&context->dispatcher, &frontend->until, INT64_MAX);
    frontend->process.pid = 0;
    if (!frontend->process.ready && frontend->files.len > 0) /* it was to have new ones */
        (void)snprintf(frontend->refused, sizeof(frontend->refused), "%.*s", (int)sizeof(frontend->refused) - 1,
                       frontends->error);
    oribi__frontend_files_free(&frontend->files, false);
    frontend->process.ready = false;
    if (frontends->set.slots)
        oribi_frontend_slot_ended(&frontends->set.slots[frontend->number]);
    if (frontends->ending || frontends->beginning)
        return;
    context->observe->totals.frontend_exits++;
    oribi_log(ORIBI_LOG_ERROR, "frontend %u (pid %d) ended: %s %d%s%s", frontend->number, (int)pid,
              WIFSIGNALED(status) ? "signal" : "exit code",
              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), frontends->error[0] ? ": " : "",
              frontends->error);
    frontends->error[0] = '\0';
    oribi__frontend_plan_start(frontend, oribi_clock_ms());
}

bool oribi__frontends_ended(struct oribi__context *context, pid_t pid, int status)
{
    struct oribi__frontends *frontends = context->frontends;
    if (oribi__reading_ended(&frontends->of_renewal, pid, status) ||
        oribi__reading_ended(&frontends->of_start, pid, status))
        return true;
    for (uint32_t i = 0; i < frontends->set.count; i++)
        if (frontends->items[i].process.pid == pid) {
            died(context, &frontends->items[i], status);
            look_at_waits(context);
            return true;
        }
    return false;
}

/* --- the end --- */

static void tell_all(struct oribi__frontends *frontends, char kind)
{
    for (uint32_t i = 0; i < frontends->set.count; i++)
        if (frontends->items[i].control_fd >= 0) /* a frontend that takes no message is killed in time */
            (void)send(frontends->items[i].control_fd, &kind, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void oribi__frontends_reopen(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    int access_fd = oribi__frontends_access_log_fd(context);
    for (uint32_t i = 0; i < frontends->set.count; i++)
        if (frontends->items[i].control_fd >= 0 &&
            (oribi__frontend_text_send(frontends->items[i].control_fd, ORIBI_FRONTEND_TOLD_REOPEN, oribi_log_fd()) <
                 0 ||
             (access_fd >= 0 && oribi__frontend_text_send(frontends->items[i].control_fd,
                                                          ORIBI_FRONTEND_TOLD_ACCESS_LOG, access_fd) < 0)))
            oribi_log(ORIBI_LOG_WARN, "frontend %u did not get the reopened log and writes to the old one: %s", i,
                      oribi_os_error_text());
}

bool oribi__frontends_end(struct oribi__context *context, bool handed_over)
{
    struct oribi__frontends *frontends = context->frontends;
    if (frontends->ending)
        return false;
    if (frontends->set.count == 0)
        return true;
    frontends->ending = true;
    frontends->renewing = ORIBI__RENEWAL_NONE;
    oribi_dispatcher_arm(&context->dispatcher, &frontends->renewal_late, INT64_MAX);
    oribi__reading_end(&frontends->of_renewal, false);
    oribi__reading_end(&frontends->of_start, false);
    bool shared = handed_over || oribi__upgrade_is_successor(context);
    tell_all(frontends, shared ? ORIBI_FRONTEND_TOLD_DRAIN : ORIBI_FRONTEND_TOLD_STOP);
    return true;
}

void oribi__frontends_give_up(struct oribi__context *context)
{
    tell_all(context->frontends, ORIBI_FRONTEND_TOLD_GIVE_UP);
}

static bool any_left(const struct oribi__frontends *frontends)
{
    for (uint32_t i = 0; i < frontends->set.count; i++)
        if (frontends->items[i].process.pid)
            return true;
    return false;
}

void oribi__frontends_note_sole(struct oribi__context *context, bool sole)
{
    struct oribi__frontends *frontends = context->frontends;
    for (uint32_t i = 0; frontends->set.slots && i < frontends->set.count; i++)
        atomic_store_explicit(&frontends->set.slots[i].sole, sole, memory_order_relaxed);
}

const struct oribi__frontend_set *oribi__frontends_set(const struct oribi__context *context)
{
    return &context->frontends->set;
}

bool oribi__frontends_any(const struct oribi__context *context)
{
    return context->frontends->set.count > 0;
}

/* --- the module --- */

static void turn_tickets(void *owner)
{
    struct oribi__context *context = owner;
    oribi__frontend_tickets_turn(context->frontends->tickets);
    oribi_dispatcher_arm(&context->dispatcher, &context->frontends->tickets_turn, oribi_clock_ms() + ORIBI__TICKETS_MS);
}

static void init(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    frontends->tickets_fd = -1;
    frontends->slots_fd = -1;
    oribi__frontend_inbox_init(&frontends->inbox);
    frontends->tickets_turn = (struct oribi_timer){.expired = turn_tickets, .owner = context};
    frontends->begin_late = (struct oribi_timer){.expired = oribi__frontends_begin_late, .owner = context};
    frontends->renewal_late = (struct oribi_timer){.expired = oribi__frontends_renewal_late, .owner = context};
    frontends->sockets_late = (struct oribi_timer){.expired = oribi__frontend_sockets_late, .owner = context};
    frontends->locals_late = (struct oribi_timer){.expired = locals_late, .owner = context};
    oribi__reading_init(context, &frontends->of_renewal, oribi__frontends_renew);
    oribi__reading_init(context, &frontends->of_start, oribi__frontends_password_known);
    for (uint32_t i = 0; i < ORIBI_FRONTENDS_MAX; i++) {
        struct oribi__frontend *frontend = &frontends->items[i];
        frontend->context = context;
        frontend->number = i;
        frontend->control_fd = -1;
        frontend->sockets_fd = -1;
        frontend->watcher = (struct oribi_watcher){.ready = says, .owner = frontend};
        frontend->until = (struct oribi_timer){.expired = oribi__frontend_time_is_over, .owner = frontend};
        frontends->set.processes[i] = &frontend->process;
    }
}

static int begin(struct oribi__context *context, char *error)
{
    oribi__frontend_inbox_inherit(&context->frontends->inbox, &context->process);
    return 0;
}

size_t oribi__frontends_hand_inbox_over(const struct oribi__context *context, char *text, int *keep)
{
    return oribi__frontend_inbox_hand_over(&context->frontends->inbox, &context->process, text, keep);
}

/* A stop of a server that is not up yet ends it here: its policy has begun nothing. */
static void settle(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    if (frontends->beginning && context->policy.stopping)
        oribi__serve_not(context, NULL);
    if (frontends->set.count > 0)
        oribi__frontends_note_sole(context, !oribi__upgrade_is_successor(context) && !context->policy.upgrade_pid);
    if (context->policy.frontends_end && !any_left(frontends))
        oribi__happened(context, &(struct oribi_policy_event){.type = ORIBI_EVENT_FRONTENDS_ENDED});
}

static void let_go(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    for (uint32_t i = 0; i < frontends->set.count; i++) {
        oribi__close(&frontends->items[i].control_fd);
        oribi__close(&frontends->items[i].sockets_fd);
    }
    oribi__close(&frontends->tickets_fd);
    oribi__close(&frontends->slots_fd);
    oribi__frontend_inbox_close(&frontends->inbox);
}

/* Keys of ours are wiped by their owner; a child may not have them (oribi_os_seclude()). */
static void release(struct oribi__context *context, bool in_child)
{
    struct oribi__frontends *frontends = context->frontends;
    for (uint32_t i = 0; i < frontends->set.count; i++)
        oribi__frontend_files_free(&frontends->items[i].files, in_child);
    oribi__reading_end(&frontends->of_renewal, in_child);
    oribi__reading_end(&frontends->of_start, in_child);
    oribi__frontend_files_free(&frontends->renewed, in_child);
    oribi__frontend_files_free(&frontends->kept, in_child);
    if (frontends->tickets)
        (void)munmap(frontends->tickets, sizeof(*frontends->tickets)); /* ours: cannot fail */
    frontends->tickets = NULL;
    if (frontends->set.slots)
        (void)munmap(frontends->set.slots, ORIBI_FRONTENDS_MAX * sizeof(*frontends->set.slots)); /* as the other */
    frontends->set.slots = NULL;
    oribi_buf_deinit(&frontends->local);
    oribi_buf_deinit(&frontends->challenges);
}

static void forget(struct oribi__context *context)
{
    release(context, true);
}

void oribi__frontends_close(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    struct oribi_timer *timers[] = {&frontends->tickets_turn, &frontends->begin_late, &frontends->renewal_late,
                                    &frontends->locals_late, &frontends->sockets_late};
    for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
        oribi_dispatcher_arm(&context->dispatcher, timers[i], INT64_MAX);
    for (uint32_t i = 0; i < frontends->set.count; i++) {
        struct oribi__frontend *frontend = &frontends->items[i];
        shut(frontend);
        oribi_dispatcher_arm(&context->dispatcher, &frontend->until, INT64_MAX);
        if (frontend->process.pid) {
            (void)kill(frontend->process.pid, SIGKILL); /* what has begun had its time */
            (void)oribi_process_reap_within(frontend->process.pid, KILLED_MS);
        }
        frontend->process.pid = 0;
        frontend->process.ready = false;
    }
    let_go(context);
    release(context, false);
    frontends->set.count = 0;
}

const struct oribi__module oribi__frontends_module = {
    .bytes = sizeof(struct oribi__frontends),
    .init = init,
    .begin = begin,
    .settle = settle,
    .let_go = let_go,
    .forget = forget,
    .end = oribi__frontends_close,
};
