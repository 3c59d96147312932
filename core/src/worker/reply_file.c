/* Answers whose body is a file; see the header. Reading order: oribi__reply_file, decide, send_ranges, send_file. */
#include "worker/compress.h"
#include "worker/exchange.h"
#include "worker/placement/ownership.h"
#include "worker/reply.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/files/root.h"
#include "oribi/http/conditions.h"
#include "oribi/http/date.h"

#include <assert.h>
#include <string.h>

/* --- several ranges of a file in one answer (RFC 9110 14.6) --- */

/* splitmix64. The boundary is 128 bits of it: that a file holds them by chance is out of reach, and a file that was
 * made to hold them would have to be written after the answer began. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

static void make_boundary(char dst[ORIBI__BOUNDARY_BYTES])
{
    uint64_t seed = (uint64_t)oribi_clock_us() ^ (uint64_t)(uintptr_t)dst << 20;
    uint64_t word = mix(seed ^ (uint64_t)oribi_clock_wall_ms() << 32);
    for (int i = 0; i < ORIBI__BOUNDARY_BYTES; i++) {
        if (i == ORIBI__BOUNDARY_BYTES / 2)
            word = mix(word ^ seed);
        dst[i] = "0123456789abcdef"[word >> 4 * (i % 16) & 15];
    }
}

/* A text that was written to `p`, with `len` bytes of the file behind it. Gives where the next one goes. */
static char *add_piece(struct oribi__byteranges *body, char *p, ssize_t n, int64_t offset, int64_t len)
{
    assert(n > 0); /* the room is for the longest */
    body->pieces[body->count++] = (struct oribi_piece){{p, (size_t)n}, offset, len};
    return p + n;
}

bool oribi__byteranges_make(struct oribi__byteranges *body, const struct oribi_ranges *ranges, struct oribi_slice type,
                            int64_t offset, int64_t size)
{
    make_boundary(body->boundary);
    const struct oribi_multipart multipart = {
        .boundary = oribi_slice(body->boundary, ORIBI__BOUNDARY_BYTES),
        .type = type.n <= ORIBI__PART_TYPE_BYTES_MAX ? type : oribi_slice(NULL, 0),
        .size = size,
    };
    body->count = 0;
    body->len = oribi_multipart_len(&multipart, ranges);
    if (body->len < 0)
        return false;
    body->type = oribi_slice(body->type_text, oribi_multipart_type(&multipart, body->type_text));
    char *p = body->text;
    for (uint32_t i = 0; i < ranges->count; i++) {
        const struct oribi_byte_range *range = &ranges->at[i];
        ssize_t n = oribi_multipart_head(&multipart, ranges, i, p, ORIBI__PART_HEAD_CAP);
        p = add_piece(body, p, n, offset + range->first, range->last - range->first + 1);
    }
    (void)add_piece(body, p, oribi_multipart_end(&multipart, p, ORIBI__PART_HEAD_CAP), 0, 0);
    return true;
}

/* --- the answer --- */

enum {
    FEW_HEADERS = 48, /* of an answer whose list of headers needs no heap */
    ADDED_MAX = 4,    /* Content-Type, ETag, Last-Modified, Accept-Ranges; or Content-Range in the place of one */
};

/* Headers of the application that decide something here, or say something about the file. */
enum kind {
    OTHER,
    TYPE = 1,
    LENGTH = 2,
    ETAG = 4,
    MODIFIED = 8,
    RANGES = 16,   /* Accept-Ranges, Content-Range */
    ENCODING = 32, /* Content-Encoding */
    CACHING = 64,  /* Cache-Control, Expires */
    DISPOSITION = 128,
};

static const struct {
    struct oribi_slice name;
    enum kind kind;
} kinds[] = {
    {{"content-type", 12}, TYPE},
    {{"content-length", 14}, LENGTH},
    {{"etag", 4}, ETAG},
    {{"last-modified", 13}, MODIFIED},
    {{"accept-ranges", 13}, RANGES},
    {{"content-range", 13}, RANGES},
    {{"content-encoding", 16}, ENCODING},
    {{"cache-control", 13}, CACHING},
    {{"expires", 7}, CACHING},
    {{"content-disposition", 19}, DISPOSITION},
};

struct answer {
    struct oribi__exchange *exchange;
    const struct oribi__file *file;
    int64_t now_s;
    /* what the application says */
    uint32_t has; /* kinds */
    bool is_whole;
    bool no_store;
    struct oribi_slice type;
    struct oribi_validators validators;
    bool takes_ranges;
    /* what is sent */
    struct oribi_header *headers; /* `few`, or on the heap */
    uint32_t count;
    struct oribi_header few[FEW_HEADERS];
    char etag[ORIBI_ETAG_BYTES_MAX];
    char modified[ORIBI_DATE_LEN];
};

