/* Cookies of an answer. What could begin another attribute or another field is refused in every text that is not
 * escaped. */
#include "oribi/form/cookie.h"

#include "oribi/form/escape.h"
#include "oribi/http/scan.h"

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
