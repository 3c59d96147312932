/* Starting frontends: what they get, by descriptors and by a text. Reading order: reading certificates, the start of a
 * program, of all when the server begins, of one that has died. */
#include "supervisor/frontends_private.h"

#include "supervisor/module.h"
#include "supervisor/frontend_memory.h"
#include "supervisor/manager.h"
#include "supervisor/start.h"
#include "oribi/supervisor/message.h"
#include "oribi/worker/logs/access_log.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    ENDED_LOOK_MS = 5,          /* a command's output is closed just before its end */
    BACKOFF_MS = 100,           /* doubled with each failure */
    BACKOFF_MS_MAX = 10 * 1000, /* it is not doubled beyond this */
    CPUS_PER_FRONTEND = 4,
};

/* --- reading certificates --- */

struct oribi__passwords *oribi__reading_begin(struct oribi__reading *reading)
{
    if (!reading->passwords)
        reading->passwords = oribi_mem_alloc(1, sizeof(*reading->passwords));
    return reading->passwords;
}

void oribi__reading_await(struct oribi__reading *reading)
{
    struct oribi_dispatcher *dispatcher = &reading->context->dispatcher;
    const struct oribi_command *command = &reading->passwords->command;
    if (command->output_fd >= 0)
        (void)oribi_dispatcher_watch(dispatcher, &reading->watcher, command->output_fd, ORIBI_READ); /* else its time */
    oribi_dispatcher_arm(dispatcher, &reading->look,
                         command->output_fd >= 0 ? command->until_ms : oribi_clock_ms() + ENDED_LOOK_MS);
}

static void look_for_password(struct oribi__reading *reading)
{
    oribi_dispatcher_forget(&reading->context->dispatcher, &reading->watcher);
    oribi_dispatcher_arm(&reading->context->dispatcher, &reading->look, INT64_MAX);
    if (oribi__passwords_turn(reading->passwords))
        reading->known(reading->context);
    else
        oribi__reading_await(reading);
}

static void prints(void *owner, uint8_t ready)
{
    look_for_password(owner);
}

static void is_time(void *owner)
{
    look_for_password(owner);
}

void oribi__reading_end(struct oribi__reading *reading, bool in_child)
{
    if (!reading->passwords)
        return;
    if (!in_child) {
        oribi_dispatcher_forget(&reading->context->dispatcher, &reading->watcher);
        oribi_dispatcher_arm(&reading->context->dispatcher, &reading->look, INT64_MAX);
    }
    oribi__passwords_end(reading->passwords, in_child);
    oribi_mem_free(reading->passwords);
    reading->passwords = NULL;
}

bool oribi__reading_ended(struct oribi__reading *reading, pid_t pid, int status)
{
    if (!reading->passwords || !reading->passwords->runs ||
        !oribi_os_command_ended(&reading->passwords->command, pid, status))
        return false;
    look_for_password(reading);
    return true;
}

void oribi__reading_init(struct oribi__context *context, struct oribi__reading *reading,
                         void (*known)(struct oribi__context *context))
{
    reading->context = context;
    reading->known = known;
    reading->watcher = (struct oribi_watcher){.ready = prints, .owner = reading};
    reading->look = (struct oribi_timer){.expired = is_time, .owner = reading};
}

/* --- the start: of the program --- */

int oribi__frontends_access_log_fd(const struct oribi__context *context)
{
    return context->process.access_log ? oribi_access_log_fd(context->process.access_log) : -1;
}

