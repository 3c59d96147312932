/* A connection to Redis that never gives a wrong answer: it counts the replies that it is owed, and closes rather than
 * let a reply be taken for another's. Blocking, with time limits; one operation at a time, one thread at a time.
 *
 *     int failed = oribi_redis_conn_begin(&conn);            // or ORIBI_ECLOSED: connect, and begin again
 *     ... commands into conn.out by writer.h ...
 *     failed = oribi_redis_conn_send(&conn, replies, quiet);
 *     ... oribi_redis_conn_next() until `replies` replies have ended ...
 *     oribi_redis_conn_end(&conn);
 *
 * An operation that is left before its end, by an error of these functions or by the caller's own exception, leaves the
 * connection busy. The next oribi_redis_conn_begin() sees that and closes it: replies that are still under way belong
 * to nobody. A process that was forked closes its copy of the descriptor and nothing else.
 *
 * Waiting is the caller's where it likes, and so are encrypted connections: struct oribi_redis_transport. A command
 * over a plain socket is four system calls: getpid(2), a look whether anything came unasked (spared right behind
 * another command), send(2), and a recv(2) that waits. */
#ifndef ORIBI_REDIS_CONN_H
#define ORIBI_REDIS_CONN_H

#include "oribi/redis/place.h"
#include "oribi/redis/reader.h"
#include "oribi/redis/writer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

enum {
    ORIBI_REDIS_READ_BYTES = 64 * 1024,     /* asked of the kernel at a time */
    ORIBI_REDIS_PROGRESS_BYTES = 64 * 1024, /* what has to come within the time limit for it to begin anew */
    ORIBI_REDIS_ERRORS_KEPT = 16,           /* errors of quiet commands whose text is kept; the others are counted */
    ORIBI_REDIS_ERROR_BYTES = 256,          /* of each of these texts */
    ORIBI_REDIS_WHY_BYTES = 256,            /* of what oribi_redis_conn_why() says */
    ORIBI_REDIS_QUIET_MAX = 10000,          /* replies of quiet commands unread: begin() waits for them */
    ORIBI_REDIS_BACKLOG_MAX = 64 * 1024 * 1024, /* replies read while a pipeline is still being sent */
    ORIBI_REDIS_NO_LIMIT = 0,                   /* of a time limit in milliseconds */
    ORIBI_REDIS_SLICE_MS = 1000,                /* of a wait: a signal that came just before one is seen after this */
};

struct oribi_redis_conn;

enum oribi_redis_conn_state {
    ORIBI_REDIS_CLOSED, /* no descriptor */
    ORIBI_REDIS_IDLE,   /* owed nothing but quiet replies */
    ORIBI_REDIS_BUSY,   /* within an operation, or left in one */
};

/* How bytes come and go. A member that is NULL is that of plain sockets, oribi_redis_socket_*(), which a hook of one's
 * own may call, for example with a lock of the language given up. Hooks may run the language, and leave by an exception
 * (longjmp too): the connection is then busy, and closed when it is used next. They must not use the connection.
 *
 * All return ORIBI_AGAIN when nothing happened (a signal, or the time is up): the caller looks at its own clock and
 * asks again; ORIBI_ECLOSED when the peer has closed or reset; or any other error, which ends the operation, after
 * oribi_redis_conn_fail() has said why. */
struct oribi_redis_transport {
    /* Reads into pieces[0, n). Waits at most timeout_ms; 0: not at all. Returns bytes, > 0. */
    ssize_t (*receive)(struct oribi_redis_conn *conn, const struct iovec *pieces, int n, int timeout_ms);
    /* Writes what can be written without waiting. Returns bytes, > 0. */
    ssize_t (*send)(struct oribi_redis_conn *conn, const struct iovec *pieces, int n);
    /* Waits until there is room to send, or with for_read something to read, at most timeout_ms. Returns 0. */
    int (*wait)(struct oribi_redis_conn *conn, bool for_read, int timeout_ms);
    /* Closes conn->fd and what belongs to it. quiet: not a byte may be sent, another process uses the connection. */
    void (*close)(struct oribi_redis_conn *conn, bool quiet);
};

