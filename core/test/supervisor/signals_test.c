/* The pipe of signals: what is written, and what the loop makes of it. */
#include "supervisor/signals.c"

#include "supervisor/modules.h"
#include "tap.h"

#include <signal.h>

static struct oribi_options options;

static struct oribi_supervisor *create(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_supervisor *supervisor = modules_create(&oribi__server, &options);
    ok_eq(begin(&supervisor->context, error), 0);
    return supervisor;
}

/* The type of the event that the loop makes of the next byte; START: none. */
static enum oribi_policy_event_type next(struct oribi__context *context)
{
    struct oribi_policy_event event;
    oribi_dispatcher_wait(&context->dispatcher, 0);
    (void)oribi_dispatcher_next(&context->dispatcher);
    return oribi__events_pop(&context->events, &event) ? event.type : ORIBI_EVENT_START;
}

/* A manager may look at its signals once a day, and children end all the time. */
static void test_ends_of_children_leave_room_for_a_stop(void)
{
    struct oribi_supervisor *supervisor = create();
    struct oribi__context *context = &supervisor->context;
    for (int i = 0; i < 100000; i++)
        oribi__signals_send(context, i % 2 ? SIGCHLD : 0);
    oribi__signals_send(context, SIGTERM);
    ok_eq(next(context), ORIBI_EVENT_STOP);
    oribi__signals_send(context, SIGCHLD); /* and the next one wakes us again */
    char byte = 0;
    ok(read(context->signals->fds[0], &byte, 1) == 1 && byte == SIGCHLD);
    modules_destroy(supervisor, &options);
}

/* Sinatra's own handler of TERM calls it, too. */
static void test_a_stop_that_is_asked_for_once_is_no_second_one(void)
{
    struct oribi_supervisor *supervisor = create();
    struct oribi__context *context = &supervisor->context;
    for (int i = 0; i < 3; i++)
        oribi_supervisor_stop(supervisor);
    ok_eq(next(context), ORIBI_EVENT_STOP);
    context->policy.stopping = true;
    ok_eq(next(context), ORIBI_EVENT_START);
    context->policy.stopping = false;
    context->policy.stop_at = 1;
    ok_eq(next(context), ORIBI_EVENT_START);
    modules_destroy(supervisor, &options);
}

int main(void)
{
    test_ends_of_children_leave_room_for_a_stop();
    test_a_stop_that_is_asked_for_once_is_no_second_one();
    return done_testing();
}
