/* Clients over TLS that no packaged tool plays: handshakes and nothing else, and connections that stay.
 *
 *     tls_clients full ADDRESS SECONDS        full handshakes, SLOTS at a time
 *     tls_clients resumed ADDRESS SECONDS     … that resume one session by its ticket
 *     tls_clients h1|h2 ADDRESS COUNT         COUNT connections, each with one answer of 13 bytes
 *
 * A client that has shaken hands closes in good order, reads until the server has closed as well, and counts. They
 * print one line of JSON: handshakes, us, errors (failed, or not resumed) and silent (the server did not close within
 * CLOSE_MS); or held, and then the connections stay until the input ends. */
#define _GNU_SOURCE
#include "http_client.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>

enum {
    SLOTS = 16,
    CLOSE_MS = 1000,
    TURN_MS = 100,
    PATIENCE_S = 10,
    H2_FRAME_HEAD = 9,
    H2_DATA = 0,
    H2_SETTINGS = 4,
    H2_LAST = 1
};

struct slot {
    SSL *ssl;
    int fd;
    bool done;      /* the handshake has ended, and so has the client */
    double since_s; /* when the handshake ended */
};

struct tally {
    long handshakes;
    long errors;
    long silent;
};

static struct http_address address;
static SSL_SESSION *resumed; /* what to resume: a copy, since a connection that has it may spoil it */

static int on_session(SSL *ssl, SSL_SESSION *session)
{
    (void)ssl;
    if (!resumed)
        resumed = SSL_SESSION_dup(session);
    return 0; /* not kept */
}

static SSL_CTX *context(void)
{
    SSL_CTX *made = SSL_CTX_new(TLS_client_method());
    if (!made || SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_ciphersuites(made, "TLS_AES_256_GCM_SHA384") != 1)
        exit(1);
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(made, on_session);
    SSL_CTX_set_mode(made, SSL_MODE_RELEASE_BUFFERS);
    return made;
}

/* --- handshakes --- */

static bool open_slot(struct slot *slot, SSL_CTX *made, SSL_SESSION *session)
{
    slot->fd = http_connect(&address, (struct http_connecting){.flags = SOCK_NONBLOCK});
    slot->ssl = slot->fd >= 0 ? SSL_new(made) : NULL;
    slot->done = false;
    if (!slot->ssl)
        return false;
    (void)SSL_set_fd(slot->ssl, slot->fd);
    SSL_SESSION *own = session ? SSL_SESSION_dup(session) : NULL;
    if (own)
        (void)SSL_set_session(slot->ssl, own);
    SSL_SESSION_free(own);
    SSL_set_connect_state(slot->ssl);
    return true;
}

static void close_slot(struct slot *slot)
{
    ERR_clear_error();
    SSL_free(slot->ssl);
    close(slot->fd);
    slot->ssl = NULL;
}

/* True when the slot's connection is over, and counted. */
static bool go_on(struct slot *slot, struct tally *tally, bool resumes)
{
    char byte;
    ERR_clear_error();
    if (!slot->done) {
        int result = SSL_do_handshake(slot->ssl);
        int why = SSL_get_error(slot->ssl, result);
        if (result != 1 && why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) {
            tally->errors++;
            return true;
        }
        if (result != 1)
            return false;
        slot->done = true;
        slot->since_s = http_now_s();
        tally->errors += resumes && !SSL_session_reused(slot->ssl);
        (void)SSL_shutdown(slot->ssl);
        (void)shutdown(slot->fd, SHUT_WR); /* some servers wait for it */
    }
    int result = SSL_read(slot->ssl, &byte, 1);
    bool ended = result <= 0 && SSL_get_error(slot->ssl, result) != SSL_ERROR_WANT_READ;
    bool silent = !ended && http_now_s() - slot->since_s > CLOSE_MS / 1000.0;
    if (!ended && !silent)
        return false;
    tally->handshakes++;
    tally->silent += silent;
    return true;
}

/* One round of all slots; a slot whose connection is over gets another. */
static bool turn(struct slot slots[SLOTS], SSL_CTX *made, struct tally *tally, SSL_SESSION *session)
{
    struct pollfd polled[SLOTS];
    for (int i = 0; i < SLOTS; i++) {
        if (!slots[i].ssl && !open_slot(&slots[i], made, session))
            return false;
        short wanted = SSL_want_write(slots[i].ssl) || SSL_get_state(slots[i].ssl) == TLS_ST_BEFORE ? POLLOUT : POLLIN;
        polled[i] = (struct pollfd){.fd = slots[i].fd, .events = wanted};
    }
    (void)poll(polled, SLOTS, TURN_MS);
    for (int i = 0; i < SLOTS; i++)
        if ((polled[i].revents || slots[i].done) && go_on(&slots[i], tally, session != NULL))
            close_slot(&slots[i]);
    return true;
}

