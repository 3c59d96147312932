/* TLS beside OpenSSL's own client, over socket pairs. Certificates are made here. */
#include "frontend/tls_private.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/config/options.h"

#include "tap.h"
#include "tls_client.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LONG_BYTES = 3 * 1024 * 1024 };

/* --- cases --- */

static void test_both_versions_and_what_is_known(void)
{
    struct made made = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct oribi_tls_certificate certificate = pair(&made, &made);
    struct oribi_tls *tls = contexts(&certificate, 1, true);
    static const int versions[] = {TLS1_3_VERSION, TLS1_2_VERSION};
    for (size_t i = 0; i < 2; i++) {
        struct both both;
        begin(&both, tls, "a.test", versions[i], "\x02h2\x08http/1.1", NULL);
        shake(&both);
        ok_eq(both.step, ORIBI_TLS_DONE);
        const struct oribi_tls_info *info = oribi_tls_info(both.server);
        ok(info->h2 && !info->resumed);
        is_bytes(info->version.p, info->version.n, i ? "TLSv1.2" : "TLSv1.3", 7);
        is_bytes(info->sni.p, info->sni.n, "a.test", 6);
        end(&both);
    }
    struct both old;
    begin(&old, tls, "a.test", TLS1_1_VERSION, NULL, NULL);
    SSL_set_min_proto_version(old.client, TLS1_VERSION);
    SSL_set_security_level(old.client, 0);
    shake(&old);
    ok_eq(old.step, ORIBI_TLS_FAILED);
    end(&old);
    begin(&old, tls, "a.test", TLS1_3_VERSION, "\x03xyz", NULL);
    shake(&old);
    ok_named(old.step == ORIBI_TLS_FAILED, "no protocol in common");
    end(&old);
    begin(&old, tls, "a.test", TLS1_3_VERSION, NULL, NULL);
    shake(&old);
    ok_eq(old.step, ORIBI_TLS_DONE);
    ok(!oribi_tls_info(old.server)->h2);
    end(&old);
    oribi_tls_release(tls);
}

