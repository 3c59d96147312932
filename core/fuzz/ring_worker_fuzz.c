/* A whole worker with channels of a hostile frontend, which has their memory and their sockets. The input is a list of
 * steps: channels that come through the hand-off queue, requests on them, by the ring and by the socket, records and
 * bytes as the input has them, ends, and rules of a hand that writes while the worker reads and answers (hand.h).
 * Another frontend has a channel beside, whose memory is its own.
 *
 * Holds for every input: the other channel's requests get their answers, each its own; the worker's turns end; and when
 * the frontends have gone, nothing is left of their connections. */
#include "hand.h"

#include "worker/worker_private.h"
#include "oribi/http/proxy.h"
#include "oribi/worker/req.h"
#include "storing.h"

#include <poll.h>
#include <sys/un.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    INPUT_MAX = 4096,
    CHANNELS = 3,
    OTHER = CHANNELS,
    NUMBER_OTHER = 600,
    TURNS_MAX = 200,
    ROOM = 128 * 1024,
    FILE_BYTES_ALL = 50 * 1024
};

enum step { OPENS, ASKS, SENDS, RECORD, SOCKET_BYTES, READS, ENDS, HAND, SLEEPS, STEPS };

/* The frontend's end. */
struct channel {
    int fd; /* -1: none */
    uint16_t number;
    struct oribi_channel_ring *ring;
};

static struct oribi_worker *worker;
static struct oribi_options options;
static struct oribi_scoreboard board;
static struct oribi_handoff queue;
static struct oribi_listeners listeners = {.items = {{.host = "localhost", .port = "80", .text = "tcp://localhost:80"}},
                                           .count = 2};
static struct channel channels[CHANNELS + 1];
static uint32_t last_woken[3];
static uint32_t asked;
static int file = -1;
static char room[ROOM];

static void start(void)
{
    struct sockaddr_un anywhere = {.sun_family = AF_UNIX};
    struct oribi_worker_setup setup = {
        .options = &options, .life_fd = -1, .handoff = &queue, .board = &board, .listeners = &listeners};
    oribi_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), ORIBI_LOG_ERROR);
    oribi_options_init(&options);
    options.helper = false;
    options.limits.body_bytes_max = 100 * 1000;
    options.limits.body_memory_max = 50 * 1000;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* unix(7): autobind */
    expect(bind(fd, (struct sockaddr *)&anywhere, sizeof(sa_family_t)) == 0 && listen(fd, 1) == 0);
    listeners.items[0].fd = fd;
    listeners.items[1] = (struct oribi_listener){.text = "unix:front", .is_unix = true, .frontend = true, .fd = -1};
    expect(oribi_scoreboard_create(&board, 1) == 0 && oribi_handoff_create(&queue) == 0);
    expect(oribi_os_temp_file(&file) == 0 && ftruncate(file, FILE_BYTES_ALL) == 0);
    setup.slot = board.slots;
    expect(oribi_worker_create(&setup, &worker) == 0);
    for (int i = 0; i <= CHANNELS; i++)
        channels[i].fd = -1;
    hand_holds_new = false;
}

/* --- the application --- */

