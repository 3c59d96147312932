/* Frames of WebSocket, read. The caller keeps what is no whole head yet, and control frames that have not come whole,
 * so that a connection at rest costs this struct alone. Reading order: oribi_websocket_feed, read_head, take_piece.
 *
 *     HEAD ─data frame─► PAYLOAD ─its last byte─► HEAD
 *       └──control frame──► HEAD, behind a Close CLOSED
 *
 *     a head (RFC 6455 5.2):   fin rsv rsv rsv opcode | mask length | 0, 2 or 8 bytes of length | 0 or 4 of mask
 */
#include "oribi/http/websocket.h"

#include "oribi/base/escape.h"
#include "oribi/http/scan.h"

enum { HEAD, PAYLOAD, CLOSED, FAULTY };

enum { FIN_BIT = 0x80, RESERVED_BITS = 0x70, OPCODE_BITS = 0x0f, MASK_BIT = 0x80, LENGTH_BITS = 0x7f };

/* Values of the seven bits of length that say that two or eight bytes of length follow. */
enum { LENGTH_OF_TWO = 126, LENGTH_OF_EIGHT = 127 };

/* Text is unmasked and checked by so many bytes at a time, which are still in the first cache when they are checked. */
enum { TEXT_BLOCK = 8192 };

struct frame {
    uint64_t payload_len;
    uint8_t head_len;
    uint8_t opcode;
    bool fin;
    uint8_t mask[4];
};

void oribi_websocket_init(struct oribi_websocket *socket, enum oribi_websocket_role role, uint64_t message_bytes_max)
{
    *socket = (struct oribi_websocket){.message_bytes_max = message_bytes_max, .role = (uint8_t)role};
}

bool oribi_websocket_code_is_valid(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

static bool is_control(uint8_t opcode)
{
    return opcode >= ORIBI_WEBSOCKET_CLOSE;
}

static void tell_fault(const struct oribi_websocket *socket, struct oribi_websocket_event *event)
{
    *event = (struct oribi_websocket_event){
        .type = ORIBI_WEBSOCKET_EVENT_FAULT, .code = socket->fault_code, .reason = socket->fault_reason};
}

static void refuse(struct oribi_websocket *socket, uint16_t code, const char *reason,
                   struct oribi_websocket_event *event)
{
    socket->state = FAULTY;
    socket->fault_code = code;
    socket->fault_reason = reason;
    tell_fault(socket, event);
}

/* ---- text ---- */

/* Bytes of the character that begins with `first`, by its high bits alone: 1 also for what begins none. */
static size_t character_size(uint8_t first)
{
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
}

/* Is there a character that begins with these n bytes, fewer than it has? Wherever the second byte is open, the lowest
 * or the highest continuation is allowed behind every first byte (RFC 3629 4). */
static bool begins_character(const uint8_t *p, size_t n)
{
    uint8_t low[4] = {0x80, 0x80, 0x80, 0x80};
    uint8_t high[4] = {0xbf, 0xbf, 0xbf, 0xbf};
    memcpy(low, p, n);
    memcpy(high, p, n);
    return oribi_utf8_len((const char *)low, sizeof(low)) > 0 || oribi_utf8_len((const char *)high, sizeof(high)) > 0;
}

/* How many bytes at the end, three at the most, begin a character that needs more. */
static size_t cut_off(const char *p, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        uint8_t byte = (uint8_t)p[n - back];
        if ((byte & 0xc0) != 0x80)
            return character_size(byte) > back ? back : 0;
    }
    return 0;
}

