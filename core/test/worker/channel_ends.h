/* Both ends of a channel in one process, for tests of worker/channel_ring.c. */
#ifndef ORIBI_TEST_WORKER_CHANNEL_ENDS_H
#define ORIBI_TEST_WORKER_CHANNEL_ENDS_H

#include "oribi/base/os/os.h"
#include "oribi/worker/channel_ring.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct oribi_scoreboard board;
static _Atomic uint16_t place;
static uint32_t worker_woken[2];
static uint32_t frontend_woken;
static struct oribi_channel_ring *front;
static struct oribi_channel_ring *back;
static int fds[2];

static void begin(void)
{
    oribi_scoreboard_create(&board, 1);
    memset(worker_woken, 0, sizeof(worker_woken));
    frontend_woken = 0;
    atomic_store(&place, 1);
    ok_eq(oribi_os_socket_pair(SOCK_STREAM, true, fds), 0);
    front = oribi_channel_ring_try_create(fds[0]);
    back = front ? oribi_channel_ring_try_attach(dup(front->memory_fd), fds[1], &board.frontends[0].asleep,
                                                 &frontend_woken)
                 : NULL;
    ok_named(front && back, "both ends have the memory");
}

static void end(void)
{
    oribi_channel_ring_destroy(front);
    oribi_channel_ring_destroy(back);
    close(fds[0]);
    close(fds[1]);
    oribi_scoreboard_destroy(&board);
}

/* A file of up to 100,000 letters 'f' that can only be read. */
static int a_file(size_t n)
{
    static char letters[100 * 1000];
    char name[] = "/tmp/oribi-ring-XXXXXX";
    int both = mkstemp(name);
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ok(both >= 0 && fd >= 0 && unlink(name) == 0);
    memset(letters, 'f', sizeof(letters));
    ok_eq(write(both, letters, n), n);
    close(both);
    return fd;
}

static int count_open(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

#endif
