/* Events while the core waits: Perl's signal handlers run, which may die and so leave the core's frames; the connection
 * stays busy then and is closed (exchange.c). And TLS, which is IO::Socket::SSL's over the core's descriptor. */
#include "xs/redis.h"

#include <errno.h>
#include <poll.h>

/* Perl runs handlers between its own operations only, so they are asked for before each wait and after it. */
static void run_signals(pTHX)
{
    if (PL_sig_pending)
        PERL_ASYNC_CHECK();
}

/* Hooks of plain connections (oribi/redis/conn.h). A signal ends the core's wait with ORIBI_AGAIN. */
static ssize_t receive(struct oribi_redis_conn *conn, const struct iovec *pieces, int n, int timeout_ms)
{
    dTHX;
    if (timeout_ms)
        run_signals(aTHX);
    ssize_t got = oribi_redis_socket_receive(conn, pieces, n, timeout_ms);
    if (got == ORIBI_AGAIN && timeout_ms)
        run_signals(aTHX);
    return got;
}

static int wait_to_send(struct oribi_redis_conn *conn, bool for_read, int timeout_ms)
{
    dTHX;
    run_signals(aTHX);
    int code = oribi_redis_socket_wait(conn, for_read, timeout_ms);
    run_signals(aTHX);
    return code;
}

const struct oribi_redis_transport redis_plain = {.receive = receive, .wait = wait_to_send};

/* Waits for a descriptor, for a slice of the time or until a signal comes. */
static void wait_for(pTHX_ int fd, short events, int timeout_ms)
{
    run_signals(aTHX);
    struct pollfd watched = {.fd = fd, .events = events};
    (void)poll(&watched, 1, timeout_ms < REDIS_SLICE_MS ? timeout_ms : REDIS_SLICE_MS); /* the caller asks again */
    run_signals(aTHX);
}

void redis_wait_readable(pTHX_ const struct redis_client *c, int timeout_ms)
{
    wait_for(aTHX_ c->conn.fd, POLLIN, timeout_ms);
}

void redis_pause(pTHX_ int64_t ms)
{
    int64_t until_ms = oribi_clock_ms() + ms;
    for (int64_t left = ms; left > 0; left = until_ms - oribi_clock_ms()) {
        run_signals(aTHX);
        (void)poll(NULL, 0, left < REDIS_SLICE_MS ? (int)left : REDIS_SLICE_MS); /* time is looked at anew */
    }
    run_signals(aTHX);
}

/* Calls a function of Oribi::Redis::TLS with the handle and an argument. Gives its result, mortal. */
static SV *call_tls(pTHX_ const char *name, SV *handle, SV *argument, I32 flags)
{
    dSP;
    PUSHMARK(SP);
    EXTEND(SP, 2);
    PUSHs(handle);
    PUSHs(argument);
    PUTBACK;
    int count = call_pv(name, G_SCALAR | flags);
    SPAGAIN;
    SV *result = count == 1 ? POPs : &PL_sv_undef;
    PUTBACK;
    return result;
}

enum { WANTS_READ = -1, WANTS_WRITE = -2, AT_END = 0 };

/* A number of bytes, or one of these; or a text. */
static ssize_t outcome(pTHX_ struct oribi_redis_conn *conn, SV *result, short *events)
{
    IV number = looks_like_number(result) ? SvIV(result) : WANTS_WRITE - 1;
    *events = number == WANTS_WRITE ? POLLOUT : POLLIN;
    if (number == WANTS_READ || number == WANTS_WRITE)
        return ORIBI_AGAIN;
    if (number > 0)
        return number;
    if (number == AT_END)
        oribi_redis_conn_fail(conn, "the server closed the connection");
    else
        oribi_redis_conn_fail(conn, "TLS: %.200s", SvPV_nolen(result));
    return number == AT_END ? ORIBI_ECLOSED : ORIBI_ESYS;
}

static ssize_t tls_read(pTHX_ struct redis_client *c, const struct iovec *piece, short *events)
{
    ENTER;
    SAVETMPS;
    SV *result = call_tls(aTHX_ "Oribi::Redis::TLS::get", c->tls, sv_2mortal(newSVuv(piece->iov_len)), 0);
    ssize_t code;
    if (SvROK(result)) { /* a reference to what was read, so many bytes at most */
        STRLEN got;
        const char *from = SvPV(SvRV(result), got);
        code = (ssize_t)(got < piece->iov_len ? got : piece->iov_len);
        memcpy(piece->iov_base, from, (size_t)code);
    } else {
        code = outcome(aTHX_ & c->conn, result, events);
    }
    FREETMPS;
    LEAVE;
    return code;
}

