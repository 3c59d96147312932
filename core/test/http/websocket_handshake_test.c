/* Values of WebSocket's opening handshake. */
#include "http/websocket_handshake.c"

#include "guard.h"
#include "tap.h"

/* The examples of FIPS 180-2. */
static void test_sha1(void)
{
    static const struct {
        const char *text;
        const char *hex;
    } cases[] = {
        {"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
        {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", "84983e441c3bd26ebaae4aa1f95129e5e54670f1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqr"
         "st"
         "u",
         "a49b2446a02c645bf419f995b67091253a04a259"},
    };
    uint8_t digest[SHA1_LEN];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char hex[2 * SHA1_LEN + 1];
        sha1((const uint8_t *)cases[i].text, strlen(cases[i].text), digest);
        for (size_t k = 0; k < SHA1_LEN; k++)
            (void)snprintf(hex + 2 * k, 3, "%02x", digest[k]);
        is_str(hex, cases[i].hex);
    }
}

/* Every length around the borders of blocks: the digest of the last digest and n letters, n from 0 to 130. Python's
 * hashlib says what comes out. */
static void test_sha1_of_every_length(void)
{
    static const char hex_want[] = "f92a5a3494286dbfbb2cbaa99579e5e7a2265374";
    uint8_t text[SHA1_LEN + 130];
    uint8_t digest[SHA1_LEN] = {0};
    char hex[2 * SHA1_LEN + 1];
    memset(text, 'a', sizeof(text));
    for (size_t n = 0; n <= 130; n++) {
        memcpy(text, digest, SHA1_LEN);
        struct guard in = guard_copy(text, SHA1_LEN + n);
        sha1((const uint8_t *)in.p, in.n, digest);
        guard_free(&in);
    }
    for (size_t k = 0; k < SHA1_LEN; k++)
        (void)snprintf(hex + 2 * k, 3, "%02x", digest[k]);
    is_str(hex, hex_want);
}

/* The example of RFC 6455 1.3, and another that is often shown. */
static void test_accept(void)
{
    char dst[ORIBI_WEBSOCKET_ACCEPT_LEN];
    oribi_websocket_accept(dst, ORIBI_SLICE("dGhlIHNhbXBsZSBub25jZQ=="));
    is_bytes(dst, sizeof(dst), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", 28);
    oribi_websocket_accept(dst, ORIBI_SLICE("x3JJHMbDL1EzLkh9GBhXDw=="));
    is_bytes(dst, sizeof(dst), "HSmrc0sMlYUkAGmm5OPpG2HaGWk=", 28);
}

static void test_keys(void)
{
    static const struct {
        const char *text;
        bool valid;
    } cases[] = {
        {"dGhlIHNhbXBsZSBub25jZQ==", true},
        {"AAAAAAAAAAAAAAAAAAAAAA==", true},
        {"++++++++++//////////+/==", true},
        {"", false},
        {"==", false},
        {"dGhlIHNhbXBsZSBub25jZQ=", false},   /* one character less */
        {"dGhlIHNhbXBsZSBub25jZQ===", false}, /* one more */
        {"dGhlIHNhbXBsZSBub25jZQaa", false},  /* 18 bytes */
        {"dGhlIHNhbXBsZSBub25jZQa=", false},  /* 17 bytes */
        {"dGhlIHNhbXBsZSBub25jZ-==", false},  /* the alphabet of URLs */
        {"dGhlIHNhbXBsZSBub25j Q==", false},
        {"dGhlIHNhbXBsZSBub25j=Q==", false},
        {"dGhlIHNhbXBsZSBub25j\x80Q==", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct guard in = guard_str(cases[i].text);
        ok_named(oribi_websocket_key_is_valid(oribi_slice(in.p, in.n)) == cases[i].valid, "key %s", cases[i].text);
        guard_free(&in);
    }
    ok(!oribi_websocket_key_is_valid(oribi_slice("dGhlIHNhbXBsZSBub25j\0Q==", 24)));
    ok(!oribi_websocket_key_is_valid(oribi_slice(NULL, 0)));
}

static void test_versions(void)
{
    static const char *const wrong[] = {"", "8", "1", "3", "12", "14", "013", "13.0", "+13", "13, 8", "130", " 13"};
    ok(oribi_websocket_version_is_valid(ORIBI_SLICE("13")));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ok_named(!oribi_websocket_version_is_valid(oribi_slice(wrong[i], strlen(wrong[i]))), "version %s", wrong[i]);
}

static bool is_upgrade(const char *value)
{
    return oribi_websocket_is_upgrade(oribi_slice(value, strlen(value)));
}

static void test_upgrades(void)
{
    ok(is_upgrade("websocket"));
    ok(is_upgrade("WebSocket"));
    ok(is_upgrade("h2c, WEBSOCKET"));
    ok(is_upgrade(",websocket ,"));
    ok(!is_upgrade(""));
    ok(!is_upgrade("websockets"));
    ok(!is_upgrade("websocket/13"));
    ok(!is_upgrade("web socket"));
}

static bool protocols_are_valid(const char *list)
{
    struct guard in = guard_str(list);
    bool valid = oribi_websocket_protocols_are_valid(oribi_slice(in.p, in.n));
    guard_free(&in);
    return valid;
}

static void test_protocols(void)
{
    ok(protocols_are_valid("chat"));
    ok(protocols_are_valid("chat, superchat"));
    ok(protocols_are_valid("chat,Chat\t, v1.chat, ,"));
    ok(!protocols_are_valid(""));
    ok(!protocols_are_valid(" , "));
    ok(!protocols_are_valid("chat, chat"));
    ok(!protocols_are_valid("a, chat, b, chat"));
    ok(!protocols_are_valid("chat room"));
    ok(!protocols_are_valid("chat, \"room\""));
    ok(!protocols_are_valid("chat/1"));
    ok(!protocols_are_valid("caf\xc3\xa9"));
}

static void test_a_maximum_of_protocols(void)
{
    char list[(ORIBI_WEBSOCKET_PROTOCOLS_MAX + 1) * 4 + 1] = {0};
    for (int i = 0; i <= ORIBI_WEBSOCKET_PROTOCOLS_MAX; i++) {
        const char protocol[] = {'p', (char)('0' + i / 10), (char)('0' + i % 10), ','};
        memcpy(list + (size_t)i * 4, protocol, sizeof(protocol));
    }
    ok(!protocols_are_valid(list));
    list[(size_t)ORIBI_WEBSOCKET_PROTOCOLS_MAX * 4] = 0;
    ok(protocols_are_valid(list));
}

static void test_protocols_one_by_one(void)
{
    struct oribi_slice list = ORIBI_SLICE("chat , , superchat");
    struct oribi_slice protocol;
    ok(oribi_websocket_protocol_is_offered(list, ORIBI_SLICE("superchat")));
    ok(!oribi_websocket_protocol_is_offered(list, ORIBI_SLICE("Chat")));
    ok(!oribi_websocket_protocol_is_offered(list, ORIBI_SLICE("super")));
    ok(!oribi_websocket_protocol_is_offered(list, ORIBI_SLICE("")));
    ok(oribi_websocket_protocol_next(&list, &protocol));
    is_slice(protocol, "chat");
    ok(oribi_websocket_protocol_next(&list, &protocol));
    is_slice(protocol, "superchat");
    ok(!oribi_websocket_protocol_next(&list, &protocol));
}

int main(void)
{
    test_sha1();
    test_sha1_of_every_length();
    test_accept();
    test_keys();
    test_versions();
    test_upgrades();
    test_protocols();
    test_a_maximum_of_protocols();
    test_protocols_one_by_one();
    return done_testing();
}
