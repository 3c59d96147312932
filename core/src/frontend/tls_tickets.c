/* Session tickets (RFC 5077, RFC 8446 4.6.1): the client keeps its session, encrypted by keys that all frontends
 * share. */
#include "frontend/tls_private.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <string.h>

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

void oribi__tls_tickets_begin(SSL_CTX *context, const struct oribi_tls_tickets *tickets)
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
