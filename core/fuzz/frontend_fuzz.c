/* A whole frontend between hostile clients and a hostile worker, on a clock of ours. The input is a list of steps: what
 * a client sends and whether it reads, what the worker answers and when it dies, how time passes, and that the frontend
 * is told to drain. Of frontend_rings the worker's end has the channel's memory too, and rules say what a hostile hand
 * writes there while the frontend runs (hand.h).
 *
 * Holds for every input: what clients read are well-formed answers, and each stream gets one answer or one reset
 * (frontend_answers.h); what the worker reads are requests that its own parser takes; limits are kept; when all have
 * ended what they do no call is left over; when time passes every client is let go; with frontend_rings another client
 * gets its answer then; and nothing is left of it all. */
#ifdef FUZZ_frontend_rings
#include "hand.h"
#endif

#include "frontend/clients_h2.h"
#include "frontend/frontend.c"
#include "frontend_answers.h"
#include "oribi/http/head.h"
#include "ours.h"
#include "storing.h"

#include <sys/un.h>

#ifdef FUZZ_frontend
/* The far ends here know sockets alone, as on a system that has no seals. */
int oribi_process_sealed_memory(size_t bytes, int *fd)
{
    (void)bytes;
    (void)fd;
    return ORIBI_ESYS;
}

static void hand_moves_in(void)
{
}

static void hand_moves_out(void)
{
}

static void hand_rests(void)
{
}

enum { HAS_HAND = 0, hand_has_moved = 0 };
#else
enum { HAS_HAND = 1 };
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLIENTS = 2, SLOTS = 2, FARS_MAX = 64, READ_BYTES = 256 * 1024, CALLS_MAX = 64 };
enum { CALL_ROUNDS_MAX = 300, ROUND_MS = 600, LEAVE_ROUNDS_MAX = 200, LEAVE_MS = 5000 };

enum step {
    CLIENT_BYTES,
    CLIENT_FRAME, /* type, flags, stream, payload */
    CLIENT_REQUEST,
    CLIENT_LIFE,
    WORKER_ANSWERS,
    WORKER_BYTES,
    WORKER_FLOODS,
    WORKER_ENDS,
    WORKER_STATE,
    TIME_PASSES,
    FRONTEND_DRAINS,
    HAND_WRITES, /* of frontend_rings: a rule */
    STEPS,
};

struct peer {
    int fd;      /* -1: none */
    bool silent; /* it does not read */
    bool has_read;
    uint32_t next_id;
    struct oribi_buf sent;
    struct answers answers;
};

/* The worker's end of a channel. */
struct far {
    int fd;
    uint16_t number;
    struct oribi_channel_ring *ring; /* NULL: the socket alone */
    bool has_switched;               /* the worker has said 101, perhaps: what comes now is no request */
    char last[4];                    /* that it said */
};

static struct oribi_options options;
static struct oribi_scoreboard board;
static struct oribi_handoff queue;
static int control_fds[2];
static struct oribi_frontend_config config;
static struct oribi__frontend *frontend;
static struct peer peers[CLIENTS];
static struct far fars[FARS_MAX];
static uint32_t far_count;
static struct sockaddr_un address;
static socklen_t address_len;
static int64_t now_us;
static char scratch[READ_BYTES];
static bool is_told; /* to drain */
static uint32_t frontend_woken;

/* In the place of the system's clock. */
int64_t oribi_clock_us(void)
{
    return now_us;
}

int64_t oribi_clock_ms(void)
{
    return now_us / 1000;
}

/* --- the worker --- */

/* The first bytes of a request on a channel. */
static void check_request(const char *p, size_t n)
{
    static struct oribi_head head;
    struct oribi_channel_head about;
    struct oribi_parser parser = {0};
    struct oribi_limits limits = options.limits;
    limits.head_bytes_max *= 2; /* what the frontend adds */
    limits.fields_max += 4;
    ssize_t len = oribi_channel_head_read(p, n, &about);
    expect(len > 0 && (about.protocol == 10 || about.protocol == 11 || about.protocol == 20));
    memset(&head, 0, sizeof(head));
    ssize_t head_len = oribi_parser_head(&parser, &limits, p + len, n - (size_t)len, &head);
    expect(head_len > 0);
    oribi_head_release(&head);
}

