/* An option's one line to its word in the configuration file, for --print-config. Reading order:
 * oribi_option_print_word, take_apart, print_settings. */
#include "config/arguments_private.h"

#include "oribi/base/buf.h"
#include "oribi/http/percent.h"

#include <stdio.h>
#include <string.h>

static void put_text(struct oribi_buf *out, const char *text)
{
    oribi_buf_append(out, text, strlen(text));
}

/* --- literals --- */

static bool is_control(char c)
{
    return (unsigned char)c < 0x20 || c == 0x7f;
}

static void put_char(struct oribi_buf *out, char c, const char *escaped)
{
    char hex[8];
    if (c && strchr(escaped, c))
        put_text(out, "\\");
    (void)snprintf(hex, sizeof(hex), "\\x%02X", (unsigned char)c); /* it fits; both languages read two digits */
    if (c == '\n')
        put_text(out, "\\n");
    else if (is_control(c))
        put_text(out, hex);
    else
        oribi_buf_append(out, &c, 1);
}

/* Perl's have single quotes unless a control character is among them. */
static void put_literal(struct oribi_buf *out, struct oribi_slice text, enum oribi_option_lang lang)
{
    bool single = lang == ORIBI_LANG_PERL;
    for (size_t i = 0; i < text.n; i++)
        single = single && !is_control(text.p[i]);
    const char *escaped = single ? "'\\" : lang == ORIBI_LANG_PERL ? "\"\\$@" : "\"\\#";
    put_text(out, single ? "'" : "\"");
    for (size_t i = 0; i < text.n; i++)
        put_char(out, text.p[i], escaped);
    put_text(out, single ? "'" : "\"");
}

static void put_numbers(struct oribi_buf *out, struct oribi_slice text)
{
    bool list = memchr(text.p, ',', text.n) != NULL;
    put_text(out, list ? "[" : "");
    for (size_t i = 0; i < text.n; i++)
        oribi_buf_append(out, text.p[i] == ',' ? ", " : text.p + i, text.p[i] == ',' ? 2 : 1);
    put_text(out, list ? "]" : "");
}

/* --- arguments by their place --- */

/* Where the part's text ends in [p, stop): NULL when it has none, which it need not have. */
static const char *end_in(const struct oribi__form *form, const struct oribi__part *part, const char *p,
                          const char *stop)
{
    char first[ORIBI__PART_NAME_CAP];
    char end = oribi__part_end(form, part);
    const char *at = end ? memchr(p, end, (size_t)(stop - p)) : NULL;
    if (!part->optional || !part->after)
        return at || part->after ? at : stop;
    if (!at)
        return NULL;
    (void)snprintf(first, sizeof(first), "%.*s", (int)(at - p), p); /* cut: what tells the kind comes first */
    return oribi__part_fits(part, first) ? at : NULL;
}

/* Numbers are printed as they are, so nothing else may stand there. */
static bool fits(const struct oribi__part *part, struct oribi_slice text)
{
    for (size_t i = 0; part->kind == '#' && i < text.n; i++)
        if (text.p[i] != ',' && (text.p[i] < '0' || text.p[i] > '9'))
            return false;
    return true;
}

/* Finds each argument's text, by place; p is NULL for those left out. False: the line has another form. */
static bool take_apart(const struct oribi__form *form, const char *line, size_t n,
                       struct oribi_slice texts[ORIBI__PARTS_MAX])
{
    const char *p = line;
    const char *stop = line + n;
    for (uint32_t i = 0; i < form->count; i++) {
        const struct oribi__part *part = &form->parts[i];
        texts[part->place] = oribi_slice(NULL, 0);
        if (part->before && (p == stop || *p != part->before))
            continue;
        p += part->before != '\0';
        const char *end = end_in(form, part, p, stop);
        if (!end && !part->optional)
            return false;
        if (!end)
            continue;
        texts[part->place] = oribi_slice(p, (size_t)(end - p));
        if (!fits(part, texts[part->place]))
            return false;
        p = end + (part->after != '\0');
    }
    return p == stop;
}

/* --- settings --- */

struct setting {
    struct oribi_slice name;
    struct oribi_slice value;
};

