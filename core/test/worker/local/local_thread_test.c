/* The local content of a frontend: what its thread answers on channels, what passes, its beginning and its end at any
 * moment. */
#include "worker/local/local_thread.c"

#include "tap.h"

#include "oribi/http/proxy.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { END_MS = 60 * 1000 };

static char dir[] = "/tmp/oribi-site-XXXXXX";
static char *mounts[] = {"/s=files", "/=files?index=none"};
static char *pages[] = {"404=files/page.html"};

struct place {
    struct oribi_options options;
    struct oribi_listeners listeners;
    struct oribi_scoreboard board;
    struct oribi_local_thread *local;
};

static void put(const char *name, const char *text)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    ok(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void init(struct place *place)
{
    memset(place, 0, sizeof(*place));
    oribi_options_init(&place->options);
    ok_eq(oribi_scoreboard_create(&place->board, 2), 0);
    place->listeners.count = 1;
    place->listeners.items[0] = (struct oribi_listener){.fd = -1, .frontend = true, .text = "tcp://127.0.0.1:1"};
}

static void start(struct place *place)
{
    const struct oribi_local_setup setup = {
        .options = &place->options, .listeners = &place->listeners, .workers = &place->board, .folder = dir};
    ok_eq(oribi_local_thread_start(&setup, &place->local), 0);
}

static void open_place(struct place *place)
{
    init(place);
    place->options.mounts = (struct oribi_text_list){mounts, 2};
    place->options.error_pages = (struct oribi_text_list){pages, 1};
    place->options.health = "/up";
    start(place);
    ok_eq(oribi_local_thread_result(place->local, true), 0);
}

static void deinit(struct place *place)
{
    place->options.mounts = place->options.error_pages = (struct oribi_text_list){0};
    place->options.health = NULL;
    oribi_options_deinit(&place->options);
    oribi_scoreboard_destroy(&place->board);
}

static void close_place(struct place *place)
{
    oribi_local_thread_end(place->local);
    ok(oribi_local_thread_join(place->local, END_MS));
    deinit(place);
}

/* The near end of a channel of which it has the far one. */
static int channel_as(struct place *place, uint16_t number)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    (void)fcntl(pair[1], F_SETFL, O_NONBLOCK);
    return oribi_local_thread_give(place->local, pair[1], number) ? pair[0] : -1;
}

static int channel_of(struct place *place)
{
    return channel_as(place, 1);
}

static bool ask(int fd, const char *request)
{
    char head[ORIBI_CHANNEL_HEAD_BYTES_MAX];
    const struct oribi_channel_head about = {
        .addr = "127.0.0.1", .addr_len = 9, .port = "5", .port_len = 1, .protocol = 11, .keeps = true};
    size_t n = oribi_channel_head_write(&about, head, sizeof(head));
    return n > 0 && write(fd, head, n) == (ssize_t)n && write(fd, request, strlen(request)) == (ssize_t)strlen(request);
}

