/* A reload of a single process: a trial of the new program, then the new program under this pid. Reading order:
 * oribi__single_reload, oribi__single_trial_turn, oribi__single_become; what the new program does first. */
#include "supervisor/single_private.h"

#include "oribi/develop/watch.h"

#include "oribi/base/buf.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/config/listener.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Over an exec. TTIN and TTOU, which a supervisor counts workers by, would stop the process. */
static const int held[] = {SIGHUP, SIGUSR1, SIGUSR2, SIGTTIN, SIGTTOU};

enum { HELD = sizeof(held) / sizeof(held[0]) };

/* --- a trial --- */

void oribi__single_end_trial(struct oribi_single *single)
{
    int status;
    if (!single->trial.pid)
        return;
    (void)kill(single->trial.pid, SIGKILL);
    (void)oribi_process_reap(single->trial.pid, true, &status); /* fails where the application has reaped it */
    oribi__mold_socket_close(single->context, single->trial.pid);
    single->trial.pid = 0;
    single->context->policy.next_generation = 0;
}

static void tell_reloaded(struct oribi_single *single, int code, const char *text)
{
    oribi__control_answer(single->context, ORIBI__COMMAND_RELOAD, code, text);
    oribi__control_answer(single->context, ORIBI__COMMAND_UPGRADE, code, text);
}

static void reload_failed(struct oribi_single *single, const char *why)
{
    char text[sizeof(single->trial.why) + 32];
    struct oribi__context *context = single->context;
    (void)snprintf(text, sizeof(text), "reload failed: %.*s", (int)strcspn(why, "\n"), why); /* cut: a line */
    context->policy.next_generation = 0;
    oribi__totals_reloaded(&context->observe.totals, true, oribi_clock_ms());
    oribi_log(ORIBI_LOG_ERROR, "%s; generation %u goes on", text, single->generation);
    tell_reloaded(single, 1, text + strlen("reload failed: "));
    oribi__notify(context, ORIBI__READY_NOTICE, NULL);
}

void oribi__single_reload(struct oribi_single *single)
{
    struct oribi__context *context = single->context;
    struct oribi_policy_event event;
    bool booting = !context->policy.up;
    if (context->policy.stopping || context->policy.stop_at || atomic_load(&single->restarts))
        return; /* what comes next is new already */
    if (booting || single->trial.pid) {
        single->posted = true;
        return;
    }
    single->posted = false;
    oribi__totals_reloading(&context->observe.totals, oribi_clock_ms());
    oribi__notify(context, ORIBI__RELOADING_NOTICE, NULL);
    oribi_log(ORIBI_LOG_INFO, "reload: generation %u is tried in a process of its own", single->generation + 1);
    single->trial = (struct oribi__trial){.until = oribi__single_in_ms(oribi__single_options(single)->boot_timeout_ms)};
    context->policy.next_generation = single->generation + 1;
    (void)oribi__start_mold(context, single->generation + 1, true, &event);
    if (event.pid > 0)
        single->trial.pid = event.pid;
    else
        reload_failed(single, event.text ? event.text : "no process could be started");
}

void oribi__single_trial_turn(struct oribi_single *single)
{
    struct oribi__trial *trial = &single->trial;
    struct oribi__context *context = single->context;
    char text[96];
    int status;
    if (!trial->pid)
        return;
    if (trial->ready && oribi__mold_socket_of(context, trial->pid)) {
        oribi__mold_socket_close(context, trial->pid); /* its order to leave */
        trial->until = oribi__single_in_ms(ORIBI_MOLD_STOP_MS);
    }
    if (oribi_clock_ms() >= trial->until) {
        trial->late = !trial->ready;
        (void)kill(trial->pid, SIGKILL);
        trial->until = INT64_MAX;
    }
    if (oribi_process_reap(trial->pid, false, &status) == 0)
        return;
    oribi__mold_socket_close(context, trial->pid);
    trial->pid = 0;
    context->policy.next_generation = 0;
    if (!trial->ready) {
        reload_failed(single, trial->late     ? "boot_timeout has passed"
                              : trial->why[0] ? trial->why
                                              : "the new program ended before it had loaded the application");
        if (single->posted)
            oribi__single_reload(single);
        return;
    }
    (void)snprintf(text, sizeof(text), "generation %u, pid %ld", single->generation + 1, (long)context->pid);
    oribi_log(ORIBI_LOG_INFO, "reload: it loads; this process finishes its requests and becomes generation %u",
              single->generation + 1);
    tell_reloaded(single, 0, text);
    atomic_store(&single->restarts, true);
    oribi__single_drain(single, ORIBI_STOP_TOLD);
}