static bool take_handed(void)
{
    struct oribi_handoff_item item;
    bool any = false;
    while (far_count < FARS_MAX) {
        int code = oribi_handoff_take(&queue, scratch, sizeof(scratch), &item);
        if (code == ORIBI_AGAIN)
            break;
        any = true;
        if (code == ORIBI_HANDOFF_WAKEUP)
            continue;
        expect(code == 0 && item.channel > 0);
        check_request(item.bytes.p, item.bytes.n);
        oribi_mem_free(item.long_bytes);
        oribi_os_close(item.body_fd);
        fars[far_count] = (struct far){.fd = item.fd, .number = item.channel};
        if (item.ring_fd > 0)
            fars[far_count].ring = oribi_channel_ring_try_attach(item.ring_fd, item.fd,
                                                                 &config.board.frontends[0].asleep, &frontend_woken);
        expect((fars[far_count].ring != NULL) == HAS_HAND);
        far_count++;
        atomic_store(&board.channels[item.channel], (uint16_t)(1 + far_count % SLOTS));
    }
    return any;
}

static bool read_far(const struct far *far)
{
    static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";
    ssize_t n = far->ring ? oribi_channel_ring_read(far->ring, scratch, sizeof(scratch), true)
                          : recv(far->fd, scratch, sizeof(scratch), MSG_DONTWAIT);
    bool begins = n >= (ssize_t)sizeof(signature) - 1 && memcmp(scratch, signature, sizeof(signature) - 1) == 0;
    if (begins && !far->has_switched && !hand_has_moved)
        check_request(scratch, (size_t)n);
    return n > 0;
}

