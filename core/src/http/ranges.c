/* Ranges. What was read so far is kept as ranges that are apart from each other, and each new one swallows all that it
 * touches, so that thousands of overlapping ones need no more room than their union. */
#include "oribi/http/conditions.h"

#include "oribi/base/error.h"
#include "oribi/http/syntax.h"

#include <assert.h>

/* ---- reading ---- */

/* Ranges apart from each other, in the order of the first of those that each is made of. */
struct pending {
    uint32_t count;
    struct oribi_byte_range at[ORIBI_RANGES_PENDING_MAX];
};

static bool touches(struct oribi_byte_range a, struct oribi_byte_range b)
{
    return a.first <= b.last + 1 && b.first <= a.last + 1; /* last is below the size, so that one more fits */
}

static bool add(struct pending *pending, struct oribi_byte_range range)
{
    uint32_t place = UINT32_MAX; /* of the first range that touches the new one */
    uint32_t kept = 0;
    struct oribi_byte_range joined = range;
    for (uint32_t i = 0; i < pending->count; i++) {
        struct oribi_byte_range old = pending->at[i];
        if (!touches(old, range)) {
            pending->at[kept++] = old;
            continue;
        }
        joined.first = old.first < joined.first ? old.first : joined.first;
        joined.last = old.last > joined.last ? old.last : joined.last;
        if (place == UINT32_MAX)
            place = kept++;
    }
    pending->count = kept;
    if (place != UINT32_MAX) {
        pending->at[place] = joined;
        return true;
    }
    if (kept == ORIBI_RANGES_PENDING_MAX)
        return false;
    pending->at[pending->count++] = range;
    return true;
}

/* Takes digits off the front, without leading zeros; false where there is none. */
static bool take_digits(struct oribi_slice *text, struct oribi_slice *digits)
{
    size_t n = 0;
    while (n < text->n && (uint8_t)(text->p[n] - '0') < 10)
        n++;
    *digits = oribi_slice(text->p, n);
    *text = oribi_slice(text->p + n, text->n - n);
    while (digits->n > 1 && *digits->p == '0')
        *digits = oribi_slice(digits->p + 1, digits->n - 1);
    return n > 0;
}

/* The number, or INT64_MAX where it is larger. */
static int64_t number_of(struct oribi_slice digits)
{
    int64_t number = 0;
    for (size_t i = 0; i < digits.n; i++)
        if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, digits.p[i] - '0', &number))
            return INT64_MAX;
    return number;
}

static bool is_below(struct oribi_slice a, struct oribi_slice b)
{
    return a.n != b.n ? a.n < b.n : memcmp(a.p, b.p, a.n) < 0;
}

enum spec { SPEC_BAD /* not the grammar */, SPEC_MISSES /* not satisfiable */, SPEC_HITS };

/* "-" suffix-length. Of a representation without bytes the range ends before it begins. */
static enum spec read_suffix(struct oribi_slice text, int64_t size, struct oribi_byte_range *range)
{
    struct oribi_slice digits;
    if (!take_digits(&text, &digits) || text.n)
        return SPEC_BAD;
    int64_t length = number_of(digits);
    *range = (struct oribi_byte_range){length < size ? size - length : 0, size - 1};
    return length ? SPEC_HITS : SPEC_MISSES;
}

/* range-spec: first-pos "-" [ last-pos ] / "-" suffix-length */
static enum spec read_spec(struct oribi_slice text, int64_t size, struct oribi_byte_range *range)
{
    struct oribi_slice first;
    struct oribi_slice last;
    if (*text.p == '-')
        return read_suffix(oribi_slice(text.p + 1, text.n - 1), size, range);
    if (!take_digits(&text, &first) || text.n == 0 || *text.p != '-')
        return SPEC_BAD;
    text = oribi_slice(text.p + 1, text.n - 1);
    bool ends = text.n > 0;
    if (ends && (!take_digits(&text, &last) || text.n || is_below(last, first)))
        return SPEC_BAD;
    int64_t last_pos = ends ? number_of(last) : INT64_MAX;
    *range = (struct oribi_byte_range){number_of(first), last_pos < size ? last_pos : size - 1};
    return range->first < size ? SPEC_HITS : SPEC_MISSES;
}

/* Takes the unit off the front: true for bytes, in any case (RFC 9110 14.1). */
static bool take_unit(struct oribi_slice *value)
{
    static const struct oribi_slice unit = {"bytes", 5};
    if (value->n <= unit.n || value->p[unit.n] != '=' || !oribi_slice_equal_fold(oribi_slice(value->p, unit.n), unit))
        return false;
    *value = oribi_slice(value->p + unit.n + 1, value->n - unit.n - 1);
    return true;
}

