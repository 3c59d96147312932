/* Real processes: a small language host in C whose workers do nothing but wait, watched from outside through a shared page. The test is a
 * child subreaper itself, so that it sees whatever its supervisors leave behind: at the end of every test that must be nothing. */
#include "server/host.c"

#include "tap.h"

#include "oribi/server/mold.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { PIDS_MAX = 256, DEADLINE_MS = 20000 };

/* What the processes show and what the test asks of them. */
static struct lab {
    _Atomic int mold_count;
    _Atomic int worker_count; /* ever ready */
    _Atomic int reopened;     /* turns taken by workers after USR1 */
    _Atomic int hooks_up;
    _Atomic int hooks_exit;
    _Atomic int hooks_before_fork;
    _Atomic int last_status;
    _Atomic int load_fails;     /* 1: raises, 2: dies by a signal, 3: never ends */
    _Atomic int workers_fail;   /* that many first workers cannot start */
    _Atomic int ignore_stop;    /* workers look at nothing */
    _Atomic int slow_boot;      /* workers never get ready */
    _Atomic int mold_pids[PIDS_MAX];
    _Atomic int worker_pids[PIDS_MAX];
    char last_reason[64];
} *lab;

static int log_fd;

static void no_sleep_ms(int ms)
{
    struct timespec pause = {ms / 1000, (ms % 1000) * 1000000L};
    (void)nanosleep(&pause, NULL);
}

