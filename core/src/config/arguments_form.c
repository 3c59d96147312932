/* The form of an option's line by the table: which argument stands where. */
#include "config/arguments_private.h"

#include "oribi/base/buf.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* The argument's name and kind, from "/PREFIX FOLDER". */
static void read_name(const char *arguments, uint32_t place, struct oribi__part *part)
{
    for (; place > 0; place--) {
        arguments += strcspn(arguments, " ");
        arguments += *arguments == ' ';
    }
    part->kind = *arguments && strchr("/#*", *arguments) ? *arguments++ : '\0';
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

char oribi__part_end(const struct oribi__form *form, const struct oribi__part *part)
{
    const struct oribi__part *next = part + 1 < form->parts + form->count ? part + 1 : NULL;
    if (part->after)
        return part->after;
    if (next && next->before)
        return next->before;
    return !next && form->settings ? '?' : '\0';
}

bool oribi__part_fits(const struct oribi__part *part, const char *text)
{
    if (part->kind == '/')
        return *text == '/';
    return part->kind != '#' || (*text && strspn(text, "0123456789,") == strlen(text));
}

void oribi__form_signature(const struct oribi_option *option, const struct oribi__form *form,
                           char dst[ORIBI__SIGNATURE_CAP])
{
    size_t len = (size_t)snprintf(dst, ORIBI__SIGNATURE_CAP, "%s ", option->name);
    bool comma = false;
    for (uint32_t place = 0; place < form->count && len < ORIBI__SIGNATURE_CAP; place++) {
        const struct oribi__part *part = &form->parts[form->part_of[place]];
        bool leads = part->optional && place == 0; /* [PREFIX, ]FOLDER */
        len += (size_t)snprintf(dst + len, ORIBI__SIGNATURE_CAP - len, "%s%s%s%s%s", part->optional ? "[" : "",
                                comma ? ", " : "", part->name, leads ? ", " : "", part->optional ? "]" : "");
        comma = !leads;
    }
    assert(len < ORIBI__SIGNATURE_CAP); /* the table's own words */
}

void oribi_option_print_signature(struct oribi_buf *out, const struct oribi_option *option)
{
    char text[ORIBI__SIGNATURE_CAP];
    struct oribi__form form;
    oribi__form_read(&option->composed, &form);
    oribi__form_signature(option, &form, text);
    oribi_buf_append(out, text, strlen(text));
}

bool oribi_option_takes_lines(const struct oribi_option *option)
{
    struct oribi__form form;
    oribi__form_read(&option->composed, &form);
    return form.count == 1 && form.settings;
}

/* No address is a word of small letters alone. */
static bool is_keyword(const char *text)
{
    return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz_") == strlen(text);
}

size_t oribi_option_places(const struct oribi_option *option, const char *second, size_t count)
{
    struct oribi__form form;
    if (!option->composed.form)
        return count;
    oribi__form_read(&option->composed, &form);
    if (!form.settings || count < form.required)
        return count;
    if (form.count == 1 && second && !is_keyword(second))
        return count;
    return form.required + (form.count > form.required ? (count - form.required) % 2 : 0);
}

bool oribi__setting_find(const struct oribi_option *option, const char *name, bool *is_switch)
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
