/* Contexts: settings that all have, which certificate serves which name, and their life. */
#include "frontend/tls_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>

/* --- session tickets ---
 *
 * RFC 5077, RFC 8446 4.6.1: the client keeps its session, encrypted by keys that all frontends share. */

enum { NAME_BYTES = 16, CIPHER_BYTES = 32, MAC_BYTES = 32, TRIES = 1000 };

struct keys {
    uint8_t at[ORIBI_TLS_TICKET_KEYS][ORIBI_TLS_TICKET_KEY_BYTES];
};

/* The supervisor turns them while we read: then once more. */
static bool read_keys(const struct oribi_tls_tickets *tickets, struct keys *keys)
{
    for (int i = 0; i < TRIES; i++) {
        uint32_t before = atomic_load_explicit(&tickets->version, memory_order_acquire);
        memcpy(keys, tickets->keys, sizeof(*keys));
        atomic_thread_fence(memory_order_acquire);
        if (!(before & 1) && atomic_load_explicit(&tickets->version, memory_order_relaxed) == before)
            return true;
    }
    return false;
}

static bool is_zero(const uint8_t *key)
{
    for (size_t i = 0; i < ORIBI_TLS_TICKET_KEY_BYTES; i++)
        if (key[i])
            return false;
    return true;
}

static bool begin(const uint8_t *key, const unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int encrypts)
{
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)(key + NAME_BYTES + CIPHER_BYTES), MAC_BYTES),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"sha256", 0), OSSL_PARAM_construct_end()};
    return EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), NULL, key + NAME_BYTES, iv, encrypts) == 1 &&
           EVP_MAC_CTX_set_params(mac, params) == 1;
}

/* As SSL_CTX_set_tlsext_ticket_key_evp_cb(3) says: 0 no ticket, or one that is not known; 1; 2: known, and to be made
 * anew; -1 an error. */
static int ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
                      int encrypts)
{
    const struct oribi_tls_tickets *tickets = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    struct keys keys;
    int result = 0;
    if (!tickets || !read_keys(tickets, &keys))
        return 0;
    if (encrypts && !is_zero(keys.at[0])) {
        memcpy(name, keys.at[0], NAME_BYTES);
        result =
            RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) == 1 && begin(keys.at[0], iv, cipher, mac, 1)
                ? 1
                : -1;
    }
    for (int i = 0; !encrypts && result == 0 && i < ORIBI_TLS_TICKET_KEYS; i++)
        if (!is_zero(keys.at[i]) && memcmp(name, keys.at[i], NAME_BYTES) == 0)
            result = !begin(keys.at[i], iv, cipher, mac, 0) ? -1 : i == 0 ? 1 : 2;
    OPENSSL_cleanse(&keys, sizeof(keys));
    return result;
}

static void begin_tickets(SSL_CTX *context, const struct oribi_tls_tickets *tickets)
{
    if (!tickets) {
        SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
        (void)SSL_CTX_set_num_tickets(context, 0);
        return;
    }
    SSL_CTX_set_app_data(context, (void *)tickets);
    (void)SSL_CTX_set_num_tickets(context, 1);
    (void)SSL_CTX_set_tlsext_ticket_key_evp_cb(context, ticket_key);
}

