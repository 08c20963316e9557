"use strict";
// The page of the viewer. Texts of files go into the page as text alone, never as markup; what is
// asked for are numbers that the server gave.

const ROW = 28; // pixels of a row of the tree
const TYPES = { i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array, i4: Int32Array,
  u4: Uint32Array, f4: Float32Array, f8: Float64Array, i8: BigInt64Array, u8: BigUint64Array };
const byId = (id) => document.getElementById(id);
let palettes = {}, signs = [], page = 200;

// Elements of the page -----------------------------------------------------------------------------

function make(tag, facts = {}, ...inside) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(facts)) {
    if (name.startsWith("on")) one.addEventListener(name.slice(2), value);
    else if (name in one && name !== "list") one[name] = value;
    else one.setAttribute(name, value);
  }
  one.append(...inside);
  return one;
}
const drawn = (tag, facts, text) => {
  const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(facts)) one.setAttribute(name, value);
  if (text !== undefined) one.textContent = text;
  return one;
};

async function ask(what, words = {}) {
  const answer = await fetch(`${what}?${new URLSearchParams(words)}`, { credentials: "omit" });
  if (!answer.ok) throw new Error(await reason(answer));
  return answer;
}
async function reason(answer) {
  const text = await answer.text();
  try { return JSON.parse(text).error; } catch { return text; }
}
const asked = async (what, words) => (await ask(what, words)).json();

function trouble(error) {
  byId("trouble").textContent = error.message === "Failed to fetch"
    ? "The server has ended: raconvert view shows the files again." : error.message;
}

// Numbers as people read them
function numberText(value, type) {
  if (value === null || value === undefined) return "none";
  if (typeof value === "bigint") return value.toString();
  if (Number.isNaN(value)) return "NaN or missing";
  if (!Number.isFinite(value)) return value > 0 ? "+inf" : "−inf";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value).replace("-", "−");
  return String(Number(value.toPrecision(type === "f4" ? 7 : 10))).replace("-", "−");
}
function short(value) { // six digits, and all before the point
  if (value === null || !Number.isFinite(value) || Number.isInteger(value)) return numberText(value);
  const digits = Math.max(6, Math.min(15, Math.ceil(Math.log10(Math.abs(value)))));
  return numberText(Number(value.toPrecision(digits)));
}

// The tree: all rows are counted, those in sight are in the page -----------------------------------

const tree = { root: null, shown: [], active: 0, selected: -1, hits: null, search: 0 };

function flatten() {
  const rows = [];
  const add = (node, level) => {
    for (let at = 0; at < node.total; at += 1) {
      const kid = node.kids[at];
      rows.push(kid ? { node: kid, level, at, above: node } : { level, at, above: node });
      if (kid && kid.open) add(kid, level + 1);
    }
  };
  if (tree.hits) add(tree.hits, 1);
  else {
    rows.push({ node: tree.root, level: 1, at: 0, above: { total: 1 } });
    if (tree.root.open) add(tree.root, 2);
  }
  tree.shown = rows;
  tree.active = Math.min(tree.active, Math.max(0, rows.length - 1));
}

async function load(node, at, anew = false) {
  const start = Math.floor(at / page) * page;
  if (node.waiting.has(start)) return node.waiting.get(start);
  const words = { id: node.id, start };
  if (node.find) words.find = node.find;
  if (anew) words.anew = 1;
  const waits = asked("list", words).then((answer) => {
    node.total = answer.total;
    node.text = answer.text;
    answer.rows.forEach((row, number) => {
      node.kids[start + number] = Object.assign(node.kids[start + number] || newNode(), row);
      node.kids[start + number].above = node;
    });
  }).catch((error) => { node.open = false; throw error; });
  node.waiting.set(start, waits);
  try { await waits; } finally { if (!node.kids[start]) node.waiting.delete(start); }
}
const newNode = () => ({ open: false, total: 0, kids: [], waiting: new Map() });

const MARKS = { array: "▪", file: "·" };

function paint() {
  const box = byId("tree");
  const all = make("div", { className: "all", role: "none" });
  all.style.height = `${tree.shown.length * ROW}px`;
  const first = Math.max(0, Math.floor(box.scrollTop / ROW) - 6);
  const last = Math.min(tree.shown.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + 6);
  for (let number = first; number < last; number += 1) {
    const { node, level, at, above } = tree.shown[number];
    const item = make("div", { role: "treeitem", id: `row${number}`, "aria-level": level,
      "aria-setsize": above.total, "aria-posinset": at + 1,
      "aria-selected": String(Boolean(node) && node.id === tree.selected) });
    item.style.top = `${number * ROW}px`;
    item.style.paddingLeft = `${0.6 + 0.9 * (level - 1)}rem`;
    if (number === tree.active) item.classList.add("active");
    if (!node) {
      item.append(make("span", { className: "mark" }), make("span", { className: "label soft" }, "…"));
      load(above, at).then(refresh, trouble);
    } else {
      const opens = node.more && !tree.hits;
      if (opens) item.setAttribute("aria-expanded", String(node.open));
      if (node.odd) item.classList.add("odd");
      const mark = opens ? (node.open ? "▾" : "▸") : MARKS[node.kind] || "";
      item.append(make("span", { className: "mark", "aria-hidden": "true" }, mark),
        make("bdi", { className: "label" }, node.name),
        make("span", { className: "text" }, node.text || ""));
      item.addEventListener("click", () => { tree.active = number; chosen(node); });
    }
    all.append(item);
  }
  box.replaceChildren(all);
  if (tree.shown.length) box.setAttribute("aria-activedescendant", `row${tree.active}`);
}
function refresh() { flatten(); paint(); }

async function toggle(node, open = !node.open) {
  if (open && !node.kids.length) {
    try { await load(node, 0); } catch (error) { trouble(error); return; }
  }
  node.open = open && node.total > 0;
  refresh();
}

