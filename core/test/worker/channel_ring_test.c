/* Both ends of a channel with shared memory: what goes by the ring and what by the socket, wake-ups, ends, an end that
 * is taken over, files, bytes that are lent, nonsense. Two threads: channel_ring_threads_test.c. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os_process.h"

#include "channel_ends.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char text[512 * 1024];

static bool asks(const char *p, size_t n)
{
    bool broken;
    struct iovec vec = {(void *)p, n};
    bool fits = oribi_channel_ring_request(front, &vec, 1, n, &broken);
    ok(!broken);
    if (fits)
        oribi_channel_ring_wake(front, &board, &place, worker_woken);
    return fits;
}

static ssize_t answers(const char *p, size_t n)
{
    struct iovec vec = {(void *)p, n};
    return back->transport.send_vec(&back->transport, &vec, 1, false);
}

/* Bytes that come at this end, with the socket told. */
static const char *comes(struct oribi_channel_ring *ring)
{
    ssize_t n = oribi_channel_ring_read(ring, text, sizeof(text) - 1, true);
    text[n > 0 ? n : 0] = '\0';
    return n == 0 ? "(end)" : n == ORIBI_AGAIN ? "(nothing)" : n < 0 ? "(broken)" : text;
}

static int in_socket(int fd)
{
    char bytes[4096];
    ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
    return n < 0 ? 0 : (int)n;
}

static void test_short_messages_go_by_the_ring_alone(void)
{
    begin();
    for (int i = 0; i < 3; i++) {
        ok(asks("GET /", 5));
        ok(oribi_channel_ring_waits(back));
        is_str(comes(back), "GET /");
        ok(!oribi_channel_ring_waits(back));
        ok_eq(answers("200", 3), 3);
        ok_eq(answers(" OK", 3), 3);
        is_str(comes(front), "200");
        is_str(comes(front), " OK");
        is_str(comes(front), "(nothing)");
        oribi_channel_ring_next_answer(front);
        ok(in_socket(fds[0]) == 0 && in_socket(fds[1]) == 0);
    }
    end();
}

static void test_a_sleeper_is_woken_once(void)
{
    begin();
    oribi_asleep_begin(&board.slots[0].asleep);
    ok(asks("1", 1));
    ok_eq(in_socket(fds[1]), 1);
    is_str(comes(back), "1");
    ok(asks("2", 1));
    ok_eq(in_socket(fds[1]), 1); /* that one is on its way */
    is_str(comes(back), "2");
    oribi_asleep_end(&board.slots[0].asleep);
    ok(asks("3", 1));
    ok_eq(in_socket(fds[1]), 1); /* awake */
    is_str(comes(back), "3");
    oribi_asleep_begin(&board.slots[0].asleep);
    ok(asks("4", 1));
    ok_eq(in_socket(fds[1]), 2); /* another sleep */
    is_str(comes(back), "4");
    is_str(comes(back), "(nothing)"); /* takes the wake-ups */
    ok_eq(in_socket(fds[1]), 0);
    oribi_asleep_begin(&board.frontends[0].asleep);
    ok_eq(answers("x", 1), 1);
    ok_eq(answers("y", 1), 1);
    ok_eq(in_socket(fds[0]), 1);
    is_str(comes(front), "x");
    is_str(comes(front), "y");
    is_str(comes(front), "(nothing)");
    ok_eq(in_socket(fds[0]), 0);
    end();
}

/* The sleeper has another channel, of which it can hear. */
static void test_a_wakeup_that_did_not_leave_is_sent_by_another_channel(void)
{
    begin();
    oribi_asleep_begin(&board.slots[0].asleep);
    close(fds[1]);
    ok(asks("1", 1)); /* nobody hears */
    ok_eq(worker_woken[1], 0);
    ok_eq(atomic_load(&front->way_out->woken), 0);
    fds[1] = dup(0);
    end();
    begin();
    oribi_asleep_begin(&board.frontends[0].asleep);
    close(fds[0]);
    ok_eq(answers("1", 1), 1);
    ok_eq(frontend_woken, 0);
    fds[0] = dup(0);
    end();
}

