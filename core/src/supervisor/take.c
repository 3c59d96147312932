/* One handle and one loop for every role of a process: which step comes when. What a role does is in supervisor.c,
 * mold.c and supervisor_link.c; how a process gets its role is in fork.c. Reading order: oribi_process_take,
 * take_supervisor, take_mold, take_intermediate, take_worker. */
#include "supervisor/mold.h"
#include "supervisor/process_private.h"
#include "supervisor/supervisor.h"

#include "oribi/base/clock.h"
#include "oribi/base/mem.h"
#include "oribi/supervisor/prefork.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static const struct oribi_step *give(struct oribi_process *p, struct oribi_step step)
{
    p->step = step;
    return &p->step;
}

static const struct oribi_step *give_type(struct oribi_process *p, enum oribi_step_type type)
{
    return give(p, (struct oribi_step){.type = type});
}

static const struct oribi_step *leave(struct oribi_process *p, int code, bool at_once)
{
    p->over = true;
    return give(p, (struct oribi_step){.type = ORIBI_STEP_EXIT, .code = code, .at_once = at_once});
}

static const struct oribi_step *ask_for_fork(struct oribi_process *p, enum oribi_fork_kind kind)
{
    oribi__process_hold(p, kind);
    p->forking = true;
    return give(p, (struct oribi_step){.type = ORIBI_STEP_FORK, .fork = kind});
}

static const struct oribi_step *hook(struct oribi_process *p, const char *name)
{
    struct oribi_step step = {.type = ORIBI_STEP_HOOK, .hook = name};
    if (p->link) {
        step.has_index = true;
        step.index = oribi_link_index(p->link);
        step.generation = oribi_link_generation(p->link);
    }
    return give(p, step);
}

/* --- supervisor --- */

/* A manager that waits for its workers is done when there are none and no mold, or when its time is up. */
static bool has_awaited(struct oribi_process *p)
{
    if (!p->awaits || (oribi_supervisor_processes(p->supervisor) > 0 && oribi_clock_ms() < p->await_until_ms))
        return false;
    p->awaits = false;
    return true;
}

/* A hook of the supervisor's own, with the facts that go with each; one that tells of no process has no reason
 * either. */
static const struct oribi_step *supervisor_hook(struct oribi_process *p, const struct oribi_supervisor_action *action)
{
    return give(p, (struct oribi_step){.type = ORIBI_STEP_HOOK,
                                       .hook = action->hook,
                                       .pid = action->pid,
                                       .status = action->status,
                                       .reason = action->pid ? action->reason : NULL,
                                       .index = action->index,
                                       .has_index = action->pid && !p->manager});
}

static const struct oribi_step *supervisor_exit(struct oribi_process *p, const struct oribi_supervisor_action *action)
{
    int signal = action->signal;
    int code = action->exit_code;
    p->handed_over = oribi_supervisor_handed_over(p->supervisor);
    oribi_supervisor_destroy(p->supervisor);
    p->supervisor = NULL;
    (void)leave(p, code, false);
    p->step.signal = signal;
    return &p->step;
}

static const struct oribi_step *take_supervisor(struct oribi_process *p)
{
    if (p->forked_pid) {
        (void)hook(p, "after_fork");
        p->step.pid = p->forked_pid;
        p->forked_pid = 0;
        return &p->step;
    }
    if (p->stage == ORIBI__HOOKED) {
        p->stage = ORIBI__SERVING;
        return ask_for_fork(p, ORIBI_FORK_WORKER);
    }
    const struct oribi_supervisor_action *action = oribi_supervisor_take(p->supervisor);
    switch (action->type) {
    case ORIBI_SUPERVISOR_NONE:
        return give_type(p, has_awaited(p) ? ORIBI_STEP_DONE : ORIBI_STEP_WAIT);
    case ORIBI_SUPERVISOR_FORK_DAEMON:
        return ask_for_fork(p, ORIBI_FORK_DAEMON);
    case ORIBI_SUPERVISOR_FORK_MOLD:
        return ask_for_fork(p, ORIBI_FORK_MOLD);
    case ORIBI_SUPERVISOR_FORK_WORKER:
        p->stage = ORIBI__HOOKED;
        return hook(p, "before_fork");
    case ORIBI_SUPERVISOR_TRAPPED:
        return give(p, (struct oribi_step){.type = ORIBI_STEP_TRAPPED, .signal = action->signal});
    case ORIBI_SUPERVISOR_HOOK:
        return supervisor_hook(p, action);
    case ORIBI_SUPERVISOR_EXIT:
        break;
    }
    return supervisor_exit(p, action);
}

