/* The frontend and its workers; fake_calls.c has the clients that are transcripts, fake_clients.c the real ones. */
#include "frontend/frontend.c"

#include "fakes_private.h"
#include "frontend/canonical.h"
#include "oribi/worker/inbox.h"
#include "oribi/http/head.h"
#include "oribi/worker/placement/handoff.h"

#include "../fuzz/storing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    CHANNELS = 64,
    NOW_US = 1000 * 1000 * 1000,
    TEXT_CAP = 4 * 1024 * 1024,
    TURNS_MAX = 400,
    LOG_CAP = 64 * 1024,
    FDS_MAX = 3 * FAKE_FARS_MAX, /* that a test may have */
};

/* The worker's end of a channel. */
struct far {
    int fd;
    int body_fd;
    uint16_t number;
    uint32_t worker;
    bool from_queue;
    struct oribi_channel_ring *ring; /* its end of the channel's memory; NULL: it has the socket alone */
};

static struct oribi__frontend *frontend;
static struct oribi_options options;
static struct oribi_frontend_config config;
static struct oribi_frontend_slot counters[ORIBI_FRONTENDS_MAX]; /* the first is the frontend's */
static struct far fars[FAKE_FARS_MAX];
static uint32_t last_woken;
static int fars_woken;
static int far_count;
static struct oribi_buf handed[FAKE_FARS_MAX]; /* the request that came with the channel, for fake_asked() */
static int control_fd = -1;
static int log_fd = -1;
static off_t log_at;
static int64_t now_us;
static char *text; /* TEXT_CAP */
static size_t text_len;
static int64_t blocks;
static int open_count;

/* --- the clock: the system's for tests that begin no frontend --- */

