/* The supervisor as a library: options, what signals mean, and managers with real workers. A manager is a child of
 * the test, and whatever it leaves behind becomes the test's child too. */
#include "supervisor/prefork.c"

#include "supervisor/lab.h"
#include "supervisor/modules.h"
#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>

/* --- options --- */

static void test_defaults_are_a_librarys_and_what_the_program_says_stands(void)
{
    struct oribi_options options;
    char error[ORIBI_ERROR_TEXT_CAP];
    oribi_options_init(&options);
    ok_eq(oribi_prefork_set(&options, "shutdown_timeout", "3s", error), 0);
    oribi_prefork_defaults(&options);
    ok_eq(options.workers, 10);
    ok_eq(options.shutdown_timeout_ms, 3000);
    oribi_options_deinit(&options);
}

static void test_names_are_those_of_a_library(void)
{
    struct oribi_options options;
    char error[ORIBI_ERROR_TEXT_CAP];
    oribi_options_init(&options);
    options.lang = ORIBI_LANG_PERL;
    ok_eq(oribi_prefork_set(&options, "max_workers", "3", error), 0);
    ok_eq(oribi_prefork_set(&options, "jobs_max", "5..7", error), 0);
    ok_eq(oribi_prefork_set(&options, "jobs_jitter", "2", error), 0);
    ok_eq(options.workers, 3);
    ok(options.requests_max.min == 5 && options.requests_max.max == 7 && options.requests_jitter == 2);
    ok(oribi_prefork_set(&options, "idle_timeout", "5", error) < 0);
    is_str(error, "idle_timeout is an option of the server: it has no meaning here");
    ok(oribi_prefork_set(&options, "max_worker", "5", error) < 0);
    ok(strstr(error, "max_workers") != NULL);
    ok_eq(oribi_prefork_set(&options, "fork_delay", "0", error), 1);
    is_str(error, "unknown option fork_delay: see --help all");
    ok(oribi_prefork_set(&options, "jobs_max", "few", error) < 0);
    oribi_options_deinit(&options);
}

static void test_traps_up_to_the_most(void)
{
    static const int never[] = {0, -1, SIGKILL, SIGSTOP, SIGCHLD, SIGPIPE, SIGXFSZ};
    struct oribi_prefork prefork = {.trap_count = 0};
    char error[ORIBI_ERROR_TEXT_CAP];
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
        ok(oribi_prefork_trap(&prefork, never[i], 0, 0, error) < 0);
    ok_eq(oribi_prefork_trap(&prefork, SIGTERM, SIGTERM, 0, error), 0);
    ok(oribi_prefork_trap(&prefork, SIGTERM, 0, 0, error) < 0);
    is_str(error, "trap_signals: TERM is there twice");
    for (int number = SIGRTMIN; prefork.trap_count < ORIBI_TRAPS_MAX; number = number == SIGRTMAX ? SIGHUP : number + 1)
        ok_eq(oribi_prefork_trap(&prefork, number, 0, 0, error), 0);
    ok(oribi_prefork_trap(&prefork, SIGXCPU, 0, 0, error) < 0);
    is_str(error, "trap_signals: too many");
}

static void test_traps_by_name(void)
{
    struct oribi_prefork prefork = {.trap_count = 0};
    char error[ORIBI_ERROR_TEXT_CAP];
    ok_eq(oribi_prefork_trap_named(&prefork, "TERM", "SIGQUIT", 500, error), 0);
    ok_eq(oribi_prefork_trap_named(&prefork, "HUP", "", 0, error), 0);
    ok_eq(oribi_prefork_trap_named(&prefork, "USR2", NULL, 0, error), 0);
    ok(prefork.traps[0].signal == SIGTERM && prefork.traps[0].send == SIGQUIT && prefork.traps[0].interval_ms == 500);
    ok(prefork.traps[1].signal == SIGHUP && prefork.traps[1].send == 0 && prefork.traps[2].send == 0);
    ok(oribi_prefork_trap_named(&prefork, "NONE", "TERM", 0, error) < 0);
    is_str(error, "trap_signals: there is no signal NONE");
    ok(oribi_prefork_trap_named(&prefork, "INT", "NONESUCH", 0, error) < 0);
    is_str(error, "trap_signals: there is no signal NONESUCH");
    ok_eq(prefork.trap_count, 3);
}

