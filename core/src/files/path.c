/* Paths of requests: bytes first, then segments, then the mount.
 *
 *     "/a%20b/c"  ─decode─►  "/a b/c"  ─check_segments─►  oribi_mount_find()  ─►  mount "/a b", rest "c" */
#include "oribi/files/root.h"

#include "oribi/base/error.h"
#include "oribi/http/syntax.h"

#include <assert.h>

enum { ESCAPE_BYTES = 3 };

/* One escape to one byte. */
static enum oribi_path_verdict decode_escape(struct oribi_slice left, char *byte)
{
    char decoded[ESCAPE_BYTES];
    if (oribi_percent_decode(oribi_slice(left.p, left.n < ESCAPE_BYTES ? left.n : ESCAPE_BYTES), decoded) != 1)
        return ORIBI_PATH_ESCAPE;
    *byte = decoded[0];
    return *byte == '/' ? ORIBI_PATH_ENCODED_SLASH : ORIBI_PATH_OK;
}

static enum oribi_path_verdict decode(struct oribi_slice raw, struct oribi_path *path)
{
    uint32_t n = 0;
    for (size_t i = 0; i < raw.n;) {
        char byte = raw.p[i];
        if (byte == '%') {
            enum oribi_path_verdict verdict = decode_escape(oribi_slice(raw.p + i, raw.n - i), &byte);
            if (verdict != ORIBI_PATH_OK)
                return verdict;
            i += ESCAPE_BYTES;
        } else {
            i++;
        }
        if (byte == '\0')
            return ORIBI_PATH_NUL;
        if (n == ORIBI_PATH_BYTES_MAX)
            return ORIBI_PATH_TOO_LONG;
        path->text[n++] = byte;
    }
    path->text[n] = '\0';
    path->n = n;
    return ORIBI_PATH_OK;
}

static enum oribi_path_verdict check_segment(struct oribi_slice segment, bool first)
{
    if (segment.n == 0)
        return ORIBI_PATH_EMPTY_SEGMENT;
    if (segment.p[0] != '.')
        return ORIBI_PATH_OK;
    if (segment.n == 1 || (segment.n == 2 && segment.p[1] == '.'))
        return ORIBI_PATH_DOT_SEGMENT;
    return first && oribi_slice_equal(segment, ORIBI_SLICE(".well-known")) ? ORIBI_PATH_OK : ORIBI_PATH_HIDDEN;
}

/* [text, text+n) begins with a slash; one at the end closes the last segment and opens none. */
static enum oribi_path_verdict check_segments(const char *text, size_t n)
{
    for (size_t at = 1; at < n;) {
        const char *slash = memchr(text + at, '/', n - at);
        size_t len = slash ? (size_t)(slash - text) - at : n - at;
        enum oribi_path_verdict verdict = check_segment(oribi_slice(text + at, len), at == 1);
        if (verdict != ORIBI_PATH_OK)
            return verdict;
        at += len + 1;
    }
    return ORIBI_PATH_OK;
}

enum oribi_path_verdict oribi_path_read(struct oribi_slice raw, struct oribi_path *path)
{
    if (raw.n == 0 || raw.p[0] != '/')
        return ORIBI_PATH_NOT_ROOTED;
    enum oribi_path_verdict verdict = decode(raw, path);
    return verdict == ORIBI_PATH_OK ? check_segments(path->text, path->n) : verdict;
}

enum oribi_path_verdict oribi_path_take(struct oribi_slice plain, struct oribi_path *path)
{
    if (plain.n == 0 || plain.p[0] != '/')
        return ORIBI_PATH_NOT_ROOTED;
    if (memchr(plain.p, '\0', plain.n))
        return ORIBI_PATH_NUL;
    if (plain.n > ORIBI_PATH_BYTES_MAX)
        return ORIBI_PATH_TOO_LONG;
    memcpy(path->text, plain.p, plain.n);
    path->text[plain.n] = '\0';
    path->n = (uint32_t)plain.n;
    return check_segments(path->text, path->n);
}

const char *oribi_path_verdict_text(enum oribi_path_verdict verdict)
{
    static const char *const texts[] = {
        [ORIBI_PATH_OK] = "a path",
        [ORIBI_PATH_NOT_ROOTED] = "path without a slash at its front",
        [ORIBI_PATH_ESCAPE] = "percent sign without two hex digits",
        [ORIBI_PATH_NUL] = "NUL in the path",
        [ORIBI_PATH_ENCODED_SLASH] = "encoded slash",
        [ORIBI_PATH_TOO_LONG] = "path too long",
        [ORIBI_PATH_EMPTY_SEGMENT] = "empty segment",
        [ORIBI_PATH_DOT_SEGMENT] = "dot segment",
        [ORIBI_PATH_HIDDEN] = "name that begins with a dot",
    };
    return texts[verdict];
}

int oribi_mount_prefix_read(struct oribi_slice text, struct oribi_slice *prefix)
{
    if (text.n == 0 || text.p[0] != '/' || text.n > ORIBI_PATH_BYTES_MAX)
        return ORIBI_EINVAL;
    if (memchr(text.p, '\0', text.n) || memchr(text.p, '%', text.n) || memchr(text.p, '?', text.n) ||
        memchr(text.p, '#', text.n))
        return ORIBI_EINVAL;
    if (check_segments(text.p, text.n) != ORIBI_PATH_OK)
        return ORIBI_EINVAL;
    *prefix = oribi_slice(text.p, text.n - (text.p[text.n - 1] == '/'));
    return 0;
}

static bool has_prefix(const struct oribi_path *path, struct oribi_slice prefix)
{
    if (path->n < prefix.n || (prefix.n > 0 && memcmp(path->text, prefix.p, prefix.n) != 0))
        return false;
    return path->text[prefix.n] == '/' || path->text[prefix.n] == '\0';
}

/* The order of mounts: longer prefixes first, then those that were configured first. */
static bool comes_before(const struct oribi_slice *prefixes, ssize_t a, ssize_t b)
{
    return prefixes[a].n != prefixes[b].n ? prefixes[a].n > prefixes[b].n : a < b;
}

ssize_t oribi_mount_find(const struct oribi_slice *prefixes, uint32_t count, const struct oribi_path *path,
                         ssize_t after)
{
    ssize_t best = -1;
    assert(after >= -1 && after < (ssize_t)count);
    for (ssize_t i = 0; i < (ssize_t)count; i++) {
        bool wanted = after < 0 || comes_before(prefixes, after, i);
        if (wanted && (best < 0 || comes_before(prefixes, i, best)) && has_prefix(path, prefixes[i]))
            best = i;
    }
    return best;
}

const char *oribi_mount_rest(struct oribi_slice prefix, const struct oribi_path *path)
{
    assert(has_prefix(path, prefix));
    const char *rest = path->text + prefix.n;
    return *rest == '/' ? rest + 1 : rest;
}
