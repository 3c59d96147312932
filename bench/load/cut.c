/* The cut test: clients of channels with a history are cut again and again, come back with the position that they have,
 * and are to get each message exactly once and in order.
 *
 *     cut ADDRESS:PORT [-n CLIENTS] [-e EVENT STREAMS OF 100] [-c CHANNELS] [-r MESSAGES A SECOND OF A CHANNEL]
 *         [-t SECONDS BETWEEN CUTS] [-a AWAY_MS] [-d SECONDS] [-S] [-T ADDRESS:PORT OF TLS] [-w WIRES]
 *         [-m MESSAGES A SECOND OF ALL WEBSOCKETS]
 *
 * WIRES are of h1, h2, h1s and h2s, with commas between them: HTTP/1.1 and HTTP/2, s over TLS. Clients take them by
 * turns. A client of HTTP/2 has a connection of its own.
 *
 * Clients are WebSockets at /socket?channel=h:N&since=ID (accepted with ids) and event streams at /events?channel=h:N.
 * Messages are published by `POST /publish?channel=h:N`, one after another for each channel; each is its number in the
 * channel, from 1 on, and the time. A cut is a reset for every other client, else an end; the client comes back after a
 * time of up to AWAY_MS. Cuts are spread, with -S all come at once. After the last message everybody has PATIENCE_S to
 * get it.
 *
 * With -m WebSockets send messages, one after another and each one at a time, which a slow handler (slow= in the
 * target) sends back. One whose worker was killed in the call (1011) is `killed`; one that never comes back to a socket
 * that stays is lost.
 *
 * A message counts as lost where its publication was answered with 204 and a client that got a later one, with no reset
 * between them, has not got it; as doubled where it comes again. A client that does not have the last message in the
 * end is silent. One line of JSON, times in ms; `replay` is the time from connecting until all is there that was
 * published before. Exit code 1: something was lost or doubled, or somebody is silent. */
#define _GNU_SOURCE
#include "rows.h"
#include "socket_client.h"

#include <signal.h>

enum {
    CHANNELS_MAX = 1000,
    MESSAGES_MAX = 100000, /* of a channel */
    ID_CAP = 96,
    PUBLISHERS_MAX = 1000, /* one a channel */
    PATIENCE_S = 30,
    ANOTHER_S = 5, /* without what was published last, before more is published */
    WIRES_MAX = 8,
    RETRY_MS = 200, /* of a handshake that was refused */
    SPARE_FDS = 64,
    EVENTS = 256,
    TIMES_MAX = 1 << 22,
};

struct member {
    struct socket_client client; /* first: hooks cast */
    uint32_t number;
    uint32_t channel;
    uint32_t last;   /* the number of the last message; 0: none */
    uint32_t target; /* what was published when it came back */
    bool fresh;      /* any message may be the next one */
    bool replays;
    bool resets; /* the line before was the name of a reset */
    bool asks;   /* its message has not come back */
    uint32_t said;
    double begun_s;
    double due_s; /* when it is cut, or comes back */
    char id[ID_CAP];
};

/* A publisher: one request at a time. */
struct publisher {
    int fd;
    bool busy;
    uint32_t channel;
    double due_s;
    double sent_s;
    size_t len;
    char text[2048];
};

struct channel {
    uint32_t published; /* the number of the last one that was sent */
    uint32_t known;     /* the last one that was answered with 204 */
    uint8_t *good;      /* of each number: it was answered with 204 */
};

static struct {
    uint32_t clients;
    uint32_t events_of_100;
    uint32_t channels;
    double rate;
    double cut_s;
    double away_s;
    double seconds;
    bool storm;
    double said_rate;
    uint32_t wire_count;
    struct {
        bool tls;
        bool http2;
    } wires[WIRES_MAX];
} setup = {.clients = 100,
           .events_of_100 = 50,
           .channels = 10,
           .rate = 1,
           .cut_s = 15,
           .away_s = 1,
           .seconds = 10,
           .wire_count = 1};

static struct member *members;
static struct publisher *publishers;
static struct channel channels[CHANNELS_MAX];
static struct {
    uint64_t cuts, delivered, lost, doubled, resets, refused, ended, published, unsure, silent, opened, said, heard,
        killed;
} count;
static double *replay_ms;
static size_t replay_count;
static double *way_ms; /* of messages that did not have to wait for a client */
static size_t way_count;
static bool cutting; /* not while clients come, nor while they get the last messages */

