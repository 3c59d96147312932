/* Faults of one thread that end nothing. The handlers are the process's for as long as fn runs, a few microseconds. */
#include "oribi/base/fault.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>

enum { FAULTS = 2 };

static const int faults[FAULTS] = {SIGSEGV, SIGBUS};

static struct {
    atomic_flag busy;
    pthread_t reader;
    sigjmp_buf back;
    struct sigaction before[FAULTS];
} guard = {.busy = ATOMIC_FLAG_INIT};

/* Another thread's fault happens again after this handler, under the handler that it is meant for. */
static void on_fault(int number)
{
    if (pthread_equal(guard.reader, pthread_self()))
        siglongjmp(guard.back, 1);
    for (int i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], &guard.before[i], NULL); /* as it was */
}

/* The signals must not be blocked: a fault would end the process. */
static void unblock(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (int i = 0; i < FAULTS; i++)
        (void)sigaddset(&set, faults[i]);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

bool oribi_fault_guard(void (*fn)(void *self), void *self)
{
    /* On the alternate stack, because another thread's fault may be the end of its stack. */
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
    sigset_t mask;
    volatile bool done = false;
    if (atomic_flag_test_and_set(&guard.busy))
        return false;
    (void)sigemptyset(&action.sa_mask);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    guard.reader = pthread_self();
    for (int i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], NULL, &guard.before[i]); /* both, before a handler looks at them */
    if (sigsetjmp(guard.back, 1) == 0) {
        unblock();
        for (int i = 0; i < FAULTS; i++)
            (void)sigaction(faults[i], &action, NULL); /* valid numbers */
        fn(self);
        done = true;
    }
    for (int i = 0; i < FAULTS; i++)
        (void)sigaction(faults[i], &guard.before[i], NULL);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    atomic_flag_clear(&guard.busy);
    return done;
}
