/* Private to the readers of heads: lookup of fields (fields.c), field lines (field_lines.c), the request line
 * (request_line.c), and the facts that are collected with the fields, before head.c gives the fields their meaning. */
#ifndef ORIBI_HTTP_HEAD_INTERNAL_H
#define ORIBI_HTTP_HEAD_INTERNAL_H

#include "oribi/http/fields.h"
#include "http/scan_private.h"
#include "oribi/base/error.h"
#include "oribi/http/head.h"
#include "oribi/base/limits.h"
#include "oribi/http/syntax.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* ---- fields_private ---- */

/* Field lookup for the parser, which knows that a colon stands behind the name and how much may be read behind that. */

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

/* ---- head_private ---- */

/* Shared by parser.c and head.c: the facts that are collected with the fields, before head.c gives the
 * fields their meaning. */

static_assert(ORIBI_FIELD_COUNT <= 64, "one bit per well-known field");

#define FIELD_BIT(id) ((uint64_t)1 << (id))
#define BIT(name)     FIELD_BIT(ORIBI_FIELD_##name)

struct head_facts {
    const char *end;              /* bytes before it may be read */
    struct oribi_slice authority; /* of an absolute-form or authority-form target */
    bool has_authority;
    bool others_repeated;                /* two fields outside the table may have the same name */
    bool underscores;                    /* a name with `_` was kept */
    uint64_t seen;                       /* FIELD_BIT of each well-known field */
    bool repeated;                       /* one or more of them came more than once */
    uint64_t others[4];                  /* bloom filter over hashes of the other names */
    uint8_t index_of[ORIBI_FIELD_COUNT]; /* where a seen and not repeated field stands */
    struct oribi_slice shadow;           /* a name that imitates a framing field with `_`; .p NULL: none */
};

/* Sets the reason why a head is refused. Gives `error`; ORIBI_EBAD is a mistake in the request line. */
static inline int fault_set(struct oribi_fault *fault, int error, const char *text)
{
    *fault = (struct oribi_fault){.reason = text, .refusal = oribi_refusal_of(error, ORIBI_REFUSAL_REQUEST_LINE)};
    return error;
}

/* Sets the fault of the one byte at `at`, in the request line. */
static inline int fault_byte(struct oribi_fault *fault, const char *at, const char *text)
{
    *fault = (struct oribi_fault){.reason = text, .at = at, .refusal = ORIBI_REFUSAL_REQUEST_LINE};
    return ORIBI_EBAD;
}

/* Sets the fault of a field line, of which [name, name+n) may be shown: values can be secrets. */
static inline int fault_field(struct oribi_fault *fault, const char *name, size_t n, const char *at, const char *text)
{
    *fault =
        (struct oribi_fault){.reason = text, .field = oribi_slice(name, n), .at = at, .refusal = ORIBI_REFUSAL_FIELD};
    return ORIBI_EBAD;
}

/* Whether a field that is not in the table is kept; notes what it may clash with. */
bool oribi__head_keeps_other(struct oribi_head *head, const struct oribi_field *field,
                             const struct oribi_limits *limits, struct head_facts *facts);

/* Makes the names unique: joins the values of repeats, or refuses them. Returns 0, or ORIBI_EBAD or _ENOMEM with
 * `fault` set. */
int oribi__head_fold_repeats(struct oribi_head *head, struct oribi_fault *fault);

/* With names that keep `_`, two fields can end under one environment key: the field without `_` stays, else the
 * first. */
void oribi__head_drop_ambiguous(struct oribi_head *head);

/* Folds repeats and decides Host, framing, persistence, Expect and Upgrade. Returns 0 or ORIBI_E* with `fault`
 * set. */
int oribi__head_finish(struct oribi_head *head, const struct oribi_limits *limits, struct head_facts *facts,
                       struct oribi_fault *fault);

static inline struct oribi_slice field_value(const struct oribi_field *field)
{
    return oribi_slice(field->value, field->value_len);
}

