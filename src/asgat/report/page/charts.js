// Lines over a number: training curves and filter responses. Arrow keys move the cursor, legend buttons hide a line.
function lineChart(host, spec) {
  const holder = el("div", {});
  const hidden = new Set(spec.lines.filter((l) => l.off));
  const legend = el("div", { class: "legend" });
  host.append(el("h3", {}, spec.title), holder, legend, el("figcaption", {}, spec.caption), spec.numbers || "");
  let at = null;
  let redraw = () => {};

  for (const line of spec.lines.filter((l) => l.name)) {
    const button = el("button", { type: "button", "aria-pressed": String(!hidden.has(line)), onclick: () => {
      if (!hidden.delete(line)) hidden.add(line);
      button.setAttribute("aria-pressed", String(!hidden.has(line)));
      redraw();
    } }, swatch(line.colour, line.dash), line.name);
    legend.append(button);
  }
  for (const key of spec.keys || []) legend.append(el("span", { class: "key" }, swatch(key.colour, key.dash), key.name));

  responsive(host, (width) => {
    const height = Math.round(Math.min(330, Math.max(230, width * 0.55)));
    const box = { left: 46, right: width - 10, top: 24, bottom: height - 40 };
    const x = (v) => box.left + ((v - spec.x[0]) / (spec.x[1] - spec.x[0] || 1)) * (box.right - box.left);
    const y = (v) => box.bottom - ((v - spec.y[0]) / (spec.y[1] - spec.y[0] || 1)) * (box.bottom - box.top);
    const path = (xs, ys) => xs.map((v, i) => `${i ? "L" : "M"}${x(v).toFixed(1)},${y(ys[i]).toFixed(1)}`).join("");
    const clip = `clip-${host.id}`;
    const nearest = (line, value) => line.xs.reduce((best, v, i) => (Math.abs(v - value) < Math.abs(line.xs[best] - value) ? i : best), 0);

    function point(value, clientX, clientY) {
      at = value;
      const lines = spec.lines.filter((l) => l.name && !hidden.has(l));
      cursor.replaceChildren(svg("line", { class: "cursor", x1: x(value), x2: x(value), y1: box.top, y2: box.bottom }),
        ...lines.map((l) => { const i = nearest(l, value); return svg("circle", { cx: x(l.xs[i]), cy: Math.min(box.bottom, Math.max(box.top, y(l.ys[i]))), r: 3.5, style: `fill:${l.colour}` }); }));
      const rect = picture.getBoundingClientRect();
      Tip.show(clientX ?? rect.left + x(value), clientY ?? rect.top + box.top + 20, `${spec.xName} ${neat(value)}`,
        lines.map((l) => ({ name: l.name, colour: l.colour, value: spec.format(l.ys[nearest(l, value)]) })));
    }
    function away() { at = null; cursor.replaceChildren(); Tip.hide(); }
    const cursor = svg("g", {});
    const marks = svg("g", { "clip-path": `url(#${clip})` });
    redraw = () => {
      marks.replaceChildren(...(spec.area ? [svg("path", { class: "mark area", d: `${path(spec.area.xs, spec.area.ys.map((v) => spec.y[0] + v * (spec.y[1] - spec.y[0])))}L${x(spec.x[1])},${box.bottom}L${x(spec.x[0])},${box.bottom}Z`, style: "fill:var(--back)" })] : []),
        ...(spec.verticals || []).map((v) => svg("line", { x1: x(v), x2: x(v), y1: box.top, y2: box.bottom, style: "stroke:var(--muted);stroke-dasharray:5 4" })),
        ...spec.lines.filter((l) => !hidden.has(l)).map((l) => svg("path", { class: "mark line", d: path(l.xs, l.ys), style: `fill:none;stroke:${l.colour};stroke-width:${l.width || 2};stroke-dasharray:${l.dash || "none"};opacity:${l.opacity || 1};stroke-linejoin:round` })),
        ...spec.lines.filter((l) => l.ranges && !hidden.has(l)).flatMap((l) => l.xs.map((v, i) => svg("path", { d: `M${x(v)},${y(l.ranges[i][0])}V${y(l.ranges[i][1])}`, style: `stroke:${l.colour};stroke-width:1.2;opacity:.6` }))),
        ...spec.lines.filter((l) => l.ranges && !hidden.has(l)).flatMap((l) => l.xs.map((v, i) => svg("circle", { cx: x(v), cy: y(l.ys[i]), r: 3.5, style: `fill:${l.colour}` }))));
    };
    redraw();
    const wantedX = Math.max(2, Math.floor(width / 90));
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, tabindex: 0, role: "img", "aria-label": `${spec.title}. ${spec.caption} Arrow keys move along the chart.`,
      onpointermove: (event) => {
        const value = spec.x[0] + ((event.clientX - picture.getBoundingClientRect().left - box.left) / (box.right - box.left)) * (spec.x[1] - spec.x[0]);
        if (value < spec.x[0] || value > spec.x[1]) away(); else point(spec.whole ? Math.round(value) : Number(value.toFixed(2)), event.clientX, event.clientY);
      },
      onpointerleave: away, onblur: away,
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[event.key];
        if (event.key === "Escape") away();
        if (!step) return;
        event.preventDefault();
        const unit = spec.whole ? Math.max(1, Math.round((spec.x[1] - spec.x[0]) / 50)) : (spec.x[1] - spec.x[0]) / 40;
        point(Number(Math.min(spec.x[1], Math.max(spec.x[0], (at ?? spec.x[0] - unit) + step * unit)).toFixed(6)));
      } },
      svg("clipPath", { id: clip }, svg("rect", { x: box.left, y: box.top - 2, width: box.right - box.left, height: box.bottom - box.top + 4 })),
      svg("g", { class: "axis" },
        ticks(...spec.y, 5).map((v) => [svg("line", { class: "gridline", x1: box.left, x2: box.right, y1: y(v), y2: y(v) }), svg("text", { x: box.left - 6, y: y(v) + 4, "text-anchor": "end" }, spec.format(v))])),
      marks,
      svg("g", { class: "axis" },
        ticks(...spec.x, wantedX).map((v) => [svg("line", { x1: x(v), x2: x(v), y1: box.bottom, y2: box.bottom + 5 }), svg("text", { x: x(v), y: box.bottom + 18, "text-anchor": "middle" }, neat(v))]),
        svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
        svg("text", { class: "title", x: (box.left + box.right) / 2, y: height - 4, "text-anchor": "middle" }, spec.xLabel),
        svg("text", { class: "title", x: 4, y: 12 }, spec.yLabel)),
      cursor);
    holder.replaceChildren(picture);
  });
}