static ssize_t tls_receive(struct oribi_redis_conn *conn, const struct iovec *pieces, int n, int timeout_ms)
{
    dTHX;
    struct redis_client *c = conn->context;
    short events;
    ssize_t got = tls_read(aTHX_ c, pieces, &events);
    if (got != ORIBI_AGAIN || timeout_ms == 0)
        return got;
    wait_for(aTHX_ conn->fd, events, timeout_ms);
    return tls_read(aTHX_ c, pieces, &events);
}

static ssize_t tls_send(struct oribi_redis_conn *conn, const struct iovec *pieces, int n)
{
    dTHX;
    struct redis_client *c = conn->context;
    enum { RECORD_BYTES = 16384 };
    ENTER;
    SAVETMPS;
    size_t size = pieces[0].iov_len < RECORD_BYTES ? pieces[0].iov_len : RECORD_BYTES;
    SV *bytes = newSVpvn_flags(pieces[0].iov_base, size, SVs_TEMP);
    short events;
    ssize_t code = outcome(aTHX_ conn, call_tls(aTHX_ "Oribi::Redis::TLS::put", c->tls, bytes, 0), &events);
    FREETMPS;
    LEAVE;
    return code;
}

static void tls_close(struct oribi_redis_conn *conn, bool quiet)
{
    dTHX;
    struct redis_client *c = conn->context;
    SV *tls = c->tls;
    c->tls = NULL;
    conn->transport = &redis_plain;
    oribi_redis_socket_close(conn, quiet); /* the handle has a copy */
    if (PL_dirty)                          /* perl ends: its code may be gone */
        return;
    ENTER;
    SAVETMPS;
    (void)call_tls(aTHX_ "Oribi::Redis::TLS::stop", tls, boolSV(quiet), G_EVAL | G_KEEPERR);
    SvREFCNT_dec(tls);
    FREETMPS;
    LEAVE;
}

static const struct oribi_redis_transport TLS = {
    .receive = tls_receive, .send = tls_send, .wait = wait_to_send, .close = tls_close};

/* Encrypts the connection that was just made. 0, or ORIBI_ESYS. */
int redis_start_tls(pTHX_ struct redis_client *c)
{
    int code = 0;
    ENTER;
    SAVETMPS;
    SV *self = sv_2mortal(newRV_inc((SV *)c->self));
    SV *tls = call_tls(aTHX_ "Oribi::Redis::TLS::start", self, sv_2mortal(newSViv(c->conn.fd)), 0);
    if (SvROK(tls)) {
        c->tls = SvREFCNT_inc_simple_NN(tls);
        c->conn.transport = &TLS;
    } else {
        oribi_redis_conn_fail(&c->conn, "TLS: %.200s", SvPV_nolen(tls));
        code = ORIBI_ESYS;
    }
    FREETMPS;
    LEAVE;
    return code;
}

static struct oribi_slice text_of(const char *text)
{
    return oribi_slice(text, strlen(text));
}

/* Where the master is, over the connection that will be the master's; closed again behind each Sentinel. 0, or
 * ORIBI_ESYS. */
int redis_ask_sentinels(pTHX_ struct redis_client *c)
{
    struct redis_sentinels *sentinels = c->options.sentinels;
    struct oribi_redis_asking asking;
    struct oribi_redis_place place;
    c->conn.read_ms = c->options.read_ms;
    oribi_redis_asking_begin(&asking, &sentinels->list, text_of(sentinels->service));
    while (oribi_redis_asking_next(&asking, &place)) {
        run_signals(aTHX);
        int code = oribi_redis_conn_connect(&c->conn, &place);
        code = oribi_redis_asking_ask(&asking, &c->conn, code, text_of(sentinels->user), text_of(sentinels->password),
                                      &c->options.place);
        oribi_redis_conn_close(&c->conn);
        if (code == 0)
            return 0;
    }
    oribi_redis_conn_fail(&c->conn, "%s", asking.why);
    return ORIBI_ESYS;
}