static int start_program(struct oribi__context *context, uint32_t i, int text, int control, pid_t *pid)
{
    struct oribi__frontends *frontends = context->frontends;
    const struct oribi__process_context *process = &context->process;
    char *argv[] = {frontends->program, NULL};
    struct oribi_start start = {.argv = argv, .environ = context->start.environ, .dir = context->start.dir};
    char env[256];
    char inbox[ORIBI__FRONTEND_INBOX_TEXT_CAP];
    int log_fd = oribi_log_fd();
    int access_fd = oribi__frontends_access_log_fd(context);
    int keep[ORIBI_LISTENERS_MAX + 9 + ORIBI__FRONTEND_INBOX_FDS] = {
        text, control, process->board.fd, process->handoff.take_fd, process->handoff.give_fd, log_fd};
    size_t count = 6;
    uint32_t share = ORIBI_CHANNELS_MAX / ORIBI_FRONTENDS_MAX;
    count += oribi__frontend_inbox_give(&frontends->inbox, process, i == 0, inbox, sizeof(inbox), keep + count);
    (void)snprintf(env, sizeof(env), "ORIBI_FRONTEND=%d %d %d %d %u %d %d %d %d %d %u %u %d %u%s",
                   ORIBI_FRONTEND_PROTOCOL, text, control, process->board.fd, process->board.count,
                   process->handoff.take_fd, process->handoff.give_fd,
                   /* numbers fit */
                   frontends->tickets_fd, log_fd, access_fd, 1 + i * share, share, frontends->slots_fd, i, inbox);
    if (frontends->tickets_fd >= 0)
        keep[count++] = frontends->tickets_fd;
    if (frontends->slots_fd >= 0)
        keep[count++] = frontends->slots_fd;
    if (access_fd >= 0)
        keep[count++] = access_fd;
    for (uint32_t k = 0; k < process->listeners->count; k++)
        if (process->listeners->items[k].frontend)
            keep[count++] = process->listeners->items[k].fd;
    char *extra[] = {env, (char *)"ORIBI_MOLD=", (char *)"ORIBI_UPGRADE=", (char *)"ORIBI_INBOX=", NULL};
    oribi__children_ours(true);
    int code = oribi_start_again(&start, extra, keep, count, pid);
    oribi__children_ours(false);
    return code;
}

/* Also that none has expired: that is no reason for not starting, but those that served last are better then. */
static int write_new(struct oribi__context *context, struct oribi__frontend *frontend, struct oribi_buf *text,
                     char *error)
{
    bool again = context->frontends->kept.len > 0;
    int code = again ? oribi__frontend_add(text, "strict", "", 0) : 0;
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory");
    else
        code = oribi__frontend_text_certificates(context->process.options, context->process.listeners, NULL,
                                                 &context->frontends->kept, &frontend->files,
                                                 context->frontends->of_start.passwords, text, error);
    return code;
}

/* Certificates, from their files, or those that served last. */
static int write_certificates(struct oribi__context *context, struct oribi__frontend *frontend, struct oribi_buf *text,
                              char *error)
{
    struct oribi__frontends *frontends = context->frontends;
    size_t before = text->len;
    oribi__frontend_files_free(&frontend->files, false);
    if (!frontend->refused[0]) {
        int code = write_new(context, frontend, text, error);
        if (code == 0 || code == ORIBI_AGAIN || frontends->kept.len == 0)
            return code;
        (void)snprintf(frontend->refused, sizeof(frontend->refused), "%.*s", (int)sizeof(frontend->refused) - 1, error);
        oribi__frontend_files_free(&frontend->files, false);
        explicit_bzero(text->p + before, text->len - before);
        text->len = before;
    }
    oribi_log(ORIBI_LOG_WARN, "frontend %u starts with the certificates that served last: %s", frontend->number,
              frontend->refused);
    frontend->refused[0] = '\0';
    error[0] = '\0';
    return oribi__frontend_text_certificates(context->process.options, context->process.listeners, &frontends->kept,
                                             NULL, NULL, NULL, text, error);
}

