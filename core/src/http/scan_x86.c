/* The x86-64 levels of scan: SSE4.2 (16 bytes at a time), AVX2 (32), AVX-512 VBMI (64). One of the files that may
 * ask for a platform: elsewhere it offers the same three functions, which then say that the level is not there.
 *
 * Classes come from two 16-entry table lookups, one by the low and one by the high half of each byte: a byte is in
 * the class when the entries have a bit in common. A bit stands for a set of rows (high halves) that allow the same
 * columns (low halves). 0x80-0xff look up as zero. AVX-512 VBMI looks the 128 ASCII entries of oribi__scan_class up
 * directly. */
#include "http/scan_private.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define SCAN_SSE42  __attribute__((target("ssse3,sse4.2,popcnt")))
#define SCAN_AVX2   __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define SCAN_AVX512 __attribute__((target("avx2,bmi,bmi2,popcnt,avx512f,avx512bw,avx512vl,avx512vbmi")))
#define SCAN_INLINE static inline __attribute__((always_inline))

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

SCAN_INLINE size_t span_rest(const char *p, size_t n, size_t i, uint8_t class)
{
    while (i < n && (oribi__scan_class[(uint8_t)p[i]] & class))
        i++;
    return i;
}

/* ---- SSE4.2 ---- */

SCAN_SSE42 SCAN_INLINE __m128i class16(__m128i bytes, const uint8_t *columns, const uint8_t *rows)
{
    __m128i low = _mm_shuffle_epi8(_mm_load_si128((const __m128i *)columns), bytes);
    __m128i half = _mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(0x0f));
    return _mm_and_si128(low, _mm_shuffle_epi8(_mm_load_si128((const __m128i *)rows), half));
}

SCAN_SSE42 SCAN_INLINE uint32_t outside16(const char *p, const uint8_t *columns)
{
    __m128i class = class16(_mm_loadu_si128((const __m128i *)p), columns, row_bits);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(class, _mm_setzero_si128()));
}

SCAN_SSE42 SCAN_INLINE size_t span16(const char *p, size_t n, const uint8_t *columns, uint8_t class)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint32_t outside = outside16(p + i, columns);
        if (outside)
            return i + (size_t)__builtin_ctz(outside);
    }
    return span_rest(p, n, i, class);
}

SCAN_SSE42 static size_t sse42_token(const char *p, size_t n)
{
    return span16(p, n, token_columns, SCAN_TOKEN);
}

SCAN_SSE42 static size_t sse42_host(const char *p, size_t n)
{
    return span16(p, n, host_columns, SCAN_HOST);
}

SCAN_SSE42 SCAN_INLINE uint32_t off_target16(const char *p)
{
    __m128i class = class16(_mm_loadu_si128((const __m128i *)p), off_target_columns, off_target_rows);
    return (uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(class, _mm_setzero_si128()));
}

SCAN_SSE42 SCAN_INLINE size_t target16(const char *p, size_t n, size_t *query, bool strict)
{
    size_t i = 0;
    size_t mark = SIZE_MAX;
    for (; i + 16 <= n; i += 16) {
        __m128i equal = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(p + i)), _mm_set1_epi8('?'));
        uint32_t marks = (uint32_t)_mm_movemask_epi8(equal);
        uint32_t outside = strict ? outside16(p + i, strict_target_columns) : off_target16(p + i);
        if (marks && mark == SIZE_MAX)
            mark = i + (size_t)__builtin_ctz(marks);
        if (outside) {
            i += (size_t)__builtin_ctz(outside);
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

SCAN_SSE42 static size_t sse42_target(const char *p, size_t n, size_t *query)
{
    return target16(p, n, query, false);
}

SCAN_SSE42 static size_t sse42_strict_target(const char *p, size_t n, size_t *query)
{
    return target16(p, n, query, true);
}

SCAN_SSE42 static size_t sse42_text(const char *p, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i class = class16(_mm_loadu_si128((const __m128i *)(p + i)), line_columns, line_rows);
        uint32_t controls = (uint32_t)_mm_movemask_epi8(_mm_adds_epu8(class, _mm_set1_epi8(0x60)));
        if (controls)
            return i + (size_t)__builtin_ctz(controls);
    }
    return span_rest(p, n, i, SCAN_TEXT);
}

