/* Options that a reload takes over. The processes of a new generation read the configuration anew; the supervisor goes
 * on with the options of its start, and hears from the new generation what has changed:
 *
 *   mold: announce ──"name=value" lines──► supervisor: reloads? the new value counts : a warning
 *
 * Options of text and lists that a reload takes over concern molds and workers alone, which have them already. */
#include "config/options_private.h"
#include "oribi/base/log.h"
#include "oribi/base/buf.h"
#include "oribi/base/escape.h"
#include "oribi/base/mem.h"

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
        oribi_log(ORIBI_LOG_WARN, "reload: %s: the new value takes effect at a restart or upgrade", option->name);
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

/* ---- options_differing ---- */

/* Options that an operator has set, in few words: for the log at a start, and for the changes of a reload.
 *
 *   options ──oribi_options_differing()──► "workers 0a4f… 4\n…" ──show──► "workers 4, call_timeout 30s"
 *   two of those texts ──oribi_options_show_changes()──► "workers 2 → 4"
 *
 * The texts travel from a new generation to its supervisor, so a value is shortened in them; a fingerprint of all of it
 * tells whether two are the same. */

enum {
    VALUE_MAX = 64 * 1024, /* bytes of a value that are compared */
    SHOWN_MAX = 60,        /* bytes of a value that are shown */
    SHOWN_CAP = SHOWN_MAX + 32,
    TEXT_BYTES_MAX = 1200, /* of what is shown of all options together, more or less */
};

static void put(struct oribi_buf *out, const char *text)
{
    oribi_buf_append(out, text, strlen(text));
}

/* FNV-1a: texts of one operator are compared, none is hidden by it. */
static uint32_t fingerprint(const char *text)
{
    uint32_t hash = 2166136261u;
    for (const char *p = text; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    return hash;
}

/* Where they stand in other lines of the log, or say nothing of the server. */
static bool is_left_out(const struct oribi_option *option)
{
    static const char *const names[] = {"bind", "host", "port", "env", "config"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(option->name, names[i]) == 0)
            return true;
    return option->group == ORIBI_GROUP_COMMAND;
}

/* The first item of several, with their number. */
static void shorten(const struct oribi_option *option, const char *value, char shown[SHOWN_CAP])
{
    size_t n = strcspn(value, "\n");
    size_t more = 0;
    for (const char *p = value + n; *p; p++)
        more += *p == '\n';
    if (option->secret)
        (void)snprintf(shown, SHOWN_CAP, "(not shown)");
    else if (option->type == ORIBI_OPTION_CODE)
        (void)snprintf(shown, SHOWN_CAP, "(%zu bytes)", strlen(value));
    else if (more)
        (void)snprintf(shown, SHOWN_CAP, "%.*s%s (and %zu more)", n < SHOWN_MAX ? (int)n : SHOWN_MAX, value,
                       n > SHOWN_MAX ? "..." : "", more);
    else
        (void)snprintf(shown, SHOWN_CAP, "%.*s%s", n < SHOWN_MAX ? (int)n : SHOWN_MAX, value,
                       n > SHOWN_MAX ? "..." : "");
    if (!*shown)
        (void)snprintf(shown, SHOWN_CAP, "\"\"");
}

void oribi_options_differing(const struct oribi_options *options, struct oribi_buf *out)
{
    size_t count;
    struct oribi_options defaults;
    const struct oribi_option *table = oribi_options_table(&count);
    char *value = oribi_mem_alloc(2, VALUE_MAX);
    char *usual = value + VALUE_MAX;
    oribi_options_init(&defaults);
    for (size_t i = 0; i < count; i++) {
        char shown[SHOWN_CAP];
        char line[SHOWN_CAP + 64];
        if (!(table[i].lang & options->lang) || is_left_out(&table[i]) ||
            oribi_options_source(options, &table[i]) <= ORIBI_FROM_LAUNCHER)
            continue;
        (void)oribi_options_get(options, &table[i], value, VALUE_MAX);
        (void)oribi_options_get(&defaults, &table[i], usual, VALUE_MAX);
        if (!table[i].default_note && strcmp(value, usual) == 0)
            continue; /* else its default depends on something, and this value does not */
        shorten(&table[i], value, shown);
        (void)snprintf(line, sizeof(line), "%s %08x %s\n", table[i].name, fingerprint(value), shown); /* fits */
        put(out, line);
    }
    oribi_options_deinit(&defaults);
    oribi_mem_free(value);
    oribi_buf_append(out, "", 1);
}

/* --- showing --- */

struct line {
    const char *print; /* eight digits; NULL: the option has its default */
    struct oribi_slice shown;
};

static struct line line_of(const char *lines, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = lines; *p;) {
        const char *end = strchr(p, '\n');
        if (!end)
            break;
        if ((size_t)(end - p) > n + 10 && p[n] == ' ' && memcmp(p, name, n) == 0)
            return (struct line){p + n + 1, oribi_slice(p + n + 10, (size_t)(end - p) - n - 10)};
        p = end + 1;
    }
    return (struct line){NULL, oribi_slice(NULL, 0)};
}