static double draw(void)
{
    static uint64_t seed = 88172645463325252u;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (double)(seed >> 11) / 9007199254740992.0;
}

static void note(double *values, size_t *n, double value)
{
    if (*n < TIMES_MAX)
        values[(*n)++] = value;
}

/* --- a client --- */

static void set_cut(struct member *m)
{
    double now = http_now_s();
    m->due_s = setup.storm ? now + setup.cut_s : now + setup.cut_s * (0.5 + draw());
}

static void come_back(struct member *m, double after_s)
{
    m->due_s = http_now_s() + after_s;
}

static void connect_member(struct member *m)
{
    char target[256];
    m->begun_s = http_now_s();
    m->target = channels[m->channel].known;
    m->replays = true;
    if (m->client.kind == SOCKET_WEBSOCKET)
        snprintf(target, sizeof(target), "/socket?channel=h:%u&since=%s%s", m->channel, m->id,
                 setup.said_rate > 0 ? "&slow=" : "");
    else
        snprintf(target, sizeof(target), "/events?channel=h:%u", m->channel);
    if (socket_begin(&m->client, m->number, target, m->id[0] ? m->id : NULL)) {
        m->due_s = m->begun_s + PATIENCE_S; /* a handshake without an answer is cut, too */
        return;
    }
    count.refused++;
    come_back(m, RETRY_MS / 1e3);
}

static void cut(struct member *m)
{
    count.cuts++;
    m->asks = false;
    socket_close(&m->client, m->number & 1);
    come_back(m, setup.away_s * draw());
}

static void look_at_replay(struct member *m)
{
    if (!m->replays || m->client.state != SOCKET_OPEN || (m->last < m->target && !m->fresh))
        return;
    m->replays = false;
    if (m->id[0] && cutting)
        note(replay_ms, &replay_count, (http_now_s() - m->begun_s) * 1e3);
}

static void take_reset(struct member *m)
{
    count.resets++;
    m->fresh = true;
}

/* "NUMBER TIME". */
static void take_message(struct member *m, const char *text)
{
    const struct channel *channel = &channels[m->channel];
    char *end;
    uint32_t number = (uint32_t)strtoul(text, &end, 10);
    double sent_s = strtod(end, NULL);
    count.delivered++;
    if (number == 0 || number > channel->published) {
        fprintf(stderr, "cut: a message that nobody has published: %.80s\n", text);
        exit(1);
    }
    if (m->fresh || number == m->last + 1) {
        if (!m->replays)
            note(way_ms, &way_count, (http_now_s() - sent_s) * 1e3);
    } else if (number <= m->last) {
        count.doubled += channel->good[number]; /* another's order is no promise: two publishers have sent it */
        return;
    } else {
        for (uint32_t i = m->last + 1; i < number; i++)
            count.lost += channel->good[i];
    }
    m->fresh = false;
    m->last = number;
    look_at_replay(m);
}

static void keep_id(struct member *m, const char *text, size_t n)
{
    if (n >= ID_CAP)
        exit(1);
    memcpy(m->id, text, n);
    m->id[n] = '\0';
}

static void on_opened(struct socket_client *client)
{
    struct member *m = (struct member *)client;
    count.opened++;
    set_cut(m);
    look_at_replay(m);
}

/* "say NUMBER" has come back. */
static void take_said(struct member *m, const char *number)
{
    bool wanted = m->asks && strtoul(number, NULL, 10) == m->said;
    count.heard += wanted;
    count.doubled += !wanted;
    m->asks = false;
}

static void say(struct member *m)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "say %u", ++m->said);
    m->asks = socket_send(&m->client, SOCKET_TEXT, text, (size_t)n);
    count.said += m->asks;
}

static void on_message(struct socket_client *client, char *text, size_t n)
{
    struct member *m = (struct member *)client;
    if (strncmp(text, "say ", 4) == 0) {
        take_said(m, text + 4);
        return;
    }
    const char *id = strstr(text, "\"id\":\"");
    const char *data = strstr(text, "\"data\":\"");
    if (id)
        keep_id(m, id + 6, strcspn(id + 6, "\""));
    if (strstr(text, "\"reset\":true"))
        take_reset(m);
    if (data)
        take_message(m, data + 8);
    look_at_replay(m);
}

