/* A whole frontend between a client, of HTTP/1.1 or HTTP/2, and a worker that lies. The client makes a request, and the
 * worker answers with what the input says, once at once and once in pieces; then a second client makes another request,
 * which the worker answers rightly, on whatever channel it comes.
 *
 * First byte: enum. Second byte: seed of the pieces. The rest is what the worker says. Of hop_rings it says that by a
 * ring, and from a piece on by the socket.
 *
 * Holds for every input: a client gets one well-formed answer, or the end of its connection or stream, and nothing
 * behind an answer; where both ways give a whole answer, it is the same one, unless the frontend says 502; when the
 * worker has ended, no client waits; the second answer is the right one, so that no byte of a lie becomes another's
 * answer; afterwards the frontend counts no call, holds no client, no descriptor and no memory. */
#include "frontend/frontend.c"

#include "ours.h"

#include "oribi/base/mem.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <sys/un.h>

#ifdef FUZZ_hop_rings
#include "hand.h"
#endif

#ifdef FUZZ_hop
/* The far ends here know sockets alone, as on a system that has no seals. */
int oribi_process_sealed_memory(size_t bytes, int *fd)
{
    (void)bytes;
    (void)fd;
    return ORIBI_ESYS;
}
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    H2 = 1,
    HEAD = 2,     /* the method */
    CLOSES = 4,   /* the worker closes its end behind what it says */
    UPGRADES = 8, /* the client asks for it; HTTP/1.1 only */
    POSTS = 16,   /* not to be made twice */
    OLD = 32,     /* HTTP/1.0 */
    LEAVES = 64,  /* the client goes before the worker has said all */
};
enum { FARS = 8, INPUT_MAX = 8192, CALLS_MAX = 3 };

static const char right[] = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond";

static struct oribi_options options;
static struct oribi_frontend_config config;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len = sizeof(address);
static struct oribi__frontend *frontend;
static uint32_t woken;

/* The worker's end of a channel. */
struct far_end {
    int fd; /* -1: closed */
    uint16_t number;
    struct oribi_channel_ring *ring; /* NULL: the socket alone */
};

struct hop {
    uint8_t flags;
    uint32_t random; /* 0: at once */
    const char *lie;
    size_t lie_len;
    struct far_end fars[FARS];
    int firsts; /* requests that the worker has seen */
    int seconds;
    bool second; /* it is time for that */
    /* the client */
    int fd; /* -1: gone */
    bool eof;
    struct oribi_buf got;
    nghttp2_session *session;
    /* its answer */
    int status; /* 0: none yet */
    bool begun;
    bool whole;
    bool ended; /* nothing more will come */
    struct oribi_buf body;
};

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void start(void)
{
    static int control[2];
    char error[ORIBI_ERROR_TEXT_CAP];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    oribi_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), ORIBI_LOG_ERROR);
    oribi_options_init(&options);
    expect(oribi_options_finish(&options, error) == 0);
    /* unix(7): autobind */
    expect(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0 && listen(fd, 4) == 0);
    expect(getsockname(fd, (struct sockaddr *)&address, &address_len) == 0);
    config = (struct oribi_frontend_config){
        .options = &options, .listener_count = 1, .channel_first = 1, .channel_count = FARS};
    config.listeners[0].listener.fd = fd;
    config.listeners[0].listener.is_unix = true;
    expect(oribi_scoreboard_create(&config.board, 1) == 0 && oribi_handoff_create(&config.handoff) == 0);
    expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, control) == 0);
    config.control_fd = control[0];
    atomic_store(&config.board.slots[0].state, ORIBI_SLOT_IDLE);
    atomic_store(&config.board.slots[0].pid, getpid());
}

/* ---- the worker ---- */

static void settle(struct hop *hop);

static void close_far(struct far_end *far)
{
    atomic_store(&config.board.channels[far->number], 0);
    oribi_channel_ring_destroy(far->ring);
    far->ring = NULL;
    close(far->fd);
    far->fd = -1;
}

