/* Bodies on a connection: what they count in the worker's budget, and how they are written to files. */
#include "event/conn_body.c"

#include "event/reactor_lab.h"

#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
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
    struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
    ok(exchange && exchange->body.fd < 0);
    oribi_conn_finish(&r, c, false);
    ok_eq(r.budget.memory_used, 0);
    close(far);
    end();
}

/* Stands in for the one of base/os/os.c: counts the writes to a body's file, and holds them or lets them fail. */
static _Atomic int file_writes;
static _Atomic int own_writes; /* by the thread of the test, which is the reactor's */
static _Atomic int writes_left = -1;
static _Atomic bool held; /* each write posts `begun` and waits for `gate` */
static sem_t gate;
static sem_t begun;
static pthread_t reactor_thread;
ssize_t oribi_os_write_vec(int fd, const struct iovec *vec, size_t count)
{
    if (lseek(fd, 0, SEEK_CUR) >= 0) {
        file_writes++;
        own_writes += pthread_equal(pthread_self(), reactor_thread) != 0;
        if (held) {
            (void)sem_post(&begun);
            (void)sem_wait(&gate);
        }
        if (writes_left == 0) {
            errno = ENOSPC;
            return oribi_os_fail();
        }
        writes_left -= writes_left > 0;
    }
    return writev(fd, vec, (int)count);
}

/* A turn, and as many more as writes that are under way need. */
static void turn_stored(const struct oribi_conn *c)
{
    turn();
    while (c->state == ORIBI_CONN_STORE || oribi_reactor_goes_on(&r)) {
        oribi_reactor_wait(&r, 1000);
        turn();
    }
}

/* Sends a body that goes to a file in pieces of a TCP segment, a turn each; true when all of it is there. */
static bool temp_file_body(size_t len, int *writes)
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
        turn_stored(c);
    }
    *writes = file_writes;
    struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
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
    ok(temp_file_body(1 << 20, &writes));
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
    ok(temp_file_body(1 << 20, &writes));
    ok(writes > 17);
    r.budget.memory_used = 20000;
    int64_t before = r.budget.memory_used;
    (void)temp_file_body(1 << 20, &writes);
    ok_named(writes >= (1 << 20) / 1448, "%d writes without memory", writes);
    ok_eq(r.budget.memory_used, before);
    r.budget.memory_used = 0;
    end();
}

/* Bytes behind a chunked body are kept while its request is called: many connections with much of it are memory like
 * any other. */
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
    struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
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
        turn_stored(c);
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
    struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
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
            turn_stored(c);
        }
        ok_eq(oribi_body_in_file(&c->exchange->body), i >= 5);
    }
    send_text(far, "\r\n0\r\n\r\n");
    turn_stored(c);
    struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
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

/* --- while a write is under way --- */

enum { STORED_LEN = 100000, STORED_MAX = 1024 };

/* A body of STORED_LEN bytes goes to a file whose first write is under way, and waits; `sent` of its bytes were sent.
 * Without a budget for batches, each piece is a write. */
static struct oribi_conn *begin_store(int *far, size_t sent)
{
    file_writes = own_writes = 0;
    held = true;
    r.config.limits.body_memory_max = STORED_MAX;
    r.budget.memory_max = 40000;
    r.budget.memory_used = 30000;
    struct oribi_conn *c = open_conn(far);
    char text[STORED_LEN + 100];
    int n = snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", STORED_LEN);
    memset(text + n, 'a', sent);
    if (write(*far, text, (size_t)n + sent) != n + (ssize_t)sent)
        fail("write");
    turn();
    (void)sem_wait(&begun);
    return c;
}

static void let_go(void)
{
    held = false;
    (void)sem_post(&gate);
}

static void end_store(int far)
{
    close(far);
    turn();
    ok_eq(r.budget.memory_used, 30000);
    ok_eq(r.budget.file_used, 0);
    ok_eq(own_writes, 0);
    r.budget.memory_used = 0;
    end();
    while (sem_trywait(&begun) == 0 || sem_trywait(&gate) == 0)
        continue;
}

