/* The IANA registry of status codes, with whole status lines so that the usual ones are one copy. */
#include "oribi/http/status.h"

#include <stdint.h>

/* X(code, phrase) */
#define STATUSES(X)                                                                                                    \
    X(100, "Continue")                                                                                                 \
    X(101, "Switching Protocols")                                                                                      \
    X(102, "Processing")                                                                                               \
    X(103, "Early Hints")                                                                                              \
    X(200, "OK")                                                                                                       \
    X(201, "Created")                                                                                                  \
    X(202, "Accepted")                                                                                                 \
    X(203, "Non-Authoritative Information")                                                                            \
    X(204, "No Content")                                                                                               \
    X(205, "Reset Content")                                                                                            \
    X(206, "Partial Content")                                                                                          \
    X(207, "Multi-Status")                                                                                             \
    X(208, "Already Reported")                                                                                         \
    X(226, "IM Used")                                                                                                  \
    X(300, "Multiple Choices")                                                                                         \
    X(301, "Moved Permanently")                                                                                        \
    X(302, "Found")                                                                                                    \
    X(303, "See Other")                                                                                                \
    X(304, "Not Modified")                                                                                             \
    X(305, "Use Proxy")                                                                                                \
    X(307, "Temporary Redirect")                                                                                       \
    X(308, "Permanent Redirect")                                                                                       \
    X(400, "Bad Request")                                                                                              \
    X(401, "Unauthorized")                                                                                             \
    X(402, "Payment Required")                                                                                         \
    X(403, "Forbidden")                                                                                                \
    X(404, "Not Found")                                                                                                \
    X(405, "Method Not Allowed")                                                                                       \
    X(406, "Not Acceptable")                                                                                           \
    X(407, "Proxy Authentication Required")                                                                            \
    X(408, "Request Timeout")                                                                                          \
    X(409, "Conflict")                                                                                                 \
    X(410, "Gone")                                                                                                     \
    X(411, "Length Required")                                                                                          \
    X(412, "Precondition Failed")                                                                                      \
    X(413, "Content Too Large")                                                                                        \
    X(414, "URI Too Long")                                                                                             \
    X(415, "Unsupported Media Type")                                                                                   \
    X(416, "Range Not Satisfiable")                                                                                    \
    X(417, "Expectation Failed")                                                                                       \
    X(421, "Misdirected Request")                                                                                      \
    X(422, "Unprocessable Content")                                                                                    \
    X(423, "Locked")                                                                                                   \
    X(424, "Failed Dependency")                                                                                        \
    X(425, "Too Early")                                                                                                \
    X(426, "Upgrade Required")                                                                                         \
    X(428, "Precondition Required")                                                                                    \
    X(429, "Too Many Requests")                                                                                        \
    X(431, "Request Header Fields Too Large")                                                                          \
    X(451, "Unavailable For Legal Reasons")                                                                            \
    X(500, "Internal Server Error")                                                                                    \
    X(501, "Not Implemented")                                                                                          \
    X(502, "Bad Gateway")                                                                                              \
    X(503, "Service Unavailable")                                                                                      \
    X(504, "Gateway Timeout")                                                                                          \
    X(505, "HTTP Version Not Supported")                                                                               \
    X(506, "Variant Also Negotiates")                                                                                  \
    X(507, "Insufficient Storage")                                                                                     \
    X(508, "Loop Detected")                                                                                            \
    X(510, "Not Extended")                                                                                             \
    X(511, "Network Authentication Required")

enum { STATUS_MIN = 100, STATUS_MAX = 599, LINE_START = 13 /* "HTTP/1.1 200 " */ };

static const struct oribi_slice lines[STATUS_MAX - STATUS_MIN + 1] = {
#define STATUS_LINE(code, phrase)                                                                                      \
    [code - STATUS_MIN] = {"HTTP/1.1 " #code " " phrase "\r\n", sizeof("HTTP/1.1 " #code " " phrase "\r\n") - 1},
    STATUSES(STATUS_LINE)
#undef STATUS_LINE
};

struct oribi_slice oribi_status_line(int status)
{
    if (status < STATUS_MIN || status > STATUS_MAX)
        return oribi_slice(NULL, 0);
    return lines[status - STATUS_MIN];
}

struct oribi_slice oribi_status_reason(int status)
{
    struct oribi_slice line = oribi_status_line(status);
    return line.n ? oribi_slice(line.p + LINE_START, line.n - LINE_START - 2) : line;
}

static bool is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int oribi_status_read(struct oribi_slice text)
{
    size_t at = 0;
    int status = 0;
    while (at < text.n && is_white(text.p[at]))
        at++;
    size_t first = at;
    for (; at < text.n && at - first < 3 && (uint8_t)(text.p[at] - '0') <= 9; at++)
        status = status * 10 + (text.p[at] - '0');
    bool ends = at == text.n || is_white(text.p[at]) || (uint8_t)((text.p[at] | 0x20) - 'a') < 26;
    return at - first == 3 && ends ? status : -1;
}

bool oribi_status_has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}
