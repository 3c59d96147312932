/* Memory of an idle session of TLS, as the allocator spends it: ours and OpenSSL's. */
#include "../base/mem_counted.h"

#include "tap.h"
#include "tls_client.h"

enum { SESSIONS = 20, BYTES_MAX = 14848 - 256 }; /* 14.5 KiB, less a WebSocket's own part */

/* A block of OpenSSL's: whether the server's end has asked for it. */
union block {
    bool ours;
    max_align_t aligned;
};

static int64_t openssl_bytes;

static int64_t spent(const union block *block)
{
    size_t n = malloc_usable_size((void *)(uintptr_t)block) + sizeof(size_t) - sizeof(*block);
    return block->ours ? (int64_t)n : 0;
}

static void *take(size_t n, const char *file, int line)
{
    union block *block = malloc(sizeof(*block) + n);
    block->ours = serves;
    openssl_bytes += spent(block);
    return block + 1;
}

static void give(void *p, const char *file, int line)
{
    union block *block = p ? (union block *)p - 1 : NULL;
    if (!block)
        return;
    openssl_bytes -= spent(block);
    free(block);
}

static void *resize(void *p, size_t n, const char *file, int line)
{
    if (!p)
        return take(n, file, line);
    union block *block = (union block *)p - 1;
    openssl_bytes -= spent(block);
    block = realloc(block, sizeof(*block) + n);
    openssl_bytes += spent(block);
    return block + 1;
}

/* A handshake, and a message both ways. */
static void open_session(struct both *both, struct oribi_tls *tls, int version)
{
    char byte;
    struct iovec vec = {(void *)"y", 1};
    begin(both, tls, "a.test", version, NULL, NULL);
    shake(both);
    ok_eq(both->step, ORIBI_TLS_DONE);
    ok_eq(SSL_write(both->client, "x", 1), 1);
    struct oribi_transport *transport = oribi_tls_transport(both->server);
    serves = true;
    ok_eq(transport->read(transport, &byte, 1), 1);
    ok_eq(transport->send_vec(transport, &vec, 1, false), 1);
    ok_eq(transport->read(transport, &byte, 1), ORIBI_AGAIN);
    oribi_tls_forget_info(transport);
    serves = false;
}

static void test_an_idle_session(int version, const char *name)
{
    struct made made = make("DNS:a.test", EVP_PKEY_EC, 30);
    struct oribi_tls_certificate certificate = pair(&made, &made);
    struct oribi_tls *tls = contexts(&certificate, 1, true);
    struct both both[SESSIONS + 1];
    open_session(&both[SESSIONS], tls, version); /* what all share */
    int64_t before = openssl_bytes + memory_bytes;
    for (int i = 0; i < SESSIONS; i++)
        open_session(&both[i], tls, version);
    int64_t bytes = (openssl_bytes + memory_bytes - before) / SESSIONS;
    ok_named(bytes <= BYTES_MAX, "%s: an idle session has %d bytes", name, (int)bytes);
    for (int i = 0; i <= SESSIONS; i++)
        end(&both[i]);
    oribi_tls_release(tls);
}

int main(void)
{
    ok(CRYPTO_set_mem_functions(take, resize, give) == 1);
    test_an_idle_session(TLS1_3_VERSION, "TLS 1.3");
    test_an_idle_session(TLS1_2_VERSION, "TLS 1.2");
    return done_testing();
}