static const struct oribi_step *take_starter(struct oribi_process *p)
{
    int code = oribi__starter_take(p->supervisor);
    return code < 0 ? give_type(p, ORIBI_STEP_WAIT) : leave(p, code, true);
}

/* --- mold --- */

static const struct oribi_step *mold_exit(struct oribi_process *p)
{
    oribi_mold_destroy(p->mold);
    p->mold = NULL;
    return leave(p, 0, p->manager);
}

/* A single process tries the new program in a mold; what does not load is a page in development, so that configuration
 * alone is tried there. */
static bool mold_loads(const struct oribi_options *options)
{
    return options->single ? !options->dev : options->preload;
}

/* A manager's next mold is ready when made: what its program has done before start is its loading. */
static const struct oribi_step *take_mold(struct oribi_process *p)
{
    if (p->failed)
        return leave(p, 1, false);
    if (p->stage == ORIBI__BEGIN && mold_loads(oribi_mold_options(p->mold)) && !p->manager) {
        p->stage = ORIBI__LOADED;
        return give_type(p, ORIBI_STEP_LOAD);
    }
    if (p->stage == ORIBI__BEGIN || p->stage == ORIBI__LOADED) {
        p->loaded = p->stage == ORIBI__LOADED;
        p->stage = ORIBI__SERVING;
        oribi_mold_ready(p->mold);
    }
    if (p->stage == ORIBI__HOOKED) {
        p->stage = ORIBI__SERVING;
        return ask_for_fork(p, ORIBI_FORK_INTERMEDIATE);
    }
    switch (oribi_mold_take(p->mold)) {
    case ORIBI_MOLD_NONE:
        return give_type(p, ORIBI_STEP_WAIT);
    case ORIBI_MOLD_SPAWN:
        p->stage = ORIBI__HOOKED;
        (void)hook(p, "before_fork");
        p->step.index = oribi_mold_worker_index(p->mold);
        p->step.has_index = !p->manager;
        return &p->step;
    case ORIBI_MOLD_EXIT:
        break;
    }
    return mold_exit(p);
}

static const struct oribi__process_context *intermediate_context(const struct oribi_process *p)
{
    return p->mold ? &p->mold->context : oribi__link_context(p->link);
}

static bool is_reaper(const struct oribi_process *p)
{
    return p->role == ORIBI_ROLE_INTERMEDIATE && p->forked && p->forked_pid && !oribi_os_adopts_orphans();
}

/* A reaper's first step is a wait that ends at once: for its title. */
static const struct oribi_step *take_intermediate(struct oribi_process *p)
{
    if (is_reaper(p) && !p->titled) {
        p->titled = true;
        return give_type(p, ORIBI_STEP_WAIT);
    }
    if (is_reaper(p))
        oribi__reaper_keep(intermediate_context(p)->message_fd, p->forked_pid);
    if (p->forked)
        return leave(p, 0, true);
    p->forked = true;
    return ask_for_fork(p, p->mold ? ORIBI_FORK_WORKER : ORIBI_FORK_MOLD);
}

/* --- worker --- */

static const struct oribi_step *worker_begins(struct oribi_process *p)
{
    p->stage = ORIBI__HOOKED;
    (void)hook(p, "after_fork");
    p->step.fatal = true;
    return &p->step;
}

static const struct oribi_step *worker_opened(struct oribi_process *p)
{
    return NULL;
}

/* RUN is over: because a mold is to be made of this worker, or because it has served. */
static const struct oribi_step *worker_ran(struct oribi_process *p)
{
    p->stage = p->refork ? ORIBI__REFORK : ORIBI__LEFT;
    const char *name = p->refork ? "before_refork" : "before_worker_exit";
    p->refork = false;
    return hook(p, name);
}

static const struct oribi_step *worker_exit(struct oribi_process *p)
{
    oribi_link_leave(p->link);
    return leave(p, 0, false);
}