SCAN_SSE42 SCAN_INLINE void quarter_sse42(const char *p, int shift, uint64_t *ctl, uint64_t *non)
{
    __m128i class = class16(_mm_loadu_si128((const __m128i *)(p + shift)), line_columns, line_rows);
    uint64_t zero = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(class, _mm_setzero_si128()));
    uint64_t controls = (uint32_t)_mm_movemask_epi8(_mm_adds_epu8(class, _mm_set1_epi8(0x60)));
    *ctl |= controls << shift;
    *non |= zero << shift;
}

SCAN_SSE42 SCAN_INLINE void masks_sse42(const char *p, uint64_t *ctl, uint64_t *non)
{
    *ctl = *non = 0;
    quarter_sse42(p, 0, ctl, non);
    quarter_sse42(p, 16, ctl, non);
    quarter_sse42(p, 32, ctl, non);
    quarter_sse42(p, 48, ctl, non);
    *non |= *ctl;
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

SCAN_DEFINE_REST(sse42, SCAN_SSE42)

/* ---- AVX2 ---- */

SCAN_AVX2 SCAN_INLINE __m256i class32(__m256i bytes, const uint8_t *columns, const uint8_t *rows)
{
    __m256i column_table = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)columns));
    __m256i row_table = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)rows));
    __m256i half = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(0x0f));
    return _mm256_and_si256(_mm256_shuffle_epi8(column_table, bytes), _mm256_shuffle_epi8(row_table, half));
}

SCAN_AVX2 SCAN_INLINE uint32_t outside32(const char *p, const uint8_t *columns)
{
    __m256i class = class32(_mm256_loadu_si256((const __m256i *)p), columns, row_bits);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(class, _mm256_setzero_si256()));
}

SCAN_AVX2 SCAN_INLINE size_t span32(const char *p, size_t n, const uint8_t *columns, uint8_t class)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        uint32_t outside = outside32(p + i, columns);
        if (outside)
            return i + (size_t)__builtin_ctz(outside);
    }
    return span_rest(p, n, i, class);
}

SCAN_AVX2 static size_t avx2_token(const char *p, size_t n)
{
    return span32(p, n, token_columns, SCAN_TOKEN);
}

SCAN_AVX2 static size_t avx2_host(const char *p, size_t n)
{
    return span32(p, n, host_columns, SCAN_HOST);
}

SCAN_AVX2 SCAN_INLINE uint32_t off_target32(const char *p)
{
    __m256i class = class32(_mm256_loadu_si256((const __m256i *)p), off_target_columns, off_target_rows);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(class, _mm256_setzero_si256()));
}

SCAN_AVX2 SCAN_INLINE size_t target32(const char *p, size_t n, size_t *query, bool strict)
{
    size_t i = 0;
    size_t mark = SIZE_MAX;
    for (; i + 32 <= n; i += 32) {
        __m256i equal = _mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *)(p + i)), _mm256_set1_epi8('?'));
        uint32_t marks = (uint32_t)_mm256_movemask_epi8(equal);
        uint32_t outside = strict ? outside32(p + i, strict_target_columns) : off_target32(p + i);
        if (marks && mark == SIZE_MAX)
            mark = i + (size_t)__builtin_ctz(marks);
        if (outside) {
            i += (size_t)__builtin_ctz(outside);
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

SCAN_AVX2 static size_t avx2_target(const char *p, size_t n, size_t *query)
{
    return target32(p, n, query, false);
}

SCAN_AVX2 static size_t avx2_strict_target(const char *p, size_t n, size_t *query)
{
    return target32(p, n, query, true);
}

SCAN_AVX2 static size_t avx2_text(const char *p, size_t n)
{
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        __m256i class = class32(_mm256_loadu_si256((const __m256i *)(p + i)), line_columns, line_rows);
        uint32_t controls = (uint32_t)_mm256_movemask_epi8(_mm256_adds_epu8(class, _mm256_set1_epi8(0x60)));
        if (controls)
            return i + (size_t)__builtin_ctz(controls);
    }
    return span_rest(p, n, i, SCAN_TEXT);
}

SCAN_AVX2 SCAN_INLINE void masks_avx2(const char *p, uint64_t *ctl, uint64_t *non)
{
    __m256i low = class32(_mm256_loadu_si256((const __m256i *)p), line_columns, line_rows);
    __m256i high = class32(_mm256_loadu_si256((const __m256i *)(p + 32)), line_columns, line_rows);
    __m256i lift = _mm256_set1_epi8(0x60);
    __m256i zero = _mm256_setzero_si256();
    *ctl = (uint32_t)_mm256_movemask_epi8(_mm256_adds_epu8(low, lift)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_adds_epu8(high, lift)) << 32;
    *non = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, zero)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, zero)) << 32;
    *non |= *ctl;
}

