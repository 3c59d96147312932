/* Output on its way to a file while the writer is slow or fails: others go on, the exchange stays until it is known how
 * the answer ends, nothing is lost or left. */
#include "event/conn_store.c"

#include "reactor_lab.h"

#include "oribi/base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { ANSWER_BYTES = 3 * 1024 * 1024 };

/* Stands in for the one of base/os/os.c: holds the writes to files, or lets them fail. */
static _Atomic int own_writes;
static _Atomic bool held;
static _Atomic bool fails;
static sem_t gate;
static sem_t begun;
static pthread_t reactor_thread;
ssize_t oribi_os_write_vec(int fd, const struct iovec *vec, size_t count)
{
    own_writes += pthread_equal(pthread_self(), reactor_thread) != 0;
    if (held) {
        (void)sem_post(&begun);
        (void)sem_wait(&gate);
    }
    if (fails) {
        errno = ENOSPC;
        return oribi_os_fail();
    }
    return writev(fd, vec, (int)count);
}

static int unkept_error;
static int unkept_count;
static int stored_count;
static void on_unkept(void *self, struct oribi_conn *c, int error)
{
    unkept_error = error;
    unkept_count++;
}

static void on_stored(void *self, struct oribi_conn *c)
{
    stored_count += c->exchange != NULL;
}

static char *text;

/* A finished answer of which most is on its way to a file; the write is held. */
static struct oribi_conn *answered(int *far)
{
    begin();
    r.hooks.unkept = on_unkept;
    r.hooks.stored = on_stored;
    r.config.response_memory_max = 1024;
    unkept_error = unkept_count = stored_count = own_writes = 0;
    held = true;
    struct oribi_conn *c = open_conn(far);
    send_text(*far, REQUEST);
    turn();
    ok(oribi_reactor_pop(&r) != NULL);
    struct iovec vec = {text, ANSWER_BYTES};
    ok_eq(oribi_conn_send(&r, c, &vec, 1, false), 0);
    oribi_conn_finish(&r, c, false);
    (void)sem_wait(&begun);
    ok_eq(c->state, ORIBI_CONN_FLUSH);
    ok(c->exchange && c->unstored);
    ok(r.unstored >= ANSWER_BYTES / 2);
    ok(r.budget.memory_used >= r.unstored);
    return c;
}

static void let_go(void)
{
    held = false;
    (void)sem_post(&gate);
}

static void end_answered(void)
{
    ok_eq(own_writes, 0);
    end();
    while (sem_trywait(&begun) == 0 || sem_trywait(&gate) == 0)
        continue;
}

/* Turns until `condition`, waiting for what the loop reports. */
#define TURN_UNTIL(condition)                                                                                          \
    do {                                                                                                               \
        oribi_reactor_wait(&r, 10);                                                                                    \
        turn();                                                                                                        \
    } while (!(condition))

static void test_what_is_on_its_way_is_sent_when_it_is_stored(void)
{
    int far;
    struct oribi_conn *c = answered(&far);
    static char got[ANSWER_BYTES];
    size_t len = 0;
    ssize_t n;
    /* Bytes in memory can be read meanwhile; then it is the writer's turn, and no turn spins. */
    for (int i = 0; i < 10; i++) {
        while ((n = read(far, got + len, sizeof(got) - len)) > 0)
            len += (size_t)n;
        turn();
    }
    ok(len > 0 && len < ANSWER_BYTES);
    ok_eq(stored_count, 0);
    oribi_reactor_wait(&r, 1);
    ok_eq(r.event_count, 0);
    let_go();
    TURN_UNTIL(stored_count == 1);
    ok(!c->exchange);
    ok_eq(r.unstored, 0);
    while (len < ANSWER_BYTES) {
        while ((n = read(far, got + len, sizeof(got) - len)) > 0)
            len += (size_t)n;
        oribi_reactor_wait(&r, 10);
        turn();
    }
    ok(memcmp(got, text, ANSWER_BYTES) == 0);
    TURN_UNTIL(c->state == ORIBI_CONN_IDLE);
    ok_eq(r.budget.memory_used, 0);
    ok_eq(r.budget.file_used, 0);
    ok_eq(unkept_count, 0);
    send_text(far, REQUEST); /* and the connection goes on */
    TURN_UNTIL(r.queue_len == 1);
    close(far);
    end_answered();
}

