/* Accept-Encoding. One pass over the elements leaves a weight for each coding that the server knows and one for `*`;
 * what is offered is then looked up. */
#include "oribi/http/compress.h"

#include "oribi/http/scan.h"
#include "oribi/http/syntax.h"

#include <assert.h>
#include <stdint.h>

/* Weights are thousandths: a qvalue has up to three decimals. */
enum { WEIGHT_UNSET = -1, WEIGHT_BAD = -2, WEIGHT_ONE = 1000 };

struct weights {
    int16_t of[ORIBI_CODING_COUNT];
    int16_t others; /* of `*` */
};

static const struct oribi_slice names[ORIBI_CODING_COUNT] = {
    [ORIBI_CODING_IDENTITY] = {"identity", 8},
    [ORIBI_CODING_GZIP] = {"gzip", 4},
    [ORIBI_CODING_BR] = {"br", 2},
    [ORIBI_CODING_ZSTD] = {"zstd", 4},
};

struct oribi_slice oribi_coding_name(enum oribi_coding coding)
{
    assert(coding > ORIBI_CODING_NONE && coding < ORIBI_CODING_COUNT);
    return names[coding];
}

/* ORIBI_CODING_NONE for those that the server does not know. */
static enum oribi_coding find_coding(struct oribi_slice name)
{
    for (int i = ORIBI_CODING_IDENTITY; i < ORIBI_CODING_COUNT; i++)
        if (oribi_slice_equal_fold(name, names[i]))
            return (enum oribi_coding)i;
    return oribi_slice_equal_fold(name, ORIBI_SLICE("x-gzip")) ? ORIBI_CODING_GZIP : ORIBI_CODING_NONE;
}

/* qvalue: ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] ) */
static int read_qvalue(struct oribi_slice text)
{
    if (text.n == 0 || text.n > 5 || (*text.p != '0' && *text.p != '1') || (text.n > 1 && text.p[1] != '.'))
        return WEIGHT_BAD;
    int weight = (*text.p - '0') * WEIGHT_ONE;
    int unit = WEIGHT_ONE / 10;
    for (size_t i = 2; i < text.n; i++, unit /= 10) {
        if (text.p[i] < '0' || text.p[i] > '9')
            return WEIGHT_BAD;
        weight += (text.p[i] - '0') * unit;
    }
    return weight <= WEIGHT_ONE ? weight : WEIGHT_BAD;
}

/* Reads the weight behind a coding: nothing, or OWS ";" OWS "q=" qvalue. */
static int read_weight(struct oribi_slice text)
{
    text = strip_ows(text.p, text.p + text.n);
    if (text.n == 0)
        return WEIGHT_ONE;
    if (*text.p != ';')
        return WEIGHT_BAD;
    text = strip_ows(text.p + 1, text.p + text.n);
    if (text.n < 2 || !oribi_slice_equal_fold(oribi_slice(text.p, 2), ORIBI_SLICE("q=")))
        return WEIGHT_BAD;
    return read_qvalue(oribi_slice(text.p + 2, text.n - 2));
}

/* Keeps the lower one. */
static void note(int16_t *weight, int read)
{
    if (*weight == WEIGHT_UNSET || read < *weight)
        *weight = (int16_t)read;
}

static void read_element(struct oribi_slice element, struct weights *weights)
{
    size_t n = oribi_scan_active->token(element.p, element.n);
    struct oribi_slice name = oribi_slice(element.p, n);
    int weight = read_weight(oribi_slice(element.p + n, element.n - n));
    enum oribi_coding coding = find_coding(name);
    bool any = oribi_slice_equal(name, ORIBI_SLICE("*"));
    if (weight == WEIGHT_BAD && (any || coding == ORIBI_CODING_IDENTITY))
        return;
    if (any)
        note(&weights->others, weight);
    else if (coding != ORIBI_CODING_NONE)
        note(&weights->of[coding], weight == WEIGHT_BAD ? 0 : weight);
}

/* Twice the weight of a coding, so that 1 stands between refused and the lowest q there is: identity's, when the client
 * says nothing about it. */
static int rank_of(const struct weights *weights, enum oribi_coding coding)
{
    if (weights->of[coding] != WEIGHT_UNSET)
        return 2 * weights->of[coding];
    if (weights->others != WEIGHT_UNSET)
        return 2 * weights->others;
    return coding == ORIBI_CODING_IDENTITY;
}

static enum oribi_coding choose_freely(const enum oribi_coding *offered, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (offered[i] == ORIBI_CODING_IDENTITY)
            return offered[i];
    return count ? offered[0] : ORIBI_CODING_NONE;
}

enum oribi_coding oribi_accept_encoding_choose(struct oribi_slice value, const enum oribi_coding *offered, size_t count)
{
    if (!value.p)
        return choose_freely(offered, count);
    if (value.n > ORIBI_ACCEPT_ENCODING_BYTES_MAX)
        value.n = 0;
    struct weights weights = {.others = WEIGHT_UNSET};
    for (int i = 0; i < ORIBI_CODING_COUNT; i++)
        weights.of[i] = WEIGHT_UNSET;
    struct oribi_slice element;
    while (list_next(&value, &element))
        read_element(element, &weights);

    enum oribi_coding best = ORIBI_CODING_NONE;
    int best_rank = 0;
    for (size_t i = 0; i < count; i++) {
        assert(offered[i] > ORIBI_CODING_NONE && offered[i] < ORIBI_CODING_COUNT);
        int rank = rank_of(&weights, offered[i]);
        if (rank > best_rank) {
            best_rank = rank;
            best = offered[i];
        }
    }
    return best;
}
