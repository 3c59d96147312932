/* What a worker's language asks of its process, and a manager's worker's loop (jobs.h). oribi_process_due() and
 * _turn() are in seat.c. */
#include "process/process_private.h"

#include "oribi/process/jobs.h"

void oribi_process_worker_setup(struct oribi_process *p, struct oribi_worker_setup *setup)
{
    oribi_seat_setup(p->seat, setup);
}

void oribi_process_ready(struct oribi_process *p, struct oribi_worker *worker)
{
    oribi_seat_ready(p->seat, worker);
}

bool oribi_process_stop_soon(const struct oribi_process *p)
{
    return oribi_seat_stop_soon(p->seat);
}

void oribi_process_signalled(struct oribi_process *p, int number)
{
    if (p->seat)
        oribi_seat_signal(p->seat, number);
}

bool oribi_process_stopping(struct oribi_process *p)
{
    return oribi_seat_stopping(p->seat);
}

const struct oribi_options *oribi_process_options(const struct oribi_process *p)
{
    return p->mold ? oribi_mold_options(p->mold) : oribi_seat_options(p->seat);
}

struct oribi_listeners *oribi_process_listeners(struct oribi_process *p)
{
    return p->mold ? oribi_mold_listeners(p->mold) : oribi_seat_listeners(p->seat);
}

uint32_t oribi_process_generation(const struct oribi_process *p)
{
    return oribi_seat_generation(p->seat);
}

uint32_t oribi_process_index(const struct oribi_process *p)
{
    return oribi_seat_index(p->seat);
}

struct oribi_slot *oribi_process_slot(struct oribi_process *p)
{
    return oribi_seat_slot(p->seat);
}

int oribi_process_life_fd(const struct oribi_process *p)
{
    return oribi_seat_life_fd(p->seat);
}

/* --- jobs --- */

void oribi_jobs_heed(struct oribi_process *p)
{
    oribi_seat_heed(p->seat);
}

bool oribi_jobs_stopping(struct oribi_process *p)
{
    return oribi_seat_asked(p->seat);
}

int oribi_jobs_wake_fd(struct oribi_process *p)
{
    return oribi_seat_wake_fd(p->seat);
}

void oribi_jobs_begin(struct oribi_process *p, const char *text, size_t len)
{
    oribi_seat_job_begin(p->seat, text, len);
}

void oribi_jobs_end(struct oribi_process *p)
{
    oribi_seat_job_end(p->seat);
}

size_t oribi_jobs_title(struct oribi_process *p, bool rest, char *dst, size_t cap)
{
    return oribi_seat_job_title(p->seat, rest, dst, cap);
}
