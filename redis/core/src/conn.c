/* A connection that counts the replies it is owed; the plain socket is socket.c. Reading order: failed, fill,
 * pass_over, send, next, body. */
#include "oribi/redis/conn.h"

#include "oribi/base/clock.h"
#include "oribi/redis/retry.h"

#include <assert.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECES_MAX = 64,         /* of one sendmsg(2) */
    KEEP_BYTES = 256 * 1024, /* a longer buffer of commands is given back */
    DISCARD_BYTES = 4096,
    LOOK_AFTER_MS = 2, /* operations that follow each other faster spare that recv(2), 5 % of a GET */
};

/* --- the transport, and what it says --- */

static const struct oribi_redis_transport plain = {.receive = oribi_redis_socket_receive,
                                                   .send = oribi_redis_socket_send,
                                                   .wait = oribi_redis_socket_wait,
                                                   .close = oribi_redis_socket_close};

#define HOOK(conn, name) ((conn)->transport && (conn)->transport->name ? (conn)->transport->name : plain.name)

void oribi_redis_conn_fail(struct oribi_redis_conn *conn, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(conn->why, sizeof(conn->why), format, arguments);
    va_end(arguments);
}

const char *oribi_redis_conn_why(const struct oribi_redis_conn *conn)
{
    return conn->why;
}

/* --- opening and closing --- */

void oribi_redis_conn_init(struct oribi_redis_conn *conn, uint64_t string_max)
{
    memset(conn, 0, sizeof(*conn));
    conn->fd = -1;
    oribi_redis_reader_init(&conn->reader, string_max, 0);
}

void oribi_redis_conn_deinit(struct oribi_redis_conn *conn)
{
    oribi_redis_conn_close(conn);
    oribi_redis_reader_deinit(&conn->reader);
    oribi_buf_deinit(&conn->out);
}

void oribi_redis_conn_attach(struct oribi_redis_conn *conn, int fd)
{
    assert(conn->state == ORIBI_REDIS_CLOSED && fd >= 0);
    conn->fd = fd;
    conn->pid = getpid();
    conn->timeout_ms = 0;
    conn->begun_ms = 0;
    conn->left = false;
    conn->state = ORIBI_REDIS_IDLE;
    conn->why[0] = '\0';
}

void oribi_redis_conn_close(struct oribi_redis_conn *conn)
{
    if (conn->state == ORIBI_REDIS_CLOSED)
        return;
    /* Closed before the hook is called: it may leave by an exception. */
    conn->state = ORIBI_REDIS_CLOSED;
    conn->owed = conn->quiet = 0;
    conn->subscribed = conn->in_push = conn->in_reply = conn->has_held = false;
    conn->deadline_ms = 0;
    conn->out.len = 0;
    oribi_redis_reader_reset(&conn->reader);
    HOOK(conn, close)(conn, conn->pid != getpid());
    conn->fd = -1;
}

/* An operation ends with this error, and the connection with it. */
static int failed(struct oribi_redis_conn *conn, int error)
{
    oribi_redis_conn_close(conn);
    return error;
}

/* --- reading --- */

/* Time that the transport is told to wait: the rest of the time limit, in slices. */
static int slice_ms(int64_t until_ms, int64_t now_ms)
{
    int64_t left = until_ms ? until_ms - now_ms : INT_MAX;
    return left > ORIBI_REDIS_SLICE_MS ? ORIBI_REDIS_SLICE_MS : left < 1 ? 1 : (int)left;
}

/* Waits for bytes: those of a string to p[0, n) first, n may be 0, what is more into the reader. */
static int fill(struct oribi_redis_conn *conn, char *p, size_t n)
{
    size_t room;
    char *in = oribi_redis_room(&conn->reader, ORIBI_REDIS_READ_BYTES, &room);
    if (!in) {
        oribi_redis_conn_fail(conn, "out of memory");
        return failed(conn, ORIBI_ENOMEM);
    }
    int64_t now_ms = conn->read_ms ? oribi_clock_ms() : 0;
    if (conn->deadline_ms == 0 && conn->read_ms) {
        conn->deadline_ms = now_ms + conn->read_ms;
        conn->progress = 0;
    }
    struct iovec pieces[2] = {{.iov_base = p, .iov_len = n}, {.iov_base = in, .iov_len = room}};
    for (;;) {
        /* Bytes that are there already may have come in time; a byte now and then is not waited for. */
        bool late = conn->deadline_ms && now_ms >= conn->deadline_ms;
        ssize_t got =
            HOOK(conn, receive)(conn, pieces + (n == 0), 1 + (n > 0), late ? 0 : slice_ms(conn->deadline_ms, now_ms));
        if (got > 0) {
            size_t apart = (size_t)got < n ? (size_t)got : n;
            if (apart > 0)
                oribi_redis_skip_body(&conn->reader, apart);
            oribi_redis_got(&conn->reader, (size_t)got - apart);
            conn->progress += (size_t)got;
            if (conn->progress >= ORIBI_REDIS_PROGRESS_BYTES)
                conn->deadline_ms = 0;
            return 0;
        }
        if (got != ORIBI_AGAIN)
            return failed(conn, (int)got);
        if (!conn->deadline_ms)
            continue;
        now_ms = oribi_clock_ms();
        if (now_ms >= conn->deadline_ms) {
            oribi_redis_conn_fail(conn, "no reply within %lld ms", (long long)conn->read_ms);
            return failed(conn, ORIBI_ETIMEOUT);
        }
    }
}

