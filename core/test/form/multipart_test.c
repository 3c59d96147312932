/* Limits, boundaries, hostile inputs; the grammar's cases are in spec/multipart. */
#include "oribi/base/os/os.h"

#include <string.h>

/* The search, counting the bytes that it looks at. */
static size_t bytes_searched;

static void *count_memmem(const void *p, size_t n, const void *needle, size_t needle_n)
{
    char *at = memmem(p, n, needle, needle_n);
    bytes_searched += at ? (size_t)(at - (const char *)p) + needle_n : n;
    return at;
}

#define oribi_os_memmem count_memmem
#include "form/multipart.c"
#undef oribi_os_memmem

#include "form/multipart_cuts.h"
#include "http/case_folder.h"

enum { INPUT_MAX = 256 * 1024, TOLD_MAX = 8 * INPUT_MAX + 4096, HOSTILE_BYTES = 64 * 1024 };

static struct guard arena;
static char text[INPUT_MAX];
static size_t text_len;
static char told[TOLD_MAX];
static char other[TOLD_MAX];
static struct oribi_form_data_limits limits;
static struct parts_result result;

static int read_text(const char *boundary)
{
    bool agreed;
    result = parts_read(&limits, oribi_slice(boundary, strlen(boundary)), oribi_slice(text, text_len), &arena, told,
                        other, &agreed);
    ok_named(agreed, "every cut agrees");
    return result.error;
}

static void add(const char *more)
{
    memcpy(text + text_len, more, strlen(more));
    text_len += strlen(more);
}

static void add_bytes(char c, size_t n)
{
    memset(text + text_len, c, n);
    text_len += n;
}

static void add_part(const char *head)
{
    add("--b\r\n");
    add(head);
    add("\r\n\r\nx\r\n");
}

/* --- the data in spec/ --- */