async function chosen(node) {
  byId("trouble").textContent = "";
  if (node.kind === "folder" || node.kind === "group") { await toggle(node); return; }
  if (node.kind === "file" && tree.selected === node.id && node.more) { await toggle(node); return; }
  tree.selected = node.id;
  refresh();
  await show(node.id, node);
}

byId("tree").addEventListener("scroll", () => requestAnimationFrame(paint));
window.addEventListener("resize", paint);
byId("tree").addEventListener("keydown", (event) => {
  const here = tree.shown[tree.active];
  const node = here && here.node;
  const inSight = Math.max(1, Math.floor(byId("tree").clientHeight / ROW) - 1);
  const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: inSight, PageUp: -inSight,
    Home: -Infinity, End: Infinity };
  if (event.key in moves) {
    goTo(Math.min(tree.shown.length - 1, Math.max(0, tree.active + moves[event.key])));
  } else if (event.key === "ArrowRight" && node && node.more) {
    if (!node.open) toggle(node, true); else goTo(tree.active + 1);
  } else if (event.key === "ArrowLeft" && node) {
    if (node.open) toggle(node, false);
    else {
      const above = tree.shown.findIndex((row) => row.node === here.above);
      if (above >= 0) goTo(above);
    }
  } else if ((event.key === "Enter" || event.key === " ") && node) chosen(node);
  else return;
  event.preventDefault();
});
function goTo(number) {
  const box = byId("tree"), top = number * ROW;
  tree.active = number;
  if (top < box.scrollTop) box.scrollTop = top;
  if (top + ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW - box.clientHeight;
  paint();
}

let pause = 0;
byId("find").addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(find, 200); });
async function find() {
  const words = byId("find").value.trim(), number = tree.search += 1;
  if (!words) { tree.hits = null; byId("found").textContent = ""; refresh(); return; }
  const hits = Object.assign(newNode(), { id: Math.max(0, tree.selected), find: words, open: true });
  try {
    await load(hits, 0);
    if (number !== tree.search) return;
    tree.hits = hits;
    tree.active = 0;
    byId("tree").scrollTop = 0;
    byId("found").textContent = `${hits.total.toLocaleString("en")} found ${hits.text}`;
    refresh();
  } catch (error) { trouble(error); }
}

// One array ----------------------------------------------------------------------------------------

let now = null; // what is looked at: the facts, and how
let shows = 0;

async function show(id, node) {
  let facts;
  const number = shows += 1;
  try {
    facts = await asked("about", { id });
    if (number !== shows) return;
  } catch (error) {
    if (number !== shows) return;
    for (const name of ["views", "look", "more"]) byId(name).hidden = true;
    byId("name").textContent = node ? node.name : "raconvert";
    byId("lead").textContent = "";
    byId("notes").replaceChildren();
    trouble(error);
    return;
  }
  const { file, array } = facts;
  if (node && node.kind === "file") {
    node.more = file.arrays !== 1;
    if (node.more && !tree.hits && !node.open) await toggle(node, true); else refresh();
  }
  document.title = `${array && array.name ? `${array.name} in ` : ""}${file.name}`;
  byId("name").replaceChildren(make("bdi", {}, array && array.name ? array.name : file.name));
  byId("lineage").textContent = array ? array.lineage.slice(0, -1).map((one) => one.name).join(" › ") : "";
  const count = file.arrays === 1 ? "" : ` · ${file.arrays.toLocaleString("en")} arrays`;
  byId("lead").textContent = `${array ? `${array.text} · ` : ""}${file.title} (${file.reason})${count}`;
  byId("notes").replaceChildren(...facts.notes.map((note) => make("p", {}, `Note: ${note}`)));
  byId("more").hidden = !array;
  byId("views").hidden = byId("look").hidden = true;
  byId("becomes").open = false;
  byId("becomes").lastElementChild.replaceChildren();
  if (!array) { byId("lead").textContent += " · no array"; return; }
  byId("facts").replaceChildren(...array.facts.flatMap(([name, text]) =>
    [make("dt", {}, name), make("dd", {}, make("bdi", {}, text))]));
  const fields = [...array.fields, ...facts.attributes];
  byId("metadata").hidden = !fields.length;
  byId("metadata").firstElementChild.textContent = `Metadata, ${fields.length} fields`;
  byId("metadata").lastElementChild.replaceChildren(tableOf(["field", "value"], fields, "fields"));
  now = { ...array, folder: facts.folder, arrays: file.arrays, whole: file.id, node };
  if (array.problem) { trouble(new Error(`The elements cannot be read: ${array.problem}`)); return; }
  begin();
}

function tableOf(head, rows, kind) {
  return make("table", { className: kind },
    make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) =>
      make("td", {}, cell instanceof Node ? cell : make("bdi", {}, cell)))))));
}

const NAMES = { picture: "Picture", line: "Line", table: "Table", value: "Value" };

function begin() {
  const long = now.form === "empty" ? [] : now.axes.map((axis, at) => at).filter((at) => now.axes[at].length > 1);
  now.long = long;
  const views = { picture: ["picture", "line", "table"], line: ["line", "table"], table: ["table"],
    value: ["value"], empty: [] }[now.form];
  now.view = now.form;
  now.part = now.parts[0] || "";
  now.contrast = null;
  whole();
  byId("views").hidden = views.length < 2;
  byId("views").replaceChildren(...views.map((view) => make("button", { type: "button",
    "aria-pressed": String(view === now.view), onclick: () => {
      now.view = view;
      for (const one of byId("views").children) {
        one.setAttribute("aria-pressed", String(one.textContent === NAMES[view]));
      }
      build();
    } }, NAMES[view])));
  byId("look").hidden = false;
  build();
}
function whole() {
  const shape = now.shape;
  now.window = now.down < 0 ? null : [0, shape[now.down], 0, shape[now.right]];
  now.first = now.rowsFrom = now.start = 0;
  now.stop = now.down < 0 ? 0 : shape[now.down];
}

function build() {
  const look = byId("look");
  if (now.form === "empty") { look.replaceChildren(make("p", {}, "no elements")); return; }
  ({ picture, line, table, value })[now.view](look);
}

