/* Answers become bytes (response.c): headers that an operator adds (added.c), values that are put right (mend.c). */
#ifndef ORIBI_HTTP_RESPONSE_H
#define ORIBI_HTTP_RESPONSE_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- response ---- */

/* Response head writer: the one place where an application's status and headers become bytes. It validates
 * everything, decides the framing (RFC 9112 6) and persistence (RFC 9112 9.3), and never lets the application do
 * either. */

/* One header line of the application; names in any case. Borrowed. */
struct oribi_header {
    const char *name;
    const char *value; /* NULL: the application has given none (undef, nil) */
    uint32_t name_len;
    uint32_t value_len;
};

enum oribi_framing {
    ORIBI_FRAMING_NONE,    /* no body bytes: HEAD, 1xx, 204, 304 */
    ORIBI_FRAMING_LENGTH,  /* Content-Length */
    ORIBI_FRAMING_CHUNKED, /* 1.1 only */
    ORIBI_FRAMING_CLOSE,   /* body ends with the connection (1.0 without a known length, detached upgrades) */
};

/* Faults in the application's headers that have been put right. Bits. */
enum oribi_mended {
    ORIBI_MENDED_UNDEFINED = 1, /* a header without a value: left out */
    ORIBI_MENDED_TRIMMED = 2,   /* a value that ended in white space or line ends: cut there */
    ORIBI_MENDED_FOLDED = 4,    /* a value on several lines: joined with one space each */
    ORIBI_MENDED_LENGTH = 8,    /* a Content-Length empty or with white space around it: counted where it can be */
};

enum { ORIBI_MENDED_KINDS = 4 };

/* Headers of an operator (response.h). */
struct oribi_added {
    const struct oribi_header *headers;
    uint32_t count;
    uint32_t bytes; /* as lines */
};

struct oribi_response {
    /* in */
    int status;                         /* 200 … 599; 101 only with `detached` */
    const struct oribi_header *headers; /* borrowed */
    uint32_t header_count;
    uint8_t minor;   /* of the request; the answer always says HTTP/1.1 */
    bool is_head;    /* request method was HEAD */
    bool keep_alive; /* the client wants it and we are willing */
    /* headers of a partial hijack or upgrade: Connection, Upgrade and Transfer-Encoding are the application's */
    bool detached;
    bool unframed;    /* the application has framed its body, and that has been taken off: body_len is the content's */
    int64_t body_len; /* what will be sent when known (or would be, for HEAD); -1 when not known */
    const char *date; /* 29 bytes */
    struct oribi_slice server;       /* value of Server unless the application sets one; empty: none */
    struct oribi_header extra;       /* one more field, unless the application sets it; name NULL: none */
    struct oribi_slice lines;        /* fields as they are written, each with its CRLF; empty: none */
    const struct oribi_added *added; /* written from status 200 on, unless the application sets them; NULL: none */

    /* out */
    enum oribi_framing framing;
    bool framed;            /* the application has framed the body itself, and the framing is still to be taken off */
    bool closes;            /* the connection must close after this answer */
    int64_t content_length; /* what Content-Length says; -1 when none was written */
    const char *reason;     /* after ORIBI_EAPP: static words for the log */
    uint32_t reason_index;  /* after ORIBI_EAPP: which header, or UINT32_MAX */
    uint32_t dropped_count; /* application headers that were dropped because framing is ours */
    uint32_t mended;        /* bits of enum oribi_mended */
    uint32_t mended_index[ORIBI_MENDED_KINDS]; /* of each bit that is set: the first such header */
};

/* Writes the head with its final CRLF to [dst, dst+cap). Returns its length; ORIBI_ELIMIT when cap is too small (try
 * again with more, up to ORIBI_RESPONSE_HEAD_BYTES_MAX); ORIBI_EAPP for a status out of range, a name that is no token,
 * a value with CR, LF, NUL or another control but TAB in it, a Content-Length that is no number or is given twice with
 * two values. What can be put right is (see response.h), and `mended` says so.
 *
 * Rules: exactly one of Content-Length and chunked, or close-delimited where neither can be; none on 1xx and 204; for
 * 304 and HEAD the application's Content-Length is kept. An application Content-Length that differs from a known
 * body_len of a non-HEAD answer: the smaller is written when the body is longer (the caller cuts), the application's
 * when it is shorter (the caller aborts). Date, Server and `extra` are added unless the application gives them.
 * `Connection: close` of the application closes; other Connection, Keep-Alive and Transfer-Encoding of the
 * application are dropped. HTTP/1.0 kept alive says `Connection: keep-alive`. */