static void test_nothing_is_read_while_a_write_is_under_way(void)
{
    int far;
    begin();
    struct oribi_conn *c = begin_store(&far, 5000);
    ok_eq(c->state, ORIBI_CONN_STORE);
    int64_t before = bytes_read;
    static const char part[STORED_LEN];
    ok_eq(write(far, part, STORED_LEN - 5000), STORED_LEN - 5000);
    turn();
    turn();
    ok_eq(bytes_read, before);
    ok(!oribi_conn_movable(c));
    ok(r.budget.memory_used > 30000);
    let_go();
    turn_stored(c);
    ok_eq(c->state, ORIBI_CONN_QUEUED);
    struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
    ok(exchange && lseek(exchange->body.fd, 0, SEEK_END) == STORED_LEN);
    oribi_conn_finish(&r, c, false);
    end_store(far);
}

/* Other connections have their turns meanwhile. */
static void test_others_go_on_while_a_write_is_under_way(void)
{
    int far, other;
    begin();
    struct oribi_conn *c = begin_store(&far, 5000);
    struct oribi_conn *o = open_conn(&other);
    send_text(other, REQUEST);
    turn();
    ok(oribi_reactor_pop(&r) == o->exchange);
    ok_eq(c->state, ORIBI_CONN_STORE);
    oribi_conn_finish(&r, o, true);
    close(other);
    let_go();
    turn_stored(c);
    end_store(far);
}

/* The disk is late, not the client: neither its silence nor its rate counts while it may not send. */
static void test_a_slow_disk_is_not_the_clients_fault(void)
{
    int far;
    begin();
    r.config.body_rate_min = 1000;
    struct oribi_conn *c = begin_store(&far, 5000);
    for (int i = 0; i < 4; i++) {
        r.now_ms += 6000;
        struct oribi_timeout *timer;
        enum oribi_timeout_class class;
        while ((timer = oribi_timeouts_expired(&r.timeouts, r.now_ms, &class)) != NULL)
            oribi__conn_on_timeout(&r, c, class);
    }
    ok_eq(c->state, ORIBI_CONN_STORE);
    ok_eq(refused_status, 0);
    c->exchange->store_started_ms -= 100000; /* the write has taken so long */
    c->exchange->body_started_ms -= 100000;
    let_go();
    turn_stored(c);
    ok_eq(c->state, ORIBI_CONN_BODY);
    send_text(far, "x");
    turn_stored(c);
    ok_eq(refused_status, 0);
    c->exchange->body_started_ms -= 100000; /* the client has taken so long */
    send_text(far, "x");
    turn_stored(c);
    ok_eq(refused_status, 408);
    end_store(far);
}

static void check_failed_write(size_t sent)
{
    int far;
    char answer[1000];
    begin();
    writes_left = 0;
    struct oribi_conn *c = begin_store(&far, sent);
    ok_eq(refused_status, 0);
    let_go();
    turn_stored(c);
    ok_eq(refused_status, 507);
    ssize_t n = read(far, answer, sizeof(answer) - 1);
    answer[n > 0 ? n : 0] = '\0';
    ok(strncmp(answer, "HTTP/1.1 507 ", 13) == 0);
    ok(strstr(answer + 1, "HTTP/1.1") == NULL); /* one answer */
    ok_eq(file_writes, 1);
    writes_left = -1;
    end_store(far);
}

static void test_a_write_that_fails_is_answered_once(void)
{
    check_failed_write(5000);
    check_failed_write(STORED_LEN);
}

/* The end of a client is seen when its connection may read again. */
static void test_a_client_that_leaves_while_a_write_is_under_way(void)
{
    int far;
    begin();
    struct oribi_conn *c = begin_store(&far, 5000);
    close(far);
    turn();
    ok_eq(closed_count, 0);
    let_go();
    for (int i = 0; i < 1000 && closed_count == 0; i++) {
        oribi_reactor_wait(&r, 1000);
        turn();
    }
    ok_eq(closed_count, 1);
    (void)c;
    end_store(-1);
}

static void test_a_connection_closed_while_a_write_is_under_way(void)
{
    int far;
    begin();
    struct oribi_conn *c = begin_store(&far, 5000);
    int64_t before = oribi_mem_blocks();
    oribi_conn_abort(&r, c, false);
    turn();
    ok_eq(closed_count, 1);
    let_go();
    end_store(far);
    ok(oribi_mem_blocks() < before);
}

/* --- forms that are taken apart --- */

enum { FORM_FILES = 3, FORM_FILE_BYTES = 300000 };

