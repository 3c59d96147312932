// Reads along. The browser itself comes back, and names the last event that it has.
import { note, room, show, tell } from "./messages.js";

function watch() {
  const source = new EventSource(`/rooms/${room}`);
  source.onopen = () => tell(true, "reading");
  source.onmessage = (event) => show(JSON.parse(event.data), false);
  source.addEventListener("oribi.reset", () => note("Messages are missing here."));
  source.onerror = () => {
    tell(false, "connection lost, trying again");
    if (source.readyState !== EventSource.CLOSED) return;
    note("Messages may be missing here."); // the server has refused: the browser gives up
    setTimeout(watch, 2000);
  };
}

watch();
