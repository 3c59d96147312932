/* What a door is started with, as a text of records (door_ties.h). */
#include "process/doors.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os.h"
#include "oribi/config/address.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* What a door does by: the rest is the supervisor's and the workers'. */
static const char *const option_names[] = {
    "head_timeout",
    "body_timeout",
    "idle_timeout",
    "write_timeout",
    "shutdown_timeout",
    "body_rate_min",
    "head_bytes_max",
    "fields_max",
    "target_bytes_max",
    "body_bytes_max",
    "underscores_allow",
    "strict_target",
    "connections_max",
    "keepalive_requests_max",
    "buffers_memory_max",
    "buffers_file_max",
    "response_memory_max",
    "queue_max",
    "trusted_proxies",
    "proxy_protocol",
    "client_verify",
    "tls_min",
    "http2",
    "hsts",
    "user",
    "group",
    "error_log",
    "error_log_format",
    "quiet",
    "verbose",
};

bool oribi__doors_wanted(const struct oribi_listeners *listeners)
{
    for (uint32_t i = 0; i < listeners->count; i++)
        if (listeners->items[i].door)
            return true;
    return false;
}

static int add(struct oribi_buf *out, const char *name, const char *p, size_t n)
{
    char line[ORIBI_DOOR_WORD_MAX + 32];
    int head = snprintf(line, sizeof(line), "%s %zu\n", name, n); /* names are ours, and short */
    int code = oribi_buf_try_append(out, line, (size_t)head);
    code = code < 0 ? code : oribi_buf_try_append(out, p, n);
    return code < 0 ? code : oribi_buf_try_append(out, "\n", 1);
}

/* The items of a list stand in lines. */
static int add_option(struct oribi_buf *out, const struct oribi_options *options, const struct oribi_option *option)
{
    char name[ORIBI_DOOR_WORD_MAX];
    size_t n = oribi_options_get(options, option, name, sizeof(name));
    char *text = oribi_mem_try_alloc(n + 1, 1);
    int code = text ? 0 : ORIBI_ENOMEM;
    if (text)
        (void)oribi_options_get(options, option, text, n + 1);
    (void)snprintf(name, sizeof(name), "option %s", option->name);
    for (char *at = text; code == 0 && n > 0 && at;) {
        char *end = option->type == ORIBI_OPTION_LIST ? strchr(at, '\n') : NULL;
        code = add(out, name, at, end ? (size_t)(end - at) : strlen(at));
        at = end ? end + 1 : NULL;
    }
    oribi_mem_free(text);
    return code;
}

/* As in the hand-off message: FNV-1a of the listener's text. */
static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (const char *p = text; *p; p++)
        hash = (hash ^ (unsigned char)*p) * 16777619u;
    return hash;
}

int oribi__door_text(const struct oribi_options *options, const struct oribi_listeners *listeners,
                     struct oribi_buf *out)
{
    int code = 0;
    for (size_t i = 0; i < sizeof(option_names) / sizeof(option_names[0]) && code == 0; i++) {
        const struct oribi_option *option = oribi_options_find(option_names[i]);
        if (option && oribi_options_source(options, option) != ORIBI_FROM_DEFAULT)
            code = add_option(out, options, option);
    }
    for (uint32_t i = 0; i < listeners->count && code == 0; i++) {
        const struct oribi_listener *item = &listeners->items[i];
        char text[ORIBI_ADDRESS_TEXT_CAP + 64];
        if (!item->door)
            continue;
        int n = snprintf(text, sizeof(text), "%d %u %u %d %d %s", item->fd, i, hash_of(item->text), item->tls,
                         item->proxy, item->text);
        code = add(out, "listener", text, (size_t)n);
    }
    return code;
}

/* --- certificates --- */

struct reading {
    const struct oribi_options *options;
    struct oribi_buf *out;
    char *error;
};

static int complain(const struct reading *reading, const char *path, const char *why)
{
    (void)snprintf(reading->error, ORIBI_ERROR_TEXT_CAP, "cannot read %.140s: %s", path, why);
    return ORIBI_EINVAL;
}

