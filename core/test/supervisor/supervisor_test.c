/* Supervisor, mold and workers as real processes: start, death, stop, signals, pid file, daemon. At the end of every
 * test nothing is left. */
#include "supervisor/supervisor.c"

#include "supervisor/lab.h"
#include "system.h"

static void test_starts_and_stops_in_order(void)
{
    lab_prepare(3);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 3);
    until(lab_logged("started, 3 workers, pid"));
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok_eq(atomic_load(&lab->hooks_up), 1);
    ok_eq(atomic_load(&lab->hooks_exit), 3);
    ok_eq(atomic_load(&lab->hooks_before_fork), 3);
    is_str(lab->last_reason, "asked to stop");
    ok_eq(atomic_load(&lab->last_status), 0);
    until(lab_alone());
}

static void test_a_killed_worker_is_replaced(void)
{
    lab_prepare(2);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(atomic_load(&lab->worker_pids[0]), SIGKILL);
    until(atomic_load(&lab->worker_count) == 3);
    until(atomic_load(&lab->hooks_exit) == 1);
    is_str(lab->last_reason, "signal 9");
    (void)kill(pid, SIGQUIT);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

/* Nobody saw the end of the call, so the supervisor, who finds it, notes that calls are long. */
static void test_a_call_that_ends_with_its_worker_counts_as_long(void)
{
    lab_prepare(1);
    pid_t pid = lab_start();
    for (int i = 0; i < 2; i++) {
        until(atomic_load(&lab->worker_count) == i + 1);
        ok_eq(atomic_load(&lab->warned), 0);
        atomic_store(&lab->in_call, i == 0); /* of the second worker, not of the first */
        (void)kill(atomic_load(&lab->worker_pids[i]), SIGKILL);
    }
    until(atomic_load(&lab->worker_count) == 3);
    ok_eq(atomic_load(&lab->warned), 1);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

static void test_a_worker_is_stopped_before_it_has_its_handlers(void)
{
    lab_prepare(4);
    pid_t pid = lab_start();
    until(atomic_load(&lab->hooks_before_fork) > 0);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok(!lab_logged("killed"));
    until(lab_alone());
}

static void test_a_worker_that_ignores_stop_is_killed(void)
{
    lab_prepare(1);
    lab->shutdown_timeout_ms = 50;
    atomic_store(&lab->ignore_stop, 1);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 1);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    is_str(lab->last_reason, "shutdown_timeout");
    ok(lab_logged("did not end within shutdown_timeout: killed"));
    until(lab_alone());
}

static void test_a_second_stop_is_now(void)
{
    lab_prepare(2);
    atomic_store(&lab->ignore_stop, 1);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(pid, SIGTERM);
    until(lab_logged("stopping: "));
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok(lab_logged("stopping now"));
    until(lab_alone());
}

static void test_interrupt_is_now(void)
{
    lab_prepare(2);
    atomic_store(&lab->ignore_stop, 1);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(pid, SIGINT);
    ok_eq(lab_ended(pid), 0);
    ok_eq(atomic_load(&lab->hooks_exit), 2);
    until(lab_alone());
}

static void test_when_the_supervisor_is_killed_everything_ends(void)
{
    lab_prepare(3);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 3);
    (void)kill(pid, SIGKILL);
    ok_eq(lab_ended(pid), SIGKILL);
    until(lab_alone());
}

static void test_when_the_supervisor_is_killed_a_loading_mold_ends(void)
{
    if (!only_on_linux("the end of a parent is no signal"))
        return;
    lab_prepare(1);
    atomic_store(&lab->load_fails, 3);
    pid_t pid = lab_start();
    until(atomic_load(&lab->mold_count) == 1);
    /* The signal on the parent's death is in place by the time mold_count is seen. */
    (void)kill(pid, SIGKILL);
    ok_eq(lab_ended(pid), SIGKILL);
    until(lab_alone());
}

