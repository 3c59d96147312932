/* Requests for files of a site over a small tree, answered by a whole worker. First byte: the method, and whether the
 * connection is new; then five lines: the path and the values of Range, Accept-Encoding, If-None-Match and If-Range (an
 * empty one: no such field); see read_text().
 *
 * Holds for every input: the answer is exactly one, framed by its length, and the next request on the connection gets
 * its own; whole answers and each part are bytes of the file that realpath(3) names, and of its precompressed file only
 * where the client accepts that; a path that leads to no file is answered by the application where it falls through,
 * else with 400 or 404; the mount's cache header stands on 200, 206 and 304 alone. No descriptor is left open. */
#include "worker/local/local_private.h"

#include "ours.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/un.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 200, LARGE = ORIBI_CACHE_BODY_BYTES_MAX + 5000, ANSWER_MAX = 256 * 1024 };

static char tree[64];
static struct oribi_worker *worker;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_len = sizeof(address);
static int client = -1;
static char got[ANSWER_MAX];
static size_t got_len;
static char large[LARGE];

/* --- the tree and the worker --- */

static void put(const char *name, const char *bytes, size_t n)
{
    char path[128];
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    (void)snprintf(path, sizeof(path), "%s/%s", tree, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    expect(fd >= 0 && write(fd, bytes, n) == (ssize_t)n && futimens(fd, old) == 0 && close(fd) == 0);
}

static void remove_tree(void)
{
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %s", tree);
    expect(system(command) == 0);
}

static void make_tree(void)
{
    char path[128];
    memcpy(tree, "/tmp/oribi-site-fuzz-XXXXXX", sizeof("/tmp/oribi-site-fuzz-XXXXXX"));
    if (access("/dev/shm", W_OK) == 0)
        memcpy(tree, "/dev/shm/oribi-site-fuzz-XXXXXX", sizeof("/dev/shm/oribi-site-fuzz-XXXXXX"));
    expect(mkdtemp(tree) && atexit(remove_tree) == 0);
    (void)snprintf(path, sizeof(path), "%s/sub", tree);
    expect(mkdir(path, 0755) == 0);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)(i * 7 + i / 251);
    put("a", "0123456789", 10);
    put("empty", "", 0);
    put("x.css", "plain text", 10);
    put("x.css.gz", "gzipped", 7);
    put("x.css.br", "brotli", 6);
    put("large", large, LARGE);
    put("about.html", "about", 5);
    put("sub/index.html", "inner", 5);
    put(".hidden", "hidden", 6);
}

static void start(void)
{
    static struct oribi_options options;
    static struct oribi_listeners listeners = {.items = {{.text = "unix", .is_unix = true}}, .count = 1};
    static char lines[3][128];
    static char *items[3] = {lines[0], lines[1], lines[2]};
    make_tree();
    (void)snprintf(lines[0], sizeof(lines[0]), "/s=%s?cache=public", tree);
    (void)snprintf(lines[1], sizeof(lines[1]), "/i=%s?index=index.html&html=on&cache=public", tree);
    (void)snprintf(lines[2], sizeof(lines[2]), "%s?cache=public", tree);
    oribi_log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), ORIBI_LOG_ERROR);
    oribi_options_init(&options);
    options.mounts = (struct oribi_text_list){items, 3};
    options.helper = false;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    expect(bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)) == 0 && listen(fd, 1) == 0); /* autobind */
    expect(getsockname(fd, (struct sockaddr *)&address, &address_len) == 0);
    listeners.items[0].fd = fd;
    struct oribi_worker_setup setup = {.options = &options, .life_fd = -1, .listeners = &listeners};
    expect(oribi_worker_create(&setup, &worker) == 0);
}

/* --- a request --- */

/* One byte is one of a few words, or itself where a field may have it; a path's own bytes are those of a path. */
static void read_text(struct bytes *in, bool is_path, char dst[TEXT_MAX + 16])
{
    static const char *const words[] = {"/s/",      "/i/", "a",  "large", "x.css", "empty", "about", "sub",
                                        "bytes=",   "0-",  "-5", "70000", ",",     "gzip",  "br",    ";q=0",
                                        "identity", "*",   "\"", "%2e",   "../",   "%2f",   "W/",    "3b9aca00-a"};
    size_t n = 0;
    for (uint8_t byte; n < TEXT_MAX && in->n > 0 && (byte = next_byte(in)) != '\n';) {
        char own[2] = {(char)byte, 0};
        bool passes = is_path ? byte && strchr("abcdefs0123456789%/.-_?", byte) : byte > ' ' && byte < 0x7f;
        const char *text = byte >= 0x80 ? words[byte % (sizeof(words) / sizeof(words[0]))] : passes ? own : "0";
        if (is_path && strchr("*\",;=", text[0]))
            text = "/";
        memcpy(dst + n, text, strlen(text));
        n += strlen(text);
    }
    dst[n] = '\0';
}

struct asked {
    bool is_head;
    char path[TEXT_MAX + 17];
    char fields[4][TEXT_MAX + 16];
};

