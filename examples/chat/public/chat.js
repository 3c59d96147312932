"use strict";

// One page, two ways to the same room: a WebSocket, or server-sent events with POST for what is said. When the connection ends, because
// the server was reloaded or the network went away, the page comes back by itself and asks for what it has missed.
const list = document.querySelector("#messages");
const form = document.querySelector("#form");
const nick = document.querySelector("#nick");
const text = document.querySelector("#text");
const state = document.querySelector("#state");
let last = ""; // id of the last message shown
let connection = null;

function say(open, words) {
  state.dataset.state = open ? "on" : "off";
  state.textContent = words;
  document.querySelector("#send").disabled = !open;
}

function element(name, content) {
  const made = document.createElement(name);
  made.textContent = content; // never as HTML
  return made;
}

function show(message) {
  last = message.id;
  const item = document.createElement("li");
  item.classList.toggle("own", message.nick === nick.value);
  const time = element("time", new Date(message.at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }));
  item.append(time, element("b", message.nick), element("p", message.text));
  list.append(item);
  item.scrollIntoView({ block: "end" });
}

// Each way gives an object with say(message) and close().
function overWebSocket(ended) {
  const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/chat?after=${last}`);
  socket.onopen = () => say(true, "connected by WebSocket");
  socket.onmessage = (event) => show(JSON.parse(event.data));
  socket.onclose = ended;
  return {
    say: (message) => socket.send(JSON.stringify(message)),
    close: () => { socket.onclose = null; socket.close(); },
  };
}

function overEvents(ended) {
  const source = new EventSource(`/events?after=${last}`);
  source.onopen = () => say(true, "connected by server-sent events");
  source.onmessage = (event) => show(JSON.parse(event.data));
  source.onerror = () => { source.close(); ended(); };
  return {
    say: (message) => fetch("/messages", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(message) }),
    close: () => source.close(),
  };
}

function connect() {
  say(false, "connecting");
  const way = form.ownerDocument.querySelector("[name=way]:checked").value;
  connection = (way === "events" ? overEvents : overWebSocket)(() => {
    say(false, "connection lost, trying again");
    setTimeout(connect, 500);
  });
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  connection.say({ nick: nick.value, text: text.value });
  text.value = "";
});

for (const choice of document.querySelectorAll("[name=way]")) {
  choice.addEventListener("change", () => { connection.close(); connect(); });
}

connect();
