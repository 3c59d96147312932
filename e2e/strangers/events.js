// Server-sent events by the package that is named: eventsource, undici (stranger.rb has the commands).
const { EventSource } = require(process.argv[2]);
const { tell, obey } = require('./stranger.js');
let source;
obey({
  open(url) {
    source = new EventSource(url);
    const event = ({ type, data, lastEventId }) => tell('event', type, data, lastEventId);
    source.onopen = () => tell('open');
    source.onmessage = event;
    source.addEventListener('note', event);
    source.addEventListener('oribi.reset', event);
    source.onerror = () => tell('error', source.readyState);
  },
  close: () => source.close(),
});
