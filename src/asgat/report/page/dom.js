"use strict";
// Elements, numbers and the tooltip. Texts reach the page as text nodes and attributes only, never as markup.
const DATA = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
const short = (text, length = 16) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);
const capital = (text) => text[0].toUpperCase() + text.slice(1);
const plural = (number, one, many) => `${number.toLocaleString("en")} ${number === 1 ? one : many || `${one}s`}`;
function neat(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e5)) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}
function ticks(low, high, wanted) {
  const raw = (high - low) / Math.max(wanted, 1) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6; i++) found.push(Number((i * step).toPrecision(10)));
  return found;
}

// Attention heads of all layers are counted through, so that no two of the first 36 share a colour and a dash.
const HEADS = [];
const look = (number) => ({ colour: `var(--h${number % 9})`, dash: ["none", "7 3", "2 3", "9 3 2 3"][Math.floor(number / 9) % 4] });
for (const [layer, heads] of (DATA.filters ? DATA.filters.layers : []).entries()) {
  for (const [head, curve] of heads.entries()) HEADS.push({ layer, head, number: HEADS.length, character: curve.character, ...look(HEADS.length) });
}
const LAYER = DATA.layer_name;
const headName = (layer, head) => `${LAYER} ${layer + 1}, head ${head + 1}`;
// In a directed graph a node attends from two sides, as the source of its edges (out) and as the target of edges (in).
const SIDES = DATA.sides || [""];
const headOf = (layer, head) => HEADS.find((h) => h.layer === layer && h.head === head);
const classColour = (c) => (c < 0 ? "var(--muted)" : `var(--c${c % 7})`);
const className = (c) => (c < 0 ? "no label" : DATA.classes[c]);

function swatch(colour, dash) {
  return svg("svg", { class: "swatch", viewBox: "0 0 22 10", "aria-hidden": "true" },
    svg("line", { x1: 0, x2: 22, y1: 5, y2: 5, style: `stroke:${colour};stroke-width:3;stroke-dasharray:${dash || "none"}` }));
}

const Tip = {
  show(x, y, heading, rows) {
    const box = $("tip");
    box.replaceChildren(el("strong", {}, heading), ...rows.map((row) => el("div", { class: "row" },
      row.colour ? el("i", { style: `background:${row.colour}` }) : null, el("span", {}, row.name), el("b", {}, row.value || ""))));
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    box.style.left = `${Math.max(6, x + 16 + width > innerWidth ? x - width - 14 : x + 16)}px`;
    box.style.top = `${Math.max(6, Math.min(y + 14, innerHeight - height - 6))}px`;
  },
  hide() { $("tip").hidden = true; },
};
addEventListener("scroll", Tip.hide, { passive: true });

// Calls draw(width) now and whenever the element's width changes.
function responsive(host, draw) {
  let last = 0;
  const again = () => {
    const width = Math.floor(host.clientWidth - parseFloat(getComputedStyle(host).paddingLeft) * 2);
    if (width > 0 && width !== last) draw((last = width));
  };
  new ResizeObserver(again).observe(host);
  again();
}

// Leaves a section out, and the link to it.
function leaveOut(id) {
  $(id).hidden = true;
  document.querySelector(`nav a[href="#${id}"]`).remove();
}

const dataTable = (label, head, rows, marked) => el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
  el("table", {}, el("thead", {}, el("tr", {}, head.map((text) => el("th", { scope: "col" }, text)))),
    el("tbody", {}, rows.map((row, i) => el("tr", { class: i === marked ? "chosen" : null }, row.map((cell) => el("td", {}, String(cell))))))));

// The same numbers for those who cannot or would not read them off a chart.
function numbers(head, rows) {
  return el("details", { class: "numbers" }, el("summary", {}, "Show the numbers"), dataTable("The chart's numbers", head, rows));
}