/* The setting at *p, which is moved behind it. False: there is no more. */
static bool next_setting(const char **p, struct setting *setting)
{
    size_t n = strcspn(*p, "&");
    size_t name_n = strcspn(*p, "=&");
    if (!**p)
        return false;
    setting->name = oribi_slice(*p, name_n);
    setting->value = oribi_slice(*p + name_n, 0);
    if (name_n < n)
        setting->value = oribi_slice(*p + name_n + 1, n - name_n - 1);
    *p += n + ((*p)[n] == '&');
    return true;
}

static void put_value(struct oribi_buf *out, struct oribi_slice value, bool is_switch, enum oribi_option_lang lang)
{
    struct oribi_buf text = {0};
    char *decoded = oribi_buf_reserve(&text, value.n + 1);
    ssize_t n = oribi_percent_decode(value, decoded); /* the option has been read, so that it succeeds */
    if (is_switch && lang == ORIBI_LANG_RUBY)
        put_text(out, oribi_slice_equal(value, ORIBI_SLICE("on")) ? "true" : "false");
    else
        put_literal(out, n < 0 ? value : oribi_slice(decoded, (size_t)n), lang);
    oribi_buf_deinit(&text);
}

/* All values of one name; several are a list. */
static void put_values(struct oribi_buf *out, const char *settings, struct oribi_slice name, bool is_switch,
                       enum oribi_option_lang lang)
{
    struct setting setting;
    size_t count = 0;
    for (const char *p = settings; next_setting(&p, &setting);)
        count += oribi_slice_equal(setting.name, name);
    bool list = count > 1;
    put_text(out, list ? "[" : "");
    for (const char *p = settings; next_setting(&p, &setting);) {
        if (!oribi_slice_equal(setting.name, name))
            continue;
        put_value(out, setting.value, is_switch, lang);
        put_text(out, --count > 0 ? ", " : "");
    }
    put_text(out, list ? "]" : "");
}

static bool was_before(const char *settings, struct oribi_slice name)
{
    struct setting setting;
    for (const char *p = settings; next_setting(&p, &setting) && setting.name.p < name.p;)
        if (oribi_slice_equal(setting.name, name))
            return true;
    return false;
}

static void print_settings(struct oribi_buf *out, const struct oribi_option *option, const char *settings,
                           enum oribi_option_lang lang)
{
    struct setting setting;
    for (const char *p = settings; next_setting(&p, &setting);) {
        char name[ORIBI__PART_NAME_CAP];
        bool is_switch = false;
        (void)snprintf(name, sizeof(name), "%.*s", (int)setting.name.n, setting.name.p); /* cut: then it is unknown */
        if (was_before(settings, setting.name) || !oribi__setting_find(option, name, &is_switch))
            continue;
        put_text(out, ", ");
        put_text(out, name);
        put_text(out, lang == ORIBI_LANG_PERL ? " => " : ": ");
        put_values(out, settings, setting.name, is_switch, lang);
    }
}

/* --- the word --- */

void oribi_option_print_word(struct oribi_buf *out, const struct oribi_option *option, const char *line,
                             enum oribi_option_lang lang)
{
    struct oribi__form form;
    struct oribi_slice texts[ORIBI__PARTS_MAX];
    bool first = true;
    oribi__form_read(&option->composed, &form);
    size_t n = form.settings ? strcspn(line, "?") : strlen(line);
    put_text(out, option->name);
    if (!take_apart(&form, line, n, texts)) {
        put_text(out, " ");
        put_literal(out, oribi_slice(line, strlen(line)), lang);
        put_text(out, lang == ORIBI_LANG_PERL ? ";" : "");
        return;
    }
    for (uint32_t place = 0; place < form.count; place++) {
        if (!texts[place].p)
            continue;
        put_text(out, first ? " " : ", ");
        if (form.parts[form.part_of[place]].kind == '#')
            put_numbers(out, texts[place]);
        else
            put_literal(out, texts[place], lang);
        first = false;
    }
    if (line[n] == '?')
        print_settings(out, option, line + n + 1, lang);
    put_text(out, lang == ORIBI_LANG_PERL ? ";" : "");
}
