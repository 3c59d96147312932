/* One request as the bindings see it, and the calls that answer it. The core has read, parsed and buffered
 * everything before the request is handed out: a binding converts, calls the application, converts back.
 *
 *   take ──► (head, body, addresses) ──► exactly one of
 *              oribi_reply                       whole answer from memory, one sendmsg
 *              oribi_reply_file                  head from memory, body by sendfile
 *              oribi_reply_begin, _write*, _end  streaming (or _abort)
 *              oribi_req_detach, _detached       the socket leaves the core
 *
 * Threads: only the thread that took the request calls these functions. None of them runs language code.
 *
 * Blocking: oribi_reply_wait() and oribi_req_detach() wait for the client, so call them without the VM lock. The others
 * do not wait for the client, but may wait a moment for the reactor: for one step of the helper, or for another thread
 * of the worker. oribi_reply_path() opens a file, and output that the client does not take may go to one.
 *
 * After the ending call (reply, reply_file and its relatives, reply_error, end, abort, detached) the request and all
 * its slices are gone. */
#ifndef ORIBI_WORKER_REQ_H
#define ORIBI_WORKER_REQ_H

#include "oribi/http/fields.h"
#include "oribi/http/head.h"
#include "oribi/http/proxy.h"
#include "oribi/http/response.h"
#include "oribi/worker/shape.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct oribi_options;
struct oribi_body_piece;
struct oribi_form_data;

struct oribi_req {
    struct oribi_head *head;
    /* CGI view (RFC 3875 4.1). SERVER_NAME: host of the request, else the listener's; SERVER_PORT: the listener's
     * port, or for unix sockets the port of Host, else 80. Never empty. */
    struct oribi_slice server_name;
    struct oribi_slice server_port;
    struct oribi_slice remote_addr; /* numeric text; "" for a unix-socket peer */
    struct oribi_slice remote_port; /* "" for a unix-socket peer */
    struct oribi_slice scheme;      /* "http" or "https" */
    /* Decoded request body. Either in memory, or (body_fd >= 0) in an unlinked file positioned at 0, owned by the
     * request: dup it to keep it. body_len 0 when there is none. Or (`parted`) it is a form that was taken apart: body
     * is empty and body_fd -1, see oribi_req_piece() and oribi_req_join(). */
    struct oribi_slice body;
    int body_fd;
    int64_t body_len;
    bool parted;
    /* Fields behind a chunked body that may be known there, see oribi/http/head.h: lower-case names, none of
     * them in `head`. */
    const struct oribi_field *trailers;
    uint32_t trailer_count; /* nearly always 0 */
    /* From the arrival of the request's last byte to take; from X-Request-Start where that says it was longer. */
    int64_t queue_us;
    struct oribi_slice request_id; /* with the option of that name, else empty; a field of the head says it, too */
    const struct oribi_channel_head *client; /* what a frontend says of its client, and of TLS; NULL: it is ours */
    bool last;                               /* the connection closes after this answer whatever the application does */
    /* private to the core: src/worker/exchange.h */
};

/* The request came by HTTPS: to us, or to a proxy that is believed. */
static inline bool oribi_req_is_https(const struct oribi_req *req)
{
    return req->scheme.n == 5;
}

/* Keys that the environment has of the client: bits of worker/shape.h. HTTPS is "on" wherever the scheme is https:
 * CGI.pm and Mojolicious read it, and Rack believes it before the scheme, so the two must never differ. The values of
 * SSL_PROTOCOL, SSL_CIPHER and SSL_TLS_SNI, as Apache's mod_ssl writes them, are those of req->client. */
static inline uint32_t oribi_req_client(const struct oribi_req *req)
{
    uint32_t client = req->remote_addr.n ? ORIBI_SHAPE_ADDRESSED : 0;
    client |= oribi_req_is_https(req) ? ORIBI_SHAPE_HTTPS : 0;
    if (req->client && req->client->tls)
        client |= ORIBI_SHAPE_TLS | (req->client->sni.n ? ORIBI_SHAPE_SNI : 0);
    return client;
}

/* The protocol that the client speaks: 0 for HTTP/1.0, 1 for HTTP/1.1, 2 for HTTP/2. The request on the channel of a
 * frontend is one of HTTP/1.1. */
static inline int oribi_req_protocol(const struct oribi_req *req)
{
    if (req->client)
        return req->client->protocol == 20 ? 2 : req->client->protocol == 11 ? 1 : 0;
    return req->head->minor ? 1 : 0;
}

/* True for a client that a frontend has asked for a certificate: there are variables about that. */
static inline bool oribi_req_certificate_asked(const struct oribi_req *req)
{
    return req->client && req->client->tls && req->client->verify.n > 0;
}

/* Variables of the environment about the certificate of a client that a frontend holds (req.c): SSL_CLIENT_*, as
 * Apache's mod_ssl names and writes them. Fills in those that there are, and returns their number, mostly 0. Values
 * live as long as the request. */
