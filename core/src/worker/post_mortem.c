/* Where a call stands that nothing could end: the frames of its language, which a binding reads from the runtime's
 * memory, then the innermost native ones. The process ends right after; whatever goes wrong here ends it a moment
 * sooner, when its clients have been answered. */
#include "worker/deadline_private.h"

#include "worker/worker_private.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    TEXT_CAP = 6 * 1024, /* two thirds of what a block of the log holds */
    NATIVE_MAX = 8,
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
    const struct oribi_worker *w = thread->worker;
    char text[TEXT_CAP];
    size_t n = 0;
    guard();
    if (w->deadline.frames)
        n = w->deadline.frames(w->deadline.frames_self, (uint32_t)(thread - w->threads.list), own_thread, text,
                               sizeof(text));
    if (own_thread)
        n += oribi_os_native_frames(interrupted, NATIVE_MAX, text + n, sizeof(text) - n);
    if (n > 0)
        oribi_log_block(ORIBI_LOG_ERROR, "call deadline: where the call stands, innermost first", text, (uint32_t)n);
    else
        oribi_log(ORIBI_LOG_ERROR,
                  "call deadline: the thread of the call takes no signals: where the call stands is not known");
}
