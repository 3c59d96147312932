/* Clients that would hold a server up, and clients that just stay, many at a time and in one thread.
 *
 *     crowd ADDRESS [-H HEADS] [-B BODIES] [-R READERS] [-I IDLE] [-e STEP_MS] [-t TARGET OF READERS]
 *
 * ADDRESS is 127.0.0.1:9292 or the path of a unix socket. A slow head gets one more field, a slow body so many bytes
 * that a minimum rate is just kept, and a slow reader takes so many bytes, every STEP_MS. The idle have had one
 * answer and send nothing more. Whoever is refused or cut begins anew and is counted.
 *
 * Says "ready" when all are there, then looks at its input: "finish" lets every one of them end what it has begun,
 * in good order, and checks the answers; the end of the input drops them. Both print one line of JSON for each kind:
 * opened, ended (by the server, before its time), good and bad (answers at the end). */
#define _GNU_SOURCE
#include "http_client.h"

#include <poll.h>

/* In this order they come: readers take longest, and the others must not wait for so long that the server gives them
 * up. They end in the opposite one. */
enum kind { READER, BODY, HEAD, IDLE, KINDS };

enum {
    BODY_BYTES = 100000,
    BODY_STEP_BYTES = 400, /* a second; the server's default minimum is 256 */
    READ_STEP_BYTES = 2048,
    READER_BUFFER = 4096, /* SO_RCVBUF: the server's writes fall short early */
    PATIENCE_S = 30,      /* for any one answer at the end */
    SPARE_FDS = 32,
    TICK_MS = 10,
};

struct member {
    int fd;
    enum kind kind;
    long left; /* bytes of a body to be sent, or of an answer to be read */
};

struct tally {
    long opened;
    long ended;
    long good;
    long bad;
};

static const char *const kind_names[KINDS] = {"readers", "bodies", "heads", "idle"};
static struct http_address address;
static const char *reader_target = "/big?size=200000";
static long wanted[KINDS];
static struct tally tallies[KINDS];
static struct member *members;
static long member_count;
static long moving_count; /* the idle come behind */
static int step_ms = 1000;
static char scratch[65536];

static int64_t now_ms(void)
{
    return (int64_t)(http_now_s() * 1e3);
}

