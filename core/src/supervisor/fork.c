/* How a process gets its role: by being created, or by a fork of another. */
#include "supervisor/process_private.h"
#include "supervisor/supervisor.h"

#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/supervisor/prefork.h"
#include "oribi/base/signals.h"

#include <assert.h>
#include <unistd.h>

bool oribi_process_is_next_mold(void)
{
    return oribi_mold_inherited();
}

bool oribi_process_start_failed(const char *text)
{
    return oribi_start_failed(text);
}

int oribi_process_create(const struct oribi_process_setup *setup, struct oribi_process **out, char *error)
{
    const struct oribi_supervisor_setup inner = {.options = setup->options,
                                                 .listeners = setup->listeners,
                                                 .program = setup->program,
                                                 .version = setup->version,
                                                 .language = setup->language,
                                                 .argv = setup->argv,
                                                 .environ_is_known = setup->environ_is_known,
                                                 .environ = setup->environ,
                                                 .needed = setup->needed,
                                                 .prefork = setup->manager};
    struct oribi_process *p = oribi_mem_alloc(1, sizeof(*p));
    bool mold = oribi_mold_inherited();
    bool single = !mold && !setup->manager && setup->options->single;
    p->pid = getpid();
    p->manager = setup->manager != NULL;
    p->life = single ? &oribi__life_alone : &oribi__life_forked;
    p->role = mold ? ORIBI_ROLE_MOLD : single ? ORIBI_ROLE_WORKER : ORIBI_ROLE_SUPERVISOR;
    p->stage = mold || single ? ORIBI__BEGIN : ORIBI__SERVING;
    struct oribi__arrival arrival = oribi__single_arrive();
    int code = mold     ? oribi_mold_inherit(&inner, &p->mold, error)
               : single ? oribi__single_begin(&inner, &arrival, &p->single, &p->link, error)
                        : oribi_supervisor_create(&inner, &p->supervisor, error);
    oribi__single_arrived(&arrival);
    if (code < 0)
        oribi_mem_free(p);
    else
        *out = p;
    return code;
}

/* The handlers of a worker look at its child until the process is gone, and its language may still ask. */
void oribi_process_destroy(struct oribi_process *p)
{
    if (getpid() == p->pid)
        p->life->destroy(p);
}

/* An intermediate holds them back already. */
void oribi__process_hold(struct oribi_process *p, enum oribi_fork_kind kind)
{
    if (p->role == ORIBI_ROLE_MOLD)
        oribi_mold_before_fork(p->mold);
    else if (p->role == ORIBI_ROLE_WORKER)
        oribi_link_before_fork(p->link);
    else if (p->role == ORIBI_ROLE_SUPERVISOR && kind == ORIBI_FORK_WORKER)
        oribi_supervisor_before_fork(p->supervisor);
    else if (p->role == ORIBI_ROLE_SUPERVISOR)
        oribi_signals_hold();
}

/* --- in the child --- */

static void become_daemon(struct oribi_process *p)
{
    oribi_supervisor_daemon_enter(p->supervisor);
    oribi_signals_release();
}

static void become_mold(struct oribi_process *p)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    p->role = ORIBI_ROLE_MOLD;
    p->stage = ORIBI__BEGIN;
    p->failed = oribi_mold_enter(p->supervisor, &p->mold, error) < 0; /* it has reported that */
    p->supervisor = NULL;
    oribi_signals_release();
}

static void become_mold_of_worker(struct oribi_process *p)
{
    p->role = ORIBI_ROLE_MOLD;
    p->stage = ORIBI__SERVING;
    p->mold = oribi_link_promote(p->link);
    p->failed = !p->mold; /* it is logged */
    p->link = NULL;
}

/* A manager's worker is up as soon as it is made: its loop is the program's. */
static void become_worker(struct oribi_process *p)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    p->role = ORIBI_ROLE_WORKER;
    p->stage = ORIBI__BEGIN;
    p->link = p->mold ? oribi_link_enter(p->mold) : oribi_link_enter_managed(p->supervisor, error);
    p->failed = !p->link; /* likewise */
    p->supervisor = NULL;
    p->mold = NULL;
    p->forked_pid = 0;
    if (p->manager && p->link)
        oribi_link_begin(p->link);
}

static void forked_in_child(struct oribi_process *p)
{
    p->pid = getpid();
    switch (p->step.fork) {
    case ORIBI_FORK_DAEMON:
        become_daemon(p);
        break;
    case ORIBI_FORK_MOLD:
        if (p->supervisor)
            become_mold(p);
        else
            become_mold_of_worker(p);
        break;
    case ORIBI_FORK_INTERMEDIATE:
        p->role = ORIBI_ROLE_INTERMEDIATE;
        p->forked = false;
        p->titled = false;
        p->forked_pid = 0;
        break;
    case ORIBI_FORK_WORKER:
        become_worker(p);
        break;
    }
}

/* --- in the parent --- */

static void supervisor_forked(struct oribi_process *p, pid_t pid)
{
    if (p->step.fork == ORIBI_FORK_WORKER) { /* it releases the signals itself */
        oribi_supervisor_worker_forked(p->supervisor, pid);
        p->forked_pid = pid > 0 ? pid : 0;
        return;
    }
    if (p->step.fork == ORIBI_FORK_MOLD) {
        oribi_supervisor_forked(p->supervisor, pid);
    } else {
        p->role = ORIBI_ROLE_STARTER;
        oribi__starter_enter(p->supervisor, pid);
    }
    oribi_signals_release();
}

static void intermediate_forked(struct oribi_process *p, pid_t pid)
{
    p->forked_pid = pid > 0 ? pid : 0;
    if (p->mold) {
        oribi_mold_intermediate(p->mold, pid);
    } else if (pid < 0) {
        (void)oribi_os_fail(); /* keeps the reason's words */
        oribi_log(ORIBI_LOG_WARN, "refork: cannot fork a mold: %s; the mold before it stays", oribi_os_error_text());
    }
}

static void forked_in_parent(struct oribi_process *p, pid_t pid)
{
    switch (p->role) {
    case ORIBI_ROLE_SUPERVISOR:
        supervisor_forked(p, pid);
        break;
    case ORIBI_ROLE_MOLD:
        oribi_mold_after_fork(p->mold, pid);
        break;
    case ORIBI_ROLE_INTERMEDIATE:
        intermediate_forked(p, pid);
        break;
    case ORIBI_ROLE_WORKER:
        oribi_link_after_fork(p->link, pid);
        break;
    case ORIBI_ROLE_STARTER: /* never asks for one */
        break;
    }
}

enum oribi_role oribi_process_forked(struct oribi_process *p, pid_t pid)
{
    assert(p->forking);
    p->forking = false;
    if (pid == 0)
        forked_in_child(p);
    else
        forked_in_parent(p, pid);
    return p->role;
}
