/* The reactor and its connections without a server above: what needs several requests in the application's hands at
 * once, or a look inside. */
#include "event/reactor.c"

#include "base/clock_ahead.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct oribi_reactor r;
static enum oribi_loop_source source;
static int64_t bytes_read;
static int64_t bytes_sent;
static int closed_count;
static int refused_status;
static size_t refused_bytes;
static int lost_count;

static void on_refused(void *self, struct oribi_conn *c, int status, size_t body_bytes, const char *reason)
{
    refused_status = status;
    refused_bytes = body_bytes;
}

static void on_closed(void *self, struct oribi_conn *c)
{
    closed_count++;
}

static void on_read(void *self, int64_t bytes)
{
    bytes_read += bytes;
}

static void on_sent(void *self, int64_t bytes)
{
    bytes_sent += bytes;
}

static void on_lost(void *self, struct oribi_conn *c)
{
    lost_count++;
}

static void begin(void)
{
    struct oribi_reactor_config config = {
        .head_timeout_ms = 5000,
        .body_timeout_ms = 5000,
        .idle_timeout_ms = 5000,
        .write_timeout_ms = 5000,
        .response_memory_max = 1 << 20,
        .exchange_bytes = sizeof(struct oribi_exchange),
    };
    const struct oribi_reactor_hooks hooks = {NULL, on_refused, NULL, on_closed, on_read, on_sent, NULL, on_lost};
    oribi_limits_init(&config.limits);
    bytes_read = bytes_sent = 0;
    closed_count = refused_status = lost_count = 0;
    refused_bytes = 0;
    ok_eq(oribi_reactor_init(&r, &config, &hooks, source), 0);
}

static void end(void)
{
    oribi_reactor_deinit(&r);
}

static struct oribi_conn *open_conn(int *far)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        fail("socketpair");
    struct oribi_conn *c = oribi_conn_open(&r, fds[0], NULL);
    *far = fds[1];
    oribi_conn_start(&r, c);
    return c;
}

static void turn(void)
{
    (void)oribi_reactor_turn(&r, NULL, NULL);
}

static void send_text(int fd, const char *text)
{
    ok_eq(write(fd, text, strlen(text)), (long long)strlen(text));
}

static size_t read_all(int fd)
{
    static char block[65536];
    size_t total = 0;
    ssize_t n;
    while ((n = read(fd, block, sizeof(block))) > 0)
        total += (size_t)n;
    return total;
}

#define REQUEST "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

static void test_an_idle_connection_is_small_and_holds_nothing(void)
{
    begin();
    int far;
    struct oribi_conn *c = open_conn(&far);
    ok(sizeof(struct oribi_conn) <= 256);
    ok(!c->buf && !c->exchange && !c->out);
    ok_eq(r.buf_pool.lent_count, 0);
    send_text(far, REQUEST);
    turn();
    struct oribi_exchange *exchange = oribi_reactor_pop(&r);
    ok(exchange && exchange->conn == c);
    oribi_conn_finish(&r, c, false);
    ok_eq(c->state, ORIBI_CONN_IDLE);
    ok(!c->buf && !c->exchange && !c->out);
    ok_eq(r.buf_pool.lent_count, 0);
    ok_eq(r.exchange_pool.lent_count, 0);
    close(far);
    turn();
    ok_eq(closed_count, 1);
    end();
}

/* While one call is in the application's hands, another turn may run (threads): the room to write that it reports
 * must not be forgotten. */
static void test_room_told_during_a_call_is_used_after_it(void)
{
    begin();
    int far;
    struct oribi_conn *c = open_conn(&far);
    send_text(far, REQUEST);
    turn();
    ok(oribi_reactor_pop(&r) != NULL);
    size_t n = 1000000;
    char *big = calloc(1, n);
    struct iovec vec = {big, n};
    ok_eq(oribi_conn_send(&r, c, &vec, 1, false), 0);
    free(big);
    ok(oribi_conn_pending(c) > 0);
    size_t got = read_all(far); /* the kernel tells of room now … */
    turn();                     /* … and we hear it while nobody may flush */
    turn();
    oribi_conn_finish(&r, c, false);
    for (int i = 0; i < 1000 && got < n; i++) {
        turn();
        got += read_all(far);
    }
    ok_eq(got, n);
    ok_eq(bytes_sent, n);
    ok_eq(c->state, ORIBI_CONN_IDLE);
    close(far);
    end();
}

