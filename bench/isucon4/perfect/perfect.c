/* The bank with nothing in the way: one process, one epoll, users and counters in memory. What the driver reaches
 * against it is what the driver can do; and it is the second opinion in the driver's own tests, where one of the
 * rules is broken on purpose.
 *
 *     perfect PORT users.tsv PUBLIC [BROKEN]
 *
 * BROKEN: lock (users are never locked), ban (addresses never banned), notice (another text), last (shows this
 * login), form (no password field), asset (the last byte differs), short (the report leaves one user out), extra
 * (the report names somebody who never came), gone (no report), drop (every 50th answer is cut off). */
#define _GNU_SOURCE
#include "../driver/book.c"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS_MAX = 64, CONNS_MAX = 4096, IN_BYTES = 16 * 1024, ADDRESSES = 1 << 19, ASSETS = 4, TEXT_BYTES = 64 };

struct account {
    char last_ip[2][TEXT_BYTES]; /* the newest first */
    char last_at[2][TEXT_BYTES];
    uint32_t logins;
};

struct request {
    const char *path;
    size_t path_len;
    bool post;
    char ip[TEXT_BYTES];
    char login[TEXT_BYTES];
    char password[TEXT_BYTES];
    long user; /* from the cookie, -1: none */
    long notice;
};

struct conn {
    char *in;
    size_t len;
};

static struct {
    struct book *book;
    struct account *accounts;
    struct {
        char text[16];
        uint32_t failures;
    } * addresses;
    const char *names[ASSETS];
    char *files[ASSETS];
    size_t file_lens[ASSETS];
    const char *broken;
    long answers;
    struct conn conns[CONNS_MAX];
} bank = {.names = {"/stylesheets/frame.css", "/stylesheets/theme.css", "/stylesheets/bank.css", "/images/bank.png"},
          .broken = ""};

static const char *const NOTICES[] = {"", "You&#39;re banned.", "This account is locked.", "Wrong username or password",
                                      "You must be logged in"};

static bool broken(const char *what)
{
    return strcmp(bank.broken, what) == 0;
}

static uint32_t *failures_of(const char *ip)
{
    size_t at = hash(ip, strlen(ip)) & (ADDRESSES - 1);
    while (bank.addresses[at].text[0] && strcmp(bank.addresses[at].text, ip) != 0)
        at = (at + 1) & (ADDRESSES - 1);
    snprintf(bank.addresses[at].text, sizeof(bank.addresses[at].text), "%.15s", ip);
    return &bank.addresses[at].failures;
}

/* 0: let in, else the number of the notice. */
static int attempt(struct user *user, const char *ip, bool right)
{
    uint32_t *failures = failures_of(ip);
    int said = !broken("ban") && *failures >= BAN_THRESHOLD                  ? 1
               : !broken("lock") && user && user->failures >= LOCK_THRESHOLD ? 2
               : right                                                       ? 0
                                                                             : 3;
    *failures = said ? *failures + 1 : 0;
    if (user)
        user->failures = said ? user->failures + 1 : 0;
    return said;
}

static void remember(long user, const char *ip)
{
    struct account *account = &bank.accounts[user];
    time_t now = time(NULL);
    struct tm tm;
    gmtime_r(&now, &tm);
    memcpy(account->last_ip[1], account->last_ip[0], TEXT_BYTES);
    memcpy(account->last_at[1], account->last_at[0], TEXT_BYTES);
    snprintf(account->last_ip[0], TEXT_BYTES, "%s", ip);
    strftime(account->last_at[0], TEXT_BYTES, "%Y-%m-%d %H:%M:%S", &tm);
    account->logins++;
}

static int send_all(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);
        if (n <= 0)
            return -1;
        bytes += n;
        len -= (size_t)n;
    }
    return 0;
}

static int answer(int fd, const char *status, const char *fields, const char *body, size_t len)
{
    static char text[256 * 1024];
    int n = snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Type: text/html\r\n%sContent-Length: %zu\r\n\r\n",
                     status, fields, len);
    if ((size_t)n + len > sizeof(text))
        return send_all(fd, text, (size_t)n) || send_all(fd, body, len) ? -1 : 0;
    memcpy(text + n, body, len);
    return send_all(fd, text, (size_t)n + len);
}

