/* Conditional requests, ranges, and the dates in them. Each part is a target of its own:
 * the build compiles this source once for each, with FUZZ_<target> defined. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef FUZZ_conditions
/* Conditions: any fields, against RFC 9110 13.2.2 step by step, with entity-tags found by their quotes and the grammar
 * of a list in a table of states; and the validators of any file, which a client that sends them back must match. */
#include "oribi/base/mem.h"
#include "oribi/http/conditions.h"
#include "oribi/http/date.h"

#include "ours.h"

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
#endif

#ifdef FUZZ_date_read
/* HTTP-dates: what the reader takes is what three regular expressions take, and means what the C library says. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/date.h"

#include "ours.h"

#include <regex.h>
#include <time.h>

#define DAY      "(Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
#define LONG_DAY "(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
#define MONTH    "(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
#define TIME     "([0-9]{2}):([0-9]{2}):([0-9]{2})"

/* A form, and the groups of its day, month, year and hour. */
static const struct form {
    const char *pattern;
    int day;
    int month;
    int year;
    int hour;
} forms[] = {
    {"^" DAY ", ([0-9]{2}) " MONTH " ([0-9]{4}) " TIME " GMT$", 2, 3, 4, 5},
    {"^" LONG_DAY ", ([0-9]{2})-" MONTH "-([0-9]{2}) " TIME " GMT$", 2, 3, 4, 5},
    {"^" DAY " " MONTH " ([0-9]{2}| [0-9]) " TIME " ([0-9]{4})$", 3, 2, 7, 4},
};
enum { FORMS = 3, GROUPS = 9 };

/* Month, day and time as one number that grows with them; a tm_sec of 60 is the largest. */
static long long order_of(const struct tm *tm)
{
    return (((tm->tm_mon * 100LL + tm->tm_mday) * 100 + tm->tm_hour) * 100 + tm->tm_min) * 100 + tm->tm_sec;
}

/* The year with these two digits that is not more than fifty years after now. */
static int full_year(const struct tm *tm, int digits, int64_t now_s)
{
    struct tm now;
    time_t second = (time_t)now_s;
    expect(gmtime_r(&second, &now) != NULL);
    int latest = now.tm_year + 1900 + 50 - (order_of(tm) > order_of(&now));
    return latest - ((latest - digits) % 100 + 100) % 100;
}

static bool read_match(const struct form *form, const char *text, const regmatch_t *at, int64_t now_s, int64_t *seconds)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    struct tm tm = {0};
    char name[4] = "";
    memcpy(name, text + at[form->month].rm_so, 3);
    tm.tm_mon = (int)(strstr(months, name) - months) / 3;
    tm.tm_mday = (int)strtol(text + at[form->day].rm_so, NULL, 10);
    tm.tm_hour = (int)strtol(text + at[form->hour].rm_so, NULL, 10);
    tm.tm_min = (int)strtol(text + at[form->hour + 1].rm_so, NULL, 10);
    tm.tm_sec = (int)strtol(text + at[form->hour + 2].rm_so, NULL, 10);
    int year = (int)strtol(text + at[form->year].rm_so, NULL, 10);
    if (at[form->year].rm_eo - at[form->year].rm_so == 2)
        year = full_year(&tm, year, now_s);
    tm.tm_year = year - 1900;
    if (tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60 ||
        (tm.tm_sec == 60 && (tm.tm_hour != 23 || tm.tm_min != 59)))
        return false;
    struct tm back = tm;
    back.tm_hour = back.tm_min = back.tm_sec = 0;
    (void)timegm(&back); /* puts a day that the month does not have into the next one */
    if (tm.tm_mday != back.tm_mday || tm.tm_mon != back.tm_mon)
        return false;
    *seconds = timegm(&tm);
    return true;
}

static bool read_slowly(const char *text, size_t n, int64_t now_s, int64_t *seconds)
{
    static regex_t compiled[FORMS];
    static bool ready;
    regmatch_t at[GROUPS];
    for (int i = 0; i < FORMS && !ready; i++)
        expect(regcomp(&compiled[i], forms[i].pattern, REG_EXTENDED) == 0);
    ready = true;
    if (memchr(text, 0, n))
        return false;
    for (int i = 0; i < FORMS; i++)
        if (regexec(&compiled[i], text, GROUPS, at, 0) == 0)
            return read_match(&forms[i], text, at, now_s, seconds);
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    if (size < 4 || size > 256)
        return 0;
    int64_t now_s = 0;
    for (int i = 0; i < 4; i++)
        now_s = now_s << 8 | next_byte(&in);
    now_s = now_s * 59 % 253402300800; /* up to the year 9999 */
    char *text = oribi_mem_alloc(1, in.n ? in.n : 1);
    char copy[256] = "";
    memcpy(text, in.p, in.n);
    memcpy(copy, in.p, in.n);
    int64_t got = 7;
    int64_t want = 7;
    int result = oribi_date_read(oribi_slice(text, in.n), now_s, &got);
    expect(result == 0 || result == ORIBI_EBAD);
    expect((result == 0) == read_slowly(copy, in.n, now_s, &want));
    expect(got == (result == 0 ? want : 7));
    oribi_mem_free(text);
    return 0;
}
#endif

