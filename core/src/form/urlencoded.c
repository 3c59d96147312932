/* Forms to pairs. The walk goes from mark to mark (form/text.h): a separator ends the pair, the first `=` ends its key,
 * `+` and `%` are decoded where they stand, and everything between the marks is copied at once or not at all. So each
 * mark costs the same, whatever stands around it. */
#include "oribi/form/urlencoded.h"
#include "oribi/base/error.h"
#include "form/text.h"

#include <stdint.h>
#include <stdio.h>

#define NO 0x10

const uint8_t oribi__hex_digit[256] = {
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,
    NO, NO, NO, NO, NO, NO, NO, 10, 11, 12, 13, 14, 15, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, 10, 11, 12, 13, 14, 15, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
    NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO, NO,
};

void oribi_form_limits_init(struct oribi_form_limits *limits)
{
    *limits = (struct oribi_form_limits){.pairs_max = ORIBI_FORM_PAIRS_DEFAULT,
                                         .key_bytes_max = ORIBI_FORM_KEY_BYTES_DEFAULT,
                                         .bytes_max = ORIBI_FORM_BYTES_DEFAULT};
}

static int code_of(enum oribi_form_fault fault)
{
    return fault == ORIBI_FORM_ESCAPE ? ORIBI_EBAD : ORIBI_ELIMIT;
}

static int fail(struct oribi_form *form, enum oribi_form_fault fault)
{
    form->fault = fault;
    return code_of(fault);
}

int oribi_form_begin(struct oribi_form *form, struct oribi_slice in, char *room, unsigned rules,
                     const struct oribi_form_limits *limits)
{
    form->count = 0;
    form->marks.p = in.p;
    form->marks.n = in.n;
    form->marks.looked = form->marks.base = form->marks.at = form->marks.count = 0;
    form->limits = *limits;
    if (form->limits.bytes_max > ORIBI_FORM_BYTES_CAP)
        form->limits.bytes_max = ORIBI_FORM_BYTES_CAP;
    form->room = room;
    form->pos = 0;
    form->rules = rules;
    form->ended = in.n == 0;
    form->fault = ORIBI_FORM_FINE;
    if (in.n > form->limits.bytes_max)
        return fail(form, ORIBI_FORM_LONG);
    return 0;
}

static void skip_blanks(struct oribi_form *form)
{
    const char *p = form->marks.p;
    size_t most = form->rules & ORIBI_FORM_BLANK                     ? 1
                  : form->rules & ORIBI_FORM_BLANKS && form->pos > 0 ? form->marks.n
                                                                     : 0;
    for (; most && form->pos < form->marks.n && p[form->pos] == ' '; most--)
        form->pos++;
}

/* Reads the pair at `pos`, up to its separator or the end. 0 or ORIBI_EBAD. */
static int read_pair(struct oribi_form *form, struct oribi_form_pair *pair)
{
    struct oribi_marks *marks = &form->marks;
    const char *p = marks->p;
    struct text text = text_begin(marks, form->room, form->pos);
    pair->bare = true;
    for (;;) {
        size_t at = marks_next(marks);
        char c = at < marks->n ? p[at] : '&';
        if (c == '=') {
            if (!pair->bare)
                continue;
            pair->key = text_end(&text, p + at);
            pair->bare = false;
            text = text_begin(marks, form->room, at + 1);
        } else if (c == '+') {
            if (!(form->rules & ORIBI_FORM_PLUS_STAYS))
                text_put(&text, p + at, 1, ' ');
        } else if (c == '%') {
            int byte = escape_value(marks, at);
            if (byte >= 0)
                text_put(&text, p + at, 3, (char)byte);
            else if (form->rules & ORIBI_FORM_STRICT)
                return fail(form, ORIBI_FORM_ESCAPE);
        } else if (c == '&' || form->rules & ORIBI_FORM_SEMICOLON) {
            pair->value = text_end(&text, p + at);
            form->ended = at == marks->n;
            form->pos = at + 1;
            break;
        }
    }
    if (pair->bare) {
        pair->key = pair->value;
        pair->value = oribi_slice(pair->key.p + pair->key.n, 0);
    }
    return 0;
}