static void test_nobody_is_woken_for_a_channel_on_its_way(void)
{
    begin();
    oribi_asleep_begin(&board.slots[0].asleep);
    atomic_store(&place, 0);
    ok(asks("1", 1));
    ok_eq(in_socket(fds[1]), 0);
    atomic_store(&place, 9); /* no worker of ours */
    ok(asks("2", 1));
    ok_eq(in_socket(fds[1]), 0);
    atomic_store(&place, 1 | ORIBI_CHANNEL_LENT);
    ok(asks("3", 1));
    ok_eq(in_socket(fds[1]), 1);
    end();
}

static void test_wakeups_do_not_fill_the_socket(void)
{
    begin();
    for (int i = 0; i < 5000; i++) {
        oribi_asleep_begin(&board.slots[0].asleep);
        bool broken;
        struct iovec vec = {"a", 1};
        if (!oribi_channel_ring_request(front, &vec, 1, 1, &broken))
            break;
        oribi_channel_ring_wake(front, &board, &place, worker_woken);
        (void)comes(back);
    }
    is_str(text, "a");
    ok(in_socket(fds[1]) < 64);
    end();
}

static void test_a_long_request_goes_by_the_socket(void)
{
    begin();
    static char body[ORIBI_RING_RECORD_MAX + 1];
    memset(body, 'b', sizeof(body));
    oribi_asleep_begin(&board.slots[0].asleep);
    ok(asks("1", 1)); /* with a wake-up, which is no byte of what follows */
    is_str(comes(back), "1");
    ok(asks(body, ORIBI_RING_RECORD_MAX));
    ok_eq(strlen(comes(back)), ORIBI_RING_RECORD_MAX);
    ok(!asks(body, sizeof(body)));
    ok(oribi_channel_ring_waits(back)); /* it is to look there */
    ok_eq(send(fds[0], body, 100, 0), 100);
    ok_eq(strlen(comes(back)), 100);
    is_str(comes(back), "(nothing)");
    ok_eq(send(fds[0], body, sizeof(body) - 100, 0), sizeof(body) - 100);
    size_t n = 0;
    do
        n += strlen(comes(back));
    while (n < sizeof(body) - 100 && text[0] == 'b');
    ok_eq(n, sizeof(body) - 100);
    ok(asks("next", 4));
    is_str(comes(back), "next");
    end();
}

static void test_a_long_answer_goes_by_the_socket_to_its_end(void)
{
    begin();
    static char body[ORIBI_RING_BYTES];
    memset(body, 'b', sizeof(body));
    oribi_asleep_begin(&board.frontends[0].asleep);
    ok_eq(answers("head", 4), 4);
    ok_eq(answers(body, sizeof(body)), sizeof(body));
    ok_eq(answers("tail", 4), 4);
    is_str(comes(front), "head");
    size_t n = 0;
    while (n < sizeof(body) + 4 && text[0] != '(')
        n += strlen(comes(front));
    ok_eq(n, sizeof(body) + 4);
    ok(memcmp(text + strlen(text) - 4, "tail", 4) == 0);
    is_str(comes(front), "(nothing)");
    oribi_channel_ring_next_answer(front);
    ok(asks("another", 7));
    is_str(comes(back), "another");
    ok_eq(answers("short", 5), 5);
    ok_eq(in_socket(fds[0]), 0);
    is_str(comes(front), "short");
    end();
}

static void test_files_go_by_the_ring_while_they_are_short(void)
{
    begin();
    static char body[20000];
    char name[] = "/tmp/oribi-ring-XXXXXX";
    int file = mkstemp(name);
    ok(file >= 0 && unlink(name) == 0);
    memset(body, 'f', sizeof(body));
    ok_eq(write(file, body, sizeof(body)), sizeof(body));
    int64_t offset = 10;
    ok_eq(back->transport.send_file(&back->transport, file, &offset, 100), 100);
    ok_eq(offset, 110);
    ok_eq(in_socket(fds[0]), 0);
    ok_eq(strlen(comes(front)), 100);
    ok_eq(back->transport.send_file(&back->transport, file, &offset, sizeof(body) - 110), sizeof(body) - 110);
    ok(in_socket(fds[0]) > 0);
    size_t n = 0;
    while (n < sizeof(body) - 110 && text[0] == 'f')
        n += strlen(comes(front));
    ok_eq(n, sizeof(body) - 110);
    offset = sizeof(body);
    oribi_channel_ring_next_answer(front);
    ok(asks("x", 1));
    is_str(comes(back), "x");
    ok_eq(back->transport.send_file(&back->transport, file, &offset, 1), 0); /* shorter than it was */
    close(file);
    end();
}

