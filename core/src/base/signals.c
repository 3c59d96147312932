/* Signal handlers; see the header for what a forked child does with them. */
#include "oribi/base/signals.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIGNALS_MAX = 64 }; /* Linux numbers them from 1 to 64 */

#define BIT(number) ((uint64_t)1 << ((number)-1))

static const uint64_t usual = BIT(SIGINT) | BIT(SIGTERM) | BIT(SIGQUIT) | BIT(SIGHUP) | BIT(SIGUSR1) | BIT(SIGUSR2) |
                              BIT(SIGWINCH) | BIT(SIGTTIN) | BIT(SIGTTOU);

/* A handler has no argument but the number, so this is the process's one set. Written with our signals held back. */
static struct {
    _Atomic pid_t owner; /* 0: nothing installed in this process or its parents */
    oribi_signal_fn fn;
    void *self;
    bool children;
    uint64_t chosen;    /* instead of the usual ones; 0: those */
    uint64_t installed; /* CHLD, PIPE and XFSZ not among them */
    struct sigaction before[SIGNALS_MAX + 1];
    /* Handlers that the program has installed instead of ours since; ours are installed again. Read by handlers. */
    _Atomic uint64_t replaced;
    struct sigaction theirs[SIGNALS_MAX + 1];
    sigset_t mask; /* before hold */
} set;

/* Signals that came before a handler function was installed. */
static volatile sig_atomic_t early[SIGNALS_MAX + 1];

static void note(void *self, int number)
{
    early[number] = 1;
}

static uint64_t wanted(void)
{
    return set.chosen ? set.chosen : usual;
}

static void chain(const struct sigaction *before, int number, siginfo_t *info, void *context)
{
    if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(number, info, context);
    else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
        before->sa_handler(number);
}

static bool is_replaced(int number)
{
    return atomic_load(&set.replaced) & BIT(number);
}

void oribi_signals_yield(int number)
{
    (void)sigaction(number, is_replaced(number) ? &set.theirs[number] : &set.before[number], NULL);
    (void)raise(number); /* blocked until this handler returns, and then delivered */
}

/* errno belongs to the code that was interrupted. */
static void on_signal(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    if (getpid() == atomic_load(&set.owner)) {
        if (number != SIGPIPE && number != SIGXFSZ) /* the call that failed says so, and that is enough */
            set.fn(set.self, number);
        if (is_replaced(number))
            chain(&set.theirs[number], number, info, context);
    } else {
        oribi_signals_yield(number);
    }
    errno = kept;
}

static void on_child(int number, siginfo_t *info, void *context)
{
    int kept = errno;
    if (getpid() == atomic_load(&set.owner))
        set.fn(set.self, number);
    chain(&set.before[SIGCHLD], number, info, context);
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
    for (int number = 1; number <= SIGNALS_MAX; number++)
        if ((wanted() | usual | set.installed) & BIT(number))
            (void)sigaddset(mask, number);
}

void oribi_signals_choose(const int *numbers, size_t count)
{
    set.chosen = 0;
    for (size_t i = 0; i < count; i++)
        if (numbers[i] > 0 && numbers[i] <= SIGNALS_MAX)
            set.chosen |= BIT(numbers[i]);
}

static void put_back(int number)
{
    (void)sigaction(number, &set.before[number], NULL);
}

