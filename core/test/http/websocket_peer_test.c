/* Frames of WebSocket beside wsproto, which shares no code with the reader: random streams, right and damaged, get the
 * same events and the same close code from both, but for the differences that explained() and
 * websocket_peer.py know. */
#include "guard.h"
#include "tap.h"
#include "websocket_told.h"

#include <arpa/inet.h>
#include <unistd.h>

enum { STREAMS = 4000, STREAM_MAX = 8000, TOLD_MAX = 2 * STREAM_MAX };

/* Differences that websocket_peer.py sees: OTHER_SURROGATE has been put right there, OTHER_RESERVED has not. */
enum { OTHER_SURROGATE = 1, OTHER_RESERVED = 2 };

/* The other's view of a stream. */
struct opinion {
    uint16_t fault;
    uint16_t later; /* the fault where 140 zeros follow */
    uint16_t meant; /* OTHER_… or 0 */
    size_t events_len;
    char events[TOLD_MAX];
    size_t open_len;
    char open[TOLD_MAX];
};

struct stream {
    enum oribi_websocket_role role;
    char bytes[STREAM_MAX];
    size_t n;
};

static const uint64_t first_seed = 0x9e3779b97f4a7c15U;
static uint64_t seed;

static uint32_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32);
}

static uint32_t below(uint32_t n)
{
    return next_random() % n;
}

/* ---- streams ---- */

static const char *const pieces[] = {
    "a", "Hello, world", "\xc3\x9f",        "\xe2\x82\xac", "\xf0\x9f\xa6\x8c", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf",
    "",  "\xef\xbf\xbf", "\xf0\x90\x80\x80"};
static const char *const broken_pieces[] = {"\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff",
                                            "\x80",     "\xc3",         "\xf0\x9f"};

static size_t put_text(char *dst, size_t n, bool broken)
{
    size_t len = 0;
    while (len + 16 < n) {
        const char *piece = pieces[below(sizeof(pieces) / sizeof(pieces[0]))];
        if (broken && below(20) == 0)
            piece = broken_pieces[below(sizeof(broken_pieces) / sizeof(broken_pieces[0]))];
        memcpy(dst + len, piece, strlen(piece));
        len += strlen(piece);
    }
    return len;
}

static size_t any_length(void)
{
    static const uint16_t lengths[] = {0, 1, 2, 17, 40, 100, 125, 126, 127, 300, 1000};
    return lengths[below(sizeof(lengths) / sizeof(lengths[0]))];
}

/* Adds a frame with [p, p+n); `lie` writes the head wrongly in one of several ways. */
static void put_frame(struct stream *stream, uint8_t first, const char *p, size_t n, bool lie)
{
    uint32_t bits = next_random();
    uint8_t mask[4];
    memcpy(mask, &bits, sizeof(mask));
    uint32_t kind = lie ? below(6) : 6;
    bool masked = (stream->role == ORIBI_WEBSOCKET_SERVER) != (kind == 0);
    if (kind == 1)
        first = (uint8_t)(first | 0x10 << below(3));
    if (kind == 2)
        first = (uint8_t)next_random();
    if (kind == 3)
        first &= 0x7f;
    char *dst = stream->bytes + stream->n;
    size_t more = kind == 4 || n > UINT16_MAX ? 8 : kind == 5 || n > 125 ? 2 : 0;
    size_t len = 2;
    dst[0] = (char)first;
    dst[1] = (char)((masked ? 0x80 : 0) | (more == 0 ? (int)n : more == 2 ? 126 : 127));
    for (size_t i = more; i-- > 0;)
        dst[len++] = (char)((uint64_t)n >> 8 * i);
    if (masked) {
        memcpy(dst + len, mask, sizeof(mask));
        len += sizeof(mask);
    }
    for (size_t i = 0; i < n; i++)
        dst[len + i] = (char)((uint8_t)p[i] ^ (masked ? mask[i % 4] : 0));
    stream->n += len + n;
}