static bool gives(int fd, int64_t offset, int64_t n)
{
    return back->transport.give_file(&back->transport, fd, offset, n);
}

static void test_a_file_is_handed_over(void)
{
    int file = a_file(100 * 1000);
    struct stat before;
    struct stat after;
    begin();
    oribi_channel_ring_take_files(front, true);
    for (int i = 0; i < 3; i++) {
        oribi_asleep_begin(&board.frontends[0].asleep);
        ok(asks("GET", 3));
        is_str(comes(back), "GET");
        ok_eq(answers("head", 4), 4);
        ok(gives(file, 10, 99 * 1000));
        is_str(comes(front), "head");
        ok(oribi_channel_ring_file_waits(front));
        ok_eq(oribi_channel_ring_read(front, text, sizeof(text), i > 0), ORIBI_CHANNEL_HAS_FILE);
        ok(!oribi_channel_ring_file_waits(front));
        ok(front->file.offset == 10 && front->file.length == 99 * 1000);
        ok(fcntl(front->file.fd, F_GETFD) & FD_CLOEXEC);
        ok(fstat(file, &before) == 0 && fstat(front->file.fd, &after) == 0 && before.st_ino == after.st_ino);
        is_str(comes(front), "(nothing)");
        ok_eq(in_socket(fds[0]), 0);
        oribi_channel_ring_next_answer(front);
    }
    end(); /* closes what nobody has taken */
    close(file);
}

/* Wake-ups stand before and behind the note. */
static void test_a_file_and_many_wakeups(void)
{
    int file = a_file(20 * 1000);
    begin();
    oribi_channel_ring_take_files(front, true);
    for (int i = 0; i < 100; i++) {
        oribi_asleep_begin(&board.frontends[0].asleep);
        ok_eq(answers("x", 1), 1);
    }
    oribi_asleep_begin(&board.frontends[0].asleep);
    ok(gives(file, 0, 20 * 1000));
    ok_eq(in_socket(fds[0]), 100 + 16); /* and one behind the descriptor */
    for (int i = 0; i < 100; i++)
        is_str(comes(front), "x");
    ok_eq(oribi_channel_ring_read(front, text, sizeof(text), true), ORIBI_CHANNEL_HAS_FILE);
    is_str(comes(front), "(nothing)");
    ok_eq(in_socket(fds[0]), 0);
    end();
    close(file);
}

/* The loop may tell of the note before its record is there. */
static void test_a_note_before_its_record(void)
{
    int file = a_file(20 * 1000);
    begin();
    oribi_channel_ring_take_files(front, true);
    uint64_t before = atomic_load(&front->way_in->ring.written);
    ok(gives(file, 0, 20 * 1000));
    uint64_t after = atomic_exchange(&front->way_in->ring.written, before);
    is_str(comes(front), "(nothing)");
    is_str(comes(front), "(nothing)");
    atomic_store(&front->way_in->ring.written, after);
    ok_eq(oribi_channel_ring_read(front, text, sizeof(text), false), ORIBI_CHANNEL_HAS_FILE);
    end();
    begin();
    oribi_channel_ring_take_files(front, true);
    before = atomic_load(&front->way_in->ring.written);
    ok(gives(file, 0, 20 * 1000));
    atomic_store(&front->way_in->ring.written, before); /* its worker has died between both */
    close(fds[1]);
    is_str(comes(front), "(broken)");
    fds[1] = dup(0);
    end();
    close(file);
}

static void test_files_that_are_not_handed_over(void)
{
    int file = a_file(20 * 1000);
    int pipe_fds[2];
    begin();
    ok(!gives(file, 0, 20 * 1000)); /* the frontend has not said that it takes them */
    oribi_channel_ring_take_files(front, true);
    ok(!gives(file, 0, 16 * 1024));         /* short */
    ok(!gives(file, 20 * 1000, 17 * 1024)); /* behind its end */
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    int both = open(path, O_RDWR | O_CLOEXEC);
    ok(both >= 0 && !gives(both, 0, 20 * 1000));
    close(both);
    ok(pipe(pipe_fds) == 0 && !gives(pipe_fds[0], 0, 20 * 1000));
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    ok_eq(in_socket(fds[0]), 0);
    oribi_channel_ring_take_files(front, false);
    ok(!gives(file, 0, 20 * 1000));
    oribi_channel_ring_take_files(front, true);
    oribi_channel_ring_close(front);
    ok(!gives(file, 0, 20 * 1000));
    end();
    close(file);
}