/* Waits for a condition; a millisecond between two looks. */
#define until(condition)                                                                                               \
    do {                                                                                                               \
        int64_t until_end_ = oribi_clock_ms() + DEADLINE_MS;                                                           \
        while (!(condition) && oribi_clock_ms() < until_end_)                                                          \
            no_sleep_ms(1);                                                                                            \
        ok_named((condition), "%s: in the end %s", __func__, #condition);                                              \
    } while (0)

static void forever(void)
{
    for (;;)
        (void)pause();
}

/* --- the language host, as host.h and mold.h tell it --- */

static int run_worker(struct oribi_mold *mold)
{
    struct oribi_seat *seat = oribi_seat_enter(mold);
    if (atomic_load(&lab->slow_boot))
        forever();
    if (atomic_load(&lab->workers_fail) > 0) {
        atomic_fetch_sub(&lab->workers_fail, 1);
        oribi_seat_failed(seat, "no database", 11);
        _exit(1);
    }
    oribi_seat_ready(seat, NULL);
    atomic_store(&lab->worker_pids[atomic_load(&lab->worker_count) % PIDS_MAX], getpid());
    atomic_fetch_add(&lab->worker_count, 1);
    while (atomic_load(&lab->ignore_stop) || !oribi_seat_stopping(seat)) {
        if (oribi_seat_due(seat)) {
            oribi_seat_turn(seat);
            atomic_fetch_add(&lab->reopened, 1);
        }
        struct pollfd fds[] = {{oribi_seat_wake_fd(seat), POLLIN, 0}, {oribi_seat_life_fd(seat), POLLIN, 0}};
        (void)poll(fds, 2, 50);
    }
    oribi_seat_leave(seat);
    return 0;
}

static int run_mold(struct oribi_mold *mold)
{
    atomic_store(&lab->mold_pids[atomic_fetch_add(&lab->mold_count, 1) % PIDS_MAX], getpid());
    if (atomic_load(&lab->load_fails) == 1) {
        oribi_mold_failed(mold, "no such file\nline 1\nline 2", 26);
        return 1;
    }
    if (atomic_load(&lab->load_fails) == 2)
        (void)raise(SIGKILL);
    if (atomic_load(&lab->load_fails) == 3)
        forever();
    oribi_mold_ready(mold);
    for (;;) {
        switch (oribi_mold_take(mold)) {
        case ORIBI_MOLD_NONE:
            oribi_mold_wait(mold);
            break;
        case ORIBI_MOLD_SPAWN:
            atomic_fetch_add(&lab->hooks_before_fork, 1);
            oribi_mold_before_fork(mold);
            pid_t pid = fork();
            if (pid == 0) {
                pid = fork();
                if (pid == 0)
                    return run_worker(mold);
                oribi_mold_intermediate(mold, pid);
                _exit(0);
            }
            oribi_mold_after_fork(mold, pid);
            break;
        case ORIBI_MOLD_EXIT:
            oribi_mold_destroy(mold);
            return 0;
        }
    }
}

static int fail_start(const char *error)
{
    (void)dprintf(STDERR_FILENO, "test: %s\n", error);
    return 1;
}

static void run_hook(const struct oribi_host_action *action)
{
    if (strcmp(action->hook, "server_ready") == 0)
        atomic_fetch_add(&lab->hooks_up, 1);
    if (strcmp(action->hook, "on_worker_exit") != 0)
        return;
    atomic_store(&lab->last_status, action->status);
    snprintf(lab->last_reason, sizeof(lab->last_reason), "%s", action->reason);
    atomic_fetch_add(&lab->hooks_exit, 1);
}

static int serve(const struct oribi_options *options)
{
    char error[ORIBI_OPTIONS_ERROR_CAP];
    struct oribi_host *host;
    struct oribi_mold *mold;
    struct oribi_host_setup setup = {options, NULL, "test", NULL};
    if (oribi_host_create(&setup, &host, error) < 0)
        return fail_start(error);
    for (;;) {
        const struct oribi_host_action *action = oribi_host_take(host);
        pid_t pid;
        switch (action->type) {
        case ORIBI_HOST_NONE:
            oribi_host_wait(host);
            break;
        case ORIBI_HOST_FORK_DAEMON:
            pid = fork();
            if (pid == 0)
                oribi_host_daemon_enter(host);
            else
                _exit(oribi_host_daemon_wait(host, pid));
            break;
        case ORIBI_HOST_FORK_MOLD:
            pid = fork();
            if (pid == 0)
                return oribi_mold_enter(host, &mold, error) ? fail_start(error) : run_mold(mold);
            oribi_host_forked(host, pid);
            break;
        case ORIBI_HOST_HOOK:
            run_hook(action);
            break;
        case ORIBI_HOST_EXIT: {
            int code = action->exit_code;
            oribi_host_destroy(host);
            return code;
        }
        }
    }
}

/* --- the test's side --- */

static struct oribi_options options;

static void prepare(uint32_t workers)
{
    memset(lab, 0, sizeof(*lab));
    memset(&options, 0, sizeof(options));
    options.workers = workers;
    options.boot_timeout_ms = 10000;
    options.shutdown_timeout_ms = 10000;
    options.err_respawn_interval_ms = 10;
    if (ftruncate(log_fd, 0) < 0 || lseek(log_fd, 0, SEEK_SET) < 0)
        fail("the log can be emptied");
}

static pid_t start(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid > 0)
        return pid;
    if (dup2(log_fd, STDERR_FILENO) < 0)
        _exit(99);
    _exit(serve(&options));
}

static char *log_text_now(void)
{
    static char text[65536];
    ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static bool logged(const char *words)
{
    return strstr(log_text_now(), words) != NULL;
}

/* The exit status of the supervisor, waited for with a deadline; -1 when it does not end (then it is killed). */
static int ended(pid_t pid)
{
    int status = -1;
    int64_t end = oribi_clock_ms() + DEADLINE_MS;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (oribi_clock_ms() > end) {
            (void)kill(pid, SIGKILL);
            (void)waitpid(pid, &status, 0);
            return -1;
        }
        no_sleep_ms(1);
    }
    return status;
}

static bool alone(void)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        continue;
    return pid < 0 && errno == ECHILD;
}

static bool gone(pid_t pid)
{
    (void)waitpid(pid, NULL, WNOHANG); /* it may have become ours */
    return kill(pid, 0) < 0 && errno == ESRCH;
}

static void test_starts_and_stops_in_order(void)
{
    prepare(3);
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 3);
    until(logged("started, 3 workers, pid"));
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    ok_eq(atomic_load(&lab->hooks_up), 1);
    ok_eq(atomic_load(&lab->hooks_exit), 3);
    ok_eq(atomic_load(&lab->hooks_before_fork), 3);
    is_str(lab->last_reason, "asked to stop");
    ok_eq(atomic_load(&lab->last_status), 0);
    until(alone());
}

