/* Each side of a channel is killed in front of each of its accesses to the shared memory and the socket, one after
 * another, in the middle of two calls, which are short, long, or have files in their answers: the other side sees the
 * end, has nothing but right bytes until then, knows whether the request was begun, and keeps no descriptor. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/worker/channel_ring.h"
#include "oribi/worker/inbox.h"

#include "tap.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int steps_left; /* of a victim; 0: nobody is one */

static void step(void)
{
    if (steps_left > 0 && --steps_left == 0)
        (void)kill(getpid(), SIGKILL);
}

static uint32_t load_word(const _Atomic uint32_t *word, memory_order order)
{
    step();
    return atomic_load_explicit(word, order);
}

static uint64_t load_long(const _Atomic uint64_t *word, memory_order order)
{
    step();
    return atomic_load_explicit(word, order);
}

static uint16_t load_place(const _Atomic uint16_t *word, memory_order order)
{
    step();
    return atomic_load_explicit(word, order);
}

static void store_word(_Atomic uint32_t *word, uint32_t value, memory_order order)
{
    step();
    atomic_store_explicit(word, value, order);
}

static void store_long(_Atomic uint64_t *word, uint64_t value, memory_order order)
{
    step();
    atomic_store_explicit(word, value, order);
}

static uint64_t exchange_long(_Atomic uint64_t *word, uint64_t value, memory_order order)
{
    step();
    return atomic_exchange_explicit(word, value, order);
}

/* Of the test itself, without a step. */
static int count_of(const _Atomic int *count)
{
    return atomic_load(count);
}

static void set_count(_Atomic int *count, int value)
{
    atomic_store(count, value);
}

static void set_place(_Atomic uint16_t *place, uint16_t value)
{
    atomic_store(place, value);
}

#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#define atomic_load_explicit(word, order)                                                                              \
    _Generic((word), _Atomic uint16_t *: load_place, const _Atomic uint16_t *: load_place,                             \
             _Atomic uint32_t *: load_word, const _Atomic uint32_t *: load_word, _Atomic uint64_t *: load_long,        \
             const _Atomic uint64_t *: load_long)(word, order)
#define atomic_store_explicit(word, value, order)                                                                      \
    _Generic((word), _Atomic uint32_t * : store_word, _Atomic uint64_t * : store_long)(word, value, order)
#define atomic_exchange_explicit                         exchange_long
#define oribi_os_send_vec(fd, vec, count)                (step(), oribi_os_send_vec(fd, vec, count))
#define oribi_os_read(fd, dst, n)                        (step(), oribi_os_read(fd, dst, n))
#define oribi_os_peek(fd, dst, n)                        (step(), oribi_os_peek(fd, dst, n))
#define oribi_os_peer_gone(fd)                           (step(), oribi_os_peer_gone(fd))
#define oribi_os_read_at_now(fd, dst, n, at)             (step(), oribi_os_read_at_now(fd, dst, n, at))
#define oribi_inbox_send(fd, vec, n, passed)             (step(), oribi_inbox_send(fd, vec, n, passed))
#define oribi_inbox_receive_cut(fd, dst, n, passed, cut) (step(), oribi_inbox_receive_cut(fd, dst, n, passed, cut))
#include "../../src/base/ring.c"
#include "../../src/worker/channel_ring.c"

enum { CALLS = 2, LONG_BYTES = 40 * 1000, STEPS_MAX = 2000, WAIT_MS = 20 * 1000, FDS_MAX = 256 };

/* Of calls: requests and answers by the ring; long ones; answers that are a head by the ring, and a file. */
enum kind { SHORT, LONG, FILES, KINDS };

static const char *const names[KINDS] = {"short calls", "long calls", "calls for files"};

struct seen {
    _Atomic int requests; /* that the worker has read to their ends */
    _Atomic int answers;  /* that it has sent to their ends */
};

static struct oribi_scoreboard board;
static _Atomic uint16_t *place; /* shared */
static struct seen *seen;
static struct oribi_channel_ring *front;
static struct oribi_channel_ring *back;
static uint32_t worker_woken[2];
static uint32_t frontend_woken;
static int fds[2];
static char text[2 * LONG_BYTES];