enum oribi_ranges_result oribi_ranges_read(struct oribi_slice value, int64_t size, struct oribi_ranges *ranges)
{
    struct pending pending;
    struct oribi_slice element;
    bool has_any = false;
    assert(size >= 0);
    ranges->count = 0;
    pending.count = 0;
    if (!take_unit(&value) || (value.n && is_ows(*value.p))) /* the grammar has no white space there */
        return ORIBI_RANGES_WHOLE;
    while (list_next(&value, &element)) {
        struct oribi_byte_range range;
        enum spec spec = read_spec(element, size, &range);
        if (spec == SPEC_BAD)
            return ORIBI_RANGES_WHOLE;
        has_any = true;
        if (spec == SPEC_HITS && !add(&pending, range))
            return ORIBI_RANGES_WHOLE;
    }
    if (has_any && pending.count == 0)
        return ORIBI_RANGES_NONE;
    if (!has_any || size == 0 || pending.count > ORIBI_RANGES_MAX)
        return ORIBI_RANGES_WHOLE;
    ranges->count = pending.count;
    memcpy(ranges->at, pending.at, pending.count * sizeof(pending.at[0]));
    return ORIBI_RANGES_PART;
}

/* ---- writing ---- */

/* A text that may not fit: what does not is only counted. */
struct text {
    char *p;
    size_t cap;
    size_t n;
};

static void put(struct text *text, struct oribi_slice part)
{
    if (part.n && part.n <= text->cap && text->n <= text->cap - part.n)
        memcpy(text->p + text->n, part.p, part.n);
    text->n += part.n;
}

static void put_number(struct text *text, int64_t number)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    put(text, oribi_slice(digits + at, sizeof(digits) - at));
}

static void put_content_range(struct text *text, struct oribi_byte_range range, int64_t size)
{
    put(text, ORIBI_SLICE("bytes "));
    put_number(text, range.first);
    put(text, ORIBI_SLICE("-"));
    put_number(text, range.last);
    put(text, ORIBI_SLICE("/"));
    put_number(text, size);
}

size_t oribi_content_range(struct oribi_byte_range range, int64_t size, char dst[ORIBI_CONTENT_RANGE_CAP])
{
    struct text text = {dst, ORIBI_CONTENT_RANGE_CAP, 0};
    assert(range.first >= 0 && range.first <= range.last && range.last < size);
    put_content_range(&text, range, size);
    return text.n;
}

size_t oribi_content_range_none(int64_t size, char dst[ORIBI_CONTENT_RANGE_CAP])
{
    struct text text = {dst, ORIBI_CONTENT_RANGE_CAP, 0};
    assert(size >= 0);
    put(&text, ORIBI_SLICE("bytes */"));
    put_number(&text, size);
    return text.n;
}

static void check_boundary(struct oribi_slice boundary)
{
    assert(boundary.n > 0 && boundary.n <= ORIBI_BOUNDARY_BYTES_MAX);
    (void)boundary;
}

static void put_head(struct text *text, const struct oribi_multipart *multipart, const struct oribi_ranges *ranges,
                     uint32_t index)
{
    put(text, index ? ORIBI_SLICE("\r\n--") : ORIBI_SLICE("--"));
    put(text, multipart->boundary);
    if (multipart->type.n) {
        put(text, ORIBI_SLICE("\r\nContent-Type: "));
        put(text, multipart->type);
    }
    put(text, ORIBI_SLICE("\r\nContent-Range: "));
    put_content_range(text, ranges->at[index], multipart->size);
    put(text, ORIBI_SLICE("\r\n\r\n"));
}

static void put_end(struct text *text, const struct oribi_multipart *multipart)
{
    put(text, ORIBI_SLICE("\r\n--"));
    put(text, multipart->boundary);
    put(text, ORIBI_SLICE("--\r\n"));
}

static ssize_t length_of(const struct text *text)
{
    return text->n <= text->cap ? (ssize_t)text->n : ORIBI_ELIMIT;
}

ssize_t oribi_multipart_head(const struct oribi_multipart *multipart, const struct oribi_ranges *ranges, uint32_t index,
                             char *dst, size_t cap)
{
    struct text text = {dst, cap, 0};
    assert(index < ranges->count);
    check_boundary(multipart->boundary);
    put_head(&text, multipart, ranges, index);
    return length_of(&text);
}

ssize_t oribi_multipart_end(const struct oribi_multipart *multipart, char *dst, size_t cap)
{
    struct text text = {dst, cap, 0};
    check_boundary(multipart->boundary);
    put_end(&text, multipart);
    return length_of(&text);
}

int64_t oribi_multipart_len(const struct oribi_multipart *multipart, const struct oribi_ranges *ranges)
{
    struct text text = {NULL, 0, 0}; /* counts, and writes nothing */
    int64_t total = 0;
    check_boundary(multipart->boundary);
    for (uint32_t i = 0; i < ranges->count; i++) {
        put_head(&text, multipart, ranges, i);
        total += ranges->at[i].last - ranges->at[i].first + 1; /* together they are no longer than the size */
    }
    put_end(&text, multipart);
    return __builtin_add_overflow(total, (int64_t)text.n, &total) ? ORIBI_ELIMIT : total;
}

size_t oribi_multipart_type(const struct oribi_multipart *multipart, char dst[ORIBI_MULTIPART_TYPE_CAP])
{
    struct text text = {dst, ORIBI_MULTIPART_TYPE_CAP, 0};
    check_boundary(multipart->boundary);
    put(&text, ORIBI_SLICE("multipart/byteranges; boundary="));
    put(&text, multipart->boundary);
    return text.n;
}
