/* Text to what stands for it in forms, query strings and cookies: the way back of form/urlencoded.h. Pure. */
#ifndef ORIBI_FORM_ESCAPE_H
#define ORIBI_FORM_ESCAPE_H

#include "oribi/base/slice.h"

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
