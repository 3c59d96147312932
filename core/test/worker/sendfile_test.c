/* Files that the application names in a header: sent from where the operator allows it, and from nowhere else. */
#include "worker/client.h"

#include "worker/reply.h"

#include <sys/stat.h>

#define FIELDS(target, fields) "GET " target " HTTP/1.1\r\nHost: a\r\n" fields "\r\n"
#define GET(target)            FIELDS(target, "")

enum { OLD = 1000000000 };

static char top[64]; /* has root/ and outside.txt */
static char texts[8][256];
static struct oribi_header app_headers[4];
static uint32_t app_count;
static int app_status;

static const char *at(const char *name)
{
    static char paths[4][192];
    static int turn;
    turn = (turn + 1) % 4;
    (void)snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", top, name);
    return paths[turn];
}

static void put(const char *name, const char *text)
{
    struct timespec old[2] = {{.tv_sec = OLD}, {.tv_sec = OLD}};
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, text, strlen(text)) < 0 || futimens(fd, old) < 0 || close(fd) < 0)
        fail("put");
}

static void make_tree(void)
{
    (void)snprintf(top, sizeof(top), "/tmp/oribi-send-XXXXXX");
    if (!mkdtemp(top) || mkdir(at("root"), 0755) < 0 || mkdir(at("root/sub"), 0755) < 0 || mkdir(at("other"), 0755) < 0)
        fail("mkdir");
    put("root/a.txt", "0123456789");
    put("root/b.txt", "abcdefghij");
    put("root/a b.css", "css");
    put("root/z.css.gz", "zip");
    put("root/.hidden", "secret");
    put("other/o.txt", "other");
    put("outside.txt", "secret");
    ok_eq(symlink("../outside.txt", at("root/out")), 0);
    ok_eq(symlink("a.txt", at("root/in")), 0);
    ok_eq(mkfifo(at("root/fifo"), 0644), 0);
    ok_eq(symlink("root", at("current")), 0);
}

static void remove_tree(void)
{
    static const char *const names[] = {"root/a.txt",  "root/z.css.gz", "root/b.txt", "root/a b.css", "root/.hidden",
                                        "other/o.txt", "outside.txt",   "root/out",   "root/in",      "root/fifo",
                                        "current",     "root/sub",      "root",       "other",        ""};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ok_eq(remove(at(names[i])), 0);
}

static void app(struct oribi_req *req)
{
    int result = oribi_reply_named(req, app_status, app_headers, app_count);
    if (result == 1) {
        struct iovec body = {(char *)(uintptr_t) "body", 4};
        result = oribi_reply(req, app_status, app_headers, app_count, &body, 1);
    }
    if (result == ORIBI_EAPP)
        oribi_reply_error(req, 500);
}

/* A text as header value, with a percent sign for the folder. */
static struct oribi_header header(const char *name, const char *value)
{
    static int turn;
    char *text = texts[turn = (turn + 1) % 8];
    const char *mark = strchr(value, '%');
    if (mark && mark[1] == '/')
        (void)snprintf(text, sizeof(texts[0]), "%.*s%s%s", (int)(mark - value), value, top, mark + 1);
    else
        (void)snprintf(text, sizeof(texts[0]), "%s", value);
    return (struct oribi_header){name, text, (uint32_t)strlen(name), (uint32_t)strlen(text)};
}

/* The application says this header, and no other but Content-Length: 0 and Set-Cookie. */
static void name_it(const char *name, const char *value)
{
    app_status = 200;
    app_headers[0] = header(name, value);
    app_headers[1] = (struct oribi_header){"Content-Length", "0", 14, 1};
    app_headers[2] = (struct oribi_header){"Set-Cookie", "a=b", 10, 3};
    app_count = 3;
}

static char root_line[192];
static char other_line[192];
static char map_line[192];
static char *root_list[2] = {root_line, other_line};
static char *map_list[1] = {map_line};

static struct client *open_with(struct site *site, bool roots, bool maps)
{
    make_tree();
    site_init(site);
    (void)snprintf(root_line, sizeof(root_line), "%s", at("root"));
    (void)snprintf(other_line, sizeof(other_line), "%s/", at("other"));
    (void)snprintf(map_line, sizeof(map_line), "/private=%s", at("root"));
    if (roots)
        site->options.sendfile_root = (struct oribi_text_list){root_list, 2};
    if (maps)
        site->options.sendfile_map = (struct oribi_text_list){map_list, 1};
    site_open(site, app);
    return client_open(site);
}