SCAN_DEFINE_REST(avx2, SCAN_AVX2)

/* ---- AVX-512 VBMI ---- */

/* Lanes beyond n are not read and count as outside. Which of 64 bytes have no bit of `class`. */
SCAN_AVX512 SCAN_INLINE uint64_t outside64(const char *p, size_t n, uint8_t class)
{
    __mmask64 lanes = n >= 64 ? ~(uint64_t)0 : (((uint64_t)1 << n) - 1);
    __m512i bytes = _mm512_maskz_loadu_epi8(lanes, p);
    __m512i entries = _mm512_permutex2var_epi8(_mm512_loadu_si512(oribi__scan_class), bytes,
                                               _mm512_loadu_si512(oribi__scan_class + 64));
    uint64_t inside = _mm512_test_epi8_mask(entries, _mm512_set1_epi8((char)class));
    uint64_t high = _mm512_movepi8_mask(bytes);
    bool high_too = class == SCAN_TEXT || class == SCAN_TARGET;
    return ~(high_too ? (inside | high) & lanes : inside & ~high & lanes);
}

SCAN_AVX512 SCAN_INLINE size_t span64(const char *p, size_t n, uint8_t class)
{
    for (size_t i = 0; i < n; i += 64) {
        uint64_t outside = outside64(p + i, n - i, class);
        if (outside) {
            i += (size_t)__builtin_ctzll(outside);
            return i < n ? i : n;
        }
    }
    return n;
}

SCAN_AVX512 static size_t avx512_token(const char *p, size_t n)
{
    return span64(p, n, SCAN_TOKEN);
}

SCAN_AVX512 static size_t avx512_host(const char *p, size_t n)
{
    return span64(p, n, SCAN_HOST);
}

SCAN_AVX512 static size_t avx512_text(const char *p, size_t n)
{
    return span64(p, n, SCAN_TEXT);
}

SCAN_AVX512 SCAN_INLINE size_t target64(const char *p, size_t n, size_t *query, uint8_t class)
{
    size_t mark = SIZE_MAX;
    for (size_t i = 0; i < n; i += 64) {
        size_t left = n - i;
        __mmask64 lanes = left >= 64 ? ~(uint64_t)0 : (((uint64_t)1 << left) - 1);
        uint64_t marks = _mm512_cmpeq_epi8_mask(_mm512_maskz_loadu_epi8(lanes, p + i), _mm512_set1_epi8('?'));
        uint64_t outside = outside64(p + i, left, class);
        if (marks && mark == SIZE_MAX)
            mark = i + (size_t)__builtin_ctzll(marks);
        if (outside) {
            i += (size_t)__builtin_ctzll(outside);
            *query = mark < i ? mark : i;
            return i;
        }
    }
    *query = mark < n ? mark : n;
    return n;
}

SCAN_AVX512 static size_t avx512_target(const char *p, size_t n, size_t *query)
{
    return target64(p, n, query, SCAN_TARGET);
}

SCAN_AVX512 static size_t avx512_strict_target(const char *p, size_t n, size_t *query)
{
    return target64(p, n, query, SCAN_STRICT_TARGET);
}

SCAN_AVX512 SCAN_INLINE void classes_avx512(__m512i bytes, uint64_t *ctl, uint64_t *non)
{
    __m512i entries = _mm512_permutex2var_epi8(_mm512_loadu_si512(oribi__scan_class), bytes,
                                               _mm512_loadu_si512(oribi__scan_class + 64));
    uint64_t high = _mm512_movepi8_mask(bytes);
    *ctl = _mm512_testn_epi8_mask(entries, _mm512_set1_epi8(SCAN_TEXT)) & ~high;
    *non = _mm512_testn_epi8_mask(entries, _mm512_set1_epi8(SCAN_TOKEN)) | high;
}

SCAN_AVX512 SCAN_INLINE void masks_avx512(const char *p, uint64_t *ctl, uint64_t *non)
{
    classes_avx512(_mm512_loadu_si512(p), ctl, non);
}

SCAN_AVX512 SCAN_INLINE void rest_avx512(const char *p, size_t before, size_t n, size_t rest, uint64_t *ctl,
                                         uint64_t *non)
{
    __mmask64 lanes = ((uint64_t)1 << rest) - 1;
    (void)before;
    classes_avx512(_mm512_maskz_loadu_epi8(lanes, p + n - rest), ctl, non);
    *ctl &= lanes;
    *non &= lanes;
}

/* ---- The walk, once per level ---- */

