/* Where a call stands that nothing could end: the frames of its language, which a binding reads from the runtime's
 * memory, then the innermost native ones. The process ends right after; whatever else goes wrong here ends it a moment
 * sooner, when its clients have been answered. */
#include "worker/deadline_private.h"

#include "worker/sample.h"
#include "worker/worker_private.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

enum {
    TRIES = 3, /* to read the call: the helper may be taking a sample, for a moment */
    TRY_MS = 5 /* between two tries */
};

static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};

static void on_fault(int number)
{
    _exit(ORIBI_EXIT_CALL_DEADLINE);
}

/* The runtime may have been stopped in the middle of anything, and what is read here be half done. */
static void guard(void)
{
    struct sigaction action = {.sa_handler = on_fault};
    sigset_t mask;
    (void)sigemptyset(&mask);
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        (void)sigaction(faults[i], &action, NULL); /* valid numbers */
        (void)sigaddset(&mask, faults[i]);
    }
    (void)pthread_sigmask(SIG_UNBLOCK, &mask, NULL);
}

void oribi_worker_show_frames(struct oribi_worker *w, oribi_frames_fn fn, void *self)
{
    w->deadline.frames = fn;
    w->deadline.frames_self = self;
}

void oribi__post_mortem(const struct oribi_thread *thread, bool own_thread, const void *interrupted)
{
    struct oribi__stand stand = {.thread = thread, .own_thread = own_thread, .interrupted = interrupted};
    guard();
    for (int i = 0; i < TRIES && stand.len == 0; i++) {
        if (i > 0)
            (void)poll(NULL, 0, TRY_MS);
        oribi__stand_read(&stand, true);
    }
    oribi__stand_name(&stand);
    if (stand.len > 0)
        oribi_log_block(ORIBI_LOG_ERROR, "call deadline: where the call stands, innermost first", stand.text,
                        (uint32_t)stand.len);
    else
        oribi_log(ORIBI_LOG_ERROR,
                  "call deadline: the thread of the call takes no signals: where the call stands is not known");
}
