/* Payloads of frames at the NEON level of scan: 16 bytes at a time. One of the files that may ask for a platform. The
 * counterpart of scan_payload_x86.c, function by function. */
#include "http/scan_payload.h"

#if defined(__aarch64__) && defined(__AARCH64EL__)

#include <arm_neon.h>

void oribi__scan_neon_mask(char *p, size_t n, const uint8_t mask[4])
{
    uint32_t four;
    size_t i = 0;
    memcpy(&four, mask, sizeof(four));
    uint8x16_t all = vreinterpretq_u8_u32(vdupq_n_u32(four));
    for (; n - i >= 16; i += 16)
        vst1q_u8((uint8_t *)p + i, veorq_u8(vld1q_u8((const uint8_t *)p + i), all));
    mask_rest(p, n, i, mask);
}

struct utf8_neon {
    uint8x16_t before; /* the vector before */
    uint8x16_t error;  /* any bit: not UTF-8 */
    bool tops;         /* the vector before is not all ASCII */
};

SCAN_INLINE struct utf8_neon utf8_begin_neon(void)
{
    return (struct utf8_neon){vdupq_n_u8(0), vdupq_n_u8(0), false};
}

SCAN_INLINE uint8x16_t look16(const uint8_t *table, uint8x16_t halves)
{
    return vqtbl1q_u8(vld1q_u8(table), halves);
}

SCAN_INLINE void utf8_neon(struct utf8_neon *walk, const char *p)
{
    uint8x16_t bytes = vld1q_u8((const uint8_t *)p);
    bool tops = vmaxvq_u8(bytes) >= 0x80;
    if (tops || walk->tops) {
        uint8x16_t one = vextq_u8(walk->before, bytes, 15);
        uint8x16_t two = vextq_u8(walk->before, bytes, 14);
        uint8x16_t three = vextq_u8(walk->before, bytes, 13);
        uint8x16_t errors = vandq_u8(look16(utf8_before_high, vshrq_n_u8(one, 4)),
                                     look16(utf8_before_low, vandq_u8(one, vdupq_n_u8(0x0f))));
        errors = vandq_u8(errors, look16(utf8_high, vshrq_n_u8(bytes, 4)));
        uint8x16_t far = vorrq_u8(vqsubq_u8(two, vdupq_n_u8(UTF8_THREE)), vqsubq_u8(three, vdupq_n_u8(UTF8_FOUR)));
        far = vandq_u8(far, vdupq_n_u8(TWO_CONTINUATIONS));
        walk->error = vorrq_u8(walk->error, veorq_u8(errors, far));
    }
    walk->before = bytes;
    walk->tops = tops;
}

SCAN_INLINE bool utf8_end_neon(const struct utf8_neon *walk)
{
    return vmaxvq_u8(walk->error) == 0;
}

SCAN_DEFINE_UTF8(neon, , 16)

#endif
