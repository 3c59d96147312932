/* WebSockets of one process: how fast they echo, how long a message to all of them takes, or just many of them.
 *
 *     sockets ADDRESS:PORT -m echo   [-p PATH] [-n SOCKETS] [-d SECONDS] [-w WARM_UP_S] [-b BYTES] [-c]
 *     sockets ADDRESS:PORT -m fanout [-p PATH] [-n SOCKETS] [-P PUBLISH_PATH] [-r RATE] [-d SECONDS] [-b BYTES]
 *     sockets ADDRESS:PORT -m idle   [-p PATH] [-n SOCKETS] [-f FIRST] [-o AT_ONCE]
 *     sockets PORT         -m bare   [-n SOCKETS] [-r RATE] [-b BYTES]
 *
 * All but bare say "open" when all sockets are, bare says "listening" when it does. echo: each socket sends a message
 * when it has the last one back; -c: in the words of Action Cable, to the channel Echo and its action echo. fanout:
 * `POST PUBLISH_PATH` RATE times a second, or a message of the first socket's ("-"), or nothing, since messages come by
 * themselves (""); each socket gets it, and the time counts from then. idle: says "ready" and stays until its input
 * ends; each line of it is answered with one of JSON: sockets that are open, that have ended, Pings, sockets with a
 * Ping, and messages as fanout counts them. FIRST: the number of its first socket among those of all drivers. bare: the
 * reference of fanout, a server that does nothing but write: SOCKETS handshakes, then a frame of BYTES to each of them
 * with write(2), RATE times a second; ends with its input. One line of JSON: messages (or deliveries), errors, seconds,
 * times in ms. -T ADDRESS:PORT: sockets are opened there, over TLS; -2: over HTTP/2. AT_ONCE: so many
 * handshakes at a time. */
#define _GNU_SOURCE
#include "rows.h"
#include "socket_client.h"

#include <poll.h>
#include <signal.h>

enum { SPARE_FDS = 64, EVENTS = 512, TIMES_MAX = 1 << 23, PATIENCE_S = 60, BYTES_MAX = 1024 };

struct member {
    struct socket_client client; /* first: hooks cast */
    uint32_t number;
    double sent_s;
    uint32_t got; /* the number of the last message of a fan-out */
    uint32_t pings;
};

static struct {
    const char *mode;
    const char *path;
    const char *publish;
    uint32_t sockets;
    double seconds;
    double warm_s;
    double rate;
    uint32_t bytes;
    uint32_t first;
    uint32_t at_once; /* handshakes */
    bool cable;
    bool tls;
    bool http2;
} setup = {.mode = "echo",
           .path = "/echo",
           .publish = "/publish?channel=a",
           .sockets = 100,
           .seconds = 5,
           .warm_s = 1,
           .rate = 2,
           .bytes = 100,
           .at_once = 500};

static struct member *members;
static char text[BYTES_MAX];
static char said[BYTES_MAX]; /* a message, as it is sent and comes back: `text`, or that in the words of Action Cable */
static char back[BYTES_MAX];
static size_t said_len;
static size_t back_len;
static uint32_t open_count;
static uint64_t errors;
static uint64_t messages;
static uint64_t lost;
static uint64_t doubled;
static uint64_t ended;
static bool counting;
static bool echoes;
static double *times_ms;
static size_t time_count;

static void note(double ms)
{
    if (time_count < TIMES_MAX)
        times_ms[time_count++] = ms;
}

static void say(struct member *m)
{
    m->sent_s = http_now_s();
    if (!socket_send(&m->client, SOCKET_TEXT, said, said_len))
        errors++;
}

/* --- Action Cable --- */

#define CABLE_ID "\"identifier\":\"{\\\"channel\\\":\\\"Echo\\\"}\""