static int files[CALLS]; /* with the answers behind their heads, to be read alone */

static size_t length_of(int call, enum kind kind)
{
    return (kind == LONG ? LONG_BYTES : 100) + (size_t)call;
}

static size_t answer_length_of(int call, enum kind kind)
{
    return length_of(call, kind) + (kind == FILES ? LONG_BYTES : 0);
}

static char byte_of(int call, size_t i)
{
    return (char)('a' + (i + (size_t)call * 7) % 26);
}

/* Bytes that come, up to n of them. 0: the end. */
static ssize_t comes(struct oribi_channel_ring *ring, _Atomic uint32_t *word, int fd, char *dst, size_t n)
{
    for (;;) {
        ssize_t got = oribi_channel_ring_read(ring, dst, n, true);
        if (got != ORIBI_AGAIN)
            return got > 0 || got == ORIBI_CHANNEL_HAS_FILE ? got : 0;
        oribi_asleep_begin(word);
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        bool ended = !oribi_channel_ring_waits(ring) && poll(&poll_fd, 1, WAIT_MS) == 0;
        oribi_asleep_end(word);
        if (ended)
            return ORIBI_ETIMEOUT;
    }
}

static bool sends_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};
        if (sent < 0 && poll(&poll_fd, 1, WAIT_MS) == 1 && !(poll_fd.revents & (POLLHUP | POLLERR)))
            continue;
        if (sent <= 0)
            return false;
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

static void compose(char *dst, int call, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = byte_of(call, i);
}

static bool gives_file(int call, size_t at)
{
    return back->transport.give_file(&back->transport, files[call], (int64_t)at, LONG_BYTES);
}

/* Worker's side. Gives false where bytes are wrong. */
static bool works(enum kind kind)
{
    for (int call = 0; call < CALLS; call++) {
        size_t n = length_of(call, kind);
        for (size_t at = 0; at < n;) {
            ssize_t got = comes(back, &board.slots[0].asleep, fds[1], text + at, n - at);
            if (got <= 0)
                return got == 0;
            for (size_t i = at; i < at + (size_t)got; i++)
                if (text[i] != byte_of(call, i))
                    return false;
            at += (size_t)got;
        }
        set_count(&seen->requests, call + 1);
        for (size_t at = 0; at < n;) {
            struct iovec vec = {text + at, n - at};
            ssize_t sent = back->transport.send_vec(&back->transport, &vec, 1, false);
            struct pollfd poll_fd = {.fd = fds[1], .events = POLLOUT};
            if (sent == ORIBI_AGAIN && poll(&poll_fd, 1, WAIT_MS) == 1)
                continue;
            if (sent < 0)
                return true;
            at += (size_t)sent;
        }
        if (kind == FILES && !gives_file(call, n))
            return true;
        set_count(&seen->answers, call + 1);
    }
    return true;
}

/* The file that has come, as bytes of the answer. */
static ssize_t reads_file(char *dst, size_t n)
{
    ssize_t got = (size_t)front->file.length == n ? pread(front->file.fd, dst, n, front->file.offset) : -1;
    oribi_os_close(front->file.fd);
    front->file.fd = -1;
    return got;
}

/* Frontend's side. Gives how many answers are whole, -1: a byte is wrong, or nothing comes. */
static int asks(enum kind kind)
{
    for (int call = 0; call < CALLS; call++) {
        size_t n = length_of(call, kind);
        bool broken;
        compose(text, call, n);
        struct iovec vec = {text, n};
        if (oribi_channel_ring_request(front, &vec, 1, n, &broken))
            oribi_channel_ring_wake(front, &board, place, worker_woken);
        else if (!sends_all(fds[0], text, n))
            return call;
        n = answer_length_of(call, kind);
        memset(text, 0, n);
        for (size_t at = 0; at < n;) {
            ssize_t got = comes(front, &board.frontends[0].asleep, fds[0], text + at, n - at);
            if (got == ORIBI_CHANNEL_HAS_FILE)
                got = reads_file(text + at, n - at);
            if (got <= 0)
                return got == 0 ? call : -1;
            for (size_t i = at; i < at + (size_t)got; i++)
                if (text[i] != byte_of(call, i))
                    return -1;
            at += (size_t)got;
        }
        oribi_channel_ring_next_answer(front);
    }
    return CALLS;
}