// Sliders and axes, which pictures, lines and tables share
function fixedAxes() {
  const shown = now.view === "line" ? [now.down] : [now.down, now.right];
  if (now.view === "table" && !now.across) shown.length = 1;
  return now.long.filter((at) => !shown.includes(at) && !(now.view === "picture" && usesColor() && at === now.color)
    && !(now.view === "picture" && usesChannels() && at === now.channels));
}
// All channels of a micrograph in one picture, the first of the two ways to show them
const usesChannels = () => now.channels >= 0 && now.part === now.parts[0]
  && now.channels !== now.down && now.channels !== now.right;
const usesColor = () => now.color >= 0 && now.color !== now.down && now.color !== now.right;

function sliders(changed) {
  now.places = {};
  return fixedAxes().map((at) => {
    const axis = now.axes[at], id = `axis${at}`, most = axis.length - 1;
    const place = make("span", { className: "soft" });
    now.places[at] = place;
    const range = make("input", { type: "range", id, min: 0, max: most, value: now.index[at] });
    const number = make("input", { type: "number", min: 0, max: most, value: now.index[at],
      "aria-label": `index of ${axis.name}` });
    range.value = now.index[at];
    const set = (to) => {
      now.index[at] = Math.min(most, Math.max(0, Math.round(to) || 0));
      range.value = number.value = now.index[at];
      now.slider = at;
      changed();
    };
    range.addEventListener("input", () => set(Number(range.value)));
    number.addEventListener("change", () => set(Number(number.value)));
    now.setters = { ...now.setters, [at]: set };
    return make("div", { className: "axis" },
      make("label", { htmlFor: id }, make("bdi", {}, axis.name), " ", place), range, number);
  });
}
function told(where) {
  for (const [at, text] of Object.entries(where)) {
    if (now.places && now.places[at]) now.places[at].textContent = text ? `= ${text}` : "";
  }
}

function axisSelect(label, which, changed, options = now.long) {
  const select = make("select", { onchange: () => {
    const to = Number(select.value), other = which === "down" ? "right" : "down";
    if (now[other] === to) now[other] = now[which];
    now[which] = to;
    whole();
    changed();
  } }, ...options.map((at) => make("option", { value: at, selected: at === now[which] },
    `${now.axes[at].name} (${now.axes[at].length.toLocaleString("en")})`)));
  return make("label", {}, label, " ", select);
}
const section = (name, ...inside) => make("div", {}, make("h2", {}, name), ...inside);

// Requests that follow each other quickly: the last one counts, one at a time
function oneByOne(work) {
  let busy = false, again = false;
  const run = async () => {
    if (busy) { again = true; return; }
    busy = true;
    do {
      again = false;
      const mine = now;
      try { await work(() => mine === now); if (mine === now) byId("trouble").textContent = ""; }
      catch (error) { if (mine === now) trouble(error); }
    } while (again);
    busy = false;
  };
  return run;
}

// Pictures -----------------------------------------------------------------------------------------

let screen = null; // the elements of the picture

function picture(look) {
  const canvas = make("canvas", { tabIndex: 0, role: "img", width: 1, height: 1 });
  const edges = ["left", "right", "top", "bottom"].map((edge) => make("b", { className: edge, "aria-hidden": "true" }));
  const ruler = make("span", { className: "ruler" });
  const reading = make("output", { className: "reading" });
  const legend = make("div", { className: "legend" });
  const low = make("input", { type: "text" });
  const high = make("input", { type: "text" });
  const histogram = make("canvas", { className: "histogram", width: 272, height: 72, role: "img" });
  const spread = make("p", { className: "soft" });
  const colors = make("select", { onchange: () => { now.colors = colors.value; paintPicture(); } });
  spread.style.margin = "0";
  screen = { canvas, edges, ruler, reading, legend, low, high, histogram, spread, colors, data: null };
  for (const input of [low, high]) {
    input.addEventListener("change", () => {
      const ends = [low, high].map((one) => Number(one.value.replace("−", "-")));
      if (ends.every(Number.isFinite)) { now.contrast = ends; paintPicture(); }
    });
  }
  const controls = make("div", { className: "controls" });
  const slides = sliders(loadPicture);
  if (slides.length) controls.append(...slides);
  const axes = now.long.filter((at) => at !== now.color || now.down === at || now.right === at || now.long.length > 3);
  if (axes.length > 1) {
    controls.append(section("Axes", make("div", { className: "axes" },
      axisSelect("down", "down", build, axes), axisSelect("right", "right", build, axes))));
  }
  if (now.parts.length) {
    const part = make("select", { onchange: () => { now.part = part.value; now.contrast = now.colors = null; now.channels < 0 ? loadPicture() : build(); } },
      ...now.parts.map((name) => make("option", { selected: name === now.part }, name)));
    controls.append(make("label", {}, now.channels < 0 ? "Complex numbers as " : "Show ", part));
  }
  screen.window = section("Contrast", histogram, spread, make("div", { className: "ends" },
    make("label", {}, "from", low), make("label", {}, "to", high)),
  make("div", { className: "row" },
    make("button", { type: "button", onclick: () => { now.contrast = screen.facts.auto; paintPicture(); } }, "Auto"),
    make("button", { type: "button", onclick: () => { now.contrast = [...screen.ends]; paintPicture(); } }, "All"),
    make("label", {}, "colours ", colors)));
  screen.window.querySelector(".row").style.marginTop = ".4rem";
  screen.window.append(make("p", { className: "soft hint" },
    "Auto: from 1 % to 99 % of the values in sight. Dragging on the picture changes it."));
  const zooms = [["+", 2, "closer"], ["−", 0.5, "farther"]].map(([text, factor, name]) =>
    make("button", { type: "button", "aria-label": name, title: name, onclick: () => zoom(factor) }, text));
  screen.wholeButton = make("button", { type: "button", onclick: () => { whole(); loadPicture(); } }, "Whole");
  controls.append(screen.window, section("Part", make("div", { className: "row" }, ...zooms, screen.wholeButton)));
  look.replaceChildren(make("div", { className: "split" },
    make("div", { className: "stage" }, make("span", { className: "hung" }, canvas, ...edges), ruler, legend, reading),
    controls));
  canvas.addEventListener("pointermove", pointed);
  canvas.addEventListener("pointerdown", grabbed);
  canvas.addEventListener("pointerleave", () => { if (!screen.grab) resting(); });
  canvas.addEventListener("wheel", wheeled, { passive: false });
  canvas.addEventListener("dblclick", (event) => { const at = placeOf(event); zoom(event.shiftKey ? 0.5 : 2, at); });
  canvas.addEventListener("keydown", keyed);
  loadPicture();
}

