/* Small parts of HTTP's grammar and of what is written: white space, lists, digits, percent-encoding (percent.c). */
#ifndef ORIBI_HTTP_SYNTAX_H
#define ORIBI_HTTP_SYNTAX_H

#include "oribi/base/buf.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* ---- ows ---- */

/* Optional white space, RFC 9110 5.6.3; private to the parsers. */

static inline bool is_ows(char c)
{
    return c == ' ' || c == '\t';
}

/* [p, end) without the white space at both ends. */
static inline struct oribi_slice strip_ows(const char *p, const char *end)
{
    while (p < end && is_ows(*p))
        p++;
    while (end > p && is_ows(end[-1]))
        end--;
    return oribi_slice(p, (size_t)(end - p));
}

/* ---- list ---- */

/* Lists whose elements hold no comma (RFC 9110 5.6.1.2); private to the readers of fields. */

/* Takes the next element that is not empty off the list, without the white space around it; false at the end. */
static inline bool list_next(struct oribi_slice *list, struct oribi_slice *element)
{
    while (list->n) {
        const char *comma = memchr(list->p, ',', list->n);
        size_t n = comma ? (size_t)(comma - list->p) : list->n;
        size_t used = comma ? n + 1 : n;
        *element = strip_ows(list->p, list->p + n);
        *list = oribi_slice(list->p + used, list->n - used);
        if (element->n)
            return true;
    }
    return false;
}

/* ---- hex ---- */

/* Hexadecimal digits of escapes, chunk sizes and addresses; private to their readers. */

/* 0 … 15, or -1 for what is no digit. */
static inline int hex_value(char c)
{
    if ((uint8_t)(c - '0') < 10)
        return c - '0';
    uint8_t letter = (uint8_t)((c | 0x20) - 'a');
    return letter < 6 ? letter + 10 : -1;
}

/* ---- percent ---- */

/* Percent-decoding (RFC 3986 2.1) for bindings whose interface wants a decoded path. */

/* Decodes `in` into dst, which must hold in.n bytes and may be in.p itself. `+` stays. Returns the decoded length,
 * or ORIBI_EBAD for a `%` not followed by two hex digits. */
ssize_t oribi_percent_decode(struct oribi_slice in, char *dst);

/* ---- digits ---- */

/* Numbers and addresses as text, for what is written once a request: stdio and inet_ntop(3) take longer. */

enum { PUT_ADDRESS_CAP = INET6_ADDRSTRLEN }; /* room for the longest address and the NUL that inet_ntop(3) writes */

/* Writes up to five digits. Returns how many. */
static inline size_t put_digits(char *dst, uint16_t number)
{
    char text[5];
    size_t n = 0;
    do {
        text[n++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    for (size_t i = 0; i < n; i++)
        dst[i] = text[n - 1 - i];
    return n;
}

enum { PUT_DECIMAL_CAP = 20 };

/* Writes up to PUT_DECIMAL_CAP digits. Returns how many. */
static inline size_t put_decimal(char *dst, uint64_t number)
{
    char text[PUT_DECIMAL_CAP];
    size_t n = sizeof(text);
    do {
        text[--n] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    memcpy(dst, text + n, sizeof(text) - n);
    return sizeof(text) - n;
}

/* Writes an address of four bytes in the network's order, 15 characters at the most. Returns how many. */
static inline size_t put_ipv4(char *dst, const uint8_t bytes[4])
{
    size_t n = 0;
    for (int i = 0; i < 4; i++) {
        if (i)
            dst[n++] = '.';
        n += put_digits(dst + n, bytes[i]);
    }
    return n;
}

/* True for ::ffff:a.b.c.d: an IPv4 client as a socket for both families shows it (RFC 4291 2.5.5.2). */
static inline bool is_mapped_ipv4(const uint8_t bytes[16])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(bytes, prefix, sizeof(prefix)) == 0;
}

/* Writes an IPv6 address, a mapped one as the IPv4 address that it stands for, so that a client has one name whichever
 * socket it came by. `dst` has PUT_ADDRESS_CAP bytes. Returns how many characters. */
static inline size_t put_ipv6(char *dst, const uint8_t bytes[16])
{
    if (is_mapped_ipv4(bytes))
        return put_ipv4(dst, bytes + 12);
    return inet_ntop(AF_INET6, bytes, dst, PUT_ADDRESS_CAP) ? strlen(dst) : 0; /* cannot fail: there is room */
}

#endif
