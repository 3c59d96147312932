/* Hearing and ending frontends, and starting them again. */
#include "supervisor/frontend_passwords.h"
#include "supervisor/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    ENDED_LOOK_MS = 5,          /* a command's output is closed just before its end */
    KILLED_MS = 1000,           /* until a frontend that was killed has ended */
    LOCAL_MS = 2 * 1000,        /* until it answers by what a reload says */
    BACKOFF_MS = 100,           /* doubled with each failure */
    BACKOFF_MS_MAX = 10 * 1000, /* it is not doubled beyond this */
    CPUS_PER_FRONTEND = 4,
    HEARD_MAX = 16, /* messages of a frontend at a time: it has one or two to say */
};

/* --- what it is started with --- */

void oribi__frontends_init(struct oribi__frontends *frontends)
{
    frontends->tickets_fd = -1;
    frontends->slots_fd = -1;
    frontends->starting = ORIBI_FRONTENDS_MAX;
    for (uint32_t i = 0; i < ORIBI_FRONTENDS_MAX; i++)
        frontends->items[i].control_fd = -1;
    for (uint32_t i = 0; i < ORIBI_FRONTENDS_MAX; i++)
        frontends->set.processes[i] = &frontends->items[i].process;
}

/* --- hearing --- */

/* A frontend answers in the order in which it was told: a late answer to an earlier one is none to the last. */
static bool is_last(uint32_t *owed)
{
    return *owed > 0 && --*owed == 0;
}

/* One message. False: there is none. */
static bool hear(struct oribi__context *context, struct oribi__frontend *frontend)
{
    struct oribi__frontends *frontends = &context->frontends;
    char line[ORIBI_ERROR_TEXT_CAP + 2];
    if (frontend->control_fd < 0)
        return false;
    ssize_t n = oribi_os_read(frontend->control_fd, line, sizeof(line) - 1);
    if (n <= 0) {
        if (n != ORIBI_AGAIN) {
            oribi__close(&frontend->control_fd); /* its death is told by waitpid(2) */
            frontend->owed = frontend->locals_owed = 0;
        }
        return false;
    }
    line[n] = '\0';
    switch (line[0]) {
    case ORIBI_FRONTEND_SAYS_READY:
        frontend->process.ready = true;
        frontend->failures = 0;
        if (frontend->files.len > 0)
            oribi__frontend_files_move(&frontends->kept, &frontend->files);
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
static void hear_some(struct oribi__context *context, struct oribi__frontend *frontend)
{
    for (int i = 0; i < HEARD_MAX && hear(context, frontend); i++)
        continue;
}

static uint32_t count_ready(const struct oribi__frontends *frontends)
{
    uint32_t ready = 0;
    for (uint32_t i = 0; i < frontends->set.count; i++)
        ready += frontends->items[i].process.ready;
    return ready;
}

static bool all_open(const struct oribi__frontends *frontends)
{
    for (uint32_t i = 0; i < frontends->set.count; i++)
        if (frontends->items[i].control_fd < 0)
            return false;
    return true;
}

/* --- the begin --- */

static int refuse(char *error, const char *text)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", text);
    return ORIBI_EINVAL;
}

/* The reason begins with "user", the option of workers; this one is frontend_user. */
int oribi__frontends_check_user(const struct oribi_options *options, char *error)
{
    char reason[ORIBI_ERROR_TEXT_CAP];
    int code = options->frontend_user ? oribi_process_check_user(options->frontend_user, NULL, reason) : 0;
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "frontend_%.*s", ORIBI_ERROR_TEXT_CAP - (int)sizeof("frontend_"),
                       reason);
    return code;
}

int oribi__frontends_begin(struct oribi__context *context, char *error)
{
    struct oribi__frontends *frontends = &context->frontends;
    const struct oribi_options *options = context->process.options;
    oribi__frontends_warn_of_unused(options, context->process.listeners);
    if (!oribi__frontends_wanted(context->process.listeners) || context->process.prefork)
        return 0;
    if (!oribi__frontend_program(frontends->program, sizeof(frontends->program)))
        return refuse(error, "tls:// and ?frontend=on need " ORIBI__FRONTEND_NEEDS);
    oribi__frontends_make_tickets(frontends);
    oribi__frontends_make_slots(frontends);
    uint32_t cpus = oribi_os_cpu_count();
    frontends->set.count = options->frontends ? options->frontends : (cpus + CPUS_PER_FRONTEND - 1) / CPUS_PER_FRONTEND;
    if (frontends->set.count > ORIBI_FRONTENDS_MAX)
        frontends->set.count = ORIBI_FRONTENDS_MAX;
    int code = oribi__frontend_text_local(options, &frontends->local);
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory");
    frontends->beginning = code == 0;
    if (code < 0)
        oribi__frontends_close(context, false);
    return code;
}