static void on_line(struct socket_client *client, char *text, size_t n)
{
    struct member *m = (struct member *)client;
    if (strncmp(text, "id: ", 4) == 0) {
        keep_id(m, text + 4, n - 4);
    } else if (strncmp(text, "event: oribi.reset", 18) == 0) {
        m->resets = true;
        take_reset(m);
    } else if (strncmp(text, "data: ", 6) == 0) {
        if (!m->resets)
            take_message(m, text + 6);
        m->resets = false;
    }
}

static void on_ended(struct socket_client *client)
{
    struct member *m = (struct member *)client;
    bool opened = client->status == 101 || client->status == 200;
    *(!opened ? &count.refused : m->asks && client->code == 1011 ? &count.killed : &count.ended) += 1;
    m->resets = false;
    m->asks = false;
    come_back(m, RETRY_MS / 1e3 * (0.5 + draw()));
}

static const struct socket_hooks hooks = {on_opened, on_message, on_line, on_ended, NULL};

static void look_at_member(struct member *m, double now)
{
    if (now < m->due_s)
        return;
    if (m->client.state == SOCKET_CLOSED)
        connect_member(m);
    else if (cutting || m->client.state == SOCKET_SHAKING)
        cut(m);
}

/* --- publishing --- */

static void publisher_closes(struct publisher *p)
{
    if (p->fd < 0)
        return;
    close(p->fd);
    p->fd = -1;
    p->busy = false;
    p->len = 0;
}

static void publisher_fails(struct publisher *p)
{
    count.unsure++;
    publisher_closes(p);
}

static void publish(struct publisher *p, double now)
{
    struct channel *channel = &channels[p->channel];
    char body[64];
    char request[256];
    if (p->fd < 0) {
        p->fd = http_connect(&socket_server, (struct http_connecting){.flags = 0});
        if (p->fd < 0)
            return;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};
        epoll_ctl(socket_epoll, EPOLL_CTL_ADD, p->fd, &event);
    }
    uint32_t number = ++channel->published;
    int len = snprintf(body, sizeof(body), "%u %.6f", number, now);
    int n = snprintf(request, sizeof(request),
                     "POST /publish?channel=h:%u HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s",
                     p->channel, len, body);
    p->busy = true;
    p->len = 0;
    p->sent_s = now;
    p->due_s = now + (setup.rate > 0 ? 1 / setup.rate : 1e9);
    if (send(p->fd, request, (size_t)n, MSG_NOSIGNAL) != n)
        publisher_fails(p);
}

static void read_publisher(struct publisher *p)
{
    struct http_answer_head head;
    struct channel *channel = &channels[p->channel];
    if (p->fd < 0)
        return;
    ssize_t n = recv(p->fd, p->text + p->len, sizeof(p->text) - p->len, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0) {
        if (p->busy)
            publisher_fails(p);
        else
            publisher_closes(p);
        return;
    }
    p->len += (size_t)n;
    if (!http_answer_head(p->text, p->len, &head) || !p->busy)
        return;
    p->busy = false;
    if (head.status == 204) {
        count.published++;
        channel->good[channel->published] = 1;
        channel->known = channel->published;
    } else {
        publisher_fails(p); /* with what is left of the answer */
    }
    if (head.closes)
        publisher_closes(p);
}

static void look_at_publisher(struct publisher *p, double now)
{
    if (p->busy && now - p->sent_s > PATIENCE_S)
        publisher_fails(p);
    if (!p->busy && now >= p->due_s && channels[p->channel].published < MESSAGES_MAX - 1)
        publish(p, now);
}

/* --- all of them --- */

/* As many WebSockets as are due say something, each after all others have had their turn. */
static void let_say(double since_s)
{
    static double done;
    static uint32_t next;
    double due = (http_now_s() - since_s) * setup.said_rate;
    for (uint32_t looks = 0; done < due && looks < setup.clients; looks++) {
        struct member *m = &members[next++ % setup.clients];
        if (m->client.kind != SOCKET_WEBSOCKET || m->client.state != SOCKET_OPEN || m->asks)
            continue;
        say(m);
        done++;
    }
}

