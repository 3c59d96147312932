/* A part's head: its fields, and the parameters of its Content-Disposition. Also the boundary of a type, which is a
 * parameter as well. Reading order: oribi__part_read at the end of the first half, oribi_form_data_boundary. */
#include "form/part.h"

#include "oribi/base/error.h"
#include "oribi/http/scan.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* A fold's line end is one as well: no other stands in a value. */
static bool is_space(char c)
{
    return is_blank(c) || c == '\r' || c == '\n';
}

static struct oribi_slice trim(struct oribi_slice text)
{
    while (text.n > 0 && is_space(text.p[0])) {
        text.p++;
        text.n--;
    }
    while (text.n > 0 && is_space(text.p[text.n - 1]))
        text.n--;
    return text;
}

/* Takes the text before `end` from *rest, and `end` with it; all of it where there is no `end`. */
static struct oribi_slice take_until(struct oribi_slice *rest, char end)
{
    const char *at = rest->n ? memchr(rest->p, end, rest->n) : NULL;
    struct oribi_slice text = oribi_slice(rest->p, at ? (size_t)(at - rest->p) : rest->n);
    size_t used = text.n + (at ? 1 : 0);
    *rest = oribi_slice(rest->p + used, rest->n - used);
    return text;
}

/* Where the quotation mark stands that closes a quoted string; n when there is none. With `escapes` one behind a
 * backslash does not close it. */
static size_t closing_mark(struct oribi_slice text, bool escapes)
{
    size_t i = 0;
    while (i < text.n && text.p[i] != '"')
        i += escapes && text.p[i] == '\\' && i + 1 < text.n && (text.p[i + 1] == '"' || text.p[i + 1] == '\\') ? 2 : 1;
    return i < text.n ? i : text.n;
}

/* A backslash at the end of a path stands before the closing mark as well: where no other closes, that does. */
static bool take_quoted(struct oribi_slice *rest, struct oribi_slice *value)
{
    size_t end = closing_mark(*rest, true);
    if (end == rest->n)
        end = closing_mark(*rest, false);
    *value = oribi_slice(rest->p, end);
    if (end == rest->n)
        return false;
    *rest = oribi_slice(rest->p + end + 1, rest->n - end - 1);
    (void)take_until(rest, ';'); /* nothing should stand before it */
    return true;
}

/* Reads `key=value` from the front of *rest, which stands behind a semicolon. False when a quotation mark is never
 * closed. */
static bool take_parameter(struct oribi_slice *rest, struct oribi_slice *key, struct oribi_part_parameter *parameter)
{
    size_t i = 0;
    while (i < rest->n && rest->p[i] != '=' && rest->p[i] != ';')
        i++;
    *key = trim(oribi_slice(rest->p, i));
    *parameter = (struct oribi_part_parameter){.value = oribi_slice(rest->p + i, 0)};
    if (i == rest->n || rest->p[i] == ';') {
        (void)take_until(rest, ';');
        return true;
    }
    *rest = trim(oribi_slice(rest->p + i + 1, rest->n - i - 1));
    if (rest->n > 0 && rest->p[0] == '"') {
        *rest = oribi_slice(rest->p + 1, rest->n - 1);
        parameter->quoted = true;
        return take_quoted(rest, &parameter->value);
    }
    parameter->value = trim(take_until(rest, ';'));
    return true;
}

static struct oribi_part_parameter *parameter_of(struct oribi_part *part, struct oribi_slice key)
{
    if (oribi_slice_equal_fold(key, ORIBI_SLICE("name")))
        return &part->name;
    if (oribi_slice_equal_fold(key, ORIBI_SLICE("filename")))
        return &part->filename;
    return oribi_slice_equal_fold(key, ORIBI_SLICE("filename*")) ? &part->filename_star : NULL;
}

static const char never_closed[] = "a quotation mark in Content-Disposition is never closed";

static void read_disposition(struct oribi_part *part, struct oribi_slice rest)
{
    part->is_form_data = oribi_slice_equal_fold(trim(take_until(&rest, ';')), ORIBI_SLICE("form-data"));
    while (rest.n > 0) {
        struct oribi_slice key;
        struct oribi_part_parameter parameter;
        if (!take_parameter(&rest, &key, &parameter)) {
            part->malformed = part->malformed ? part->malformed : never_closed;
            return;
        }
        struct oribi_part_parameter *place = parameter_of(part, key);
        if (place && place->value.p)
            part->repeats = true;
        else if (place)
            *place = parameter;
    }
}

