/* Failure page: a developer sees it in the place of an answer: an error with its message, the lines of the source
 * around it, the trace with the application's frames first, and the request without its secrets. One look for both
 * languages, as HTML for browsers, plain text for curl, and JSON for who asks for it. For development alone.
 *
 * A binding says what it knows as facts, in this order:
 *
 *   kind       name              value
 *   program                      "oribi 0.1.0, ruby 3.3.0"
 *   title                        "GET /cart", "config.ru cannot be loaded"
 *   class                        "KeyError"
 *   message                      of the error, in as many lines as it has
 *   note                         a sentence of what to do
 *   root                         a folder of the application; its frames come first. Several are allowed
 *   frame      name of function  "path:line", innermost first
 *   cause                        "RuntimeError: connection refused (lib/shop.rb:12)"
 *   param      "user[name]"      a parameter that the application has read from the body
 *   env        key               value, of a Rack or PSGI environment
 *   ask        key               the same, when it shall choose the form and not be shown
 */
#ifndef ORIBI_DEVELOP_FAILURE_PAGE_H
#define ORIBI_DEVELOP_FAILURE_PAGE_H

#include "oribi/base/buf.h"

struct oribi_failure_fact {
    struct oribi_slice kind;
    struct oribi_slice name;
    struct oribi_slice value;
};

/* Appends the page to `out` and returns its content type, a constant. Borrows the facts. The fields Accept and
 * X-Requested-With among them choose the form. Facts of another kind and those behind ORIBI_FAILURE_FACTS_MAX are left
 * out, values are cut at ORIBI_FAILURE_VALUE_BYTES_MAX and messages at ORIBI_FAILURE_MESSAGE_BYTES_MAX. Values of
 * fields and parameters whose names speak of secrets, and those of cookies, are not shown. Where memory is out the rest
 * is missing. */
const char *oribi_failure_page(const struct oribi_failure_fact *facts, size_t count, struct oribi_buf *out);

#endif