static void test_a_killed_worker_is_replaced(void)
{
    prepare(2);
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(atomic_load(&lab->worker_pids[0]), SIGKILL);
    until(atomic_load(&lab->worker_count) == 3);
    until(atomic_load(&lab->hooks_exit) == 1);
    is_str(lab->last_reason, "signal 9");
    (void)kill(pid, SIGQUIT);
    ok_eq(ended(pid), 0);
    until(alone());
}

static void test_a_worker_is_stopped_before_it_has_its_handlers(void)
{
    prepare(4);
    pid_t pid = start();
    until(atomic_load(&lab->hooks_before_fork) > 0);
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    ok(!logged("killed"));
    until(alone());
}

static void test_a_worker_that_ignores_stop_is_killed(void)
{
    prepare(1);
    options.shutdown_timeout_ms = 50;
    atomic_store(&lab->ignore_stop, 1);
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 1);
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    is_str(lab->last_reason, "shutdown_timeout");
    ok(logged("did not end within shutdown_timeout: killed"));
    until(alone());
}

static void test_a_second_stop_is_now(void)
{
    prepare(2);
    atomic_store(&lab->ignore_stop, 1);
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(pid, SIGTERM);
    until(logged("stopping: 2 workers"));
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    ok(logged("stopping now"));
    until(alone());
}

static void test_interrupt_is_now(void)
{
    prepare(2);
    atomic_store(&lab->ignore_stop, 1);
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(pid, SIGINT);
    ok_eq(ended(pid), 0);
    ok_eq(atomic_load(&lab->hooks_exit), 2);
    until(alone());
}

static void test_when_the_supervisor_is_killed_everything_ends(void)
{
    prepare(3);
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 3);
    (void)kill(pid, SIGKILL);
    ok_eq(ended(pid), SIGKILL);
    until(alone());
}

static void test_when_the_supervisor_is_killed_a_loading_mold_ends(void)
{
    prepare(1);
    atomic_store(&lab->load_fails, 3);
    pid_t pid = start();
    until(atomic_load(&lab->mold_count) == 1);
    /* The signal on the parent's death is in place by the time mold_count is seen. */
    (void)kill(pid, SIGKILL);
    ok_eq(ended(pid), SIGKILL);
    until(alone());
}

static void test_workers_outlive_their_mold(void)
{
    prepare(2);
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 2);
    pid_t mold = atomic_load(&lab->mold_pids[0]);
    (void)kill(mold, SIGKILL);
    until(gone(mold));
    until(logged("its workers live on"));
    ok_eq(atomic_load(&lab->hooks_exit), 0);
    ok_eq(atomic_load(&lab->mold_count), 1);
    (void)kill(atomic_load(&lab->worker_pids[1]), SIGKILL);
    until(atomic_load(&lab->worker_count) == 3);
    ok_eq(atomic_load(&lab->mold_count), 2);
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    until(alone());
}

static void test_a_load_failure_is_told_and_ends_with_1(void)
{
    prepare(2);
    atomic_store(&lab->load_fails, 1);
    pid_t pid = start();
    ok_eq(ended(pid), 1 << 8);
    ok(logged("error: the application did not load: no such file\n    line 1\n    line 2\n"));
    ok_eq(atomic_load(&lab->worker_count), 0);
    until(alone());
}

static void test_a_mold_that_dies_loading_ends_with_1(void)
{
    prepare(2);
    atomic_store(&lab->load_fails, 2);
    pid_t pid = start();
    ok_eq(ended(pid), 1 << 8);
    ok(logged("ended while it loaded the application: signal 9"));
    until(alone());
}

static void test_a_load_that_never_ends_is_cut_by_boot_timeout(void)
{
    prepare(1);
    options.boot_timeout_ms = 100;
    atomic_store(&lab->load_fails, 3);
    pid_t pid = start();
    ok_eq(ended(pid), 1 << 8);
    ok(logged("did not load within boot_timeout"));
    until(alone());
}