static void test_only_signals_that_exist_are_left(void)
{
    struct oribi_prefork prefork = {.trap_count = 0};
    oribi_prefork_leave(&prefork, 0);
    oribi_prefork_leave(&prefork, 65);
    ok(prefork.left == 0);
    oribi_prefork_leave(&prefork, 1);
    oribi_prefork_leave(&prefork, 64);
    ok(prefork.left == (1 | (uint64_t)1 << 63));
}

/* --- what signals mean: a manager without processes --- */

static struct oribi_supervisor *whole;
static struct oribi_options fake_options;

static void end(void)
{
    if (whole)
        modules_destroy(whole, &fake_options);
    whole = NULL;
}

static struct oribi__context *fake(const struct oribi_trap *traps, uint32_t count)
{
    end();
    whole = modules_create(&oribi__manager, &fake_options);
    struct oribi__prefork *manager = whole->context.prefork;
    memcpy(manager->prefork.traps, traps, count * sizeof(*traps));
    manager->prefork.trap_count = count;
    return &whole->context;
}

static const struct oribi_trap usual[] = {{SIGTERM, SIGTERM, 500}, {SIGUSR2, 0, 0}};

static void test_a_trapped_signal_pauses_and_says_what_the_workers_get(void)
{
    struct oribi_policy_event event;
    struct oribi__context *supervisor = fake(usual, 2);
    ok(prefork_signal(supervisor, SIGTERM, &event));
    ok(event.type == ORIBI_EVENT_PAUSE && event.status == SIGTERM && event.bytes == 500);
    ok(supervisor->prefork->paused && supervisor->prefork->ending && supervisor->prefork->trapped == SIGTERM);
    ok(prefork_signal(supervisor, SIGTERM, &event));
    ok_eq(event.type, ORIBI_EVENT_STOP_NOW); /* the second one */
    supervisor = fake(usual, 2);
    ok(prefork_signal(supervisor, SIGUSR2, &event));
    ok(event.type == ORIBI_EVENT_PAUSE && event.status == 0);
    ok(supervisor->prefork->paused && !supervisor->prefork->ending);
}

static void test_what_is_trapped_meanwhile_is_what_the_next_start_ends_with(void)
{
    struct oribi_policy_event event;
    struct oribi__context *supervisor = fake(usual, 2);
    ok(prefork_signal(supervisor, SIGUSR2, &event));
    ok(!prefork_signal(supervisor, SIGTERM, &event));
    ok(!prefork_signal(supervisor, SIGUSR2, &event)); /* which is no reason to forget the end */
    oribi_supervisor_resume(whole);
    ok(supervisor->prefork->resume_asked);
    ok(prefork_resume(supervisor, &event));
    ok(event.type == ORIBI_EVENT_PAUSE && supervisor->prefork->trapped == SIGTERM && supervisor->prefork->ending);
    ok(prefork_resume(supervisor, &event));
    ok(event.type == ORIBI_EVENT_RESUME && !supervisor->prefork->paused && !supervisor->prefork->ending);
}

