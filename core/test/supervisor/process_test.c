/* Which steps each role gets, in which order: real processes write down theirs, and leave the list when they end. */
#include "oribi/supervisor/process.h"
#include "oribi/worker/worker.h"

#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/supervisor/jobs.h"
#include "oribi/supervisor/prefork.h"

#include "system.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINES = 64, LINE_CAP = 512 };

static struct {
    atomic_int ready;  /* workers that have come to RUN for the first time */
    atomic_int count;  /* lines */
    atomic_int forked; /* what a child of the application got: 1 + code */
    char lines[LINES][LINE_CAP];
} * shared;

static const char
    *trouble; /* "load", "open", "after_fork": what fails; "refork": the first worker is to become a mold */
static char steps[LINE_CAP];
static bool single; /* the option */

static void note(const char *what, const char *detail)
{
    size_t len = strlen(steps);
    (void)snprintf(steps + len, sizeof(steps) - len, "%s%s%s%s", len ? ", " : "", what, detail[0] ? " " : "", detail);
}

static void leave_list(enum oribi_role role)
{
    static const char *const roles[] = {"supervisor", "starter", "mold", "intermediate", "worker"};
    int at = atomic_fetch_add(&shared->count, 1);
    if (at < LINES)
        (void)snprintf(shared->lines[at], LINE_CAP, "%s: %.400s", roles[role], steps);
}

static bool has(const char *line)
{
    for (int i = 0; i < LINES && i < atomic_load(&shared->count); i++)
        if (strcmp(shared->lines[i], line) == 0)
            return true;
    diag("missing: %s", line);
    for (int i = 0; i < LINES && i < atomic_load(&shared->count); i++)
        diag("  there: %s", shared->lines[i]);
    return false;
}

static bool fails(struct oribi_process *p, const char *what)
{
    if (!trouble || strcmp(trouble, what) != 0)
        return false;
    oribi_process_failed(p, "it fails", 8);
    return true;
}

/* A child of the application that comes back into the loop. */
static void fork_stranger(struct oribi_process *p)
{
    pid_t pid = fork();
    if (pid > 0) {
        (void)waitpid(pid, NULL, 0);
        return;
    }
    const struct oribi_step *step = oribi_process_take(p);
    atomic_store(&shared->forked, step->type == ORIBI_STEP_EXIT ? 1 + step->code : -1);
    oribi_process_destroy(p);
    _exit(0);
}

static void run(struct oribi_process *p)
{
    struct pollfd fds[2] = {{oribi_jobs_wake_fd(p), POLLIN, 0}, {oribi_process_life_fd(p), POLLIN, 0}};
    if (!strstr(steps, "before_refork") && atomic_fetch_add(&shared->ready, 1) == 0) {
        fork_stranger(p);
        if (trouble && strcmp(trouble, "refork") == 0)
            (void)raise(SIGUSR2);
    }
    while (!oribi_process_stopping(p)) {
        if (oribi_process_due(p) && oribi_process_turn(p))
            return;
        (void)poll(fds, 2, -1);
    }
}

static void end(struct oribi_process *p, const struct oribi_step *step)
{
    char text[32];
    int code = step->code;
    (void)snprintf(text, sizeof(text), "%d%s", code, step->at_once ? " at once" : "");
    note("EXIT", text);
    leave_list(oribi_process_role(p));
    if (!step->at_once)
        oribi_process_destroy(p);
    _exit(code);
}

static _Noreturn void drive(struct oribi_process *p)
{
    static const char *const forks[] = {"daemon", "mold", "intermediate", "worker"};
    for (;;) {
        const struct oribi_step *step = oribi_process_take(p);
        switch (step->type) {
        case ORIBI_STEP_WAIT:
            oribi_process_wait(p, -1);
            break;
        case ORIBI_STEP_FORK: {
            note("FORK", forks[step->fork]);
            pid_t pid = fork();
            if (pid == 0)
                steps[0] = '\0';
            (void)oribi_process_forked(p, pid);
            break;
        }
        case ORIBI_STEP_HOOK:
            note("HOOK", step->hook);
            if (step->fatal)
                (void)fails(p, step->hook);
            break;
        case ORIBI_STEP_LOAD:
            note("LOAD", "");
            (void)fails(p, "load");
            break;
        case ORIBI_STEP_OPEN:
            note("OPEN", "");
            if (!fails(p, "open"))
                oribi_process_ready(p, NULL);
            break;
        case ORIBI_STEP_RUN:
            note("RUN", "");
            run(p);
            break;
        case ORIBI_STEP_EXIT:
            end(p, step);
            break;
        case ORIBI_STEP_TRAPPED:
        case ORIBI_STEP_DONE:
            break;
        }
    }
}

static struct oribi_process *create(bool preload, bool daemonize)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_options *options = oribi_mem_alloc(1, sizeof(*options));
    struct oribi_process *p;
    int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    (void)dup2(null_fd, STDERR_FILENO);
    oribi_options_init(options);
    options->workers = 1;
    options->preload = preload;
    options->daemonize = daemonize;
    options->single = single;
    const struct oribi_process_setup setup = {.options = options, .program = "test"};
    if (oribi_process_create(&setup, &p, error) < 0)
        _exit(99);
    return p;
}

