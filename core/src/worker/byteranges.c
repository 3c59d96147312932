/* Several ranges of a file in one answer (RFC 9110 14.6). */
#include "worker/byteranges.h"

#include "oribi/base/clock.h"

#include <assert.h>
#include <string.h>

/* splitmix64. The boundary is 128 bits of it: that a file holds them by chance is out of reach, and a file that was
 * made to hold them would have to be written after the answer began. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

static void make_boundary(char dst[ORIBI__BOUNDARY_BYTES])
{
    uint64_t seed = (uint64_t)oribi_clock_us() ^ (uint64_t)(uintptr_t)dst << 20;
    uint64_t word = mix(seed ^ (uint64_t)oribi_clock_wall_ms() << 32);
    for (int i = 0; i < ORIBI__BOUNDARY_BYTES; i++) {
        if (i == ORIBI__BOUNDARY_BYTES / 2)
            word = mix(word ^ seed);
        dst[i] = "0123456789abcdef"[word >> 4 * (i % 16) & 15];
    }
}

/* A text that was written to `p`, with `len` bytes of the file behind it. Gives where the next one goes. */
static char *add_piece(struct oribi__byteranges *body, char *p, ssize_t n, int64_t offset, int64_t len)
{
    assert(n > 0); /* the room is for the longest */
    body->pieces[body->count++] = (struct oribi_piece){{p, (size_t)n}, offset, len};
    return p + n;
}

bool oribi__byteranges_make(struct oribi__byteranges *body, const struct oribi_ranges *ranges, struct oribi_slice type,
                            int64_t offset, int64_t size)
{
    make_boundary(body->boundary);
    const struct oribi_multipart multipart = {
        .boundary = oribi_slice(body->boundary, ORIBI__BOUNDARY_BYTES),
        .type = type.n <= ORIBI__PART_TYPE_BYTES_MAX ? type : oribi_slice(NULL, 0),
        .size = size,
    };
    body->count = 0;
    body->len = oribi_multipart_len(&multipart, ranges);
    if (body->len < 0)
        return false;
    body->type = oribi_slice(body->type_text, oribi_multipart_type(&multipart, body->type_text));
    char *p = body->text;
    for (uint32_t i = 0; i < ranges->count; i++) {
        const struct oribi_byte_range *range = &ranges->at[i];
        ssize_t n = oribi_multipart_head(&multipart, ranges, i, p, ORIBI__PART_HEAD_CAP);
        p = add_piece(body, p, n, offset + range->first, range->last - range->first + 1);
    }
    (void)add_piece(body, p, oribi_multipart_end(&multipart, p, ORIBI__PART_HEAD_CAP), 0, 0);
    return true;
}