/* Names are relative to the folder that the server was started in, as all files' are. */
static int add_file(const struct reading *reading, const char *name, struct oribi_slice file)
{
    char path[PATH_MAX];
    char *text = NULL;
    int64_t size = 0;
    int fd;
    (void)snprintf(path, sizeof(path), "%.*s", (int)(file.n < sizeof(path) ? file.n : sizeof(path) - 1), file.p);
    if (oribi_os_open_read(path, &fd) < 0)
        return complain(reading, path, oribi_os_error_text());
    int code = 0;
    if (!oribi_os_is_file(fd, &size))
        code = complain(reading, path, "it is not a regular file");
    else if (size == 0 || size > ORIBI_DOOR_FILE_MAX)
        code = complain(reading, path, size ? "it is longer than 1 MiB" : "it is empty");
    else if (!(text = oribi_mem_try_alloc((size_t)size, 1)))
        code = complain(reading, path, "out of memory");
    else if (oribi_os_read_at(fd, text, (size_t)size, 0) != size)
        code = complain(reading, path, "it changes while it is read");
    else if (add(reading->out, name, text, (size_t)size) < 0)
        code = complain(reading, path, "out of memory");
    if (text)
        explicit_bzero(text, (size_t)size);
    oribi_mem_free(text);
    oribi_os_close(fd);
    return code;
}

/* files: certificate, key, ocsp. Without a key it stands in the first. */
static int add_certificate(const struct reading *reading, uint32_t listener, const struct oribi_slice files[3])
{
    char name[32];
    (void)snprintf(name, sizeof(name), "certificate %u", listener);
    if (add(reading->out, name, files[0].p, files[0].n) < 0)
        return complain(reading, "a certificate", "out of memory");
    int code = add_file(reading, "chain", files[0]);
    if (code == 0)
        code = add_file(reading, "key", files[1].n ? files[1] : files[0]);
    if (code == 0 && files[2].n)
        code = add_file(reading, "ocsp", files[2]);
    return code;
}

/* "CERT,KEY,OCSP" */
static void split(const char *item, struct oribi_slice files[3])
{
    for (int i = 0; i < 3; i++) {
        size_t n = i < 2 ? strcspn(item, ",") : strlen(item);
        files[i] = oribi_slice(item, n);
        item += n;
        item += *item == ',';
    }
}

static uint32_t index_of(const struct oribi_listeners *listeners, const struct oribi_listener *item)
{
    uint32_t index = 0; /* among those of doors, in their order */
    for (const struct oribi_listener *at = listeners->items; at < item; at++)
        index += at->door;
    return index;
}

static int add_of_listener(const struct reading *reading, const struct oribi_listeners *listeners,
                           const struct oribi_listener *item)
{
    const struct oribi_options *options = reading->options;
    uint32_t index = index_of(listeners, item);
    uint32_t count = 0;
    int code = 0;
    for (size_t i = 0; i < options->bind.count && code == 0; i++) {
        struct oribi_address address;
        char ignored[ORIBI_ERROR_TEXT_CAP];
        if (oribi_address_parse(options->bind.items[i], &address, ignored) < 0 || address.files[0].n == 0 ||
            (strcmp(address.text, item->spec) != 0 && strcmp(address.text, item->text) != 0))
            continue;
        code = add_certificate(reading, index, address.files);
        count++;
    }
    for (size_t i = 0; i < options->certificates.count && code == 0; i++) {
        struct oribi_slice files[3];
        split(options->certificates.items[i], files);
        code = add_certificate(reading, index, files);
        count++;
    }
    if (code < 0 || count > 0)
        return code;
    (void)snprintf(reading->error, ORIBI_ERROR_TEXT_CAP,
                   "tls://%.100s needs a certificate: ?certificate=FILE&key=FILE, or the option certificate",
                   strncmp(item->text, "tcp://", 6) == 0 ? item->text + 6 : item->text);
    return ORIBI_EINVAL;
}

int oribi__door_text_certificates(const struct oribi_options *options, const struct oribi_listeners *listeners,
                                  struct oribi_buf *out, char *error)
{
    struct reading reading = {.options = options, .out = out, .error = error};
    int code = 0;
    bool any = false;
    for (uint32_t i = 0; i < listeners->count && code == 0; i++) {
        if (!listeners->items[i].tls)
            continue;
        any = true;
        code = add_of_listener(&reading, listeners, &listeners->items[i]);
    }
    if (code == 0 && any && options->client_ca)
        code = add_file(&reading, "client_ca", oribi_slice(options->client_ca, strlen(options->client_ca)));
    return code;
}
