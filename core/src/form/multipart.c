/* The parser of multipart/form-data: one state per place in the grammar, so that no cut of the input can fall between
 * two of them.
 *
 *     PREAMBLE ─delimiter─► BEHIND ─CR─► LINE_END ─LF─► HEAD ─empty line─► BODY ─delimiter─► BEHIND
 *                              └─ - ─► DASH ─ - ─► EPILOGUE
 *
 * Reading order: a part's head, the search for the delimiter, the states. */
#include "oribi/form/multipart.h"
#include "oribi/base/error.h"
#include "oribi/http/scan.h"
#include "oribi/base/limits.h"
#include "oribi/base/os/os.h"

#include <string.h>

/* Fills `part` from a whole head, without its last line end and the empty line, and borrows from it. 0, or
 * ORIBI_EHEAD: it has more fields than ORIBI_FORM_DATA_FIELDS_MAX. */
int oribi__part_read(struct oribi_part *part, struct oribi_slice head);

/* ---- part ---- */

/* A part's head: its fields, and the parameters of its Content-Disposition. Also the boundary of a type, which is a
 * parameter as well. Reading order: oribi__part_read at the end of the first half, oribi_form_data_boundary. */

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

/* ---- multipart ---- */

enum { PREAMBLE, BEHIND, DASH, LINE_END, HEAD, BODY, EPILOGUE };

/* A state's result when there is no event yet. */
enum { GO_ON = -1000 };

void oribi_form_data_limits_init(struct oribi_form_data_limits *limits)
{
    *limits = (struct oribi_form_data_limits){.parts_max = ORIBI_FORM_PARTS_DEFAULT,
                                              .files_max = ORIBI_FORM_FILES_DEFAULT,
                                              .part_head_bytes_max = ORIBI_FORM_PART_HEAD_BYTES_DEFAULT,
                                              .memory_max = ORIBI_FORM_MEMORY_DEFAULT};
}

/* --- a part's head --- */

static int refuse(struct oribi_form_data *form, int error, const char *reason)
{
    form->reason = reason;
    form->error = error;
    return error;
}

static int begin_part(struct oribi_form_data *form, struct oribi_slice head)
{
    if (oribi__part_read(&form->part, head) < 0)
        return refuse(form, ORIBI_EHEAD, "a part's head has too many fields");
    bool is_file = form->part.filename.value.p || form->part.filename_star.value.p;
    if (form->part_count == form->limits.parts_max)
        return refuse(form, ORIBI_ELIMIT, "too many parts");
    if (is_file && form->file_count == form->limits.files_max)
        return refuse(form, ORIBI_ELIMIT, "too many files");
    form->part_count++;
    form->file_count += is_file;
    form->state = BODY;
    form->in_part = true;
    form->kept = false;
    /* RFC 2046 5.1.1 lets a part end with its head: body-part := MIME-part-headers [CRLF *OCTET]. The CRLF of the empty
     * line is then that of the delimiter. */
    form->matched = form->unread = 2;
    return ORIBI_FORM_DATA_PART;
}

void oribi_form_data_keep(struct oribi_form_data *form)
{
    form->kept = true;
}

/* The offset of the empty line's CRLF in text, which begins at a line's beginning; text.n when it is not whole yet. */
static size_t find_head_end(struct oribi_slice text, size_t from)
{
    if (text.n >= 2 && text.p[0] == '\r' && text.p[1] == '\n')
        return 0;
    const char *at = text.n > from ? oribi_os_memmem(text.p + from, text.n - from, "\r\n\r\n", 4) : NULL;
    return at ? (size_t)(at - text.p) + 2 : text.n;
}

