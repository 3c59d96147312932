// Draws plots: Vega-Lite descriptions as a JSON object {name: description} on standard input, {name: svg} on standard output.
// Colours are words of the page's palette; it becomes CSS variables, so that one drawing serves light and dark.
import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const modules = path.resolve(process.argv[2], "node_modules");
const load = async (name) => {
  const folder = path.join(modules, name);
  const about = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  const entry = about.exports?.default ?? about.exports?.["."]?.import ?? about.exports?.["."]?.default ?? about.exports?.["."] ?? about.module ?? about.main;
  return import(pathToFileURL(path.join(folder, typeof entry === "string" ? entry : entry.default)));
};
const vega = await load("vega");
const lite = await load("vega-lite");

// Colours that appear nowhere else, and the variables that they stand for.
const PALETTE = { "#010101": "ink", "#020202": "soft", "#030303": "grid", "#040404": "oribi", "#050505": "psgi", "#060606": "peer", "#070707": "reference",
  "#080808": "wrong", "#111101": "s1", "#111102": "s2", "#111103": "s3", "#111104": "s4", "#111105": "s5", "#111106": "s6", "#111107": "s7", "#111108": "s8",
  "#0f0f0f": "paper", "#090909": "peer-psgi" };

const config = {
  // The page has every figure in a table; a description of each mark would be most of its bytes.
  aria: false,
  background: null, font: "system-ui, -apple-system, 'Segoe UI', 'Noto Sans', sans-serif", view: { stroke: null },
  axis: { labelColor: "#020202", titleColor: "#020202", gridColor: "#030303", domain: false, ticks: false, labelFontSize: 11, titleFontSize: 11,
    titleFontWeight: "normal", labelPadding: 6 },
  axisY: { labelFontSize: 12, labelColor: "#010101", grid: false },
  title: { color: "#010101", fontSize: 13, fontWeight: 600, anchor: "start", frame: "group", offset: 10 },
  legend: { labelColor: "#010101", titleColor: "#020202", labelFontSize: 11 },
  text: { color: "#010101" },
};

// A long line without the points that lie within two pixels of the one before.
const thin = (line) => {
  const points = line.split("L");
  if (points.length < 60) return line;
  let last = [-9, -9];
  return points.filter((point, i) => {
    const place = point.replace(/[MZ]/g, "").split(",").map(Number);
    const far = Math.hypot(place[0] - last[0], place[1] - last[1]) >= 2;
    if (far) last = place;
    return far || i === points.length - 1;
  }).join("L");
};

const draw = async (description) => {
  const compiled = lite.compile({ ...description, config: { ...config, ...description.config } }).spec;
  // What says nothing, and the font, which is the page's, are left out: a third of the bytes.
  const svg = await new vega.View(vega.parse(compiled), { renderer: "none" }).toSVG();
  // A tenth of a pixel is enough for places; texts keep all their digits.
  const placed = svg.replace(/ (d|transform|[xy][12]?)="[^"]*"/g, (place) => place.replace(/\d+\.\d{2,}/g, (n) => String(Number(Number(n).toFixed(1)))));
  return placed.replace(/ (class|pointer-events|font-family|role|aria-\w+)="[^"]*"| (stroke-miterlimit="10"|opacity="1"|stroke-width="1")/g, "").replace(/ d="([^"]*)"/g, (_, line) => ` d="${thin(line)}"`).replace(/<path d="" display="none"\/?>(<\/path>)?/g, "")
    .replace(/#(?:0[1-9f]){3}|#11110[1-8]/g, (found) => `var(--${PALETTE[found]})`).replace(/(-?\d+\.\d{2})\d+/g, "$1")
    .replace(/ font-size="12px" fill="var\(--ink\)"/g, ' class="n"').replace(/ font-size="11px" fill="var\(--ink\)"/g, ' class="f"')
    .replace(/ font-size="11px" fill="var\(--soft\)"/g, ' class="t"').replace(/<path d="M0,0h0v0h0Z"\/>/g, "");
};

const wanted = JSON.parse(readFileSync(0, "utf8"));
const drawn = {};
for (const [name, description] of Object.entries(wanted)) drawn[name] = await draw(description);
process.stdout.write(JSON.stringify(drawn));
