/* Bodies on a connection: what they count in the worker's budget, and how they are written to files. */
#include "event/conn_body.c"

#include "event/reactor_lab.h"

#include <fcntl.h>
#include <sys/uio.h>

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

/* Stands in for the one of base/os.c, and counts the writes to a body's file. */
static int file_writes;
ssize_t oribi_os_write_vec(int fd, const struct iovec *vec, size_t count)
{
    file_writes += lseek(fd, 0, SEEK_CUR) >= 0;
    return writev(fd, vec, (int)count);
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
    r.config.limits.body_memory_max = 128 * 1024;
    ok(spill_body(1 << 20, &writes));
    ok_named(writes <= 17, "%d writes for a mebibyte", writes);
    end();
}

/* The other half of the memory is for whole bodies. */
static void test_batches_leave_half_of_the_memory(void)
{
    int writes;
    begin();
    r.config.limits.body_memory_max = 128 * 1024;
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

/* Sends the head and the first `sent` bytes of a body; `fields` are whole lines. */
static struct oribi_conn *begin_body_of(int *far, const char *fields, size_t len, size_t sent)
{
    char text[200];
    struct oribi_conn *c = open_conn(far);
    (void)snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: a\r\n%sContent-Length: %zu\r\n\r\n", fields, len);
    send_text(*far, text);
    for (size_t at = 0; at < sent; at += 10000) {
        static const char part[10000];
        size_t n = sent - at < sizeof(part) ? sent - at : sizeof(part);
        if (write(*far, part, n) != (ssize_t)n)
            fail("write");
        turn();
    }
    return c;
}

/* A long body in memory, and none of the others' memory: a quarter of the budget is theirs. */
static void check_long_body(int64_t used, bool in_memory)
{
    enum { LEN = 1000000, BUDGET = 4000000 };
    int far;
    begin();
    r.budget.memory_max = BUDGET;
    r.budget.memory_used = used;
    struct oribi_conn *c = begin_body_of(&far, "", LEN, LEN);
    struct oribi_exchange *exchange = oribi_reactor_pop(&r);
    ok(exchange && exchange->body.len == LEN && (exchange->body.fd < 0) == in_memory);
    ok_eq(r.budget.file_used, in_memory ? 0 : LEN);
    ok(!in_memory || r.budget.memory_used == used + LEN); /* reserved once, and no more than it has */
    oribi_conn_finish(&r, c, true);
    turn();
    ok_eq(r.budget.memory_used, used);
    close(far);
    r.budget.memory_used = 0;
    end();
}

static void test_a_long_body_stays_in_memory_while_the_budget_is_far_from_full(void)
{
    check_long_body(0, true);
    check_long_body(2000000, true);
    check_long_body(2000001, false);
    check_long_body(3999999, false);
}

/* The budget fills up while the body comes: what has come goes to a file, and nothing is lost. */
static void test_a_long_body_makes_room(void)
{
    int far;
    begin();
    r.budget.memory_max = 4000000;
    struct oribi_conn *c = begin_body_of(&far, "Transfer-Encoding: chunked\r\nX-", 1, 0);
    send_text(far, "f4240\r\n");
    static const char part[100000];
    for (int i = 0; i < 10; i++) {
        if (i == 5)
            r.budget.memory_used += 3500000;
        for (size_t at = 0; at < sizeof(part); at += 10000) {
            ok_eq(write(far, part, 10000), 10000);
            turn();
        }
        ok_eq(c->exchange->body.fd >= 0, i >= 5);
    }
    send_text(far, "\r\n0\r\n\r\n");
    turn();
    struct oribi_exchange *exchange = oribi_reactor_pop(&r);
    ok(exchange && lseek(exchange->body.fd, 0, SEEK_END) == 1000000);
    oribi_conn_finish(&r, c, true);
    turn();
    ok_eq(r.budget.memory_used, 3500000);
    close(far);
    r.budget.memory_used = 0;
    end();
}

/* Clients that announce much and send little: nothing is reserved before a 64th has come. */
static void test_an_announced_body_takes_nothing(void)
{
    enum { LEN = 10000000 };
    int far;
    begin();
    (void)begin_body_of(&far, "", LEN, 150000);
    ok(r.budget.memory_used < 300000);
    close(far);
    turn();
    ok_eq(r.budget.memory_used, 0);
    (void)begin_body_of(&far, "", LEN, 190000);
    ok_eq(r.budget.memory_used, LEN);
    close(far);
    turn();
    ok_eq(r.budget.memory_used, 0);
    end();
}

/* A form that is to be taken apart is taken apart as soon as it is long, with memory or without. */
static void test_long_forms_are_taken_apart_although_there_is_memory(void)
{
    static const char type[] = "Content-Type: multipart/form-data; boundary=b\r\n";
    int far;
    begin();
    r.config.multipart_stream = true;
    struct oribi_conn *c = begin_body_of(&far, type, ORIBI_SMALL_BODY_BYTES, 20000);
    ok(!c->exchange->parts);
    close(far);
    turn();
    c = begin_body_of(&far, type, ORIBI_SMALL_BODY_BYTES + 1, 20000);
    ok(c->exchange->parts != NULL);
    close(far);
    turn();
    end();
}

static void run_all(void)
{
    test_a_long_body_stays_in_memory_while_the_budget_is_far_from_full();
    test_a_long_body_makes_room();
    test_an_announced_body_takes_nothing();
    test_long_forms_are_taken_apart_although_there_is_memory();
    test_room_for_a_body_counts_before_it_is_filled();
    test_a_slow_body_takes_few_writes();
    test_batches_leave_half_of_the_memory();
    test_bytes_behind_a_chunked_body_count();
}

int main(void)
{
    return run_with_both_sources(run_all);
}