int64_t oribi_clock_us(void)
{
    struct timespec now = {0};
    if (now_us)
        return now_us;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t oribi_clock_ms(void)
{
    return oribi_clock_us() / 1000;
}

void fake_passes_ms(int64_t ms)
{
    now_us += ms * 1000;
    oribi_reactor_clock(&frontend->reactor, now_us);
}

int64_t fake_now_us(void)
{
    return now_us;
}

/* --- life --- */

void fake_must(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fakes: %s: %s\n", what, strerror(errno));
    exit(2);
}

static int count_open(void)
{
    int count = 0;
    for (int fd = 0; fd < FDS_MAX; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void begin_once(void)
{
    if (text)
        return;
    text = oribi_mem_alloc(1, TEXT_CAP);
    log_fd = memfd_create("log", MFD_CLOEXEC);
    fake_must(log_fd >= 0, "no log");
    oribi_log_init(log_fd, ORIBI_LOG_INFO);
}

static void begin_workers(const struct fake_setup *setup)
{
    uint32_t count = setup->workers ? setup->workers : 1;
    fake_must(count <= FAKE_WORKERS_MAX, "too many workers");
    fake_must(oribi_scoreboard_create(&config.board, count) == 0 && oribi_handoff_create(&config.handoff) == 0,
              "no workers");
    for (uint32_t i = 0; i < count; i++) {
        atomic_store(&config.board.slots[i].pid, (int32_t)(100 + i));
        atomic_store(&config.board.slots[i].state, ORIBI_SLOT_IDLE);
        atomic_store(&config.board.slots[i].threads, 1);
    }
}

void fake_begin(struct fake_setup setup)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int fds[2];
    begin_once();
    blocks = oribi_mem_blocks();
    open_count = count_open();
    fake_must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0, "no supervisor");
    control_fd = fds[1];
    now_us = NOW_US;
    memset(counters, 0, sizeof(counters));
    oribi_options_init(&options);
    options.queue_max = setup.queue_max;
    options.buffers_memory_max = setup.memory_max;
    options.buffers_file_max = setup.file_max;
    options.keepalive_requests_max = setup.keepalive_requests_max;
    config = (struct oribi_frontend_config){.options = &options,
                                            .listener_count = 1,
                                            .slots = counters,
                                            .slot = counters,
                                            .channel_first = 1,
                                            .channel_count = setup.channels ? setup.channels : CHANNELS,
                                            .control_fd = fds[0]};
    config.listeners[0].listener = (struct oribi_listener){.fd = -1, .is_unix = true, .text = "unix:fake"};
    begin_workers(&setup);
    frontend = oribi__frontend_create(&config, error);
    fake_must(frontend != NULL, error);
    if (setup.streams_max)
        frontend->h2->limits.streams_max = setup.streams_max;
    if (setup.left_max)
        frontend->h2->limits.left_max = setup.left_max;
    if (setup.local)
        fake_reloads();
}

void fake_reloads(void)
{
    struct oribi_options *local = oribi_mem_alloc(1, sizeof(*local)); /* the local content frees it */
    oribi_options_init(local);
    local->access_log = oribi_mem_alloc(1, sizeof("off"));
    memcpy(local->access_log, "off", sizeof("off"));
    config.local = local;
    fake_must(oribi__frontend_local_open(frontend) == 0, "no local content");
}

static void end_workers(void)
{
    struct oribi_handoff_item item;
    int code;
    while ((code = oribi_handoff_take(&config.handoff, text, TEXT_CAP, &item)) >= 0) {
        if (code == ORIBI_HANDOFF_WAKEUP)
            continue;
        oribi_os_close(item.fd);
        oribi_os_close(item.body_fd);
        oribi_mem_free(item.long_bytes);
        if (item.ring_fd > 0)
            oribi_os_close(item.ring_fd);
    }
    for (int i = 0; i < far_count; i++) {
        oribi_channel_ring_destroy(fars[i].ring);
        oribi_os_close(fars[i].fd);
        oribi_os_close(fars[i].body_fd);
        oribi_buf_deinit(&handed[i]);
    }
    far_count = 0;
    oribi_handoff_close(&config.handoff);
    oribi_scoreboard_destroy(&config.board);
}

void fake_end(void)
{
    fake_calls_end();
    fake_clients_end();
    oribi__frontend_destroy(frontend);
    end_workers();
    oribi_os_close(control_fd);
    oribi_os_close(config.control_fd);
    oribi_options_deinit(&options);
    ok_named(oribi_mem_blocks() == blocks, "no memory is left");
    ok_named(count_open() == open_count, "no descriptor is left");
    now_us = 0;
}

struct oribi__frontend *fake_frontend(void)
{
    return frontend;
}

struct oribi_options *fake_options(void)
{
    return &options;
}

void fake_body_max(int64_t bytes)
{
    frontend->h2->limits.http.body_bytes_max = bytes;
}

/* --- turns --- */

void fake_turn(void)
{
    turn(frontend);
    await_files(&frontend->reactor);
}

int64_t fake_wait_ms(void)
{
    return wait_ms(frontend);
}

void fake_settle(void)
{
    for (int quiet = 0, i = 0; quiet < 2 && i < TURNS_MAX; i++) {
        fake_turn();
        bool goes_on = wait_ms(frontend) == 0 || oribi_reactor_goes_on(&frontend->reactor);
        quiet = fake_clients_read() || goes_on ? 0 : quiet + 1;
    }
}

void fake_dispatch(void)
{
    oribi__dispatch(frontend);
}

void fake_channels(void)
{
    oribi__channels_turn(frontend);
}

void fake_reads(struct oribi__channel *channel)
{
    channel->watch.ready |= ORIBI_READ;
    oribi__channel_read(channel);
}

void fake_posts(struct oribi__channel *channel)
{
    channel->posted = true;
    channel->posted_next = NULL;
    frontend->channels->posted = channel;
}

struct oribi__channel *fake_idle_channel(void)
{
    return frontend->channels->idle_first;
}

void fake_drains(void)
{
    fake_must(send(control_fd, "D", 1, MSG_DONTWAIT) == 1, "no order");
    fake_turn();
}

void fake_gives_up(void)
{
    frontend->gives_up = true;
}

const char *fake_told(void)
{
    static char message[256];
    ssize_t n = recv(control_fd, message, sizeof(message) - 1, MSG_DONTWAIT);
    message[n > 0 ? n : 0] = '\0';
    return message;
}

const char *fake_logged(void)
{
    static char lines[LOG_CAP];
    ssize_t n = pread(log_fd, lines, sizeof(lines) - 1, log_at);
    log_at += n > 0 ? n : 0;
    lines[n > 0 ? n : 0] = '\0';
    return lines;
}

/* --- what there is --- */

static int64_t count_blocked(void)
{
    int64_t n = 0;
    for (const struct oribi__upstream_request *call = frontend->upstream->blocked; call; call = call->blocked_next)
        n++;
    return n;
}

static int64_t count_listed(void)
{
    int64_t n = 0;
    for (const struct oribi__upstream_request *call = frontend->upstream->listed; call; call = call->listed_next)
        n++;
    return n;
}

static int64_t count_abandoned(void)
{
    int64_t n = 0;
    for (const struct oribi__channel *channel = frontend->channels->left_first; channel; channel = channel->next)
        n++;
    return n;
}

static int64_t count_left_by_streams(void)
{
    int64_t n = 0;
    for (const struct oribi__channel *channel = frontend->channels->left_first; channel; channel = channel->next)
        n += channel->left_by != NULL;
    return n;
}

int64_t fake_gauge(enum fake_gauge gauge)
{
    switch (gauge) {
    case FAKE_OUT:
        return frontend->calls_out;
    case FAKE_OUT_WAITING:
        return frontend->dispatch->out_waiting;
    case FAKE_QUEUED:
        return frontend->queue_len;
    case FAKE_IDLE_CHANNELS:
        return frontend->channels->idle_count;
    case FAKE_CHANNELS:
        return frontend->channels->count;
    case FAKE_ABANDONED:
        return count_abandoned();
    case FAKE_LEFT_BY_STREAMS:
        return count_left_by_streams();
    case FAKE_FREE_NUMBERS:
        return frontend->channels->free_number_count;
    case FAKE_SPARE_CALLS:
        return frontend->upstream->spare_count;
    case FAKE_BLOCKED:
        return count_blocked();
    case FAKE_LISTED:
        return count_listed();
    case FAKE_WAITING_H1:
        return frontend->waiting_h1;
    case FAKE_WAITING_H2:
        return frontend->waiting_h2;
    case FAKE_CONNS_H1:
        return frontend->reactor.conn_count;
    case FAKE_CLIENTS_H2:
        return frontend->client_count;
    case FAKE_RESTING_H2:
        return frontend->resting_count;
    case FAKE_STREAMS:
        return frontend->stream_count;
    case FAKE_MEMORY:
        return frontend->reactor.budget.memory_used;
    case FAKE_FILE:
        return frontend->reactor.budget.file_used;
    case FAKE_TUNNELS:
        return frontend->tunnel_count;
    case FAKE_FILES:
        return frontend->answer_files->count;
    }
    return -1;
}

uint32_t fake_out_of(uint32_t worker)
{
    return frontend->dispatch->workers[worker + 1].out;
}

struct oribi_frontend_slot *fake_counters(void)
{
    return counters;
}

uint64_t fake_closed_with(uint16_t code)
{
    uint32_t i = 0;
    while (i + 1 < ORIBI_FRONTEND_CLOSE_CODES && oribi_frontend_close_codes[i] != code)
        i++;
    return fake_counters()->websocket_closed[i];
}

struct oribi_slot *fake_slot(uint32_t worker)
{
    return &config.board.slots[worker];
}

void fake_others_out(uint32_t calls)
{
    atomic_store(&counters[1].calls_out, calls);
}

uint32_t fake_average_of(uint32_t worker)
{
    return frontend->dispatch->workers[worker + 1].average_us;
}

void fake_average_us(uint32_t worker, uint32_t us)
{
    frontend->dispatch->workers[worker + 1].average_us = us;
}

/* --- workers --- */

static struct far *far_of(int far)
{
    fake_must(far >= 0 && far < far_count, "no such channel");
    return &fars[far];
}

static void own(const struct far *far, uint16_t place)
{
    if (far->from_queue)
        atomic_store(&config.board.channels[far->number], place);
}

static int add_far(struct far far)
{
    fake_must(far_count < FAKE_FARS_MAX, "too many channels");
    fars[far_count] = far;
    return far_count++;
}

int fake_last_far(void)
{
    return far_count - 1;
}

int fake_far_new(int fd)
{
    return add_far((struct far){.fd = fd, .body_fd = -1});
}

int fake_take(uint32_t worker)
{
    struct oribi_handoff_item item;
    int code;
    fars_woken = 0;
    while ((code = oribi_handoff_take(&config.handoff, text, TEXT_CAP, &item)) == ORIBI_HANDOFF_WAKEUP)
        fars_woken++;
    if (code != 0)
        return -1;
    atomic_fetch_sub(&config.board.slots->handed_off, 1);
    int far = add_far((struct far){
        .fd = item.fd, .body_fd = item.body_fd, .number = item.channel, .worker = worker, .from_queue = true});
    if (item.ring_fd > 0) {
        fars[far].ring =
            oribi_channel_ring_try_attach(item.ring_fd, item.fd, &config.board.frontends[0].asleep, &last_woken);
        fake_must(fars[far].ring != NULL, "no ring");
    }
    oribi_buf_append(&handed[far], item.bytes.p, item.bytes.n);
    oribi_mem_free(item.long_bytes);
    own(&fars[far], (uint16_t)(worker + 1));
    return far;
}

int fake_wakeups(void)
{
    return fars_woken;
}

uint32_t fake_waiting(void)
{
    return (uint32_t)atomic_load(&config.board.slots->handed_off);
}

/* The heads of channels in front of requests are cut out; other bytes stay as they are. */
static void strip_heads(void)
{
    static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";
    char *at;
    while ((at = memmem(text, text_len, signature, sizeof(signature) - 1)) != NULL) {
        struct oribi_channel_head about;
        ssize_t n = oribi_channel_head_read(at, text_len - (size_t)(at - text), &about);
        fake_must(n > 0, "a channel head that is cut");
        text_len -= (size_t)n;
        memmove(at, at + n, text_len - (size_t)(at - text));
    }
}

static ssize_t read_far(struct far *far, char *dst, size_t n)
{
    return far->ring ? oribi_channel_ring_read(far->ring, dst, n, true) : recv(far->fd, dst, n, MSG_DONTWAIT);
}

static ssize_t send_far(struct far *far, const char *p, size_t n)
{
    struct iovec vec = {(void *)p, n};
    return far->ring ? far->ring->transport.send_vec(&far->ring->transport, &vec, 1, false)
                     : send(far->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
}

const char *fake_asked(int far)
{
    ssize_t n;
    struct far *own_far = far_of(far);
    text_len = handed[far].len;
    if (text_len)
        memcpy(text, handed[far].p, text_len);
    oribi_buf_deinit(&handed[far]);
    while (text_len < TEXT_CAP - 1 && (n = read_far(own_far, text + text_len, TEXT_CAP - 1 - text_len)) > 0)
        text_len += (size_t)n;
    strip_heads();
    text[text_len] = '\0';
    return text;
}

size_t fake_asked_len(void)
{
    return text_len;
}

const char *fake_asked_body(int far)
{
    ssize_t n = far_of(far)->body_fd >= 0 ? pread(far_of(far)->body_fd, text, TEXT_CAP - 1, 0) : -1;
    text_len = n > 0 ? (size_t)n : 0;
    text[text_len] = '\0';
    return n < 0 ? NULL : text;
}

bool fake_is_over(int far)
{
    char byte;
    ssize_t n = recv(far_of(far)->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
    return n == 0 || (n < 0 && errno != EAGAIN);
}

bool fake_tries_answer(int far, const char *answer)
{
    size_t n = strlen(answer);
    if (far_of(far)->ring && strncmp(answer, "HTTP/1.1 101", 12) == 0)
        oribi_channel_ring_leave(far_of(far)->ring); /* as workers do */
    return send_far(far_of(far), answer, n) == (ssize_t)n;
}

void fake_answers_bytes(int far, const char *p, size_t n)
{
    ok_named(send_far(far_of(far), p, n) == (ssize_t)n, "the worker answers");
}

void fake_answers(int far, const char *answer)
{
    ok_named(fake_tries_answer(far, answer), "the worker answers");
}

void fake_replies(int far, const char *answer)
{
    fake_answers(far, answer);
    fake_settle();
}

const char *fake_filler(void)
{
    static char bytes[FAKE_FILLER_BYTES];
    memset(bytes, 'x', sizeof(bytes));
    return bytes;
}

size_t fake_floods(int far, size_t n)
{
    size_t sent = 0;
    while (sent < n) {
        size_t part = n - sent < FAKE_FILLER_BYTES ? n - sent : FAKE_FILLER_BYTES;
        ssize_t got = send_far(far_of(far), fake_filler(), part);
        if (got <= 0)
            break;
        sent += (size_t)got;
    }
    return sent;
}

bool fake_takes_files(int far)
{
    return atomic_load(&far_of(far)->ring->way_out->takes_files) != 0;
}

void fake_passes_file(int far, int fd, int64_t offset)
{
    const struct {
        char mark[8];
        int64_t offset;
    } note = {{1}, offset};
    const struct iovec vec = {(void *)(uintptr_t)&note, sizeof(note)};
    ok_eq(oribi_inbox_send(far_of(far)->ring->fd, &vec, 1, fd), 0);
}

void fake_says_file(int far, int64_t n)
{
    struct oribi_channel_ring *ring = far_of(far)->ring;
    const struct oribi_ring_record record = {
        .length = (uint64_t)n, .kind = ORIBI_CHANNEL_FILE, .mark = atomic_load(&ring->way_out->woken)};
    ok(oribi_ring_write_head(&ring->out, &record));
}

void fake_hands_over(int far, int fd, int64_t offset, int64_t n)
{
    fake_passes_file(far, fd, offset);
    fake_says_file(far, n);
}

void fake_lends(int far)
{
    if (far_of(far)->ring)
        oribi_channel_ring_leave(far_of(far)->ring);
    own(far_of(far), (uint16_t)((far_of(far)->worker + 1) | ORIBI_CHANNEL_LENT));
}

void fake_far_shuts(int far)
{
    fake_must(shutdown(far_of(far)->fd, SHUT_WR) == 0, "no shutdown");
}

void fake_far_dies(int far)
{
    oribi_os_close(far_of(far)->fd);
    far_of(far)->fd = -1;
}

void fake_far_closes(int far)
{
    own(far_of(far), 0);
    fake_far_dies(far);
}

void fake_far_unowned(int far)
{
    own(far_of(far), 0);
}

void fake_far_passes(int far, uint32_t worker)
{
    far_of(far)->worker = worker;
    own(far_of(far), (uint16_t)(worker + 1));
}
