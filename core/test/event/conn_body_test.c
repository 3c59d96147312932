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

static void run_all(void)
{
    test_room_for_a_body_counts_before_it_is_filled();
    test_a_slow_body_takes_few_writes();
    test_batches_leave_half_of_the_memory();
    test_bytes_behind_a_chunked_body_count();
}

int main(void)
{
    return run_with_both_sources(run_all);
}
