/* reply_file - answers whose body is a file: conditions and ranges (http/conditions.h) of what the
 * application would send with 200.
 *
 * An answer is left as it is, bytes and headers, where the application has decided otherwise: another status or method,
 * Content-Encoding, a Content-Length that is not the file's. Else:
 * - Conditions are compared with the ETag and the Last-Modified of the application. None is made up: what the file is
 *   called, and for whom, is the application's to know, and Last-Modified alone would make clients keep the answer
 *   (RFC 9111 4.2.2). Without either only `*` can match. A 304 has no Content-Type and no Content-Length; 412 and 416
 *   have nothing that describes the file or lets it be cached.
 * - Ranges are sent where the application has no Accept-Ranges and no Content-Range of its own, and the file is not one
 *   that was made for this answer: it has the application's ETag or Last-Modified, or it was last changed two seconds
 *   ago or earlier. Such answers say `Accept-Ranges: bytes`. If-Range needs the application's validators.
 *
 * A file that the application has only named (worker/sendfile.h) is `delegated`: type, ETag and Last-Modified are the
 * file's where the application has none, except, with `Cache-Control: no-store`, both validators. */
#ifndef ORIBI_WORKER_REPLY_FILE_H
#define ORIBI_WORKER_REPLY_FILE_H

#include "oribi/base/buf.h"
#include "oribi/http/response.h"

#include <stdbool.h>
#include <stdint.h>

struct oribi__exchange;

struct oribi__file {
    int fd; /* borrowed */
    int64_t offset;
    int64_t len; /* from there on */
    int64_t mtime_s;
    bool delegated;
    struct oribi_slice type; /* of a delegated file, and what its ETag ends in: see oribi_validators_of_file() */
    struct oribi_slice tag;
};

/* As oribi_reply_file(). Of a delegated file's headers those that name it have been taken out. */
int oribi__reply_file(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                      uint32_t header_count, const struct oribi__file *file);

#endif
