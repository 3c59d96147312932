/* Files of mounts, answered without the application. */
#include "worker/local/local_files.c"

#include "worker/client.h"

#include <signal.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define GET(target)         "GET " target " HTTP/1.1\r\nHost: a\r\n\r\n"
#define WITH(target, field) "GET " target " HTTP/1.1\r\nHost: a\r\n" field "\r\n\r\n"

static char root[64];
static char items[4][512];
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
    put("empty", "");
}

static const char *path_of(const char *name)
{
    static char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static void put_large(const char *name, size_t n)
{
    char *text = big_text(n);
    text[n - 1] = '\0'; /* big_text has no end of its own */
    put(name, text);
    ok_eq(truncate(path_of(name), (off_t)n), 0);
    free(text);
}

static void remove_tree(void)
{
    static const char *const names[] = {"sub/index.html", "sub",        "a.txt", "x.css", "x.css.gz",
                                        "about.html",     "index.html", "empty", ""};
    char path[128];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", root, names[i]);
        ok_eq(remove(path), 0);
    }
}

/* Opens a site with these mounts, after make_tree() and site_init(); a percent sign is the folder. */
static struct client *open_again(struct site *site, const char *const *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *mark = strchr(lines[i], '%');
        (void)snprintf(items[i], sizeof(items[i]), "%.*s%s%s", (int)(mark - lines[i]), lines[i], root, mark + 1);
        item_list[i] = items[i];
    }
    site->options.mounts = (struct oribi_text_list){item_list, count};
    site_open(site, route);
    return client_open(site);
}

