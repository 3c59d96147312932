/* Which of an application's answers are compressed, and what their heads say then. Pure: nothing is compressed here,
 * nothing allocated.
 *
 *     answer ──► may it ever be? ──no──► as it is
 *                  │ yes
 *                  ├─ Accept-Encoding has none of ours ──► as it is, with Vary
 *                  └─ has one ──► Content-Encoding, Vary, a weak ETag, without Content-Length and Accept-Ranges
 *
 * An answer may be compressed whose status is not 204, 205, 206, 304, and which
 * - has a Content-Type of the list, and is no stream of events (text/event-stream, whatever the list says),
 * - is at least `min` bytes long, or of unknown length,
 * - has none of Content-Encoding, Content-Range, Transfer-Encoding, Content-MD5, Digest, Content-Digest, Repr-Digest,
 *   nor Cache-Control: no-transform (RFC 9110 7.7),
 * - has neither Set-Cookie nor Cache-Control: private or no-store, unless `private_too`: a page that has a secret
 *   beside what an attacker may put into it tells the secret by its compressed length (BREACH). Padding of random
 *   length makes that slower, and no more.
 *
 * The ETag becomes weak (RFC 9110 8.8.1: the bytes differ, the meaning does not); one that is not the grammar is left
 * as it is. A client then asks with the weak tag, which an application that compares text would not know: it is given
 * both forms (oribi_compress_expand_tags()), and its 304 says the tag as the client has it. An application that knows
 * one tag and no list (Rack::ConditionalGet, Plack::Middleware::ConditionalGET) answers with 200 then: the answer
 * becomes a 304 here.
 *
 * Others differ: nginx 1.22 compresses only 200, 403 and 404, drops no digests and ignores q values; Rack::Deflater
 * leaves a strong ETag strong. */
#ifndef ORIBI_HTTP_COMPRESSIBLE_H
#define ORIBI_HTTP_COMPRESSIBLE_H

#include "oribi/http/accept_encoding.h"
#include "oribi/http/head.h"
#include "oribi/http/response.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI_COMPRESS_TYPES_MAX = 128,
    ORIBI_COMPRESS_TYPE_BYTES_MAX = 127,      /* of one pattern */
    ORIBI_COMPRESS_ETAG_BYTES_MAX = 1024,     /* an answer with a longer one stays as it is */
    ORIBI_COMPRESS_VARY_BYTES_MAX = 1024,     /* to a longer one a line of its own is added */
    ORIBI_COMPRESS_HEADERS_ADDED_MAX = 2,     /* Content-Encoding, Vary */
    ORIBI_COMPRESS_EXPANDED_BYTES_MAX = 1024, /* an If-None-Match that would be longer is not expanded */
};

struct oribi_compress_rules {
    enum oribi_coding offered[ORIBI_CODING_COUNT]; /* the operator's order, then identity */
    size_t offered_count;                          /* 0: nothing is ever compressed */
    struct oribi_slice types[ORIBI_COMPRESS_TYPES_MAX];
    uint32_t type_count;
    int64_t min;
    bool private_too;
};

/* Reads the codings, separated by blanks or commas: "gzip zstd br"; "" and "off" are none. 0; ORIBI_EINVAL with one
 * line in `error` (ORIBI_ERROR_TEXT_CAP): a word that is no coding, one given twice, one that this build has no
 * library for. */
int oribi_compress_rules_codings(struct oribi_compress_rules *rules, const char *text, char *error);

/* Adds patterns of media types, separated by blanks or commas, in lower case: type/subtype, type/ *, type/ *+suffix
 * (without the blank). Borrows `text`. The same results. */
int oribi_compress_rules_types(struct oribi_compress_rules *rules, const char *text, char *error);

/* The types where the operator gives none, as oribi_compress_rules_types() reads them. */
extern const char *const oribi_compress_types_default;

/* Facts that the decision is made of. */
struct oribi_compress_question {
    const struct oribi_compress_rules *rules;
    const struct oribi_head *head; /* of the request */
    int status;
    const struct oribi_header *headers;
    uint32_t header_count;
    int64_t body_len;              /* -1: not known. Of HEAD what a GET would have; a body of 0 is not known then */
    struct oribi_slice none_match; /* If-None-Match as the client sent it; p is NULL: absent */
};

struct oribi_compress_decision {
    enum oribi_coding coding; /* ORIBI_CODING_IDENTITY: as it is */
    bool varies;              /* the head says Vary: Accept-Encoding */
    bool weakens;             /* the head's ETag is made weak */
    bool is_private;          /* padding is wanted */
    bool not_modified;        /* to be answered with 304 instead: the client has it */
    bool changes;             /* any of these: oribi_compress_headers() writes other headers */
    int64_t content_length;   /* of the application; -1: none */
    /* private: places in `headers`, header_count where there is none */
    uint32_t etag;
    uint32_t vary;
};

/* Decides. A Content-Length that is no number leaves everything as it is; so the answer is refused as ever. */
void oribi_compress_decide(const struct oribi_compress_question *question, struct oribi_compress_decision *decision);

/* Where texts of new headers live. */
struct oribi_compress_texts {
    char etag[ORIBI_COMPRESS_ETAG_BYTES_MAX + 2];
    char vary[ORIBI_COMPRESS_VARY_BYTES_MAX];
};

/* Writes the headers of a decision that `changes`: at most header_count + ORIBI_COMPRESS_HEADERS_ADDED_MAX. Values
 * point to those of the question, to `texts` or to static storage. Returns their number. */
uint32_t oribi_compress_headers(const struct oribi_compress_question *question,
                                const struct oribi_compress_decision *decision, struct oribi_compress_texts *texts,
                                struct oribi_header *dst);

/* Writes a list of entity-tags (RFC 9110 13.1.2) with the strong form behind each weak one: W/"x" becomes W/"x", "x".
 * Returns the length; 0 where there is nothing to add, where it is not the grammar, or where `cap` is too small. */
size_t oribi_compress_expand_tags(struct oribi_slice value, char *dst, size_t cap);

#endif
