/* Opening and reopening of log files. */
#include "supervisor/logs.h"

#include "supervisor/context.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/config/options.h"
#include "oribi/worker/logs/access_log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_file(const char *path)
{
    return path && path[0] && strcmp(path, "-") != 0;
}

enum oribi_log_level oribi__log_level(const struct oribi_options *options)
{
    return options->quiet ? ORIBI_LOG_WARN : options->verbose ? ORIBI_LOG_DEBUG : ORIBI_LOG_INFO;
}

/* Only root makes files for others. NULL: files belong to this process's user. */
static const struct oribi_log_owner *log_owner(struct oribi__process_context *process)
{
    const struct oribi_options *options = process->options;
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_log_owner *owner = &process->log_owner;
    if (geteuid() != 0 || (!options->user && !options->group) ||
        oribi_process_find_user(options->user, options->group, &owner->uid, &owner->gid, error) < 0)
        return NULL;
    owner->user = oribi_process_user_name(owner->uid, process->log_user, sizeof(process->log_user));
    return owner;
}

int oribi__open_logs(struct oribi__process_context *process, char *error)
{
    const struct oribi_options *options = process->options;
    oribi_os_fill_standard_streams(); /* before anything looks where they lead */
    oribi_log_init(STDERR_FILENO, oribi__log_level(options));
    oribi_log_set_json(options->error_log_format && strcmp(options->error_log_format, "json") == 0);
    const struct oribi_log_owner *owner = log_owner(process);
    bool off = !options->access_log || strcmp(options->access_log, "off") == 0;
    if (!off) {
        int code =
            oribi_access_log_open(options->access_log, options->access_log_format, owner, &process->access_log, error);
        if (code < 0)
            return code;
        oribi_access_log_choose(process->access_log, &options->access_log_skip, options->access_log_sample);
    }
    if (!is_file(options->error_log) || oribi_log_open(options->error_log, owner) == 0)
        return 0;
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "error_log: cannot open %.120s: %s", options->error_log,
                   oribi_os_error_text());
    if (process->access_log)
        oribi_access_log_close(process->access_log);
    process->access_log = NULL;
    return ORIBI_ESYS;
}

void oribi__reopen_logs(struct oribi__process_context *process)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    const struct oribi_log_owner *owner = log_owner(process);
    if (oribi_log_reopen(owner) < 0)
        oribi_log(ORIBI_LOG_ERROR, "error_log: cannot be reopened, going on with the old file: %s",
                  oribi_os_error_text());
    if (process->access_log && oribi_access_log_reopen(process->access_log, owner, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "%s, going on with the old file", error);
}

void oribi__logs_follow_streams(struct oribi__process_context *process)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    if (!is_file(process->options->error_log))
        oribi_log_init(STDERR_FILENO, oribi__log_level(process->options));
    if (oribi_access_log_follow_stdout(process->access_log, error) < 0)
        oribi_log(ORIBI_LOG_WARN, "%s", error);
}

/* --- the module: lines that a pipe has not taken are tried again --- */

struct oribi__logs {
    struct oribi_timer again;
};

static void flush(struct oribi__context *context)
{
    oribi_log_flush();
    oribi_dispatcher_arm(&context->dispatcher, &context->logs->again,
                         oribi_log_waits() ? oribi_clock_ms() + ORIBI_LOG_RETRY_MS : INT64_MAX);
}

static void flush_again(void *context)
{
    flush(context);
}

static int begin(struct oribi__context *context, char *error)
{
    context->logs->again = (struct oribi_timer){.expired = flush_again, .owner = context};
    return oribi__open_logs(&context->process, error);
}

static void end(struct oribi__context *context)
{
    oribi_dispatcher_arm(&context->dispatcher, &context->logs->again, INT64_MAX);
}

const struct oribi__module oribi__logs_module = {
    .bytes = sizeof(struct oribi__logs),
    .begin = begin,
    .settle = flush,
    .end = end,
};
