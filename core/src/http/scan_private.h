/* Shared by the levels of scan (scan.c, scan_x86.c, scan_avx512.c, scan_neon.c): the walk over the bit masks of 64
 * bytes, and the classes of characters.
 *
 * Each level turns 64 bytes into two masks, bit i for byte i: `ctl` (controls other than TAB) and `non` (no tchar).
 * Line ends are starts of runs of controls, the next line starts two bytes later, and its name ends at the first
 * `non` bit from there, which one addition finds for all lines of the block: adding the start bit to a run of ones
 * carries to the first zero after it.
 *
 *     bytes   H o s t :   a \r \n A c c e p t :
 *     non     0 0 0 0 1 1 0 1  1  0 0 0 0 0 0 1
 *     ctl     0 0 0 0 0 0 0 1  1  0 0 0 0 0 0 0
 *     start   1 0 0 0 0 0 0 0  0  1 0 0 0 0 0 0
 *     marks           ^     ^                 ^    (~non + start) & non, and control runs
 */
#ifndef ORIBI_HTTP_SCAN_INTERNAL_H
#define ORIBI_HTTP_SCAN_INTERNAL_H

#include "oribi/http/scan.h"

#define SCAN_INLINE static inline __attribute__((always_inline))

/* Reached without the detour that position-independent code takes for symbols from elsewhere. */
#define ORIBI__HIDDEN __attribute__((visibility("hidden")))

/* Bits of oribi__scan_class. */
enum {
    SCAN_TOKEN = 1,
    SCAN_TARGET = 2,
    SCAN_HOST = 4,
    SCAN_TEXT = 8,
    SCAN_STRICT_TARGET = 16,
};
extern ORIBI__HIDDEN const uint8_t oribi__scan_class[256];

/* NULL when the CPU lacks it. */
const struct oribi_scan *oribi__scan_neon(void);
const struct oribi_scan *oribi__scan_sse42(void);
const struct oribi_scan *oribi__scan_avx2(void);
const struct oribi_scan *oribi__scan_avx512(void);

/* `form` of these levels, which must be there. */
size_t oribi__scan_sse42_form(const char *p, size_t n, uint32_t *marks, size_t cap, size_t *looked);
size_t oribi__scan_avx2_form(const char *p, size_t n, uint32_t *marks, size_t cap, size_t *looked);

/* `mask` and `utf8` of every level, which must be there (scan_payload.c, scan_payload_x86.c, scan_payload_neon.c). */
void oribi__scan_scalar_mask(char *p, size_t n, const uint8_t mask[4]);
void oribi__scan_neon_mask(char *p, size_t n, const uint8_t mask[4]);
void oribi__scan_sse42_mask(char *p, size_t n, const uint8_t mask[4]);
void oribi__scan_avx2_mask(char *p, size_t n, const uint8_t mask[4]);
bool oribi__scan_scalar_utf8(const char *p, size_t n);
bool oribi__scan_neon_utf8(const char *p, size_t n);
bool oribi__scan_sse42_utf8(const char *p, size_t n);
bool oribi__scan_avx2_utf8(const char *p, size_t n);

struct scan_walk {
    uint64_t starts;  /* line starts in the coming block that the last one already knows */
    uint64_t carry;   /* a name runs on from the last block */
    uint64_t control; /* the last byte seen was a control */
    bool ended;       /* a line began with a control */
};

/* The first byte is a line start, and what stood before it was a line end. */
#define SCAN_WALK_INIT                                                                                                 \
    {                                                                                                                  \
        .starts = 1, .carry = 0, .control = 1, .ended = false                                                          \
    }

/* Stores the place of the lowest set bit and returns the bits without it. With no bit set it stores rubbish, which
 * the extra bit makes cheaper than asking. Volatile keeps the compiler from gathering four such stores into one
 * vector, which takes longer to make than to store. */
static inline __attribute__((always_inline)) uint64_t scan_put_mark(uint64_t bits, uint32_t base, uint32_t *out)
{
    uint32_t place = base + (uint32_t)__builtin_ctzll(bits | (uint64_t)1 << 63);
    *(volatile uint32_t *)out = place;
    return bits & (bits - 1);
}

/* Stores the places of all set bits at `out`, which has 64 slots; returns behind the last one. Slots behind it may hold
 * rubbish: four stores without asking are cheaper than a branch per mark, since 64 bytes of a real head or form hold
 * two to five. */
static inline __attribute__((always_inline)) uint32_t *scan_put_marks(uint64_t marks, uint32_t base, uint32_t *out)
{
    size_t count = (size_t)__builtin_popcountll(marks);
    marks = scan_put_mark(marks, base, out);
    marks = scan_put_mark(marks, base, out + 1);
    marks = scan_put_mark(marks, base, out + 2);
    marks = scan_put_mark(marks, base, out + 3);
    for (size_t i = 4; i < count; i++)
        marks = scan_put_mark(marks, base, out + i);
    return out + count;
}

/* One block's marks. */
static inline __attribute__((always_inline)) uint64_t scan_walk_block(struct scan_walk *walk, uint64_t ctl,
                                                                      uint64_t non)
{
    uint64_t sum;
    uint64_t ends = ctl & ~((ctl << 1) | walk->control);
    uint64_t starts = (ends << 2) | walk->starts;
    uint64_t carry = __builtin_add_overflow(~non, walk->carry, &sum);
    carry |= __builtin_add_overflow(sum, starts, &sum);
    uint64_t marks = (sum & non) | ends;
    walk->carry = carry;
    walk->starts = ends >> 62;
    walk->control = ctl >> 63;
    walk->ended = (starts & ctl) != 0;
    return marks;
}

/* `lines` of a level, from its masks_<level>(), rest_<level>() and put_marks_<level>(). A block that begins and ends
 * within a value has no marks. */
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
            if (!(ctl | walk.starts | walk.carry)) { /* within a value */                                              \
                walk.control = 0;                                                                                      \
                continue;                                                                                              \
            }                                                                                                          \
            out = put_marks_##level(scan_walk_block(&walk, ctl, non), (uint32_t)pos, out);                             \
        }                                                                                                              \
        if (pos == n || walk.ended || out > full)                                                                      \
            return (size_t)(out - marks);                                                                              \
        rest_##level(p, before, n, n - pos, &ctl, &non);                                                               \
        return (size_t)(put_marks_##level(scan_walk_block(&walk, ctl, non), (uint32_t)pos, out) - marks);              \
    }

#endif