static struct client *open_with(struct site *site, const char *const *lines, size_t count)
{
    make_tree();
    site_init(site);
    return open_again(site, lines, count);
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

static void test_conditions_ranges_and_precompressed(void)
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

static void test_every_answer_is_counted_and_logged(void)
{
    struct site site;
    char error[ORIBI_ERROR_TEXT_CAP];
    char log_path[128];
    char text[4096];
    struct client *c = open_with(&site, (const char *const[]){"/s=%"}, 1);
    (void)snprintf(log_path, sizeof(log_path), "%s.log", root);
    ok_eq(oribi_access_log_open(log_path, "json", NULL, &site.worker->setup.access_log, error), 0);
    (void)asked(&site, c, GET("/s/a.txt"), 200, "0123456789");
    (void)asked(&site, c, WITH("/s/a.txt", "Range: bytes=2-4"), 206, "234");
    (void)asked(&site, c, GET("/s/none"), 404, NULL);
    (void)asked(&site, c, GET("/hello"), 200, "hello\n");
    ok_eq(site.slot.uncalled_count, 3);
    ok_eq(site.slot.request_count, 1);
    ok_eq(site.slot.status_class[2], 3);
    ok_eq(site.slot.status_class[4], 1);
    oribi_access_log_flush(site.worker->setup.access_log);
    FILE *in = fopen(log_path, "r");
    text[in ? fread(text, 1, sizeof(text) - 1, in) : 0] = '\0';
    if (in)
        fclose(in);
    ok(strstr(text, "\"status\":200,\"bytes\":10,\"call_us\":0,"));
    ok(strstr(text, "\"status\":206,\"bytes\":3,\"call_us\":0,"));
    ok(strstr(text, "\"status\":404,\"bytes\":14,\"call_us\":0,"));
    struct oribi_access_log *log = site.worker->setup.access_log;
    close_with(&site);
    oribi_access_log_close(log);
    ok_eq(unlink(log_path), 0);
}

static void test_keepalive_requests_max_counts_files(void)
{
    struct site site;
    make_tree();
    site_init(&site);
    site.options.keepalive_requests_max = 2;
    struct client *c = open_again(&site, (const char *const[]){"%"}, 1);
    struct answer answer = asked(&site, c, GET("/a.txt"), 200, "0123456789");
    ok(!answer.closes);
    answer = asked(&site, c, GET("/a.txt"), 200, "0123456789");
    ok(answer.closes);
    ok(closed_after(&site, c));
    close_with(&site);
}

/* The socket takes little, and the rest can be kept nowhere. */
static void test_an_answer_whose_rest_cannot_be_kept_is_cut(void)
{
    struct site site;
    make_tree();
    put_large("small", 60000);
    site_init(&site);
    site.options.response_memory_max = 1024;
    struct client *c = open_again(&site, (const char *const[]){"%"}, 1);
    (void)setenv("TMPDIR", "/nonexistent/nowhere", 1);
    client_hold_little(c);
    (void)asked(&site, c, GET("/a.txt"), 200, "0123456789");
    ok_eq(setsockopt(site.worker->reactor.conns->watch.fd, SOL_SOCKET, SO_SNDBUF, &(int){4096}, sizeof(int)), 0);
    c->paused = true;
    ok(client_send(&site, c, GET("/small")));
    ok(pump_until(&site, site.slot.uncalled_count == 2));
    ok(pump_until(&site, site.slot.status_class[0] == 1));
    ok_eq(site.slot.status_class[2], 1);
    c->paused = false;
    ok(pump_until(&site, c->eof || c->error));
    ok(!peek_answer(c, false, &(struct answer){0}, &(size_t){0}));
    (void)unsetenv("TMPDIR");
    ok_eq(remove(path_of("small")), 0);
    close_with(&site);
}

enum { LARGE = 6000000 };

/* Changes of a file while it is sent, and whether the client gets the whole of it. */
static void truncate_it(void)
{
    ok_eq(truncate(path_of("large"), LARGE / 2), 0);
}

static void truncate_its_end(void)
{
    ok_eq(truncate(path_of("large"), LARGE - 1), 0);
}

static void write_to_it(void)
{
    int fd = open(path_of("large"), O_WRONLY);
    ok(pwrite(fd, "new", 3, LARGE - 100) == 3 && close(fd) == 0);
}

static void append_to_it(void)
{
    ok_eq(truncate(path_of("large"), LARGE + 1), 0);
}

static void replace_it(void)
{
    char from[128];
    put("other", "another");
    (void)snprintf(from, sizeof(from), "%s", path_of("other"));
    ok_eq(rename(from, path_of("large")), 0);
}

static void remove_it(void)
{
    ok_eq(unlink(path_of("large")), 0);
    put("large", "another");
}

static const struct {
    const char *name;
    void (*change)(void);
    bool whole;
} changes[] = {{"truncated", truncate_it, false},        {"a byte shorter", truncate_its_end, false},
               {"written to", write_to_it, false},       {"longer", append_to_it, true},
               {"replaced by rename", replace_it, true}, {"removed and made anew", remove_it, true}};

static void test_a_file_that_changes_while_it_is_sent(void)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct site site;
        struct answer answer;
        make_tree();
        put_large("large", LARGE);
        site_init(&site);
        struct client *c = open_again(&site, (const char *const[]){"%"}, 1);
        client_hold_little(c);
        c->paused = true;
        ok(client_send(&site, c, GET("/large")));
        ok(pump_until(&site, site.slot.uncalled_count == 1));
        changes[i].change();
        c->paused = false;
        ok_named(next_answer(&site, c, &answer) == changes[i].whole, "%s", changes[i].name);
        if (changes[i].whole) {
            ok_eq(answer.body_len, LARGE);
            pass_ms(ORIBI_CACHE_CHECK_MS);
            answer = asked(&site, c, GET("/large"), 200, changes[i].change == append_to_it ? NULL : "another");
            ok_eq(answer.body_len, changes[i].change == append_to_it ? LARGE + 1 : 7);
        } else {
            ok(c->eof || c->error);
        }
        ok_eq(remove(path_of("large")), 0);
        close_with(&site);
    }
}