static bool is_member(const void *p)
{
    return (const struct member *)p >= members && (const struct member *)p < members + setup.clients;
}

static void wait_for(int ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(socket_epoll, events, EVENTS, ms);
    for (int i = 0; i < n; i++) {
        if (is_member(events[i].data.ptr))
            socket_read(events[i].data.ptr, &hooks);
        else
            read_publisher(events[i].data.ptr);
    }
}

/* One look at everybody, in ten steps so that sockets are read between them. */
static void turn(bool publishes)
{
    double now = http_now_s();
    for (uint32_t i = 0; i < setup.clients; i++) {
        look_at_member(&members[i], now);
        if (i % 100 == 99)
            wait_for(0);
    }
    for (uint32_t i = 0; publishes && i < setup.channels; i++)
        look_at_publisher(&publishers[i], http_now_s());
    wait_for(2);
}

static uint32_t open_members(void)
{
    uint32_t open = 0;
    for (uint32_t i = 0; i < setup.clients; i++)
        open += members[i].client.state == SOCKET_OPEN && members[i].id[0];
    return open;
}

/* Everybody has a position before the first message. */
static void begin(void)
{
    double end = http_now_s() + 2 * PATIENCE_S;
    for (uint32_t i = 0; i < setup.clients; i++)
        members[i].due_s = 0;
    while (open_members() < setup.clients) {
        turn(false);
        if (http_now_s() > end) {
            fprintf(stderr, "cut: %u of %u clients have come\n", open_members(), setup.clients);
            exit(1);
        }
    }
}

static bool has_all(const struct member *m)
{
    const struct channel *channel = &channels[m->channel];
    return m->last >= channel->known;
}

static bool everybody_has_all(void)
{
    bool all = true;
    for (uint32_t i = 0; i < setup.clients && all; i++)
        all = has_all(&members[i]) && !members[i].asks;
    return all;
}

static void publish_one_more(double end)
{
    for (uint32_t i = 0; i < setup.channels; i++) {
        publishers[i].due_s = 0;
        publish(&publishers[i], http_now_s());
        while ((!channels[i].good[channels[i].published] || publishers[i].busy) && http_now_s() < end) {
            if (!publishers[i].busy)
                publish(&publishers[i], http_now_s());
            turn(false);
        }
    }
}

/* The last messages reach everybody. One more each tells the silent from those with a reset; who comes back behind it,
 * since a history went with its frontend, gets the one after it. */
static void finish(void)
{
    double end = http_now_s() + 2 * PATIENCE_S;
    for (uint32_t i = 0; i < setup.channels; i++) /* what is on its way is answered first */
        while (publishers[i].busy && http_now_s() < end)
            turn(false);
    cutting = false;
    do {
        while (open_members() < setup.clients && http_now_s() < end)
            turn(false);
        publish_one_more(end);
        for (double another_s = http_now_s() + ANOTHER_S; !everybody_has_all() && http_now_s() < another_s;)
            turn(false);
    } while (!everybody_has_all() && http_now_s() < end);
    for (uint32_t i = 0; i < setup.clients; i++) {
        count.silent += !has_all(&members[i]);
        count.lost += members[i].asks;
    }
}

static void print_times(const char *name, double *values, size_t n)
{
    sort_times(values, n);
    printf(",\"%s\":{\"count\":%zu,\"p50\":%.1f,\"p99\":%.1f,\"max\":%.1f}", name, n, time_at(values, n, 50),
           time_at(values, n, 99), time_at(values, n, 100));
}

static bool report(void)
{
    printf("{\"clients\":%u,\"cuts\":%lu,\"published\":%lu,\"unsure\":%lu,\"delivered\":%lu,\"lost\":%lu,"
           "\"doubled\":%lu,\"silent\":%lu,\"resets\":%lu,\"opened\":%lu,\"refused\":%lu,\"ended\":%lu,"
           "\"said\":%lu,\"heard\":%lu,\"killed\":%lu",
           setup.clients, count.cuts, count.published, count.unsure, count.delivered, count.lost, count.doubled,
           count.silent, count.resets, count.opened, count.refused, count.ended, count.said, count.heard, count.killed);
    print_times("replay", replay_ms, replay_count);
    print_times("way", way_ms, way_count);
    printf("}\n");
    return count.lost == 0 && count.doubled == 0 && count.silent == 0;
}

