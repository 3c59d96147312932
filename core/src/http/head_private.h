/* Shared by parser.c, head_names.c and head.c: the facts that are collected with the fields, before head.c gives the
 * fields their meaning. */
#ifndef ORIBI_HTTP_HEAD_INTERNAL_H
#define ORIBI_HTTP_HEAD_INTERNAL_H

#include "oribi/base/error.h"
#include "oribi/http/fields.h"
#include "oribi/http/head.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

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

/* Whether a field that is not in the table is kept; notes what it may clash with. (head_names.c) */
bool oribi__head_keeps_other(struct oribi_head *head, const struct oribi_field *field,
                             const struct oribi_limits *limits, struct head_facts *facts);

/* Makes the names unique: joins the values of repeats, or refuses them. Returns 0, or ORIBI_EBAD or _ENOMEM with
 * `fault` set. (head_names.c) */
int oribi__head_fold_repeats(struct oribi_head *head, struct oribi_fault *fault);

/* With names that keep `_`, two fields can end under one environment key: the field without `_` stays, else the first.
 * (head_names.c) */
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

#endif
