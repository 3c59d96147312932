/* A parsed request head: slices into the bytes it was parsed from, framing already decided. */
#ifndef ORIBI_HTTP_HEAD_H
#define ORIBI_HTTP_HEAD_H

#include "oribi/base/limits.h"
#include "oribi/base/slice.h"
#include "oribi/http/refusal.h"

#include <stdbool.h>
#include <stdint.h>

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

/* Frees what folding allocated; the head may be parsed into again. A zeroed head may be released. */
void oribi_head_release(struct oribi_head *head);

#endif