/* Ends the program where the text names no wires. */
static void read_wires(char *text)
{
    setup.wire_count = 0;
    for (char *name; (name = strsep(&text, ",")) && setup.wire_count < WIRES_MAX; setup.wire_count++) {
        if (strncmp(name, "h1", 2) != 0 && strncmp(name, "h2", 2) != 0)
            exit(2);
        setup.wires[setup.wire_count].http2 = name[1] == '2';
        setup.wires[setup.wire_count].tls = name[2] == 's';
    }
}

static void read_arguments(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "n:e:c:r:t:a:d:ST:w:m:")) != -1) {
        switch (option) {
        case 'n':
            setup.clients = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'e':
            setup.events_of_100 = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'c':
            setup.channels = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case 'r':
            setup.rate = strtod(optarg, NULL);
            break;
        case 't':
            setup.cut_s = strtod(optarg, NULL);
            break;
        case 'a':
            setup.away_s = strtod(optarg, NULL) / 1e3;
            break;
        case 'd':
            setup.seconds = strtod(optarg, NULL);
            break;
        case 'S':
            setup.storm = true;
            break;
        case 'm':
            setup.said_rate = strtod(optarg, NULL);
            break;
        case 'T':
            if (!http_address_parse(&socket_tls_server, optarg))
                exit(2);
            break;
        case 'w':
            read_wires(optarg);
            break;
        default:
            exit(2);
        }
    }
    if (optind != argc - 1 || !http_address_parse(&socket_server, argv[optind]) || setup.clients == 0 ||
        setup.channels == 0 || setup.channels > CHANNELS_MAX) {
        fprintf(stderr, "usage: cut ADDRESS:PORT [-n CLIENTS] [-e EVENT STREAMS OF 100] [-c CHANNELS] [-r RATE] "
                        "[-t SECONDS] [-a AWAY_MS] [-d SECONDS] [-S] [-T ADDRESS:PORT OF TLS] [-w WIRES] "
                        "[-m SAID A SECOND]\n");
        exit(2);
    }
}

static void make_members(void)
{
    members = calloc(setup.clients, sizeof(*members));
    publishers = calloc(setup.channels, sizeof(*publishers));
    replay_ms = calloc(TIMES_MAX, sizeof(*replay_ms));
    way_ms = calloc(TIMES_MAX, sizeof(*way_ms));
    for (uint32_t i = 0; i < setup.clients; i++) {
        struct member *m = &members[i];
        m->number = i;
        m->channel = i % setup.channels;
        m->client.fd = -1;
        m->client.tls = setup.wires[i / setup.channels % setup.wire_count].tls;
        m->client.http2 = setup.wires[i / setup.channels % setup.wire_count].http2;
        m->client.kind = i / setup.channels % 100 * 37 % 100 < setup.events_of_100 ? SOCKET_EVENTS : SOCKET_WEBSOCKET;
    }
    for (uint32_t i = 0; i < setup.channels; i++) {
        publishers[i].fd = -1;
        publishers[i].channel = i;
        channels[i].good = calloc(MESSAGES_MAX, 1);
    }
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv);
    signal(SIGPIPE, SIG_IGN);
    http_want_descriptors(setup.clients + setup.channels + SPARE_FDS);
    socket_epoll = epoll_create1(EPOLL_CLOEXEC);
    make_members();
    begin();
    double start = http_now_s();
    cutting = true;
    for (uint32_t i = 0; i < setup.clients; i++)
        members[i].due_s = start + setup.cut_s * (setup.storm ? 1 : draw());
    for (uint32_t i = 0; i < setup.channels; i++)
        publishers[i].due_s = start + draw() / (setup.rate > 0 ? setup.rate : 1);
    printf("begun\n"); /* who drives this may begin to disturb */
    fflush(stdout);
    while (http_now_s() - start < setup.seconds) {
        turn(true);
        let_say(start);
    }
    finish();
    return report() ? 0 : 1;
}