/* All zero, then oribi_redis_conn_init(). */
struct oribi_redis_conn {
    /* The caller's to set, any time between operations: */
    int64_t connect_ms, read_ms, write_ms;         /* time limits; ORIBI_REDIS_NO_LIMIT */
    const struct oribi_redis_transport *transport; /* NULL: a plain socket */
    void *context;                                 /* of the transport */
    bool follows; /* only a master is wanted: after an error of one that is none (oribi_redis_not_master()), also to a
                     quiet command, the next begin() closes */

    /* Commands that oribi_redis_conn_send() will send. It empties this. */
    struct oribi_buf out;

    /* To be read: */
    enum oribi_redis_conn_state state;
    int fd;          /* -1 when closed */
    uint64_t owed;   /* replies to come that the caller will ask for */
    uint64_t quiet;  /* replies to come before those that nobody will ask for */
    bool subscribed; /* the caller's to set: arrays are pushes too (RESP2), errors are told, and for SUBSCRIBE and
                        UNSUBSCRIBE nothing is owed */
    bool sent;       /* a byte of the operation left: it may have been executed */
    bool left;       /* such an error came: the next begin() closes */

    /* Errors of quiet commands since oribi_redis_conn_forget_errors(). */
    uint64_t quiet_errors;
    uint32_t errors_kept;
    char errors[ORIBI_REDIS_ERRORS_KEPT][ORIBI_REDIS_ERROR_BYTES]; /* NUL-terminated */

    /* Private. */
    struct oribi_redis_reader reader;
    pid_t pid;
    int64_t deadline_ms; /* of the reply that is awaited; 0: none is */
    size_t progress;     /* bytes since it was set */
    int timeout_ms;      /* SO_RCVTIMEO of the socket */
    int64_t begun_ms;    /* the last operation */
    bool in_push;        /* its first event was told and its last was not */
    bool in_reply;       /* the same of a reply */
    bool has_held;       /* held: the beginning of a push that begin() met and next() will tell */
    struct oribi_redis_event held;
    char why[ORIBI_REDIS_WHY_BYTES];
};

void oribi_redis_conn_init(struct oribi_redis_conn *conn, uint64_t string_max);

/* Closes and frees. */
void oribi_redis_conn_deinit(struct oribi_redis_conn *conn);

/* Opens a socket to the place, within connect_ms for all of its addresses, which are tried in turn (name resolution,
 * getaddrinfo(3), is not counted and cannot be interrupted). A closed one only. Waits by poll(2), not by the transport;
 * a signal does not end that. Returns 0 with the state IDLE, ORIBI_ETIMEOUT or ORIBI_ESYS. TLS and HELLO are the
 * caller's, as its first operation. */
int oribi_redis_conn_connect(struct oribi_redis_conn *conn, const struct oribi_redis_place *place);

/* Takes over a connected, blocking descriptor. It is closed by oribi_redis_conn_close(). */
void oribi_redis_conn_attach(struct oribi_redis_conn *conn, int fd);

/* Begins an operation. 0: the connection is idle, its peer was there a moment ago, and nothing that nobody asked for
 * has come. 1: the same, but something has come: pushes, which are to be read first (oribi_redis_conn_push() until it
 * gives 0); the connection is busy then until oribi_redis_conn_end(). Right behind another operation, up to 2 ms after
 * its beginning, only what has been read already is looked at. ORIBI_ECLOSED: not connected, left in an operation,
 * another process's, to be left (follows), or closed by the peer; it is closed now, and nothing was sent: connect, and
 * begin again. ORIBI_EBAD: a reply that nobody asked for; closed as well. Waits only where ORIBI_REDIS_QUIET_MAX
 * replies of quiet commands or more are unread: for these, within the time limits of next(); ORIBI_ETIMEOUT then. */
