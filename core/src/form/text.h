/* Shared by the parsers of forms and cookies: the walk from mark to mark, and a text that is decoded on that walk.
 *
 * A text that begins at byte i of the input is decoded to byte i of the room. No text grows, so none reaches into the
 * next one, and input and room may be the same bytes. A text without escapes is not copied at all. */
#ifndef ORIBI_FORM_TEXT_H
#define ORIBI_FORM_TEXT_H

#include "oribi/form/urlencoded.h"

#include "oribi/base/buf.h"
#include "oribi/http/scan.h"

/* 0 … 15 for a hexadecimal digit, else over 15. */
extern __attribute__((visibility("hidden"))) const uint8_t oribi__hex_digit[256];

/* Finds the next marks. False when there are none. */
static inline bool marks_refill(struct oribi_marks *marks)
{
    if (marks->looked == marks->n)
        return false;
    size_t looked;
    marks->base = marks->looked;
    marks->at = 0;
    marks->count = oribi_scan_active->form(marks->p + marks->base, marks->n - marks->base, marks->places,
                                           ORIBI_MARKS_CAP, &looked);
    marks->looked += looked;
    return marks->count > 0;
}

/* The place of the next mark, or the input's length. */
static inline size_t marks_next(struct oribi_marks *marks)
{
    while (marks->at == marks->count)
        if (!marks_refill(marks) && marks->looked == marks->n)
            return marks->n;
    return marks->base + marks->places[marks->at++];
}

struct text {
    const char *p;     /* where it begins */
    const char *plain; /* from here on it has not been copied */
    char *out;         /* where it goes when it has to be decoded */
    char *end;         /* behind what is there */
    bool decoded;
};

static inline struct text text_begin(const struct oribi_marks *marks, char *room, size_t pos)
{
    return (struct text){.p = marks->p + pos, .plain = marks->p + pos, .out = room + pos, .end = room + pos};
}

/* Copies what is plain up to `at`, which may be where it goes. */
static inline void text_flush(struct text *text, const char *at)
{
    size_t n = (size_t)(at - text->plain);
    if (text->end != text->plain && n)
        memmove(text->end, text->plain, n);
    text->end += n;
}

/* Puts `c` in the place of the `n` bytes at `at`. */
static inline void text_put(struct text *text, const char *at, size_t n, char c)
{
    text_flush(text, at);
    *text->end++ = c;
    text->plain = at + n;
    text->decoded = true;
}

/* The byte that the escape at p+at stands for, or -1: it is none. */
static inline int escape_value(const struct oribi_marks *marks, size_t at)
{
    if (marks->n - at < 3)
        return -1;
    unsigned high = oribi__hex_digit[(uint8_t)marks->p[at + 1]];
    unsigned low = oribi__hex_digit[(uint8_t)marks->p[at + 2]];
    return (high | low) > 15 ? -1 : (int)(high << 4 | low);
}

static inline struct oribi_slice text_end(struct text *text, const char *at)
{
    if (!text->decoded)
        return oribi_slice(text->p, (size_t)(at - text->p));
    text_flush(text, at);
    return oribi_slice(text->out, (size_t)(text->end - text->out));
}

#endif
