/* Listening sockets: what they are open on, who is refused, what is left behind. */
#include "config/listener.c"

#include "child.h"
#include "system.h"
#include "tap.h"
#include "words.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char error[ORIBI_ERROR_TEXT_CAP];
static char dir[] = "/tmp/oribi-listen-XXXXXX";
static struct oribi_listeners listeners;

static const char *in_dir(const char *name)
{
    static char path[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
    return path[turn];
}

static void clear_environment(void)
{
    oribi_inherited_clear();
    unsetenv("SERVER_STARTER_PORT");
    unsetenv("PORT");
}

/* Opens the addresses, which end with NULL; as if given on the command line. */
static int open_all(struct oribi_listeners *into, const char *const *addresses, bool reuse_port)
{
    struct oribi_options options;
    int code = 0;
    oribi_options_init(&options);
    options.reuse_port = reuse_port;
    for (size_t i = 0; addresses[i] && code == 0; i++)
        code = oribi_options_set(&options, "bind", addresses[i], error);
    if (code == 0)
        code = oribi_options_finish(&options, error);
    if (code == 0)
        code = oribi_listeners_open(into, &options, error);
    oribi_options_deinit(&options);
    return code;
}

#define OPEN(into, ...) open_all((into), (const char *const[]){__VA_ARGS__, NULL}, false)

/* Options with the trusted_proxies that the PROXY protocol needs. */
static struct oribi_options proxy_options;

static int open_proxy(struct oribi_listeners *into, const char *const *addresses)
{
    oribi_options_deinit(&proxy_options);
    oribi_options_init(&proxy_options);
    int code = oribi_options_set(&proxy_options, "trusted_proxies", "unix", error);
    for (size_t i = 0; addresses[i] && code == 0; i++)
        code = oribi_options_set(&proxy_options, "bind", addresses[i], error);
    code = code < 0 ? code : oribi_options_finish(&proxy_options, error);
    return code < 0 ? code : oribi_listeners_open(into, &proxy_options, error);
}

#define OPEN_PROXY(into, ...) open_proxy((into), (const char *const[]){__VA_ARGS__, NULL})

static int flag(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);
    return getsockopt(fd, level, name, &value, &len) < 0 ? -1 : value;
}

static uint16_t port_of(const struct oribi_listener *item)
{
    return (uint16_t)strtoul(item->port, NULL, 10);
}

/* Connects and returns the socket, or -1. */
static int connect_to(const struct oribi_listener *item)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in6 in6 = {
        .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback, .sin6_port = htons(port_of(item))};
    struct sockaddr_in in = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port_of(item))};
    struct sockaddr *where = (struct sockaddr *)&in;
    socklen_t len = sizeof(in);
    if (item->is_unix) {
        memcpy(un.sun_path, item->text + 7, strlen(item->text + 7));
        where = (struct sockaddr *)&un;
        len = sizeof(un);
    } else if (strchr(item->text, '[')) {
        where = (struct sockaddr *)&in6;
        len = sizeof(in6);
    }
    int fd = socket(where->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, where, len) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* A connection to the listener that has sent a byte is accepted from it. */
static int accept_one(const struct oribi_listener *item)
{
    int fd = -1;
    int client = connect_to(item);
    struct pollfd wanted = {.fd = item->fd, .events = POLLIN};
    if (client < 0 || write(client, "x", 1) != 1 || poll(&wanted, 1, 5000) != 1)
        fd = -1;
    else if (oribi_os_accept(item->fd, &fd, NULL, NULL) < 0)
        fd = -1;
    close(client);
    return fd;
}

static bool answers(const struct oribi_listener *item)
{
    int fd = accept_one(item);
    oribi_os_close(fd);
    return fd >= 0;
}

/* A listening TCP socket on a free port, as a service manager makes it: blocking, inheritable. */
static int make_socket(char address[64])
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(in);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(fd, (struct sockaddr *)&in, len) < 0 || listen(fd, 16) < 0 ||
        getsockname(fd, (struct sockaddr *)&in, &len) < 0)
        exit(2);
    snprintf(address, 64, "127.0.0.1:%u", ntohs(in.sin_port));
    return fd;
}

