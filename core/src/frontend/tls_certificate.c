/* Certificates, their chains and keys, from PEM into contexts. Those with the same names share one context, in which
 * OpenSSL takes the kind that the client can (ECDSA before RSA in every client's list). */
#include "frontend/tls_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { CHAIN_MAX = 10 };

/* A certificate, those behind it, and its key. */
struct pair {
    X509 *leaf;
    STACK_OF(X509) * chain;
    EVP_PKEY *key;
};

static void free_pair(struct pair *pair)
{
    X509_free(pair->leaf);
    sk_X509_pop_free(pair->chain, X509_free);
    EVP_PKEY_free(pair->key);
}

__attribute__((format(printf, 3, 4))) static int refuse(const struct oribi_tls_certificate *certificate, char *error,
                                                        const char *format, ...)
{
    char why[160];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, sizeof(why), format, args); /* cut when longer */
    va_end(args);
    ERR_clear_error();
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%.*s: %s", (int)(certificate->name.n < 80 ? certificate->name.n : 80),
                   certificate->name.p, why);
    return ORIBI_EINVAL;
}

static int no_passphrase(char *buf, int size, int writing, void *self)
{
    return -1; /* never asks the terminal */
}

static int read_chain(const struct oribi_tls_certificate *certificate, struct pair *pair, char *error)
{
    BIO *bio = BIO_new_mem_buf(certificate->chain.p, (int)certificate->chain.n);
    X509 *x509;
    pair->chain = sk_X509_new_null();
    if (!bio || !pair->chain) {
        BIO_free(bio);
        return ORIBI_ENOMEM;
    }
    pair->leaf = PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL);
    while (pair->leaf && sk_X509_num(pair->chain) < CHAIN_MAX &&
           (x509 = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)) != NULL)
        if (sk_X509_push(pair->chain, x509) == 0)
            X509_free(x509);
    BIO_free(bio);
    ERR_clear_error(); /* the end of the text looks like an error */
    return pair->leaf ? 0 : refuse(certificate, error, "there is no certificate in it (PEM)");
}

static int give_password(char *buf, int size, int writing, void *self)
{
    const struct oribi_slice *password = self;
    if (password->n == 0 || password->n > (size_t)size)
        return -1;
    memcpy(buf, password->p, password->n);
    return (int)password->n;
}

static int read_key(const struct oribi_tls_certificate *certificate, struct pair *pair, char *error)
{
    struct oribi_slice password = certificate->password;
    BIO *bio = BIO_new_mem_buf(certificate->key.p, (int)certificate->key.n);
    pair->key = bio ? PEM_read_bio_PrivateKey(bio, NULL, give_password, &password) : NULL;
    BIO_free(bio);
    if (!pair->key)
        return refuse(certificate, error, "its key cannot be read: %s",
                      password.n ? "its password is another one" : "no PEM, or encrypted");
    if (X509_check_private_key(pair->leaf, pair->key) != 1)
        return refuse(certificate, error, "the key is not this certificate's");
    return 0;
}

/* Each certificate has to be issued by the one behind it; clients that do not look for themselves fail otherwise. */
static int check_order(const struct oribi_tls_certificate *certificate, const struct pair *pair, char *error)
{
    X509 *subject = pair->leaf;
    for (int i = 0; i < sk_X509_num(pair->chain); i++) {
        X509 *issuer = sk_X509_value(pair->chain, i);
        if (X509_check_issued(issuer, subject) != X509_V_OK)
            return refuse(certificate, error, "certificate %d of the chain has not issued the one before it", i + 2);
        subject = issuer;
    }
    return 0;
}

static void check_time(struct oribi_tls *tls, const struct oribi_tls_certificate *certificate, const struct pair *pair,
                       char *warning)
{
    struct tm when;
    tls->placeholders[tls->end_count] = certificate->placeholder;
    if (certificate->placeholder) {
        tls->ends_s[tls->end_count++] = INT64_MAX;
        return;
    }
    if (X509_cmp_current_time(X509_get0_notAfter(pair->leaf)) < 0)
        (void)refuse(certificate, warning, "it has expired");
    else if (X509_cmp_current_time(X509_get0_notBefore(pair->leaf)) > 0)
        (void)refuse(certificate, warning, "it is not valid yet");
    tls->ends_s[tls->end_count] = INT64_MAX;
    if (ASN1_TIME_to_tm(X509_get0_notAfter(pair->leaf), &when) == 1) {
        int64_t expires_s = (int64_t)timegm(&when);
        if (expires_s < tls->expires_s)
            tls->expires_s = expires_s;
        tls->ends_s[tls->end_count] = expires_s;
    }
    tls->end_count++;
}

