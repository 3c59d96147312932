/* Records, and certificates made of them. */
#include "frontend/pairs.h"

#include <string.h>

enum { NUMBER_DIGITS_MAX = 9 }; /* more than ORIBI_FRONTEND_TEXT_MAX has */

/* The number between p and end: digits, no zero in front, and nothing else. */
static bool read_number(const char *p, const char *end, size_t *number)
{
    size_t n = 0;
    if (p == end || end - p > NUMBER_DIGITS_MAX || (*p == '0' && end - p > 1))
        return false;
    for (; p < end; p++) {
        if (*p < '0' || *p > '9')
            return false;
        n = n * 10 + (size_t)(*p - '0');
    }
    *number = n;
    return true;
}

size_t oribi__records_len(const char *p, size_t n)
{
    while (n > 0 && p[n - 1] == '\0')
        n--;
    return n;
}

bool oribi__record_next(const char **at, const char *end, struct oribi__record *record)
{
    const char *line = memchr(*at, '\n', (size_t)(end - *at));
    const char *space = line ? oribi_os_memrchr(*at, ' ', (size_t)(line - *at)) : NULL;
    if (!space)
        return false;
    size_t n;
    if (!read_number(space + 1, line, &n) || n + 1 >= (size_t)(end - line) || line[1 + n] != '\n')
        return false;
    record->name = oribi_slice(*at, (size_t)(space - *at));
    record->value = oribi_slice(line + 1, n);
    *at = line + 1 + n + 1;
    return true;
}

bool oribi__record_is(const struct oribi__record *record, const char *word)
{
    return record->name.n == strlen(word) && memcmp(record->name.p, word, record->name.n) == 0;
}

bool oribi__record_begins(const struct oribi__record *record, const char *word, struct oribi_slice *rest)
{
    size_t n = strlen(word);
    if (record->name.n <= n || memcmp(record->name.p, word, n) != 0 || record->name.p[n] != ' ')
        return false;
    *rest = oribi_slice(record->name.p + n + 1, record->name.n - n - 1);
    return true;
}

static bool begin_pair(struct oribi__pairs *pairs, struct oribi_slice number, struct oribi_slice name)
{
    size_t i;
    if (!read_number(number.p, number.p + number.n, &i) || i >= ORIBI_LISTENERS_MAX ||
        pairs->counts[i] == ORIBI_TLS_CERTIFICATES_MAX)
        return false;
    pairs->current = (uint32_t)i;
    pairs->items[i][pairs->counts[i]++] = (struct oribi_tls_certificate){.name = name};
    return true;
}

bool oribi__pairs_add(struct oribi__pairs *pairs, const struct oribi__record *record)
{
    struct oribi_slice rest;
    uint32_t count = pairs->counts[pairs->current];
    struct oribi_tls_certificate *last = count ? &pairs->items[pairs->current][count - 1] : NULL;
    if (oribi__record_begins(record, "certificate", &rest))
        return begin_pair(pairs, rest, record->value);
    if (oribi__record_is(record, "client_ca"))
        pairs->client_ca = record->value;
    else if (oribi__record_is(record, "client_ca_name"))
        pairs->client_ca_name = record->value;
    else if (last && oribi__record_is(record, "chain"))
        last->chain = record->value;
    else if (last && oribi__record_is(record, "key"))
        last->key = record->value;
    else if (last && oribi__record_is(record, "managed") && record->value.n > 0)
        last->names = record->value;
    else if (last && oribi__record_is(record, "placeholder") && record->value.n > 0)
        *last = (struct oribi_tls_certificate){.name = last->name, .names = record->value, .placeholder = true};
    else if (last && oribi__record_is(record, "password"))
        last->password = record->value;
    else if (last && oribi__record_is(record, "ocsp"))
        last->ocsp = record->value;
    else
        return false;
    return true;
}
