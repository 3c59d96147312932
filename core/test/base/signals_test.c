/* Handlers: which handler gets a signal, in which process, and the handlers that were there before ours. */
#include "base/signals.c"

#include "tap.h"

#include <stdlib.h>
#include <sys/wait.h>

static _Atomic int seen;   /* the last number our handler got */
static _Atomic int before; /* what the program's own handler got */

static void ours(void *self, int number)
{
    atomic_store(&seen, number);
}

static void theirs(int number)
{
    atomic_store(&before, number);
}

/* How a child ends that does `act`: waitpid's status. */
static int in_child(void (*act)(void))
{
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        act();
        _exit(0);
    }
    (void)waitpid(pid, &status, 0);
    return status;
}

static void raise_term(void)
{
    (void)raise(SIGTERM);
}

static void raise_usr1(void)
{
    (void)raise(SIGUSR1);
    _exit(atomic_load(&before) == SIGUSR1 ? 42 : 1);
}

static void test_every_signal_of_ours_reaches_the_handler(void)
{
    static const int handled[] = {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGTTIN, SIGTTOU};
    oribi_signals_install(ours, NULL, 0);
    for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++) {
        (void)raise(handled[i]);
        ok_named(atomic_load(&seen) == handled[i], "signal %d reaches the handler", handled[i]);
    }
    (void)raise(SIGPIPE);
    (void)raise(SIGXFSZ);
    ok(atomic_load(&seen) == SIGTTOU); /* handled, and nothing done */
}

static void test_a_child_of_the_application_has_the_actions_of_before(void)
{
    ok_eq(in_child(raise_term), SIGTERM); /* the default */
    ok_eq(in_child(raise_usr1), 42 << 8); /* a handler of the program */
    ok(atomic_load(&before) != SIGUSR1);  /* it was the child that handled it */
}

static void set_action(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    (void)sigaction(number, &action, NULL);
}

static bool has_ours(int number)
{
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_sigaction == on_signal;
}

static void raise_and_leave(void)
{
    (void)raise(SIGTERM);
    _exit(atomic_load(&before) == SIGTERM ? 42 : 1);
}

/* As Perl does it when the scope of a `local $SIG{TERM}` ends: it knows of no handler before. */
static void test_the_default_in_our_place_is_taken_back(void)
{
    set_action(SIGTERM, SIG_DFL);
    oribi_signals_mend(SIGTERM, false);
    ok(has_ours(SIGTERM));
    atomic_store(&seen, 0);
    (void)raise(SIGTERM);
    ok_eq(atomic_load(&seen), SIGTERM);
    ok_eq(in_child(raise_term), SIGTERM); /* for a child it is the default */
    set_action(SIGINT, SIG_DFL);
    oribi_signals_mend_all(false);
    ok(has_ours(SIGINT));
}

static void test_a_handler_in_our_place_is_called_after_ours(void)
{
    set_action(SIGTERM, theirs);
    oribi_signals_mend(SIGTERM, false);
    atomic_store(&seen, 0);
    atomic_store(&before, 0);
    (void)raise(SIGTERM);
    ok_eq(atomic_load(&seen), SIGTERM);
    ok_eq(atomic_load(&before), SIGTERM);
    atomic_store(&before, 0);
    ok_eq(in_child(raise_and_leave), 42 << 8); /* a child has that handler alone */
    struct sigaction action;
    ok(sigaction(SIGTERM, NULL, &action) == 0 && !(action.sa_flags & SA_RESTART)); /* as theirs wanted it */
    oribi_signals_retake(SIGTERM);
    atomic_store(&before, 0);
    (void)raise(SIGTERM);
    ok_eq(atomic_load(&before), 0);
    ok(sigaction(SIGTERM, NULL, &action) == 0 && (action.sa_flags & SA_RESTART));
}

static void test_what_is_ignored_stays_so_unless_asked_for(void)
{
    set_action(SIGTERM, SIG_IGN);
    oribi_signals_mend(SIGTERM, false);
    ok(!has_ours(SIGTERM));
    oribi_signals_mend(SIGTERM, true);
    ok(has_ours(SIGTERM));
}

static void test_what_is_not_ours_is_left_alone(void)
{
    set_action(SIGINT, theirs); /* ours would end the process before theirs is called */
    set_action(SIGALRM, theirs);
    oribi_signals_mend_all(true);
    ok(!has_ours(SIGINT) && !has_ours(SIGALRM));
    set_action(SIGALRM, SIG_DFL);
    oribi_signals_retake(SIGINT);
    ok(has_ours(SIGINT));
    oribi_signals_mend(0, true);
    oribi_signals_mend(SIGNALS_MAX + 1, true);
}

static void mend_in_a_child(void)
{
    set_action(SIGTERM, SIG_DFL);
    oribi_signals_mend_all(true);
    oribi_signals_retake(SIGTERM);
    (void)raise(SIGTERM);
}

static void test_a_child_mends_nothing(void)
{
    ok_eq(in_child(mend_in_a_child), SIGTERM);
}

