/* PROXY protocol headers.
 *
 *     version 1   PROXY SP TCP4|TCP6 SP source SP destination SP port SP port CRLF     at most 107 bytes
 *                 PROXY SP UNKNOWN … CRLF
 *     version 2   12 bytes signature │ version, command │ family │ 2 bytes length │ addresses │ extensions
 *                 an extension: type, 2 bytes length, value
 *
 * Strict like the request parser: one space, no leading zeros, addresses of the family that was announced. */
#include "oribi/http/proxy.h"

#include "oribi/http/syntax.h"
#include "oribi/base/error.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

enum {
    FIXED_BYTES = 16,
    COMMAND_LOCAL = 0x20,
    COMMAND_PROXY = 0x21,
    FAMILY_UNSPEC = 0x00,
    FAMILY_TCP4 = 0x11,
    FAMILY_TCP6 = 0x21,
    FAMILY_UNIX = 0x31,
    BYTES_TCP4 = 12,
    BYTES_TCP6 = 36,
    BYTES_UNIX = 216,
    EXT_CRC32C = 0x03,
    EXT_SSL = 0x20,
    SSL_CLIENT = 0x01,
};

static const uint8_t signature[12] = {'\r', '\n', '\r', '\n', 0, '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};

static ssize_t refuse(struct oribi_proxy *proxy, const char *reason)
{
    *proxy = (struct oribi_proxy){.reason = reason};
    return ORIBI_EBAD;
}

static void set_port(struct oribi_proxy *proxy, uint32_t port)
{
    proxy->port_len = (uint8_t)put_digits(proxy->port, (uint16_t)port);
}

/* Address bytes of the network to canonical text. */
static void set_addr(struct oribi_proxy *proxy, int family, const void *bytes)
{
    char text[PUT_ADDRESS_CAP];
    proxy->addr_len = (uint8_t)(family == AF_INET ? put_ipv4(text, bytes) : put_ipv6(text, bytes));
    memcpy(proxy->addr, text, proxy->addr_len);
    proxy->known = true;
}

/* ---- version 1 ---- */

/* Copies the next word, which ends at a space or at the end of the line, and moves behind it. */
static bool take_word(const char **p, const char *end, char *dst, size_t cap)
{
    const char *stop = *p < end ? memchr(*p, ' ', (size_t)(end - *p)) : NULL;
    size_t n = (size_t)((stop ? stop : end) - *p);
    if (n == 0 || n >= cap)
        return false;
    memcpy(dst, *p, n);
    dst[n] = '\0';
    *p += n;
    return true;
}

/* 0 to 65535 without leading zeros; -1 for anything else. */
static int32_t read_port(const char *text)
{
    int32_t port = 0;
    size_t n = strlen(text);
    if (n > 5 || (text[0] == '0' && n > 1))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        port = port * 10 + (text[i] - '0');
    }
    return port > UINT16_MAX ? -1 : port;
}

/* Behind "PROXY TCP4 " or "PROXY TCP6 ". */
static bool read_addresses(const char *p, const char *end, int family, struct oribi_proxy *proxy)
{
    char word[4][INET6_ADDRSTRLEN + 1];
    uint8_t source[sizeof(struct in6_addr)];
    uint8_t destination[sizeof(struct in6_addr)];
    for (int i = 0; i < 4; i++) {
        if (i > 0 && p++ == end) /* the one space between two */
            return false;
        if (!take_word(&p, end, word[i], sizeof(word[i])))
            return false;
    }
    if (p != end || inet_pton(family, word[0], source) != 1 || inet_pton(family, word[1], destination) != 1)
        return false;
    if (read_port(word[2]) < 0 || read_port(word[3]) < 0)
        return false;
    set_addr(proxy, family, source);
    set_port(proxy, (uint32_t)read_port(word[2]));
    return true;
}

static bool starts(const char *p, const char *end, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(end - p) >= n && memcmp(p, word, n) == 0;
}

/* The line without CRLF. */
static bool read_line(const char *p, const char *end, struct oribi_proxy *proxy)
{
    if (starts(p, end, "PROXY TCP4 "))
        return read_addresses(p + 11, end, AF_INET, proxy);
    if (starts(p, end, "PROXY TCP6 "))
        return read_addresses(p + 11, end, AF_INET6, proxy);
    return starts(p, end, "PROXY UNKNOWN") && (end - p == 13 || p[13] == ' '); /* what follows is to be ignored */
}

/* Whether this byte can stand in the line: at place i what every header begins with, later printable ASCII. */
static bool may_stand(const char *p, size_t i)
{
    static const char start[] = "PROXY ";
    return i < sizeof(start) - 1 ? p[i] == start[i] : p[i] >= ' ' && p[i] < 0x7f;
}