static void close_with(struct site *site)
{
    site->options.sendfile_root = site->options.sendfile_map = (struct oribi_text_list){0};
    site_close(site);
    remove_tree();
}

static struct answer asked(struct site *site, struct client *c, const char *request, int status, const char *body)
{
    ok(client_send(site, c, request));
    return ok_answer(site, c, status, body);
}

static void test_a_file_of_a_root(void)
{
    struct site site;
    struct client *c = open_with(&site, true, false);
    name_it("X-Sendfile", "%/root/a.txt");
    struct answer answer = asked(&site, c, GET("/"), 200, "0123456789");
    ok(has_line(&answer, "Content-Length: 10"));
    ok(has_line(&answer, "Content-Type: text/plain; charset=utf-8"));
    ok(has_line(&answer, "Last-Modified: Sun, 09 Sep 2001 01:46:40 GMT"));
    ok(has_line(&answer, "Accept-Ranges: bytes"));
    ok(has_line(&answer, "Set-Cookie: a=b"));
    ok(!memmem(answer.head, answer.head_len, "endfile", 7));
    char fields[160];
    const char *etag = memmem(answer.head, answer.head_len, "ETag: ", 6);
    ok(etag != NULL);
    (void)snprintf(fields, sizeof(fields), FIELDS("/", "If-None-Match: %.*s\r\n"), (int)strcspn(etag + 6, "\r"),
                   etag + 6);
    (void)asked(&site, c, fields, 304, NULL);
    name_it("x-sendfile", "%/root/b.txt"); /* of the same size and second, for another user maybe */
    (void)asked(&site, c, fields, 200, "abcdefghij");
    (void)asked(&site, c, FIELDS("/", "Range: bytes=1-2\r\n"), 206, "bc");
    (void)asked(&site, c, FIELDS("/", "Range: bytes=10-\r\n"), 416, "");
    (void)asked(&site, c, FIELDS("/", "If-Unmodified-Since: Sun, 09 Sep 2001 01:46:39 GMT\r\n"), 412, "");
    name_it("X-Lighttpd-Send-File", "%/other/o.txt");
    (void)asked(&site, c, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200, "other");
    ok(client_send(&site, c, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"));
    ok(next_answer_to(&site, c, true, &answer) && answer.status == 200 && answer.content_length == 5);
    name_it("X-Sendfile", "%/root/in");
    (void)asked(&site, c, GET("/"), 200, "0123456789");
    name_it("X-Sendfile", "%/root/.hidden"); /* the application may: a client cannot ask for it */
    (void)asked(&site, c, GET("/"), 200, "secret");
    name_it("X-Sendfile", "%/current/../root/sub/../a.txt");
    (void)asked(&site, c, GET("/"), 200, "0123456789");
    close_with(&site);
}

static void test_what_is_not_sent(void)
{
    static const char *const paths[] = {
        "%/outside.txt",   "%/root/../outside.txt",
        "%/root/out",      "%/root/none",
        "%/root",          "%/root/",
        "%/root/sub",      "%/root/fifo",
        "%/rootx/a.txt",   "/dev/zero",
        "/etc/passwd",     "root/a.txt",
        "a.txt",           "",
        "%/root/a.txt/x",  "/",
        "/proc/self/root", "http://a/b",
    };
    struct site site;
    struct client *c = open_with(&site, true, false);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        name_it("X-Sendfile", paths[i]);
        struct answer answer = asked(&site, c, GET("/"), 500, NULL);
        ok_named(!has_line(&answer, "Set-Cookie: a=b"), "%s", paths[i]);
    }
    static char longest[5000];
    memset(longest, 'a', sizeof(longest));
    longest[0] = '/';
    for (uint32_t n = 4094; n < 4099; n++) {
        name_it("X-Sendfile", "/");
        app_headers[0].value = longest;
        app_headers[0].value_len = n;
        (void)asked(&site, c, GET("/"), 500, NULL);
    }
    close_with(&site);
}

static void test_a_path_of_a_map(void)
{
    static const struct {
        const char *path;
        int status;
        const char *body;
    } cases[] = {
        {"/private/a.txt", 200, "0123456789"},
        {"/private/a%20b.css", 200, "css"},
        {"/private/a b.css", 200, "css"},
        {"/private/a.txt?x=1", 200, "0123456789"},
        {"/private/out", 500, NULL},
        {"/private/../outside.txt", 500, NULL},
        {"/private/%2e%2e/outside.txt", 500, NULL},
        {"/private/.hidden", 500, NULL},
        {"/private/sub", 500, NULL},
        {"/private/", 500, NULL},
        {"/privatea.txt", 500, NULL},
        {"/other/a.txt", 500, NULL},
        {"private/a.txt", 500, NULL},
        {"/private/%", 500, NULL},
        {"", 500, NULL},
        {"as-is:/private/a.txt", 200, "0123456789"},
        {"as-is:/private/a b.css", 200, "css"},
        {"as-is:/private/a%20b.css", 500, NULL},
        {"as-is:/private/a.txt?x=1", 500, NULL},
        {"as-is:/private/../outside.txt", 500, NULL},
        {"as-is:/private/.hidden", 500, NULL},
        {"as-is:/other/a.txt", 500, NULL},
        {"as-is:private/a.txt", 500, NULL},
        {"as-is:", 500, NULL},
    };
    struct site site;
    struct client *c = open_with(&site, false, true);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        name_it("X-Accel-Redirect", cases[i].path);
        struct answer answer = asked(&site, c, GET("/"), cases[i].status, cases[i].body);
        ok_named(!memmem(answer.head, answer.head_len, "X-Accel", 7), "%s", cases[i].path);
    }
    name_it("X-Sendfile", "%/root/a.txt"); /* not allowed here: a proxy in front may know it */
    struct answer answer = asked(&site, c, GET("/"), 200, NULL);
    ok(memmem(answer.head, answer.head_len, "X-Sendfile: ", 12) != NULL);
    close_with(&site);
}

