/* Reader of RESP2 and RESP3, the protocols that Redis answers in (https://redis.io/docs/latest/develop/reference/
 * protocol-spec/). Pure: bytes go in, in pieces of any size, events come out; no system call.
 *
 *     for (;;) {
 *         struct oribi_redis_event event;
 *         int found = oribi_redis_next(&reader, &event);
 *         if (found == ORIBI_AGAIN) { ... read more into oribi_redis_room(), say how much by oribi_redis_got() ... }
 *         else if (found < 0) ...                      // ORIBI_EBAD: no RESP; the reader is of no more use
 *         else ...                                     // an event; event.ends: the reply is complete with it
 *     }
 *
 * A caller builds its values by recursion: an event that opens an aggregate is followed by those of its `count`
 * elements (a map of n pairs has 2 n), each of which may open another; aggregates do not close by an event of their
 * own. Depth never exceeds ORIBI_REDIS_DEPTH_MAX, so that recursion is bounded.
 *
 * No byte is looked at twice, however the input is cut. Nothing is allocated by what a reply announces: a caller that
 * makes room for `count` elements beforehand asks oribi_redis_likely(). */
#ifndef ORIBI_REDIS_READER_H
#define ORIBI_REDIS_READER_H

#include "oribi/base/buf.h"
#include "oribi/base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI_REDIS_DEPTH_MAX = 128,       /* aggregates within each other */
    ORIBI_REDIS_LINE_MAX = 64 * 1024,  /* bytes of a simple string, an error, a number or a length, without CR LF */
    ORIBI_REDIS_WHOLE_MAX = 16 * 1024, /* a longer string that has not come whole is told before its end (LONG) */
};
#define ORIBI_REDIS_STRING_MAX (512ULL << 20)     /* bytes of a string as Redis sends it (proto-max-bulk-len) */
#define ORIBI_REDIS_COUNT_MAX  ((1ULL << 31) - 1) /* elements of an aggregate; pairs of a map */

enum oribi_redis_kind {
    ORIBI_REDIS_NULL,     /* $-1, *-1 or _ */
    ORIBI_REDIS_BOOLEAN,  /* integer is 0 or 1 */
    ORIBI_REDIS_INTEGER,  /* integer */
    ORIBI_REDIS_DOUBLE,   /* text: digits as strtod(3) takes them in the C locale, or inf, -inf, nan */
    ORIBI_REDIS_BIG,      /* text: an optional sign and digits */
    ORIBI_REDIS_STATUS,   /* text: a simple string (+OK) */
    ORIBI_REDIS_STRING,   /* text: a bulk string */
    ORIBI_REDIS_VERBATIM, /* text without its format; format has the three letters */
    ORIBI_REDIS_ERROR,    /* text: a simple or a bulk error, without the mark */
    ORIBI_REDIS_LONG,     /* a bulk string or verbatim string of `count` bytes of which not all have come: take them */
    ORIBI_REDIS_ARRAY,    /* count elements follow */
    ORIBI_REDIS_SET,      /* the same */
    ORIBI_REDIS_MAP,      /* count pairs follow: key, value, key, value */
    ORIBI_REDIS_PUSH,     /* count elements follow; no answer to a command. Only between replies */
};

struct oribi_redis_event {
    enum oribi_redis_kind kind;
    bool ends;      /* the reply, or push, is complete with this event; of LONG: with its last byte */
    char format[4]; /* VERBATIM and LONG of a verbatim string: "txt", "mkd"; else "" */
    int64_t integer;
    uint64_t count;
    struct oribi_slice text; /* into the reader's buffer: until the next oribi_redis_room() */
};

/* An aggregate whose elements have not all come. */
struct oribi_redis_frame {
    uint64_t left;
    bool dropped;   /* of an attribute: read and not told */
    bool attribute; /* stands before an element and is none */
};

/* All zero, then oribi_redis_reader_init(). Fields are the reader's own. */
struct oribi_redis_reader {
    struct oribi_buf in;
    size_t at;        /* what is before was told */
    size_t scanned;   /* of the line at `at`: so many bytes hold no CR */
    uint64_t body;    /* bytes of a LONG string that were not taken; behind them CR LF */
    uint64_t awaited; /* bytes that the string at `at` needs in all, 0: unknown; spares reading its line again */
    uint64_t string_max, count_max;
    bool in_body, broken;
    uint32_t depth;
    struct oribi_redis_frame frames[ORIBI_REDIS_DEPTH_MAX];
    const char *why; /* what was wrong, after ORIBI_EBAD; static storage */
};

/* string_max, count_max: at most ORIBI_REDIS_STRING_MAX and ORIBI_REDIS_COUNT_MAX; 0: these. Does not allocate. */
void oribi_redis_reader_init(struct oribi_redis_reader *reader, uint64_t string_max, uint64_t count_max);

/* Frees the buffer. The reader may be initialised again. */
void oribi_redis_reader_deinit(struct oribi_redis_reader *reader);

/* Forgets what has come and what was wrong, and keeps the buffer when it is not large: for a new connection. */
void oribi_redis_reader_reset(struct oribi_redis_reader *reader);

/* Room for at least `least` bytes of input; *room says how many there are. NULL: memory is out. Texts of earlier events
 * die. */
char *oribi_redis_room(struct oribi_redis_reader *reader, size_t least, size_t *room);

/* So many bytes were put there. */
void oribi_redis_got(struct oribi_redis_reader *reader, size_t n);

/* The next event. ORIBI_AGAIN: more input is needed. ORIBI_EBAD: not RESP, reader->why says what is wrong; so it is for
 * ever. ORIBI_ELIMIT: more than string_max, count_max, ORIBI_REDIS_DEPTH_MAX or ORIBI_REDIS_LINE_MAX; the same.
 * After LONG its bytes must be taken first. */
int oribi_redis_next(struct oribi_redis_reader *reader, struct oribi_redis_event *event);

/* Bytes of a LONG string, once for all or in pieces: copies what has come, at most n, and returns how many. The caller
 * may read the rest of the string from the socket to where it will lie, and says so by oribi_redis_skip_body(). */
size_t oribi_redis_take(struct oribi_redis_reader *reader, char *p, size_t n);

/* So many bytes of a LONG string were read past the reader, whose input is used up. */
void oribi_redis_skip_body(struct oribi_redis_reader *reader, uint64_t n);

/* Bytes of a LONG string that are still to be taken; 0: none, or no such string. */
uint64_t oribi_redis_body_left(const struct oribi_redis_reader *reader);

/* Reads the end of a LONG string, once all of it was taken: 0, ORIBI_AGAIN or ORIBI_EBAD, as of oribi_redis_next(),
 * which does the same where it was not called. */
int oribi_redis_body_end(struct oribi_redis_reader *reader);

/* How many elements a caller may make room for when `count` are announced: no more than could have come already, and a
 * few. */
size_t oribi_redis_likely(const struct oribi_redis_reader *reader, uint64_t count);

/* Nothing of a reply has come and none is half told. */
static inline bool oribi_redis_reader_idle(const struct oribi_redis_reader *reader)
{
    return reader->at == reader->in.len && reader->depth == 0 && !reader->in_body && !reader->broken;
}

#endif