static void test_what_is_not_trapped(void)
{
    struct oribi_policy_event event;
    struct oribi__context *supervisor = fake(usual, 0);
    ok(prefork_signal(supervisor, SIGTTIN, &event) && event.type == ORIBI_EVENT_RESIZE && event.delta == 1);
    ok(prefork_signal(supervisor, SIGTTOU, &event) && event.delta == -1);
    ok(prefork_signal(supervisor, SIGUSR1, &event) && event.type == ORIBI_EVENT_REOPEN);
    ok(!prefork_signal(supervisor, SIGCHLD, &event));
    ok(!prefork_signal(supervisor, 0, &event)); /* oribi_supervisor_wake() */
    ok(prefork_signal(supervisor, SIGQUIT, &event) && event.type == ORIBI_EVENT_STOP);
    ok(prefork_signal(supervisor, SIGINT, &event) && event.type == ORIBI_EVENT_STOP_NOW);
    ok_eq(supervisor->prefork->reraise, SIGQUIT); /* the first one is what ended it */
}

static void test_commands_of_clients_are_signals(void)
{
    struct oribi_policy_event event = {.type = ORIBI_EVENT_STOP};
    struct oribi__context *supervisor = fake(usual, 2);
    ok(prefork_command(supervisor, &event) && event.type == ORIBI_EVENT_PAUSE &&
       supervisor->prefork->trapped == SIGTERM);
    supervisor = fake(usual, 2);
    event.type = ORIBI_EVENT_STOP_NOW;
    ok(prefork_command(supervisor, &event) && event.type == ORIBI_EVENT_STOP_NOW &&
       supervisor->prefork->reraise == SIGINT);
    event.type = ORIBI_EVENT_UPGRADE;
    ok(!prefork_command(supervisor, &event));
    event.type = ORIBI_EVENT_RELOAD;
    ok(prefork_command(supervisor, &event) && event.type == ORIBI_EVENT_RELOAD);
    supervisor->prefork->paused = true; /* nobody would load the next generation */
    ok(!prefork_command(supervisor, &event));
    const struct oribi_trap hup = {SIGHUP, SIGHUP, 0};
    supervisor = fake(&hup, 1);
    ok(prefork_command(supervisor, &event) && event.type == ORIBI_EVENT_PAUSE && event.status == SIGHUP);
}

/* --- managers with workers --- */

enum { BALLAST_MB = 64 };

/* Runs jobs, or one that lasts as long as it may. */
static void work(struct oribi_process *p)
{
    struct pollfd wake = {oribi_jobs_wake_fd(p), POLLIN, 0};
    bool busy = atomic_load(&lab->ballast_mb) > 0;
    lab_carry_ballast();
    oribi_jobs_watch_signals(p);
    if (busy)
        oribi_jobs_begin(p, "long", 4);
    atomic_store(&lab->pretend_requests, (int)getuid());
    atomic_store(&lab->worker_pids[atomic_fetch_add(&lab->worker_count, 1) % PIDS_MAX], getpid());
    while (busy ? !oribi_process_stopping(p) : !oribi_jobs_stopping(p))
        (void)poll(&wake, 1, -1);
    if (busy)
        oribi_jobs_end(p);
    atomic_fetch_add(&lab->answers, 1); /* it ended by itself */
    _exit(0);
}

static int forks_to_fail; /* of the manager started next */

/* As fork(2) where there are too many processes, a few times. */
static pid_t try_fork(void)
{
    if (forks_to_fail == 0)
        return fork();
    forks_to_fail--;
    errno = EAGAIN;
    return -1;
}

/* One start: the signal that ended it, 0 when everything has ended. */
static int run_until_trapped(struct oribi_process *p)
{
    for (;;) {
        const struct oribi_step *step = oribi_process_take(p);
        if (step->type == ORIBI_STEP_WAIT)
            oribi_process_wait(p, -1);
        else if (step->type == ORIBI_STEP_FORK)
            (void)oribi_process_forked(p, try_fork());
        else if (step->type == ORIBI_STEP_HOOK)
            lab_run_hook(step);
        else if (step->type == ORIBI_STEP_RUN)
            work(p);
        else if (step->type == ORIBI_STEP_TRAPPED)
            return step->signal;
        else if (step->type == ORIBI_STEP_DONE)
            return -1;
        else if (step->at_once)
            _exit(step->code);
        else
            return 0;
    }
}

