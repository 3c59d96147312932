/* Workers whose manager ends; see the header. */
#include "supervisor/managers_end.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/observe/context.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

enum { STACK_BYTES = 64 * 1024 };

/* A worker of a mold becomes the supervisor's child when the process between is gone, which it is after its next few
 * instructions; only then can the kernel be asked to tell of the supervisor's end. */
static void ask_kernel(const struct oribi__process_context *context)
{
    enum { PATIENCE_MS = 10000 };
    int64_t end_ms = oribi_clock_ms() + PATIENCE_MS;
    while (getppid() != context->supervisor && oribi_clock_ms() < end_ms)
        oribi_process_poll(&context->life_fd, 1, 1);
    if (getppid() == context->supervisor &&
        oribi_os_signal_on_parent_death(SIGTERM, context->supervisor) == ORIBI_ECLOSED)
        (void)raise(SIGTERM); /* it was faster than we */
}

/* Ends without a signal if the application has closed the descriptor. */
static void *await_end(void *arg)
{
    int life_fd = (int)(intptr_t)arg;
    char byte;
    ssize_t n;
    while ((n = oribi_os_read(life_fd, &byte, 1)) == ORIBI_AGAIN)
        oribi_process_poll(&life_fd, 1, -1);
    if (n == 0)
        (void)kill(getpid(), SIGTERM); /* of ours: cannot fail */
    return NULL;
}

static int start_thread(int life_fd)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return ORIBI_ENOMEM;
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);               /* a valid size */
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED); /* a valid state */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* handlers of the application belong to its own threads */
    int code = pthread_create(&thread, &attributes, await_end, (void *)(intptr_t)life_fd);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return code ? ORIBI_ESYS : 0;
}

void oribi__managers_end_expect(const struct oribi__process_context *context)
{
    if (oribi_os_adopts_orphans()) {
        if (getppid() != context->supervisor) /* else it was asked at the fork */
            ask_kernel(context);
    } else if (start_thread(context->life_fd) < 0) {
        oribi_log(ORIBI_LOG_WARN, "cannot start a thread that waits for the manager's end: "
                                  "a worker that waits for something else will outlive the manager");
    }
}
