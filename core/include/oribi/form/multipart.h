/* multipart/form-data (RFC 7578, RFC 2046 5.1.1), and parts that are text (plain_part.c). */
#ifndef ORIBI_FORM_MULTIPART_H
#define ORIBI_FORM_MULTIPART_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- multipart ---- */

/* multipart/form-data (RFC 7578, RFC 2046 5.1.1): an incremental parser that keeps no part's body. It finds the
 * delimiters and the parts' heads; what becomes of a body is the caller's business.
 *
 *     struct oribi_slice in = a piece of the body;
 *     do switch (oribi_form_data_next(&form, &in)) …
 *
 * Any cut of the input into pieces gives the same parts, with bodies cut elsewhere. Memory: the struct, and one part's
 * head of part_head_bytes_max at most. Cost: linear, whatever the input: a delimiter begins with the only CR in it, so
 * what was once compared in vain is not compared again. */

enum {
    ORIBI_FORM_DATA_BOUNDARY_MAX = 70, /* RFC 2046 5.1.1 */
    ORIBI_FORM_DATA_FIELDS_MAX = 32,   /* in a part's head */
    ORIBI_FORM_DATA_PADDING_MAX = 64,  /* blanks between a delimiter and its line end */
};

struct oribi_form_data_limits {
    uint32_t parts_max;
    uint32_t files_max;           /* parts with a file name */
    uint32_t part_head_bytes_max; /* from the delimiter's line end to the empty line, both not counted */
    uint64_t memory_max;          /* bytes of the bodies that the caller keeps in memory: oribi_form_data_keep() */
    /* A delimiter that goes on with something else is data, and blanks behind it are not allowed: as Rack has it. Else
     * it is an error, as RFC 2046 has it: no line of a part may begin with the delimiter. */
    bool longer_is_data;
};

/* The defaults of base/limits.h. */
void oribi_form_data_limits_init(struct oribi_form_data_limits *limits);

struct oribi_part_field {
    struct oribi_slice name;  /* as it came */
    struct oribi_slice value; /* without blanks around it; a folded line keeps its CRLF */
};

/* The value of a parameter. What a backslash or a percent sign in it means differs between senders: nothing is
 * undone here. */
struct oribi_part_parameter {
    struct oribi_slice value; /* without quotation marks; p is NULL when the parameter is missing */
    bool quoted;
};

/* A part's head. Borrowed from the parser until its next call. */
struct oribi_part {
    struct oribi_slice head; /* all of it, without the empty line */
    uint32_t field_count;
    struct oribi_slice disposition;  /* the value of Content-Disposition; p is NULL when there is none */
    struct oribi_slice content_type; /* the same of Content-Type */
    bool is_form_data;               /* the disposition is form-data */
    /* A line that is no field, a control byte, or a quotation mark that is never closed: what it is, else NULL. The
     * fields before it stand here; static text. */
    const char *malformed;
    bool repeats; /* a second Content-Disposition, name or filename stands there; the first counts */
    struct oribi_part_parameter name;
    struct oribi_part_parameter filename;
    struct oribi_part_parameter filename_star; /* RFC 8187, undecoded */
    struct oribi_part_field fields[ORIBI_FORM_DATA_FIELDS_MAX];
};

enum oribi_form_data_event {
    ORIBI_FORM_DATA_MORE,     /* all input is taken; what stands behind the closing delimiter is ignored */
    ORIBI_FORM_DATA_PART,     /* `part` is a new part's head */
    ORIBI_FORM_DATA_DATA,     /* `data` is a piece of its body, never empty */
    ORIBI_FORM_DATA_PART_END, /* its body is complete */
};

struct oribi_form_data {
    struct oribi_part part;
    struct oribi_slice data; /* borrowed from the input or from the parser, until its next call */
    const char *reason;      /* after an error */
    uint32_t part_count;
    uint32_t file_count;
    struct oribi_form_data_limits limits; /* private from here on */
    struct oribi_buf head;
    int error; /* given again by every later call */
    uint8_t state;
    bool in_part;
    bool kept; /* the body of the part at hand counts against memory_max */
    uint64_t memory;
    uint8_t matched; /* bytes of the delimiter that the input so far ends with */
    uint8_t unread;  /* the first of these were no bytes of the body: the CRLF that its beginning or a head's end is */
    uint8_t padding; /* blanks behind it */
    uint8_t delimiter_len;
    char delimiter[4 + ORIBI_FORM_DATA_BOUNDARY_MAX +
                   1]; /* CR LF - - boundary, and a dash for a delimiter that is data */
};

/* Begins a body. `limits` and `boundary` are copied. 0, or ORIBI_EBAD with a reason: the boundary is empty, longer than
 * 70 bytes, or has another byte than RFC 2046 5.1.1 allows or senders are known to use (a control byte, one beyond
 * ASCII, or a blank at its end). */
