/* Reads the .case files of spec/: see spec/README.md for the format. */
#ifndef ORIBI_TEST_CASE_FILE_H
#define ORIBI_TEST_CASE_FILE_H

#include "oribi/base/mem.h"
#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASE_LINES_MAX = 256 };

struct case_line {
    char key[24];
    struct oribi_slice raw; /* as it stands in the file */
};

struct case_file {
    char *text;
    size_t len;
    size_t pos;
    /* the case read last */
    struct case_line lines[CASE_LINES_MAX];
    size_t count;
};

__attribute__((unused)) static bool case_file_open(struct case_file *file, const char *path)
{
    memset(file, 0, sizeof(*file));
    FILE *in = fopen(path, "rb");
    if (!in) {
        perror(path);
        return false;
    }
    fseek(in, 0, SEEK_END);
    long size = ftell(in);
    rewind(in);
    file->text = oribi_mem_alloc((size_t)size + 1, 1);
    file->len = fread(file->text, 1, (size_t)size, in);
    fclose(in);
    return file->len == (size_t)size;
}

__attribute__((unused)) static void case_file_close(struct case_file *file)
{
    oribi_mem_free(file->text);
}

static void case_add_line(struct case_file *file, const char *p, size_t n)
{
    const char *colon = memchr(p, ':', n);
    struct case_line *line = &file->lines[file->count];
    if (!colon || (size_t)(colon - p) >= sizeof(line->key) || file->count == CASE_LINES_MAX) {
        fprintf(stderr, "bad line in a case file: %.*s\n", (int)n, p);
        exit(2);
    }
    memcpy(line->key, p, (size_t)(colon - p));
    line->key[colon - p] = 0;
    size_t skip = (size_t)(colon - p) + 1;
    if (skip < n && p[skip] == ' ')
        skip++;
    line->raw = oribi_slice(p + skip, n - skip);
    file->count++;
}

/* Reads the next case; false at the end of the file. */
__attribute__((unused)) static bool case_next(struct case_file *file)
{
    file->count = 0;
    while (file->pos < file->len) {
        const char *p = file->text + file->pos;
        const char *end = memchr(p, '\n', file->len - file->pos);
        size_t n = end ? (size_t)(end - p) : file->len - file->pos;
        file->pos += n + 1;
        if (n == 0 && file->count)
            return true;
        if (n && *p != '#')
            case_add_line(file, p, n);
    }
    return file->count > 0;
}

static int case_hex(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* Undoes one character or simple escape at *p. */
static char case_char(const char **p)
{
    static const char letters[] = "rnts0\\";
    static const char bytes[] = "\r\n\t \0\\";
    char c = *(*p)++;
    if (c != '\\')
        return c;
    c = *(*p)++;
    if (c == 'x') {
        *p += 2;
        return (char)(case_hex((*p)[-2]) << 4 | case_hex((*p)[-1]));
    }
    const char *known = c ? strchr(letters, c) : NULL;
    if (!known) {
        fprintf(stderr, "unknown escape in a case file: \\%c\n", c);
        exit(2);
    }
    return bytes[known - letters];
}

/* Undoes escapes into dst, which holds cap bytes; returns the length. */
__attribute__((unused)) static size_t case_unescape(struct oribi_slice raw, char *dst, size_t cap)
{
    const char *p = raw.p;
    size_t n = 0;
    while (p < raw.p + raw.n) {
        unsigned long times = 1;
        bool repeated = p[0] == '\\' && p[1] == '{';
        if (repeated) {
            char *star;
            times = strtoul(p + 2, &star, 10);
            p = star + 1;
        }
        char c = case_char(&p);
        p += repeated; /* the closing brace */
        if (n + times > cap) {
            fprintf(stderr, "a case is too long\n");
            exit(2);
        }
        memset(dst + n, c, times);
        n += times;
    }
    return n;
}

/* The raw value of a key, or NULL in .p when the case lacks it. */
__attribute__((unused)) static struct oribi_slice case_raw(const struct case_file *file, const char *key)
{
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->lines[i].key, key) == 0)
            return file->lines[i].raw;
    return oribi_slice(NULL, 0);
}

__attribute__((unused)) static bool case_has(const struct case_file *file, const char *key)
{
    return case_raw(file, key).p != NULL;
}

__attribute__((unused)) static bool case_is(const struct case_file *file, const char *key, const char *text)
{
    struct oribi_slice raw = case_raw(file, key);
    return raw.p && oribi_slice_equal(raw, oribi_slice(text, strlen(text)));
}

/* A number; yes is 1 and no is 0. */
__attribute__((unused)) static long long case_number(const struct case_file *file, const char *key, long long missing)
{
    struct oribi_slice raw = case_raw(file, key);
    if (!raw.p)
        return missing;
    if (raw.n && (*raw.p == 'y' || *raw.p == 'n'))
        return *raw.p == 'y';
    return strtoll(raw.p, NULL, 10);
}

/* All values of a key joined and unescaped. */
__attribute__((unused)) static size_t case_bytes(const struct case_file *file, const char *key, char *dst, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < file->count; i++)
        if (strcmp(file->lines[i].key, key) == 0)
            n += case_unescape(file->lines[i].raw, dst + n, cap - n);
    return n;
}

/* Splits "name: value" of a field or header line and unescapes both into dst. */
__attribute__((unused)) static void case_pair(struct oribi_slice raw, char *dst, size_t cap, struct oribi_slice *name,
                                              struct oribi_slice *value)
{
    const char *colon = memmem(raw.p, raw.n, ": ", 2);
    size_t name_len = colon ? (size_t)(colon - raw.p) : raw.n - 1;
    size_t n = case_unescape(oribi_slice(raw.p, name_len), dst, cap);
    *name = oribi_slice(dst, n);
    *value = oribi_slice(dst + n, 0);
    if (colon)
        value->n = case_unescape(oribi_slice(colon + 2, raw.n - name_len - 2), dst + n, cap - n);
}

#endif
