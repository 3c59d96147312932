/* Header values that are not quite right, mended. The value is cut at its end first, then the lines of a folded one are
 * joined:
 *
 *     text  *( SP / TAB )  [ CR ] LF  1*( SP / TAB )  text   becomes   text SP text
 */
#include "oribi/http/response.h"

#include "oribi/http/syntax.h"
#include "oribi/http/scan.h"

uint32_t oribi_mend_trimmed(const char *value, uint32_t len)
{
    while (len > 0 && (is_ows(value[len - 1]) || value[len - 1] == '\r' || value[len - 1] == '\n'))
        len--;
    return len;
}

/* Where text goes on behind the fold that begins at p, or NULL when none begins there. */
static const char *behind_fold(const char *p, const char *end)
{
    if (*p == '\r')
        p++;
    if (p == end || *p != '\n' || ++p == end || !is_ows(*p))
        return NULL;
    while (p < end && is_ows(*p))
        p++;
    return p;
}

/* Writes the joined lines to dst. Returns their length, or -1. */
static int64_t unfold(const char *p, const char *end, char *dst)
{
    char *out = dst;
    while (p < end) {
        if (*p != '\r' && *p != '\n') {
            *out++ = *p++;
            continue;
        }
        p = behind_fold(p, end);
        if (!p)
            return -1;
        while (out > dst && is_ows(out[-1]))
            out--;
        if (out > dst)
            *out++ = ' ';
    }
    return out - dst;
}

int oribi_mend_value(struct oribi_header *header, char *room)
{
    if (!header->value)
        return ORIBI_MENDED_UNDEFINED;
    int mended = 0;
    uint32_t len = oribi_mend_trimmed(header->value, header->value_len);
    if (len < header->value_len)
        mended |= ORIBI_MENDED_TRIMMED;
    header->value_len = len;
    if (oribi_scan_active->text(header->value, len) == len)
        return mended;
    int64_t joined = unfold(header->value, header->value + len, room);
    if (joined < 0 || oribi_scan_active->text(room, (size_t)joined) != (size_t)joined)
        return -1;
    header->value = room;
    header->value_len = (uint32_t)joined;
    return mended | ORIBI_MENDED_FOLDED;
}
