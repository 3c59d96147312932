/* Payloads of frames at the scalar level, which is also the specification of the others. */
#include "http/scan_payload.h"

#include "oribi/base/escape.h"

void oribi__scan_scalar_mask(char *p, size_t n, const uint8_t mask[4])
{
    mask_rest(p, n, 0, mask);
}

/* Are the next eight bytes ASCII? */
static inline bool is_ascii_word(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return !(word & 0x8080808080808080U);
}

bool oribi__scan_scalar_utf8(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        if ((uint8_t)p[i] >= 0x80) {
            size_t len = oribi_utf8_len(p + i, n - i);
            if (len == 0)
                return false;
            i += len;
            continue;
        }
        i++;
        while (n - i >= 8 && is_ascii_word(p + i))
            i += 8;
    }
    return true;
}
