/* Certificates of a frontend: those that it begins with, and those that come later. */
#include "frontend/config.c"
#include "frontend/tls_private.h"

#include "tap.h"

#include <openssl/pem.h>

enum { TEXT_CAP = 32 * 1024 };

struct text {
    char p[TEXT_CAP];
    size_t n;
};

static char error[ORIBI_ERROR_TEXT_CAP];
static struct oribi_options options;

static void add(struct text *text, const char *name, const char *value, size_t n)
{
    text->n += (size_t)snprintf(text->p + text->n, TEXT_CAP - text->n, "%s %zu\n", name, n);
    memcpy(text->p + text->n, value, n);
    text->p[text->n + n] = '\n';
    text->n += n + 1;
}

/* A placeholder of the same kind makes the pairs of these cases. */
static void add_pair(struct text *text, const char *names)
{
    X509 *leaf;
    EVP_PKEY *key;
    char *p;
    if (oribi__tls_placeholder(oribi_slice(names, strlen(names)), &leaf, &key) < 0)
        return;
    BIO *bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, leaf);
    size_t n = (size_t)BIO_get_mem_data(bio, &p);
    add(text, "chain", p, n);
    (void)BIO_reset(bio);
    PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
    n = (size_t)BIO_get_mem_data(bio, &p);
    add(text, "key", p, n);
    BIO_free(bio);
    X509_free(leaf);
    EVP_PKEY_free(key);
}

static void begin_certificate(struct text *text, const char *name)
{
    add(text, "certificate 0", name, strlen(name));
}

static void name_it(struct text *text, const char *word, const char *names)
{
    add(text, word, names, strlen(names));
}

static int take(struct oribi_frontend_config *config, const struct text *text)
{
    error[0] = '\0';
    return take_records(config, NULL, text->p, text->n, error);
}

static struct oribi_frontend_config fresh(void)
{
    struct oribi_frontend_config config = {.options = &options, .listener_count = 1};
    config.listeners[0].tls = true;
    return config;
}

static void test_a_placeholder_serves_until_the_certificate_has_come(void)
{
    static struct text before;
    static struct text after;
    struct oribi_frontend_config config = fresh();
    begin_certificate(&before, "a.pem");
    name_it(&before, "placeholder", "a.test");
    ok_eq(take(&config, &before), 0);
    ok(oribi_tls_is_placeholder(config.listeners[0].contexts, 0));
    begin_certificate(&after, "a.pem");
    add_pair(&after, "a.test");
    name_it(&after, "managed", "a.test");
    ok_eq(take(&config, &after), 0);
    ok(!oribi_tls_is_placeholder(config.listeners[0].contexts, 0));
    struct oribi_tls *serves = config.listeners[0].contexts;
    ok_eq(take(&config, &before), ORIBI_EINVAL);
    is_str(error, "a.pem: the file has gone");
    ok_named(config.listeners[0].contexts == serves, "the certificate serves on");
    oribi_tls_release(serves);
}

static void test_a_pair_that_cannot_be_used(void)
{
    static struct text bad;
    static struct text good;
    struct oribi_frontend_config config = fresh();
    begin_certificate(&bad, "a.pem");
    name_it(&bad, "chain", "-----BEGIN");
    name_it(&bad, "key", "-----BEGIN");
    name_it(&bad, "managed", "a.test,b.test");
    ok_eq(take(&config, &bad), 0);
    ok_named(oribi_tls_is_placeholder(config.listeners[0].contexts, 0), "at a begin a placeholder serves");
    begin_certificate(&good, "a.pem");
    add_pair(&good, "a.test,b.test");
    name_it(&good, "managed", "a.test,b.test");
    ok_eq(take(&config, &good), 0);
    struct oribi_tls *serves = config.listeners[0].contexts;
    ok_eq(take(&config, &bad), ORIBI_EINVAL);
    ok_named(config.listeners[0].contexts == serves, "at a renewal the certificate serves on");
    oribi_tls_release(serves);
}

static void test_a_pair_of_no_authority_is_refused_at_a_begin(void)
{
    static struct text bad;
    struct oribi_frontend_config config = fresh();
    begin_certificate(&bad, "a.pem");
    name_it(&bad, "chain", "-----BEGIN");
    name_it(&bad, "key", "-----BEGIN");
    ok_eq(take(&config, &bad), ORIBI_EINVAL);
    ok(!config.listeners[0].contexts);
}

static void test_begun_again_without_its_file(void)
{
    static struct text bad;
    struct oribi_frontend_config config = fresh();
    name_it(&bad, "strict", "");
    begin_certificate(&bad, "a.pem");
    name_it(&bad, "chain", "-----BEGIN");
    name_it(&bad, "key", "-----BEGIN");
    name_it(&bad, "managed", "a.test");
    ok_named(take(&config, &bad) == ORIBI_EINVAL, "those that served last are better");
    ok(!config.listeners[0].contexts);
}

int main(void)
{
    oribi_options_init(&options);
    test_a_placeholder_serves_until_the_certificate_has_come();
    test_a_pair_that_cannot_be_used();
    test_a_pair_of_no_authority_is_refused_at_a_begin();
    test_begun_again_without_its_file();
    oribi_options_deinit(&options);
    return done_testing();
}
