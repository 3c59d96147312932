/* Media types by extension: the built-in ones, files over them, the operator's over all. */
#include "files/types.c"

#include "guard.h"
#include "huge.h"
#include "tap.h"
#include "tree.h"

static void is_type_of(const struct oribi_types *types, const char *path, const char *want)
{
    struct oribi_slice got = oribi_types_find(types, path);
    ok_named(got.n == strlen(want) && memcmp(got.p, want, got.n) == 0, "%.80s: %.*s; wanted: %.60s", path, (int)got.n,
             got.p, want);
}

static void test_what_the_web_is_made_of(void)
{
    struct oribi_types *types = oribi_types_create("utf-8");
    is_type_of(types, "index.html", "text/html; charset=utf-8");
    is_type_of(types, "app-9f3a.css", "text/css; charset=utf-8");
    is_type_of(types, "app.js", "text/javascript; charset=utf-8");
    is_type_of(types, "app.mjs", "text/javascript; charset=utf-8");
    is_type_of(types, "app.js.map", "application/json");
    is_type_of(types, "site.webmanifest", "application/manifest+json");
    is_type_of(types, "a/b/data.json", "application/json");
    is_type_of(types, "logo.svg", "image/svg+xml");
    is_type_of(types, "photo.avif", "image/avif");
    is_type_of(types, "photo.webp", "image/webp");
    is_type_of(types, "photo.jpg", "image/jpeg");
    is_type_of(types, "favicon.ico", "image/vnd.microsoft.icon");
    is_type_of(types, "font.woff2", "font/woff2");
    is_type_of(types, "code.wasm", "application/wasm");
    is_type_of(types, "film.mp4", "video/mp4");
    is_type_of(types, "report.pdf", "application/pdf");
    is_type_of(types, "robots.txt", "text/plain; charset=utf-8");
    is_type_of(types, "feed.xml", "application/xml");
    is_type_of(types, "archive.tar.gz", "application/gzip");
    oribi_types_destroy(types);
}

static void test_the_extension_is_what_follows_the_last_dot_of_the_name(void)
{
    static char name[ORIBI_TYPE_EXTENSION_BYTES_MAX + 8] = "x.";
    struct oribi_types *types = oribi_types_create("");
    is_type_of(types, "PHOTO.JPG", "image/jpeg");
    is_type_of(types, "a.html", "text/html");
    is_type_of(types, "README", ORIBI_TYPE_UNKNOWN);
    is_type_of(types, "folder.html/README", ORIBI_TYPE_UNKNOWN);
    is_type_of(types, ".html", ORIBI_TYPE_UNKNOWN);
    is_type_of(types, "a/.html", ORIBI_TYPE_UNKNOWN);
    is_type_of(types, ".well-known/a.txt", "text/plain");
    is_type_of(types, "x.", ORIBI_TYPE_UNKNOWN);
    is_type_of(types, "x..txt", "text/plain");
    is_type_of(types, "x.html~", ORIBI_TYPE_UNKNOWN);
    is_type_of(types, "x.nobody-knows", ORIBI_TYPE_UNKNOWN);
    is_type_of(types, "", ORIBI_TYPE_UNKNOWN);
    memset(name + 2, 'q', ORIBI_TYPE_EXTENSION_BYTES_MAX);
    ok_eq(oribi_types_set(types, name + 2, "x/y"), 0);
    is_type_of(types, name, "x/y");
    name[2 + ORIBI_TYPE_EXTENSION_BYTES_MAX] = 'q';
    is_type_of(types, name, ORIBI_TYPE_UNKNOWN);
    ok_eq(oribi_types_set(types, name + 2, "x/y"), ORIBI_EINVAL);
    oribi_types_destroy(types);
}

static void test_charsets(void)
{
    static char name[ORIBI_TYPE_CHARSET_BYTES_MAX + 2];
    struct oribi_types *types = oribi_types_create("shift_jis");
    is_type_of(types, "a.txt", "text/plain; charset=shift_jis");
    is_type_of(types, "a.png", "image/png");
    oribi_types_destroy(types);
    types = oribi_types_create(NULL);
    is_type_of(types, "a.txt", "text/plain");
    oribi_types_destroy(types);
    ok(!oribi_types_create("utf-8\r\nX: y"));
    ok(!oribi_types_create("a b"));
    memset(name, 'a', ORIBI_TYPE_CHARSET_BYTES_MAX);
    types = oribi_types_create(name);
    ok(types != NULL);
    oribi_types_destroy(types);
    name[ORIBI_TYPE_CHARSET_BYTES_MAX] = 'a';
    ok(!oribi_types_create(name));
    oribi_types_destroy(NULL);
}

