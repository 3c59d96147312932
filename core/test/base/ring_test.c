/* Rings: records in order, room, taking an end over, nonsense in the memory, and a million records between two threads
 * (ORIBI_SOAK=1: ten million). */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/ring.h"

#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 7, ELSEWHERE = 9 };

static struct oribi_ring *ring;
static struct oribi_ring_writer writer;
static struct oribi_ring_reader reader;
static char room[ORIBI_RING_BYTES];

static void begin(void)
{
    ring = aligned_alloc(64, sizeof(*ring));
    memset(ring, 0, sizeof(*ring));
    oribi_ring_writer_init(&writer, ring);
    oribi_ring_reader_init(&reader, ring);
}

static void end(void)
{
    free(ring);
}

static bool write_bytes(const char *p, size_t n)
{
    struct iovec vec[2] = {{(void *)p, n / 3}, {(void *)(p + n / 3), n - n / 3}};
    return oribi_ring_write(&writer, BYTES, vec, 2, n);
}

static void test_records_come_in_order_and_whole(void)
{
    begin();
    struct oribi_ring_record record;
    ok(!oribi_ring_waits(&reader));
    ok_eq(oribi_ring_next(&reader, BYTES, &record), 0);
    ok(write_bytes("GET / HTTP/1.1", 14));
    ok(oribi_ring_write_head(&writer, &(struct oribi_ring_record){.length = 1u << 31, .kind = ELSEWHERE, .mark = 3}));
    ok(write_bytes("", 0));
    ok(oribi_ring_waits(&reader));
    ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
    ok_eq(record.length, 14);
    ok_eq(oribi_ring_take(&reader, room, 5), 5);
    ok_eq(oribi_ring_take(&reader, room + 5, sizeof(room)), 9);
    ok(memcmp(room, "GET / HTTP/1.1", 14) == 0);
    ok_eq(oribi_ring_take(&reader, room, sizeof(room)), 0);
    ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
    ok(record.kind == ELSEWHERE && record.length == 1u << 31 && record.mark == 3);
    ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
    ok_eq(record.length, 0);
    ok_eq(oribi_ring_take(&reader, room, 1), 0);
    ok(!oribi_ring_waits(&reader));
    end();
}

static void test_the_longest_record_fits_and_one_byte_more_does_not(void)
{
    begin();
    struct oribi_ring_record record;
    static char text[ORIBI_RING_RECORD_MAX + 1];
    ok(!write_bytes(text, ORIBI_RING_RECORD_MAX + 1));
    ok(!oribi_ring_waits(&reader));
    for (int i = 0; i < 3; i++) {
        memset(text, 'a' + i, sizeof(text));
        ok(write_bytes(text, ORIBI_RING_RECORD_MAX));
        ok(!write_bytes("x", 1));
        ok(oribi_ring_write_head(&writer, &(struct oribi_ring_record){.kind = ELSEWHERE})); /* the reserve */
        ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
        ok_eq(oribi_ring_take(&reader, room, sizeof(room)), ORIBI_RING_RECORD_MAX);
        ok(memcmp(room, text, ORIBI_RING_RECORD_MAX) == 0);
        ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
        ok_eq(record.kind, ELSEWHERE);
    }
    end();
}

static void test_an_empty_ring_begins_at_its_front(void)
{
    begin();
    struct oribi_ring_record record;
    for (uint32_t i = 1; i < 300; i++) {
        ok(write_bytes(room, i));
        ok_eq(writer.end % ORIBI_RING_BYTES, (ORIBI_RING_HEAD_BYTES + i + 15) / 16 * 16);
        (void)oribi_ring_next(&reader, BYTES, &record);
        ok_eq(oribi_ring_take(&reader, room, sizeof(room)), i);
    }
    end();
}

