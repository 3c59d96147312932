/* The NEON level of scan: 16 bytes at a time, on every 64-bit ARM processor. One of the files that may ask for a
 * platform: elsewhere the level is not there. The counterpart of scan_x86.c, function by function; the difference is
 * how a comparison becomes a bit mask, for which x86 has an instruction and ARM has none. */
#include "http/scan_columns.h"

#if defined(__aarch64__) && defined(__AARCH64EL__)

#include <arm_neon.h>

/* A lookup with an index beyond 15 gives zero, so the sign bit is kept: 0x80-0xff look up as zero. */
SCAN_INLINE uint8x16_t class16(uint8x16_t bytes, const uint8_t *columns, const uint8_t *rows)
{
    uint8x16_t low = vqtbl1q_u8(vld1q_u8(columns), vandq_u8(bytes, vdupq_n_u8(0x8f)));
    return vandq_u8(low, vqtbl1q_u8(vld1q_u8(rows), vshrq_n_u8(bytes, 4)));
}

SCAN_INLINE uint8x16_t load16(const char *p)
{
    return vld1q_u8((const uint8_t *)p);
}

/* Four bits for each byte of a comparison. */
SCAN_INLINE uint64_t nibbles(uint8x16_t comparison)
{
    return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(comparison), 4)), 0);
}

/* The place of the first byte that has bits among nibbles(); there must be one. */
SCAN_INLINE size_t first_of(uint64_t nibble_mask)
{
    return (size_t)__builtin_ctzll(nibble_mask) / 4;
}

SCAN_INLINE uint64_t outside16(uint8x16_t bytes, const uint8_t *columns)
{
    return nibbles(vceqzq_u8(class16(bytes, columns, row_bits)));
}

SCAN_INLINE uint64_t off_target16(uint8x16_t bytes)
{
    return nibbles(vcgtzq_s8(vreinterpretq_s8_u8(class16(bytes, off_target_columns, off_target_rows))));
}

SCAN_INLINE size_t span16(const char *p, size_t n, const uint8_t *columns, uint8_t class)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint64_t outside = outside16(load16(p + i), columns);
        if (outside)
            return i + first_of(outside);
    }
    return span_rest(p, n, i, class);
}

static size_t neon_token(const char *p, size_t n)
{
    return span16(p, n, token_columns, SCAN_TOKEN);
}

static size_t neon_host(const char *p, size_t n)
{
    return span16(p, n, host_columns, SCAN_HOST);
}

SCAN_INLINE size_t target16(const char *p, size_t n, size_t *query, bool strict)
{
    size_t i = 0;
    size_t mark = SIZE_MAX;
    for (; i + 16 <= n; i += 16) {
        uint8x16_t bytes = load16(p + i);
        uint64_t marks = nibbles(vceqq_u8(bytes, vdupq_n_u8('?')));
        uint64_t outside = strict ? outside16(bytes, strict_target_columns) : off_target16(bytes);
        if (marks && mark == SIZE_MAX)
            mark = i + first_of(marks);
        if (outside) {
            i += first_of(outside);
            *query = mark < i ? mark : i;
            return i;
        }
    }
    for (; i < n && (oribi__scan_class[(uint8_t)p[i]] & (strict ? SCAN_STRICT_TARGET : SCAN_TARGET)); i++)
        if (p[i] == '?' && mark == SIZE_MAX)
            mark = i;
    *query = mark < i ? mark : i;
    return i;
}

static size_t neon_target(const char *p, size_t n, size_t *query)
{
    return target16(p, n, query, false);
}

static size_t neon_strict_target(const char *p, size_t n, size_t *query)
{
    return target16(p, n, query, true);
}

/* The controls of line_columns: what adding 0x60 brings to the sign bit is what is 0x20 or more. */
SCAN_INLINE uint8x16_t controls16(uint8x16_t class)
{
    return vcgeq_u8(class, vdupq_n_u8(0x20));
}

static size_t neon_text(const char *p, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint64_t controls = nibbles(controls16(class16(load16(p + i), line_columns, line_rows)));
        if (controls)
            return i + first_of(controls);
    }
    return span_rest(p, n, i, SCAN_TEXT);
}

/* Adds neighbours up: each byte of a comparison has kept one bit, of which eight bytes make a byte of the mask. */
SCAN_INLINE uint8x16_t join(uint8x16_t first, uint8x16_t second, uint8x16_t third, uint8x16_t fourth)
{
    static const uint8_t places[16]
        __attribute__((aligned(16))) = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t bit = vld1q_u8(places);
    return vpaddq_u8(vpaddq_u8(vandq_u8(first, bit), vandq_u8(second, bit)),
                     vpaddq_u8(vandq_u8(third, bit), vandq_u8(fourth, bit)));
}

SCAN_INLINE void masks_neon(const char *p, uint64_t *ctl, uint64_t *non)
{
    uint8x16_t a = class16(load16(p), line_columns, line_rows);
    uint8x16_t b = class16(load16(p + 16), line_columns, line_rows);
    uint8x16_t c = class16(load16(p + 32), line_columns, line_rows);
    uint8x16_t d = class16(load16(p + 48), line_columns, line_rows);
    uint8x16_t controls = join(controls16(a), controls16(b), controls16(c), controls16(d));
    uint8x16_t zeroes = join(vceqzq_u8(a), vceqzq_u8(b), vceqzq_u8(c), vceqzq_u8(d));
    uint64x2_t both = vreinterpretq_u64_u8(vpaddq_u8(controls, zeroes));
    *ctl = vgetq_lane_u64(both, 0);
    *non = vgetq_lane_u64(both, 1) | *ctl;
}

#define put_marks_neon scan_put_marks

SCAN_DEFINE_REST(neon, )
SCAN_DEFINE_LINES(neon, )

SCAN_INLINE uint8x16_t form16(const char *p)
{
    uint8x16_t class = class16(load16(p), form_columns, form_rows);
    return vtstq_u8(class, class);
}

SCAN_INLINE uint64_t form_neon(const char *p)
{
    uint8x16_t ends = join(form16(p), form16(p + 16), form16(p + 32), form16(p + 48));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(ends, ends)), 0);
}

SCAN_DEFINE_FORM(neon, static)

const struct oribi_scan *oribi__scan_neon(void)
{
    static const struct oribi_scan scan = {
        "neon",    neon_token, neon_target,           neon_strict_target,    neon_host,
        neon_text, neon_lines, oribi__scan_neon_form, oribi__scan_neon_mask, oribi__scan_neon_utf8};
    return &scan;
}

#else

const struct oribi_scan *oribi__scan_neon(void)
{
    return 0;
}

#endif
