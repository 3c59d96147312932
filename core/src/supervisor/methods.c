/* Calls by name, and steps as values: one table for every language. */
#include "oribi/supervisor/methods.h"
#include "supervisor/process_private.h"

#include "oribi/base/error.h"
#include "oribi/base/signals.h"
#include "oribi/supervisor/jobs.h"
#include "oribi/supervisor/prefork.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const roles[] = {"supervisor", "starter", "mold", "intermediate", "worker"};
static const char *const forks[] = {"daemon", "mold", "intermediate", "worker"};
static const char *const types[] = {"wait", "fork", "hook", "load", "open", "run", "exit", "trapped", "done"};

static struct oribi_value nothing(void)
{
    return (struct oribi_value){.type = ORIBI_VALUE_NONE};
}

static struct oribi_value truth(bool yes)
{
    return (struct oribi_value){.type = ORIBI_VALUE_BOOL, .number = yes};
}

static struct oribi_value number(int64_t n)
{
    return (struct oribi_value){.type = ORIBI_VALUE_NUMBER, .number = n};
}

static struct oribi_value text(const char *p)
{
    return (struct oribi_value){.type = ORIBI_VALUE_TEXT, .text = p, .len = strlen(p)};
}

static struct oribi_value signal_name(int signal)
{
    return signal ? text(oribi_signal_name(signal)) : nothing();
}

/* --- steps --- */

static size_t hook_values(const struct oribi_process *p, const struct oribi_step *step, struct oribi_value *values)
{
    size_t count = 0;
    values[count++] = text(step->hook);
    values[count++] = truth(step->fatal);
    if (step->pid)
        values[count++] = number(step->pid);
    if (step->reason) {
        values[count++] = number(step->status);
        values[count++] = text(step->reason);
    }
    if (step->has_index)
        values[count++] = number(step->index);
    if (p->role == ORIBI_ROLE_WORKER)
        values[count++] = number(step->generation);
    return count;
}

size_t oribi_step_values(const struct oribi_process *p, const struct oribi_step *step, struct oribi_value *values)
{
    size_t count = 0;
    values[count++] = text(types[step->type]);
    switch (step->type) {
    case ORIBI_STEP_FORK:
        values[count++] = text(forks[step->fork]);
        break;
    case ORIBI_STEP_HOOK:
        count += hook_values(p, step, values + count);
        break;
    case ORIBI_STEP_TRAPPED:
        values[count++] = signal_name(step->signal);
        break;
    case ORIBI_STEP_EXIT:
        values[count++] = number(step->code);
        values[count++] = truth(step->at_once);
        values[count++] = signal_name(step->signal);
        break;
    default:
        break;
    }
    return count;
}

/* --- calls --- */

#define METHOD(name)                                                                                                   \
    static int call_##name(struct oribi_process *p, const struct oribi_value *argument, struct oribi_value *result,    \
                           char *error)

METHOD(forked)
{
    if (argument->number < 0)
        errno = (int)-argument->number;
    *result = text(roles[oribi_process_forked(p, argument->number < 0 ? -1 : (pid_t)argument->number)]);
    return 0;
}

METHOD(failed)
{
    oribi_process_failed(p, argument->text, argument->len);
    return 0;
}

METHOD(loaded_with)
{
    oribi_process_loaded_with(p, argument->text, argument->len);
    return 0;
}

METHOD(loading_at)
{
    oribi_process_loading_at(p, argument->text, argument->len);
    return 0;
}

METHOD(files)
{
    oribi_process_files(p, argument->text, argument->len);
    return 0;
}

METHOD(role)
{
    *result = text(roles[oribi_process_role(p)]);
    return 0;
}

METHOD(single)
{
    *result = truth(oribi_process_is_single(p));
    return 0;
}

METHOD(handed_over)
{
    *result = truth(oribi_process_handed_over(p));
    return 0;
}

METHOD(title)
{
    if (oribi_process_title(p, p->text, sizeof(p->text)) > 0)
        *result = text(p->text);
    return 0;
}

METHOD(stopping)
{
    *result = truth(oribi_process_stop_soon(p) || oribi_process_stopping(p));
    return 0;
}

METHOD(stop)
{
    oribi_process_stop(p);
    return 0;
}

METHOD(signalled)
{
    oribi_process_signalled(p, (int)argument->number);
    return 0;
}

METHOD(resume)
{
    oribi_process_resume(p);
    return 0;
}

METHOD(configure)
{
    oribi_process_configure(p);
    return 0;
}

METHOD(await_workers)
{
    oribi_process_await_workers(p, argument->number);
    return 0;
}

