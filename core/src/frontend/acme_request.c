/* Key, request and certificate of an order, by OpenSSL; see acme.h. */
#include "frontend/acme.h"
#include "frontend/tls.h"

#include "oribi/base/mem.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

/* --- a request --- */

/* "DNS:a.org,DNS:b.org": names are host names, which have no comma and nothing else that this text means. */
static X509_EXTENSION *names_of(const struct oribi_acme_line *line)
{
    struct oribi_buf text = {0};
    for (uint32_t i = 0; i < line->count; i++)
        oribi_buf_print(&text, "%sDNS:%s", i ? "," : "", line->names[i]);
    oribi_buf_append(&text, "", 1);
    X509_EXTENSION *names = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, text.p);
    oribi_buf_deinit(&text);
    return names;
}

static bool add_names(X509_REQ *request, const struct oribi_acme_line *line)
{
    STACK_OF(X509_EXTENSION) *all = sk_X509_EXTENSION_new_null();
    X509_EXTENSION *names = names_of(line);
    bool added = all && names && sk_X509_EXTENSION_push(all, names) > 0;
    if (!added)
        X509_EXTENSION_free(names);
    added = added && X509_REQ_add_extensions(request, all) == 1;
    sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
    return added;
}

static bool append(BIO *bio, struct oribi_buf *out)
{
    char *p;
    long n = BIO_get_mem_data(bio, &p);
    return n > 0 && oribi_buf_try_append(out, p, (size_t)n) == 0;
}

/* The subject is empty: authorities take the names of subjectAltName alone (RFC 8555 7.4). */
int oribi__acme_request_make(const struct oribi_acme_line *line, struct oribi_buf *key, struct oribi_buf *request)
{
    EVP_PKEY *made = EVP_EC_gen("P-256");
    X509_REQ *asks = X509_REQ_new();
    BIO *of_key = BIO_new(BIO_s_secmem());
    BIO *of_request = BIO_new(BIO_s_mem());
    bool good = made && asks && of_key && of_request && X509_REQ_set_version(asks, X509_REQ_VERSION_1) == 1 &&
                X509_REQ_set_pubkey(asks, made) == 1 && add_names(asks, line) &&
                X509_REQ_sign(asks, made, EVP_sha256()) > 0 &&
                PEM_write_bio_PrivateKey(of_key, made, NULL, NULL, 0, NULL, NULL) == 1 &&
                PEM_write_bio_X509_REQ(of_request, asks) == 1 && append(of_key, key) && append(of_request, request);
    BIO_free(of_key);
    BIO_free(of_request);
    X509_REQ_free(asks);
    EVP_PKEY_free(made);
    ERR_clear_error();
    return good ? 0 : ORIBI_ENOMEM;
}

/* --- a certificate --- */

static X509 *leaf_of(struct oribi_slice chain)
{
    BIO *bio = BIO_new_mem_buf(chain.p, (int)chain.n);
    X509 *leaf = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    return leaf;
}

static bool has_names(X509 *leaf, const struct oribi_acme_line *line)
{
    for (uint32_t i = 0; i < line->count; i++)
        if (X509_check_host(leaf, line->names[i], 0, X509_CHECK_FLAG_NO_WILDCARDS, NULL) != 1)
            return false;
    return true;
}

static void read_serial(const X509 *leaf, char *dst, size_t cap)
{
    BIGNUM *number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(leaf), NULL);
    char *hex = number ? BN_bn2hex(number) : NULL;
    if (!hex || strlen(hex) >= cap)
        (void)snprintf(dst, cap, "-");
    else
        (void)snprintf(dst, cap, "%s", hex);
    OPENSSL_free(hex);
    BN_free(number);
}

int oribi__acme_look(struct oribi_slice chain, struct oribi_slice key, const struct oribi_acme_line *line,
                     struct oribi__acme_found *found, char *error)
{
    const struct oribi_tls_certificate pair = {
        .chain = chain, .key = key, .name = oribi_slice(line->names[0], strlen(line->names[0]))};
    struct oribi_tls_look look;
    int code = oribi_tls_look(&pair, &look, error);
    if (code < 0)
        return code == ORIBI_ENOMEM ? (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "out of memory"), code : code;
    X509 *leaf = leaf_of(chain);
    *found = (struct oribi__acme_found){.begins_s = look.begins_s, .expires_s = look.expires_s, .serial = "-"};
    if (leaf) {
        found->has_names = has_names(leaf, line);
        read_serial(leaf, found->serial, sizeof(found->serial));
    }
    X509_free(leaf);
    return 0;
}
