/* Authority grammar. The usual host is a reg-name or an IPv4 address followed by nothing or a port, and one span
 * over the host class decides it; IPv4 addresses need no grammar of their own, since every string of that shape is a
 * reg-name too. */
#include "oribi/http/head.h"

#include "oribi/base/error.h"
#include "oribi/http/scan.h"
#include "oribi/http/syntax.h"

#include <stdint.h>
#include <sys/types.h>

static bool is_digit(char c)
{
    return (uint8_t)(c - '0') < 10;
}

static bool is_hex(char c)
{
    return hex_value(c) >= 0;
}

/* dec-octet "." dec-octet "." dec-octet "." dec-octet, no leading zeros. */
static bool is_ipv4(const char *p, size_t n)
{
    size_t i = 0;
    for (int octet = 0; octet < 4; octet++) {
        if (octet && (i == n || p[i++] != '.'))
            return false;
        size_t start = i;
        unsigned value = 0;
        while (i < n && i - start < 3 && is_digit(p[i]))
            value = value * 10 + (unsigned)(p[i++] - '0');
        if (i == start || value > 255 || (p[start] == '0' && i - start > 1))
            return false;
    }
    return i == n;
}

/* An IPv6address (RFC 3986 3.2.2), without brackets. */
static bool is_ipv6(const char *p, size_t n)
{
    int groups = 0;
    bool elided = false;
    size_t i = 0;
    if (n >= 2 && p[0] == ':' && p[1] == ':') {
        elided = true;
        i = 2;
    }
    while (i < n) {
        size_t start = i;
        while (i < n && i - start < 4 && is_hex(p[i]))
            i++;
        if (i < n && p[i] == '.') /* the last 32 bits may be written as an IPv4 address */
            return is_ipv4(p + start, n - start) && (elided ? groups <= 5 : groups == 6);
        if (i == start || ++groups > 8)
            return false;
        if (i == n)
            break;
        if (p[i++] != ':')
            return false;
        if (i < n && p[i] == ':') {
            if (elided)
                return false;
            elided = true;
            i++;
        } else if (i == n) {
            return false; /* a single colon at the end */
        }
    }
    return elided ? groups <= 7 : groups == 8;
}

/* "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" ) */
static bool is_future_literal(const char *p, size_t n)
{
    size_t i = 1;
    if (n == 0 || (p[0] | 0x20) != 'v')
        return false;
    while (i < n && is_hex(p[i]))
        i++;
    if (i == 1 || i == n || p[i] != '.' || i + 1 == n)
        return false;
    for (i++; i < n; i++) {
        i += oribi_scan_active->host(p + i, n - i);
        if (i < n && p[i] != ':')
            return false;
    }
    return true;
}

/* Length of the host in [p, p+n) including brackets, or -1. */
static ssize_t literal_len(const char *p, size_t n)
{
    const char *end = memchr(p, ']', n);
    if (!end)
        return -1;
    const char *inner = p + 1;
    size_t inner_len = (size_t)(end - inner);
    if (!is_ipv6(inner, inner_len) && !is_future_literal(inner, inner_len))
        return -1;
    return end + 1 - p;
}

/* Length of a reg-name that may hold percent-encoding, or -1; `len` bytes of it are known to be plain. */
static ssize_t name_len(const char *p, size_t n, size_t len)
{
    while (len < n && p[len] == '%') {
        if (n - len < 3 || !is_hex(p[len + 1]) || !is_hex(p[len + 2]))
            return -1;
        len += 3;
        len += oribi_scan_active->host(p + len, n - len);
    }
    return (ssize_t)len;
}

int oribi_authority_parse(struct oribi_slice text, size_t readable, struct oribi_slice *host, struct oribi_slice *port)
{
    const char *p = text.p;
    size_t n = text.n;
    if (n == 0) {
        *host = *port = oribi_slice(p, 0);
        return 0;
    }
    size_t plain = oribi_scan_active->host(p, readable);
    ssize_t len = (ssize_t)(plain < n ? plain : n);
    if ((size_t)len < n && p[len] != ':') {
        len = len == 0 && p[0] == '[' ? literal_len(p, n) : name_len(p, n, (size_t)len);
        if (len < 0)
            return ORIBI_EBAD;
    }
    size_t colon = (size_t)len;
    if (colon < n && p[colon] != ':')
        return ORIBI_EBAD;
    for (size_t i = colon + 1; i < n; i++)
        if (!is_digit(p[i]))
            return ORIBI_EBAD;
    *host = oribi_slice(p, colon);
    *port = colon < n ? oribi_slice(p + colon + 1, n - colon - 1) : oribi_slice(p + n, 0);
    return 0;
}