// Bars with intervals: accuracy by homophily.
function barChart(host, spec) {
  const holder = el("div", {});
  host.append(el("h3", {}, spec.title), holder, el("figcaption", {}, spec.caption), spec.numbers || "");
  responsive(host, (width) => {
    const height = Math.round(Math.min(330, Math.max(240, width * 0.55)));
    const box = { left: 46, right: width - 6, top: 22, bottom: height - 56 };
    const slot = (box.right - box.left) / spec.bars.length;
    const y = (v) => box.bottom - v * (box.bottom - box.top);
    const small = slot < 76;
    holder.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `${spec.title}. ${spec.caption}` },
      svg("g", { class: "axis" }, [0, 0.25, 0.5, 0.75, 1].map((v) => [svg("line", { class: "gridline", x1: box.left, x2: box.right, y1: y(v), y2: y(v) }), svg("text", { x: box.left - 6, y: y(v) + 4, "text-anchor": "end" }, percent(v, 0))])),
      spec.bars.map((bar, i) => {
        const middle = box.left + (i + 0.5) * slot;
        const thick = Math.min(slot * 0.62, 90);
        const label = [svg("text", { x: middle, y: box.bottom + 17, "text-anchor": "middle", style: small ? "font-size:10px" : "" }, small ? bar.label.replace(", ", "–").replace(/[[\])]/g, "").replace("no neighbour", "alone") : bar.label),
          svg("text", { x: middle, y: box.bottom + 32, "text-anchor": "middle", style: small ? "font-size:10px" : "" }, small ? `${bar.nodes}` : plural(bar.nodes, "node"))];
        if (!bar.nodes) return label;
        const tell = (event) => Tip.show(event.clientX, event.clientY, `β in ${bar.label}`, [{ name: "accuracy", value: percent(bar.accuracy) }, { name: "95 % interval", value: `${percent(bar.low, 0)} to ${percent(bar.high, 0)}` }, { name: "test nodes", value: String(bar.nodes) }]);
        const top = Math.min(y(bar.high), y(bar.accuracy)) - 6;
        return svg("g", { onpointermove: tell, onpointerleave: Tip.hide },
          svg("rect", { class: "mark bar", x: middle - thick / 2, width: thick, y: y(bar.accuracy), height: Math.max(1, box.bottom - y(bar.accuracy)), rx: 4, style: "fill:var(--accent);opacity:.85" }),
          svg("path", { d: `M${middle},${y(bar.low)}V${y(bar.high)}M${middle - 5},${y(bar.high)}h10M${middle - 5},${y(bar.low)}h10`, style: "stroke:var(--ink);stroke-width:1.4;fill:none" }),
          svg("text", { class: "title", x: middle, y: top, "text-anchor": "middle", style: "font-weight:600" }, percent(bar.accuracy, 0)), label);
      }),
      svg("g", { class: "axis" }, svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }),
        svg("text", { class: "title", x: (box.left + box.right) / 2, y: height - 6, "text-anchor": "middle" }, small ? "β of the node, and number of test nodes" : spec.xLabel))));
  });
}