/* One reads certificates at a time. */
static bool may_start(const struct oribi__frontends *frontends, uint32_t i)
{
    return !frontends->of_start || (frontends->starting == i && oribi__passwords_turn(frontends->of_start));
}

static int begin_turn(struct oribi__context *context, char *error)
{
    struct oribi__frontends *frontends = &context->frontends;
    while (frontends->begun < frontends->set.count) {
        if (!may_start(frontends, frontends->begun))
            return ORIBI_AGAIN;
        int code = oribi__frontend_start(context, frontends->begun, error);
        if (code < 0)
            return code;
        frontends->begun++;
    }
    for (uint32_t i = 0; i < frontends->set.count; i++)
        hear_some(context, &frontends->items[i]);
    if (frontends->error[0])
        return refuse(error, frontends->error);
    if (!all_open(frontends))
        return refuse(error, "oribi-frontend has ended at its start");
    if (count_ready(frontends) == frontends->set.count)
        return 0;
    return oribi_clock_ms() < frontends->items[0].ready_by ? ORIBI_AGAIN
                                                           : refuse(error, "oribi-frontend is not ready in time");
}

int oribi__frontends_begin_turn(struct oribi__context *context, char *error)
{
    int code = begin_turn(context, error);
    if (code == ORIBI_AGAIN)
        return code;
    context->frontends.beginning = false;
    if (code < 0)
        oribi__frontends_close(context, false);
    return code;
}

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
    const struct oribi__frontends *frontends = &context->frontends;
    return frontends->renewing != ORIBI__RENEWAL_NONE ||
           (frontends->locals_until && oribi_clock_ms() < frontends->locals_until && locals_wait(frontends));
}

void oribi__frontends_local(struct oribi__context *context, const struct oribi_buf *local)
{
    struct oribi__frontends *frontends = &context->frontends;
    struct oribi_buf *own = &frontends->local;
    char error[ORIBI_ERROR_TEXT_CAP];
    if (frontends->set.count == 0)
        return;
    own->len = 0;
    int fd = ORIBI_ENOMEM;
    if (oribi_buf_try_append(own, local->p, local->len) == 0)
        fd = oribi__frontend_text_fd(local, error);
    if (fd < 0) {
        oribi_log(ORIBI_LOG_ERROR, "out of memory: frontends go on with the local content of the generation before");
        return;
    }
    for (uint32_t i = 0; i < frontends->set.count; i++) {
        struct oribi__frontend *frontend = &frontends->items[i];
        if (frontend->control_fd < 0)
            continue; /* it gets the text when it starts */
        if (oribi__frontend_text_send(frontend->control_fd, ORIBI_FRONTEND_TOLD_LOCAL, fd) == 0)
            frontend->locals_owed++;
        else
            oribi_log(ORIBI_LOG_ERROR,
                      "frontend %u takes no messages: it goes on with the local content of the generation before", i);
    }
    oribi_os_close(fd);
    frontends->locals_until = oribi_clock_ms() + LOCAL_MS;
}

/* --- life --- */

static void plan_start(struct oribi__frontend *frontend, int64_t now_ms)
{
    int64_t wait_ms = BACKOFF_MS;
    for (uint32_t i = 0; i < frontend->failures && wait_ms < BACKOFF_MS_MAX; i++)
        wait_ms *= 2;
    frontend->failures++;
    frontend->start_at = now_ms + (wait_ms < BACKOFF_MS_MAX ? wait_ms : BACKOFF_MS_MAX);
}

static bool command_ended(struct oribi__passwords *passwords, pid_t pid, int status)
{
    return passwords && passwords->runs && oribi_os_command_ended(&passwords->command, pid, status);
}