static ssize_t send_far(struct hop *hop, struct far_end *far, const char *p, size_t n)
{
#ifdef FUZZ_hop_rings
    struct iovec vec = {(void *)(uintptr_t)p, n};
    if (hop->random && next_random(&hop->random) % 16 == 0)
        (void)send_by_ring(far->ring, NULL, 0, SIZE_MAX, false); /* the rest goes by the socket */
    return far->ring->transport.send_vec(&far->ring->transport, &vec, 1, false);
#else
    (void)hop;
    return send(far->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
#endif
}

static ssize_t read_far(struct far_end *far, char *p, size_t n)
{
    return far->ring ? oribi_channel_ring_read(far->ring, p, n, true) : recv(far->fd, p, n, MSG_DONTWAIT);
}

static void leave(struct hop *hop)
{
    if (hop->fd >= 0)
        close(hop->fd);
    hop->fd = -1;
}

static void say(struct hop *hop, struct far_end *far)
{
    size_t at = 0;
    while (at < hop->lie_len && far->fd >= 0) {
        size_t left = hop->lie_len - at;
        size_t n = hop->random ? 1 + next_random(&hop->random) % 12 : left;
        n = n < left ? n : left;
        if (send_far(hop, far, hop->lie + at, n) != (ssize_t)n)
            break; /* the frontend has closed it */
        at += n;
        if (hop->flags & LEAVES)
            leave(hop);
        if (hop->random && at < hop->lie_len)
            settle(hop);
    }
    if (hop->flags & CLOSES && far->fd >= 0)
        close_far(far);
}

static void answer(struct hop *hop, struct far_end *far, struct oribi_slice request)
{
    const char *word = hop->second ? " /second HTTP/1." : " /first HTTP/1.";
    expect(memmem(request.p, request.n, word, strlen(word)));
    if (hop->second) {
        hop->seconds++;
        expect(send_far(hop, far, right, sizeof(right) - 1) == (ssize_t)sizeof(right) - 1);
    } else {
        expect(++hop->firsts <= (hop->flags & POSTS ? 1 : CALLS_MAX));
        say(hop, far);
    }
}

static bool take_new(struct hop *hop)
{
    static char room[ORIBI_HANDOFF_BYTES_MAX + 2048];
    struct oribi_handoff_item item;
    int code;
    while ((code = oribi_handoff_take(&config.handoff, room, sizeof(room), &item)) == ORIBI_HANDOFF_WAKEUP)
        continue;
    if (code != 0)
        return false;
    expect(item.fd >= 0 && item.channel > 0 && item.channel <= FARS && item.body_fd < 0);
    struct far_end *far = hop->fars;
    while (far->fd >= 0)
        far++; /* as many as there are numbers */
    *far = (struct far_end){.fd = item.fd, .number = item.channel};
    if (item.ring_fd > 0)
        far->ring = oribi_channel_ring_try_attach(item.ring_fd, item.fd, &config.board.frontends[0].asleep, &woken);
    atomic_store(&config.board.channels[item.channel], 1);
    char *request = oribi_mem_alloc(1, item.bytes.n); /* `room` is used again before this call ends */
    memcpy(request, item.bytes.p, item.bytes.n);
    oribi_mem_free(item.long_bytes);
    answer(hop, far, oribi_slice(request, item.bytes.n));
    oribi_mem_free(request);
    return true;
}

static bool look_at_far(struct hop *hop, struct far_end *far)
{
    char text[4096];
    ssize_t n = far->fd >= 0 ? read_far(far, text, sizeof(text)) : -1;
    bool waits = far->ring ? n == ORIBI_AGAIN : n < 0 && errno == EAGAIN;
    if (far->fd >= 0 && n <= 0 && !waits)
        close_far(far);
    if (n > 0) {
        expect(hop->second); /* the first comes with its channel */
        answer(hop, far, oribi_slice(text, (size_t)n));
    }
    return n >= 0;
}

/* ---- the client ---- */

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_len,
                     const uint8_t *value, size_t value_len, uint8_t flags, void *self)
{
    struct hop *hop = self;
    if (name_len == 7 && memcmp(name, ":status", 7) == 0)
        hop->status = (int)strtol((const char *)value, NULL, 10); /* ends with a NUL, nghttp2 says */
    return 0;
}

static int on_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *self)
{
    struct hop *hop = self;
    oribi_buf_append(&hop->body, p, n);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *self)
{
    struct hop *hop = self;
    expect(!hop->ended);
    hop->whole = code == 0;
    hop->ended = true;
    return 0;
}

static int on_invalid(nghttp2_session *session, const nghttp2_frame *frame, int error, void *self)
{
    (void)fprintf(stderr, "the frontend has sent what is not to be sent: %s\n", nghttp2_strerror(error));
    abort();
}

static void begin_h2(struct hop *hop, const char *method, const char *path)
{
    static uint8_t scheme[] = "http";
    nghttp2_session_callbacks *callbacks;
    nghttp2_nv fields[] = {{(uint8_t *)":method", (uint8_t *)method, 7, strlen(method), 0},
                           {(uint8_t *)":path", (uint8_t *)path, 5, strlen(path), 0},
                           {(uint8_t *)":scheme", scheme, 7, 4, 0},
                           {(uint8_t *)":authority", (uint8_t *)"a", 10, 1, 0}};
    expect(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_chunk);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid);
    expect(nghttp2_session_client_new(&hop->session, callbacks, hop) == 0);
    nghttp2_session_callbacks_del(callbacks);
    expect(nghttp2_submit_settings(hop->session, NGHTTP2_FLAG_NONE, NULL, 0) == 0);
    expect(nghttp2_submit_request(hop->session, NULL, fields, 4, NULL, NULL) == 1);
}

