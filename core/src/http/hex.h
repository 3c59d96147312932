/* Hexadecimal digits of escapes, chunk sizes and addresses; private to their readers. */
#ifndef ORIBI_HTTP_HEX_H
#define ORIBI_HTTP_HEX_H

#include <stdint.h>

/* 0 … 15, or -1 for what is no digit. */
static inline int hex_value(char c)
{
    if ((uint8_t)(c - '0') < 10)
        return c - '0';
    uint8_t letter = (uint8_t)((c | 0x20) - 'a');
    return letter < 6 ? letter + 10 : -1;
}

#endif
