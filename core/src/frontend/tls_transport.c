/* Records: bytes of a connection in and out of a session. OpenSSL reads from the socket and writes to memory; what one
 * call has written there leaves by one send(2). */
#include "frontend/tls_private.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <openssl/err.h>
#include <string.h>
#include <sys/socket.h>

/* --- what OpenSSL reads from and writes to --- */

static ssize_t read_early(struct oribi_tls_session *session, char *dst, size_t n)
{
    size_t got = session->early.len < n ? session->early.len : n;
    memcpy(dst, session->early.p, got);
    oribi_buf_consume(&session->early, got);
    if (!session->early.len)
        oribi_buf_deinit(&session->early);
    return (ssize_t)got;
}

static int bio_read(BIO *bio, char *dst, int n)
{
    struct oribi_tls_session *session = BIO_get_data(bio);
    bool early = session->early.len > 0;
    BIO_clear_retry_flags(bio);
    ssize_t got = early          ? read_early(session, dst, (size_t)n)
                  : session->dry ? ORIBI_AGAIN
                                 : oribi_os_read(session->fd, dst, (size_t)n);
    if (got == ORIBI_AGAIN) {
        BIO_set_retry_read(bio);
        return -1;
    }
    if (got <= 0)
        return got == 0 ? 0 : -1;
    size_t room = sizeof(session->tls->plain) - session->tls->plain_len;
    if (got > 0 && !session->accepted && (size_t)got <= room) {
        memcpy(session->tls->plain + session->tls->plain_len, dst, (size_t)got);
        session->tls->plain_len += (size_t)got;
    }
    for (ssize_t i = 0; i < got && session->first_len < sizeof(session->first) && !session->accepted; i++)
        session->first[session->first_len++] = dst[i];
    session->dry = got < n && !early; /* a short read has emptied the socket (epoll(7)) */
    return (int)got;
}

static int bio_write(BIO *bio, const char *p, int n)
{
    struct oribi_tls_session *session = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    return oribi_buf_try_append(&session->tls->cipher, p, (size_t)n) == 0 ? n : -1;
}

static long bio_control(BIO *bio, int command, long number, void *p)
{
    struct oribi_tls_session *session = BIO_get_data(bio);
    if (command == BIO_CTRL_FLUSH)
        return 1;
    return command == BIO_CTRL_EOF ? session->broken : 0;
}

BIO_METHOD *oribi__tls_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "oribi");
    if (!method)
        return NULL;
    (void)BIO_meth_set_read(method, bio_read);
    (void)BIO_meth_set_write(method, bio_write);
    (void)BIO_meth_set_ctrl(method, bio_control);
    return method;
}

/* --- records out --- */

/* Sends [p, p+n). Returns how many bytes went, or a code. */
static ssize_t send_some(const struct oribi_tls_session *session, const char *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        struct iovec vec = {(void *)(p + done), n - done};
        ssize_t sent = oribi_os_send_vec(session->fd, &vec, 1);
        if (sent == ORIBI_AGAIN)
            break;
        if (sent < 0)
            return sent;
        done += (size_t)sent;
    }
    return (ssize_t)done;
}

int oribi__tls_flush(struct oribi_tls_session *session)
{
    struct oribi_buf *cipher = &session->tls->cipher;
    if (session->unsent.len) {
        ssize_t sent = send_some(session, session->unsent.p, session->unsent.len);
        if (sent < 0)
            return (int)sent;
        oribi_buf_consume(&session->unsent, (size_t)sent);
        if (!session->unsent.len)
            oribi_buf_deinit(&session->unsent);
    }
    ssize_t sent = session->unsent.len || !cipher->len ? 0 : send_some(session, cipher->p, cipher->len);
    size_t left = sent < 0 ? 0 : cipher->len - (size_t)sent;
    int code = sent < 0 ? (int)sent : 0;
    if (left && oribi_buf_try_append(&session->unsent, cipher->p + sent, left) < 0)
        code = ORIBI_ENOMEM;
    cipher->len = 0; /* the next session's from here on */
    return code < 0 ? code : session->unsent.len ? ORIBI_AGAIN : 0;
}

/* Encrypts one record. False: TLS has failed. */
static bool seal(struct oribi_tls_session *session, const char *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        int written = SSL_write(session->ssl, p + done, (int)(n - done));
        if (written <= 0) {
            ERR_clear_error();
            session->broken = true;
            return false;
        }
        done += (size_t)written;
    }
    return true;
}

/* Sends records of `n` bytes that were given and are encrypted, the owed one counted. Returns how many of them the
 * caller may take for sent: while records are unsent, one less, which is owed then. */
static ssize_t settle(struct oribi_tls_session *session, size_t n)
{
    int code = oribi__tls_flush(session);
    session->owed = code == ORIBI_AGAIN && n > 0;
    if (code < 0 && code != ORIBI_AGAIN)
        return code;
    if (!session->owed)
        return (ssize_t)n;
    return n > 1 ? (ssize_t)n - 1 : ORIBI_AGAIN;
}

/* False with *result: nothing is to be encrypted now. */
static bool may_write(struct oribi_tls_session *session, ssize_t *result)
{
    int code = session->broken ? ORIBI_ECLOSED : session->unsent.len ? oribi__tls_flush(session) : 0;
    *result = code;
    return code == 0;
}