static void begin_request(struct hop *hop, uint8_t flags, const char *path)
{
    char request[256];
    const char *method = flags & HEAD ? "HEAD" : flags & POSTS ? "POST" : "GET";
    hop->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    expect(hop->fd >= 0 && connect(hop->fd, (struct sockaddr *)&address, address_len) == 0);
    hop->eof = hop->begun = hop->whole = hop->ended = false;
    hop->status = 0;
    hop->got.len = hop->body.len = 0;
    if (flags & H2) {
        begin_h2(hop, method, path);
        return;
    }
    int n = snprintf(request, sizeof(request), "%s %s HTTP/1.%d\r\nHost: a\r\n%s\r\n", method, path, !(flags & OLD),
                     flags & UPGRADES ? "Connection: Upgrade\r\nUpgrade: x\r\n"
                     : flags & POSTS  ? "Content-Length: 0\r\n"
                                      : "");
    expect(send(hop->fd, request, (size_t)n, MSG_NOSIGNAL) == n);
}

/* Bytes both ways. False: there were none. */
static bool talk(struct hop *hop)
{
    char text[16384];
    const uint8_t *out;
    bool moved = false;
    if (hop->fd < 0)
        return false;
    for (ssize_t n; hop->session && (n = nghttp2_session_mem_send(hop->session, &out)) > 0; moved = true)
        if (send(hop->fd, out, (size_t)n, MSG_NOSIGNAL) < 0)
            break; /* the frontend has closed the connection */
    ssize_t n = hop->eof ? 0 : recv(hop->fd, text, sizeof(text), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        moved |= !hop->eof;
        hop->eof = true;
    } else if (n > 0) {
        moved = true;
        if (hop->session)
            expect(nghttp2_session_mem_recv(hop->session, (uint8_t *)text, (size_t)n) == n);
        else
            oribi_buf_append(&hop->got, text, (size_t)n);
    }
    return moved;
}

static void settle(struct hop *hop)
{
    for (int quiet = 0; quiet < 3; quiet++) {
        bool moved = talk(hop);
        oribi_reactor_clock(&frontend->reactor, oribi_clock_us());
        turn(frontend);
        moved |= take_new(hop);
        for (int i = 0; i < FARS; i++)
            moved |= look_at_far(hop, &hop->fars[i]);
        if (moved)
            quiet = -1;
    }
}

/* ---- what came back by HTTP/1.1 ---- */

static const char *field(const char *head, const char *end, const char *name)
{
    return memmem(head, (size_t)(end - head), name, strlen(name));
}

/* Behind the last chunk come trailers, and an empty line. */
static void read_chunks(struct hop *hop, const char *p, const char *end)
{
    for (;;) {
        const char *line = memmem(p, (size_t)(end - p), "\r\n", 2);
        if (!line)
            return;
        char *stop;
        size_t n = strtoul(p, &stop, 16);
        expect(stop == line && stop > p);
        p = line + 2;
        if (n == 0)
            break;
        if ((size_t)(end - p) < n + 2)
            return;
        expect(memcmp(p + n, "\r\n", 2) == 0);
        oribi_buf_append(&hop->body, p, n);
        p += n + 2;
    }
    const char *empty = memmem(p - 2, (size_t)(end - p) + 2, "\r\n\r\n", 4);
    hop->whole = empty != NULL;
    expect(!empty || empty + 4 == end);
}

static void read_answer(struct hop *hop, uint8_t flags)
{
    const char *p = hop->got.p;
    const char *end = hop->got.len ? p + hop->got.len : p;
    const char *body = NULL;
    hop->ended = hop->eof;
    for (; p < end && !(hop->status >= 200 || hop->status == 101); p = body) {
        body = memmem(p, (size_t)(end - p), "\r\n\r\n", 4);
        expect(body && memcmp(p, "HTTP/1.1 ", 9) == 0); /* heads leave in one piece */
        body += 4;
        hop->status = (int)strtol(p + 9, NULL, 10);
        expect(hop->status >= 100 && hop->status <= 999);
        expect(hop->status >= 200 || (!(flags & OLD) && !field(p, body, "\r\nContent-Length:")));
        expect(hop->status != 101 || flags & UPGRADES);
        if (hop->status < 200)
            continue;
        const char *length = field(p, body, "\r\nContent-Length: ");
        const char *chunked = field(p, body, "\r\nTransfer-Encoding: chunked\r\n");
        bool closes = field(p, body, "\r\nConnection: close\r\n");
        expect(!(length && chunked) && !(chunked && flags & OLD));
        if (flags & HEAD || hop->status == 204 || hop->status == 304) {
            expect(body == end);
            hop->whole = true;
        } else if (length) {
            size_t n = strtoul(length + 18, NULL, 10);
            expect((size_t)(end - body) <= n);
            hop->whole = (size_t)(end - body) == n;
            oribi_buf_append(&hop->body, body, (size_t)(end - body));
        } else if (chunked) {
            read_chunks(hop, body, end);
        } else {
            expect(closes || flags & OLD);
            return; /* its end is that of the connection, and says nothing */
        }
        expect(!hop->whole || !closes || hop->eof);
        hop->ended |= hop->whole;
        return;
    }
}

