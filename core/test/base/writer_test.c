/* The writer thread: what is pushed is in the file, in order, by that thread alone; what is given up leaves nothing. */
#include "base/writer.c"

#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* Stands in for the one of base/os/os.c: counts, fails and waits as a test wants. */
static _Atomic int writes;
static _Atomic int own_writes; /* by the thread of the test */
static _Atomic bool held;      /* each write waits for `gate`, having posted `begun` */
static _Atomic int writes_left = -1;
static _Atomic size_t at_most = SIZE_MAX;
static sem_t gate;
static sem_t begun;
static pthread_t test_thread;
ssize_t oribi_os_write_vec(int fd, const struct iovec *vec, size_t count)
{
    writes++;
    own_writes += pthread_equal(pthread_self(), test_thread) != 0;
    if (held) {
        (void)sem_post(&begun);
        (void)sem_wait(&gate);
    }
    if (writes_left == 0) {
        errno = ENOSPC;
        return oribi_os_fail();
    }
    writes_left -= writes_left > 0;
    return write(fd, vec[0].iov_base, vec[0].iov_len < at_most ? vec[0].iov_len : at_most);
}

static void begin(void)
{
    writes = own_writes = 0;
    held = false;
    writes_left = -1;
    at_most = SIZE_MAX;
}

static struct oribi_temp_file *await(struct oribi_writer *w)
{
    struct pollfd fd = {.fd = oribi_writer_fd(w), .events = POLLIN};
    struct oribi_temp_file *temp_file;
    while (!(temp_file = oribi_writer_collect(w))) {
        (void)poll(&fd, 1, -1);
        oribi_writer_clear(w);
    }
    return temp_file;
}

static void collect_text(struct oribi_temp_file *temp_file, const char *text)
{
    oribi_buf_append(&temp_file->bytes, text, strlen(text));
}

static bool file_holds(int fd, const char *text)
{
    char back[100];
    ssize_t n = pread(fd, back, sizeof(back), 0);
    return n == (ssize_t)strlen(text) && memcmp(back, text, (size_t)n) == 0;
}