#ifdef FUZZ_ranges
/* Ranges: any value, for a small representation against a map of its bytes, for any other one against what must hold;
 * and the parts of the answer, which must be as long together as they are said to be. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/conditions.h"

#include "ours.h"

#include <regex.h>

enum { BYTES_MAX = 2048, SMALL = 256, NEVER = 1 << 30 };

/* The representation, byte by byte: which element of the list has asked for it first. */
struct map {
    int64_t size;
    int first_asked[SMALL];
};

/* How many runs of bytes are asked for. */
static size_t count_runs(const struct map *map)
{
    size_t runs = 0;
    for (int64_t i = 0; i < map->size; i++)
        runs += map->first_asked[i] != NEVER && (i == 0 || map->first_asked[i - 1] == NEVER);
    return runs;
}

/* Digits with zeros in front, so that memcmp() compares them as numbers. */
static void pad(char dst[BYTES_MAX], const char *digits, size_t n)
{
    memset(dst, '0', BYTES_MAX);
    memcpy(dst + BYTES_MAX - n, digits, n);
}

/* The number where it is below SMALL, else SMALL. */
static int64_t small_number(const char padded[BYTES_MAX])
{
    int64_t low = strtoll(padded + BYTES_MAX - 3, NULL, 10);
    for (int i = 0; i < BYTES_MAX - 3; i++)
        if (padded[i] != '0')
            return SMALL;
    return low < SMALL ? low : SMALL;
}

/* One element that is the grammar; false for one that ends before it begins. */
static bool mark(struct map *map, const char *element, int index, bool *hits)
{
    static char first[BYTES_MAX + 1];
    static char last[BYTES_MAX + 1];
    size_t digits = strspn(element, "0123456789");
    const char *behind = element + digits + 1;
    size_t more = strlen(behind);
    pad(first, element, digits);
    pad(last, behind, more);
    int64_t from = small_number(first);
    int64_t to = more ? small_number(last) : SMALL;
    if (digits && more && memcmp(first, last, BYTES_MAX) > 0)
        return false;
    if (!digits) {
        from = to < map->size ? map->size - to : 0;
        *hits |= to > 0;
        to = SMALL;
    } else {
        *hits |= from < map->size;
    }
    for (int64_t i = from; i <= to && i < map->size; i++)
        if (map->first_asked[i] == NEVER)
            map->first_asked[i] = index;
    return true;
}

/* Fills the map; gives the status. */
static int read_slowly(const char *value, size_t n, struct map *map)
{
    static regex_t element_form;
    static bool ready;
    char text[BYTES_MAX + 1];
    bool hits = false;
    int index = 0;
    bool too_many = false;
    expect(ready || regcomp(&element_form, "^([0-9]+-[0-9]*|-[0-9]+)$", REG_EXTENDED | REG_NOSUB) == 0);
    ready = true;
    memcpy(text, value, n);
    text[n] = 0;
    if (strlen(text) != n || strncasecmp(text, "bytes=", 6) != 0 || text[6] == ' ' || text[6] == '\t')
        return 200;
    char *rest = text + 6;
    for (char *element = strsep(&rest, ","); element; element = strsep(&rest, ",")) {
        element += strspn(element, " \t");
        size_t len = strlen(element);
        while (len && (element[len - 1] == ' ' || element[len - 1] == '\t'))
            element[--len] = 0;
        if (len == 0)
            continue;
        if (regexec(&element_form, element, 0, NULL, 0) != 0 || !mark(map, element, index++, &hits))
            return 200;
        too_many |= count_runs(map) > ORIBI_RANGES_PENDING_MAX;
    }
    if (index == 0 || too_many || count_runs(map) > ORIBI_RANGES_MAX)
        return 200;
    return hits ? map->size ? 206 : 200 : 416;
}

