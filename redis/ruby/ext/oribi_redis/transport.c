/* How bytes come and go: with the VM's lock given up while a thread waits, by the scheduler where a fiber has one, and
 * by an SSLSocket. */
#include "link.h"

#include <ruby/fiber/scheduler.h>
#include <ruby/io.h>
#include <ruby/thread.h>

static struct link *link_behind(struct oribi_redis_conn *conn)
{
    return conn->context;
}

/* --- a scheduler --- */

static VALUE scheduler_of(void)
{
    return rb_fiber_scheduler_current();
}

/* Waits by the scheduler; 0, or ORIBI_AGAIN when the time is up. */
static int wait_by(VALUE scheduler, struct link *link, int events, int timeout_ms)
{
    if (NIL_P(link->waiter)) {
        VALUE io = rb_funcall(rb_cIO, rb_intern("for_fd"), 1, INT2FIX(link->conn.fd));
        rb_funcall(io, rb_intern("autoclose="), 1, Qfalse);
        RB_OBJ_WRITE(link->self, &link->waiter, io);
    }
    VALUE found = rb_fiber_scheduler_io_wait(scheduler, link->waiter, INT2FIX(events), DBL2NUM(timeout_ms / 1000.0));
    return RTEST(found) ? 0 : ORIBI_AGAIN;
}

/* --- a plain socket --- */

struct receive {
    struct oribi_redis_conn *conn;
    const struct iovec *pieces;
    int n;
    int timeout_ms;
    ssize_t got;
};

static void *receive_unlocked(void *p)
{
    struct receive *receive = p;
    receive->got = oribi_redis_socket_receive(receive->conn, receive->pieces, receive->n, receive->timeout_ms);
    return NULL;
}

static ssize_t plain_receive(struct oribi_redis_conn *conn, const struct iovec *pieces, int n, int timeout_ms)
{
    if (timeout_ms == 0)
        return oribi_redis_socket_receive(conn, pieces, n, 0);
    VALUE scheduler = scheduler_of();
    if (!NIL_P(scheduler)) {
        ssize_t got = oribi_redis_socket_receive(conn, pieces, n, 0);
        if (got == ORIBI_AGAIN)
            (void)wait_by(scheduler, link_behind(conn), RUBY_IO_READABLE, timeout_ms);
        return got == ORIBI_AGAIN ? oribi_redis_socket_receive(conn, pieces, n, 0) : got;
    }
    struct receive receive = {conn, pieces, n, timeout_ms, 0};
    rb_thread_call_without_gvl(receive_unlocked, &receive, RUBY_UBF_IO, NULL);
    if (receive.got == ORIBI_AGAIN)
        rb_thread_check_ints();
    return receive.got;
}

struct waiting {
    struct oribi_redis_conn *conn;
    bool for_read;
    int timeout_ms;
    int found;
};

static void *wait_unlocked(void *p)
{
    struct waiting *waiting = p;
    waiting->found = oribi_redis_socket_wait(waiting->conn, waiting->for_read, waiting->timeout_ms);
    return NULL;
}

static int plain_wait(struct oribi_redis_conn *conn, bool for_read, int timeout_ms)
{
    VALUE scheduler = scheduler_of();
    if (!NIL_P(scheduler))
        return wait_by(scheduler, link_behind(conn), RUBY_IO_WRITABLE | (for_read ? RUBY_IO_READABLE : 0), timeout_ms);
    struct waiting waiting = {conn, for_read, timeout_ms, 0};
    rb_thread_call_without_gvl(wait_unlocked, &waiting, RUBY_UBF_IO, NULL);
    if (waiting.found == ORIBI_AGAIN)
        rb_thread_check_ints();
    return waiting.found;
}

const struct oribi_redis_transport link_plain = {.receive = plain_receive, .wait = plain_wait};

/* --- TLS --- */

static ID id_of(const char *name)
{
    return rb_intern(name);
}

static VALUE no_exception(void)
{
    VALUE options = rb_hash_new();
    rb_hash_aset(options, ID2SYM(id_of("exception")), Qfalse);
    return options;
}

static VALUE socket_of_io(VALUE io)
{
    return rb_funcall(io, id_of("to_io"), 0);
}

static VALUE socket_of(const struct link *link)
{
    return socket_of_io(link->io);
}