struct oribi_variable {
    const char *name;
    struct oribi_slice value;
};
enum { ORIBI_CLIENT_VARIABLES_MAX = 7 };
uint32_t oribi_req_client_variables(const struct oribi_req *req,
                                    struct oribi_variable variables[ORIBI_CLIENT_VARIABLES_MAX]);

/* --- a body that was taken apart (req.c) --- */

/* The piece of this number, from 0 on, see event/body.h; false: there are no more. They
 * live until the request ends or is joined. */
bool oribi_req_piece(const struct oribi_req *req, uint32_t index, struct oribi_body_piece *piece);

/* Gives the file of a piece that is a part, as oribi_parts_give() does. */
int oribi_req_part_file(const struct oribi_req *req, uint32_t index);

/* True when such a body was taken apart at the delimiters that this parser looks for, so that the data of its parts
 * has none of them. */
bool oribi_req_parted_by(const struct oribi_req *req, const struct oribi_form_data *form);

/* Puts such a body together: body_fd is its file from now on, and there are no pieces. May take long: call it without
 * the VM lock. 0, ORIBI_ELIMIT (buffers_file_max), ORIBI_EFULL or ORIBI_ESTORE. */
int oribi_req_join(struct oribi_req *req);

/* Gives an unlinked file with all of it, which stands at 0, and leaves the request as it is; booked nowhere. The same
 * results. */
int oribi_req_copy_body(const struct oribi_req *req, int *fd);

/* Answers with a head and a body from memory. 0: the answer is sent or will be, and the request has ended; what the
 * socket did not take has been copied, so the iovecs are free. ORIBI_ECLOSED: the peer is gone, and the request has
 * ended. ORIBI_EAPP: the application's answer was not valid; the core has logged why, nothing was sent, and the request
 * is still open: call oribi_reply_error(req, 500). `body` may be given for HEAD, 204 and 304: it is counted for
 * Content-Length and not sent. */
int oribi_reply(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count,
                const struct iovec *body, size_t body_count);

/* The status of an answer that the application gives as text, see oribi_status_read(); a reason beside it is logged.
 * -1: it is none. */
int oribi_req_read_status(struct oribi_req *req, struct oribi_slice text);

/* The path decoded once (RFC 3875 4.1.5, RFC 3986 2.1), for interfaces that want it so; others pass head->path on as
 * it came. Writes to dst, which holds head->path.n bytes and may be that path. Returns its length; or ORIBI_EBAD for
 * a `%` not followed by two hex digits: then the request has been answered with 400, the connection closes behind
 * it, and nothing is left to do. Call it before anything is answered. */
ssize_t oribi_req_decode_path(struct oribi_req *req, char *dst);

/* A small plain-text answer of our own with this status (4xx, 5xx). When the answer has already begun:
 * oribi_reply_abort. Ends the request. */
void oribi_reply_error(struct oribi_req *req, int status);

/* Answers as oribi_reply_error(), but with a page of the binding's, for development, unless an operator has chosen a
 * page for this status: `type` is the page's content type. No cache may keep the page. Borrows the page. */
void oribi_reply_failure(struct oribi_req *req, int status, const char *type, struct oribi_slice page);

/* As oribi_reply; the body is [offset, offset+len) of a regular file. Borrows fd (duplicated if the rest must wait for
 * the peer). An answer of 200 becomes 206, 304, 412 or 416 where the request asks for that and the application has not
 * said otherwise: src/worker/reply.h. 1: the application has framed the file's content (Transfer-Encoding:
 * chunked), so that it must be read; nothing has happened. */
int oribi_reply_file(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count,
                     int fd, int64_t offset, int64_t len);

/* As oribi_reply_file, from `offset` to the end of whatever fd is. 1 also when that is no regular file, or one whose
 * size is not that of its content (/proc, /sys): it must be read. */
int oribi_reply_rest_of_file(struct oribi_req *req, int status, const struct oribi_header *headers,
                             uint32_t header_count, int fd, int64_t offset);

/* Answers as oribi_reply_rest_of_file(), with the whole file at `path` (borrowed, NUL-terminated). 1 also when the file
 * cannot be opened. */
int oribi_reply_path(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count,
                     const char *path);

/* Where the options have sendfile_root or sendfile_map: answers with the file that one of the headers (X-Sendfile,
 * X-Lighttpd-Send-File, X-Accel-Redirect) names, in the place of the application's body. 1: none of them does, nothing
 * has happened, and the answer is sent as usual. A file that may not or cannot be sent is logged, and answered with 500
 * (0). Else as oribi_reply_file. */
int oribi_reply_named(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count);

/* Before an X-Accel-Redirect whose path is not encoded. */
#define ORIBI_SENDFILE_AS_IS "as-is:"

/* Writes what X-Accel-Mapping would say for sendfile_map, "FOLDER/=PREFIX/,…", NUL-terminated; maps whose texts have a
 * comma or an equals sign are left out. False: there is none, it is longer than cap, or, without `several`, there are
 * several. Without `several` it is for Plack, whose middleware puts the prefix before the rest of the name and encodes
 * nothing: the prefix begins with ORIBI_SENDFILE_AS_IS there. */