static void far_says(struct far *far, const void *p, size_t n)
{
    for (size_t i = 0; i < n && !far->has_switched; i++) {
        memmove(far->last, far->last + 1, sizeof(far->last) - 1);
        far->last[sizeof(far->last) - 1] = ((const char *)p)[i];
        far->has_switched = memcmp(far->last, " 101", sizeof(far->last)) == 0;
    }
    struct iovec vec = {(void *)(uintptr_t)p, n};
    if (far->ring && far->has_switched)
        oribi_channel_ring_leave(far->ring); /* as workers do */
    /* a frontend that has closed it, or takes no more */
    if (far->ring)
        (void)far->ring->transport.send_vec(&far->ring->transport, &vec, 1, false);
    else
        (void)send(far->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

#ifdef FUZZ_frontend_rings
/* An answer whose body is a file. */
static void far_hands_over(struct far *far, uint8_t how)
{
    static const int sizes[] = {20 * 1000, 131072, 140 * 1000, 600 * 1000};
    char head[64];
    int n = sizes[how & 3];
    int len = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", n);
    int64_t offset = how & 4 ? 600 * 1000 - n : 0;
    far_says(far, head, (size_t)len);
    (void)far->ring->transport.give_file(&far->ring->transport, hand_files()[0], how & 8 ? offset + 100 : offset, n);
}
#endif

static void far_ends(uint32_t i)
{
#ifdef FUZZ_frontend_rings
    hand_socket = hand_socket == fars[i].fd ? -1 : hand_socket;
#endif
    atomic_store(&board.channels[fars[i].number], 0);
    oribi_channel_ring_destroy(fars[i].ring);
    close(fars[i].fd);
    fars[i] = fars[--far_count];
}

/* --- clients --- */

static void peer_connects(struct peer *peer)
{
    *peer = (struct peer){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), .next_id = 1};
    answers_begin(&peer->answers);
    if (connect(peer->fd, (struct sockaddr *)&address, address_len) < 0) { /* drained */
        close(peer->fd);
        peer->fd = -1;
    }
}

static void peer_closes(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    oribi_buf_deinit(&peer->sent);
    answers_end(&peer->answers);
    answers_begin(&peer->answers);
}

static bool peer_reads(struct peer *peer)
{
    ssize_t n;
    bool any = false;
    while (peer->fd >= 0 && !peer->silent && (n = recv(peer->fd, scratch, sizeof(scratch), MSG_DONTWAIT)) > 0) {
        answers_read(&peer->answers, scratch, (size_t)n, !peer->has_read);
        peer->has_read = any = true;
    }
    return any;
}

static void peer_says(struct peer *peer, const void *p, size_t n)
{
    if (peer->fd < 0 || n == 0)
        return;
    oribi_buf_append(&peer->sent, p, n);
    if (!peer->answers.is_h2 && memmem(peer->sent.p, peer->sent.len, "HEAD", 4))
        peer->answers.unchecked = true; /* an answer has no body then, which its reader cannot know */
    (void)send(peer->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void peer_sends_frame(struct peer *peer, uint8_t type, uint8_t flags, uint32_t id, const void *p, size_t n)
{
    uint8_t frame[H2_FRAME_HEAD + 256] = {0,          (uint8_t)(n >> 8),   (uint8_t)n,          type,
                                          flags,      (uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8),
                                          (uint8_t)id};
    memcpy(frame + H2_FRAME_HEAD, p, n);
    peer_says(peer, frame, H2_FRAME_HEAD + n);
}

/* :method GET or POST, :scheme http, :path /, :authority a */
static void peer_asks(struct peer *peer, uint8_t how)
{
    static const char begin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
    char block[] = "\x82\x86\x84\x41\x01"
                   "a";
    static const char socket[] = "\x02\x07"
                                 "CONNECT\x00\x09:protocol\x09websocket\x86\x84\x41\x01"
                                 "a\x00\x15sec-websocket-version\x02"
                                 "13";
    bool posts = how & 1;
    if (how & 8) { /* and a message, which comes before the answer or behind it */
        if (peer->sent.len == 0)
            peer_says(peer, begin, sizeof(begin) - 1);
        if (how & 16)
            peer_sends_frame(peer, H2_HEADERS, H2_END_HEADERS, peer->next_id, socket, sizeof(socket) - 1);
        else
            peer->next_id -= 2;
        peer_sends_frame(peer, H2_DATA, how & 4 ? H2_END_STREAM : 0, peer->next_id, "\x81\x82\0\0\0\0hi", 8);
        peer->next_id += 2;
        return;
    }
    if (how & 2) {
        const char *text = posts ? "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
                                 : "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        peer_says(peer, text, strlen(text));
        return;
    }
    if (peer->sent.len == 0)
        peer_says(peer, begin, sizeof(begin) - 1);
    block[0] = posts ? '\x83' : '\x82';
    peer_sends_frame(peer, H2_HEADERS, posts ? H2_END_HEADERS : H2_END_HEADERS | H2_END_STREAM, peer->next_id, block,
                     sizeof(block) - 1);
    if (posts)
        peer_sends_frame(peer, H2_DATA, how & 4 ? 0 : H2_END_STREAM, peer->next_id, "hello", 5);
    peer->next_id += 2;
}

/* --- the frontend --- */

static void check_frontend(void)
{
    uint32_t n = 0;
    uint32_t out = frontend->dispatch->out_waiting;
    for (uint32_t i = 0; i <= board.count; i++)
        out += frontend->dispatch->workers[i].out;
    expect(out == frontend->calls_out && frontend->calls_out <= CALLS_MAX);
    for (const struct oribi__upstream_request *call = frontend->dispatch->first; call; call = call->next)
        n++;
    expect(n == frontend->queue_len);
    n = 0;
    for (const struct oribi__channel *channel = frontend->channels->idle_first; channel; channel = channel->next)
        n++;
    expect(n == frontend->channels->idle_count && n <= frontend->channels->count);
    for (const struct oribi__client *client = frontend->h2->first; client; client = client->next)
        expect(!client->h2 ||
               oribi_h2_streams(client->h2) <= frontend->h2->limits.streams_max + frontend->h2->limits.left_max);
}

/* All sleep, and are to be woken. */
static void fall_asleep(void)
{
    (void)oribi_reactor_fall_asleep(&frontend->reactor);
    for (uint32_t i = 0; i < SLOTS; i++)
        oribi_asleep_begin(&board.slots[i].asleep);
}

/* Turns until nobody has anything to read. */
static void settle_all(void)
{
    for (int quiet = 0, i = 0; quiet < 2 && i < 50; i++) {
        hand_moves_in();
        turn(frontend);
        hand_moves_out();
        await_files(&frontend->reactor);
        bool any = take_handed();
        for (uint32_t k = 0; k < far_count; k++)
            any |= read_far(&fars[k]);
        for (uint32_t k = 0; k < CLIENTS; k++)
            any |= peer_reads(&peers[k]);
        quiet = any ? 0 : quiet + 1;
    }
    fall_asleep();
    check_frontend();
}

static void start(void)
{
#ifdef FUZZ_frontend_rings
    (void)hand_files();
#endif
    oribi_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), ORIBI_LOG_ERROR);
    oribi_options_init(&options);
    options.limits.body_bytes_max = 1000;
    options.websockets_max = options.events_max = 100; /* else a part of connections_max, which is 0 or 1 here */
    expect(oribi_scoreboard_create(&board, SLOTS) == 0 && oribi_handoff_create(&queue) == 0);
    expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, control_fds) == 0);
}

