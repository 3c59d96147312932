// node's ws for bench/workloads/sockets.rb: echo, and a channel that POST publishes to.
"use strict";
const http = require("http");
const { WebSocketServer, WebSocket } = require("ws");

const [host, port] = process.argv[2].split(":");
const subscribed = new Set();

const server = http.createServer((request, response) => {
  if (request.method !== "POST") {
    response.writeHead(200, { "content-type": "text/plain" });
    response.end("Hello, World!");
    return;
  }
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const text = Buffer.concat(parts);
    for (const socket of subscribed)
      if (socket.readyState === WebSocket.OPEN) socket.send(text, { binary: false });
    response.writeHead(204);
    response.end();
  });
});

new WebSocketServer({ server, perMessageDeflate: false }).on("connection", (socket, request) => {
  socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  if (request.url === "/echo") return;
  subscribed.add(socket);
  socket.on("close", () => subscribed.delete(socket));
});
server.listen(Number(port), host, 4096);
