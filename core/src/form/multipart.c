/* The parser of multipart/form-data: one state per place in the grammar, so that no cut of the input can fall between
 * two of them.
 *
 *     PREAMBLE ─delimiter─► BEHIND ─CR─► LINE_END ─LF─► HEAD ─empty line─► BODY ─delimiter─► BEHIND
 *                              └─ - ─► DASH ─ - ─► EPILOGUE
 *
 * Reading order: a part's head, the search for the delimiter, the states. part.c reads what stands in a head. */
#include "oribi/form/multipart.h"

#include "form/part.h"

#include "oribi/base/error.h"
#include "oribi/base/limits.h"
#include "oribi/base/os/os.h"

#include <string.h>

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