static void test_workers_that_never_come_up_end_with_1(void)
{
    prepare(1);
    atomic_store(&lab->workers_fail, 100);
    pid_t pid = start();
    ok_eq(ended(pid), 1 << 8);
    ok(logged("could not start: no database"));
    ok(logged("giving up: no worker came up, 3 attempts"));
    until(alone());
}

static void test_a_worker_stuck_in_its_start_is_cut_by_boot_timeout(void)
{
    prepare(1);
    options.boot_timeout_ms = 100;
    atomic_store(&lab->slow_boot, 1);
    pid_t pid = start();
    ok_eq(ended(pid), 1 << 8);
    ok(logged("was not ready within boot_timeout: killed"));
    until(alone());
}

static void test_two_failures_are_survived(void)
{
    prepare(1);
    atomic_store(&lab->workers_fail, 2);
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 1);
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    until(alone());
}

static void test_ttin_and_ttou(void)
{
    prepare(1);
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 1);
    (void)kill(pid, SIGTTIN);
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(pid, SIGTTOU);
    until(atomic_load(&lab->hooks_exit) == 1);
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    ok_eq(atomic_load(&lab->worker_count), 2);
    until(alone());
}

static void test_usr1_reaches_every_worker(void)
{
    prepare(3);
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 3);
    until(logged("started"));
    (void)kill(pid, SIGUSR1);
    until(atomic_load(&lab->reopened) == 3);
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    until(alone());
}

static void pid_path(char *path, size_t cap)
{
    snprintf(path, cap, "/tmp/oribi-host-test-%d.pid", getpid());
}

static void test_the_pid_file_keeps_a_second_server_out_and_goes_with_the_first(void)
{
    char path[64];
    pid_path(path, sizeof(path));
    prepare(1);
    options.pid_file = path;
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 1);
    char text[32] = "";
    int fd = open(path, O_RDONLY);
    ok(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    ok_eq(atoi(text), pid);

    pid_t second = start();
    ok_eq(ended(second), 1 << 8);
    ok(logged("belongs to a running server, pid"));
    ok_eq(atomic_load(&lab->worker_count), 1);
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    ok(access(path, F_OK) < 0);
    until(alone());
}

static void test_a_stale_pid_file_is_taken_over(void)
{
    char path[64];
    pid_path(path, sizeof(path));
    prepare(1);
    options.pid_file = path;
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 1);
    (void)kill(pid, SIGKILL);
    ok_eq(ended(pid), SIGKILL);
    until(alone());
    ok(access(path, F_OK) == 0);
    pid = start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    ok(access(path, F_OK) < 0);
    until(alone());
}

static void test_a_pid_file_that_cannot_be_written_is_one_line_and_1(void)
{
    prepare(1);
    options.pid_file = (char *)"/nowhere/at/all.pid";
    pid_t pid = start();
    ok_eq(ended(pid), 1 << 8);
    is_str(log_text_now(), "test: pid_file: cannot open /nowhere/at/all.pid: no such file or directory\n");

    prepare(1);
    options.pid_file = (char *)"/dev/full"; /* opens, locks, takes nothing */
    pid = start();
    ok_eq(ended(pid), 1 << 8);
    ok(logged("pid_file: cannot write /dev/full: "));
    until(alone());
    ok(access("/dev/full", F_OK) == 0);
}

