/* Text fields of a multipart body, read where they lie. */
#include "oribi/form/multipart.h"

#include "oribi/base/os/os.h"

#include <string.h>

static struct oribi_slice from(struct oribi_slice text, size_t at)
{
    return oribi_slice(text.p + at, text.n - at);
}

static bool begins(struct oribi_slice text, const char *with, size_t n)
{
    return text.n >= n && memcmp(text.p, with, n) == 0;
}

static bool is_closed(struct oribi_slice behind)
{
    return begins(behind, "\r\n", 2) || begins(behind, "--", 2);
}

size_t oribi_plain_find(struct oribi_slice in, const struct oribi_plain_delimiter *delimiter, bool *bare)
{
    struct oribi_slice dashes = from(delimiter->text, 2);
    struct oribi_slice wanted = delimiter->anywhere ? dashes : delimiter->text;
    *bare = begins(in, dashes.p, dashes.n) && is_closed(from(in, dashes.n));
    if (*bare)
        return 0;
    for (size_t at = 0; at < in.n;) {
        const char *found = oribi_os_memmem(in.p + at, in.n - at, wanted.p, wanted.n);
        if (!found)
            break;
        at = (size_t)(found - in.p);
        if (!is_closed(from(in, at + wanted.n))) {
            at++;
            continue;
        }
        *bare = delimiter->anywhere && (at < 2 || memcmp(found - 2, "\r\n", 2) != 0);
        return delimiter->anywhere && !*bare ? at - 2 : at;
    }
    return in.n;
}

/* The name in the head's line, and what the head has taken with its empty line. 0: it is another head. */
static size_t read_head(struct oribi_slice in, struct oribi_slice *name)
{
    static const char field[] = "content-disposition: form-data; ";
    static const char front[] = "name=\"";
    static const char back[] = "\"\r\n\r\n";
    size_t i = sizeof(field) - 1;
    if (in.n < i || !oribi_slice_equal_fold(oribi_slice(in.p, i), ORIBI_SLICE(field)) ||
        !begins(from(in, i), front, sizeof(front) - 1))
        return 0;
    i += sizeof(front) - 1;
    size_t start = i;
    size_t most = in.n - i < ORIBI_PLAIN_NAME_MAX ? in.n : i + ORIBI_PLAIN_NAME_MAX;
    while (i < most && in.p[i] != '"') {
        unsigned char c = (unsigned char)in.p[i];
        if (c < ' ' || c == 0x7f || c == '\\' || c == ':' || c == ';')
            return 0;
        i++;
    }
    *name = oribi_slice(in.p + start, i - start);
    return name->n > 0 && begins(from(in, i), back, sizeof(back) - 1) ? i + sizeof(back) - 1 : 0;
}

/* Rack 2.2 looks at the whole line of the last delimiter. */
static bool line_ends(struct oribi_slice behind)
{
    return behind.n == 0 || begins(behind, "\r\n", 2);
}

bool oribi_plain_part(struct oribi_slice in, const struct oribi_plain_delimiter *delimiter,
                      struct oribi_plain_part *part)
{
    bool bare;
    struct oribi_slice name;
    size_t head = read_head(in, &name);
    if (head == 0)
        return false;
    struct oribi_slice rest = from(in, head);
    size_t at = oribi_plain_find(rest, delimiter, &bare);
    if (bare || at == rest.n)
        return false;
    size_t len = head + at + delimiter->text.n + 2;
    bool is_last = in.p[len - 1] == '-';
    if (is_last && delimiter->anywhere && !line_ends(from(in, len)))
        return false;
    *part = (struct oribi_plain_part){
        .name = name, .body = oribi_slice(rest.p, at), .head_len = head - 2, .len = len, .is_last = is_last};
    return true;
}