static void test_tcp_sockets_are_ready_to_serve(void)
{
    ok_eq(OPEN(&listeners, "127.0.0.1:0"), 0);
    struct oribi_listener *item = &listeners.items[0];
    char text[64];
    ok_eq(listeners.count, 1);
    ok_named(port_of(item) > 0, "port %s was found", item->port);
    snprintf(text, sizeof(text), "tcp://127.0.0.1:%s", item->port);
    is_str(item->text, text);
    is_str(item->spec, "tcp://127.0.0.1:0");
    is_str(item->host, "127.0.0.1");
    ok(!item->is_unix && !item->inherited && item->path == NULL && item->origin == ORIBI_ORIGIN_OWN);
    ok(fcntl(item->fd, F_GETFD) & FD_CLOEXEC);
    ok(fcntl(item->fd, F_GETFL) & O_NONBLOCK);
    ok_eq(flag(item->fd, SOL_SOCKET, SO_REUSEADDR), 1);
    ok_eq(flag(item->fd, SOL_SOCKET, SO_REUSEPORT), 0);
    ok_eq(flag(item->fd, IPPROTO_TCP, TCP_DEFER_ACCEPT) > 0, oribi_os_adopts_orphans());
    int accepted = accept_one(item);
    ok_named(flag(accepted, IPPROTO_TCP, TCP_NODELAY) == 1, "accepted sockets do not delay");
    oribi_os_close(accepted);
    int fd = item->fd;
    oribi_listeners_close(&listeners, true);
    ok_eq(listeners.count, 0);
    ok(fcntl(fd, F_GETFD) < 0);
}

static void test_ipv6_sockets_take_ipv6_only(void)
{
    char both[2][64];
    if (OPEN(&listeners, "[::1]:0") < 0) {
        tap_skip(5, error);
        return;
    }
    is_str(listeners.items[0].host, "[::1]");
    ok(strncmp(listeners.items[0].text, "tcp://[::1]:", 12) == 0);
    ok(answers(&listeners.items[0]));
    oribi_listeners_close(&listeners, true);
    ok_eq(OPEN(&listeners, "[::]:0"), 0);
    snprintf(both[0], sizeof(both[0]), "[::]:%s", listeners.items[0].port);
    snprintf(both[1], sizeof(both[1]), "0.0.0.0:%s", listeners.items[0].port);
    oribi_listeners_close(&listeners, true);
    ok_named(OPEN(&listeners, both[0], both[1]) == 0, "[::] and 0.0.0.0 share a port %s", error);
    oribi_listeners_close(&listeners, true);
}

/* Does a connection to this host and the port of the first listener come about? */
static bool connects(const char *host)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, listeners.items[0].port, &hints, &found) != 0)
        return false;
    int fd = oribi_os_socket(found->ai_family, SOCK_STREAM, false);
    bool connected = connect(fd, found->ai_addr, found->ai_addrlen) == 0;
    oribi_os_close(fd);
    freeaddrinfo(found);
    return connected;
}

static bool has_ipv6(void)
{
    bool has = OPEN(&listeners, "[::1]:0") == 0;
    oribi_listeners_close(&listeners, true);
    return has;
}

static void test_two_colons_are_every_address(void)
{
    static const char *const spellings[] = {"[::]:0", "tcp://[0::0]:0", "[::]:0?ipv6only=off&backlog=7"};
    if (!has_ipv6()) {
        tap_skip(15, error);
        return;
    }
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        ok_eq(OPEN(&listeners, spellings[i]), 0);
        ok_eq(listeners.count, 2);
        ok(connects("::1"));
        ok(connects("127.0.0.1"));
        is_str(listeners.items[1].port, listeners.items[0].port);
        oribi_listeners_close(&listeners, true);
    }
}

static void test_two_colons_without_ipv4(void)
{
    char six[64];
    char four[64];
    if (!has_ipv6()) {
        tap_skip(10, error);
        return;
    }
    ok_eq(OPEN(&listeners, "[::]:0?ipv6only=on"), 0);
    ok_eq(listeners.count, 1);
    ok(connects("::1"));
    ok(!connects("127.0.0.1"));
    snprintf(six, sizeof(six), "[::]:%s", listeners.items[0].port);
    snprintf(four, sizeof(four), "127.0.0.1:%s", listeners.items[0].port);
    oribi_listeners_close(&listeners, true);
    ok_eq(OPEN(&listeners, six, four), 0); /* an address of IPv4 for the port says which of them are meant */
    ok_eq(listeners.count, 2);
    is_str(listeners.items[1].text + strlen("tcp://"), four);
    oribi_listeners_close(&listeners, true);
    ok_eq(OPEN(&listeners, "127.0.0.1:0?ipv6only=on"), ORIBI_EINVAL);
    is_str(error, "address \"127.0.0.1:0?ipv6only=on\" is not [::], so that ipv6only says nothing");
    ok_eq(OPEN(&listeners, "[::]:0?ipv6only=yes"), ORIBI_EINVAL);
}