/* Reads what is there, without waiting. 1: something came; 0: nothing; or an error, without closing. */
static int look(struct oribi_redis_conn *conn)
{
    size_t room;
    char *in = oribi_redis_room(&conn->reader, ORIBI_REDIS_READ_BYTES, &room);
    if (!in)
        return ORIBI_ENOMEM;
    struct iovec piece = {.iov_base = in, .iov_len = room};
    ssize_t got = HOOK(conn, receive)(conn, &piece, 1, 0);
    if (got > 0)
        oribi_redis_got(&conn->reader, (size_t)got);
    return got > 0 ? 1 : got == ORIBI_AGAIN ? 0 : (int)got;
}

static int read_wrong(struct oribi_redis_conn *conn, int error)
{
    oribi_redis_conn_fail(conn, "%s", conn->reader.why);
    return failed(conn, error);
}

static int unasked(struct oribi_redis_conn *conn)
{
    oribi_redis_conn_fail(conn, "a reply came that nobody asked for");
    return failed(conn, ORIBI_EBAD);
}

static void count_error(struct oribi_redis_conn *conn, struct oribi_slice text)
{
    conn->quiet_errors++;
    if (conn->errors_kept == ORIBI_REDIS_ERRORS_KEPT)
        return;
    size_t n = text.n < ORIBI_REDIS_ERROR_BYTES ? text.n : ORIBI_REDIS_ERROR_BYTES - 1;
    memcpy(conn->errors[conn->errors_kept], text.p, n);
    conn->errors[conn->errors_kept++][n] = '\0';
}

void oribi_redis_conn_forget_errors(struct oribi_redis_conn *conn)
{
    conn->quiet_errors = conn->errors_kept = 0;
}

/* The bytes of a LONG string that nobody wants, as far as they have come. */
static void discard(struct oribi_redis_conn *conn)
{
    char scratch[DISCARD_BYTES];
    while (oribi_redis_take(&conn->reader, scratch, sizeof(scratch)) > 0)
        continue;
}

/* An event of what has come. 1: *event is the caller's; 0: it belonged to a quiet command, and was passed over. */
static int sort(struct oribi_redis_conn *conn, struct oribi_redis_event *event)
{
    bool first = !conn->in_reply && !conn->in_push;
    if (first && (event->kind == ORIBI_REDIS_PUSH || (conn->subscribed && event->kind == ORIBI_REDIS_ARRAY))) {
        event->kind = ORIBI_REDIS_PUSH;
        conn->in_push = true;
    }
    if (conn->in_push) {
        conn->in_push = !event->ends;
        /* The time limit of a reply that is awaited goes on: a server may push for ever, and never answer. */
        if (event->ends && conn->quiet == 0 && conn->owed == 0)
            conn->deadline_ms = 0;
        return 1;
    }
    if (first && conn->subscribed && event->kind == ORIBI_REDIS_ERROR)
        return 1;
    if (conn->quiet == 0 && conn->owed == 0)
        return unasked(conn);
    if (first && conn->follows && event->kind == ORIBI_REDIS_ERROR)
        conn->left |= oribi_redis_not_master(event->text);
    bool mine = conn->quiet == 0;
    conn->in_reply = !event->ends;
    if (event->ends) {
        conn->deadline_ms = 0;
        --*(mine ? &conn->owed : &conn->quiet);
    }
    if (mine)
        return 1;
    if (first && event->kind == ORIBI_REDIS_ERROR)
        count_error(conn, event->text);
    if (event->kind == ORIBI_REDIS_LONG)
        discard(conn);
    return 0;
}