METHOD(signal_all)
{
    char name[64];
    (void)snprintf(name, sizeof(name), "%.*s", (int)argument->len, argument->text); /* longer than any name: cut */
    int signal = oribi_signal_number(name);
    if (signal <= 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "there is no signal %s", name);
        return ORIBI_EINVAL;
    }
    *result = number(oribi_process_signal_all(p, signal));
    return 0;
}

METHOD(workers)
{
    *result = number(oribi_process_workers(p));
    return 0;
}

METHOD(index)
{
    *result = number(oribi_process_index(p));
    return 0;
}

METHOD(generation)
{
    *result = number(oribi_process_generation(p));
    return 0;
}

METHOD(jobs_watch_signals)
{
    oribi_jobs_watch_signals(p);
    return 0;
}

METHOD(jobs_stopping)
{
    *result = truth(oribi_jobs_stopping(p));
    return 0;
}

METHOD(jobs_wake_fd)
{
    *result = number(oribi_jobs_wake_fd(p));
    return 0;
}

METHOD(jobs_begin)
{
    oribi_jobs_begin(p, argument->text, argument->len);
    return 0;
}

METHOD(jobs_end)
{
    oribi_jobs_end(p);
    return 0;
}

METHOD(jobs_title)
{
    if (oribi_jobs_title(p, argument->number != 0, p->text, sizeof(p->text)) > 0)
        *result = text(p->text);
    return 0;
}

static const struct oribi_method methods[] = {
    {"forked", ORIBI_VALUE_NUMBER, ORIBI_VALUE_TEXT, call_forked},
    {"failed", ORIBI_VALUE_TEXT, ORIBI_VALUE_NONE, call_failed},
    {"loaded_with", ORIBI_VALUE_TEXT, ORIBI_VALUE_NONE, call_loaded_with},
    {"loading_at", ORIBI_VALUE_TEXT, ORIBI_VALUE_NONE, call_loading_at},
    {"files", ORIBI_VALUE_TEXT, ORIBI_VALUE_NONE, call_files},
    {"role", ORIBI_VALUE_NONE, ORIBI_VALUE_TEXT, call_role},
    {"single", ORIBI_VALUE_NONE, ORIBI_VALUE_BOOL, call_single},
    {"handed_over", ORIBI_VALUE_NONE, ORIBI_VALUE_BOOL, call_handed_over},
    {"title", ORIBI_VALUE_NONE, ORIBI_VALUE_TEXT, call_title},
    {"stopping", ORIBI_VALUE_NONE, ORIBI_VALUE_BOOL, call_stopping},
    {"stop", ORIBI_VALUE_NONE, ORIBI_VALUE_NONE, call_stop},
    {"signalled", ORIBI_VALUE_NUMBER, ORIBI_VALUE_NONE, call_signalled},
    {"resume", ORIBI_VALUE_NONE, ORIBI_VALUE_NONE, call_resume},
    {"configure", ORIBI_VALUE_NONE, ORIBI_VALUE_NONE, call_configure},
    {"await_workers", ORIBI_VALUE_NUMBER, ORIBI_VALUE_NONE, call_await_workers},
    {"signal_all", ORIBI_VALUE_TEXT, ORIBI_VALUE_NUMBER, call_signal_all},
    {"workers", ORIBI_VALUE_NONE, ORIBI_VALUE_NUMBER, call_workers},
    {"index", ORIBI_VALUE_NONE, ORIBI_VALUE_NUMBER, call_index},
    {"generation", ORIBI_VALUE_NONE, ORIBI_VALUE_NUMBER, call_generation},
    {"jobs_watch_signals", ORIBI_VALUE_NONE, ORIBI_VALUE_NONE, call_jobs_watch_signals},
    {"jobs_stopping", ORIBI_VALUE_NONE, ORIBI_VALUE_BOOL, call_jobs_stopping},
    {"jobs_wake_fd", ORIBI_VALUE_NONE, ORIBI_VALUE_NUMBER, call_jobs_wake_fd},
    {"jobs_begin", ORIBI_VALUE_TEXT, ORIBI_VALUE_NONE, call_jobs_begin},
    {"jobs_end", ORIBI_VALUE_NONE, ORIBI_VALUE_NONE, call_jobs_end},
    {"jobs_title", ORIBI_VALUE_BOOL, ORIBI_VALUE_TEXT, call_jobs_title},
};

const struct oribi_method *oribi_process_methods(size_t *count)
{
    *count = sizeof(methods) / sizeof(methods[0]);
    return methods;
}

int oribi_method_call(const struct oribi_method *method, struct oribi_process *p, const struct oribi_value *argument,
                      struct oribi_value *result, char *error)
{
    *result = nothing();
    return method->call(p, argument, result, error);
}