const loadPicture = oneByOne(async (current) => {
  const [top, bottom, left, end] = now.window;
  const answer = await ask("plane", { id: now.id, down: now.down, right: now.right,
    index: now.index.join(","), top, bottom, left, end, part: now.part });
  const bytes = await answer.arrayBuffer();
  if (!current() || now.view !== "picture") return;
  const length = new DataView(bytes).getUint32(0, true);
  const facts = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  const Kind = facts.type === "rgb" ? Uint8Array : TYPES[facts.type];
  screen.data = new Kind(bytes, 4 + length);
  screen.facts = facts;
  if (!now.contrast && facts.type !== "rgb") now.contrast = facts.colors === "classes" ? facts.auto : [facts.low, facts.high];
  now.colors = now.colors || facts.colors || null;
  told(facts.where);
  measure();
  paintPicture();
  resting();
});

// The numbers of what is in sight: least, mean, most, a histogram
function measure() {
  const { data, facts } = screen;
  if (facts.type === "rgb") return;
  let least = Infinity, most = -Infinity, sum = 0, count = 0, nan = 0, above = 0, below = 0;
  for (let at = 0; at < data.length; at += 1) {
    const value = Number(data[at]);
    if (value - value === 0) {
      if (value < least) least = value;
      if (value > most) most = value;
      sum += value; count += 1;
    } else if (value > 0) above += 1; else if (value < 0) below += 1; else nan += 1;
  }
  const bins = new Array(64).fill(0);
  const power = facts.power && most > 0;
  const from = power ? Math.log10(facts.low || most * 1e-6) : least, to = power ? Math.log10(most) : most;
  if (to > from) {
    for (let at = 0; at < data.length; at += 1) {
      const value = power ? Math.log10(Number(data[at])) : Number(data[at]);
      if (value - value === 0) bins[Math.max(0, Math.min(63, Math.floor((value / (to - from) - from / (to - from)) * 64)))] += 1;
    }
  }
  Object.assign(screen, { bins, count, nan, above, below, ends: count ? [least, most] : [0, 0],
    mean: count ? sum / count : NaN, span: [from, to], power });
}

