/* Files that workers hand over with their answers: content, pieces, clients that are slow or leave, descriptors that
 * are no files, files that change, bytes that are not in memory, and ends of each side between a descriptor and its
 * record. fake_end() counts descriptors. */
#include "frontend/answer_file.c"

#include "fakes.h"
#include "fakes_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KIB = 1024, PIECE = ORIBI__ANSWER_FILE_PIECE_BYTES };

static const struct fake_request get;
static const struct fake_request slow = {.streams = true};

static int far;
static char path[32];

/* A file of n bytes, of which the last 40 are letters. */
static int a_file(int64_t n)
{
    (void)snprintf(path, sizeof(path), "/tmp/oribi-file-XXXXXX");
    int both = mkstemp(path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    static char bytes[64 * KIB];
    ok_named(both >= 0 && fd >= 0, "a file");
    memset(bytes, 'f', sizeof(bytes));
    for (int64_t done = 0; done < n; done += (int64_t)sizeof(bytes))
        fake_must(pwrite(both, bytes, (size_t)(n - done < (int64_t)sizeof(bytes) ? n - done : (int64_t)sizeof(bytes)),
                         done) > 0,
                  "a full disk");
    close(both);
    return fd;
}

static void drop(int fd)
{
    close(fd);
    ok_eq(unlink(path), 0);
}

static void heads(int64_t n)
{
    char head[96];
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %lld\r\n\r\n", (long long)n);
    fake_answers(far, head);
}

/* A file of n bytes, and a call whose answer has this length. */
static int begin(struct fake_request request, int64_t n, int64_t length, int *fd)
{
    *fd = a_file(n);
    fake_begin((struct fake_setup){0});
    int call = fake_out(request, &far);
    heads(length);
    return call;
}

static void end(int fd)
{
    fake_end();
    drop(fd);
}

static void test_a_file_goes_to_the_client_with_its_head(void)
{
    int fd;
    int call = begin(get, 100 * KIB, 90 * KIB, &fd);
    fake_hands_over(far, fd, 10 * KIB, 90 * KIB);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 92160. ");
    ok(fake_gauge(FAKE_IDLE_CHANNELS) == 1 && fake_gauge(FAKE_FILES) == 0);
    end(fd);
}

static void test_a_long_file_in_pieces_while_the_channel_is_free(void)
{
    int fd;
    int call = begin((struct fake_request){.keeps = true}, 3 * PIECE + 7, 3 * PIECE + 7, &fd);
    fake_hands_over(far, fd, 0, 3 * PIECE + 7);
    fake_channels();
    is_str(fake_heard(call), "+ - begin 200 131072 file ");
    ok(fake_gauge(FAKE_IDLE_CHANNELS) == 1 && fake_gauge(FAKE_OUT) == 0 && fake_gauge(FAKE_FILES) == 1);
    ok_eq(fake_wait_ms(), 0);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 131072 file more 131072 more 131072 more fffffff. ");
    ok_eq(fake_gauge(FAKE_FILES), 0);
    fake_goes(call);
    end(fd);
}

static void test_a_file_behind_bytes_of_its_answer(void)
{
    int fd;
    int call = begin(get, 20 * KIB, 20 * KIB + 5, &fd);
    fake_answers(far, "hello");
    fake_hands_over(far, fd, 0, 20 * KIB);
    fake_turn();
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200  more hello file more 20480. ");
    end(fd);
}

static void test_a_head_that_is_read_before_its_file_comes(void)
{
    int fd;
    int call = begin(get, 20 * KIB, 20 * KIB, &fd);
    fake_turn();
    fake_hands_over(far, fd, 0, 20 * KIB);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200  file more 20480. ");
    end(fd);
}

static void test_a_slow_client_has_little_of_a_file(void)
{
    int64_t n = 20 * PIECE;
    int fd;
    int call = begin(slow, n, n, &fd);
    fake_hands_over(far, fd, 0, n);
    for (int i = 0; i < 5; i++)
        fake_turn();
    ok(fake_is_blocked(call));
    ok(fake_untaken(call) <= 2 * PIECE);
    int64_t taken = 0;
    while (fake_upstream(call) && taken < n) {
        int64_t now = fake_untaken(call);
        ok_named(now > 0 && now <= 2 * PIECE, "bytes that the client has not taken: %lld", (long long)now);
        taken += now;
        fake_takes(call, now);
        fake_turn();
    }
    ok_eq(fake_gauge(FAKE_FILES), 0);
    end(fd);
}

static void test_a_client_that_goes(void)
{
    int fd = a_file(4 * PIECE);
    for (int i = 0; i < 4; i++) {
        fake_begin((struct fake_setup){0});
        int call = fake_out((struct fake_request){.streams = i == 3, .goes_in = i == 0 ? 'b' : i == 1 ? 'm' : 0}, &far);
        heads(4 * PIECE);
        fake_hands_over(far, fd, 0, 4 * PIECE);
        fake_channels();
        if (i == 3)
            fake_turn(); /* blocked */
        if (i >= 2)
            fake_goes(call);
        fake_turn();
        ok(!fake_upstream(call));
        ok_eq(fake_gauge(FAKE_FILES), 0);
        fake_end(); /* counts descriptors */
    }
    drop(fd);
}

static void test_a_file_that_is_too_short(void)
{
    int fd;
    int call = begin(get, 2 * PIECE, 3 * PIECE, &fd);
    fake_hands_over(far, fd, 0, 3 * PIECE);
    fake_turn();
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 131072 file more 131072 cut 502 ");
    is_str(fake_reason(call), "the file of an answer has become shorter");
    ok(fake_gauge(FAKE_IDLE_CHANNELS) == 1 && fake_gauge(FAKE_FILES) == 0);
    fake_end();
    const int64_t beyond[] = {2 * PIECE, 2 * PIECE + 1, INT64_MAX - 20 * KIB};
    for (int i = 0; i < 3; i++) {
        fake_begin((struct fake_setup){0});
        call = fake_out(get, &far);
        heads(20 * KIB);
        fake_hands_over(far, fd, beyond[i], 20 * KIB);
        fake_turn();
        fake_turn();
        is_str(fake_heard(call), "+ - begin 200  file cut 502 ");
        fake_end();
    }
    drop(fd);
}

static void test_a_file_that_grows_has_the_length_of_its_answer(void)
{
    int fd;
    int call = begin(get, 20 * KIB, 20 * KIB, &fd);
    int more = open(path, O_WRONLY | O_APPEND);
    fake_hands_over(far, fd, 0, 20 * KIB);
    ok_eq(write(more, "more", 4), 4);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 20480. ");
    close(more);
    end(fd);
}

/* With positions that need more than 32 bits. */
static void test_the_end_of_a_file_of_five_gibibytes(void)
{
    const int64_t gib = 1 << 30;
    int fd = a_file(0);
    int both = open(path, O_WRONLY);
    if (ftruncate(both, 5 * gib) < 0) {
        diag("skipped: this file system has no files of 5 GiB");
    } else {
        ok_eq(pwrite(both, "the end", 7, 5 * gib - 7), 7);
        fake_begin((struct fake_setup){0});
        int call = fake_out(get, &far);
        heads(PIECE + 7);
        fake_hands_over(far, fd, 5 * gib - PIECE - 7, PIECE + 7);
        for (int i = 0; i < 10000 && fake_upstream(call); i++) {
            fake_passes_ms(1);
            fake_turn();
        }
        const char *heard = fake_heard(call);
        ok(strlen(heard) > 14 && strcmp(heard + strlen(heard) - 14, "more the end. ") == 0);
        fake_end();
    }
    close(both);
    drop(fd);
}

/* Ends of streams that the client has seen, and bytes of DATA. */
static int count_ends(const char *frames, int64_t *bytes)
{
    int ends = 0;
    *bytes = 0;
    for (const char *at = frames; *at; at = strchr(at, ' ') + 1) {
        const char *plus = *at == 'D' ? strchr(at, '+') : NULL;
        ends += *at == 'E';
        *bytes += plus ? strtoll(plus, NULL, 10) : 0;
    }
    return ends;
}

/* Streams of one connection, each with a file: one is reset, the others come whole. */
static void test_streams_with_files_are_reset(void)
{
    enum { STREAMS = 4, CANCEL = 8, WINDOW = 1000 };
    int fd = a_file(4 * PIECE);
    for (int reset = 0; reset < STREAMS; reset++) {
        int32_t ids[STREAMS];
        int64_t bytes;
        fake_begin((struct fake_setup){.workers = STREAMS});
        int client = fake_h2_settled();
        fake_window(client, WINDOW);
        fake_settle();
        for (int i = 0; i < STREAMS; i++) {
            ids[i] = fake_asks(client, (struct fake_ask){0});
            fake_settle();
            if (i == 0)
                far = fake_take(0); /* the others use the channel that is free again */
            (void)fake_asked(far);
            heads(4 * PIECE);
            fake_hands_over(far, fd, 0, 4 * PIECE);
            fake_settle();
        }
        ok_eq(fake_gauge(FAKE_FILES), STREAMS);
        fake_resets(client, ids[reset], CANCEL);
        fake_settle();
        ok_eq(fake_gauge(FAKE_FILES), STREAMS - 1);
        for (int i = 0; i < STREAMS; i++)
            if (i != reset)
                fake_opens(client, ids[i], 4 * PIECE);
        fake_settle();
        ok_eq(count_ends(fake_frames(client), &bytes), STREAMS - 1);
        ok_eq(bytes, (STREAMS - 1) * 4 * PIECE + WINDOW);
        ok(fake_gauge(FAKE_FILES) == 0 && fake_gauge(FAKE_STREAMS) == 0);
        fake_end();
    }
    drop(fd);
}

/* --- ends between a descriptor and its record --- */

enum moment { DESCRIPTOR, RECORD, BOTH, MOMENTS };

static void hands_over_until(enum moment moment, int fd)
{
    if (moment != RECORD)
        fake_passes_file(far, fd, 0);
    if (moment != DESCRIPTOR)
        fake_says_file(far, 20 * KIB);
}

static void test_workers_that_die_around_their_files(void)
{
    int fd = a_file(20 * KIB);
    for (int read_before = 0; read_before < 2; read_before++)
        for (enum moment moment = DESCRIPTOR; moment < MOMENTS; moment++) {
            fake_begin((struct fake_setup){0});
            int call = fake_out(get, &far);
            heads(20 * KIB);
            if (read_before)
                fake_turn();
            hands_over_until(moment, fd);
            fake_far_dies(far);
            fake_turn();
            fake_turn();
            ok(!fake_upstream(call) && fake_gauge(FAKE_FILES) == 0 && fake_gauge(FAKE_CHANNELS) == 0);
            is_str(fake_heard(call) + 4, moment == BOTH
                                             ? (read_before ? "begin 200  file more 20480. " : "begin 200 20480. ")
                                         : moment == RECORD && !read_before ? "fail 502 "
                                                                            : "begin 200  cut 502 ");
            fake_end();
        }
    drop(fd);
}

/* Its worker goes on, and hands over what is left of the file. */
static void test_clients_that_go_around_a_file(void)
{
    int fd = a_file(20 * KIB);
    for (int read_before = 0; read_before < 2; read_before++)
        for (enum moment moment = DESCRIPTOR; moment < MOMENTS; moment++) {
            fake_begin((struct fake_setup){0});
            int call = fake_out(get, &far);
            heads(20 * KIB);
            if (read_before)
                fake_turn();
            hands_over_until(moment, fd);
            fake_goes(call);
            fake_turn();
            ok(fake_is_over(far));
            ok_eq(fake_gauge(FAKE_ABANDONED), 1);
            fake_far_closes(far);
            fake_turn();
            ok(fake_gauge(FAKE_ABANDONED) == 0 && fake_gauge(FAKE_CHANNELS) == 0);
            fake_end();
        }
    drop(fd);
}

/* Descriptors are on their way in both directions, and nobody takes them. */
static void test_frontends_that_end_around_a_file(void)
{
    int fd = a_file(20 * KIB);
    for (enum moment moment = DESCRIPTOR; moment < MOMENTS; moment++) {
        fake_begin((struct fake_setup){0});
        (void)fake_out(get, &far);
        heads(20 * KIB);
        hands_over_until(moment, fd);
        fake_end();
    }
    drop(fd);
}

/* The kernel keeps them with the socket, at the expense of their sender. */
static void test_more_descriptors_than_records(void)
{
    int fd;
    int call = begin(get, 20 * KIB, 20 * KIB, &fd);
    fake_hands_over(far, fd, 0, 20 * KIB);
    for (int i = 0; i < 50; i++)
        fake_passes_file(far, fd, 0);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200 20480. ");
    call = fake_submit(get);
    fake_dispatch();
    (void)fake_asked(far);
    heads(20 * KIB);
    fake_turn();
    fake_says_file(far, 20 * KIB); /* it finds one of them */
    fake_turn();
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200  file more 20480. ");
    fake_far_dies(far);
    fake_turn();
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    end(fd);
}

/* --- a descriptor that the system does not let in --- */

/* The frontend reads its channels without a free descriptor. */
static void reads_without_descriptors(void)
{
    struct rlimit limit;
    int free_fd = dup(STDIN_FILENO);
    ok(free_fd >= 0 && close(free_fd) == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const struct rlimit low = {.rlim_cur = (rlim_t)free_fd, .rlim_max = limit.rlim_max};
    ok_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    fake_channels();
    ok_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void test_a_file_that_does_not_come_in(void)
{
    int fd;
    int call = begin(get, 20 * KIB, 20 * KIB, &fd);
    ok(fake_takes_files(far));
    fake_hands_over(far, fd, 0, 20 * KIB);
    reads_without_descriptors();
    is_str(fake_heard(call), "+ - + "); /* nothing was answered: a safe request is made again */
    ok_eq(fake_gauge(FAKE_CHANNELS), 0);
    fake_dispatch();
    far = fake_take(0);
    (void)fake_asked(far);
    ok(!fake_takes_files(far));
    fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    fake_turn();
    is_str(fake_heard(call), "+ - + - begin 200 ok. ");
    fake_passes_ms(ORIBI__ANSWER_FILES_PAUSE_MS);
    call = fake_submit(get);
    fake_dispatch();
    ok(fake_takes_files(far));
    end(fd);
}

static void test_a_file_that_does_not_come_in_for_who_cannot_ask_again(void)
{
    int fd = a_file(20 * KIB);
    for (int has_begun = 0; has_begun < 2; has_begun++) {
        fake_begin((struct fake_setup){0});
        int call = fake_out(has_begun ? get : (struct fake_request){.method = "POST"}, &far);
        heads(20 * KIB);
        if (has_begun)
            fake_turn();
        fake_hands_over(far, fd, 0, 20 * KIB);
        reads_without_descriptors();
        is_str(fake_heard(call), has_begun ? "+ - begin 200  cut 502 " : "+ - fail 502 ");
        is_str(fake_reason(call), "no descriptor for the file of an answer");
        ok_eq(fake_gauge(FAKE_CHANNELS), 0);
        fake_end();
    }
    drop(fd);
}

/* --- hostile workers --- */

/* Hands this over in the place of a file, with this head. */
static const char *hears(const char *head, int fd, int64_t n, const char *reason)
{
    static char heard[256];
    fake_begin((struct fake_setup){0});
    int call = fake_out(get, &far);
    fake_answers(far, head);
    fake_hands_over(far, fd, 0, n);
    fake_turn();
    fake_turn();
    snprintf(heard, sizeof(heard), "%s", fake_heard(call) + 4);
    if (reason)
        is_str(fake_reason(call), reason);
    ok(!fake_upstream(call) && fake_gauge(FAKE_FILES) == 0 && fake_gauge(FAKE_IDLE_CHANNELS) == 0);
    fake_end();
    return heard;
}

#define HEAD "HTTP/1.1 200 OK\r\nContent-Length: 20480\r\n\r\n"

static void test_descriptors_that_are_no_files(void)
{
    int fds[2];
    static const char reason[] = "a descriptor that is no file";
    ok_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    is_str(hears(HEAD, fds[0], 20 * KIB, reason), "begin 200  cut 502 ");
    close(fds[0]);
    close(fds[1]);
    ok_eq(pipe(fds), 0);
    is_str(hears(HEAD, fds[0], 20 * KIB, reason), "begin 200  cut 502 ");
    close(fds[0]);
    close(fds[1]);
    const char *places[] = {"/dev/zero", "/tmp"};
    for (int i = 0; i < 2; i++) {
        int fd = open(places[i], O_RDONLY);
        is_str(hears(HEAD, fd, 20 * KIB, reason), "begin 200  cut 502 ");
        close(fd);
    }
    int fd = a_file(20 * KIB);
    const int flags[] = {O_WRONLY, O_PATH};
    for (int i = 0; i < 2; i++) {
        int other = open(path, flags[i] | O_CLOEXEC);
        fake_begin((struct fake_setup){0});
        int call = fake_out(get, &far);
        fake_answers(far, HEAD);
        fake_hands_over(far, other, 0, 20 * KIB);
        fake_turn();
        fake_turn();
        is_str(fake_heard(call), "+ - begin 200  file cut 502 ");
        is_str(fake_reason(call), "the file of an answer cannot be read");
        fake_end();
        close(other);
    }
    drop(fd);
}

static void test_files_that_fit_no_answer(void)
{
    int fd = a_file(3 * PIECE);
    is_str(hears(HEAD, fd, 20 * KIB - 1, "a file that is not the rest of its answer"), "begin 200 20479 cut 502 ");
    is_str(hears(HEAD, fd, 20 * KIB + 1, NULL), "begin 200 20480. ");
    is_str(hears(HEAD, fd, 2 * PIECE, NULL), "begin 200 20480. ");
    is_str(hears("HTTP/1.1 200 OK\r\n\r\n", fd, 2 * PIECE, "a file of an answer without a length"),
           "begin 200 131072 cut 502 ");
    is_str(hears("HTTP/1.1 204 No Content\r\n\r\n", fd, 2 * PIECE, NULL), "begin 204 . ");
    is_str(hears("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", fd, 2 * PIECE, NULL), "fail 502 ");
    is_str(hears("HTTP/1.1 200 OK\r\nX", fd, 2 * PIECE, NULL), "fail 502 ");
    drop(fd);
}

static void test_files_that_nobody_asked_for(void)
{
    int fd;
    int call = begin(get, 20 * KIB, 5, &fd);
    fake_answers(far, "hello");
    fake_hands_over(far, fd, 0, 20 * KIB);
    fake_turn();
    is_str(fake_heard(call), "+ - begin 200  more hello. ");
    ok_eq(fake_gauge(FAKE_FILES), 0);
    call = fake_submit(get); /* on another channel */
    fake_turn();
    fake_turn();
    ok(fake_take(0) >= 0);
    ok_eq(fake_gauge(FAKE_CHANNELS), 1);
    fake_goes(call);
    end(fd);
}

/* --- bytes that are not in memory --- */

/* The kernel says so of each file that was dropped from memory; what can be dropped is on a disk. */
static void test_bytes_that_have_to_be_fetched(void)
{
    int64_t n = 40 * PIECE;
    int fd = a_file(n);
    char byte;
    (void)fsync(fd);
    (void)posix_fadvise(fd, 0, n, POSIX_FADV_DONTNEED);
    if (oribi_os_read_at_now(fd, &byte, 1, n / 2) != ORIBI_AGAIN)
        diag("this file system keeps files in memory, or does not tell: the case sees less");
    fake_begin((struct fake_setup){0});
    int call = fake_out((struct fake_request){.keeps = true, .streams = false}, &far);
    heads(n);
    fake_hands_over(far, fd, 0, n);
    for (int i = 0; i < 10000 && fake_gauge(FAKE_FILES) == 0; i++)
        fake_turn();
    for (int i = 0; i < 10000 && fake_gauge(FAKE_FILES) == 1; i++) {
        if (fake_wait_ms() != 0) {
            ok_named(fake_wait_ms() > 0, "it looks again");
            usleep(1000); /* of the disk, which no event tells of */
        }
        fake_passes_ms(1);
        fake_turn();
    }
    ok_eq(fake_gauge(FAKE_FILES), 0);
    const char *heard = fake_heard(call);
    ok(strlen(heard) > 2 && strcmp(heard + strlen(heard) - 2, ". ") == 0);
    fake_goes(call);
    end(fd);
}

static void test_beyond_the_maximum_workers_send_their_files(void)
{
    int fd = a_file(4 * PIECE);
    fake_begin((struct fake_setup){.channels = ORIBI__ANSWER_FILES_MAX + 2});
    (void)fake_out(slow, &far);
    for (int i = 0; i < ORIBI__ANSWER_FILES_MAX; i++) {
        ok_named(fake_takes_files(far), "the worker may hand over file %d", i);
        heads(4 * PIECE);
        fake_hands_over(far, fd, 0, 4 * PIECE);
        fake_channels();
        (void)fake_submit(slow); /* on the channel that is free again */
        fake_dispatch();
        (void)fake_asked(far);
    }
    ok_eq(fake_gauge(FAKE_FILES), ORIBI__ANSWER_FILES_MAX);
    ok(!fake_takes_files(far));
    end(fd);
}

int main(void)
{
    test_a_file_goes_to_the_client_with_its_head();
    test_a_long_file_in_pieces_while_the_channel_is_free();
    test_a_file_behind_bytes_of_its_answer();
    test_a_head_that_is_read_before_its_file_comes();
    test_a_slow_client_has_little_of_a_file();
    test_a_client_that_goes();
    test_a_file_that_is_too_short();
    test_a_file_that_grows_has_the_length_of_its_answer();
    test_the_end_of_a_file_of_five_gibibytes();
    test_streams_with_files_are_reset();
    test_workers_that_die_around_their_files();
    test_clients_that_go_around_a_file();
    test_frontends_that_end_around_a_file();
    test_more_descriptors_than_records();
    test_a_file_that_does_not_come_in();
    test_a_file_that_does_not_come_in_for_who_cannot_ask_again();
    test_descriptors_that_are_no_files();
    test_files_that_fit_no_answer();
    test_files_that_nobody_asked_for();
    test_bytes_that_have_to_be_fetched();
    test_beyond_the_maximum_workers_send_their_files();
    return done_testing();
}