struct note_of_anybody {
    char mark[8];
    int64_t offset;
};

/* A worker may send other bytes and descriptors in the place of a note, and a record of any length. */
static ssize_t hears(const void *bytes, size_t n, int fd, size_t fd_count, uint64_t length)
{
    char control[CMSG_SPACE(3 * sizeof(int))] __attribute__((aligned(8))) = {0};
    int passed[3] = {fd, fd, fd};
    struct iovec vec = {(void *)(uintptr_t)bytes, n};
    struct msghdr message = {.msg_iov = &vec, .msg_iovlen = 1};
    struct oribi_ring_record record = {.kind = ORIBI_CHANNEL_FILE, .length = length};
    begin();
    oribi_channel_ring_take_files(front, true);
    if (fd_count > 0) {
        message.msg_control = control;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(head), passed, fd_count * sizeof(int));
    }
    if (n > 0)
        ok_eq(sendmsg(fds[1], &message, 0), n);
    ok(oribi_ring_write_head(&back->out, &record));
    ssize_t got = oribi_channel_ring_read(front, text, sizeof(text), true);
    end();
    return got;
}

static void test_notes_of_a_hostile_worker(void)
{
    int file = a_file(20 * 1000);
    int open_before = count_open();
    struct note_of_anybody good = {{1}, 5};
    struct note_of_anybody negative = {{1}, -1};
    struct note_of_anybody far = {{1}, INT64_MAX - 5};
    struct note_of_anybody other = {{2}, 5};
    ok_eq(hears(&good, sizeof(good), file, 1, 100), ORIBI_CHANNEL_HAS_FILE);
    ok_eq(hears(&far, sizeof(far), file, 1, 5), ORIBI_CHANNEL_HAS_FILE); /* its bytes are missing: for who reads it */
    ok_eq(hears(&good, sizeof(good), file, 0, 100), ORIBI_EBAD);
    ok_eq(hears(&good, sizeof(good), file, 3, 100), ORIBI_EBAD); /* more than one is cut by the kernel */
    ok_eq(hears(&good, 7, file, 1, 100), ORIBI_EBAD);
    ok_eq(hears(&good, 0, file, 0, 100), ORIBI_EBAD);
    ok_eq(hears(&negative, sizeof(negative), file, 1, 100), ORIBI_EBAD);
    ok_eq(hears(&far, sizeof(far), file, 1, 6), ORIBI_EBAD);
    ok_eq(hears(&other, sizeof(other), file, 1, 100), ORIBI_EBAD);
    ok_eq(hears(&good, sizeof(good), file, 1, 0), ORIBI_EBAD);
    ok_eq(hears(&good, sizeof(good), file, 1, UINT64_MAX), ORIBI_EBAD);
    ok_eq(count_open(), open_before);
    struct oribi_ring_record record = {.kind = ORIBI_CHANNEL_FILE, .length = 5};
    begin();
    ok(oribi_ring_write_head(&back->out, &record)); /* to a frontend that takes none, */
    is_str(comes(front), "(broken)");
    ok(oribi_ring_write_head(&front->out, &record)); /* and to a worker */
    is_str(comes(back), "(broken)");
    end();
    close(file);
}

static void test_what_was_written_before_the_end_is_read(void)
{
    begin();
    ok_eq(answers("last", 4), 4);
    close(fds[1]);
    is_str(comes(front), "last");
    is_str(comes(front), "(end)");
    fds[1] = dup(0);
    end();
    begin();
    oribi_asleep_begin(&board.slots[0].asleep);
    ok(asks("1", 1)); /* leaves a wake-up that is never read */
    ok(asks("2", 1));
    close(fds[0]);
    is_str(comes(back), "1");
    is_str(comes(back), "2");
    is_str(comes(back), "(end)");
    fds[0] = dup(0);
    end();
}

