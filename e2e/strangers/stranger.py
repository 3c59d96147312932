# Commands and events as lines of JSON (stranger.rb).
import asyncio
import json
import sys


def tell(*event):
    print(json.dumps(event), flush=True)


async def obey(commands):
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    tasks = []
    while line := await reader.readline():
        name, *words = json.loads(line)
        task = commands[name](*words)
        if name == "open":
            tasks.append(loop.create_task(task))
        elif asyncio.iscoroutine(task):
            await task