/* Also where records lie across the end of the memory, and positions have wrapped around. */
static void test_many_records_with_some_always_unread(void)
{
    begin();
    struct oribi_ring_record record;
    static char text[1000];
    uint32_t written = 0;
    uint32_t read = 0;
    bool right = true;
    uint32_t first = UINT32_MAX - 5 * ORIBI_RING_BYTES + 1;
    atomic_store(&ring->written, (uint64_t)first << 32 | first);
    atomic_store(&ring->taken, first);
    oribi_ring_writer_init(&writer, ring);
    oribi_ring_reader_init(&reader, ring);
    for (int i = 0; i < 20000; i++) {
        memset(text, (char)(written % 251), sizeof(text));
        while (write_bytes(text, written % 997)) {
            written++;
            memset(text, (char)(written % 251), sizeof(text));
        }
        for (int k = 0; k < 7; k++, read++) {
            right = right && oribi_ring_next(&reader, BYTES, &record) == 1 && record.length == read % 997;
            int64_t n = oribi_ring_take(&reader, room, sizeof(room));
            right = right && n == (int64_t)(read % 997) &&
                    (n == 0 || (room[0] == (char)(read % 251) && room[n - 1] == room[0]));
        }
    }
    ok(right);
    ok(written > 100000 && read > 100000);
    end();
}

static void test_ends_are_taken_over(void)
{
    begin();
    struct oribi_ring_record record;
    ok(write_bytes("abcdefgh", 8));
    ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
    ok_eq(oribi_ring_take(&reader, room, 3), 3);
    struct oribi_ring_reader other;
    oribi_ring_reader_init(&other, ring);
    ok(oribi_ring_waits(&other));
    ok_eq(oribi_ring_take(&other, room + 3, 100), 5);
    ok(memcmp(room, "abcdefgh", 8) == 0);
    struct oribi_ring_writer next;
    oribi_ring_writer_init(&next, ring);
    struct iovec vec = {"xyz", 3};
    ok(oribi_ring_write(&next, BYTES, &vec, 1, 3));
    ok_eq(oribi_ring_next(&other, BYTES, &record), 1);
    ok_eq(oribi_ring_take(&other, room, 100), 3);
    ok(memcmp(room, "xyz", 3) == 0);
    end();
}

static void test_a_record_is_taken_back_until_it_is_begun(void)
{
    struct oribi_ring_record record;
    struct oribi_ring_reader other;
    begin();
    ok(!oribi_ring_take_back(&writer)); /* there is none */
    ok(write_bytes("first", 5));
    ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
    ok(!oribi_ring_take_back(&writer));
    ok_eq(oribi_ring_take(&reader, room, 3), 3);
    ok(!oribi_ring_take_back(&writer));
    ok_eq(oribi_ring_take(&reader, room, 3), 2);
    ok(!oribi_ring_take_back(&writer));
    ok(write_bytes("second", 6));
    ok(oribi_ring_take_back(&writer));
    ok(!oribi_ring_take_back(&writer)); /* once */
    oribi_ring_reader_init(&other, ring);
    ok(oribi_ring_waits(&reader) && oribi_ring_waits(&other));
    ok_eq(oribi_ring_next(&reader, BYTES, &record), ORIBI_ECLOSED);
    ok_eq(oribi_ring_take(&other, room, sizeof(room)), ORIBI_ECLOSED);
    end();
    begin();
    ok(oribi_ring_write_head(&writer, &(struct oribi_ring_record){.kind = ELSEWHERE}));
    ok(oribi_ring_take_back(&writer));
    ok_eq(oribi_ring_next(&reader, BYTES, &record), ORIBI_ECLOSED);
    end();
}

static void test_nonsense_is_told(void)
{
    begin();
    struct oribi_ring_record record;
    atomic_store(&ring->written, (uint64_t)ORIBI_RING_BYTES + 16); /* more than there can be */
    ok_eq(oribi_ring_next(&reader, BYTES, &record), ORIBI_EBAD);
    atomic_store(&ring->written, 8); /* less than a head */
    ok_eq(oribi_ring_next(&reader, BYTES, &record), ORIBI_EBAD);
    atomic_store(&ring->written, 32);
    record = (struct oribi_ring_record){.length = 17, .kind = BYTES}; /* more than was written */
    memcpy(ring->bytes, &record, sizeof(record));
    ok_eq(oribi_ring_next(&reader, BYTES, &record), ORIBI_EBAD);
    record = (struct oribi_ring_record){.length = UINT64_MAX, .kind = BYTES};
    memcpy(ring->bytes, &record, sizeof(record));
    ok_eq(oribi_ring_next(&reader, BYTES, &record), ORIBI_EBAD);
    record = (struct oribi_ring_record){.length = 16, .kind = BYTES};
    memcpy(ring->bytes, &record, sizeof(record));
    ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
    atomic_store(&ring->written, 16); /* taken back */
    ok_eq(oribi_ring_take(&reader, room, 16), ORIBI_EBAD);
    atomic_store(&ring->taken, writer.end + 64); /* a reader that has read what was not written */
    struct iovec vec = {room, 100};
    ok(!oribi_ring_write(&writer, BYTES, &vec, 1, 100));
    atomic_store(&ring->taken, (uint64_t)UINT32_MAX << 32); /* the rest of a record that there is not */
    oribi_ring_reader_init(&reader, ring);
    ok_eq(oribi_ring_take(&reader, room, sizeof(room)), ORIBI_ECLOSED);
    atomic_store(&ring->taken, (uint64_t)(UINT32_MAX - 1) << 32);
    oribi_ring_reader_init(&reader, ring);
    ok_eq(oribi_ring_take(&reader, room, sizeof(room)), ORIBI_EBAD);
    end();
}

