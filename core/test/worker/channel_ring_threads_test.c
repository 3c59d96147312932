/* Both ends of a channel in two threads that sleep: 100,000 calls (ORIBI_SOAK=1: ten million), with answers that are
 * lent where they lie, requests that go by the socket, and files. One mapping has both ends, so that ThreadSanitizer,
 * which tells memory by its address, sees each access of both. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include "channel_ends.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { CALLS = 100 * 1000, SOAK_CALLS = 10 * 1000 * 1000, FILE_BYTES = 20 * 1000 };

static uint32_t calls;
static int file_behind;

static void share_mapping(void)
{
    (void)munmap(back->memory, sizeof(*back->memory));
    back->memory = front->memory;
    back->way_in = &back->memory->requests;
    back->way_out = &back->memory->answers;
    oribi_ring_reader_init(&back->in, &back->way_in->ring);
    oribi_ring_writer_init(&back->out, &back->way_out->ring);
}

static void part_mapping(void)
{
    back->memory = mmap(NULL, sizeof(*back->memory), PROT_READ | PROT_WRITE, MAP_SHARED, back->memory_fd, 0);
    ok(back->memory != MAP_FAILED);
}

static void sleep_on(struct oribi_channel_ring *ring, _Atomic uint32_t *word, int fd)
{
    oribi_asleep_begin(word);
    if (!oribi_channel_ring_waits(ring)) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        (void)poll(&poll_fd, 1, 2000);
    }
    oribi_asleep_end(word);
}

static ssize_t read_file(struct oribi_channel_ring *ring, char *dst, size_t n)
{
    ssize_t got = (size_t)ring->file.length == n ? pread(ring->file.fd, dst, n, ring->file.offset) : -1;
    close(ring->file.fd);
    ring->file.fd = -1;
    return got;
}

static ssize_t read_some(struct oribi_channel_ring *ring, char *dst, size_t n)
{
    char *p = dst;
    ssize_t got =
        ring == front ? oribi_channel_ring_borrow(ring, &p, n, true) : oribi_channel_ring_read(ring, dst, n, true);
    if (got == ORIBI_CHANNEL_HAS_FILE)
        return read_file(ring, dst, n);
    if (!ring->lends)
        return got;
    if ((size_t)got <= n)
        memcpy(dst, p, (size_t)got);
    oribi_channel_ring_return(ring);
    return (size_t)got <= n ? got : -1;
}

static size_t read_all(struct oribi_channel_ring *ring, _Atomic uint32_t *word, int fd, char *dst, size_t n)
{
    size_t got = 0;
    while (got < n) {
        ssize_t now = read_some(ring, dst + got, n - got);
        if (now == ORIBI_AGAIN) {
            sleep_on(ring, word, fd);
            continue;
        }
        if (now <= 0)
            break;
        got += (size_t)now;
    }
    return got;
}

static size_t length_of(uint32_t call)
{
    return call % 1000 == 999 ? 40 * 1000 : 8 + call % 100;
}

static size_t length_behind(uint32_t call)
{
    return call % 1000 == 499 ? FILE_BYTES : 0;
}

static void *work(void *arg)
{
    static char bytes[64 * 1024];
    for (uint32_t i = 0; i < calls; i++) {
        size_t n = length_of(i);
        if (read_all(back, &board.slots[0].asleep, fds[1], bytes, n) != n)
            return arg;
        for (size_t at = 0; at < n;) {
            struct iovec vec = {bytes + at, n - at};
            ssize_t sent = back->transport.send_vec(&back->transport, &vec, 1, false);
            if (sent == ORIBI_AGAIN)
                sched_yield();
            else if (sent < 0)
                return arg;
            else
                at += (size_t)sent;
        }
        if (length_behind(i) && !back->transport.give_file(&back->transport, file_behind, 0, FILE_BYTES))
            return arg;
        if (i % 7 == 0)
            sched_yield();
    }
    return NULL;
}

static void test_calls_between_two_threads(void)
{
    static char bytes[64 * 1024];
    static char back_bytes[64 * 1024];
    static char of_file[FILE_BYTES];
    pthread_t thread;
    void *failed;
    uint32_t wrong = 0;
    calls = getenv("ORIBI_SOAK") ? SOAK_CALLS : CALLS;
    file_behind = a_file(FILE_BYTES);
    memset(of_file, 'f', sizeof(of_file));
    begin();
    int open_before = count_open();
    share_mapping();
    oribi_channel_ring_take_files(front, true);
    ok_eq(pthread_create(&thread, NULL, work, bytes), 0);
    for (uint32_t i = 0; i < calls && wrong == 0; i++) {
        size_t n = length_of(i);
        size_t behind = length_behind(i);
        bool broken;
        memset(bytes, (int)('a' + i % 26), n);
        memcpy(bytes, &i, sizeof(i));
        struct iovec vec = {bytes, n};
        if (oribi_channel_ring_request(front, &vec, 1, n, &broken))
            oribi_channel_ring_wake(front, &board, &place, worker_woken);
        else
            for (size_t at = 0; at < n;) {
                ssize_t sent = send(fds[0], bytes + at, n - at, MSG_DONTWAIT);
                if (sent > 0)
                    at += (size_t)sent;
                else
                    sched_yield();
            }
        wrong += read_all(front, &board.frontends[0].asleep, fds[0], back_bytes, n + behind) != n + behind ||
                 memcmp(bytes, back_bytes, n) != 0 || memcmp(of_file, back_bytes + n, behind) != 0;
        oribi_channel_ring_next_answer(front);
    }
    ok_eq(wrong, 0);
    if (wrong)
        shutdown(fds[0], SHUT_RDWR);
    ok_eq(pthread_join(thread, &failed), 0);
    ok(!failed);
    ok_eq(count_open(), open_before);
    part_mapping();
    end();
    close(file_behind);
}

int main(void)
{
    int64_t blocks = oribi_mem_blocks();
    test_calls_between_two_threads();
    ok_eq(oribi_mem_blocks(), blocks);
    return done_testing();
}