static void test_headers_pass_where_nothing_is_allowed(void)
{
    struct site site;
    struct client *c = open_with(&site, false, false);
    name_it("X-Sendfile", "/x");
    struct answer answer = asked(&site, c, GET("/"), 200, "");
    ok(has_line(&answer, "X-Sendfile: /x"));
    name_it("X-Accel-Redirect", "/x");
    answer = asked(&site, c, GET("/"), 200, "");
    ok(has_line(&answer, "X-Accel-Redirect: /x"));
    close_with(&site);
}

/* Headers in which the application describes the file stay. */
static void test_headers_of_the_application(void)
{
    struct site site;
    struct client *c = open_with(&site, true, true);
    name_it("X-Sendfile", "%/root/a.txt");
    app_headers[1] = header("Content-Type", "image/x-mine");
    app_headers[2] = header("ETag", "\"mine\"");
    app_headers[3] = header("Last-Modified", "Sun, 09 Sep 2001 01:46:00 GMT");
    app_count = 4;
    struct answer answer = asked(&site, c, GET("/"), 200, "0123456789");
    ok(has_line(&answer, "Content-Type: image/x-mine"));
    ok(has_line(&answer, "ETag: \"mine\""));
    ok(has_line(&answer, "Last-Modified: Sun, 09 Sep 2001 01:46:00 GMT"));
    ok(!memmem(answer.head, answer.head_len, "01:46:40", 8));
    (void)asked(&site, c, FIELDS("/", "If-None-Match: \"mine\"\r\n"), 304, NULL);
    app_headers[2] = header("Cache-Control", "private, No-Store");
    app_count = 3;
    answer = asked(&site, c, GET("/"), 200, "0123456789");
    ok(!memmem(answer.head, answer.head_len, "ETag", 4));
    ok(!memmem(answer.head, answer.head_len, "Last-Modified", 13));
    name_it("X-Accel-Redirect", "/private/b.txt");
    app_headers[3] = header("X-Sendfile", "%/root/a.txt"); /* the first one counts, and neither is sent */
    app_count = 4;
    answer = asked(&site, c, GET("/"), 200, "abcdefghij");
    ok(!memmem(answer.head, answer.head_len, "X-", 2));
    name_it("X-Sendfile", "%/root/a.txt");
    app_headers[1] = header("content-encoding", "gzip"); /* of the body that is not sent */
    answer = asked(&site, c, FIELDS("/", "Range: bytes=1-2\r\n"), 206, "12");
    ok(!memmem(answer.head, answer.head_len, "gzip", 4));
    name_it("X-Sendfile", "%/root/z.css.gz");
    app_headers[1] = header("content-encoding", "gzip");
    answer = asked(&site, c, FIELDS("/", "Range: bytes=1-2\r\n"), 200, "zip");
    ok(has_line(&answer, "content-encoding: gzip"));
    name_it("X-Accel-Redirect", "/private/b.txt");
    app_headers[3] = header("X-Sendfile", "%/root/a.txt");
    app_count = 4;
    app_headers[0].value = NULL;
    (void)asked(&site, c, GET("/"), 200, "0123456789");
    close_with(&site);
}

