/* The configuration that a supervisor writes for a frontend: options, listeners, certificates and keys, as records.
 * First byte: whether it is the text of the begin or of new certificates; the rest is the text.
 *
 * Holds for every input: records lie within it, one behind the other, and written again they are the same; a text that
 * is refused says why and leaves the contexts that serve, one that is taken replaces them; nothing is forgotten. */
#include "frontend/config.c"

#include "ours.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES_MAX = 8192 };

static void check_records(const char *p, size_t n)
{
    const char *at = p;
    struct oribi__record record;
    while (at < p + n) {
        const char *begin = at;
        if (!oribi__record_next(&at, p + n, &record)) {
            expect(at == begin);
            return;
        }
        char head[32];
        int digits = snprintf(head, sizeof(head), " %zu\n", record.value.n);
        size_t len = record.name.n + (size_t)digits + record.value.n + 1;
        expect(record.value.n < n && record.name.p == begin && at == begin + len && at <= p + n);
        expect(memcmp(begin + record.name.n, head, (size_t)digits) == 0);
        expect(record.value.p == begin + record.name.n + digits && at[-1] == '\n');
    }
}

static void check_taken(const struct oribi_options *options, bool begins, const char *p, size_t n)
{
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    struct oribi_frontend_config config = {.options = options, .listener_count = 1};
    config.listeners[0].tls = true;
    int code = take_records(&config, begins ? (struct oribi_options *)(uintptr_t)options : NULL, p, n, error);
    struct oribi_tls *first = config.listeners[0].contexts;
    expect(code <= 0 && (code == 0) == (first != NULL) && (code == 0 || error[0]));
    if (code == 0) { /* what does not fit leaves those that serve */
        expect(take_records(&config, NULL, "key 1\nx\n", 8, error) < 0 && config.listeners[0].contexts == first);
        oribi_tls_release(first);
    }
    if (config.local) { /* lives as long as a frontend's process */
        oribi_options_deinit(config.local);
        oribi_mem_free(config.local);
    }
}

/* Listeners are named by descriptors of the frontend's own process, so a text that has some is not taken here. */
static bool has_listener(const char *p, size_t n)
{
    return memmem(p, n, "listener", 8) != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_options options;
    if (size < 1 || size > BYTES_MAX)
        return 0;
    size_t n = size - 1;
    char *text = oribi_mem_alloc(1, n ? n : 1);
    memcpy(text, data + 1, n);
    int64_t blocks = oribi_mem_blocks();
    check_records(text, n);
    bool begins = data[0] & 1;
    if (!begins || !has_listener(text, n)) {
        oribi_options_init(&options);
        check_taken(&options, begins, text, n);
        oribi_options_deinit(&options);
    }
    expect(oribi_mem_blocks() == blocks);
    oribi_mem_free(text);
    return 0;
}