/* --- two threads --- */

enum { MESSAGES = 1000 * 1000, SOAK_MESSAGES = 10 * MESSAGES };

static uint32_t messages;

/* Both threads run at the same time where there are two processors. Where there is one, or they have other work, a
 * thread that waits has to sleep after some looks: after sched_yield() alone all others of the machine would have their
 * turn first, each time. */
enum { LOOKS = 2000 };

/* One more look; the sleep orders no memory, so that ThreadSanitizer sees the ring's own order alone. */
static void look_again(int *looks)
{
    if (++*looks % LOOKS == 0)
        (void)nanosleep(&(struct timespec){.tv_nsec = 20 * 1000}, NULL);
}

/* A count that one thread raises and another waits for. */

struct steps {
    _Atomic uint32_t count;
    _Atomic bool waited_for;
    pthread_mutex_t lock;
    pthread_cond_t raised;
};

#define STEPS_INIT                                                                                                     \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .raised = PTHREAD_COND_INITIALIZER                                          \
    }

static void raise_to(struct steps *steps, uint32_t count)
{
    atomic_store(&steps->count, count);
    if (!atomic_load(&steps->waited_for))
        return;
    (void)pthread_mutex_lock(&steps->lock);
    (void)pthread_cond_signal(&steps->raised);
    (void)pthread_mutex_unlock(&steps->lock);
}

static void wait_for(struct steps *steps, uint32_t count)
{
    for (int looks = 0; looks < LOOKS; looks++)
        if (atomic_load(&steps->count) >= count)
            return;
    (void)pthread_mutex_lock(&steps->lock);
    atomic_store(&steps->waited_for, true);
    while (atomic_load(&steps->count) < count)
        (void)pthread_cond_wait(&steps->raised, &steps->lock);
    atomic_store(&steps->waited_for, false);
    (void)pthread_mutex_unlock(&steps->lock);
}

static void *send_all(void *arg)
{
    char text[256];
    for (uint32_t i = 0; i < messages; i++) {
        uint32_t n = 4 + i * 7 % 200;
        memset(text, (int)(i & 0xff), n);
        memcpy(text, &i, sizeof(i));
        struct iovec vec = {text, n};
        for (int looks = 0; !oribi_ring_write(&writer, BYTES, &vec, 1, n);)
            look_again(&looks);
    }
    return arg;
}

static void test_two_threads(void)
{
    begin();
    pthread_t thread;
    struct oribi_ring_record record;
    uint32_t wrong = 0;
    messages = getenv("ORIBI_SOAK") ? SOAK_MESSAGES : MESSAGES;
    ok_eq(pthread_create(&thread, NULL, send_all, NULL), 0);
    for (uint32_t i = 0; i < messages; i++) {
        int code;
        int looks = 0;
        uint32_t number;
        while ((code = oribi_ring_next(&reader, BYTES, &record)) == 0)
            look_again(&looks);
        int64_t n = oribi_ring_take(&reader, room, sizeof(room));
        memcpy(&number, room, sizeof(number));
        wrong += code != 1 || n != 4 + i * 7 % 200 || number != i || (n > 4 && room[n - 1] != (char)(i & 0xff));
    }
    ok_eq(pthread_join(thread, NULL), 0);
    ok_eq(wrong, 0);
    end();
}