ssize_t oribi_response_head(struct oribi_response *res, char *dst, size_t cap);

/* True when Transfer-Encoding: chunked is among them. */
bool oribi_response_is_framed(const struct oribi_header *headers, uint32_t header_count);

/* Writes an interim answer (100 … 199, not 101) with these headers. Same results; `reason` may be NULL or receives
 * static words. */
ssize_t oribi_response_interim(int status, const struct oribi_header *headers, uint32_t header_count, char *dst,
                               size_t cap, const char **reason);

/* An answer of our own, such as to a protocol error: Connection: close, and a text/plain body with the status and
 * reason phrase, or a page. */
struct oribi_server_answer {
    int status;
    bool is_head;              /* leaves the body bytes out */
    uint32_t retry_after_s;    /* a Retry-After field (RFC 9110 10.2.3); 0: none */
    struct oribi_header field; /* one more field; name_len 0: none */
    const char *date;
    struct oribi_slice server;
    const struct oribi_added *added; /* or NULL */
    struct oribi_slice page;         /* p NULL: none */
    struct oribi_slice type;         /* of the page */
};

/* Writes it, or its head alone where it has a page, which follows unless is_head. cap of 512 and the bytes of `added`
 * and `type` always suffice. */
size_t oribi_response_own(const struct oribi_server_answer *answer, char *dst, size_t cap);

/* Writes an answer as oribi_response_own() does, from these few facts. */
size_t oribi_response_error(int status, const char *date, struct oribi_slice server, bool is_head, char *dst,
                            size_t cap);

/* ---- added ---- */

/* Headers that an operator adds to every answer, one line each:
 *
 *     X-Frame-Options:DENY          NAME:TEXT, with or without spaces behind the colon
 *
 * An answer that has a header of the name already keeps its own. Pure. */

enum {
    ORIBI_ADDED_MAX = 64,             /* headers */
    ORIBI_ADDED_NAME_MAX = 128,       /* bytes of a name */
    ORIBI_ADDED_VALUE_MAX = 4096,     /* bytes of a value */
    ORIBI_ADDED_BYTES_MAX = 8 * 1024, /* all of them as lines */
};

/* Reads a line; the header's texts are parts of it. 0, or ORIBI_EINVAL with one line in `error`
 * (ORIBI_ERROR_TEXT_CAP): no token, a value that no answer may have, a name that frames or describes single answers. */
int oribi_added_read(const char *line, struct oribi_header *header, char *error);

/* Reads all of them. Gives NULL when there are none; end it with oribi_mem_free(). It borrows the lines while it is
 * used. 0, or ORIBI_EINVAL with one line in `error`: also a name that comes twice, and too many bytes. */
int oribi_added_create(char *const *lines, size_t count, struct oribi_added **added, char *error);

/* True if one of the headers has a value and the name of `wanted`, in any case. */
bool oribi_added_is_among(const struct oribi_header *wanted, const struct oribi_header *headers, uint32_t count);

/* Writes those that are neither among the headers of `res` nor its extra one to `out`, which has room for all. Returns
 * where they end. */
char *oribi_added_put(char *out, const struct oribi_response *res);

/* ---- mend ---- */

/* Values of headers that an application gives not quite right and that can be sent safely: other servers send them, or
 * something like them, and clients live with it. What could be read as more than one header is no such value. */

/* Puts the value right. Returns bits of enum oribi_mended, 0 when it was right; or -1 for a control character that must
 * not be sent: CR or LF that end no line of a folded value (RFC 9112 5.2), NUL, and all others but TAB. Borrows `room`,
 * which holds header->value_len bytes: a folded value is written there, and header->value points to it then. With
 * ORIBI_MENDED_UNDEFINED there is no value, and the header is not to be sent. */
int oribi_mend_value(struct oribi_header *header, char *room);

/* The length of a value without the white space and line ends at its end. */
uint32_t oribi_mend_trimmed(const char *value, uint32_t len);

#endif
