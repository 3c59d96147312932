# A WebSocket by python3-websockets (stranger.rb has the commands).
import asyncio
import base64
import os
import ssl

import websockets

from stranger import obey, tell


class Stranger:
    async def open(self, url, protocols):
        tls = ssl.create_default_context(cafile=os.environ["CA"]) if url.startswith("wss") else None
        try:
            self.socket = await websockets.connect(url, subprotocols=protocols or None, ssl=tls, max_size=1 << 22)
        except websockets.InvalidStatusCode as error:
            return tell("refused", error.status_code)
        tell("open", self.socket.subprotocol)
        try:
            async for data in self.socket:
                tell("text", data) if isinstance(data, str) else tell("binary", base64.b64encode(data).decode())
        except websockets.ConnectionClosed:
            pass
        tell("closed", self.socket.close_code, self.socket.close_reason)

    async def text(self, text):
        await self.socket.send(text)

    async def binary(self, text):
        await self.socket.send(base64.b64decode(text))

    async def fragments(self, parts):
        await self.socket.send(parts)

    async def ping(self, text):
        await (await self.socket.ping(text))
        tell("pong", text)

    async def close(self, code, reason):
        await self.socket.close(code, reason)

    def cut(self):
        self.socket.transport.abort()


one = Stranger()
asyncio.run(obey({name: getattr(one, name) for name in ("open", "text", "binary", "fragments", "ping", "close", "cut")}))
