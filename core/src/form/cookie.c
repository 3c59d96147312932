/* Cookies of a request. The same walk as for forms (form/text.h), with other separators; what is trimmed and unquoted
 * is cut off raw, so a space or a quote that was an escape stays. */
#include "oribi/form/cookie.h"
#include "form/text.h"
#include "oribi/form/urlencoded.h"
#include "oribi/http/scan.h"

#include <stdio.h>
#include <time.h>

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

/* ---- cookie_bake ---- */

/* Cookies of an answer. What could begin another attribute or another field is refused in every text that is not
 * escaped. */

enum { FRAME_BYTES = 160 }; /* over all names of attributes, their separators, `secure` and its like */

ssize_t oribi_cookie_room(const struct oribi_cookie *cookie)
{
    size_t plain = cookie->domain.n + cookie->path.n + cookie->expires.n + cookie->max_age.n;
    size_t escaped = cookie->name.n + cookie->value_count;
    for (size_t i = 0; i < cookie->value_count && escaped <= ORIBI_COOKIE_BYTES_MAX; i++)
        escaped += cookie->values[i].n;
    if (plain > ORIBI_COOKIE_BYTES_MAX || escaped > ORIBI_COOKIE_BYTES_MAX - plain)
        return ORIBI_ELIMIT;
    return (ssize_t)(plain + ORIBI_FORM_GROWTH * escaped + FRAME_BYTES);
}

static char *put(char *dst, struct oribi_slice text)
{
    if (text.n)
        memcpy(dst, text.p, text.n);
    return dst + text.n;
}

static char *put_attribute(char *dst, struct oribi_slice name, struct oribi_slice value)
{
    return value.p ? put(put(dst, name), value) : dst;
}

static char *put_flag(char *dst, struct oribi_slice name, bool set)
{
    return set ? put(dst, name) : dst;
}

static bool is_one_attribute(struct oribi_slice text)
{
    return text.n == 0 || (oribi_scan_active->text(text.p, text.n) == text.n && !memchr(text.p, ';', text.n));
}

static const char *what_is_wrong(const struct oribi_cookie *cookie, enum oribi_cookie_style style)
{
    if (style == ORIBI_BAKE_RACK && !oribi_scan_is_token(cookie->name.p, cookie->name.n))
        return "its name is no token";
    return !is_one_attribute(cookie->domain)    ? "its domain has a semicolon or a control"
           : !is_one_attribute(cookie->path)    ? "its path has a semicolon or a control"
           : !is_one_attribute(cookie->expires) ? "its expires has a semicolon or a control"
           : !is_one_attribute(cookie->max_age) ? "its max-age has a semicolon or a control"
                                                : NULL;
}

static char *put_values(char *dst, const struct oribi_cookie *cookie, enum oribi_form_escape set, bool plus)
{
    for (size_t i = 0; i < cookie->value_count; i++) {
        if (i)
            *dst++ = '&';
        dst = oribi_form_escape(dst, cookie->values[i], set, plus);
    }
    return dst;
}

static char *bake_perl(const struct oribi_cookie *cookie, char *dst)
{
    static const struct oribi_slice same_site[] = {
        {"", 0}, {"; SameSite=Lax", 14}, {"; SameSite=Strict", 17}, {"; SameSite=None", 15}};
    dst = oribi_form_escape(dst, cookie->name, ORIBI_ESCAPE_UNRESERVED, false);
    *dst++ = '=';
    dst = put_values(dst, cookie, ORIBI_ESCAPE_UNRESERVED, false);
    dst = put_attribute(dst, ORIBI_SLICE("; domain="), cookie->domain);
    dst = put_attribute(dst, ORIBI_SLICE("; path="), cookie->path);
    dst = put_attribute(dst, ORIBI_SLICE("; expires="), cookie->expires);
    dst = put_attribute(dst, ORIBI_SLICE("; max-age="), cookie->max_age);
    dst = put(dst, same_site[cookie->same_site]);
    dst = put_flag(dst, ORIBI_SLICE("; secure"), cookie->secure);
    dst = put_flag(dst, ORIBI_SLICE("; HttpOnly"), cookie->http_only);
    return put_flag(dst, ORIBI_SLICE("; Partitioned"), cookie->partitioned);
}

