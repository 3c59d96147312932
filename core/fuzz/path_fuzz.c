/* The path of a request and the mount that it belongs to. First byte: how many of the prefixes below are mounted; the
 * rest is the raw path.
 *
 * Holds for every input: the verdict and the path are those of a reader that looks at one thing at a time; a path that
 * was read leads out of no folder, and read again it is itself; each mount comes once, in order. */
#include "ours.h"

#include "oribi/base/error.h"
#include "oribi/files/root.h"

#include <ctype.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const prefix_texts[] = {"", "/a", "/a/b", "/a", "/.well-known", "/a b", "/abc", "/b/a/c"};
enum { PREFIXES = sizeof(prefix_texts) / sizeof(prefix_texts[0]) };

static int digit(uint8_t c)
{
    return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1;
}

static bool is_bad_escape(const uint8_t *p, size_t n)
{
    return p[0] == '%' && (n < 3 || digit(p[1]) < 0 || digit(p[2]) < 0);
}

/* The verdict on the bytes alone; *n bytes decoded into dst, which has room for all. */
static enum oribi_path_verdict decode_slowly(const uint8_t *p, size_t left, char *dst, size_t *n)
{
    while (left > 0) {
        if (is_bad_escape(p, left))
            return ORIBI_PATH_ESCAPE;
        size_t step = *p == '%' ? 3 : 1;
        int value = *p == '%' ? digit(p[1]) * 16 + digit(p[2]) : *p;
        if (value == '/' && step == 3)
            return ORIBI_PATH_ENCODED_SLASH;
        if (value == 0)
            return ORIBI_PATH_NUL;
        if (*n >= 4095)
            return ORIBI_PATH_TOO_LONG;
        dst[(*n)++] = (char)value;
        p += step;
        left -= step;
    }
    return ORIBI_PATH_OK;
}

static enum oribi_path_verdict check_slowly(const char *path)
{
    for (const char *p = path; *p; p++) {
        const char *name = p + 1;
        if (*p != '/' || !*name)
            continue;
        size_t n = strcspn(name, "/");
        if (n == 0)
            return ORIBI_PATH_EMPTY_SEGMENT;
        if ((n == 1 && name[0] == '.') || (n == 2 && name[0] == '.' && name[1] == '.'))
            return ORIBI_PATH_DOT_SEGMENT;
        if (name[0] == '.' && !(p == path && n == 11 && memcmp(name, ".well-known", 11) == 0))
            return ORIBI_PATH_HIDDEN;
    }
    return ORIBI_PATH_OK;
}

static bool belongs(const char *prefix, const char *path)
{
    size_t n = strlen(prefix);
    return strncmp(path, prefix, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

static void check_mounts(const struct oribi_path *path, uint32_t count)
{
    struct oribi_slice prefixes[PREFIXES];
    uint32_t want = 0;
    uint32_t got = 0;
    for (uint32_t i = 0; i < count; i++) {
        prefixes[i] = oribi_slice(prefix_texts[i], strlen(prefix_texts[i]));
        want += belongs(prefix_texts[i], path->text);
    }
    ssize_t last = -1;
    for (ssize_t at; (at = oribi_mount_find(prefixes, count, path, last)) >= 0; last = at) {
        const char *rest = oribi_mount_rest(prefixes[at], path);
        got++;
        expect(got <= want && belongs(prefix_texts[at], path->text));
        expect(last < 0 || prefixes[last].n > prefixes[at].n || (prefixes[last].n == prefixes[at].n && last < at));
        expect(rest[0] != '/' && strlen(rest) <= path->n - prefixes[at].n);
        expect(strcmp(path->text + path->n - strlen(rest), rest) == 0);
    }
    expect(got == want);
}

/* Written with every byte escaped but the slashes, it is the same path. */
static void read_again(const struct oribi_path *path)
{
    static struct oribi_path again;
    static char raw[3 * sizeof(path->text)];
    size_t n = 0;
    for (uint32_t i = 0; i < path->n; i++)
        n += (size_t)snprintf(raw + n, sizeof(raw) - n, path->text[i] == '/' ? "/" : "%%%02X", (uint8_t)path->text[i]);
    expect(oribi_path_read(oribi_slice(raw, n), &again) == ORIBI_PATH_OK);
    expect(again.n == path->n && memcmp(again.text, path->text, path->n + 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_path path;
    static char want_text[4096];
    struct bytes in = {data, size};
    uint32_t count = next_byte(&in) % (PREFIXES + 1);
    char *raw = malloc(in.n ? in.n : 1); /* as long as it is, so that AddressSanitizer sees a byte too many */
    size_t n = 0;
    memcpy(raw, in.p ? in.p : (const uint8_t *)"", in.n);
    enum oribi_path_verdict want = ORIBI_PATH_NOT_ROOTED;
    if (in.n > 0 && in.p[0] == '/')
        want = decode_slowly(in.p, in.n, want_text, &n);
    want_text[n] = '\0';
    if (want == ORIBI_PATH_OK)
        want = check_slowly(want_text);
    expect(oribi_path_read(oribi_slice(raw, in.n), &path) == want);
    free(raw);
    if (want != ORIBI_PATH_OK)
        return 0;
    expect(path.n == n && memcmp(path.text, want_text, n + 1) == 0);
    expect(!strstr(path.text, "//") && !strstr(path.text, "/../"));
    read_again(&path);
    check_mounts(&path, count);
    return 0;
}