static void test_a_worker_that_leaves_the_ring_leaves_no_wakeups(void)
{
    begin();
    oribi_asleep_begin(&board.slots[0].asleep);
    oribi_asleep_begin(&board.frontends[0].asleep);
    ok(asks("upgrade", 7));
    is_str(comes(back), "upgrade");
    ok_eq(answers("101 ", 4), 4);
    oribi_channel_ring_leave(back);
    ok_eq(in_socket(fds[1]), 0);
    char zero[3] = {0, 0, 'z'};
    ok_eq(send(fds[1], zero, 3, 0), 3);
    is_str(comes(front), "101 ");
    ok_eq(oribi_channel_ring_read(front, text, sizeof(text), true), 3);
    ok(memcmp(text, zero, 3) == 0);
    ok(oribi_channel_ring_left(front));
    ok_eq(send(fds[0], zero, 3, 0), 3);
    ok_eq(oribi_channel_ring_read(back, text, sizeof(text), true), 3);
    ok_eq(answers("by the socket", 13), 13);
    is_str(comes(front), "by the socket");
    oribi_channel_ring_leave(back); /* again: nothing */
    end();
}

static void test_bytes_of_who_knows_no_rings_are_taken(void)
{
    begin();
    oribi_asleep_begin(&board.frontends[0].asleep);
    ok_eq(answers("a", 1), 1);
    is_str(comes(front), "a");
    ok_eq(send(fds[1], "HTTP/1.1 503", 12, 0), 12);
    is_str(comes(front), "HTTP/1.1 503");
    end();
}

static void test_a_closed_end_is_told(void)
{
    begin();
    oribi_channel_ring_close(front);
    ok_eq(answers("x", 1), ORIBI_ECLOSED);
    end();
}

static void test_what_the_worker_has_not_read(void)
{
    begin();
    ok(!oribi_channel_ring_unread(front));
    ok(asks("POST", 4));
    ok(oribi_channel_ring_unread(front));
    char byte;
    ok_eq(oribi_channel_ring_read(back, &byte, 1, true), 1);
    ok(!oribi_channel_ring_unread(front));
    is_str(comes(back), "OST");
    ok(asks("POST", 4));
    ok(oribi_channel_ring_unread(front));
    end();
}

static void test_an_end_is_taken_over(void)
{
    begin();
    oribi_asleep_begin(&board.slots[0].asleep);
    ok(asks("first", 5));
    char half[2];
    ok_eq(oribi_channel_ring_read(back, half, 2, true), 2);
    int memory_fd = dup(back->memory_fd);
    oribi_channel_ring_destroy(back);
    back = oribi_channel_ring_try_attach(memory_fd, fds[1], &board.frontends[0].asleep, &frontend_woken);
    ok(back && oribi_channel_ring_waits(back));
    is_str(comes(back), "rst");
    is_str(comes(back), "(nothing)");
    ok_eq(in_socket(fds[1]), 0);
    ok_eq(answers("ok", 2), 2);
    is_str(comes(front), "ok");
    end();
}

static void test_other_memory_is_refused(void)
{
    int fd;
    ok_eq(oribi_process_shared_memory(sizeof(struct oribi_channel_memory), &fd), 0);
    ok(!oribi_channel_ring_try_attach(fd, 0, NULL, NULL)); /* could be cut off */
    ok(fcntl(fd, F_GETFD) < 0);
    ok_eq(oribi_process_sealed_memory(4096, &fd), 0);
    ok(!oribi_channel_ring_try_attach(fd, 0, NULL, NULL));
    ok_eq(oribi_process_sealed_memory(sizeof(struct oribi_channel_memory), &fd), 0);
    ok(ftruncate(fd, 0) < 0);
    close(fd);
}

