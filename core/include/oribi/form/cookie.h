/* Cookies: the field of a request to pairs, and a cookie to the field of an answer (RFC 6265 4.1, 4.2). */
#ifndef ORIBI_FORM_COOKIE_H
#define ORIBI_FORM_COOKIE_H

#include "oribi/base/error.h"
#include "oribi/base/limits.h"
#include "oribi/form/urlencoded.h"

#include <sys/types.h>

/* ---- reading ---- */

/* Rules in which readers of cookies differ. 0: spaces behind `;` are dropped and no others, a value's escapes are
 * decoded where they are escapes, and a pair without `=` is dropped. */
enum oribi_cookie_rule {
    ORIBI_COOKIE_TRIM = 1,    /* spaces around names and values are dropped */
    ORIBI_COOKIE_UNQUOTE = 2, /* a pair of quotes around a value is dropped */
    ORIBI_COOKIE_NAMES = 4,   /* names are decoded too */
    ORIBI_COOKIE_PLUS = 8,    /* `+` in a value is a space */
    ORIBI_COOKIE_WHOLE = 16,  /* a value with a `%` that is no escape is given as it came */
    ORIBI_COOKIE_BARE = 32,   /* a pair without `=` is given, but not an empty one */

    /* as Cookie::Baker::XS 0.12, and as Rack 3.2 */
    ORIBI_COOKIE_PERL = ORIBI_COOKIE_TRIM | ORIBI_COOKIE_UNQUOTE | ORIBI_COOKIE_NAMES,
    ORIBI_COOKIE_RACK = ORIBI_COOKIE_PLUS | ORIBI_COOKIE_WHOLE | ORIBI_COOKIE_BARE,
};

struct oribi_cookies {
    size_t count; /* pairs given so far */
    /* private */
    struct oribi_marks marks;
    char *room;
    size_t pos;
    unsigned rules;
    bool ended;
};

/* Begins with the value of a Cookie field, which is borrowed until the last pair has been used, as is `room`: in.n
 * bytes for what has to be decoded, apart from `in`. Returns 0, or ORIBI_ELIMIT for more than ORIBI_COOKIE_BYTES_MAX
 * bytes. */
int oribi_cookies_begin(struct oribi_cookies *cookies, struct oribi_slice in, char *room, unsigned rules);

/* Fills `pair` with the next one; its slices lie in the field or in `room` and stay. Browsers send the cookie that fits
 * best first, so of several with one name the first counts, which is the caller's to see to. Returns 1; 0 behind the
 * last; ORIBI_ELIMIT for more than ORIBI_FORM_PAIRS_DEFAULT. */
int oribi_cookies_next(struct oribi_cookies *cookies, struct oribi_form_pair *pair);

/* ---- writing ---- */

enum oribi_same_site { ORIBI_SAME_SITE_UNSET, ORIBI_SAME_SITE_LAX, ORIBI_SAME_SITE_STRICT, ORIBI_SAME_SITE_NONE };

enum oribi_cookie_style {
    ORIBI_BAKE_PERL, /* name and value escaped, attributes in the order and case of Cookie::Baker */
    ORIBI_BAKE_RACK, /* a name must be a token, the value is a form's; order and case of Rack::Utils */
};

/* Attributes with p == NULL are left out. */
struct oribi_cookie {
    struct oribi_slice name;
    const struct oribi_slice *values; /* escaped one by one, with `&` between them; borrowed */
    size_t value_count;
    struct oribi_slice domain;
    struct oribi_slice path;
    struct oribi_slice expires;
    struct oribi_slice max_age;
    enum oribi_same_site same_site;
    bool secure;
    bool http_only;
    bool partitioned;
};

/* How many bytes oribi_cookie_bake() writes at most, or ORIBI_ELIMIT: all texts together are longer than
 * ORIBI_COOKIE_BYTES_MAX. */
ssize_t oribi_cookie_room(const struct oribi_cookie *cookie);

/* Writes the value of a Set-Cookie field at dst. Returns its length. Or ORIBI_EBAD, with *wrong set to what is wrong
 * with the cookie, in static words: a name that is no token in Rack's style, or an attribute with `;` or a control
 * other than TAB, which would begin another attribute or another field. */
ssize_t oribi_cookie_bake(const struct oribi_cookie *cookie, enum oribi_cookie_style style, char *dst,
                          const char **wrong);

/* ---- dates ---- */

enum { ORIBI_COOKIE_DATE_CAP = 40 };

/* Writes seconds since the epoch as `Sun, 06 Nov 1994 08:49:37 GMT`, with `separator` between day, month and year.
 * Returns the length, or ORIBI_EBAD for a year that has not four digits. */
ssize_t oribi_cookie_date(int64_t seconds, char separator, char dst[static ORIBI_COOKIE_DATE_CAP]);

/* Reads the `expires` of Cookie::Baker: digits (seconds since the epoch), a number with a sign, a point or one of the
 * units s m h d M y (from now on), `now`. Anything else is a date as it stands. True, and sets *seconds: it is to be
 * written as a date. */
bool oribi_cookie_expires(struct oribi_slice text, int64_t now, int64_t *seconds);

#endif