static int open_count(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void test_pushes_are_in_the_file_in_order(void)
{
    int owner;
    begin();
    int before = open_count();
    struct oribi_writer *w = oribi_writer_try_start();
    struct oribi_temp_file *temp_file = oribi_temp_file_try_create(w, &owner);
    ok_eq(temp_file->fd, -1);
    collect_text(temp_file, "one ");
    ok_eq(oribi_temp_file_push(temp_file), 0);
    ok(temp_file->busy);
    ok(temp_file->bytes.p == NULL);
    ok(await(w) == temp_file);
    ok(temp_file->owner == &owner && !temp_file->busy);
    ok_eq(temp_file->stored, 4);
    at_most = 1; /* what a write leaves is written next */
    collect_text(temp_file, "two");
    ok_eq(oribi_temp_file_push(temp_file), 0);
    ok(await(w) == temp_file);
    ok_eq(temp_file->stored, 7);
    ok(file_holds(temp_file->fd, "one two"));
    ok_eq(writes, 4);
    ok_eq(own_writes, 0);
    oribi_temp_file_release(temp_file);
    oribi_writer_stop(w);
    ok_eq(open_count(), before);
}

static void test_what_comes_during_a_write_waits_for_the_next_push(void)
{
    begin();
    held = true;
    struct oribi_writer *w = oribi_writer_try_start();
    struct oribi_temp_file *temp_file = oribi_temp_file_try_create(w, NULL);
    collect_text(temp_file, "a");
    ok_eq(oribi_temp_file_push(temp_file), 0);
    (void)sem_wait(&begun);
    collect_text(temp_file, "b");
    ok_eq(oribi_temp_file_push(temp_file), 0); /* nothing: one is under way */
    ok_eq(temp_file->bytes.len, 1);
    ok(oribi_writer_collect(w) == NULL);
    (void)sem_post(&gate);
    ok(await(w) == temp_file);
    ok_eq(temp_file->stored, 1);
    ok_eq(writes, 1);
    (void)sem_post(&gate);
    ok_eq(oribi_temp_file_push(temp_file), 0);
    ok(await(w) == temp_file);
    ok(file_holds(temp_file->fd, "ab"));
    oribi_temp_file_release(temp_file);
    oribi_writer_stop(w);
    (void)sem_wait(&begun);
}

static void test_a_failed_write_is_told_and_stays(void)
{
    begin();
    writes_left = 0;
    struct oribi_writer *w = oribi_writer_try_start();
    struct oribi_temp_file *temp_file = oribi_temp_file_try_create(w, NULL);
    collect_text(temp_file, "a");
    ok_eq(oribi_temp_file_push(temp_file), 0);
    ok(await(w) == temp_file);
    ok_eq(temp_file->error, ORIBI_EFULL);
    ok(strcmp(temp_file->reason, "no space left on device") == 0);
    writes_left = -1;
    ok_eq(oribi_temp_file_push(temp_file), ORIBI_EFULL);
    ok(!temp_file->busy);
    oribi_temp_file_release(temp_file);
    oribi_writer_stop(w);
}

static void test_no_place_for_the_file(void)
{
    begin();
    const char *before = getenv("TMPDIR");
    char *kept = before ? strdup(before) : NULL;
    setenv("TMPDIR", "/nonexistent/nowhere", 1);
    struct oribi_writer *w = oribi_writer_try_start();
    struct oribi_temp_file *temp_file = oribi_temp_file_try_create(w, NULL);
    collect_text(temp_file, "a");
    ok_eq(oribi_temp_file_push(temp_file), 0);
    ok(await(w) == temp_file);
    ok_eq(temp_file->error, ORIBI_ESTORE);
    ok_eq(temp_file->fd, -1);
    oribi_temp_file_release(temp_file);
    oribi_writer_stop(w);
    if (kept)
        setenv("TMPDIR", kept, 1);
    else
        unsetenv("TMPDIR");
    free(kept);
}

/* The number of its descriptor is free again only behind the write. */
static void test_a_temp_file_released_during_its_write(void)
{
    begin();
    int before = open_count();
    int64_t blocks_before = oribi_mem_blocks();
    held = true;
    struct oribi_writer *w = oribi_writer_try_start();
    struct oribi_temp_file *temp_file = oribi_temp_file_try_create(w, NULL);
    struct oribi_temp_file *behind = oribi_temp_file_try_create(w, NULL);
    collect_text(temp_file, "a");
    collect_text(behind, "b");
    ok_eq(oribi_temp_file_push(temp_file), 0);
    ok_eq(oribi_temp_file_push(behind), 0);
    (void)sem_wait(&begun);
    int during = open_count();
    oribi_temp_file_release(temp_file);
    oribi_temp_file_release(behind);
    ok_eq(open_count(), during);
    (void)sem_post(&gate);
    oribi_writer_stop(w);
    ok_eq(writes, 1); /* what waited is not written */
    ok_eq(open_count(), before);
    ok_eq(oribi_mem_blocks(), blocks_before);
}

static void test_a_temp_file_released_when_it_is_done(void)
{
    begin();
    int before = open_count();
    int64_t blocks_before = oribi_mem_blocks();
    struct oribi_writer *w = oribi_writer_try_start();
    struct oribi_temp_file *temp_file = oribi_temp_file_try_create(w, NULL);
    collect_text(temp_file, "a");
    ok_eq(oribi_temp_file_push(temp_file), 0);
    while (oribi_writer_ended(w) == 0)
        oribi_writer_wait(w, 0, 60000);
    struct pollfd fd = {.fd = oribi_writer_fd(w), .events = POLLIN};
    ok_eq(poll(&fd, 1, 60000), 1);
    oribi_temp_file_release(temp_file);
    ok(oribi_writer_collect(w) == NULL); /* nobody wants to know */
    oribi_writer_stop(w);
    ok_eq(open_count(), before);
    ok_eq(oribi_mem_blocks(), blocks_before);
}

static void test_a_wait_ends_when_a_write_does(void)
{
    begin();
    struct oribi_writer *w = oribi_writer_try_start();
    uint64_t seen = oribi_writer_ended(w);
    oribi_writer_wait(w, seen, 1); /* nothing happens */
    ok_eq(oribi_writer_ended(w), seen);
    struct oribi_temp_file *temp_file = oribi_temp_file_try_create(w, NULL);
    ok_eq(oribi_temp_file_push(temp_file), 0); /* an empty file is one too */
    oribi_writer_wait(w, seen, 60000);
    ok_eq(oribi_writer_ended(w), seen + 1);
    ok(await(w) == temp_file);
    ok(temp_file->fd >= 0 && file_holds(temp_file->fd, ""));
    oribi_temp_file_release(temp_file);
    oribi_writer_stop(w);
}

static void test_without_a_thread_a_push_writes(void)
{
    begin();
    int before = open_count();
    struct oribi_temp_file *temp_file = oribi_temp_file_try_create(NULL, NULL);
    collect_text(temp_file, "a");
    ok_eq(oribi_temp_file_push(temp_file), 0);
    ok(!temp_file->busy);
    ok(file_holds(temp_file->fd, "a"));
    ok_eq(own_writes, 1);
    writes_left = 0;
    collect_text(temp_file, "b");
    ok_eq(oribi_temp_file_push(temp_file), ORIBI_EFULL);
    oribi_temp_file_release(temp_file);
    ok_eq(open_count(), before);
}

enum { TEMP_FILES = 200, ROUNDS = 20 };

static void test_many_temp_files_in_turn(void)
{
    static struct oribi_temp_file *temp_files[TEMP_FILES];
    begin();
    int64_t blocks_before = oribi_mem_blocks();
    struct oribi_writer *w = oribi_writer_try_start();
    int left = TEMP_FILES * ROUNDS;
    for (int i = 0; i < TEMP_FILES; i++) {
        temp_files[i] = oribi_temp_file_try_create(w, &temp_files[i]);
        collect_text(temp_files[i], "x");
        (void)oribi_temp_file_push(temp_files[i]);
    }
    while (left > 0) {
        struct oribi_temp_file *temp_file = await(w);
        if (--left < TEMP_FILES) {
            *(struct oribi_temp_file **)temp_file->owner = NULL;
            oribi_temp_file_release(temp_file);
            continue;
        }
        collect_text(temp_file, "x");
        (void)oribi_temp_file_push(temp_file);
    }
    for (int i = 0; i < TEMP_FILES; i++)
        oribi_temp_file_release(temp_files[i]);
    oribi_writer_stop(w);
    ok_eq(own_writes, 0);
    ok_eq(oribi_mem_blocks(), blocks_before);
}

int main(void)
{
    test_thread = pthread_self();
    (void)sem_init(&gate, 0, 0);
    (void)sem_init(&begun, 0, 0);
    test_pushes_are_in_the_file_in_order();
    test_what_comes_during_a_write_waits_for_the_next_push();
    test_a_failed_write_is_told_and_stays();
    test_no_place_for_the_file();
    test_a_temp_file_released_during_its_write();
    test_a_temp_file_released_when_it_is_done();
    test_a_wait_ends_when_a_write_does();
    test_without_a_thread_a_push_writes();
    test_many_temp_files_in_turn();
    return done_testing();
}
