# WebSockets and event streams need a frontend. In public: bind "tls://0.0.0.0:443", certificate: "…", key: "…"
bind "127.0.0.1:9292", frontend: true
workers 2

# The last 500 messages of each room, for an hour: what a page gets that was away.
history "room:", 500, "1h"

websocket_message_max "16K"
websocket_rate_max 20

static "public", index: "index.html", header: "Content-Security-Policy: default-src 'self'"