/* --- connections that stay --- */

static bool read_all(SSL *ssl, char *dst, size_t n)
{
    for (size_t got = 0; got < n;) {
        int read = SSL_read(ssl, dst + got, (int)(n - got));
        if (read <= 0)
            return false;
        got += (size_t)read;
    }
    return true;
}

static bool ask_h1(SSL *ssl)
{
    static const char text[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char answer[4096];
    size_t len = 0;
    if (SSL_write(ssl, text, sizeof(text) - 1) != sizeof(text) - 1)
        return false;
    while (len < sizeof(answer)) {
        int read = SSL_read(ssl, answer + len, (int)(sizeof(answer) - len));
        if (read <= 0)
            return false;
        len += (size_t)read;
        if (memmem(answer, len, "Hello, World!", 13))
            return memcmp(answer, "HTTP/1.1 200", 12) == 0;
    }
    return false;
}

/* Stream 1: GET / of https://localhost, of indexed fields (RFC 7541, Appendix A) and one literal. */
static bool ask_h2(SSL *ssl)
{
    static const char text[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                               "\0\0\0\4\0\0\0\0\0"
                               "\0\0\x0e\1\5\0\0\0\1"
                               "\x82\x84\x87\x01\x09localhost";
    static const char acknowledged[] = "\0\0\0\4\1\0\0\0\0";
    char payload[16384];
    unsigned char head[H2_FRAME_HEAD];
    bool body = false;
    if (SSL_write(ssl, text, sizeof(text) - 1) != sizeof(text) - 1)
        return false;
    while (read_all(ssl, (char *)head, sizeof(head))) {
        size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        if (len > sizeof(payload) || !read_all(ssl, payload, len))
            return false;
        if (head[3] == H2_SETTINGS && !(head[4] & H2_LAST))
            (void)SSL_write(ssl, acknowledged, sizeof(acknowledged) - 1);
        body = body || (head[3] == H2_DATA && memmem(payload, len, "Hello, World!", 13));
        if (head[8] == 1 && head[3] <= 1 && (head[4] & H2_LAST))
            return body;
    }
    return false;
}

/* A connection with one answer; NULL: none came. */
static SSL *hold_one(SSL_CTX *made, bool h2)
{
    int fd = http_connect(&address, (struct http_connecting){.patience_s = PATIENCE_S});
    SSL *ssl = fd >= 0 ? SSL_new(made) : NULL;
    if (!ssl)
        return NULL;
    (void)SSL_set_fd(ssl, fd);
    if (h2)
        (void)SSL_set_alpn_protos(ssl, (const unsigned char *)"\x02h2", 3);
    return SSL_connect(ssl) == 1 && (h2 ? ask_h2(ssl) : ask_h1(ssl)) ? ssl : NULL;
}

static int hold(const char *count, bool h2)
{
    SSL_CTX *made = context();
    long held = 0;
    char byte;
    long wanted = strtol(count, NULL, 10);
    http_want_descriptors((rlim_t)wanted);
    for (; held < wanted && hold_one(made, h2); held++)
        continue;
    printf("{\"held\":%ld}\n", held);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        continue;
    return 0;
}

/* --- handshakes for so long --- */

/* A session's ticket, from a client with one answer: some servers send it with that only. */
static bool ticket(SSL_CTX *made)
{
    SSL *ssl = hold_one(made, false);
    if (ssl) {
        int fd = SSL_get_fd(ssl);
        (void)SSL_shutdown(ssl);
        SSL_free(ssl);
        close(fd);
    }
    if (!resumed)
        fprintf(stderr, "no ticket came\n");
    return resumed != NULL;
}

static int shake(const char *seconds, bool resumes)
{
    SSL_CTX *made = context();
    struct slot slots[SLOTS] = {0};
    struct tally tally = {0};
    if (resumes && !ticket(made))
        return 1;
    double begun_s = http_now_s();
    double until_s = begun_s + strtod(seconds, NULL);
    while (http_now_s() < until_s)
        if (!turn(slots, made, &tally, resumes ? resumed : NULL))
            return 1;
    printf("{\"handshakes\":%ld,\"us\":%.0f,\"errors\":%ld,\"silent\":%ld}\n", tally.handshakes,
           (http_now_s() - begun_s) * 1e6, tally.errors, tally.silent);
    return 0;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    if (argc != 4 || !http_address_parse(&address, argv[2])) {
        fprintf(stderr, "tls_clients full|resumed ADDRESS SECONDS, h1|h2 ADDRESS COUNT\n");
        return 2;
    }
    if (strcmp(argv[1], "h1") == 0 || strcmp(argv[1], "h2") == 0)
        return hold(argv[3], argv[1][1] == '2');
    return shake(argv[3], strcmp(argv[1], "resumed") == 0);
}
