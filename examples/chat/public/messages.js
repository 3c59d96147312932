// What both pages show.
const list = document.querySelector("#messages");
const state = document.querySelector("#state");

export const room = new URLSearchParams(location.search).get("room") ?? "lobby";

export function tell(open, words) {
  state.dataset.state = open ? "on" : "off";
  state.textContent = words;
}

function element(name, content) {
  const made = document.createElement(name);
  made.textContent = content; // never as HTML
  return made;
}

function add(item) {
  list.append(item);
  item.scrollIntoView({ block: "end" });
}

export function show(message, own) {
  const item = document.createElement("li");
  item.classList.toggle("own", own);
  const time = new Date(message.at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  item.append(element("time", time), element("b", message.nick), element("p", message.text));
  add(item);
}

export function note(words) {
  const item = element("li", words);
  item.className = "note";
  add(item);
}
