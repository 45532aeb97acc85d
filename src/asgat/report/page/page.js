// Fills the sections from DATA.
function themes() {
  const order = ["auto", "light", "dark"];
  let now = "auto";
  try { now = localStorage.getItem("asgat-theme") || "auto"; } catch { /* a page from a file may have no storage */ }
  const apply = () => {
    if (now === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = now;
    $("theme").textContent = `Theme: ${now}`;
  };
  $("theme").addEventListener("click", () => {
    now = order[(order.indexOf(now) + 1) % 3];
    try { localStorage.setItem("asgat-theme", now); } catch { /* then it is forgotten */ }
    apply();
  });
  apply();
}

function summary() {
  $("tiles").append(...DATA.summary.map((tile) => el("div", { class: "tile" }, el("span", { class: "label" }, tile.label), el("span", { class: "value" }, tile.value), el("span", { class: "small" }, tile.note))));
  const signs = { good: "✓", note: "i", warning: "!" };
  $("health").append(...DATA.health.map((found) => el("li", { class: found.level }, el("span", { class: "sign", role: "img", "aria-label": found.level }, signs[found.level]), el("span", {}, el("strong", {}, `${found.about}: `), found.text))));
  $("settings-body").append(...Object.entries({ ...DATA.settings, ...Object.fromEntries(Object.entries(DATA.versions).map(([k, v]) => [`${k} version`, v])) })
    .map(([key, value]) => el("div", {}, el("span", {}, key), el("span", {}, String(value)))));
}

function leaderboard() {
  const held = DATA.leaderboard;
  if (!held) return leaveOut("leaderboard");
  $("leaderboard-card").append(el("h3", {}, capital(held.unit)), el("ul", { class: "sentences" }, held.sentences.map((text) => el("li", {}, text))),
    dataTable("Leaderboard", held.headings, held.cells, held.chosen),
    el("p", { class: "lead", style: "margin:.6rem 0 0" }, held.caption),
    held.notes.length ? el("details", { class: "numbers" }, el("summary", {}, "Models that were not trained to the end"), el("ul", {}, held.notes.map((text) => el("li", {}, text)))) : "");
}

function nextSteps() {
  if (!DATA.next_steps.length) return leaveOut("next");
  $("next-steps").append(...DATA.next_steps.map((step) => el("li", {}, step.text, step.command ? [" ", el("code", {}, step.command)] : null)));
}

function training(chosen) {
  const runs = DATA.curves;
  if (!runs.length) return leaveOut("training");
  const run = runs.find((r) => r.run === chosen) || runs[0];
  const others = runs.filter((r) => r !== run);
  const last = Math.max(...runs.map((r) => r.epoch.at(-1)));
  const losses = [...run.train_loss, ...run.val_loss].sort((a, b) => a - b);
  const top = 1.12 * losses[Math.floor(0.985 * (losses.length - 1))] || 1;
  const faint = (key) => others.map((r) => ({ xs: r.epoch, ys: r[key], colour: "var(--muted)", width: 1, opacity: 0.35 }));
  const common = { x: [1, Math.max(last, 2)], xLabel: "epoch", xName: "epoch", whole: true, verticals: [run.best_epoch], keys: [{ name: `kept epoch ${run.best_epoch}`, colour: "var(--muted)", dash: "5 4" }, ...(others.length ? [{ name: "other runs", colour: "var(--back)" }] : [])] };
  for (const id of ["loss", "score"]) $(id).replaceChildren();
  const rows = (...keys) => run.epoch.map((e, i) => [e, ...keys.map((k) => neat(run[k][i]))]);
  lineChart($("loss"), { ...common, title: `Loss, run ${run.run}`, y: [0, top], yLabel: "cross-entropy", format: neat, caption: "On training nodes (with dropout) and on validation nodes, by epoch; clipped where it is far above the rest.", numbers: numbers(["epoch", "training", "validation"], rows("train_loss", "val_loss")),
    lines: [...faint("val_loss"), { name: "training loss", xs: run.epoch, ys: run.train_loss, colour: "var(--h1)" }, { name: "validation loss", xs: run.epoch, ys: run.val_loss, colour: "var(--h4)" }] });
  const least = Math.min(...runs.flatMap((r) => r.val_score));
  lineChart($("score"), { ...common, title: `Validation score, run ${run.run}`, y: [Math.max(0, Math.floor(10 * least - 0.3) / 10), 1], yLabel: "score", format: (v) => percent(v, 0), caption: "Share of validation nodes that are right (or the area under the ROC curve, where that is the measure), by epoch.", numbers: numbers(["epoch", "score"], rows("val_score")),
    lines: [...faint("val_score"), { name: "validation score", xs: run.epoch, ys: run.val_score, colour: "var(--h4)" }] });
}

function runChoice() {
  if (DATA.curves.length < 2) return;
  const choice = el("select", { onchange: () => training(Number(choice.value)) }, DATA.curves.map((r) => el("option", { value: r.run, selected: r.run === DATA.kept_run }, `run ${r.run}${r.run === DATA.kept_run ? " (the model shown here)" : ""}${r.restarts ? `, after ${plural(r.restarts, "restart")}` : ""}`)));
  $("run-choice").append(el("label", { class: "field", style: "margin-bottom:.6rem;max-width:20rem" }, "Run", choice));
}

const MOST_CURVES = 8; // of a chart, and a fourth of the bars of one
function filters() {
  const held = DATA.filters;
  if (!held) return leaveOut("filters");
  const densest = [...held.density].sort((a, b) => a - b)[Math.floor(0.97 * held.density.length)] || 1;
  const draw = (place, heads, layer, kind, looks) => {
    const values = heads.flatMap((h) => h.response);
    const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
    const pad = 0.06 * (high - low || 1);
    const counted = {};
    for (const h of heads) counted[h.character] = (counted[h.character] || 0) + 1;
    const listed = Object.entries(counted).sort((a, b) => b[1] - a[1]).map(([name, n]) => `${n} ${name}`).join(", ");
    const host = el("figure", { class: "card", id: `${place}-${layer}` });
    $(`${place}-charts`).append(host);
    lineChart(host, { title: `${capital(LAYER)} ${layer + 1}: ${plural(heads.length, `${kind}head`)}`, x: [0, 2], y: [low < 0 ? low - pad : 0, high + pad], xLabel: "frequency λ", xName: "λ =", yLabel: "response g(λ)", format: neat, caption: `Response g(λ) of every head: ${listed}.${kind === "filter " ? " The sign of a filter is free; it is drawn so that the largest size is positive." : ""} Grey: density of the graph’s eigenvalues.${heads.length > MOST_CURVES ? ` The first ${MOST_CURVES} are drawn; the buttons add others.` : ""}`,
      area: { xs: held.frequency, ys: held.density.map((d) => Math.min(1, (0.62 * d) / densest)) }, keys: [{ name: "eigenvalues", colour: "var(--back)" }],
      numbers: numbers(["λ", ...heads.map((_, i) => `head ${i + 1}`)], [...held.frequency.map((f, i) => [f, ...heads.map((h) => neat(h.response[i]))]).filter((_, i) => i % 10 === 0),
        ...(heads[0].bands || []).map((_, b) => [`share of ${DATA.bands[b].name} frequencies`, ...heads.map((h) => percent(h.bands[b], 0))])]),
      lines: heads.map((h, head) => ({ name: `${head + 1} ${h.character}`, off: head >= MOST_CURVES, xs: held.frequency, ys: h.response, ...looks(head) })) });
  };
  held.layers.forEach((heads, layer) => draw("filter", heads, layer, held.filter_layers.length ? "attention " : "", (head) => pick(headOf(layer, head))));
  $("filter-heads").hidden = !held.filter_layers.length;
  held.filter_layers.forEach((heads, layer) => draw("filter-head", heads, layer, "filter ", look));
}
const pick = (head) => ({ colour: head.colour, dash: head.dash });

function accuracy() {
  barChart($("homophily"), { title: "Accuracy by homophily β of a node", bars: DATA.homophily, xLabel: "β of the node: share of its neighbours that are of its class", caption: "Share of test nodes that are right, with 95 % intervals. Bars on the left: neighbours are of other classes.",
    numbers: numbers(["β", "test nodes", "right", "95 % interval"], DATA.homophily.map((b) => [b.label, b.nodes, b.nodes ? percent(b.accuracy) : "–", b.nodes ? `${percent(b.low)} to ${percent(b.high)}` : "–"])) });
  matrix($("confusion"), DATA.confusion, DATA.classes);
  const share = (value) => (value === null ? "–" : percent(value));
  if (!DATA.calibration) return;
  $("class-scores").append(el("h3", {}, "Precision and recall of every class"), dataTable("Precision and recall of every class", ["class", "nodes", "precision", "recall", "F1"],
    DATA.class_scores.map((row) => [row.class, row.nodes, share(row.precision), share(row.recall), share(row.f1)])),
    el("figcaption", {}, "On test nodes. Precision: share of the nodes predicted as a class that are of it. Recall: share of its nodes that are predicted so. F1 is their harmonic mean."));
  const { bins, error } = DATA.calibration;
  const low = Math.min(...bins.map((b) => b.probability)) > 0.5 ? 0.5 : 0;
  lineChart($("calibration"), { title: `Calibration: error ${percent(error)}`, x: [low, 1], y: [0, 1], xLabel: "probability of the prediction", xName: "probability", yLabel: "share that is right", format: (v) => percent(v, 0), caption: "Test nodes in bins by the probability of their prediction: how often they are right, with 95 % intervals. On the dashed line a probability of 80 % is right in 80 % of cases; below it the model is too sure. The error is the mean distance from the line, over nodes.",
    numbers: numbers(["probability", "test nodes", "right", "95 % interval"], bins.map((b) => [percent(b.probability), b.nodes, percent(b.accuracy), `${percent(b.low)} to ${percent(b.high)}`])),
    keys: [{ name: "perfect calibration", colour: "var(--muted)", dash: "5 4" }],
    lines: [{ xs: [low, 1], ys: [low, 1], colour: "var(--muted)", dash: "5 4", width: 1.4 }, { name: "model", xs: bins.map((b) => b.probability), ys: bins.map((b) => b.accuracy), ranges: bins.map((b) => [b.low, b.high]), colour: "var(--h4)" }] });
}

function distances() {
  const held = DATA.distance;
  if (!held) return leaveOut("distance");
  const rows = held.layers.flatMap((heads, layer) => heads.map((shares, i) => {
    const head = Math.floor(i / SIDES.length), side = SIDES[i % SIDES.length], character = headOf(layer, head).character;
    return { layer, shares, side, name: `${headName(layer, head)} ${character}${side && `, ${side}`}` };
  }));
  const many = rows.length > 4 * MOST_CURVES; // then a bar is the mean over the heads of a layer
  const bars = !many ? rows : held.layers.flatMap((_, layer) => SIDES.map((side) => {
    const mine = rows.filter((row) => row.layer === layer && row.side === side);
    return { layer, name: `${LAYER} ${layer + 1}${side && `, ${side}`}`, shares: held.hops.map((_, i) => mine.reduce((sum, row) => sum + row.shares[i], 0) / mine.length) };
  }));
  const sampled = held.nodes < held.total ? `a random sample of ${held.nodes.toLocaleString("en")} of ${held.total.toLocaleString("en")} nodes` : `all ${held.total.toLocaleString("en")} nodes`;
  stackedBars($("distance-chart"), { title: "Where the attention goes", rows: bars, parts: held.hops.map((h, i) => (i === 0 || i === 6 ? h : i === 1 ? "1 hop" : `${h} hops`)), xLabel: "share of attention by distance in edges", caption: `${many ? `Every bar is the mean over the heads of a ${LAYER}; the numbers have each head. ` : ""}Mean attention weight by number of edges between a node and the nodes it attends to, over ${sampled}. ${DATA.sides ? "Every head attends from two sides of a node: out, as the source of its edges, and in, as the target of edges; distances ignore directions. " : ""}A graph convolution of one layer never leaves the first two colours.`,
    numbers: numbers(["head", ...held.hops], rows.map((row) => [row.name, ...row.shares.map((s) => percent(s))])) });
}

themes();
summary();
leaderboard();
nextSteps();
runChoice();
training(DATA.kept_run);
filters();
accuracy();
distances();
explorer();
