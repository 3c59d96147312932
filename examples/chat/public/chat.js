// A page that loses nothing and shows nothing twice. It keeps the id of the last message that it has, and what it has
// said and not heard yet. When its connection ends it comes back with that id, first gets what it has missed, and then
// says again what is not among it. Each message has a key, so that one that was said twice is shown once.
import { note, room, show, tell } from "./messages.js";

const SHOWN_MAX = 200; // messages that outlast a reload of the page
const WAIT_MS = { first: 200, most: 10_000 };
const NO_MESSAGE = 4000; // close code of the room

const form = document.querySelector("#form");
const nick = document.querySelector("#nick");
const text = document.querySelector("#text");

const place = `chat ${room}`;
const kept = { since: "", shown: [], unheard: [], nick: "", ...JSON.parse(sessionStorage.getItem(place)) };
const keys = new Set();
let socket = null;
let inTime = false; // what was missed has come
let wait = WAIT_MS.first;

function keep() {
  kept.shown = kept.shown.slice(-SHOWN_MAX);
  sessionStorage.setItem(place, JSON.stringify(kept));
}

function put(entry) {
  if (entry.missing) note("Messages are missing here.");
  else if (!keys.has(entry.key)) show(entry, entry.nick === kept.nick);
  keys.add(entry.key);
}

function hear(message) {
  if (!keys.has(message.key)) kept.shown.push(message);
  kept.unheard = kept.unheard.filter((one) => one.key !== message.key);
  put(message);
}

// The server's words around a message of the room (ids): {"id", "data"}, or {"id"} alone behind what was missed;
// with "reset" where not all of that is there any more.
function take({ id, data, reset }) {
  kept.since = id;
  if (data !== undefined) {
    hear(JSON.parse(data));
  } else {
    if (reset) {
      kept.shown.push({ missing: true });
      put({ missing: true });
    }
    begin();
  }
  keep();
}

function begin() {
  inTime = true;
  wait = WAIT_MS.first;
  tell(true, "connected");
  for (const message of kept.unheard) socket.send(JSON.stringify(message));
}

function connect() {
  tell(false, "connecting");
  socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/rooms/${room}?since=${kept.since}`);
  socket.onmessage = (event) => take(JSON.parse(event.data));
  socket.onclose = ({ code, reason }) => {
    inTime = false;
    if (reason) console.error(`the server has closed the WebSocket: ${code} ${reason}`);
    if (code === NO_MESSAGE) kept.unheard = [];
    tell(false, `connection lost (${code}), trying again`);
    setTimeout(connect, wait * (0.5 + Math.random())); // not all pages at once
    wait = Math.min(wait * 2, WAIT_MS.most);
  };
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const message = { key: crypto.getRandomValues(new Uint32Array(4)).join("-"), nick: nick.value.trim(), text: text.value.trim() };
  if (!message.nick || !message.text) return;
  kept.nick = message.nick;
  kept.unheard.push(message);
  keep();
  if (inTime) socket.send(JSON.stringify(message));
  text.value = "";
});

nick.value = kept.nick;
for (const entry of kept.shown) put(entry);
connect();