static void test_the_operators_types_are_over_all(void)
{
    struct oribi_types *types = oribi_types_create("utf-8");
    tree_begin();
    make_file("types", "video/mp2t ts\nimage/x-mine png\n");
    ok_eq(oribi_types_set(types, "ts", "text/typescript"), 0);
    ok_eq(oribi_types_set(types, ".PNG", "image/png2"), 0);
    ok_eq(oribi_types_read_file(types, at("types")), 0);
    is_type_of(types, "a.ts", "text/typescript; charset=utf-8");
    is_type_of(types, "a.png", "image/png2");
    ok_eq(oribi_types_set(types, "txt", "text/plain;charset=iso-8859-1"), 0);
    is_type_of(types, "a.txt", "text/plain;charset=iso-8859-1");
    ok_eq(oribi_types_set(types, "txt", "text/plain ; charset=\"x\""), 0);
    is_type_of(types, "a.txt", "text/plain ; charset=\"x\"");
    ok_eq(oribi_types_set(types, "", "text/plain"), 0);
    is_type_of(types, "README", "text/plain; charset=utf-8");
    oribi_types_destroy(types);
    tree_end();
}

static void test_what_is_no_type_or_extension(void)
{
    static char type[ORIBI_TYPE_BYTES_MAX + 2];
    struct oribi_types *types = oribi_types_create("utf-8");
    const char *bad[] = {"",           "text",           "text/",       "/html",      "text/html\r\nX: y", "te xt/html",
                         "text/ht ml", "text/html;\x01", "text/html/x", " text/html", "text/html\xc3\xa4"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(oribi_types_set(types, "x", bad[i]) == ORIBI_EINVAL, "no type: %s", bad[i]);
    const char *names[] = {"tar.gz", ".", "..", "a/b", "a b", "\xc3\xa4", "a\n"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ok_named(oribi_types_set(types, names[i], "text/html") == ORIBI_EINVAL, "no extension: %s", names[i]);
    memset(type, 'a', ORIBI_TYPE_BYTES_MAX);
    type[1] = '/';
    ok_eq(oribi_types_set(types, "x", type), 0);
    type[ORIBI_TYPE_BYTES_MAX] = 'a';
    ok_eq(oribi_types_set(types, "x", type), ORIBI_EINVAL);
    oribi_types_destroy(types);
}

static void test_files_of_types(void)
{
    struct oribi_types *types = oribi_types_create("utf-8");
    tree_begin();
    make_file("types", "# comment\n"
                       "\n"
                       "text/x-one\t\tone uno  # and a comment\r\n"
                       "  text/x-two two one\n"
                       "text/x-none\n"
                       "nonsense three\n"
                       "image/x-new png bad.name a/b\n"
                       "text/x-last last");
    ok_eq(oribi_types_read_file(types, at("types")), 5);
    is_type_of(types, "a.one", "text/x-one; charset=utf-8");
    is_type_of(types, "a.uno", "text/x-one; charset=utf-8");
    is_type_of(types, "a.two", "text/x-two; charset=utf-8");
    is_type_of(types, "a.three", ORIBI_TYPE_UNKNOWN);
    is_type_of(types, "a.png", "image/x-new");
    is_type_of(types, "a.gif", "image/gif");
    is_type_of(types, "a.last", "text/x-last; charset=utf-8");
    make_file("types", "image/x-newer png\n");
    ok_eq(oribi_types_read_file(types, at("types")), 1); /* a later file is over an earlier one */
    is_type_of(types, "a.png", "image/x-newer");
    make_file("types", "");
    ok_eq(oribi_types_read_file(types, at("types")), 0);
    oribi_types_destroy(types);
    tree_end();
}

static void test_files_that_cannot_be_read(void)
{
    static char large[ORIBI_TYPES_FILE_BYTES_MAX + 1];
    struct oribi_types *types = oribi_types_create("utf-8");
    tree_begin();
    int before = open_descriptors();
    ok(oribi_types_read_file(types, at("none")) < 0);
    ok(oribi_types_read_file(types, at("")) < 0);
    is_str(oribi_os_error_text(), "not a regular file");
    must(mkfifo(at("fifo"), 0644) == 0);
    ok(oribi_types_read_file(types, at("fifo")) < 0); /* and does not wait */
    memset(large, '\n', sizeof(large));
    memcpy(large, "a/b c\n", 6);
    make_bytes("large", large, ORIBI_TYPES_FILE_BYTES_MAX);
    ok_eq(oribi_types_read_file(types, at("large")), 1);
    make_bytes("large", large, ORIBI_TYPES_FILE_BYTES_MAX + 1);
    ok_eq(oribi_types_read_file(types, at("large")), ORIBI_ELIMIT);
    ok_eq(open_descriptors(), before);
    oribi_types_destroy(types);
    tree_end();
}

static void test_the_most_extensions_and_one_more(void)
{
    struct oribi_types *types = oribi_types_create("utf-8");
    char name[16];
    uint32_t number = 0;
    while (types->used < ORIBI_TYPES_MAX) {
        (void)snprintf(name, sizeof(name), "n%u", number++);
        if (oribi_types_set(types, name, "x/many") != 0)
            break;
    }
    ok_eq(types->used, ORIBI_TYPES_MAX);
    ok_eq(oribi_types_set(types, "one-more", "x/many"), ORIBI_ELIMIT);
    ok_eq(oribi_types_set(types, "n0", "x/changed"), 0);
    is_type_of(types, "a.n0", "x/changed");
    is_type_of(types, "a.n1", "x/many");
    is_type_of(types, "a.html", "text/html; charset=utf-8");
    oribi_types_destroy(types);
}

/* Every line of the table is read: as many extensions as its head says, all with a type. */
static void test_the_whole_table(void)
{
    struct oribi_types *types = oribi_types_create("utf-8");
    uint32_t bad = 0;
    for (uint32_t i = 0; i < types->slot_count; i++) {
        const struct slot *slot = &types->slots[i];
        if (slot->name_n == 0)
            continue;
        bad += !is_extension(name_of(types, slot));
        bad += !is_type(oribi_slice(types->text.p + slot->type_at, slot->type_n), true);
    }
    ok_eq(bad, 0);
    ok(types->used > 1400 && types->used < SLOTS_FIRST / 2);
    oribi_types_destroy(types);
}

static void test_the_systems_file(void)
{
    struct oribi_types *types = oribi_types_create("utf-8");
    if (access(ORIBI_TYPES_SYSTEM_FILE, R_OK) == 0) {
        ok(oribi_types_read_file(types, ORIBI_TYPES_SYSTEM_FILE) > 100);
        is_type_of(types, "index.html", "text/html; charset=utf-8");
    } else {
        tap_skip(2, "there is no " ORIBI_TYPES_SYSTEM_FILE);
    }
    oribi_types_destroy(types);
}

/* Lines that end at a guard page. */
static void test_text_of_any_kind(void)
{
    static const char bytes[] = "a/b \t\r\n#;./\x80x";
    struct oribi_types *types = oribi_types_create("utf-8");
    uint32_t random = 1;
    for (int i = 0; i < 2000; i++) {
        struct guard text = guard_alloc((size_t)i % 40);
        for (size_t k = 0; k < text.n; k++)
            text.p[k] = bytes[((random = random * 1664525u + 1013904223u) >> 16) % (sizeof(bytes) - 1)];
        (void)read_text(types, text.p, text.n);
        guard_free(&text);
    }
    is_type_of(types, "index.html", "text/html; charset=utf-8");
    oribi_types_destroy(types);
}

int main(void)
{
    test_what_the_web_is_made_of();
    test_the_extension_is_what_follows_the_last_dot_of_the_name();
    test_charsets();
    test_the_operators_types_are_over_all();
    test_what_is_no_type_or_extension();
    test_files_of_types();
    test_files_that_cannot_be_read();
    test_the_most_extensions_and_one_more();
    test_the_whole_table();
    test_the_systems_file();
    test_text_of_any_kind();
    return done_testing();
}