/* Sends a form with three large files; turns until it rests. */
static struct oribi_conn *send_form(int *far)
{
    static const char type[] = "Content-Type: multipart/form-data; boundary=b\r\n";
    static char form[FORM_FILES * (FORM_FILE_BYTES + 200)];
    size_t len = 0;
    for (int i = 0; i < FORM_FILES; i++) {
        len += (size_t)snprintf(form + len, 200,
                                "--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"%d\"\r\n\r\n", i);
        memset(form + len, 'a' + i, FORM_FILE_BYTES);
        len += FORM_FILE_BYTES;
        len += (size_t)snprintf(form + len, 3, "\r\n");
    }
    len += (size_t)snprintf(form + len, 6, "--b--");
    char text[200];
    struct oribi_conn *c = open_conn(far);
    (void)snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nHost: a\r\n%sContent-Length: %zu\r\n\r\n", type, len);
    send_text(*far, text);
    for (size_t at = 0; at < len && refused_status == 0; at += 50000) {
        size_t n = len - at < 50000 ? len - at : 50000;
        if (write(*far, form + at, n) != (ssize_t)n)
            fail("write");
        turn_stored(c);
    }
    return c;
}

static bool is_file_of(const struct oribi_body_piece *piece, char what)
{
    static char back[FORM_FILE_BYTES + 1];
    if (piece->len != FORM_FILE_BYTES || lseek(piece->fd, 0, SEEK_CUR) != 0 ||
        pread(piece->fd, back, sizeof(back), 0) != FORM_FILE_BYTES)
        return false;
    for (size_t i = 0; i < FORM_FILE_BYTES; i++)
        if (back[i] != what)
            return false;
    return true;
}

static void check_form(bool writer)
{
    int far;
    begin();
    r.config.multipart_stream = true;
    r.writer_failed = !writer;
    file_writes = own_writes = 0;
    struct oribi_conn *c = send_form(&far);
    ok_eq(c->state, ORIBI_CONN_QUEUED);
    struct oribi_conn_request *exchange = oribi_reactor_pop(&r);
    ok(exchange && exchange->parts && exchange->parts->file_count == FORM_FILES);
    struct oribi_body_piece piece;
    for (uint32_t i = 0; i < FORM_FILES; i++)
        ok(oribi_parts_piece(exchange->parts, &exchange->body, 2 * i + 1, &piece) && is_file_of(&piece, 'a' + (char)i));
    ok(file_writes >= FORM_FILES);
    ok_eq(own_writes, writer ? 0 : file_writes);
    oribi_conn_finish(&r, c, true);
    turn();
    ok_eq(r.budget.memory_used, 0);
    ok_eq(r.budget.file_used, 0);
    close(far);
    end();
}

static void test_files_of_a_form_are_written_by_the_writer(void)
{
    check_form(true);
    check_form(false);
}

static void test_a_file_of_a_form_that_cannot_be_written(void)
{
    for (int left = 0; left < 4; left++) {
        int far;
        begin();
        int64_t before = oribi_mem_blocks();
        r.config.multipart_stream = true;
        writes_left = left;
        own_writes = 0;
        (void)send_form(&far);
        ok_eq(refused_status, 507);
        ok_eq(own_writes, 0);
        writes_left = -1;
        close(far);
        turn();
        ok_eq(r.budget.memory_used, 0);
        end();
        ok(oribi_mem_blocks() < before);
    }
}

/* Where the system gives no thread, the reactor's writes. */
static void test_without_a_writer_the_body_is_written_all_the_same(void)
{
    int writes;
    begin();
    own_writes = 0;
    r.writer_failed = true;
    r.config.limits.body_memory_max = 128 * 1024;
    ok(temp_file_body(1 << 20, &writes));
    ok(writes > 0 && own_writes == writes);
    ok(r.writer == NULL);
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
    test_nothing_is_read_while_a_write_is_under_way();
    test_others_go_on_while_a_write_is_under_way();
    test_a_slow_disk_is_not_the_clients_fault();
    test_a_write_that_fails_is_answered_once();
    test_a_client_that_leaves_while_a_write_is_under_way();
    test_a_connection_closed_while_a_write_is_under_way();
    test_files_of_a_form_are_written_by_the_writer();
    test_a_file_of_a_form_that_cannot_be_written();
    test_without_a_writer_the_body_is_written_all_the_same();
}

int main(void)
{
    reactor_thread = pthread_self();
    (void)sem_init(&gate, 0, 0);
    (void)sem_init(&begun, 0, 0);
    return run_with_both_sources(run_all);
}
