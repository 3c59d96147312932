/* Snapshots for `ctl top` from a server that may be any program, on a screen of a size that the input chooses: nothing
 * but printable ASCII and the screen's own escape sequences reaches a terminal, in lines that are not too long. */
#include "oribi/base/error.h"
#include "command/top.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct oribi_buf *screen, const struct oribi__top_view *view)
{
    size_t column = 0;
    size_t lines = 1;
    for (size_t i = 0; i < screen->len; i++) {
        unsigned char c = (unsigned char)screen->p[i];
        if (c == '\x1b') {
            assert(view->live && screen->p[i + 1] == '[');
            i += 2 + strspn(screen->p + i + 2, "0123456789");
            assert(strchr("mKJH", screen->p[i]));
        } else if (c == '\n') {
            column = 0;
            lines++;
        } else {
            assert(c == '\r' ? view->live && screen->p[i + 1] == '\n' : c >= 0x20 && c <= 0x7e);
            column += c != '\r';
        }
        assert(view->columns == 0 || column <= view->columns);
    }
    assert(!view->live || view->rows < 2 || lines <= view->rows || view->help);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi__top_snapshot snapshots[2] = {0};
    struct oribi_buf screen = {0};
    if (size < 4)
        return 0;
    struct oribi__top_view view = {.columns = data[0], .rows = data[1], .live = data[2] & 1, .color = data[2] & 2};
    view.help = data[2] & 4;
    view.reverse = data[2] & 8;
    view.sort = (enum oribi__top_sort)(data[3] % ORIBI__TOP_SORTS);
    data += 4;
    size -= 4;
    const uint8_t *second = size ? memchr(data, '\0', size) : NULL; /* two answers, one behind the other */
    size_t first = second ? (size_t)(second - data) : size;
    int code = oribi__top_read(&snapshots[0], (const char *)data, first);
    if (second)
        (void)oribi__top_read(&snapshots[1], (const char *)second + 1, size - first - 1);
    assert(code == 0 || code == ORIBI_EBAD);
    oribi__top_render(&screen, &snapshots[0], second ? &snapshots[1] : NULL, &view);
    *oribi_buf_reserve(&screen, 1) = '\0';
    check(&screen, &view);
    oribi_buf_deinit(&screen);
    oribi__top_deinit(&snapshots[0]);
    oribi__top_deinit(&snapshots[1]);
    return 0;
}
