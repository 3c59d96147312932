/* Forms taken apart: every split of the input gives the same frame and files, and put together they are the body. */
#include "event/parts.c"

#include "tap.h"

#include "oribi/base/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TEXT_CAP = 4096 };

#define TYPE ORIBI_SLICE("multipart/form-data; boundary=b")

static const struct oribi_parts_room ROOM = {.frame_memory_max = 1024, .part_memory_max = 4, .batch_max = 8};

/* --- the test's own hands --- */

struct taken {
    struct oribi_parts *parts;
    struct oribi_body frame;
    int error;
};

static struct taken take_with(const struct oribi_parts_room *room, const char *text, size_t n, size_t piece)
{
    struct taken taken = {0};
    const char *reason = NULL;
    oribi_body_init(&taken.frame);
    ok_eq(oribi_parts_create(TYPE, &taken.parts, &reason), 0);
    for (size_t i = 0; i < n && taken.error == 0; i += piece)
        taken.error = oribi_parts_append(taken.parts, &taken.frame, room, text + i, n - i < piece ? n - i : piece);
    if (taken.error == 0)
        taken.error = oribi_parts_finish(taken.parts, &taken.frame);
    return taken;
}

static struct taken take(const char *text, size_t piece)
{
    return take_with(&ROOM, text, strlen(text), piece);
}

static void give_back(struct taken *taken)
{
    oribi_parts_destroy(taken->parts);
    oribi_body_deinit(&taken->frame);
}

static size_t read_all(int fd, char *dst, size_t cap)
{
    ssize_t n = pread(fd, dst, cap, 0);
    return n < 0 ? 0 : (size_t)n;
}

static bool file_is(const struct oribi_parts *parts, uint32_t index, const char *text)
{
    char back[TEXT_CAP];
    size_t n = read_all(parts->files[index].body.fd, back, sizeof(back));
    return n == strlen(text) && memcmp(back, text, n) == 0 && parts->files[index].body.len == (int64_t)n &&
           lseek(parts->files[index].body.fd, 0, SEEK_CUR) == 0;
}

static bool frame_is(const struct oribi_body *frame, const char *text)
{
    char back[TEXT_CAP];
    size_t n = strlen(text);
    if (frame->len != (int64_t)n)
        return false;
    if (frame->fd < 0)
        return frame->memory.len == n && memcmp(frame->memory.p, text, n) == 0;
    return read_all(frame->fd, back, sizeof(back)) == n && memcmp(back, text, n) == 0;
}

/* The pieces one after the other, and the file that they are joined to, are this text. */
static bool whole_is(const struct taken *taken, const char *text)
{
    char back[TEXT_CAP];
    size_t n = 0;
    struct oribi_body_piece piece;
    for (uint32_t i = 0; oribi_parts_piece(taken->parts, &taken->frame, i, &piece); i++) {
        if (piece.len <= 0)
            return false;
        if (piece.fd < 0)
            memcpy(back + n, piece.bytes.p, piece.bytes.n);
        else if (pread(piece.fd, back + n, (size_t)piece.len, piece.offset) != piece.len)
            return false;
        n += (size_t)piece.len;
    }
    if (n != strlen(text) || memcmp(back, text, n) != 0)
        return false;
    int fd;
    if (oribi_parts_join(taken->parts, &taken->frame, &fd) != 0)
        return false;
    bool same = read_all(fd, back, sizeof(back)) == n && memcmp(back, text, n) == 0 && lseek(fd, 0, SEEK_CUR) == 0;
    close(fd);
    return same;
}

#define FIELD      "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nvalue of a\r\n"
#define HEAD(name) "--b\r\nContent-Disposition: form-data; name=\"" name "\"; filename=\"" name ".bin\"\r\n\r\n"
#define END        "--b--\r\n"

/* --- what goes where --- */

static void test_any_split_gives_the_same_frame_and_files(void)
{
    static const char body[] =
        FIELD HEAD("f") "01234\r\n-\r\n--a56789\r\n" HEAD("s") "abcd\r\n" HEAD("g") "\r\r\n\r\n--\r\n" END;
    static const char frame[] = FIELD HEAD("f") "\r\n" HEAD("s") "abcd\r\n" HEAD("g") "\r\n" END;
    for (size_t piece = 1; piece <= sizeof(body); piece++) {
        struct taken taken = take(body, piece);
        bool right = taken.error == 0 && taken.parts->file_count == 2 &&
                     file_is(taken.parts, 0, "01234\r\n-\r\n--a56789") && file_is(taken.parts, 1, "\r\r\n\r\n--") &&
                     frame_is(&taken.frame, frame) && whole_is(&taken, body) &&
                     taken.parts->len == (int64_t)sizeof(body) - 1 && taken.parts->file_bytes == 18 + 7;
        ok(right);
        give_back(&taken);
    }
}

