/* Options that are set and do nothing, since no address has what they are for. */
#include "oribi/supervisor/frontends.h"

#include "oribi/base/log.h"

#include <stdio.h>

/* Those whose absence could be taken for a protection are errors (config/listener.c). */
static const struct {
    const char *name;
    bool of_tls; /* else of any frontend */
} unused[] = {{"hsts", true},
              {"tls_min", true},
              {"http2", true},
              {"certificate_password_command", true},
              {"frontends", false},
              {"frontend_user", false},
              {"frontend_sandbox", false}};

bool oribi__frontend_unused(const struct oribi_options *options, bool tls, bool frontend, size_t *at, char *line)
{
    while (*at < sizeof(unused) / sizeof(unused[0])) {
        const char *name = unused[*at].name;
        bool of_tls = unused[(*at)++].of_tls;
        if ((of_tls ? tls : frontend) || oribi_options_source(options, oribi_options_find(name)) == ORIBI_FROM_DEFAULT)
            continue;
        (void)snprintf(line, ORIBI_ERROR_TEXT_CAP, "%s is set, and no address %s", name,
                       of_tls ? "begins with tls://" : "has a frontend (tls://, ?frontend=on)"); /* fits */
        return true;
    }
    return false;
}

void oribi__frontends_warn_of_unused(const struct oribi_options *options, const struct oribi_listeners *listeners)
{
    char line[ORIBI_ERROR_TEXT_CAP];
    size_t at = 0;
    bool tls = false;
    for (uint32_t i = 0; i < listeners->count; i++)
        tls |= listeners->items[i].tls;
    while (oribi__frontend_unused(options, tls, oribi__frontends_wanted(listeners), &at, line))
        oribi_log(ORIBI_LOG_WARN, "%s", line);
    if (options->https_redirect && !tls && options->trusted_proxies.count == 0)
        oribi_log(ORIBI_LOG_WARN, "https_redirect is set, and nothing here is known to speak HTTPS");
}
