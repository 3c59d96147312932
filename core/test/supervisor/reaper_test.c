/* Workers whose parents stay, because no process but init adopts orphans. */
#include "supervisor/reaper.c"

#include "supervisor/lab.h"

#include <dirent.h>

/* In the place of the system's, in the server too: it is this program. */
bool oribi_os_adopts_orphans(void)
{
    return false;
}

/* The fourth field of /proc/PID/stat. */
static pid_t parent_of(pid_t pid)
{
    char path[32];
    char line[512] = "";
    int parent = -1;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    (void)oribi_os_read_line(path, line, sizeof(line));
    const char *behind_name = strrchr(line, ')');
    return behind_name && sscanf(behind_name + 1, " %*c %d", &parent) == 1 ? parent : -1;
}

static pid_t worker(int number)
{
    return atomic_load(&lab->worker_pids[number]);
}

static int open_files(pid_t pid)
{
    char path[32];
    int count = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

static void test_a_workers_parent_stays_and_is_the_molds_child(void)
{
    lab_prepare(2);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    pid_t mold = atomic_load(&lab->mold_pids[0]);
    for (int i = 0; i < 2; i++) {
        pid_t reaper = parent_of(worker(i));
        ok(reaper > 0 && reaper != pid && reaper != mold);
        ok_eq(parent_of(reaper), mold);
        until(open_files(reaper) == 4); /* with standard streams */
    }
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok_eq(atomic_load(&lab->hooks_exit), 2);
    is_str(lab->last_reason, "asked to stop");
    ok_eq(atomic_load(&lab->last_status), 0);
    until(lab_alone());
}

static void test_a_death_comes_with_its_status(void)
{
    lab_prepare(2);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(worker(0), SIGKILL);
    until(atomic_load(&lab->worker_count) == 3);
    until(atomic_load(&lab->hooks_exit) == 1);
    is_str(lab->last_reason, "signal 9");
    ok_eq(atomic_load(&lab->last_status), SIGKILL);
    until(lab_gone(worker(0)));
    atomic_store(&lab->workers_fail, 1);
    (void)kill(worker(1), SIGKILL); /* the next one ends with code 1 */
    until(atomic_load(&lab->hooks_exit) == 3);
    ok_eq(atomic_load(&lab->last_status), 1 << 8);
    until(atomic_load(&lab->worker_count) == 4);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

/* The mold reaps the reapers of before when it next forks. */
static void test_reapers_do_not_pile_up(void)
{
    enum { DEATHS = 20 };
    pid_t reapers[DEATHS];
    int gone = 0;
    lab_prepare(1);
    pid_t pid = lab_start();
    for (int i = 0; i < DEATHS; i++) {
        until(atomic_load(&lab->worker_count) == i + 1);
        reapers[i] = parent_of(worker(i));
        (void)kill(worker(i), SIGKILL);
    }
    until(atomic_load(&lab->worker_count) == DEATHS + 1);
    for (int i = 0; i < DEATHS; i++)
        gone += lab_gone(reapers[i]);
    ok(gone >= DEATHS - 1);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

static void test_workers_outlive_their_mold_and_their_ends_are_told(void)
{
    lab_prepare(2);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(atomic_load(&lab->mold_pids[0]), SIGKILL);
    until(lab_gone(atomic_load(&lab->mold_pids[0])));
    (void)kill(worker(0), SIGKILL);
    until(atomic_load(&lab->worker_count) == 3);
    ok_eq(atomic_load(&lab->hooks_exit), 1);
    is_str(lab->last_reason, "signal 9");
    ok_eq(atomic_load(&lab->mold_count), 2);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok_eq(atomic_load(&lab->hooks_exit), 3);
    until(lab_alone());
}

static void test_a_worker_whose_reaper_is_killed_first_is_missed(void)
{
    lab_prepare(2);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(parent_of(worker(0)), SIGKILL);
    until(parent_of(worker(0)) == getpid()); /* it is the test's now, where it would be init's */
    (void)kill(worker(0), SIGKILL);
    until(lab_gone(worker(0)));
    until(atomic_load(&lab->worker_count) == 3);
    ok_eq(atomic_load(&lab->hooks_exit), 1);
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

static void test_a_reload_replaces_mold_and_workers(void)
{
    lab_prepare(2);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(pid, SIGHUP);
    until(atomic_load(&lab->hooks_exit) == 2);
    is_str(lab->last_reason, "asked to stop");
    ok_eq(atomic_load(&lab->last_status), 0);
    until(lab_gone(atomic_load(&lab->mold_pids[0])));
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    ok_eq(atomic_load(&lab->hooks_exit), 4);
    until(lab_alone());
}

static void test_a_mold_that_is_made_of_a_worker(void)
{
    lab_prepare(2);
    lab->refork_after = 10;
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    atomic_store(&lab->pretend_requests, 20);
    until(atomic_load(&lab->promoted) == 1);
    atomic_store(&lab->pretend_requests, 0);
    until(atomic_load(&lab->hooks_exit) == 2); /* the workers of before */
    until(lab_gone(atomic_load(&lab->mold_pids[0])));
    (void)kill(pid, SIGTERM);
    ok_eq(lab_ended(pid), 0);
    until(lab_alone());
}

/* Nobody is left to be told. */
static void test_when_the_supervisor_is_killed_all_end(void)
{
    lab_prepare(2);
    pid_t pid = lab_start();
    until(atomic_load(&lab->worker_count) == 2);
    (void)kill(pid, SIGKILL);
    ok_eq(lab_ended(pid), SIGKILL);
    until(lab_alone());
}

int main(int argc, char **argv)
{
    lab_main(argc, argv);
    test_a_workers_parent_stays_and_is_the_molds_child();
    test_a_death_comes_with_its_status();
    test_reapers_do_not_pile_up();
    test_workers_outlive_their_mold_and_their_ends_are_told();
    test_a_worker_whose_reaper_is_killed_first_is_missed();
    test_a_reload_replaces_mold_and_workers();
    test_a_mold_that_is_made_of_a_worker();
    test_when_the_supervisor_is_killed_all_end();
    return done_testing();
}
