/* Conditions: any fields, against RFC 9110 13.2.2 step by step, with entity-tags found by their quotes and the grammar
 * of a list in a table of states; and the validators of any file, which a client that sends them back must match. */
#include "oribi/base/mem.h"
#include "oribi/http/conditions.h"
#include "oribi/http/date.h"

#include "ours.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 4096, FIELDS = 6 };

static const char *const methods[] = {"GET", "HEAD", "PUT", "POST", "OPTIONS", "TRACE", "CONNECT", "get"};

/* ---- lists, read differently ---- */

enum state { BEFORE, WEAK, SLASH, INSIDE, BEHIND, WRONG };

static enum state step(enum state state, uint8_t c)
{
    bool blank = c == ' ' || c == '\t';
    switch (state) {
    case BEFORE:
        return blank || c == ',' ? BEFORE : c == 'W' ? WEAK : c == '"' ? INSIDE : WRONG;
    case WEAK:
        return c == '/' ? SLASH : WRONG;
    case SLASH:
        return c == '"' ? INSIDE : WRONG;
    case INSIDE:
        return c == '"' ? BEHIND : c <= ' ' || c == 0x7f ? WRONG : INSIDE;
    case BEHIND:
        return blank ? BEHIND : c == ',' ? BEFORE : WRONG;
    default:
        return WRONG;
    }
}

static bool is_list(struct oribi_slice text)
{
    enum state state = BEFORE;
    for (size_t i = 0; i < text.n; i++)
        state = step(state, (uint8_t)text.p[i]);
    return state == BEFORE || state == BEHIND;
}

/* Exactly one tag. */
static bool is_tag(struct oribi_slice text)
{
    size_t quotes = 0;
    for (size_t i = 0; i < text.n; i++)
        quotes += text.p[i] == '"';
    bool begins = text.n && (*text.p == '"' || *text.p == 'W');
    return begins && quotes == 2 && text.p[text.n - 1] == '"' && is_list(text);
}

/* How many bytes of the tag say that it is weak. */
static size_t weak_len(struct oribi_slice tag)
{
    return *tag.p == 'W' ? 2 : 0;
}

static bool is_same(struct oribi_slice a, struct oribi_slice b, bool weakly)
{
    size_t skip_a = weak_len(a);
    size_t skip_b = weak_len(b);
    return a.n - skip_a == b.n - skip_b && memcmp(a.p + skip_a, b.p + skip_b, a.n - skip_a) == 0 &&
           (weakly || skip_a + skip_b == 0);
}

/* In a list, quotes come in pairs, and each pair is a tag. */
static bool list_has(struct oribi_slice list, struct oribi_slice own, bool weakly)
{
    const char *open = NULL;
    for (size_t i = 0; i < list.n; i++) {
        if (list.p[i] != '"')
            continue;
        if (!open) {
            open = list.p + i;
            continue;
        }
        const char *start = open - list.p >= 2 && open[-1] == '/' && open[-2] == 'W' ? open - 2 : open;
        if (is_same(oribi_slice(start, (size_t)(list.p + i + 1 - start)), own, weakly))
            return true;
        open = NULL;
    }
    return false;
}

/* ---- the decision, read differently ---- */

struct facts {
    bool match;   /* If-Match is true */
    bool none;    /* If-None-Match is true */
    int since;    /* If-Modified-Since: -1 ignored, else whether it is true */
    int un_since; /* the same for If-Unmodified-Since */
    bool range;   /* If-Range is true */
};

static bool is_star(struct oribi_slice text)
{
    return text.n == 1 && *text.p == '*';
}

/* Not before (0), before (1) or no comparison at all (-1) of a date and Last-Modified. */
static int is_before(struct oribi_slice text, const struct oribi_validators *validators, int64_t now_s)
{
    int64_t date_s;
    if (!text.p || !validators->has_last_modified || oribi_date_read(text, now_s, &date_s) != 0)
        return -1;
    return date_s < validators->last_modified_s;
}

static struct facts find_facts(const struct oribi_conditions *in, const struct oribi_validators *own, int64_t now_s,
                               bool reads)
{
    struct facts facts = {0};
    bool has_tag = own->exists && is_tag(own->etag);
    int before = is_before(in->if_unmodified_since, own, now_s);
    facts.un_since = before < 0 ? -1 : !before;
    facts.since = reads ? is_before(in->if_modified_since, own, now_s) : -1;
    if (in->if_match.p)
        facts.match = is_star(in->if_match)
                          ? own->exists
                          : has_tag && is_list(in->if_match) && list_has(in->if_match, own->etag, false);
    if (in->if_none_match.p && is_star(in->if_none_match))
        facts.none = !own->exists;
    else if (in->if_none_match.p && !is_list(in->if_none_match))
        facts.none = reads;
    else if (in->if_none_match.p)
        facts.none = !has_tag || !list_has(in->if_none_match, own->etag, true);
    int64_t date_s;
    if (in->if_range.p && is_tag(in->if_range))
        facts.range = has_tag && is_same(in->if_range, own->etag, false);
    else if (in->if_range.p && oribi_date_read(in->if_range, now_s, &date_s) == 0)
        facts.range = own->has_last_modified && own->last_modified_strong && date_s == own->last_modified_s;
    return facts;
}

