/* Formats of access log lines, whatever they hold: what is read keeps the rules of its header. */
#include "oribi/base/error.h"
#include "oribi/config/log_format.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct oribi_log_format *format)
{
    size_t at = 0;
    assert(format->piece_count > 0 && format->piece_count <= ORIBI_LOG_PIECES_MAX);
    assert(format->text_len <= ORIBI_LOG_FORMAT_BYTES_MAX);
    for (uint16_t i = 0; i < format->piece_count; i++) {
        const struct oribi_log_piece *piece = &format->pieces[i];
        bool named = piece->item == ORIBI_LOG_FIELD || piece->item == ORIBI_LOG_SENT_FIELD;
        assert(piece->item < ORIBI_LOG_ITEM_COUNT && piece->at == at);
        at += piece->n;
        assert(at <= format->text_len && (piece->n > 0) == (named || piece->item == ORIBI_LOG_LITERAL));
        assert(!named || piece->n <= ORIBI_LOG_NAME_BYTES_MAX);
        assert(i == 0 || piece->item != ORIBI_LOG_LITERAL || piece[-1].item != ORIBI_LOG_LITERAL);
    }
    assert(at == format->text_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_log_format format;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    int code = oribi_log_format_read(text, &format, error);
    assert(code == 0 || (code == ORIBI_EINVAL && error[0]));
    if (code == 0)
        check(&format);
    free(text);
    return 0;
}