function paletteOf(name) {
  const hex = palettes[name], table = new Uint32Array(256);
  for (let at = 0; at < 256; at += 1) {
    const rgb = parseInt(hex.slice(6 * at, 6 * at + 6), 16);
    table[at] = (0xff000000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
  }
  return table;
}

function paintPicture() {
  const { canvas, data, facts, edges, ruler, legend } = screen;
  if (!data) return;
  const [rows, columns] = facts.shape;
  canvas.width = columns; canvas.height = rows;
  const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const color = facts.type === "rgb";
  const classes = !color && now.colors === "classes";
  if (color) {
    for (let at = 0; at < pixels.length; at += 1) {
      pixels[at] = (0xff000000 | (data[3 * at + 2] << 16) | (data[3 * at + 1] << 8) | data[3 * at]) >>> 0;
    }
  } else {
    const table = paletteOf(now.colors), steps = 256 - signs.length - 1;
    let [low, high] = now.contrast;
    const power = facts.power && low > 0;
    if (power) { low = Math.log10(low); high = Math.log10(high); }
    const factor = high > low ? steps / (high - low) : 0;
    for (let at = 0; at < pixels.length; at += 1) {
      let value = Number(data[at]);
      if (value - value !== 0) { pixels[at] = table[value > 0 ? 2 : value < 0 ? 1 : 0]; continue; }
      if (classes) { pixels[at] = table[signs.length + (((Math.trunc(value) % (steps + 1)) + steps + 1) % (steps + 1))]; continue; }
      if (power) value = Math.log10(Math.max(value, now.contrast[0]));
      const share = factor ? (value - low) * factor : steps / 2;
      pixels[at] = table[signs.length + Math.round(share < 0 ? 0 : share > steps ? steps : share)];
    }
  }
  context.putImageData(image, 0, 0);
  canvas.classList.toggle("smooth", color);
  fit();
  const names = [...(facts.edges || "")];
  edges.forEach((edge, at) => { edge.textContent = names[at] || ""; });
  ruler.hidden = !facts.bar;
  if (facts.bar) { ruler.textContent = facts.bar[1]; ruler.style.width = `${facts.bar[0] * canvas.clientWidth}px`; }
  const place = Object.entries(facts.where).filter(([, text]) => text)
    .map(([at, text]) => `${now.axes[at].name} = ${text}`).join(", ");
  canvas.setAttribute("aria-label", `plane ${facts.key}${place && `, ${place}`}${facts.plane && `, ${facts.plane}`}`);
  screen.window.hidden = color;
  if (!color) {
    const options = facts.colors === "classes" || facts.type[0] !== "f" ? ["gray", "depth", "classes"] : ["gray", "depth", "phase"];
    if (!options.includes(now.colors)) options.push(now.colors);
    screen.colors.replaceChildren(...options.map((name) => make("option", { selected: name === now.colors }, name)));
    screen.low.value = short(now.contrast[0]); screen.high.value = short(now.contrast[1]);
    screen.low.disabled = screen.high.disabled = classes;
    paintHistogram();
  }
  legend.replaceChildren(...legendOf(color, classes, place));
  screen.wholeButton.disabled = now.window[0] === 0 && now.window[2] === 0 &&
    now.window[1] === now.shape[now.down] && now.window[3] === now.shape[now.right];
}

function fit() {
  const { canvas, facts } = screen;
  const stage = canvas.closest(".stage"), room = stage.clientWidth;
  const tall = Math.max(240, Math.min(window.innerHeight * 0.68, 900));
  const [height, width] = facts.extent;
  let factor = Math.min(room / width, tall / height);
  let size = [width * factor, height * factor].map((one) => Math.max(24, one));
  if (facts.type === "rgb" && facts.shape[1] < room && facts.shape[0] < tall && now.window[1] - now.window[0] === now.shape[now.down]) {
    factor = Math.min(factor, Math.max(1, Math.min(room, 240) / facts.shape[1]) * facts.shape[1] / width);
    size = [width * factor, height * factor];
  }
  canvas.style.width = `${Math.min(room, size[0])}px`;
  canvas.style.height = `${size[1]}px`;
}
window.addEventListener("resize", () => { if (screen && screen.data && now.view === "picture") paintPicture(); });

function legendOf(color, classes, place) {
  const { facts } = screen, parts = [];
  const add = (text) => { if (text) parts.push(make("span", {}, text)); };
  add([facts.plane, facts.plane === "axial" || facts.plane === "coronal" || facts.plane === "sagittal" ? "as radiologists hang it" : ""].filter(Boolean).join(", "));
  if (!color && !classes) {
    const bar = make("canvas", { width: 253, height: 1, role: "img", "aria-label": "colours from the least to the largest value" });
    const context = bar.getContext("2d"), image = context.createImageData(253, 1);
    new Uint32Array(image.data.buffer).set(paletteOf(now.colors).subarray(signs.length));
    context.putImageData(image, 0, 0);
    const [low, high] = now.contrast, units = facts.units ? ` ${facts.units}` : "";
    const clips = screen.count && (screen.ends[0] < low || screen.ends[1] > high);
    parts.push(make("span", {}, `${clips && screen.ends[0] < low ? "≤ " : ""}${short(low)}`, bar, `${clips && screen.ends[1] > high ? "≥ " : ""}${short(high)}${units}`));
    if (facts.power) add("by the logarithm");
  }
  if (classes) {
    const table = palettes.classes;
    for (const [value, name] of Object.entries(facts.names || {}).slice(0, 24)) {
      const key = make("i"), at = 3 + (((Number(value) % 253) + 253) % 253);
      key.style.background = `#${table.slice(6 * at, 6 * at + 6)}`;
      parts.push(make("span", {}, key, make("bdi", {}, name ? `${value} ${name}` : value)));
    }
  }
  if (!color) {
    for (const [at, count, name] of [[0, screen.nan, "NaN or missing"], [1, screen.below, "−inf"], [2, screen.above, "+inf"]]) {
      if (!count) continue;
      const key = make("i");
      key.style.background = `#${palettes.gray.slice(6 * at, 6 * at + 6)}`;
      parts.push(make("span", {}, key, `${name} (${count.toLocaleString("en")})`));
    }
  }
  for (const channel of facts.channels || []) {
    const key = make("i");
    key.style.background = `rgb(${channel.color.join(",")})`;
    const units = channel.units ? ` ${channel.units}` : "";
    parts.push(make("span", {}, key, make("bdi", {}, channel.name), ` black to ${short(channel.low)}, full from ${short(channel.high)}${units}`));
  }
  if (facts.channels) add(facts.origin);
  if (color && facts.bits > 8) add(`the upper 8 of ${facts.bits} bits`);
  add(facts.text);
  if (facts.mean) add("averaged to fit the screen");
  return parts;
}

function paintHistogram() {
  const { histogram, bins, span, count, ends, power, facts } = screen;
  const style = getComputedStyle(document.documentElement), context = histogram.getContext("2d");
  const { width, height } = histogram, most = Math.max(1, ...bins);
  context.clearRect(0, 0, width, height);
  const xOf = (value) => {
    const to = power ? Math.log10(Math.max(value, 1e-300)) : value;
    return span[1] > span[0] ? ((to - span[0]) / (span[1] - span[0])) * width : width / 2;
  };
  context.fillStyle = style.getPropertyValue("--soft") ? getComputedStyle(screen.spread).color : "#888";
  bins.forEach((one, at) => {
    const tall = one ? Math.max(1, Math.sqrt(one / most) * (height - 4)) : 0;
    context.fillRect((at * width) / 64, height - tall, width / 64 - 1, tall);
  });
  if (now.colors !== "classes") {
    context.fillStyle = "#2b6cb0";
    const [low, high] = now.contrast.map(xOf);
    context.globalAlpha = 0.18;
    context.fillRect(low, 0, Math.max(1, high - low), height);
    context.globalAlpha = 1;
    for (const at of [low, high]) context.fillRect(Math.min(width - 2, Math.max(0, at - 1)), 0, 2, height);
  }
  const units = facts.units ? ` ${facts.units}` : "";
  const words = count ? `${short(ends[0])} to ${short(ends[1])}${units}, mean ${short(screen.mean)}` : "no finite values";
  screen.spread.textContent = `in sight: ${words}`;
  histogram.setAttribute("aria-label", `histogram of ${count.toLocaleString("en")} values in sight, ${words}`);
}

function placeOf(event) {
  const box = screen.canvas.getBoundingClientRect(), [rows, columns] = screen.facts.shape;
  const y = Math.floor(((event.clientY - box.top) / box.height) * rows);
  const x = Math.floor(((event.clientX - box.left) / box.width) * columns);
  return y >= 0 && x >= 0 && y < rows && x < columns ? [y, x] : null;
}
function indexOf(side, at, shown) {
  return side.start + side.step * Math.floor(((at + 0.5) * side.count) / shown);
}
function coordinate(side, index) {
  let text = "";
  if (side.labels) text = side.labels[Math.round((index - side.start) / side.step)];
  else if (side.origin !== undefined && side.origin !== null) text = short(side.origin + index * side.spacing);
  return text === "" || text === undefined ? "" : `${side.name} = ${text}${side.units && ` ${side.units}`}`;
}
function read(place) {
  const { facts, data } = screen, [rows, columns] = facts.shape, [y, x] = place;
  const index = [...now.index];
  index[facts.down.axis] = indexOf(facts.down, y, rows);
  index[facts.right.axis] = indexOf(facts.right, x, columns);
  const at = y * columns + x;
  let value;
  if (facts.type === "rgb") {
    index[facts.channels ? now.channels : now.color] = ":";
    value = `red ${data[3 * at]}, green ${data[3 * at + 1]}, blue ${data[3 * at + 2]}${facts.mean ? ", averaged" : ""}`;
  } else {
    value = facts.bool ? (data[at] ? "True" : "False") : numberText(data[at], facts.type);
    const name = facts.names && facts.names[String(data[at])];
    value += `${facts.units ? ` ${facts.units}` : ""}${name ? ` ${name}` : ""}`;
    if (now.part && now.channels < 0) value = `${now.part} ${value}`;
  }
  const where = [coordinate(facts.down, index[facts.down.axis]), coordinate(facts.right, index[facts.right.axis])].filter(Boolean).join(", ");
  return [value, ` at [${index.join(", ")}]${where && ` · ${where}`}`];
}
function pointed(event) {
  if (!screen.data) return;
  if (screen.grab) { dragged(event); return; }
  const place = placeOf(event);
  if (!place) return;
  const [value, where] = read(place);
  screen.reading.replaceChildren(make("strong", {}, value), where);
}
function resting() {
  screen.reading.replaceChildren(make("span", { className: "soft" }, `plane ${screen.facts.key}`));
}

// Dragging changes contrast; with Shift, or the middle button, the part in sight
function grabbed(event) {
  if (!screen.data || event.pointerType === "touch") { pointed(event); return; }
  screen.canvas.setPointerCapture(event.pointerId);
  screen.grab = { x: event.clientX, y: event.clientY, contrast: [...(now.contrast || [0, 1])],
    window: [...now.window], pan: event.shiftKey || event.button === 1 || screen.facts.type === "rgb" };
  screen.canvas.addEventListener("pointerup", () => { screen.grab = null; }, { once: true });
}
function dragged(event) {
  const { grab, canvas, facts } = screen, right = event.clientX - grab.x, down = event.clientY - grab.y;
  if (grab.pan) {
    const [top, bottom, left, end] = grab.window;
    pan(-Math.round((down / canvas.clientHeight) * (bottom - top)) * Math.sign(facts.down.step),
      -Math.round((right / canvas.clientWidth) * (end - left)) * Math.sign(facts.right.step), grab.window);
    return;
  }
  if (now.colors === "classes") return;
  const [low, high] = grab.contrast, width = (high - low) * Math.exp(right / 150);
  const level = (low + high) / 2 - (down / 200) * (high - low);
  now.contrast = [level - width / 2, level + width / 2];
  paintPicture();
}
function pan(rows, columns, [top, bottom, left, end] = now.window) {
  const move = (start, stop, by, length) => {
    const to = Math.max(-start, Math.min(length - stop, by));
    return [start + to, stop + to];
  };
  now.window = [...move(top, bottom, rows, now.shape[now.down]), ...move(left, end, columns, now.shape[now.right])];
  loadPicture();
}
function zoom(factor, place = null) {
  const { facts } = screen, [rows, columns] = facts.shape;
  const part = (start, stop, side, at, shown, length) => {
    const middle = at === null ? (start + stop) / 2 : indexOf(side, at, shown);
    const size = Math.min(length, Math.max(Math.min(8, length), Math.round((stop - start) / factor)));
    const from = Math.max(0, Math.min(length - size, Math.round(middle - size / 2)));
    return [from, from + size];
  };
  const [top, bottom, left, end] = now.window;
  now.window = [...part(top, bottom, facts.down, place && place[0], rows, now.shape[now.down]),
    ...part(left, end, facts.right, place && place[1], columns, now.shape[now.right])];
  loadPicture();
}
function stepped(by) {
  const axes = fixedAxes();
  if (!axes.length) return false;
  const at = axes.includes(now.slider) ? now.slider : axes[axes.length - 1];
  now.setters[at](now.index[at] + by);
  return true;
}
function wheeled(event) {
  event.preventDefault();
  const by = event.deltaY > 0 ? 1 : -1;
  if (event.ctrlKey || !stepped(by)) zoom(by > 0 ? 0.5 : 2, placeOf(event));
}
function keyed(event) {
  const steps = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10 };
  const size = Math.max(1, Math.round((now.window[1] - now.window[0]) / 8)), wide = Math.max(1, Math.round((now.window[3] - now.window[2]) / 8));
  const pans = { ArrowUp: [-size, 0], ArrowDown: [size, 0], ArrowLeft: [0, -wide], ArrowRight: [0, wide] };
  if (event.key in pans && (event.shiftKey || !fixedAxes().length)) {
    const [rows, columns] = pans[event.key];
    pan(rows * Math.sign(screen.facts.down.step), columns * Math.sign(screen.facts.right.step));
  } else if (event.key in steps) stepped(steps[event.key]);
  else if (event.key === "+" || event.key === "=") zoom(2);
  else if (event.key === "-") zoom(0.5);
  else if (event.key === "0") { whole(); loadPicture(); }
  else return;
  event.preventDefault();
}