static int answer_form(int fd, const struct request *request)
{
    char html[2048];
    const char *notice = NOTICES[request->notice];
    int n = snprintf(html, sizeof(html),
                     "<html><body>%s%s%s<form action=\"/login\"><input type=\"text\" name=\"login\">%s<button "
                     "type=\"submit\">Log in</button></form></body></html>",
                     *notice ? "<div id=\"notice-message\">" : "", broken("notice") && *notice ? "No." : notice,
                     *notice ? "</div>" : "", broken("form") ? "" : "<input type=\"password\" name=\"password\">");
    return answer(fd, "200 OK", "Set-Cookie: notice=0; path=/\r\n", html, (size_t)n);
}

static int answer_login(int fd, const struct request *request)
{
    char fields[256];
    struct user *user = find_user(bank.book, request->login, strlen(request->login));
    int said = attempt(user, request->ip, user && strcmp(user->password, request->password) == 0);
    long id = user ? (long)(user - bank.book->users) : -1;
    if (!said)
        remember(id, request->ip);
    snprintf(fields, sizeof(fields), "Location: %s\r\nSet-Cookie: %s=%ld; path=/\r\n", said ? "/" : "/mypage",
             said ? "notice" : "user", said ? said : id);
    return answer(fd, "302 Found", fields, "", 0);
}

static int answer_mypage(int fd, const struct request *request)
{
    char html[2048];
    if (request->user < 0 || (size_t)request->user >= bank.book->count)
        return answer(fd, "302 Found", "Location: /\r\nSet-Cookie: notice=4; path=/\r\n", "", 0);
    const struct account *account = &bank.accounts[request->user];
    int which = account->logins > 1 && !broken("last");
    int n = snprintf(
        html, sizeof(html),
        "<html><body><span id=\"last-logined-at\">%s</span> <span id=\"last-logined-ip\">%s</span></body></html>",
        account->last_at[which], account->last_ip[which]);
    return answer(fd, "200 OK", "", html, (size_t)n);
}

static void list_name(FILE *out, const char *name, int *count)
{
    fprintf(out, "%s\"%s\"", (*count)++ ? "," : "", name);
}

static void write_report(FILE *out)
{
    int count = 0;
    fprintf(out, "{\"banned_ips\":[");
    for (size_t i = 0; i < ADDRESSES; i++)
        if (bank.addresses[i].failures >= BAN_THRESHOLD)
            list_name(out, bank.addresses[i].text, &count);
    fprintf(out, "],\"locked_users\":[");
    count = 0;
    bool left_out = !broken("short");
    for (size_t i = 0; i < bank.book->count; i++) {
        if (bank.book->users[i].failures < LOCK_THRESHOLD)
            continue;
        if (left_out)
            list_name(out, bank.book->users[i].login, &count);
        left_out = true;
    }
    for (size_t i = 0; broken("extra") && i < bank.book->count; i++) {
        if (bank.book->users[i].failures == 0 && bank.accounts[i].logins == 0) {
            list_name(out, bank.book->users[i].login, &count);
            break;
        }
    }
    fprintf(out, "]}");
}

static int answer_report(int fd)
{
    char *json = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&json, &len);
    if (broken("gone") || !out)
        return answer(fd, "500 Oops", "", "", 0);
    write_report(out);
    fclose(out);
    int result = answer(fd, "200 OK", "", json, len);
    free(json);
    return result;
}

static int answer_asset(int fd, const struct request *request)
{
    for (int i = 0; i < ASSETS; i++)
        if (request->path_len == strlen(bank.names[i]) && memcmp(request->path, bank.names[i], request->path_len) == 0)
            return answer(fd, "200 OK", "", bank.files[i], bank.file_lens[i]);
    return answer(fd, "404 Not Found", "", "", 0);
}

static bool is_path(const struct request *request, const char *path)
{
    return request->path_len == strlen(path) && memcmp(request->path, path, request->path_len) == 0;
}

/* Every 50th answer is cut off, and of attempts every second one of these after it was counted. */
static bool cuts_off(const struct request *request)
{
    if (!broken("drop") || is_path(request, "/report") || ++bank.answers % 50 != 0)
        return false;
    struct user *user = find_user(bank.book, request->login, strlen(request->login));
    if (request->post && bank.answers % 100 == 0)
        (void)attempt(user, request->ip, user && strcmp(user->password, request->password) == 0);
    return true;
}