static void test_a_failed_write_breaks_the_answer_once(void)
{
    int far;
    (void)answered(&far);
    fails = true;
    let_go();
    TURN_UNTIL(closed_count == 1);
    ok_eq(unkept_count, 1);
    ok_eq(unkept_error, ORIBI_EFULL);
    ok_eq(r.unstored, 0);
    ok_eq(r.budget.memory_used, 0);
    fails = false;
    close(far);
    end_answered();
}

static void test_a_connection_closed_before_its_output_is_stored(void)
{
    int64_t before = oribi_mem_blocks();
    int far;
    struct oribi_conn *c = answered(&far);
    oribi_conn_abort(&r, c, true);
    ok_eq(closed_count, 1);
    ok_eq(r.unstored, 0);
    let_go();
    close(far);
    end_answered();
    ok_eq(oribi_mem_blocks(), before);
}

/* The peer cannot take what is not there. */
static void test_the_write_timeout_does_not_count_for_the_disk(void)
{
    int far;
    struct oribi_conn *c = answered(&far);
    for (int i = 0; i < 10; i++) {
        (void)read_all(far);
        turn();
    }
    ok(oribi_out_waits(c->out));
    for (int i = 0; i < 3; i++) {
        struct oribi_timeout *timer;
        enum oribi_timeout_class class;
        r.now_ms += 6000;
        while ((timer = oribi_timeouts_expired(&r.timeouts, r.now_ms, &class)) != NULL)
            oribi__conn_on_timeout(&r, c, class);
    }
    ok_eq(closed_count, 0);
    let_go();
    close(far);
    TURN_UNTIL(closed_count == 1);
    end_answered();
}

/* A call's slices: the reactor is asked to wait for room, and gets everything. */
static int awaited;
static void on_await(void *self, struct oribi_conn *c)
{
    awaited++;
    while (r.unstored > oribi_reactor_unstored_max(&r)) {
        oribi_writer_wait(r.writer, oribi_writer_ended(r.writer), 1);
        oribi_reactor_stored(&r);
    }
    memset(r.scratch, 'x', ORIBI_SCRATCH_BYTES); /* others have had it */
}

static void test_a_long_answer_waits_for_room(void)
{
    enum { LONG = 30 * 1024 * 1024, FRONT = 1000 };
    int far;
    begin();
    r.hooks.await = on_await;
    r.config.response_memory_max = 1024;
    awaited = 0;
    struct oribi_conn *c = open_conn(&far);
    send_text(far, REQUEST);
    turn();
    (void)oribi_reactor_pop(&r);
    char *all = malloc(LONG);
    for (size_t i = 0; i < LONG; i++)
        all[i] = (char)(i * 2654435761u >> 13);
    memcpy(r.scratch, all + LONG - FRONT, FRONT);
    struct iovec vec[] = {{all, LONG - FRONT}, {r.scratch, FRONT}};
    ok_eq(oribi_conn_send(&r, c, vec, 2, false), 0);
    ok(awaited > 0);
    ok(r.unstored <= oribi_reactor_unstored_max(&r) + 2 * 1024 * 1024);
    oribi_conn_finish(&r, c, true);
    size_t at = 0;
    bool same = true;
    static char part[65536];
    while (at < LONG && same) {
        ssize_t n = read(far, part, sizeof(part));
        if (n > 0) {
            same = memcmp(part, all + at, (size_t)n) == 0;
            at += (size_t)n;
            continue;
        }
        oribi_reactor_wait(&r, 10);
        turn();
    }
    ok(same);
    free(all);
    close(far);
    end();
}

static void run_all(void)
{
    test_what_is_on_its_way_is_sent_when_it_is_stored();
    test_a_failed_write_breaks_the_answer_once();
    test_a_connection_closed_before_its_output_is_stored();
    test_the_write_timeout_does_not_count_for_the_disk();
    test_a_long_answer_waits_for_room();
}

int main(void)
{
    reactor_thread = pthread_self();
    (void)sem_init(&gate, 0, 0);
    (void)sem_init(&begun, 0, 0);
    text = malloc(ANSWER_BYTES);
    for (size_t i = 0; i < ANSWER_BYTES; i++)
        text[i] = (char)(i * 2654435761u >> 13);
    return run_with_both_sources(run_all);
}
