/* What the parser hands to the second half of its work: the fields are collected, now they get their meaning. */
#ifndef ORIBI_HTTP_HEAD_INTERNAL_H
#define ORIBI_HTTP_HEAD_INTERNAL_H

#include "oribi/http/fields.h"
#include "oribi/http/head.h"

#include <assert.h>

static_assert(ORIBI_FIELD_COUNT <= 64, "one bit per well-known field");

#define FIELD_BIT(id) ((uint64_t)1 << (id))

struct head_facts {
    const char *end;                        /* bytes before it may be read */
    struct oribi_slice authority;           /* of an absolute-form or authority-form target */
    bool has_authority;
    bool others_repeated;                   /* two fields outside the table may have the same name */
    bool underscores;                       /* a name with `_` was kept */
    uint64_t seen;                          /* FIELD_BIT of each well-known field */
    uint64_t repeated;                      /* … of those that came more than once */
    uint64_t others[4];                     /* bloom filter over hashes of the other names */
    uint8_t index_of[ORIBI_FIELD_COUNT];    /* where a seen and not repeated field stands */
    const char *shadow;                     /* reason: a name that imitates a framing field with `_` */
};

/* Takes one field that is not in the table and stands at fields[field_count], and counts it unless it is dropped. */
void oribi__head_add_other(struct oribi_head *head, const struct oribi_limits *limits, struct head_facts *facts);

/* Folds repeats and decides Host, framing, persistence, Expect and Upgrade. Returns 0 or ORIBI_E* with *reason set. */
int oribi__head_finish(struct oribi_head *head, const struct oribi_limits *limits, struct head_facts *facts,
                       const char **reason);

/* Empties all but the fields themselves, which field_count bounds. */
void oribi__head_clear(struct oribi_head *head);

#endif