static void test_bytes_told_during_a_call_are_read_after_it(void)
{
    begin();
    int far;
    struct oribi_conn *c = open_conn(&far);
    send_text(far, REQUEST);
    turn();
    ok(oribi_reactor_pop(&r) != NULL);
    send_text(far, REQUEST);
    turn();
    turn();
    ok(oribi_reactor_pop(&r) == NULL);
    oribi_conn_finish(&r, c, false);
    turn();
    ok(oribi_reactor_pop(&r) != NULL);
    (void)shutdown(far, SHUT_WR);
    turn();
    turn();
    oribi_conn_finish(&r, c, false);
    turn();
    ok_eq(closed_count, 1);
    close(far);
    end();
}

/* A connection that is not yet registered has only its first read; what comes between that and the registration must
 * be seen. */
static void test_bytes_before_the_registration_are_seen(void)
{
    begin();
    int fds[2];
    ok_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    struct oribi_conn *c = oribi_conn_open(&r, fds[0], NULL);
    send_text(fds[1], REQUEST);
    oribi_conn_start(&r, c);
    ok(!c->watch.added);
    ok(oribi_reactor_pop(&r) != NULL);
    send_text(fds[1], REQUEST);
    oribi_conn_finish(&r, c, false);
    ok(c->watch.added);
    turn();
    turn();
    ok(oribi_reactor_pop(&r) != NULL);
    oribi_conn_finish(&r, c, true);
    close(fds[1]);
    turn();
    turn();
    ok_eq(closed_count, 1);
    end();
}

static void test_closing_in_every_place_of_the_run_queue(void)
{
    for (int victim = 0; victim < 4; victim++) {
        begin();
        int far[4];
        struct oribi_conn *conns[4];
        for (int i = 0; i < 4; i++) {
            conns[i] = open_conn(&far[i]);
            send_text(far[i], REQUEST);
            turn();
        }
        ok_eq(r.queue_len, 4);
        oribi_conn_abort(&r, conns[victim], false);
        ok_eq(r.queue_len, 3);
        turn();
        for (int i = 0; i < 4; i++) {
            if (i == victim)
                continue;
            struct oribi_exchange *exchange = oribi_reactor_pop(&r);
            ok(exchange && exchange->conn == conns[i]);
        }
        ok(oribi_reactor_pop(&r) == NULL);
        ok(r.run_last == NULL);
        for (int i = 0; i < 4; i++)
            close(far[i]);
        end();
    }
}

/* A connection that always has more to read gives way: with 8 reads a turn, somebody else's small request is not
 * behind all of its bytes. */