static void test_part_memory_max_bytes_stay_in_the_frame_and_one_more_is_a_file(void)
{
    struct taken small = take(HEAD("f") "1234\r\n" END, 7);
    struct taken large = take(HEAD("f") "12345\r\n" END, 7);
    ok_eq(small.parts->file_count, 0);
    ok(frame_is(&small.frame, HEAD("f") "1234\r\n" END));
    ok_eq(large.parts->file_count, 1);
    ok_eq(large.parts->files[0].at, (long)strlen(HEAD("f")));
    ok(whole_is(&large, HEAD("f") "12345\r\n" END));
    give_back(&small);
    give_back(&large);
}

static void test_an_empty_file_and_a_field_have_no_file(void)
{
    static const char body[] =
        "preamble\r\n" HEAD("f") "\r\n" FIELD "--b \t\r\n"
                                 "Content-Disposition: form-data; name=a\r\n\r\na long field\r\n" END "epilogue";
    struct taken taken = take(body, 3);
    ok_eq(taken.error, 0);
    ok_eq(taken.parts->file_count, 0);
    ok(frame_is(&taken.frame, body));
    ok(whole_is(&taken, body));
    give_back(&taken);
}

static void test_a_file_name_of_another_kind_counts(void)
{
    struct taken taken =
        take("--b\r\nContent-Disposition: form-data; name=a; filename*=UTF-8''x\r\n\r\n12345\r\n" END, 100);
    ok_eq(taken.error, 0);
    ok_eq(taken.parts->file_count, 1);
    give_back(&taken);
}

static void test_the_frame_moves_to_a_file_as_any_body(void)
{
    struct oribi_parts_room room = {.frame_memory_max = 16, .part_memory_max = 4, .batch_max = 0};
    static const char body[] = FIELD HEAD("f") "0123456789\r\n" FIELD END;
    struct taken taken = take_with(&room, body, sizeof(body) - 1, 5);
    ok_eq(taken.error, 0);
    ok(taken.frame.fd >= 0);
    ok(frame_is(&taken.frame, FIELD HEAD("f") "\r\n" FIELD END));
    ok(whole_is(&taken, body));
    give_back(&taken);
}

static void test_files_beyond_the_maximum_are_in_the_frame(void)
{
    char body[(ORIBI_PARTS_FILES_MAX + 1) * 100] = "";
    size_t n = 0;
    for (int i = 0; i <= ORIBI_PARTS_FILES_MAX; i++)
        n += (size_t)snprintf(body + n, sizeof(body) - n, HEAD("f") "file %02d\r\n", i);
    (void)snprintf(body + n, sizeof(body) - n, END);
    for (size_t piece = 1; piece < 200; piece += 99) {
        struct taken taken = take_with(&ROOM, body, strlen(body), piece);
        ok_eq(taken.error, 0);
        ok_eq(taken.parts->file_count, ORIBI_PARTS_FILES_MAX);
        ok(file_is(taken.parts, ORIBI_PARTS_FILES_MAX - 1, "file 15"));
        ok(whole_is(&taken, body));
        give_back(&taken);
    }
}

/* Whoever reads one of them, the others stand where they stood. */
static void test_files_are_given_with_offsets_of_their_own(void)
{
    enum { GIVEN = 3 };
    int fds[GIVEN];
    char back[16];
    struct taken taken = take(FIELD HEAD("f") "01234\r\n" HEAD("g") "56789\r\n" END, 7);
    for (int i = 0; i < GIVEN; i++) {
        fds[i] = oribi_parts_give(taken.parts, 3);
        ok(fds[i] > 2 && lseek(fds[i], 0, SEEK_CUR) == 0);
        ok(read(fds[i], back, sizeof(back)) == 5 && memcmp(back, "56789", 5) == 0);
    }
    for (int i = 0; i < GIVEN; i++) {
        ok(lseek(fds[i], i, SEEK_SET) == i);
        ok(write(fds[i], "x", 1) == 1);
    }
    for (int i = 0; i < GIVEN; i++) {
        ok_eq(lseek(fds[i], 0, SEEK_CUR), i + 1);
        close(fds[i]);
    }
    give_back(&taken);
}

/* --- what is refused --- */

static void refused(const char *body, int error, const char *reason)
{
    for (size_t piece = 1; piece <= 64; piece += 21) {
        struct taken taken = take(body, piece);
        ok_eq(taken.error, error);
        ok(taken.parts->reason && strcmp(taken.parts->reason, reason) == 0);
        give_back(&taken);
    }
}

