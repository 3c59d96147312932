/* A session from the first byte to the end of the handshake, and what is known of its client then. */
#include "frontend/tls_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

struct oribi_tls_session *oribi_tls_accept(struct oribi_tls *tls, int fd)
{
    struct oribi_tls_session *session = oribi_mem_try_alloc(1, sizeof(*session));
    struct oribi__tls_about *about = session ? oribi_mem_try_alloc(1, sizeof(*about)) : NULL;
    BIO *bio = about ? BIO_new(tls->method) : NULL;
    SSL *ssl = bio ? SSL_new(tls->contexts[0]) : NULL;
    if (!ssl) {
        BIO_free(bio);
        oribi_mem_free(about);
        oribi_mem_free(session);
        return NULL;
    }
    session->transport = oribi__tls_transport_ops;
    session->tls = tls;
    session->ssl = ssl;
    session->about = about;
    session->fd = fd;
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio); /* takes it */
    SSL_set_accept_state(ssl);
    oribi_tls_retain(tls);
    return session;
}

int oribi_tls_early(struct oribi_tls_session *session, struct oribi_slice bytes)
{
    return bytes.n ? oribi_buf_try_append(&session->early, bytes.p, bytes.n) : 0;
}

static void forget(struct oribi_tls_session *session)
{
    if (!session->about)
        return;
    oribi_mem_free(session->about->text);
    oribi_mem_free(session->about->name);
    oribi_mem_free(session->about);
    session->about = NULL;
}

void oribi_tls_forget_info(struct oribi_transport *transport)
{
    forget((struct oribi_tls_session *)transport);
}

void oribi_tls_session_destroy(struct oribi_tls_session *session)
{
    if (!session)
        return;
    SSL_free(session->ssl);
    ERR_clear_error();
    oribi_buf_deinit(&session->unsent);
    oribi_buf_deinit(&session->early);
    forget(session);
    oribi_tls_release(session->tls);
    oribi_mem_free(session);
}

/* --- what is known of the client --- */

static void print_name(BIO *out, X509_NAME *name)
{
    (void)X509_NAME_print_ex(out, name, 0, XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
}

static void print_serial(BIO *out, X509 *x509)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(x509), NULL);
    char *hex = number ? BN_bn2hex(number) : NULL;
    if (hex)
        (void)BIO_puts(out, hex);
    OPENSSL_free(hex);
    BN_free(number);
}

static size_t end_of(BIO *out)
{
    char *p;
    return (size_t)BIO_get_mem_data(out, &p);
}

/* Everything goes to one text; ends[i] is where part i ends in it. */
static void describe(struct oribi_tls_session *session, X509 *x509)
{
    struct oribi_tls_info *info = &session->about->info;
    struct oribi_slice *parts[] = {&info->subject, &info->issuer, &info->serial,
                                   &info->begins,  &info->ends,   &info->pem};
    enum { PARTS = sizeof(parts) / sizeof(parts[0]) };
    size_t ends[PARTS];
    BIO *out = BIO_new(BIO_s_mem());
    if (!out)
        return;
    print_name(out, X509_get_subject_name(x509));
    ends[0] = end_of(out);
    print_name(out, X509_get_issuer_name(x509));
    ends[1] = end_of(out);
    print_serial(out, x509);
    ends[2] = end_of(out);
    (void)ASN1_TIME_print(out, X509_get0_notBefore(x509));
    ends[3] = end_of(out);
    (void)ASN1_TIME_print(out, X509_get0_notAfter(x509));
    ends[4] = end_of(out);
    (void)PEM_write_bio_X509(out, x509);
    ends[5] = end_of(out);
    char *p;
    size_t n = (size_t)BIO_get_mem_data(out, &p);
    char *text = session->about->text = oribi_mem_try_alloc(n + 1, 1);
    if (text) {
        memcpy(text, p, n);
        for (size_t i = 0; i < PARTS; i++)
            *parts[i] = oribi_slice(text + (i ? ends[i - 1] : 0), ends[i] - (i ? ends[i - 1] : 0));
        if (info->pem.n > ORIBI__TLS_PEM_TOLD_MAX)
            info->pem.n = 0;
    }
    BIO_free(out);
}

static struct oribi_slice words(const char *text)
{
    return text ? oribi_slice(text, strlen(text)) : oribi_slice(NULL, 0);
}