/* Takes what the character that was cut off still lacks. Returns how many bytes; -1: it is none. */
static ssize_t complete_character(struct oribi_websocket *socket, const char *p, size_t n)
{
    uint8_t whole[4];
    size_t have = socket->character_len;
    memcpy(whole, socket->character, sizeof(socket->character));
    size_t size = character_size(whole[0]);
    size_t take = n < size - have ? n : size - have;
    memcpy(whole + have, p, take);
    socket->character_len = (uint8_t)(have + take);
    if (have + take < size) {
        memcpy(socket->character, whole, sizeof(socket->character));
        return begins_character(whole, have + take) ? (ssize_t)take : -1;
    }
    socket->character_len = 0;
    return oribi_utf8_len((const char *)whole, size) == size ? (ssize_t)take : -1;
}

/* Do the next bytes of a text go on as UTF-8? */
static bool is_text_so_far(struct oribi_websocket *socket, const char *p, size_t n)
{
    if (socket->character_len > 0) {
        ssize_t used = complete_character(socket, p, n);
        if (used < 0)
            return false;
        p += used;
        n -= (size_t)used;
        if (n == 0)
            return true;
    }
    size_t cut = cut_off(p, n);
    if (!oribi_scan_active->utf8(p, n - cut))
        return false;
    memcpy(socket->character, p + n - cut, cut);
    socket->character_len = (uint8_t)cut;
    return cut == 0 || begins_character(socket->character, cut);
}

bool oribi_websocket_is_text(const char *p, size_t n)
{
    return oribi_scan_active->utf8(p, n);
}

/* ---- masks ---- */

/* `mask` as it stands `offset` bytes further on. */
static void turn(uint8_t dst[4], const uint8_t mask[4], uint64_t offset)
{
    uint8_t turned[4];
    for (size_t i = 0; i < sizeof(turned); i++)
        turned[i] = mask[(i + offset) & 3];
    memcpy(dst, turned, sizeof(turned));
}

void oribi_websocket_mask(char *bytes, size_t n, const uint8_t mask[4], uint64_t offset)
{
    uint8_t turned[4];
    turn(turned, mask, offset);
    oribi_scan_active->mask(bytes, n, turned);
}

/* Unmasks the next bytes of the data frame at hand, and checks them where they are text. */
static bool unmask(struct oribi_websocket *socket, char *p, size_t n)
{
    bool text = socket->message == ORIBI_WEBSOCKET_TEXT;
    while (n > 0) {
        size_t block = text && n > TEXT_BLOCK ? TEXT_BLOCK : n;
        if (socket->role == ORIBI_WEBSOCKET_SERVER) {
            oribi_scan_active->mask(p, block, socket->mask);
            turn(socket->mask, socket->mask, block);
        }
        if (text && !is_text_so_far(socket, p, block))
            return false;
        p += block;
        n -= block;
    }
    return true;
}

/* ---- heads ---- */

/* Says why a frame may not begin with this byte; NULL: it may. */
static const char *wrong_first(const struct oribi_websocket *socket, uint8_t byte)
{
    uint8_t opcode = byte & OPCODE_BITS;
    bool begins = opcode == ORIBI_WEBSOCKET_TEXT || opcode == ORIBI_WEBSOCKET_BINARY;
    if (byte & RESERVED_BITS)
        return "reserved bit set";
    if (!begins && opcode != ORIBI_WEBSOCKET_CONTINUATION &&
        (opcode < ORIBI_WEBSOCKET_CLOSE || opcode > ORIBI_WEBSOCKET_PONG))
        return "reserved opcode";
    if (is_control(opcode) && !(byte & FIN_BIT))
        return "fragmented control frame";
    if (begins && socket->message)
        return "new message before the end of the last one";
    if (opcode == ORIBI_WEBSOCKET_CONTINUATION && !socket->message)
        return "continuation of no message";
    return NULL;
}

/* Says why a frame may not go on with this second byte; NULL: it may. */
static const char *wrong_second(const struct oribi_websocket *socket, uint8_t opcode, uint8_t byte)
{
    bool masked = byte & MASK_BIT;
    uint8_t length = byte & LENGTH_BITS;
    if (masked != (socket->role == ORIBI_WEBSOCKET_SERVER))
        return masked ? "masked frame" : "frame without a mask";
    if (is_control(opcode) && length > ORIBI_WEBSOCKET_CONTROL_BYTES_MAX)
        return "control frame over 125 bytes";
    if (opcode == ORIBI_WEBSOCKET_CLOSE && length == 1)
        return "Close frame of one byte";
    return NULL;
}