static void keep_known(struct oribi_part *part, const struct oribi_part_field *field)
{
    if (oribi_slice_equal_fold(field->name, ORIBI_SLICE("content-disposition"))) {
        if (part->disposition.p)
            part->repeats = true;
        else
            part->disposition = field->value;
    } else if (oribi_slice_equal_fold(field->name, ORIBI_SLICE("content-type")) && !part->content_type.p) {
        part->content_type = field->value;
    }
}

/* The length of the first field's line with the lines folded onto it, without the last CRLF. */
static size_t line_len(struct oribi_slice head)
{
    for (size_t from = 0; from < head.n;) {
        const char *cr = memchr(head.p + from, '\r', head.n - from);
        if (!cr)
            break;
        size_t at = (size_t)(cr - head.p);
        if (at + 1 < head.n && head.p[at + 1] == '\n' && (at + 2 == head.n || !is_blank(head.p[at + 2])))
            return at;
        from = at + 1;
    }
    return head.n;
}

/* Reads a field's line, and gives words for its mistake; NULL: none. A fold's CRLF is no mistake. */
static const char *read_field(struct oribi_slice line, struct oribi_part_field *field)
{
    size_t n = oribi_scan_active->token(line.p, line.n);
    if (n == 0 || n == line.n || line.p[n] != ':')
        return "a line of a part's head is no field";
    for (size_t i = n; i < line.n; i += 3) {
        i += oribi_scan_active->text(line.p + i, line.n - i);
        if (i == line.n)
            break;
        if (line.p[i] != '\r' || line.n - i < 3 || line.p[i + 1] != '\n' || !is_blank(line.p[i + 2]))
            return "a control byte stands in a part's head";
    }
    field->name = oribi_slice(line.p, n);
    field->value = trim(oribi_slice(line.p + n + 1, line.n - n - 1));
    return NULL;
}

int oribi__part_read(struct oribi_part *part, struct oribi_slice head)
{
    memset(part, 0, offsetof(struct oribi_part, fields));
    part->head = head;
    while (head.n > 0) {
        size_t n = line_len(head);
        struct oribi_part_field *field = &part->fields[part->field_count];
        if (part->field_count == ORIBI_FORM_DATA_FIELDS_MAX)
            return ORIBI_EHEAD;
        part->malformed = read_field(oribi_slice(head.p, n), field);
        if (part->malformed)
            break;
        part->field_count++;
        keep_known(part, field);
        n += head.n - n >= 2 ? 2 : head.n - n;
        head = oribi_slice(head.p + n, head.n - n);
    }
    if (part->disposition.p)
        read_disposition(part, part->disposition);
    return 0;
}

const char *oribi_part_mistake(const struct oribi_part *part)
{
    if (part->malformed)
        return part->malformed;
    if (!part->is_form_data)
        return "a part has no Content-Disposition of form-data";
    if (part->repeats)
        return "a part has two names, file names or dispositions";
    return part->name.value.p ? NULL : "a part has no name";
}

/* --- the same, strictly --- */

static size_t spaces(struct oribi_slice text, size_t at)
{
    size_t end = at;
    while (end < text.n && is_space(text.p[end]))
        end++;
    return end - at;
}

/* Bytes from `at` on that are neither a space nor one of `others`. */
static size_t plain(struct oribi_slice text, size_t at, const char *others)
{
    size_t end = at;
    while (end < text.n && !is_space(text.p[end]) && !strchr(others, text.p[end]))
        end++;
    return end - at;
}

static bool ends_here(struct oribi_slice text, size_t at)
{
    return at == text.n || text.p[at] == ';';
}

/* Where the quotation mark stands that a semicolon or the end follows; n when there is none, or when one stands before
 * it without a backslash. */
static size_t last_mark(struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '"')
            continue;
        if (ends_here(text, i + 1 + spaces(text, i + 1)))
            return i;
        if (i == 0 || text.p[i - 1] != '\\')
            break;
    }
    return text.n;
}