/* The next event that is the caller's, of what has come: 1; ORIBI_AGAIN; errors, closed then. */
static int have(struct oribi_redis_conn *conn, struct oribi_redis_event *event)
{
    for (;;) {
        if (oribi_redis_body_left(&conn->reader) > 0) { /* of a quiet reply */
            discard(conn);
            if (oribi_redis_body_left(&conn->reader) > 0)
                return ORIBI_AGAIN;
        }
        int found = oribi_redis_next(&conn->reader, event);
        if (found == ORIBI_AGAIN)
            return found;
        if (found != 0)
            return read_wrong(conn, found);
        int whose = sort(conn, event);
        if (whose != 0)
            return whose;
        if (conn->quiet == 0 && conn->owed == 0 && !conn->reader.in_body)
            return ORIBI_AGAIN; /* what comes next is a push, or unasked for */
    }
}

int oribi_redis_conn_next(struct oribi_redis_conn *conn, struct oribi_redis_event *event)
{
    if (conn->state == ORIBI_REDIS_CLOSED)
        return ORIBI_ECLOSED;
    if (conn->has_held) {
        *event = conn->held;
        conn->has_held = false;
        return 0;
    }
    for (;;) {
        int found = have(conn, event);
        if (found != ORIBI_AGAIN)
            return found < 0 ? found : 0;
        found = fill(conn, NULL, 0);
        if (found != 0)
            return found;
    }
}

int oribi_redis_conn_body(struct oribi_redis_conn *conn, char *p, size_t n)
{
    if (conn->state == ORIBI_REDIS_CLOSED)
        return ORIBI_ECLOSED;
    assert(n <= oribi_redis_body_left(&conn->reader));
    size_t had = oribi_redis_take(&conn->reader, p, n);
    while (had < n) {
        uint64_t before = oribi_redis_body_left(&conn->reader);
        int found = fill(conn, p + had, n - had);
        if (found != 0)
            return found;
        had += (size_t)(before - oribi_redis_body_left(&conn->reader));
    }
    while (oribi_redis_body_left(&conn->reader) == 0 && conn->reader.in_body) {
        int found = oribi_redis_body_end(&conn->reader);
        if (found == ORIBI_AGAIN)
            found = fill(conn, NULL, 0);
        else if (found != 0)
            return read_wrong(conn, found);
        if (found != 0)
            return found;
    }
    conn->deadline_ms = 0;
    return 0;
}

int oribi_redis_conn_settle(struct oribi_redis_conn *conn, struct oribi_redis_event *event)
{
    assert(conn->owed == 0);
    if (conn->has_held)
        return oribi_redis_conn_next(conn, event) == 0;
    while (conn->quiet > 0 || conn->reader.in_body) {
        int found = have(conn, event);
        if (found == 1)
            return 1;
        if (found == ORIBI_AGAIN && (conn->quiet > 0 || conn->reader.in_body))
            found = fill(conn, NULL, 0);
        if (found != 0 && found != ORIBI_AGAIN)
            return found;
    }
    return 0;
}

/* --- an operation --- */

static bool begins_push(const struct oribi_redis_conn *conn)
{
    return conn->subscribed || conn->reader.in.p[conn->reader.at] == '>' || conn->reader.in.p[conn->reader.at] == '|';
}

int oribi_redis_conn_push(struct oribi_redis_conn *conn)
{
    if (conn->state == ORIBI_REDIS_CLOSED)
        return ORIBI_ECLOSED;
    if (conn->has_held)
        return 1;
    assert(!conn->in_push && !conn->in_reply);
    if (conn->quiet > 0)
        return 0;
    if (oribi_redis_reader_idle(&conn->reader)) {
        int found = look(conn);
        if (found <= 0)
            return found < 0 ? failed(conn, found) : 0;
    }
    return begins_push(conn) ? 1 : unasked(conn);
}

int oribi_redis_conn_begin(struct oribi_redis_conn *conn)
{
    if (conn->state == ORIBI_REDIS_CLOSED || conn->state == ORIBI_REDIS_BUSY || conn->pid != getpid())
        return failed(conn, ORIBI_ECLOSED);
    if (conn->left) {
        oribi_redis_conn_fail(conn, "the server has said that it is no master");
        return failed(conn, ORIBI_ECLOSED);
    }
    int64_t now_ms = oribi_clock_ms();
    bool looks = now_ms - conn->begun_ms >= LOOK_AFTER_MS || !oribi_redis_reader_idle(&conn->reader);
    conn->begun_ms = now_ms;
    int found = 0;
    if (conn->quiet >= ORIBI_REDIS_QUIET_MAX) {
        conn->state = ORIBI_REDIS_BUSY; /* hooks may leave by an exception, and with a part of a push */
        found = oribi_redis_conn_settle(conn, &conn->held);
        conn->has_held = found == 1;
    } else if (conn->quiet == 0 && looks) {
        conn->state = ORIBI_REDIS_BUSY;
        found = oribi_redis_conn_push(conn);
    }
    if (found < 0)
        return found == ORIBI_EBAD || found == ORIBI_ETIMEOUT ? found : ORIBI_ECLOSED;
    if (found == 0)
        conn->state = ORIBI_REDIS_IDLE;
    conn->sent = false;
    conn->out.len = 0;
    return found;
}

