/* Arguments of a configuration file's word to its option's one line. Reading order: oribi_options_set_arguments,
 * compose, then what a part and a setting become. */
#include "config/arguments_private.h"

#include "oribi/base/buf.h"
#include "oribi/base/error.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct composing {
    const struct oribi_option *option;
    const char *name; /* as the user wrote it */
    struct oribi__form form;
    const struct oribi_argument *arguments;
    size_t count;
    uint32_t places; /* arguments that count by their place */
    struct oribi_buf line;
    char *error;
};

/* NUL-terminated after each call. */
static void put(struct oribi_buf *out, const char *text, size_t n)
{
    char *end = oribi_buf_reserve(out, n + 1) + n;
    *end = '\0';
    oribi_buf_append(out, text, n);
}

/* --- arguments by their place --- */

static int refuse_count(const struct composing *c)
{
    char signature[ORIBI__SIGNATURE_CAP];
    oribi__form_signature(c->option, &c->form, signature);
    if (c->places > c->form.count)
        return oribi__refuse(c->error, "%s takes at most %u argument%s, not %u: %s", c->name, c->form.count,
                             c->form.count == 1 ? "" : "s", c->places, signature);
    uint32_t missing = 0;
    while (missing < c->places || c->form.parts[c->form.part_of[missing]].optional)
        missing++; /* ends: fewer than the required ones are there */
    return oribi__refuse(c->error, "%s needs %s: %s", c->name, c->form.parts[c->form.part_of[missing]].name, signature);
}

/* The place whose argument this part has, or -1. Where fewer arguments are given than there are parts, those that may
 * be left out have none. */
static int64_t place_of(const struct composing *c, const struct oribi__part *part)
{
    uint32_t place = part->place;
    if (c->places == c->form.count)
        return place;
    for (uint32_t i = 0; i < part->place; i++)
        place -= c->form.parts[c->form.part_of[i]].optional;
    return part->optional ? -1 : (int64_t)place;
}

static int check_text(const struct composing *c, const struct oribi__part *part, const char *text)
{
    char quoted[OPTION_QUOTE_CAP];
    char end = oribi__part_end(&c->form, part);
    if (!text)
        return oribi__refuse(c->error, "%s: %s must be text", c->name, part->name);
    if (!oribi__part_fits(part, text))
        return oribi__refuse(c->error, "%s: %s must %s, not \"%s\"", c->name, part->name,
                             part->kind == '/' ? "begin with a slash" : "be a number",
                             oribi__option_quote(text, quoted));
    if (end && strchr(text, end))
        return oribi__refuse(c->error, "%s: %s must not contain \"%c\": \"%s\"", c->name, part->name, end,
                             oribi__option_quote(text, quoted));
    return 0;
}

/* The text of one place, or its numbers. */
static int put_part(struct composing *c, const struct oribi__part *part, uint32_t place)
{
    size_t found = 0;
    if (part->before)
        put(&c->line, &part->before, 1);
    for (size_t i = 0; i < c->count; i++) {
        const struct oribi_argument *argument = &c->arguments[i];
        if (argument->keyword || argument->place != place)
            continue;
        int code = check_text(c, part, argument->text);
        if (code < 0)
            return code;
        if (found++ > 0 && part->kind != '#')
            return oribi__refuse(c->error, "%s: %s must be one text, not a list", c->name, part->name);
        put(&c->line, ",", found > 1);
        put(&c->line, argument->text, strlen(argument->text));
    }
    if (found == 0)
        return oribi__refuse(c->error, "%s: %s must not be an empty list", c->name, part->name);
    put(&c->line, &part->after, part->after != '\0');
    return 0;
}

/* --- settings --- */

static int refuse_setting(const struct composing *c, const char *keyword)
{
    char nearest[ORIBI_SUGGEST_WORD_MAX + 1] = "";
    char known[128] = "";
    char quoted[OPTION_QUOTE_CAP];
    uint32_t best = UINT32_MAX;
    size_t len = 0;
    if (!c->option->composed.settings) {
        char signature[ORIBI__SIGNATURE_CAP];
        oribi__form_signature(c->option, &c->form, signature);
        return oribi__refuse(c->error, "%s has no settings, such as %s: %s", c->name,
                             oribi__option_quote(keyword, quoted), signature);
    }
    for (const char *p = c->option->composed.settings; *p;) {
        char word[ORIBI_SUGGEST_WORD_MAX + 1];
        (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(p, " ?"), p); /* the table's own words are short */
        uint32_t distance = oribi_suggest_distance(keyword, word);
        if (distance < best) {
            best = distance;
            memcpy(nearest, word, sizeof(nearest));
        }
        len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", len > 0 ? ", " : "", word);
        assert(len < sizeof(known));
        p += strcspn(p, " ");
        p += *p == ' ';
    }
    if (oribi_suggest_likely(keyword, best))
        return oribi__refuse(c->error, "%s has no setting \"%s\": did you mean %s?", c->name,
                             oribi__option_quote(keyword, quoted), nearest);
    return oribi__refuse(c->error, "%s has no setting \"%s\" (known: %s)", c->name,
                         oribi__option_quote(keyword, quoted), known);
}

