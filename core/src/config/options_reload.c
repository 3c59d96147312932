/* Options that a reload takes over. The processes of a new generation read the configuration anew; the supervisor goes
 * on with the options of its start, and hears from the new generation what has changed:
 *
 *   mold: announce ──"name=value" lines──► supervisor: reloads? the new value counts : a warning
 *
 * Options of text and lists that a reload takes over concern molds and workers alone, which have them already. */
#include "config/options_private.h"

#include "oribi/base/log.h"

#include <stdio.h>
#include <string.h>

enum { LINE_CAP = 256 }; /* a longer path is compared as far as it fits */

/* Setting one takes no memory, so that a supervisor without any takes it over as well. */
static bool is_number(const struct oribi_option *option)
{
    return option->type >= ORIBI_OPTION_BOOL;
}

static bool concerns_supervisor(const struct oribi_option *option)
{
    return option->group != ORIBI_GROUP_COMMAND && (is_number(option) || !option->reloads);
}

size_t oribi_options_announce(const struct oribi_options *options, char *dst, size_t cap)
{
    size_t count;
    size_t len = 0;
    const struct oribi_option *table = oribi_options_table(&count);
    dst[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char line[LINE_CAP];
        if (!(table[i].lang & options->lang) || !concerns_supervisor(&table[i]))
            continue;
        int n = snprintf(line, sizeof(line), "%s=", table[i].name);
        (void)oribi_options_get(options, &table[i], line + n, sizeof(line) - (size_t)n); /* cut, see LINE_CAP */
        size_t line_len = strcspn(line, "\n");
        if (len + line_len + 2 > cap)
            break;
        len += (size_t)snprintf(dst + len, cap - len, "%.*s\n", (int)line_len, line);
    }
    return len;
}

static const char *shown(const char *value)
{
    return *value ? value : "not set";
}

static void warn_of_restart(const struct oribi_options *running, const struct oribi_option *option, const char *value)
{
    char before[LINE_CAP];
    size_t room = sizeof(before) - strlen(option->name) - 1; /* as the line that told the value */
    (void)oribi_options_get(running, option, before, room);
    before[strcspn(before, "\n")] = '\0';
    if (strcmp(before, value) != 0 && option->secret)
        oribi_log(ORIBI_LOG_WARN, "reload: %s: another value takes effect at a restart", option->name);
    else if (strcmp(before, value) != 0)
        oribi_log(ORIBI_LOG_WARN, "reload: %s: %s takes effect at a restart; until then it stays %s", option->name,
                  shown(value), shown(before));
}

static void take_line(struct oribi_options *into, const char *text, size_t n)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    char line[LINE_CAP];
    (void)snprintf(line, sizeof(line), "%.*s", (int)n, text); /* as announced, it fits */
    char *value = strchr(line, '=');
    if (!value)
        return;
    *value++ = '\0';
    const struct oribi_option *option = oribi_options_find(line);
    if (!option || !concerns_supervisor(option))
        return; /* no line of ours */
    if (!option->reloads)
        warn_of_restart(into, option, value);
    else if (oribi__option_assign(into, option, option->name, value, error) < 0)
        oribi_log(ORIBI_LOG_WARN, "reload: %s", error);
}

void oribi_options_take_over(struct oribi_options *into, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        take_line(into, text, n);
        text += n + (text[n] == '\n');
    }
}