static const char *wrong_length(uint8_t written_as, uint64_t length)
{
    if (length >> 63)
        return "length over 63 bits";
    if ((written_as == LENGTH_OF_TWO && length < LENGTH_OF_TWO) ||
        (written_as == LENGTH_OF_EIGHT && length <= UINT16_MAX))
        return "length in more bytes than it needs";
    return NULL;
}

/* Reads a head as far as it is there. False: there is more to come, or *wrong says why it is none. */
static bool read_head(const struct oribi_websocket *socket, const char *bytes, size_t n, struct frame *frame,
                      const char **wrong)
{
    const uint8_t *p = (const uint8_t *)bytes;
    *wrong = n > 0 ? wrong_first(socket, p[0]) : NULL;
    if (n < 2 || *wrong)
        return false;
    frame->fin = p[0] & FIN_BIT;
    frame->opcode = p[0] & OPCODE_BITS;
    *wrong = wrong_second(socket, frame->opcode, p[1]);
    if (*wrong)
        return false;
    uint8_t length = p[1] & LENGTH_BITS;
    size_t more = length == LENGTH_OF_TWO ? 2 : length == LENGTH_OF_EIGHT ? 8 : 0;
    size_t mask = p[1] & MASK_BIT ? sizeof(frame->mask) : 0;
    if (n < 2 + more)
        return false;
    frame->payload_len = more ? 0 : length;
    for (size_t i = 0; i < more; i++)
        frame->payload_len = frame->payload_len << 8 | p[2 + i];
    *wrong = wrong_length(length, frame->payload_len);
    if (*wrong || n < 2 + more + mask)
        return false;
    memcpy(frame->mask, p + 2 + more, mask);
    frame->head_len = (uint8_t)(2 + more + mask);
    return true;
}

/* ---- frames ---- */

/* A data frame's head has come. */
static void begin_data(struct oribi_websocket *socket, const struct frame *frame, struct oribi_websocket_event *event)
{
    if (frame->payload_len > socket->message_bytes_max ||
        socket->message_bytes > socket->message_bytes_max - frame->payload_len) {
        refuse(socket, ORIBI_WEBSOCKET_CODE_TOO_BIG, "message over the maximum", event);
        return;
    }
    if (frame->payload_len == 0 && !frame->fin && ++socket->empty_frames > ORIBI_WEBSOCKET_EMPTY_FRAMES_MAX) {
        refuse(socket, ORIBI_WEBSOCKET_CODE_POLICY, "too many empty frames in a message", event);
        return;
    }
    if (frame->opcode != ORIBI_WEBSOCKET_CONTINUATION)
        socket->message = frame->opcode;
    socket->message_bytes += frame->payload_len;
    socket->frame_left = frame->payload_len;
    socket->fin = frame->fin;
    memcpy(socket->mask, frame->mask, sizeof(socket->mask));
    socket->state = PAYLOAD;
}

/* Takes what is there of the data frame at hand. Returns how many bytes. */
static size_t take_piece(struct oribi_websocket *socket, char *p, size_t n, struct oribi_websocket_event *event)
{
    size_t piece = n < socket->frame_left ? n : (size_t)socket->frame_left;
    bool text = socket->message == ORIBI_WEBSOCKET_TEXT;
    socket->frame_left -= piece;
    bool ends = socket->frame_left == 0 && socket->fin;
    if (socket->frame_left == 0)
        socket->state = HEAD;
    if (!unmask(socket, p, piece) || (ends && socket->character_len > 0)) {
        refuse(socket, ORIBI_WEBSOCKET_CODE_NO_TEXT, "text is not UTF-8", event);
        return piece;
    }
    if (piece > 0 || ends)
        *event = (struct oribi_websocket_event){
            .type = ORIBI_WEBSOCKET_EVENT_PIECE, .payload = oribi_slice(p, piece), .binary = !text, .ends = ends};
    if (ends) {
        socket->message = 0;
        socket->message_bytes = 0;
        socket->empty_frames = 0;
    }
    return piece;
}

