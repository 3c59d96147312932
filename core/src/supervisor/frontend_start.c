/* Starting a frontend: what it gets, by descriptors and by a text. Reading order: oribi__frontend_start,
 * write_certificates, start_program. */
#include "supervisor/frontend_passwords.h"
#include "supervisor/supervisor_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <stdio.h>
#include <string.h>

int oribi__frontends_access_log_fd(const struct oribi__context *context)
{
    return context->process.access_log ? oribi_access_log_fd(context->process.access_log) : -1;
}

void oribi__frontends_end_reading(struct oribi__passwords **passwords, bool in_child)
{
    if (!*passwords)
        return;
    oribi__passwords_end(*passwords, in_child);
    oribi_mem_free(*passwords);
    *passwords = NULL;
}

static int start_program(struct oribi__context *context, uint32_t i, int text, int control, pid_t *pid)
{
    struct oribi__frontends *frontends = &context->frontends;
    const struct oribi__process_context *process = &context->process;
    char *argv[] = {frontends->program, NULL};
    struct oribi_start start = {.argv = argv, .environ = context->start.environ, .dir = context->start.dir};
    char env[192];
    int log_fd = oribi_log_fd();
    int access_fd = oribi__frontends_access_log_fd(context);
    int keep[ORIBI_LISTENERS_MAX + 9] = {
        text, control, process->board.fd, process->handoff.take_fd, process->handoff.give_fd, log_fd};
    size_t count = 6;
    uint32_t share = ORIBI_CHANNELS_MAX / ORIBI_FRONTENDS_MAX;
    (void)snprintf(env, sizeof(env), "ORIBI_FRONTEND=%d %d %d %d %u %d %d %d %d %d %u %u %d %u",
                   ORIBI_FRONTEND_PROTOCOL, text, control, process->board.fd, process->board.count,
                   process->handoff.take_fd, process->handoff.give_fd,
                   /* numbers fit */
                   frontends->tickets_fd, log_fd, access_fd, 1 + i * share, share, frontends->slots_fd, i);
    if (frontends->tickets_fd >= 0)
        keep[count++] = frontends->tickets_fd;
    if (frontends->slots_fd >= 0)
        keep[count++] = frontends->slots_fd;
    if (access_fd >= 0)
        keep[count++] = access_fd;
    for (uint32_t k = 0; k < process->listeners->count; k++)
        if (process->listeners->items[k].frontend)
            keep[count++] = process->listeners->items[k].fd;
    char *extra[] = {env, (char *)"ORIBI_MOLD=", (char *)"ORIBI_UPGRADE=", NULL};
    oribi__children_ours(true);
    int code = oribi_start_again(&start, extra, keep, count, pid);
    oribi__children_ours(false);
    return code;
}

/* Also that none has expired: that is no reason for not starting, but those that served last are better then. */
static int write_new(struct oribi__context *context, struct oribi__frontend *frontend, struct oribi_buf *text,
                     char *error)
{
    bool again = context->frontends.kept.len > 0;
    int code = again ? oribi__frontend_add(text, "strict", "", 0) : 0;
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory");
    else
        code = oribi__frontend_text_certificates(context->process.options, context->process.listeners, NULL,
                                                 &frontend->files, context->frontends.of_start, text, error);
    return code;
}

/* Certificates, from their files, or those that served last. */
static int write_certificates(struct oribi__context *context, uint32_t i, struct oribi_buf *text, char *error)
{
    struct oribi__frontends *frontends = &context->frontends;
    struct oribi__frontend *frontend = &frontends->items[i];
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
    oribi_log(ORIBI_LOG_WARN, "frontend %u gets the certificates that served last: %s", i, frontend->refused);
    frontend->refused[0] = '\0';
    error[0] = '\0';
    return oribi__frontend_text_certificates(context->process.options, context->process.listeners, &frontends->kept,
                                             NULL, NULL, text, error);
}

int oribi__frontend_start(struct oribi__context *context, uint32_t i, char *error)
{
    struct oribi__frontend *frontend = &context->frontends.items[i];
    struct oribi_buf text = {0};
    int fds[2];
    if (!context->frontends.of_start)
        context->frontends.of_start = oribi_mem_alloc(1, sizeof(*context->frontends.of_start));
    context->frontends.starting = i;
    const struct oribi_buf *local = &context->frontends.local;
    int code = oribi__frontend_text(context->process.options, oribi_slice(local->p, local->len),
                                    context->process.listeners, &text);
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory");
    else
        code = write_certificates(context, i, &text, error);
    if (code != ORIBI_AGAIN)
        oribi__frontends_end_reading(&context->frontends.of_start, false);
    int text_memory = code < 0 ? code : oribi__frontend_text_fd(&text, error);
    oribi__frontend_wipe(&text);
    if (text_memory < 0)
        return text_memory;
    if (oribi_message_pair(fds) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "a frontend cannot be started: %s", oribi_os_error_text());
        oribi_os_close(text_memory);
        return ORIBI_ESYS;
    }
    (void)oribi_os_set_nonblock(fds[0], true); /* it is open: cannot fail */
    code = start_program(context, i, text_memory, fds[1], &frontend->process.pid);
    oribi_os_close(text_memory);
    oribi_os_close(fds[1]);
    if (code < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "a frontend cannot be started: %s", oribi_os_error_text());
        oribi_os_close(fds[0]);
        frontend->process.pid = 0;
        return ORIBI_ESYS;
    }
    frontend->control_fd = fds[0];
    frontend->process.ready = false;
    frontend->start_at = 0;
    frontend->ready_by = oribi_clock_ms() + ORIBI__FRONTEND_READY_MS;
    return 0;
}