int oribi_form_next(struct oribi_form *form, struct oribi_form_pair *pair)
{
    if (form->fault)
        return code_of(form->fault);
    do {
        if (form->ended)
            return 0;
        skip_blanks(form);
        int code = read_pair(form, pair);
        if (code < 0)
            return code;
    } while (pair->bare && pair->key.n == 0 && form->rules & ORIBI_FORM_SKIP_EMPTY);
    if (form->count == form->limits.pairs_max)
        return fail(form, ORIBI_FORM_PAIRS);
    if (pair->key.n > form->limits.key_bytes_max)
        return fail(form, ORIBI_FORM_KEY);
    form->count++;
    return 1;
}

int oribi_form_status(const struct oribi_form *form)
{
    return code_of(form->fault) == ORIBI_ELIMIT ? 413 : 400;
}

void oribi_form_explain(const struct oribi_form *form, char text[static ORIBI_ERROR_TEXT_CAP])
{
    const struct oribi_form_limits *limits = &form->limits;
    switch (form->fault) {
    case ORIBI_FORM_LONG:
        snprintf(text, ORIBI_ERROR_TEXT_CAP, "the form has more than %zu bytes", limits->bytes_max);
        break;
    case ORIBI_FORM_PAIRS:
        snprintf(text, ORIBI_ERROR_TEXT_CAP, "the form has more than %zu pairs", limits->pairs_max);
        break;
    case ORIBI_FORM_KEY:
        snprintf(text, ORIBI_ERROR_TEXT_CAP, "a key of the form has more than %zu bytes", limits->key_bytes_max);
        break;
    case ORIBI_FORM_ESCAPE:
        snprintf(text, ORIBI_ERROR_TEXT_CAP, "the form has a %% that no two hexadecimal digits follow");
        break;
    case ORIBI_FORM_FINE:
        text[0] = 0;
    }
}

/* ---- escape ---- */

/* Escapes of forms and cookies, a byte at a time. */

/* P, W, U: the byte stays in PERL, WHATWG, UNRESERVED. */
enum { P = 1 << ORIBI_ESCAPE_PERL, W = 1 << ORIBI_ESCAPE_WHATWG, U = 1 << ORIBI_ESCAPE_UNRESERVED, A = P | W | U };

static const uint8_t stays[256] = {
    ['!'] = P, ['\''] = P, ['('] = P, [')'] = P, ['*'] = P | W, ['-'] = A, ['.'] = A, ['0'] = A,     ['1'] = A,
    ['2'] = A, ['3'] = A,  ['4'] = A, ['5'] = A, ['6'] = A,     ['7'] = A, ['8'] = A, ['9'] = A,     ['A'] = A,
    ['B'] = A, ['C'] = A,  ['D'] = A, ['E'] = A, ['F'] = A,     ['G'] = A, ['H'] = A, ['I'] = A,     ['J'] = A,
    ['K'] = A, ['L'] = A,  ['M'] = A, ['N'] = A, ['O'] = A,     ['P'] = A, ['Q'] = A, ['R'] = A,     ['S'] = A,
    ['T'] = A, ['U'] = A,  ['V'] = A, ['W'] = A, ['X'] = A,     ['Y'] = A, ['Z'] = A, ['_'] = A,     ['a'] = A,
    ['b'] = A, ['c'] = A,  ['d'] = A, ['e'] = A, ['f'] = A,     ['g'] = A, ['h'] = A, ['i'] = A,     ['j'] = A,
    ['k'] = A, ['l'] = A,  ['m'] = A, ['n'] = A, ['o'] = A,     ['p'] = A, ['q'] = A, ['r'] = A,     ['s'] = A,
    ['t'] = A, ['u'] = A,  ['v'] = A, ['w'] = A, ['x'] = A,     ['y'] = A, ['z'] = A, ['~'] = P | U,
};

char *oribi_form_escape(char *dst, struct oribi_slice text, enum oribi_form_escape set, bool plus)
{
    static const char digits[] = "0123456789ABCDEF";
    const uint8_t mask = (uint8_t)(1 << set);
    const uint8_t *end = (const uint8_t *)text.p + text.n;
    for (const uint8_t *p = (const uint8_t *)text.p; p < end; p++) {
        if (stays[*p] & mask) {
            *dst++ = (char)*p;
        } else if (*p == ' ' && plus) {
            *dst++ = '+';
        } else {
            dst[0] = '%';
            dst[1] = digits[*p >> 4];
            dst[2] = digits[*p & 15];
            dst += 3;
        }
    }
    return dst;
}