/* Opens `after` with the sockets of `before` handed down, as a reload and an upgrade do. */
static void hand_down(struct oribi_listeners *next, const char *before, const char *after)
{
    char value[ORIBI_INHERITED_TEXT_CAP];
    ok_eq(OPEN(&listeners, before), 0);
    (void)oribi_inherited_format(&listeners, value, sizeof(value));
    setenv("ORIBI_LISTEN", value, 1);
    char address[64];
    snprintf(address, sizeof(address), "%s:%s", after, listeners.items[0].port);
    ok_named(OPEN(next, address) == 0, "%s follows %s: %s", address, before, error);
    unsetenv("ORIBI_LISTEN");
}

static void test_two_colons_follow_other_addresses_and_are_followed(void)
{
    static const struct {
        const char *before;
        const char *after;
        uint32_t count;
    } cases[] = {
        {"[::]:0", "[::]", 2}, {"[::]:0?ipv6only=on", "[::]", 2}, {"0.0.0.0:0", "[::]", 2}, {"[::]:0", "0.0.0.0", 1}};
    struct oribi_listeners next = {0};
    if (!has_ipv6()) {
        tap_skip(12, error);
        return;
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hand_down(&next, cases[i].before, cases[i].after);
        ok_named(next.count == cases[i].count, "%s after %s: %u sockets", cases[i].after, cases[i].before, next.count);
        oribi_listeners_close(&next, true);
        listeners.count = 0; /* taken, or closed as left over */
    }
}

static void test_a_socket_for_both_families_needs_no_second(void)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6};
    int fd = oribi_os_socket(AF_INET6, SOCK_STREAM, true);
    if (!has_ipv6() || bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0 || listen(fd, 1) < 0) {
        oribi_os_close(fd);
        tap_skip(4, "no IPv6");
        return;
    }
    ok_eq(oribi_listeners_adopt(&listeners, fd, ORIBI_ORIGIN_SYSTEMD, NULL, error), 0);
    struct opening opening = {.listeners = &listeners, .error = error};
    struct oribi_address address;
    ok_eq(oribi_address_parse(listeners.items[0].text, &address, error), 0);
    ok_eq(open_every(&opening, &address), 0);
    ok_eq(listeners.count, 1);
    oribi_listeners_close(&listeners, true);
}

static void test_a_name_is_opened_on_all_its_addresses_with_one_port(void)
{
    ok_eq(OPEN(&listeners, "localhost:0"), 0);
    bool same_port = listeners.count >= 1;
    for (uint32_t i = 0; i < listeners.count; i++) {
        same_port = same_port && strcmp(listeners.items[i].port, listeners.items[0].port) == 0;
        ok(answers(&listeners.items[i]));
        is_str(listeners.items[i].host, "localhost");
        is_str(listeners.items[i].spec, "tcp://localhost:0");
    }
    ok(same_port);
    oribi_listeners_close(&listeners, true);
}

static void test_several_addresses_are_served_at_once(void)
{
    ok_eq(OPEN(&listeners, "127.0.0.1:0", in_dir("a"), "127.0.0.1:0", in_dir("b")), 0);
    ok_eq(listeners.count, 3); /* two spellings of one address are one listener, also with port 0 */
    for (uint32_t i = 0; i < listeners.count; i++)
        ok_named(answers(&listeners.items[i]), "%s answers", listeners.items[i].text);
    oribi_listeners_close(&listeners, true);
}

/* One way or the other the process that follows us must expect what this one expected. */
static void test_proxy_is_expected_where_it_was_asked_for_also_on_sockets_handed_down(void)
{
    char value[ORIBI_INHERITED_TEXT_CAP];
    struct oribi_listeners next = {0};
    ok_eq(OPEN_PROXY(&listeners, "127.0.0.1:0?proxy=on", in_dir("plain")), 0);
    ok(listeners.items[0].proxy);
    ok(!listeners.items[1].proxy);
    (void)oribi_inherited_format(&listeners, value, sizeof(value));
    setenv("ORIBI_LISTEN", value, 1);
    ok_eq(OPEN_PROXY(&next, "127.0.0.1:0?proxy=on", in_dir("plain")), 0);
    ok_eq(next.count, 2);
    ok_eq(next.items[0].fd, listeners.items[0].fd);
    ok(next.items[0].proxy);
    ok(!next.items[1].proxy);
    oribi_listeners_close(&next, true);
    oribi_mem_free(listeners.items[1].path);
    listeners.count = 0;
    oribi_options_deinit(&proxy_options);
}