#define SCAN_DEFINE_LINES(level, attribute)                                                                            \
    attribute static size_t level##_lines(const char *p, size_t before, size_t n, uint32_t *marks, size_t cap)         \
    {                                                                                                                  \
        struct scan_walk walk = SCAN_WALK_INIT;                                                                        \
        uint32_t *out = marks;                                                                                         \
        const uint32_t *full = marks + cap - ORIBI_SCAN_BLOCK;                                                         \
        size_t pos = 0;                                                                                                \
        uint64_t ctl;                                                                                                  \
        uint64_t non;                                                                                                  \
        for (; n - pos >= 64; pos += 64) {                                                                             \
            if (walk.ended || out > full)                                                                              \
                return (size_t)(out - marks);                                                                          \
            masks_##level(p + pos, &ctl, &non);                                                                        \
            out = scan_walk_block(&walk, ctl, non, (uint32_t)pos, out);                                                \
        }                                                                                                              \
        if (pos == n || walk.ended || out > full)                                                                      \
            return (size_t)(out - marks);                                                                              \
        rest_##level(p, before, n, n - pos, &ctl, &non);                                                               \
        return (size_t)(scan_walk_block(&walk, ctl, non, (uint32_t)pos, out) - marks);                                 \
    }

SCAN_DEFINE_LINES(sse42, SCAN_SSE42)
SCAN_DEFINE_LINES(avx2, SCAN_AVX2)
SCAN_DEFINE_LINES(avx512, SCAN_AVX512)

/* ---- Forms: one bit for each of 64 bytes ---- */

static const uint8_t form_columns[16] __attribute__((aligned(16))) = {[0x5] = 1, [0x6] = 1, [0xb] = 3, [0xd] = 2};
static const uint8_t form_rows[16] __attribute__((aligned(16))) = {[0x2] = 1, [0x3] = 2}; /* % & +, ; = */

SCAN_SSE42 SCAN_INLINE uint64_t form_sse42(const char *p)
{
    uint64_t marks = 0;
    for (int i = 0; i < 64; i += 16) {
        __m128i class = class16(_mm_loadu_si128((const __m128i *)(p + i)), form_columns, form_rows);
        marks |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpgt_epi8(class, _mm_setzero_si128())) << i;
    }
    return marks;
}

SCAN_AVX2 SCAN_INLINE uint64_t form_avx2(const char *p)
{
    __m256i zero = _mm256_setzero_si256();
    __m256i low = class32(_mm256_loadu_si256((const __m256i *)p), form_columns, form_rows);
    __m256i high = class32(_mm256_loadu_si256((const __m256i *)(p + 32)), form_columns, form_rows);
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(low, zero)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi8(high, zero)) << 32;
}

/* As above; 64 bytes that are there in part only are copied first. AVX-512 VBMI has nothing to add to AVX2. */
#define SCAN_DEFINE_FORM(level, attribute)                                                                             \
    attribute static size_t level##_form(const char *p, size_t n, uint32_t *marks, size_t cap, size_t *looked)         \
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

SCAN_DEFINE_FORM(sse42, SCAN_SSE42)
SCAN_DEFINE_FORM(avx2, SCAN_AVX2)

const struct oribi_scan *oribi__scan_sse42(void)
{
    static const struct oribi_scan scan = {"sse4.2",   sse42_token, sse42_target, sse42_strict_target,
                                           sse42_host, sse42_text,  sse42_lines,  sse42_form};
    __builtin_cpu_init(); /* we may be called from a constructor, before libgcc's own */
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt")
               ? &scan
               : NULL;
}

const struct oribi_scan *oribi__scan_avx2(void)
{
    static const struct oribi_scan scan = {"avx2",    avx2_token, avx2_target, avx2_strict_target,
                                           avx2_host, avx2_text,  avx2_lines,  avx2_form};
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                   __builtin_cpu_supports("popcnt")
               ? &scan
               : NULL;
}

const struct oribi_scan *oribi__scan_avx512(void)
{
    static const struct oribi_scan scan = {"avx512",    avx512_token, avx512_target, avx512_strict_target,
                                           avx512_host, avx512_text,  avx512_lines,  avx2_form};
    return oribi__scan_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi")
               ? &scan
               : NULL;
}

#else

const struct oribi_scan *oribi__scan_sse42(void)
{
    return 0;
}

const struct oribi_scan *oribi__scan_avx2(void)
{
    return 0;
}

const struct oribi_scan *oribi__scan_avx512(void)
{
    return 0;
}

#endif