/* Appends text, with bytes escaped that would end the value, and control characters, which no line may have. */
static void put_escaped(struct oribi_buf *out, const char *text)
{
    for (; *text; text++) {
        char escape[4];
        bool plain = *text != '%' && *text != '&' && (unsigned char)*text >= 0x20 && *text != 0x7f;
        (void)snprintf(escape, sizeof(escape), "%%%02X", (unsigned char)*text); /* it fits */
        put(out, plain ? text : escape, plain ? 1 : 3);
    }
}

static int put_setting(struct composing *c, const struct oribi_argument *argument)
{
    char quoted[OPTION_QUOTE_CAP];
    bool is_switch = false;
    bool on = false;
    const char *text = argument->text;
    if (!oribi__setting_find(c->option, argument->keyword, &is_switch))
        return refuse_setting(c, argument->keyword);
    if (!text)
        return oribi__refuse(c->error, "%s: %s must be text", c->name, argument->keyword);
    if (is_switch && !oribi__option_read_switch(text, &on))
        return oribi__refuse(c->error, "%s: %s must be on or off, not \"%s\"", c->name, argument->keyword,
                             oribi__option_quote(text, quoted));
    if (is_switch)
        text = on ? "on" : "off";
    put(&c->line, argument->keyword, strlen(argument->keyword));
    put(&c->line, "=", 1);
    if (argument->key) {
        put_escaped(&c->line, argument->key);
        put(&c->line, ":", 1);
    }
    put_escaped(&c->line, text);
    return 0;
}

/* --- the word --- */

static int compose(struct composing *c)
{
    bool first = true;
    if (c->places < c->form.required || c->places > c->form.count)
        return refuse_count(c);
    for (uint32_t i = 0; i < c->form.count; i++) {
        int64_t place = place_of(c, &c->form.parts[i]);
        int code = place < 0 ? 0 : put_part(c, &c->form.parts[i], (uint32_t)place);
        if (code < 0)
            return code;
    }
    for (size_t i = 0; i < c->count; i++) {
        if (!c->arguments[i].keyword)
            continue;
        put(&c->line, first ? "?" : "&", 1);
        int code = put_setting(c, &c->arguments[i]);
        if (code < 0)
            return code;
        first = false;
    }
    return 0;
}

/* One argument and nothing else is a whole line, unless it lacks what must stand behind its first part. In a list a
 * first part that may be left out counts too where the text looks like one: ["/assets", "public/assets"] would else be
 * two folders for the root. */
static bool is_line(const struct composing *c, const char *text)
{
    const struct oribi__part *first = &c->form.parts[0];
    char end = oribi__part_end(&c->form, first);
    bool optional = first->optional && (c->count == 1 || !oribi__part_fits(first, text));
    return c->form.count == 1 || optional || (c->form.required <= 1 && !first->optional) || strchr(text, end);
}

static int set_lines(const struct composing *c, struct oribi_options *options, enum oribi_option_source source)
{
    if (c->count > 1 && c->option->type != ORIBI_OPTION_LIST)
        return oribi__refuse(c->error, "%s takes one value, not %zu", c->name, c->count);
    for (size_t i = 0; i < c->count; i++) {
        char quoted[OPTION_QUOTE_CAP];
        const char *text = c->arguments[i].text;
        if (!text)
            return oribi__refuse(c->error, "%s must be text", c->name);
        if (!is_line(c, text) && c->count > 1)
            return oribi__refuse(c->error, "%s: each item of a list is a whole line, %s, which \"%s\" is not", c->name,
                                 c->option->argument, oribi__option_quote(text, quoted));
        if (!is_line(c, text))
            return refuse_count(c);
        int code = oribi__option_set(options, source, c->option, c->name, text, c->error);
        if (code < 0)
            return code;
    }
    return 0;
}

int oribi_options_set_arguments(struct oribi_options *options, enum oribi_option_source source, const char *name,
                                const struct oribi_argument *arguments, size_t count, char *error)
{
    struct composing c = {.name = name, .arguments = arguments, .count = count, .error = error};
    bool has_keywords = false;
    c.option = oribi_options_find(name);
    assert(c.option && c.option->composed.form); /* bindings ask for this only there */
    oribi__form_read(&c.option->composed, &c.form);
    if (count > ORIBI_ARGUMENTS_MAX)
        return oribi__refuse(error, "%s takes at most %d texts", name, ORIBI_ARGUMENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        has_keywords |= arguments[i].keyword != NULL;
        if (!arguments[i].keyword && arguments[i].place >= c.places)
            c.places = arguments[i].place + 1;
    }
    if ((c.places == 1 || oribi_option_takes_lines(c.option)) && !has_keywords)
        return set_lines(&c, options, source);
    int code = compose(&c);
    if (code == 0)
        code = oribi__option_set(options, source, c.option, name, c.line.p, error);
    oribi_buf_deinit(&c.line);
    return code;
}