static void answer(struct oribi_req *req)
{
    static char large[150 * 1024];
    char text[128];
    struct oribi_slice path = req->head->path;
    char how = path.n > 1 ? path.p[1] : '-';
    int n = snprintf(text, sizeof(text), "%lld bytes for %.*s", (long long)req->body_len,
                     (int)(path.n < 60 ? path.n : 60), path.p);
    struct iovec body = {text, (size_t)n};
    struct oribi_slice rest;
    int fd;
    switch (how) {
    case 's':
        expect(oribi_reply_begin(req, 200, NULL, 0, -1) == 0);
        (void)oribi_reply_write(req, &body, 1);
        (void)oribi_reply_flush(req);
        (void)oribi_reply_write(req, &body, 1);
        (void)oribi_reply_end(req);
        break;
    case 'l':
        body = (struct iovec){large, sizeof(large)};
        (void)oribi_reply(req, 200, NULL, 0, &body, 1);
        break;
    case 'f':
        (void)oribi_reply_file(req, 200, NULL, 0, file, 0, FILE_BYTES_ALL);
        break;
    case 'u':
        if (oribi_req_detach(req, &fd, &rest) < 0)
            break;
        oribi_req_detached(req);
        (void)send(fd, text, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
        close(fd);
        break;
    default:
        (void)oribi_reply(req, 200, NULL, 0, &body, 1);
    }
}

static void settle(void)
{
    int quiet = 0;
    hand_moves_in();
    for (int i = 0; quiet < 3; i++) {
        await_files(&worker->reactor);
        struct oribi_req *req = oribi_worker_take(worker);
        expect(i < TURNS_MAX);
        if (req)
            answer(req);
        quiet = req ? 0 : quiet + 1;
    }
    hand_moves_out();
}

/* --- frontends --- */

static size_t compose(char *dst, const char *text, size_t body)
{
    struct oribi_channel_head about = {.protocol = 11, .keeps = true, .listener = 1};
    size_t n = oribi_channel_head_write(&about, dst, 512);
    n += (size_t)snprintf(dst + n, 512, text, body);
    memset(dst + n, 'b', body);
    return n + body;
}

static size_t compose_kind(char *dst, uint8_t kind)
{
    static const struct {
        const char *text;
        size_t body;
    } kinds[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
        {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
        {"GET /s HTTP/1.1\r\nHost: a\r\n\r\n", 0},
        {"GET /l HTTP/1.1\r\nHost: a\r\n\r\n", 0},
        {"GET /f HTTP/1.1\r\nHost: a\r\n\r\n", 0},
        {"GET /u HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 0},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", 1},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", 16384},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", 40000},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", 70000},
        {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n", 0},
        {"GET / HTTP/1.1\r\n\r\n", 0},
    };
    const size_t i = kind % (sizeof(kinds) / sizeof(kinds[0]));
    return compose(dst, kinds[i].text, kinds[i].body);
}

static void channel_ends(struct channel *channel)
{
    if (channel->fd < 0)
        return;
    for (uint32_t i = 0; i < hand_count; i++)
        if (hand_memories[i] == channel->ring->memory)
            hand_memories[i--] = hand_memories[--hand_count];
    hand_socket = hand_socket == channel->fd ? -1 : hand_socket;
    oribi_channel_ring_close(channel->ring);
    oribi_channel_ring_destroy(channel->ring);
    close(channel->fd);
    channel->fd = -1;
}

static void channel_opens(struct channel *channel, uint16_t number, const char *p, size_t n)
{
    int fds[2];
    if (channel->fd >= 0 || n == 0 || n > ORIBI_HANDOFF_BYTES_MAX)
        return;
    expect(oribi_os_socket_pair(SOCK_STREAM, true, fds) == 0);
    *channel = (struct channel){fds[0], number, oribi_channel_ring_try_create(fds[0])};
    expect(channel->ring);
    atomic_store(&board.channels[number], 0);
    struct oribi_handoff_item item = {
        .fd = fds[1], .body_fd = -1, .channel = number, .ring_fd = channel->ring->memory_fd, .listener = 1};
    struct iovec vec = {(void *)(uintptr_t)p, n};
    expect(oribi_handoff_give(&queue, &item, &vec, 1) == 0);
    atomic_fetch_add(&board.slots->handed_off, 1);
    oribi_channel_ring_sent(channel->ring);
    close(fds[1]);
}

static void channel_sends(struct channel *channel, const char *p, size_t n)
{
    struct iovec vec = {(void *)(uintptr_t)p, n};
    bool broken;
    if (channel->fd < 0 || n == 0)
        return;
    if (oribi_channel_ring_request(channel->ring, &vec, 1, n, &broken))
        oribi_channel_ring_wake(channel->ring, &board, &board.channels[channel->number], last_woken);
    else
        (void)send(channel->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The other frontend's channel. */
static void check_other(void)
{
    char text[64];
    char want[64];
    struct channel *other = &channels[OTHER];
    asked++;
    (void)snprintf(text, sizeof(text), "GET /%u HTTP/1.1\r\nHost: a\r\n\r\n", asked);
    (void)snprintf(want, sizeof(want), "\r\n\r\n0 bytes for /%u", asked);
    size_t n = compose(room, text, 0);
    if (other->fd < 0)
        channel_opens(other, NUMBER_OTHER, room, n);
    else
        channel_sends(other, room, n);
    settle();
    ssize_t got = oribi_channel_ring_read(other->ring, room, ROOM - 1, true);
    room[got > 0 ? got : 0] = '\0';
    char *body = strstr(room, "\r\n\r\n");
    expect(got > 0 && memcmp(room, "HTTP/1.1 200 ", 13) == 0 && body && strcmp(body, want) == 0);
    oribi_channel_ring_next_answer(other->ring);
}

/* --- steps --- */

static void writes_record(struct channel *channel, struct bytes *in)
{
    struct oribi_ring_record record = {.kind = next_byte(in) % 4};
    record.length = hand_values[next_byte(in) % (sizeof(hand_values) / sizeof(hand_values[0]))];
    record.mark = next_byte(in);
    if (channel->fd >= 0)
        (void)oribi_ring_write_head(&channel->ring->out, &record);
}

static void take_step(struct bytes *in)
{
    uint8_t byte = next_byte(in);
    struct channel *channel = &channels[byte / 16 % CHANNELS];
    struct bytes part;
    switch (byte % STEPS) {
    case OPENS:
        channel_opens(channel, (uint16_t)(1 + (channel - channels)), room, compose_kind(room, next_byte(in)));
        break;
    case ASKS:
        channel_sends(channel, room, compose_kind(room, next_byte(in)));
        break;
    case SENDS:
        part = next_bytes(in, next_byte(in));
        channel_sends(channel, (const char *)part.p, part.n);
        break;
    case RECORD:
        writes_record(channel, in);
        break;
    case SOCKET_BYTES:
        part = next_bytes(in, next_byte(in));
        if (channel->fd >= 0)
            (void)send(channel->fd, part.p, part.n, MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    case READS:
        if (channel->fd >= 0)
            (void)oribi_channel_ring_read(channel->ring, room, 1 + next_byte(in) * 257u, true);
        break;
    case ENDS:
        if (next_byte(in) & 1)
            channel_ends(channel);
        else if (channel->fd >= 0)
            (void)shutdown(channel->fd, SHUT_WR);
        break;
    case HAND:
        hand_rule_add(in);
        if (channel->fd >= 0) {
            hand_socket = channel->fd;
            hand_memories[0] = channel->ring->memory;
            hand_count = 1;
        }
        break;
    default:
        oribi_asleep_begin(byte & 128 ? &board.frontends[0].asleep : &board.slots[0].asleep);
    }
    if (!(byte & 64))
        settle();
    if (byte & 128)
        check_other();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    if (size > INPUT_MAX)
        return 0;
    if (!worker)
        start();
    int fd = lowest_free_fd();
    uint32_t mapped = hand_mapped;
    bool has_writer = worker->reactor.writer != NULL; /* it stays, with descriptors of its own */
    hand_has_moved = false;
    hand_word = &board.frontends[0].asleep;
    check_other();
    while (in.n > 0)
        take_step(&in);
    check_other();
    hand_rests();
    hand_count = 0;
    for (int i = 0; i <= CHANNELS; i++)
        channel_ends(&channels[i]);
    for (int i = 0; i < TURNS_MAX && worker->reactor.conn_count; i++)
        settle();
    expect(worker->reactor.conn_count == 0 && worker->reactor.queue_len == 0);
    expect(hand_mapped == mapped);
    for (int i = 0; i < 1000 && lowest_free_fd() > fd; i++)
        (void)poll(NULL, 0, 1); /* the writer closes files when it comes to that */
    expect(lowest_free_fd() <= fd || !has_writer);
    return 0;
}