// Shares that sum to one, a bar per head: attention distance. Blue is near, red is far.
const HOP_COLOURS = ["#8d97a3", "#2b6cb0", "#6aaed6", "#b9d8ea", "#fbd0b5", "#ee8a5f", "#b0233a"];
const HOP_INK = ["#000", "#fff", "#000", "#000", "#000", "#000", "#fff"];
function stackedBars(host, spec) {
  const holder = el("div", {});
  host.append(el("h3", {}, spec.title), holder, el("div", { class: "legend" }, spec.parts.map((name, i) => el("span", { class: "key" }, swatch(HOP_COLOURS[i]), name))), el("figcaption", {}, spec.caption), spec.numbers || "");
  responsive(host, (width) => {
    const narrow = width < 520; // then a name stands above its bar
    const longest = Math.max(...spec.rows.map((row) => row.name.length));
    const box = { left: narrow ? 12 : 16 + 6.6 * longest, right: width - 12, top: 4 };
    const thick = 20, gap = narrow ? 24 : 7, extra = 14;
    let y = box.top + (narrow ? 17 : 0);
    const rows = spec.rows.map((row, i) => {
      if (i && row.layer !== spec.rows[i - 1].layer) y += extra;
      const place = { ...row, y };
      y += thick + gap;
      return place;
    });
    const bottom = narrow ? y - 17 : y;
    const x = (v) => box.left + v * (box.right - box.left);
    holder.replaceChildren(svg("svg", { viewBox: `0 0 ${width} ${bottom + 38}`, height: bottom + 38, role: "img", "aria-label": `${spec.title}. ${spec.caption}` },
      svg("g", { class: "axis" }, (narrow ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]).map((v) => [svg("line", { class: "gridline", x1: x(v), x2: x(v), y1: box.top, y2: bottom }), svg("text", { x: x(v), y: bottom + 16, "text-anchor": v === 1 ? "end" : narrow && v === 0 ? "start" : "middle" }, percent(v, 0))])),
      rows.map((row) => {
        let start = 0;
        return [svg("text", { class: "title", x: narrow ? box.left : box.left - 8, y: row.y + (narrow ? -5 : 14.5), "text-anchor": narrow ? "start" : "end" }, row.name), row.shares.map((share, i) => {
          const from = start;
          start += share;
          if (share <= 0) return null;
          const wide = x(start) - x(from);
          return svg("g", { onpointermove: (event) => Tip.show(event.clientX, event.clientY, row.name, [{ name: spec.parts[i], colour: HOP_COLOURS[i], value: percent(share) }]), onpointerleave: Tip.hide },
            svg("rect", { class: "mark part", x: x(from), width: Math.max(0.5, wide), y: row.y, height: thick, style: `fill:${HOP_COLOURS[i]};stroke:var(--card);stroke-width:1` }),
            wide > 36 ? svg("text", { x: x(from) + wide / 2, y: row.y + 14.5, "text-anchor": "middle", style: `fill:${HOP_INK[i]};font-size:11px;pointer-events:none` }, percent(share, 0)) : null);
        })];
      }),
      svg("text", { class: "title", x: (box.left + box.right) / 2, y: bottom + 34, "text-anchor": "middle" }, spec.xLabel)));
  });
}

// Test nodes by class and prediction, as a real table.
function matrix(host, counts, names) {
  const body = counts.map((row, i) => {
    const total = row.reduce((a, b) => a + b, 0);
    return el("tr", {}, el("th", { scope: "row", class: "side", title: names[i] }, names[i]), row.map((number, j) => {
      const share = total ? number / total : 0;
      const shade = number ? (i === j ? 10 : 25) + (i === j ? 80 : 60) * share : 0;
      const colour = i === j ? "var(--accent)" : "var(--warning)";
      return el("td", { class: number ? "mark" : "", title: `class ${names[i]}, predicted ${names[j]}: ${number} of ${total}`, style: `background:color-mix(in srgb, ${colour} ${shade.toFixed(0)}%, var(--grid));${shade > 50 ? "color:var(--card)" : number ? "" : "color:var(--muted)"}` },
        String(number), number ? el("small", {}, percent(share, 0)) : null);
    }));
  });
  host.append(el("h3", {}, "Confusion matrix"), el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Confusion matrix" }, el("table", { class: "matrix" },
    el("thead", {}, el("tr", {}, el("th", { class: "corner" }, "class ↓ predicted →"), names.map((name) => el("th", { scope: "col", title: name }, name)))), el("tbody", {}, body))),
    el("figcaption", {}, "Test nodes by class (rows) and prediction (columns), with their share of the class. Blue is right, orange is wrong."));
}
