/* Forms taken apart: no input may crash it, every cut must give the same frame and files, and a body that is taken must
 * come together again byte for byte. The first byte chooses the sizes, the second the cut. */
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/event/body.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE_MAX_HERE = 8 * 1024 };

struct taken {
    struct oribi_parts *parts;
    struct oribi_body frame;
    int error;
};

static void expect(bool right)
{
    if (!right)
        abort();
}

static struct taken take(const struct oribi_parts_room *room, const char *text, size_t size, size_t cut)
{
    struct taken taken = {0};
    const char *reason = NULL;
    oribi_body_init(&taken.frame);
    expect(oribi_parts_create(ORIBI_SLICE("multipart/form-data; boundary=b"), &taken.parts, &reason) == 0);
    for (size_t i = 0; i < size && taken.error == 0; i += cut) {
        size_t n = size - i < cut ? size - i : cut;
        char *copy = malloc(n); /* whoever reads beyond it is caught */
        expect(copy != NULL);
        memcpy(copy, text + i, n);
        taken.error = oribi_parts_append(taken.parts, &taken.frame, room, copy, n);
        free(copy);
    }
    if (taken.error == 0)
        taken.error = oribi_parts_finish(taken.parts, &taken.frame);
    return taken;
}

static void check_whole(const struct taken *taken, const char *text, size_t size)
{
    static char back[SIZE_MAX_HERE + 1];
    struct oribi_body_piece piece;
    size_t n = 0;
    int fd = -1;
    for (uint32_t i = 0; oribi_parts_piece(taken->parts, &taken->frame, i, &piece); i++) {
        expect(piece.len >= 0 && (size_t)piece.len <= size - n);
        if (piece.fd < 0 && piece.bytes.n > 0)
            memcpy(back + n, piece.bytes.p, piece.bytes.n);
        else if (piece.fd >= 0)
            expect(oribi_os_read_at(piece.fd, back + n, (size_t)piece.len, piece.offset) == piece.len);
        n += (size_t)piece.len;
    }
    expect(n == size && memcmp(back, text, n) == 0);
    if (taken->parts->file_count == 0)
        return;
    expect(oribi_parts_join(taken->parts, &taken->frame, &fd) == 0);
    expect(oribi_os_read(fd, back, sizeof(back)) == (ssize_t)size && memcmp(back, text, n) == 0);
    oribi_os_close(fd);
}

static void give_back(struct taken *taken)
{
    oribi_parts_destroy(taken->parts);
    oribi_body_deinit(&taken->frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 || size > SIZE_MAX_HERE)
        return 0;
    const char *text = (const char *)data + 2;
    struct oribi_parts_room room = {.frame_memory_max = data[0] & 1 ? 64 : SIZE_MAX_HERE,
                                    .part_memory_max = (uint32_t)(data[0] >> 2),
                                    .batch_max = data[0] & 2 ? 16 : 0};
    struct taken whole = take(&room, text, size - 2, size - 2);
    struct taken cut = take(&room, text, size - 2, (size_t)data[1] + 1);
    expect(whole.error == cut.error);
    if (whole.error == 0) {
        expect(whole.parts->file_count == cut.parts->file_count && whole.frame.len == cut.frame.len);
        check_whole(&whole, text, size - 2);
        check_whole(&cut, text, size - 2);
    }
    give_back(&whole);
    give_back(&cut);
    return 0;
}
