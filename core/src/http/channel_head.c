/* Writing and reading the head of a request on a channel; see the header. The layout is that of the PROXY protocol,
 * version 2 (haproxy.org, proxy-protocol.txt, 2.2). */
#include "oribi/http/proxy.h"

#include "oribi/http/syntax.h"
#include "oribi/base/error.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

enum {
    FIXED_BYTES = 16,
    VERSION_PROXY = 0x21,
    FAMILY_UNSPEC = 0x00,
    FAMILY_TCP4 = 0x11,
    FAMILY_TCP6 = 0x21,
    BYTES_TCP4 = 12,
    BYTES_TCP6 = 36,
    EXT_HEAD = 3,
    EXT_ALPN = 0x01,
    EXT_SNI = 0x02,
    EXT_ID = 0x05,
    EXT_SSL = 0x20,
    EXT_SSL_VERSION = 0x21,
    EXT_SSL_CIPHER = 0x23,
    EXT_PROTOCOL = 0xE0,
    EXT_LISTENER = 0xE1,
    EXT_COMPLETE = 0xE2,
    EXT_VERIFY = 0xE3,
    EXT_SUBJECT = 0xE4,
    EXT_ISSUER = 0xE5,
    EXT_SERIAL = 0xE6,
    EXT_BEGINS = 0xE7,
    EXT_ENDS = 0xE8,
    EXT_PEM = 0xE9,
    EXT_WEBSOCKET = 0xEA,
    SSL_FIXED_BYTES = 5,
    SSL_CLIENT = 0x01,
    PROTOCOL_BYTES = 2,
    LISTENER_BYTES = 6,
    COMPLETE_BYTES = 8,
};