static void make_texts(void)
{
    memset(text, 'x', sizeof(text));
    const char *before = setup.cable ? "{\"command\":\"message\"," CABLE_ID
                                       ",\"data\":\"{\\\"action\\\":\\\"echo\\\",\\\"text\\\":\\\""
                                     : "";
    const char *behind = setup.cable ? "\\\"}\"}" : "";
    said_len = (size_t)snprintf(said, sizeof(said), "%s%.*s%s", before, (int)setup.bytes, text, behind);
    before = setup.cable ? "{" CABLE_ID ",\"message\":{\"text\":\"" : "";
    behind = setup.cable ? "\"}}" : "";
    back_len = (size_t)snprintf(back, sizeof(back), "%s%.*s%s", before, (int)setup.bytes, text, behind);
    if (said_len >= sizeof(said) || back_len >= sizeof(back))
        socket_die("a message that is too long");
}

static bool begins_with(const char *p, const char *wanted)
{
    return strncmp(p, wanted, strlen(wanted)) == 0;
}

/* True for what is no message of the channel. A socket is open when its subscription is. */
static bool is_of_cable(struct member *m, const char *p)
{
    static const char subscribe[] = "{\"command\":\"subscribe\"," CABLE_ID "}";
    if (begins_with(p, "{\"type\":\"welcome\"") &&
        !socket_send(&m->client, SOCKET_TEXT, subscribe, sizeof(subscribe) - 1))
        errors++;
    if (begins_with(p, "{" CABLE_ID ",\"type\":\"confirm_subscription\""))
        open_count++;
    return begins_with(p, "{\"type\":") || begins_with(p, "{" CABLE_ID ",\"type\":");
}

/* "NUMBER TIME": numbers count up from the one that comes first. */
static void take_numbered(struct member *m, char *p, double now)
{
    uint32_t number = (uint32_t)strtoul(p, &p, 10);
    if (number <= m->got)
        doubled++;
    else if (m->got)
        lost += number - m->got - 1;
    errors += number != m->got + 1 && m->got;
    m->got = number > m->got ? number : m->got;
    messages += counting;
    if (counting)
        note((now - strtod(p, NULL)) * 1e3);
}

static void on_opened(struct socket_client *client)
{
    open_count += !setup.cable;
}

static void on_message(struct socket_client *client, char *p, size_t n)
{
    struct member *m = (struct member *)client;
    double now = http_now_s();
    if (setup.cable && is_of_cable(m, p))
        return;
    if (!echoes) {
        take_numbered(m, p, now);
        return;
    }
    if (n != back_len || memcmp(p, back, n) != 0)
        errors++;
    if (counting) {
        messages++;
        note((now - m->sent_s) * 1e3);
    }
    say(m);
}

static void on_line(struct socket_client *client, char *p, size_t n)
{
}

static void on_ended(struct socket_client *client)
{
    errors++;
    ended++;
    if (client->status == 101)
        open_count--;
}

static void on_pinged(struct socket_client *client)
{
    ((struct member *)client)->pings++;
}

static const struct socket_hooks hooks = {on_opened, on_message, on_line, on_ended, on_pinged};

static void wait_for(int ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(socket_epoll, events, EVENTS, ms);
    for (int i = 0; i < n; i++)
        socket_read(events[i].data.ptr, &hooks);
}

/* True while there is hope: no error, and within PATIENCE_S a socket more. */
static bool goes_on(void)
{
    static uint32_t seen;
    static double since_s;
    if (open_count != seen || since_s == 0)
        since_s = http_now_s();
    seen = open_count;
    return errors == 0 && http_now_s() - since_s < PATIENCE_S;
}

static void open_all(void)
{
    for (uint32_t i = 0; i < setup.sockets; i++) {
        members[i].number = i;
        members[i].client = (struct socket_client){.kind = SOCKET_WEBSOCKET, .tls = setup.tls, .http2 = setup.http2};
        while (!socket_begin(&members[i].client, setup.first + i, setup.path, NULL) && goes_on())
            wait_for(10); /* the server's backlog is full */
        while (i + 1 - open_count > setup.at_once && goes_on())
            wait_for(10);
    }
    while (open_count < setup.sockets && goes_on())
        wait_for(10);
    if (open_count < setup.sockets) {
        fprintf(stderr, "sockets: %u of %u are open\n", open_count, setup.sockets);
        exit(1);
    }
    printf("open\n");
    fflush(stdout);
}

