/* The calls of a process (process.h, prefork.h, jobs.h) by name, and its steps as lists of values. A language binding
 * that can convert the four types of a value has every call by one loop over the table, and a call that is added here
 * is there in every language. Calls that a language must make in a way of its own are not in the table: create, take,
 * wait (without the VM lock), opening a worker, and destroy.
 *
 *   method = &oribi_process_methods(&count)[i];                  // once for each: define `method->name`
 *   argument = converted(the caller's, method->argument);       // where that is not ORIBI_VALUE_NONE
 *   if (oribi_method_call(method, p, &argument, &result, error) < 0)
 *       raise error;
 *   return converted(&result); */
#ifndef ORIBI_SUPERVISOR_METHODS_H
#define ORIBI_SUPERVISOR_METHODS_H

#include "oribi/supervisor/process.h"

enum oribi_value_type {
    ORIBI_VALUE_NONE, /* nil, undef */
    ORIBI_VALUE_BOOL, /* `number` is 0 or 1 */
    ORIBI_VALUE_NUMBER,
    ORIBI_VALUE_TEXT, /* `text`, `len` bytes; as a result and in a step NUL-terminated too */
};

struct oribi_value {
    enum oribi_value_type type;
    int64_t number;
    const char *text;
    size_t len;
};

enum { ORIBI_STEP_VALUES_MAX = 8 };

/* The step that oribi_process_take() has given, as a list. Fills in at most ORIBI_STEP_VALUES_MAX values, and gives
 * their number. Texts live as long as those of the step.
 *
 *   "wait"  "load"  "open"  "run"  "done"
 *   "fork", kind                  "daemon", "mold", "intermediate", "worker"
 *   "hook", name, fatal, …        then what the step holds: pid; pid, status, reason; or index, generation
 *   "trapped", signal             "TERM"
 *   "exit", code, at_once, signal   the last is nothing where no signal is to strike */
size_t oribi_step_values(const struct oribi_process *p, const struct oribi_step *step, struct oribi_value *values);

struct oribi_method {
    const char *name;
    enum oribi_value_type argument; /* NONE: it takes none */
    enum oribi_value_type result;   /* BOOL: a question. Where TEXT is said, the result may be NONE: nothing to tell */
    int (*call)(struct oribi_process *p, const struct oribi_value *argument, struct oribi_value *result, char *error);
};

/* The table, which lives for ever:
 *
 *   forked NUMBER -> TEXT        oribi_process_forked(): a pid, 0, or the negative errno of a fork that failed; gives
 *                                the role
 *   failed TEXT                  oribi_process_failed()
 *   role -> TEXT                 "supervisor", "starter", "mold", "intermediate", "worker"
 *   title -> TEXT                oribi_process_title()
 *   stopping -> BOOL             a stop of this worker is announced or has begun
 *   signalled NUMBER             oribi_process_signalled()
 *   resume, configure            prefork.h
 *   await_workers NUMBER         prefork.h: milliseconds, 0: no bound
 *   signal_all TEXT -> NUMBER    prefork.h: a signal's name or number. Refuses one that does not exist
 *   workers -> NUMBER            prefork.h
 *   index, generation -> NUMBER  of a worker
 *   jobs_watch_signals, jobs_begin TEXT, jobs_end, jobs_stopping -> BOOL, jobs_wake_fd -> NUMBER,
 *   jobs_title BOOL -> TEXT      jobs.h */
const struct oribi_method *oribi_process_methods(size_t *count);

/* Calls it. Borrows the argument (may be NULL where the method takes none). 0 with the result, whose text lives until
 * the next call for this process, or ORIBI_EINVAL with one line in `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi_method_call(const struct oribi_method *method, struct oribi_process *p, const struct oribi_value *argument,
                      struct oribi_value *result, char *error);

#endif
