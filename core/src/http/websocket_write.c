/* Frames of WebSocket, written: heads (RFC 6455 5.2) and the payload of a Close frame (5.5.1). */
#include "oribi/http/websocket.h"

#include "oribi/base/error.h"

#include <assert.h>

enum { FIN_BIT = 0x80, MASK_BIT = 0x80, LENGTH_OF_TWO = 126, LENGTH_OF_EIGHT = 127 };

size_t oribi_websocket_write_head(char dst[ORIBI_WEBSOCKET_HEAD_CAP], enum oribi_websocket_opcode opcode, bool fin,
                                  uint64_t n, const uint8_t mask[4])
{
    assert(n >> 63 == 0);
    assert(opcode < ORIBI_WEBSOCKET_CLOSE || (fin && n <= ORIBI_WEBSOCKET_CONTROL_BYTES_MAX));
    size_t more = n < LENGTH_OF_TWO ? 0 : n <= UINT16_MAX ? 2 : 8;
    size_t len = 2;
    dst[0] = (char)((fin ? FIN_BIT : 0) | opcode);
    dst[1] = (char)((mask ? MASK_BIT : 0) | (more == 0 ? (int)n : more == 2 ? LENGTH_OF_TWO : LENGTH_OF_EIGHT));
    for (size_t i = more; i-- > 0;)
        dst[len++] = (char)(n >> 8 * i);
    if (!mask)
        return len;
    memcpy(dst + len, mask, 4);
    return len + 4;
}

ssize_t oribi_websocket_write_close(char dst[ORIBI_WEBSOCKET_CONTROL_BYTES_MAX], unsigned code,
                                    struct oribi_slice reason)
{
    if (code == ORIBI_WEBSOCKET_CODE_ABSENT && reason.n == 0)
        return 0;
    if (!oribi_websocket_code_is_valid(code))
        return ORIBI_EINVAL;
    if (reason.n > ORIBI_WEBSOCKET_REASON_BYTES_MAX)
        return ORIBI_ELIMIT;
    if (!oribi_websocket_is_text(reason.p, reason.n))
        return ORIBI_EINVAL;
    dst[0] = (char)(code >> 8);
    dst[1] = (char)code;
    if (reason.n > 0)
        memcpy(dst + 2, reason.p, reason.n);
    return (ssize_t)(2 + reason.n);
}
