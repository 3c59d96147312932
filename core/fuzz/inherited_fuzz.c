/* The environment of a process: listening sockets in three notations, and the process context of a mold. First byte:
 * which variable; the rest is its value, for LISTEN_FDS with LISTEN_FDNAMES behind a line end.
 *
 * Holds for every input: what is taken are descriptors that are open, each once; a refusal is one line; our own
 * notation written and read again means the same. */
#include "ours.h"

#include "oribi/base/error.h"
#include "oribi/config/listener.h"
#include "supervisor/supervisor_private.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OWN, STARTER, SYSTEMD, MOLD, KINDS };
enum { POOL_FD = 100 }; /* and the one behind it: a pool, so that a value can name one */

static void start(void)
{
    struct oribi_handoff pool;
    expect(oribi_handoff_create(&pool) == 0);
    expect(dup2(pool.take_fd, POOL_FD) == POOL_FD && dup2(pool.give_fd, POOL_FD + 1) == POOL_FD + 1);
    oribi_handoff_close(&pool);
}

static void check_error(int code, const char *error)
{
    expect(code == ORIBI_EINVAL && error[0] && strlen(error) < ORIBI_ERROR_TEXT_CAP);
}

static void check_items(const struct oribi_inherited *inherited)
{
    expect(inherited->count <= ORIBI_LISTENERS_MAX);
    for (uint32_t i = 0; i < inherited->count; i++) {
        const struct oribi_inherited_item *item = &inherited->items[i];
        expect(fcntl(item->fd, F_GETFD) >= 0);
        expect(strnlen(item->name, sizeof(item->name)) < sizeof(item->name));
        expect(strnlen(item->spec, sizeof(item->spec)) < sizeof(item->spec));
        for (uint32_t k = 0; k < i; k++)
            expect(inherited->items[k].fd != item->fd);
    }
}

static void round_trip(const struct oribi_inherited *inherited)
{
    static struct oribi_listeners listeners;
    static struct oribi_inherited again;
    static char text[ORIBI_INHERITED_TEXT_CAP];
    char error[ORIBI_ERROR_TEXT_CAP];
    listeners.count = inherited->count;
    for (uint32_t i = 0; i < inherited->count; i++) {
        const struct oribi_inherited_item *item = &inherited->items[i];
        listeners.items[i] = (struct oribi_listener){.fd = item->fd, .origin = item->origin};
        memcpy(listeners.items[i].spec, item->spec, sizeof(item->spec));
    }
    expect(oribi_inherited_format(&listeners, text, sizeof(text)) == strlen(text));
    expect(setenv("ORIBI_LISTEN", text, 1) == 0 && oribi_inherited_read(&again, error) == 0);
    expect(again.count == inherited->count);
    for (uint32_t i = 0; i < again.count; i++) {
        expect(again.items[i].fd == inherited->items[i].fd && again.items[i].origin == inherited->items[i].origin);
        expect(strcmp(again.items[i].spec, inherited->items[i].spec) == 0);
    }
}

static void read_sockets(uint8_t kind)
{
    static struct oribi_inherited inherited;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int code = oribi_inherited_read(&inherited, error);
    if (code < 0)
        check_error(code, error);
    else
        check_items(&inherited);
    if (code == 0 && kind == OWN && inherited.count > 0)
        round_trip(&inherited);
}

static void read_context(void)
{
    struct oribi__handed_down from;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    int code = oribi__handed_down_read(&from, error);
    if (code < 0) {
        check_error(code, error);
        return;
    }
    const int fds[] = {from.socket_fd, from.message_fd, from.life_fd, from.board_fd, from.handoff.take_fd};
    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        expect(fcntl(fds[i], F_GETFD) >= 0);
    expect(from.board_count > 0 && from.board_count <= ORIBI_SLOTS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"ORIBI_LISTEN", "SERVER_STARTER_PORT", "LISTEN_FDS", "ORIBI_MOLD"};
    static bool started;
    char pid[16];
    if (!started)
        start();
    started = true;
    if (size < 1 || size > 8192)
        return 0;
    uint8_t kind = data[0] % KINDS;
    char *text = strndup((const char *)data + 1, size - 1);
    char *more = kind == SYSTEMD ? strchr(text, '\n') : NULL;
    oribi_inherited_clear();
    (void)unsetenv("SERVER_STARTER_PORT");
    if (more) {
        *more++ = '\0';
        expect(setenv("LISTEN_FDNAMES", more, 1) == 0);
    }
    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    expect(setenv("LISTEN_PID", pid, 1) == 0 && setenv(names[kind], text, 1) == 0);
    if (kind == MOLD)
        read_context();
    else
        read_sockets(kind);
    free(text);
    return 0;
}