int oribi_form_data_init(struct oribi_form_data *form, const struct oribi_form_data_limits *limits,
                         struct oribi_slice boundary);

/* Goes on in *in, which is moved on by what was taken; an event (>= 0), or with a reason
 *   ORIBI_EBAD   a delimiter is followed by something else than blanks and a line end
 *   ORIBI_EHEAD  a part's head is longer than its maximum, or has more fields
 *   ORIBI_ELIMIT more parts or files than allowed, or more in memory
 *   ORIBI_ENOMEM. */
int oribi_form_data_next(struct oribi_form_data *form, struct oribi_slice *in);

/* Bytes at the end of what was taken that belong to the body of the part at hand or to the delimiter behind it, which
 * the next bytes will tell: the beginning of that delimiter. Borrowed until the next call; empty between parts. */
struct oribi_slice oribi_form_data_held(const struct oribi_form_data *form);

/* Has the parser met a delimiter since the last part's head, as far as its boundary? */
bool oribi_form_data_delimited(const struct oribi_form_data *form);

/* Do both look for the same delimiter? */
bool oribi_form_data_same(const struct oribi_form_data *form, const struct oribi_form_data *other);

/* Behind ORIBI_FORM_DATA_PART: the caller keeps this part's body in memory, so that it counts against memory_max. */
void oribi_form_data_keep(struct oribi_form_data *form);

/* Behind ORIBI_FORM_DATA_PART: why this part is none of a form (RFC 7578 4.2), in a few words; NULL: it is one. Static
 * text. */
const char *oribi_part_mistake(const struct oribi_part *part);

/* oribi_part_mistake(), with `name` and `filename` read once more, as HTTP::Entity::Parser reads them: a quotation mark
 * closes where a semicolon or the end follows, also behind a backslash, and what is no parameter is a mistake. */
const char *oribi_part_read_strictly(struct oribi_part *part);

/* The status that answers an error of the functions here: 413 for what is too much, else 400. */
int oribi_form_data_status(int error);

/* After the last piece: 0 when the closing delimiter was read, else ORIBI_EBAD with a reason: the body is cut. */
int oribi_form_data_finish(struct oribi_form_data *form);

void oribi_form_data_deinit(struct oribi_form_data *form);

/* The parameter `boundary` of a Content-Type value (borrowed), without quotation marks; p is NULL when the type is not
 * multipart/…, or has no boundary, or two, or one with blanks around its equals sign: which bytes divide the parts is
 * what a filter in front must read as we do. */
struct oribi_slice oribi_form_data_boundary(struct oribi_slice content_type);

/* Copies a quoted parameter to dst, which has room for all of it or is value.p, without the backslashes before `"` and
 * `\`; gives the length. Other backslashes stay: they are a path's. */
size_t oribi_form_data_unescape(struct oribi_slice value, char *dst);

/* Writes `value` without the line ends of folds to dst, which has room for all of it or is value.p: one blank stands
 * for a fold and the blanks behind it, none where one stands before it already. Returns the length. */
size_t oribi_form_data_unfold(struct oribi_slice value, char *dst);

/* ---- plain_part ---- */

/* The most frequent part of a multipart/form-data body: a text field, whole in memory, whose head is one line as
 * browsers write it. For readers that have a parser of their own for all other parts, such as Rack's: what is not this
 * shape to the byte is left to them. Pure.
 *
 *     Content-Disposition: form-data; name="a" CRLF CRLF body CRLF --boundary (CRLF | --) */

enum { ORIBI_PLAIN_NAME_MAX = 1024 };

/* Where a body ends. */
struct oribi_plain_delimiter {
    struct oribi_slice text; /* CR LF - - boundary */
    /* A delimiter that does not begin a line is one too, as in Rack 2.2, and nothing but a line end or the end of the
     * bytes follows the last one. */
    bool anywhere;
};

/* Where the delimiter stands in `in`, with CRLF or two dashes behind it: the offset of its CRLF; in.n: nowhere. Sets
 * *bare: it begins no line, and the offset is that of its first dash; only at offset 0 unless delimiter->anywhere. */
size_t oribi_plain_find(struct oribi_slice in, const struct oribi_plain_delimiter *delimiter, bool *bare);

struct oribi_plain_part {
    struct oribi_slice name; /* not empty; none of `" \ : ;`, no control byte; ORIBI_PLAIN_NAME_MAX bytes at most */
    struct oribi_slice body;
    size_t head_len; /* with the CRLF of its line, without the empty one */
    size_t len;      /* of all, up to the next part's head, or behind the dashes of the last delimiter */
    bool is_last;
};

/* Reads the part whose head begins `in`. Returns false when it is not of this shape, or not whole, and leaves *part as
 * it is. The slices lie in `in`. */
bool oribi_plain_part(struct oribi_slice in, const struct oribi_plain_delimiter *delimiter,
                      struct oribi_plain_part *part);

#endif
