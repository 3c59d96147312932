/* Forms, query strings and cookies: pairs out of text, and text to what stands for it in them. */
#ifndef ORIBI_FORM_URLENCODED_H
#define ORIBI_FORM_URLENCODED_H

#include "oribi/base/error.h"
#include "oribi/base/limits.h"
#include "oribi/base/buf.h"

#include <stddef.h>
#include <stdint.h>

/* ---- marks ---- */

/* Where a form or a cookie is cut: the places of `% & + ; =`, found some at a time. A part of the parsers of this
 * folder; not used by itself. */

enum { ORIBI_MARKS_CAP = 192 };

struct oribi_marks {
    /* private */
    const char *p;
    size_t n;
    size_t looked; /* bytes whose marks have been found */
    size_t base;   /* where the bytes begin that `places` counts from */
    size_t at;
    size_t count;
    uint32_t places[ORIBI_MARKS_CAP];
};

/* ---- urlencoded ---- */

/* Forms as application/x-www-form-urlencoded, and query strings: bytes to pairs. One pass over the bytes, no
 * allocation; pairs without escapes lie where the form lies.
 *
 *     struct oribi_form form;
 *     struct oribi_form_pair pair;
 *     int code = oribi_form_begin(&form, in, room, ORIBI_FORM_RACK, &limits);
 *     while (code == 0 && (code = oribi_form_next(&form, &pair)) > 0)
 *         …
 *
 * The way back, pairs to bytes, is below. */

/* Rules in which readers of forms differ. 0: `&` separates, every `&` ends a pair, `+` is a space, and a `%` without
 * two hexadecimal digits stays as it is. */
enum oribi_form_rule {
    ORIBI_FORM_SEMICOLON = 1,   /* `;` separates too */
    ORIBI_FORM_SKIP_EMPTY = 2,  /* nothing between two separators is no pair */
    ORIBI_FORM_BLANK = 4,       /* one space in front of a pair is dropped */
    ORIBI_FORM_BLANKS = 8,      /* all spaces behind a separator are dropped */
    ORIBI_FORM_STRICT = 16,     /* a `%` without two hexadecimal digits is an error */
    ORIBI_FORM_PLUS_STAYS = 32, /* `+` is a plus */

    /* as WWW::Form::UrlEncoded::XS 0.28, and as Rack 3.2 */
    ORIBI_FORM_PERL = ORIBI_FORM_SEMICOLON | ORIBI_FORM_BLANK,
    ORIBI_FORM_RACK = ORIBI_FORM_SKIP_EMPTY | ORIBI_FORM_BLANKS | ORIBI_FORM_STRICT,
};

enum oribi_form_fault {
    ORIBI_FORM_FINE,
    ORIBI_FORM_LONG,
    ORIBI_FORM_PAIRS,
    ORIBI_FORM_KEY,
    ORIBI_FORM_ESCAPE,
};

struct oribi_form_limits {
    size_t pairs_max;
    size_t key_bytes_max; /* of one key, decoded */
    size_t bytes_max;     /* of the whole form as it came; at most ORIBI_FORM_BYTES_CAP */
};

struct oribi_form_pair {
    struct oribi_slice key;
    struct oribi_slice value;
    bool bare; /* there was no `=`; the value is empty */
};

struct oribi_form {
    size_t count; /* pairs given so far */
    /* private */
    struct oribi_marks marks;
    struct oribi_form_limits limits;
    char *room;
    size_t pos;
    unsigned rules;
    enum oribi_form_fault fault;
    bool ended;
};

void oribi_form_limits_init(struct oribi_form_limits *limits);

/* Begins with the form `in`, which is borrowed until the last pair has been used, as is `room`: in.n bytes for what has
 * to be decoded. It may be in.p itself (cast), when those bytes may be overwritten. `rules` are bits of enum
 * oribi_form_rule. Returns 0, or ORIBI_ELIMIT when `in` is longer than bytes_max. */
int oribi_form_begin(struct oribi_form *form, struct oribi_slice in, char *room, unsigned rules,
                     const struct oribi_form_limits *limits);

/* Fills `pair` with the next pair, whose slices lie in the form or in `room` and stay. Returns 1; 0 behind the last
 * pair; ORIBI_ELIMIT for one of the limits or ORIBI_EBAD for an escape that ORIBI_FORM_STRICT does not take, and then
 * the same again. */
int oribi_form_next(struct oribi_form *form, struct oribi_form_pair *pair);

/* Behind an error: the status that answers it, 400 or 413, and what is wrong in a line for the application. */
int oribi_form_status(const struct oribi_form *form);
void oribi_form_explain(const struct oribi_form *form, char text[static ORIBI_ERROR_TEXT_CAP]);

/* ---- escape ---- */

/* Text to what stands for it in forms, query strings and cookies: the way back of form/urlencoded.h. Pure. */

enum { ORIBI_FORM_GROWTH = 3 }; /* bytes that one byte becomes at most */

/* Which bytes stay as they are beside letters and digits. */
enum oribi_form_escape {
    ORIBI_ESCAPE_PERL,       /* - . _ ~ ! ' ( ) *   as WWW::Form::UrlEncoded::XS */
    ORIBI_ESCAPE_WHATWG,     /* - . _ *             URL Standard 5.2, and Rack::Utils.escape */
    ORIBI_ESCAPE_UNRESERVED, /* - . _ ~             RFC 3986 2.3, and URI::Escape */
};

/* Writes the text at dst, which has room for ORIBI_FORM_GROWTH times the text, with all bytes outside the set as %XX, a
 * space as `+` where `plus` says so. Returns behind the last byte. */
char *oribi_form_escape(char *dst, struct oribi_slice text, enum oribi_form_escape set, bool plus);

#endif
