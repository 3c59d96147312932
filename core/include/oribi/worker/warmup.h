/* Requests that a freshly loaded application must answer before any client's: the option `warmup`. They go through a
 * worker in the mold itself, as later requests go through theirs, and the workers that are forked afterwards share what
 * they have built up.
 *
 *   between loading the application and the answer to LOAD (process.h), if options->warmup.count > 0:
 *       oribi_worker_create(&(struct oribi_worker_setup){.options = options, .life_fd = -1}, &worker);
 *       oribi_warmup_begin(worker, oribi_process_listeners(p), &warmup);
 *       the pull loop of worker.h; it ends when all have been answered
 *       code = oribi_warmup_end(warmup, error);                     // < 0: oribi_process_failed(p, …)
 *       oribi_worker_destroy(worker);
 */
#ifndef ORIBI_WORKER_WARMUP_H
#define ORIBI_WORKER_WARMUP_H

#include "oribi/worker/worker.h"

struct oribi_warmup;

/* Sends `GET target` to the worker for each target of its options, as HTTP/1.0 on connections of their own, answered
 * one after the other in that order. Borrows worker and listeners (the first one's host and port are the server's
 * name; may be NULL) until the end; starts a thread that reads the answers. Gives the warm-up. 0, ORIBI_ENOMEM or
 * ORIBI_ESYS. */
int oribi_warmup_begin(struct oribi_worker *worker, const struct oribi_listeners *listeners, struct oribi_warmup **out);

/* After the loop: takes the warm-up, joins the thread. 0 if every answer had a status below 500, else ORIBI_EAPP
 * with one line in `error` (ORIBI_ERROR_TEXT_CAP) about the first that had not. */
int oribi_warmup_end(struct oribi_warmup *warmup, char *error);

#endif