/* Clients that ask for a response refuse the connection when they get something else. */
static int check_staple(const struct oribi_tls_certificate *certificate, char *error)
{
    const unsigned char *at = (const unsigned char *)certificate->ocsp.p;
    if (certificate->ocsp.n == 0)
        return 0;
    OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &at, (long)certificate->ocsp.n);
    bool is_whole = response && at == (const unsigned char *)certificate->ocsp.p + certificate->ocsp.n;
    OCSP_RESPONSE_free(response);
    return is_whole ? 0 : refuse(certificate, error, "its third file is no OCSP response (DER)");
}

static int make_pair(const struct oribi_tls_certificate *certificate, struct pair *pair, char *error)
{
    pair->chain = sk_X509_new_null();
    int code = pair->chain ? oribi__tls_placeholder(certificate->names, &pair->leaf, &pair->key) : ORIBI_ENOMEM;
    return code == ORIBI_EINVAL ? refuse(certificate, error, "no placeholder can be made for its names") : code;
}

static int read_pair(const struct oribi_tls_certificate *certificate, struct pair *pair, char *error)
{
    if (certificate->placeholder)
        return make_pair(certificate, pair, error);
    int code = read_chain(certificate, pair, error);
    if (code == 0)
        code = read_key(certificate, pair, error);
    if (code == 0)
        code = check_order(certificate, pair, error);
    return code < 0 ? code : check_staple(certificate, error);
}

static int64_t second_of(const ASN1_TIME *time)
{
    struct tm when;
    return ASN1_TIME_to_tm(time, &when) == 1 ? (int64_t)timegm(&when) : 0;
}

int oribi_tls_look(const struct oribi_tls_certificate *certificate, struct oribi_tls_look *look, char *error)
{
    struct pair pair = {0};
    int code = read_pair(certificate, &pair, error);
    if (code == 0) {
        *look = (struct oribi_tls_look){
            .begins_s = second_of(X509_get0_notBefore(pair.leaf)),
            .expires_s = second_of(X509_get0_notAfter(pair.leaf)),
            .rsa_bits = EVP_PKEY_get_base_id(pair.key) == EVP_PKEY_RSA ? EVP_PKEY_get_bits(pair.key) : 0,
            .lacks_chain = sk_X509_num(pair.chain) == 0 && X509_check_issued(pair.leaf, pair.leaf) != X509_V_OK,
            .lacks_names = X509_get_ext_by_NID(pair.leaf, NID_subject_alt_name, -1) < 0};
    }
    free_pair(&pair);
    return code;
}

/* --- names --- */

static bool has_name(const struct oribi_tls *tls, uint32_t context, const char *p, size_t n)
{
    for (uint32_t i = 0; i < tls->name_count; i++)
        if (tls->names[i].context == context && tls->names[i].len == n && memcmp(tls->names[i].text, p, n) == 0)
            return true;
    return false;
}

static int add_name(struct oribi_tls *tls, uint32_t context, const char *p, size_t n)
{
    char lower[ORIBI__TLS_NAME_MAX];
    if (n == 0 || n > sizeof(lower))
        return 0;
    for (size_t i = 0; i < n; i++)
        lower[i] = oribi_lower(p[i]);
    if (has_name(tls, context, lower, n))
        return 0;
    struct oribi__tls_name *names = oribi_mem_try_resize(tls->names, tls->name_count + 1, sizeof(*names));
    char *text = names ? oribi_mem_try_alloc(n + 1, 1) : NULL;
    if (names)
        tls->names = names;
    if (!text)
        return ORIBI_ENOMEM;
    memcpy(text, lower, n);
    tls->names[tls->name_count++] = (struct oribi__tls_name){text, n, context};
    return 0;
}

/* The names of a certificate: subjectAltName, or the common name where it has none (RFC 6125 6.4.4). */
static int each_name(X509 *x509, int (*function)(void *self, const char *p, size_t n), void *self)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(x509, NID_subject_alt_name, NULL, NULL);
    int code = 0;
    for (int i = 0; names && i < sk_GENERAL_NAME_num(names) && i < ORIBI__TLS_NAMES_MAX && code == 0; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type == GEN_DNS)
            code = function(self, (const char *)ASN1_STRING_get0_data(name->d.dNSName),
                            (size_t)ASN1_STRING_length(name->d.dNSName));
    }
    if (!names) {
        char text[ORIBI__TLS_NAME_MAX + 1];
        int n = X509_NAME_get_text_by_NID(X509_get_subject_name(x509), NID_commonName, text, sizeof(text));
        if (n > 0)
            code = function(self, text, (size_t)n);
    }
    GENERAL_NAMES_free(names);
    ERR_clear_error();
    return code;
}