static const struct oribi_step *worker_failed(struct oribi_process *p)
{
    return leave(p, 1, true);
}

static void worker_signal(struct oribi_process *p, int number)
{
    if (p->link)
        oribi_link_signal(p->link, number);
}

static void supervisor_stop(struct oribi_process *p)
{
    if (p->role == ORIBI_ROLE_SUPERVISOR && p->supervisor && !p->over)
        oribi_supervisor_stop(p->supervisor);
}

static void destroy(struct oribi_process *p)
{
    if (p->role == ORIBI_ROLE_WORKER)
        return;
    if (p->role == ORIBI_ROLE_SUPERVISOR && p->supervisor)
        oribi_supervisor_destroy(p->supervisor);
    oribi_mem_free(p);
}

const struct oribi__life oribi__life_forked = {
    .begins = worker_begins,
    .opened = worker_opened,
    .ran = worker_ran,
    .exit = worker_exit,
    .failed = worker_failed,
    .signal = worker_signal,
    .stop = supervisor_stop,
    .destroy = destroy,
};

/* --- alone --- */

/* Nothing was forked, so there is no hook about that. */
static const struct oribi_step *single_begins(struct oribi_process *p)
{
    p->stage = ORIBI__LOADED;
    return give_type(p, ORIBI_STEP_LOAD);
}

static const struct oribi_step *single_opened(struct oribi_process *p)
{
    p->stage = ORIBI__UP;
    oribi__single_await_up(p->single);
    return hook(p, "server_ready");
}

static const struct oribi_step *single_ran(struct oribi_process *p)
{
    bool restarts = p->stage == ORIBI__SERVING && oribi__single_restarts(p->single);
    p->stage = restarts ? ORIBI__RESTARTS : ORIBI__LEFT;
    return hook(p, restarts ? "before_reload" : "before_worker_exit");
}

static const struct oribi_step *single_exit(struct oribi_process *p)
{
    return leave(p, oribi__single_leave(p->single, p->failed), false);
}

static void single_signal(struct oribi_process *p, int number)
{
    oribi__single_signal(p->single, number);
}

static void single_stop(struct oribi_process *p)
{
    oribi__single_stop(p->single);
}

static void single_destroy(struct oribi_process *p)
{
    oribi__single_end(p->single);
}

const struct oribi__life oribi__life_alone = {
    .begins = single_begins,
    .opened = single_opened,
    .ran = single_ran,
    .exit = single_exit,
    .failed = single_exit,
    .signal = single_signal,
    .stop = single_stop,
    .destroy = single_destroy,
};

static const struct oribi_step *take_worker(struct oribi_process *p)
{
    if (p->failed)
        return p->life->failed(p);
    if (p->manager)
        return give_type(p, ORIBI_STEP_RUN);
    const struct oribi_step *step;
    switch (p->stage) {
    case ORIBI__BEGIN:
        return p->life->begins(p);
    case ORIBI__HOOKED:
        p->stage = ORIBI__LOADED;
        if (!p->loaded)
            return give_type(p, ORIBI_STEP_LOAD);
        /* fall through */
    case ORIBI__LOADED:
        p->loaded = true;
        p->stage = ORIBI__OPENED;
        return give_type(p, ORIBI_STEP_OPEN);
    case ORIBI__OPENED:
        step = p->life->opened(p);
        if (step)
            return step;
        /* fall through */
    case ORIBI__UP:
        p->stage = ORIBI__READY;
        return hook(p, "after_worker_ready");
    case ORIBI__READY:
        p->stage = ORIBI__SERVING;
        return give_type(p, ORIBI_STEP_RUN);
    case ORIBI__SERVING:
    case ORIBI__RESTARTS:
        return p->life->ran(p);
    case ORIBI__REFORK:
        p->stage = ORIBI__READY;
        return ask_for_fork(p, ORIBI_FORK_INTERMEDIATE);
    case ORIBI__LEFT:
        break;
    }
    return p->life->exit(p);
}