/* One takes back what the other has not begun yet: each record is had by one of both. */
enum { TAKEN_BACK = 20 * 1000 };

static struct steps rounds = STEPS_INIT;
static struct steps ends = STEPS_INIT;

static void *begin_each(void *arg)
{
    uint32_t *begun = arg;
    struct oribi_ring_record record;
    for (uint32_t i = 0; i < TAKEN_BACK; i++) {
        wait_for(&rounds, i + 1);
        oribi_ring_reader_init(&reader, ring);
        *begun += oribi_ring_next(&reader, BYTES, &record) == 1;
        raise_to(&ends, i + 1);
    }
    return NULL;
}

static void test_each_record_is_had_by_one_of_both(void)
{
    pthread_t thread;
    uint32_t begun = 0;
    uint32_t back = 0;
    begin();
    ok_eq(pthread_create(&thread, NULL, begin_each, &begun), 0);
    for (uint32_t i = 0; i < TAKEN_BACK; i++) {
        memset(ring, 0, sizeof(*ring));
        oribi_ring_writer_init(&writer, ring);
        (void)write_bytes("record", 6);
        raise_to(&rounds, i + 1);
        for (uint32_t wait = i % 50; wait > 0; wait--)
            (void)atomic_load(&ends.count);
        back += oribi_ring_take_back(&writer);
        wait_for(&ends, i + 1);
    }
    ok_eq(pthread_join(thread, NULL), 0);
    ok_eq(begun + back, TAKEN_BACK);
    end();
}

static void test_a_record_is_lent_where_it_lies(void)
{
    begin();
    struct oribi_ring_record record;
    char *p = NULL;
    ok_eq(oribi_ring_next_kind(&reader), 0);
    ok(write_bytes("0123456789", 10));
    ok_eq(oribi_ring_next_kind(&reader), BYTES);
    ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
    ok_eq(oribi_ring_take(&reader, room, 3), 3);
    uint64_t before = atomic_load(&ring->taken);
    ok_eq(oribi_ring_borrow(&reader, &p), 7);
    ok(memcmp(p, "3456789", 7) == 0 && p >= ring->bytes && p < ring->bytes + sizeof(ring->bytes));
    ok(atomic_load(&ring->taken) == before && !oribi_ring_waits(&reader));
    oribi_ring_return(&reader);
    ok(atomic_load(&ring->taken) != before);
    ok_eq(oribi_ring_borrow(&reader, &p), 0);
    end();
}

/* Its bytes lie in two pieces, which are lent one after the other. */
static void test_a_record_across_the_end_is_lent_in_pieces(void)
{
    static char text[ORIBI_RING_BYTES / 2];
    struct oribi_ring_record record;
    char *p = NULL;
    begin();
    memset(text, 'a', sizeof(text));
    ok(write_bytes(text, sizeof(text)) && write_bytes("b", 1));
    ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
    ok_eq(oribi_ring_take(&reader, room, sizeof(room)), sizeof(text));
    ok(write_bytes(text, sizeof(text) - 128));
    ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
    ok_eq(oribi_ring_take(&reader, room, sizeof(room)), 1);
    ok_eq(oribi_ring_next(&reader, BYTES, &record), 1);
    size_t n = 0;
    for (int64_t got; (got = oribi_ring_borrow(&reader, &p)) > 0; n += (size_t)got)
        ok(p[0] == 'a' && p[got - 1] == 'a' && p + got <= ring->bytes + sizeof(ring->bytes));
    oribi_ring_return(&reader);
    ok_eq(n, sizeof(text) - 128);
    atomic_store(&ring->written, (uint64_t)ORIBI_RING_BYTES * 4);
    reader.left = 5;
    ok_eq(oribi_ring_borrow(&reader, &p), ORIBI_EBAD);
    end();
}

int main(void)
{
    test_a_record_is_lent_where_it_lies();
    test_a_record_across_the_end_is_lent_in_pieces();
    test_records_come_in_order_and_whole();
    test_the_longest_record_fits_and_one_byte_more_does_not();
    test_an_empty_ring_begins_at_its_front();
    test_many_records_with_some_always_unread();
    test_ends_are_taken_over();
    test_a_record_is_taken_back_until_it_is_begun();
    test_nonsense_is_told();
    test_two_threads();
    test_each_record_is_had_by_one_of_both();
    return done_testing();
}