static void put_control(struct stream *stream, bool wild)
{
    char payload[200];
    uint32_t kind = below(wild ? 10 : 20);
    size_t n = any_length() % 126;
    for (size_t i = 0; i < n; i++)
        payload[i] = (char)next_random();
    if (kind == 0) { /* Close; codes at random around the borders of ranges, reasons seldom broken */
        static const uint16_t codes[] = {0, 999, 1000, 2999, 3000, 4999, 5000, 65535};
        unsigned code = below(2) ? 1000 + below(20) : codes[below(sizeof(codes) / sizeof(codes[0]))];
        payload[0] = (char)(code >> 8);
        payload[1] = (char)code;
        n = below(8) ? 2 + put_text(payload + 2, 100, wild) : below(3);
        put_frame(stream, 0x88, payload, n, false);
        return;
    }
    if (wild && below(20) == 0)
        n = 126 + below(20);
    put_frame(stream, below(2) ? 0x89 : 0x8a, payload, n, wild && below(20) == 0);
}

/* A message in one to six frames, cut anywhere, with control frames between. */
static void put_message(struct stream *stream, bool wild)
{
    char payload[1100];
    bool binary = below(3) == 0;
    size_t n = put_text(payload, any_length() + 17, wild || binary);
    size_t frames = 1 + below(6);
    size_t at = 0;
    for (size_t i = 0; i < frames; i++) {
        bool last = i + 1 == frames;
        size_t part = last ? n - at : below((uint32_t)(n - at) + 1);
        uint8_t opcode = i > 0 ? 0 : binary ? 2 : 1;
        put_frame(stream, (uint8_t)(opcode | (last ? 0x80 : 0)), payload + at, part, wild && below(30) == 0);
        at += part;
        if (below(4) == 0)
            put_control(stream, wild);
    }
}

/* Damages one to three bytes, or drops some, or ends the stream early. */
static void damage(struct stream *stream)
{
    for (uint32_t count = below(4); count > 0 && stream->n > 0; count--)
        stream->bytes[below((uint32_t)stream->n)] ^= (char)(1 << below(8));
    if (below(3) == 0 && stream->n > 10) {
        size_t at = below((uint32_t)stream->n - 5);
        memmove(stream->bytes + at, stream->bytes + at + 1, stream->n - at - 1);
        stream->n--;
    }
    if (below(2) == 0)
        stream->n = below((uint32_t)stream->n + 1);
}

/* A third of the streams are right, a third have wrong frames, a third are damaged. */
static void make_stream(struct stream *stream, uint32_t number)
{
    stream->role = below(3) == 0 ? ORIBI_WEBSOCKET_CLIENT : ORIBI_WEBSOCKET_SERVER;
    stream->n = 0;
    for (uint32_t count = 1 + below(5); count > 0 && stream->n < STREAM_MAX - 3500; count--)
        put_message(stream, number % 3 == 1);
    if (number % 3 == 2)
        damage(stream);
}

/* ---- the other ---- */

static bool read_whole(FILE *from, void *dst, size_t n)
{
    return fread(dst, 1, n, from) == n;
}

static bool read_run(FILE *from, char *dst, size_t *n)
{
    uint32_t length;
    if (!read_whole(from, &length, sizeof(length)))
        return false;
    *n = ntohl(length);
    return *n <= TOLD_MAX && read_whole(from, dst, *n);
}

static bool read_opinion(FILE *from, struct opinion *opinion)
{
    uint16_t faults[3];
    if (!read_whole(from, faults, sizeof(faults)))
        return false;
    opinion->fault = ntohs(faults[0]);
    opinion->later = ntohs(faults[1]);
    opinion->meant = ntohs(faults[2]);
    return read_run(from, opinion->events, &opinion->events_len) && read_run(from, opinion->open, &opinion->open_len);
}

/* ---- both ---- */

static size_t counts[3]; /* the same, the same later, explained */

/* 1014 came to the IANA registry behind 1013, the last code that wsproto knows: a Close frame with it is right, or has
 * a reason that is no UTF-8. All other codes that wsproto calls reserved are refused by both. */
static bool explained(const struct told *told, const struct opinion *other)
{
    static const char bad_gateway[] = "CLOSE 1014 ";
    size_t n = sizeof(bad_gateway) - 1;
    bool begins =
        told->events.len >= other->events_len + n && memcmp(told->events.p + other->events_len, bad_gateway, n) == 0;
    return other->meant == OTHER_RESERVED && (told->fault == ORIBI_WEBSOCKET_CODE_NO_TEXT || (!told->fault && begins));
}

