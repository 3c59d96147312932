/* Field lookup for the parser, which knows that a colon stands behind the name and how much may be read behind that. */
#ifndef ORIBI_HTTP_FIELDS_PRIVATE_H
#define ORIBI_HTTP_FIELDS_PRIVATE_H

#include "oribi/http/fields.h"
#include "http/scan_private.h"

#include <string.h>

enum { FIELD_READ_BYTES = 32, FIELD_SLOTS = 256 };

/* One slot of the perfect hash, one cache line: a well-known name in upper case with its colon, and which bits of
 * the input count. 0xdf lets a letter be of either case; everything else must be itself, and the colon fixes the
 * length. An empty slot equals no name, since none begins with NUL. */
struct field_slot {
    _Alignas(64) char text[FIELD_READ_BYTES];
    char keep[FIELD_READ_BYTES];
};
extern ORIBI__HIDDEN const struct field_slot oribi__field_slots[FIELD_SLOTS];
extern ORIBI__HIDDEN const uint8_t oribi__field_slot_ids[FIELD_SLOTS];

/* Perfect over ORIBI_FIELDS: length, first, last and third-quarter byte, found by trial. Characters count eightfold
 * modulo 256, so the bit 0x20 that tells cases apart does not count at all. fields_test checks that every name still
 * has a slot of its own, and `fields_test --slots` prints the tables. n > 0. */
static inline uint32_t field_slot_of(const char *name, size_t n)
{
    uint32_t first = (uint8_t)name[0];
    uint32_t last = (uint8_t)name[n - 1];
    uint32_t third = (uint8_t)name[n * 3 / 4];
    return ((uint32_t)n + 8 * (3 * first + 2 * last + third)) & (FIELD_SLOTS - 1);
}

static inline uint64_t field_word(const char *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return word;
}

/* As oribi_field_find for a token with a colon behind it, but [name, name+32) must be readable. n > 0. */
static inline enum oribi_field_id field_find_readable(const char *name, size_t n)
{
    uint32_t slot = field_slot_of(name, n);
    const char *text = oribi__field_slots[slot].text;
    const char *keep = oribi__field_slots[slot].keep;
    uint64_t differs = 0;
    for (int i = 0; i < FIELD_READ_BYTES; i += 8)
        differs |= (field_word(name + i) & field_word(keep + i)) ^ field_word(text + i);
    return differs ? ORIBI_FIELD_OTHER : (enum oribi_field_id)oribi__field_slot_ids[slot];
}

#endif