bool oribi__frontends_ended(struct oribi__context *context, pid_t pid, int status)
{
    struct oribi__frontends *frontends = &context->frontends;
    if (command_ended(frontends->passwords, pid, status) || command_ended(frontends->of_start, pid, status))
        return true;
    for (uint32_t i = 0; i < frontends->set.count; i++) {
        struct oribi__frontend *frontend = &frontends->items[i];
        if (frontend->process.pid != pid)
            continue;
        hear_some(context, frontend);
        oribi__close(&frontend->control_fd);
        frontend->process.pid = 0;
        frontend->owed = frontend->locals_owed = 0;
        if (!frontend->process.ready && frontend->files.len > 0) /* it was to have new ones */
            (void)snprintf(frontend->refused, sizeof(frontend->refused), "%.*s", (int)sizeof(frontend->refused) - 1,
                           frontends->error);
        oribi__frontend_files_free(&frontend->files, false);
        frontend->process.ready = false;
        if (frontends->set.slots)
            oribi_frontend_slot_ended(&frontends->set.slots[i]);
        if (frontends->ending || frontends->beginning)
            return true;
        context->observe.totals.frontend_exits++;
        oribi_log(ORIBI_LOG_ERROR, "frontend %u (pid %d) ended: %s %d%s%s", i, (int)pid,
                  WIFSIGNALED(status) ? "signal" : "exit code",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), frontends->error[0] ? ": " : "",
                  frontends->error);
        frontends->error[0] = '\0';
        plan_start(frontend, oribi_clock_ms());
        return true;
    }
    return false;
}

static void look_at(struct oribi__context *context, uint32_t i, int64_t now_ms)
{
    struct oribi__frontends *frontends = &context->frontends;
    struct oribi__frontend *frontend = &frontends->items[i];
    char error[ORIBI_ERROR_TEXT_CAP];
    bool was_ready = frontend->process.ready;
    hear_some(context, frontend);
    if (!was_ready && frontend->process.ready)
        oribi_log(ORIBI_LOG_INFO, "frontend %u (pid %d) serves again", i, (int)frontend->process.pid);
    if (frontend->process.pid && !frontend->process.ready && now_ms >= frontend->ready_by && !frontends->ending) {
        oribi_log(ORIBI_LOG_ERROR, "frontend %u (pid %d) is not ready in time: killed", i, (int)frontend->process.pid);
        frontend->ready_by = INT64_MAX;
        (void)kill(frontend->process.pid, SIGKILL);
    }
    if (frontend->process.pid || frontends->ending || !frontend->start_at || now_ms < frontend->start_at ||
        !may_start(frontends, i))
        return;
    int code = oribi__frontend_start(context, i, error);
    if (code < 0 && code != ORIBI_AGAIN) {
        oribi_log(ORIBI_LOG_ERROR, "frontend %u cannot be started: %s", i, error);
        plan_start(frontend, now_ms);
    }
}

void oribi__frontends_turn(struct oribi__context *context)
{
    struct oribi__frontends *frontends = &context->frontends;
    int64_t now_ms = oribi_clock_ms();
    for (uint32_t i = 0; i < frontends->set.count; i++)
        look_at(context, i, now_ms);
    oribi__frontends_renewal_turn(context, now_ms);
    if (now_ms >= frontends->locals_until)
        frontends->locals_until = 0;
    oribi__frontends_note_sole(frontends, context->upgrade.predecessor_fd < 0 && !context->policy.upgrade_pid);
    if (frontends->tickets && now_ms >= frontends->tickets_at)
        oribi__frontends_turn_tickets(frontends, now_ms);
}

static int64_t passwords_deadline(const struct oribi__passwords *passwords)
{
    if (!passwords || !passwords->runs)
        return INT64_MAX;
    int64_t look_at = passwords->command.output_fd < 0 ? oribi_clock_ms() + ENDED_LOOK_MS : INT64_MAX;
    return oribi_earlier(look_at, passwords->command.until_ms);
}

int64_t oribi__frontends_deadline(const struct oribi__context *context)
{
    const struct oribi__frontends *frontends = &context->frontends;
    int64_t at = frontends->tickets ? frontends->tickets_at : INT64_MAX;
    at = oribi_earlier(at, passwords_deadline(frontends->passwords));
    at = oribi_earlier(at, passwords_deadline(frontends->of_start));
    if (frontends->renewing == ORIBI__RENEWAL_WAITS)
        at = oribi_earlier(at, frontends->renewal_until);
    if (frontends->locals_until && locals_wait(frontends))
        at = oribi_earlier(at, frontends->locals_until);
    for (uint32_t i = 0; i < frontends->set.count; i++) {
        const struct oribi__frontend *frontend = &frontends->items[i];
        if (frontends->of_start && !frontend->process.pid)
            continue; /* the reading of certificates tells when */
        int64_t own = frontend->process.pid == 0 && frontend->start_at ? frontend->start_at
                      : frontend->process.ready                        ? INT64_MAX
                                                                       : frontend->ready_by;
        if (!frontends->ending && own < at)
            at = own;
    }
    return at;
}

