/* Shared by the levels of scan that look bytes up by their halves (scan_x86.c, scan_neon.c): the tables, and the
 * functions that are made of a level's own for 64 bytes.
 *
 * Classes come from two 16-entry table lookups, one by the low and one by the high half of each byte: a byte is in
 * the class when the entries have a bit in common. A bit stands for a set of rows (high halves) that allow the same
 * columns (low halves). 0x80-0xff look up as zero. */
#ifndef ORIBI_HTTP_SCAN_COLUMNS_H
#define ORIBI_HTTP_SCAN_COLUMNS_H

#include "http/scan_private.h"

#include <string.h>

/* One bit per row. */
static const uint8_t row_bits[16] __attribute__((aligned(16))) = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80};
static const uint8_t token_columns[16] __attribute__((aligned(16))) = {0xe8, 0xfc, 0xf8, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc,
                                                                       0xf8, 0xf8, 0xf4, 0x54, 0xd0, 0x54, 0xf4, 0x70};
static const uint8_t strict_target_columns[16] __attribute__((aligned(16))) = {
    0xb8, 0xfc, 0xf8, 0xf8, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0x7c, 0x54, 0x7c, 0xd4, 0x7c};
static const uint8_t host_columns[16] __attribute__((aligned(16))) = {0xa8, 0xfc, 0xf8, 0xf8, 0xfc, 0xf8, 0xfc, 0xfc,
                                                                      0xfc, 0xfc, 0xf4, 0x5c, 0x54, 0x5c, 0xd4, 0x70};

/* The other way round: what no target has, so that 0x80-0xff, which look up as zero, are in. */
static const uint8_t off_target_columns[16] __attribute__((aligned(16))) = {
    0x03, 0x01, 0x03, 0x03, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x05, 0x01, 0x05, 0x09};
static const uint8_t off_target_rows[16] __attribute__((aligned(16))) = {0x01, 0x01, 0x02, 0x04, 0, 0, 0, 0x08};

/* Both classes `lines` needs in one lookup. Bits 0-4 cover the tchars: rows 3 5 6 7 have columns 0-9, rows 4 6
 * columns 1-F, row 2 its own, rows 4 5 6 columns A E F, rows 4 6 7 columns A C E. Bits 5-7 cover the controls: rows
 * 0 1 all columns but 9, row 1 column 9, row 7 column F. So adding 0x60 with saturation brings every control, and
 * nothing else, to the sign bit. */
static const uint8_t line_columns[16] __attribute__((aligned(16))) = {0x21, 0x27, 0x23, 0x27, 0x27, 0x27, 0x27, 0x27,
                                                                      0x23, 0x43, 0x3e, 0x26, 0x32, 0x26, 0x3e, 0xaa};
static const uint8_t line_rows[16] __attribute__((aligned(16))) = {0x20, 0x60, 0x04, 0x01, 0x1a, 0x09, 0x1b, 0x91};

/* For `form`. */
static const uint8_t form_columns[16] __attribute__((aligned(16))) = {[0x5] = 1, [0x6] = 1, [0xb] = 3, [0xd] = 2};
static const uint8_t form_rows[16] __attribute__((aligned(16))) = {[0x2] = 1, [0x3] = 2}; /* % & +, ; = */

/* The scalar level's way, for what is left of less than a vector. */
SCAN_INLINE size_t span_rest(const char *p, size_t n, size_t i, uint8_t class)
{
    while (i < n && (oribi__scan_class[(uint8_t)p[i]] & class))
        i++;
    return i;
}

/* The last rest < 64 bytes of [p, p+n): read from 64 bytes before the end and shifted into place where that much may
 * be read, else copied. Zero bits above the end are one endless name, which leaves no mark. */
#define SCAN_DEFINE_REST(level, attribute)                                                                             \
    attribute SCAN_INLINE void rest_##level(const char *p, size_t before, size_t n, size_t rest, uint64_t *ctl,        \
                                            uint64_t *non)                                                             \
    {                                                                                                                  \
        if (n + before >= 64) {                                                                                        \
            masks_##level(p + n - 64, ctl, non);                                                                       \
            *ctl >>= 64 - rest;                                                                                        \
            *non >>= 64 - rest;                                                                                        \
        } else {                                                                                                       \
            char copy[64] = {0};                                                                                       \
            memcpy(copy, p, rest);                                                                                     \
            masks_##level(copy, ctl, non);                                                                             \
            *ctl &= ((uint64_t)1 << rest) - 1;                                                                         \
            *non &= ((uint64_t)1 << rest) - 1;                                                                         \
        }                                                                                                              \
    }

/* `form` of a level, from its form_<level>(): one bit for each of 64 bytes. 64 bytes that are there in part only are
 * copied first. */
#define SCAN_DEFINE_FORM(level, attribute)                                                                             \
    attribute size_t oribi__scan_##level##_form(const char *p, size_t n, uint32_t *marks, size_t cap, size_t *looked)  \
    {                                                                                                                  \
        uint32_t *out = marks;                                                                                         \
        const uint32_t *full = marks + cap - ORIBI_SCAN_BLOCK;                                                         \
        size_t pos = 0;                                                                                                \
        for (; n - pos >= 64 && out <= full; pos += 64)                                                                \
            out = scan_put_marks(form_##level(p + pos), (uint32_t)pos, out);                                           \
        if (pos < n && out <= full) {                                                                                  \
            char copy[64] = {0};                                                                                       \
            memcpy(copy, p + pos, n - pos);                                                                            \
            out = scan_put_marks(form_##level(copy), (uint32_t)pos, out);                                              \
            pos = n;                                                                                                   \
        }                                                                                                              \
        *looked = pos;                                                                                                 \
        return (size_t)(out - marks);                                                                                  \
    }

#endif
