/* The frontend before workers of C that say hello, without a supervisor: what its hop costs, and its tests.
 *
 *     frontend_server ADDRESS [WORKERS [BYTES]]     ends with SIGTERM
 *
 * FRONTEND_CERTIFICATE names a file with a certificate and its key in PEM: then the address speaks TLS.
 *
 *     GET /          BYTES bytes        GET /N        N bytes            GET /wait/MS   answers after so many ms
 *     GET /stream/N  N pieces of 1 KiB  POST /…       says how many bytes came                                       */
#include "frontend/run.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/worker/worker.h"
#include "oribi/worker/req.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 64 };

static struct oribi_worker *worker; /* for the signal handler only */
static int control_fds[2];
static int listener_fd;

static void on_worker_term(int signal_number)
{
    oribi_worker_stop(worker);
}

static void on_term(int signal_number)
{
    (void)shutdown(listener_fd, SHUT_RDWR); /* as a supervisor does at its end: else the frontend waits for who comes */
    (void)!write(control_fds[1], "S", 1);
}

static void answer(struct oribi_req *req, char *body, size_t len)
{
    static const struct oribi_header type = {"content-type", "text/plain", 12, 10};
    struct oribi_slice path = req->head->path;
    char text[64];
    struct iovec vec = {body, len};
    if (path.n > 6 && memcmp(path.p, "/wait/", 6) == 0) {
        long ms = strtol(path.p + 6, NULL, 10);
        struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
        (void)nanosleep(&pause, NULL);
    } else if (path.n > 8 && memcmp(path.p, "/stream/", 8) == 0) {
        long pieces = strtol(path.p + 8, NULL, 10);
        static char piece[1024];
        memset(piece, 'y', sizeof(piece));
        if (oribi_reply_begin(req, 200, &type, 1, -1) < 0)
            return;
        for (long i = 0; i < pieces; i++) {
            struct iovec part = {piece, sizeof(piece)};
            if (oribi_reply_write(req, &part, 1) < 0 || oribi_reply_wait(req) < 0)
                break;
        }
        oribi_reply_end(req);
        return;
    } else if (req->body_len > 0) {
        vec = (struct iovec){text, (size_t)snprintf(text, sizeof(text), "%lld\n", (long long)req->body_len)};
    } else if (path.n > 1 && path.p[1] >= '0' && path.p[1] <= '9') {
        size_t n = strtoul(path.p + 1, NULL, 10);
        char *long_body = malloc(n + 1);
        memset(long_body, 'z', n);
        vec = (struct iovec){long_body, n};
        (void)oribi_reply(req, 200, &type, 1, &vec, 1);
        free(long_body);
        return;
    }
    (void)oribi_reply(req, 200, &type, 1, &vec, 1);
}

static int serve(const struct oribi_worker_setup *setup, size_t len)
{
    char *body = malloc(len + 14);
    memset(body, 'x', len);
    memcpy(body, "Hello, World!", 13);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (oribi_worker_create(setup, &worker) < 0)
        return 1;
    signal(SIGTERM, on_worker_term);
    while (!oribi_worker_done(worker)) {
        struct oribi_req *req = oribi_worker_take(worker);
        if (req)
            answer(req, body, len);
        else
            oribi_worker_wait_for(worker, -1);
    }
    oribi_worker_destroy(worker);
    free(body);
    return 0;
}

static int use_certificate(struct oribi_frontend_listener *listener, char *error)
{
    static char pem[64 * 1024];
    static struct oribi_tls_tickets tickets;
    FILE *file = fopen(getenv("FRONTEND_CERTIFICATE"), "r");
    size_t n = file ? fread(pem, 1, sizeof(pem), file) : 0;
    if (file)
        fclose(file);
    struct oribi_tls_certificate certificate = {
        .chain = oribi_slice(pem, n), .key = oribi_slice(pem, n), .name = ORIBI_SLICE("FRONTEND_CERTIFICATE")};
    struct oribi_tls_config config = {.certificates = &certificate, .count = 1, .h2 = true, .tls12 = true};
    (void)oribi_os_random(tickets.keys[0], ORIBI_TLS_TICKET_KEY_BYTES);
    listener->tls = true;
    return oribi_tls_create(&config, &tickets, &listener->contexts, error);
}

int main(int argc, char **argv)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "usage: frontend_server ADDRESS [WORKERS [BYTES]]";
    static struct oribi_options options;
    static struct oribi_listeners listeners;
    static struct oribi_listeners none;
    static struct oribi_frontend_config config;
    struct oribi_handoff handoff;
    struct oribi_scoreboard board;
    pid_t pids[WORKERS_MAX];
    uint32_t workers = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
    size_t len = argc > 3 ? strtoul(argv[3], NULL, 10) : 13;
    oribi_options_init(&options);
    if (argc < 2 || workers < 1 || workers > WORKERS_MAX || oribi_options_set(&options, "bind", argv[1], error) < 0 ||
        oribi_options_finish(&options, error) < 0 || oribi_listeners_open(&listeners, &options, error) < 0 ||
        oribi_handoff_create(&handoff) < 0 || oribi_scoreboard_create(&board, workers) < 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, control_fds) < 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    none = listeners;
    none.items[0].frontend = true;
    for (uint32_t i = 0; i < workers; i++) {
        struct oribi_worker_setup setup = {.options = &options,
                                           .listeners = &none,
                                           .slot = &board.slots[i],
                                           .board = &board,
                                           .handoff = &handoff,
                                           .life_fd = -1};
        atomic_store(&board.slots[i].generation, 1);
        pids[i] = fork();
        if (pids[i] == 0) {
            atomic_store(&board.slots[i].pid, getpid());
            atomic_store(&board.slots[i].state, ORIBI_SLOT_IDLE);
            _exit(serve(&setup, len));
        }
    }
    config = (struct oribi_frontend_config){.options = &options,
                                            .listener_count = 1,
                                            .board = board,
                                            .handoff = handoff,
                                            .channel_first = 1,
                                            .channel_count = 1000,
                                            .control_fd = control_fds[0]};
    config.listeners[0] = (struct oribi_frontend_listener){.listener = listeners.items[0]};
    if (getenv("FRONTEND_CERTIFICATE") && use_certificate(&config.listeners[0], error) < 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    listener_fd = listeners.items[0].fd;
    signal(SIGTERM, on_term);
    signal(SIGPIPE, SIG_IGN);
    struct oribi__frontend *frontend = oribi__frontend_create(&config, error);
    if (!frontend) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    fprintf(stderr, "serving at %s\n", listeners.items[0].text);
    oribi__frontend_run(frontend);
    oribi__frontend_destroy(frontend);
    for (uint32_t i = 0; i < workers; i++) {
        (void)kill(pids[i], SIGTERM);
        (void)waitpid(pids[i], NULL, 0);
    }
    return 0;
}
