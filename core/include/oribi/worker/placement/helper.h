/* The worker's second thread, which turns the reactor while a call is long. Private to the core: bindings see
 * nothing of it but the option `helper`. doc/internals/placement.md has the drawing of who owns the reactor when. */
#ifndef ORIBI_WORKER_PLACEMENT_HELPER_H
#define ORIBI_WORKER_PLACEMENT_HELPER_H

#include <stdbool.h>

struct oribi_worker;

/* Starts the helper thread, or wakes it when it has parked, because calls are long here. By the own thread. Without
 * effect when the option is off or the system gives no thread. */
void oribi_helper_need(struct oribi_worker *worker);

/* True while the thread exists and sleeps until it is needed. */
bool oribi_helper_parked(const struct oribi_worker *worker);

/* True if oribi_helper_need() would do something: the thread is parked, or was not needed yet. */
bool oribi_helper_asleep(const struct oribi_worker *worker);

/* Ends the thread and waits for it. By the own thread, which has the reactor. */
void oribi_helper_stop(struct oribi_worker *worker);

/* In a forked child, where the thread does not exist: closes its descriptor. */
void oribi_helper_forget(struct oribi_worker *worker);

#endif