/* The cache's knowledge is older than the head of the next answer. */
static void test_a_file_that_has_changed_before_it_is_sent(void)
{
    struct site site;
    make_tree();
    put_large("large", LARGE);
    site_init(&site);
    struct client *c = open_again(&site, (const char *const[]){"%"}, 1);
    (void)asked(&site, c, GET("/large"), 200, NULL);
    ok_eq(truncate(path_of("large"), LARGE / 2), 0);
    ok_eq(asked(&site, c, GET("/large"), 200, NULL).body_len, LARGE / 2);
    replace_it();
    (void)asked(&site, c, GET("/large"), 200, "another");
    ok_eq(remove(path_of("large")), 0);
    close_with(&site);
}

static void ok_part(struct answer *answer, const char *want)
{
    ok_named(memmem(answer->body, answer->body_len, want, strlen(want)) != NULL, "a part with %s", want);
}

static void test_several_ranges(void)
{
    struct site site;
    char want[128];
    make_tree();
    put_large("large", LARGE);
    site_init(&site);
    struct client *c = open_again(&site, (const char *const[]){"%?cache=public"}, 1);
    struct answer answer = asked(&site, c, WITH("/a.txt", "Range: bytes=0-1,-2"), 206, NULL);
    ok(has_line(&answer, "Cache-Control: public"));
    ok(memmem(answer.head, answer.head_len, "Content-Type: multipart/byteranges; boundary=", 45));
    ok(!memmem(answer.head, answer.head_len, "Content-Range", 13));
    ok_part(&answer, "Content-Type: text/plain; charset=utf-8\r\nContent-Range: bytes 0-1/10\r\n\r\n01\r\n--");
    ok_part(&answer, "Content-Range: bytes 8-9/10\r\n\r\n89\r\n--");
    answer = asked(&site, c, WITH("/large", "Range: bytes=0-3000000,5000000-5000001"), 206, NULL);
    (void)snprintf(want, sizeof(want), "Content-Range: bytes 5000000-5000001/%d\r\n\r\n%c%c\r\n--", LARGE,
                   big_byte(5000000), big_byte(5000001));
    ok_part(&answer, want);
    (void)asked(&site, c, WITH("/a.txt", "Range: bytes=0-0,2-2,4-4,6-6,8-8,1-1,3-3,5-5,7-7,9-9"), 206, "0123456789");
    ok_eq(remove(path_of("large")), 0);
    close_with(&site);
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Clients that read slowly share one descriptor, and their file is not copied into memory. */
static void test_slow_clients_share_what_is_sent(void)
{
    enum { SLOW = 100 };
    struct site site;
    struct client *slow[SLOW];
    make_tree();
    put_large("large", LARGE);
    site_init(&site);
    site.options.static_open_max = 1;
    struct client *c = open_again(&site, (const char *const[]){"%"}, 1);
    (void)asked(&site, c, GET("/large"), 200, NULL);
    for (int i = 0; i < SLOW; i++) {
        slow[i] = client_open(&site);
        slow[i]->paused = true;
        client_hold_little(slow[i]);
    }
    ok(pump_until(&site, site.worker->reactor.conn_count == SLOW + 1));
    int before = open_descriptors();
    for (int i = 0; i < SLOW; i++)
        ok(client_send(&site, slow[i], GET("/large")));
    ok(pump_until(&site, site.slot.uncalled_count == SLOW + 1));
    ok_eq(open_descriptors(), before);
    ok(site.worker->reactor.budget.memory_used < 100 * 1024);
    for (int i = 0; i < SLOW; i += 2)
        client_close(&site, slow[i]); /* before the end */
    for (int i = 1; i < SLOW; i += 2) {
        struct answer answer;
        slow[i]->paused = false;
        ok(next_answer(&site, slow[i], &answer) && answer.body_len == LARGE);
        client_close(&site, slow[i]);
    }
    ok_eq(remove(path_of("large")), 0);
    close_with(&site);
}

/* The first descriptor whose name in /proc is this one, or -1. */
static int descriptor_of(const char *path)
{
    for (int fd = 3; fd < 1024; fd++) {
        char name[32];
        char target[256];
        (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(name, target, sizeof(target) - 1);
        if (n == (ssize_t)strlen(path) && memcmp(target, path, (size_t)n) == 0)
            return fd;
    }
    return -1;
}

/* The application closes what is ours, and opens something of its own under the number. */
static void test_what_the_application_takes_is_opened_again(void)
{
    struct site site;
    struct answer answer;
    make_tree();
    put_large("large", LARGE);
    put("secret", "nobody may have this");
    ok_eq(truncate(path_of("secret"), LARGE), 0);
    site_init(&site);
    struct client *c = open_again(&site, (const char *const[]){"/s=%"}, 1);
    (void)asked(&site, c, GET("/s/large"), 200, NULL);
    int secret = open(path_of("secret"), O_RDONLY);
    int fd = descriptor_of(path_of("large"));
    ok(secret >= 0 && fd >= 0);
    ok_eq(dup2(secret, fd), fd);
    ok(is_big_text(asked(&site, c, GET("/s/large"), 200, NULL).body, LARGE - 1)); /* of the file, opened again */
    struct client *slow = client_open(&site);
    slow->paused = true;
    client_hold_little(slow);
    ok(client_send(&site, slow, GET("/s/large")));
    ok(pump_until(&site, site.slot.uncalled_count == 3));
    int again = descriptor_of(path_of("large"));
    ok(again >= 0 && again != fd);
    ok_eq(dup2(secret, again), again);
    slow->paused = false;
    ok(!next_answer(&site, slow, &answer)); /* cut: nothing of the other file is sent */
    ok_eq(close(descriptor_of(root)), 0);
    (void)asked(&site, c, GET("/s/a.txt"), 200, "0123456789");
    ok_eq(fcntl(fd, F_GETFD) < 0 || fcntl(again, F_GETFD) < 0, 0); /* those are not ours to close */
    ok_eq(close(secret) | close(fd) | close(again), 0);
    ok_eq(remove(path_of("large")) | remove(path_of("secret")), 0);
    close_with(&site);
}

/* A child that the application forks keeps nothing of the tree open: files, the root, folders that links lead to. */
static void test_a_forked_child_lets_go(void)
{
    struct site site;
    char line[96];
    int status = -1;
    int before = open_descriptors();
    make_tree();
    put_large("large", LARGE);
    (void)snprintf(line, sizeof(line), "%%?symlinks=%s", root);
    site_init(&site);
    struct client *c = open_again(&site, (const char *const[]){line}, 1);
    (void)asked(&site, c, GET("/large"), 200, NULL);
    ok(open_descriptors() >= before + 4); /* two folders, the file, both ends of the connection, … */
    struct client *slow = client_open(&site);
    slow->paused = true;
    ok(client_send(&site, slow, GET("/large")));
    ok(pump_until(&site, site.slot.uncalled_count == 2));
    pass_ms(ORIBI_CACHE_CHECK_MS);
    replace_it();
    (void)asked(&site, c, GET("/large"), 200, "another"); /* the slow client has what is in the cache no more */
    pid_t pid = fork();
    if (pid == 0) {
        char target[256];
        int found = 0;
        for (int fd = 0; fd < 1024; fd++) {
            char name[32];
            (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
            ssize_t n = readlink(name, target, sizeof(target) - 1);
            found += n > 0 && strncmp(target, root, strlen(root)) == 0;
        }
        _exit(found);
    }
    ok(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    ok_eq(WEXITSTATUS(status), 0);
    slow->paused = false;
    struct answer answer;
    ok(next_answer(&site, slow, &answer) && answer.body_len == LARGE); /* the worker has its own */
    ok_eq(remove(path_of("large")), 0);
    close_with(&site);
    ok_eq(open_descriptors(), before);
}

static void test_what_is_no_file(void)
{
    struct site site;
    make_tree();
    ok_eq(mkfifo(path_of("pipe"), 0644), 0);
    put("secret", "no");
    ok_eq(chmod(path_of("secret"), 0), 0);
    ok_eq(symlink("/etc/hostname", path_of("out")), 0);
    ok_eq(symlink("loop", path_of("loop")), 0);
    site_init(&site);
    struct client *c = open_again(&site, (const char *const[]){"/s=%", "/t=%?fallthrough=on"}, 2);
    (void)asked(&site, c, GET("/s/pipe"), 404, NULL);
    (void)asked(&site, c, GET("/s/out"), 404, NULL);
    (void)asked(&site, c, GET("/s/loop"), 404, NULL);
    (void)asked(&site, c, GET("/s/a.txt/"), 404, NULL);
    (void)asked(&site, c, GET("/s/.hidden"), 404, NULL);
    ok_eq(site.calls, 0);
    int user = setfsuid(geteuid() ? geteuid() : 65534); /* root may read every file */
    (void)asked(&site, c, GET("/s/secret"), 403, "403 Forbidden\n");
    ok_eq(site.calls, 0);
    (void)asked(&site, c, GET("/t/secret"), 200, NULL); /* of the application */
    ok_eq(site.calls, 1);
    (void)setfsuid((uid_t)user);
    static const char *const names[] = {"pipe", "secret", "out", "loop"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        ok_eq(remove(path_of(names[i])), 0);
    close_with(&site);
}

static void test_other_methods_are_the_applications(void)
{
    struct site site;
    struct client *c = open_with(&site, (const char *const[]){"/s=%"}, 1);
    static const char *const methods[] = {"OPTIONS", "POST", "PUT", "DELETE", "PATCH", "PROPFIND"};
    for (uint32_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        char request[128];
        (void)snprintf(request, sizeof(request), "%s /s/a.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
                       methods[i]);
        (void)asked(&site, c, request, 200, NULL);
        ok_eq(site.calls, i + 1);
    }
    close_with(&site);
}

static void test_a_prefix_without_its_slash(void)
{
    struct site site;
    struct client *c = open_with(&site, (const char *const[]){"/s=%?index=index.html&html=on", "/t=%"}, 2);
    struct answer answer = asked(&site, c, GET("/s?a=b"), 301, "");
    ok(has_line(&answer, "Location: /s/?a=b"));
    (void)asked(&site, c, GET("/s/"), 200, "front");
    (void)asked(&site, c, GET("/t"), 404, NULL);
    (void)asked(&site, c, GET("/t/"), 404, NULL);
    ok_eq(site.calls, 0);
    close_with(&site);
}

static void test_what_the_client_accepts(void)
{
    struct site site;
    struct client *c = open_with(&site, (const char *const[]){"/s=%?cache=public"}, 1);
    struct answer answer = asked(&site, c, WITH("/s/x.css", "Accept-Encoding: gzip, identity;q=0"), 200, "gzipped");
    answer = asked(&site, c, WITH("/s/x.css", "Accept-Encoding: br, identity;q=0"), 406, NULL);
    ok(!has_line(&answer, "Cache-Control: public"));
    (void)asked(&site, c, WITH("/s/a.txt", "Accept-Encoding: gzip, identity;q=0"), 406, NULL);
    (void)asked(&site, c, WITH("/s/a.txt", "Accept-Encoding: *;q=0"), 406, NULL);
    (void)asked(&site, c, WITH("/s/a.txt", "Accept-Encoding: gzip;q=1, br;q=0.5"), 200, "0123456789");
    (void)asked(&site, c, WITH("/s/x.css", "Accept-Encoding: gzip;q=0.1, identity"), 200, "plain");
    (void)asked(&site, c, WITH("/s/x.css", "Accept-Encoding: br\r\nAccept-Encoding: gzip"), 200, "gzipped");
    char request[9000];
    int n = snprintf(request, sizeof(request), "GET /s/x.css HTTP/1.1\r\nHost: a\r\nAccept-Encoding: ");
    while (n < 8400)
        n += snprintf(request + n, sizeof(request) - (size_t)n, "x%d;q=0.%d,", n, n % 1000);
    (void)snprintf(request + n, sizeof(request) - (size_t)n, "gzip\r\n\r\n");
    (void)asked(&site, c, request, 200, "plain"); /* longer than ORIBI_ACCEPT_ENCODING_BYTES_MAX */
    ok_eq(site.calls, 0);
    close_with(&site);
}

static void test_head_equals_get(void)
{
    struct site site;
    struct client *c = open_with(&site, (const char *const[]){"/s=%?cache=public&header=X-One: 1"}, 1);
    static const char *const targets[] = {"/s/a.txt", "/s/x.css", "/s/none", "/s/empty", "/s/%"};
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        char request[128];
        struct answer answer;
        (void)snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", targets[i]);
        ok(client_send(&site, c, request) && next_answer(&site, c, &answer));
        char head[1024];
        size_t head_n = answer.head_len;
        memcpy(head, answer.head, head_n);
        (void)snprintf(request, sizeof(request), "HEAD %s HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2\r\n\r\n", targets[i]);
        ok(client_send(&site, c, request) && next_answer_to(&site, c, true, &answer));
        is_bytes(answer.head, answer.head_len, head, head_n);
    }
    ok_eq(site.calls, 0);
    close_with(&site);
}

static void test_conditions_have_the_right_headers(void)
{
    struct site site;
    struct client *c = open_with(&site, (const char *const[]){"/s=%?cache=public&header=X-One: 1"}, 1);
    struct answer answer = asked(&site, c, GET("/s/x.css"), 200, "plain");
    ok(has_line(&answer, "ETag: \"3b9aca00-5\""));
    answer = asked(&site, c, WITH("/s/x.css", "If-None-Match: \"3b9aca00-5\""), 304, NULL);
    ok(has_line(&answer, "ETag: \"3b9aca00-5\""));
    ok(has_line(&answer, "Cache-Control: public"));
    ok(has_line(&answer, "Vary: Accept-Encoding"));
    ok(answer.content_length < 0);
    ok(!has_line(&answer, "Accept-Ranges: bytes"));
    answer = asked(&site, c, WITH("/s/a.txt", "If-Match: \"other\""), 412, "");
    ok(!has_line(&answer, "Cache-Control: public"));
    answer = asked(&site, c, WITH("/s/a.txt", "Range: bytes=10-"), 416, "");
    ok(!has_line(&answer, "Cache-Control: public"));
    ok(!has_line(&answer, "Content-Type: text/plain; charset=utf-8"));
    (void)asked(&site, c, WITH("/s/a.txt", "Range: bytes=nonsense"), 200, "0123456789");
    (void)asked(&site, c, WITH("/s/a.txt", "Range: lines=1-2"), 200, "0123456789");
    (void)asked(&site, c, WITH("/s/a.txt", "Range: bytes=0-0,-0,-"), 200, "0123456789");
    (void)asked(&site, c, WITH("/s/a.txt", "Range: bytes=2-4\r\nIf-Range: \"other\""), 200, "0123456789");
    (void)asked(&site, c, WITH("/s/a.txt", "Range: bytes=2-4\r\nIf-Range: \"3b9aca00-a\""), 206, "234");
    (void)asked(&site, c, GET("/s/empty"), 200, "");
    (void)asked(&site, c, WITH("/s/empty", "Range: bytes=0-"), 416, "");
    ok_eq(site.calls, 0);
    close_with(&site);
}

/* One written a moment ago may be written to once more within the same second. */
static void test_a_young_file_has_a_weak_tag(void)
{
    struct site site;
    make_tree();
    put("new", "new");
    ok_eq(utimensat(AT_FDCWD, path_of("new"), NULL, 0), 0);
    site_init(&site);
    struct client *c = open_again(&site, (const char *const[]){"/s=%"}, 1);
    struct answer answer = asked(&site, c, GET("/s/new"), 200, "new");
    ok(memmem(answer.head, answer.head_len, "ETag: W/", 8));
    ok_eq(remove(path_of("new")), 0);
    close_with(&site);
}

static void put_at(const char *name, const char *text, int64_t mtime_s)
{
    const struct timespec times[2] = {{.tv_sec = mtime_s}, {.tv_sec = mtime_s}};
    put(name, text);
    ok_eq(utimensat(AT_FDCWD, path_of(name), times, 0), 0);
}

static bool has_field(const struct answer *answer, const char *name)
{
    return memmem(answer->head, answer->head_len, name, strlen(name)) != NULL;
}

/* Nix and reproducible images give every file the time 0 or 1, and a new state of it too. */
static void test_a_time_that_says_nothing_is_no_validator(void)
{
    for (int64_t mtime_s = -1; mtime_s <= 2; mtime_s++) {
        struct site site;
        make_tree();
        put_at("a.txt", "0123456789", mtime_s);
        site_init(&site);
        struct client *c = open_again(&site, (const char *const[]){"/s=%"}, 1);
        struct answer answer = asked(&site, c, GET("/s/a.txt"), 200, "0123456789");
        bool has = mtime_s == 2;
        ok_eq(has_field(&answer, "ETag: "), has);
        ok_eq(has_field(&answer, "Last-Modified: "), has);
        ok(has_line(&answer, "Accept-Ranges: bytes"));
        (void)asked(&site, c, WITH("/s/a.txt", "Range: bytes=2-4"), 206, "234");
        (void)asked(&site, c, WITH("/s/a.txt", "If-None-Match: \"1-a\", \"0-a\""), 200, "0123456789");
        (void)asked(&site, c, WITH("/s/a.txt", "If-Modified-Since: Thu, 01 Jan 1970 00:00:02 GMT"), has ? 304 : 200,
                    has ? NULL : "0123456789");
        (void)asked(&site, c, WITH("/s/a.txt", "Range: bytes=2-4\r\nIf-Range: \"1-a\""), 200, "0123456789");
        (void)asked(&site, c, WITH("/s/a.txt", "Range: bytes=2-4\r\nIf-Range: Thu, 01 Jan 1970 00:00:01 GMT"), 200,
                    "0123456789");
        close_with(&site);
    }
}

/* The ETag of an answer, whole; until the next call. */
static const char *tag_of(const struct answer *answer)
{
    static char tags[4][80];
    static int turn;
    char *tag = tags[turn = (turn + 1) % 4];
    const char *at = memmem(answer->head, answer->head_len, "\r\nETag: ", 8);
    (void)snprintf(tag, sizeof(tags[0]), "%.*s", at ? (int)strcspn(at + 8, "\r") : 0, at ? at + 8 : "");
    return tag;
}

static void test_a_tag_of_the_content(void)
{
    char request[256];
    struct site site;
    make_tree();
    put_at("a.txt", "0123456789", 1);
    put_at("b.txt", "0123456789", 1000000000);
    put_at("c.txt", "0123456788", 1);
    site_init(&site);
    struct client *c = open_again(&site, (const char *const[]){"/s=%?etag=content"}, 1);
    struct answer answer = asked(&site, c, GET("/s/a.txt"), 200, "0123456789");
    const char *tag = tag_of(&answer);
    ok_named(tag[0] == '"' && tag[1] == 'h', "%s", tag);
    ok(!has_field(&answer, "Last-Modified: "));
    answer = asked(&site, c, GET("/s/b.txt"), 200, "0123456789");
    is_str(tag_of(&answer), tag); /* equal bytes of another time */
    ok(has_field(&answer, "Last-Modified: "));
    answer = asked(&site, c, GET("/s/c.txt"), 200, "0123456788");
    ok_named(strcmp(tag_of(&answer), tag) != 0, "%s", tag_of(&answer));
    (void)snprintf(request, sizeof(request), "GET /s/a.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: %s\r\n\r\n", tag);
    (void)asked(&site, c, request, 304, NULL);
    (void)snprintf(request, sizeof(request),
                   "GET /s/a.txt HTTP/1.1\r\nHost: a\r\nRange: bytes=2-4\r\nIf-Range: %s\r\n\r\n", tag);
    (void)asked(&site, c, request, 206, "234");
    ok_eq(remove(path_of("b.txt")) + remove(path_of("c.txt")), 0);
    close_with(&site);
}

/* Beyond 64 KiB the bytes are read once for the tag; beyond a limit the tag is that of the time, or there is none. */
static void test_a_tag_of_a_large_content(void)
{
    static const struct timespec unknown[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    struct site site;
    make_tree();
    put_large("large", ORIBI_CACHE_HASHED_BYTES_MAX);
    put_large("larger", ORIBI_CACHE_HASHED_BYTES_MAX + 1);
    ok_eq(utimensat(AT_FDCWD, path_of("large"), unknown, 0), 0);
    ok_eq(utimensat(AT_FDCWD, path_of("larger"), unknown, 0), 0);
    site_init(&site);
    struct client *c = open_again(&site, (const char *const[]){"/s=%?etag=content"}, 1);
    struct answer answer;
    ok(client_send(&site, c, "HEAD /s/large HTTP/1.1\r\nHost: a\r\n\r\n") && next_answer_to(&site, c, true, &answer));
    const char *tag = tag_of(&answer);
    ok_named(memmem(tag, strlen(tag), "-400000", 7) != NULL, "%s", tag); /* young: it was made just now */
    ok(client_send(&site, c, "HEAD /s/larger HTTP/1.1\r\nHost: a\r\n\r\n") && next_answer_to(&site, c, true, &answer));
    ok(!has_field(&answer, "ETag: "));
    ok_eq(remove(path_of("large")) + remove(path_of("larger")), 0);
    close_with(&site);
}

/* A folder can go between the start, which looks at it, and a worker that replaces another. */
static void test_a_folder_that_has_gone_takes_only_its_mount_away(void)
{
    struct site site;
    make_tree();
    site_init(&site);
    site.options.health = "/up";
    struct client *c = open_again(&site, (const char *const[]){"/gone=%/gone", "/s=%"}, 2);
    (void)asked(&site, c, GET("/s/a.txt"), 200, "0123456789");
    (void)asked(&site, c, GET("/up"), 200, "ok\n");
    ok_eq(site.calls, 0);
    (void)asked(&site, c, GET("/gone/hello"), 200, NULL);
    ok_eq(site.calls, 1);
    site.options.health = NULL;
    close_with(&site);
}

static void run_all(void)
{
    test_a_folder_that_has_gone_takes_only_its_mount_away();
    test_every_answer_is_counted_and_logged();
    test_keepalive_requests_max_counts_files();
    test_an_answer_whose_rest_cannot_be_kept_is_cut();
    test_a_forked_child_lets_go();
    test_a_file_that_changes_while_it_is_sent();
    test_a_file_that_has_changed_before_it_is_sent();
    test_several_ranges();
    test_slow_clients_share_what_is_sent();
    test_what_the_application_takes_is_opened_again();
    test_what_is_no_file();
    test_other_methods_are_the_applications();
    test_a_prefix_without_its_slash();
    test_what_the_client_accepts();
    test_head_equals_get();
    test_conditions_have_the_right_headers();
    test_a_young_file_has_a_weak_tag();
    test_a_time_that_says_nothing_is_no_validator();
    test_a_tag_of_the_content();
    test_a_tag_of_a_large_content();
    test_a_file_of_a_prefix();
    test_the_root_falls_through();
    test_conditions_ranges_and_precompressed();
    test_pipelined_with_calls_in_order();
}

int main(void)
{
    quiet_log();
    (void)signal(SIGPIPE, SIG_IGN);
    run_everywhere(run_all);
    return done_testing();
}