static enum kind kind_of(const struct oribi_header *header)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (oribi_slice_equal_fold(oribi_slice(header->name, header->name_len), kinds[i].name))
            return header->value ? kinds[i].kind : OTHER;
    return OTHER;
}

static bool holds(struct oribi_slice text, struct oribi_slice word)
{
    for (size_t i = 0; i + word.n <= text.n; i++)
        if (oribi_slice_equal_fold(oribi_slice(text.p + i, word.n), word))
            return true;
    return false;
}

/* Digits alone; anything else is for the writer of the head to judge. */
static bool is_number(struct oribi_slice text, int64_t number)
{
    int64_t read = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9' || read > INT64_MAX / 10 - 1)
            return false;
        read = read * 10 + (text.p[i] - '0');
    }
    return text.n > 0 && read == number;
}

static void take_header(struct answer *a, const struct oribi_header *header)
{
    enum kind kind = kind_of(header);
    struct oribi_slice value = oribi_slice(header->value, header->value_len);
    bool again = a->has & kind;
    a->has |= kind;
    if (kind == TYPE && !again)
        a->type = value;
    else if (kind == LENGTH)
        a->is_whole = a->is_whole && is_number(value, a->file->len);
    else if (kind == ETAG && !again)
        a->validators.etag = value;
    else if (kind == MODIFIED && !again)
        a->validators.has_last_modified = oribi_date_read(value, a->now_s, &a->validators.last_modified_s) == 0 &&
                                          a->validators.last_modified_s > ORIBI_MTIME_UNKNOWN_S;
    else if (kind == CACHING)
        a->no_store = a->no_store || holds(value, ORIBI_SLICE("no-store"));
}

/* Reads what the application has said. True: the answer is ours to decide. */
static bool survey(struct answer *a, int status, const struct oribi_header *headers, uint32_t header_count)
{
    const struct oribi_head *head = &a->exchange->base.head;
    a->now_s = oribi_clock_wall_s();
    a->is_whole = true;
    a->validators.exists = true;
    for (uint32_t i = 0; i < header_count; i++)
        take_header(a, &headers[i]);
    if (status != 200 || (!head->is_head && !oribi_slice_equal(head->method, ORIBI_SLICE("GET"))) || !a->is_whole ||
        a->has & ENCODING)
        return false;
    bool settled = a->file->mtime_s <= a->now_s - ORIBI_VALIDATOR_YOUNG_S;
    a->takes_ranges = !(a->has & RANGES) && (settled || a->has & (ETAG | MODIFIED));
    a->validators.last_modified_strong =
        a->validators.has_last_modified && a->validators.last_modified_s <= a->now_s - ORIBI_VALIDATOR_YOUNG_S;
    return true;
}

/* --- headers of the answer --- */

static void add(struct answer *a, struct oribi_slice name, struct oribi_slice value)
{
    a->headers[a->count++] = (struct oribi_header){name.p, value.p, (uint32_t)name.n, (uint32_t)value.n};
}

/* Copies the application's headers, with room for ours. False: there is no memory, or the writer of the head will
 * refuse so many. */
static bool copy_headers(struct answer *a, const struct oribi_header *headers, uint32_t header_count)
{
    if (header_count > ORIBI_RESPONSE_FIELDS_MAX)
        return false;
    if (header_count + ADDED_MAX > FEW_HEADERS && a->headers == a->few) {
        a->headers = oribi_mem_try_alloc(header_count + ADDED_MAX, sizeof(*a->headers));
        if (!a->headers)
            return false;
    }
    a->count = header_count;
    if (header_count > 0)
        memcpy(a->headers, headers, header_count * sizeof(*headers));
    return true;
}

/* Of a delegated file: what the application does not say of it. */
static void describe_file(struct answer *a, bool ours)
{
    struct oribi_validators of_file;
    if (!(a->has & TYPE)) {
        a->type = a->file->type;
        add(a, ORIBI_SLICE("Content-Type"), a->type);
    }
    if (!ours || a->no_store)
        return;
    oribi_validators_of_file(a->file->len, a->file->mtime_s, a->now_s, a->file->tag, a->etag, &of_file);
    if (!(a->has & ETAG) && of_file.etag.n) {
        a->validators.etag = of_file.etag;
        add(a, ORIBI_SLICE("ETag"), of_file.etag);
    }
    if (!(a->has & MODIFIED) && of_file.has_last_modified) {
        a->validators.has_last_modified = true;
        a->validators.last_modified_s = of_file.last_modified_s;
        a->validators.last_modified_strong = of_file.last_modified_strong;
        oribi_date_format(of_file.last_modified_s, a->modified);
        add(a, ORIBI_SLICE("Last-Modified"), oribi_slice(a->modified, sizeof(a->modified)));
    }
}