static void test_other_statuses_and_methods(void)
{
    struct site site;
    struct client *c = open_with(&site, true, false);
    name_it("X-Sendfile", "%/root/a.txt");
    app_status = 404;
    struct answer answer = asked(&site, c, FIELDS("/", "If-None-Match: *\r\nRange: bytes=1-2\r\n"), 404, "0123456789");
    ok(!memmem(answer.head, answer.head_len, "ETag", 4));
    app_status = 304;
    answer = asked(&site, c, GET("/"), 304, NULL);
    ok(!memmem(answer.head, answer.head_len, "endfile", 7));
    app_status = 200;
    (void)asked(&site, c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nRange: bytes=1-2\r\n\r\n", 200,
                "0123456789");
    close_with(&site);
}

/* A folder that is made while the server runs, and a link on the way that a deployment changes. */
static void test_folders_are_looked_at_again(void)
{
    struct site site;
    make_tree();
    site_init(&site);
    (void)snprintf(root_line, sizeof(root_line), "%s", at("current"));
    (void)snprintf(other_line, sizeof(other_line), "%s", at("later"));
    site.options.sendfile_root = (struct oribi_text_list){root_list, 2};
    site_open(&site, app);
    struct client *c = client_open(&site);
    name_it("X-Sendfile", "%/later/l.txt");
    (void)asked(&site, c, GET("/"), 500, NULL);
    ok_eq(mkdir(at("later"), 0755), 0);
    put("later/l.txt", "later");
    ok_eq(remove(at("current")), 0);
    ok_eq(symlink("other", at("current")), 0);
    pass_ms(1100);
    (void)asked(&site, c, GET("/"), 200, "later");
    name_it("X-Sendfile", "%/current/o.txt");
    (void)asked(&site, c, GET("/"), 200, "other");
    name_it("X-Sendfile", "%/root/a.txt");
    (void)asked(&site, c, GET("/"), 500, NULL);
    ok_eq(remove(at("later/l.txt")), 0);
    ok_eq(remove(at("later")), 0);
    close_with(&site);
}

static void test_the_mapping_that_the_environment_has(void)
{
    char dst[256];
    char *maps[] = {(char *)(uintptr_t) "/a=/srv/x/", (char *)(uintptr_t) "/b,c=/srv/y", (char *)(uintptr_t) "/=/z"};
    struct oribi_options options = {0};
    ok(!oribi_sendfile_mapping(&options, true, dst, sizeof(dst)));
    options.sendfile_map = (struct oribi_text_list){maps, 3};
    ok(oribi_sendfile_mapping(&options, true, dst, sizeof(dst)));
    is_str(dst, "/srv/x/=/a/,/z/=/");
    ok(!oribi_sendfile_mapping(&options, false, dst, sizeof(dst)));
    ok(!oribi_sendfile_mapping(&options, true, dst, 17));
    ok(oribi_sendfile_mapping(&options, true, dst, 18));
    options.sendfile_map.count = 1;
    ok(oribi_sendfile_mapping(&options, false, dst, sizeof(dst)));
    is_str(dst, "/srv/x/=as-is:/a/");
    ok(oribi_sendfile_mapping(&options, true, dst, sizeof(dst)));
    is_str(dst, "/srv/x/=/a/");
}

int main(void)
{
    run_everywhere(test_a_file_of_a_root);
    run_everywhere(test_what_is_not_sent);
    run_everywhere(test_a_path_of_a_map);
    run_everywhere(test_headers_pass_where_nothing_is_allowed);
    run_everywhere(test_headers_of_the_application);
    run_everywhere(test_other_statuses_and_methods);
    run_everywhere(test_folders_are_looked_at_again);
    test_the_mapping_that_the_environment_has();
    return done_testing();
}
