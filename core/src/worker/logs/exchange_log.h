/* exchange_log - an exchange in the logs: its line in the access log (exchange_log.c), its id in lines of the error log
 * (request_id.c), and the lines of a call that is slow (slow_log.c). */
#ifndef ORIBI_WORKER_LOGS_EXCHANGE_LOG_H
#define ORIBI_WORKER_LOGS_EXCHANGE_LOG_H

#include "oribi/worker/logs/access_log.h"

#include "worker/exchange.h"

#include <stdbool.h>
#include <stdint.h>

/* A new exchange: the logs have neither id nor head of another one. */
static inline void oribi__logged_begin(struct oribi__exchange *exchange)
{
    exchange->id.n = 0;
    exchange->sent.p = NULL;
    exchange->sent.n = 0;
}

/* Keeps the head that is sent, where the access log wants it. */
void oribi__logged_head(struct oribi__exchange *exchange, struct oribi_slice head);

/* Entry of the access log with the facts of the exchange; status, bytes of the body and times of the call are the
 * caller's to add. */
struct oribi_access_entry oribi__logged_entry(struct oribi__exchange *exchange, bool cut, int64_t now_us);

/* Frees the head that was kept for the log, where there is one. */
void oribi__logged_free(struct oribi__exchange *exchange);
static inline void oribi__logged_end(struct oribi__exchange *exchange)
{
    if (__builtin_expect(exchange->sent.p != NULL, 0))
        oribi__logged_free(exchange);
}

/* Do lines of the error log have the ids of their requests? */
static inline bool oribi__logs_ids(const struct oribi_worker *w)
{
    return w->names_requests;
}

/* Lines of the error log that this thread writes concern the exchange from now on; NULL ends that. Call it with the
 * reactor. */
void oribi__log_about(struct oribi__exchange *exchange);

/* One line of the access log. */
void oribi__log_access(struct oribi__exchange *exchange, int status, int64_t now_us);

/* --- slow_log.c ---
 *
 * Calls that take longer than the option slow_log are logged: where they stand while they run, and how long they took
 * at their end. Time counts until the answer begins: streams, taken sockets and code that runs after the answer are
 * long by nature, and are not looked at. */

enum {
    ORIBI__SLOW_LOOKS_MAX = 8, /* samples of one call: at slow_log, at twice, four times that and so on */
    ORIBI__SLOW_BURST = 20,    /* samples that are logged, each 10 s */
};

/* By the helper, without the reactor: logs what is due. Returns in how many ms the next may be. */
int64_t oribi__slow_look(struct oribi_worker *worker, int64_t now_us);

/* At the end of a call that was longer than ORIBI_LONG_US, by its thread, with the reactor. Logs, whatever slow_log is,
 * a call over call_timeout whose exception the application caught. */
void oribi__slow_end(const struct oribi__exchange *exchange, int status, int64_t now_us);

#endif