// Lines --------------------------------------------------------------------------------------------

function line(look) {
  const stage = make("div", { className: "stage" }), controls = make("div", { className: "controls" });
  const reading = make("output", { className: "reading" });
  const change = () => build();
  if (now.long.length > 1) controls.append(make("label", {}, "along ", axisSelect("", "down", change).lastChild));
  controls.append(...sliders(() => loadLine()));
  const ends = [["from", "start"], ["to", "stop"]].map(([name, which]) => {
    const input = make("input", { type: "number", min: 0, max: now.shape[now.down], value: now[which] });
    input.addEventListener("change", () => {
      now[which] = Math.max(0, Math.min(now.shape[now.down], Math.round(Number(input.value)) || 0));
      if (now.stop <= now.start) now.stop = Math.min(now.shape[now.down], now.start + 1);
      loadLine();
    });
    return make("label", {}, name, input);
  });
  controls.append(section("Part", make("div", { className: "ends" }, ...ends)));
  look.replaceChildren(make("div", { className: "split" }, make("div", { className: "stage" }, stage, reading), controls));
  screen = { stage, reading, ends };
  loadLine();
}
const loadLine = oneByOne(async (current) => {
  const facts = await asked("line", { id: now.id, down: now.down, index: now.index.join(","), start: now.start, stop: now.stop });
  if (!current() || now.view !== "line") return;
  told(facts.where);
  const words = [`${facts.key}`, facts.values && `in ${facts.values}`, facts.text].filter(Boolean).join(", ");
  screen.stage.replaceChildren(...facts.lines.flatMap((one) => courseOf(facts, one)));
  screen.reading.replaceChildren(make("span", { className: "soft" }, words));
  screen.rest = words;
});
function courseOf(facts, one) {
  const wide = 720, tall = 260, { low, high } = one;
  const values = [...low, ...high].filter((value) => value !== null);
  if (!values.length) return [make("p", {}, "no finite values")];
  const bottom = values.reduce((a, b) => Math.min(a, b)), top = values.reduce((a, b) => Math.max(a, b));
  const y = (value) => (top > bottom ? tall - 8 - ((value - bottom) / (top - bottom)) * (tall - 16) : tall / 2);
  const x = (at) => (low.length > 1 ? (at / (low.length - 1)) * wide : wide / 2);
  const words = `${one.name ? `${one.name}, ` : ""}a line from ${short(bottom)} to ${short(top)}`;
  const svg = drawn("svg", { viewBox: `0 0 ${wide} ${tall + 26}`, class: "course", role: "img", "aria-label": words });
  for (const at of [8, tall - 8]) svg.append(drawn("line", { x1: 0, x2: wide, y1: at, y2: at, class: "grid" }));
  const runs = [];
  low.forEach((value, at) => {
    if (value === null) return;
    if (!runs.length || runs[runs.length - 1].end !== at - 1) runs.push({ points: [], end: at });
    runs[runs.length - 1].points.push(at);
    runs[runs.length - 1].end = at;
  });
  const point = (at, list) => `${x(at).toFixed(1)},${y(list[at]).toFixed(1)}`;
  const single = low.length <= 4096 && facts.count === low.length;
  for (const { points } of runs) {
    if (single && points.length > 1) svg.append(drawn("polyline", { class: "course open", points: points.map((at) => point(at, high)).join(" ") }));
    else if (single) svg.append(drawn("circle", { class: "course", cx: x(points[0]), cy: y(high[points[0]]), r: 1.5 }));
    else svg.append(drawn("polygon", { class: "course", points: [...points.map((at) => point(at, high)), ...[...points].reverse().map((at) => point(at, low))].join(" ") }));
  }
  svg.append(drawn("text", { x: 2, y: 22, class: "soft" }, `${short(top)} ${facts.values}`),
    drawn("text", { x: 2, y: tall - 12, class: "soft" }, `${short(bottom)} ${facts.values}`),
    drawn("text", { x: 0, y: tall + 18, class: "soft" }, placeIn(facts, facts.start)),
    drawn("text", { x: wide, y: tall + 18, class: "soft", "text-anchor": "end" }, placeIn(facts, facts.start + (facts.count - 1) * facts.step)));
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const at = Math.max(0, Math.min(low.length - 1, Math.round(((event.clientX - box.left) / box.width) * (low.length - 1))));
    const index = facts.start + facts.step * Math.floor((at * facts.count) / low.length);
    const value = low[at] === high[at] || single ? numberText(low[at]) : `${short(low[at])} to ${short(high[at])}`;
    screen.reading.replaceChildren(make("strong", {}, `${value} ${facts.values}`), ` at ${placeIn(facts, index)}`);
  });
  svg.addEventListener("pointerleave", () => screen.reading.replaceChildren(make("span", { className: "soft" }, screen.rest)));
  return one.name ? [make("h2", {}, one.name), svg] : [svg];
}
function placeIn(facts, index) {
  const text = coordinate({ ...facts, labels: facts.labels && facts.labels.length ? facts.labels : null }, index);
  return `index ${index}${text && `, ${text}`}`;
}

