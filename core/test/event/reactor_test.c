/* The reactor and its connections without a server above: what needs several requests in the application's hands at
 * once, or a look inside. */
#include "event/reactor.c"

#include "base/clock_ahead.h"
#include "event/reactor_lab.h"
#include "system.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

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
    struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
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
static void test_room_reported_during_a_call_is_used_after_it(void)
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
    size_t got = read_all(far); /* the kernel reports room now */
    turn();                     /* the loop sees it during the call, when no flush may run */
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

static void test_bytes_reported_during_a_call_are_read_after_it(void)
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
            struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
            ok(exchange && exchange->conn == conns[i]);
        }
        ok(oribi_reactor_pop(&r) == NULL);
        ok(r.run_last == NULL);
        for (int i = 0; i < 4; i++)
            close(far[i]);
        end();
    }
}

/* A connection that always has more to read gives way: with 8 reads a turn, the small request of another connection
 * does not wait for all of its bytes. */
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
    struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
    ok(exchange && exchange->conn == small);
    ok_eq(c->state, ORIBI_CONN_BODY);
    close(far);
    close(other);
    end();
}

/* After a long call more connections than one batch holds have sent in time; none of them may be closed as late
 * before it was looked at. */
static void test_no_connection_times_out_before_its_input_is_read(void)
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
    pass_ms(5000); /* in the end they time out */
    int64_t start = real_ms();
    while (r.conn_count > 0 && real_ms() - start < 30000) {
        turn();
        for (int i = 0; i < MANY; i++)
            if (read(far[i], (char[512]){0}, 512) > 0)
                (void)shutdown(far[i], SHUT_WR);
    }
    ok_eq(refused_status, 408);
    is_str(refused_as, "body_timeout");
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

static void ok_only_the_asking_connection_is_left(struct oribi_conn *conns[3], int far[3])
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
    ok_only_the_asking_connection_is_left(conns, far);
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
    ok_only_the_asking_connection_is_left(conns, far);
}

static void at_ms(int64_t begin_us, int64_t ms)
{
    oribi_reactor_clock(&r, begin_us + ms * 1000);
}

static void test_room_is_made_by_the_connection_that_has_rested_longest(void)
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
    oribi_conn_start(&r, head);
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
    is_str(refused_as, "connections_max");
    ok(!oribi_reactor_make_room(&r, &room));
    ok_eq(oribi_reactor_room_ms(&r), -1);
    for (int i = 0; i < 3; i++)
        close(far[i]);
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

/* Stands in for the one of base/os/os_linux.c: a peer that takes everything at once, so that no socket is ever full. */
static int64_t file_sent;
ssize_t oribi_os_send_file(int socket_fd, int in_fd, int64_t *offset, int64_t n)
{
    *offset += n;
    file_sent += n;
    return (ssize_t)n;
}

/* A client that downloads as fast as we can send would otherwise have the worker for the whole file. */
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
    struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
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

/* A connection with this descriptor number. */
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
        int far_successor;
        struct oribi_conn *c = open_conn(&far);
        int fd = c->watch.fd;
        if (in_call) {
            send_text(far, REQUEST);
            turn();
            ok(oribi_reactor_pop(&r)->conn == c);
        }
        close(fd);
        struct oribi_conn *successor = open_conn_at(fd, &far_successor);
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
        send_text(far_successor, REQUEST);
        turn();
        struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
        ok(exchange && exchange->conn == successor);
        ok_eq(read_all(far_successor), 0); /* nothing that was meant for another */
        oribi_conn_finish(&r, successor, true);
        close(far_successor);
        turn();
        struct oribi_conn *next = oribi_pool_try_get(&r.conn_pool);
        ok(next != c); /* events may still name it */
        oribi_pool_put(&r.conn_pool, next);
        close(far);
        end();
    }
}

/* A file of the application's under the number stays open. */
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
        int file = open("/dev/null", O_RDWR | O_CLOEXEC);
        ok_eq(file, fd);
        struct iovec vec = {(void *)(uintptr_t) "answer", 6};
        if (told)
            ok_eq(oribi_conn_send(&r, c, &vec, 1, false), ORIBI_ELOST);
        oribi_conn_abort(&r, c, false);
        ok_eq(lost_count, 1);
        ok_eq(close(file), 0);
        close(far);
        end();
    }
}

/* Bytes of a socket of the application's under the number are no request. */
static void test_a_number_that_is_a_socket_of_the_applications_is_not_read(void)
{
    begin();
    int far;
    int fds[2];
    char bytes[sizeof(REQUEST)];
    struct oribi_conn *c = open_conn(&far);
    int fd = c->watch.fd;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        fail("socketpair");
    ok_eq(dup2(fds[0], fd), fd);
    send_text(fds[1], REQUEST);
    turn();
    turn();
    ok(oribi_reactor_pop(&r) == NULL);
    ok_eq(closed_count, oribi_loop_fd(r.loop) < 0); /* epoll and kqueue tell of nothing */
    oribi_conn_abort(&r, c, false);
    ok_eq(closed_count, 1);
    ok_eq(lost_count, 1);
    ok_eq(recv(fd, bytes, sizeof(bytes), 0), (int)sizeof(REQUEST) - 1);
    close(fd);
    close(fds[0]);
    close(fds[1]);
    close(far);
    end();
}

static void run_all(void)
{
    test_an_idle_connection_is_small_and_holds_nothing();
    test_room_reported_during_a_call_is_used_after_it();
    test_bytes_reported_during_a_call_are_read_after_it();
    test_bytes_before_the_registration_are_seen();
    test_closing_in_every_place_of_the_run_queue();
    test_one_busy_sender_does_not_hold_up_the_turn();
    test_one_fast_reader_does_not_hold_up_the_turn();
    test_no_connection_times_out_before_its_input_is_read();
    test_close_idle_takes_the_oldest_and_only_the_idle();
    test_close_idle_looks_for_what_has_come_meanwhile();
    test_an_idle_timeout_looks_for_what_has_come_meanwhile();
    test_room_is_made_by_the_connection_that_has_rested_longest();
    test_closed_twice_in_one_turn_is_closed_once();
    test_withdrawn_socket_lives_on_with_its_rest();
    test_a_number_that_comes_again_ends_its_old_connection_alone();
    test_a_number_that_is_a_file_of_the_applications_is_not_closed();
    test_a_number_that_is_a_socket_of_the_applications_is_not_read();
}

int main(void)
{
    return run_with_both_sources(run_all);
}