static int error_of(struct oribi_slice word)
{
    static const struct {
        const char *word;
        int error;
    } words[] = {{"ok", 0}, {"bad", ORIBI_EBAD}, {"head", ORIBI_EHEAD}, {"limit", ORIBI_ELIMIT}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (oribi_slice_equal(word, oribi_slice(words[i].word, strlen(words[i].word))))
            return words[i].error;
    return 1;
}

static void run_case(void)
{
    char boundary[256];
    bool agreed;
    oribi_form_data_limits_init(&limits);
    limits.longer_is_data = case_is(&file, "longer", "data");
    struct oribi_slice given = oribi_slice(boundary, case_bytes(&file, "boundary", boundary, sizeof(boundary)));
    size_t n = case_bytes(&file, "input", text, sizeof(text));
    result = parts_read(&limits, given, oribi_slice(text, n), &arena, told, other, &agreed);
    if (!agreed)
        complain("a cut");
    if (result.error != error_of(case_raw(&file, "status")))
        complain("status");
    if (result.error)
        check_bytes("reason", oribi_slice(result.reason, strlen(result.reason)));
    check_bytes("parts", oribi_slice(told, result.len));
}

/* --- limits --- */

static void test_a_boundary_has_seventy_bytes_at_most(void)
{
    char boundary[73];
    memset(boundary, 'b', sizeof(boundary));
    for (size_t n = 70; n <= 71; n++) {
        boundary[n] = 0;
        text_len = 0;
        add("--");
        add_bytes('b', n);
        add("--");
        ok_eq(read_text(boundary), n == 70 ? 0 : ORIBI_EBAD);
        boundary[n] = 'b';
    }
    is_str(result.reason, "the boundary is longer than 70 bytes");
}

static void test_parts_and_files_are_counted(void)
{
    oribi_form_data_limits_init(&limits);
    limits.parts_max = 5;
    limits.files_max = 2;
    for (int files = 0; files <= 1; files++)
        for (uint32_t beyond = 0; beyond <= 1; beyond++) {
            uint32_t count = (files ? limits.files_max : limits.parts_max) + beyond;
            text_len = 0;
            for (uint32_t i = 0; i < count; i++)
                add_part(files ? "Content-Disposition: form-data; name=\"a\"; filename=\"\"" : "A: b");
            add("--b--");
            ok_eq(read_text("b"), beyond ? ORIBI_ELIMIT : 0);
            is_str(result.reason, !beyond ? NULL : files ? "too many files" : "too many parts");
            ok_eq(result.part_count, count - beyond);
        }
    oribi_form_data_limits_init(&limits);
}

static void test_a_head_has_its_maximum(void)
{
    limits.part_head_bytes_max = 100;
    for (size_t n = 100; n <= 101; n++) {
        text_len = 0;
        add("--b\r\nA: ");
        add_bytes('x', n - 3);
        add("\r\n\r\nbody\r\n--b--");
        ok_eq(read_text("b"), n == 100 ? 0 : ORIBI_EHEAD);
    }
    text_len = 0;
    add("--b\r\n");
    add_bytes('x', INPUT_MAX / 2); /* a head that never ends */
    ok_eq(read_text("b"), ORIBI_EHEAD);
    is_str(result.reason, "a part's head is too long");
    oribi_form_data_limits_init(&limits);
}

static void test_a_head_has_so_many_fields(void)
{
    for (int count = ORIBI_FORM_DATA_FIELDS_MAX; count <= ORIBI_FORM_DATA_FIELDS_MAX + 1; count++) {
        text_len = 0;
        add("--b\r\n");
        for (int i = 0; i < count; i++)
            add("A: b\r\n");
        add("\r\nx\r\n--b--");
        ok_eq(read_text("b"), count == ORIBI_FORM_DATA_FIELDS_MAX ? 0 : ORIBI_EHEAD);
    }
}

static void test_blanks_behind_a_delimiter_end(void)
{
    for (size_t n = ORIBI_FORM_DATA_PADDING_MAX; n <= ORIBI_FORM_DATA_PADDING_MAX + 1; n++) {
        text_len = 0;
        add("--b");
        add_bytes(' ', n);
        add("\r\n\r\nx\r\n--b--");
        ok_eq(read_text("b"), n == ORIBI_FORM_DATA_PADDING_MAX ? 0 : ORIBI_EBAD);
    }
}

/* Two bodies of three and four bytes, the first of which is kept, then both. */
static void test_what_is_kept_in_memory_has_its_maximum(void)
{
    for (int kept = 1; kept <= 2; kept++)
        for (uint64_t most = 3; most <= 7; most++) {
            struct oribi_form_data form;
            struct oribi_slice in = ORIBI_SLICE("--b\r\n\r\none\r\n--b\r\n\r\nfour\r\n--b--");
            int event;
            int parts = 0;
            limits.memory_max = most - (kept == 1 && most == 3); /* 2 is one byte less than the first */
            ok_eq(oribi_form_data_init(&form, &limits, ORIBI_SLICE("b")), 0);
            while ((event = oribi_form_data_next(&form, &in)) > ORIBI_FORM_DATA_MORE)
                if (event == ORIBI_FORM_DATA_PART && parts++ < kept)
                    oribi_form_data_keep(&form);
            uint64_t wanted = kept == 1 ? 3 : 7;
            ok_eq(event, limits.memory_max < wanted ? ORIBI_ELIMIT : ORIBI_FORM_DATA_MORE);
            oribi_form_data_deinit(&form);
        }
    oribi_form_data_limits_init(&limits);
}

static void test_errors_have_a_status(void)
{
    ok_eq(oribi_form_data_status(ORIBI_EBAD), 400);
    ok_eq(oribi_form_data_status(ORIBI_EHEAD), 413);
    ok_eq(oribi_form_data_status(ORIBI_ELIMIT), 413);
}

static void test_what_makes_a_part_none_of_a_form(void)
{
    struct oribi_part part = {.is_form_data = true, .name = {.value = ORIBI_SLICE("a")}};
    ok(!oribi_part_mistake(&part));
    part.repeats = true;
    is_str(oribi_part_mistake(&part), "a part has two names, file names or dispositions");
    part = (struct oribi_part){.is_form_data = true};
    is_str(oribi_part_mistake(&part), "a part has no name");
    part.is_form_data = false;
    is_str(oribi_part_mistake(&part), "a part has no Content-Disposition of form-data");
    part.malformed = "told before all others";
    is_str(oribi_part_mistake(&part), part.malformed);
}

/* A disposition that is read strictly gives this "name|filename", or is this mistake. */
static void read_strictly(const char *disposition, const char *expected)
{
    char line[256];
    char got[256];
    struct oribi_part part;
    (void)snprintf(line, sizeof line, "Content-Disposition: %s", disposition);
    struct guard head = guard_str(line);
    ok_eq(oribi__part_read(&part, oribi_slice(head.p, head.n)), 0);
    const char *mistake = oribi_part_read_strictly(&part);
    struct oribi_slice name = part.name.value;
    struct oribi_slice filename = part.filename.value.p ? part.filename.value : ORIBI_SLICE("-");
    (void)snprintf(got, sizeof got, "%.*s|%.*s", (int)name.n, name.p, (int)filename.n, filename.p);
    is_str(mistake ? mistake : got, expected);
    guard_free(&head);
}

static void test_a_disposition_is_read_strictly(void)
{
    static const char *const table[][2] = {
        {"form-data; name=\"a\"", "a|-"},
        {"form-data; NAME = a ; x; ;filename=b", "a|b"},
        {"form-data; name=\"a\\\"b\"; filename=\"\"", "a\\\"b|"},
        {"form-data; name=\"a\\\"; filename=\"C:\\\"", "a\\|C:\\"},
        {"form-data; name=\"a;b\" ; filename*=x;", "a;b|-"},
        {"form-data; name=", "|-"},
        {"form-data; name=\"a\" filename=\"b\"", "something in Content-Disposition is no parameter"},
        {"form-data; name=\"a\"b\"", "something in Content-Disposition is no parameter"},
        {"form-data; name=\"a", "something in Content-Disposition is no parameter"},
        {"form-data; name=\"a\\\"b", "something in Content-Disposition is no parameter"},
        {"form-data; name=a b", "something in Content-Disposition is no parameter"},
        {"form-data; =x; name=a", "something in Content-Disposition is no parameter"},
        {"form-data; na me=b; name=a", "something in Content-Disposition is no parameter"},
        {"form-data; name=a; x", "something in Content-Disposition is no parameter"},
        {"form-data; name=a; name=b", "a part has two names, file names or dispositions"},
        {"form-data; filename=a", "a part has no name"},
        {"attachment; name=a", "a part has no Content-Disposition of form-data"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        read_strictly(table[i][0], table[i][1]);
}

static void test_an_error_stays(void)
{
    struct oribi_form_data form;
    struct oribi_slice in = ORIBI_SLICE("--bX");
    ok_eq(oribi_form_data_init(&form, &limits, ORIBI_SLICE("b")), 0);
    ok_eq(oribi_form_data_next(&form, &in), ORIBI_EBAD);
    in = ORIBI_SLICE("--b--");
    ok_eq(oribi_form_data_next(&form, &in), ORIBI_EBAD);
    ok_eq(oribi_form_data_finish(&form), ORIBI_EBAD);
    oribi_form_data_deinit(&form);
}

/* --- memory and cost --- */

static void test_a_body_is_never_kept(void)
{
    struct oribi_form_data form;
    struct oribi_slice head = ORIBI_SLICE("--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f\"\r\n\r\n");
    ok_eq(oribi_form_data_init(&form, &limits, ORIBI_SLICE("b")), 0);
    ok_eq(oribi_form_data_next(&form, &head), ORIBI_FORM_DATA_PART);
    memset(text, '\r', INPUT_MAX);
    size_t given = 0;
    for (int i = 0; i < 100; i++) {
        struct oribi_slice in = oribi_slice(text, INPUT_MAX);
        while (oribi_form_data_next(&form, &in) == ORIBI_FORM_DATA_DATA)
            given += form.data.n;
    }
    ok_eq(given, 100 * (size_t)INPUT_MAX - 1); /* the last CR may begin a delimiter */
    ok_eq(form.head.cap, 0);                   /* a head that is whole in the input is not copied */
    oribi_form_data_deinit(&form);
}

/* A piece is given in few slices, however often it looks like a delimiter. */
static void test_what_looks_like_a_delimiter_cuts_nothing(void)
{
    struct oribi_form_data form;
    struct oribi_slice head = ORIBI_SLICE("--boundary\r\n\r\n");
    static const char almost[] = "\r\n--boundarx";
    ok_eq(oribi_form_data_init(&form, &limits, ORIBI_SLICE("boundary")), 0);
    ok_eq(oribi_form_data_next(&form, &head), ORIBI_FORM_DATA_PART);
    text_len = 0;
    while (text_len + sizeof(almost) < INPUT_MAX)
        add(almost);
    struct oribi_slice in = oribi_slice(text, text_len);
    int pieces = 0;
    while (oribi_form_data_next(&form, &in) == ORIBI_FORM_DATA_DATA)
        pieces++;
    ok_eq(pieces, 1);
    oribi_form_data_deinit(&form);
}

/* --- what belongs to it --- */

static struct oribi_slice boundary_of(const char *type)
{
    return oribi_form_data_boundary(oribi_slice(type, strlen(type)));
}

static void test_the_boundary_of_a_type(void)
{
    is_slice(boundary_of("multipart/form-data; boundary=abc"), "abc");
    is_slice(boundary_of("Multipart/Form-Data;BOUNDARY=\"a b;c\"; charset=utf-8"), "a b;c");
    is_slice(boundary_of("multipart/mixed; charset = x; boundary=abc ;"), "abc");
    ok(!boundary_of("multipart/form-data; boundary=a; boundary=b").p);
    ok(!boundary_of("multipart/form-data; boundary=a; BOUNDARY=a").p);
    ok(!boundary_of("multipart/form-data; boundary =a").p);
    ok(!boundary_of("multipart/form-data; boundary= a").p);
    ok(!boundary_of("multipart/form-data; boundary\t=\"a\"").p);
    is_slice(boundary_of("multipart/form-data; boundary="), "");
    ok(!boundary_of("multipart/form-data").p);
    ok(!boundary_of("multipart/form-data; xboundary=abc").p);
    ok(!boundary_of("multipart/form-data; boundary=\"abc").p);
    ok(!boundary_of("application/x-www-form-urlencoded; boundary=abc").p);
    ok(!boundary_of("").p);
}

static void test_backslashes_before_a_mark_and_a_backslash_go(void)
{
    char dst[32];
    is_bytes(dst, oribi_form_data_unescape(ORIBI_SLICE("a\\\"b\\\\c"), dst), "a\"b\\c", 5);
    is_bytes(dst, oribi_form_data_unescape(ORIBI_SLICE("C:\\dir\\f"), dst), "C:\\dir\\f", 8);
    is_bytes(dst, oribi_form_data_unescape(ORIBI_SLICE("end\\"), dst), "end\\", 4);
    ok_eq(oribi_form_data_unescape(oribi_slice(NULL, 0), dst), 0);
    is_bytes(dst, oribi_form_data_unfold(ORIBI_SLICE("a\r\n b\r\n\t\r\n c"), dst), "a b c", 5);
    is_bytes(dst, oribi_form_data_unfold(ORIBI_SLICE("a \r\n\tb\r\n "), dst), "a b ", 4);
    ok_eq(oribi_form_data_unfold(oribi_slice(NULL, 0), dst), 0);
    char own[] = "a\r\n b";
    is_bytes(own, oribi_form_data_unfold(ORIBI_SLICE(own), own), "a b", 3);
}

/* Of a body that repeats `unit`, fed in pieces: how many events there were. */
static size_t count_events(const char *unit, size_t piece)
{
    struct oribi_form_data form;
    size_t events = 0;
    size_t unit_n = strlen(unit);
    text_len = 0;
    add("--bbbbbbbb\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n");
    while (text_len + unit_n < HOSTILE_BYTES)
        add(unit);
    ok_eq(oribi_form_data_init(&form, &limits, ORIBI_SLICE("bbbbbbbb")), 0);
    bytes_searched = 0;
    int event = 0;
    for (size_t used = 0; used < text_len && event >= 0; used += piece) {
        size_t n = text_len - used < piece ? text_len - used : piece;
        struct oribi_slice in = oribi_slice(text + used, n);
        while ((event = oribi_form_data_next(&form, &in)) > ORIBI_FORM_DATA_MORE)
            events++;
    }
    oribi_form_data_deinit(&form);
    return events;
}

/* Each byte is searched once; a delimiter twice, the second time when the data in front of it were given, and three
 * bytes that may begin a head's end. Events are no more than two for each unit and each piece. */
static void test_the_work_of_hostile_bodies_is_linear(void)
{
    static const char *const units[] = {"b",
                                        "-",
                                        "\r",
                                        "\r\n",
                                        "\r\n-",
                                        "\r\n--",
                                        "--bbbbbbbb",
                                        "\r\n--b",
                                        "\r\n--bbbbbbb",
                                        "\r\n--bbbbbbbbb",
                                        "\r\n--bbbbbbbb-",
                                        "\r\n--bbbbbbbb\r",
                                        "\r\n--bbbbbbbb\r\n",
                                        "\r\n--bbbbbbbb\r\n\r\n"};
    static const size_t pieces[] = {1, 7, 64, HOSTILE_BYTES};
    oribi_form_data_limits_init(&limits);
    limits.longer_is_data = true;
    limits.parts_max = HOSTILE_BYTES;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        for (size_t k = 0; k < sizeof(pieces) / sizeof(pieces[0]); k++) {
            size_t events = count_events(units[i], pieces[k]);
            size_t cuts = text_len / pieces[k] + 1;
            ok_named(bytes_searched <= 2 * text_len + 3 * cuts &&
                         events <= 2 * (text_len / strlen(units[i]) + cuts) + 2,
                     "unit %zu, pieces of %zu: each byte is searched once or twice", i, pieces[k]);
        }
}

int main(void)
{
    arena = guard_alloc(INPUT_MAX);
    oribi_form_data_limits_init(&limits);
    run_case_folder("multipart", run_case);
    oribi_form_data_limits_init(&limits);
    test_a_boundary_has_seventy_bytes_at_most();
    test_parts_and_files_are_counted();
    test_a_head_has_its_maximum();
    test_a_head_has_so_many_fields();
    test_blanks_behind_a_delimiter_end();
    test_what_is_kept_in_memory_has_its_maximum();
    test_errors_have_a_status();
    test_what_makes_a_part_none_of_a_form();
    test_a_disposition_is_read_strictly();
    test_an_error_stays();
    test_a_body_is_never_kept();
    test_what_looks_like_a_delimiter_cuts_nothing();
    test_the_boundary_of_a_type();
    test_backslashes_before_a_mark_and_a_backslash_go();
    test_the_work_of_hostile_bodies_is_linear();
    guard_free(&arena);
    return done_testing();
}