static ssize_t send_vec(struct oribi_transport *self, const struct iovec *vec, size_t count, bool more)
{
    struct oribi_tls_session *session = (struct oribi_tls_session *)self;
    struct oribi_tls *tls = session->tls;
    size_t total = 0;
    size_t gathered = 0;
    size_t skip = session->owed ? 1 : 0;
    ssize_t result;
    if (!may_write(session, &result))
        return result;
    for (size_t i = 0; i < count && total < ORIBI__TLS_SEND_BYTES; i++) {
        const char *p = vec[i].iov_base;
        size_t n = vec[i].iov_len;
        size_t passed = skip < n ? skip : n;
        skip -= passed;
        total += passed;
        p += passed;
        n -= passed;
        while (n > 0 && total < ORIBI__TLS_SEND_BYTES) {
            size_t room = sizeof(tls->plain) - gathered;
            size_t part = n < room ? n : room;
            if (gathered == 0 && (part == room || i + 1 == count)) { /* a record without a copy */
                if (!seal(session, p, part))
                    return ORIBI_ECLOSED;
                p += part;
                n -= part;
                total += part;
                continue;
            }
            memcpy(tls->plain + gathered, p, part);
            gathered += part;
            p += part;
            n -= part;
            total += part;
            if (gathered == sizeof(tls->plain)) {
                if (!seal(session, tls->plain, gathered))
                    return ORIBI_ECLOSED;
                gathered = 0;
            }
        }
    }
    if (gathered && !seal(session, tls->plain, gathered))
        return ORIBI_ECLOSED;
    return settle(session, total);
}

static ssize_t send_file(struct oribi_transport *self, int in_fd, int64_t *offset, int64_t n)
{
    struct oribi_tls_session *session = (struct oribi_tls_session *)self;
    struct oribi_tls *tls = session->tls;
    ssize_t result;
    size_t total = session->owed && n > 0 ? 1 : 0;
    if (!may_write(session, &result))
        return result;
    while ((int64_t)total < n && total < ORIBI__TLS_SEND_BYTES) {
        int64_t left = n - (int64_t)total;
        size_t part = left < (int64_t)sizeof(tls->plain) ? (size_t)left : sizeof(tls->plain);
        ssize_t got = oribi_os_read_at(in_fd, tls->plain, part, *offset + (int64_t)total);
        if (got < 0)
            return got;
        if (got == 0)
            break; /* shorter than it was: the caller sees that nothing comes */
        if (!seal(session, tls->plain, (size_t)got))
            return ORIBI_ECLOSED;
        total += (size_t)got;
    }
    result = settle(session, total);
    if (result > 0)
        *offset += result;
    return result;
}

/* --- records in --- */

/* Empties OpenSSL's list of errors, as SSL_get_error(3) wants it before a call. Most times it is empty, and a look
 * costs less than clearing it. */
static void clear_errors(void)
{
    if (ERR_peek_error())
        ERR_clear_error();
}

static ssize_t read_bytes(struct oribi_transport *self, void *dst, size_t n)
{
    struct oribi_tls_session *session = (struct oribi_tls_session *)self;
    size_t got = 0;
    ssize_t end = ORIBI_AGAIN;
    if (session->broken)
        return ORIBI_ECLOSED;
    session->dry = false;
    clear_errors();
    while (got < n) {
        int read = SSL_read(session->ssl, (char *)dst + got, (int)(n - got));
        if (read > 0) {
            got += (size_t)read;
            if (session->dry && !SSL_has_pending(session->ssl)) /* a call more would cost as much, for nothing */
                break;
            continue;
        }
        int why = SSL_get_error(session->ssl, read);
        if (why == SSL_ERROR_WANT_READ) {
            if (got || !session->dry)
                break;
            session->dry = false; /* only a part of a record: the next read tells whether the client has left */
            continue;
        }
        /* Many clients close without a close_notify; HTTP's own framing tells what is cut. */
        bool ended = why == SSL_ERROR_ZERO_RETURN || why == SSL_ERROR_SYSCALL ||
                     ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
        session->broken = why == SSL_ERROR_SSL;
        end = ended ? 0 : ORIBI_ECLOSED;
        ERR_clear_error();
        break;
    }
    if (got && end != ORIBI_AGAIN) /* a short read counts as the last one until the socket tells of more: it does now */
        (void)shutdown(session->fd, SHUT_RD);
    if (session->tls->cipher.len) /* a key update, an alert: what is not sent now is sent with the next bytes */
        (void)oribi__tls_flush(session);
    return got ? (ssize_t)got : end;
}

static void shut(struct oribi_transport *self)
{
    struct oribi_tls_session *session = (struct oribi_tls_session *)self;
    if (session->broken || session->unsent.len)
        return;
    ERR_clear_error();
    (void)SSL_shutdown(session->ssl); /* its result is of no use: we do not wait for the client's */
    ERR_clear_error();
    (void)oribi__tls_flush(session);
}

static void release(struct oribi_transport *self)
{
    oribi_tls_session_destroy((struct oribi_tls_session *)self);
}

const struct oribi_transport oribi__tls_transport_ops = {
    .read = read_bytes, .send_vec = send_vec, .send_file = send_file, .shut = shut, .release = release};
