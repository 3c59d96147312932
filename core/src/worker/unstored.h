/* unstored - output of calls that is on its way to a file (event/conn_store.c). */
#ifndef ORIBI_WORKER_UNSTORED_H
#define ORIBI_WORKER_UNSTORED_H

#include "worker/worker_private.h"

/* Hooks of the reactor: gives it away until less output waits for the writer than may, where an application's thread
 * has it; and what has become of an answer that was finished before. `self` is the worker. */
void oribi__await_writer(void *self, struct oribi_conn *conn);
void oribi__on_stored(void *self, struct oribi_conn *conn);

/* For a call that waits with the reactor: the writer's turn instead of the socket's, until something is written, the
 * thread is woken (true), or timeout_ms have passed. The reactor is not the caller's meanwhile. */
bool oribi__wait_stored(struct oribi_worker *worker, const struct oribi_wake *wake, int timeout_ms);

#endif