// Tables and values --------------------------------------------------------------------------------

function table(look) {
  const box = make("div", { className: "sheet", tabIndex: 0, role: "region", "aria-label": "table" });
  const bar = make("div", { className: "row" }), controls = make("div", { className: "controls" });
  now.across = now.right !== now.down && !now.text.startsWith("structured");
  screen = { box, bar };
  if (now.across) {
    controls.append(section("Axes", make("div", { className: "axes" }, axisSelect("rows", "down", build), axisSelect("columns", "right", build))));
  } else if (now.long.length > 1) controls.append(axisSelect("rows", "down", build));
  controls.append(...sliders(() => loadTable()));
  bar.style.marginBottom = ".5rem";
  const stage = make("div", { className: "stage" }, bar, box);
  look.replaceChildren(controls.children.length ? make("div", { className: "split" }, stage, controls) : stage);
  loadTable();
}
const loadTable = oneByOne(async (current) => {
  const facts = await asked("table", { id: now.id, down: now.down, right: now.across ? now.right : -1,
    index: now.index.join(","), start: now.rowsFrom, first: now.first });
  if (!current() || now.view !== "table") return;
  told(facts.where);
  const kind = (at) => (facts.numbers[at] ? "n" : "");
  screen.box.replaceChildren(make("table", {},
    make("thead", {}, make("tr", {}, make("td", {}), ...facts.head.map((name, at) => make("th", { scope: "col", className: kind(at) }, make("bdi", {}, name))))),
    make("tbody", {}, ...facts.cells.map((cells, row) => make("tr", {}, make("th", { scope: "row", className: "n" }, facts.rows[row]),
      ...cells.map((cell, at) => make("td", { className: kind(at) }, make("bdi", {}, cell))))))));
  screen.bar.replaceChildren(...pager("row", facts.start, facts.cells.length, facts.total, now.rows, (to) => { now.rowsFrom = to; loadTable(); }),
    ...(facts.columns > facts.head.length ? pager("column", facts.first, facts.head.length, facts.columns, now.cells, (to) => { now.first = to; loadTable(); }) : []));
});
function pager(name, start, count, total, step, go) {
  const text = make("span", { className: "soft" }, `${name}s ${start.toLocaleString("en")} to ${(start + count - 1).toLocaleString("en")} of ${total.toLocaleString("en")}`);
  if (total <= count) return [text];
  const to = make("input", { type: "number", min: 0, max: total - 1, value: start, "aria-label": `first ${name}` });
  to.style.width = "7rem";
  to.addEventListener("change", () => go(Math.max(0, Math.min(total - 1, Math.round(Number(to.value)) || 0))));
  return [text,
    make("button", { type: "button", disabled: start === 0, "aria-label": `earlier ${name}s`, onclick: () => go(Math.max(0, start - step)) }, "‹"),
    make("button", { type: "button", disabled: start + count >= total, "aria-label": `later ${name}s`, onclick: () => go(start + step) }, "›"), to];
}
async function value(look) {
  try {
    const facts = await asked("value", { id: now.id });
    const one = facts.fields.length === 1;
    look.replaceChildren(one ? make("p", { className: "big" }, make("bdi", {}, facts.fields[0][1]), ` ${facts.units}`)
      : tableOf(["field", "value"], facts.fields, "fields"));
  } catch (error) { trouble(error); }
}