/* A head that is whole in the input is read where it lies; else it is gathered. */
static int on_head(struct oribi_form_data *form, struct oribi_slice *in)
{
    struct oribi_buf *buf = &form->head;
    size_t room = (size_t)form->limits.part_head_bytes_max + 4 - buf->len; /* with both line ends */
    size_t old = buf->len;
    struct oribi_slice text = oribi_slice(in->p, in->n < room ? in->n : room);
    if (old > 0 && oribi_buf_try_append(buf, in->p, text.n) < 0)
        return refuse(form, ORIBI_ENOMEM, "out of memory");
    if (old > 0)
        text = oribi_slice(buf->p, buf->len);
    size_t end = find_head_end(text, old > 3 ? old - 3 : 0);
    if (end == text.n) {
        if (text.n == (size_t)form->limits.part_head_bytes_max + 4)
            return refuse(form, ORIBI_EHEAD, "a part's head is too long");
        if (old == 0 && oribi_buf_try_append(buf, in->p, in->n) < 0)
            return refuse(form, ORIBI_ENOMEM, "out of memory");
        *in = oribi_slice(in->p + in->n, 0);
        return GO_ON;
    }
    size_t used = end + 2 - old;
    size_t n = end < 2 ? 0 : end - 2;
    *in = oribi_slice(in->p + used, in->n - used);
    buf->len = 0; /* the bytes stay until the next call */
    return begin_part(form, oribi_slice(text.p, n));
}

/* --- the delimiter --- */

/* Goes on comparing the input with the delimiter; false: it is another text, and what was matched is none of it. */
static bool match_on(struct oribi_form_data *form, struct oribi_slice *in)
{
    size_t wanted = (size_t)form->delimiter_len - form->matched;
    size_t n = in->n < wanted ? in->n : wanted;
    size_t same = 0;
    while (same < n && in->p[same] == form->delimiter[form->matched + same])
        same++;
    if (same < n)
        return false;
    form->matched = (uint8_t)(form->matched + n);
    *in = oribi_slice(in->p + n, in->n - n);
    return true;
}

static int give(struct oribi_form_data *form, const char *p, size_t n)
{
    form->data = oribi_slice(p, n);
    if (!form->in_part || n == 0)
        return GO_ON;
    if (form->kept && n > form->limits.memory_max - form->memory)
        return refuse(form, ORIBI_ELIMIT, "the fields are too large for memory");
    form->memory += form->kept ? n : 0;
    return ORIBI_FORM_DATA_DATA;
}

/* The delimiter, as far as it was matched, is data after all. */
static int give_matched(struct oribi_form_data *form, size_t n)
{
    size_t unread = form->unread;
    form->matched = form->unread = 0;
    form->state = form->in_part ? BODY : PREAMBLE;
    return give(form, form->delimiter + unread, n - unread);
}

/* Where the delimiter, or a beginning of it at the input's end, stands; in.n when there is none. Only the last CR can
 * begin such a beginning: no other byte of the delimiter is one. */
static size_t find_delimiter(const struct oribi_form_data *form, struct oribi_slice in)
{
    const char *at = oribi_os_memmem(in.p, in.n, form->delimiter, form->delimiter_len);
    if (at)
        return (size_t)(at - in.p);
    size_t tail = in.n < form->delimiter_len ? in.n : form->delimiter_len - 1u;
    const char *cr = oribi_os_memrchr(in.p + in.n - tail, '\r', tail);
    size_t left = cr ? (size_t)(in.p + in.n - cr) : 0;
    return cr && memcmp(cr, form->delimiter, left) == 0 ? in.n - left : in.n;
}

static int on_body(struct oribi_form_data *form, struct oribi_slice *in)
{
    if (form->matched == 0) {
        struct oribi_slice data = oribi_slice(in->p, find_delimiter(form, *in));
        *in = oribi_slice(in->p + data.n, in->n - data.n);
        if (data.n > 0)
            return give(form, data.p, data.n);
    }
    if (!match_on(form, in))
        return give_matched(form, form->matched);
    if (form->matched == form->delimiter_len)
        form->state = BEHIND;
    return GO_ON;
}

struct oribi_slice oribi_form_data_held(const struct oribi_form_data *form)
{
    size_t n = form->state == BODY && form->in_part ? form->matched - form->unread : 0;
    return oribi_slice(form->delimiter + form->unread, n);
}

bool oribi_form_data_delimited(const struct oribi_form_data *form)
{
    return form->state != BODY;
}

bool oribi_form_data_same(const struct oribi_form_data *form, const struct oribi_form_data *other)
{
    return form->delimiter_len == other->delimiter_len &&
           memcmp(form->delimiter, other->delimiter, form->delimiter_len) == 0;
}

/* The bytes behind the delimiter are none that may stand there. `n` bytes of the delimiter, a dash counted, were
 * taken. */
static int longer(struct oribi_form_data *form, size_t n)
{
    if (!form->limits.longer_is_data)
        return refuse(form, ORIBI_EBAD, "a delimiter goes on with something else than its line's end");
    return give_matched(form, n);
}

