/* Nanoseconds and bytes per cycle of the head parser, per SIMD level, beside a packaged parser when there is one.
 *
 * The contestants take turns in short rounds of one run, and medians are printed: what else the machine does hits
 * all of them alike. Each request is parsed from the same buffer, which then is in the first cache, as it is behind
 * a read(2). x86-64 only, because of the cycle counter. */
#include "oribi/base/limits.h"
#include "oribi/http/fields.h"
#include "oribi/http/head.h"
#include "oribi/http/scan.h"
#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 101, REPEATS = 2000, ENTRIES_MAX = ORIBI_SCAN_LEVELS + 1 };

static const char browser[] = "GET /articles/2026/01/how-fast-is-fast-enough?utm_source=newsletter&page=2 HTTP/1.1\r\n"
                              "Host: www.example.com\r\n"
                              "Connection: keep-alive\r\n"
                              "Cache-Control: max-age=0\r\n"
                              "sec-ch-ua: \"Chromium\";v=\"120\", \"Not?A_Brand\";v=\"8\"\r\n"
                              "sec-ch-ua-mobile: ?0\r\n"
                              "Upgrade-Insecure-Requests: 1\r\n"
                              "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
                              "Chrome/120.0.0.0 Safari/537.36\r\n"
                              "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp\r\n"
                              "Sec-Fetch-Site: same-origin\r\n"
                              "Sec-Fetch-Mode: navigate\r\n"
                              "Referer: https://www.example.com/articles\r\n"
                              "Accept-Encoding: gzip, deflate, br\r\n"
                              "Accept-Language: en-US,en;q=0.9\r\n"
                              "Cookie: session=0123456789abcdef0123456789abcdef\r\n"
                              "\r\n";

/* Long values, of which two thirds of the bytes are one Cookie and one User-Agent. */
static const char cookies[] =
    "GET /gallery/2026/03/lighthouse-at-dusk-seen-from-the-harbour.jpg HTTP/1.1\r\n"
    "Host: pictures.example.org\r\n"
    "User-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:121.0; de-CH) Gecko/20100101 "
    "Firefox/121.0 Feedreader/1.9 Extra/0.1\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Language: de-ch,en-us;q=0.7,en;q=0.3\r\n"
    "Accept-Encoding: gzip,deflate\r\n"
    "Accept-Charset: ISO-8859-1,utf-8;q=0.7,*;q=0.7\r\n"
    "Keep-Alive: 115\r\n"
    "Connection: keep-alive\r\n"
    "Cookie: gallery_visits=2; gallery_visit_lasttime=0123456789; "
    "_track_a=012345678.0123456789.0123456789.0123456789.0123456789.0; "
    "_track_z=012345678.0123456789.1.1.source=(referral)|from=reader.example.net|"
    "path=/unread/|medium=referral\r\n"
    "\r\n";

static const char small[] = "GET / HTTP/1.1\r\n"
                            "Host: 127.0.0.1:9292\r\n"
                            "User-Agent: bench/1.0\r\n"
                            "Accept: */*\r\n"
                            "\r\n";

static const char proxied[] = "POST /api/items/4711 HTTP/1.1\r\n"
                              "Host: app.example.com\r\n"
                              "X-Forwarded-For: 203.0.113.7, 10.0.0.1\r\n"
                              "X-Forwarded-Proto: https\r\n"
                              "X-Request-Id: 01HQ3W7Z2T9K4Y5N8M6P0R1S2V\r\n"
                              "X-Trace-Context: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n"
                              "Content-Type: application/json\r\n"
                              "Content-Length: 512\r\n"
                              "Accept: application/json\r\n"
                              "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MiJ9.c2lnbmF0dXJl\r\n"
                              "\r\n";

struct entry {
    const char *name;
    const struct oribi_scan *scan; /* NULL: the peer */
    double ns[ROUNDS];
    double cycles[ROUNDS];
};

static struct oribi_limits limits;
static struct oribi_head head;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* 0 where no instruction tells. */
static uint64_t cycles_now(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

static void parse_ours(const char *text, size_t n)
{
    struct oribi_parser parser = {0};
    if (oribi_parser_head(&parser, &limits, text, n, &head) != (ssize_t)n) {
        fprintf(stderr, "the request is refused: %s\n", parser.fault.reason);
        exit(1);
    }
}

static void measure(struct entry *entry, int round, const char *text, size_t n)
{
    if (entry->scan)
        oribi_scan_active = entry->scan;
    uint64_t ns = now_ns();
    uint64_t cycles = cycles_now();
    for (int i = 0; i < REPEATS; i++) {
        if (entry->scan)
            parse_ours(text, n);
        else
            peer_parse(text, n);
        __asm__ volatile("" ::: "memory");
    }
    entry->cycles[round] = (double)(cycles_now() - cycles) / REPEATS;
    entry->ns[round] = (double)(now_ns() - ns) / REPEATS;
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

static void run(const char *title, const char *text, size_t n, struct entry *entries, int count)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < count; i++)
            measure(&entries[i], round, text, n);
    parse_ours(text, n);
    printf("%s: %zu bytes, %u fields\n", title, n, head.field_count);
    double peer_ns = 0;
    for (int i = count - 1; i >= 0; i--) {
        double ns = median(entries[i].ns);
        if (!entries[i].scan)
            peer_ns = ns;
        double cycles = median(entries[i].cycles);
        printf("  %-14s %7.1f ns", entries[i].name, ns);
        if (cycles > 0)
            printf("  %5.2f bytes/cycle", (double)n / cycles);
        if (peer_ns > 0 && entries[i].scan)
            printf("  %5.1f times %s", peer_ns / ns, peer_name());
        putchar('\n');
    }
}

int main(void)
{
    static struct entry entries[ENTRIES_MAX];
    int count = 0;
    oribi_limits_init(&limits);
    for (int level = ORIBI_SCAN_LEVELS - 1; level >= 0; level--) {
        const struct oribi_scan *scan = oribi_scan_level((enum oribi_scan_level)level);
        if (scan)
            entries[count++] = (struct entry){.name = scan->name, .scan = scan};
    }
    if (peer_name())
        entries[count++] = (struct entry){.name = peer_name()};
    run("browser", browser, sizeof(browser) - 1, entries, count);
    run("cookies", cookies, sizeof(cookies) - 1, entries, count);
    run("proxied", proxied, sizeof(proxied) - 1, entries, count);
    run("small", small, sizeof(small) - 1, entries, count);
    return 0;
}