static const char *const field_names[] = {"Range", "Accept-Encoding", "If-None-Match", "If-Range"};

static void send_request(const struct asked *asked)
{
    char text[8 * TEXT_MAX];
    int n = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: a\r\n", asked->is_head ? "HEAD" : "GET", asked->path);
    for (int i = 0; i < 4; i++)
        if (asked->fields[i][0])
            n += snprintf(text + n, sizeof(text) - (size_t)n, "%s: %s\r\n", field_names[i], asked->fields[i]);
    n += snprintf(text + n, sizeof(text) - (size_t)n, "\r\n");
    expect(send(client, text, (size_t)n, MSG_NOSIGNAL) == n);
}

static void turn(void)
{
    struct iovec body = {"application", 11};
    struct oribi_req *req = oribi_worker_take(worker);
    if (req)
        (void)oribi_reply(req, 200, NULL, 0, &body, 1);
    ssize_t n = recv(client, got + got_len, sizeof(got) - got_len - 1, MSG_DONTWAIT);
    if (n > 0)
        got_len += (size_t)n;
    got[got_len] = '\0';
}

/* --- its answer --- */

struct answer {
    int status;
    const char *head;
    const char *body;
    size_t body_len;
    size_t len; /* of all */
};

/* The value of a field, up to the line's end; NULL when there is none. */
static const char *field_of(const struct answer *answer, const char *name)
{
    for (const char *p = strstr(answer->head, "\r\n"); p && p + 2 < answer->body; p = strstr(p + 2, "\r\n"))
        if (strncmp(p + 2, name, strlen(name)) == 0 && p[2 + strlen(name)] == ':')
            return p + 4 + strlen(name);
    return NULL;
}

static bool peek(bool is_head, struct answer *answer)
{
    char *end = strstr(got, "\r\n\r\n");
    if (!end)
        return false;
    *answer = (struct answer){.head = got, .body = end + 4};
    expect(sscanf(got, "HTTP/1.1 %d ", &answer->status) == 1);
    const char *length = field_of(answer, "Content-Length");
    answer->body_len = length && !is_head ? strtoul(length, NULL, 10) : 0;
    answer->len = (size_t)(answer->body - got) + answer->body_len;
    return got_len >= answer->len;
}

static void read_answer(bool is_head, struct answer *answer)
{
    for (int turns = 0; !peek(is_head, answer); turns++) {
        expect(turns < 100000);
        turn();
    }
}

/* --- what it must be --- */

/* The file that the path names, as a slow reader finds it: its bytes, or NULL. *mount is "" for the root. */
static const char *bytes_of(const char *name, size_t *n)
{
    static const struct {
        const char *name;
        const char *bytes;
        size_t n;
    } files[] = {{"a", "0123456789", 10},     {"empty", "", 0},
                 {"x.css", "plain text", 10}, {"x.css.gz", "gzipped", 7},
                 {"x.css.br", "brotli", 6},   {"large", large, LARGE},
                 {"about.html", "about", 5},  {"sub/index.html", "inner", 5}};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        if (strcmp(files[i].name, name) == 0) {
            *n = files[i].n;
            return files[i].bytes;
        }
    return NULL;
}

static const char *file_of(const char *rest, bool with_index, const char **name, size_t *n)
{
    static char tried[ORIBI_PATH_BYTES_MAX + 32];
    for (int i = 0; i < (with_index ? 3 : 1); i++) {
        (void)snprintf(tried, sizeof(tried), "%s%s", rest, i == 0 ? "" : i == 1 ? ".html" : "index.html");
        bool is_folder = !rest[0] || rest[strlen(rest) - 1] == '/';
        if (is_folder != (i == 2))
            continue;
        const char *bytes = bytes_of(tried, n);
        *name = tried;
        if (bytes)
            return bytes;
    }
    return NULL;
}

static bool holds(const struct answer *answer, const char *p, size_t n)
{
    return answer->body_len == n && memcmp(answer->body, p, n) == 0;
}

/* Each part is what its Content-Range says, and nothing stands around them. */
static void check_parts(const struct answer *answer, const char *bytes, size_t n)
{
    const char *type = field_of(answer, "Content-Type");
    char boundary[80];
    expect(type && sscanf(type, "multipart/byteranges; boundary=%70[0-9a-zA-Z]", boundary) == 1);
    const char *p = answer->body;
    const char *end = answer->body + answer->body_len;
    for (int i = 0;; i++) {
        long long first;
        long long last;
        long long size;
        if (i > 0) {
            expect(memcmp(p, "\r\n", 2) == 0);
            p += 2;
        }
        expect(memcmp(p, "--", 2) == 0 && memcmp(p + 2, boundary, strlen(boundary)) == 0);
        p += 2 + strlen(boundary);
        if (memcmp(p, "--\r\n", 4) == 0) {
            expect(p + 4 == end && i >= 2 && i <= ORIBI_RANGES_MAX);
            return;
        }
        const char *range = strstr(p, "Content-Range: bytes ");
        const char *start = strstr(p, "\r\n\r\n");
        expect(range && start && range < start);
        expect(sscanf(range, "Content-Range: bytes %lld-%lld/%lld", &first, &last, &size) == 3);
        expect(size == (long long)n && first >= 0 && first <= last && last < size);
        p = start + 4;
        expect(end - p > last - first && memcmp(p, bytes + first, (size_t)(last - first + 1)) == 0);
        p += last - first + 1;
    }
}