bool oribi_options_differing_is(const char *lines, const char *name, const char *value)
{
    struct line line = line_of(lines, name);
    return line.print && oribi_slice_equal(line.shown, oribi_slice(value, strlen(value)));
}

static void put_slice(struct oribi_buf *out, struct oribi_slice text)
{
    oribi_buf_append(out, text.p, text.n);
}

/* A value, or what holds without one. */
static struct oribi_slice value_of(const struct oribi_option *option, const struct line *line, char room[SHOWN_CAP])
{
    if (line->print)
        return line->shown;
    if (option->default_note || !option->default_text || !*option->default_text)
        (void)snprintf(room, SHOWN_CAP, "%s", option->default_note ? "its default" : "not set");
    else
        (void)snprintf(room, SHOWN_CAP, "%.*s", SHOWN_MAX, option->default_text);
    return oribi_slice(room, strlen(room));
}

static void begin_item(struct oribi_buf *text, struct oribi_buf *json, const char *name)
{
    put(text, text->len ? ", " : "");
    put(text, name);
    put(text, " ");
    put(json, json->len ? ",\"" : "\"");
    put(json, name);
    put(json, "\":");
}

static void end_items(struct oribi_buf *text, size_t left_out)
{
    char more[64];
    if (left_out) {
        (void)snprintf(more, sizeof(more), " and %zu more (--print-config shows all)", left_out);
        put(text, more);
    }
}

void oribi_options_show(const char *lines, struct oribi_buf *text, struct oribi_buf *json)
{
    size_t count;
    size_t left_out = 0;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++) {
        struct line line = line_of(lines, table[i].name);
        if (line.print && text->len > TEXT_BYTES_MAX)
            left_out++;
        if (!line.print || text->len > TEXT_BYTES_MAX)
            continue;
        begin_item(text, json, table[i].name);
        put_slice(text, line.shown);
        oribi_escape_append_json(json, line.shown);
    }
    end_items(text, left_out);
}

void oribi_options_show_changes(const char *before, const char *now, struct oribi_buf *text, struct oribi_buf *json)
{
    size_t count;
    size_t left_out = 0;
    const struct oribi_option *table = oribi_options_table(&count);
    for (size_t i = 0; i < count; i++) {
        char room[2][SHOWN_CAP];
        struct line lines[2] = {line_of(before, table[i].name), line_of(now, table[i].name)};
        bool same = lines[0].print && lines[1].print ? memcmp(lines[0].print, lines[1].print, 8) == 0
                                                     : lines[0].print == lines[1].print;
        if (same || !table[i].reloads)
            continue;
        if (text->len > TEXT_BYTES_MAX) {
            left_out++;
            continue;
        }
        struct oribi_slice values[2] = {value_of(&table[i], &lines[0], room[0]),
                                        value_of(&table[i], &lines[1], room[1])};
        begin_item(text, json, table[i].name);
        put_slice(text, values[0]);
        put(text, " → ");
        put_slice(text, values[1]);
        put(json, "[");
        oribi_escape_append_json(json, values[0]);
        put(json, ",");
        oribi_escape_append_json(json, values[1]);
        put(json, "]");
    }
    end_items(text, left_out);
}
