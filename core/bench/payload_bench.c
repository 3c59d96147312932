/* Gigabytes a second of a WebSocket's payloads: unmasked, checked as UTF-8, and both by the reader of frames, on each
 * SIMD level and by a loop over bytes.
 *
 * The contestants take turns in short rounds of one run, and medians are printed. The payload is in the first cache. */
#include "oribi/base/escape.h"
#include "oribi/http/scan.h"
#include "oribi/http/websocket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 51, REPEATS = 200, PAYLOAD = 16 * 1024, ENTRIES_MAX = ORIBI_SCAN_LEVELS + 1 };

static const uint8_t mask[4] = {0x37, 0xfa, 0x21, 0x3d};

/* ---- a loop over bytes ---- */

static void plain_mask(char *p, size_t n, const uint8_t by[4])
{
    for (size_t i = 0; i < n; i++) {
        p[i] = (char)((uint8_t)p[i] ^ by[i & 3]);
        __asm__ volatile("" ::: "memory"); /* or the compiler makes vectors of it */
    }
}

static bool plain_utf8(const char *p, size_t n)
{
    size_t len;
    for (size_t i = 0; i < n; i += len) {
        len = (uint8_t)p[i] < 0x80 ? 1 : oribi_utf8_len(p + i, n - i);
        if (len == 0)
            return false;
    }
    return true;
}

/* ---- measuring ---- */

struct entry {
    const struct oribi_scan *scan;
    double mask_ns[ROUNDS];
    double utf8_ns[ROUNDS];
    double feed_ns[ROUNDS];
};

static char payload[PAYLOAD];

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void expect(bool condition, const char *of)
{
    if (condition)
        return;
    (void)fprintf(stderr, "%s has failed\n", of);
    exit(1);
}

/* Feeds a frame of text to a server, whose payload is masked. */
static void feed(size_t n)
{
    struct oribi_websocket socket;
    struct oribi_websocket_event event;
    char head[ORIBI_WEBSOCKET_HEAD_CAP];
    size_t len = oribi_websocket_write_head(head, ORIBI_WEBSOCKET_TEXT, true, n, mask);
    oribi_websocket_init(&socket, ORIBI_WEBSOCKET_SERVER, n);
    expect(oribi_websocket_feed(&socket, head, len, &event) == len, "head");
    expect(oribi_websocket_feed(&socket, payload, n, &event) == n && event.ends, "payload");
}

static void measure(struct entry *entry, int round, size_t n)
{
    oribi_scan_active = entry->scan;
    double start = now_ns();
    for (int i = 0; i < REPEATS; i++)
        entry->scan->mask(payload, n, mask);
    entry->mask_ns[round] = (now_ns() - start) / REPEATS;
    start = now_ns();
    for (int i = 0; i < REPEATS; i++)
        expect(entry->scan->utf8(payload, n), entry->scan->name);
    entry->utf8_ns[round] = (now_ns() - start) / REPEATS;
    double feeds = 0;
    for (int i = 0; i < REPEATS; i++) {
        oribi_websocket_mask(payload, n, mask, 0);
        start = now_ns();
        feed(n);
        feeds += now_ns() - start;
    }
    entry->feed_ns[round] = feeds / REPEATS;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof(values[0]), compare);
    return values[ROUNDS / 2];
}

static void run(const char *title, const char *character, struct entry *entries, int count)
{
    size_t len = strlen(character);
    size_t n = sizeof(payload) / len * len;
    for (size_t i = 0; i < n; i += len)
        memcpy(payload + i, character, len);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < count; i++)
            measure(&entries[i], round, n);
    printf("%s: GB/s of %zu bytes, unmasked, checked, read as a frame\n", title, n);
    for (int i = 0; i < count; i++)
        printf("  %-8s %7.2f %7.2f %7.2f\n", entries[i].scan->name, (double)n / median(entries[i].mask_ns),
               (double)n / median(entries[i].utf8_ns), (double)n / median(entries[i].feed_ns));
}

int main(void)
{
    static struct entry entries[ENTRIES_MAX];
    static struct oribi_scan plain;
    int count = 0;
    plain = *oribi_scan_level(ORIBI_SCAN_SCALAR);
    plain.name = "loop";
    plain.mask = plain_mask;
    plain.utf8 = plain_utf8;
    for (int level = ORIBI_SCAN_LEVELS - 1; level >= 0; level--) {
        const struct oribi_scan *scan = oribi_scan_level((enum oribi_scan_level)level);
        if (scan)
            entries[count++] = (struct entry){.scan = scan};
    }
    entries[count++] = (struct entry){.scan = &plain};
    run("ASCII", "The quick brown fox jumps over the lazy dog. ", entries, count);
    run("Greek", "κόσμε ", entries, count);
    run("Chinese", "你好，世界", entries, count);
    run("emoji", "🦌", entries, count);
    return 0;
}