/* Gives the descriptor of a frontend's whole text, or a code with one line in `error`. */
static int write_text(struct oribi__context *context, struct oribi__frontend *frontend, char *error)
{
    struct oribi__frontends *frontends = context->frontends;
    struct oribi_buf text = {0};
    (void)oribi__reading_begin(&frontends->of_start);
    frontends->starting = frontend->number;
    struct oribi_buf local = {0};
    int code = oribi__frontends_local_text(frontends, &local);
    if (code == 0)
        code = oribi__frontend_text(context->process.options, oribi_slice(local.p, local.len),
                                    context->process.listeners, &text);
    oribi_buf_deinit(&local);
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory");
    else
        code = write_certificates(context, frontend, &text, error);
    if (code == ORIBI_AGAIN)
        oribi__reading_await(&frontends->of_start);
    else
        oribi__reading_end(&frontends->of_start, false);
    int fd = code < 0 ? code : oribi__frontend_text_fd(&text, error);
    oribi__frontend_wipe(&text);
    return fd;
}

static int cannot_start(char *error)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "a frontend cannot be started: %s", oribi_os_error_text());
    return ORIBI_ESYS;
}

/* One that is started again starts with the certificates that served last, where the files have none that are good. 0;
 * ORIBI_AGAIN: a password is asked for; or a code with one line in `error`. */
static int start(struct oribi__context *context, struct oribi__frontend *frontend, char *error)
{
    int fds[2];
    int text = write_text(context, frontend, error);
    if (text < 0)
        return text;
    if (oribi_message_pair(fds) < 0) {
        oribi_os_close(text);
        return cannot_start(error);
    }
    (void)oribi_os_set_nonblock(fds[0], true); /* it is open: cannot fail */
    int code = start_program(context, frontend->number, text, fds[1], &frontend->process.pid);
    oribi_os_close(text);
    oribi_os_close(fds[1]);
    if (code == 0)
        code = oribi_dispatcher_watch(&context->dispatcher, &frontend->watcher, fds[0], ORIBI_READ);
    if (code < 0) {
        (void)cannot_start(error);
        oribi_os_close(fds[0]);
        frontend->process.pid = 0;
        return ORIBI_ESYS;
    }
    frontend->control_fd = fds[0];
    frontend->process.ready = false;
    frontend->start_at = 0;
    oribi_dispatcher_arm(&context->dispatcher, &frontend->until, oribi_clock_ms() + ORIBI__FRONTEND_READY_MS);
    return 0;
}

/* --- the start: before the server is up --- */

static uint32_t count_ready(const struct oribi__frontends *frontends)
{
    uint32_t ready = 0;
    for (uint32_t i = 0; i < frontends->set.count; i++)
        ready += frontends->items[i].process.ready;
    return ready;
}

static void begin_failed(struct oribi__context *context, const char *error)
{
    context->frontends->beginning = false;
    oribi__frontends_close(context);
    oribi__serve_not(context, error);
}

static bool any_closed(const struct oribi__frontends *frontends)
{
    for (uint32_t i = 0; i < frontends->begun; i++)
        if (frontends->items[i].control_fd < 0)
            return true;
    return false;
}

void oribi__frontends_look_at_begin(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    if (frontends->error[0]) {
        char error[sizeof(frontends->error)];
        memcpy(error, frontends->error, sizeof(error));
        begin_failed(context, error);
    } else if (any_closed(frontends)) {
        begin_failed(context, "oribi-frontend has ended at its start");
    } else if (count_ready(frontends) == frontends->set.count) {
        frontends->beginning = false;
        oribi_dispatcher_arm(&context->dispatcher, &frontends->begin_late, INT64_MAX);
        oribi__serve(context);
    }
}

/* One reads certificates at a time. */
static void begin_more(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    char error[ORIBI_ERROR_TEXT_CAP];
    while (frontends->begun < frontends->set.count) {
        int code = start(context, &frontends->items[frontends->begun], error);
        if (code == ORIBI_AGAIN)
            return;
        if (code < 0) {
            begin_failed(context, error);
            return;
        }
        if (frontends->begun++ == 0)
            oribi_dispatcher_arm(&context->dispatcher, &frontends->begin_late,
                                 oribi_clock_ms() + ORIBI__FRONTEND_READY_MS);
    }
}

void oribi__frontends_begin_late(void *owner)
{
    begin_failed(owner, "oribi-frontend is not ready in time");
}

