/* One client connection, and the exchange that is under way on it.
 *
 *                                                   STORE (a part of the body is being written to its file)
 *                                                    ▲ │
 *               bytes              head complete,    │ ▼                all there
 *    ┌──► IDLE ───────► HEAD ───────────────────────► BODY ──────────────────────┐
 *    │                   └─────────────────────── no body, or all in one read ───┤
 *    │                                                                           ▼
 *    │  kept alive, output drained                                  taken     QUEUED (run queue)
 *    ├──────────────────────── FLUSH ◄──── answered ──── CALL ◄──────────────────┘
 *    │                           │
 *    │                           │ closes                      refused (400 408 413 414 417 431 501 505)
 *    │                           ▼                             from HEAD or BODY: answer, then
 *    └── (FLUSH is passed      LINGER ──► CLOSED  ◄───────────────── FLUSH
 *         through when nothing is pending)
 *
 * An idle connection has no buffer and no exchange: the reactor lends both when bytes arrive and takes them back when
 * the answer is written. Reading stops while a request is queued or called, and while bytes of its body are written to
 * a file; what comes meanwhile waits in the buffer and the kernel.
 *
 * This header is what the layer above uses; what the sources of the connection share is in conn_private.h. */
#ifndef ORIBI_EVENT_CONN_H
#define ORIBI_EVENT_CONN_H

#include "oribi/event/body.h"
#include "oribi/event/out.h"
#include "oribi/event/loop.h"
#include "oribi/event/timeouts.h"
#include "oribi/http/proxy.h"
#include "oribi/http/chunked.h"
#include "oribi/http/head.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct oribi_reactor;
struct oribi_conn;

enum oribi_conn_state {
    ORIBI_CONN_IDLE,
    ORIBI_CONN_HEAD,
    ORIBI_CONN_BODY,
    ORIBI_CONN_STORE,
    ORIBI_CONN_QUEUED,
    ORIBI_CONN_CALL,
    ORIBI_CONN_FLUSH,
    ORIBI_CONN_LINGER,
    ORIBI_CONN_CLOSED,
};

/* One request and its answer. Lent from a pool with the first byte, given back when the answer is written. The layer
 * above puts its own fields behind it (oribi_reactor_config: exchange_bytes). */
struct oribi_conn_request {
    struct oribi_conn *conn;
    struct oribi_parser parser;
    struct oribi_chunked chunked;
    struct oribi_body body;      /* a body that does not fit behind the head in the connection's buffer */
    struct oribi_parts *parts;   /* of a form that is taken apart: `body` is its frame then; else NULL */
    struct oribi_slice in_place; /* a body that does */
    struct oribi_trailers trailers;
    struct oribi_buf rest;      /* bytes of the next request that were read with the end of a chunked body */
    int64_t body_started_ms;    /* time in STORE not counted */
    int64_t store_started_ms;   /* in state STORE: since when */
    struct oribi_charge charge; /* what body, rest and trailers take of the worker's budget */
    int64_t complete_us;        /* oribi_clock_us() when the last byte had been read */
    uint32_t used;              /* bytes at the front of the connection's buffer that belong to this request */
    uint32_t body_memory_max;   /* of this body; 0: it goes to a file from its first byte on */
    bool body_whole;            /* every byte has come, and is to be stored */
    bool unlogged;              /* the layer above waits for hooks.stored or hooks.closed */
    bool reset_when_cut;        /* with unlogged: only a reset tells the client that a part is missing */
    void *user;                 /* the layer above's; NULL at first */
    struct oribi_head head;
};

/* Bytes of a body that is not in_place, so far. */
static inline int64_t oribi_conn_request_body_len(const struct oribi_conn_request *exchange)
{
    return exchange->parts ? exchange->parts->len : exchange->body.len;
}

/* A connection that is a channel of a frontend: each request has a channel head before it (http/proxy.h), which
 * says whose it is. The frontend keeps deadlines, and numbers of requests and connections; here it has none. */
struct oribi_channel {
    struct oribi_channel_head head; /* of the request that is read, queued or called; slices point into `text` */
    struct oribi_buf text;          /* its bytes, with which the request travels */
    struct oribi_conn *polled_prev; /* channels whose transport the reactor asks */
    struct oribi_conn *polled_next;
    uint16_t number;
    bool known;             /* the head has been read */
    bool has_listener;      /* the connection's listener was found by these two values */
    uint16_t listener;      /* of the last call's `head` */
    uint32_t listener_hash; /* likewise */
};

enum { ORIBI_CONN_ADDR_CAP = ORIBI_PROXY_ADDR_CAP, ORIBI_CONN_PORT_CAP = ORIBI_PROXY_PORT_CAP };

