/* Arguments of a configuration file's word to its option's one line. Reading order: oribi_options_set_arguments,
 * compose, then what a part and a setting become. */
#include "config/options_private.h"
#include "oribi/config/arguments.h"
#include "oribi/base/buf.h"
#include "oribi/base/error.h"
#include "oribi/http/syntax.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { ORIBI__PARTS_MAX = 4, ORIBI__PART_NAME_CAP = 24, ORIBI__SIGNATURE_CAP = 80 };

/* One argument's part of the line: `[3:]` is argument 3 with a colon after it, left out where it is not given. */
struct oribi__part {
    uint32_t place; /* of the argument */
    bool optional;
    char before; /* 0: none */
    char after;
    char kind; /* '/', '#', '*', '+' or 0: see struct oribi_option_composed */
    char name[ORIBI__PART_NAME_CAP];
};

struct oribi__form {
    struct oribi__part parts[ORIBI__PARTS_MAX]; /* in the order of the line */
    uint32_t part_of[ORIBI__PARTS_MAX];         /* by place: index of the part */
    uint32_t count;
    uint32_t required;
    bool settings;
};

void oribi__form_read(const struct oribi_option_composed *composed, struct oribi__form *form);

/* ---- arguments_form ---- */

/* The form of an option's line by the table: which argument stands where. */

/* The argument's name and kind, from "/PREFIX FOLDER". */
static void read_name(const char *arguments, uint32_t place, struct oribi__part *part)
{
    for (; place > 0; place--) {
        arguments += strcspn(arguments, " ");
        arguments += *arguments == ' ';
    }
    part->kind = *arguments && strchr("/#*+", *arguments) ? *arguments++ : '\0';
    size_t n = strcspn(arguments, " ");
    assert(n > 0 && n < ORIBI__PART_NAME_CAP); /* the table's own words */
    memcpy(part->name, arguments, n);
    part->name[n] = '\0';
}

static struct oribi__part *add_part(struct oribi__form *form, const char *arguments, uint32_t place)
{
    assert(form->count < ORIBI__PARTS_MAX && place < ORIBI__PARTS_MAX);
    struct oribi__part *part = &form->parts[form->count];
    form->part_of[place] = form->count++;
    *part = (struct oribi__part){.place = place};
    read_name(arguments, place, part);
    return part;
}

void oribi__form_read(const struct oribi_option_composed *composed, struct oribi__form *form)
{
    bool optional = false;
    char before = '\0';
    struct oribi__part *last = NULL;
    *form = (struct oribi__form){0};
    for (const char *p = composed->form; *p; p++) {
        if (*p == '[' || *p == ']') {
            optional = *p == '[';
        } else if (*p >= '1' && *p <= '9') {
            last = add_part(form, composed->arguments, (uint32_t)(*p - '1'));
            last->optional = optional;
            last->before = before;
            form->required += !optional;
            before = '\0';
        } else if (*p == '?') {
            form->settings = true;
        } else if (p > composed->form && p[-1] == '[') {
            before = *p;
        } else {
            assert(last);
            last->after = *p;
        }
    }
}

/* The character that ends the part's text in a line; 0: nothing does. */
static char part_end(const struct oribi__form *form, const struct oribi__part *part)
{
    const struct oribi__part *next = part + 1 < form->parts + form->count ? part + 1 : NULL;
    if (part->after)
        return part->after;
    if (next && next->before)
        return next->before;
    return !next && form->settings ? '?' : '\0';
}

/* Can `text` be an argument of this kind, as far as the kind tells? */
static bool part_fits(const struct oribi__part *part, const char *text)
{
    if (part->kind == '/')
        return *text == '/';
    return part->kind != '#' || (*text && strspn(text, "0123456789,") == strlen(text));
}

/* Writes "redirect FROM, TO[, STATUS]". */
static void form_signature(const struct oribi_option *option, const struct oribi__form *form,
                           char dst[ORIBI__SIGNATURE_CAP])
{
    size_t len = (size_t)snprintf(dst, ORIBI__SIGNATURE_CAP, "%s ", option->name);
    bool comma = false;
    for (uint32_t place = 0; place < form->count && len < ORIBI__SIGNATURE_CAP; place++) {
        const struct oribi__part *part = &form->parts[form->part_of[place]];
        bool leads = part->optional && place == 0; /* [PREFIX, ]FOLDER */
        len += (size_t)snprintf(dst + len, ORIBI__SIGNATURE_CAP - len, "%s%s%s%s%s", part->optional ? "[" : "",
                                comma ? ", " : "", part->name, leads ? ", " : "", part->optional ? "]" : "");
        if (part->kind == '+')
            len += (size_t)snprintf(dst + len, ORIBI__SIGNATURE_CAP - len, ", ...");
        comma = !leads;
    }
    assert(len < ORIBI__SIGNATURE_CAP); /* the table's own words */
}

