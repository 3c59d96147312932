/* Answers of several pieces: text and parts of a file, in order through a socket that takes little, and the end of the
 * connection where the file comes up short. */
#include "base/mem_counted.h"
#include "reactor_lab.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <fcntl.h>
#include <stdlib.h>

enum { FILE_BYTES = 3 * 1024 * 1024, PIECES = 17 };

static char *file_text;

static int file_with_text(void)
{
    int fd;
    for (size_t i = 0; i < FILE_BYTES; i++)
        file_text[i] = (char)(i * 2654435761u >> 13);
    ok_eq(oribi_os_temp_file(&fd), 0);
    ok_eq(pwrite(fd, file_text, FILE_BYTES, 0), FILE_BYTES);
    return fd;
}

/* A called request on a connection with a small socket buffer. */
static struct oribi_conn *called(int *far)
{
    begin();
    struct oribi_conn *c = open_conn(far);
    int small = 1;
    (void)setsockopt(c->watch.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    send_text(*far, REQUEST);
    turn();
    ok(oribi_reactor_pop(&r) != NULL);
    return c;
}

/* Reads until the connection rests, or is closed. Gives the bytes read. */
static size_t collect(int far, char *dst, size_t cap)
{
    size_t len = 0;
    for (int idle = 0; idle < 3;) {
        ssize_t n = recv(far, dst + len, cap - len, MSG_DONTWAIT);
        idle = n > 0 ? 0 : idle + 1;
        len += n > 0 ? (size_t)n : 0;
        turn();
    }
    return len;
}

static int descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 200; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Each piece has 30 bytes of text; the file's bytes are spread over it. */
static size_t make_pieces(struct oribi_piece *pieces, int64_t len, char *expected)
{
    static const char text[] = "\r\n--thirty bytes of a text----";
    size_t n = 0;
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = (struct oribi_piece){{(char *)(uintptr_t)text, 30}, (PIECES - i) * 1000, i % 5 ? len : 0};
        memcpy(expected + n, text, 30);
        memcpy(expected + n + 30, file_text + pieces[i].offset, (size_t)pieces[i].len);
        n += 30 + (size_t)pieces[i].len;
    }
    return n;
}

static void check_pieces(int64_t len)
{
    struct oribi_piece pieces[PIECES];
    char *expected = malloc(PIECES * ((size_t)len + 30));
    char *got = malloc(PIECES * ((size_t)len + 30) + 1);
    int before = descriptors();
    int fd = file_with_text();
    int far;
    struct oribi_conn *c = called(&far);
    int open = descriptors();
    size_t n = make_pieces(pieces, len, expected);
    ok_eq(oribi_conn_send_pieces(&r, c, fd, pieces, PIECES), 0);
    ok_named(descriptors() <= open + 1, "one copy of the descriptor for %d pieces", PIECES);
    oribi_os_close(fd);
    oribi_conn_finish(&r, c, false);
    size_t got_len = collect(far, got, PIECES * ((size_t)len + 30) + 1);
    ok_named(got_len == n && memcmp(got, expected, n) == 0, "%zu of %zu bytes, in order", got_len, n);
    ok_eq(c->state, ORIBI_CONN_IDLE);
    ok_eq(bytes_sent, n);
    close(far);
    end();
    ok_eq(descriptors(), before);
    free(expected);
    free(got);
}

static void test_pieces_arrive_in_order(void)
{
    check_pieces(10);
    check_pieces(5000);
    check_pieces(300000);
}

static void test_no_file_is_needed_for_text(void)
{
    int far;
    struct oribi_conn *c = called(&far);
    struct oribi_piece piece = {{(char *)(uintptr_t) "text", 4}, 0, 0};
    ok_eq(oribi_conn_send_pieces(&r, c, -1, &piece, 1), 0);
    ok_eq(oribi_conn_send_pieces(&r, c, -1, NULL, 0), 0);
    oribi_conn_finish(&r, c, false);
    char got[9];
    ok_eq(collect(far, got, sizeof(got)), 4);
    close(far);
    end();
}

/* `late`: the file shrinks while its first bytes wait for the client. */
static void check_short(bool late)
{
    int far;
    int fd = file_with_text();
    struct oribi_conn *c = called(&far);
    struct oribi_piece pieces[2] = {{{(char *)(uintptr_t) "first", 5}, 0, late ? 1000000 : 10},
                                    {{(char *)(uintptr_t) "second", 6}, 2000000, 1000}};
    char *got = malloc(FILE_BYTES);
    if (!late)
        ok_eq(ftruncate(fd, 2000500), 0);
    int result = oribi_conn_send_pieces(&r, c, fd, pieces, 2);
    ok_eq(result, late ? 0 : ORIBI_ESYS);
    if (late) {
        ok_eq(ftruncate(fd, 2000500), 0);
        oribi_conn_finish(&r, c, false);
    } else {
        ok(c->broken);
        oribi_conn_abort(&r, c, false);
    }
    size_t n = collect(far, got, FILE_BYTES);
    ok_eq(n, (late ? 1000005 : 15) + 6 + 500);
    ok_eq(recv(far, got, 1, MSG_DONTWAIT), 0); /* closed: the length was not reached */
    ok_eq(r.conn_count, 0);
    oribi_os_close(fd);
    close(far);
    free(got);
    end();
}

static void test_a_file_that_is_short_ends_the_connection(void)
{
    check_short(false);
    check_short(true);
}

/* Each allocation of a queue of pieces fails once: the connection breaks, and nothing stays behind. */
static void test_no_memory_for_the_queue_breaks_the_connection(void)
{
    struct oribi_piece pieces[PIECES];
    char *expected = malloc(PIECES * 50030);
    int result = ORIBI_ENOMEM;
    int failures = 0;
    for (uint64_t n = 1; result < 0 && n < 50; n++) {
        int before = descriptors();
        int far;
        int fd = file_with_text();
        struct oribi_conn *c = called(&far);
        (void)make_pieces(pieces, 50000, expected);
        allocations_tried = 0;
        fail_at = n;
        result = oribi_conn_send_pieces(&r, c, fd, pieces, PIECES);
        fail_at = 0;
        failures += result < 0;
        ok(result == 0 || (result == ORIBI_ENOMEM && c->broken));
        oribi_conn_abort(&r, c, false);
        oribi_os_close(fd);
        close(far);
        end();
        ok_eq(descriptors(), before);
    }
    ok_eq(result, 0);
    ok_named(failures >= 4, "%d allocations", failures); /* the queue, its text, its list twice */
    free(expected);
}

static void run_all(void)
{
    test_pieces_arrive_in_order();
    test_no_file_is_needed_for_text();
    test_a_file_that_is_short_ends_the_connection();
    test_no_memory_for_the_queue_breaks_the_connection();
}

int main(void)
{
    file_text = malloc(FILE_BYTES);
    int result = run_with_both_sources(run_all);
    free(file_text);
    return result;
}
