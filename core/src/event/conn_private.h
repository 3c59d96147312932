/* Shared by the sources of a connection and its reactor:
 *
 *   conn.c           life and input: open, readable, timed out, closed
 *   conn_exchange.c  an exchange: begin, complete, finish or refuse, continue; the read buffer
 *   conn_body.c      request bodies, sized and chunked
 *   conn_store.c     bodies on their way to a file, and the writer
 *   conn_out.c       output: what the socket takes, and what it leaves
 *   conn_move.c      to another process and from one
 *   reactor.c        events, timeouts, the run queue
 *
 * A function that takes a connection may close it, unless it says otherwise; the memory stays until the end of the
 * turn. */
#ifndef ORIBI_EVENT_CONN_PRIVATE_H
#define ORIBI_EVENT_CONN_PRIVATE_H

#include "oribi/event/conn.h"
#include "oribi/event/reactor.h"

/* Retry-After when the worker's budget is used up: other connections give back as their requests are read or they
 * leave. */
enum { ORIBI__FULL_RETRY_AFTER_S = 5 };

/* Bytes and fields that a frontend adds to a head that it writes anew. */
enum { ORIBI__CHANNEL_MORE_BYTES = 4096, ORIBI__CHANNEL_MORE_FIELDS = 8 };

static inline const struct oribi_limits *oribi__conn_limits(const struct oribi_reactor *reactor,
                                                            const struct oribi_conn *conn)
{
    if (__builtin_expect(conn->channel == NULL, 1))
        return &reactor->config.limits;
    /* a longer record than that of an offer is a call's */
    return conn->channel->head.websocket.n > 1 ? &reactor->call_limits : &reactor->channel_limits;
}

/* Arms the deadline of a connection at rest or in a head, which a channel does not have. */
static inline void oribi__conn_arm_rest(struct oribi_reactor *reactor, struct oribi_conn *conn,
                                        enum oribi_timeout_class timeout_class)
{
    if (__builtin_expect(conn->channel != NULL, 0))
        timeout_class = ORIBI_TIMEOUT_NONE;
    oribi_timeouts_arm(&reactor->timeouts, &conn->timer, timeout_class, reactor->now_ms);
}

/* --- conn.c --- */