static void look_at_client(struct oribi_tls_session *session)
{
    struct oribi_tls_info *info = &session->about->info;
    X509 *x509 = SSL_get0_peer_certificate(session->ssl);
    long result = SSL_get_verify_result(session->ssl);
    if (!x509) {
        info->verify = ORIBI_SLICE("NONE");
        return;
    }
    describe(session, x509);
    info->verify = result == X509_V_OK ? ORIBI_SLICE("SUCCESS") : ORIBI_SLICE("FAILED");
}

/* In lower case, as names are the same in any (RFC 4343); what has other bytes than a name's is none. */
static struct oribi_slice asked_name(struct oribi_tls_session *session)
{
    struct oribi_slice asked = words(SSL_get_servername(session->ssl, TLSEXT_NAMETYPE_host_name));
    char *name = session->about->name = asked.n ? oribi_mem_try_alloc(asked.n, 1) : NULL;
    for (size_t i = 0; i < asked.n && name; i++) {
        if (asked.p[i] <= ' ' || asked.p[i] >= 0x7f)
            return oribi_slice(NULL, 0);
        name[i] = oribi_lower(asked.p[i]);
    }
    return oribi_slice(name, name ? asked.n : 0);
}

static void fill_info(struct oribi_tls_session *session)
{
    struct oribi_tls_info *info = &session->about->info;
    const unsigned char *alpn = NULL;
    unsigned int len = 0;
    SSL_get0_alpn_selected(session->ssl, &alpn, &len);
    info->alpn = oribi_slice((const char *)alpn, len);
    info->h2 = oribi_slice_equal(info->alpn, ORIBI_SLICE("h2"));
    info->resumed = SSL_session_reused(session->ssl) == 1;
    info->version = words(SSL_get_version(session->ssl));
    info->cipher = words(SSL_get_cipher_name(session->ssl));
    info->sni = asked_name(session);
    if (session->tls->asks_client)
        look_at_client(session);
    session->accepted = true;
}

/* --- the handshake --- */

static const char *reason_of(void)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason ? reason : "no reason given";
}

/* No record of TLS begins with a letter; methods do. */
static bool is_plain(const struct oribi_tls_session *session)
{
    for (uint8_t i = 0; i < 3; i++)
        if (i >= session->first_len || session->first[i] < 'A' || session->first[i] > 'Z')
            return false;
    return true;
}

enum oribi_tls_step oribi_tls_handshake(struct oribi_tls_session *session)
{
    session->dry = false;
    memcpy(session->tls->plain, session->first, session->first_len); /* has room for far more */
    session->tls->plain_len = session->first_len;
    ERR_clear_error();
    int result = SSL_do_handshake(session->ssl);
    int why = result == 1 ? SSL_ERROR_NONE : SSL_get_error(session->ssl, result);
    if (why == SSL_ERROR_SSL)
        session->reason = reason_of();
    ERR_clear_error();
    int flushed = oribi__tls_flush(session);
    if (why == SSL_ERROR_SSL)
        return is_plain(session) ? ORIBI_TLS_PLAIN : ORIBI_TLS_FAILED;
    if (flushed == ORIBI_AGAIN)
        return ORIBI_TLS_WRITES;
    if (flushed < 0)
        return ORIBI_TLS_GONE;
    switch (why) {
    case SSL_ERROR_NONE:
        fill_info(session);
        return ORIBI_TLS_DONE;
    case SSL_ERROR_WANT_READ:
        return ORIBI_TLS_READS;
    default:
        return ORIBI_TLS_GONE;
    }
}

struct oribi_slice oribi_tls_first(const struct oribi_tls_session *session)
{
    return oribi_slice(session->tls->plain, session->tls->plain_len);
}

const char *oribi_tls_reason(const struct oribi_tls_session *session)
{
    return session->reason ? session->reason : "no reason given";
}

const struct oribi_tls_info *oribi_tls_info(const struct oribi_tls_session *session)
{
    return &session->about->info;
}

const struct oribi_tls_info *oribi_tls_info_of(const struct oribi_transport *transport)
{
    return &((const struct oribi_tls_session *)transport)->about->info;
}

struct oribi_transport *oribi_tls_transport(struct oribi_tls_session *session)
{
    return &session->transport;
}