static void test_workers_outlive_their_mold(void)
{
    lab_prepare(2);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    pid_t mold = atomic_load(&lab->mold_pids[0]);
    (void)kill(mold, SIGKILL);
    until(lab_gone(mold));
    until(lab_logged("its workers live on"));
    ok_eq(atomic_load(&lab->hooks_exit), 0);
    ok_eq(atomic_load(&lab->mold_count), 1);
    (void)kill(atomic_load(&lab->worker_pids[1]), SIGKILL);
    until(atomic_load(&lab->worker_count) == 3);
    ok_eq(atomic_load(&lab->mold_count), 2);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

static void test_a_load_failure_is_told_and_ends_with_1(void)
{
    lab_prepare(2);
    atomic_store(&lab->load_fails, 1);
    pid_t pid = lab_start();
    ok_eq(lab_ended(pid), 1 << 8);
    ok(lab_logged("error: the application did not load: no such file\n    line 1\n    line 2\n"));
    ok_eq(atomic_load(&lab->worker_count), 0);
    until(lab_alone());
}

/* A server that ends with 1 before it serves, and says why. */
static void begins_in_vain(const char *said)
{
    pid_t pid = lab_start();
    ok_eq(lab_ended(pid), 1 << 8);
    ok(lab_logged(said));
}

static void test_a_mold_that_dies_loading_ends_with_1(void)
{
    lab_prepare(2);
    atomic_store(&lab->load_fails, 2);
    begins_in_vain("ended while it loaded the application: signal 9");
    until(lab_alone());
}

static void test_a_load_that_never_ends_is_cut_by_boot_timeout(void)
{
    lab_prepare(1);
    lab->boot_timeout_ms = 100;
    atomic_store(&lab->load_fails, 3);
    begins_in_vain("did not load within boot_timeout");
    until(lab_alone());
}

static void test_workers_that_never_come_up_end_with_1(void)
{
    lab_prepare(1);
    atomic_store(&lab->workers_fail, 100);
    begins_in_vain("could not start: no database");
    ok(lab_logged("giving up: no worker came up, 3 attempts"));
    until(lab_alone());
}

static void test_a_worker_stuck_in_its_start_is_cut_by_boot_timeout(void)
{
    lab_prepare(1);
    lab->boot_timeout_ms = 100;
    atomic_store(&lab->slow_boot, 1);
    begins_in_vain("was not ready within boot_timeout: killed");
    until(lab_alone());
}

static void test_two_failures_are_survived(void)
{
    lab_prepare(1);
    atomic_store(&lab->workers_fail, 2);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 1);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

static void test_ttin_and_ttou(void)
{
    lab_prepare(1);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 1);
    (void)kill(pid, SIGTTIN);
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(pid, SIGTTOU);
    until(atomic_load(&lab->hooks_exit) == 1);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok_eq(atomic_load(&lab->worker_count), 2);
    until(lab_alone());
}

static void test_usr1_reaches_every_worker(void)
{
    lab_prepare(3);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 3);
    until(lab_logged("started"));
    (void)kill(pid, SIGUSR1);
    until(atomic_load(&lab->reopened) == 3);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

static void pid_path(char *path, size_t cap)
{
    snprintf(path, cap, "/tmp/oribi-supervisor-test-%d.pid", getpid());
}

static void test_the_pid_file_keeps_a_second_server_out_and_goes_with_the_first(void)
{
    char path[64];
    pid_path(path, sizeof(path));
    lab_prepare(1);
    snprintf(lab->pid_file, sizeof(lab->pid_file), "%s", path);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 1);
    char text[32] = "";
    int fd = open(path, O_RDONLY);
    ok(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    ok_eq((int)strtol(text, NULL, 10), pid);

    pid_t second = lab_start();
    ok_eq(lab_ended(second), 1 << 8);
    ok(lab_logged("belongs to a running server, pid"));
    ok_eq(atomic_load(&lab->worker_count), 1);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok(access(path, F_OK) < 0);
    until(lab_alone());
}