/* The loop has reported the connection, or its last turn was cut short. */
void oribi__conn_on_event(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* The timer of the connection has expired and is disarmed. */
void oribi__conn_on_timeout(struct oribi_reactor *reactor, struct oribi_conn *conn,
                            enum oribi_timeout_class timeout_class);

/* The states in which the connection reads. */
static inline bool oribi__conn_wants_input(const struct oribi_conn *conn)
{
    return conn->state == ORIBI_CONN_IDLE || conn->state == ORIBI_CONN_HEAD || conn->state == ORIBI_CONN_BODY ||
           conn->state == ORIBI_CONN_LINGER;
}

/* Has the loop watch a connection that it does not watch yet. 0, or ORIBI_ESYS: the connection is closed. */
int oribi__conn_watch(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Has the loop watch a connection, once: inline, because each request of a kept connection asks. */
static inline int oribi__conn_register(struct oribi_reactor *reactor, struct oribi_conn *conn)
{
    return conn->watch.added ? 0 : oribi__conn_watch(reactor, conn);
}

/* Closes the connection unless a request has begun to come since the last turn: closing over bytes that came in time
 * would reset them. True when it is closed. */
bool oribi__conn_close_idle(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Closes a connection that has begun a head, unless the rest has come meanwhile; it is answered 503. True when it is
 * closed. */
bool oribi__conn_close_head(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Closes the connection and gives back all that it borrowed. Nothing when it is closed already. */
void oribi__conn_close(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Closes the connection behind a whole answer: TLS then says that no more comes (close_notify, RFC 8446 6.1), and that
 * nothing was cut. A connection that ends for a fault has none. */
void oribi__conn_end(struct oribi_reactor *reactor, struct oribi_conn *conn);
void oribi__conn_shut(struct oribi_conn *conn); /* that alone: shutdown(2) follows */

/* --- conn_body.c --- */

/* The head is read, and `rest` bytes behind it are in the buffer: fewer than the announced length, or chunks. */
void oribi__conn_body_begin(struct oribi_reactor *reactor, struct oribi_conn *conn, size_t rest);
void oribi__conn_chunked_begin(struct oribi_reactor *reactor, struct oribi_conn *conn, size_t rest);

/* Where the next read goes, straight into the body or into the scratch buffer, and how much. */
char *oribi__conn_body_room(struct oribi_reactor *reactor, struct oribi_conn_request *exchange, size_t *room);

/* n bytes have come to p, which is what oribi__conn_body_room() gave. */
void oribi__conn_body_input(struct oribi_reactor *reactor, struct oribi_conn *conn, char *p, size_t n);

/* Books what the body takes now, of the worker's budget. */
void oribi__conn_charge_body(struct oribi_reactor *reactor, struct oribi_conn_request *exchange);

/* The whole body in a file, from a sibling. Takes body_fd. */
void oribi__conn_body_inject(struct oribi_reactor *reactor, struct oribi_conn *conn, int body_fd, int64_t body_len);

/* Bytes of the body were written, well or not, and none are on their way now: the connection is in BODY again. */
void oribi__conn_body_stored(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* --- conn_store.c --- */

/* A file for bytes of the connection; starts the writer with the first one. NULL: out of memory. */
struct oribi_temp_file *oribi__conn_temp_file(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* BODY becomes STORE while bytes of the body are on their way to a file, if they are. True when they are. */
bool oribi__conn_store(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* --- conn_exchange.c --- */

/* Parses what is in the buffer as the head of a request, behind the PROXY header when one is awaited; lends an exchange
 * for it. A whole head goes on to its body or to the run queue. */
void oribi__conn_begin(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* The request is whole: appends the connection to the run queue. */
void oribi__conn_complete(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Answers a malformed or late request with the status of `refusal` and closes; without a status it only closes. `text`
 * is for the log. */
void oribi__conn_refuse(struct oribi_reactor *reactor, struct oribi_conn *conn, enum oribi_refusal refusal,
                        const char *text);

/* Gives the exchange back, if there is one; the bytes of the next request stay, at the front of the buffer. */
void oribi__conn_drop_exchange(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* The answer is drained, or there was none: reads the next request, or lingers and closes. */
void oribi__conn_continue(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* In state FLUSH: sends on, and goes on where that was all. */
void oribi__conn_flush_on(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* The read buffer, lent from the first byte on. False: out of memory, nothing has changed; the connection stays
 * open. */
bool oribi__conn_lend_buf(struct oribi_reactor *reactor, struct oribi_conn *conn);
bool oribi__conn_grow_buf(struct oribi_reactor *reactor, struct oribi_conn *conn, size_t cap);

/* Nothing where there is no buffer. */
void oribi__conn_give_buf_back(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* --- conn_out.c --- */

/* At the write timeout: true when the peer has read meanwhile; the timeout then begins anew. */
bool oribi__conn_reads(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* The peer has until the write timeout to take something of conn->out, be it from the kernel or from us. */
void oribi__conn_arm_write(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* A write of the output's file has ended, well or not. */
void oribi__conn_out_stored(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Frees unsent output, if there is any. */
void oribi__conn_drop_out(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* --- reactor.c --- */

/* Appends a connection to the run queue, or to those that hooks.answer answers; removes it from where it is. */
void oribi__reactor_queue(struct oribi_reactor *reactor, struct oribi_conn *conn);
void oribi__reactor_queue_claimed(struct oribi_reactor *reactor, struct oribi_conn *conn);
void oribi__reactor_unqueue(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Moves a connection that is queued to its place by age, because it waited elsewhere before. */
void oribi__reactor_queue_by_age(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Gives the connection another go in the next turn, without an event. */
void oribi__reactor_post(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Removes a closed connection from all lists; its memory is freed at the end of the turn. `queued`: it was in the run
 * queue. */
void oribi__reactor_forget(struct oribi_reactor *reactor, struct oribi_conn *conn, bool queued);

/* Notes that the connection has its descriptor's number. A connection that was noted for the same number has lost its
 * descriptor: the application closed it. False: no memory for the note. */
bool oribi__reactor_claim(struct oribi_reactor *reactor, struct oribi_conn *conn);
void oribi__reactor_disclaim(struct oribi_reactor *reactor, const struct oribi_conn *conn);

#endif