static void test_one_busy_sender_does_not_hold_up_the_turn(void)
{
    begin();
    int far;
    int other;
    struct oribi_conn *c = open_conn(&far);
    struct oribi_conn *small = open_conn(&other);
    send_text(far, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    turn();
    char block[65536] = {0};
    ssize_t n;
    while ((n = write(far, block, sizeof(block))) > 0)
        continue;
    send_text(other, REQUEST);
    int64_t before = bytes_read;
    turn();
    ok(bytes_read - before <= (int64_t)ORIBI_READS_PER_TURN * ORIBI_SCRATCH_BYTES + 100);
    struct oribi_exchange *exchange = oribi_reactor_pop(&r);
    ok(exchange && exchange->conn == small);
    ok_eq(c->state, ORIBI_CONN_BODY);
    close(far);
    close(other);
    end();
}

/* After a long call more connections than one batch holds have sent in time; none of them may be closed as late
 * before it was looked at. */
static void test_nobody_is_late_before_he_was_heard(void)
{
    enum { MANY = ORIBI_LOOP_EVENTS_MAX + 44 };
    static int far[MANY];
    begin();
    for (int i = 0; i < MANY; i++) {
        (void)open_conn(&far[i]);
        if (write(far[i], "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n", 49) != 49)
            fail("write");
    }
    turn();
    turn();
    pass_ms(4000); /* of 5000 */
    turn();
    ok_eq(refused_status, 0);
    for (int i = 0; i < MANY; i++)
        if (write(far[i], "half", 4) != 4)
            fail("write");
    pass_ms(4000);
    turn();
    turn();
    ok_eq(refused_status, 0);
    ok_eq(r.conn_count, MANY);
    pass_ms(5000); /* and those who are late are, in the end */
    int64_t start = real_ms();
    while (r.conn_count > 0 && real_ms() - start < 5000) {
        turn();
        for (int i = 0; i < MANY; i++)
            if (read(far[i], (char[512]){0}, 512) > 0)
                (void)shutdown(far[i], SHUT_WR);
    }
    ok_eq(refused_status, 408);
    ok_eq(refused_bytes, sizeof("408 Request Timeout\n") - 1);
    ok_eq(r.conn_count, 0);
    for (int i = 0; i < MANY; i++)
        close(far[i]);
    end();
}

static void test_close_idle_takes_the_oldest_and_only_the_idle(void)
{
    begin();
    int far[4];
    struct oribi_conn *conns[4];
    for (int i = 0; i < 4; i++)
        conns[i] = open_conn(&far[i]);
    for (int i = 0; i < 3; i++) {
        send_text(far[i], REQUEST);
        turn();
        ok(oribi_reactor_pop(&r) != NULL);
        oribi_conn_finish(&r, conns[i], false);
    }
    send_text(far[0], "GET / HT"); /* busy again */
    turn();
    ok_eq(oribi_reactor_close_idle(&r, 1), 1);
    ok_eq(conns[1]->state, ORIBI_CONN_CLOSED);
    ok_eq(conns[2]->state, ORIBI_CONN_IDLE);
    ok_eq(oribi_reactor_close_idle(&r, 10), 2); /* the other idle one, and the one that never said anything */
    ok_eq(conns[0]->state, ORIBI_CONN_HEAD);
    turn();
    ok_eq(r.conn_count, 1);
    for (int i = 0; i < 4; i++)
        close(far[i]);
    end();
}

/* Connections that are about to be closed as idle, when the loop has told of all it knew: one has a request in the
 * socket, one an empty line, one nothing. */
static void open_idle(struct oribi_conn *conns[3], int far[3])
{
    begin();
    for (int i = 0; i < 3; i++) {
        conns[i] = open_conn(&far[i]);
        send_text(far[i], REQUEST);
        turn();
        ok(oribi_reactor_pop(&r) != NULL);
        oribi_conn_finish(&r, conns[i], false);
        ok(read_all(far[i]) == 0);
    }
}

static void ok_only_who_asked_is_left(struct oribi_conn *conns[3], int far[3])
{
    ok_eq(r.conn_count, 1);
    ok(oribi_reactor_pop(&r) == conns[0]->exchange && conns[0]->exchange);
    ok_eq(conns[1]->state, ORIBI_CONN_CLOSED);
    ok_eq(conns[2]->state, ORIBI_CONN_CLOSED);
    for (int i = 0; i < 3; i++)
        close(far[i]);
    end();
}

static void test_close_idle_looks_for_what_has_come_meanwhile(void)
{
    struct oribi_conn *conns[3];
    int far[3];
    open_idle(conns, far);
    send_text(far[0], REQUEST);
    send_text(far[1], "\r\n");
    ok_eq(oribi_reactor_close_idle(&r, UINT32_MAX), 2);
    ok_only_who_asked_is_left(conns, far);
}

static void test_an_idle_timeout_looks_for_what_has_come_meanwhile(void)
{
    struct oribi_conn *conns[3];
    int far[3];
    open_idle(conns, far);
    int other;
    struct oribi_conn *awake = open_conn(&other);
    send_text(other, "GET");
    oribi_reactor_wait(&r, 1000); /* the turn has this event, and asks for no others */
    ok_eq(r.event_count, 1);
    send_text(far[0], REQUEST);
    send_text(far[1], "\r\n");
    pass_ms(5000);
    turn();
    oribi_conn_abort(&r, awake, false);
    close(other);
    ok_only_who_asked_is_left(conns, far);
}

static void at_ms(int64_t begin_us, int64_t ms)
{
    oribi_reactor_clock(&r, begin_us + ms * 1000);
}

static void test_room_is_made_by_who_has_rested_for_long_enough(void)
{
    begin();
    struct oribi_room room;
    int far[3];
    int64_t begin_us = r.now_us;
    ok_eq(oribi_reactor_room_ms(&r), -1);
    struct oribi_conn *silent = open_conn(&far[0]);
    at_ms(begin_us, 30);
    struct oribi_conn *head = open_conn(&far[1]);
    send_text(far[1], "GET / HT");
    oribi__conn_on_readable(&r, head);
    at_ms(begin_us, 60);
    struct oribi_conn *late = open_conn(&far[2]);
    ok_eq(oribi_reactor_room_ms(&r), ORIBI_ROOM_IDLE_MS_MIN - 60);
    at_ms(begin_us, ORIBI_ROOM_IDLE_MS_MIN - 1);
    ok_eq(oribi_reactor_room_ms(&r), 1);
    ok(!oribi_reactor_make_room(&r, &room));
    at_ms(begin_us, ORIBI_ROOM_IDLE_MS_MIN);
    ok_eq(oribi_reactor_room_ms(&r), 0);
    ok(oribi_reactor_make_room(&r, &room));
    ok_eq(silent->state, ORIBI_CONN_CLOSED);
    ok(!room.head && room.age_ms == ORIBI_ROOM_IDLE_MS_MIN);
    at_ms(begin_us, 200); /* both have: the idle one first, though the head is older */
    ok(oribi_reactor_make_room(&r, &room));
    ok_eq(late->state, ORIBI_CONN_CLOSED);
    ok(!room.head && room.age_ms == 140);
    ok(oribi_reactor_make_room(&r, &room));
    ok_eq(head->state, ORIBI_CONN_CLOSED);
    ok(room.head && room.age_ms == 170);
    ok_eq(refused_status, 503);
    ok(!oribi_reactor_make_room(&r, &room));
    ok_eq(oribi_reactor_room_ms(&r), -1);
    for (int i = 0; i < 3; i++)
        close(far[i]);
    end();
}

/* --- lingering --- */

/* A connection that was refused, and reads the rest of what its client sends. */
static struct oribi_conn *lingering(int *far)
{
    char answer[512];
    struct oribi_conn *c = open_conn(far);
    send_text(*far, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n");
    turn();
    ok_eq(refused_status, 400);
    ok_eq(c->state, ORIBI_CONN_LINGER);
    ok(read(*far, answer, sizeof(answer)) > 0);
    ok_eq(read(*far, answer, sizeof(answer)), 0);
    return c;
}

/* Sends so many bytes, as fast as they are read; returns how many were taken. */
static int64_t pour(int far, int64_t bytes)
{
    static char block[64 * 1024];
    int64_t taken = 0;
    while (taken < bytes && r.conn_count > 0) {
        int64_t left = bytes - taken;
        ssize_t n = send(far, block, left < (int64_t)sizeof(block) ? (size_t)left : sizeof(block), MSG_NOSIGNAL);
        taken += n > 0 ? n : 0;
        turn();
    }
    for (int i = 0; i < 16; i++)
        turn();
    return taken;
}

static void test_lingering_outlives_an_upload_of_megabytes(void)
{
    begin();
    int far;
    (void)lingering(&far);
    ok_eq(pour(far, 20 << 20), 20 << 20);
    ok_eq(r.conn_count, 1);
    (void)shutdown(far, SHUT_WR);
    turn();
    ok_eq(r.conn_count, 0);
    close(far);
    end();
}

static void test_lingering_ends_with_silence(void)
{
    begin();
    int far;
    (void)lingering(&far);
    for (int i = 0; i < 3; i++) { /* each byte gives it another while */
        pass_ms(ORIBI_LINGER_SILENCE_MS_MAX - 200);
        send_text(far, "x");
        turn();
        turn();
        ok_eq(r.conn_count, 1);
    }
    pass_ms(ORIBI_LINGER_SILENCE_MS_MAX);
    turn();
    turn();
    ok_eq(r.conn_count, 0);
    close(far);
    end();
}

static void test_lingering_ends_in_time_whatever_comes(void)
{
    begin();
    int far;
    (void)lingering(&far);
    int64_t passed = 0;
    while (passed + 1000 < ORIBI_LINGER_MS_MAX - 500) {
        pass_ms(1000);
        passed += 1000;
        send_text(far, "x");
        turn();
        turn();
    }
    ok_eq(r.conn_count, 1);
    pass_ms(ORIBI_LINGER_MS_MAX - passed);
    send_text(far, "x");
    turn();
    turn();
    ok_eq(r.conn_count, 0);
    close(far);
    end();
}

static void test_lingering_takes_so_many_bytes_and_no_more(void)
{
    begin();
    int far;
    (void)lingering(&far);
    ok_eq(pour(far, ORIBI_LINGER_BYTES_MAX), ORIBI_LINGER_BYTES_MAX);
    ok_eq(r.conn_count, 1);
    send_text(far, "x");
    turn();
    turn();
    ok_eq(r.conn_count, 0);
    close(far);
    end();
}

/* An event may name a connection that an earlier event of the same turn closed: its memory stays until the turn is
 * over. */
static void test_closed_twice_in_one_turn_is_closed_once(void)
{
    begin();
    int far;
    struct oribi_conn *c = open_conn(&far);
    send_text(far, REQUEST);
    (void)shutdown(far, SHUT_RDWR);
    oribi_reactor_wait(&r, 1000);
    ok(r.event_count > 0);
    oribi_conn_abort(&r, c, true);
    turn();
    ok_eq(closed_count, 1);
    ok_eq(r.conn_pool.lent_count, 0);
    close(far);
    end();
}

static void test_withdrawn_socket_lives_on_with_its_rest(void)
{
    begin();
    int far;
    struct oribi_conn *c = open_conn(&far);
    send_text(far, REQUEST "left");
    turn();
    ok(oribi_reactor_pop(&r) != NULL);
    struct oribi_slice rest;
    int fd = oribi_conn_withdraw(&r, c, &rest);
    ok(fd >= 0);
    is_slice(rest, "left");
    oribi_conn_release(&r, c);
    turn();
    ok_eq(r.conn_count, 0);
    ok_eq(write(fd, "mine", 4), 4);
    char back[8];
    ok_eq(read(far, back, sizeof(back)), 4);
    close(fd);
    close(far);
    end();
}

/* Stands in for the one of base/os_linux.c: a peer who takes everything at once, so that no socket is ever full. */
static int64_t file_sent;
ssize_t oribi_os_send_file(int socket_fd, int in_fd, int64_t *offset, int64_t n)
{
    *offset += n;
    file_sent += n;
    return (ssize_t)n;
}

/* Who downloads as fast as we can send would otherwise have the worker for the whole file. */
static void test_one_fast_reader_does_not_hold_up_the_turn(void)
{
    begin();
    int far;
    int other;
    int fd;
    file_sent = 0;
    struct oribi_conn *c = open_conn(&far);
    struct oribi_conn *d = open_conn(&other);
    send_text(far, REQUEST);
    turn();
    ok(oribi_reactor_pop(&r) != NULL);
    ok_eq(oribi_os_temp_file(&fd), 0);
    ok_eq(oribi_conn_send_file(&r, c, fd, 100, 5LL * ORIBI_OUT_TURN_BYTES), 0);
    oribi_os_close(fd);
    oribi_conn_finish(&r, c, false);
    ok(file_sent <= 2 * ORIBI_OUT_TURN_BYTES);
    ok_eq(c->state, ORIBI_CONN_FLUSH);
    send_text(other, REQUEST);
    int64_t before = file_sent;
    turn();
    ok(file_sent > before && file_sent <= before + 2 * ORIBI_OUT_TURN_BYTES); /* told of by the loop, and by itself */
    struct oribi_exchange *exchange = oribi_reactor_pop(&r);
    ok(exchange && exchange->conn == d);
    oribi_conn_finish(&r, d, false);
    for (int i = 0; i < 5; i++)
        turn();
    ok_eq(file_sent, 5LL * ORIBI_OUT_TURN_BYTES);
    ok_eq(bytes_sent, 5LL * ORIBI_OUT_TURN_BYTES);
    ok_eq(c->state, ORIBI_CONN_IDLE);
    close(far);
    close(other);
    end();
}

/* Room made for bytes that do not come counts like any other. */
static void test_room_for_a_body_counts_before_it_is_filled(void)
{
    begin();
    int far;
    struct oribi_conn *c = open_conn(&far);
    static char part[ORIBI_SCRATCH_BYTES];
    memset(part, 'a', sizeof(part));
    send_text(far, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 131072\r\n\r\n");
    turn();
    ok_eq(c->state, ORIBI_CONN_BODY);
    ok_eq(write(far, part, sizeof(part)), sizeof(part)); /* a whole read, so that another one is tried */
    turn();
    ok_eq(c->exchange->body.len, sizeof(part));
    ok_eq(r.budget.memory_used, c->exchange->body.memory.cap);
    ok_eq(write(far, part, sizeof(part)), sizeof(part));
    turn();
    struct oribi_exchange *exchange = oribi_reactor_pop(&r);
    ok(exchange && exchange->body.fd < 0);
    oribi_conn_finish(&r, c, false);
    ok_eq(r.budget.memory_used, 0);
    close(far);
    end();
}

/* Stands in for the one of base/os.c: which a body's file is written with, and nothing else here. */
static int file_writes;
ssize_t oribi_os_write(int fd, const void *p, size_t n)
{
    file_writes++;
    return write(fd, p, n);
}

/* Sends a body that goes to a file in pieces of a TCP segment, a turn each; true when all of it is there. */
static bool spill_body(size_t len, int *writes)
{
    int far;
    char text[100];
    struct oribi_conn *c = open_conn(&far);
    file_writes = 0;
    (void)snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", len);
    send_text(far, text);
    turn();
    for (size_t at = 0; at < len; at += 1448) {
        static const char part[1448];
        size_t n = len - at < sizeof(part) ? len - at : sizeof(part);
        if (write(far, part, n) != (ssize_t)n)
            fail("write");
        turn();
    }
    *writes = file_writes;
    struct oribi_exchange *exchange = oribi_reactor_pop(&r);
    bool whole = exchange && exchange->body.fd >= 0 && lseek(exchange->body.fd, 0, SEEK_END) == (off_t)len &&
                 r.budget.file_used == (int64_t)len && !exchange->body.memory.cap;
    oribi_conn_finish(&r, c, false);
    close(far);
    turn();
    return whole && r.budget.memory_used == 0 && r.budget.file_used == 0;
}

static void test_a_slow_body_takes_few_writes(void)
{
    int writes;
    begin();
    ok(spill_body(1 << 20, &writes));
    ok_named(writes <= 17, "%d writes for a mebibyte", writes);
    end();
}

/* The other half of the memory is for whole bodies. */
static void test_batches_leave_half_of_the_memory(void)
{
    int writes;
    begin();
    r.budget.memory_max = 40000;
    ok(spill_body(1 << 20, &writes));
    ok(writes > 17);
    r.budget.memory_used = 20000;
    int64_t before = r.budget.memory_used;
    (void)spill_body(1 << 20, &writes);
    ok_named(writes >= (1 << 20) / 1448, "%d writes without memory", writes);
    ok_eq(r.budget.memory_used, before);
    r.budget.memory_used = 0;
    end();
}

/* What stands behind a chunked body is kept while its request is called: many connections with much of it are memory
 * like any other. */
static void test_bytes_behind_a_chunked_body_count(void)
{
    enum { BEHIND = 50000 };
    begin();
    int far;
    struct oribi_conn *c = open_conn(&far);
    static char behind[BEHIND];
    memset(behind, 'a', sizeof(behind));
    send_text(far, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    turn();
    ok_eq(c->state, ORIBI_CONN_BODY);
    struct iovec vec[2] = {{"1\r\nx\r\n0\r\nA: b\r\n\r\n", 17}, {behind, BEHIND}};
    ok_eq(writev(far, vec, 2), 17 + BEHIND);
    turn();
    struct oribi_exchange *exchange = oribi_reactor_pop(&r);
    ok(exchange && exchange->rest.len == BEHIND && exchange->trailers.count == 1);
    ok(r.budget.memory_used >= BEHIND + 6);
    oribi_conn_finish(&r, c, true);
    close(far);
    turn();
    ok_eq(r.budget.memory_used, 0);
    end();
}

/* A connection on this number, whose descriptor it takes. */
static struct oribi_conn *open_conn_at(int fd, int *far)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        fail("socketpair");
    if (fds[0] != fd) {
        ok_eq(dup2(fds[0], fd), fd);
        close(fds[0]);
    }
    *far = fds[1];
    struct oribi_conn *c = oribi_conn_open(&r, fd, NULL);
    oribi_conn_start(&r, c);
    return c;
}

/* The application has closed a kept connection's descriptor, and the next connection has its number. */
static void test_a_number_that_comes_again_ends_its_old_connection_alone(void)
{
    for (int in_call = 0; in_call < 2; in_call++) {
        begin();
        int far;
        int far_heir;
        struct oribi_conn *c = open_conn(&far);
        int fd = c->watch.fd;
        if (in_call) {
            send_text(far, REQUEST);
            turn();
            ok(oribi_reactor_pop(&r)->conn == c);
        }
        close(fd);
        struct oribi_conn *heir = open_conn_at(fd, &far_heir);
        ok_eq(c->state, in_call ? ORIBI_CONN_CALL : ORIBI_CONN_CLOSED);
        if (in_call) {
            struct iovec vec = {(void *)(uintptr_t) "secret", 6};
            ok_eq(oribi_conn_send(&r, c, &vec, 1, false), ORIBI_ECLOSED);
            oribi_conn_finish(&r, c, false);
        }
        ok_eq(lost_count, 1);
        ok_eq(r.lost_count, 1);
        ok_eq(r.conn_count, 1);
        turn();
        send_text(far_heir, REQUEST);
        turn();
        struct oribi_exchange *exchange = oribi_reactor_pop(&r);
        ok(exchange && exchange->conn == heir);
        ok_eq(read_all(far_heir), 0); /* nothing that was meant for another */
        oribi_conn_finish(&r, heir, true);
        close(far_heir);
        turn();
        struct oribi_conn *next = oribi_pool_try_get(&r.conn_pool);
        ok(next != c); /* events may still name it */
        oribi_pool_put(&r.conn_pool, next);
        close(far);
        end();
    }
}

/* … or a file of the application's, which stays open. */
static void test_a_number_that_is_a_file_of_the_applications_is_not_closed(void)
{
    for (int told = 0; told < 2; told++) {
        begin();
        int far;
        struct oribi_conn *c = open_conn(&far);
        int fd = c->watch.fd;
        send_text(far, REQUEST);
        turn();
        ok(oribi_reactor_pop(&r)->conn == c);
        close(fd);
        if (source != ORIBI_LOOP_POLL) {
            int file = open("/dev/null", O_RDWR | O_CLOEXEC);
            ok_eq(file, fd);
        }
        struct iovec vec = {(void *)(uintptr_t) "answer", 6};
        if (told)
            ok_eq(oribi_conn_send(&r, c, &vec, 1, false), ORIBI_ELOST);
        oribi_conn_abort(&r, c, false);
        ok_eq(lost_count, 1);
        ok_eq(fcntl(fd, F_GETFD) >= 0, source != ORIBI_LOOP_POLL);
        close(fd);
        close(far);
        end();
    }
}

static void run_all(enum oribi_loop_source with)
{
    source = with;
    test_an_idle_connection_is_small_and_holds_nothing();
    test_room_told_during_a_call_is_used_after_it();
    test_bytes_told_during_a_call_are_read_after_it();
    test_bytes_before_the_registration_are_seen();
    test_closing_in_every_place_of_the_run_queue();
    test_one_busy_sender_does_not_hold_up_the_turn();
    test_one_fast_reader_does_not_hold_up_the_turn();
    test_room_for_a_body_counts_before_it_is_filled();
    test_bytes_behind_a_chunked_body_count();
    test_a_slow_body_takes_few_writes();
    test_batches_leave_half_of_the_memory();
    test_nobody_is_late_before_he_was_heard();
    test_close_idle_takes_the_oldest_and_only_the_idle();
    test_close_idle_looks_for_what_has_come_meanwhile();
    test_an_idle_timeout_looks_for_what_has_come_meanwhile();
    test_room_is_made_by_who_has_rested_for_long_enough();
    test_closed_twice_in_one_turn_is_closed_once();
    test_withdrawn_socket_lives_on_with_its_rest();
    test_lingering_outlives_an_upload_of_megabytes();
    test_lingering_ends_with_silence();
    test_lingering_ends_in_time_whatever_comes();
    test_lingering_takes_so_many_bytes_and_no_more();
    test_a_number_that_comes_again_ends_its_old_connection_alone();
    test_a_number_that_is_a_file_of_the_applications_is_not_closed();
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    run_all(ORIBI_LOOP_BEST);
    run_all(ORIBI_LOOP_POLL);
    return done_testing();
}