/* --- ALPN, RFC 7301 --- */

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                           unsigned int in_len, void *self)
{
    static const unsigned char all[] = "\x02h2\x08http/1.1\x08http/1.0"; /* the first that the client has is taken */
    const struct oribi_tls *tls = self;
    const unsigned char *offered = tls->h2 ? all : all + 3;
    unsigned int len = sizeof(all) - 1 - (tls->h2 ? 0 : 3);
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, out_len, offered, len, in, in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* --- SNI, RFC 6066 3 --- */

static bool is_name(const struct oribi__tls_name *name, const char *p, size_t n)
{
    return name->len == n && memcmp(name->text, p, n) == 0;
}

/* A wildcard stands for the left-most label, RFC 6125 6.4.3. */
static bool covers(const struct oribi__tls_name *name, const char *p, size_t n)
{
    const char *dot = memchr(p, '.', n);
    size_t rest = dot ? n - (size_t)(dot - p) : 0;
    return name->len > 2 && name->text[0] == '*' && dot && dot > p && name->len - 1 == rest &&
           memcmp(name->text + 1, dot, rest) == 0;
}

static const struct oribi__tls_name *find_name(const struct oribi_tls *tls, const char *p, size_t n)
{
    for (uint32_t i = 0; i < tls->name_count; i++)
        if (is_name(&tls->names[i], p, n))
            return &tls->names[i];
    for (uint32_t i = 0; i < tls->name_count; i++)
        if (covers(&tls->names[i], p, n))
            return &tls->names[i];
    return NULL;
}

static int choose_certificate(SSL *ssl, int *alert, void *self)
{
    const struct oribi_tls *tls = self;
    const char *asked = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    char lower[ORIBI__TLS_NAME_MAX + 1];
    size_t n = asked ? strlen(asked) : 0;
    if (n == 0 || n > ORIBI__TLS_NAME_MAX)
        return SSL_TLSEXT_ERR_NOACK;
    if (asked[n - 1] == '.')
        n--;
    for (size_t i = 0; i < n; i++)
        lower[i] = oribi_lower(asked[i]);
    const struct oribi__tls_name *name = find_name(tls, lower, n);
    if (!name)
        return SSL_TLSEXT_ERR_NOACK;
    if (name->context != 0)
        (void)SSL_set_SSL_CTX(ssl, tls->contexts[name->context]); /* fails without memory: then the default serves */
    return SSL_TLSEXT_ERR_OK;
}

/* --- contexts --- */

static void settle(SSL_CTX *context, struct oribi_tls *tls)
{
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_PRIORITIZE_CHACHA);
    SSL_CTX_set_mode(context,
                     SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); /* tickets do it, in the client's memory */
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_max_early_data(context, 0); /* replays, RFC 8446 8 */
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, tls);
    SSL_CTX_set_tlsext_servername_callback(context, choose_certificate);
    SSL_CTX_set_tlsext_servername_arg(context, tls);
    begin_tickets(context, tls->tickets);
}

SSL_CTX *oribi__tls_context(struct oribi_tls *tls)
{
    SSL_CTX **contexts = oribi_mem_try_resize(tls->contexts, tls->context_count + 1, sizeof(SSL_CTX *));
    if (!contexts)
        return NULL;
    tls->contexts = contexts;
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context || SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1) {
        SSL_CTX_free(context);
        return NULL;
    }
    settle(context, tls);
    tls->contexts[tls->context_count++] = context;
    return context;
}

static int every(SSL_CTX *context, const struct oribi_tls_config *config)
{
    return SSL_CTX_set_min_proto_version(context, config->tls12 ? TLS1_2_VERSION : TLS1_3_VERSION) == 1 ? 0
                                                                                                        : ORIBI_ENOMEM;
}

/* --- client certificates --- */

static int accept_any(int good, X509_STORE_CTX *chain)
{
    return 1; /* optional: what is wrong with it is told to the application (SSL_get_verify_result()) */
}

static int add_authorities(SSL_CTX *context, struct oribi_slice pem, struct oribi_slice name, char *error)
{
    BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    int count = 0;
    X509 *x509;
    while (bio && (x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
        (void)SSL_CTX_add_client_CA(context, x509); /* a hint for the client */
        count += X509_STORE_add_cert(store, x509) == 1;
        X509_free(x509);
    }
    BIO_free(bio);
    ERR_clear_error(); /* the end of the text looks like an error */
    if (count > 0)
        return 0;
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "client_ca %.*s: there is no certificate in it (PEM)",
                   (int)(name.n < 140 ? name.n : 140), name.p);
    return ORIBI_EINVAL;
}