static void test_a_stale_pid_file_is_taken_over(void)
{
    char path[64];
    pid_path(path, sizeof(path));
    lab_prepare(1);
    snprintf(lab->pid_file, sizeof(lab->pid_file), "%s", path);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 1);
    (void)kill(pid, SIGKILL);
    ok_eq(lab_ended(pid), SIGKILL);
    until(lab_alone());
    ok(access(path, F_OK) == 0);
    pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok(access(path, F_OK) < 0);
    until(lab_alone());
}

static void test_a_pid_file_that_cannot_be_written_is_one_line_and_1(void)
{
    lab_prepare(1);
    snprintf(lab->pid_file, sizeof(lab->pid_file), "%s", "/nowhere/at/all.pid");
    pid_t pid = lab_start();
    ok_eq(lab_ended(pid), 1 << 8);
    is_str(lab_log_text(), "test: pid_file: cannot open /nowhere/at/all.pid: no such file or directory\n");

    lab_prepare(1);
    snprintf(lab->pid_file, sizeof(lab->pid_file), "%s", "/dev/full");
    pid = lab_start();
    ok_eq(lab_ended(pid), 1 << 8);
    is_str(lab_log_text(), "test: pid_file: /dev/full is not a regular file\n");
    until(lab_alone());
    ok(access("/dev/full", F_OK) == 0);
}

static void test_a_daemon_is_waited_for_until_it_serves(void)
{
    char path[64];
    pid_path(path, sizeof(path));
    lab_prepare(2);
    lab->daemonize = 1;
    snprintf(lab->pid_file, sizeof(lab->pid_file), "%s", path);
    pid_t pid = lab_start();
    ok_eq(lab_ended(pid), 0);
    until(atomic_load(&lab->hooks_up) == 1);
    char text[32] = "";
    int fd = open(path, O_RDONLY);
    ok(read(fd, text, sizeof(text) - 1) > 0);
    close(fd);
    pid_t daemon_pid = (int)strtol(text, NULL, 10);
    ok(daemon_pid > 0 && daemon_pid != pid);
    until(atomic_load(&lab->worker_count) == 2);
    ok_eq(getsid(daemon_pid), daemon_pid);
    (void)kill(daemon_pid, SIGTERM);
    until(lab_alone());
    ok(access(path, F_OK) < 0);
}

static void test_a_daemon_that_fails_says_why_on_the_terminal(void)
{
    lab_prepare(2);
    lab->daemonize = 1;
    atomic_store(&lab->load_fails, 1);
    pid_t pid = lab_start();
    ok_eq(lab_ended(pid), 1 << 8);
    ok(lab_logged("test: the application did not load: no such file\n"));
    until(lab_alone());
}

static void test_an_unknown_user_is_one_line_and_1(void)
{
    lab_prepare(1);
    snprintf(lab->user, sizeof(lab->user), "%s", "no-such-user-here");
    pid_t pid = lab_start();
    ok_eq(lab_ended(pid), 1 << 8);
    is_str(lab_log_text(), "test: user: there is no user 'no-such-user-here'\n");
    until(lab_alone());
}

static void test_workers_run_as_the_user_asked_for(void)
{
    if (geteuid() != 0) {
        tap_skip(5, "only root can change the user");
        return;
    }
    lab_prepare(1);
    snprintf(lab->user, sizeof(lab->user), "%s", "nobody");
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 1);
    char path[64];
    struct stat entry = {0};
    snprintf(path, sizeof(path), "/proc/%d", atomic_load(&lab->worker_pids[0]));
    ok(stat(path, &entry) == 0);
    ok(entry.st_uid != 0);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

/* Kills at random while workers come and go; afterwards all is as asked for, and nothing is left. */
static void test_random_kills_leave_nothing_behind(void)
{
    lab_prepare(4);
    pid_t pid = lab_start();
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
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

int main(int argc, char **argv)
{
    lab_main(argc, argv);
    test_starts_and_stops_in_order();
    test_a_killed_worker_is_replaced();
    test_a_call_that_ends_with_its_worker_counts_as_long();
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
