/* Accept-Encoding: any value and any offer, against elements read by a regular expression and weights as fractions. */
#include "oribi/base/mem.h"
#include "oribi/http/compress.h"

#include "ours.h"

#include <regex.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 10 * 1024, OFFERED_MAX = 5 };

/* A client's preference for one name: none, or its lowest q. */
struct wish {
    bool said;
    double q;
};

static void add(struct wish *wish, double q)
{
    if (!wish->said || q < wish->q)
        wish->q = q;
    wish->said = true;
}

static bool is_named(const char *element, size_t n, const char *name)
{
    return strlen(name) == n && strncasecmp(element, name, n) == 0;
}

/* The wishes that the element speaks of; `star` is the wish for all others. */
static void read_slowly(const char *element, struct wish wishes[ORIBI_CODING_COUNT], struct wish *star)
{
    static regex_t form;
    static bool ready;
    regmatch_t at[6];
    static const char pattern[] =
        "^([!#$%&'*+.^_`|~0-9A-Za-z-]+)([ \t]*;[ \t]*[qQ]=(0(\\.[0-9]{0,3})?|1(\\.0{0,3})?))?$";
    expect(ready || regcomp(&form, pattern, REG_EXTENDED) == 0);
    ready = true;
    bool whole = regexec(&form, element, 6, at, 0) == 0;
    size_t name = strspn(element, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    double q = whole && at[3].rm_so >= 0 ? strtod(element + at[3].rm_so, NULL) : 1;
    if (is_named(element, name, "*") && whole)
        add(star, q);
    if (is_named(element, name, "identity") && whole)
        add(&wishes[ORIBI_CODING_IDENTITY], q);
    if (is_named(element, name, "gzip") || is_named(element, name, "x-gzip"))
        add(&wishes[ORIBI_CODING_GZIP], whole ? q : 0);
    if (is_named(element, name, "br"))
        add(&wishes[ORIBI_CODING_BR], whole ? q : 0);
    if (is_named(element, name, "zstd"))
        add(&wishes[ORIBI_CODING_ZSTD], whole ? q : 0);
}

static void read_all_slowly(const char *value, size_t n, struct wish wishes[ORIBI_CODING_COUNT], struct wish *star)
{
    static char text[BYTES_MAX + 1];
    memcpy(text, value, n);
    text[n] = 0;
    for (size_t i = 0; i < n; i++) /* as wrong as NUL, and no end of a string */
        text[i] = text[i] ? text[i] : 1;
    char *rest = text;
    for (char *element = strsep(&rest, ","); element; element = strsep(&rest, ",")) {
        element += strspn(element, " \t");
        size_t len = strlen(element);
        while (len && (element[len - 1] == ' ' || element[len - 1] == '\t'))
            element[--len] = 0;
        read_slowly(element, wishes, star);
    }
}

static enum oribi_coding choose_slowly(const char *value, size_t n, const enum oribi_coding *offered, size_t count)
{
    struct wish wishes[ORIBI_CODING_COUNT] = {0};
    struct wish star = {0};
    read_all_slowly(value, n <= ORIBI_ACCEPT_ENCODING_BYTES_MAX ? n : 0, wishes, &star);
    if (!wishes[ORIBI_CODING_IDENTITY].said && !star.said)
        add(&wishes[ORIBI_CODING_IDENTITY], 0.0001);
    enum oribi_coding best = ORIBI_CODING_NONE;
    int best_q = 0;
    for (size_t i = count; i-- > 0;) { /* from the last, so that an earlier one with the same q takes its place */
        const struct wish *wish = wishes[offered[i]].said ? &wishes[offered[i]] : &star;
        int q = wish->said ? (int)(wish->q * 10000 + 0.5) : 0;
        best = q && q >= best_q ? offered[i] : best;
        best_q = q > best_q ? q : best_q;
    }
    return best;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    enum oribi_coding offered[OFFERED_MAX];
    if (size < 2 || size > BYTES_MAX)
        return 0;
    size_t count = next_byte(&in) % (OFFERED_MAX + 1);
    unsigned code = next_byte(&in);
    for (size_t i = 0; i < count; i++)
        offered[i] = (enum oribi_coding)(ORIBI_CODING_IDENTITY + (code >> 2 * (i % 4) & 3));
    char *text = oribi_mem_alloc(1, in.n ? in.n : 1);
    memcpy(text, in.p, in.n);
    enum oribi_coding got = oribi_accept_encoding_choose(oribi_slice(text, in.n), offered, count);
    expect(got == choose_slowly(text, in.n, offered, count));
    enum oribi_coding free_choice = oribi_accept_encoding_choose(oribi_slice(NULL, 0), offered, count);
    expect((free_choice == ORIBI_CODING_NONE) == (count == 0));
    oribi_mem_free(text);
    return 0;
}
