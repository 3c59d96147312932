/* Text of peers, escaped for log lines and JSON strings. */
#ifndef ORIBI_BASE_ESCAPE_H
#define ORIBI_BASE_ESCAPE_H

#include "oribi/base/buf.h"

#include <stdint.h>

enum {
    ORIBI_ESCAPE_TEXT_GROWTH = 4, /* bytes that one byte becomes at most */
    ORIBI_ESCAPE_JSON_GROWTH = 6,
};

/* For lines in plain text: quotes and backslashes get a backslash, everything outside printable ASCII becomes \xNN.
 * Writes at dst, which has room for ORIBI_ESCAPE_TEXT_GROWTH times the text; returns behind the last byte. */
char *oribi_escape_text(char *dst, struct oribi_slice text);

/* For JSON strings: the same, but UTF-8 passes, except for hidden characters, and any other byte is written as the code
 * point of its number. ORIBI_ESCAPE_JSON_GROWTH. */
char *oribi_escape_json(char *dst, struct oribi_slice text);

/* Appends the text to `buf` as a JSON string, its quotation marks included; nothing where memory is out. */
void oribi_escape_append_json(struct oribi_buf *buf, struct oribi_slice text);

/* Bytes of a well-formed UTF-8 sequence at p (RFC 3629 4), which has n > 0 bytes; 0: there is none. ASCII is none. */
size_t oribi_utf8_len(const char *p, size_t n);

/* The code point of a sequence of `len` bytes, as oribi_utf8_len() counts them, that no reader of a log is to get as it
 * is; 0: any other. Terminals obey controls (U+0080 to U+009F: U+009B is ESC [), programs end a line at U+2028 and
 * U+2029, and marks of direction (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069) show what follows in
 * another order. */
uint32_t oribi_hidden_character(const char *p, size_t len);

#endif