static int on_behind(struct oribi_form_data *form, struct oribi_slice *in)
{
    char c = in->p[0];
    if ((c == ' ' || c == '\t') && !form->limits.longer_is_data && form->padding < ORIBI_FORM_DATA_PADDING_MAX)
        form->padding++;
    else if (c == '\r')
        form->state = LINE_END;
    else if (c == '-' && form->padding == 0)
        form->state = DASH;
    else
        return longer(form, form->delimiter_len);
    *in = oribi_slice(in->p + 1, in->n - 1);
    return GO_ON;
}

static int end_part(struct oribi_form_data *form, uint8_t state)
{
    bool ends = form->in_part;
    form->state = state;
    form->in_part = false;
    form->matched = form->unread = 0;
    form->padding = 0;
    return ends ? ORIBI_FORM_DATA_PART_END : GO_ON;
}

static int on_dash(struct oribi_form_data *form, struct oribi_slice *in)
{
    if (in->p[0] != '-')
        return longer(form, (size_t)form->delimiter_len + 1);
    *in = oribi_slice(in->p + 1, in->n - 1);
    return end_part(form, EPILOGUE);
}

/* A CR that ends no line may begin a delimiter. */
static int on_line_end(struct oribi_form_data *form, struct oribi_slice *in)
{
    if (in->p[0] != '\n') {
        int code = longer(form, form->delimiter_len);
        form->matched = 1;
        return code;
    }
    *in = oribi_slice(in->p + 1, in->n - 1);
    return end_part(form, HEAD);
}

/* --- all of it --- */

static bool is_boundary_char(char c)
{
    return (unsigned char)c >= ' ' && (unsigned char)c < 0x7f;
}

int oribi_form_data_init(struct oribi_form_data *form, const struct oribi_form_data_limits *limits,
                         struct oribi_slice boundary)
{
    memset(form, 0, sizeof(*form));
    form->limits = *limits;
    if (boundary.n == 0)
        return refuse(form, ORIBI_EBAD, "the boundary is missing");
    if (boundary.n > ORIBI_FORM_DATA_BOUNDARY_MAX)
        return refuse(form, ORIBI_EBAD, "the boundary is longer than 70 bytes");
    for (size_t i = 0; i < boundary.n; i++)
        if (!is_boundary_char(boundary.p[i]))
            return refuse(form, ORIBI_EBAD, "the boundary has a byte that none may have");
    if (boundary.p[boundary.n - 1] == ' ')
        return refuse(form, ORIBI_EBAD, "the boundary ends with a blank");
    memcpy(form->delimiter, "\r\n--", 4);
    memcpy(form->delimiter + 4, boundary.p, boundary.n);
    form->delimiter_len = (uint8_t)(4 + boundary.n);
    form->delimiter[form->delimiter_len] = '-';
    form->state = PREAMBLE;
    form->matched = form->unread = 2; /* the body's beginning is a line's */
    return 0;
}

static int step(struct oribi_form_data *form, struct oribi_slice *in)
{
    switch (form->state) {
    case BEHIND:
        return on_behind(form, in);
    case DASH:
        return on_dash(form, in);
    case LINE_END:
        return on_line_end(form, in);
    case HEAD:
        return on_head(form, in);
    case EPILOGUE:
        *in = oribi_slice(in->p + in->n, 0);
        return GO_ON;
    default: /* PREAMBLE, BODY */
        return on_body(form, in);
    }
}

int oribi_form_data_next(struct oribi_form_data *form, struct oribi_slice *in)
{
    int event = form->error ? form->error : GO_ON;
    while (event == GO_ON && in->n > 0)
        event = step(form, in);
    return event == GO_ON ? ORIBI_FORM_DATA_MORE : event;
}

int oribi_form_data_finish(struct oribi_form_data *form)
{
    if (form->error || form->state == EPILOGUE)
        return form->error;
    return refuse(form, ORIBI_EBAD, "the body ends before its closing delimiter");
}

void oribi_form_data_deinit(struct oribi_form_data *form)
{
    oribi_buf_deinit(&form->head);
}

int oribi_form_data_status(int error)
{
    return error == ORIBI_ELIMIT || error == ORIBI_EHEAD ? 413 : 400;
}