/* Events without the fault's line. */
static bool same_events(const struct told *told, const struct opinion *other)
{
    size_t n = told->events.len - (told->fault ? strlen("FAULT 1002 \n") : 0);
    return oribi_slice_equal(oribi_slice(told->events.p, n), oribi_slice(other->events, other->events_len));
}

/* The other keeps the first bytes of a character back. */
static bool same_open(const struct told *told, const struct opinion *other)
{
    return told->fault || (told->open.len >= other->open_len && told->open.len - other->open_len <= 3 &&
                           (other->open_len == 0 || memcmp(told->open.p, other->open, other->open_len) == 0));
}

static bool agree(const struct told *told, const struct opinion *other)
{
    if (told->broken)
        return false;
    if (explained(told, other)) {
        counts[2]++;
        return true;
    }
    if (!same_events(told, other) || !same_open(told, other))
        return false;
    if (told->fault == other->fault) {
        counts[other->meant == OTHER_SURROGATE ? 2 : 0]++;
        return true;
    }
    /* The other judges a head when two bytes or more of it are there, and some faults with the first of payload. */
    counts[1] += told->fault && !other->fault && told->fault == other->later;
    return told->fault && !other->fault && told->fault == other->later;
}

static bool write_streams(FILE *to)
{
    static struct stream stream;
    seed = first_seed;
    for (uint32_t i = 0; i < STREAMS; i++) {
        make_stream(&stream, i);
        uint32_t length = htonl((uint32_t)stream.n);
        uint8_t client = stream.role == ORIBI_WEBSOCKET_CLIENT;
        if (fwrite(&client, 1, 1, to) != 1 || fwrite(&length, sizeof(length), 1, to) != 1 ||
            fwrite(stream.bytes, 1, stream.n, to) != stream.n)
            return false;
    }
    return fflush(to) == 0;
}

static void test_both_tell_the_same(FILE *from)
{
    static struct stream stream;
    static struct opinion other;
    struct guard arena = guard_alloc(STREAM_MAX);
    bool good = true;
    size_t faults = 0;
    seed = first_seed;
    for (uint32_t i = 0; i < STREAMS && good; i++) {
        make_stream(&stream, i);
        good = read_opinion(from, &other);
        struct told told =
            told_all(stream.role, UINT64_MAX, stream.bytes, stream.n, stream.n ? stream.n : 1, 1, &arena);
        faults += told.fault != 0;
        if (good && !agree(&told, &other)) {
            good = false;
            diag("stream %u: fault %u, the other's %u, later %u", i, told.fault, other.fault, other.later);
            tap_print_bytes_("stream", stream.bytes, stream.n);
            tap_print_bytes_("ours  ", told.events.p, told.events.len);
            tap_print_bytes_("theirs", other.events, other.events_len);
        }
        told_deinit(&told);
    }
    diag("%zu alike, %zu alike with more bytes, %zu explained; %zu faults", counts[0], counts[1], counts[2], faults);
    ok(good);
    ok(counts[0] > STREAMS / 2 && counts[2] > 0 && faults > STREAMS / 4);
    guard_free(&arena);
}

int main(void)
{
    const char *spec = getenv("ORIBI_SPEC");
    char command[1024];
    if (system("/usr/bin/python3 -c 'import wsproto' 2>/dev/null") != 0)
        return skip_all("python3-wsproto is not here");
    FILE *streams = tmpfile();
    if (!ok(streams && write_streams(streams) && dup2(fileno(streams), STDIN_FILENO) == STDIN_FILENO &&
            lseek(STDIN_FILENO, 0, SEEK_SET) == 0))
        return done_testing();
    (void)snprintf(command, sizeof(command), "exec /usr/bin/python3 %s%stest/http/websocket_peer.py", spec ? spec : "",
                   spec ? "/../core/" : "");
    FILE *from = popen(command, "r");
    if (ok(from != NULL)) {
        test_both_tell_the_same(from);
        ok_eq(pclose(from), 0);
    }
    (void)fclose(streams);
    return done_testing();
}
