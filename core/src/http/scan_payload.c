/* Payloads of frames at the scalar level, which is also the specification of the others. */
#include "http/scan_payload.h"

#include "oribi/base/escape.h"

void oribi__scan_scalar_mask(char *p, size_t n, const uint8_t mask[4])
{
    mask_rest(p, n, 0, mask);
}

bool oribi__scan_scalar_utf8(const char *p, size_t n)
{
    const uint64_t tops = 0x8080808080808080U;
    size_t i = 0;
    while (i < n) {
        uint64_t word = tops;
        if (n - i >= sizeof(word))
            memcpy(&word, p + i, sizeof(word));
        if (!(word & tops)) {
            i += sizeof(word);
            continue;
        }
        size_t len = (uint8_t)p[i] < 0x80 ? 1 : oribi_utf8_len(p + i, n - i);
        if (len == 0)
            return false;
        i += len;
    }
    return true;
}
