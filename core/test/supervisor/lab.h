/* A language host in C for tests: the one loop of process.h for every role, and a shared page through which its
 * processes show themselves to the test and the test tells them what to do. The test is a child subreaper, so that it
 * sees whatever its supervisors leave behind.
 *
 * A test program calls lab_main() first: in a process that a supervisor has started by exec it becomes what it is to be
 * and does not return. */
#ifndef ORIBI_TEST_SUPERVISOR_LAB_H
#define ORIBI_TEST_SUPERVISOR_LAB_H

#include "tap.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/supervisor/jobs.h"
#include "oribi/supervisor/prefork.h"
#include "oribi/supervisor/process.h"
#include "oribi/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIDS_MAX = 256, DEADLINE_MS = 20000 };

/* Memory shared by the test and its processes: what these show, and what the test asks of them. */
struct lab {
    /* the operator's side: what a command line and a config file would say */
    uint32_t workers;
    int64_t boot_timeout_ms, shutdown_timeout_ms, err_respawn_interval_ms, memory_max, age_max_ms, drain_delay_ms;
    uint32_t roll_max, refork_after;
    int daemonize;
    char user[64], pid_file[108], control[108], bind[2][120];
    int config_broken; /* the command ends before it is anything */
    /* what is seen and asked */
    _Atomic int mold_count;
    _Atomic int workers_ready; /* numbers taken */
    _Atomic int worker_count;  /* ever ready; worker_pids[] has them all */
    _Atomic int reopened;      /* turns taken by workers after USR1 */
    _Atomic int hooks_up;
    _Atomic int hooks_exit;
    _Atomic int hooks_before_fork;
    _Atomic int hooks_reload;
    _Atomic int hooks_refork;
    _Atomic int promoted;
    _Atomic int answers;          /* given by workers */
    _Atomic int ballast_mb;       /* that workers fill when they start */
    _Atomic int pretend_requests; /* request_count that workers show */
    _Atomic int serve_pid;        /* the last supervisor that came up */
    _Atomic int last_status;
    _Atomic int load_fails;   /* 1: raises, 2: dies by a signal, 3: ends when this changes */
    _Atomic int workers_fail; /* that many first workers cannot start */
    _Atomic int ignore_stop;  /* workers look at nothing */
    _Atomic int slow_boot;    /* workers never get ready */
    _Atomic int in_call;      /* workers show a call that began a second ago */
    _Atomic int warned;       /* workers that found on the scoreboard that calls are long */
    _Atomic int mold_pids[PIDS_MAX];
    _Atomic int worker_pids[PIDS_MAX];
    char last_reason[64];
};

extern struct lab *lab; /* the shared page; it has no name: its descriptor goes through every exec */
extern int lab_log_fd;  /* stderr of the supervisors that lab_start() starts */

/* First in main(): prepares the page, or skips all tests where the system lacks something. */
void lab_main(int argc, char **argv);

/* Between two looks at a condition. */
void lab_pause_ms(int ms);

/* Waits for a condition; a millisecond between two looks. */
#define until(condition)                                                                                               \
    do {                                                                                                               \
        int64_t until_end_ = oribi_clock_ms() + DEADLINE_MS;                                                           \
        bool until_met_ = (condition);                                                                                 \
        while (!until_met_ && oribi_clock_ms() < until_end_) {                                                         \
            lab_pause_ms(1);                                                                                           \
            until_met_ = (condition);                                                                                  \
        }                                                                                                              \
        if (!ok_named(until_met_, "%s: in the end %s", __func__, #condition))                                          \
            diag("the log: %s", lab_log_text());                                                                       \
    } while (0)

/* --- the test's side --- */

/* An empty page and log, and options that suit most tests. */
void lab_prepare(uint32_t workers);

/* Starts a supervisor with what the page says. Gives its pid. */
pid_t lab_start(void);

/* The lines that have been logged so far; they live until the next call. */
char *lab_log_text(void);
bool lab_logged(const char *words);

/* The exit status of the supervisor, waited for with a deadline; -1 when it does not end (then it is killed). */
int lab_ended(pid_t pid);

/* True when the test has no children left: everything that a supervisor leaves behind becomes one. */
bool lab_alone(void);

/* True when there is no process of this number any more. */
bool lab_gone(pid_t pid);

/* --- a process's side --- */

/* Fills as much memory as `ballast_mb` says. */
void lab_carry_ballast(void);

/* Counts a hook on the page. */
void lab_run_hook(const struct oribi_step *action);

/* Prints why a command cannot start and tells the server that has started it. Gives its exit code. */
int lab_fail_start(const char *error);

#endif