static void test_nonsense_ends_the_channel(void)
{
    struct oribi_ring_record record = {.kind = ORIBI_CHANNEL_SOCKET, .mark = 1000 * 1000, .length = 5};
    begin();
    ok(oribi_ring_write_head(&front->out, &record)); /* wake-ups that never came */
    is_str(comes(back), "(broken)");
    end();
    begin();
    record = (struct oribi_ring_record){.kind = 77, .length = 5};
    ok(oribi_ring_write_head(&front->out, &record));
    is_str(comes(back), "(broken)");
    end();
    begin();
    atomic_store(&front->way_out->ring.written, 3);
    is_str(comes(back), "(broken)");
    end();
    begin();
    atomic_store(&front->way_out->woken, 5); /* that were not sent */
    is_str(comes(back), "(nothing)");
    atomic_store(&front->way_out->woken, UINT32_MAX);
    is_str(comes(back), "(nothing)");
    end();
    begin();
    char zero = 0;
    ok_eq(send(fds[0], &zero, 1, 0), 1); /* a wake-up that was not counted, which would hide the end behind it */
    is_str(comes(back), "(broken)");
    ok_eq(send(fds[1], &zero, 1, 0), 1);
    is_str(comes(front), "(broken)");
    end();
    begin();
    unsigned seed = 1;
    for (int i = 0; i < 20000; i++) { /* a hand that writes anywhere while the other end reads */
        uint32_t *words = (uint32_t *)(void *)front->memory;
        seed = seed * 1103515245u + 12345u;
        words[(seed >> 8) % 64] = seed;
        seed = seed * 1103515245u + 12345u;
        words[(seed >> 8) % (sizeof(*front->memory) / 4)] = seed;
        bool broken;
        struct iovec vec = {"abc", 3};
        if (oribi_channel_ring_request(front, &vec, 1, 3, &broken))
            oribi_channel_ring_wake(front, &board, &place, worker_woken);
        (void)oribi_channel_ring_read(back, text, sizeof(text), true);
        (void)answers("def", 3);
        (void)oribi_channel_ring_read(front, text, sizeof(text), true);
    }
    ok_named(true, "no access beyond the memory");
    end();
}

/* --- bytes that are lent --- */

static void test_the_memory_of_lent_bytes_goes_with_their_return(void)
{
    static char body[40 * 1000];
    char *p = text;
    begin();
    memset(body, 'b', sizeof(body));
    ok_eq(answers(body, sizeof(body)), sizeof(body));
    ok_eq(oribi_channel_ring_borrow(front, &p, sizeof(text), true), sizeof(body));
    ok(front->lends && p != text);
    oribi_channel_ring_close(front);
    oribi_channel_ring_destroy(front);
    ok(memcmp(p, body, sizeof(body)) == 0);
    oribi_channel_ring_return(front);
    front = NULL;
    ok_eq(answers("x", 1), ORIBI_ECLOSED);
    end();
    begin();
    p = text;
    ok_eq(answers("short", 5), 5);
    ok_eq(oribi_channel_ring_borrow(front, &p, sizeof(text), true), 5);
    ok(!front->lends && p == text);
    end();
}

static void test_a_file_that_the_system_does_not_let_in(void)
{
    int file = a_file(20 * 1000);
    struct rlimit limit;
    begin();
    oribi_channel_ring_take_files(front, true);
    ok(gives(file, 0, 20 * 1000));
    int free_fd = dup(file);
    ok(free_fd >= 0 && close(free_fd) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const struct rlimit low = {.rlim_cur = (rlim_t)free_fd, .rlim_max = limit.rlim_max};
    ok_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    ok_eq(oribi_channel_ring_read(front, text, sizeof(text), true), ORIBI_CHANNEL_LOST_FILE);
    ok_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ok_eq(front->file.fd, -1);
    end();
    close(file);
}

int main(void)
{
    int64_t blocks = oribi_mem_blocks();
    test_other_memory_is_refused();
    test_short_messages_go_by_the_ring_alone();
    test_a_sleeper_is_woken_once();
    test_a_wakeup_that_did_not_leave_is_sent_by_another_channel();
    test_nobody_is_woken_for_a_channel_on_its_way();
    test_wakeups_do_not_fill_the_socket();
    test_a_long_request_goes_by_the_socket();
    test_a_long_answer_goes_by_the_socket_to_its_end();
    test_files_go_by_the_ring_while_they_are_short();
    test_a_file_is_handed_over();
    test_a_file_and_many_wakeups();
    test_a_note_before_its_record();
    test_files_that_are_not_handed_over();
    test_notes_of_a_hostile_worker();
    test_what_was_written_before_the_end_is_read();
    test_a_worker_that_leaves_the_ring_leaves_no_wakeups();
    test_bytes_of_who_knows_no_rings_are_taken();
    test_a_closed_end_is_told();
    test_what_the_worker_has_not_read();
    test_an_end_is_taken_over();
    test_nonsense_ends_the_channel();
    test_the_memory_of_lent_bytes_goes_with_their_return();
    test_a_file_that_the_system_does_not_let_in();
    ok_eq(oribi_mem_blocks(), blocks);
    return done_testing();
}