struct naming {
    struct oribi_tls *tls;
    uint32_t context;
    uint32_t count;
    uint32_t met;
};

static int count_name(void *self, const char *p, size_t n)
{
    struct naming *naming = self;
    naming->count++;
    naming->met += has_name(naming->tls, naming->context, p, n);
    return 0;
}

static int put_name(void *self, const char *p, size_t n)
{
    struct naming *naming = self;
    return add_name(naming->tls, naming->context, p, n);
}

/* A context that serves all of these names, and holds no certificate of this kind yet. A placeholder stands by itself:
 * nobody is to get it in the place of a certificate. */
static bool find_context(struct oribi_tls *tls, const struct pair *pair, uint32_t *context)
{
    int kind = EVP_PKEY_get_base_id(pair->key);
    for (uint32_t i = 0; i < tls->context_count; i++) {
        struct naming naming = {.tls = tls, .context = i};
        (void)each_name(pair->leaf, count_name, &naming);
        if (naming.count == 0 || naming.met != naming.count)
            continue;
        bool taken = false;
        for (int there = SSL_CTX_set_current_cert(tls->contexts[i], SSL_CERT_SET_FIRST); there == 1;
             there = SSL_CTX_set_current_cert(tls->contexts[i], SSL_CERT_SET_NEXT)) {
            EVP_PKEY *key = SSL_CTX_get0_privatekey(tls->contexts[i]);
            taken |= key && EVP_PKEY_get_base_id(key) == kind;
        }
        if (!taken) {
            *context = i;
            return true;
        }
    }
    return false;
}

static int install(SSL_CTX *context, const struct oribi_tls_certificate *certificate, const struct pair *pair,
                   char *error)
{
    if (SSL_CTX_use_certificate(context, pair->leaf) != 1 || SSL_CTX_use_PrivateKey(context, pair->key) != 1 ||
        SSL_CTX_set1_chain(context, pair->chain) != 1) {
        const char *reason = ERR_reason_error_string(ERR_peek_last_error());
        return refuse(certificate, error, "OpenSSL does not take it: %s", reason ? reason : "no reason given");
    }
    return 0;
}

/* --- OCSP, RFC 6066 8 --- */

static int staple(SSL *ssl, void *self)
{
    const struct oribi_buf *response = self;
    unsigned char *copy = response->len ? OPENSSL_memdup(response->p, response->len) : NULL;
    if (!copy)
        return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)response->len); /* takes it */
    return SSL_TLSEXT_ERR_OK;
}

/* One response a context: that of its first certificate which has one. */
static int add_staple(struct oribi_tls *tls, SSL_CTX *context, struct oribi_slice der)
{
    struct oribi_buf **staples = oribi_mem_try_resize(tls->staples, tls->staple_count + 1, sizeof(*staples));
    struct oribi_buf *response = staples ? oribi_mem_try_alloc(1, sizeof(*response)) : NULL;
    if (staples)
        tls->staples = staples;
    if (!response)
        return ORIBI_ENOMEM;
    tls->staples[tls->staple_count++] = response;
    if (oribi_buf_try_append(response, der.p, der.n) < 0)
        return ORIBI_ENOMEM;
    SSL_CTX_set_tlsext_status_cb(context, staple);
    SSL_CTX_set_tlsext_status_arg(context, response);
    return 0;
}

int oribi__tls_use(struct oribi_tls *tls, const struct oribi_tls_certificate *certificate, uint32_t *context,
                   char *error, char *warning)
{
    struct pair pair = {0};
    int code = read_pair(certificate, &pair, error);
    if (code == 0 && (certificate->placeholder || !find_context(tls, &pair, context))) {
        *context = tls->context_count;
        if (!oribi__tls_context(tls))
            code = ORIBI_ENOMEM;
    }
    if (code == 0)
        code = install(tls->contexts[*context], certificate, &pair, error);
    if (code == 0) {
        struct naming naming = {.tls = tls, .context = *context};
        code = each_name(pair.leaf, put_name, &naming);
    }
    if (code == 0 && certificate->ocsp.n)
        code = add_staple(tls, tls->contexts[*context], certificate->ocsp);
    if (code == 0)
        check_time(tls, certificate, &pair, warning);
    free_pair(&pair);
    return code;
}
