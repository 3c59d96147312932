/* refused - what the logs say of requests that never reach the application, and of answers whose rest cannot be kept
 * for their client. */
#ifndef ORIBI_WORKER_REFUSED_H
#define ORIBI_WORKER_REFUSED_H

#include "oribi/event/conn.h"

#include <stddef.h>

/* A hook of the reactor: counts and logs a request that the application does not see. */
void oribi__on_refused(void *worker, struct oribi_conn *conn, enum oribi_refusal refusal, size_t head_bytes,
                       size_t body_bytes, const char *text);

/* A hook of the reactor: logs that an answer is cut because its rest cannot be kept. */
void oribi__on_unkept(void *worker, struct oribi_conn *conn, int error);

#endif