static void open_frontend(uint8_t flags)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address = (struct sockaddr_un){.sun_family = AF_UNIX};
    address_len = sizeof(address);
    /* unix(7): autobind */
    expect(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0 && listen(fd, 16) == 0);
    expect(getsockname(fd, (struct sockaddr *)&address, &address_len) == 0);
    config = (struct oribi_frontend_config){.options = &options,
                                            .listener_count = 1,
                                            .board = board,
                                            .handoff = queue,
                                            .channel_first = 1,
                                            .channel_count = flags & 1 ? 4 : 1000,
                                            .control_fd = control_fds[0]};
    config.listeners[0].listener = (struct oribi_listener){.fd = fd, .is_unix = true, .text = "unix:frontend"};
    options.queue_max = flags & 2 ? 1 : 0;
    options.websocket_pending_max = flags & 2 ? 1024 : 256 * 1024; /* is behind a long answer that is not read */
    options.connections_max = flags & 4 ? 1 : 0;
    options.buffers_memory_max = flags & 32 ? 16 * 1024 : 0; /* the rest goes to files */
    options.buffers_file_max = flags & 64 ? 300 * 1000 : 0;  /* the rest is refused */
    options.keepalive_requests_max = flags & 128 ? 2 : 0;
    now_us = 1000 * 1000 * 1000;
    is_told = false;
    frontend_woken = 0;
    for (uint32_t i = 0; i < SLOTS; i++) {
        atomic_store(&board.slots[i].pid, 1);
        atomic_store(&board.slots[i].state, ORIBI_SLOT_IDLE);
        atomic_store(&board.slots[i].threads, 0);
    }
    frontend = oribi__frontend_create(&config, error);
    expect(frontend != NULL);
    if (flags & 8)
        frontend->h2->limits.streams_max = 2;
    if (flags & 16) {
        frontend->h2->limits.resets_max = 3;
        frontend->h2->limits.left_max = 1;
    }
}

/* --- steps --- */

static void client_lives(struct peer *peer, uint8_t how)
{
    switch (how % 4) {
    case 0:
        peer->silent = !peer->silent;
        break;
    case 1:
        if (peer->fd >= 0)
            (void)shutdown(peer->fd, SHUT_WR);
        break;
    default:
        peer_closes(peer);
        peer_connects(peer);
    }
}

