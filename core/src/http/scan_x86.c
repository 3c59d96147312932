/* Two x86-64 levels of scan: SSE4.2 (16 bytes at a time), AVX2 (32). One of the files that may ask for a platform:
 * elsewhere it offers the same functions, which then say that the level is not there. */
#include "http/scan_columns.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define SCAN_SSE42 __attribute__((target("ssse3,sse4.2,popcnt")))
#define SCAN_AVX2  __attribute__((target("avx2,bmi,bmi2,popcnt")))

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

SCAN_DEFINE_REST(sse42, SCAN_SSE42)

/* ---- AVX2 ---- */

/* Alike on purpose with scan_x86.c: each instruction set has its own types and instructions, and a function that is
 * inlined has to be compiled for the set of its caller. */

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

/* As scan_put_mark(): TZCNT has an answer where there is no bit. */
SCAN_AVX2 SCAN_INLINE uint64_t put_mark_avx2(uint64_t marks, uint32_t base, uint32_t *out)
{
    *(volatile uint32_t *)out = base + (uint32_t)_tzcnt_u64(marks);
    return _blsr_u64(marks);
}

SCAN_AVX2 SCAN_INLINE uint32_t *put_marks_avx2(uint64_t marks, uint32_t base, uint32_t *out)
{
    size_t count = (size_t)_mm_popcnt_u64(marks);
    marks = put_mark_avx2(marks, base, out);
    marks = put_mark_avx2(marks, base, out + 1);
    marks = put_mark_avx2(marks, base, out + 2);
    marks = put_mark_avx2(marks, base, out + 3);
    for (size_t i = 4; __builtin_expect(i < count, 0); i++)
        marks = put_mark_avx2(marks, base, out + i);
    return out + count;
}

/* ---- The walk, once per level ---- */

#define put_marks_sse42 scan_put_marks

SCAN_DEFINE_LINES(sse42, SCAN_SSE42)
SCAN_DEFINE_LINES(avx2, SCAN_AVX2)

/* ---- Forms: one bit for each of 64 bytes ---- */

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

SCAN_DEFINE_FORM(sse42, SCAN_SSE42)
SCAN_DEFINE_FORM(avx2, SCAN_AVX2)

const struct oribi_scan *oribi__scan_sse42(void)
{
    static const struct oribi_scan scan = {
        "sse4.2",   sse42_token, sse42_target,           sse42_strict_target,    sse42_host,
        sse42_text, sse42_lines, oribi__scan_sse42_form, oribi__scan_sse42_mask, oribi__scan_sse42_utf8};
    __builtin_cpu_init(); /* we may be called from a constructor, before libgcc's own */
    return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt")
               ? &scan
               : NULL;
}

const struct oribi_scan *oribi__scan_avx2(void)
{
    static const struct oribi_scan scan = {
        "avx2",    avx2_token, avx2_target,           avx2_strict_target,    avx2_host,
        avx2_text, avx2_lines, oribi__scan_avx2_form, oribi__scan_avx2_mask, oribi__scan_avx2_utf8};
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                   __builtin_cpu_supports("popcnt")
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

#endif