void oribi_redis_conn_end(struct oribi_redis_conn *conn)
{
    if (conn->state == ORIBI_REDIS_CLOSED)
        return;
    assert(conn->owed == 0 && !conn->in_push && !conn->in_reply);
    conn->state = ORIBI_REDIS_IDLE;
}

/* Nothing can be sent: waits, and reads meanwhile what has come, so that the server goes on. */
static int wait_to_send(struct oribi_redis_conn *conn, int64_t until_ms)
{
    int64_t now_ms = until_ms ? oribi_clock_ms() : 0;
    if (until_ms && now_ms >= until_ms) {
        oribi_redis_conn_fail(conn, "the server took no more within %lld ms", (long long)conn->write_ms);
        return ORIBI_ETIMEOUT;
    }
    bool for_read = conn->reader.in.len - conn->reader.at < ORIBI_REDIS_BACKLOG_MAX;
    int found = HOOK(conn, wait)(conn, for_read, slice_ms(until_ms, now_ms));
    if (found == 0 && for_read)
        found = look(conn);
    return found > 0 || found == ORIBI_AGAIN ? 0 : found;
}

/* Puts the pieces from `at` on, of which `skip` bytes of the first are sent, into `now`; returns how many. */
static int pieces_from(const struct iovec *pieces, size_t n, size_t at, size_t skip, struct iovec *now)
{
    int count = 0;
    for (size_t i = at; i < n && count < PIECES_MAX; i++) {
        struct iovec one = pieces[i];
        if (i == at) {
            one.iov_base = (char *)one.iov_base + skip;
            one.iov_len -= skip;
        }
        if (one.iov_len > 0)
            now[count++] = one;
    }
    return count;
}

/* Sends all pieces, waiting at most write_ms for the server to take another byte. */
static int send_all(struct oribi_redis_conn *conn, const struct iovec *pieces, size_t n)
{
    size_t at = 0;
    size_t skip = 0;
    int64_t until_ms = 0;
    for (;;) {
        while (at < n && skip == pieces[at].iov_len) {
            at++;
            skip = 0;
        }
        if (at == n)
            return 0;
        struct iovec now[PIECES_MAX];
        int count = pieces_from(pieces, n, at, skip, now);
        ssize_t sent = HOOK(conn, send)(conn, now, count);
        if (sent == ORIBI_AGAIN) {
            if (until_ms == 0 && conn->write_ms)
                until_ms = oribi_clock_ms() + conn->write_ms;
            int found = wait_to_send(conn, until_ms);
            if (found != 0)
                return found;
            continue;
        }
        if (sent < 0)
            return (int)sent;
        conn->sent = true;
        until_ms = 0;
        for (size_t left = (size_t)sent; left > 0;) {
            size_t rest = pieces[at].iov_len - skip;
            size_t step = left < rest ? left : rest;
            skip += step;
            left -= step;
            if (skip == pieces[at].iov_len && left > 0) {
                at++;
                skip = 0;
            }
        }
    }
}

int oribi_redis_conn_send_pieces(struct oribi_redis_conn *conn, const struct iovec *pieces, size_t n, uint64_t quiet,
                                 uint64_t replies)
{
    if (conn->state == ORIBI_REDIS_CLOSED)
        return ORIBI_ECLOSED;
    assert(conn->owed == 0 || quiet == 0);
    conn->state = ORIBI_REDIS_BUSY;
    conn->quiet += quiet;
    conn->owed += replies;
    conn->deadline_ms = 0;
    struct iovec commands = {.iov_base = conn->out.p, .iov_len = conn->out.len};
    int found = send_all(conn, &commands, 1);
    if (found == 0 && n > 0)
        found = send_all(conn, pieces, n);
    conn->out.len = 0;
    if (conn->out.cap > KEEP_BYTES)
        oribi_buf_deinit(&conn->out);
    return found == 0 ? 0 : failed(conn, found);
}

int oribi_redis_conn_send(struct oribi_redis_conn *conn, uint64_t quiet, uint64_t replies)
{
    return oribi_redis_conn_send_pieces(conn, NULL, 0, quiet, replies);
}