static char *bake_rack(const struct oribi_cookie *cookie, char *dst)
{
    static const struct oribi_slice same_site[] = {
        {"", 0}, {"; samesite=lax", 14}, {"; samesite=strict", 17}, {"; samesite=none", 15}};
    dst = put(dst, cookie->name);
    *dst++ = '=';
    dst = put_values(dst, cookie, ORIBI_ESCAPE_WHATWG, true);
    dst = put_attribute(dst, ORIBI_SLICE("; domain="), cookie->domain);
    dst = put_attribute(dst, ORIBI_SLICE("; path="), cookie->path);
    dst = put_attribute(dst, ORIBI_SLICE("; max-age="), cookie->max_age);
    dst = put_attribute(dst, ORIBI_SLICE("; expires="), cookie->expires);
    dst = put_flag(dst, ORIBI_SLICE("; secure"), cookie->secure);
    dst = put_flag(dst, ORIBI_SLICE("; httponly"), cookie->http_only);
    dst = put(dst, same_site[cookie->same_site]);
    return put_flag(dst, ORIBI_SLICE("; partitioned"), cookie->partitioned);
}

ssize_t oribi_cookie_bake(const struct oribi_cookie *cookie, enum oribi_cookie_style style, char *dst,
                          const char **wrong)
{
    const char *found = what_is_wrong(cookie, style);
    if (found) {
        *wrong = found;
        return ORIBI_EBAD;
    }
    return (style == ORIBI_BAKE_PERL ? bake_perl(cookie, dst) : bake_rack(cookie, dst)) - dst;
}

/* ---- cookie_date ---- */

/* When a cookie expires. */

ssize_t oribi_cookie_date(int64_t seconds, char separator, char dst[static ORIBI_COOKIE_DATE_CAP])
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t time = (time_t)seconds;
    struct tm at;
    if (!gmtime_r(&time, &at) || at.tm_year < 1000 - 1900 || at.tm_year > 9999 - 1900)
        return ORIBI_EBAD;
    return snprintf(dst, ORIBI_COOKIE_DATE_CAP, "%s, %02d%c%s%c%04d %02d:%02d:%02d GMT", days[at.tm_wday], at.tm_mday,
                    separator, months[at.tm_mon], separator, at.tm_year + 1900, at.tm_hour, at.tm_min, at.tm_sec);
}

static bool is_digit(struct oribi_slice text, size_t at)
{
    return at < text.n && text.p[at] >= '0' && text.p[at] <= '9';
}

static double unit_seconds(struct oribi_slice text, size_t at)
{
    switch (at < text.n ? text.p[at] : 's') {
    case 'm':
        return 60;
    case 'h':
        return 3600;
    case 'd':
        return 86400;
    case 'M':
        return 30 * 86400.0;
    case 'y':
        return 365 * 86400.0;
    default:
        return 1;
    }
}

bool oribi_cookie_expires(struct oribi_slice text, int64_t now, int64_t *seconds)
{
    const double most = 1e15; /* beyond every year of four digits, and within the numbers that a double has */
    size_t at = 0;
    double number = 0;
    double scale = 1;
    if (oribi_slice_equal(text, ORIBI_SLICE("now"))) {
        *seconds = now;
        return true;
    }
    bool negative = text.n && text.p[0] == '-';
    if (text.n && (text.p[0] == '-' || text.p[0] == '+'))
        at++;
    size_t first = at;
    for (; is_digit(text, at); at++)
        number = number < most ? number * 10 + (text.p[at] - '0') : most;
    if (at == text.n && first == 0 && at > 0) {
        *seconds = (int64_t)number;
        return true;
    }
    if (at == first) { /* a fraction without digits in front of it; `1.5h` is 1 to Cookie::Baker, and so to us */
        if (at == text.n || text.p[at] != '.')
            return false;
        for (at++; is_digit(text, at); at++)
            number += (text.p[at] - '0') * (scale /= 10);
    }
    number *= unit_seconds(text, at);
    if (number > most)
        number = most;
    *seconds = (int64_t)((double)now + (negative ? -number : number));
    return true;
}
