// A WebSocket as pages have it, by undici (stranger.rb has the commands).
const { WebSocket } = require('undici');
const { tell, obey } = require('./stranger.js');
let socket;
obey({
  open(url, protocols) {
    socket = new WebSocket(url, protocols);
    socket.binaryType = 'arraybuffer';
    let opened = false;
    socket.onopen = () => { opened = true; tell('open', socket.protocol || null); };
    socket.onmessage = ({ data }) => (typeof data === 'string' ? tell('text', data) : tell('binary', Buffer.from(data).toString('base64')));
    socket.onerror = () => opened || tell('refused', null);
    socket.onclose = ({ code, reason }) => opened && tell('closed', code, reason);
  },
  text: (text) => socket.send(text),
  binary: (text) => socket.send(Buffer.from(text, 'base64')),
  close: (code, reason) => socket.close(code, reason),
});
