/* The pipe between the signal handler and the supervisor's loop; see the header. */
#include "supervisor/events.h"

#include "supervisor/context.h"
#include "supervisor/manager.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/base/signals.h"
#include "oribi/policy/signal_table.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { STOP_ONCE = 127 }; /* among the numbers of signals: oribi__signals_stop_once() */

struct oribi__signals {
    int fds[2];            /* one byte for each signal, 0 to wake */
    _Atomic bool wakes_up; /* a byte that only wakes is in there; set by the handler, taken back by the reader */
    struct oribi_watcher watcher;
};

/* --- in the handler --- */

/* Number 0 is oribi_supervisor_wake(). */
static bool only_wakes(int number)
{
    return number == 0 || oribi__signal_effect(number, ORIBI__IN_SUPERVISOR) == ORIBI__LOOKS;
}

/* One byte that only wakes is enough: while no turn reads (a manager that does something else for a day), the others
 * would leave no room for a stop. */
static void write_byte(void *self, int number)
{
    struct oribi__signals *signals = self;
    char byte = (char)number;
    if (only_wakes(number) && atomic_exchange(&signals->wakes_up, true))
        return;
    if (write(signals->fds[1], &byte, 1) < 0 && only_wakes(number))
        atomic_store(&signals->wakes_up, false); /* full: then there is enough to wake us */
}

void oribi__signals_install(struct oribi__context *context)
{
    oribi_signals_install(write_byte, context->signals, 1);
}

void oribi__signals_send(struct oribi__context *context, int number)
{
    write_byte(context->signals, number);
}

void oribi__signals_stop_once(struct oribi__context *context)
{
    write_byte(context->signals, STOP_ONCE);
}

/* --- in the loop --- */

/* The event that follows from a byte of the pipe; false: none does. A stop that is asked for once stands behind the
 * signals that came before it. */
static bool signal_event(struct oribi__context *context, char byte, struct oribi_policy_event *event)
{
    if (byte == STOP_ONCE) {
        *event = (struct oribi_policy_event){.type = ORIBI_EVENT_STOP};
        return !context->policy.stopping && !context->policy.stop_at;
    }
    return context->kind->signal(context, byte, event);
}

bool oribi__signals_take(struct oribi__context *context)
{
    struct oribi_policy_event event;
    char byte;
    if (oribi__messages_take(context))
        return true;
    while (oribi_os_read(context->signals->fds[0], &byte, 1) == 1) {
        if (only_wakes(byte))
            atomic_store(&context->signals->wakes_up, false); /* before the look for what it was about */
        if (!signal_event(context, byte, &event))
            continue;
        oribi__happened(context, &event);
        return true;
    }
    return false;
}

static void heard(void *owner, uint8_t ready)
{
    (void)oribi__signals_take(owner);
}

/* --- the module --- */

static void init(struct oribi__context *context)
{
    context->signals->fds[0] = context->signals->fds[1] = -1;
}

static int begin(struct oribi__context *context, char *error)
{
    struct oribi__signals *signals = context->signals;
    signals->watcher.ready = heard;
    signals->watcher.owner = context;
    if (oribi_os_pipe(signals->fds) == 0 &&
        oribi_dispatcher_watch(&context->dispatcher, &signals->watcher, signals->fds[0], ORIBI_READ) == 0)
        return 0;
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot make pipes: %s", oribi_os_error_text());
    return ORIBI_ESYS;
}

static void let_go(struct oribi__context *context)
{
    oribi__close(&context->signals->fds[0]);
    oribi__close(&context->signals->fds[1]);
}

static void end(struct oribi__context *context)
{
    oribi_dispatcher_forget(&context->dispatcher, &context->signals->watcher);
    let_go(context);
}

const struct oribi__module oribi__signals_module = {
    .bytes = sizeof(struct oribi__signals),
    .init = init,
    .begin = begin,
    .let_go = let_go,
    .end = end,
};
