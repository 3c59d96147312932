/* refused - what the logs say of requests that never reach the application, and of answers whose rest cannot be kept
 * for their client. */
#ifndef ORIBI_WORKER_LOGS_REFUSED_H
#define ORIBI_WORKER_LOGS_REFUSED_H

#include "oribi/event/conn.h"

#include <stdbool.h>
#include <stddef.h>

/* One that is refused, as the error log has it. */
struct oribi__refusal_line {
    struct oribi_slice addr; /* of the client; n 0: it came by a unix socket */
    int status;
    const char *reason;
    const struct oribi_fault *fault; /* NULL: no byte or field of its head */
    struct oribi_slice first_line;   /* as it came; n 0: not known */
    struct oribi_slice id, trace_id; /* n 0: not shown */
    bool closes;                     /* its connection closes */
};

void oribi__refused_say(const struct oribi__refusal_line *line);

/* A hook of the reactor: counts and logs a request that the application does not see. */
void oribi__on_refused(void *worker, struct oribi_conn *conn, enum oribi_refusal refusal, size_t head_bytes,
                       size_t body_bytes, const char *text);

/* A hook of the reactor: logs that an answer is cut because its rest cannot be kept. */
void oribi__on_unkept(void *worker, struct oribi_conn *conn, int error);

#endif
