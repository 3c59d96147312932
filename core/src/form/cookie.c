/* Cookies of a request. The same walk as for forms (form/text.h), with other separators; what is trimmed and unquoted
 * is cut off raw, so a space or a quote that was an escape stays. */
#include "oribi/form/cookie.h"

#include "form/text.h"

int oribi_cookies_begin(struct oribi_cookies *cookies, struct oribi_slice in, char *room, unsigned rules)
{
    cookies->count = 0;
    cookies->marks.p = in.p;
    cookies->marks.n = in.n;
    cookies->marks.looked = cookies->marks.base = cookies->marks.at = cookies->marks.count = 0;
    cookies->room = room;
    cookies->pos = 0;
    cookies->rules = rules;
    cookies->ended = in.n == 0;
    return in.n > ORIBI_COOKIE_BYTES_MAX ? ORIBI_ELIMIT : 0;
}

static size_t skip_spaces(const struct oribi_cookies *cookies, size_t pos)
{
    while (pos < cookies->marks.n && cookies->marks.p[pos] == ' ')
        pos++;
    return pos;
}

/* The place behind the last byte that is no space; escapes are not looked into. */
static const char *trim_end(const struct oribi_cookies *cookies, const struct text *text, const char *at)
{
    while (cookies->rules & ORIBI_COOKIE_TRIM && at > text->plain && at[-1] == ' ')
        at--;
    return at;
}

static struct oribi_slice end_value(const struct oribi_cookies *cookies, struct text *text, const char *at, bool bad)
{
    const char *end = trim_end(cookies, text, at);
    if (bad && cookies->rules & ORIBI_COOKIE_WHOLE)
        return oribi_slice(text->p, (size_t)(end - text->p));
    bool quoted = cookies->rules & ORIBI_COOKIE_UNQUOTE && end - text->p > 1 && text->p[0] == '"' && end[-1] == '"';
    struct oribi_slice value = text_end(text, end);
    return quoted ? oribi_slice(value.p + 1, value.n - 2) : value;
}

/* Reads the pair at `pos`, up to its `;` or the end. */
static void read_cookie(struct oribi_cookies *cookies, struct oribi_form_pair *pair)
{
    struct oribi_marks *marks = &cookies->marks;
    const char *p = marks->p;
    struct text text = text_begin(marks, cookies->room, cookies->pos);
    bool bad = false;
    pair->bare = true;
    for (;;) {
        size_t at = marks_next(marks);
        char c = at < marks->n ? p[at] : ';';
        if (c == ';') {
            if (pair->bare) {
                pair->key = text_end(&text, trim_end(cookies, &text, p + at));
                pair->value = oribi_slice(p + at, 0);
            } else {
                pair->value = end_value(cookies, &text, p + at, bad);
            }
            cookies->ended = at == marks->n;
            cookies->pos = at + 1;
            return;
        }
        if (c == '=' && pair->bare) {
            pair->key = text_end(&text, trim_end(cookies, &text, p + at));
            pair->bare = false;
            text = text_begin(marks, cookies->room,
                              cookies->rules & ORIBI_COOKIE_TRIM ? skip_spaces(cookies, at + 1) : at + 1);
        } else if (c == '%' && (!pair->bare || cookies->rules & ORIBI_COOKIE_NAMES)) {
            int byte = escape_value(marks, at);
            if (byte >= 0)
                text_put(&text, p + at, 3, (char)byte);
            bad |= byte < 0;
        } else if (c == '+' && !pair->bare && cookies->rules & ORIBI_COOKIE_PLUS) {
            text_put(&text, p + at, 1, ' ');
        }
    }
}

int oribi_cookies_next(struct oribi_cookies *cookies, struct oribi_form_pair *pair)
{
    do {
        if (cookies->ended)
            return 0;
        if (cookies->pos || cookies->rules & ORIBI_COOKIE_TRIM)
            cookies->pos = skip_spaces(cookies, cookies->pos);
        read_cookie(cookies, pair);
    } while (pair->bare && (pair->key.n == 0 || !(cookies->rules & ORIBI_COOKIE_BARE)));
    if (cookies->count == ORIBI_FORM_PAIRS_DEFAULT)
        return ORIBI_ELIMIT;
    cookies->count++;
    return 1;
}