static void test_a_taken_port_is_refused_in_one_line(void)
{
    struct oribi_listeners second = {0};
    char address[64];
    char expected[128];
    ok_eq(OPEN(&listeners, "127.0.0.1:0"), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%s", listeners.items[0].port);
    snprintf(expected, sizeof(expected), "cannot listen on tcp://%s: %s", address, words_of(EADDRINUSE));
    ok_eq(OPEN(&second, in_dir("gone"), address), ORIBI_ESYS);
    is_str(error, expected);
    ok_eq(second.count, 0);
    ok_named(access(in_dir("gone"), F_OK) < 0, "what was opened before is gone again");
    oribi_listeners_close(&listeners, true);
}

static void test_reuse_port_lets_two_listen(void)
{
    struct oribi_listeners second = {0};
    char address[64];
    const char *const first[] = {"127.0.0.1:0", NULL};
    ok_eq(open_all(&listeners, first, true), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%s", listeners.items[0].port);
    const char *const again[] = {address, NULL};
    ok_eq(flag(listeners.items[0].fd, SOL_SOCKET, SO_REUSEPORT), 1);
    ok_eq(open_all(&second, again, true), 0);
    oribi_listeners_close(&second, true);
    oribi_listeners_close(&listeners, true);
}

static void test_addresses_that_cannot_be_are_refused_in_one_line(void)
{
    char expected[128];
    snprintf(expected, sizeof(expected), "cannot listen on tcp://192.0.2.1:0: %s", words_of(EADDRNOTAVAIL));
    ok_eq(OPEN(&listeners, "192.0.2.1:0"), ORIBI_ESYS); /* RFC 5737: nobody's */
    is_str(error, expected);
    ok(OPEN(&listeners, "no-such-host.invalid:80") < 0);
    ok_named(strncmp(error, "cannot listen on tcp://no-such-host.invalid:80: ", 48) == 0, "%s", error);
    ok_eq(OPEN(&listeners, "/nonexistent/dir/sock"), ORIBI_ESYS);
    is_str(error, "cannot listen on unix:///nonexistent/dir/sock: no such file or directory");
    ok_eq(OPEN(&listeners, "fd://name"), ORIBI_EINVAL);
    is_str(error, "cannot listen on fd://name: no socket of that name is handed down");
    ok_eq(OPEN(&listeners, "fd://98765"), ORIBI_EINVAL);
    is_str(error, "descriptor 98765 is not a listening stream socket");
}

static int bind_privileged(void *data)
{
    (void)data;
    if (setgid(65534) < 0 || setuid(65534) < 0)
        return 2;
    int code = OPEN(&listeners, "127.0.0.1:81");
    const char *line = "cannot listen on tcp://127.0.0.1:81: permission denied; ports below 1024 need root, or "
                       "AmbientCapabilities=CAP_NET_BIND_SERVICE in systemd";
    return code == ORIBI_ESYS && strcmp(error, line) == 0 ? 0 : 1;
}

static void test_a_port_that_is_not_allowed_is_refused(void)
{
    char line[32] = "";
    if (geteuid() != 0 || oribi_os_read_line("/proc/sys/net/ipv4/ip_unprivileged_port_start", line, sizeof(line)) < 0 ||
        strtol(line, NULL, 10) <= 81)
        tap_skip(1, "needs root, and a system that guards low ports");
    else
        ok_eq(child_code(bind_privileged, NULL), 0);
}

/* Unix sockets */

static mode_t mode_of(const char *path)
{
    struct stat file;
    return stat(path, &file) < 0 ? 0 : file.st_mode & 07777;
}

static void test_unix_sockets_have_the_mode_that_was_asked_for(void)
{
    static const struct {
        const char *query;
        mode_t mode;
    } cases[] = {
        {"", 0777}, {"?umask=007", 0770}, {"?umask=077", 0700}, {"?mode=660", 0660}, {"?mode=600&backlog=5", 0600}};
    umask(022);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char address[160];
        snprintf(address, sizeof(address), "unix://%s%s", in_dir("mode"), cases[i].query);
        ok_eq(OPEN(&listeners, address), 0);
        ok_named(mode_of(in_dir("mode")) == cases[i].mode, "\"%s\" gives %o", cases[i].query, mode_of(in_dir("mode")));
        oribi_listeners_close(&listeners, true);
    }
    ok_named(umask(022) == 022, "the process's umask is as it was");
}

static void test_unix_sockets_are_described_and_removed_by_their_owner(void)
{
    char text[160];
    ok_eq(OPEN(&listeners, in_dir("u")), 0);
    struct oribi_listener *item = &listeners.items[0];
    snprintf(text, sizeof(text), "unix://%s", in_dir("u"));
    is_str(item->text, text);
    is_str(item->spec, text);
    is_str(item->host, "localhost");
    is_str(item->port, "");
    is_str(item->path, in_dir("u"));
    ok(item->is_unix);
    ok(answers(item));
    oribi_listeners_close(&listeners, false);
    ok_named(access(in_dir("u"), F_OK) == 0, "a worker leaves the file");
    ok_named(OPEN(&listeners, in_dir("u")) == 0, "a stale file is replaced %s", error);
    oribi_listeners_close(&listeners, true);
    ok_named(access(in_dir("u"), F_OK) < 0, "the owner removes it");
}

static void test_a_live_socket_is_in_use(void)
{
    struct oribi_listeners second = {0};
    char expected[ORIBI_ERROR_TEXT_CAP];
    ok_eq(OPEN(&listeners, in_dir("live")), 0);
    snprintf(expected, sizeof(expected), "cannot listen on unix://%s: address already in use", in_dir("live"));
    ok_eq(OPEN(&second, in_dir("live")), ORIBI_EINVAL);
    is_str(error, expected);
    ok_named(access(in_dir("live"), F_OK) == 0, "its file is still there");
    int fd = -1;
    while (oribi_os_accept(listeners.items[0].fd, &fd, NULL, NULL) == 0) /* the probe's connection */
        oribi_os_close(fd);
    ok(answers(&listeners.items[0]));
    oribi_listeners_close(&listeners, true);
}

static void test_a_file_that_is_no_socket_stays(void)
{
    char expected[ORIBI_ERROR_TEXT_CAP];
    int fd = open(in_dir("file"), O_CREAT | O_WRONLY, 0600);
    ok_eq(write(fd, "mine", 4), 4);
    close(fd);
    snprintf(expected, sizeof(expected), "cannot listen on unix://%s: there is a file that is not a socket",
             in_dir("file"));
    ok_eq(OPEN(&listeners, in_dir("file")), ORIBI_EINVAL);
    is_str(error, expected);
    ok(access(in_dir("file"), F_OK) == 0);
    unlink(in_dir("file"));
}

static void test_a_successors_file_stays(void)
{
    struct oribi_listeners successor = {0};
    ok_eq(OPEN(&listeners, in_dir("next")), 0);
    unlink(in_dir("next"));
    ok_eq(OPEN(&successor, in_dir("next")), 0);
    oribi_listeners_close(&listeners, true);
    ok(access(in_dir("next"), F_OK) == 0);
    ok(answers(&successor.items[0]));
    oribi_listeners_close(&successor, true);
    ok(access(in_dir("next"), F_OK) < 0);
}

static void test_a_path_of_107_bytes_works(void)
{
    char path[128];
    size_t n = (size_t)snprintf(path, sizeof(path), "%s/", dir);
    memset(path + n, 'p', 107 - n);
    path[107] = '\0';
    ok_eq(OPEN(&listeners, path), 0);
    is_str(listeners.items[0].path, path);
    ok(answers(&listeners.items[0]));
    oribi_listeners_close(&listeners, true);
    ok(access(path, F_OK) < 0);
}

static void test_64_sockets_can_be_open_and_no_more(void)
{
    char paths[ORIBI_LISTENERS_MAX + 1][128];
    const char *addresses[ORIBI_LISTENERS_MAX + 1] = {0};
    for (int i = 0; i < ORIBI_LISTENERS_MAX; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/n%d", dir, i);
        addresses[i] = paths[i];
    }
    ok_eq(open_all(&listeners, addresses, false), 0);
    ok_eq(listeners.count, ORIBI_LISTENERS_MAX);
    char address[64];
    ok_eq(oribi_listeners_adopt(&listeners, make_socket(address), ORIBI_ORIGIN_FD, NULL, error), ORIBI_EINVAL);
    is_str(error, "more than 64 listening sockets");
    ok_eq(listeners.count, ORIBI_LISTENERS_MAX);
    struct oribi_options options = {.backlog = 1};
    struct opening opening = {.listeners = &listeners, .options = &options, .error = error};
    struct oribi_address one_more = {.type = ORIBI_ADDRESS_UNIX};
    snprintf(one_more.name, sizeof(one_more.name), "%s/n64", dir);
    ok_eq(open_unix(&opening, &one_more), ORIBI_EINVAL);
    ok_named(access(one_more.name, F_OK) < 0, "one too many leaves no file behind");
    oribi_listeners_close(&listeners, true);
    for (int i = 0; i < ORIBI_LISTENERS_MAX; i++)
        ok_named(access(paths[i], F_OK) < 0, "%s is gone", paths[i]);
}

/* Handed down */

static void test_server_starter_sockets_are_served_and_bind_is_not(void)
{
    char address[64];
    char value[256];
    int tcp = make_socket(address);
    ok_eq(OPEN(&listeners, in_dir("starter")), 0);
    int un = listeners.items[0].fd;
    snprintf(value, sizeof(value), "%s=%d;%s=%d", address, tcp, in_dir("starter"), un);
    setenv("SERVER_STARTER_PORT", value, 1);
    struct oribi_listeners taken = {0};
    ok_eq(OPEN(&taken, in_dir("unwanted")), 0);
    ok_eq(taken.count, 2);
    ok(access(in_dir("unwanted"), F_OK) < 0);
    ok_eq(taken.items[0].fd, tcp);
    ok(strcmp(taken.items[0].text + 6, address) == 0 && strcmp(taken.items[0].spec, taken.items[0].text) == 0);
    is_str(taken.items[0].host, "127.0.0.1");
    ok(strcmp(taken.items[0].port, strchr(address, ':') + 1) == 0);
    ok(taken.items[0].inherited && taken.items[1].inherited && taken.items[1].is_unix && taken.items[1].path == NULL);
    ok(fcntl(tcp, F_GETFD) & FD_CLOEXEC);
    ok(fcntl(tcp, F_GETFL) & O_NONBLOCK);
    ok(answers(&taken.items[0]) && answers(&taken.items[1]));
    ok_named(getenv("SERVER_STARTER_PORT") != NULL, "the variable stays for who looks for it");
    oribi_listeners_close(&taken, true);
    ok_named(access(in_dir("starter"), F_OK) == 0, "a handed-down socket's file is not ours");
    clear_environment();
    unlink(in_dir("starter"));
    oribi_mem_free(listeners.items[0].path); /* its descriptor was handed down and is closed */
    listeners.count = 0;
}

static void test_a_bind_says_what_a_socket_of_server_starter_speaks(void)
{
    char address[64];
    char value[256];
    char tls[128];
    char plain[128];
    int fd = make_socket(address);
    snprintf(value, sizeof(value), "%s=%d", address, fd);
    snprintf(tls, sizeof(tls), "tls://%s?certificate=/a", address);
    snprintf(plain, sizeof(plain), "tcp://%s?proxy=on", address);
    setenv("SERVER_STARTER_PORT", value, 1);
    int code = OPEN_PROXY(&listeners, plain, in_dir("unwanted"));
    ok_named(code == 0, "%s", code < 0 ? error : "it opens");
    ok_eq(listeners.count, 1);
    ok(!listeners.items[0].tls && !listeners.items[0].frontend && listeners.items[0].proxy);
    oribi_mem_free(listeners.items[0].path);
    listeners.count = 0;
    ok_eq(OPEN(&listeners, in_dir("unwanted"), tls), 0);
    ok_eq(listeners.count, 1);
    ok(listeners.items[0].tls && listeners.items[0].frontend && listeners.items[0].fd == fd);
    ok(access(in_dir("unwanted"), F_OK) < 0);
    int copy = dup(fd);
    oribi_listeners_close(&listeners, true);
    snprintf(value, sizeof(value), "%s=%d", address, copy);
    setenv("SERVER_STARTER_PORT", value, 1);
    ok_eq(OPEN(&listeners, "tls://127.0.0.1:1?certificate=/a"), ORIBI_EINVAL);
    is_str(error, "cannot listen on tls://127.0.0.1:1: SERVER_STARTER_PORT hands no such socket down");
    clear_environment();
}

/* LISTEN_FDS starts at descriptor 3: played in a child, which owns its table. */
struct systemd_case {
    const char *bind; /* NULL: none */
    const char *names;
    const char *pid; /* NULL: the child's own */
    int expect_code;
    uint32_t expect_count;
    bool expect_first_inherited;
};

static int play_systemd(void *data)
{
    const struct systemd_case *play = data;
    char address[64];
    char pid[32];
    int fd = make_socket(address);
    int null = open("/dev/null", O_WRONLY);
    if (dup2(fd, 3) < 0 || dup2(null, 2) < 0)
        return 10;
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LISTEN_PID", play->pid ? play->pid : pid, 1);
    setenv("LISTEN_FDS", "1", 1);
    if (play->names)
        setenv("LISTEN_FDNAMES", play->names, 1);
    const char *const none[] = {NULL};
    const char *const one[] = {play->bind && strcmp(play->bind, "SAME") == 0 ? address : play->bind, NULL};
    setenv("PORT", "0", 1); /* the default address, if it is opened */
    int code = open_all(&listeners, play->bind ? one : none, false);
    if (code != play->expect_code)
        return 11;
    if (code < 0)
        return 0;
    if (listeners.count != play->expect_count)
        return 12;
    if (listeners.items[0].inherited != play->expect_first_inherited ||
        (listeners.items[0].fd == 3) != play->expect_first_inherited)
        return 13;
    if (getenv("LISTEN_FDS") || getenv("LISTEN_PID") || getenv("LISTEN_FDNAMES"))
        return 14;
    return answers(&listeners.items[0]) ? 0 : 15;
}

static void test_systemd_sockets_are_served(void)
{
    static struct systemd_case cases[] = {
        {NULL, NULL, NULL, 0, 1, true},        /* no bind: what is handed down */
        {"SAME", NULL, NULL, 0, 1, true},      /* a bind that it is for */
        {"fd://3", NULL, NULL, 0, 1, true},    /* by number */
        {"fd://web", "web", NULL, 0, 1, true}, /* by name */
        {"fd://other", "web", NULL, ORIBI_EINVAL, 0, true},
        {"127.0.0.1:0", NULL, NULL, 0, 1, false}, /* another bind: not asked for */
        {NULL, NULL, "1", 0, 1, false},           /* meant for another process */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ok_named(child_code(play_systemd, &cases[i]) == 0, "systemd case %zu", i);
}

static void test_our_own_hand_over_keeps_what_is_still_wanted(void)
{
    char value[ORIBI_INHERITED_TEXT_CAP];
    struct oribi_listeners next = {0};
    ok_eq(OPEN(&listeners, "127.0.0.1:0", "localhost:0", in_dir("kept"), in_dir("dropped")), 0);
    uint32_t count = listeners.count;
    int kept = listeners.items[count - 2].fd;
    int dropped = listeners.items[count - 1].fd;
    (void)oribi_inherited_format(&listeners, value, sizeof(value));
    setenv("ORIBI_LISTEN", value, 1);
    ok_eq(OPEN(&next, "127.0.0.1:0", "localhost:0", in_dir("kept"), in_dir("new")), 0);
    ok_eq(next.count, count);
    for (uint32_t i = 0; i + 2 < count; i++)
        ok_named(next.items[i].fd == listeners.items[i].fd && strcmp(next.items[i].port, listeners.items[i].port) == 0,
                 "%s keeps its port", next.items[i].text);
    ok_eq(next.items[count - 2].fd, kept);
    ok_named(next.items[count - 2].path != NULL && !next.items[count - 2].inherited,
             "the file has passed to the successor");
    ok_named(fcntl(dropped, F_GETFD) < 0, "what nobody asks for any more is closed");
    ok_named(access(in_dir("dropped"), F_OK) == 0, "its file belongs to who still listens");
    ok(getenv("ORIBI_LISTEN") == NULL);
    oribi_listeners_close(&next, true);
    ok(access(in_dir("kept"), F_OK) < 0 && access(in_dir("new"), F_OK) < 0);
    for (uint32_t i = 0; i < count; i++)
        oribi_mem_free(listeners.items[i].path);
    listeners.count = 0;
    unlink(in_dir("dropped"));
}

static void test_a_failed_hand_over_leaves_the_files_of_the_living(void)
{
    char value[ORIBI_INHERITED_TEXT_CAP];
    struct oribi_listeners next = {0};
    ok_eq(OPEN(&listeners, in_dir("alive")), 0);
    int original = dup(listeners.items[0].fd);
    (void)oribi_inherited_format(&listeners, value, sizeof(value));
    setenv("ORIBI_LISTEN", value, 1);
    ok(OPEN(&next, in_dir("alive"), in_dir("fresh"), "/nonexistent/dir/s") < 0);
    ok(access(in_dir("alive"), F_OK) == 0);
    ok(access(in_dir("fresh"), F_OK) < 0);
    clear_environment();
    listeners.items[0].fd = original;
    ok(answers(&listeners.items[0]));
    oribi_listeners_close(&listeners, true);
    ok(access(in_dir("alive"), F_OK) < 0);
}

static void test_sockets_from_outside_pass_on_through_our_hand_over(void)
{
    char address[64];
    char value[ORIBI_INHERITED_TEXT_CAP];
    struct oribi_listeners next = {0};
    int fd = make_socket(address);
    snprintf(value, sizeof(value), "%s=%d", address, fd);
    setenv("SERVER_STARTER_PORT", value, 1);
    ok_eq(OPEN(&listeners, in_dir("ignored")), 0);
    (void)oribi_inherited_format(&listeners, value, sizeof(value));
    setenv("ORIBI_LISTEN", value, 1);
    ok_eq(OPEN(&next, in_dir("ignored")), 0);
    ok_eq(next.count, 1);
    ok(next.items[0].fd == fd && next.items[0].inherited && next.items[0].origin == ORIBI_ORIGIN_STARTER);
    ok(access(in_dir("ignored"), F_OK) < 0);
    oribi_listeners_close(&next, true);
    listeners.count = 0;
    clear_environment();
}

static void test_what_is_no_listening_socket_is_refused(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    int bound = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(bound, (struct sockaddr *)&in, sizeof(in)) < 0)
        exit(2);
    int descriptors[] = {udp, bound, open("/dev/null", O_RDONLY)};
    for (size_t i = 0; i < 3; i++) {
        char expected[128];
        snprintf(expected, sizeof(expected), "descriptor %d is not a listening stream socket", descriptors[i]);
        ok_eq(oribi_listeners_adopt(&listeners, descriptors[i], ORIBI_ORIGIN_FD, NULL, error), ORIBI_EINVAL);
        is_str(error, expected);
        ok_named(fcntl(descriptors[i], F_GETFD) < 0, "it was taken");
    }
    ok_eq(listeners.count, 0);
}

/* A child that closes its copy must not stop the parent's listening. */
static int close_copy(void *data)
{
    (void)data;
    oribi_listeners_close(&listeners, false);
    return 0;
}

static void test_closing_a_copy_leaves_the_original_listening(void)
{
    ok_eq(OPEN(&listeners, "127.0.0.1:0", in_dir("copy")), 0);
    ok_eq(child_code(close_copy, NULL), 0);
    ok(answers(&listeners.items[0]));
    ok(answers(&listeners.items[1]));
    oribi_listeners_close(&listeners, true);
}

int main(void)
{
    clear_environment();
    oribi_log_init(STDERR_FILENO, ORIBI_LOG_ERROR);
    if (!mkdtemp(dir))
        return 2;
    test_tcp_sockets_are_ready_to_serve();
    test_ipv6_sockets_take_ipv6_only();
    test_two_colons_are_every_address();
    test_two_colons_without_ipv4();
    test_two_colons_follow_other_addresses_and_are_followed();
    test_a_socket_for_both_families_needs_no_second();
    test_a_name_is_opened_on_all_its_addresses_with_one_port();
    test_several_addresses_are_served_at_once();
    test_proxy_is_expected_where_it_was_asked_for_also_on_sockets_handed_down();
    test_a_taken_port_is_refused_in_one_line();
    test_reuse_port_lets_two_listen();
    test_addresses_that_cannot_be_are_refused_in_one_line();
    test_a_port_that_is_not_allowed_is_refused();
    test_unix_sockets_have_the_mode_that_was_asked_for();
    test_unix_sockets_are_described_and_removed_by_their_owner();
    test_a_live_socket_is_in_use();
    test_a_file_that_is_no_socket_stays();
    test_a_successors_file_stays();
    test_a_path_of_107_bytes_works();
    test_64_sockets_can_be_open_and_no_more();
    test_server_starter_sockets_are_served_and_bind_is_not();
    test_a_bind_says_what_a_socket_of_server_starter_speaks();
    test_systemd_sockets_are_served();
    test_our_own_hand_over_keeps_what_is_still_wanted();
    test_a_failed_hand_over_leaves_the_files_of_the_living();
    test_sockets_from_outside_pass_on_through_our_hand_over();
    test_what_is_no_listening_socket_is_refused();
    test_closing_a_copy_leaves_the_original_listening();
    ok_named(rmdir(dir) == 0, "nothing is left behind");
    return done_testing();
}