int oribi_redis_conn_begin(struct oribi_redis_conn *conn);

/* Sends conn->out, then pieces[0, n) if there are any (conn->out then holds what stands before the first piece; see
 * oribi_redis_argument_head()), within write_ms without progress. `replies`: how many commands they are whose replies
 * the caller reads; `quiet`: how many before them nobody reads. Errors: ORIBI_ETIMEOUT, ORIBI_ECLOSED, ORIBI_ESYS,
 * ORIBI_ENOMEM, or the transport's; all of them close the connection, and conn->sent tells whether a byte left.
 * Replies that come meanwhile are read, so that a server that waits for us to read does not stop both. */
int oribi_redis_conn_send(struct oribi_redis_conn *conn, uint64_t quiet, uint64_t replies);
int oribi_redis_conn_send_pieces(struct oribi_redis_conn *conn, const struct iovec *pieces, size_t n, uint64_t quiet,
                                 uint64_t replies);

/* The next event of a reply or a push, after reading what is needed; replies of quiet commands are passed over first,
 * their errors counted. event->kind is PUSH at the beginning of a push; a push is no reply and does not count. The time
 * limit is read_ms for each reply, and begins anew whenever ORIBI_REDIS_PROGRESS_BYTES have come; a push does not do
 * that while a reply is owed.
 * Errors close the connection: ORIBI_ETIMEOUT; ORIBI_ECLOSED; ORIBI_EBAD and ORIBI_ELIMIT (see reader.h; also a reply
 * when none is owed); ORIBI_ENOMEM; ORIBI_ESYS; what the transport returned. */
int oribi_redis_conn_next(struct oribi_redis_conn *conn, struct oribi_redis_event *event);

/* The bytes of the LONG string that was told last, event.count of them, straight to p. Errors as above. May be called
 * in parts: n is at most what is left. */
int oribi_redis_conn_body(struct oribi_redis_conn *conn, char *p, size_t n);

/* Ends an operation whose replies have all been read: the connection is idle. */
void oribi_redis_conn_end(struct oribi_redis_conn *conn);

/* Reads what quiet commands are still owed, within an operation that owes nothing else. 0: all of it was read; 1: a
 * push came first, and *event is its beginning: read it, and call again. Errors as of next(). */
int oribi_redis_conn_settle(struct oribi_redis_conn *conn, struct oribi_redis_event *event);
void oribi_redis_conn_forget_errors(struct oribi_redis_conn *conn);

/* 1: a push has come, or its beginning; oribi_redis_conn_next() reads it. 0: none has. Negative: ORIBI_EBAD for a reply
 * that nobody asked for, or the errors of next(). Does not wait. Only between replies. */
int oribi_redis_conn_push(struct oribi_redis_conn *conn);

/* Closes, from any state; what was owed is forgotten. In another process than the one that connected nothing is sent.
 * */
void oribi_redis_conn_close(struct oribi_redis_conn *conn);

/* A line on the last error, for people: never NULL, "" when there was none. fail() sets it, for hooks. */
const char *oribi_redis_conn_why(const struct oribi_redis_conn *conn);
__attribute__((format(printf, 2, 3))) void oribi_redis_conn_fail(struct oribi_redis_conn *conn, const char *format,
                                                                 ...);

/* Those of plain sockets (socket.c): recvmsg(2) with SO_RCVTIMEO, sendmsg(2), poll(2), close(2). */
ssize_t oribi_redis_socket_receive(struct oribi_redis_conn *conn, const struct iovec *pieces, int n, int timeout_ms);
ssize_t oribi_redis_socket_send(struct oribi_redis_conn *conn, const struct iovec *pieces, int n);
int oribi_redis_socket_wait(struct oribi_redis_conn *conn, bool for_read, int timeout_ms);
void oribi_redis_socket_close(struct oribi_redis_conn *conn, bool quiet);

#endif
