/* Findings about certificates by ACME, and about others beside them. */
#include "frontend/certificate_check.c"
#include "frontend/tls_private.h"

#include "tap.h"

#include <openssl/pem.h>

enum { WEEK_S = 7 * DAY_S };

static struct oribi_buf pem;
static char found[4096];

static void make_pair(void)
{
    X509 *leaf;
    EVP_PKEY *key;
    char *p;
    ok_eq(oribi__tls_placeholder(ORIBI_SLICE("a.test"), &leaf, &key), 0);
    BIO *bio = BIO_new(BIO_s_mem());
    ok(PEM_write_bio_X509(bio, leaf) == 1 && PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) == 1);
    long n = BIO_get_mem_data(bio, &p);
    oribi_buf_append(&pem, p, (size_t)n);
    BIO_free(bio);
    X509_free(leaf);
    EVP_PKEY_free(key);
}

/* Writes what is printed to `found`. */
static bool look(const struct oribi_tls_certificate *pair, int64_t after_s)
{
    FILE *file = tmpfile();
    (void)fflush(stdout);
    int kept = oribi_os_dup(STDOUT_FILENO);
    (void)dup2(fileno(file), STDOUT_FILENO);
    bool good = look_at_pair(pair, oribi_clock_wall_s() + after_s);
    (void)fflush(stdout);
    (void)dup2(kept, STDOUT_FILENO);
    oribi_os_close(kept);
    rewind(file);
    found[fread(found, 1, sizeof(found) - 1, file)] = '\0';
    (void)fclose(file);
    return good;
}

static bool is_found(const char *level, const char *id)
{
    char begin[64];
    (void)snprintf(begin, sizeof(begin), "%s\t%s\t", level, id);
    return strncmp(found, begin, strlen(begin)) == 0;
}

static struct oribi_tls_certificate certificate(bool by_acme)
{
    struct oribi_slice text = oribi_slice(pem.p, pem.len);
    return (struct oribi_tls_certificate){.chain = text,
                                          .key = text,
                                          .name = ORIBI_SLICE("a.test.pem"),
                                          .names = by_acme ? ORIBI_SLICE("a.test") : oribi_slice("", 0)};
}

static void test_a_certificate_that_has_not_come_is_no_finding(void)
{
    struct oribi_tls_certificate none = {
        .name = ORIBI_SLICE("a.test.pem"), .names = ORIBI_SLICE("a.test"), .placeholder = true};
    ok(look(&none, 0));
    is_str(found, "");
}

static void test_a_pair_that_cannot_be_used(void)
{
    struct oribi_tls_certificate bad = certificate(true);
    bad.key = ORIBI_SLICE("no key");
    ok(!look(&bad, 0));
    ok_named(is_found("risk", "certificate-acme"), "the server starts: %s", found);
    bad.names = oribi_slice("", 0);
    ok(!look(&bad, 0));
    ok_named(is_found("wrong", "certificate"), "the server does not start: %s", found);
}

static void test_the_end_of_its_time(void)
{
    struct oribi_tls_certificate renewed = certificate(true);
    struct oribi_tls_certificate given = certificate(false);
    ok(look(&renewed, 0) && !found[0]);
    ok(look(&given, WEEK_S - 2 * DAY_S) && is_found("risk", "certificate-expires"));
    ok_named(look(&renewed, WEEK_S - 2 * DAY_S) && !found[0], "it is renewed at that time");
    ok(look(&renewed, WEEK_S - DAY_S) && is_found("risk", "certificate-expires"));
    ok_named(strstr(found, "see why it was not renewed") != NULL, "%s", found);
    ok(look(&renewed, WEEK_S) && is_found("risk", "certificate-expired"));
    ok(look(&given, WEEK_S) && is_found("wrong", "certificate-expired"));
}

int main(void)
{
    make_pair();
    test_a_certificate_that_has_not_come_is_no_finding();
    test_a_pair_that_cannot_be_used();
    test_the_end_of_its_time();
    oribi_buf_deinit(&pem);
    return done_testing();
}