static void test_signals_held_back_strike_on_release(void)
{
    atomic_store(&seen, 0);
    oribi_signals_hold();
    (void)raise(SIGTERM);
    ok_eq(atomic_load(&seen), 0);
    oribi_signals_release();
    ok_eq(atomic_load(&seen), SIGTERM);
}

static void nothing(void)
{
}

static void test_a_childs_end_reaches_us_and_the_handler_before_us(void)
{
    oribi_signals_install(ours, NULL, 1);
    atomic_store(&seen, 0);
    ok_eq(in_child(nothing), 0);
    ok_eq(atomic_load(&seen), SIGCHLD);
    ok_eq(atomic_load(&before), SIGCHLD);
    oribi_signals_install(ours, NULL, 0);
    atomic_store(&seen, 0);
    atomic_store(&before, 0);
    ok_eq(in_child(nothing), 0);
    ok_eq(atomic_load(&seen), 0);
    ok_eq(atomic_load(&before), SIGCHLD);
}

static void test_errno_survives_a_handler(void)
{
    errno = ENOENT;
    (void)raise(SIGHUP);
    ok_eq(errno, ENOENT);
}

static void test_afterwards_everything_is_as_before(void)
{
    struct sigaction action;
    oribi_signals_uninstall();
    ok(sigaction(SIGTERM, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
    ok(sigaction(SIGUSR1, NULL, &action) == 0 && action.sa_handler == theirs);
    ok(sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
}

static void raise_kept(void)
{
    oribi_signals_uninstall();
    oribi_signals_keep();
    (void)raise(SIGTERM);
    (void)raise(SIGUSR1);
    atomic_store(&seen, 0);
    oribi_signals_install(ours, NULL, 0);
    _exit(atomic_load(&seen) == SIGTERM ? 42 : 1); /* the last of both, by their numbers */
}

static void raise_kept_in_vain(void)
{
    oribi_signals_uninstall();
    (void)signal(SIGTERM, SIG_DFL);
    oribi_signals_keep();
    (void)raise(SIGTERM);
    oribi_signals_keep_not();
}

static void keep_after_install(void)
{
    oribi_signals_install(ours, NULL, 0);
    oribi_signals_keep();
    oribi_signals_keep_not();
    (void)raise(SIGTERM);
    _exit(atomic_load(&seen) == SIGTERM ? 42 : 1);
}

static void test_kept_signals_go_to_the_next_handler_or_to_what_was_before(void)
{
    ok_eq(in_child(raise_kept), 42 << 8);
    ok_eq(in_child(raise_kept_in_vain), SIGTERM);
    ok_eq(in_child(keep_after_install), 42 << 8);
}

static void raise_late(void)
{
    oribi_signals_end(3);
    (void)raise(SIGTERM);
    (void)raise(SIGQUIT);
    (void)raise(SIGHUP);
    if (in_child(raise_term) != SIGTERM) /* a child of the language's end */
        _exit(1);
    (void)raise(SIGINT);
}

static void raise_after_the_end(void)
{
    oribi_signals_end(3);
    oribi_signals_uninstall();
    (void)raise(SIGTERM);
}

static void test_late_signals_do_not_change_the_exit_code(void)
{
    oribi_signals_install(ours, NULL, 1);
    ok_eq(in_child(raise_late), 3 << 8);
    ok_eq(in_child(raise_after_the_end), SIGTERM);
    oribi_signals_uninstall();
}

static void test_numbers_and_names(void)
{
    static const struct {
        const char *text;
        int number;
    } cases[] = {{"TERM", SIGTERM},
                 {"SIGTERM", SIGTERM},
                 {"15", 15},
                 {"64", 64},
                 {"65", 0},
                 {"0", 0},
                 {"15x", 0},
                 {"term", 0},
                 {"-1", 0},
                 {"", 0},
                 {"NONE", 0},
                 {"SIG", 0},
                 {"99999999999999999999", 0}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ok_named(oribi_signal_number(cases[i].text) == cases[i].number, "signal \"%s\"", cases[i].text);
}

int main(void)
{
    (void)signal(SIGUSR1, theirs);
    (void)signal(SIGCHLD, theirs);
    test_every_signal_of_ours_reaches_the_handler();
    test_a_child_of_the_application_has_the_actions_of_before();
    test_the_default_in_our_place_is_taken_back();
    test_a_handler_in_our_place_is_called_after_ours();
    test_what_is_ignored_stays_so_unless_asked_for();
    test_what_is_not_ours_is_left_alone();
    test_a_child_mends_nothing();
    test_signals_held_back_strike_on_release();
    test_a_childs_end_reaches_us_and_the_handler_before_us();
    test_errno_survives_a_handler();
    test_afterwards_everything_is_as_before();
    test_kept_signals_go_to_the_next_handler_or_to_what_was_before();
    test_late_signals_do_not_change_the_exit_code();
    test_numbers_and_names();
    return done_testing();
}
