/* Questions and reports of the loop of a manager's worker (prefork.h). TERM, QUIT and INT end a worker that asks
 * nothing as its language has it. From oribi_jobs_watch_signals() on TERM and QUIT only ask, and the loop ends between
 * two jobs. All functions are for the thread of the loop. */
#ifndef ORIBI_SUPERVISOR_JOBS_H
#define ORIBI_SUPERVISOR_JOBS_H

#include "oribi/supervisor/process.h"

/* From here on TERM and QUIT only ask. The functions below call it as well. */
void oribi_jobs_watch_signals(struct oribi_process *p);

/* True when this worker is to end. Reopens the logs if a signal has asked for that, so call it between two jobs. */
bool oribi_jobs_stopping(struct oribi_process *p);

/* A descriptor that becomes readable at a signal and at the supervisor's end. Borrowed; never read from it. */
int oribi_jobs_wake_fd(struct oribi_process *p);

/* Around a job. Status shows `text` (borrowed) while the job lasts. After jobs_max jobs the worker is asked to end. */
void oribi_jobs_begin(struct oribi_process *p, const char *text, size_t len);
void oribi_jobs_end(struct oribi_process *p);

/* As oribi_process_title(), but gives a title at most once a second, and when a job that the last title showed is over.
 * `rest`: the worker has nothing to do, so it gives the title that is right now. */
size_t oribi_jobs_title(struct oribi_process *p, bool rest, char *dst, size_t cap);

#endif