void oribi__frontends_start(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    const struct oribi_options *options = context->process.options;
    oribi__frontends_warn_of_unused(options, context->process.listeners);
    if (!oribi__frontends_wanted(context->process.listeners) || !context->kind->serves) {
        oribi__frontend_inbox_close(&frontends->inbox); /* a predecessor's */
        oribi__close(&context->process.inbox_fd);
        oribi__serve(context);
        return;
    }
    if (!oribi__frontend_program(frontends->program, sizeof(frontends->program))) {
        oribi__serve_not(context, "tls:// and ?frontend=on need " ORIBI__FRONTEND_NEEDS);
        return;
    }
    frontends->tickets = oribi__frontend_tickets_make(&frontends->tickets_fd);
    if (frontends->tickets)
        oribi_dispatcher_arm(&context->dispatcher, &frontends->tickets_turn, oribi_clock_ms() + ORIBI__TICKETS_MS);
    frontends->set.slots = oribi__frontend_slots_make(&frontends->slots_fd);
    uint32_t cpus = oribi_os_cpu_count();
    frontends->set.count = options->frontends ? options->frontends : (cpus + CPUS_PER_FRONTEND - 1) / CPUS_PER_FRONTEND;
    if (frontends->set.count > ORIBI_FRONTENDS_MAX)
        frontends->set.count = ORIBI_FRONTENDS_MAX;
    frontends->beginning = true;
    if (oribi__frontend_inbox_make(&frontends->inbox, &context->process) < 0)
        begin_failed(context, "cannot make the inbox of publications");
    else if (oribi__frontend_text_local(options, &frontends->local) < 0)
        begin_failed(context, "out of memory");
    else
        begin_more(context);
}

/* --- the start: of those that have died --- */

void oribi__frontend_plan_start(struct oribi__frontend *frontend, int64_t now_ms)
{
    int64_t wait_ms = BACKOFF_MS;
    for (uint32_t i = 0; i < frontend->failures && wait_ms < BACKOFF_MS_MAX; i++)
        wait_ms *= 2;
    frontend->failures++;
    frontend->start_at = now_ms + (wait_ms < BACKOFF_MS_MAX ? wait_ms : BACKOFF_MS_MAX);
    oribi_dispatcher_arm(&frontend->context->dispatcher, &frontend->until, frontend->start_at);
}

/* One reads certificates at a time: the others are looked at when its reading is over. */
static void start_those_due(struct oribi__context *context)
{
    struct oribi__frontends *frontends = context->frontends;
    char error[ORIBI_ERROR_TEXT_CAP];
    int64_t now_ms = oribi_clock_ms();
    for (uint32_t i = 0; i < frontends->set.count && !frontends->ending; i++) {
        struct oribi__frontend *frontend = &frontends->items[i];
        const struct oribi__passwords *reads = frontends->of_start.passwords;
        if (frontend->process.pid || !frontend->start_at || now_ms < frontend->start_at ||
            (reads && (reads->runs || frontends->starting != i)))
            continue;
        int code = start(context, frontend, error);
        if (code < 0 && code != ORIBI_AGAIN) {
            oribi_log(ORIBI_LOG_ERROR, "frontend %u cannot be started: %s", i, error);
            oribi__frontend_plan_start(frontend, now_ms);
        }
    }
}

void oribi__frontends_password_known(struct oribi__context *context)
{
    if (context->frontends->beginning)
        begin_more(context);
    else
        start_those_due(context);
}

void oribi__frontend_time_is_over(void *owner)
{
    struct oribi__frontend *frontend = owner;
    if (!frontend->process.pid) {
        start_those_due(frontend->context);
        return;
    }
    if (frontend->process.ready || frontend->context->frontends->ending || frontend->context->frontends->beginning)
        return;
    oribi_log(ORIBI_LOG_ERROR, "frontend %u (pid %d) is not ready in time: killed", frontend->number,
              (int)frontend->process.pid);
    (void)kill(frontend->process.pid, SIGKILL);
}
