# A WebSocket by python3-aiohttp (stranger.rb has the commands).
import asyncio
import base64
import os
import ssl

import aiohttp

from stranger import obey, tell


class Stranger:
    session = None
    closes = False

    async def open(self, url, protocols):
        self.session = self.session or aiohttp.ClientSession()
        tls = ssl.create_default_context(cafile=os.environ["CA"])
        try:
            self.socket = await self.session.ws_connect(url, protocols=protocols, ssl=tls, max_msg_size=1 << 22)
        except aiohttp.WSServerHandshakeError as error:
            return tell("refused", error.status)
        self.closes = False
        tell("open", self.socket.protocol)
        code, reason = None, ""
        while True:
            message = await self.socket.receive()
            if message.type == aiohttp.WSMsgType.TEXT:
                tell("text", message.data)
            elif message.type == aiohttp.WSMsgType.BINARY:
                tell("binary", base64.b64encode(message.data).decode())
            elif self.closes:
                return  # close() tells
            else:
                if message.type == aiohttp.WSMsgType.CLOSE:
                    code, reason = message.data, message.extra or ""
                break
        tell("closed", code or self.socket.close_code, reason)

    async def text(self, text):
        await self.socket.send_str(text)

    async def binary(self, text):
        await self.socket.send_bytes(base64.b64decode(text))

    async def close(self, code, reason):
        self.closes = True
        await self.socket.close(code=code, message=reason.encode())
        tell("closed", self.socket.close_code or code, "")  # none where another task was reading


one = Stranger()
asyncio.run(obey({name: getattr(one, name) for name in ("open", "text", "binary", "close")}))