static void run_for(double seconds)
{
    double end = http_now_s() + seconds;
    while (http_now_s() < end)
        wait_for(10);
}

/* --- modes --- */

static double echo(void)
{
    for (uint32_t i = 0; i < setup.sockets; i++)
        say(&members[i]);
    run_for(setup.warm_s);
    counting = true;
    double start = http_now_s();
    run_for(setup.seconds);
    return http_now_s() - start;
}

static void publish(int fd, uint32_t number)
{
    char body[BYTES_MAX];
    char request[2 * BYTES_MAX];
    memset(body, ' ', sizeof(body));
    int len = snprintf(body, sizeof(body), "%u %.6f", number, http_now_s());
    body[len] = ' ';
    if (fd < 0) {
        errors += !socket_send(&members[0].client, SOCKET_TEXT, body, setup.bytes);
        return;
    }
    int n = snprintf(request, sizeof(request), "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %u\r\n\r\n%.*s",
                     setup.publish, setup.bytes, (int)setup.bytes, body);
    errors += send(fd, request, (size_t)n, MSG_NOSIGNAL) != n;
}

/* Messages that have not come yet. */
static uint64_t missing(uint32_t number)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < setup.sockets; i++)
        count += number - members[i].got;
    return count;
}

static double fanout(void)
{
    char answer[BYTES_MAX];
    bool by_socket = strcmp(setup.publish, "-") == 0;
    bool bare = setup.publish[0] == '\0'; /* messages come by themselves */
    int fd = by_socket || bare ? -1 : http_connect(&socket_server, (struct http_connecting){.flags = 0});
    double start = http_now_s();
    double next = start;
    uint32_t number = 0;
    run_for(0.2);
    while (http_now_s() < start + setup.warm_s + setup.seconds) {
        counting = http_now_s() > start + setup.warm_s;
        if (http_now_s() >= next && !bare) {
            publish(fd, ++number);
            next += 1 / setup.rate;
        }
        wait_for(1);
        if (fd >= 0)
            (void)recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
    }
    for (double end = http_now_s() + PATIENCE_S; missing(number) && !bare && http_now_s() < end;)
        run_for(0.1);
    errors += bare ? 0 : missing(number);
    return setup.seconds;
}

static void tell_counts(void)
{
    uint64_t pings = 0, pinged = 0;
    uint32_t least = UINT32_MAX;
    for (uint32_t i = 0; i < setup.sockets; i++) {
        pings += members[i].pings;
        pinged += members[i].pings > 0;
        least = members[i].got < least ? members[i].got : least;
    }
    sort_times(times_ms, time_count);
    printf("{\"sockets\":%u,\"open\":%u,\"ended\":%lu,\"pings\":%lu,\"pinged\":%lu,\"messages\":%lu,\"least\":%u,"
           "\"lost\":%lu,\"doubled\":%lu,\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f}\n",
           setup.sockets, open_count, ended, pings, pinged, messages, least, lost, doubled,
           time_at(times_ms, time_count, 50), time_at(times_ms, time_count, 99), time_at(times_ms, time_count, 100));
    fflush(stdout);
}

static void stay(void)
{
    char line[64];
    counting = true;
    printf("ready\n");
    fflush(stdout);
    for (;;) {
        struct pollfd input = {STDIN_FILENO, POLLIN, 0};
        if (poll(&input, 1, 0) > 0) {
            if (read(STDIN_FILENO, line, sizeof(line)) <= 0)
                return;
            tell_counts();
        }
        wait_for(20);
    }
}

/* --- the reference --- */

