/* Validators and conditions. Entity-tags are compared as they are read, so that a list of any length needs no room; a
 * list is read to its end even after a match, since only a whole one is known to be the grammar. */
#include "oribi/http/conditions.h"

#include "oribi/http/date.h"
#include "oribi/http/fields.h"
#include "http/etag.h"

#include <assert.h>

/* ---- validators ---- */

static char *put(char *dst, struct oribi_slice text)
{
    if (text.n)
        memcpy(dst, text.p, text.n);
    return dst + text.n;
}

static char *put_hex(char *dst, uint64_t value)
{
    int shift = (63 - __builtin_clzll(value | 1)) & ~3; /* of the first digit that is not 0 */
    for (; shift >= 0; shift -= 4)
        *dst++ = "0123456789abcdef"[value >> shift & 15];
    return dst;
}

/* "NUMBER-SIZE-CODING", with `mark` before the number; weak: W/"NUMBER-SIZE-CODING-new". */
static struct oribi_slice put_tag(char *dst, bool weak, struct oribi_slice mark, uint64_t number, int64_t size,
                                  struct oribi_slice coding)
{
    char *end = put(dst, weak ? ORIBI_SLICE("W/\"") : ORIBI_SLICE("\""));
    end = put_hex(put(end, mark), number);
    end = put(end, ORIBI_SLICE("-"));
    end = put_hex(end, (uint64_t)size);
    if (coding.n)
        end = put(put(end, ORIBI_SLICE("-")), coding);
    end = put(end, weak ? ORIBI_SLICE("-new\"") : ORIBI_SLICE("\""));
    return oribi_slice(dst, (size_t)(end - dst));
}

void oribi_validators_of_file(int64_t size, int64_t mtime_s, int64_t now_s, struct oribi_slice coding,
                              char dst[ORIBI_ETAG_BYTES_MAX], struct oribi_validators *validators)
{
    assert(size >= 0 && now_s >= 0 && coding.n <= ORIBI_ETAG_CODING_BYTES_MAX);
    *validators = (struct oribi_validators){.exists = true};
    if (mtime_s <= ORIBI_MTIME_UNKNOWN_S)
        return;
    bool young = mtime_s > now_s - ORIBI_VALIDATOR_YOUNG_S;
    validators->etag = put_tag(dst, young, ORIBI_SLICE(""), (uint64_t)mtime_s, size, coding);
    validators->last_modified_s = mtime_s < now_s ? mtime_s : now_s;
    validators->has_last_modified = true;
    validators->last_modified_strong = !young;
}

void oribi_validators_take_hash(uint64_t hash, int64_t size, bool may_change, struct oribi_slice coding,
                                char dst[ORIBI_ETAG_BYTES_MAX], struct oribi_validators *validators)
{
    assert(size >= 0 && coding.n <= ORIBI_ETAG_CODING_BYTES_MAX);
    validators->etag = put_tag(dst, may_change, ORIBI_SLICE("h"), hash, size, coding);
}

/* ---- entity-tags ---- */

static bool same_etag(const struct etag *a, const struct etag *b, bool weakly)
{
    return (weakly || (!a->weak && !b->weak)) && oribi_slice_equal(a->opaque, b->opaque);
}

enum match { MATCH_NO, MATCH_YES, MATCH_BAD /* not the grammar */ };

/* "*" / #entity-tag against the representation's tag. */
static enum match match_list(struct oribi_slice list, const struct oribi_validators *validators, bool weakly)
{
    struct etag own = {.weak = false};
    bool has_own = validators->exists && read_etag(validators->etag, &own);
    if (oribi_slice_equal(list, ORIBI_SLICE("*")))
        return validators->exists ? MATCH_YES : MATCH_NO;
    enum match result = MATCH_NO;
    enum etag_next next;
    struct etag tag = {.weak = false};
    while ((next = next_etag(&list, &tag)) == ETAG_ONE)
        if (has_own && same_etag(&own, &tag, weakly))
            result = MATCH_YES;
    return next == ETAG_BAD ? MATCH_BAD : result;
}

/* ---- the decision ---- */

static bool is_method(const struct oribi_conditions *conditions, struct oribi_slice name)
{
    return oribi_slice_equal(conditions->method, name);
}