static void begin(void)
{
    set_count(&seen->requests, 0);
    set_count(&seen->answers, 0);
    memset(worker_woken, 0, sizeof(worker_woken));
    frontend_woken = 0;
    set_place(place, 1);
    if (oribi_os_socket_pair(SOCK_STREAM, true, fds) < 0)
        exit(1);
    front = oribi_channel_ring_try_create(fds[0]);
    back = oribi_channel_ring_try_attach(oribi_os_dup(front->memory_fd), fds[1], &board.frontends[0].asleep,
                                         &frontend_woken);
    oribi_channel_ring_take_files(front, true);
}

static void end(void)
{
    oribi_channel_ring_destroy(front);
    oribi_channel_ring_destroy(back);
    oribi_os_close(fds[0]);
    oribi_os_close(fds[1]);
}

static int count_open(void)
{
    int count = 0;
    for (int fd = 0; fd < FDS_MAX; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* The victim: the worker, else the frontend. Gives true where it was killed. */
static bool run(bool worker_dies, enum kind kind, int steps, bool *right)
{
    int status;
    int open_before = count_open();
    begin();
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        oribi_os_close(fds[worker_dies ? 0 : 1]);
        steps_left = steps;
        _exit(worker_dies ? !works(kind) : asks(kind) != CALLS);
    }
    oribi_os_close(fds[worker_dies ? 1 : 0]);
    int answers = worker_dies ? asks(kind) : works(kind) ? 0 : -1;
    *right = waitpid(pid, &status, 0) == pid && answers >= 0;
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    *right = *right && (killed || status == 0);
    if (worker_dies) {
        bool unread = oribi_channel_ring_unread(front);
        *right = *right && answers >= count_of(&seen->answers); /* what it had sent has come */
        *right = *right && answers <= count_of(&seen->requests);
        *right = *right && !(unread && count_of(&seen->requests) > answers);
        *right = *right && (killed || answers == CALLS);
        *right = *right && oribi_channel_ring_take_back(front) == unread;
    } else {
        *right = *right && (killed || count_of(&seen->answers) == CALLS);
    }
    fds[worker_dies ? 1 : 0] = -1;
    end();
    *right = *right && count_open() == open_before;
    return killed;
}

static void kill_at_each_step(bool worker_dies, enum kind kind)
{
    int steps = 1;
    int wrong = 0;
    bool right;
    while (steps < STEPS_MAX && run(worker_dies, kind, steps, &right)) {
        wrong += !right;
        if (!right)
            diag("%s, %s, step %d", worker_dies ? "worker" : "frontend", names[kind], steps);
        steps++;
    }
    ok_named(wrong == 0 && right, "%s dies in %s", worker_dies ? "a worker" : "a frontend", names[kind]);
    ok_named(steps > 10 && steps < STEPS_MAX, "%d steps", steps);
}

static void make_files(void)
{
    for (int call = 0; call < CALLS; call++) {
        char path[] = "/tmp/oribi-deaths-XXXXXX";
        size_t n = answer_length_of(call, FILES);
        int both = mkstemp(path);
        compose(text, call, n);
        files[call] = open(path, O_RDONLY | O_CLOEXEC);
        ok(both >= 0 && files[call] >= 0 && write(both, text, n) == (ssize_t)n && unlink(path) == 0);
        close(both);
    }
}

int main(void)
{
    int64_t blocks = oribi_mem_blocks();
    (void)signal(SIGPIPE, SIG_IGN);
    ok_eq(oribi_scoreboard_create(&board, 1), 0);
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    place = &board.channels[1];
    make_files();
    for (int worker_dies = 0; worker_dies < 2; worker_dies++)
        for (enum kind kind = SHORT; kind < KINDS; kind++)
            kill_at_each_step(worker_dies, kind);
    oribi_scoreboard_destroy(&board);
    ok_eq(oribi_mem_blocks(), blocks);
    return done_testing();
}
