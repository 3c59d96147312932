/* The AVX-512 level of scan: 64 bytes at a time. One of the files that may ask for a platform: elsewhere the level is
 * not there. The 128 ASCII entries of oribi__scan_class are looked up directly; VBMI2 has VPCOMPRESSB. */
#include "http/scan_private.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define SCAN_AVX512 __attribute__((target("avx2,bmi,bmi2,popcnt,avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2")))

/* 0 … 63 */
static const uint8_t place_bytes[64] __attribute__((aligned(64))) = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
    44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

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
    __mmask64 ascii = _knot_mask64(_mm512_movepi8_mask(bytes));
    *ctl = _mm512_mask_testn_epi8_mask(ascii, entries, _mm512_set1_epi8(SCAN_TEXT));
    *non = ~(uint64_t)_mm512_mask_test_epi8_mask(ascii, entries, _mm512_set1_epi8(SCAN_TOKEN));
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

/* As scan_put_marks(), eight at a time. */
SCAN_AVX512 SCAN_INLINE uint32_t *put_marks_avx512(uint64_t marks, uint32_t base, uint32_t *out)
{
    size_t count = (size_t)_mm_popcnt_u64(marks);
    __m256i bases = _mm256_set1_epi32((int)base);
    __m512i places = _mm512_maskz_compress_epi8(marks, _mm512_load_si512(place_bytes));
    __m256i wide = _mm256_cvtepu8_epi32(_mm512_castsi512_si128(places));
    _mm256_storeu_si256((__m256i *)out, _mm256_add_epi32(wide, bases));
    for (size_t i = 8; __builtin_expect(i < count, 0); i += 8) {
        places = _mm512_alignr_epi64(places, places, 1);
        wide = _mm256_cvtepu8_epi32(_mm512_castsi512_si128(places));
        _mm256_storeu_si256((__m256i *)(out + i), _mm256_add_epi32(wide, bases));
    }
    return out + count;
}

SCAN_DEFINE_LINES(avx512, SCAN_AVX512)

/* Forms and payloads gain nothing over AVX2. */
const struct oribi_scan *oribi__scan_avx512(void)
{
    static const struct oribi_scan scan = {
        "avx512",    avx512_token, avx512_target,         avx512_strict_target,  avx512_host,
        avx512_text, avx512_lines, oribi__scan_avx2_form, oribi__scan_avx2_mask, oribi__scan_avx2_utf8};
    return oribi__scan_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
                   __builtin_cpu_supports("avx512vbmi2")
               ? &scan
               : NULL;
}

#else

const struct oribi_scan *oribi__scan_avx512(void)
{
    return 0;
}

#endif