size_t oribi__frontends_fds(const struct oribi__context *context, int *fds)
{
    const struct oribi__frontends *frontends = &context->frontends;
    for (uint32_t i = 0; i < frontends->set.count; i++)
        fds[i] = frontends->items[i].control_fd;
    fds[frontends->set.count] =
        frontends->passwords && frontends->passwords->runs ? frontends->passwords->command.output_fd : -1;
    fds[frontends->set.count + 1] =
        frontends->of_start && frontends->of_start->runs ? frontends->of_start->command.output_fd : -1;
    return frontends->set.count + 2;
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
    struct oribi__frontends *frontends = &context->frontends;
    int access_fd = oribi__frontends_access_log_fd(context);
    for (uint32_t i = 0; i < frontends->set.count; i++)
        if (frontends->items[i].control_fd >= 0 &&
            (oribi__frontend_text_send(frontends->items[i].control_fd, ORIBI_FRONTEND_TOLD_REOPEN, oribi_log_fd()) <
                 0 ||
             (access_fd >= 0 && oribi__frontend_text_send(frontends->items[i].control_fd,
                                                          ORIBI_FRONTEND_TOLD_ACCESS_LOG, access_fd) < 0)))
            oribi_log(ORIBI_LOG_WARN, "frontend %u goes on with the old log: %s", i, oribi_os_error_text());
}

void oribi__frontends_end(struct oribi__context *context, bool handed_over)
{
    struct oribi__frontends *frontends = &context->frontends;
    if (frontends->ending || frontends->set.count == 0)
        return;
    frontends->ending = true;
    frontends->renewing = ORIBI__RENEWAL_NONE;
    oribi__frontends_end_reading(&frontends->passwords, false);
    oribi__frontends_end_reading(&frontends->of_start, false);
    bool shared = handed_over || context->upgrade.predecessor_fd >= 0;
    tell_all(frontends, shared ? ORIBI_FRONTEND_TOLD_DRAIN : ORIBI_FRONTEND_TOLD_STOP);
}

void oribi__frontends_give_up(struct oribi__context *context)
{
    tell_all(&context->frontends, ORIBI_FRONTEND_TOLD_GIVE_UP);
}

bool oribi__frontends_left(const struct oribi__context *context)
{
    const struct oribi__frontends *frontends = &context->frontends;
    for (uint32_t i = 0; i < frontends->set.count; i++)
        if (frontends->items[i].process.pid)
            return true;
    return false;
}

void oribi__frontends_close(struct oribi__context *context, bool in_child)
{
    struct oribi__frontends *frontends = &context->frontends;
    for (uint32_t i = 0; i < frontends->set.count; i++) {
        struct oribi__frontend *frontend = &frontends->items[i];
        oribi__close(&frontend->control_fd);
        if (frontend->process.pid && !in_child) {
            (void)kill(frontend->process.pid, SIGKILL); /* what has begun had its time */
            (void)oribi_process_reap_within(frontend->process.pid, KILLED_MS);
        }
        frontend->process.pid = 0;
        frontend->process.ready = false;
        oribi__frontend_files_free(&frontend->files, in_child);
    }
    oribi__frontends_end_reading(&frontends->passwords, in_child);
    oribi__frontends_end_reading(&frontends->of_start, in_child);
    oribi__frontend_files_free(&frontends->renewed, in_child);
    oribi__frontend_files_free(&frontends->kept, in_child);
    oribi__close(&frontends->tickets_fd);
    if (frontends->tickets)
        (void)munmap(frontends->tickets, sizeof(*frontends->tickets)); /* ours: cannot fail */
    frontends->tickets = NULL;
    oribi__close(&frontends->slots_fd);
    if (frontends->set.slots)
        (void)munmap(frontends->set.slots, ORIBI_FRONTENDS_MAX * sizeof(*frontends->set.slots)); /* as the other */
    frontends->set.slots = NULL;
    frontends->set.count = 0;
    oribi_buf_deinit(&frontends->local);
}