static ssize_t parse_line(const char *p, size_t n, struct oribi_proxy *proxy)
{
    size_t i = 0;
    while (i < n && i < ORIBI_PROXY_LINE_BYTES_MAX - 2 && may_stand(p, i))
        i++;
    if (i == n)
        return ORIBI_AGAIN; /* at the limit the next byte decides */
    if (p[i] != '\r' || i < 6)
        return refuse(proxy, i < 6 ? "no PROXY header" : "malformed PROXY line");
    if (!read_line(p, p + i, proxy))
        return refuse(proxy, "malformed PROXY line");
    if (i + 1 == n)
        return ORIBI_AGAIN;
    if (p[i + 1] != '\n')
        return refuse(proxy, "malformed PROXY line");
    return (ssize_t)i + 2;
}

/* ---- version 2 ---- */

/* Bit by bit: the header comes once a connection and is short. */
static uint32_t crc32c(const uint8_t *p, size_t n, const uint8_t *zeroed)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        bool is_zeroed = zeroed && p + i >= zeroed && p + i < zeroed + 4; /* the sum itself counts as zeros */
        crc ^= is_zeroed ? 0 : p[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static size_t read_16(const uint8_t *p)
{
    return (size_t)p[0] << 8 | p[1];
}

/* Extensions must fill what is left of the header. */
static const char *read_extensions(const uint8_t *header, size_t pos, size_t total, struct oribi_proxy *proxy)
{
    while (pos < total) {
        if (total - pos < 3 || read_16(header + pos + 1) > total - pos - 3)
            return "malformed PROXY extension";
        const uint8_t *value = header + pos + 3;
        size_t len = read_16(header + pos + 1);
        if (header[pos] == EXT_SSL) {
            if (len < 5)
                return "malformed PROXY extension";
            proxy->tls = value[0] & SSL_CLIENT;
        }
        if (header[pos] == EXT_CRC32C) {
            uint32_t sum = len == 4 ? (uint32_t)(read_16(value) << 16 | read_16(value + 2)) : 0;
            if (len != 4 || crc32c(header, total, value) != sum)
                return "wrong checksum of the PROXY header";
        }
        pos += 3 + len;
    }
    return NULL;
}

/* How many address bytes a family has; SIZE_MAX for one that no stream socket has. */
static size_t family_bytes(uint8_t family)
{
    switch (family) {
    case FAMILY_UNSPEC:
        return 0;
    case FAMILY_TCP4:
        return BYTES_TCP4;
    case FAMILY_TCP6:
        return BYTES_TCP6;
    case FAMILY_UNIX:
        return BYTES_UNIX;
    default:
        return SIZE_MAX;
    }
}

/* The fixed part, which is there. Returns the whole header's length or an error. */
static ssize_t read_fixed(const uint8_t *header, struct oribi_proxy *proxy)
{
    size_t len = read_16(header + 14);
    if (header[12] != COMMAND_LOCAL && header[12] != COMMAND_PROXY)
        return refuse(proxy, "PROXY header of an unknown version or command");
    if (FIXED_BYTES + len > ORIBI_PROXY_BINARY_BYTES_MAX)
        return refuse(proxy, "PROXY header over the limit");
    if (header[12] == COMMAND_PROXY && (family_bytes(header[13]) > len))
        return refuse(proxy, "PROXY header of an unknown family, or too short for it");
    return (ssize_t)(FIXED_BYTES + len);
}

static ssize_t parse_binary(const uint8_t *header, size_t n, struct oribi_proxy *proxy)
{
    if (n < FIXED_BYTES)
        return ORIBI_AGAIN;
    ssize_t total = read_fixed(header, proxy);
    if (total < 0)
        return total;
    if (n < (size_t)total)
        return ORIBI_AGAIN;
    if (header[12] == COMMAND_LOCAL) /* the proxy's own connection, a check of our health: nothing in it counts */
        return total;
    const uint8_t *addresses = header + FIXED_BYTES;
    if (header[13] == FAMILY_UNSPEC) /* the protocol has the receiver skip what follows */
        return total;
    const char *fault = read_extensions(header, FIXED_BYTES + family_bytes(header[13]), (size_t)total, proxy);
    if (fault)
        return refuse(proxy, fault);
    if (header[13] == FAMILY_TCP4) {
        set_addr(proxy, AF_INET, addresses);
        set_port(proxy, (uint32_t)read_16(addresses + 8));
    } else if (header[13] == FAMILY_TCP6) {
        set_addr(proxy, AF_INET6, addresses);
        set_port(proxy, (uint32_t)read_16(addresses + 32));
    }
    return total;
}

ssize_t oribi_proxy_parse(const char *p, size_t n, struct oribi_proxy *proxy)
{
    *proxy = (struct oribi_proxy){0};
    size_t known = n < sizeof(signature) ? n : sizeof(signature);
    if (n > 0 && p[0] == '\r') {
        if (memcmp(p, signature, known) != 0)
            return refuse(proxy, "no PROXY header");
        return parse_binary((const uint8_t *)p, n, proxy);
    }
    return parse_line(p, n, proxy);
}
