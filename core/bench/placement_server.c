/* Several workers with a C application of chosen durations, to see how requests find them. No language, no
 * supervisor but a parent that waits.
 *
 *     placement_server ADDRESS WORKERS [on|off]      helper; ends with SIGTERM or SIGINT, tells what workers did
 *     GET /exp/MS     sleeps for an exponentially distributed time of this mean
 *     GET /sleep/MS   sleeps that long; anything else answers at once */
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/worker/worker.h"
#include "oribi/worker/req.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKERS_MAX = 64 };

static struct oribi_worker *worker; /* for the signal handler only */
static volatile sig_atomic_t ended;

static void on_term(int signal_number)
{
    ended = 1;
    if (worker)
        oribi_worker_stop(worker);
}

static double draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return ((double)(*seed >> 11) + 1) / 9007199254740993.0;
}

static double path_number(const struct oribi_req *req, const char *prefix)
{
    size_t n = strlen(prefix);
    char text[32] = "";
    if (req->head->path.n <= n || req->head->path.n - n >= sizeof(text) || memcmp(req->head->path.p, prefix, n) != 0)
        return -1;
    memcpy(text, req->head->path.p + n, req->head->path.n - n);
    return strtod(text, NULL);
}

static void answer(struct oribi_req *req, uint64_t *seed)
{
    double ms = path_number(req, "/sleep/");
    double mean_ms = path_number(req, "/exp/");
    if (mean_ms >= 0)
        ms = -log(draw(seed)) * mean_ms;
    int64_t started_us = oribi_clock_us();
    if (ms > 0) {
        struct timespec time = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
        (void)nanosleep(&time, NULL); /* interrupted at the end only */
    }
    char text[32];
    int n = snprintf(text, sizeof(text), "%lld", (long long)(oribi_clock_us() - started_us));
    const struct oribi_header headers[] = {{"content-type", "text/plain", 12, 10},
                                           {"x-service-us", text, 12, (uint32_t)n}};
    struct iovec vec = {(char *)"done\n", 5};
    (void)oribi_reply(req, 200, headers, 2, &vec, 1); /* a client that left is no concern of a benchmark */
}

static int serve(const struct oribi_worker_setup *setup)
{
    uint64_t seed = (uint64_t)getpid() * 6364136223846793005u + 1;
    if (oribi_worker_create(setup, &worker) < 0)
        return 1;
    while (!oribi_worker_done(worker)) {
        struct oribi_req *req = oribi_worker_take(worker);
        if (req)
            answer(req, &seed);
        else
            oribi_worker_wait_for(worker, -1);
    }
    oribi_worker_destroy(worker);
    return 0;
}

static void print_slots(const struct oribi_scoreboard *board)
{
    printf("worker  requests  connections  open  passed  taken\n");
    for (uint32_t i = 0; i < board->count; i++) {
        const struct oribi_slot *slot = &board->slots[i];
        printf("%6u  %8llu  %11llu  %4u  %6llu  %5llu\n", i, (unsigned long long)slot->request_count,
               (unsigned long long)slot->connection_count, (unsigned)slot->connections_open,
               (unsigned long long)slot->passed_count, (unsigned long long)slot->taken_count);
    }
}

int main(int argc, char **argv)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "usage: placement_server ADDRESS WORKERS [on|off]";
    struct oribi_options options;
    static struct oribi_listeners listeners;
    struct oribi_scoreboard board;
    struct oribi_handoff handoff;
    pid_t pids[WORKERS_MAX];
    oribi_options_init(&options);
    if (argc < 3 || oribi_options_set(&options, "bind", argv[1], error) < 0 ||
        oribi_options_set(&options, "workers", argv[2], error) < 0 ||
        oribi_options_set(&options, "helper", argc > 3 ? argv[3] : "on", error) < 0 ||
        oribi_options_finish(&options, error) < 0 || options.workers > WORKERS_MAX ||
        oribi_listeners_open(&listeners, &options, error) < 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    if (oribi_scoreboard_create(&board, options.workers) < 0 || oribi_handoff_create(&handoff) < 0)
        return 1;
    struct sigaction action = {.sa_handler = on_term};
    (void)sigaction(SIGTERM, &action, NULL); /* arguments are right */
    (void)sigaction(SIGINT, &action, NULL);
    for (uint32_t i = 0; i < options.workers; i++) {
        struct oribi_worker_setup setup = {.options = &options,
                                           .listeners = &listeners,
                                           .slot = &board.slots[i],
                                           .board = &board,
                                           .handoff = &handoff,
                                           .life_fd = -1};
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(serve(&setup));
    }
    while (!ended)
        (void)poll(NULL, 0, 200);
    print_slots(&board);
    for (uint32_t i = 0; i < options.workers; i++)
        (void)kill(pids[i], SIGTERM);
    for (uint32_t i = 0; i < options.workers; i++)
        (void)waitpid(pids[i], NULL, 0);
    struct rusage usage;
    (void)getrusage(RUSAGE_CHILDREN, &usage);
    printf("cpu %.3f s, context switches %ld voluntary %ld not\n",
           (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6,
           usage.ru_nvcsw, usage.ru_nivcsw);
    oribi_listeners_close(&listeners, true);
    return 0;
}