/* ---- one way ---- */

static void end_client(struct hop *hop)
{
    leave(hop);
    nghttp2_session_del(hop->session);
    hop->session = NULL;
    settle(hop);
    expect(frontend->calls_out == 0 && frontend->queue_len == 0 && frontend->reactor.conn_count == 0 &&
           frontend->client_count == 0 && frontend->arrival_count == 0 && frontend->tunnel_count == 0 &&
           frontend->channels->count == frontend->channels->idle_count && frontend->dispatch->out_waiting == 0 &&
           frontend->dispatch->workers[1].out == 0);
}

/* With poll(2) a frontend hears nothing of a client of HTTP/1.1 whose call runs: the call ends with its worker, and is
 * made anew until it may not be any more. */
static void end_calls(struct hop *hop)
{
    bool epolls = strcmp(oribi_os_layer(), "linux") == 0;
    for (int round = 0; frontend->calls_out > 0 && !epolls; round++) {
        expect(round < CALLS_MAX);
        for (int i = 0; i < FARS; i++)
            if (hop->fars[i].fd >= 0)
                close_far(&hop->fars[i]);
        settle(hop);
    }
}

/* It may be waiting still: for the rest of what a worker says that has not ended. */
static void end_first(struct hop *hop)
{
    bool awaited = !(hop->flags & LEAVES);
    if (awaited && !(hop->flags & H2))
        read_answer(hop, hop->flags);
    if (awaited && hop->flags & CLOSES)
        expect(hop->ended || hop->eof);
    leave(hop);
    settle(hop);
    for (int i = 0; i < FARS; i++) /* a worker that is in a call ends it when it sees that */
        expect(hop->fars[i].fd < 0 || frontend->channels->count > 0);
    end_calls(hop);
    end_client(hop);
}

static void run(struct hop *hop, uint8_t flags, const char *p, size_t n, uint32_t seed)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    *hop = (struct hop){.flags = flags, .random = seed, .lie = p, .lie_len = n, .fd = -1};
    for (int i = 0; i < FARS; i++)
        hop->fars[i].fd = -1;
    frontend = oribi__frontend_create(&config, error);
    expect(frontend != NULL);
    begin_request(hop, flags, "/first");
    settle(hop);
    expect(hop->firsts > 0);
    end_first(hop);
    struct hop first = *hop;
    hop->second = true;
    hop->flags = 0;
    hop->body = (struct oribi_buf){0};
    begin_request(hop, 0, "/second");
    settle(hop);
    read_answer(hop, 0);
    expect(hop->whole && hop->status == 200 && hop->seconds == 1);
    expect(oribi_slice_equal(oribi_slice(hop->body.p, hop->body.len), ORIBI_SLICE("second")));
    end_client(hop);
    oribi_buf_deinit(&hop->body);
    oribi_buf_deinit(&hop->got);
    oribi__frontend_destroy(frontend);
    for (int i = 0; i < FARS; i++)
        if (hop->fars[i].fd >= 0)
            close_far(&hop->fars[i]);
    hop->status = first.status;
    hop->whole = first.whole;
    hop->body = first.body;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hop once;
    static struct hop pieces;
    if (!config.options)
        start();
    if (size < 2 || size > INPUT_MAX)
        return 0;
    const char *p = (const char *)data + 2;
    uint8_t flags = data[0];
    if (flags & H2)
        flags &= (uint8_t) ~(UPGRADES | OLD);
    if (flags & (HEAD | OLD))
        flags &= (uint8_t) ~(POSTS | UPGRADES);
    int before = lowest_free_fd();
    int64_t blocks = oribi_mem_blocks();
    run(&once, flags, p, size - 2, 0);
    run(&pieces, flags, p, size - 2, data[1] + 1u);
    if (once.whole && pieces.whole && once.status != 502 && pieces.status != 502)
        expect(once.status == pieces.status &&
               oribi_slice_equal(oribi_slice(once.body.p, once.body.len), oribi_slice(pieces.body.p, pieces.body.len)));
    oribi_buf_deinit(&once.body);
    oribi_buf_deinit(&pieces.body);
    expect(oribi_mem_blocks() == blocks);
    expect(lowest_free_fd() == before);
    return 0;
}
