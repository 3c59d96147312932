/* Field lookup for callers that know how much may be read behind the name. */
#ifndef ORIBI_HTTP_FIELDS_INTERNAL_H
#define ORIBI_HTTP_FIELDS_INTERNAL_H

#include "oribi/http/fields.h"

#include <string.h>

enum { FIELD_NAME_CAP = 32, FIELD_SLOTS = 128 };

/* Lower-case wire names, zero-padded, and their lengths. */
struct field_name {
    char text[FIELD_NAME_CAP];
    uint8_t len;
};
extern const struct field_name oribi__field_names[ORIBI_FIELD_COUNT];
extern const uint8_t oribi__field_slots[FIELD_SLOTS];
extern const uint8_t oribi__field_care[2 * FIELD_NAME_CAP];

/* Perfect over ORIBI_FIELDS: length, first, last and third-quarter byte. The factors were found by trial; fields_test checks that every name still has
 * a slot of its own, and `fields_test --slots` prints the table. n > 0. */
static inline uint32_t field_slot(const char *name, size_t n)
{
    uint32_t first = (uint8_t)name[0] | 0x20U;
    uint32_t last = (uint8_t)name[n - 1] | 0x20U;
    uint32_t third = (uint8_t)name[n * 3 / 4] | 0x20U;
    return ((uint32_t)n * 85 + first * 106 + last * 194 + third * 121) & (FIELD_SLOTS - 1);
}

/* Zero if eight bytes of the name equal the known text in any case, where `care` is 0xff. Text bytes with 0x40 set are letters, and only they fold. */
static inline uint64_t field_word_differs(const char *name, const char *text, const uint8_t *care)
{
    uint64_t word;
    uint64_t want;
    uint64_t mask;
    memcpy(&word, name, 8);
    memcpy(&want, text, 8);
    memcpy(&mask, care, 8);
    return ((word | (want & 0x4040404040404040U) >> 1) ^ want) & mask;
}

/* As oribi_field_find, but [name, name+32) must be readable. 0 < n. */
static inline enum oribi_field_id field_find_readable(const char *name, size_t n)
{
    uint32_t id = oribi__field_slots[field_slot(name, n)];
    const struct field_name *known = &oribi__field_names[id];
    if (known->len != n)
        return ORIBI_FIELD_OTHER;
    const uint8_t *care = oribi__field_care + FIELD_NAME_CAP - n;
    uint64_t differs = field_word_differs(name, known->text, care);
    differs |= field_word_differs(name + 8, known->text + 8, care + 8);
    if (n > 16) {
        differs |= field_word_differs(name + 16, known->text + 16, care + 16);
        differs |= field_word_differs(name + 24, known->text + 24, care + 24);
    }
    return differs ? ORIBI_FIELD_OTHER : (enum oribi_field_id)id;
}

#endif
