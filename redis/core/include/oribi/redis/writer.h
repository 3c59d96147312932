/* Writer of commands: arrays of bulk strings, as servers of RESP2 and RESP3 both take them. Pure. */
#ifndef ORIBI_REDIS_WRITER_H
#define ORIBI_REDIS_WRITER_H

#include "oribi/base/buf.h"

#include <stdint.h>

enum {
    ORIBI_REDIS_ARGUMENTS_MAX = 1024 * 1024, /* of a command, its name included; Redis' own maximum */
    ORIBI_REDIS_HEAD_MAX = 32,               /* bytes of "*N CR LF" or "$N CR LF" */
};

/* Begins a command of `count` arguments, which are to follow one by one. Returns 0; ORIBI_ENOMEM; ORIBI_EINVAL for 0 or
 * more than ORIBI_REDIS_ARGUMENTS_MAX. After an error the caller puts out->len back to where the command began. */
int oribi_redis_begin(struct oribi_buf *out, uint64_t count);

/* An argument. Returns 0; ORIBI_ENOMEM; ORIBI_EINVAL for more than ORIBI_REDIS_STRING_MAX bytes. */
int oribi_redis_argument(struct oribi_buf *out, struct oribi_slice text);

/* An argument whose bytes the caller sends itself from where they lie: only what stands before them; behind them the
 * caller's next piece begins with CR LF, by oribi_redis_argument_end(). Errors as above. */
int oribi_redis_argument_head(struct oribi_buf *out, uint64_t n);
int oribi_redis_argument_end(struct oribi_buf *out);

/* An argument in decimal. Returns 0 or ORIBI_ENOMEM. */
int oribi_redis_argument_int(struct oribi_buf *out, int64_t value);

/* A whole command of slices. Errors as above, with out->len as before. */
int oribi_redis_command(struct oribi_buf *out, const struct oribi_slice *arguments, uint64_t count);

#endif
