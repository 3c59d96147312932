/* A sibling's message in the hand-off queue, taken by a worker with a C application, or refused by a supervisor that
 * has no workers any more. First byte: flags; second byte: length of the file that is the second descriptor; the rest
 * is the message, or its head and the bytes in that file.
 *
 * Holds for every input: a message is taken whole or dropped with its descriptors; what comes back to the client are
 * answers; when the client has gone, nothing is left of the connection; what we give ourselves arrives as it was. */
#include "worker/placement/handoff.c"

#include "ours.h"

#include "worker/worker_private.h"
#include "oribi/worker/req.h"

#include <sys/un.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    FDS = 3,       /* so many descriptors */
    HEAD_FITS = 4, /* version, lengths and the index of the listener are put right */
    NO_FILE = 8,   /* the second descriptor is a socket */
    REFUSED = 16,  /* no worker takes it */
    HALF_CLOSE = 32,
    IN_FILE = 64, /* with HEAD_FITS: the bytes are in the file */
};
enum { BYTES_MAX = 20000 };

static struct oribi_handoff queue;
static struct oribi_worker *worker;
static struct oribi_options options;
static struct oribi_listeners listeners = {.items = {{.host = "localhost", .port = "80", .text = "tcp://localhost:80"}},
                                           .count = 1};

static void start(void)
{
    static struct oribi_scoreboard board;
    struct sockaddr_un anywhere = {.sun_family = AF_UNIX};
    struct oribi_worker_setup setup = {
        .options = &options, .life_fd = -1, .handoff = &queue, .board = &board, .listeners = &listeners};
    oribi_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), ORIBI_LOG_ERROR);
    oribi_options_init(&options);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    /* unix(7): autobind */
    expect(bind(fd, (struct sockaddr *)&anywhere, sizeof(sa_family_t)) == 0 && listen(fd, 1) == 0);
    listeners.items[0].fd = fd;
    expect(oribi_scoreboard_create(&board, 1) == 0 && oribi_handoff_create(&queue) == 0);
    setup.slot = board.slots;
    expect(oribi_worker_create(&setup, &worker) == 0);
}

static void answer(struct oribi_req *req)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%zu bytes from %.*s\n", (size_t)req->body_len, (int)req->remote_addr.n,
                     req->remote_addr.p);
    struct iovec body = {text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1};
    expect(req->body_len >= 0 && (req->body_fd >= 0 || req->body.n == (size_t)req->body_len));
    (void)oribi_reply(req, 200, NULL, 0, &body, 1);
}

/* Turns until nothing happens any more. */
static void settle(int client, bool *answered)
{
    char text[4096];
    for (int quiet = 0; quiet < 3; quiet++) {
        struct oribi_req *req;
        ssize_t n;
        while ((req = oribi_worker_take(worker)) != NULL) {
            answer(req);
            quiet = 0;
        }
        while (client >= 0 && (n = recv(client, text, sizeof(text), MSG_DONTWAIT)) > 0) {
            expect(*answered || (n > 12 && memcmp(text, "HTTP/1.1 ", 9) == 0));
            *answered = true;
            quiet = 0;
        }
    }
}

/* The given bytes as a message, with a head that is put right if asked for. */
static size_t compose(const uint8_t *data, size_t size, char *message, int file_fd)
{
    struct message_head head;
    size_t n = size - 2;
    memcpy(message, data + 2, n);
    if (!(data[0] & HEAD_FITS) || n < sizeof(head))
        return n;
    memcpy(&head, message, sizeof(head));
    head.version = VERSION;
    head.bytes = (uint32_t)(n - sizeof(head));
    head.body_len = (data[0] & FDS) == 2 ? data[1] : -1;
    head.addr_len %= sizeof(head.addr) + 1;
    head.port_len %= sizeof(head.port) + 1;
    head.has_file = (data[0] & IN_FILE) != 0;
    if (head.has_file) {
        head.has_ring = 0;
        head.body_len = -1;
        expect(pwrite(file_fd, message + sizeof(head), head.bytes, 0) == (ssize_t)head.bytes);
        n = sizeof(head);
    }
    memcpy(message, &head, sizeof(head));
    return n;
}

static void pass(const uint8_t *data, size_t size)
{
    static char message[BYTES_MAX];
    int before = lowest_free_fd();
    int pair[2];
    int file_fd = -1;
    bool answered = false;
    expect(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
    expect(oribi_os_temp_file(&file_fd) == 0 && ftruncate(file_fd, data[1]) == 0);
    const int fds[] = {pair[1], data[0] & NO_FILE ? pair[0] : file_fd, file_fd};
    expect(send_raw(queue.give_fd, message, compose(data, size, message, file_fd), fds, data[0] & FDS));
    close(pair[1]);
    close(file_fd);
    if (data[0] & REFUSED)
        expect(oribi_handoff_refuse(&queue) <= 1);
    settle(pair[0], &answered);
    if (data[0] & HALF_CLOSE)
        (void)shutdown(pair[0], SHUT_WR); /* the other end may be closed */
    settle(pair[0], &answered);
    close(pair[0]);
    settle(-1, &answered);
    /* A message that names a socket of its own as body holds both ends of it: its client never leaves. */
    struct oribi_conn *c;
    while ((c = worker->reactor.conns) != NULL && data[0] & NO_FILE)
        oribi_conn_leave(&worker->reactor, c);
    settle(-1, &answered);
    expect(worker->reactor.conn_count == 0 && worker->reactor.queue_len == 0);
    expect(lowest_free_fd() == before);
}

static void round_trip(const uint8_t *data, size_t size)
{
    static char room[MESSAGE_CAP];
    struct oribi_handoff_item sent = {.fd = STDIN_FILENO, .body_fd = -1};
    struct oribi_handoff_item got;
    struct bytes in = {data, size};
    struct bytes fields = next_bytes(&in, sizeof(sent.addr));
    memcpy(sent.addr, fields.p, fields.n);
    sent.addr_len = next_byte(&in) % (sizeof(sent.addr) + 1);
    sent.request_count = next_byte(&in) * 65537u;
    sent.listener_hash = next_byte(&in) * 16777259u;
    sent.complete_us = (int64_t)next_byte(&in) << 40;
    struct iovec vec = {(void *)(uintptr_t)in.p, in.n};
    bool in_file = in.n > 0 && data[0] & IN_FILE;
    expect((in_file ? oribi_handoff_give_long : oribi_handoff_give)(&queue, &sent, &vec, 1) == 0);
    expect(oribi_handoff_take(&queue, room, sizeof(room), &got) == 0);
    close(got.fd);
    expect(got.body_fd < 0 && got.bytes.n == in.n && memcmp(got.bytes.p, in.p, in.n) == 0);
    expect(got.addr_len == sent.addr_len && memcmp(got.addr, sent.addr, sizeof(got.addr)) == 0);
    expect(got.request_count == sent.request_count && got.listener_hash == sent.listener_hash &&
           got.complete_us == sent.complete_us);
    expect((got.long_bytes != NULL) == in_file);
    oribi_mem_free(got.long_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!worker)
        start();
    if (size < 2 || size > BYTES_MAX)
        return 0;
    round_trip(data, size);
    pass(data, size);
    return 0;
}