/* Runs a server until so many workers were ready or so many lines are there, stops it, and gives its exit code. */
static int serve(bool preload, const char *what_fails, int ready, int lines)
{
    memset(shared, 0, sizeof(*shared));
    trouble = what_fails;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        steps[0] = '\0';
        drive(create(preload, false));
    }
    int status = -1;
    const struct timespec nap = {0, 1000000};
    if (ready > 0 && !oribi_os_adopts_orphans())
        lines = 0; /* a reaper's is there when its worker has ended */
    while (atomic_load(&shared->ready) < ready || atomic_load(&shared->count) < lines)
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WEXITSTATUS(status);
        else
            (void)nanosleep(&nap, NULL);
    (void)kill(pid, SIGTERM);
    (void)waitpid(pid, &status, 0);
    while (waitpid(-1, NULL, 0) > 0) /* molds end by themselves: they are ours now */
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_the_application_is_loaded_in_the_mold(void)
{
    ok_eq(serve(true, NULL, 1, 1), 0);
    ok(has("supervisor: FORK mold, HOOK server_ready, HOOK on_worker_exit, EXIT 0"));
    ok(has("mold: LOAD, HOOK before_fork, FORK intermediate, EXIT 0"));
    ok(has("intermediate: FORK worker, EXIT 0 at once"));
    ok(has("worker: HOOK after_fork, OPEN, HOOK after_worker_ready, RUN, HOOK before_worker_exit, EXIT 0"));
    ok_eq(atomic_load(&shared->forked), 1); /* EXIT 0 for a child of the application */
}

static void test_without_preload_each_worker_loads(void)
{
    ok_eq(serve(false, NULL, 1, 1), 0);
    ok(has("mold: HOOK before_fork, FORK intermediate, EXIT 0"));
    ok(has("worker: HOOK after_fork, LOAD, OPEN, HOOK after_worker_ready, RUN, HOOK before_worker_exit, EXIT 0"));
}

/* It has loaded for itself, so its workers have the application although no mold has loaded it. */
static void test_a_mold_made_of_a_worker_does_not_load(void)
{
    ok_eq(serve(false, "refork", 2, 3), 0);
    ok(has("worker: HOOK after_fork, LOAD, OPEN, HOOK after_worker_ready, RUN, HOOK before_refork, FORK intermediate, "
           "RUN, HOOK before_worker_exit, EXIT 0"));
    ok(has("intermediate: FORK mold, EXIT 0 at once"));
    ok(has("mold: HOOK before_fork, FORK intermediate, EXIT 0"));
    ok(has("worker: HOOK after_fork, OPEN, HOOK after_worker_ready, RUN, HOOK before_worker_exit, EXIT 0"));
}

static void test_what_fails_is_followed_by_exit_1(void)
{
    ok(serve(true, "load", 1, 1) != 0);
    ok(has("mold: LOAD, EXIT 1"));
    (void)serve(true, "open", 0, 2);
    ok(has("worker: HOOK after_fork, OPEN, EXIT 1 at once"));
    (void)serve(true, "after_fork", 0, 2);
    ok(has("worker: HOOK after_fork, EXIT 1 at once"));
    (void)serve(false, "load", 0, 2);
    ok(has("worker: HOOK after_fork, LOAD, EXIT 1 at once"));
}

/* In a child, which says by its exit code what was wrong. */
static int in_child(int (*body)(void))
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(body());
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int daemon_without_a_process(void)
{
    struct oribi_process *p = create(true, true);
    const struct oribi_step *step = oribi_process_take(p);
    if (step->type != ORIBI_STEP_FORK || step->fork != ORIBI_FORK_DAEMON)
        return 2;
    errno = EAGAIN;
    if (oribi_process_forked(p, -1) != ORIBI_ROLE_STARTER)
        return 3;
    step = oribi_process_take(p);
    return step->type == ORIBI_STEP_EXIT && step->at_once ? step->code : 4;
}

static int fork_without_an_answer(void)
{
    sigset_t held;
    struct oribi_process *p = create(true, false);
    const struct oribi_step *step = oribi_process_take(p);
    if (step->type != ORIBI_STEP_FORK || step->fork != ORIBI_FORK_MOLD)
        return 2;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &held);
    if (!sigismember(&held, SIGTERM)) /* a stop must not reach a child without handlers */
        return 3;
    step = oribi_process_take(p); /* as if an exception had come in between */
    (void)pthread_sigmask(SIG_BLOCK, NULL, &held);
    if (sigismember(&held, SIGTERM))
        return 4;
    return step->type == ORIBI_STEP_FORK ? 5 : 0;
}

static void test_forks_that_fail(void)
{
    ok_eq(in_child(daemon_without_a_process), 1);
    ok_eq(in_child(fork_without_an_answer), 0);
}

static void test_a_single_process_forks_nothing(void)
{
    single = true;
    ok_eq(serve(true, NULL, 1, 0), 0);
    ok(has("worker: LOAD, OPEN, HOOK server_ready, HOOK after_worker_ready, RUN, HOOK before_worker_exit, EXIT 0"));
    ok_eq(atomic_load(&shared->count), 1);
    ok_eq(atomic_load(&shared->forked), 1); /* what the application forks ends with 0, as in every role */
    ok_eq(serve(false, "load", 0, 2), 1);
    ok(has("worker: LOAD, EXIT 1"));
    ok_eq(serve(false, "open", 0, 2), 1);
    ok(has("worker: LOAD, OPEN, EXIT 1"));
    single = false;
}

int main(void)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    test_the_application_is_loaded_in_the_mold();
    test_without_preload_each_worker_loads();
    test_a_mold_made_of_a_worker_does_not_load();
    test_what_fails_is_followed_by_exit_1();
    test_forks_that_fail();
    test_a_single_process_forks_nothing();
    return done_testing();
}
