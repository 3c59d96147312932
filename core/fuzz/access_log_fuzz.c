/* Access log: whatever a request's head holds, an entry is one line of printable ASCII (JSON: and UTF-8), with as
 * many fields as its format has.
 *
 * First byte: the format, and whether the request line counts as refused. The rest is a request, as far as the
 * parser gets with it, or when it is refused a head of arbitrary bytes. */
#include "oribi/base/mem.h"
#include "oribi/http/fields.h"
#include "oribi/http/head.h"
#include "oribi/worker/logs/access_log.h"
#include "oribi/config/options.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FORMATS = 5, JSON = 2, OWN = 3, OWN_JSON = 4 };

static const char *const formats[FORMATS] = {
    "common", "combined", "json", "\"%r\" %m %U%q \"%{User-Agent}i\" \"%{referer}i\" %v %{trace_id}x",
    "{\"a\":\"$request\",\"b\":\"$http_user_agent $host $uri $args\",\"c\":$status}"};
static struct oribi_access_log *logs[FORMATS];
static int fds[FORMATS];

static void expect(bool condition)
{
    if (!condition)
        abort();
}

static void start(void)
{
    for (int i = 0; i < FORMATS; i++) {
        char path[] = "/tmp/oribi-fuzz-XXXXXX";
        char error[ORIBI_ERROR_TEXT_CAP];
        fds[i] = mkstemp(path);
        expect(fds[i] >= 0 && oribi_access_log_open(path, formats[i], NULL, &logs[i], error) == 0);
        (void)unlink(path);
    }
}

/* Slices of the input in places where only a request's should be. */
static void make_head(struct oribi_head *head, const char *p, size_t n)
{
    memset(head, 0, offsetof(struct oribi_head, fields));
    head->joined = NULL;
    head->method = oribi_slice(p, n / 4);
    head->target = oribi_slice(p + n / 4, n / 4);
    head->minor = 1;
    for (uint32_t i = 0; i < 2; i++)
        head->fields[i] = (struct oribi_field){.name = i ? "user-agent" : "referer",
                                               .name_len = i ? 10 : 7,
                                               .id = i ? ORIBI_FIELD_USER_AGENT : ORIBI_FIELD_REFERER,
                                               .value = p + n / 2 + i * (n / 4),
                                               .value_len = (uint32_t)(n / 4)};
    head->field_count = 2;
}

/* Quotes that are not escaped; in every format their number is fixed. */
static int bare_quotes(const char *p, size_t n)
{
    int count = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] == '\\')
            i++;
        else
            count += p[i] == '"';
    }
    return count;
}

static void check_line(int format, const char *p, size_t n)
{
    expect(n > 1 && p[n - 1] == '\n');
    for (size_t i = 0; i + 1 < n; i++) /* JSON lets UTF-8 through */
        expect((unsigned char)p[i] >= 0x80 ? format == JSON || format == OWN_JSON : p[i] >= ' ' && p[i] < 0x7f);
    int quotes = bare_quotes(p, n - 1);
    if (format == JSON || format == OWN_JSON) {
        expect(p[0] == '{' && p[n - 2] == '}' && quotes % 2 == 0);
    } else {
        expect(quotes == (format == 0 ? 2 : 6)); /* three pairs in the format of one's own, too */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_head head;
    static char line[65536];
    struct oribi_limits limits;
    struct oribi_parser parser = {0};
    if (!logs[0])
        start();
    if (size < 1 || size > 8192)
        return 0;
    const char *p = (const char *)data + 1;
    oribi_limits_init(&limits);
    if (oribi_parser_head(&parser, &limits, p, size - 1, &head) <= 0)
        make_head(&head, p, size - 1);
    int format = data[0] % FORMATS;
    struct oribi_access_entry entry = {.head = &head,
                                       .remote_addr = oribi_slice("::1", 3),
                                       .request_id = oribi_slice("id", 2),
                                       .status = 200,
                                       .wall_ms = 1};
    entry.cut = data[0] & 32;
    if (data[0] & 64) { /* as a request line that was refused */
        head.method = oribi_slice(NULL, 0);
        entry.raw_line = data[0] & 128 ? oribi_parser_first_line(p, size - 1) : oribi_slice(p, size - 1);
    }
    oribi_access_log_add(logs[format], &entry);
    oribi_access_log_flush(logs[format]);
    ssize_t n = pread(fds[format], line, sizeof(line), 0);
    expect(n > 0 && (size_t)n < sizeof(line));
    check_line(format, line, (size_t)n);
    expect(ftruncate(fds[format], 0) == 0);
    oribi_head_release(&head);
    return 0;
}
