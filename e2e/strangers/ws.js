// A WebSocket by ws (stranger.rb has the commands).
const WebSocket = require('ws');
const { tell, obey } = require('./stranger.js');
let socket;
obey({
  open(url, protocols) {
    socket = new WebSocket(url, protocols);
    socket.on('open', () => tell('open', socket.protocol || null));
    socket.on('message', (data, binary) => (binary ? tell('binary', data.toString('base64')) : tell('text', data.toString())));
    socket.on('pong', (data) => tell('pong', data.toString()));
    socket.on('unexpected-response', (request, response) => { tell('refused', response.statusCode); request.destroy(); });
    socket.on('error', () => {}); // its close follows
    socket.on('close', (code, reason) => tell('closed', code, reason.toString()));
  },
  text: (text) => socket.send(text),
  binary: (text) => socket.send(Buffer.from(text, 'base64')),
  fragments: (parts) => parts.forEach((part, i) => socket.send(part, { fin: i === parts.length - 1 })),
  ping: (text) => socket.ping(text),
  close: (code, reason) => socket.close(code, reason),
  cut: () => socket.terminate(),
});