bool oribi_sendfile_mapping(const struct oribi_options *options, bool several, char *dst, size_t cap);
enum { ORIBI_SENDFILE_MAPPING_CAP = 16 * 1024 };

/* As body_len of oribi_reply_begin(): only the head is ours, the application writes the rest to the socket it gets
 * from oribi_req_detach() (partial hijack, 101). Its Connection, Upgrade and Transfer-Encoding headers are then sent
 * as they are. */
#define ORIBI_BODY_DETACHED ((int64_t)-2)

/* Starts a streamed answer. body_len: total when known, else -1 (chunked, or close-delimited for 1.0). 0, or
 * ORIBI_EAPP (logged, still open). The head leaves with the first write, or with oribi_reply_flush. */
int oribi_reply_begin(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count,
                      int64_t body_len);

/* Sends or queues these bytes; those that come fast behind others may wait for up to a millisecond, or until more of
 * them have come, the stream is flushed, or ends (src/worker/burst.h). With Transfer-Encoding: chunked among the
 * headers they are what the application has framed itself, and their content is sent; that framing being malformed is
 * ORIBI_EAPP (logged; call _abort). 0; 1: queued output is above the high-water mark, call oribi_reply_wait() before
 * more; ORIBI_ECLOSED: the peer is gone (the request stays open: call _end or _abort). Bytes beyond a known length are
 * cut. */
int oribi_reply_write(struct oribi_req *req, const struct iovec *vec, size_t count);

/* Sends now what is still held back: the head, or bytes before. Same results. */
int oribi_reply_flush(struct oribi_req *req);

/* Blocks until queued output is below the low-water mark (0), until the peer is gone or write_timeout has passed
 * without progress (ORIBI_ECLOSED), or until oribi_worker_wake(), or for one of several threads oribi_thread_wake(),
 * was called (1: run interrupts, call again). The call has no deadline meanwhile. */
int oribi_reply_wait(struct oribi_req *req);

/* Ends the stream; shorter than a known length, or without the last chunk of the application's own framing, aborts.
 * Ends the request. */
int oribi_reply_end(struct oribi_req *req);

/* The application failed after the head went out: the connection is cut so that the peer cannot take the answer for
 * complete. If nothing was sent yet it answers 500. Ends the request. */
void oribi_reply_abort(struct oribi_req *req);

/* Has the client gone, as far as gone_on says? Costs a system call or two. By the thread of the call, or by another
 * while the call cannot end; until the request has ended. */
bool oribi_req_gone(const struct oribi_req *req);

/* The application has let itself be cancelled (oribi_thread_take_gone()): nothing is answered, the connection closes,
 * and the access log says 499. When the answer has already begun: oribi_reply_abort. Ends the request. */
void oribi_reply_gone(struct oribi_req *req);

/* Interim answer (100, 102-199; 103 Early Hints). Dropped silently for HTTP/1.0 clients, once the answer has begun, and
 * while more than ORIBI_INTERIM_UNSENT_BYTES_MAX wait for the client. 0, ORIBI_EAPP (logged) or ORIBI_ECLOSED; the
 * request stays open in all cases. */
int oribi_req_inform(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count);

/* Takes the connection out of the core: gives the socket (non-blocking, CLOEXEC) and, in *rest, what was already
 * read behind this request (borrowed until oribi_req_detached). If a head was begun (partial hijack) it is sent
 * first; blocks until the client has taken all of it. 0, or ORIBI_ECLOSED (ended, no fd). After 0 call
 * oribi_req_detached() to end the request, which writes its line of the access log. */
int oribi_req_detach(struct oribi_req *req, int *fd, struct oribi_slice *rest);
void oribi_req_detached(struct oribi_req *req);

/* The connection's socket, for a binding that gives the application a duplicate before it knows whether the application
 * will take the connection over. Borrowed; it stays the core's. */
int oribi_req_fd(const struct oribi_req *req);

/* The application gets such a duplicate, and may write to it between two pieces of a streamed answer: what has been
 * gathered of that answer is sent now, and each later piece at once, so that the bytes keep their order. */
void oribi_req_lend_fd(struct oribi_req *req);

/* Is it the socket of a client on a unix socket? What remote_addr says may be a client's behind it. */
bool oribi_req_is_unix(const struct oribi_req *req);

/* Bytes that were already read behind this request: the next request, or what the client sends in advance in the
 * protocol that it asks to change to. Borrowed; they live until the request ends. */
struct oribi_slice oribi_req_behind(const struct oribi_req *req);

enum { ORIBI_EXTENSION_S_MAX = 24 * 60 * 60 };

/* The seconds that an application asks for, in ms for oribi_thread_extend_deadline(); ORIBI_EBAD unless they are more
 * than 0 and at most ORIBI_EXTENSION_S_MAX. */
int64_t oribi_extension_ms(double seconds);

/* The connection closes after this answer, which says Connection: close. */
void oribi_req_close_after(struct oribi_req *req);

#endif