/* USR2 starts again, TERM ends it. The workers' number is shown as `reopened` at each of them. */
static void manage(struct oribi_options *options)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_prefork prefork = {.trap_count = 0};
    if (oribi_prefork_trap(&prefork, SIGTERM, SIGTERM, 0, error) < 0 ||
        oribi_prefork_trap(&prefork, SIGUSR2, 0, 0, error) < 0)
        _exit(lab_fail_start(error));
    static char *argv[] = {(char *)"/proc/self/exe", (char *)"manage", NULL};
    const struct oribi_process_setup setup = {.options = options, .program = "test", .argv = argv, .manager = &prefork};
    struct oribi_process *p;
    if (oribi_process_create(&setup, &p, error) < 0)
        _exit(lab_fail_start(error));
    atomic_store(&lab->serve_pid, getpid());
    while (run_until_trapped(p) == SIGUSR2) {
        atomic_store(&lab->reopened, (int)oribi_process_workers(p));
        oribi_process_resume(p);
    }
    oribi_process_await_workers(p, -1);
    if (run_until_trapped(p) != -1) /* time is up at once */
        _exit(95);
    oribi_process_await_workers(p, 0);
    if (run_until_trapped(p) != -1 || oribi_process_workers(p) != 0)
        _exit(94);
    if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD) /* neither has a mold outlasted the workers */
        _exit(93);
    oribi_process_destroy(p);
    _exit(0);
}

/* Of a manager that a reload has started. */
static struct oribi_options *next_options(void)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_options *options = oribi_mem_alloc(1, sizeof(*options));
    if (prctl(PR_SET_CHILD_SUBREAPER, 0) < 0) /* lab_main() is for tests: the manager reaps the workers of its mold */
        _exit(98);
    oribi_options_init(options);
    oribi_prefork_defaults(options);
    if (oribi_prefork_set(options, "max_workers", "1", error) < 0 || oribi_options_finish(options, error) < 0)
        _exit(lab_fail_start(error));
    return options;
}

static pid_t start_manager(const char *const *settings)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    fflush(stdout);
    pid_t pid = fork();
    if (pid > 0)
        return pid;
    struct oribi_options *options = oribi_mem_alloc(1, sizeof(*options));
    oribi_options_init(options);
    oribi_prefork_defaults(options);
    for (; settings[0]; settings += 2)
        if (oribi_prefork_set(options, settings[0], settings[1], error) < 0)
            _exit(lab_fail_start(error));
    if (oribi_options_finish(options, error) < 0 || dup2(lab_log_fd, STDERR_FILENO) < 0)
        _exit(lab_fail_start(error));
    manage(options);
    _exit(96);
}

static void test_workers_come_are_started_again_and_leave(void)
{
    static const char *const settings[] = {"max_workers", "2", NULL};
    lab_prepare(0);
    pid_t pid = start_manager(settings);
    until(atomic_load(&lab->worker_count) == 2);
    pid_t first = atomic_load(&lab->worker_pids[0]);
    (void)kill(pid, SIGUSR2);
    until(atomic_load(&lab->reopened) == 2);
    (void)kill(first, SIGTERM); /* one of an earlier start makes room for one of this start */
    until(atomic_load(&lab->worker_count) == 3);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok_eq(atomic_load(&lab->answers), 3);
    ok_eq(atomic_load(&lab->hooks_exit), 3);
    ok(lab_alone());
}

/* The memory of a worker that is found in a job at every look is looked at nevertheless; the job is not cut short. */
static void test_a_worker_that_is_always_in_a_job_is_measured_too(void)
{
    if (!only_on_linux("memory of other processes is not known"))
        return;
    static const char *const settings[] = {"max_workers", "1", "memory_max", "32M", NULL};
    lab_prepare(0);
    atomic_store(&lab->ballast_mb, BALLAST_MB);
    pid_t pid = start_manager(settings);
    until(atomic_load(&lab->worker_count) == 1);
    atomic_store(&lab->ballast_mb, 0);
    until(atomic_load(&lab->worker_count) == 2);
    until(atomic_load(&lab->hooks_exit) == 1);
    is_str(lab->last_reason, "memory_max");
    ok_eq(atomic_load(&lab->answers), 1);
    ok_eq(atomic_load(&lab->last_status), 0);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok(lab_alone());
}

