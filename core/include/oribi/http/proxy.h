/* PROXY headers of proxies in front (proxy.c), and the head of a request on a channel, which is one with extensions
 * (channel_head.c). */
#ifndef ORIBI_HTTP_PROXY_H
#define ORIBI_HTTP_PROXY_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- proxy ---- */

/* PROXY protocol, versions 1 and 2: who is behind a proxy that only passes bytes on. Pure: bytes in, address out. */

enum {
    ORIBI_PROXY_LINE_BYTES_MAX = 107,    /* of version 1, CRLF counted: the longest one the protocol allows */
    ORIBI_PROXY_BINARY_BYTES_MAX = 4096, /* of version 2, its 16 fixed bytes counted */
    ORIBI_PROXY_ADDR_CAP = 46,           /* INET6_ADDRSTRLEN */
    ORIBI_PROXY_PORT_CAP = 6,            /* "65535" and a NUL */
};

struct oribi_proxy {
    /* the header names a client; without one (UNKNOWN, LOCAL, a family that is none of IP) the connection speaks for
     * itself */
    bool known;
    bool tls; /* the client spoke TLS to the proxy (version 2 only) */
    uint8_t addr_len;
    uint8_t port_len;
    char addr[ORIBI_PROXY_ADDR_CAP]; /* numeric text, canonical */
    char port[ORIBI_PROXY_PORT_CAP];
    const char *reason; /* after an error: static words */
};

/* Reads one header at the start of a connection from [p, p+n). Returns its length, ORIBI_AGAIN while all of it may
 * still come, or ORIBI_EBAD: not a header, or not exactly one. The verdict does not depend on how the bytes are cut.
 * A CRC32c of version 2 is checked where there is one. */
ssize_t oribi_proxy_parse(const char *p, size_t n, struct oribi_proxy *proxy);

/* ---- channel_head ---- */

/* The head that stands before each request on a channel (handoff.h): PROXY protocol version 2 with extensions, which
 * only the frontend writes and only a worker reads. A client cannot forge it: it is not part of any request. Pure.
 *
 * Extensions: 0x01 ALPN · 0x02 SNI · 0x05 request id · 0x20 SSL with 0x21 version, 0x23 cipher; ours (0xE0 … 0xEF of
 * the protocol's own range): 0xE0 protocol (10, 11, 20) and whether the client keeps its connection (0, 1) · 0xE1
 * listener (index u16, hash u32, big endian) · 0xE2 when the request was complete (i64 microseconds of
 * oribi_clock_us(), big endian) · 0xE3 verify · 0xE4 subject · 0xE5 issuer · 0xE6 serial · 0xE7 begins · 0xE8 ends ·
 * 0xE9 certificate in PEM. */

enum { ORIBI_CHANNEL_HEAD_BYTES_MAX = 16 * 1024 };

struct oribi_channel_head {
    char addr[ORIBI_PROXY_ADDR_CAP]; /* of the client, numeric text; addr_len 0: it came by a unix socket */
    char port[ORIBI_PROXY_PORT_CAP];
    uint8_t addr_len;
    uint8_t port_len;
    uint8_t protocol; /* what the client spoke: 10, 11, 20 */
    bool keeps;       /* the client wants its connection kept */
    bool tls;
    uint16_t listener; /* index in the server's listeners, and hash of its text, as in the hand-off message */
    uint32_t listener_hash;
    int64_t complete_us;
    struct oribi_slice alpn, sni, request_id, tls_version, cipher;
    struct oribi_slice verify, subject, issuer, serial, begins, ends, pem;
    struct oribi_slice websocket; /* the handshake that the request is, or the call; n 0: neither */
};

/* Writes it to dst; returns the length, or 0 where it does not fit into cap or ORIBI_CHANNEL_HEAD_BYTES_MAX. */
size_t oribi_channel_head_write(const struct oribi_channel_head *head, char *dst, size_t cap);

/* Reads it; slices point into p. Its length, ORIBI_AGAIN, or ORIBI_EBAD. The verdict does not depend on how the bytes
 * were cut. */
ssize_t oribi_channel_head_read(const char *p, size_t n, struct oribi_channel_head *head);

/* Its length, as its first bytes say, once all of it is there. Codes as of oribi_channel_head_read(), which finds more
 * faults. */
ssize_t oribi_channel_head_len(const char *p, size_t n);

#endif