static int serve(int fd, const struct request *request)
{
    if (cuts_off(request))
        return -1;
    if (is_path(request, "/"))
        return answer_form(fd, request);
    if (request->post && is_path(request, "/login"))
        return answer_login(fd, request);
    if (is_path(request, "/mypage"))
        return answer_mypage(fd, request);
    return is_path(request, "/report") ? answer_report(fd) : answer_asset(fd, request);
}

/* Copies what stands between `key` and one of `ends`. */
static void take(const char *text, const char *key, const char *ends, char *value)
{
    const char *at = strcasestr(text, key);
    value[0] = '\0';
    if (at)
        snprintf(value, TEXT_BYTES, "%.*s", (int)strcspn(at + strlen(key), ends), at + strlen(key));
}

static long number(const char *text, const char *key, long otherwise)
{
    const char *at = strstr(text, key);
    return at ? strtol(at + strlen(key), NULL, 10) : otherwise;
}

/* Returns the length of the first request in the text, or 0. */
static size_t read_request(char *text, size_t len, struct request *request)
{
    char *end = memmem(text, len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    *end = '\0'; /* what is asked of the head ends here */
    char length[TEXT_BYTES];
    take(text, "content-length: ", "\r\n", length);
    size_t head = (size_t)(end + 4 - text);
    size_t total = head + (size_t)strtol(length, NULL, 10);
    if (total > len) {
        *end = '\r';
        return 0;
    }
    request->post = text[0] == 'P';
    request->path = text + (request->post ? 5 : 4);
    request->path_len = strcspn(request->path, " ?");
    take(text, "x-forwarded-for: ", "\r\n", request->ip);
    request->user = number(text, "user=", -1);
    request->notice = number(text, "notice=", 0) % 5;
    char after = text[total];
    text[total] = '\0';
    take(text + head, "login=", "&", request->login);
    take(text + head, "password=", "&", request->password);
    text[total] = after;
    return total;
}

static void end_conn(int fd)
{
    free(bank.conns[fd].in);
    bank.conns[fd] = (struct conn){0};
    close(fd);
}

static void on_readable(int fd)
{
    struct conn *c = &bank.conns[fd];
    if (!c->in)
        c->in = memory(IN_BYTES + 1, 1);
    ssize_t n = recv(fd, c->in + c->len, IN_BYTES - c->len, 0);
    if (n <= 0) {
        end_conn(fd);
        return;
    }
    c->len += (size_t)n;
    size_t used;
    struct request request;
    while ((used = read_request(c->in, c->len, &request))) {
        if (serve(fd, &request) != 0) {
            end_conn(fd);
            return;
        }
        memmove(c->in, c->in + used, c->len - used);
        c->len -= used;
    }
}

static void load_files(const char *folder)
{
    for (int i = 0; i < ASSETS; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s%s", folder, bank.names[i]);
        FILE *file = fopen(path, "rb");
        if (!file || fseek(file, 0, SEEK_END) != 0)
            die(path, "cannot be read");
        bank.file_lens[i] = (size_t)ftell(file);
        fclose(file);
        bank.files[i] = read_all(path);
        if (broken("asset"))
            bank.files[i][bank.file_lens[i] - 1] ^= 1;
    }
}

static int listen_on(int port)
{
    int one = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 1024) != 0) {
        perror("perfect: listen");
        exit(1);
    }
    return fd;
}

static void accept_one(int epoll_fd, int listener)
{
    int one = 1;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (fd >= CONNS_MAX || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        close(fd);
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: perfect PORT users.tsv PUBLIC [BROKEN]\n");
        return 2;
    }
    bank.broken = argc == 5 ? argv[4] : "";
    bank.book = book_read(argv[2]);
    bank.accounts = memory(bank.book->count, sizeof(*bank.accounts));
    bank.addresses = memory(ADDRESSES, sizeof(*bank.addresses));
    load_files(argv[3]);
    int listener = listen_on((int)strtol(argv[1], NULL, 10));
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, listener, &event);
    for (;;) {
        struct epoll_event events[EVENTS_MAX];
        int n = epoll_wait(epoll_fd, events, EVENTS_MAX, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd == listener)
                accept_one(epoll_fd, listener);
            else
                on_readable(events[i].data.fd);
        }
    }
}