/* --- a new program under this pid --- */

/* For files that change while the application is loaded anew: they load it once more. -1: nothing is watched, or there
 * is no memory for it. */
static int export_watch(struct oribi_single *single)
{
    struct oribi_buf files = {0};
    int fd = -1;
    oribi__watch_export(&single->context->watch, &files);
    if (files.len > 0 && oribi_process_shared_memory(files.len, &fd) == 0 &&
        pwrite(fd, files.p, files.len, 0) != (ssize_t)files.len) {
        oribi_os_close(fd);
        fd = -1;
    }
    oribi_buf_deinit(&files);
    return fd;
}

/* The program has ended: what it has not waited for, the next one knows nothing of. */
static void reap_all(void)
{
    int status;
    while (oribi_process_reap(-1, false, &status) > 0)
        continue;
}

/* Returns where it cannot be started. */
void oribi__single_become(struct oribi_single *single)
{
    struct oribi__context *context = single->context;
    char listen[ORIBI_INHERITED_TEXT_CAP + 16];
    char generation[32];
    int keep[ORIBI_LISTENERS_MAX + 1];
    int watched = export_watch(single);
    sigset_t all;
    size_t count = oribi__listeners_to_keep(context, listen, sizeof(listen), keep);
    (void)snprintf(generation, sizeof(generation), "ORIBI_SINGLE=%u %d", single->generation + 1, watched); /* fits */
    if (watched >= 0)
        keep[count++] = watched;
    char *extra[] = {listen,
                     generation,
                     (char *)"LISTEN_FDS=",
                     (char *)"LISTEN_PID=",
                     (char *)"ORIBI_MOLD=",
                     (char *)"ORIBI_METRICS=",
                     (char *)"ORIBI_UPGRADE=",
                     (char *)"ORIBI_UPGRADE_WORKERS=",
                     (char *)"ORIBI_TOTALS=",
                     (char *)"ORIBI_CONTROL_PATH=",
                     NULL};
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    reap_all();
    oribi__control_close(context, true);
    oribi__observe_close(&context->observe, true);
    oribi_pid_file_forget(&context->pid_file);
    oribi_log_drain(ORIBI_LOG_DRAIN_MS);
    oribi_start_become(&context->start, extra, keep, count, held, HELD);
    oribi_log(ORIBI_LOG_ERROR, "the program cannot be started anew: %s", oribi_os_error_text());
}

/* --- in the new program --- */

struct oribi__arrival oribi__single_arrive(void)
{
    const char *text = getenv("ORIBI_SINGLE");
    struct oribi__arrival arrival = {.watched_fd = -1};
    if (!text || sscanf(text, "%u %d", &arrival.generation, &arrival.watched_fd) != 2)
        arrival = (struct oribi__arrival){.watched_fd = -1};
    (void)unsetenv("ORIBI_SINGLE"); /* fails for names with `=` only */
    if (arrival.watched_fd >= 0 && oribi_os_set_cloexec(arrival.watched_fd, true) < 0)
        arrival.watched_fd = -1;
    if (arrival.generation)
        oribi_start_arrive(held, HELD, false);
    return arrival;
}

void oribi__single_arrived(const struct oribi__arrival *arrival)
{
    oribi_os_close(arrival->watched_fd);
    if (arrival->generation)
        oribi_start_arrive(held, HELD, true);
}

void oribi__single_import_watch(struct oribi_single *single, int fd)
{
    size_t bytes;
    char *files = NULL;
    if (fd >= 0 && oribi_process_shared_memory_size(fd, &bytes) == 0 && bytes <= ORIBI__WATCH_LIST_BYTES_MAX)
        files = oribi_mem_try_alloc(bytes ? bytes : 1, 1);
    if (files && pread(fd, files, bytes, 0) == (ssize_t)bytes)
        oribi__watch_import(&single->context->watch, files, bytes);
    oribi_mem_free(files);
}
