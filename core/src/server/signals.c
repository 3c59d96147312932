/* Signal handlers; see the header for what a forked child does with them. */
#include "oribi/server/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static const int handled[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGTTIN, SIGTTOU};

enum { HANDLED = sizeof(handled) / sizeof(handled[0]) };

/* A handler has no argument but the number, so this is the process's one set. Written with our signals held back. */
static struct {
    _Atomic pid_t owner; /* 0: nothing installed in this process or its parents */
    oribi_signal_fn fn;
    void *self;
    bool children;
    struct sigaction before[HANDLED];
    struct sigaction before_pipe;
    struct sigaction before_child;
    sigset_t mask; /* before hold */
} set;

/* Signals that came before there was anybody to act on them; by their place in `handled`. */
static volatile sig_atomic_t early[HANDLED];

static void note(void *self, int number)
{
    for (int i = 0; i < HANDLED; i++)
        if (handled[i] == number)
            early[i] = 1;
}

static void chain(const struct sigaction *before, int number, siginfo_t *info, void *context)
{
    if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(number, info, context);
    else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
        before->sa_handler(number);
}

static const struct sigaction *before_us(int number)
{
    for (int i = 0; i < HANDLED; i++)
        if (handled[i] == number)
            return &set.before[i];
    return &set.before_pipe;
}

/* errno belongs to the code that was interrupted. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    if (getpid() == atomic_load(&set.owner)) {
        if (number != SIGPIPE)
            set.fn(set.self, number);
    } else {
        (void)sigaction(number, before_us(number), NULL);
        (void)raise(number); /* blocked until this handler returns, and then it strikes */
    }
    errno = kept;
}

static void on_child(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    if (getpid() == atomic_load(&set.owner))
        set.fn(set.self, number);
    chain(&set.before_child, number, info, context);
    errno = kept;
}

static void handle(int number, void (*fn)(int, siginfo_t *, void *), int flags, struct sigaction *before)
{
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = fn;
    action.sa_flags = SA_SIGINFO | SA_RESTART | flags;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, before); /* fails only for numbers that do not exist */
}

static void fill_mask(sigset_t *mask)
{
    (void)sigemptyset(mask);
    for (int i = 0; i < HANDLED; i++)
        (void)sigaddset(mask, handled[i]);
}

/* SA_RESTART for the application's sake: its system calls do not fail because of us. poll(2) and epoll_wait(2) end all the same. */
void oribi_signals_install(oribi_signal_fn fn, void *self, int children)
{
    bool first = atomic_load(&set.owner) == 0;
    sigset_t mask;
    sigset_t before;
    fill_mask(&mask);
    (void)pthread_sigmask(SIG_BLOCK, &mask, &before); /* arguments are right */
    set.fn = fn;
    set.self = self;
    atomic_store(&set.owner, getpid());
    for (int i = 0; i < HANDLED; i++)
        handle(handled[i], on_signal, 0, first ? &set.before[i] : NULL);
    handle(SIGPIPE, on_signal, 0, first ? &set.before_pipe : NULL);
    if (children && !set.children)
        handle(SIGCHLD, on_child, SA_NOCLDSTOP, &set.before_child);
    else if (!children && set.children)
        (void)sigaction(SIGCHLD, &set.before_child, NULL);
    set.children = children;
    for (int i = 0; i < HANDLED && fn != note; i++)
        if (early[i]) {
            early[i] = 0;
            fn(self, handled[i]);
        }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void oribi_signals_keep(void)
{
    if (atomic_load(&set.owner) == 0)
        oribi_signals_install(note, NULL, 0);
}

void oribi_signals_keep_not(void)
{
    if (set.fn != note)
        return;
    oribi_signals_uninstall();
    for (int i = 0; i < HANDLED; i++)
        if (early[i]) {
            early[i] = 0;
            (void)raise(handled[i]);
        }
}

void oribi_signals_uninstall(void)
{
    if (atomic_load(&set.owner) == 0)
        return;
    for (int i = 0; i < HANDLED; i++)
        (void)sigaction(handled[i], &set.before[i], NULL);
    (void)sigaction(SIGPIPE, &set.before_pipe, NULL);
    if (set.children)
        (void)sigaction(SIGCHLD, &set.before_child, NULL);
    set.children = false;
    set.fn = NULL;
    atomic_store(&set.owner, 0);
}

void oribi_signals_hold(void)
{
    sigset_t mask;
    fill_mask(&mask);
    (void)pthread_sigmask(SIG_BLOCK, &mask, &set.mask); /* arguments are right */
}

void oribi_signals_release(void)
{
    (void)pthread_sigmask(SIG_SETMASK, &set.mask, NULL);
}