static int decide(const struct oribi_conditions *in, const struct oribi_validators *own, int64_t now_s, bool *ranges)
{
    bool get = oribi_slice_equal(in->method, ORIBI_SLICE("GET"));
    bool head = oribi_slice_equal(in->method, ORIBI_SLICE("HEAD"));
    *ranges = false;
    for (int i = 4; i < 7; i++)
        if (oribi_slice_equal(in->method, oribi_slice(methods[i], strlen(methods[i]))))
            return 0;
    if ((get || head) && !own->exists)
        return 0;
    struct facts facts = find_facts(in, own, now_s, get || head);
    /* 1. */
    if (in->if_match.p && !facts.match)
        return 412;
    /* 2. */
    if (!in->if_match.p && facts.un_since == 0)
        return 412;
    /* 3. */
    if (in->if_none_match.p && !facts.none)
        return get || head ? 304 : 412;
    /* 4. */
    if ((get || head) && !in->if_none_match.p && facts.since == 0)
        return 304;
    /* 5. */
    if (get && in->range.p)
        *ranges = !in->if_range.p || facts.range;
    /* 6. */
    return 0;
}

/* ---- input ---- */

/* Fields end at a line feed; each lies in a block of its own, so that a read beyond it is seen. */
static struct oribi_slice take_field(struct bytes *in, char **block)
{
    const uint8_t *end = memchr(in->p, '\n', in->n);
    struct bytes part = next_bytes(in, end ? (size_t)(end - in->p) : in->n);
    (void)next_byte(in);
    *block = oribi_mem_alloc(1, part.n ? part.n : 1);
    memcpy(*block, part.p, part.n);
    return oribi_slice(*block, part.n);
}

static int64_t take_number(struct bytes *in, int count)
{
    uint64_t number = 0;
    for (int i = 0; i < count; i++)
        number = number << 8 | next_byte(in);
    return (int64_t)number;
}

/* A file's own validators match it when a client sends them back. */
static void check_file(struct bytes *in)
{
    static const char *const codings[] = {"", "gzip", "br", "identity"};
    char tag[ORIBI_ETAG_BYTES_MAX];
    struct oribi_validators own;
    const char *coding = codings[next_byte(in) % 4];
    int64_t now_s = take_number(in, 8) & INT64_MAX;
    int64_t mtime_s = in->n && *in->p % 2 ? now_s - (int64_t)(*in->p % 8) : take_number(in, 8);
    int64_t file_size = take_number(in, 8) & INT64_MAX;
    oribi_validators_of_file(file_size, mtime_s, now_s, oribi_slice(coding, strlen(coding)), tag, &own);
    if (mtime_s <= ORIBI_MTIME_UNKNOWN_S) { /* a time that says nothing is no validator */
        expect(own.exists && own.etag.n == 0 && !own.has_last_modified);
        return;
    }
    expect(own.exists && is_tag(own.etag) && own.etag.p == tag && own.etag.n <= sizeof(tag));
    bool young = mtime_s > now_s - ORIBI_VALIDATOR_YOUNG_S;
    expect((weak_len(own.etag) > 0) == young && own.last_modified_strong == !young);
    expect(own.has_last_modified && own.last_modified_s >= 0 && own.last_modified_s <= now_s);
    char date[ORIBI_DATE_LEN];
    oribi_date_format(own.last_modified_s, date);
    bool ranges;
    struct oribi_conditions sent = {.method = ORIBI_SLICE("GET"), .if_none_match = own.etag};
    expect(oribi_conditions_decide(&sent, &own, now_s, &ranges) == ORIBI_CONDITION_NOT_MODIFIED);
    sent = (struct oribi_conditions){.method = ORIBI_SLICE("GET"), .if_range = own.etag, .range = ORIBI_SLICE("x")};
    expect(oribi_conditions_decide(&sent, &own, now_s, &ranges) == ORIBI_CONDITION_GO_ON && ranges == !young);
    if (own.last_modified_s > 253402300799) /* no date shows it */
        return;
    sent =
        (struct oribi_conditions){.method = ORIBI_SLICE("GET"), .if_modified_since = oribi_slice(date, sizeof(date))};
    expect(oribi_conditions_decide(&sent, &own, now_s, &ranges) == ORIBI_CONDITION_NOT_MODIFIED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    char *blocks[FIELDS + 1];
    if (size < 3 || size > BYTES_MAX)
        return 0;
    uint8_t kind = next_byte(&in);
    uint8_t present = next_byte(&in);
    if (kind == 255) {
        check_file(&in);
        return 0;
    }
    struct oribi_validators own = {.exists = kind & 8,
                                   .has_last_modified = kind & 16,
                                   .last_modified_strong = kind & 32,
                                   .last_modified_s = kind & 64 ? 784111777 : next_byte(&in)};
    own.etag = take_field(&in, &blocks[FIELDS]);
    if (!own.exists)
        own = (struct oribi_validators){0};
    const char *method = methods[kind % 8];
    struct oribi_conditions asked = {.method = oribi_slice(method, strlen(method))};
    struct oribi_slice *fields[FIELDS] = {&asked.if_match,          &asked.if_none_match,
                                          &asked.if_modified_since, &asked.if_unmodified_since,
                                          &asked.if_range,          &asked.range};
    for (int i = 0; i < FIELDS; i++) {
        *fields[i] = take_field(&in, &blocks[i]);
        if (!(present & 1 << i))
            *fields[i] = oribi_slice(NULL, 0);
    }
    bool got_ranges;
    bool want_ranges;
    int want = decide(&asked, &own, 784111777, &want_ranges);
    expect((int)oribi_conditions_decide(&asked, &own, 784111777, &got_ranges) == want);
    expect(got_ranges == want_ranges);
    for (int i = 0; i <= FIELDS; i++)
        oribi_mem_free(blocks[i]);
    return 0;
}
