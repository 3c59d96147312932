/* Heads on channels: what is written is read again, cut at every byte; anything else is refused. */
#include "http/channel_head.c"

#include "guard.h"
#include "tap.h"

static struct guard arena;
static struct oribi_channel_head head;

static struct oribi_channel_head sample(const char *addr)
{
    struct oribi_channel_head made = {.addr_len = (uint8_t)strlen(addr),
                                      .port_len = 5,
                                      .protocol = 20,
                                      .keeps = true,
                                      .tls = true,
                                      .listener = 3,
                                      .listener_hash = 0xfedcba98,
                                      .complete_us = INT64_C(0x123456789abcdef),
                                      .alpn = ORIBI_SLICE("h2"),
                                      .sni = ORIBI_SLICE("a.example"),
                                      .tls_version = ORIBI_SLICE("TLSv1.3"),
                                      .cipher = ORIBI_SLICE("TLS_AES_128_GCM_SHA256"),
                                      .subject = ORIBI_SLICE("CN=a"),
                                      .websocket = ORIBI_SLICE("O")};
    memcpy(made.addr, addr, strlen(addr));
    memcpy(made.port, "54321", 5);
    return made;
}

static ssize_t read_all(const char *p, size_t n)
{
    bool agreed = true;
    ssize_t want = oribi_channel_head_read(guard_place(&arena, p, n), n, &head);
    for (size_t cut = 0; cut < n; cut++) {
        ssize_t got = oribi_channel_head_read(guard_place(&arena, p, cut), cut, &head);
        agreed &= want > 0 && cut >= (size_t)want ? got == want : got == ORIBI_AGAIN || (want < 0 && got == want);
    }
    ok_named(agreed, "every cut agrees");
    (void)oribi_channel_head_read(guard_place(&arena, p, n), n, &head);
    return want;
}

static void test_there_and_back(void)
{
    static const char *const addresses[] = {"192.0.2.7", "2001:db8::1"};
    for (size_t i = 0; i < 2; i++) {
        char text[512];
        struct oribi_channel_head made = sample(addresses[i]);
        size_t n = oribi_channel_head_write(&made, text, sizeof(text));
        ok(n > 0);
        memcpy(text + n, "GET", 3);
        ok_eq(read_all(text, n + 3), (ssize_t)n);
        is_bytes(head.addr, head.addr_len, addresses[i], strlen(addresses[i]));
        is_bytes(head.port, head.port_len, "54321", 5);
        ok(head.tls && head.keeps);
        ok_eq(head.protocol, 20);
        ok_eq(head.listener, 3);
        ok_eq(head.listener_hash, 0xfedcba98);
        ok_eq(head.complete_us, INT64_C(0x123456789abcdef));
        is_bytes(head.sni.p, head.sni.n, "a.example", 9);
        is_bytes(head.cipher.p, head.cipher.n, "TLS_AES_128_GCM_SHA256", 22);
        is_bytes(head.tls_version.p, head.tls_version.n, "TLSv1.3", 7);
        is_bytes(head.subject.p, head.subject.n, "CN=a", 4);
        is_bytes(head.websocket.p, head.websocket.n, "O", 1);
        ok_eq(head.issuer.n, 0);
    }
}

static void test_addresses_and_ports(void)
{
    static const char *const addresses[] = {"0.0.0.0", "10.100.1.99", "255.255.255.255"};
    static const char *const ports[] = {"0", "9", "80", "443", "9292", "65535"};
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 6; j++) {
            char text[512];
            struct oribi_channel_head made = sample(addresses[i]);
            made.port_len = (uint8_t)strlen(ports[j]);
            memcpy(made.port, ports[j], made.port_len);
            size_t n = oribi_channel_head_write(&made, text, sizeof(text));
            ok_eq(read_all(text, n), (ssize_t)n);
            is_bytes(head.addr, head.addr_len, addresses[i], strlen(addresses[i]));
            is_bytes(head.port, head.port_len, ports[j], strlen(ports[j]));
        }
}

static void test_a_client_of_a_unix_socket(void)
{
    char text[128];
    struct oribi_channel_head made = {.protocol = 11};
    size_t n = oribi_channel_head_write(&made, text, sizeof(text));
    ok_eq(read_all(text, n), (ssize_t)n);
    ok_eq(head.addr_len, 0);
    ok(!head.tls && !head.keeps);
    ok_eq(head.protocol, 11);
}

static void test_room(void)
{
    static char pem[ORIBI_CHANNEL_HEAD_BYTES_MAX];
    static char text[ORIBI_CHANNEL_HEAD_BYTES_MAX + 16];
    struct oribi_channel_head made = {.protocol = 11};
    size_t bare = oribi_channel_head_write(&made, text, sizeof(text));
    ok_eq(oribi_channel_head_write(&made, text, bare), bare);
    ok_eq(oribi_channel_head_write(&made, text, bare - 1), 0);
    memset(pem, 'p', sizeof(pem));
    made.pem = oribi_slice(pem, ORIBI_CHANNEL_HEAD_BYTES_MAX - bare - 3);
    ok_eq(oribi_channel_head_write(&made, text, sizeof(text)), ORIBI_CHANNEL_HEAD_BYTES_MAX);
    ok_eq(oribi_channel_head_read(text, ORIBI_CHANNEL_HEAD_BYTES_MAX, &head), ORIBI_CHANNEL_HEAD_BYTES_MAX);
    made.pem.n++;
    ok_eq(oribi_channel_head_write(&made, text, sizeof(text)), 0);
}

/* Each byte of a good one is changed; what is then still read has a protocol that there is. */
static void test_what_no_frontend_writes(void)
{
    char text[512];
    struct oribi_channel_head made = sample("192.0.2.7");
    size_t n = oribi_channel_head_write(&made, text, sizeof(text));
    for (size_t i = 0; i < n; i++) {
        char was = text[i];
        for (int bit = 0; bit < 8; bit++) {
            text[i] = (char)(was ^ (1 << bit));
            ssize_t got = oribi_channel_head_read(guard_place(&arena, text, n), n, &head);
            bool good = got == ORIBI_EBAD || got == ORIBI_AGAIN ||
                        (got > 0 && (head.protocol == 10 || head.protocol == 11 || head.protocol == 20));
            if (!good)
                ok_named(false, "a changed bit is refused or harmless");
        }
        text[i] = was;
    }
    ok_eq(oribi_channel_head_read("GET / HTTP/1.1\r\n", 16, &head), ORIBI_EBAD);
    ok_eq(oribi_channel_head_read("PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\n", 32, &head), ORIBI_EBAD);
}

int main(void)
{
    arena = guard_alloc(16384);
    test_there_and_back();
    test_addresses_and_ports();
    test_a_client_of_a_unix_socket();
    test_room();
    test_what_no_frontend_writes();
    return done_testing();
}
