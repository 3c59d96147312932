/* The scalar level, which is also the specification of the others, and the choice of a level. See scan_private.h
 * for the idea of `lines`. */
#include "oribi/http/scan.h"

#include "oribi/base/error.h"
#include "http/scan_private.h"

#include <string.h>

/* T tchar, G target, R target unless it must be strict, H host, X text; a row is sixteen bytes. */
#define X_ SCAN_TEXT
#define R_ (SCAN_TARGET | SCAN_TEXT)
#define G_ (SCAN_STRICT_TARGET | SCAN_TARGET | SCAN_TEXT)
#define T_ (SCAN_TOKEN | SCAN_TEXT)
#define H_ (SCAN_HOST | G_)
#define A_ (SCAN_TOKEN | SCAN_HOST | G_)

const uint8_t oribi__scan_class[256] = {
    0,       0,  0,  0,  0,  0,  0,  0,  0,  X_, 0,  0,  0,       0,  0,       0, /* TAB is text */
    0,       0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,  0,       0,  0,       0,  X_, A_, X_, T_, A_, T_ | G_, A_,
    A_,      H_, H_, A_, A_, H_, A_, A_, G_, /* SP ! " # $ % & ' ( ) * + , - . / */
    A_,      A_, A_, A_, A_, A_, A_, A_, A_, A_, G_, H_, X_,      H_, X_,      G_, /* 0 … 9 : ; < = > ? */
    G_,      A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_,      A_, A_,      A_, /* @ A … O */
    A_,      A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, G_, R_,      G_, T_ | R_, A_, /* P … Z [ \ ] ^ _ */
    T_ | R_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, A_,      A_, A_,      A_, /* ` a … o */
    A_,      A_, A_, A_, A_, A_, A_, A_, A_, A_, A_, R_, T_ | R_, R_, A_,      0,  /* p … z { | } ~ DEL */
    R_,      R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_,      R_, R_,      R_, /* obs-text, and raw in a target */
    R_,      R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_,      R_, R_,      R_, R_, R_, R_, R_, R_, R_,      R_,
    R_,      R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_,      R_, R_,      R_, R_, R_, R_, R_, R_, R_,      R_,
    R_,      R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_,      R_, R_,      R_, R_, R_, R_, R_, R_, R_,      R_,
    R_,      R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_,      R_, R_,      R_, R_, R_, R_, R_, R_, R_,      R_,
    R_,      R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_, R_,      R_, R_,      R_, R_, R_, R_, R_,
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

/* Whether one of eight bytes may be a control; TAB counts here. */
static inline bool word_has_control(const char *p)
{
    const uint64_t ones = 0x0101010101010101U;
    uint64_t word;
    memcpy(&word, p, 8);
    uint64_t del = word ^ ones * 0x7f;
    return (((word - ones * 0x20) & ~word) | ((del - ones) & ~del)) & ones * 0x80;
}

static size_t scalar_text(const char *p, size_t n)
{
    size_t i = 0;
    for (;;) {
        while (n - i >= 8 && !word_has_control(p + i))
            i += 8;
        size_t stop = n - i >= 8 ? i + 8 : n;
        while (i < stop && (oribi__scan_class[(uint8_t)p[i]] & SCAN_TEXT))
            i++;
        if (i < stop || i == n)
            return i;
    }
}

static size_t span_query(const char *p, size_t n, uint8_t class, size_t *query)
{
    size_t len = span(p, n, class);
    const char *mark = len ? memchr(p, '?', len) : NULL;
    *query = mark ? (size_t)(mark - p) : len;
    return len;
}

static size_t scalar_target(const char *p, size_t n, size_t *query)
{
    return span_query(p, n, SCAN_TARGET, query);
}

static size_t scalar_strict_target(const char *p, size_t n, size_t *query)
{
    return span_query(p, n, SCAN_STRICT_TARGET, query);
}

/* Line by line, without masks: what the caller stops at ends the search as well. */
static size_t scalar_lines(const char *p, size_t before, size_t n, uint32_t *marks, size_t cap)
{
    size_t count = 0;
    size_t start = 0;
    (void)before;
    while (start < n && cap - count >= ORIBI_SCAN_BLOCK) {
        size_t at = start + span(p + start, n - start, SCAN_TOKEN);
        if (at == n)
            break;
        marks[count++] = (uint32_t)at;
        if (p[at] != ':' && count > 1) /* the first line may be a request line */
            break;
        size_t text = scalar_text(p + at, n - at);
        if (text == 0)
            break;
        at += text;
        if (at == n)
            break;
        marks[count++] = (uint32_t)at;
        start = at + 2;
    }
    return count;
}

static inline bool ends_text(char c)
{
    return c == '%' || c == '&' || c == '+' || c == ';' || c == '=';
}

static size_t scalar_form(const char *p, size_t n, uint32_t *marks, size_t cap, size_t *looked)
{
    size_t count = 0;
    size_t at = 0;
    for (; at < n && cap - count >= ORIBI_SCAN_BLOCK; at++) {
        marks[count] = (uint32_t)at;
        count += ends_text(p[at]);
    }
    *looked = at;
    return count;
}

static const struct oribi_scan scalar = {
    "scalar",    scalar_token, scalar_target, scalar_strict_target,    scalar_host,
    scalar_text, scalar_lines, scalar_form,   oribi__scan_scalar_mask, oribi__scan_scalar_utf8};

/* Set before main by choose(), read-only from then on (tests and benchmarks aside). Every level gives the same results,
 * so a parse before choose() is slow, not wrong. */
const struct oribi_scan *oribi_scan_active = &scalar;

const struct oribi_scan *oribi_scan_level(enum oribi_scan_level level)
{
    switch (level) {
    case ORIBI_SCAN_SCALAR:
        return &scalar;
    case ORIBI_SCAN_NEON:
        return oribi__scan_neon();
    case ORIBI_SCAN_SSE42:
        return oribi__scan_sse42();
    case ORIBI_SCAN_AVX2:
        return oribi__scan_avx2();
    case ORIBI_SCAN_AVX512:
        return oribi__scan_avx512();
    default:
        return NULL;
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