/* A ticket counts only where the same certificates were asked for. */
static void separate_sessions(SSL_CTX *context, const struct oribi_tls_config *config)
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    unsigned char word[SHA256_DIGEST_LENGTH] = {0};
    (void)SHA256((const unsigned char *)config->client_ca.p, config->client_ca.n, digest);
    if (config->client_ca.n) {
        memcpy(word, digest, sizeof(word));
        word[0] ^= (unsigned char)config->verify;
    }
    (void)SSL_CTX_set_session_id_context(context, word, sizeof(word)); /* the length is right */
}

static int ask_client(SSL_CTX *context, const struct oribi_tls_config *config, char *error)
{
    separate_sessions(context, config);
    if (config->client_ca.n == 0)
        return 0;
    if (config->verify == ORIBI_TLS_VERIFY_REQUIRED)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    else
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, accept_any);
    return add_authorities(context, config->client_ca, config->client_ca_name, error);
}

/* --- life --- */

static int fill(struct oribi_tls *tls, const struct oribi_tls_config *config, char *error)
{
    char warning[ORIBI_ERROR_TEXT_CAP] = "";
    int code = 0;
    for (uint32_t i = 0; i < config->count && code == 0; i++) {
        uint32_t context;
        code = oribi__tls_use(tls, &config->certificates[i], &context, error, warning);
    }
    for (uint32_t i = 0; i < tls->context_count && code == 0; i++) {
        code = every(tls->contexts[i], config);
        if (code == 0)
            code = ask_client(tls->contexts[i], config, error);
    }
    if (code == 0)
        memcpy(error, warning, sizeof(warning));
    else if (code == ORIBI_ENOMEM)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory");
    return code;
}

int oribi_tls_create(const struct oribi_tls_config *config, const struct oribi_tls_tickets *tickets,
                     struct oribi_tls **out, char *error)
{
    error[0] = '\0';
    if (config->count == 0 || config->count > ORIBI_TLS_CERTIFICATES_MAX) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, config->count ? "more than %d certificates" : "no certificate",
                       ORIBI_TLS_CERTIFICATES_MAX);
        return ORIBI_EINVAL;
    }
    struct oribi_tls *tls = oribi_mem_try_alloc(1, sizeof(*tls));
    if (!tls)
        return ORIBI_ENOMEM;
    tls->holds = 1;
    tls->tickets = tickets;
    tls->h2 = config->h2;
    tls->asks_client = config->client_ca.n > 0;
    tls->expires_s = INT64_MAX;
    tls->method = oribi__tls_method();
    int code = tls->method ? fill(tls, config, error) : ORIBI_ENOMEM;
    if (code < 0) {
        oribi_tls_release(tls);
        return code;
    }
    *out = tls;
    return 0;
}

void oribi_tls_retain(struct oribi_tls *tls)
{
    tls->holds++;
}

void oribi_tls_release(struct oribi_tls *tls)
{
    if (!tls || --tls->holds > 0)
        return;
    for (uint32_t i = 0; i < tls->context_count; i++)
        SSL_CTX_free(tls->contexts[i]);
    for (uint32_t i = 0; i < tls->name_count; i++)
        oribi_mem_free(tls->names[i].text);
    for (uint32_t i = 0; i < tls->staple_count; i++) {
        oribi_buf_deinit(tls->staples[i]);
        oribi_mem_free(tls->staples[i]);
    }
    oribi_mem_free(tls->staples);
    oribi_mem_free(tls->contexts);
    oribi_mem_free(tls->names);
    oribi_buf_deinit(&tls->cipher);
    BIO_meth_free(tls->method);
    oribi_mem_free(tls);
}

int64_t oribi_tls_ends_s(const struct oribi_tls *tls, uint32_t i)
{
    return i < tls->end_count ? tls->ends_s[i] : INT64_MAX;
}

bool oribi_tls_is_placeholder(const struct oribi_tls *tls, uint32_t i)
{
    return i < tls->end_count && tls->placeholders[i];
}

int64_t oribi_tls_expires_s(const struct oribi_tls *tls)
{
    return tls->expires_s;
}