static int accept_bare(int listener)
{
    char request[BYTES_MAX * 4];
    static const char answer[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                 "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    int fd = accept(listener, NULL, NULL);
    if (fd < 0 || recv(fd, request, sizeof(request), 0) <= 0 || write(fd, answer, sizeof(answer) - 1) < 0)
        socket_die("accept");
    return fd;
}

static void bare(const char *port)
{
    int on = 1;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int *fds = calloc(setup.sockets, sizeof(*fds));
    char frame[4 + BYTES_MAX];
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, 4096) < 0)
        socket_die("listen");
    printf("listening\n");
    fflush(stdout);
    for (uint32_t i = 0; i < setup.sockets; i++) {
        fds[i] = accept_bare(listener);
        (void)setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    size_t head = setup.bytes < 126 ? 2 : 4;
    memset(frame, ' ', sizeof(frame));
    frame[0] = (char)0x81;
    frame[1] = (char)(head == 2 ? setup.bytes : 126);
    if (head == 4) {
        frame[2] = (char)(setup.bytes >> 8);
        frame[3] = (char)setup.bytes;
    }
    for (uint32_t number = 1;; number++) {
        struct pollfd input = {STDIN_FILENO, POLLIN, 0};
        if (poll(&input, 1, (int)(1000 / setup.rate)) > 0)
            return;
        int len = snprintf(frame + head, BYTES_MAX, "%u %.6f", number, http_now_s());
        frame[head + (size_t)len] = ' ';
        for (uint32_t i = 0; i < setup.sockets; i++)
            if (write(fds[i], frame, head + setup.bytes) < 0)
                return;
    }
}

static void report(double seconds)
{
    size_t n = time_count;
    sort_times(times_ms, n);
    printf("{\"sockets\":%u,\"messages\":%lu,\"errors\":%lu,\"seconds\":%.3f,\"p50\":%.3f,\"p99\":%.3f,\"max\":%.3f}\n",
           setup.sockets, messages, errors, seconds, time_at(times_ms, n, 50), time_at(times_ms, n, 99),
           time_at(times_ms, n, 100));
}

static void usage(void)
{
    fprintf(stderr, "usage: sockets ADDRESS:PORT -m echo|fanout|idle|bare [-p PATH] [-P PUBLISH_PATH] [-n SOCKETS] "
                    "[-r RATE] [-d SECONDS] [-w WARM_UP_S] [-b BYTES] [-f FIRST] [-o AT_ONCE] "
                    "[-T ADDRESS:PORT] [-2] [-c]\n");
    exit(2);
}

static void read_arguments(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "m:p:P:n:d:w:r:b:f:o:T:2c")) != -1) {
        switch (option) {
        case 'm':
            setup.mode = optarg;
            break;
        case 'p':
            setup.path = optarg;
            break;
        case 'P':
            setup.publish = optarg;
            break;
        case 'n':
            setup.sockets = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'd':
            setup.seconds = strtod(optarg, NULL);
            break;
        case 'w':
            setup.warm_s = strtod(optarg, NULL);
            break;
        case 'r':
            setup.rate = strtod(optarg, NULL);
            break;
        case 'b':
            setup.bytes = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'f':
            setup.first = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'o':
            setup.at_once = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'T':
            setup.tls = http_address_parse(&socket_tls_server, optarg);
            if (!setup.tls)
                usage();
            break;
        case '2':
            setup.http2 = true;
            break;
        case 'c':
            setup.cable = true;
            break;
        default:
            usage();
        }
    }
    if (optind != argc - 1 || setup.sockets == 0 || setup.rate <= 0 || setup.bytes < 40 || setup.bytes > BYTES_MAX / 2)
        usage();
    if (strcmp(setup.mode, "bare") != 0 && !http_address_parse(&socket_server, argv[optind]))
        usage();
}

int main(int argc, char **argv)
{
    double seconds = 0;
    read_arguments(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    http_want_descriptors(setup.sockets + SPARE_FDS);
    if (strcmp(setup.mode, "bare") == 0) {
        bare(argv[optind]);
        return 0;
    }
    socket_epoll = epoll_create1(EPOLL_CLOEXEC);
    members = calloc(setup.sockets, sizeof(*members));
    times_ms = calloc(TIMES_MAX, sizeof(*times_ms));
    echoes = strcmp(setup.mode, "echo") == 0;
    make_texts();
    open_all();
    if (strcmp(setup.mode, "idle") == 0) {
        stay();
        return 0;
    }
    seconds = echoes ? echo() : fanout();
    report(seconds);
    return errors ? 1 : 0;
}
