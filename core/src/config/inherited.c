/* Reads which sockets other processes hand down. Only descriptors are taken from the text: what they are
 * bound to, the kernel knows better. */
#include "oribi/config/listener.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/config/options_names.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SYSTEMD_FIRST_FD = 3 };

/* Digits only, up to INT32_MAX; the end goes to *end. */
static bool take_number(const char *text, int *out, const char **end)
{
    int64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9'; p++) {
        value = value * 10 + (*p - '0');
        if (value > INT32_MAX)
            return false;
    }
    *out = (int)value;
    *end = p;
    return p > text;
}

static int add(struct oribi_inherited *inherited, const char *variable, struct oribi_inherited_item item, char *error)
{
    if (inherited->count == ORIBI_LISTENERS_MAX)
        return oribi__refuse(error, "%s hands down more than %d sockets", variable, ORIBI_LISTENERS_MAX);
    for (uint32_t i = 0; i < inherited->count; i++) {
        if (inherited->items[i].fd == item.fd)
            return oribi__refuse(error, "%s names descriptor %d twice", variable, item.fd);
    }
    if (fcntl(item.fd, F_GETFD) < 0)
        return oribi__refuse(error, "%s names descriptor %d, which is not open", variable, item.fd);
    inherited->items[inherited->count++] = item;
    return 0;
}

/* Lines "fd letter spec". */
static int read_own(struct oribi_inherited *inherited, const char *text, char *error)
{
    while (*text) {
        struct oribi_inherited_item item = {0};
        const char *p;
        if (!take_number(text, &item.fd, &p) || p[0] != ' ' || !p[1] || !strchr("osdf", p[1]) || p[2] != ' ')
            return oribi__refuse(error, "ORIBI_LISTEN cannot be read: \"%.80s\"", text);
        item.origin = (enum oribi_listener_origin)p[1];
        p += 3;
        size_t n = strcspn(p, "\n");
        if (n == 0 || n >= sizeof(item.spec))
            return oribi__refuse(error, "ORIBI_LISTEN cannot be read: \"%.80s\"", text);
        memcpy(item.spec, p, n);
        int code = add(inherited, "ORIBI_LISTEN", item, error);
        if (code < 0)
            return code;
        text = p + n + (p[n] == '\n');
    }
    return 0;
}

/* "address=fd" joined by semicolons. A path may hold `=`: the last one counts. */
static int read_starter(struct oribi_inherited *inherited, const char *text, char *error)
{
    while (*text) {
        struct oribi_inherited_item item = {.origin = ORIBI_ORIGIN_STARTER};
        size_t n = strcspn(text, ";");
        const char *equals = oribi_os_memrchr(text, '=', n);
        const char *end;
        if (!equals || equals == text || !take_number(equals + 1, &item.fd, &end) || end != text + n)
            return oribi__refuse(error, "SERVER_STARTER_PORT cannot be read: \"%.80s\"", text);
        int code = add(inherited, "SERVER_STARTER_PORT", item, error);
        if (code < 0)
            return code;
        text += n + (text[n] == ';');
    }
    return 0;
}

/* Names are joined by colons; missing ones are "unknown" by systemd's rule, here empty. Longer ones than ours are
 * cut. */
static int read_systemd(struct oribi_inherited *inherited, const char *count_text, char *error)
{
    const char *names = getenv("LISTEN_FDNAMES");
    const char *end;
    int count = 0;
    if (!take_number(count_text, &count, &end) || *end)
        return oribi__refuse(error, "LISTEN_FDS is not a number: \"%.80s\"", count_text);
    for (int i = 0; i < count; i++) {
        struct oribi_inherited_item item = {.fd = SYSTEMD_FIRST_FD + i, .origin = ORIBI_ORIGIN_SYSTEMD};
        if (names) {
            size_t n = strcspn(names, ":");
            size_t kept = n < sizeof(item.name) ? n : sizeof(item.name) - 1;
            memcpy(item.name, names, kept);
            names = names[n] ? names + n + 1 : NULL;
        }
        int code = add(inherited, "LISTEN_FDS", item, error);
        if (code < 0)
            return code;
    }
    return 0;
}

static bool is_this_process(const char *pid_text)
{
    const char *end;
    int pid;
    return pid_text && take_number(pid_text, &pid, &end) && !*end && pid == (int)getpid();
}

int oribi_inherited_read(struct oribi_inherited *inherited, char *error)
{
    const char *own = getenv("ORIBI_LISTEN");
    const char *starter = getenv("SERVER_STARTER_PORT");
    const char *systemd = getenv("LISTEN_FDS");
    inherited->count = 0;
    if (own && *own)
        return read_own(inherited, own, error);
    if (starter && *starter)
        return read_starter(inherited, starter, error);
    if (systemd && *systemd && is_this_process(getenv("LISTEN_PID")))
        return read_systemd(inherited, systemd, error);
    return 0;
}

size_t oribi_inherited_format(const struct oribi_listeners *listeners, char *dst, size_t cap)
{
    size_t len = 0;
    dst[0] = '\0';
    for (uint32_t i = 0; i < listeners->count; i++) {
        const struct oribi_listener *item = &listeners->items[i];
        int n =
            snprintf(dst + len, cap - len, "%s%d %c %s", i > 0 ? "\n" : "", item->fd, (char)item->origin, item->spec);
        if (n < 0 || (size_t)n >= cap - len)
            break; /* only with less than ORIBI_INHERITED_TEXT_CAP */
        len += (size_t)n;
    }
    dst[len] = '\0';
    return len;
}

void oribi_inherited_clear(void)
{
    static const char *const names[] = {"ORIBI_LISTEN", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unsetenv(names[i]); /* fails for names with `=` only */
}