static void die(const char *what)
{
    fprintf(stderr, "crowd: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* --- one connection --- */

static bool send_text(int fd, const char *text)
{
    return http_send_all(fd, text, strlen(text));
}

/* Reads the head of an answer and what comes with it: how many bytes of the body are to come, or -1 if it is no 200.
 * Only answers with a Content-Length are understood. */
static long read_head(int fd)
{
    size_t len = 0;
    struct http_answer_head head;
    int there = 0;
    while (there == 0) {
        ssize_t n = len < sizeof(scratch) ? recv(fd, scratch + len, sizeof(scratch) - len, 0) : 0;
        if (n <= 0)
            return -1;
        len += (size_t)n;
        there = http_answer_head(scratch, len, &head);
    }
    if (there < 0 || head.status != 200 || head.content_length < 0)
        return -1;
    return head.content_length - (long)(len - head.len);
}

static bool read_rest(int fd, long left)
{
    while (left > 0) {
        ssize_t n = recv(fd, scratch, left < (long)sizeof(scratch) ? (size_t)left : sizeof(scratch), 0);
        if (n <= 0)
            return false;
        left -= n;
    }
    return left == 0;
}

static bool read_answer(int fd)
{
    return read_rest(fd, read_head(fd));
}

static void open_member(struct member *m)
{
    char text[512];
    bool good = true;
    m->fd = http_connect(&address, (struct http_connecting){.receive_buffer = m->kind == READER ? READER_BUFFER : 0,
                                                            .patience_s = PATIENCE_S});
    if (m->fd < 0)
        die("connect");
    m->left = 0;
    switch (m->kind) {
    case HEAD:
        good = send_text(m->fd, "GET / HTTP/1.1\r\nHost: slow\r\n");
        break;
    case BODY:
        snprintf(text, sizeof(text), "POST /echo HTTP/1.1\r\nHost: slow\r\nContent-Length: %d\r\n\r\nb", BODY_BYTES);
        good = send_text(m->fd, text);
        m->left = BODY_BYTES - 1;
        break;
    case READER: /* the call is over when its answer begins */
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: slow\r\n\r\n", reader_target);
        good = send_text(m->fd, text) && (m->left = read_head(m->fd)) >= 0;
        break;
    default:
        good = send_text(m->fd, "GET / HTTP/1.1\r\nHost: idle\r\n\r\n") && read_answer(m->fd);
    }
    tallies[m->kind].opened++;
    tallies[m->kind].ended += !good;
}

/* --- all of them --- */

/* One step of a slow reader. True when the server has ended it. */
static bool read_some(struct member *m)
{
    if (m->left == 0)
        return false;
    ssize_t n = recv(m->fd, scratch, m->left < READ_STEP_BYTES ? (size_t)m->left : READ_STEP_BYTES, MSG_DONTWAIT);
    m->left -= n > 0 ? n : 0;
    return n == 0 || (n < 0 && errno != EAGAIN);
}

static bool has_news(const struct member *m)
{
    char byte;
    return recv(m->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

/* Nobody waits here: a full socket takes what it can, and an error shows at the next step. */
static void step(struct member *m)
{
    if (m->kind == READER ? read_some(m) : has_news(m)) {
        tallies[m->kind].ended++;
        close(m->fd);
        open_member(m);
        return;
    }
    long n = (long)BODY_STEP_BYTES * step_ms / 1000;
    if (m->kind == HEAD)
        (void)send(m->fd, "X: 1\r\n", 6, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (m->kind != BODY || m->left <= n) /* the last bytes are for the end */
        return;
    memset(scratch, 'b', (size_t)n);
    n = send(m->fd, scratch, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT);
    m->left -= n > 0 ? n : 0;
}

static bool finish(struct member *m)
{
    switch (m->kind) {
    case HEAD:
        return send_text(m->fd, "\r\n") && read_answer(m->fd);
    case BODY:
        memset(scratch, 'b', sizeof(scratch));
        while (m->left > 0) {
            long n = m->left < (long)sizeof(scratch) ? m->left : (long)sizeof(scratch);
            if (!http_send_all(m->fd, scratch, (size_t)n))
                return false;
            m->left -= n;
        }
        return read_answer(m->fd);
    case READER:
        return read_rest(m->fd, m->left);
    default:
        return send_text(m->fd, "GET / HTTP/1.1\r\nHost: idle\r\n\r\n") && read_answer(m->fd);
    }
}

/* True when the input says "finish", false when it ends. Meanwhile everybody takes a step every step_ms, one after
 * another. */
static bool stay(void)
{
    int64_t start = now_ms();
    int64_t done = 0;
    char word[16];
    for (;;) {
        struct pollfd input = {STDIN_FILENO, POLLIN, 0};
        if (poll(&input, 1, TICK_MS) > 0)
            return read(STDIN_FILENO, word, sizeof(word)) > 0;
        int64_t due = (now_ms() - start) * moving_count / step_ms;
        if (due - done > moving_count) /* no catching up after a pause */
            done = due - moving_count;
        for (; done < due; done++)
            step(&members[done % moving_count]);
    }
}

static void report(void)
{
    for (int kind = 0; kind < KINDS; kind++) {
        const struct tally *t = &tallies[kind];
        if (wanted[kind] > 0)
            printf("{\"kind\":\"%s\",\"opened\":%ld,\"ended\":%ld,\"good\":%ld,\"bad\":%ld}\n", kind_names[kind],
                   t->opened, t->ended, t->good, t->bad);
    }
}

static void read_arguments(int argc, char **argv)
{
    int option;
    while ((option = getopt(argc, argv, "H:B:R:I:e:t:")) != -1) {
        switch (option) {
        case 'H':
            wanted[HEAD] = strtol(optarg, NULL, 10);
            break;
        case 'B':
            wanted[BODY] = strtol(optarg, NULL, 10);
            break;
        case 'R':
            wanted[READER] = strtol(optarg, NULL, 10);
            break;
        case 'I':
            wanted[IDLE] = strtol(optarg, NULL, 10);
            break;
        case 'e':
            step_ms = (int)strtol(optarg, NULL, 10);
            break;
        case 't':
            reader_target = optarg;
            break;
        default:
            exit(2);
        }
    }
    if (optind != argc - 1 || step_ms < TICK_MS) {
        fprintf(stderr, "usage: crowd ADDRESS [-H HEADS] [-B BODIES] [-R READERS] [-I IDLE] [-e STEP_MS] "
                        "[-t TARGET]\n");
        exit(2);
    }
    if (!http_address_parse(&address, argv[optind])) {
        fprintf(stderr, "crowd: %s is neither IPv4:PORT nor a path\n", argv[optind]);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    read_arguments(argc, argv);
    for (int kind = 0; kind < KINDS; kind++)
        member_count += wanted[kind];
    moving_count = member_count - wanted[IDLE];
    http_want_descriptors((rlim_t)member_count + SPARE_FDS);
    members = calloc((size_t)member_count + 1, sizeof(*members));
    struct member *m = members;
    for (int kind = 0; kind < KINDS; kind++)
        for (long i = 0; i < wanted[kind]; i++, m++) {
            m->kind = (enum kind)kind;
            open_member(m);
        }
    printf("ready\n");
    fflush(stdout);
    if (stay())
        for (m = members + member_count - 1; m >= members; m--)
            *(finish(m) ? &tallies[m->kind].good : &tallies[m->kind].bad) += 1;
    report();
    return 0;
}
