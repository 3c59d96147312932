/* The Priority field, RFC 9218 4: a dictionary (RFC 8941 3.2) in which `u` is 0 … 7 and `i` a boolean. Members that are
 * not understood are passed over; what is no dictionary says nothing. */
#include "frontend/h2_private.h"

static const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p;
}

/* Behind a bare item or parameters: to the comma of the next member. Strings may hold commas. */
static const char *skip_member(const char *p, const char *end)
{
    bool quoted = false;
    for (; p < end && (quoted || *p != ','); p++) {
        if (*p == '"')
            quoted = !quoted;
        else if (quoted && *p == '\\' && p + 1 < end)
            p++;
    }
    return p;
}

static bool ends_item(const char *p, const char *end)
{
    return p == end || *p == ',' || *p == ';' || *p == ' ' || *p == '\t';
}

void oribi__h2_priority_read(struct oribi_slice text, uint8_t *urgency, bool *incremental)
{
    const char *p = text.p;
    const char *end = text.p + text.n;
    while ((p = skip_blanks(p, end)) < end) {
        size_t left = (size_t)(end - p);
        if (left >= 3 && memcmp(p, "u=", 2) == 0 && p[2] >= '0' && p[2] <= '7' && ends_item(p + 3, end))
            *urgency = (uint8_t)(p[2] - '0');
        else if (*p == 'i' && ends_item(p + 1, end))
            *incremental = true;
        else if (left >= 4 && memcmp(p, "i=?", 3) == 0 && (p[3] == '0' || p[3] == '1') && ends_item(p + 4, end))
            *incremental = p[3] == '1';
        p = skip_member(p, end);
        if (p < end)
            p++;
    }
}
