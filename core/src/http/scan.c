/* The scalar level, which is also the specification of the others, and the choice of a level. See scan_internal.h for the idea of `lines`. */
#include "oribi/http/scan.h"

#include "oribi/base/error.h"
#include "scan_internal.h"

#include <string.h>

/* T tchar, G target, H host, X text; a row is sixteen bytes. */
#define X_ SCAN_TEXT
#define G_ (SCAN_TARGET | SCAN_TEXT)
#define T_ (SCAN_TOKEN | SCAN_TEXT)
#define H_ (SCAN_HOST | SCAN_TARGET | SCAN_TEXT)
#define A_ (SCAN_TOKEN | SCAN_HOST | SCAN_TARGET | SCAN_TEXT)

const uint8_t oribi__scan_class[256] = {
    0,  0,  0,  0,  0,  0,  0,  0,  0,  X_, 0,  0,  0,  0,  0,  0,  /* TAB is text */
    0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,
    X_, A_, X_, T_, A_, T_ | G_, A_, A_, H_, H_, A_, A_, H_, A_, A_, G_, /* SP ! " # $ % & ' ( ) * + , - . / */
    A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, G_, H_, X_, H_, X_, G_, /* 0 … 9 : ; < = > ? */
    G_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, /* @ A … O */
    A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, G_, X_, G_, T_, A_, /* P … Z [ \ ] ^ _ */
    T_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, /* ` a … o */
    A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, X_, T_, X_, A_, 0,  /* p … z { | } ~ DEL */
    X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, /* obs-text */
    X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_,
    X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_,
    X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_,
    X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_,
    X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_,
    X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_,
    X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_, X_,
};

static inline size_t span(const char *p, size_t n, uint8_t class)
{
    size_t i = 0;
    while (i < n && (oribi__scan_class[(uint8_t)p[i]] & class))
        i++;
    return i;
}

static size_t scalar_token(const char *p, size_t n)
{
    return span(p, n, SCAN_TOKEN);
}

static size_t scalar_host(const char *p, size_t n)
{
    return span(p, n, SCAN_HOST);
}

static size_t scalar_text(const char *p, size_t n)
{
    return span(p, n, SCAN_TEXT);
}

static size_t scalar_target(const char *p, size_t n, size_t *query)
{
    size_t len = span(p, n, SCAN_TARGET);
    const char *mark = len ? memchr(p, '?', len) : NULL;
    *query = mark ? (size_t)(mark - p) : len;
    return len;
}

static size_t scalar_lines(const char *p, size_t before, size_t n, uint32_t *marks, size_t cap)
{
    struct scan_walk walk = SCAN_WALK_INIT;
    uint32_t *out = marks;
    (void)before;
    for (size_t pos = 0; pos < n && !walk.ended && cap - (size_t)(out - marks) >= ORIBI_SCAN_BLOCK; pos += 64) {
        size_t block = n - pos < 64 ? n - pos : 64;
        uint64_t ctl = 0;
        uint64_t non = 0;
        for (size_t i = 0; i < block; i++) {
            uint8_t class = oribi__scan_class[(uint8_t)p[pos + i]];
            ctl |= (uint64_t)!(class & SCAN_TEXT) << i;
            non |= (uint64_t)!(class & SCAN_TOKEN) << i;
        }
        out = scan_walk_block(&walk, ctl, non, (uint32_t)pos, out);
    }
    return (size_t)(out - marks);
}

static const struct oribi_scan scalar = {"scalar",     scalar_token, scalar_target,
                                         scalar_host,  scalar_text,  scalar_lines};

/* The one mutable global of the core: set before main by choose(), read-only from then on (tests and benchmarks aside). Every level gives the same
 * results, so whoever reads it earlier is slow, not wrong. */
const struct oribi_scan *oribi_scan_active = &scalar;

const struct oribi_scan *oribi_scan_level(enum oribi_scan_level level)
{
    switch (level) {
    case ORIBI_SCAN_SCALAR: return &scalar;
    case ORIBI_SCAN_SSE42: return oribi__scan_sse42();
    case ORIBI_SCAN_AVX2: return oribi__scan_avx2();
    case ORIBI_SCAN_AVX512: return oribi__scan_avx512();
    default: return NULL;
    }
}

int oribi_scan_level_set(enum oribi_scan_level level)
{
    const struct oribi_scan *scan = oribi_scan_level(level);
    if (!scan)
        return ORIBI_EINVAL;
    oribi_scan_active = scan;
    return 0;
}

__attribute__((constructor)) static void choose(void)
{
    for (int level = ORIBI_SCAN_LEVELS - 1; level >= 0; level--)
        if (oribi_scan_level_set((enum oribi_scan_level)level) == 0)
            return;
}