static void test_workers_are_the_user_that_the_options_name(void)
{
    static const char *const settings[] = {"max_workers", "1", "user", "65534", "group", "65534", NULL};
    if (geteuid() != 0) {
        pass("(only root can become somebody else)");
        return;
    }
    lab_prepare(0);
    atomic_store(&lab->pretend_requests, -1);
    pid_t pid = start_manager(settings);
    until(atomic_load(&lab->worker_count) == 1);
    ok_eq(atomic_load(&lab->pretend_requests), 65534);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok(lab_alone());
}

static void test_workers_leave_when_the_manager_is_killed(void)
{
    static const char *const settings[] = {"max_workers", "2", NULL};
    lab_prepare(0);
    pid_t pid = start_manager(settings);
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(pid, SIGKILL);
    ok_eq(lab_ended(pid), SIGKILL);
    until(atomic_load(&lab->answers) == 2);
    until(lab_alone());
}

/* One failure after the other, before the supervisor has slept: each of them is heard of, or its worker would never
 * come. */
static void test_every_fork_that_fails_is_tried_again(void)
{
    static const char *const settings[] = {"max_workers", "3", "boot_timeout", "0", "err_respawn_interval", "0", NULL};
    lab_prepare(0);
    forks_to_fail = 3;
    pid_t pid = start_manager(settings);
    forks_to_fail = 0;
    until(atomic_load(&lab->worker_count) == 3);
    ok(lab_logged("cannot fork worker 0: resource temporarily unavailable"));
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok(lab_alone());
}

static void test_the_mold_of_a_reload_is_gone_when_the_workers_are(void)
{
    static const char *const settings[] = {"max_workers", "1", NULL};
    lab_prepare(0);
    pid_t pid = start_manager(settings);
    until(atomic_load(&lab->worker_count) == 1);
    (void)kill(pid, SIGHUP);
    until(atomic_load(&lab->worker_count) == 2);
    until(atomic_load(&lab->hooks_exit) == 1); /* the old worker has left */
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok_eq(atomic_load(&lab->answers), 2);
    until(lab_alone()); /* it ends with its manager, which does not wait for that */
}

static void test_age_max_replaces_between_jobs(void)
{
    static const char *const settings[] = {"max_workers", "1", "age_max", "1s", NULL};
    lab_prepare(0);
    pid_t pid = start_manager(settings);
    until(atomic_load(&lab->worker_count) == 2);
    until(atomic_load(&lab->hooks_exit) == 1);
    is_str(lab->last_reason, "age_max");
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok(lab_alone());
}

int main(int argc, char **argv)
{
    lab_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "manage") == 0)
        manage(next_options());
    test_defaults_are_a_librarys_and_what_the_program_says_stands();
    test_names_are_those_of_a_library();
    test_traps_up_to_the_most();
    test_traps_by_name();
    test_only_signals_that_exist_are_left();
    test_a_trapped_signal_pauses_and_says_what_the_workers_get();
    test_what_is_trapped_meanwhile_is_what_the_next_start_ends_with();
    test_what_is_not_trapped();
    test_commands_of_clients_are_signals();
    test_workers_come_are_started_again_and_leave();
    test_a_worker_that_is_always_in_a_job_is_measured_too();
    test_workers_are_the_user_that_the_options_name();
    test_workers_leave_when_the_manager_is_killed();
    test_every_fork_that_fails_is_tried_again();
    test_the_mold_of_a_reload_is_gone_when_the_workers_are();
    test_age_max_replaces_between_jobs();
    return done_testing();
}
