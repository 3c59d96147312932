/* Files of mounts, answered without the application. */
#include "worker/site_files.c"

#include "worker/client.h"

#include <sys/stat.h>

#define GET(target)         "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define WITH(target, field) "GET " target " HTTP/1.1\r\nHost: a\r\n" field "\r\n\r\n"

static char root[64];
static char items[4][256];
static char *item_list[4];

static void put(const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    if (fd < 0 || write(fd, text, strlen(text)) < 0 || futimens(fd, old) < 0 || close(fd) < 0)
        fail("put");
}

static void make_tree(void)
{
    char path[128];
    (void)snprintf(root, sizeof(root), "/tmp/oribi-site-XXXXXX");
    if (!mkdtemp(root))
        fail("mkdtemp");
    (void)snprintf(path, sizeof(path), "%s/sub", root);
    ok_eq(mkdir(path, 0755), 0);
    put("a.txt", "0123456789");
    put("x.css", "plain");
    put("x.css.gz", "gzipped");
    put("about.html", "about");
    put("index.html", "front");
    put("sub/index.html", "inner");
}

static void remove_tree(void)
{
    static const char *const names[] = {"sub/index.html", "sub",        "a.txt",      "x.css",
                                        "x.css.gz",       "about.html", "index.html", ""};
    char path[128];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", root, names[i]);
        ok_eq(remove(path), 0);
    }
}

/* Opens a site with these mounts; a percent sign is the folder. */
static struct client *open_with(struct site *site, const char *const *lines, size_t count)
{
    make_tree();
    site_init(site);
    for (size_t i = 0; i < count; i++) {
        const char *mark = strchr(lines[i], '%');
        (void)snprintf(items[i], sizeof(items[i]), "%.*s%s%s", (int)(mark - lines[i]), lines[i], root, mark + 1);
        item_list[i] = items[i];
    }
    site->options.mounts = (struct oribi_text_list){item_list, count};
    site_open(site, route);
    return client_open(site);
}

static void close_with(struct site *site)
{
    site->options.mounts = (struct oribi_text_list){0};
    site_close(site);
    remove_tree();
}

static struct answer asked(struct site *site, struct client *c, const char *request, int status, const char *body)
{
    ok(client_send(site, c, request));
    return ok_answer(site, c, status, body);
}

static void test_a_file_of_a_prefix(void)
{
    struct site site;
    struct client *c = open_with(&site, (const char *const[]){"/s=%?cache=public, max-age=60&header=X-One: 1"}, 1);
    struct answer answer = asked(&site, c, GET("/s/a.txt"), 200, "0123456789");
    ok(has_line(&answer, "Cache-Control: public, max-age=60"));
    ok(has_line(&answer, "X-One: 1"));
    ok(has_line(&answer, "X-Content-Type-Options: nosniff"));
    ok(has_line(&answer, "Content-Type: text/plain; charset=utf-8"));
    ok(has_line(&answer, "Last-Modified: Sun, 09 Sep 2001 01:46:40 GMT"));
    ok_eq(site.calls, 0);
    answer = asked(&site, c, GET("/s/none"), 404, "404 Not Found\n");
    ok(!has_line(&answer, "Cache-Control: public, max-age=60"));
    (void)asked(&site, c, GET("/s/../a.txt"), 404, "404 Not Found\n");
    (void)asked(&site, c, GET("/s/%"), 400, "400 Bad Request\n");
    (void)asked(&site, c, GET("/s/sub"), 404, "404 Not Found\n");
    ok_eq(site.calls, 0);
    (void)asked(&site, c, GET("/hello"), 200, "hello\n");
    ok_eq(site.calls, 1);
    close_with(&site);
}

static void test_the_root_falls_through(void)
{
    struct site site;
    struct client *c = open_with(&site, (const char *const[]){"%?index=index.html&html=on"}, 1);
    (void)asked(&site, c, GET("/a.txt"), 200, "0123456789");
    (void)asked(&site, c, GET("/"), 200, "front");
    (void)asked(&site, c, GET("/about"), 200, "about");
    (void)asked(&site, c, GET("/sub/"), 200, "inner");
    struct answer answer = asked(&site, c, GET("/sub?q=1"), 301, "");
    ok(has_line(&answer, "Location: /sub/?q=1"));
    ok_eq(site.calls, 0);
    (void)asked(&site, c, GET("/hello"), 200, "hello\n");
    (void)asked(&site, c, "POST /a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 200, NULL);
    ok_eq(site.calls, 2);
    close_with(&site);
}

static void test_conditions_ranges_and_twins(void)
{
    struct site site;
    struct client *c = open_with(&site, (const char *const[]){"%"}, 1);
    struct answer answer = asked(&site, c, WITH("/a.txt", "Range: bytes=2-4"), 206, "234");
    ok(has_line(&answer, "Content-Range: bytes 2-4/10"));
    answer = asked(&site, c, WITH("/a.txt", "Range: bytes=10-"), 416, "");
    ok(has_line(&answer, "Content-Range: bytes */10"));
    (void)asked(&site, c, WITH("/a.txt", "If-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT"), 304, NULL);
    (void)asked(&site, c, WITH("/a.txt", "If-Match: \"other\""), 412, "");
    answer = asked(&site, c, WITH("/x.css", "Accept-Encoding: gzip"), 200, "gzipped");
    ok(has_line(&answer, "Content-Encoding: gzip"));
    ok(has_line(&answer, "Vary: Accept-Encoding"));
    answer = asked(&site, c, GET("/x.css"), 200, "plain");
    ok(!has_line(&answer, "Content-Encoding: gzip"));
    ok_eq(site.calls, 0);
    close_with(&site);
}

static void test_pipelined_with_calls_in_order(void)
{
    struct site site;
    struct client *c = open_with(&site, (const char *const[]){"%"}, 1);
    ok(client_send(&site, c, GET("/hello") GET("/a.txt") GET("/hello") GET("/x.css")));
    ok_answer(&site, c, 200, "hello\n");
    ok_answer(&site, c, 200, "0123456789");
    ok_answer(&site, c, 200, "hello\n");
    ok_answer(&site, c, 200, "plain");
    close_with(&site);
}

static void run_all(void)
{
    test_a_file_of_a_prefix();
    test_the_root_falls_through();
    test_conditions_ranges_and_twins();
    test_pipelined_with_calls_in_order();
}

int main(void)
{
    run_everywhere(run_all);
    return done_testing();
}