static void take_close(struct oribi_websocket *socket, const char *p, size_t n, struct oribi_websocket_event *event)
{
    unsigned code = ORIBI_WEBSOCKET_CODE_ABSENT;
    size_t reason = n ? 2 : 0;
    if (n > 0)
        code = (unsigned)(uint8_t)p[0] << 8 | (uint8_t)p[1];
    if (n > 0 && !oribi_websocket_code_is_valid(code)) {
        refuse(socket, ORIBI_WEBSOCKET_CODE_PROTOCOL, "invalid close code", event);
        return;
    }
    if (!oribi_websocket_is_text(p + reason, n - reason)) {
        refuse(socket, ORIBI_WEBSOCKET_CODE_NO_TEXT, "reason of a Close frame is not UTF-8", event);
        return;
    }
    socket->state = CLOSED;
    *event = (struct oribi_websocket_event){
        .type = ORIBI_WEBSOCKET_EVENT_CLOSE, .payload = oribi_slice(p + reason, n - reason), .code = (uint16_t)code};
}

/* Takes the payload of a control frame, all of which is there. */
static void take_control(struct oribi_websocket *socket, const struct frame *frame, char *p,
                         struct oribi_websocket_event *event)
{
    size_t n = (size_t)frame->payload_len;
    if (socket->role == ORIBI_WEBSOCKET_SERVER)
        oribi_scan_active->mask(p, n, frame->mask);
    if (frame->opcode == ORIBI_WEBSOCKET_CLOSE) {
        take_close(socket, p, n, event);
        return;
    }
    bool ping = frame->opcode == ORIBI_WEBSOCKET_PING;
    *event = (struct oribi_websocket_event){.type = ping ? ORIBI_WEBSOCKET_EVENT_PING : ORIBI_WEBSOCKET_EVENT_PONG,
                                            .payload = oribi_slice(p, n)};
}

/* Takes a head, and with it a control frame. Returns how many bytes; 0: there is no head yet, or no whole control
 * frame, or the head is refused. */
static size_t take_head(struct oribi_websocket *socket, char *p, size_t n, struct oribi_websocket_event *event)
{
    struct frame frame = {0};
    const char *wrong;
    if (!read_head(socket, p, n, &frame, &wrong)) {
        if (wrong)
            refuse(socket, ORIBI_WEBSOCKET_CODE_PROTOCOL, wrong, event);
        return 0;
    }
    if (!is_control(frame.opcode)) {
        begin_data(socket, &frame, event);
        return frame.head_len;
    }
    size_t whole = frame.head_len + (size_t)frame.payload_len;
    if (n < whole)
        return 0;
    take_control(socket, &frame, p + frame.head_len, event);
    return whole;
}

size_t oribi_websocket_feed(struct oribi_websocket *socket, char *bytes, size_t n, struct oribi_websocket_event *event)
{
    size_t used = 0;
    *event = (struct oribi_websocket_event){.type = ORIBI_WEBSOCKET_EVENT_AGAIN};
    if (socket->state == FAULTY)
        tell_fault(socket, event);
    while (event->type == ORIBI_WEBSOCKET_EVENT_AGAIN) {
        size_t before = used;
        if (socket->state == CLOSED)
            return n;
        if (socket->state == HEAD)
            used += take_head(socket, bytes + used, n - used, event);
        if (socket->state == PAYLOAD)
            used += take_piece(socket, bytes + used, n - used, event);
        if (used == before) /* there is nothing to go on with */
            break;
    }
    return used;
}