static void wait_io(const struct link *link, bool for_write, int timeout_ms)
{
    rb_funcall(socket_of(link), for_write ? id_of("wait_writable") : id_of("wait_readable"), 1,
               DBL2NUM(timeout_ms / 1000.0));
}

/* Is it the result of read_nonblock or write_nonblock that says they cannot go on? */
static bool is_waiting(VALUE found, bool *for_write)
{
    *for_write = found == ID2SYM(id_of("wait_writable"));
    return *for_write || found == ID2SYM(id_of("wait_readable"));
}

/* A call of the SSLSocket. What OpenSSL and the system say of the connection (a bad record, a reset) are failures of
 * the connection, as without TLS; all other exceptions go on. */
struct asking {
    struct oribi_redis_conn *conn;
    const char *name;
    VALUE argument;
};

static VALUE ask(VALUE p)
{
    const struct asking *asking = (struct asking *)p;
    VALUE words[] = {asking->argument, no_exception()};
    return rb_funcallv_kw(link_behind(asking->conn)->io, id_of(asking->name), 2, words, RB_PASS_KEYWORDS);
}

static VALUE note_failure(VALUE p, VALUE exception)
{
    const struct asking *asking = (struct asking *)p;
    VALUE text = rb_funcall(exception, id_of("message"), 0);
    oribi_redis_conn_fail(asking->conn, "TLS: %.200s", StringValueCStr(text));
    return Qundef;
}

static VALUE ssl_error(void)
{
    return rb_path2class("OpenSSL::SSL::SSLError");
}

/* Qundef: it has failed. */
static VALUE ask_socket(struct oribi_redis_conn *conn, const char *name, VALUE argument)
{
    struct asking asking = {conn, name, argument};
    return rb_rescue2(ask, (VALUE)&asking, note_failure, (VALUE)&asking, ssl_error(), rb_eSystemCallError, rb_eIOError,
                      (VALUE)0);
}

static ssize_t tls_receive(struct oribi_redis_conn *conn, const struct iovec *pieces, int n, int timeout_ms)
{
    struct link *link = link_behind(conn);
    bool for_write;
    VALUE found = ask_socket(conn, "read_nonblock", SIZET2NUM(pieces[0].iov_len));
    if (found == Qundef)
        return ORIBI_ECLOSED;
    if (is_waiting(found, &for_write)) {
        if (timeout_ms > 0)
            wait_io(link, for_write, timeout_ms);
        return ORIBI_AGAIN;
    }
    if (NIL_P(found)) {
        oribi_redis_conn_fail(conn, "the server closed the connection");
        return ORIBI_ECLOSED;
    }
    memcpy(pieces[0].iov_base, RSTRING_PTR(found), (size_t)RSTRING_LEN(found));
    return RSTRING_LEN(found);
}

static ssize_t tls_send(struct oribi_redis_conn *conn, const struct iovec *pieces, int n)
{
    bool for_write;
    VALUE found = ask_socket(conn, "write_nonblock", rb_str_new(pieces[0].iov_base, (long)pieces[0].iov_len));
    if (found == Qundef)
        return ORIBI_ECLOSED;
    return is_waiting(found, &for_write) ? ORIBI_AGAIN : NUM2SSIZET(found);
}

static int tls_wait(struct oribi_redis_conn *conn, bool for_read, int timeout_ms)
{
    wait_io(link_behind(conn), true, timeout_ms);
    return 0;
}

static VALUE close_io(VALUE io)
{
    return rb_funcall(io, id_of("close"), 0);
}

static VALUE pass_over(VALUE nothing, VALUE exception)
{
    return Qnil; /* its end cannot be told to a server that has gone */
}

static void tls_close(struct oribi_redis_conn *conn, bool quiet)
{
    struct link *link = link_behind(conn);
    VALUE io = link->io;
    link->io = Qnil;
    if (!NIL_P(io))
        rb_rescue2(close_io, quiet ? socket_of_io(io) : io, pass_over, Qnil, ssl_error(), rb_eSystemCallError,
                   rb_eIOError, (VALUE)0);
}

const struct oribi_redis_transport link_tls = {
    .receive = tls_receive, .send = tls_send, .wait = tls_wait, .close = tls_close};
