/* Payloads of frames at two x86-64 levels of scan: SSE4.2 (16 bytes at a time), AVX2 (32). One of the files that may
 * ask for a platform. See scan_payload.h for how UTF-8 is checked. */
#include "http/scan_payload.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define SCAN_SSE42 __attribute__((target("ssse3,sse4.2,popcnt")))
#define SCAN_AVX2  __attribute__((target("avx2,bmi,bmi2,popcnt")))

/* ---- SSE4.2 ---- */

SCAN_SSE42 void oribi__scan_sse42_mask(char *p, size_t n, const uint8_t mask[4])
{
    int32_t four;
    size_t i = 0;
    memcpy(&four, mask, sizeof(four));
    __m128i all = _mm_set1_epi32(four);
    for (; n - i >= 16; i += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(p + i));
        _mm_storeu_si128((__m128i *)(p + i), _mm_xor_si128(bytes, all));
    }
    mask_rest(p, n, i, mask);
}

struct utf8_sse42 {
    __m128i before; /* the vector before */
    __m128i error;  /* any bit: not UTF-8 */
    int tops;       /* the vector before is not all ASCII */
};

SCAN_SSE42 SCAN_INLINE struct utf8_sse42 utf8_begin_sse42(void)
{
    return (struct utf8_sse42){_mm_setzero_si128(), _mm_setzero_si128(), 0};
}

SCAN_SSE42 SCAN_INLINE __m128i look16(const uint8_t *table, __m128i halves)
{
    return _mm_shuffle_epi8(_mm_load_si128((const __m128i *)table), halves);
}

SCAN_SSE42 SCAN_INLINE __m128i high16(__m128i bytes)
{
    return _mm_and_si128(_mm_srli_epi16(bytes, 4), _mm_set1_epi8(0x0f));
}

SCAN_SSE42 SCAN_INLINE void utf8_sse42(struct utf8_sse42 *walk, const char *p)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)p);
    int tops = _mm_movemask_epi8(bytes);
    if (tops | walk->tops) {
        __m128i one = _mm_alignr_epi8(bytes, walk->before, 15);
        __m128i two = _mm_alignr_epi8(bytes, walk->before, 14);
        __m128i three = _mm_alignr_epi8(bytes, walk->before, 13);
        __m128i errors = _mm_and_si128(look16(utf8_before_high, high16(one)),
                                       look16(utf8_before_low, _mm_and_si128(one, _mm_set1_epi8(0x0f))));
        errors = _mm_and_si128(errors, look16(utf8_high, high16(bytes)));
        __m128i far =
            _mm_or_si128(_mm_subs_epu8(two, _mm_set1_epi8(UTF8_THREE)), _mm_subs_epu8(three, _mm_set1_epi8(UTF8_FOUR)));
        far = _mm_and_si128(far, _mm_set1_epi8((char)TWO_CONTINUATIONS));
        walk->error = _mm_or_si128(walk->error, _mm_xor_si128(errors, far));
    }
    walk->before = bytes;
    walk->tops = tops;
}

SCAN_SSE42 SCAN_INLINE bool utf8_end_sse42(const struct utf8_sse42 *walk)
{
    return _mm_testz_si128(walk->error, walk->error);
}

SCAN_DEFINE_UTF8(sse42, SCAN_SSE42, 16)

/* ---- AVX2 ---- */

/* Alike on purpose with scan_payload_x86.c: each instruction set has its own types and instructions. */

SCAN_AVX2 void oribi__scan_avx2_mask(char *p, size_t n, const uint8_t mask[4])
{
    int32_t four;
    size_t i = 0;
    memcpy(&four, mask, sizeof(four));
    __m256i all = _mm256_set1_epi32(four);
    for (; n - i >= 32; i += 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(p + i));
        _mm256_storeu_si256((__m256i *)(p + i), _mm256_xor_si256(bytes, all));
    }
    mask_rest(p, n, i, mask);
}

struct utf8_avx2 {
    __m256i before;
    __m256i error;
    int tops;
};

SCAN_AVX2 SCAN_INLINE struct utf8_avx2 utf8_begin_avx2(void)
{
    return (struct utf8_avx2){_mm256_setzero_si256(), _mm256_setzero_si256(), 0};
}

SCAN_AVX2 SCAN_INLINE __m256i look32(const uint8_t *table, __m256i halves)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)table)), halves);
}

SCAN_AVX2 SCAN_INLINE __m256i high32(__m256i bytes)
{
    return _mm256_and_si256(_mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(0x0f));
}

SCAN_AVX2 SCAN_INLINE void utf8_avx2(struct utf8_avx2 *walk, const char *p)
{
    __m256i bytes = _mm256_loadu_si256((const __m256i *)p);
    int tops = _mm256_movemask_epi8(bytes);
    if (tops | walk->tops) {
        /* alignr works on each half alone: the half before each */
        __m256i before = _mm256_permute2x128_si256(walk->before, bytes, 0x21);
        __m256i one = _mm256_alignr_epi8(bytes, before, 15);
        __m256i two = _mm256_alignr_epi8(bytes, before, 14);
        __m256i three = _mm256_alignr_epi8(bytes, before, 13);
        __m256i errors = _mm256_and_si256(look32(utf8_before_high, high32(one)),
                                          look32(utf8_before_low, _mm256_and_si256(one, _mm256_set1_epi8(0x0f))));
        errors = _mm256_and_si256(errors, look32(utf8_high, high32(bytes)));
        __m256i far = _mm256_or_si256(_mm256_subs_epu8(two, _mm256_set1_epi8(UTF8_THREE)),
                                      _mm256_subs_epu8(three, _mm256_set1_epi8(UTF8_FOUR)));
        far = _mm256_and_si256(far, _mm256_set1_epi8((char)TWO_CONTINUATIONS));
        walk->error = _mm256_or_si256(walk->error, _mm256_xor_si256(errors, far));
    }
    walk->before = bytes;
    walk->tops = tops;
}

SCAN_AVX2 SCAN_INLINE bool utf8_end_avx2(const struct utf8_avx2 *walk)
{
    return _mm256_testz_si256(walk->error, walk->error);
}

SCAN_DEFINE_UTF8(avx2, SCAN_AVX2, 32)

#endif
