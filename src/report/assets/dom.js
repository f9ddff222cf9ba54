// Elements and numbers. Text enters the page only as text nodes, so text of a run cannot become markup.
// Characters that affect surrounding text, such as a change of direction, are replaced by a symbol.
const steering = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const visible = child => typeof child === "string" ? child.replace(steering, "\ufffd") : child;
const h = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined) continue;
    if (name === "style") Object.assign(element.style, value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false).map(visible));
  return element;
};
const svg = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

const known = value => value !== null && value !== undefined;
const text = (value, show) => known(value) ? show(value) : "n/a";
const fixed = (value, digits) => value.toLocaleString("en-US", {minimumFractionDigits: digits, maximumFractionDigits: digits});
const whole = value => Math.round(value).toLocaleString("en-US");
const percent = ratio => {
  const size = Math.abs(ratio);
  return (100 * ratio).toFixed(size > 0 && size < 1e-3 ? Math.min(8, 1 - Math.floor(Math.log10(100 * size))) : 1) + " %";
};
// Parts of a whole; as printed they have the same sum, 100.0 % for all of them. The parts at `exact` are printed as percent() does, unless no other part can take what is missing.
const percents = (parts, exact = []) => {
  const tenths = parts.map(part => Math.round(1000 * part));
  const changed = new Set();
  let missing = Math.round(1000 * parts.reduce((sum, part) => sum + part, 0)) - tenths.reduce((sum, value) => sum + value, 0);
  // Each tenth goes to the part that it brings closest to its value.
  while (missing && parts.length) {
    const step = Math.sign(missing);
    const error = i => [tenths[i] + step < 0, exact.includes(i), Math.abs(tenths[i] + step - 1000 * parts[i])];
    const less = (a, b) => { for (let k = 0; k < 3; ++k) if (a[k] !== b[k]) return a[k] < b[k]; return false; };
    const best = parts.map((_, i) => i).reduce((one, i) => less(error(i), error(one)) ? i : one);
    tenths[best] += step;
    changed.add(best);
    missing -= step;
  }
  return tenths.map((value, i) => exact.includes(i) && !changed.has(i) ? percent(parts[i]) : fixed(value / 10, 1) + " %");
};
const points = ratio => fixed(100 * ratio, 1);
const prefixes = [[1e18, "E"], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const si = value => {
  const [size, letter] = prefixes.find(([limit]) => Math.abs(value) >= limit) || [1, ""];
  const scaled = value / size;
  const digits = letter === "" && Number.isInteger(value) ? 0 : Math.abs(scaled) < 10 ? 2 : Math.abs(scaled) < 100 ? 1 : 0;
  return fixed(scaled, digits) + (letter ? " " + letter : "");
};
const unit = (value, name) => { const shown = si(value); return /[A-Z]$|k$/i.test(shown) ? shown + name : shown + " " + name; };
const bytes = value => {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let power = 0;
  while (value >= 1024 && power < 4) { value /= 1024; ++power; }
  return fixed(value, power && value < 100 ? 1 : 0) + " " + names[power];
};
const duration = seconds => {
  if (seconds === 0) return "0 s";
  if (seconds < 1e-3) return fixed(seconds * 1e6, 1) + " µs";
  if (seconds < 1) return fixed(seconds * 1e3, 1) + " ms";
  if (seconds < 60) return fixed(seconds, 2) + " s";
  if (seconds < 3600) return Math.floor(seconds / 60) + " min " + Math.floor(seconds % 60) + " s";
  if (seconds >= 100 * 3600) return fixed(seconds / 86400, 1) + " days";
  return Math.floor(seconds / 3600) + " h " + String(Math.floor(seconds / 60) % 60).padStart(2, "0") + " min";
};
const date = unix => new Date(unix * 1000).toLocaleString("en-GB", {dateStyle: "medium", timeStyle: "medium"});
const day = unix => new Date(unix * 1000).toLocaleDateString("en-GB", {dateStyle: "medium"});
// Peaks of a device, largest first; dtypes with the same one together.
const peakGroups = device => {
  const groups = new Map();
  for (const [dtype, rate] of Object.entries(device.peak_flops_per_second || {})) groups.set(rate, [...(groups.get(rate) || []), dtype]);
  return [...groups].sort((a, b) => b[0] - a[0]).map(([rate, dtypes]) => ({rate, dtypes: dtypes.join(", ")}));
};
const words = name => name.replaceAll("_", " ");
const color = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

const section = (title, note, ...content) =>
  h("section", {}, h("h2", {}, title), note ? h("p", {class: "note"}, note) : null, ...content);
const half = element => { element.classList.add("half"); return element; };
// A long name may be broken where its words end.
const breakable = name => name.split(/(?<=[_.:,])(?=\w)/).flatMap((part, i) => i ? [h("wbr"), part] : [part]);
const shortOp = name => name === "others" ? "all others" : name.replace(/^aten::/, "");
const missing = why => h("p", {class: "missing"}, why);
// On a narrow page the cells of a row that `stacks` stand below its first ones.
const table = (columns, rows, stacks) => h("div", {class: "scroll"}, h("table", {class: stacks ? "stacks" : null},
  h("thead", {}, h("tr", {}, columns.map(([name, side]) => h("th", {class: side, scope: "col"}, name)))),
  h("tbody", {}, rows.map(({cells, mark}) =>
    h("tr", {class: mark}, cells.map((cell, i) => h("td", {class: columns[i][1], "data-name": columns[i][0]}, cell)))))));
// Replaces parts of the page without taking the focus from the element that has it.
const keepFocus = change => {
  const {id} = document.activeElement || {};
  change();
  if (id && document.activeElement.id !== id) (document.getElementById(id) || document.body).focus({preventScroll: true});
};
