/* Frames of WebSocket, written: the shortest head for each length, and payloads that the reader gives back. */
#include "http/websocket_write.c"

#include "guard.h"
#include "tap.h"

static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};

static void test_heads_of_a_server(void)
{
    static const struct {
        uint64_t n;
        const char *head;
        size_t len;
    } cases[] = {
        {0, "\x81\x00", 2},
        {125, "\x81\x7d", 2},
        {126, "\x81\x7e\x00\x7e", 4},
        {65535, "\x81\x7e\xff\xff", 4},
        {65536, "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10},
        {0x123456789abcdef0, "\x81\x7f\x12\x34\x56\x78\x9a\xbc\xde\xf0", 10},
        {INT64_MAX, "\x81\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", 10},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char dst[ORIBI_WEBSOCKET_HEAD_CAP];
        size_t n = oribi_websocket_write_head(dst, ORIBI_WEBSOCKET_TEXT, true, cases[i].n, NULL);
        is_bytes(dst, n, cases[i].head, cases[i].len);
    }
}

static void test_heads_of_a_client(void)
{
    char dst[ORIBI_WEBSOCKET_HEAD_CAP];
    size_t n = oribi_websocket_write_head(dst, ORIBI_WEBSOCKET_TEXT, true, 5, mask);
    is_bytes(dst, n, "\x81\x85\x37\xfa\x21\x3d", 6);
    n = oribi_websocket_write_head(dst, ORIBI_WEBSOCKET_BINARY, false, 126, mask);
    is_bytes(dst, n, "\x02\xfe\x00\x7e\x37\xfa\x21\x3d", 8);
    n = oribi_websocket_write_head(dst, ORIBI_WEBSOCKET_CONTINUATION, true, 65536, mask);
    is_bytes(dst, n, "\x80\xff\x00\x00\x00\x00\x00\x01\x00\x00\x37\xfa\x21\x3d", 14);
    ok_eq(n, ORIBI_WEBSOCKET_HEAD_CAP);
}

static void test_heads_of_control_frames(void)
{
    char dst[ORIBI_WEBSOCKET_HEAD_CAP];
    is_bytes(dst, oribi_websocket_write_head(dst, ORIBI_WEBSOCKET_PING, true, 0, NULL), "\x89\x00", 2);
    is_bytes(dst, oribi_websocket_write_head(dst, ORIBI_WEBSOCKET_PONG, true, 125, NULL), "\x8a\x7d", 2);
    is_bytes(dst, oribi_websocket_write_head(dst, ORIBI_WEBSOCKET_CLOSE, true, 2, NULL), "\x88\x02", 2);
}

/* The example of RFC 6455 5.7, at once and from each byte on. */
static void test_masks_from_any_byte_on(void)
{
    for (size_t at = 0; at <= 5; at++) {
        char text[] = "Hello";
        oribi_websocket_mask(text, at, mask, 0);
        oribi_websocket_mask(text + at, 5 - at, mask, at);
        is_bytes(text, 5, "\x7f\x9f\x4d\x51\x58", 5);
        oribi_websocket_mask(text, 5, mask, (uint64_t)4 << 40);
        is_str(text, "Hello");
    }
}

static void test_close_payloads(void)
{
    char dst[ORIBI_WEBSOCKET_CONTROL_BYTES_MAX];
    char reason[ORIBI_WEBSOCKET_REASON_BYTES_MAX + 1];
    memset(reason, 'r', sizeof(reason));
    ok_eq(oribi_websocket_write_close(dst, 1000, ORIBI_SLICE("")), 2);
    is_bytes(dst, 2, "\x03\xe8", 2);
    ok_eq(oribi_websocket_write_close(dst, 4999, ORIBI_SLICE("bye")), 5);
    is_bytes(dst, 5,
             "\x13\x87"
             "bye",
             5);
    ok_eq(oribi_websocket_write_close(dst, ORIBI_WEBSOCKET_CODE_ABSENT, oribi_slice(NULL, 0)), 0);
    ok_eq(oribi_websocket_write_close(dst, ORIBI_WEBSOCKET_CODE_ABSENT, ORIBI_SLICE("bye")), ORIBI_EINVAL);
    ok_eq(oribi_websocket_write_close(dst, ORIBI_WEBSOCKET_CODE_ABNORMAL, ORIBI_SLICE("")), ORIBI_EINVAL);
    ok_eq(oribi_websocket_write_close(dst, 0, ORIBI_SLICE("")), ORIBI_EINVAL);
    ok_eq(oribi_websocket_write_close(dst, 65536 + 1000, ORIBI_SLICE("")), ORIBI_EINVAL);
    ok_eq(oribi_websocket_write_close(dst, 1000, ORIBI_SLICE("a\xc3")), ORIBI_EINVAL);
    ok_eq(oribi_websocket_write_close(dst, 1000, oribi_slice(reason, sizeof(reason) - 1)), sizeof(dst));
    ok_eq(oribi_websocket_write_close(dst, 1000, oribi_slice(reason, sizeof(reason))), ORIBI_ELIMIT);
}

/* Each length around the borders, written by either side, comes back from the other's reader as one message. */
static void test_messages_come_back(void)
{
    static const size_t lengths[] = {0, 1, 124, 125, 126, 127, 128, 65534, 65535, 65536, 65537, 200000};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
        for (int role = ORIBI_WEBSOCKET_SERVER; role <= ORIBI_WEBSOCKET_CLIENT; role++) {
            size_t n = lengths[i];
            const uint8_t *masked = role == ORIBI_WEBSOCKET_SERVER ? mask : NULL;
            struct guard bytes = guard_alloc(ORIBI_WEBSOCKET_HEAD_CAP + n);
            size_t len = oribi_websocket_write_head(bytes.p, ORIBI_WEBSOCKET_BINARY, true, n, masked);
            for (size_t k = 0; k < n; k++)
                bytes.p[len + k] = (char)(k * 7);
            if (masked)
                oribi_websocket_mask(bytes.p + len, n, mask, 0);
            struct oribi_websocket socket;
            struct oribi_websocket_event event;
            oribi_websocket_init(&socket, (enum oribi_websocket_role)role, n);
            bool good = oribi_websocket_feed(&socket, bytes.p, len + n, &event) == len + n &&
                        event.type == ORIBI_WEBSOCKET_EVENT_PIECE && event.ends && event.binary && event.payload.n == n;
            for (size_t k = 0; k < n && good; k++)
                good = event.payload.p[k] == (char)(k * 7);
            ok_named(good, "%zu bytes of a %s come back", n, masked ? "client" : "server");
            guard_free(&bytes);
        }
}

int main(void)
{
    test_heads_of_a_server();
    test_heads_of_a_client();
    test_heads_of_control_frames();
    test_masks_from_any_byte_on();
    test_close_payloads();
    test_messages_come_back();
    return done_testing();
}
