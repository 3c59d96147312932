/* TLS beside OpenSSL's own client, over a socket pair: certificates that are made here, and both ends of a session. */
#ifndef ORIBI_TEST_FRONTEND_TLS_CLIENT_H
#define ORIBI_TEST_FRONTEND_TLS_CLIENT_H

#include "frontend/tls_private.h"

#include "oribi/base/error.h"
#include "oribi/config/options.h"

#include "tap.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PEM_CAP = 4096, TURNS_MAX = 100000 };

struct made {
    char chain[PEM_CAP];
    char key[PEM_CAP];
    size_t chain_len;
    size_t key_len;
};

static char error[ORIBI_ERROR_TEXT_CAP];
static struct oribi_tls_tickets tickets;
static bool serves; /* the server's end is at work: for tests that count */

/* --- certificates --- */

static size_t pem_of(BIO *bio, char *dst)
{
    char *p;
    size_t n = (size_t)BIO_get_mem_data(bio, &p);
    memcpy(dst, p, n);
    BIO_free(bio);
    return n;
}

static struct made make(const char *names, int kind, long days)
{
    struct made made;
    EVP_PKEY *key = kind == EVP_PKEY_RSA ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    X509 *x509 = X509_new();
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 4711);
    X509_gmtime_adj(X509_getm_notBefore(x509), -200L * 86400);
    X509_gmtime_adj(X509_getm_notAfter(x509), days * 86400);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC, (const unsigned char *)"made", -1, -1,
                               0);
    X509_set_issuer_name(x509, X509_get_subject_name(x509));
    X509_set_pubkey(x509, key);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, names);
    X509_add_ext(x509, extension, -1);
    X509_EXTENSION_free(extension);
    X509_sign(x509, key, EVP_sha256());
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, x509);
    made.chain_len = pem_of(bio, made.chain);
    bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    made.key_len = pem_of(bio, made.key);
    X509_free(x509);
    EVP_PKEY_free(key);
    return made;
}

static struct oribi_tls_certificate pair(const struct made *chain, const struct made *key)
{
    return (struct oribi_tls_certificate){.chain = oribi_slice(chain->chain, chain->chain_len),
                                          .key = oribi_slice(key->key, key->key_len),
                                          .name = ORIBI_SLICE("site.pem")};
}

static struct oribi_tls *contexts(const struct oribi_tls_certificate *certificates, uint32_t count, bool tls12)
{
    struct oribi_tls_config config = {.certificates = certificates, .count = count, .h2 = true, .tls12 = tls12};
    struct oribi_tls *tls = NULL;
    ok_eq(oribi_tls_create(&config, &tickets, &tls, error), 0);
    return tls;
}

/* --- a client beside a session --- */

struct both {
    int fds[2];
    struct oribi_tls_session *server;
    SSL_CTX *context;
    SSL *client;
    enum oribi_tls_step step;
};

static void begin(struct both *both, struct oribi_tls *tls, const char *name, int version, const char *alpn,
                  SSL_SESSION *resumed)
{
    memset(both, 0, sizeof(*both));
    ok_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, both->fds), 0);
    int small = 4096;
    setsockopt(both->fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    serves = true;
    both->server = oribi_tls_accept(tls, both->fds[0]);
    serves = false;
    both->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(both->context, version);
    both->client = SSL_new(both->context);
    SSL_set_fd(both->client, both->fds[1]);
    SSL_set_tlsext_host_name(both->client, name);
    if (alpn)
        SSL_set_alpn_protos(both->client, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    if (resumed)
        SSL_set_session(both->client, resumed);
    SSL_set_connect_state(both->client);
}

__attribute__((unused)) static void shake(struct both *both)
{
    int client = 0;
    both->step = ORIBI_TLS_READS;
    for (int i = 0; i < TURNS_MAX && (client != 1 || both->step != ORIBI_TLS_DONE); i++) {
        if (client != 1)
            client = SSL_do_handshake(both->client);
        serves = true;
        if (both->step == ORIBI_TLS_READS || both->step == ORIBI_TLS_WRITES)
            both->step = oribi_tls_handshake(both->server);
        serves = false;
        bool failed = client < 0 && SSL_get_error(both->client, client) == SSL_ERROR_SSL;
        if (both->step > ORIBI_TLS_WRITES || failed)
            break;
    }
    ERR_clear_error();
}

static void end(struct both *both)
{
    oribi_tls_session_destroy(both->server);
    SSL_set_shutdown(both->client, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN); /* else its session counts as broken */
    SSL_free(both->client);
    SSL_CTX_free(both->context);
    close(both->fds[0]);
    close(both->fds[1]);
}

#endif