struct oribi_conn {
    struct oribi_watch watch;
    struct oribi_timeout timer;
    struct oribi_conn *prev; /* all connections of the reactor */
    struct oribi_conn *next;
    struct oribi_conn *run_next;    /* run queue, or the list of deferred frees */
    struct oribi_conn *posted_next; /* connections whose turn was cut short */
    struct oribi_conn_request *exchange;
    struct oribi_out *out; /* unsent output, NULL when none */
    char *buf;             /* lent; NULL while idle */
    uint32_t len;
    uint32_t cap;
    uint32_t linger_left;              /* bytes */
    uint32_t linger_since_ms;          /* of the reactor's clock, cut to what wraps around after 49 days */
    uint32_t request_count;            /* begun on this connection */
    int64_t unstored_bytes;            /* memory of `out` that waits for the writer */
    int64_t sent_bytes;                /* that the socket has taken since the connection was opened */
    const void *listener;              /* opaque to this layer */
    struct oribi_channel *channel;     /* owned; NULL for a client's own connection */
    struct oribi_transport *transport; /* owned; NULL: the socket itself. Set before oribi_conn_start() */
    uint8_t state;
    bool closes : 1;    /* close when the output is drained */
    bool lingers : 1;   /* before closing, read and drop what the peer still sends */
    bool is_posted : 1; /* on the list of posted_next */
    bool broken : 1;    /* writing failed: no more bytes can be sent */
    bool unstored : 1;  /* unstored_bytes > 0: until then the exchange of a finished answer stays */
    bool claimed : 1;   /* queued, but not for a call */
    bool lost : 1;      /* the application has closed the descriptor: its number is not ours to close */
    /* the first bytes are a PROXY header, and replace addr and port; set before oribi_conn_start() */
    bool proxy_awaited : 1;
    bool proxy_tls : 1; /* the PROXY header said that the client speaks TLS */
    bool moving_in : 1; /* the bytes being parsed came from another worker, which has sent the interim answer */
    uint8_t addr_len;
    uint8_t port_len;
    char addr[ORIBI_CONN_ADDR_CAP]; /* numeric text of the peer; empty for unix sockets */
    char port[ORIBI_CONN_PORT_CAP];
};

/* Takes fd (non-blocking) and makes it a connection of the reactor. NULL when memory is out (fd closed). The caller
 * fills in the peer's address and then calls oribi_conn_start(). */
struct oribi_conn *oribi_conn_open(struct oribi_reactor *reactor, int fd, const void *listener);

/* Makes a connection that was just opened, and has its transport, the channel of this number. False: no memory, it is
 * closed. */
bool oribi_conn_be_channel(struct oribi_reactor *reactor, struct oribi_conn *conn, uint16_t number);

/* Reads at once, before any registration: data has usually arrived with the connection, and a connection that is
 * answered and closed right away never costs an epoll_ctl. The connection may be queued or closed when this returns. */