static const uint8_t signature[12] = {'\r', '\n', '\r', '\n', 0, '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};

/* --- writing --- */

struct writer {
    uint8_t *at;
    uint8_t *end;
    bool full;
};

static void put(struct writer *w, const void *p, size_t n)
{
    if ((size_t)(w->end - w->at) < n) {
        w->full = true;
        return;
    }
    memcpy(w->at, p, n);
    w->at += n;
}

static void put_number(struct writer *w, uint64_t number, size_t bytes)
{
    uint8_t text[8];
    for (size_t i = 0; i < bytes; i++)
        text[i] = (uint8_t)(number >> (8 * (bytes - 1 - i)));
    put(w, text, bytes);
}

static void put_extension(struct writer *w, uint8_t type, struct oribi_slice value)
{
    if (value.n == 0)
        return;
    if (value.n > UINT16_MAX) {
        w->full = true;
        return;
    }
    put(w, &type, 1);
    put_number(w, value.n, 2);
    put(w, value.p, value.n);
}

static uint16_t port_of(const struct oribi_channel_head *head)
{
    uint32_t port = 0;
    for (uint8_t i = 0; i < head->port_len; i++)
        port = port * 10 + (uint32_t)(head->port[i] - '0');
    return (uint16_t)port;
}

/* The family; what is no address of IP is left out, as for a unix socket. */
static uint8_t put_addresses(struct writer *w, const struct oribi_channel_head *head)
{
    static const uint8_t zeros[16];
    char text[ORIBI_PROXY_ADDR_CAP + 1];
    uint8_t bytes[16];
    memcpy(text, head->addr, head->addr_len);
    text[head->addr_len] = '\0';
    bool v6 = memchr(text, ':', head->addr_len) != NULL;
    if (head->addr_len == 0 || inet_pton(v6 ? AF_INET6 : AF_INET, text, bytes) != 1)
        return FAMILY_UNSPEC;
    put(w, bytes, v6 ? 16 : 4);
    put(w, zeros, v6 ? 16 : 4);
    put_number(w, port_of(head), 2);
    put_number(w, 0, 2);
    return v6 ? FAMILY_TCP6 : FAMILY_TCP4;
}

static void put_tls(struct writer *w, const struct oribi_channel_head *head)
{
    size_t bytes = SSL_FIXED_BYTES + (head->tls_version.n ? EXT_HEAD + head->tls_version.n : 0) +
                   (head->cipher.n ? EXT_HEAD + head->cipher.n : 0);
    if (!head->tls)
        return;
    put_number(w, EXT_SSL, 1);
    put_number(w, bytes, 2);
    put_number(w, SSL_CLIENT, 1);
    put_number(w, 0, 4);
    put_extension(w, EXT_SSL_VERSION, head->tls_version);
    put_extension(w, EXT_SSL_CIPHER, head->cipher);
}

size_t oribi_channel_head_write(const struct oribi_channel_head *head, char *dst, size_t cap)
{
    if (cap > ORIBI_CHANNEL_HEAD_BYTES_MAX)
        cap = ORIBI_CHANNEL_HEAD_BYTES_MAX;
    if (cap < FIXED_BYTES)
        return 0;
    uint8_t *start = (uint8_t *)dst;
    struct writer w = {.at = start + FIXED_BYTES, .end = start + cap};
    memcpy(start, signature, sizeof(signature));
    start[12] = VERSION_PROXY;
    start[13] = put_addresses(&w, head);
    put_number(&w, EXT_PROTOCOL, 1);
    put_number(&w, PROTOCOL_BYTES, 2);
    put_number(&w, head->protocol, 1);
    put_number(&w, head->keeps, 1);
    put_number(&w, EXT_LISTENER, 1);
    put_number(&w, LISTENER_BYTES, 2);
    put_number(&w, head->listener, 2);
    put_number(&w, head->listener_hash, 4);
    put_number(&w, EXT_COMPLETE, 1);
    put_number(&w, COMPLETE_BYTES, 2);
    put_number(&w, (uint64_t)head->complete_us, COMPLETE_BYTES);
    put_tls(&w, head);
    put_extension(&w, EXT_ALPN, head->alpn);
    put_extension(&w, EXT_SNI, head->sni);
    put_extension(&w, EXT_ID, head->request_id);
    put_extension(&w, EXT_VERIFY, head->verify);
    put_extension(&w, EXT_SUBJECT, head->subject);
    put_extension(&w, EXT_ISSUER, head->issuer);
    put_extension(&w, EXT_SERIAL, head->serial);
    put_extension(&w, EXT_BEGINS, head->begins);
    put_extension(&w, EXT_ENDS, head->ends);
    put_extension(&w, EXT_PEM, head->pem);
    put_extension(&w, EXT_WEBSOCKET, head->websocket);
    if (w.full)
        return 0;
    size_t len = (size_t)(w.at - start);
    start[14] = (uint8_t)((len - FIXED_BYTES) >> 8);
    start[15] = (uint8_t)(len - FIXED_BYTES);
    return len;
}

/* --- reading --- */

static uint64_t number_at(const uint8_t *p, size_t bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number = number << 8 | p[i];
    return number;
}

static bool read_addresses(const uint8_t *p, uint8_t family, struct oribi_channel_head *head)
{
    bool is_v6 = family == FAMILY_TCP6;
    if (family == FAMILY_UNSPEC)
        return true;
    head->addr_len = (uint8_t)(is_v6 ? put_ipv6(head->addr, p) : put_ipv4(head->addr, p));
    head->port_len = (uint8_t)put_digits(head->port, (uint16_t)number_at(p + (is_v6 ? 32 : 8), 2));
    return true;
}

static bool read_extensions(const uint8_t *p, size_t n, bool in_tls, struct oribi_channel_head *head);

/* Where the value of an extension belongs; NULL: nowhere. */
static struct oribi_slice *slot_of(struct oribi_channel_head *head, uint8_t type, bool in_tls)
{
    if (in_tls)
        return type == EXT_SSL_VERSION ? &head->tls_version : type == EXT_SSL_CIPHER ? &head->cipher : NULL;
    switch (type) {
    case EXT_ALPN:
        return &head->alpn;
    case EXT_SNI:
        return &head->sni;
    case EXT_ID:
        return &head->request_id;
    case EXT_VERIFY:
        return &head->verify;
    case EXT_SUBJECT:
        return &head->subject;
    case EXT_ISSUER:
        return &head->issuer;
    case EXT_SERIAL:
        return &head->serial;
    case EXT_BEGINS:
        return &head->begins;
    case EXT_ENDS:
        return &head->ends;
    case EXT_PEM:
        return &head->pem;
    case EXT_WEBSOCKET:
        return &head->websocket;
    default:
        return NULL;
    }
}

static bool read_extension(uint8_t type, const uint8_t *value, size_t n, bool in_tls, struct oribi_channel_head *head)
{
    struct oribi_slice *slot = slot_of(head, type, in_tls);
    if (slot) {
        *slot = oribi_slice((const char *)value, n);
        return true;
    }
    if (in_tls)
        return false;
    switch (type) {
    case EXT_SSL:
        head->tls = true;
        return n >= SSL_FIXED_BYTES && read_extensions(value + SSL_FIXED_BYTES, n - SSL_FIXED_BYTES, true, head);
    case EXT_PROTOCOL:
        if (n != PROTOCOL_BYTES)
            return false;
        head->protocol = value[0];
        head->keeps = value[1] != 0;
        return (value[0] == 10 || value[0] == 11 || value[0] == 20) && value[1] <= 1;
    case EXT_LISTENER:
        head->listener = n == LISTENER_BYTES ? (uint16_t)number_at(value, 2) : 0;
        head->listener_hash = n == LISTENER_BYTES ? (uint32_t)number_at(value + 2, 4) : 0;
        return n == LISTENER_BYTES;
    case EXT_COMPLETE:
        head->complete_us = n == COMPLETE_BYTES ? (int64_t)number_at(value, COMPLETE_BYTES) : 0;
        return n == COMPLETE_BYTES && head->complete_us >= 0;
    default:
        return false; /* the frontend writes no other */
    }
}

static bool read_extensions(const uint8_t *p, size_t n, bool in_tls, struct oribi_channel_head *head)
{
    while (n > 0) {
        size_t len = n >= EXT_HEAD ? (size_t)number_at(p + 1, 2) : n;
        if (n < EXT_HEAD || len > n - EXT_HEAD || !read_extension(p[0], p + EXT_HEAD, len, in_tls, head))
            return false;
        p += EXT_HEAD + len;
        n -= EXT_HEAD + len;
    }
    return true;
}

static size_t address_bytes(uint8_t family)
{
    return family == FAMILY_TCP4 ? BYTES_TCP4 : family == FAMILY_TCP6 ? BYTES_TCP6 : 0;
}

ssize_t oribi_channel_head_len(const char *p, size_t n)
{
    const uint8_t *bytes = (const uint8_t *)p;
    size_t known = n < sizeof(signature) ? n : sizeof(signature);
    if (memcmp(p, signature, known) != 0 || (n > 12 && bytes[12] != VERSION_PROXY))
        return ORIBI_EBAD;
    if (n > 13 && bytes[13] != FAMILY_UNSPEC && bytes[13] != FAMILY_TCP4 && bytes[13] != FAMILY_TCP6)
        return ORIBI_EBAD;
    if (n < FIXED_BYTES)
        return ORIBI_AGAIN;
    size_t len = (size_t)number_at(bytes + 14, 2);
    if (FIXED_BYTES + len > ORIBI_CHANNEL_HEAD_BYTES_MAX || len < address_bytes(bytes[13]))
        return ORIBI_EBAD;
    return n < FIXED_BYTES + len ? ORIBI_AGAIN : (ssize_t)(FIXED_BYTES + len);
}

ssize_t oribi_channel_head_read(const char *p, size_t n, struct oribi_channel_head *head)
{
    const uint8_t *bytes = (const uint8_t *)p;
    ssize_t len = oribi_channel_head_len(p, n);
    memset(head, 0, sizeof(*head));
    if (len < 0)
        return len;
    size_t before = FIXED_BYTES + address_bytes(bytes[13]);
    if (!read_addresses(bytes + FIXED_BYTES, bytes[13], head) ||
        !read_extensions(bytes + before, (size_t)len - before, false, head) || head->protocol == 0)
        return ORIBI_EBAD;
    return len;
}