static void test_names(void)
{
    struct made first = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct made second = make("DNS:b.test,DNS:*.c.test", EVP_PKEY_EC, 30);
    struct made rsa = make("DNS:b.test,DNS:*.c.test", EVP_PKEY_RSA, 30);
    struct oribi_tls_certificate certificates[] = {pair(&first, &first), pair(&rsa, &rsa), pair(&second, &second)};
    struct oribi_tls *tls = contexts(certificates, 3, true);
    static const char *const names[][2] = {{"a.test", "a"}, {"B.test", "b"},     {"x.c.test", "b"},
                                           {"c.test", "a"}, {"x.y.c.test", "a"}, {"other.test", "a"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct both both;
        begin(&both, tls, names[i][0], TLS1_3_VERSION, NULL, NULL);
        shake(&both);
        X509 *x509 = SSL_get0_peer_certificate(both.client);
        bool is_b = x509 && X509_check_host(x509, "b.test", 0, 0, NULL) == 1;
        ok_named(x509 && is_b == (names[i][1][0] == 'b'), "the certificate of that name");
        ok_named(x509 && EVP_PKEY_get_base_id(X509_get0_pubkey(x509)) == EVP_PKEY_EC, "ECDSA before RSA");
        end(&both);
    }
    oribi_tls_release(tls);
}

static void test_the_name_that_was_asked_for(void)
{
    struct made made = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct oribi_tls_certificate certificate = pair(&made, &made);
    struct oribi_tls *tls = contexts(&certificate, 1, true);
    static const char *const names[][2] = {{"A.Test", "a.test"}, {"a_b-1.test.", "a_b-1.test."},
                                           {"a b", ""},          {"a\r\nx: y", ""},
                                           {"a\x7f", ""},        {"\xe9.test", ""}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct both both;
        begin(&both, tls, names[i][0], i % 2 ? TLS1_2_VERSION : TLS1_3_VERSION, NULL, NULL);
        shake(&both);
        const struct oribi_tls_info *info = oribi_tls_info(both.server);
        ok_eq(both.step, ORIBI_TLS_DONE);
        is_bytes(info->sni.p, info->sni.n, names[i][1], strlen(names[i][1]));
        end(&both);
    }
    oribi_tls_release(tls);
}

/* One frontend gives a ticket, another takes it; after two turns of the keys nobody does. */
static void test_tickets_of_all_frontends(void)
{
    struct made made = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct oribi_tls_certificate certificate = pair(&made, &made);
    memset(tickets.keys[0], 1, sizeof(tickets.keys[0]));
    struct oribi_tls *one = contexts(&certificate, 1, true);
    struct oribi_tls *other = contexts(&certificate, 1, true);
    struct both both;
    begin(&both, one, "a.test", TLS1_2_VERSION, NULL, NULL);
    shake(&both);
    SSL_SESSION *session = SSL_get1_session(both.client);
    end(&both);
    for (int turns = 0; turns <= ORIBI_TLS_TICKET_KEYS; turns++) {
        begin(&both, other, "a.test", TLS1_2_VERSION, NULL, session);
        shake(&both);
        ok_eq(both.step, ORIBI_TLS_DONE);
        ok_eq(oribi_tls_info(both.server)->resumed, turns < ORIBI_TLS_TICKET_KEYS);
        end(&both);
        memmove(tickets.keys[1], tickets.keys[0], sizeof(tickets.keys) - sizeof(tickets.keys[0]));
        memset(tickets.keys[0], 10 + turns, sizeof(tickets.keys[0]));
    }
    SSL_SESSION_free(session);
    oribi_tls_release(one);
    oribi_tls_release(other);
}

/* Both directions, through a socket that takes little at a time. */
static void test_many_bytes(void)
{
    struct made made = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct oribi_tls_certificate certificate = pair(&made, &made);
    struct oribi_tls *tls = contexts(&certificate, 1, true);
    char *sent = malloc(LONG_BYTES);
    char *got = malloc(LONG_BYTES);
    for (size_t i = 0; i < LONG_BYTES; i++)
        sent[i] = (char)(i * 7 + i / 4096);
    struct both both;
    begin(&both, tls, "a.test", TLS1_3_VERSION, NULL, NULL);
    shake(&both);
    struct oribi_transport *transport = oribi_tls_transport(both.server);
    size_t out = 0;
    size_t in = 0;
    for (int i = 0; i < TURNS_MAX && in < LONG_BYTES; i++) {
        size_t part = LONG_BYTES - out < 100000 ? LONG_BYTES - out : 100000;
        struct iovec vec[2] = {{sent + out, part ? 1 : 0}, {sent + out + 1, part ? part - 1 : 0}};
        ssize_t n = part ? transport->send_vec(transport, vec, 2, false) : 0;
        out += n > 0 ? (size_t)n : 0;
        int read = SSL_read(both.client, got + in, (int)(LONG_BYTES - in));
        in += read > 0 ? (size_t)read : 0;
    }
    ok_eq(out, LONG_BYTES);
    ok_named(in == LONG_BYTES && memcmp(sent, got, LONG_BYTES) == 0, "every byte once, in order");
    in = out = 0;
    memset(got, 0, LONG_BYTES);
    for (int i = 0; i < TURNS_MAX && in < LONG_BYTES; i++) {
        int written = out < LONG_BYTES ? SSL_write(both.client, sent + out, (int)(LONG_BYTES - out)) : 0;
        out += written > 0 ? (size_t)written : 0;
        ssize_t n = transport->read(transport, got + in, LONG_BYTES - in < 50000 ? LONG_BYTES - in : 50000);
        in += n > 0 ? (size_t)n : 0;
    }
    ok_named(in == LONG_BYTES && memcmp(sent, got, LONG_BYTES) == 0, "every byte of the client");
    char byte;
    ok_eq(transport->read(transport, &byte, 1), ORIBI_AGAIN);
    (void)SSL_shutdown(both.client);
    ok_named(transport->read(transport, &byte, 1) == 0, "the client's end");
    transport->shut(transport);
    ok_eq(SSL_read(both.client, &byte, 1), 0);
    ok_eq(SSL_get_error(both.client, 0), SSL_ERROR_ZERO_RETURN);
    end(&both);
    free(sent);
    free(got);
    oribi_tls_release(tls);
}

static bool can_read(int fd)
{
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1;
}

/* Whoever reads takes a short read for the last one until the socket says that there is more. */
static void test_an_end_right_behind_bytes(void)
{
    static const char broken[] = "\x17\x03\x03\x00\x20no record of TLS, with 32 bytes.";
    struct made made = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct oribi_tls_certificate certificate = pair(&made, &made);
    struct oribi_tls *tls = contexts(&certificate, 1, true);
    for (int closes = 0; closes < 2; closes++) {
        struct both both;
        char got[100];
        begin(&both, tls, "a.test", TLS1_3_VERSION, NULL, NULL);
        shake(&both);
        struct oribi_transport *transport = oribi_tls_transport(both.server);
        ok_eq(transport->read(transport, got, sizeof(got)), ORIBI_AGAIN);
        ok_eq(SSL_write(both.client, "bytes", 5), 5);
        if (closes)
            (void)SSL_shutdown(both.client);
        else
            ok_eq(write(both.fds[1], broken, sizeof(broken) - 1), sizeof(broken) - 1);
        ok_eq(transport->read(transport, got, sizeof(got)), 5);
        ok_named(can_read(both.fds[0]), "the socket tells of the end");
        ok_eq(transport->read(transport, got, sizeof(got)), closes ? 0 : ORIBI_ECLOSED);
        end(&both);
    }
    oribi_tls_release(tls);
}

static void test_an_end_within_a_record(void)
{
    struct made made = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct oribi_tls_certificate certificate = pair(&made, &made);
    struct oribi_tls *tls = contexts(&certificate, 1, true);
    struct both both;
    char got[100];
    begin(&both, tls, "a.test", TLS1_3_VERSION, NULL, NULL);
    shake(&both);
    struct oribi_transport *transport = oribi_tls_transport(both.server);
    ok_eq(transport->read(transport, got, sizeof(got)), ORIBI_AGAIN);
    ok_eq(write(both.fds[1], "\x17\x03\x03\x00\x20", 5), 5);
    ok_eq(write(both.fds[1], "half", 4), 4);
    ok_eq(shutdown(both.fds[1], SHUT_WR), 0);
    ok_eq(transport->read(transport, got, sizeof(got)), 0);
    end(&both);
    oribi_tls_release(tls);
}

static void test_what_is_no_tls(void)
{
    struct made made = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct oribi_tls_certificate certificate = pair(&made, &made);
    struct oribi_tls *tls = contexts(&certificate, 1, true);
    static const struct {
        const char *bytes;
        enum oribi_tls_step step;
    } cases[] = {{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", ORIBI_TLS_PLAIN},
                 {"OPTIONS * HTTP/1.1\r\n\r\n", ORIBI_TLS_PLAIN},
                 {"\x01\x02\x03\x04\x05\x06\x07", ORIBI_TLS_FAILED},
                 {"\x16\x03\x01", ORIBI_TLS_READS}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct both both;
        begin(&both, tls, "a.test", TLS1_3_VERSION, NULL, NULL);
        ok(write(both.fds[1], cases[i].bytes, strlen(cases[i].bytes)) > 0);
        ok_eq(oribi_tls_handshake(both.server), cases[i].step);
        end(&both);
    }
    struct both gone;
    begin(&gone, tls, "a.test", TLS1_3_VERSION, NULL, NULL);
    shutdown(gone.fds[1], SHUT_RDWR);
    ok_eq(oribi_tls_handshake(gone.server), ORIBI_TLS_GONE);
    end(&gone);
    oribi_tls_release(tls);
}

/* A PROXY header is read before the handshake, and some of what stands behind it with it. */
static void test_bytes_that_were_read_before_the_handshake(void)
{
    struct made made = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct oribi_tls_certificate certificate = pair(&made, &made);
    struct oribi_tls *tls = contexts(&certificate, 1, true);
    char hello[4096];
    for (int part = 0; part <= 4; part++) {
        struct both both;
        begin(&both, tls, "a.test", TLS1_3_VERSION, NULL, NULL);
        (void)SSL_do_handshake(both.client);
        ssize_t n = read(both.fds[0], hello, sizeof(hello));
        size_t early = n > 0 ? (size_t)n * (size_t)part / 4 : 0;
        ok_eq(oribi_tls_early(both.server, oribi_slice(hello, early)), 0);
        ok_eq(write(both.fds[1], hello + early, (size_t)n - early), n - (ssize_t)early);
        shake(&both);
        ok_eq(both.step, ORIBI_TLS_DONE);
        end(&both);
    }
    struct both plain;
    begin(&plain, tls, "a.test", TLS1_3_VERSION, NULL, NULL);
    ok_eq(oribi_tls_early(plain.server, ORIBI_SLICE("GET / HTTP/1.1\r\n\r\n")), 0);
    ok_eq(oribi_tls_handshake(plain.server), ORIBI_TLS_PLAIN);
    is_bytes(oribi_tls_first(plain.server).p, oribi_tls_first(plain.server).n, "GET / HTTP/1.1\r\n\r\n", 18);
    end(&plain);
    oribi_tls_release(tls);
}

static void test_what_is_wrong_is_said(void)
{
    struct made made = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct made other = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct made expired = make("DNS:a.test", EVP_PKEY_EC, -1);
    struct oribi_tls *tls = NULL;
    struct oribi_tls_certificate certificate = pair(&made, &other);
    struct oribi_tls_config config = {.certificates = &certificate, .count = 1};
    ok_eq(oribi_tls_create(&config, NULL, &tls, error), ORIBI_EINVAL);
    is_str(error, "site.pem: the key is not this certificate's");
    certificate.key = ORIBI_SLICE("");
    ok_eq(oribi_tls_create(&config, NULL, &tls, error), ORIBI_EINVAL);
    is_str(error, "site.pem: its key cannot be read: no PEM, or encrypted");
    certificate.chain = ORIBI_SLICE("hello");
    ok_eq(oribi_tls_create(&config, NULL, &tls, error), ORIBI_EINVAL);
    is_str(error, "site.pem: there is no certificate in it (PEM)");
    struct made chain = made;
    memcpy(chain.chain + chain.chain_len, other.chain, other.chain_len);
    chain.chain_len += other.chain_len;
    certificate = pair(&chain, &made);
    bool same_name =
        oribi_tls_create(&config, NULL, &tls, error) == 0; /* one name signs the other, as far as names say */
    if (same_name)
        oribi_tls_release(tls);
    config.count = 0;
    ok_eq(oribi_tls_create(&config, NULL, &tls, error), ORIBI_EINVAL);
    config.count = 1;
    certificate = pair(&expired, &expired);
    ok_eq(oribi_tls_create(&config, NULL, &tls, error), 0);
    is_str(error, "site.pem: it has expired");
    oribi_tls_release(tls);
}

static void test_a_placeholder_for_its_names(void)
{
    struct made real = make("DNS:a.test", EVP_PKEY_RSA, 30);
    struct oribi_tls_certificate certificates[] = {
        pair(&real, &real),
        {.name = ORIBI_SLICE("a.test.pem"), .names = ORIBI_SLICE("a.test,b.test,www.b.test"), .placeholder = true}};
    struct oribi_tls *tls = contexts(certificates, 2, true);
    ok_eq(error[0], 0);
    ok(!oribi_tls_is_placeholder(tls, 0) && oribi_tls_is_placeholder(tls, 1));
    ok_eq(oribi_tls_ends_s(tls, 1), INT64_MAX);
    ok(oribi_tls_expires_s(tls) == oribi_tls_ends_s(tls, 0));
    static const char *const names[] = {"a.test", "b.test", "www.b.test"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct both both;
        begin(&both, tls, names[i], TLS1_3_VERSION, NULL, NULL);
        shake(&both);
        X509 *x509 = SSL_get0_peer_certificate(both.client);
        ok(x509 && X509_check_host(x509, names[i], 0, X509_CHECK_FLAG_NO_WILDCARDS, NULL) == 1);
        bool is_rsa = x509 && EVP_PKEY_get_base_id(X509_get0_pubkey(x509)) == EVP_PKEY_RSA;
        ok_named(is_rsa == (i == 0), "a certificate goes before a placeholder");
        ok_named(!x509 || i == 0 ||
                     (X509_cmp_current_time(X509_get0_notBefore(x509)) < 0 &&
                      X509_cmp_current_time(X509_get0_notAfter(x509)) > 0 && X509_self_signed(x509, 1) == 1),
                 "valid now, and signed by its own key");
        end(&both);
    }
    oribi_tls_release(tls);
}

static int make_placeholder(const char *names)
{
    X509 *leaf;
    EVP_PKEY *key;
    int code = oribi__tls_placeholder(oribi_slice(names, strlen(names)), &leaf, &key);
    if (code == 0) {
        X509_free(leaf);
        EVP_PKEY_free(key);
    }
    return code;
}

static void test_names_that_no_placeholder_has(void)
{
    char text[ORIBI__TLS_NAMES_MAX * 2 + 2];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 2 ? ',' : 'a';
    text[ORIBI__TLS_NAMES_MAX * 2 - 1] = '\0';
    ok_eq(make_placeholder(text), 0);
    text[ORIBI__TLS_NAMES_MAX * 2 - 1] = ',';
    text[ORIBI__TLS_NAMES_MAX * 2 + 1] = '\0';
    ok_eq(make_placeholder(text), ORIBI_EINVAL);
    char name[ORIBI__TLS_NAME_MAX + 2];
    memset(name, 'a', sizeof(name));
    name[ORIBI__TLS_NAME_MAX] = '\0';
    ok_eq(make_placeholder(name), 0);
    name[ORIBI__TLS_NAME_MAX] = 'a';
    name[ORIBI__TLS_NAME_MAX + 1] = '\0';
    ok_eq(make_placeholder(name), ORIBI_EINVAL);
    ok_eq(make_placeholder(""), ORIBI_EINVAL);
    ok_eq(make_placeholder("a.test,"), ORIBI_EINVAL);
    ok_eq(make_placeholder(",a.test"), ORIBI_EINVAL);
}

int main(void)
{
    test_both_versions_and_what_is_known();
    test_names();
    test_the_name_that_was_asked_for();
    test_tickets_of_all_frontends();
    test_many_bytes();
    test_an_end_right_behind_bytes();
    test_an_end_within_a_record();
    test_what_is_no_tls();
    test_bytes_that_were_read_before_the_handshake();
    test_what_is_wrong_is_said();
    ok_eq(oribi_mem_blocks(), 0);
    test_a_placeholder_for_its_names();
    test_names_that_no_placeholder_has();
    return done_testing();
}