/* Reads until the text comes. */
static bool hears(int fd, const char *text)
{
    char buf[4096];
    size_t n = 0;
    while (n < sizeof(buf) - 1) {
        ssize_t got = read(fd, buf + n, sizeof(buf) - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
        buf[n] = '\0';
        if (strstr(buf, text))
            return true;
    }
    buf[n] = '\0';
    (void)printf("# %s\n", buf);
    return false;
}

static bool claims(struct place *place, const char *method, const char *path)
{
    const struct oribi_head head = {.method = oribi_slice(method, strlen(method)),
                                    .path = oribi_slice(path, strlen(path)),
                                    .is_head = strcmp(method, "HEAD") == 0};
    return oribi_local_thread_claims(place->local, &head);
}

static void test_nothing_to_answer_is_no_thread(void)
{
    struct place place;
    init(&place);
    start(&place);
    ok(place.local == NULL);
    deinit(&place);
}

static void test_what_it_answers(void)
{
    struct place place;
    open_place(&place);
    int fd = channel_of(&place);
    ok(ask(fd, "GET /s/a HTTP/1.1\r\nHost: a\r\n\r\n") && hears(fd, "\r\n\r\nof a\n"));
    ok(ask(fd, "HEAD /s/a HTTP/1.1\r\nHost: a\r\n\r\n") && hears(fd, "Content-Length: 5\r\n"));
    ok(ask(fd, "GET /s/none HTTP/1.1\r\nHost: a\r\n\r\n") && hears(fd, "\r\n\r\na page\n"));
    ok(ask(fd, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n") && hears(fd, "of a\n"));
    ok(ask(fd, "GET /up HTTP/1.1\r\nHost: a\r\n\r\n") && hears(fd, "\r\n\r\nok\n"));
    ok(ask(fd, "GET /none HTTP/1.1\r\nHost: a\r\n\r\n") && hears(fd, "HTTP/1.1 199 Passed\r\n\r\n"));
    ok(ask(fd, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n") && hears(fd, "of a\n"));
    oribi_os_close(fd);
    close_place(&place);
}

static void test_what_it_claims(void)
{
    struct place place;
    open_place(&place);
    ok(claims(&place, "GET", "/s/a"));
    ok(claims(&place, "HEAD", "/none"));
    ok(!claims(&place, "POST", "/s/a"));
    ok(claims(&place, "POST", "/up"));
    ok(claims(&place, "GET", "/../a"));
    ok(oribi_local_thread_pages(place.local) != NULL);
    close_place(&place);
    init(&place);
    place.options.health = "/up";
    start(&place);
    ok_eq(oribi_local_thread_result(place.local, true), 0);
    ok(claims(&place, "GET", "/up"));
    ok(!claims(&place, "GET", "/s/a"));
    ok(oribi_local_thread_pages(place.local) == NULL);
    close_place(&place);
}

/* At any moment: before it has begun, with calls on its channels, told of a log before that. */
static void test_it_ends_at_any_moment(void)
{
    struct place place;
    long wrong = 0;
    for (int i = 0; i < 50; i++) {
        init(&place);
        place.options.mounts = (struct oribi_text_list){mounts, 2};
        place.options.health = "/up";
        start(&place);
        if (i % 3) {
            wrong += oribi_local_thread_result(place.local, true) != 0;
            int fds[4];
            for (int k = 0; k < 4; k++) {
                fds[k] = channel_of(&place);
                wrong += !ask(fds[k],
                              k % 2 ? "GET /up HTTP/1.1\r\nHost: a\r\n\r\n" : "GET /s/a HTTP/1.1\r\nHost: a\r\n\r\n");
            }
            if (i % 2)
                oribi_local_thread_reopen(place.local);
            if (i % 3 == 2)
                wrong += !hears(fds[0], "of a\n");
            for (int k = 0; k < 4; k++)
                oribi_os_close(fds[k]);
        }
        oribi_local_thread_end(place.local);
        wrong += !oribi_local_thread_join(place.local, END_MS);
        deinit(&place);
    }
    ok_eq(wrong, 0);
}

/* Its disk: in the place of the C library's. */
static atomic_bool held;
static atomic_int reads;

ssize_t pread(int fd, void *p, size_t n, off_t offset)
{
    atomic_fetch_add(&reads, 1);
    while (atomic_load(&held))
        (void)sched_yield();
    return lseek(fd, offset, SEEK_SET) < 0 ? -1 : read(fd, p, n); /* nobody else reads it */
}

/* Meanwhile it tells whose request that is, and since when. */
static void test_a_disk_that_stands_still(void)
{
    struct place place;
    uint16_t number = 99;
    init(&place);
    place.options.mounts = (struct oribi_text_list){mounts, 1};
    start(&place);
    int fd = channel_as(&place, 7);
    int other_fd = channel_as(&place, 8);
    atomic_store(&reads, 0);
    atomic_store(&held, true);
    ok(ask(fd, "GET /s/a HTTP/1.1\r\nHost: a\r\n\r\n"));
    while (atomic_load(&reads) == 0)
        (void)sched_yield();
    int64_t since_us = oribi_local_thread_busy_us(place.local, &number);
    ok(since_us > 0 && since_us <= oribi_clock_us());
    ok_eq(number, 7);
    ok(ask(other_fd, "GET /s/none HTTP/1.1\r\nHost: a\r\n\r\n"));
    ok_eq(oribi_local_thread_busy_us(place.local, &number), since_us);
    oribi_local_thread_end(place.local);
    ok(!oribi_local_thread_join(place.local, 1)); /* nobody waits for it */
    atomic_store(&held, false);
    ok(hears(fd, "of a\n"));
    ok(oribi_local_thread_join(place.local, END_MS));
    oribi_os_close(fd);
    oribi_os_close(other_fd);
    deinit(&place);
}

static void test_it_waits_for_something_to_do(void)
{
    struct place place;
    uint16_t number = 99;
    init(&place);
    place.options.mounts = (struct oribi_text_list){mounts, 1};
    start(&place);
    int fd = channel_of(&place);
    ok(ask(fd, "GET /s/a HTTP/1.1\r\nHost: a\r\n\r\n"));
    ok(hears(fd, "of a\n"));
    while (oribi_local_thread_busy_us(place.local, &number))
        (void)sched_yield();
    ok_eq(number, 0);
    oribi_os_close(fd);
    close_place(&place);
}

int main(void)
{
    char path[PATH_MAX];
    ok(mkdtemp(dir) != NULL);
    (void)snprintf(path, sizeof(path), "%s/files", dir);
    ok_eq(mkdir(path, 0700), 0);
    put("files/a", "of a\n");
    put("files/page.html", "a page\n");
    test_nothing_to_answer_is_no_thread();
    test_what_it_answers();
    test_what_it_claims();
    test_a_disk_that_stands_still();
    test_it_waits_for_something_to_do();
    test_it_ends_at_any_moment();
    (void)snprintf(path, sizeof(path), "rm -rf %s", dir);
    ok_eq(system(path), 0);
    return done_testing();
}