/* The ranges are the runs of the map, in the order in which each was first asked for. */
static void check_map(const struct oribi_ranges *ranges, const struct map *map)
{
    int before = -1;
    expect(count_runs(map) == ranges->count);
    for (uint32_t i = 0; i < ranges->count; i++) {
        struct oribi_byte_range range = ranges->at[i];
        int asked = NEVER;
        expect(range.first == 0 || map->first_asked[range.first - 1] == NEVER);
        expect(range.last + 1 == map->size || map->first_asked[range.last + 1] == NEVER);
        for (int64_t at = range.first; at <= range.last; at++) {
            expect(map->first_asked[at] != NEVER);
            asked = map->first_asked[at] < asked ? map->first_asked[at] : asked;
        }
        expect(asked > before);
        before = asked;
    }
}

static void check_sound(int status, const struct oribi_ranges *ranges, int64_t size)
{
    expect(status == 206 ? ranges->count > 0 && ranges->count <= ORIBI_RANGES_MAX
                         : (status == 200 || status == 416) && ranges->count == 0);
    for (uint32_t i = 0; i < ranges->count; i++) {
        expect(ranges->at[i].first >= 0 && ranges->at[i].first <= ranges->at[i].last && ranges->at[i].last < size);
        for (uint32_t j = 0; j < i; j++)
            expect(ranges->at[i].last < ranges->at[j].first - 1 || ranges->at[j].last < ranges->at[i].first - 1);
    }
}

/* Each text in a block of exactly its length; their lengths make up the whole's. */
static void check_parts(const struct oribi_ranges *ranges, int64_t size, struct oribi_slice boundary,
                        struct oribi_slice type)
{
    struct oribi_multipart multipart = {.boundary = boundary, .type = type, .size = size};
    char room[1024];
    __int128 total = 0;
    for (uint32_t i = 0; i <= ranges->count; i++) {
        bool end = i == ranges->count;
        ssize_t n = end ? oribi_multipart_end(&multipart, room, sizeof(room))
                        : oribi_multipart_head(&multipart, ranges, i, room, sizeof(room));
        expect(n > 0);
        char *exact = oribi_mem_alloc(1, (size_t)n);
        expect((end ? oribi_multipart_end(&multipart, exact, (size_t)n)
                    : oribi_multipart_head(&multipart, ranges, i, exact, (size_t)n)) == n);
        expect((end ? oribi_multipart_end(&multipart, exact, (size_t)n - 1)
                    : oribi_multipart_head(&multipart, ranges, i, exact, (size_t)n - 1)) == ORIBI_ELIMIT);
        oribi_mem_free(exact);
        total += n;
        if (end)
            break;
        total += (__int128)ranges->at[i].last - ranges->at[i].first + 1;
        char line[ORIBI_CONTENT_RANGE_CAP];
        char want[ORIBI_CONTENT_RANGE_CAP + 1];
        size_t len = oribi_content_range(ranges->at[i], size, line);
        snprintf(want, sizeof(want), "bytes %lld-%lld/%lld", (long long)ranges->at[i].first,
                 (long long)ranges->at[i].last, (long long)size);
        expect(len == strlen(want) && memcmp(line, want, len) == 0);
        expect(memmem(room, (size_t)n, want, len) != NULL);
    }
    int64_t said = oribi_multipart_len(&multipart, ranges);
    expect(total > INT64_MAX ? said == ORIBI_ELIMIT : said == (int64_t)total);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct map map;
    struct oribi_ranges ranges;
    struct bytes in = {data, size};
    if (size < 2 || size > BYTES_MAX)
        return 0;
    bool small = next_byte(&in) % 4 != 0;
    uint64_t number = next_byte(&in);
    for (int i = 0; i < 7 && !small; i++)
        number = number << 8 | next_byte(&in);
    int64_t whole = (int64_t)(number & INT64_MAX);
    char *text = oribi_mem_alloc(1, in.n ? in.n : 1);
    memcpy(text, in.p, in.n);
    int status = oribi_ranges_read(oribi_slice(text, in.n), whole, &ranges);
    check_sound(status, &ranges, whole);
    if (small) {
        map.size = whole;
        for (int i = 0; i < SMALL; i++)
            map.first_asked[i] = NEVER;
        expect(read_slowly(text, in.n, &map) == status);
        if (status == 206)
            check_map(&ranges, &map);
    }
    if (ranges.count)
        check_parts(&ranges, whole, oribi_slice("0123456789abcdef", 1 + in.n % 16),
                    oribi_slice("text/plain", in.n % 11));
    oribi_mem_free(text);
    return 0;
}
#endif