/* A child that the application has forked comes back here when it has nothing of its own to end with. */
const struct oribi_step *oribi_process_take(struct oribi_process *p)
{
    assert(!p->over);
    if (getpid() != p->pid)
        return leave(p, 0, false);
    if (p->forking) {
        errno = EINTR;
        (void)oribi_process_forked(p, -1);
    }
    switch (p->role) {
    case ORIBI_ROLE_SUPERVISOR:
        return take_supervisor(p);
    case ORIBI_ROLE_STARTER:
        return take_starter(p);
    case ORIBI_ROLE_MOLD:
        return take_mold(p);
    case ORIBI_ROLE_INTERMEDIATE:
        return take_intermediate(p);
    case ORIBI_ROLE_WORKER:
        break;
    }
    return take_worker(p);
}

/* --- waiting --- */

static int64_t awaited_ms(const struct oribi_process *p)
{
    if (!p->awaits || p->await_until_ms == INT64_MAX)
        return -1;
    int64_t left_ms = p->await_until_ms - oribi_clock_ms();
    return left_ms > 0 ? left_ms : 0;
}

void oribi_process_wait(struct oribi_process *p, int64_t ms)
{
    if (p->role == ORIBI_ROLE_SUPERVISOR)
        oribi_supervisor_wait_for(p->supervisor, oribi_shorter(ms, awaited_ms(p)));
    else if (p->role == ORIBI_ROLE_STARTER)
        oribi__starter_wait(p->supervisor, ms);
    else if (p->role == ORIBI_ROLE_MOLD && p->mold)
        oribi_mold_wait(p->mold);
}

void oribi_process_wake(struct oribi_process *p)
{
    if (p->role == ORIBI_ROLE_SUPERVISOR && p->supervisor)
        oribi_supervisor_wake(p->supervisor);
    else if (p->mold)
        oribi_mold_wake(p->mold);
}

/* --- what all roles have --- */

void oribi_process_failed(struct oribi_process *p, const char *text, size_t len)
{
    p->failed = true;
    if (p->mold)
        oribi_mold_failed(p->mold, text, len);
    else if (p->link)
        oribi_link_failed(p->link, text, len);
}

void oribi_process_loaded_with(struct oribi_process *p, const char *text, size_t len)
{
    if (p->role == ORIBI_ROLE_MOLD && p->mold)
        oribi_mold_loaded_with(p->mold, text, len);
}

void oribi_process_loading_at(struct oribi_process *p, const char *text, size_t len)
{
    if (p->role == ORIBI_ROLE_MOLD && p->mold)
        oribi_mold_loading_at(p->mold, text, len);
}

enum oribi_role oribi_process_role(const struct oribi_process *p)
{
    return p->role;
}

size_t oribi_process_title(struct oribi_process *p, char *dst, size_t cap)
{
    if (p->role == ORIBI_ROLE_WORKER && p->link)
        return oribi_link_title(p->link, dst, cap);
    if (p->role == ORIBI_ROLE_MOLD && p->mold)
        return oribi_mold_title(p->mold, dst, cap);
    if (is_reaper(p)) {
        int n = snprintf(dst, cap, "%s reaper of pid %ld", intermediate_context(p)->program, (long)p->forked_pid);
        return n > 0 && (size_t)n < cap ? (size_t)n : 0;
    }
    return p->role == ORIBI_ROLE_SUPERVISOR && p->supervisor ? oribi_supervisor_title(p->supervisor, dst, cap) : 0;
}

/* --- a manager --- */

void oribi_process_resume(struct oribi_process *p)
{
    oribi_supervisor_resume(p->supervisor);
}

void oribi_process_await_workers(struct oribi_process *p, int64_t ms)
{
    p->awaits = true;
    p->await_until_ms = ms ? oribi_clock_ms() + ms : INT64_MAX;
    if (p->supervisor)
        oribi_supervisor_release_molds(p->supervisor);
}

void oribi_process_configure(struct oribi_process *p)
{
    if (p->supervisor)
        oribi_supervisor_configure(p->supervisor);
}

uint32_t oribi_process_signal_all(struct oribi_process *p, int signal)
{
    return p->supervisor ? oribi_supervisor_signal_all(p->supervisor, signal) : 0;
}

uint32_t oribi_process_workers(const struct oribi_process *p)
{
    return p->supervisor ? oribi_supervisor_workers(p->supervisor) : 0;
}