void oribi_option_print_signature(struct oribi_buf *out, const struct oribi_option *option)
{
    char text[ORIBI__SIGNATURE_CAP];
    struct oribi__form form;
    oribi__form_read(&option->composed, &form);
    form_signature(option, &form, text);
    oribi_buf_append(out, text, strlen(text));
}

bool oribi_option_takes_lines(const struct oribi_option *option)
{
    struct oribi__form form;
    oribi__form_read(&option->composed, &form);
    return form.count == 1 && form.settings && form.parts[0].kind != '+';
}

/* No address is a word of small letters alone. */
static bool is_keyword(const char *text)
{
    return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz_") == strlen(text);
}

/* Is it one of the table's settings, and is that a switch? */
static bool setting_find(const struct oribi_option *option, const char *name, bool *is_switch)
{
    for (const char *p = option->composed.settings; p && *p;) {
        size_t n = strcspn(p, " ?");
        *is_switch = p[n] == '?';
        if (n == strlen(name) && memcmp(p, name, n) == 0)
            return true;
        p += strcspn(p, " ");
        p += *p == ' ';
    }
    return false;
}

size_t oribi_option_places(const struct oribi_option *option, const char *const *texts, size_t count)
{
    struct oribi__form form;
    bool is_switch;
    if (!option->composed.form)
        return count;
    oribi__form_read(&option->composed, &form);
    if (!form.settings || count < form.required)
        return count;
    if (form.parts[0].kind == '+') {
        for (size_t i = 1; i < count; i++)
            if ((count - i) % 2 == 0 && texts[i] && setting_find(option, texts[i], &is_switch))
                return i;
        return count;
    }
    if (form.count == 1 && count > 1 && texts[1] && !is_keyword(texts[1]))
        return count;
    return form.required + (form.count > form.required ? (count - form.required) % 2 : 0);
}

/* ---- arguments ---- */

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
    form_signature(c->option, &c->form, signature);
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
    char end = part_end(&c->form, part);
    if (!text)
        return oribi__refuse(c->error, "%s: %s must be text", c->name, part->name);
    if (!part_fits(part, text))
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
    bool several = part->kind == '#' || part->kind == '+';
    size_t found = 0;
    if (part->before)
        put(&c->line, &part->before, 1);
    for (size_t i = 0; i < c->count; i++) {
        const struct oribi_argument *argument = &c->arguments[i];
        if (argument->keyword || (argument->place != place && part->kind != '+'))
            continue;
        int code = check_text(c, part, argument->text);
        if (code < 0)
            return code;
        if (found++ > 0 && !several)
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
        form_signature(c->option, &c->form, signature);
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
    if (!setting_find(c->option, argument->keyword, &is_switch))
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
    bool several = c->form.parts[0].kind == '+';
    if (several)
        c->places = c->places > 0;
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
    char end = part_end(&c->form, first);
    bool optional = first->optional && (c->count == 1 || !part_fits(first, text));
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
    bool joins = c.form.parts[0].kind == '+' && count > 1;
    if ((c.places == 1 || oribi_option_takes_lines(c.option)) && !has_keywords && !joins)
        return set_lines(&c, options, source);
    int code = compose(&c);
    if (code == 0)
        code = oribi__option_set(options, source, c.option, name, c.line.p, error);
    oribi_buf_deinit(&c.line);
    return code;
}

/* ---- arguments_print ---- */

/* An option's one line to its word in the configuration file, for --print-config. Reading order:
 * oribi_option_print_word, take_apart, print_settings. */

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

/* Several texts, which commas part. */
static void put_literals(struct oribi_buf *out, struct oribi_slice text, enum oribi_option_lang lang)
{
    for (size_t at = 0; at <= text.n;) {
        const char *comma = memchr(text.p + at, ',', text.n - at);
        size_t n = comma ? (size_t)(comma - text.p) - at : text.n - at;
        put_text(out, at > 0 ? ", " : "");
        put_literal(out, oribi_slice(text.p + at, n), lang);
        at += n + 1;
    }
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
    char end = part_end(form, part);
    const char *at = end ? memchr(p, end, (size_t)(stop - p)) : NULL;
    if (!part->optional || !part->after)
        return at || part->after ? at : stop;
    if (!at)
        return NULL;
    (void)snprintf(first, sizeof(first), "%.*s", (int)(at - p), p); /* cut: what tells the kind comes first */
    return part_fits(part, first) ? at : NULL;
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
        if (was_before(settings, setting.name) || !setting_find(option, name, &is_switch))
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
        else if (form.parts[form.part_of[place]].kind == '+')
            put_literals(out, texts[place], lang);
        else
            put_literal(out, texts[place], lang);
        first = false;
    }
    if (line[n] == '?')
        print_settings(out, option, line + n + 1, lang);
    put_text(out, lang == ORIBI_LANG_PERL ? ";" : "");
}