static void client_step(enum step step, struct peer *peer, struct bytes *in)
{
    uint8_t how = next_byte(in);
    uint8_t flags;
    struct bytes part;
    switch (step) {
    case CLIENT_BYTES:
        part = next_bytes(in, how);
        peer_says(peer, part.p, part.n);
        break;
    case CLIENT_FRAME:
        flags = next_byte(in);
        uint8_t id = next_byte(in);
        part = next_bytes(in, next_byte(in));
        peer_sends_frame(peer, how, flags, id, part.p, part.n);
        break;
    case CLIENT_REQUEST:
        peer_asks(peer, how);
        break;
    default:
        client_lives(peer, how);
    }
}

/* The record of a handler R with on_open and on_close, and of a subscription to r. */
#define RECORD "A\0\3\0\0\0\1R\0\0\0\0\0\0\0\4\0\1r\0"

#define ANSWER(text)                                                                                                   \
    {                                                                                                                  \
        (text), sizeof(text) - 1                                                                                       \
    }

static const struct oribi_slice ready_answers[] = {
    ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
    ANSWER("HTTP/1.1 204 No Content\r\n\r\n"),
    ANSWER("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-A: b\r\n\r\n"),
    ANSWER("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
    ANSWER("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"),
    ANSWER("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 600000\r\n\r\n"),
    ANSWER("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    ANSWER("HTTP/1.1 200 OK\r\noribi-websocket: 1\r\nContent-Length: 20\r\n\r\n" RECORD),
    ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nt\0\0\0\2hi"),
    ANSWER("HTTP/1.1 500 No\r\noribi-websocket: 1\r\nContent-Length: 5\r\n\r\nwords"),
};

static void worker_step(enum step step, uint32_t which, struct bytes *in)
{
    static const char filler[64 * 1024];
    uint8_t how = next_byte(in);
    struct bytes part = step == WORKER_BYTES ? next_bytes(in, how) : (struct bytes){0};
    if (step == WORKER_STATE) {
        atomic_store(&board.slots[which % SLOTS].state, how % (ORIBI_SLOT_DRAINING + 1u));
        atomic_store(&board.slots[which % SLOTS].threads, how / 8 % 4);
        return;
    }
    if (far_count == 0)
        return;
    which %= far_count;
    switch (step) {
    case WORKER_ANSWERS:
        how %= sizeof(ready_answers) / sizeof(ready_answers[0]);
        far_says(&fars[which], ready_answers[how].p, ready_answers[how].n);
        break;
    case WORKER_BYTES:
        far_says(&fars[which], part.p, part.n);
        break;
    case WORKER_FLOODS:
        far_says(&fars[which], filler, how * (sizeof(filler) / 256));
        break;
    default:
#ifdef FUZZ_frontend_rings
        if (how >= 0xf0 && fars[which].ring) {
            far_hands_over(&fars[which], how);
            break;
        }
#endif
        if (how & 1)
            (void)shutdown(fars[which].fd, SHUT_WR);
        else
            far_ends(which);
    }
}

static void take_step(struct bytes *in)
{
    uint8_t byte = next_byte(in);
    enum step step = byte % 16;
    uint32_t which = byte / 16;
    if (step <= CLIENT_LIFE)
        client_step(step, &peers[which % CLIENTS], in);
    else if (step <= WORKER_STATE)
        worker_step(step, which, in);
    else if (step == TIME_PASSES)
        now_us += (int64_t)next_byte(in) * (which & 1 ? 300 * 1000 : 1000);
    else if (step == FRONTEND_DRAINS)
        is_told |= send(control_fds[1], which & 1 ? "S" : "D", 1, MSG_DONTWAIT) == 1;
#ifdef FUZZ_frontend_rings
    else if (step == HAND_WRITES) {
        hand_rule_add(in);
        hand_socket = far_count ? fars[which % far_count].fd : -1;
    }
#endif
    if (!(which & 8))
        settle_all();
}

/* --- the end --- */

/* All clients read, and the worker ends whatever it has: no call may be left. */
static void end_calls(void)
{
    for (uint32_t i = 0; i < CLIENTS; i++)
        peers[i].silent = false;
    for (uint32_t i = 0; i < SLOTS; i++)
        atomic_store(&board.slots[i].state, ORIBI_SLOT_IDLE);
    for (int round = 0; round < CALL_ROUNDS_MAX; round++) {
        settle_all();
        if (far_count == 0 && !frontend->calls_out && !frontend->queue_len)
            return;
        while (far_count > 0)
            far_ends(far_count - 1);
        now_us += ROUND_MS * 1000;
    }
    expect(!"a call is left");
}

static bool holds_nobody(void)
{
    return frontend->reactor.conn_count == 0 && frontend->client_count == 0 && frontend->arrival_count == 0 &&
           frontend->tunnel_count == 0 && frontend->websocket_count == 0;
}

/* Clients say nothing more: every timeout passes. */
static void let_go(void)
{
    for (int round = 0; round < LEAVE_ROUNDS_MAX && !holds_nobody(); round++) {
        settle_all();
        while (far_count > 0)
            far_ends(far_count - 1);
        now_us += LEAVE_MS * 1000;
    }
    expect(holds_nobody());
}

/* A worker as it should be: it answers each request, and ends a call whose client has gone. */
static void answer_handed(void)
{
    char byte;
    uint32_t before = far_count;
    (void)take_handed();
    for (uint32_t i = before; i < far_count; i++)
        far_says(&fars[i], ready_answers[0].p, ready_answers[0].n);
    for (uint32_t i = far_count; i > 0; i--)
        if (recv(fars[i - 1].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
            far_ends(i - 1);
}

/* Whatever the hand has done, a client gets its answer by another channel. */
static void check_another(void)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    char text[512];
    ssize_t n = -1;
    if (is_told || !HAS_HAND)
        return;
    now_us += LEAVE_MS * 1000;
    for (uint32_t i = 0; i < CLIENTS; i++)
        peer_closes(&peers[i]); /* one may wait in the listener's queue yet */
    let_go();
    peer_connects(&peers[0]);
    if (peers[0].fd < 0) /* the listener's queue is full of those that have gone */
        return;
    expect(send(peers[0].fd, request, sizeof(request) - 1, MSG_NOSIGNAL) == sizeof(request) - 1);
    for (int i = 0; i < 1000 && n <= 0; i++) { /* others may wait before it */
        now_us += 100 * 1000;
        turn(frontend);
        answer_handed();
        n = recv(peers[0].fd, text, sizeof(text) - 1, MSG_DONTWAIT);
    }
    text[n > 0 ? n : 0] = '\0';
    expect(strstr(text, " 200 OK\r\n") && strcmp(text + n - 2, "ok") == 0);
    peer_closes(&peers[0]);
    let_go();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    if (!board.slots)
        start();
    if (size > 4096)
        return 0;
    int64_t blocks = oribi_mem_blocks();
    int fd = lowest_free_fd();
    open_frontend(next_byte(&in));
    for (uint32_t i = 0; i < CLIENTS; i++)
        peer_connects(&peers[i]);
#ifdef FUZZ_frontend_rings
    hand_has_moved = false;
    hand_places = board.channels;
    hand_place_count = 8;
    hand_word = &board.slots[0].asleep;
#endif
    while (in.n > 0)
        take_step(&in);
    hand_rests();
    end_calls();
    let_go();
    check_another();
    for (uint32_t i = 0; i < CLIENTS; i++)
        peer_closes(&peers[i]);
    oribi__frontend_destroy(frontend);
    oribi_os_close(config.listeners[0].listener.fd);
    expect(lowest_free_fd() == fd);
    expect(oribi_mem_blocks() == blocks);
    return 0;
}