/* The value at the front of *rest, and the semicolon behind it. */
static bool take_value_strictly(struct oribi_slice *rest, struct oribi_part_parameter *parameter)
{
    bool quoted = rest->n > 0 && rest->p[0] == '"';
    struct oribi_slice text = oribi_slice(rest->p + quoted, rest->n - quoted);
    size_t n = quoted ? last_mark(text) : plain(text, 0, "\";");
    if (quoted && n == text.n)
        return false;
    size_t end = n + quoted + spaces(text, n + quoted);
    if (!ends_here(text, end))
        return false;
    *parameter = (struct oribi_part_parameter){.value = oribi_slice(text.p, n), .quoted = quoted};
    end += end < text.n;
    *rest = oribi_slice(text.p + end, text.n - end);
    return true;
}

const char *oribi_part_read_strictly(struct oribi_part *part)
{
    static const char *const mistake = "something in Content-Disposition is no parameter";
    struct oribi_slice rest = part->disposition;
    const char *other = part->malformed == never_closed ? NULL : oribi_part_mistake(part);
    if (other)
        return other;
    part->name.value.p = part->filename.value.p = NULL;
    (void)take_until(&rest, ';');
    while ((rest = trim(rest)).n > 0) {
        size_t n = plain(rest, 0, "\"=;");
        size_t end = n + spaces(rest, n);
        struct oribi_slice key = oribi_slice(rest.p, n);
        if (end < rest.n && rest.p[end] == ';') { /* a word without a value */
            rest = oribi_slice(rest.p + end + 1, rest.n - end - 1);
            continue;
        }
        if (n == 0 || end == rest.n || rest.p[end] != '=')
            return mistake;
        rest = trim(oribi_slice(rest.p + end + 1, rest.n - end - 1));
        struct oribi_part_parameter parameter;
        if (!take_value_strictly(&rest, &parameter))
            return mistake;
        struct oribi_part_parameter *place = parameter_of(part, key);
        if (place && place != &part->filename_star && place->value.p)
            return "a part has two names or file names";
        if (place && place != &part->filename_star)
            *place = parameter;
    }
    return part->name.value.p ? NULL : "a part has no name";
}

/* A parameter has no blanks around its equals sign (RFC 9110 5.6.6): what others make of one that has differs. */
static bool has_blanks_inside(struct oribi_slice text)
{
    const char *equals = memchr(text.p, '=', text.n);
    if (!equals)
        return false;
    return (equals > text.p && is_space(equals[-1])) || (equals + 1 < text.p + text.n && is_space(equals[1]));
}

struct oribi_slice oribi_form_data_boundary(struct oribi_slice content_type)
{
    struct oribi_slice rest = content_type;
    struct oribi_slice type = trim(take_until(&rest, ';'));
    struct oribi_slice none = oribi_slice(NULL, 0);
    struct oribi_slice boundary = none;
    if (type.n < 10 || !oribi_slice_equal_fold(oribi_slice(type.p, 10), ORIBI_SLICE("multipart/")))
        return none;
    while (rest.n > 0) {
        struct oribi_slice key;
        struct oribi_slice from = rest;
        struct oribi_part_parameter parameter;
        if (!take_parameter(&rest, &key, &parameter))
            return none;
        if (!oribi_slice_equal_fold(key, ORIBI_SLICE("boundary")))
            continue;
        if (boundary.p || has_blanks_inside(from))
            return none;
        boundary = parameter.value;
    }
    return boundary;
}

size_t oribi_form_data_unescape(struct oribi_slice value, char *dst)
{
    size_t n = 0;
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] == '\\' && i + 1 < value.n && (value.p[i + 1] == '"' || value.p[i + 1] == '\\'))
            i++;
        dst[n++] = value.p[i];
    }
    return n;
}

size_t oribi_form_data_unfold(struct oribi_slice value, char *dst)
{
    size_t n = 0;
    for (size_t i = 0; i < value.n;) {
        if (value.p[i] != '\r') {
            dst[n++] = value.p[i++];
            continue;
        }
        while (i < value.n && (is_space(value.p[i]) || value.p[i] == '\r' || value.p[i] == '\n'))
            i++;
        if (n == 0 || !is_space(dst[n - 1]))
            dst[n++] = ' ';
    }
    return n;
}
