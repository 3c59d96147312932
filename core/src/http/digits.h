/* Numbers and IPv4 addresses as text, for what is written once a request: stdio and inet_ntop(3) take longer. */
#ifndef ORIBI_HTTP_DIGITS_H
#define ORIBI_HTTP_DIGITS_H

#include <stddef.h>
#include <stdint.h>

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

#endif
