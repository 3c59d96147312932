/* Calls of a worker's language to its process, and of the loop of a manager's worker (jobs.h). oribi_process_due() and
 * _turn() are in supervisor_link.c. */
#include "supervisor/process_private.h"

#include "oribi/supervisor/jobs.h"
#include "oribi/worker/worker.h"

void oribi_process_worker_setup(struct oribi_process *p, struct oribi_worker_setup *setup)
{
    if (p->mold)
        *setup = (struct oribi_worker_setup){.options = oribi_mold_options(p->mold), .life_fd = -1};
    else
        oribi_link_setup(p->link, setup);
}

bool oribi_process_is_single(const struct oribi_process *p)
{
    return p->single != NULL;
}

bool oribi_process_handed_over(const struct oribi_process *p)
{
    return p->handed_over;
}

void oribi_process_ready(struct oribi_process *p, struct oribi_worker *worker)
{
    oribi_link_ready(p->link, worker);
}

int oribi_process_opened(struct oribi_process *p, struct oribi_worker *worker, struct oribi_title *title,
                         struct oribi_warmup **warmup)
{
    if (p->mold)
        return oribi_warmup_begin(worker, oribi_mold_listeners(p->mold), warmup);
    oribi_title_init(title, p);
    oribi_process_ready(p, worker);
    return 0;
}

bool oribi_process_stop_soon(const struct oribi_process *p)
{
    return oribi_link_stop_soon(p->link);
}

void oribi_process_signalled(struct oribi_process *p, int number)
{
    p->life->signal(p, number);
}

void oribi_process_stop(struct oribi_process *p)
{
    p->life->stop(p);
}

bool oribi_process_stopping(struct oribi_process *p)
{
    return oribi_link_stopping(p->link);
}

const struct oribi_options *oribi_process_options(const struct oribi_process *p)
{
    return p->mold ? oribi_mold_options(p->mold) : oribi_link_options(p->link);
}

struct oribi_listeners *oribi_process_listeners(struct oribi_process *p)
{
    return p->mold ? oribi_mold_listeners(p->mold) : oribi_link_listeners(p->link);
}

uint32_t oribi_process_generation(const struct oribi_process *p)
{
    return oribi_link_generation(p->link);
}

uint32_t oribi_process_index(const struct oribi_process *p)
{
    return oribi_link_index(p->link);
}

struct oribi_slot *oribi_process_slot(struct oribi_process *p)
{
    return oribi_link_slot(p->link);
}

int oribi_process_life_fd(const struct oribi_process *p)
{
    return oribi_link_life_fd(p->link);
}

/* --- jobs --- */

void oribi_jobs_watch_signals(struct oribi_process *p)
{
    oribi_link_watch_signals(p->link);
}

bool oribi_jobs_stopping(struct oribi_process *p)
{
    return oribi_link_asked(p->link);
}

int oribi_jobs_wake_fd(struct oribi_process *p)
{
    return oribi_link_wake_fd(p->link);
}

void oribi_jobs_begin(struct oribi_process *p, const char *text, size_t len)
{
    oribi_link_job_begin(p->link, text, len);
}

void oribi_jobs_end(struct oribi_process *p)
{
    oribi_link_job_end(p->link);
}

size_t oribi_jobs_title(struct oribi_process *p, bool rest, char *dst, size_t cap)
{
    return oribi_link_job_title(p->link, rest, dst, cap);
}
