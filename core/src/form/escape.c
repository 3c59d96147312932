/* Escapes of forms and cookies, a byte at a time. */
#include "oribi/form/escape.h"

#include <stdint.h>

/* P, W, U: the byte stays in PERL, WHATWG, UNRESERVED. */
enum { P = 1 << ORIBI_ESCAPE_PERL, W = 1 << ORIBI_ESCAPE_WHATWG, U = 1 << ORIBI_ESCAPE_UNRESERVED, A = P | W | U };

static const uint8_t stays[256] = {
    ['!'] = P, ['\''] = P, ['('] = P, [')'] = P, ['*'] = P | W, ['-'] = A, ['.'] = A, ['0'] = A,     ['1'] = A,
    ['2'] = A, ['3'] = A,  ['4'] = A, ['5'] = A, ['6'] = A,     ['7'] = A, ['8'] = A, ['9'] = A,     ['A'] = A,
    ['B'] = A, ['C'] = A,  ['D'] = A, ['E'] = A, ['F'] = A,     ['G'] = A, ['H'] = A, ['I'] = A,     ['J'] = A,
    ['K'] = A, ['L'] = A,  ['M'] = A, ['N'] = A, ['O'] = A,     ['P'] = A, ['Q'] = A, ['R'] = A,     ['S'] = A,
    ['T'] = A, ['U'] = A,  ['V'] = A, ['W'] = A, ['X'] = A,     ['Y'] = A, ['Z'] = A, ['_'] = A,     ['a'] = A,
    ['b'] = A, ['c'] = A,  ['d'] = A, ['e'] = A, ['f'] = A,     ['g'] = A, ['h'] = A, ['i'] = A,     ['j'] = A,
    ['k'] = A, ['l'] = A,  ['m'] = A, ['n'] = A, ['o'] = A,     ['p'] = A, ['q'] = A, ['r'] = A,     ['s'] = A,
    ['t'] = A, ['u'] = A,  ['v'] = A, ['w'] = A, ['x'] = A,     ['y'] = A, ['z'] = A, ['~'] = P | U,
};

char *oribi_form_escape(char *dst, struct oribi_slice text, enum oribi_form_escape set, bool plus)
{
    static const char digits[] = "0123456789ABCDEF";
    const uint8_t mask = (uint8_t)(1 << set);
    const uint8_t *end = (const uint8_t *)text.p + text.n;
    for (const uint8_t *p = (const uint8_t *)text.p; p < end; p++) {
        if (stays[*p] & mask) {
            *dst++ = (char)*p;
        } else if (*p == ' ' && plus) {
            *dst++ = '+';
        } else {
            dst[0] = '%';
            dst[1] = digits[*p >> 4];
            dst[2] = digits[*p & 15];
            dst += 3;
        }
    }
    return dst;
}
