/* Content codings (RFC 9110 8.4): which one a client takes (accept_encoding.c), which answers get one (compressible.c),
 * and the compressors (compress.c, with one source for each library). */
#ifndef ORIBI_HTTP_COMPRESS_H
#define ORIBI_HTTP_COMPRESS_H

#include "oribi/base/buf.h"
#include "oribi/http/head.h"
#include "oribi/http/response.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- accept_encoding ---- */

/* Accept-Encoding (RFC 9110 12.5.3): which of the codings at hand an answer gets. Pure.
 *
 * Others differ, and the RFC is followed instead:
 * - nginx 1.22 and Apache 2.4 (mod_deflate) ask only whether gzip is refused: no q value makes them prefer identity or
 *   another coding, and `*`, `x-gzip` and `identity;q=0` mean nothing to them.
 * - Apache takes gzip with a weight or parameter that is not the grammar; nginx does not.
 */

enum { ORIBI_ACCEPT_ENCODING_BYTES_MAX = 8 * 1024 }; /* a longer value is read as an empty one */

enum oribi_coding {
    ORIBI_CODING_NONE, /* nothing acceptable */
    ORIBI_CODING_IDENTITY,
    ORIBI_CODING_GZIP,
    ORIBI_CODING_BR,
    ORIBI_CODING_ZSTD,
    ORIBI_CODING_COUNT,
};

/* The name for Content-Encoding, "identity" for that one; ORIBI_CODING_NONE has none. Static storage. */
struct oribi_slice oribi_coding_name(enum oribi_coding coding);

/* Chooses among offered[0 … count), which stand in the server's order, by the value of Accept-Encoding, repeats joined
 * with ", " (p is NULL: no such field). The highest q is taken, and of several the one that is offered first.
 * - A coding that is not named has the q of `*`. Without `*` only identity is then acceptable, after all others.
 * - Without the field everything is acceptable, but nothing is known of the client: identity is taken where it is
 *   offered, else the first.
 * - An empty value makes identity alone acceptable.
 * - x-gzip is gzip (RFC 9110 8.4.1.3), names are compared in any case, and other codings are passed over.
 * - A coding that is named twice has the lower q.
 * - An element with a weight that is not the grammar never makes a coding acceptable and never makes identity
 *   unacceptable: it counts as q=0, but is passed over for identity and `*`. An element without a token at its front is
 *   passed over.
 * Returns ORIBI_CODING_NONE when no offered coding is acceptable, as with `identity;q=0`: the answer is then 406, or a
 * coding that the client does not want (RFC 9110 12.4.1 lets the server choose). Borrows everything. */
enum oribi_coding oribi_accept_encoding_choose(struct oribi_slice value, const enum oribi_coding *offered,
                                               size_t count);

/* ---- compressible ---- */

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

/* ---- compress ---- */

/* Compressors of content codings (RFC 9110 8.4.1): bytes in, a gzip, br or zstd stream out. A compressor is made once
 * and begun anew for each stream, and takes no memory then: zlib and zstd keep their state, and what brotli gives back
 * at the end of a stream is kept for the next.
 *
 * Each library is optional at build time (CODINGS in core/Makefile); a coding without its library has no compressor.
 * One source each: compress_zlib.c, compress_zstd.c, compress_brotli.c. */

enum {
    ORIBI_COMPRESS_LEVEL_MAX = 9, /* a meaning that all three share; their slower ones are not for answers */
    /* At most so many bytes go into oribi_compressor_write() at a time. */
    ORIBI_COMPRESS_PIECE_BYTES = 64 * 1024,
    /* oribi_compressor_write() appends at most so many bytes beyond twice that: bytes held back, the library's own
     * framing, padding. */
    ORIBI_COMPRESS_HELD_BYTES_MAX = 512 * 1024,
    ORIBI_COMPRESS_PADDING_BYTES_MAX = 255,
};

struct oribi_compressor;

/* The compressor's step behind the bytes of a write. */
enum oribi_compress_then {
    ORIBI_COMPRESS_GO_ON, /* holds back what compresses better with what follows */
    ORIBI_COMPRESS_FLUSH, /* gives all bytes so far, so that a decoder has them */
    ORIBI_COMPRESS_END,   /* ends the stream; begin comes next */
};

/* True for a coding whose library was there at build time. */
bool oribi_compress_has(enum oribi_coding coding);

/* Writes what this build can do for --version: "gzip (zlib 1.2.13), zstd 1.5.4, no br". NUL-terminated, cut at
 * cap - 1. */
void oribi_compress_describe(char *dst, size_t cap);

/* Gives a compressor of a coding that oribi_compress_has(). level: 1 (fast) … ORIBI_COMPRESS_LEVEL_MAX (small), or 0
 * for the coding's own default: gzip 5, zstd 3, br 5. A level of gzip is zlib's, of zstd libzstd's; of br it is a
 * quality that takes about gzip's time. 0 or ORIBI_ENOMEM. */
int oribi_compressor_create(enum oribi_coding coding, uint32_t level, struct oribi_compressor **out);
void oribi_compressor_destroy(struct oribi_compressor *compressor); /* NULL is allowed */

enum oribi_coding oribi_compressor_coding(const struct oribi_compressor *compressor);

/* Begins a stream; one that was not ended is forgotten. `padding` (at most ORIBI_COMPRESS_PADDING_BYTES_MAX) bytes
 * that a decoder skips are added to it: in the extra field of gzip (RFC 1952 2.3.1.1), in a metadata block of brotli
 * (RFC 7932 9.2), in a skippable frame behind the content of zstd (RFC 8878 3.1.2). 0 adds nothing. 0, ORIBI_ENOMEM,
 * or ORIBI_ESYS when the library fails for another reason. */
int oribi_compressor_begin(struct oribi_compressor *compressor, size_t padding);

/* Compresses [p, p+n), which is borrowed and at most ORIBI_COMPRESS_PIECE_BYTES, and appends what comes out to `out`.
 * 0; ORIBI_ENOMEM, or ORIBI_ESYS when the library fails: the stream is lost then, and `out` has a part of it. */
int oribi_compressor_write(struct oribi_compressor *compressor, const void *p, size_t n, enum oribi_compress_then then,
                           struct oribi_buf *out);

#endif