static void test_a_daemon_is_waited_for_until_it_serves(void)
{
    char path[64];
    pid_path(path, sizeof(path));
    prepare(2);
    options.daemonize = true;
    options.pid_file = path;
    pid_t pid = start();
    ok_eq(ended(pid), 0);
    until(atomic_load(&lab->hooks_up) == 1);
    char text[32] = "";
    int fd = open(path, O_RDONLY);
    ok(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    pid_t daemon_pid = atoi(text);
    ok(daemon_pid > 0 && daemon_pid != pid);
    until(atomic_load(&lab->worker_count) == 2);
    ok_eq(getsid(daemon_pid), daemon_pid);
    (void)kill(daemon_pid, SIGTERM);
    until(alone());
    ok(access(path, F_OK) < 0);
}

static void test_a_daemon_that_fails_says_why_on_the_terminal(void)
{
    prepare(2);
    options.daemonize = true;
    atomic_store(&lab->load_fails, 1);
    pid_t pid = start();
    ok_eq(ended(pid), 1 << 8);
    ok(logged("test: the application did not load: no such file\n"));
    until(alone());
}

static void test_an_unknown_user_is_one_line_and_1(void)
{
    prepare(1);
    options.user = (char *)"no-such-user-here";
    pid_t pid = start();
    ok_eq(ended(pid), 1 << 8);
    is_str(log_text_now(), "test: user: there is no user 'no-such-user-here'\n");
    until(alone());
}

static void test_workers_run_as_the_user_asked_for(void)
{
    if (geteuid() != 0) {
        tap_skip(5, "only root can change the user");
        return;
    }
    prepare(1);
    options.user = (char *)"nobody";
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 1);
    char path[64];
    struct stat entry = {0};
    snprintf(path, sizeof(path), "/proc/%d", atomic_load(&lab->worker_pids[0]));
    ok(stat(path, &entry) == 0);
    ok(entry.st_uid != 0);
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    until(alone());
}

/* Kills at random while workers come and go; afterwards all is as asked for, and nothing is left. */
static void test_random_kills_leave_nothing_behind(void)
{
    prepare(4);
    pid_t pid = start();
    until(atomic_load(&lab->worker_count) == 4);
    for (int i = 0; i < 40; i++) {
        int before = atomic_load(&lab->worker_count);
        int count = before < PIDS_MAX ? before : PIDS_MAX;
        pid_t victim = atomic_load(&lab->worker_pids[(i * 7) % count]);
        if (i % 5 == 4)
            victim = atomic_load(&lab->mold_pids[atomic_load(&lab->mold_count) - 1]);
        if (victim > 0)
            (void)kill(victim, SIGKILL);
    }
    (void)kill(pid, SIGUSR1);
    until(atomic_load(&lab->worker_count) - atomic_load(&lab->hooks_exit) >= 3);
    (void)kill(pid, SIGTERM);
    ok_eq(ended(pid), 0);
    until(alone());
}

int main(void)
{
    lab = mmap(NULL, sizeof(*lab), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lab == MAP_FAILED || oribi_os_temp_file(&log_fd) < 0 || fcntl(log_fd, F_SETFL, O_APPEND) < 0)
        return skip_all("no shared memory or temporary file");
    if (oribi_os_become_subreaper() < 0)
        return skip_all("no child subreaper on this system");
    test_starts_and_stops_in_order();
    test_a_killed_worker_is_replaced();
    test_a_worker_is_stopped_before_it_has_its_handlers();
    test_a_worker_that_ignores_stop_is_killed();
    test_a_second_stop_is_now();
    test_interrupt_is_now();
    test_when_the_supervisor_is_killed_everything_ends();
    test_when_the_supervisor_is_killed_a_loading_mold_ends();
    test_workers_outlive_their_mold();
    test_a_load_failure_is_told_and_ends_with_1();
    test_a_mold_that_dies_loading_ends_with_1();
    test_a_load_that_never_ends_is_cut_by_boot_timeout();
    test_workers_that_never_come_up_end_with_1();
    test_a_worker_stuck_in_its_start_is_cut_by_boot_timeout();
    test_two_failures_are_survived();
    test_ttin_and_ttou();
    test_usr1_reaches_every_worker();
    test_the_pid_file_keeps_a_second_server_out_and_goes_with_the_first();
    test_a_stale_pid_file_is_taken_over();
    test_a_pid_file_that_cannot_be_written_is_one_line_and_1();
    test_a_daemon_is_waited_for_until_it_serves();
    test_a_daemon_that_fails_says_why_on_the_terminal();
    test_an_unknown_user_is_one_line_and_1();
    test_workers_run_as_the_user_asked_for();
    test_random_kills_leave_nothing_behind();
    return done_testing();
}
