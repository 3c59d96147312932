/* Values of WebSocket's opening handshake (RFC 6455 4), and the SHA-1 that one of them needs: OpenSSL is the frontend's
 * alone. */
#include "oribi/http/websocket.h"

#include "oribi/http/scan.h"
#include "oribi/http/syntax.h"

#include <assert.h>

enum { KEY_LEN = 24, SHA1_LEN = 20, SHA1_BLOCK = 64 };

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* ---- SHA-1 ---- */

/* FIPS 180-4 6.1. No secret and no signature hangs on it (RFC 6455 10.8). */

static uint32_t rotate(uint32_t word, int by)
{
    return word << by | word >> (32 - by);
}

static void sha1_block(uint32_t state[5], const uint8_t block[SHA1_BLOCK])
{
    uint32_t words[80];
    for (size_t i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
                   block[4 * i + 3];
    for (size_t i = 16; i < 80; i++)
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    uint32_t a = state[0];
    uint32_t b = state[1];
    uint32_t c = state[2];
    uint32_t d = state[3];
    uint32_t e = state[4];
    for (size_t i = 0; i < 80; i++) {
        uint32_t f = i < 20 ? (b & c) | (~b & d) : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d) : b ^ c ^ d;
        uint32_t k = i < 20 ? 0x5a827999 : i < 40 ? 0x6ed9eba1 : i < 60 ? 0x8f1bbcdc : 0xca62c1d6;
        uint32_t next = rotate(a, 5) + f + e + k + words[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

static void sha1(const uint8_t *p, size_t n, uint8_t digest[SHA1_LEN])
{
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t last[2 * SHA1_BLOCK] = {0};
    size_t i = 0;
    for (; n - i >= SHA1_BLOCK; i += SHA1_BLOCK)
        sha1_block(state, p + i);
    size_t rest = n - i;
    size_t padded = rest < SHA1_BLOCK - 8 ? SHA1_BLOCK : 2 * SHA1_BLOCK; /* a bit, and the length in eight bytes */
    memcpy(last, p + i, rest);
    last[rest] = 0x80;
    for (size_t k = 0; k < 8; k++)
        last[padded - 1 - k] = (uint8_t)((uint64_t)n * 8 >> 8 * k);
    for (size_t k = 0; k < padded; k += SHA1_BLOCK)
        sha1_block(state, last + k);
    for (size_t k = 0; k < SHA1_LEN; k++)
        digest[k] = (uint8_t)(state[k / 4] >> (24 - k % 4 * 8));
}

/* ---- key ---- */

bool oribi_websocket_key_is_valid(struct oribi_slice value)
{
    if (value.n != KEY_LEN || memcmp(value.p + KEY_LEN - 2, "==", 2) != 0)
        return false;
    for (size_t i = 0; i < KEY_LEN - 2; i++)
        if (!memchr(base64_digits, value.p[i], sizeof(base64_digits) - 1))
            return false;
    return true;
}

void oribi_websocket_accept(char dst[ORIBI_WEBSOCKET_ACCEPT_LEN], struct oribi_slice key)
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455 1.3 */
    uint8_t text[KEY_LEN + sizeof(guid) - 1];
    uint8_t digest[SHA1_LEN + 1]; /* three bytes become four digits: one more, of which nothing is seen */
    assert(key.n == KEY_LEN);
    memcpy(text, key.p, KEY_LEN);
    memcpy(text + KEY_LEN, guid, sizeof(guid) - 1);
    sha1(text, sizeof(text), digest);
    digest[SHA1_LEN] = 0;
    for (size_t i = 0; i < ORIBI_WEBSOCKET_ACCEPT_LEN; i++) {
        const uint8_t *three = digest + i / 4 * 3;
        uint32_t bits = (uint32_t)three[0] << 16 | (uint32_t)three[1] << 8 | three[2];
        dst[i] = base64_digits[bits >> (18 - i % 4 * 6) & 63];
    }
    dst[ORIBI_WEBSOCKET_ACCEPT_LEN - 1] = '=';
}

/* ---- lists and versions ---- */

bool oribi_websocket_version_is_valid(struct oribi_slice value)
{
    return oribi_slice_equal(value, ORIBI_SLICE("13"));
}

bool oribi_websocket_is_upgrade(struct oribi_slice value)
{
    struct oribi_slice element;
    while (list_next(&value, &element))
        if (oribi_slice_equal_fold(element, ORIBI_SLICE("websocket")))
            return true;
    return false;
}

bool oribi_websocket_protocol_next(struct oribi_slice *list, struct oribi_slice *protocol)
{
    return list_next(list, protocol);
}

bool oribi_websocket_protocol_is_offered(struct oribi_slice list, struct oribi_slice protocol)
{
    struct oribi_slice element;
    while (list_next(&list, &element))
        if (oribi_slice_equal(element, protocol))
            return true;
    return false;
}

bool oribi_websocket_protocols_are_valid(struct oribi_slice list)
{
    struct oribi_slice element;
    size_t count = 0;
    while (list_next(&list, &element)) {
        bool again = oribi_websocket_protocol_is_offered(list, element);
        if (again || ++count > ORIBI_WEBSOCKET_PROTOCOLS_MAX || !oribi_scan_is_token(element.p, element.n))
            return false;
    }
    return count > 0;
}