static void test_a_cut_body_is_refused_at_every_byte(void)
{
    static const char body[] = FIELD HEAD("f") "0123456789\r\n--b--";
    for (size_t n = 1; n < sizeof(body) - 1; n++) {
        struct taken taken = take_with(&ROOM, body, n, 11);
        ok_eq(taken.error, ORIBI_EBAD);
        give_back(&taken);
    }
}

static void test_a_delimiter_that_goes_on_is_refused(void)
{
    refused(HEAD("f") "0123456789\r\n--bx\r\n" END, ORIBI_EBAD,
            "a delimiter goes on with something else than its line's end");
}

static void test_parts_max(void)
{
    static char body[(ORIBI_FORM_PARTS_DEFAULT + 1) * 12 + 100];
    for (int beyond = 0; beyond < 2; beyond++) {
        size_t n = 0;
        for (int i = 0; i < ORIBI_FORM_PARTS_DEFAULT + beyond; i++)
            n += (size_t)snprintf(body + n, sizeof(body) - n, "--b\r\n\r\nx\r\n");
        n += (size_t)snprintf(body + n, sizeof(body) - n, END);
        struct taken taken = take_with(&ROOM, body, n, 1000);
        ok_eq(taken.error, beyond ? ORIBI_EBODY : 0);
        give_back(&taken);
    }
}

static void test_files_max(void)
{
    char body[(ORIBI_FORM_FILES_DEFAULT + 1) * 100];
    for (int beyond = 0; beyond < 2; beyond++) {
        size_t n = 0;
        for (int i = 0; i < ORIBI_FORM_FILES_DEFAULT + beyond; i++)
            n += (size_t)snprintf(body + n, sizeof(body) - n, HEAD("f") "12345\r\n");
        n += (size_t)snprintf(body + n, sizeof(body) - n, END);
        struct taken taken = take_with(&ROOM, body, n, 1000);
        ok_eq(taken.error, beyond ? ORIBI_EBODY : 0);
        give_back(&taken);
    }
}

/* Fields have a maximum together; files, and their part of the frame, do not count. */
static void test_memory_max_is_for_fields(void)
{
    static const struct oribi_parts_room room = {.frame_memory_max = 1024, .part_memory_max = 1024, .batch_max = 65536};
    static const char head[] = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
    char *block = calloc(1, 1024 * 1024);
    for (int beyond = 0; beyond < 2; beyond++) {
        struct taken taken = {0};
        const char *reason;
        oribi_body_init(&taken.frame);
        (void)oribi_parts_create(TYPE, &taken.parts, &reason);
        (void)oribi_parts_append(taken.parts, &taken.frame, &room, head, sizeof(head) - 1);
        for (int i = 0; i < (int)(ORIBI_FORM_MEMORY_DEFAULT >> 20); i++)
            ok_eq(oribi_parts_append(taken.parts, &taken.frame, &room, block, 1024 * 1024), 0);
        ok_eq(oribi_parts_append(taken.parts, &taken.frame, &room, block, (size_t)beyond), beyond ? ORIBI_EBODY : 0);
        give_back(&taken);
    }
    free(block);
}

static void test_types(void)
{
    ok(oribi_parts_wanted(ORIBI_SLICE("multipart/form-data; boundary=x")));
    ok(oribi_parts_wanted(ORIBI_SLICE("Multipart/Form-Data")));
    ok(!oribi_parts_wanted(ORIBI_SLICE("multipart/form-datas; boundary=x")));
    ok(!oribi_parts_wanted(ORIBI_SLICE("multipart/mixed; boundary=x")));
    ok(!oribi_parts_wanted(ORIBI_SLICE("")));
    struct oribi_parts *parts = NULL;
    const char *reason = NULL;
    ok_eq(oribi_parts_create(ORIBI_SLICE("multipart/form-data"), &parts, &reason), ORIBI_EBAD);
    ok(parts == NULL && reason && strcmp(reason, "the boundary is missing") == 0);
}

int main(void)
{
    test_any_split_gives_the_same_frame_and_files();
    test_part_memory_max_bytes_stay_in_the_frame_and_one_more_is_a_file();
    test_an_empty_file_and_a_field_have_no_file();
    test_a_file_name_of_another_kind_counts();
    test_the_frame_moves_to_a_file_as_any_body();
    test_files_beyond_the_maximum_are_in_the_frame();
    test_files_are_given_with_offsets_of_their_own();
    test_a_cut_body_is_refused_at_every_byte();
    test_a_delimiter_that_goes_on_is_refused();
    test_parts_max();
    test_files_max();
    test_memory_max_is_for_fields();
    test_types();
    return done_testing();
}