void oribi_conn_start(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Sends or queues these bytes, in order. Borrows vec. 0; ORIBI_ECLOSED, ORIBI_ENOMEM, ORIBI_ESYS: the connection is
 * broken, end it with oribi_conn_finish() or oribi_conn_abort(). `more`: more bytes follow at once (a corked send). */
int oribi_conn_send(struct oribi_reactor *reactor, struct oribi_conn *conn, const struct iovec *vec, size_t count,
                    bool more);

/* Sends or queues [offset, offset+len) of a regular file, behind what was sent before. Borrows fd. Results as
 * oribi_conn_send(); ORIBI_ESYS too when the file is shorter: the connection is broken, so that its end tells the peer
 * that bytes are missing. Where that shows only later, the connection is closed then. */
int oribi_conn_send_file(struct oribi_reactor *reactor, struct oribi_conn *conn, int fd, int64_t offset, int64_t len);

/* Gives [offset, offset+len) of a regular file, with which an answer ends, to the other side of a connection that reads
 * files by itself (struct oribi_transport: give_file). Borrows fd. False: it is to be sent. */
bool oribi_conn_give_file(struct oribi_reactor *reactor, struct oribi_conn *conn, int fd, int64_t offset, int64_t len);

/* Text, and behind it `len` bytes of a file from `offset` on; either may be empty. */
struct oribi_piece {
    struct iovec text;
    int64_t offset;
    int64_t len;
};

/* Sends or queues pieces of one file with text before, between and behind them, in order: the parts of a
 * multipart/byteranges, or a head with its file. Borrows fd (any number where no piece has bytes of the file), the
 * pieces and their texts; one copy of the descriptor is kept where the socket does not take all. Results as
 * oribi_conn_send_file(). */
int oribi_conn_send_pieces(struct oribi_reactor *reactor, struct oribi_conn *conn, int fd,
                           const struct oribi_piece *pieces, size_t count);

/* Sends or queues pieces of a source, as oribi_conn_send_pieces() does those of a file. Borrows the source, and retains
 * its owner where the socket does not take all. ORIBI_ESYS too when the file is not what the source says. */
int oribi_conn_send_source(struct oribi_reactor *reactor, struct oribi_conn *conn, const struct oribi_source *source,
                           const struct oribi_piece *pieces, size_t count);

/* While a request is called: has the loop tell of a client that leaves, also of a connection that was not watched yet.
 * False: it cannot, look at the socket. Closes nothing. */
bool oribi_conn_tells_leaving(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* Bytes queued and not yet sent. */
int64_t oribi_conn_pending(const struct oribi_conn *conn);

/* Size of the file that queued bytes went to, see oribi_out_in_temp_file(). */
int64_t oribi_conn_in_temp_file(const struct oribi_conn *conn);

/* Tries to send the queued bytes. 0: none are left; ORIBI_AGAIN; ORIBI_ECLOSED. */
int oribi_conn_flush(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* While a request is called and its output waits: has the loop tell when the socket takes more (watch.ready), and arms
 * the write timeout, at which the connection closes unless its peer reads. Again after each oribi_conn_flush() that
 * left some. */
void oribi_conn_await_room(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* The answer is complete: gives the exchange back and goes on to the next request, or closes once the output is
 * drained. */
void oribi_conn_finish(struct oribi_reactor *reactor, struct oribi_conn *conn, bool closes);

/* Ends the connection at once. `reset`: with a reset, so that the peer cannot take a close-delimited answer for
 * complete. */
void oribi_conn_abort(struct oribi_reactor *reactor, struct oribi_conn *conn, bool reset);

/* Answers a request that will not be called (its head or body takes more than the budget has left, it is queued, or it
 * was just popped) with 503 and Retry-After, and closes. `refusal` has the limit, `text` is for the log. */
void oribi_conn_refuse_busy(struct oribi_reactor *reactor, struct oribi_conn *conn, uint32_t retry_after_s,
                            enum oribi_refusal refusal, const char *text);

/* Withdraws the socket from the reactor: gives the descriptor, and what was read behind the request in *rest
 * (borrowed until oribi_conn_release()). ORIBI_ECLOSED when writing has failed. Output must have been drained. */
int oribi_conn_withdraw(struct oribi_reactor *reactor, struct oribi_conn *conn, struct oribi_slice *rest);

/* Forgets a withdrawn connection; its descriptor stays open and is the caller's. */
void oribi_conn_release(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* The bytes that oribi_conn_withdraw() would give, while a request is called. Borrowed until the call ends. */
struct oribi_slice oribi_conn_behind(const struct oribi_conn *conn);

/* --- moving a connection to another process (conn_move.c) --- */

/* True while another process can read everything once more that was read from the connection and not answered: it is
 * idle, in a head or queued, has no output, and its wire bytes are still there. */
bool oribi_conn_movable(const struct oribi_conn *conn);

enum { ORIBI_WIRE_VECS_MAX = 9 };

/* The bytes that travel. A chunked body is framed anew, as one chunk without extensions; a chunked body in a file
 * travels beside an empty chunked body. */
struct oribi_wire {
    struct iovec vec[ORIBI_WIRE_VECS_MAX];
    size_t count;
    int body_fd;      /* the file with the request's body, or -1 */
    int64_t body_len; /* its length */
    char chunk_head[ORIBI_CHUNK_HEAD_CAP];
};

/* Gives those bytes, which are borrowed until the connection changes. Allocates nothing. */
void oribi_conn_wire(const struct oribi_conn *conn, struct oribi_wire *wire);

/* Puts a body that was taken apart together again, in three steps, of which the second needs no reactor: books the file
 * (false: buffers_file_max is used up); oribi_parts_join(); and puts the file in the place of the parts (takes fd; -1:
 * there is none, and nothing changes). */
bool oribi_conn_may_join(struct oribi_reactor *reactor, struct oribi_conn *conn);
void oribi_conn_joined(struct oribi_reactor *reactor, struct oribi_conn *conn, int fd);

/* Moves the body of a queued request from memory to a file, so that fewer bytes travel; one that was taken apart is
 * put together. 0, also when there is nothing to move; ORIBI_ELIMIT (buffers_file_max), ORIBI_EFULL or ORIBI_ESTORE:
 * nothing has changed. */
int oribi_conn_spool(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* The connection has arrived in another process: closes our descriptor and forgets the connection. */
void oribi_conn_leave(struct oribi_reactor *reactor, struct oribi_conn *conn);

/* In the receiving process, after oribi_conn_open() and setting the peer's address: reads these bytes as if they came
 * from the socket. Takes body_fd. `complete_us` is when the request in them was complete, 0 when there is none. The
 * connection may be queued or closed when this returns. */
void oribi_conn_resume(struct oribi_reactor *reactor, struct oribi_conn *conn, struct oribi_slice bytes, int body_fd,
                       int64_t body_len, int64_t complete_us);

#endif
