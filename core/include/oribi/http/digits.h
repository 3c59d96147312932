/* Numbers and addresses as text, for what is written once a request: stdio and inet_ntop(3) take longer. */
#ifndef ORIBI_HTTP_DIGITS_H
#define ORIBI_HTTP_DIGITS_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
