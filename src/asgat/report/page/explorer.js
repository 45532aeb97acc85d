// Pick a node: its neighbourhood in grey, what each head attends to in the head's colour, far nodes on the outer ring.
const PARTS = ["training", "validation", "test", "in no split"];

function symbol(c, r) {
  const polygon = (sides, turn, scale) => `M${Array.from({ length: sides }, (_, i) => {
    const angle = turn + (2 * Math.PI * i) / sides;
    return `${(scale * r * Math.cos(angle)).toFixed(2)},${(scale * r * Math.sin(angle)).toFixed(2)}`;
  }).join("L")}Z`;
  if (c < 0 || c % 5 === 0) return `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0Z`;
  if (c % 5 === 1) return polygon(4, Math.PI / 4, 1.22);
  if (c % 5 === 2) return polygon(3, -Math.PI / 2, 1.35);
  if (c % 5 === 3) return polygon(4, 0, 1.3);
  return polygon(5, -Math.PI / 2, 1.15);
}

function explorer() {
  const held = DATA.explorer, nodes = held.nodes;
  const picks = new Map(held.picks.map((p) => [p.node, p]));
  const byId = new Map(held.picks.map((p) => [nodes.id[p.node], p.node]));
  const order = held.picks.map((p) => p.node);
  const wrong = (v) => nodes.class[v] >= 0 && nodes.class[v] !== nodes.prediction[v];
  const shown = new Set(held.telling.map(([layer, head]) => headOf(layer, head).number));
  const few = HEADS.filter((h) => h.character !== "flat").length <= 16;
  const opened = held.telling.map(([layer, head]) => `head ${head + 1} of ${LAYER} ${layer + 1} (${headOf(layer, head).character})`).join(" and ");
  const sides = new Set(SIDES.keys()); // the sides of the node whose attention is shown
  let current = order[0];

  const every = order.length === held.total;
  $("explorer-lead").textContent = `${HEADS.length ? `Pick a node to see its neighbours and the nodes each head attends to, near and far.${opened && HEADS.length > 1 ? ` At first ${opened} ${held.telling.length > 1 ? "are" : "is"} shown, whose attention depends most on the classes; switch others on.` : ""}${DATA.sides ? " Edges have a direction: the node attends as the source of its edges (out) and as the target of edges (in), to other nodes as sources or as targets." : ""}` : `Pick a node to see its neighbours; this model has no attention to explore${DATA.filters ? ", and the responses of its filters are drawn above" : ""}.`} ${every ? `All ${held.total.toLocaleString("en")} nodes can be picked.` : `The graph is large: ${order.length.toLocaleString("en")} of its ${held.total.toLocaleString("en")} nodes can be picked, a sample with some of every class and with mistakes${HEADS.length ? "; asgat explain shows any node" : ""}.`}${held.shown_per_head ? ` Of each head the ${held.shown_per_head} strongest are shown.` : ""}`;

  // -- choosing a node
  const message = el("div", { class: "message", role: "status" });
  const box = el("input", { type: "text", id: "node", list: "node-ids", autocomplete: "off", spellcheck: "false", onchange: () => find(), onkeydown: (event) => { if (event.key === "Enter") find(); } });
  const list = el("datalist", { id: "node-ids" }, order.map((v) => el("option", { value: nodes.id[v] }, `${className(nodes.class[v])}${wrong(v) ? ", wrong" : ""}`)));
  const step = (by, only) => {
    const from = order.indexOf(current);
    for (let i = 1; i <= order.length; i++) {
      const next = order[(((from + by * i) % order.length) + order.length) % order.length];
      if (!only || only(next)) return go(next);
    }
  };
  function find() {
    const v = byId.get(box.value.trim()) ?? byId.get(box.value);
    if (v === undefined) { message.textContent = `There is no node “${short(box.value, 40)}” here${every ? "" : ", at least not in the sample"}.`; return; }
    if (v !== current) go(v);
  }
  function go(v) {
    current = v;
    message.textContent = "";
    box.value = nodes.id[v];
    history.replaceState(null, "", `#node=${encodeURIComponent(nodes.id[v])}`);
    draw();
  }
  const anyWrong = order.some(wrong);
  const controls = el("div", { class: "choose" }, el("label", { for: "node" }, "Node, by its id", box), list,
    el("button", { type: "button", "aria-label": "previous node", onclick: () => step(-1) }, "‹"), el("button", { type: "button", "aria-label": "next node", onclick: () => step(1) }, "›"),
    anyWrong ? el("button", { type: "button", id: "next-mistake", onclick: () => step(1, wrong) }, "next mistake") : null, message);

  // -- heads on and off
  const boxes = [];
  const panel = el("div", {});
  for (const layer of new Set(HEADS.map((h) => h.layer))) {
    const mine = HEADS.filter((h) => h.layer === layer);
    const set = (on) => { for (const h of mine) { boxes[h.number].checked = on; if (on) shown.add(h.number); else shown.delete(h.number); } draw(); };
    panel.append(el("fieldset", {}, el("legend", {}, `${capital(LAYER)} ${layer + 1}`), el("div", { class: "heads" }, mine.map((h) => {
      boxes[h.number] = el("input", { type: "checkbox", checked: shown.has(h.number), "data-head": h.number, onchange: (event) => { if (event.target.checked) shown.add(h.number); else shown.delete(h.number); draw(); } });
      return el("label", {}, boxes[h.number], swatch(h.colour, h.dash), `${h.head + 1} ${h.character}`);
    })), mine.length > 1 ? el("div", { class: "switches" }, el("button", { type: "button", class: "quiet", onclick: () => set(true) }, "all"), el("button", { type: "button", class: "quiet", onclick: () => set(false) }, "none")) : null));
  }
  if (DATA.sides && HEADS.length) panel.append(el("fieldset", {}, el("legend", {}, "Side of the node"), el("div", { class: "heads" }, SIDES.map((name, side) => el("label", {}, el("input", { type: "checkbox", checked: true, "data-side": name, onchange: (event) => { if (event.target.checked) sides.add(side); else sides.delete(side); draw(); } }), name)))));
  const facts = el("dl", { class: "facts" });
  const likely = el("div", { id: "likely" });
  const features = el("dl", { class: "facts", id: "features" });
  const featuresTitle = el("h3", {});
  const classes = el("div", { class: "legend" }, DATA.classes.slice(0, 35).map((name, c) => el("span", { class: "key" }, svg("svg", { class: "swatch", style: "width:14px", viewBox: "-7 -7 14 14", "aria-hidden": "true" }, svg("path", { d: symbol(c, 5), style: `fill:${classColour(c)}` })), short(name, 24))));
  const canvas = el("div", { id: "canvas" });
  const note = el("p", { class: "lead", style: "font-size:.88rem;margin:.4rem 0 0" });
  const table = el("div", { id: "attended", class: "scroll", tabindex: 0, role: "region", "aria-label": "Attended nodes" });
  const spoken = el("div", { class: "sr", role: "status", "aria-live": "polite" });
  $("explorer-card").append(controls, el("div", { class: "stage" }, el("div", {}, canvas, note), el("div", {}, facts, el("h3", {}, "Predicted probabilities"), likely, featuresTitle, features, panel, el("h3", {}, "Classes"), classes)), HEADS.length ? table : "", spoken);

  const felt = (e) => e.weight >= 0.0005; // what is drawn; the table has all

  // -- what is seen of the current node: entries of all heads, and where each node stands
  function entries(p) {
    const found = [];
    for (const h of HEADS) {
      const flat = p.heads[h.layer][h.head];
      for (let i = 0; i < flat.length; i += 5) found.push({ h, node: flat[i], weight: flat[i + 1] / 10000, hops: flat[i + 2], band: flat[i + 3], side: flat[i + 4] >> 1, toSide: flat[i + 4] & 1 });
    }
    return found;
  }
  function layout(p, found, cx, cy, radius) {
    const place = new Map([[p.node, { x: cx, y: cy, ring: 0 }]]);
    const rings = [[], p.near.slice(), p.second.slice(), []];
    const hops = new Map();
    const known = new Set([p.node, ...p.near, ...p.second]);
    for (const e of found) if (!known.has(e.node)) { known.add(e.node); hops.set(e.node, e.hops); rings[e.hops === 1 ? 1 : e.hops === 2 ? 2 : 3].push(e.node); }
    const ties = new Map();
    for (let i = 0; i < p.edges.length; i += 2) for (const [a, b] of [[p.edges[i], p.edges[i + 1]], [p.edges[i + 1], p.edges[i]]]) ties.set(a, [...(ties.get(a) || []), b]);
    const put = (v, angle, ring) => place.set(v, { x: cx + radius[ring] * Math.cos(angle), y: cy + radius[ring] * Math.sin(angle), ring, angle, hops: hops.get(v) ?? ring });
    rings[1].sort((a, b) => nodes.class[a] - nodes.class[b] || a - b).forEach((v, i) => put(v, -Math.PI / 2 + (2 * Math.PI * i) / rings[1].length, 1));
    // The second ring stands near its neighbours of the first, pushed apart until none overlaps.
    const wished = rings[2].map((v) => {
      const near = (ties.get(v) || []).map((u) => place.get(u)).filter((at) => at && at.ring === 1);
      const [sx, sy] = near.reduce(([x, y], at) => [x + Math.cos(at.angle), y + Math.sin(at.angle)], [0, 0]);
      return { v, angle: near.length ? Math.atan2(sy, sx) : Math.PI / 2 };
    }).sort((a, b) => a.angle - b.angle || a.v - b.v);
    const gap = Math.min((2 * Math.PI) / Math.max(wished.length, 1), 0.17);
    for (let round = 0; round < 120; round++) for (let i = 0; i < wished.length && wished.length > 1; i++) {
      const a = wished[i], b = wished[(i + 1) % wished.length];
      const lack = gap - (b.angle - a.angle + (i + 1 === wished.length ? 2 * Math.PI : 0));
      if (lack > 0) { a.angle -= lack / 2; b.angle += lack / 2; }
    }
    wished.forEach((w) => put(w.v, w.angle, 2));
    const far = rings[3].sort((a, b) => (hops.get(a) < 0) - (hops.get(b) < 0) || hops.get(a) - hops.get(b) || nodes.class[a] - nodes.class[b] || a - b);
    const kinds = [...new Set(far.map((v) => hops.get(v)))];
    const slots = far.length + kinds.length;
    const labels = [];
    let slot = 0.5;
    for (const kind of kinds) {
      const mine = far.filter((v) => hops.get(v) === kind);
      const first = slot;
      for (const v of mine) put(v, -Math.PI / 2 + (2 * Math.PI * slot++) / slots, 3);
      labels.push({ nodes: mine, text: kind < 0 ? "no path" : `${kind} hops`, angle: -Math.PI / 2 + (2 * Math.PI * (first + (mine.length > 1 ? Math.floor((mine.length - 1) / 2) + 0.5 : mine.length - 0.4))) / slots, from: -Math.PI / 2 + (2 * Math.PI * (first - 0.35)) / slots, to: -Math.PI / 2 + (2 * Math.PI * (slot - 0.65)) / slots });
      slot += 1;
    }
    return { place, labels };
  }

  function draw() {
    const p = picks.get(current);
    const found = entries(p);
    const visible = found.filter((e) => shown.has(e.h.number) && sides.has(e.side));
    const width = Math.max(280, canvas.clientWidth);
    const height = Math.round(Math.min(660, Math.max(300, width * 0.86)));
    const cx = width / 2, cy = height / 2;
    const full = Math.min(width / 2 - (width < 420 ? 26 : 44), height / 2 - 26);
    // Nodes keep their places while heads are switched; a flat head, which attends anywhere, makes room when it is on.
    const placed = found.filter((e) => felt(e) && (shown.has(e.h.number) || (few && e.h.character !== "flat")));
    const anyFar = visible.some((e) => felt(e) && (e.hops < 0 || e.hops > 2));
    const radius = anyFar ? [0, 0.35 * full, 0.65 * full, 0.96 * full] : [0, 0.48 * full, 0.96 * full, 0.96 * full];
    const { place, labels: kinds } = layout(p, placed, cx, cy, radius);
    const total = new Map();
    for (const e of visible.filter(felt)) total.set(e.node, (total.get(e.node) || 0) + e.weight / Math.max(shown.size * sides.size, 1));

    const labels = kinds.filter((l) => l.nodes.some((v) => total.has(v)));
    const ties = [];
    for (let i = 0; i < p.edges.length; i += 2) { const a = place.get(p.edges[i]), b = place.get(p.edges[i + 1]); ties.push(svg("line", { class: "tie", x1: a.x, y1: a.y, x2: b.x, y2: b.y })); if (DATA.sides) ties.push(arrow(a, b)); }

    const tell = (event, e) => Tip.show(event.clientX, event.clientY, `${nodes.id[current]}${sided(e.side)} → ${nodes.id[e.node]}${sided(e.toSide)}`, [{ name: headName(e.h.layer, e.h.head), colour: e.h.colour, value: percent(e.weight) }, { name: e.hops < 0 ? "no path" : e.hops === 0 ? "itself" : plural(e.hops, "hop"), value: bandName(e.band) }]);
    const lane = (e) => e.h.number * SIDES.length + e.side; // every head and side has a place of its own
    const turn = [...shown].flatMap((h) => [...sides].map((side) => h * SIDES.length + side)).sort((a, b) => a - b);
    const ended = new Map(); // where the parts of a lane on the ring around the node end
    const middle = 8 + 14 * Math.sqrt(Math.min(1, total.get(current) || 0));
    const links = visible.filter(felt).map((e) => {
      const style = `stroke:${e.h.colour};stroke-width:${(0.7 + 8 * e.weight).toFixed(2)};stroke-dasharray:${e.h.dash}`;
      const common = { class: "mark attention", "data-head": e.h.number, style, onpointermove: (event) => tell(event, e), onpointerleave: Tip.hide };
      if (e.node === current) { // its own share: a part of the ring around it, a slot per head
        const wide = (2 * Math.PI) / turn.length, start = ended.get(lane(e)) ?? -Math.PI / 2 + turn.indexOf(lane(e)) * wide;
        const r = 1.3 * middle + 5, end = start + Math.max(0.05, 0.96 * wide * Math.min(e.weight, 0.999));
        ended.set(lane(e), end);
        return svg("path", { ...common, "data-own": "yes", style: `stroke:${e.h.colour};stroke-width:6;stroke-linecap:butt;opacity:1`, d: `M${cx + r * Math.cos(start)},${cy + r * Math.sin(start)}A${r},${r} 0 ${end - start > Math.PI ? 1 : 0} 1 ${cx + r * Math.cos(end)},${cy + r * Math.sin(end)}` });
      }
      const at = place.get(e.node);
      const bend = (turn.indexOf(lane(e)) - (turn.length - 1) / 2) * Math.min(9, 70 / turn.length);
      const [dx, dy] = [at.x - cx, at.y - cy], length = Math.hypot(dx, dy) || 1;
      return svg("path", { ...common, d: `M${cx},${cy}Q${(cx + at.x) / 2 - (dy / length) * bend},${(cy + at.y) / 2 + (dx / length) * bend} ${at.x},${at.y}` });
    });

    const strongest = new Set([...total.entries()].filter(([v]) => v !== current).sort((a, b) => b[1] - a[1]).slice(0, width < 500 ? 6 : 12).map(([v]) => v));
    const drawn = [...place.entries()].filter(([v, at]) => at.ring < 3 || total.has(v)).sort((a, b) => a[1].ring - b[1].ring || (a[1].angle || 0) - (b[1].angle || 0));
    const vertices = drawn.map(([v, at], i) => {
      const share = total.get(v) || 0;
      const r = v === current ? middle : share ? 4 + 20 * Math.sqrt(Math.min(share, 0.3)) : 4;
      const known = picks.has(v) && v !== current;
      const heading = `node ${nodes.id[v]}`;
      const rows = [{ name: "class", value: className(nodes.class[v]), colour: classColour(nodes.class[v]) }, { name: "predicted", value: className(nodes.prediction[v]) }, { name: "distance", value: at.ring === 0 ? "itself" : at.hops < 0 ? "no path" : plural(at.hops, "hop") },
        ...visible.filter((e) => e.node === v).sort((a, b) => b.weight - a.weight).slice(0, 6).map((e) => ({ name: `${headName(e.h.layer, e.h.head)}${DATA.sides ? `, ${SIDES[e.side]} to ${SIDES[e.toSide]}` : ""}`, colour: e.h.colour, value: percent(e.weight) }))];
      const [side, up] = at.ring === 0 ? [0, -(1.3 * middle + 14)] : [Math.cos(at.angle) * (r + 5), Math.sin(at.angle) * (r + 9) + 4];
      return svg("g", { class: `vertex${v === current ? " centre" : ""}${share || v === current || !HEADS.length ? "" : " faint"}`, "data-node": v, transform: `translate(${at.x.toFixed(1)},${at.y.toFixed(1)})`, tabindex: i ? -1 : 0, role: known ? "button" : "img",
        "aria-label": `${heading}, ${rows.map((row) => `${row.name} ${row.value}`).join(", ")}${known ? "; press Enter to pick it" : ""}`,
        onclick: known ? () => { Tip.hide(); go(v); } : null, onpointermove: (event) => Tip.show(event.clientX, event.clientY, heading, rows), onpointerleave: Tip.hide, onblur: Tip.hide,
        onfocus: (event) => { const at = event.target.getBoundingClientRect(); if (event.target.matches(":focus-visible")) Tip.show(at.right, at.top, heading, rows); },
        onkeydown: (event) => {
          const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
          if (move) { event.preventDefault(); const all = [...canvas.querySelectorAll(".vertex")]; const next = all[(all.indexOf(event.currentTarget) + move + all.length) % all.length]; event.currentTarget.setAttribute("tabindex", -1); next.setAttribute("tabindex", 0); next.focus(); }
          if ((event.key === "Enter" || event.key === " ") && known) { event.preventDefault(); Tip.hide(); go(v); canvas.querySelector(".vertex").focus(); }
        } },
        svg("circle", { class: "halo", r: r + 5 }), svg("path", { class: "dot mark", d: symbol(nodes.class[v], r), style: nodes.class[v] < 0 ? "fill:var(--card);stroke:var(--muted)" : `fill:${classColour(nodes.class[v])}` }),
        v === current || strongest.has(v) ? svg("text", { x: side, y: up, "text-anchor": at.ring === 0 || Math.abs(Math.cos(at.angle)) < 0.3 ? "middle" : Math.cos(at.angle) > 0 ? "start" : "end" }, short(nodes.id[v], 14)) : null);
    });
    const arc = (l, r) => `M${cx + r * Math.cos(l.from)},${cy + r * Math.sin(l.from)}A${r},${r} 0 ${l.to - l.from > Math.PI ? 1 : 0} 1 ${cx + r * Math.cos(l.to)},${cy + r * Math.sin(l.to)}`;
    const outer = radius[3] + 17;
    canvas.replaceChildren(svg("svg", { id: "graph", viewBox: `0 0 ${width} ${height}`, height, role: "group", "aria-label": `Neighbourhood of node ${nodes.id[current]}. Arrow keys go from node to node; the table below holds the same.` },
      [1, 2].map((ring) => svg("circle", { class: "ring", cx, cy, r: radius[ring] })), labels.map((l) => svg("path", { class: "ring", d: arc(l, outer - 6) })),
      ties, links.filter((l) => !l.dataset.own), HEADS.length ? svg("circle", { cx, cy, r: 1.3 * middle + 5, style: "fill:var(--card);stroke:var(--grid);stroke-width:6" }) : null, links.filter((l) => l.dataset.own), vertices,
      labels.map((l) => svg("text", { class: "hop", x: cx + outer * Math.cos(l.angle), y: cy + outer * Math.sin(l.angle) + 4, "text-anchor": Math.abs(Math.cos(l.angle)) < 0.3 ? "middle" : Math.cos(l.angle) > 0 ? "start" : "end" }, l.text))));
    describe(p, visible, total);
  }

  function describe(p, visible, total) {
    const v = p.node, [near, second] = p.totals;
    const parts = [`Inner ring: ${near === p.near.length ? plural(near, "neighbour") : `${p.near.length} of ${near.toLocaleString("en")} neighbours`}; second ring: ${second === p.second.length ? second : `${p.second.length} of ${second.toLocaleString("en")}`} at two hops${HEADS.length ? "; outer ring: attended nodes further away. Line width and node size follow the attention weight; the ring around the node is what it gives itself" : ""}.`];
    note.textContent = parts.join(" ");
    const right = nodes.class[v] < 0 ? null : !wrong(v);
    facts.replaceChildren(...[["node", nodes.id[v]], ["class", className(nodes.class[v])], ["predicted", el("span", { class: right === null ? "" : right ? "right" : "wrong" }, `${className(nodes.prediction[v])}${right === null ? "" : right ? " ✓" : " ✗"}`)], ["part", PARTS[nodes.part[v]]], ["degree", DATA.sides ? `${nodes.out[v]} out, ${nodes.in[v]} in` : String(nodes.degree[v])], ["β", nodes.beta[v].toFixed(2)]].flatMap(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]));
    likely.replaceChildren(...p.likely.map(([c, share]) => el("div", { class: "likely" }, el("span", {}, className(c)), el("span", { class: "gauge", "aria-hidden": "true" }, el("i", { style: `width:${(100 * share).toFixed(1)}%;background:${classColour(c)}` })), el("strong", {}, percent(share)))));
    features.replaceChildren(...p.features.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
    featuresTitle.textContent = p.features.length < held.columns && held.columns > 12 ? `Features that stand out, of ${held.columns.toLocaleString("en")}` : "Features";
    table.replaceChildren(el("table", {}, el("caption", { class: "sr" }, `Nodes that node ${nodes.id[v]} attends to`), el("thead", {}, el("tr", {}, [capital(LAYER), "Head", DATA.sides && "Side", "Node", DATA.sides && "Its side", "Weight", "Hops", "Class", "Band"].filter(Boolean).map((name) => el("th", { scope: "col", class: ["Weight", "Hops"].includes(name) ? "" : "left" }, name)))),
      el("tbody", {}, visible.map((e) => el("tr", { "data-head": e.h.number }, el("td", {}, String(e.h.layer + 1)), el("td", { class: "left" }, swatch(e.h.colour, e.h.dash), `${e.h.head + 1}`), DATA.sides && el("td", { class: "left" }, SIDES[e.side]), el("td", { class: "left" }, picks.has(e.node) && e.node !== v ? el("button", { type: "button", title: `pick node ${nodes.id[e.node]}`, onclick: () => { go(e.node); table.focus(); } }, nodes.id[e.node]) : nodes.id[e.node]), DATA.sides && el("td", { class: "left" }, SIDES[e.toSide]),
        el("td", {}, felt(e) ? percent(e.weight) : "< 0.1 %", el("span", { class: "meter", "aria-hidden": "true" }, el("i", { style: `width:${(100 * e.weight).toFixed(1)}%;background:${e.h.colour}` }))), el("td", {}, e.hops < 0 ? "no path" : String(e.hops)), el("td", { class: "left" }, short(className(e.node < 0 ? -1 : nodes.class[e.node]), 28)), el("td", { class: "left" }, e.band < 0 ? "–" : [DATA.bands[e.band].name, el("span", { class: "range" }, ` ${bandRange(e.band)}`)]))))));
    spoken.textContent = `Node ${nodes.id[v]}, class ${className(nodes.class[v])}, predicted ${className(nodes.prediction[v])}. ${plural(shown.size, "head")} shown, ${plural(total.size, "node")} attended to.`;
  }
  const sided = (side) => (DATA.sides ? ` (${SIDES[side]})` : "");
  function arrow(a, b) { // past the middle of a link, so that two links between the same nodes show both directions
    const angle = Math.atan2(b.y - a.y, b.x - a.x), x = a.x + 0.6 * (b.x - a.x), y = a.y + 0.6 * (b.y - a.y);
    return svg("path", { class: "arrow", d: `M0,-3L6,0L0,3Z`, transform: `translate(${x},${y}) rotate(${(180 * angle) / Math.PI})` });
  }
  const bandRange = (b) => `[${DATA.bands[b].from}, ${DATA.bands[b].to}${b === DATA.bands.length - 1 ? "]" : ")"}`;
  const bandName = (b) => (b < 0 ? "–" : `${DATA.bands[b].name} ${bandRange(b)}`);

  const wished = new URLSearchParams(location.hash.slice(1)).get("node");
  const busy = (v) => nodes.degree[v] >= 3 && nodes.degree[v] <= 12;
  const first = byId.get(wished) ?? order.find((v) => wrong(v) && nodes.part[v] === 2 && busy(v)) ?? order.find(busy) ?? order[0];
  if (first === undefined) { $("explorer").hidden = true; return; }
  current = first;
  box.value = nodes.id[current];
  responsive(canvas, draw);
}
