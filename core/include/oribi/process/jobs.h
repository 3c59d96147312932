/* What the loop of a manager's worker asks and tells (prefork.h). A worker that asks nothing is ended by TERM, QUIT
 * and INT in the ordinary way of its language; from oribi_jobs_heed() on TERM and QUIT only ask, and the loop ends
 * between two jobs. All are for the thread of the loop. */
#ifndef ORIBI_PROCESS_JOBS_H
#define ORIBI_PROCESS_JOBS_H

#include "oribi/process/process.h"

/* From here on TERM and QUIT only ask. Called by those below as well. */
void oribi_jobs_heed(struct oribi_process *p);

/* Is this worker to end? Does what else signals have asked for, so call it between jobs. */
bool oribi_jobs_stopping(struct oribi_process *p);

/* Becomes readable at a signal and at the supervisor's end, for loops of their own; never read from it. Borrowed. */
int oribi_jobs_wake_fd(struct oribi_process *p);

/* Around a job. `text` is shown in status while it lasts; borrowed. After jobs_max of them the worker is asked to
 * end. */
void oribi_jobs_begin(struct oribi_process *p, const char *text, size_t len);
void oribi_jobs_end(struct oribi_process *p);

/* As oribi_process_title(): at most about once a second and when a job that it told of is over. `rest`: the worker
 * has nothing to do, so that it costs nobody anything to be exact. */
size_t oribi_jobs_title(struct oribi_process *p, bool rest, char *dst, size_t cap);

#endif