/* Takes headers of these kinds out again, of ours too. */
static void drop(struct answer *a, uint32_t without)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < a->count; i++)
        if (!(kind_of(&a->headers[i]) & without))
            a->headers[kept++] = a->headers[i];
    a->count = kept;
}

/* --- sending --- */

/* Head and body of `len` bytes. Ends the call, or leaves the request open with ORIBI_EAPP. */
static int send_plain(struct answer *a, int status, const struct oribi_piece *pieces, size_t piece_count, int64_t len)
{
    struct oribi__exchange *exchange = a->exchange;
    struct oribi_conn *c = exchange->base.conn;
    struct oribi_reactor *r = &exchange->worker->reactor;
    struct oribi__head_text head;
    struct oribi_piece cut;
    int64_t promised;
    oribi__enter(exchange->worker);
    int result = oribi__reply_head(exchange, status, a->headers, a->count, len, &head, &promised);
    if (result < 0) {
        oribi__leave(exchange->worker);
        return result;
    }
    exchange->phase = ORIBI_PHASE_STARTED;
    bool short_file = exchange->framing == ORIBI_FRAMING_LENGTH && promised > len;
    int64_t now = exchange->framing == ORIBI_FRAMING_NONE ? 0 : promised >= 0 && promised < len ? promised : len;
    if (now != len) { /* a Content-Length of the application's: such an answer is one piece */
        cut = (struct oribi_piece){{NULL, 0}, piece_count ? pieces[0].offset : 0, now};
        pieces = &cut;
        piece_count = 1;
    }
    struct iovec vec = {head.p, head.n};
    result = oribi_conn_send(r, c, &vec, 1, now > 0);
    oribi__head_text_free(&head);
    bool ends = exchange->framing == ORIBI_FRAMING_LENGTH && !short_file && piece_count == 1 && !pieces->text.iov_len;
    if (result == 0 && now > 0 && !(ends && oribi_conn_give_file(r, c, a->file->fd, pieces->offset, now)))
        result = oribi_conn_send_pieces(r, c, a->file->fd, pieces, piece_count);
    exchange->body_sent = now;
    if (result == 0 && short_file) {
        oribi__log_app(exchange, "file of %lld bytes is shorter than its Content-Length of %lld: connection cut",
                       (long long)len, (long long)promised);
        oribi__cut(exchange);
        return 0;
    }
    oribi__finish(exchange);
    return result < 0 ? ORIBI_ECLOSED : 0;
}

struct plain {
    struct answer *answer;
    const struct oribi_piece *pieces;
    size_t piece_count;
    int64_t len;
};

/* With the headers that compression has left. */
static int send_as_it_is(void *self, int status, const struct oribi_header *headers, uint32_t header_count)
{
    struct plain *plain = self;
    struct answer *a = plain->answer;
    struct oribi_header *own = a->headers;
    a->headers = (struct oribi_header *)(uintptr_t)headers; /* read only from here on */
    a->count = header_count;
    int result = send_plain(a, status, plain->pieces, plain->piece_count, plain->len);
    a->headers = own;
    return result;
}

/* Compressed where it is the whole file, and that is small. */
static int send_file(struct answer *a, int status, const struct oribi_piece *pieces, size_t piece_count, int64_t len)
{
    const struct oribi__file *file = a->file;
    bool whole = piece_count == 1 && pieces->offset == file->offset && len == file->len;
    struct plain plain = {a, pieces, piece_count, len};
    if (!a->exchange->worker->compression || !(whole || piece_count == 0) || len > ORIBI__COMPRESS_FILE_BYTES_MAX)
        return send_plain(a, status, pieces, piece_count, len);
    return oribi__compress_reply_file(a->exchange, status, a->headers, a->count, file->fd, file->offset, len,
                                      (struct oribi__compress_plain){send_as_it_is, &plain});
}

static int send_range(struct answer *a, int status, int64_t offset, int64_t len)
{
    return send_file(a, status, &(struct oribi_piece){{NULL, 0}, a->file->offset + offset, len}, 1, len);
}

/* 304, 412, 416. */
static int send_nothing(struct answer *a, int status, uint32_t without)
{
    drop(a, without);
    return send_file(a, status, NULL, 0, 0);
}

/* Headers that describe the file or let it be cached. */
enum { OF_THE_FILE = TYPE | LENGTH | ETAG | MODIFIED | CACHING | DISPOSITION };

static int send_several(struct answer *a, const struct oribi_ranges *ranges)
{
    struct oribi__byteranges body;
    if (!oribi__byteranges_make(&body, ranges, a->type, a->file->offset, a->file->len))
        return send_range(a, 200, 0, a->file->len);
    drop(a, TYPE | LENGTH);
    add(a, ORIBI_SLICE("Content-Type"), body.type);
    return send_file(a, 206, body.pieces, body.count, body.len);
}

