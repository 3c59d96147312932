/* The laboratory of this folder; see the header. */
#include "worker/two.h"

#include <dirent.h>
#include <sys/resource.h>

void limit_descriptors(int room)
{
    static struct rlimit before;
    if (room < 0) {
        (void)setrlimit(RLIMIT_NOFILE, &before);
        return;
    }
    (void)getrlimit(RLIMIT_NOFILE, &before);
    struct rlimit limit = before;
    limit.rlim_cur = 0;
    while (fcntl((int)limit.rlim_cur, F_GETFD) >= 0 || room-- > 0) /* the first free number that is one too many */
        limit.rlim_cur++;
    ok_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

int open_fds(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count;
}

void set_idle(struct two *two, int i)
{
    atomic_store(&two->site.board.slots[i].state, ORIBI_SLOT_IDLE);
}

void two_open(struct two *two)
{
    struct site *site = &two->site;
    site_init(site);
    site_open(site, route); /* opens the listener and a worker that we do not use */
    oribi_worker_destroy(site->worker);
    ok_eq(oribi_handoff_create(&two->handoff), 0);
    ok_eq(oribi_scoreboard_create(&site->board, 2), 0);
    for (int i = 0; i < 2; i++) {
        struct oribi_worker_setup setup = {.options = &site->options,
                                           .listeners = &site->listeners,
                                           .slot = &site->board.slots[i],
                                           .board = &site->board,
                                           .handoff = &two->handoff,
                                           .life_fd = -1};
        ok_eq(oribi_worker_create(&setup, &two->workers[i]), 0);
        two->workers[i]->call_lengths.average_us = 10000;
    }
    site->worker = two->workers[0];
}

void two_close(struct two *two)
{
    struct site *site = &two->site;
    close_clients(site);
    for (int i = 0; i < 2; i++) {
        struct oribi_reactor *r = &two->workers[i]->reactor;
        site->worker = two->workers[i];
        ok(pump_until(site, r->conn_count == 0));
        settle(site);
        ok_eq(r->conn_pool.lent_count + r->buf_pool.lent_count + r->exchange_pool.lent_count, 0);
        oribi_worker_destroy(two->workers[i]);
    }
    oribi_listeners_close(&site->listeners, true);
    oribi_options_deinit(&site->options);
    oribi_scoreboard_destroy(&site->board);
    oribi_handoff_close(&two->handoff);
}

void accept_all(struct two *two, struct client **clients, int count, const char *text)
{
    struct site *site = &two->site;
    struct oribi_reactor *r = &two->workers[0]->reactor;
    for (int i = 0; i < count; i++) {
        clients[i] = client_open(site);
        ok(pump_until(site, r->conn_count == (uint32_t)i + 1));
    }
    for (int i = 0; i < count; i++)
        ok(client_send(site, clients[i], text));
}
