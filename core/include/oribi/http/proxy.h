/* PROXY protocol, versions 1 and 2: who is behind a proxy that only passes bytes on. Pure: bytes in, address out. */
#ifndef ORIBI_HTTP_PROXY_H
#define ORIBI_HTTP_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

#endif
