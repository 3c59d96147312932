/* Heads of requests: the parsed head (head.c), its parser (parser.c), host and port (authority.c), trailers
 * (trailers.c). */
#ifndef ORIBI_HTTP_HEAD_H
#define ORIBI_HTTP_HEAD_H

#include "oribi/base/limits.h"
#include "oribi/base/buf.h"
#include "oribi/http/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- head ---- */

/* A parsed request head: slices into the bytes it was parsed from, framing already decided. */

/* One request field after folding: names are unique (repeats are joined with ", ", Cookie with "; "). */
struct oribi_field {
    const char *name; /* as the client wrote it */
    const char *value;
    uint32_t value_len;
    uint16_t name_len;
    uint16_t id; /* enum oribi_field_id, ORIBI_FIELD_OTHER when not in that table */
};

struct oribi_head {
    struct oribi_slice method;
    struct oribi_slice target; /* raw, as received */
    struct oribi_slice path;   /* raw; for absolute-form the path of the URI ("/" if empty), for OPTIONS * it is "*" */
    struct oribi_slice query;  /* without `?`; empty when absent */
    /* uri-host of Host or of an absolute-form target, brackets kept, no port; may be empty in 1.0 */
    struct oribi_slice host;
    struct oribi_slice port; /* digits after the host's colon; may be empty */
    uint8_t minor;           /* 0 or 1 (1.2 … 1.9 are treated as 1) */
    bool is_head;            /* method is HEAD: no body in the answer */
    bool chunked;            /* the body is chunked */
    bool keep_alive;         /* the client wants the connection kept: by version and Connection */
    bool expect_continue;    /* 1.1, Expect: 100-continue, and a body follows */
    bool upgrade;            /* Connection: upgrade together with an Upgrade field */
    bool has_body;           /* chunked, or Content-Length present (also 0) */
    bool wants_events;       /* GET, and Accept names text/event-stream */
    int64_t content_length;  /* bytes of the body; 0 when there is none, -1 when chunked */
    uint32_t dropped_count;  /* fields dropped for `_` in the name, or `Proxy` */
    uint32_t field_count;
    struct oribi_field fields[ORIBI_FIELDS_CAP];
    /* private: joined values of repeated fields; NULL in nearly every request */
    char *joined;
};

/* Why a head was refused. The pointers point into the bytes that it was parsed from. */
struct oribi_fault {
    const char *reason; /* a few static words; they name the option that would let the request pass */
    /* the part of a field line that a log may show: the name, and the value where it frames or routes; NULL: the fault
     * is in the request line, or in no line */
    struct oribi_slice field;
    const char *at;             /* the first byte that such a line may not hold; NULL: the fault is not one byte */
    enum oribi_refusal refusal; /* what it counts as */
};

/* The value of the field with this name, whose letters are in lower case; n 0: there is none, or it is empty. */
struct oribi_slice oribi_head_value(const struct oribi_head *head, struct oribi_slice lower);

/* Frees what folding allocated; the head may be parsed into again. A zeroed head may be released. */
void oribi_head_release(struct oribi_head *head);

/* ---- parser ---- */

/* Incremental, strict request-head parser (RFC 9112 2-6, RFC 9110 5). Pure: bytes in, slices out. */

/* All-zero at the start of each request. */
struct oribi_parser {
    struct oribi_fault fault; /* after an error: what was wrong, for the log */
    uint32_t pos;             /* private: start of the first line not yet accepted */
    uint32_t scanned;         /* private: bytes of that line already searched */
    uint32_t line_count;      /* private: field lines accepted so far */
    uint8_t state;            /* private */
    uint8_t empty_lines;      /* private */
};

/* Feeds [buf, buf+len), which must start at the first byte of the request and, after ORIBI_AGAIN, hold the same
 * bytes plus more (it may have moved). Verdicts do not depend on how the bytes were cut into calls.
 *
 * Returns the length of the head with its final CRLF (> 0) and fills `head`, whose slices point into buf (or into
 * head->joined) and live as long as it; ORIBI_AGAIN; or ORIBI_EBAD, _ETARGET, _EHEAD, _EBODY, _EEXPECT, _ECODING,
 * _EMETHOD, _EVERSION, _ENOMEM with `fault` set and `head` holding what was known, for a log: method, target and minor
 * when the whole request line was well formed, path, query and host when they were, and the field lines in front of the
 * error, repeats as well; is_head also when the request line was bad. Bytes after the head are not looked at. */
ssize_t oribi_parser_head(struct oribi_parser *parser, const struct oribi_limits *limits, const char *buf, size_t len,
                          struct oribi_head *head);

/* The first line of [buf, buf+len) as it came, without its end; empty lines in front of it are passed over. It may be
 * no request line at all, and is empty when there is nothing. */
struct oribi_slice oribi_parser_first_line(const char *buf, size_t len);

/* ---- authority ---- */

/* Host and port of a Host field or of an absolute-form target: uri-host [ ":" *DIGIT ], RFC 9110 7.2 and RFC 3986
 * 3.2. */

/* Splits `text`, of which `readable` >= text.n bytes may be read: more lets short names be checked in one step.
 * *host keeps the brackets of an IP literal and may be empty, *port holds the digits behind the colon and may be
 * empty; both point into text. Strict: percent-encoding must be whole, an IPv6 address must be one, userinfo and
 * zone identifiers are refused. Returns 0 or ORIBI_EBAD. */
int oribi_authority_parse(struct oribi_slice text, size_t readable, struct oribi_slice *host, struct oribi_slice *port);

/* ---- trailers ---- */

/* Fields behind a chunked body (RFC 9112 7.1.2), for applications that ask for them. They are never merged with the
 * head's: what a trailer could say about framing, routing, access or content came too late to be believed (RFC 9110
 * 6.5.1). */

/* All-zero is none. */
struct oribi_trailers {
    /* names in lower case and unique, values of repeats joined with ", "; every id is ORIBI_FIELD_OTHER */
    struct oribi_field *fields;
    uint32_t count;
    uint32_t dropped_count; /* fields left out */
};

/* Reads a trailer section that oribi_chunked_decode() has validated and kept: lines with CRLF, without the empty
 * line at the end. Left out are all fields of the core's table, those that RFC 9110 forbids or that speak about the
 * message's content, names with `_` and `Proxy`. Borrows text; gives the trailers, free them with
 * oribi_trailers_release(). 0 or ORIBI_ENOMEM. */
int oribi_trailers_read(struct oribi_slice text, struct oribi_trailers *trailers);

void oribi_trailers_release(struct oribi_trailers *trailers);

#endif
