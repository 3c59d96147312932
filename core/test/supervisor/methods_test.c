/* Calls by name and steps as values. What the calls do is in the tests of their own headers. */
#include "supervisor/methods.c"

#include "tap.h"

#include <signal.h>

static struct oribi_process process; /* without a role's parts: for calls that ask for none */

static void add(char *dst, size_t cap, const struct oribi_value *value)
{
    size_t len = strlen(dst);
    switch (value->type) {
    case ORIBI_VALUE_NONE:
        (void)snprintf(dst + len, cap - len, " -");
        break;
    case ORIBI_VALUE_BOOL:
        (void)snprintf(dst + len, cap - len, " %s", value->number ? "true" : "false");
        break;
    case ORIBI_VALUE_NUMBER:
        (void)snprintf(dst + len, cap - len, " %d", (int)value->number);
        break;
    case ORIBI_VALUE_TEXT:
        (void)snprintf(dst + len, cap - len, " \"%.*s\"", (int)value->len, value->text);
        break;
    }
}

static const char *as_text(enum oribi_role role, struct oribi_step step)
{
    static char line[256];
    struct oribi_value values[ORIBI_STEP_VALUES_MAX];
    line[0] = '\0';
    process.role = role;
    size_t count = oribi_step_values(&process, &step, values);
    for (size_t i = 0; i < count; i++)
        add(line, sizeof(line), &values[i]);
    return line + 1;
}

static void test_steps_are_words_and_what_they_hold(void)
{
    is_str(as_text(ORIBI_ROLE_MOLD, (struct oribi_step){.type = ORIBI_STEP_WAIT}), "\"wait\"");
    is_str(as_text(ORIBI_ROLE_MOLD, (struct oribi_step){.type = ORIBI_STEP_LOAD}), "\"load\"");
    is_str(as_text(ORIBI_ROLE_WORKER, (struct oribi_step){.type = ORIBI_STEP_OPEN}), "\"open\"");
    is_str(as_text(ORIBI_ROLE_WORKER, (struct oribi_step){.type = ORIBI_STEP_RUN}), "\"run\"");
    is_str(as_text(ORIBI_ROLE_SUPERVISOR, (struct oribi_step){.type = ORIBI_STEP_DONE}), "\"done\"");
    is_str(as_text(ORIBI_ROLE_SUPERVISOR, (struct oribi_step){.type = ORIBI_STEP_FORK, .fork = ORIBI_FORK_WORKER}),
           "\"fork\" \"worker\"");
    is_str(as_text(ORIBI_ROLE_SUPERVISOR, (struct oribi_step){.type = ORIBI_STEP_TRAPPED, .signal = SIGHUP}),
           "\"trapped\" \"HUP\"");
    is_str(as_text(ORIBI_ROLE_WORKER, (struct oribi_step){.type = ORIBI_STEP_EXIT, .code = 1, .at_once = true}),
           "\"exit\" 1 true -");
    is_str(as_text(ORIBI_ROLE_SUPERVISOR, (struct oribi_step){.type = ORIBI_STEP_EXIT, .signal = SIGTERM}),
           "\"exit\" 0 false \"TERM\"");
}

static void test_hooks_hold_what_their_role_knows(void)
{
    struct oribi_step step = {.type = ORIBI_STEP_HOOK, .hook = "before_reload"};
    is_str(as_text(ORIBI_ROLE_SUPERVISOR, step), "\"hook\" \"before_reload\" false");
    step = (struct oribi_step){.type = ORIBI_STEP_HOOK, .hook = "after_fork", .pid = 7};
    is_str(as_text(ORIBI_ROLE_SUPERVISOR, step), "\"hook\" \"after_fork\" false 7");
    step = (struct oribi_step){
        .type = ORIBI_STEP_HOOK, .hook = "on_worker_exit", .pid = 7, .status = 256, .reason = "exit code 1"};
    is_str(as_text(ORIBI_ROLE_SUPERVISOR, step), "\"hook\" \"on_worker_exit\" false 7 256 \"exit code 1\"");
    step.index = 3;
    step.has_index = true;
    is_str(as_text(ORIBI_ROLE_SUPERVISOR, step), "\"hook\" \"on_worker_exit\" false 7 256 \"exit code 1\" 3");
    step = (struct oribi_step){.type = ORIBI_STEP_HOOK, .hook = "before_fork", .has_index = true, .index = 5};
    is_str(as_text(ORIBI_ROLE_MOLD, step), "\"hook\" \"before_fork\" false 5");
    step = (struct oribi_step){
        .type = ORIBI_STEP_HOOK, .hook = "after_fork", .fatal = true, .has_index = true, .generation = 2};
    is_str(as_text(ORIBI_ROLE_WORKER, step), "\"hook\" \"after_fork\" true 0 2");
}

static const struct oribi_method *find(const char *name)
{
    size_t count;
    const struct oribi_method *table = oribi_process_methods(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

static void test_each_name_stands_once(void)
{
    size_t count;
    const struct oribi_method *table = oribi_process_methods(&count);
    for (size_t i = 0; i < count; i++)
        ok(find(table[i].name) == &table[i]);
}

static void test_a_call_that_tells_nothing_gives_no_value(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_value result = {.type = ORIBI_VALUE_NUMBER, .number = 4};
    process.role = ORIBI_ROLE_INTERMEDIATE; /* which has no title */
    ok_eq(oribi_method_call(find("title"), &process, NULL, &result, error), 0);
    ok_eq(result.type, ORIBI_VALUE_NONE);
    ok_eq(oribi_method_call(find("role"), &process, NULL, &result, error), 0);
    is_str(result.text, "intermediate");
}

static void test_a_signal_that_does_not_exist_is_refused(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_value result;
    const struct oribi_value none = text("NONE");
    const struct oribi_value term = text("SIGTERM");
    process.role = ORIBI_ROLE_WORKER;
    ok_eq(oribi_method_call(find("signal_all"), &process, &none, &result, error), ORIBI_EINVAL);
    is_str(error, "there is no signal NONE");
    ok_eq(oribi_method_call(find("signal_all"), &process, &term, &result, error), 0);
    ok_eq(result.number, 0); /* a worker has none */
}

static void test_a_failed_fork_is_its_negative_errno(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_value result;
    const struct oribi_value failed = number(-EAGAIN);
    process.role = ORIBI_ROLE_INTERMEDIATE;
    process.mold = NULL;
    oribi_signals_hold();
    process.forking = true;
    ok_eq(oribi_method_call(find("forked"), &process, &failed, &result, error), 0);
    is_str(result.text, "intermediate");
    ok(!process.forking);
    oribi_signals_release();
}

int main(void)
{
    test_steps_are_words_and_what_they_hold();
    test_hooks_hold_what_their_role_knows();
    test_each_name_stands_once();
    test_a_call_that_tells_nothing_gives_no_value();
    test_a_signal_that_does_not_exist_is_refused();
    test_a_failed_fork_is_its_negative_errno();
    return done_testing();
}
