/* Maxima of requests, answers and connections, with their defaults. The operator's values travel in struct
 * oribi_limits; the *_CAP constants bound what an operator may ask for and size our fixed arrays. */
#ifndef ORIBI_BASE_LIMITS_H
#define ORIBI_BASE_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI_METHOD_BYTES_MAX = 32,
    ORIBI_TARGET_BYTES_DEFAULT = 16 * 1024,
    ORIBI_HEAD_BYTES_DEFAULT = 64 * 1024,
    ORIBI_HEAD_BYTES_CAP = 1024 * 1024,
    ORIBI_FIELDS_DEFAULT = 100,
    ORIBI_FIELDS_CAP = 256,
    ORIBI_STRING_FIELDS_MAX = 128, /* of a head that an application has parsed from a string */
    ORIBI_FIELD_NAME_BYTES_MAX = 1024,
    ORIBI_EMPTY_LINES_MAX = 2,             /* skipped before a request line, RFC 9112 2.2 */
    ORIBI_CHUNK_EXT_BYTES_MAX = 16 * 1024, /* all extensions of one request together */
    ORIBI_CHUNK_SIZE_DIGITS_MAX = 16,      /* after leading zeros */
    ORIBI_TRAILER_BYTES_MAX = 16 * 1024,
    ORIBI_BODY_MEMORY_DEFAULT = 16 * 1024 * 1024,
    ORIBI_SMALL_BODY_BYTES = 128 * 1024, /* a longer body stays in memory only while the budget is far from full */
    /* Lingering: after the last answer input is read and dropped, so that no reset overtakes the answer. It ends when
     * the peer closes, is silent for so long, has taken this long altogether, or has sent so many bytes: the sender of
     * a refused upload may not look for the answer before its upload is through. */
    ORIBI_LINGER_SILENCE_MS_MAX = 2000,
    ORIBI_LINGER_MS_MAX = 30 * 1000,
    ORIBI_LINGER_BYTES_MAX = 256 * 1024 * 1024,
    ORIBI_INTERIM_UNSENT_BYTES_MAX = 128 * 1024, /* while more waits for the client, interim answers are left out */
    ORIBI_RESPONSE_HEAD_BYTES_MAX = 256 * 1024,  /* serialised head of one answer; more is the application's mistake */
    ORIBI_RESPONSE_FIELDS_MAX = 1024,
    ORIBI_REFUSED_SHOWN_MAX = 256, /* bytes of a refused line that the error log shows */
    /* connections whose descriptor the application has closed; then the worker is replaced */
    ORIBI_LOST_CONNECTIONS_MAX = 1000,
    /* a connection that has rested for a shorter time is not closed for a new one: its next request may be on the
     * way */
    ORIBI_ROOM_IDLE_MS_MIN = 100,
    ORIBI_THREADS_MAX = 64,     /* calls at a time in one worker */
    ORIBI_REQUEST_ID_MAX = 128, /* bytes of a request id that a proxy has chosen */
    /* forms and cookies that an application has parsed */
    ORIBI_FORM_PAIRS_DEFAULT = 65536,
    ORIBI_FORM_KEY_BYTES_DEFAULT = 1024 * 1024, /* what is no form at all (JSON, say) is one long key */
    ORIBI_FORM_BYTES_DEFAULT = 64 * 1024 * 1024,
    ORIBI_FORM_BYTES_CAP = 1024 * 1024 * 1024,
    ORIBI_FORM_DEPTH_DEFAULT = 32,
    ORIBI_FORM_PARTS_DEFAULT = 4096,
    ORIBI_FORM_FILES_DEFAULT = 128,
    ORIBI_FORM_PART_HEAD_BYTES_DEFAULT = 16 * 1024,
    ORIBI_FORM_MEMORY_DEFAULT = 16 * 1024 * 1024,  /* bodies of parts that are kept in memory */
    ORIBI_COOKIE_BYTES_MAX = ORIBI_HEAD_BYTES_CAP, /* of a Cookie field, and of a cookie that is baked */
    /* the page of an error in development */
    ORIBI_FAILURE_FACTS_MAX = 1024, /* frames, fields, parameters and whatever else a binding tells */
    ORIBI_FAILURE_VALUE_BYTES_MAX = 2048,
    ORIBI_FAILURE_MESSAGE_BYTES_MAX = 16 * 1024,
    ORIBI_FAILURE_LINE_BYTES_MAX = 400, /* of a line of source */
    ORIBI_FAILURE_SOURCE_BYTES_MAX = 4 * 1024 * 1024,
    ORIBI_FAILURE_SHOWN_FRAMES_MAX = 8, /* of the application's frames have their source in the page */
};

#define ORIBI_BODY_BYTES_DEFAULT ((int64_t)1 << 30)

struct oribi_limits {
    uint32_t target_bytes_max;
    uint32_t head_bytes_max;
    uint32_t fields_max;
    int64_t body_bytes_max;
    uint32_t body_memory_max;
    bool underscores_allow; /* keep field names with `_` (Content_Length and its like stay 400) */
    bool strict_target;     /* refuse raw 8-bit and \^`{|} in the target */
    bool connect_allow;     /* hand CONNECT to the application instead of 501 */
};

/* Fills `limits` with the defaults above. */
void oribi_limits_init(struct oribi_limits *limits);

#endif