// What it becomes ----------------------------------------------------------------------------------

byId("becomes").addEventListener("toggle", async () => {
  const box = byId("becomes").lastElementChild;
  if (!byId("becomes").open || box.children.length) return;
  box.replaceChildren(make("p", { className: "soft", role: "status" }, "every format is asked …"));
  const mine = now;
  try {
    const facts = await asked("becomes", { id: now.id });
    if (mine !== now) return;
    const name = make("input", { type: "text", id: "new", value: `${facts.stem}.ra`, autocomplete: "off", spellcheck: false });
    const said = make("p", { className: "outcome-text", role: "status" });
    const all = make("input", { type: "checkbox", id: "all" });
    const ticks = make("fieldset", { hidden: true });
    // The losses that the format of the name has, to be allowed one by one
    const offer = () => {
      const fits = facts.rows.filter((row) => row.suffix && name.value.endsWith(row.suffix));
      const row = fits.sort((one, other) => other.suffix.length - one.suffix.length)[0];
      const losses = row ? row.flags.filter((flag) => flag.startsWith("--allow ")).map((flag) => flag.slice(8)) : [];
      ticks.hidden = !losses.length;
      ticks.replaceChildren(make("legend", {}, "allow to be lost"), ...losses.map((loss) =>
        make("label", {}, make("input", { type: "checkbox", value: loss }), ` ${loss}`)));
    };
    name.addEventListener("input", offer);
    const form = make("form", { onsubmit: (event) => {
      event.preventDefault();
      const allowed = [...ticks.querySelectorAll("input:checked")].map((one) => one.value);
      converted({ name: name.value, whole: all.checked ? "1" : "", allow: allowed.join(",") }, said);
    } },
      make("div", {}, make("label", { htmlFor: "new" }, `New file in ${now.folder === "." ? "this folder" : now.folder}`), name),
      ...(now.arrays > 1 ? [make("label", {}, all, ` all ${now.arrays} arrays`)] : []),
      ticks, make("button", { type: "submit" }, "Convert"));
    box.replaceChildren(...(now.folder ? [form, said] : []), tableOf(["format", "outcome", "why"], facts.rows.map((row) => [
      make("span", {}, make("button", { type: "button", title: row.title, "aria-label": `name it as ${row.title}`,
        onclick: () => { name.value = `${facts.stem}${row.suffix}`; offer(); name.focus(); } }, row.format)),
      make("span", { className: row.outcome.split(" ")[0] }, row.outcome),
      make("span", {}, ...[...row.reasons, ...(row.flags.length ? [`allowed by ${row.flags.join(", ")}`] : [])]
        .flatMap((one, at) => (at ? [make("br"), one] : [one]))),
    ])));
  } catch (error) { box.replaceChildren(make("p", { className: "trouble" }, error.message)); }
});
async function converted(words, said) {
  said.className = "outcome-text";
  said.textContent = "converting …";
  const answer = await fetch("convert", { method: "POST", credentials: "omit", headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ id: String(now.id), ...words }) }).catch((error) => error);
  if (!(answer instanceof Response)) { said.textContent = answer.message; return; }
  if (!answer.ok) { said.className = "outcome-text trouble"; said.textContent = await reason(answer); return; }
  said.textContent = (await answer.json()).lines.join("\n");
  const above = now.node && now.node.kind === "file" ? now.node.above : tree.root;
  if (above && above.kind === "folder") {
    Object.assign(above, { kids: [], waiting: new Map() });
    await load(above, 0, true);
    refresh();
  }
}

// Start --------------------------------------------------------------------------------------------

(async () => {
  try {
    const facts = await asked("start");
    ({ palettes, signs, page } = facts);
    tree.root = Object.assign(newNode(), facts.root);
    flatten();
    if (tree.root.kind === "file") await chosen(tree.root);
    else { byId("name").textContent = tree.root.name; document.title = tree.root.name; await toggle(tree.root, true); }
  } catch (error) { trouble(error); }
})();
