/* The frontend, its workers and the clients that are transcripts; fake_clients.c has real ones. */
#include "frontend/clients_h2.h"
#include "frontend/frontend.c"

#include "fakes_private.h"
#include "frontend/canonical.h"
#include "oribi/http/parser.h"
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
    FILLER_BYTES = 64 * 1024,
};

/* The worker's end of a channel. */
struct far {
    int fd;
    int body_fd;
    uint16_t number;
    uint32_t worker;
    bool from_queue;
};

/* A call whose client is a transcript. */
struct fake_client {
    struct oribi__upstream_request *call; /* NULL: over */
    struct fake_request request;
    struct oribi_buf heard;
    struct oribi_buf body;
    int body_fd;
    int64_t untaken;
    uint32_t events;
    const char *reason;
};

static struct oribi__frontend *frontend;
static struct oribi_options options;
static struct oribi_frontend_config config;
static struct oribi_frontend_slot counters[ORIBI_FRONTENDS_MAX]; /* the first is the frontend's */
static struct far fars[FAKE_FARS_MAX];
static int far_count;
static struct oribi_buf handed[FAKE_FARS_MAX]; /* the request that came with the channel, for fake_asked() */
static struct fake_client fakes[FAKE_CALLS_MAX];
static int fake_count;
static int control_fd = -1;
static int log_fd = -1;
static off_t log_at;
static int64_t now_us;
static char *text; /* TEXT_CAP */
static size_t text_len;
static int64_t blocks;
static int first_free;

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

static int lowest_free(void)
{
    int fd = dup(STDIN_FILENO);
    fake_must(fd >= 0 && close(fd) == 0, "no descriptor");
    return fd;
}

static void begin_once(void)
{
    if (frontend)
        return;
    frontend = oribi_mem_alloc(1, sizeof(*frontend));
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
    first_free = lowest_free();
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
    memset(frontend, 0, sizeof(*frontend));
    fake_must(oribi__frontend_init(frontend, &config, error) == 0, error);
    if (setup.streams_max)
        frontend->h2_limits.streams_max = setup.streams_max;
    if (setup.local)
        fake_reloads();
}

void fake_reloads(void)
{
    struct oribi_options *local = oribi_mem_alloc(1, sizeof(*local)); /* the local content frees it */
    oribi_options_init(local);
    config.local = local;
    fake_must(oribi__frontend_local_open(frontend) == 0, "no local content");
}

static void end_workers(void)
{
    struct oribi_handoff_item item;
    while (oribi_handoff_take(&config.handoff, text, TEXT_CAP, &item) >= 0) {
        oribi_os_close(item.fd);
        oribi_os_close(item.body_fd);
    }
    for (int i = 0; i < far_count; i++) {
        oribi_os_close(fars[i].fd);
        oribi_os_close(fars[i].body_fd);
        oribi_buf_deinit(&handed[i]);
    }
    far_count = 0;
    oribi_handoff_close(&config.handoff);
    oribi_scoreboard_destroy(&config.board);
}

static void forget_fakes(void)
{
    for (int i = 0; i < fake_count; i++) {
        fake_goes(i);
        oribi_buf_deinit(&fakes[i].heard);
        oribi_buf_deinit(&fakes[i].body);
        oribi_os_close(fakes[i].body_fd);
    }
    fake_count = 0;
}

