/* What the parser hands to the second half of its work: the fields are collected, now they get their meaning. */
#ifndef ORIBI_HTTP_HEAD_INTERNAL_H
#define ORIBI_HTTP_HEAD_INTERNAL_H

#include "oribi/http/fields.h"
#include "oribi/http/head.h"

#include <assert.h>

static_assert(ORIBI_FIELD_COUNT <= 64, "one bit per well-known field");

#define FIELD_BIT(id) ((uint64_t)1 << (id))

struct head_facts {
    const char *end;              /* bytes before it may be read */
    struct oribi_slice authority; /* of an absolute-form or authority-form target */
    bool has_authority;
    bool others_repeated;                /* two fields outside the table may have the same name */
    bool underscores;                    /* a name with `_` was kept */
    uint64_t seen;                       /* FIELD_BIT of each well-known field */
    bool repeated;                       /* … of which one or more came more than once */
    uint64_t others[4];                  /* bloom filter over hashes of the other names */
    uint8_t index_of[ORIBI_FIELD_COUNT]; /* where a seen and not repeated field stands */
    struct oribi_slice shadow;           /* a name that imitates a framing field with `_`; .p NULL: none */
};

/* Whether a field that is not in the table is kept; notes what it may clash with. */
bool oribi__head_keeps_other(struct oribi_head *head, const struct oribi_field *field,
                             const struct oribi_limits *limits, struct head_facts *facts);

/* Folds repeats and decides Host, framing, persistence, Expect and Upgrade. Returns 0 or ORIBI_E* with fault->reason
 * set. */
int oribi__head_finish(struct oribi_head *head, const struct oribi_limits *limits, struct head_facts *facts,
                       struct oribi_fault *fault);

/* Empties all but the fields themselves, which field_count bounds. */
static inline void oribi__head_clear(struct oribi_head *head)
{
    const struct oribi_slice none = {NULL, 0};
    head->method = head->target = head->path = head->query = head->host = head->port = none;
    head->minor = 0;
    head->is_head = head->chunked = head->keep_alive = head->expect_continue = head->upgrade = head->has_body = false;
    head->content_length = 0;
    head->dropped_count = 0;
    head->field_count = 0;
    head->joined = NULL;
}

#endif