static void check_range(const struct answer *answer, const char *bytes, size_t n)
{
    long long first;
    long long last;
    long long size;
    const char *range = field_of(answer, "Content-Range");
    if (!range) {
        check_parts(answer, bytes, n);
        return;
    }
    expect(sscanf(range, "bytes %lld-%lld/%lld", &first, &last, &size) == 3 && size == (long long)n);
    expect(first >= 0 && first <= last && last < size);
    expect(holds(answer, bytes + first, (size_t)(last - first + 1)));
}

/* Of x.css a precompressed file may be sent; codings are compared without case (RFC 9110 8.4.1). */
static const char *coded(const struct asked *asked, const struct answer *answer, const char *name, size_t *n)
{
    const char *coding = field_of(answer, "Content-Encoding");
    if (!coding)
        return bytes_of(name, n);
    expect(strcmp(name, "x.css") == 0);
    bool gzip = strncmp(coding, "gzip\r", 5) == 0;
    expect(gzip || strncmp(coding, "br\r", 3) == 0);
    expect(strcasestr(asked->fields[1], gzip ? "gzip" : "br") || strchr(asked->fields[1], '*'));
    return bytes_of(gzip ? "x.css.gz" : "x.css.br", n);
}

static void check_file(const struct asked *asked, const struct answer *answer, const char *name)
{
    size_t n;
    const char *bytes = coded(asked, answer, name, &n);
    int status = answer->status;
    expect(status == 200 || status == 206 || status == 304 || status == 406 || status == 416);
    expect((status == 200 || status == 206 || status == 304) == (field_of(answer, "Cache-Control") != NULL));
    if (status == 200 && !asked->is_head)
        expect(holds(answer, bytes, n));
    if (status == 206) {
        expect(!asked->is_head && asked->fields[0][0]);
        check_range(answer, bytes, n);
    }
    if (status == 304 || status == 416)
        expect(answer->body_len == 0 && asked->fields[status == 304 ? 2 : 0][0]);
    if (status == 406)
        expect(strchr(asked->fields[1], ';'));
}

/* The prefix that a decoded path has; what follows it in *rest. */
static bool has_prefix(const char *path, const char *prefix, const char **rest)
{
    size_t n = strlen(prefix);
    if (strncmp(path, prefix, n) != 0 || (path[n] && path[n] != '/'))
        return false;
    *rest = path + n + (path[n] == '/');
    return true;
}

static void check(const struct asked *asked, const struct answer *answer)
{
    struct oribi_path path;
    const char *name;
    const char *rest;
    size_t n;
    size_t raw_n = strcspn(asked->path, "?");
    bool from_app =
        answer->status == 200 && (asked->is_head || holds(answer, "application", 11)) && !field_of(answer, "ETag");
    if (oribi_path_read(oribi_slice(asked->path, raw_n), &path) != ORIBI_PATH_OK) {
        expect(from_app || answer->status == 400 || answer->status == 404);
        expect(!field_of(answer, "Cache-Control"));
        return;
    }
    bool mounted = has_prefix(path.text, "/s", &rest) || has_prefix(path.text, "/i", &rest);
    bool with_index = path.text[1] == 'i';
    if (!mounted)
        rest = path.text + 1;
    if (file_of(rest, mounted && with_index, &name, &n)) {
        check_file(asked, answer, name);
        return;
    }
    bool is_folder = strcmp(rest, "sub") == 0 || strcmp(path.text, "/i") == 0;
    if (mounted && with_index && is_folder)
        expect(answer->status == 301);
    else if (mounted)
        expect(answer->status == 404);
    else
        expect(from_app);
    expect(!field_of(answer, "Cache-Control"));
}

/* --- */

static void connect_anew(void)
{
    if (client >= 0)
        expect(close(client) == 0);
    client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    expect(connect(client, (struct sockaddr *)&address, address_len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct asked plain = {.path = "/s/a"};
    struct bytes in = {data, size};
    struct asked asked = {0};
    struct answer answer;
    if (!worker)
        start();
    uint8_t flags = next_byte(&in);
    asked.is_head = flags & 1;
    if (client < 0 || flags & 2)
        connect_anew();
    asked.path[0] = '/';
    read_text(&in, true, asked.path + 1);
    if (asked.path[1] == '/')
        memmove(asked.path, asked.path + 1, strlen(asked.path));
    for (int i = 0; i < 4; i++)
        read_text(&in, false, asked.fields[i]);
    got_len = 0;
    send_request(&asked);
    read_answer(asked.is_head, &answer);
    check(&asked, &answer);
    expect(answer.len == got_len);
    got_len = 0;
    send_request(&plain);
    read_answer(false, &answer);
    expect(answer.status == 200 && holds(&answer, "0123456789", 10) && answer.len == got_len);
    return 0;
}
