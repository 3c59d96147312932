/* request_log - requests in logs: their names (request_id.c), their line, and those that are refused (refused.c). */
#ifndef ORIBI_WORKER_LOGS_REQUEST_LOG_H
#define ORIBI_WORKER_LOGS_REQUEST_LOG_H

#include "oribi/base/buf.h"
#include "oribi/event/conn.h"
#include "oribi/http/head.h"
#include "oribi/http/response.h"
#include "oribi/worker/placement/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct oribi__exchange;
struct oribi_trust;
struct oribi_worker;

/* --- request_id.c ---
 *
 * The id of a request in logs, in its environment and in its answer. A trusted proxy's X-Request-Id
 * is kept where it is well-formed; any other request gets a UUIDv7 (RFC 9562 5.7) from the time of its arrival and the
 * worker's own generator, without a system call. Made when it is first asked for. All with the reactor. */

enum { ORIBI__ID_LEN = 36 };

/* A member of struct oribi_worker. */
struct oribi__id_source {
    uint64_t state[4];
    int64_t wall_offset_ms; /* from the monotonic clock to the wall clock */
    int64_t offset_ms;      /* when wall_offset_ms was read; it is read anew each second */
};

/* Once for each worker, after fork(2): so no two processes have one sequence. */
void oribi__ids_seed(struct oribi__id_source *ids);

/* Writes a new id of a request that arrived at now_us; ORIBI__ID_LEN bytes, no NUL. */
void oribi__id_make(struct oribi__id_source *ids, int64_t now_us, char dst[ORIBI__ID_LEN]);

/* 1 to ORIBI_REQUEST_ID_MAX letters, digits and any of -._~+/=:@ */
bool oribi__id_is_good(struct oribi_slice text);

/* The X-Request-Id of a head, where the peer of this address is trusted and it is well-formed; else n 0. */
struct oribi_slice oribi__id_trusted(const struct oribi_trust *trust, const struct oribi_head *head,
                                     struct oribi_slice peer);

/* The id that a frontend has given the request at hand; else the X-Request-Id that a trusted proxy has sent. n 0:
 * neither. */
struct oribi_slice oribi__id_given(const struct oribi_worker *worker, const struct oribi_conn *conn);

/* The id of an exchange whose worker is set. Lives as long as its head. */
struct oribi_slice oribi__request_id(struct oribi__exchange *exchange);

/* The trace id of the one traceparent field of a head (W3C Trace Context 3.2); n 0 where there is none, or none that is
 * valid. Points into the head. */
struct oribi_slice oribi__trace_id(const struct oribi_head *head);

/* The field of the answer that says the id: request_id_header, which is set. */
struct oribi_header oribi__id_header(struct oribi__exchange *exchange);

/* At the begin of a call whose worker names requests: notes the id for what its thread logs. With request_id the
 * request gets it as its field X-Request-Id, in the place of what its client has sent; where it has as many fields as
 * there may ever be, it gets none. */
void oribi__id_begin(struct oribi__exchange *exchange);

/* Writes "GET /path" of a request, as far as there is room, for a worker's slot and for lines of the log. */
static inline void oribi__note_line(char line[ORIBI_SLOT_LINE_CAP], const struct oribi_head *head)
{
    size_t method_n = head->method.n < ORIBI_METHOD_BYTES_MAX ? head->method.n : ORIBI_METHOD_BYTES_MAX;
    size_t room = ORIBI_SLOT_LINE_CAP - 2 - method_n;
    size_t target_n = head->target.n < room ? head->target.n : room;
    memcpy(line, head->method.p, method_n);
    line[method_n] = ' ';
    memcpy(line + method_n + 1, head->target.p, target_n);
    line[method_n + 1 + target_n] = '\0';
}

/* --- refused.c: requests that never reach the application, answers whose rest cannot be kept for their client --- */

/* A request that is refused, as the error log has it. */
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
