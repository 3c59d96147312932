/* Keys, requests and certificates of orders. */
#include "frontend/acme_request.c"
#include "frontend/tls_private.h"

#include "tap.h"

static char error[ORIBI_ERROR_TEXT_CAP];
static struct oribi_acme_line line;

static X509_REQ *read_request(const struct oribi_buf *text)
{
    BIO *bio = BIO_new_mem_buf(text->p, (int)text->len);
    X509_REQ *request = PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL);
    BIO_free(bio);
    return request;
}

static void test_a_request_has_the_names_and_the_key(void)
{
    struct oribi_buf key = {0};
    struct oribi_buf text = {0};
    ok_eq(oribi_acme_read("a.test,www.a.test", &line, error), 0);
    ok_eq(oribi__acme_request_make(&line, &key, &text), 0);
    X509_REQ *request = read_request(&text);
    ok(request != NULL);
    BIO *bio = BIO_new_mem_buf(key.p, (int)key.len);
    EVP_PKEY *own = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    ok(own && EVP_PKEY_eq(X509_REQ_get0_pubkey(request), own) == 1);
    ok_eq(X509_REQ_verify(request, own), 1);
    STACK_OF(X509_EXTENSION) *all = X509_REQ_get_extensions(request);
    GENERAL_NAMES *names = X509V3_get_d2i(all, NID_subject_alt_name, NULL, NULL);
    ok_eq(sk_GENERAL_NAME_num(names), 2);
    ok_eq(X509_NAME_entry_count(X509_REQ_get_subject_name(request)), 0);
    GENERAL_NAMES_free(names);
    sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
    EVP_PKEY_free(own);
    BIO_free(bio);
    X509_REQ_free(request);
    oribi_buf_deinit(&key);
    oribi_buf_deinit(&text);
}

/* A placeholder is a pair like another. */
static void make_pair(const char *names, struct oribi_buf *out)
{
    X509 *leaf;
    EVP_PKEY *key;
    ok_eq(oribi__tls_placeholder(oribi_slice(names, strlen(names)), &leaf, &key), 0);
    BIO *bio = BIO_new(BIO_s_mem());
    ok(PEM_write_bio_X509(bio, leaf) == 1 && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
    ok(append(bio, out));
    BIO_free(bio);
    X509_free(leaf);
    EVP_PKEY_free(key);
}

static void test_a_pair_is_looked_at(void)
{
    struct oribi_buf one = {0};
    struct oribi_buf two = {0};
    struct oribi__acme_found found;
    make_pair("a.test,b.test", &one);
    make_pair("a.test", &two);
    struct oribi_slice first = {one.p, one.len};
    struct oribi_slice second = {two.p, two.len};
    ok_eq(oribi_acme_read("a.test,b.test", &line, error), 0);
    ok_eq(oribi__acme_look(first, first, &line, &found, error), 0);
    ok(found.has_names && found.expires_s - found.begins_s == 7 * 24 * 3600 && strlen(found.serial) >= 8);
    ok_eq(oribi__acme_look(second, second, &line, &found, error), 0);
    ok(!found.has_names);
    ok_eq(oribi__acme_look(first, second, &line, &found, error), ORIBI_EINVAL);
    ok_named(strstr(error, "a.test: the key is not this certificate's") != NULL, "%s", error);
    ok_eq(oribi__acme_look(ORIBI_SLICE(""), first, &line, &found, error), ORIBI_EINVAL);
    ok_eq(oribi__acme_look(ORIBI_SLICE("nonsense"), first, &line, &found, error), ORIBI_EINVAL);
    oribi_buf_deinit(&one);
    oribi_buf_deinit(&two);
}

int main(void)
{
    test_a_request_has_the_names_and_the_key();
    test_a_pair_is_looked_at();
    return done_testing();
}
