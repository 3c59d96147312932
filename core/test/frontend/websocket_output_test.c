/* Messages that wait for a WebSocket's client: references, the vectors of a sending, and how many bytes wait, at every
 * cut and without memory. */
#include "failing.h"

#include "frontend/websocket_output.c"

#include "tap.h"

enum { MESSAGES = 40, TEXT_CAP = 64 * 1024 };

static struct oribi__frontend frontend; /* has nothing: the socket has its work */
static struct oribi__websocket socket_;
static struct oribi__websocket_work work;
static struct oribi__message *messages[MESSAGES];
static char wanted[TEXT_CAP];
static size_t wanted_len;

static void want(const char *p, size_t n)
{
    memcpy(wanted + wanted_len, p, n);
    wanted_len += n;
}

/* Message i has i * i bytes, so that heads of two and of four bytes occur; each third one is binary. */
static void begin(void)
{
    static char data[MESSAGES * MESSAGES];
    memset(data, 'd', sizeof(data));
    work = (struct oribi__websocket_work){0};
    socket_.frontend = &frontend;
    socket_.work = &work;
    wanted_len = 0;
    for (size_t i = 0; i < MESSAGES; i++)
        messages[i] = oribi__message_create(ORIBI_SLICE("note"), oribi_slice(data, i * i), i % 3 == 0);
}

static void end(void)
{
    oribi__websocket_forget_waits(&socket_);
    oribi_buf_deinit(&work.out);
    ok(work.waits == NULL);
    ok_eq(work.wait_bytes + work.wait_sent + work.own_bytes + work.owed_bytes, 0);
    for (size_t i = 0; i < MESSAGES; i++) {
        ok_eq(messages[i]->references, 1);
        oribi__message_release(messages[i]);
    }
}

/* The message waits, and its frame is wanted. */
static void wait_for(size_t i)
{
    char head[ORIBI_WEBSOCKET_HEAD_CAP];
    struct oribi_slice data = oribi__message_data(messages[i]);
    size_t n = oribi_websocket_write_head(head, i % 3 == 0 ? ORIBI_WEBSOCKET_BINARY : ORIBI_WEBSOCKET_TEXT, true,
                                          data.n, NULL);
    want(head, n);
    want(data.p, data.n);
    ok_eq(oribi__websocket_wait(&socket_, messages[i]), 0);
}

static size_t gather(size_t done, char *out)
{
    struct iovec vec[ORIBI__WEBSOCKET_VECS];
    char heads[ORIBI__WEBSOCKET_HEADS][ORIBI_WEBSOCKET_HEAD_CAP];
    work.out_at = done;
    size_t count = oribi__websocket_gather(&socket_, vec, heads);
    size_t n = 0;
    ok(count <= ORIBI__WEBSOCKET_VECS);
    for (size_t i = 0; i < count; i++) {
        ok(vec[i].iov_len > 0);
        memcpy(out + n, vec[i].iov_base, vec[i].iov_len);
        n += vec[i].iov_len;
    }
    return n;
}

/* The client takes `step` bytes at a time: what it gets is what is wanted, and what waits is the rest. */
static void takes_all_by(size_t step)
{
    static char got[TEXT_CAP];
    size_t at = 0;
    bool same = true;
    while (work.wait_count) {
        same &= oribi__websocket_waiting(&socket_) == wanted_len - at;
        size_t n = gather(0, got);
        if (n > step)
            n = step;
        same &= n > 0 && memcmp(got, wanted + at, n) == 0;
        at += n;
        oribi__websocket_taken(&socket_, n);
    }
    ok_named(same && at == wanted_len, "by %zu", step);
    ok_eq(oribi__websocket_waiting(&socket_), 0);
    ok(work.waits == NULL);
}

static void test_every_cut(void)
{
    for (size_t step = 1; step <= 700; step += step < 70 ? 1 : 63) {
        begin();
        for (size_t i = 0; i < 9; i++)
            wait_for(i * 2 % 17);
        takes_all_by(step);
        end();
    }
}

static void test_many_messages_are_gathered_in_parts(void)
{
    begin();
    for (size_t i = 0; i < MESSAGES; i++)
        wait_for(i);
    ok_eq(messages[7]->references, 2);
    takes_all_by(TEXT_CAP);
    ok_eq(messages[7]->references, 1);
    end();
}