void fake_end(void)
{
    forget_fakes();
    fake_clients_end();
    oribi__frontend_deinit(frontend);
    end_workers();
    oribi_os_close(control_fd);
    oribi_os_close(config.control_fd);
    oribi_options_deinit(&options);
    ok_named(oribi_mem_blocks() == blocks, "no memory is left");
    ok_named(lowest_free() == first_free, "no descriptor is left");
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

/* --- turns --- */

void fake_turn(void)
{
    turn(frontend);
    await_files(&frontend->reactor);
}

void fake_settle(void)
{
    for (int quiet = 0, i = 0; quiet < 2 && i < TURNS_MAX; i++) {
        fake_turn();
        quiet = fake_clients_read() ? 0 : quiet + 1;
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
    frontend->posted_channels = channel;
}

struct oribi__channel *fake_idle_channel(void)
{
    return frontend->idle_first;
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
    for (const struct oribi__upstream_request *call = frontend->blocked; call; call = call->blocked_next)
        n++;
    return n;
}

static int64_t count_listed(void)
{
    int64_t n = 0;
    for (const struct oribi__upstream_request *call = frontend->listed; call; call = call->listed_next)
        n++;
    return n;
}

static int64_t count_abandoned(void)
{
    int64_t n = 0;
    for (const struct oribi__channel *channel = frontend->left_first; channel; channel = channel->next)
        n++;
    return n;
}

int64_t fake_gauge(enum fake_gauge gauge)
{
    switch (gauge) {
    case FAKE_OUT:
        return frontend->calls_out;
    case FAKE_OUT_WAITING:
        return frontend->out_waiting;
    case FAKE_QUEUED:
        return frontend->queue_len;
    case FAKE_IDLE_CHANNELS:
        return frontend->idle_count;
    case FAKE_CHANNELS:
        return frontend->channel_count;
    case FAKE_ABANDONED:
        return count_abandoned();
    case FAKE_FREE_NUMBERS:
        return frontend->free_number_count;
    case FAKE_SPARE_CALLS:
        return frontend->spare_call_count;
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
    }
    return -1;
}

uint32_t fake_out_of(uint32_t worker)
{
    return frontend->out[worker + 1];
}

struct oribi_frontend_slot *fake_counters(void)
{
    return counters;
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
    return frontend->average_us[worker + 1];
}

void fake_average_us(uint32_t worker, uint32_t us)
{
    frontend->average_us[worker + 1] = us;
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

int fake_far_new(int fd)
{
    return add_far((struct far){.fd = fd, .body_fd = -1});
}

int fake_take(uint32_t worker)
{
    struct oribi_handoff_item item;
    int code;
    do
        code = oribi_handoff_take(&config.handoff, text, TEXT_CAP, &item);
    while (code == ORIBI_HANDOFF_WAKEUP);
    if (code != 0)
        return -1;
    atomic_fetch_sub(&config.board.slots->handed_off, 1);
    int far = add_far((struct far){
        .fd = item.fd, .body_fd = item.body_fd, .number = item.channel, .worker = worker, .from_queue = true});
    oribi_buf_append(&handed[far], item.bytes.p, item.bytes.n);
    own(&fars[far], (uint16_t)(worker + 1));
    return far;
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

const char *fake_asked(int far)
{
    ssize_t n;
    struct far *own_far = far_of(far);
    text_len = handed[far].len;
    if (text_len)
        memcpy(text, handed[far].p, text_len);
    oribi_buf_deinit(&handed[far]);
    while (text_len < TEXT_CAP - 1 &&
           (n = recv(own_far->fd, text + text_len, TEXT_CAP - 1 - text_len, MSG_DONTWAIT)) > 0)
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
    return send(far_of(far)->fd, answer, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n;
}

void fake_answers(int far, const char *answer)
{
    ok_named(fake_tries_answer(far, answer), "the worker answers");
}

static const char *filler(void)
{
    static char bytes[FILLER_BYTES];
    memset(bytes, 'x', sizeof(bytes));
    return bytes;
}

size_t fake_floods(int far, size_t n)
{
    size_t sent = 0;
    while (sent < n) {
        size_t part = n - sent < FILLER_BYTES ? n - sent : FILLER_BYTES;
        ssize_t got = send(far_of(far)->fd, filler(), part, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (got <= 0)
            break;
        sent += (size_t)got;
    }
    return sent;
}

void fake_lends(int far)
{
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

/* --- clients that are transcripts --- */

static struct fake_client *fake_of(const struct oribi__upstream_request *call)
{
    return call->owner;
}

static void note_body(struct fake_client *fake, struct oribi_slice body, bool last)
{
    if (body.n > 40)
        oribi_buf_print(&fake->heard, "%zu", body.n);
    else
        oribi_buf_append(&fake->heard, body.p, body.n);
    oribi_buf_append(&fake->heard, last ? ". " : " ", last ? 2 : 1);
}

static void fake_destroy(struct fake_client *fake)
{
    struct oribi__upstream_request *call = fake->call;
    fake->call = NULL;
    if (call)
        oribi__upstream_destroy(call);
}

/* After an event: the client has gone in it, or its request is over, or it waits for its reader. */
static void after(struct fake_client *fake, char event, struct oribi_slice body, bool last)
{
    fake->events++;
    if (fake->request.feeds)
        (void)fake_floods(far_count - 1, FILLER_BYTES);
    if (fake->request.goes_in == event || (last && !fake->request.keeps)) {
        fake_destroy(fake);
        return;
    }
    if (!fake->request.streams || last)
        return;
    fake->untaken += (int64_t)body.n;
    if (fake->untaken > ORIBI__FRONTEND_HIGH_BYTES)
        oribi__upstream_block(fake->call);
}

static void fake_interim(struct oribi__upstream_request *call, const struct oribi_answer *answer)
{
    oribi_buf_print(&fake_of(call)->heard, "interim %d ", answer->status);
    after(fake_of(call), 'i', oribi_slice("", 0), false);
}

static void fake_begin_answer(struct oribi__upstream_request *call, struct oribi_answer *answer,
                              struct oribi_slice body, bool last)
{
    struct fake_client *fake = fake_of(call);
    oribi_buf_print(&fake->heard, "begin %d ", answer->status);
    note_body(fake, body, last);
    if (last && call->tail.len)
        oribi_buf_print(&fake->heard, "trailers %zu ", call->tail.len);
    after(fake, 'b', body, last);
}

static void fake_more(struct oribi__upstream_request *call, struct oribi_slice body, bool last)
{
    struct fake_client *fake = fake_of(call);
    oribi_buf_append(&fake->heard, "more ", 5);
    note_body(fake, body, last);
    if (last && call->tail.len)
        oribi_buf_print(&fake->heard, "trailers %zu ", call->tail.len);
    after(fake, 'm', body, last);
}

static void fake_fail(struct oribi__upstream_request *call, int status, const char *reason)
{
    struct fake_client *fake = fake_of(call);
    fake->reason = reason;
    oribi_buf_print(&fake->heard, call->begun ? "cut %d " : "fail %d ", status);
    fake_destroy(fake);
}

static int64_t fake_pending(const struct oribi__upstream_request *call)
{
    return fake_of(call)->untaken;
}

static void fake_waits(struct oribi__upstream_request *call, int change)
{
    oribi_buf_append(&fake_of(call)->heard, change > 0 ? "+ " : "- ", 2);
}

static void fake_tunnel(struct oribi__upstream_request *call, struct oribi_answer *answer, struct oribi_slice rest)
{
    struct fake_client *fake = fake_of(call);
    oribi_buf_append(&fake->heard, "tunnel ", 7);
    note_body(fake, rest, false);
    if (fake->request.goes_in != 't')
        oribi_os_close(oribi__channel_release(call->channel));
    fake_destroy(fake);
}

static const struct oribi__upstream_ops fake_ops = {.interim = fake_interim,
                                                    .begin = fake_begin_answer,
                                                    .more = fake_more,
                                                    .fail = fake_fail,
                                                    .pending = fake_pending,
                                                    .waits = fake_waits,
                                                    .tunnel = fake_tunnel};

static void fill_body(struct fake_client *fake)
{
    struct oribi__upstream_request *call = fake->call;
    const struct fake_request *request = &fake->request;
    if (request->body)
        oribi_buf_append(&fake->body, request->body, strlen(request->body));
    for (size_t i = 0; i < request->body_bytes; i++)
        oribi_buf_append(&fake->body, "b", 1);
    call->body_len = (int64_t)fake->body.len;
    if (!request->in_file) {
        call->body = oribi_slice(fake->body.p, fake->body.len);
        return;
    }
    fake->body_fd = memfd_create("body", MFD_CLOEXEC);
    fake_must(write(fake->body_fd, fake->body.p, fake->body.len) == (ssize_t)fake->body.len, "no body");
    call->body_fd = fake->body_fd;
}

static void fill_head(struct fake_client *fake)
{
    static struct oribi_head head;
    struct oribi__upstream_request *call = fake->call;
    const struct oribi__peer peer = {.fd = -1, .addr_len = 8, .port_len = 1, .addr = "10.0.0.1", .port = "1"};
    const char *method = fake->request.method ? fake->request.method : "GET";
    static char line[64 * 1024];
    struct oribi_parser parser = {0};
    int n = snprintf(line, sizeof(line), "%s /%d HTTP/1.1\r\nHost: a\r\n%s%s%.*s%s\r\n", method, fake_count - 1,
                     fake->request.upgrades ? "Connection: upgrade\r\nUpgrade: x\r\n" : "",
                     fake->request.head_bytes ? "f: " : "", (int)fake->request.head_bytes, filler(),
                     fake->request.head_bytes ? "\r\n" : "");
    memset(&head, 0, sizeof(head));
    fake_must(oribi_parser_head(&parser, &options.limits, line, (size_t)n, &head) == n, "no head");
    call->is_head = head.is_head;
    call->safe = oribi_canonical_is_safe(head.method);
    call->upgrades = head.upgrade;
    oribi__count_request(call, head.method, false);
    bool has_body = call->body_len > 0;
    fake_must(oribi__upstream_about(call, &peer, &head, 11, true) == 0 &&
                  oribi_canonical_head(&call->head, &head, has_body ? call->body_len : -1, fake->request.chunked) == 0,
              "no request");
    oribi_head_release(&head);
    if (!fake->request.chunked)
        return;
    if (call->body.n)
        call->chunk_len = (uint8_t)oribi_chunk_head(call->chunk, call->body.n);
    oribi_buf_print(&call->tail, "%s0\r\nx: y\r\n\r\n", call->body.n ? "\r\n" : "");
}

int fake_call(struct fake_request request)
{
    fake_must(fake_count < FAKE_CALLS_MAX, "too many calls");
    struct fake_client *fake = &fakes[fake_count++];
    *fake = (struct fake_client){.request = request, .body_fd = -1};
    fake->call = oribi__upstream_create(frontend, &fake_ops, fake);
    fake_must(fake->call != NULL, "no call");
    fill_body(fake);
    fill_head(fake);
    return fake_count - 1;
}

void fake_submits(int call)
{
    oribi__upstream_submit(fakes[call].call);
}

int fake_submit(struct fake_request request)
{
    int call = fake_call(request);
    fake_submits(call);
    return call;
}

struct oribi__upstream_request *fake_upstream(int call)
{
    return fakes[call].call;
}

struct oribi__upstream_request **fake_listed_at(void)
{
    return &frontend->listed_at;
}

const char *fake_heard(int call)
{
    struct oribi_buf *heard = &fakes[call].heard;
    oribi_buf_append(heard, "", 1);
    heard->len--;
    return heard->p;
}

const char *fake_reason(int call)
{
    return fakes[call].reason;
}

void fake_goes(int call)
{
    fake_destroy(&fakes[call]);
}

void fake_takes(int call, int64_t bytes)
{
    fakes[call].untaken -= bytes;
    if (fakes[call].call)
        oribi__upstream_taken(fakes[call].call);
}

int64_t fake_untaken(int call)
{
    return fakes[call].untaken;
}

uint32_t fake_events(int call)
{
    return fakes[call].events;
}

bool fake_is_blocked(int call)
{
    return fakes[call].call && fakes[call].call->blocked;
}

bool fake_is_queued(int call)
{
    return fakes[call].call && fakes[call].call->state == ORIBI__CALL_QUEUED;
}

bool fake_is_out(int call)
{
    return fakes[call].call && fakes[call].call->state == ORIBI__CALL_OUT;
}

void fake_sends_no_more(int call)
{
    struct oribi__upstream_request *upstream = fakes[call].call;
    upstream->finished = true;
    if (upstream->channel)
        oribi__channel_finish(upstream->channel);
}
