/* Ranges: any value, for a small representation against a map of its bytes, for any other one against what must hold;
 * and the parts of the answer, which must be as long together as they are said to be. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/conditions.h"

#include "ours.h"

#include <regex.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