static bool selects_nothing(const struct oribi_conditions *conditions)
{
    return is_method(conditions, ORIBI_SLICE("CONNECT")) || is_method(conditions, ORIBI_SLICE("OPTIONS")) ||
           is_method(conditions, ORIBI_SLICE("TRACE"));
}

/* Whether a date that counts says that the representation has not changed since; *counts is false for one that is to be
 * ignored. */
static bool unmodified_since(struct oribi_slice text, const struct oribi_validators *validators, int64_t now_s,
                             bool *counts)
{
    int64_t date_s = 0;
    *counts = text.p && validators->has_last_modified && oribi_date_read(text, now_s, &date_s) == 0;
    return *counts && validators->last_modified_s <= date_s;
}

/* Steps 1 and 2. */
static bool may_act(const struct oribi_conditions *conditions, const struct oribi_validators *validators, int64_t now_s)
{
    if (conditions->if_match.p)
        return match_list(conditions->if_match, validators, false) == MATCH_YES;
    bool counts;
    bool unmodified = unmodified_since(conditions->if_unmodified_since, validators, now_s, &counts);
    return unmodified || !counts;
}

/* Steps 3 and 4: false where the client has the representation already, or wants none to be there. */
static bool is_wanted(const struct oribi_conditions *conditions, const struct oribi_validators *validators,
                      int64_t now_s, bool reads)
{
    if (conditions->if_none_match.p) {
        enum match match = match_list(conditions->if_none_match, validators, true);
        return match == MATCH_NO || (match == MATCH_BAD && reads);
    }
    bool counts;
    return !reads || !unmodified_since(conditions->if_modified_since, validators, now_s, &counts);
}

/* Step 5. */
static bool range_holds(const struct oribi_conditions *conditions, const struct oribi_validators *validators,
                        int64_t now_s)
{
    if (!conditions->if_range.p)
        return true;
    struct etag own;
    struct etag tag;
    if (read_etag(conditions->if_range, &tag))
        return read_etag(validators->etag, &own) && same_etag(&own, &tag, false);
    int64_t date_s;
    return validators->has_last_modified && validators->last_modified_strong &&
           oribi_date_read(conditions->if_range, now_s, &date_s) == 0 && date_s == validators->last_modified_s;
}

enum oribi_condition_result oribi_conditions_decide(const struct oribi_conditions *conditions,
                                                    const struct oribi_validators *validators, int64_t now_s,
                                                    bool *ranges)
{
    bool gets = is_method(conditions, ORIBI_SLICE("GET"));
    bool reads = gets || is_method(conditions, ORIBI_SLICE("HEAD"));
    *ranges = false;
    if (selects_nothing(conditions) || (reads && !validators->exists))
        return ORIBI_CONDITION_GO_ON;
    if (!may_act(conditions, validators, now_s))
        return ORIBI_CONDITION_FAILED;
    if (!is_wanted(conditions, validators, now_s, reads))
        return reads ? ORIBI_CONDITION_NOT_MODIFIED : ORIBI_CONDITION_FAILED;
    *ranges = gets && conditions->range.p && range_holds(conditions, validators, now_s);
    return ORIBI_CONDITION_GO_ON;
}

void oribi_conditions_of_head(const struct oribi_head *head, struct oribi_conditions *conditions)
{
    *conditions = (struct oribi_conditions){.method = head->method};
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        struct oribi_slice value = oribi_slice(field->value, field->value_len);
        switch (field->id) {
        case ORIBI_FIELD_IF_MATCH:
            conditions->if_match = value;
            break;
        case ORIBI_FIELD_IF_NONE_MATCH:
            conditions->if_none_match = value;
            break;
        case ORIBI_FIELD_IF_MODIFIED_SINCE:
            conditions->if_modified_since = value;
            break;
        case ORIBI_FIELD_IF_UNMODIFIED_SINCE:
            conditions->if_unmodified_since = value;
            break;
        case ORIBI_FIELD_IF_RANGE:
            conditions->if_range = value;
            break;
        case ORIBI_FIELD_RANGE:
            conditions->range = value;
            break;
        default:
            break;
        }
    }
}
