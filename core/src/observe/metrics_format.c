/* The choice between two formats of metrics, by a client's Accept. */
#include "observe/status.h"

#include "oribi/base/os/os.h"

#include <string.h>

/* The weight of a media range in thousandths, RFC 9110 12.4.2; 1000 without one. */
static int weight_of(struct oribi_slice range)
{
    const char *q = oribi_os_memmem(range.p, range.n, ";q=", 3);
    const char *end = range.p + range.n;
    if (!q)
        return 1000;
    int weight = 0;
    int place = 1000;
    for (q += 3; q < end && place > 0; q++) {
        if (*q == '.')
            continue;
        if (*q < '0' || *q > '9')
            break;
        weight += (*q - '0') * place;
        place /= 10;
    }
    return weight;
}

static bool begins_with(struct oribi_slice text, const char *prefix)
{
    size_t n = strlen(prefix);
    return text.n >= n && memcmp(text.p, prefix, n) == 0;
}

static struct oribi_slice next_range(struct oribi_slice *rest)
{
    while (rest->n > 0 && (*rest->p == ' ' || *rest->p == '\t' || *rest->p == ','))
        *rest = oribi_slice(rest->p + 1, rest->n - 1);
    const char *comma = rest->n ? memchr(rest->p, ',', rest->n) : NULL;
    struct oribi_slice range = oribi_slice(rest->p, comma ? (size_t)(comma - rest->p) : rest->n);
    *rest = oribi_slice(range.p + range.n, rest->n - range.n);
    return range;
}

bool oribi__metrics_open_wanted(struct oribi_slice accept)
{
    int open = 0;
    int plain = 0;
    while (accept.n > 0) {
        struct oribi_slice range = next_range(&accept);
        int *best = begins_with(range, "application/openmetrics-text") ? &open
                    : begins_with(range, "text/plain")                 ? &plain
                                                                       : NULL;
        if (best && weight_of(range) > *best)
            *best = weight_of(range);
    }
    return open > 0 && open >= plain;
}
