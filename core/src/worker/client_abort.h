/* gone - clients that leave while their call runs: oribi_req_gone() tells the application, and with cancel_gone the
 * helper has the runtime raise in the call, by the deadline's signal. */
#ifndef ORIBI_WORKER_CLIENT_ABORT_H
#define ORIBI_WORKER_CLIENT_ABORT_H

#include "worker/worker_private.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__exchange;
struct oribi_thread;

enum {
    ORIBI__CLIENT_ABORT_LOOK_MS = 5,     /* between two looks at a socket that the event loop does not tell of */
    ORIBI__CLIENT_ABORT_REPEAT_MS = 100, /* between two signals, until the runtime has acted on one */
};

/* By the helper, as long as a call is long and without the reactor: signals the threads whose client has gone. Returns
 * in how many ms the next look is due, INT64_MAX where the event loop tells. */
int64_t oribi__client_abort_look(struct oribi_worker *worker, int64_t now_us);

/* Is the call of this thread to end, and its runtime has not acted on that yet? Async-signal-safe, as the next. */
bool oribi__client_abort_is_due(const struct oribi_thread *thread);

/* Raises the runtime's signal on the calling thread. */
void oribi__client_abort_tell(const struct oribi_thread *thread);

/* The status that counts and is logged of a call that ends: 499 in the place of an error that is nothing but what the
 * application made of being cancelled. With the reactor. */
int oribi__client_abort_status(struct oribi__exchange *exchange, int status);

#endif