/* Eight bytes with letters in lower case. Other bytes change too: tokens that are equal so are nearly always equal. */
static inline uint64_t folded_word(const char *p)
{
    uint64_t word;
    memcpy(&word, p, 8);
    return word | 0x2020202020202020U;
}

/* Empties all but the fields themselves, which field_count bounds. Not member by member: GCC reads back as one word of
 * 16 bytes what it has just stored as two of eight, and waits for them. */
static inline void oribi__head_clear(struct oribi_head *head)
{
    memset(head, 0, offsetof(struct oribi_head, fields));
    head->joined = NULL;
}

/* ---- request_line ---- */

/* The first line of a request head; private to the parser. */

/* Offsets from the line's first byte. */
struct request_line {
    size_t method_len;
    size_t target;
    size_t target_len;
    size_t query; /* of the first `?` from the target's start, or target_len */
    size_t len;   /* with CRLF */
    uint8_t minor;
};

/* Scans the request line that begins at p; *scanned of its bytes are known to be good. Returns 0 with `line` filled,
 * ORIBI_AGAIN with *scanned advanced, or ORIBI_EBAD, _ETARGET, _EVERSION with `fault` set. Every verdict hangs on the
 * first bytes that allow it, so waiting for more cannot change it. */
int oribi__request_line_scan(const char *p, size_t n, uint32_t *scanned, const struct oribi_limits *limits,
                             struct request_line *line, struct oribi_fault *fault);

/* Fills the request line's part of `head`, and the authority of a target that has one, RFC 9112 3.2. Returns 0, or
 * ORIBI_EBAD or _EMETHOD with `fault` set. */
int oribi__request_line_take(const char *p, const struct request_line *line, const struct oribi_limits *limits,
                             struct oribi_head *head, struct head_facts *facts, struct oribi_fault *fault);

/* ---- field_lines ---- */

/* Field lines, RFC 9112 5, one after the other: the one place where their grammar is decided for requests and responses
 * alike. Private to the readers of heads. */

/* How far a head's field lines are known to be good. */
struct field_lines {
    uint32_t pos;     /* of the first line that is not yet accepted */
    uint32_t scanned; /* bytes of that line already searched */
    uint32_t count;   /* lines accepted */
};

/* Accepts the lines of [buf, buf+n) from lines->pos on, up to the empty one. Stores them at fields[count …], as they
 * came, unless `fields` is NULL. Returns the head's length with the empty line, ORIBI_AGAIN, or ORIBI_EBAD or _EHEAD
 * with `fault` set. A fault is found at the same byte however the input is cut. */
ssize_t oribi__field_lines_accept(struct field_lines *lines, const struct oribi_limits *limits, const char *buf,
                                  size_t n, struct oribi_field *fields, struct oribi_fault *fault);

static inline uint32_t oribi__fields_max(const struct oribi_limits *limits)
{
    return limits->fields_max < ORIBI_FIELDS_CAP ? limits->fields_max : ORIBI_FIELDS_CAP;
}

/* Not inline: nearly all values have one space in front and none behind. */
struct oribi_slice oribi__field_strip(const char *p, const char *end);

/* Fills `field` from the line [line, end); `readable` says that FIELD_READ_BYTES may be read from its start. Returns
 * its id. */
static inline uint32_t oribi__field_take(struct oribi_field *field, const char *line, const char *colon,
                                         const char *end, bool readable)
{
    size_t name_len = (size_t)(colon - line);
    uint32_t id = readable ? field_find_readable(line, name_len) : oribi_field_find(line, name_len);
    field->name = line;
    field->value = colon + 2;
    field->value_len = (uint32_t)(end - colon - 2);
    field->name_len = (uint16_t)name_len;
    field->id = (uint16_t)id;
    /* Controls are out of the question, so what is not above SP is white space, or the CR of an empty value. */
    if (colon[1] != ' ' || (uint8_t)colon[2] <= ' ' || (uint8_t)end[-1] <= ' ') {
        struct oribi_slice value = oribi__field_strip(colon + 1, end);
        field->value = value.p;
        field->value_len = (uint32_t)value.n;
    }
    return id;
}

#endif
