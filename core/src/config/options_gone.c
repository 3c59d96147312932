/* cancel_gone: off, on, or the methods whose calls are ended when their client has gone. */
#include "config/options_private.h"

#include "oribi/http/scan.h"

#include <string.h>

static const char *const methods_default = "GET,HEAD";

/* The methods, separated by commas or spaces; NULL: none. */
static const char *methods_of(const struct oribi_options *options)
{
    const char *text = options->cancel_gone;
    if (!text || strcmp(text, "off") == 0)
        return NULL;
    return strcmp(text, "on") == 0 ? methods_default : text;
}

/* The next one at *p, which moves behind it; n 0 at the end. */
static struct oribi_slice next_method(const char **p)
{
    *p += strspn(*p, ", ");
    struct oribi_slice method = oribi_slice(*p, strcspn(*p, ", "));
    *p += method.n;
    return method;
}

static bool is_method(struct oribi_slice method)
{
    for (size_t i = 0; i < method.n; i++)
        if (method.p[i] >= 'a' && method.p[i] <= 'z')
            return false; /* methods are case-sensitive (RFC 9110 9.1), and all that are in use are in capitals */
    return method.n <= ORIBI_METHOD_BYTES_MAX && oribi_scan_is_token(method.p, method.n);
}

int oribi__options_check_gone(const struct oribi_options *options, char *error)
{
    const char *methods = methods_of(options);
    if (!methods)
        return 0;
    if (!options->helper)
        return oribi__refuse(error, "cancel_gone needs helper, which notices that a client has left");
    for (struct oribi_slice method; (method = next_method(&methods)).n > 0;)
        if (!is_method(method))
            return oribi__refuse(error,
                                 "cancel_gone takes off, on, or methods in capitals, GET,HEAD for one; not \"%.*s\"",
                                 method.n > 60 ? 60 : (int)method.n, method.p);
    return 0;
}

bool oribi_options_cancels_any(const struct oribi_options *options)
{
    return methods_of(options) != NULL;
}

bool oribi_options_cancels(const struct oribi_options *options, struct oribi_slice method)
{
    const char *methods = methods_of(options);
    if (!methods)
        return false;
    for (struct oribi_slice one; (one = next_method(&methods)).n > 0;)
        if (oribi_slice_equal(one, method))
            return true;
    return false;
}