static bool is_handler(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

/* Gives the handler that is installed for the signal; false while it is ours. */
static bool find_theirs(int number, struct sigaction *action)
{
    return sigaction(number, NULL, action) == 0 &&
           !((action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_signal);
}

/* While `replaced` is being changed the handler that may run is not ours, or calls what was there before. Where
 * system calls were to fail for the sake of theirs, they fail. */
static void take_back(int number, const struct sigaction *theirs)
{
    set.theirs[number] = *theirs;
    (void)atomic_fetch_or(&set.replaced, BIT(number));
    handle(number, on_signal, 0, NULL);
    if (!is_handler(theirs) || (theirs->sa_flags & SA_RESTART))
        return;
    struct sigaction ours;
    (void)sigaction(number, NULL, &ours);
    ours.sa_flags &= ~SA_RESTART;
    (void)sigaction(number, &ours, NULL);
}

static bool is_ours(int number)
{
    return number > 0 && number <= SIGNALS_MAX && (set.installed & BIT(number));
}

static bool are_installed_here(void)
{
    return set.fn != note && atomic_load(&set.owner) == getpid();
}

static void mend(int number, bool ignored_too)
{
    struct sigaction theirs;
    if (!is_ours(number) || !find_theirs(number, &theirs))
        return;
    bool is_ignored = !(theirs.sa_flags & SA_SIGINFO) && theirs.sa_handler == SIG_IGN;
    if ((is_ignored && !ignored_too) || (number == SIGINT && is_handler(&theirs)))
        return;
    take_back(number, &theirs);
}

void oribi_signals_mend(int number, bool ignored_too)
{
    if (are_installed_here())
        mend(number, ignored_too);
}

void oribi_signals_mend_all(bool ignored_too)
{
    if (!are_installed_here())
        return;
    for (int number = 1; number <= SIGNALS_MAX; number++)
        mend(number, ignored_too);
}

void oribi_signals_retake(int number)
{
    if (!is_ours(number) || !are_installed_here())
        return;
    (void)atomic_fetch_and(&set.replaced, ~BIT(number));
    handle(number, on_signal, 0, NULL);
}

/* SA_RESTART for the application's sake: its system calls do not fail because of us. poll(2) and epoll_wait(2) end
 * all the same. */
void oribi_signals_install(oribi_signal_fn fn, void *self, int children)
{
    bool first = atomic_load(&set.owner) == 0;
    sigset_t mask;
    sigset_t before;
    fill_mask(&mask);
    (void)pthread_sigmask(SIG_BLOCK, &mask, &before); /* arguments are right */
    set.fn = fn;
    set.self = self;
    atomic_store(&set.replaced, 0);
    atomic_store(&set.owner, getpid());
    for (int number = 1; number <= SIGNALS_MAX; number++) {
        bool was = set.installed & BIT(number);
        if (wanted() & BIT(number))
            handle(number, on_signal, 0, was ? NULL : &set.before[number]);
        else if (was)
            put_back(number);
    }
    set.installed = wanted();
    handle(SIGPIPE, on_signal, 0, first ? &set.before[SIGPIPE] : NULL);
    handle(SIGXFSZ, on_signal, 0, first ? &set.before[SIGXFSZ] : NULL);
    if (children && !set.children)
        handle(SIGCHLD, on_child, SA_NOCLDSTOP, &set.before[SIGCHLD]);
    else if (!children && set.children)
        put_back(SIGCHLD);
    set.children = children;
    for (int number = 1; number <= SIGNALS_MAX && fn != note; number++)
        if (early[number]) {
            early[number] = 0;
            if (set.installed & BIT(number))
                fn(self, number);
            else
                (void)raise(number);
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
    for (int number = 1; number <= SIGNALS_MAX; number++)
        if (early[number]) {
            early[number] = 0;
            (void)raise(number);
        }
}

void oribi_signals_uninstall(void)
{
    if (atomic_load(&set.owner) == 0)
        return;
    for (int number = 1; number <= SIGNALS_MAX; number++)
        if (set.installed & BIT(number))
            put_back(number);
    put_back(SIGPIPE);
    put_back(SIGXFSZ);
    if (set.children)
        put_back(SIGCHLD);
    set.children = false;
    set.installed = 0;
    set.fn = NULL;
    atomic_store(&set.owner, 0);
}

static void on_late_signal(void *self, int number)
{
    if (number == SIGINT)
        _exit((int)(intptr_t)self);
}

void oribi_signals_end(int code)
{
    oribi_signals_install(on_late_signal, (void *)(intptr_t)code, 0);
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

/* --- names --- */

static const struct {
    const char *name;
    int number;
} names[] = {
    {"HUP", SIGHUP},     {"INT", SIGINT},       {"QUIT", SIGQUIT}, {"KILL", SIGKILL}, {"USR1", SIGUSR1},
    {"USR2", SIGUSR2},   {"PIPE", SIGPIPE},     {"ALRM", SIGALRM}, {"TERM", SIGTERM}, {"CHLD", SIGCHLD},
    {"CONT", SIGCONT},   {"STOP", SIGSTOP},     {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN}, {"TTOU", SIGTTOU},
    {"WINCH", SIGWINCH}, {"URG", SIGURG},       {"IO", SIGIO},     {"ABRT", SIGABRT}, {"XCPU", SIGXCPU},
    {"XFSZ", SIGXFSZ},   {"VTALRM", SIGVTALRM}, {"PROF", SIGPROF},
#ifdef SIGPWR
    {"PWR", SIGPWR},
#endif
};

int oribi_signal_number(const char *name)
{
    if (isdigit((unsigned char)name[0])) {
        char *end;
        long number = strtol(name, &end, 10);
        return *end == '\0' && number < NSIG ? (int)number : 0;
    }
    if (strncmp(name, "SIG", 3) == 0)
        name += 3;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].number;
    return 0;
}

const char *oribi_signal_name(int number)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].number == number)
            return names[i].name;
    return "";
}
