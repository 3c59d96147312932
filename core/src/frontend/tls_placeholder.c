/* Self-signed certificates that serve until an authority's has come. The key lives in this process alone. */
#include "frontend/tls_private.h"

#include "oribi/base/error.h"

#include <openssl/rand.h>
#include <openssl/x509v3.h>

enum { BEFORE_S = 3600, LIFE_S = 7 * 24 * 3600 };

static bool add_name(GENERAL_NAMES *names, const char *p, size_t n)
{
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_IA5STRING *text = ASN1_IA5STRING_new();
    bool added = name && text && ASN1_STRING_set(text, p, (int)n) == 1;
    if (added) {
        GENERAL_NAME_set0_value(name, GEN_DNS, text);
        text = NULL; /* taken */
        added = sk_GENERAL_NAME_push(names, name) > 0;
    }
    if (!added)
        GENERAL_NAME_free(name);
    ASN1_IA5STRING_free(text);
    return added;
}

static int add_names(X509 *leaf, struct oribi_slice all)
{
    GENERAL_NAMES *names = sk_GENERAL_NAME_new_null();
    const char *at = all.p;
    const char *end = all.p + all.n;
    int code = names ? 0 : ORIBI_ENOMEM;
    while (code == 0 && at <= end) {
        const char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL;
        size_t n = (size_t)((comma ? comma : end) - at);
        if (n == 0 || n > ORIBI__TLS_NAME_MAX || sk_GENERAL_NAME_num(names) == ORIBI__TLS_NAMES_MAX)
            code = ORIBI_EINVAL;
        else if (!add_name(names, at, n))
            code = ORIBI_ENOMEM;
        at = comma ? comma + 1 : end + 1;
    }
    if (code == 0 && X509_add1_ext_i2d(leaf, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) != 1)
        code = ORIBI_ENOMEM;
    sk_GENERAL_NAME_pop_free(names, GENERAL_NAME_free);
    return code;
}

/* Firefox refuses a certificate whose serial number it knows of the same issuer: each has a number of its own. */
static bool number(X509 *leaf)
{
    uint64_t serial = 0;
    return RAND_bytes((unsigned char *)&serial, sizeof(serial)) == 1 &&
           ASN1_INTEGER_set_uint64(X509_get_serialNumber(leaf), (serial >> 1) | 1) == 1;
}

static bool fill(X509 *leaf, EVP_PKEY *key)
{
    static const unsigned char title[] = "Oribi placeholder";
    X509_NAME *name = X509_get_subject_name(leaf);
    return X509_set_version(leaf, X509_VERSION_3) == 1 && number(leaf) &&
           X509_gmtime_adj(X509_getm_notBefore(leaf), -BEFORE_S) &&
           X509_gmtime_adj(X509_getm_notAfter(leaf), LIFE_S - BEFORE_S) &&
           X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, title, sizeof(title) - 1, -1, 0) == 1 &&
           X509_set_issuer_name(leaf, name) == 1 && X509_set_pubkey(leaf, key) == 1;
}

int oribi__tls_placeholder(struct oribi_slice names, X509 **leaf, EVP_PKEY **key)
{
    EVP_PKEY *made_key = EVP_EC_gen("P-256");
    X509 *made = X509_new();
    int code = made_key && made && fill(made, made_key) ? add_names(made, names) : ORIBI_ENOMEM;
    if (code == 0 && X509_sign(made, made_key, EVP_sha256()) == 0)
        code = ORIBI_ENOMEM;
    if (code < 0) {
        X509_free(made);
        EVP_PKEY_free(made_key);
        return code;
    }
    *leaf = made;
    *key = made_key;
    return 0;
}