/* The whole where `field` has no bytes, or is not to be followed. */
static int send_ranges(struct answer *a, struct oribi_slice field)
{
    struct oribi_ranges ranges;
    char text[ORIBI_CONTENT_RANGE_CAP];
    enum oribi_ranges_result result = field.p ? oribi_ranges_read(field, a->file->len, &ranges) : ORIBI_RANGES_WHOLE;
    if (result == ORIBI_RANGES_NONE) {
        add(a, ORIBI_SLICE("Content-Range"), oribi_slice(text, oribi_content_range_none(a->file->len, text)));
        return send_nothing(a, 416, OF_THE_FILE);
    }
    add(a, ORIBI_SLICE("Accept-Ranges"), ORIBI_SLICE("bytes"));
    if (result == ORIBI_RANGES_WHOLE)
        return send_range(a, 200, 0, a->file->len);
    if (ranges.count > 1)
        return send_several(a, &ranges);
    drop(a, LENGTH);
    add(a, ORIBI_SLICE("Content-Range"), oribi_slice(text, oribi_content_range(ranges.at[0], a->file->len, text)));
    return send_range(a, 206, ranges.at[0].first, ranges.at[0].last - ranges.at[0].first + 1);
}

/* Follows what the request asks of an answer that would be 200: conditions and ranges. */
static int decide(struct answer *a)
{
    struct oribi_conditions conditions;
    bool ranges;
    oribi_conditions_of_head(&a->exchange->base.head, &conditions);
    enum oribi_condition_result result = oribi_conditions_decide(&conditions, &a->validators, a->now_s, &ranges);
    if (result == ORIBI_CONDITION_NOT_MODIFIED)
        return send_nothing(a, 304, TYPE | LENGTH);
    if (result == ORIBI_CONDITION_FAILED)
        return send_nothing(a, 412, OF_THE_FILE);
    if (!a->takes_ranges)
        return send_range(a, 200, 0, a->file->len);
    return send_ranges(a, ranges ? conditions.range : oribi_slice(NULL, 0));
}

int oribi__reply_file(struct oribi__exchange *exchange, int status, const struct oribi_header *headers,
                      uint32_t header_count, const struct oribi__file *file)
{
    assert(exchange->phase == ORIBI_PHASE_OPEN);
    struct answer a = {.exchange = exchange, .file = file};
    a.headers = a.few;
    bool ours = survey(&a, status, headers, header_count);
    if (!copy_headers(&a, headers, header_count)) {
        a.headers = (struct oribi_header *)(uintptr_t)headers;
        a.count = header_count;
        return send_range(&a, status, 0, file->len);
    }
    if (file->delegated)
        describe_file(&a, ours);
    int result = ours ? decide(&a) : send_range(&a, status, 0, file->len);
    if (a.headers != a.few)
        oribi_mem_free(a.headers);
    return result;
}

/* --- files that the application has opened or names by its body --- */

static int reply_open(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count,
                      const struct oribi__file *file)
{
    struct oribi__exchange *exchange = oribi__exchange_of(req);
    if (oribi__call_is_abandoned(exchange))
        return ORIBI_ECLOSED;
    if (oribi_response_is_framed(headers, header_count))
        return 1;
    return oribi__reply_file(exchange, status, headers, header_count, file);
}

int oribi_reply_file(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count,
                     int fd, int64_t offset, int64_t len)
{
    struct oribi_file_info info;
    bool known = oribi_file_look(fd, &info);
    const struct oribi__file file = {
        .fd = fd, .offset = offset, .len = len, .mtime_s = known ? info.mtime_s : INT64_MAX /* never settled */};
    return reply_open(req, status, headers, header_count, &file);
}

int oribi_reply_rest_of_file(struct oribi_req *req, int status, const struct oribi_header *headers,
                             uint32_t header_count, int fd, int64_t offset)
{
    struct oribi_file_info info;
    if (!oribi_file_look(fd, &info) || oribi_file_size_is_doubtful(fd, &info))
        return 1;
    int64_t len = info.size > offset ? info.size - offset : 0;
    const struct oribi__file file = {.fd = fd, .offset = offset, .len = len, .mtime_s = info.mtime_s};
    return reply_open(req, status, headers, header_count, &file);
}

int oribi_reply_path(struct oribi_req *req, int status, const struct oribi_header *headers, uint32_t header_count,
                     const char *path)
{
    int fd;
    if (oribi_os_open_read(path, &fd) < 0)
        return 1;
    int result = oribi_reply_rest_of_file(req, status, headers, header_count, fd, 0);
    oribi_os_close(fd);
    return result;
}
