/* The head that stands before each request on a channel (handoff.h): PROXY protocol version 2 with extensions, which
 * only the frontend writes and only a worker reads. A client cannot forge it: it is not part of any request. Pure.
 *
 * Extensions: 0x01 ALPN · 0x02 SNI · 0x05 request id · 0x20 SSL with 0x21 version, 0x23 cipher; ours (0xE0 … 0xEF of
 * the protocol's own range): 0xE0 protocol (10, 11, 20) and whether the client keeps its connection (0, 1) · 0xE1
 * listener (index u16, hash u32, big endian) · 0xE2 when the request was complete (i64 microseconds of
 * oribi_clock_us(), big endian) · 0xE3 verify · 0xE4 subject · 0xE5 issuer · 0xE6 serial · 0xE7 begins · 0xE8 ends ·
 * 0xE9 certificate in PEM. */
#ifndef ORIBI_HTTP_CHANNEL_HEAD_H
#define ORIBI_HTTP_CHANNEL_HEAD_H

#include "oribi/base/slice.h"
#include "oribi/http/proxy.h"

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
};

/* Writes it to dst; returns the length, or 0 where it does not fit into cap or ORIBI_CHANNEL_HEAD_BYTES_MAX. */
size_t oribi_channel_head_write(const struct oribi_channel_head *head, char *dst, size_t cap);

/* Reads it; slices point into p. Its length, ORIBI_AGAIN, or ORIBI_EBAD. The verdict does not depend on how the bytes
 * were cut. */
ssize_t oribi_channel_head_read(const char *p, size_t n, struct oribi_channel_head *head);

#endif