/* Bytes in `out` are before all that waits. */
static void test_bytes_before_messages(void)
{
    static char got[TEXT_CAP];
    begin();
    ok_eq(oribi_buf_try_append(&work.out, "before", 6), 0);
    want("before", 6);
    wait_for(3);
    ok_eq(oribi__websocket_waiting(&socket_), wanted_len);
    for (size_t done = 0; done <= 6; done++) {
        ok_eq(gather(done, got), wanted_len - done);
        ok(memcmp(got, wanted + done, wanted_len - done) == 0);
    }
    end();
}

/* Frames of the server's own: what is short shares a message, so that 5,000 Pongs need fewer than 30. */
static void test_frames_behind_messages(void)
{
    static char got[TEXT_CAP];
    static char data[FRAMES_BYTES];
    begin();
    wait_for(2);
    int64_t before = oribi_mem_blocks();
    for (int i = 0; i < 5000; i++) {
        ok_eq(oribi__websocket_wait_frame(&socket_, ORIBI_SLICE("\x8a\0"), oribi_slice(NULL, 0)), 0);
        want("\x8a\0", 2);
    }
    ok(oribi_mem_blocks() - before < 30);
    ok_eq(oribi__websocket_wait_frame(&socket_, ORIBI_SLICE("head"), oribi_slice(data, sizeof(data))), 0);
    want("head", 4);
    want(data, sizeof(data));
    wait_for(3);
    ok_eq(oribi__websocket_wait_frame(&socket_, ORIBI_SLICE("\x89\x02"), ORIBI_SLICE("hi")), 0);
    want("\x89\x02hi", 4);
    ok(gather(0, got) > 5000 && memcmp(got, wanted, 5000) == 0);
    takes_all_by(77);
    end();
}

/* One is sent in part, and another comes behind it. */
static void test_a_frame_behind_one_that_is_sent_in_part(void)
{
    begin();
    ok_eq(oribi__websocket_wait_frame(&socket_, ORIBI_SLICE("\x89\x02"), ORIBI_SLICE("hi")), 0);
    oribi__websocket_taken(&socket_, 3);
    ok_eq(oribi__websocket_wait_frame(&socket_, ORIBI_SLICE("\x8a\0"), oribi_slice(NULL, 0)), 0);
    want("i\x8a\0", 3);
    ok_eq(work.wait_count, 1);
    takes_all_by(1);
    end();
}

/* Room of messages that are gone is used again before more is asked for. */
static void test_a_queue_that_never_empties_stays_small(void)
{
    begin();
    wait_for(1);
    for (int i = 0; i < 1000; i++) {
        wait_for(1);
        oribi__websocket_taken(&socket_, 3);
        wanted_len = 3;
    }
    ok_eq(work.wait_count, 1);
    ok(work.wait_cap <= 8);
    ok_eq(oribi__websocket_waiting(&socket_), 3);
    end();
}

static void test_what_is_owed_is_paid_first(void)
{
    begin();
    wait_for(4);
    work.owed_bytes = oribi__websocket_waiting(&socket_);
    wait_for(5);
    oribi__websocket_taken(&socket_, 10);
    ok_eq(work.owed_bytes, 8);
    oribi__websocket_taken(&socket_, 10);
    ok_eq(work.owed_bytes, 0);
    end();
}

static void test_without_memory_nothing_waits(void)
{
    begin();
    for (size_t i = 0; i < MESSAGES; i++) {
        asked = 0;
        fail_at = 1;
        size_t before = oribi__websocket_waiting(&socket_);
        int code = oribi__websocket_wait(&socket_, messages[i]);
        bool full = asked == 1;
        fail_at = 0;
        ok_eq(code, full ? ORIBI_ENOMEM : 0);
        ok_eq(messages[i]->references, full ? 1 : 2);
        ok(full == (oribi__websocket_waiting(&socket_) == before));
        if (full)
            ok_eq(oribi__websocket_wait(&socket_, messages[i]), 0);
    }
    ok_eq(work.wait_count, MESSAGES);
    end();
}

int main(void)
{
    int64_t before = oribi_mem_blocks();
    test_every_cut();
    test_many_messages_are_gathered_in_parts();
    test_bytes_before_messages();
    test_frames_behind_messages();
    test_a_frame_behind_one_that_is_sent_in_part();
    test_a_queue_that_never_empties_stays_small();
    test_what_is_owed_is_paid_first();
    test_without_memory_nothing_waits();
    ok_eq(oribi_mem_blocks(), before);
    return done_testing();
}
