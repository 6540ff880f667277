"use strict";
/* The page of a report. All that is seen is built here from the document in #document; a Run's texts are set as text
 * nodes only (el, text), never as markup. One Run is drawn at a time; what is chosen stands in the address's fragment. */
(function () {
  const data = JSON.parse(document.getElementById("document").textContent);
  const page = document.getElementById("page");
  const SVG = "http://www.w3.org/2000/svg";
  const state = { run: 0, submission: 0, tab: "diff", axis: "submission" };

  /* --- building blocks --- */

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === undefined || value === null || value === false) continue;
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else node.setAttribute(name, value === true ? "" : value);
    }
    for (const child of children) {
      if (child === null || child === undefined) continue;
      node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return node;
  }
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

  function number(value, digits) {
    if (value === null || value === undefined || !isFinite(value)) return "-";
    if (Number.isInteger(value)) return String(value);
    return String(Number(value.toPrecision(digits || 5)));
  }
  function duration(seconds) {
    if (seconds === null || seconds === undefined) return "-";
    if (seconds < 1) return Math.round(seconds * 1000) + " ms";
    if (seconds < 90) return number(seconds, 3) + " s";
    if (seconds < 5400) return Math.floor(seconds / 60) + " min " + Math.round(seconds % 60) + " s";
    return number(seconds / 3600, 3) + " h";
  }
  function when(unixNs) {
    return unixNs > 0 ? new Date(unixNs / 1e6).toISOString().replace("T", " ").slice(0, 16) + " UTC" : "-";
  }
  const plural = (count, word) => count + " " + word + (count === 1 ? "" : "s");

  /* A roomy scale: ticks at 1, 2 or 5 times a power of ten. */
  function ticks(low, high, wanted) {
    const raw = (high - low) / wanted || 1;
    const power = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
    const out = [];
    for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i++) out.push(i * step);
    return out;
  }

  /* --- what a Run is --- */

  function facts(one) {
    const run = one.run, config = one.config;
    const agent = [run.agent.provider, run.agent.model].filter(Boolean).join(", ");
    const usage = run.usage, least = usage.lower_bound ? "at least " : "";
    const rows = [
      ["State", run.state.replace(/_/g, " ")],
      ["Agent", agent || "-"],
      ["Metric", (run.benchmark.primary_metric || "-") + (run.benchmark.score_direction ? ", " + run.benchmark.score_direction : "")],
      ["Submissions", run.submissions.total + (run.submissions.failed ? ", " + run.submissions.failed + " failed" : "")],
      ["Episodes spent", run.episodes_used + " of " + run.episode_budget],
      ["Policy failures", run.policy_failures],
      ["Best in training", bestText(one)],
      ["Selected", run.final_submission_id || "none"],
      ["Validation", validationText(one)],
      ["Assessment", run.assessment ? number(run.assessment.score) + " (" + plural(run.assessment.episodes, "Episode") + ")" : config.assessment ? "not reached" : "none"],
      ["Started", when(run.started_unix_ns)],
      ["Time", duration(run.wall_seconds)],
      ["Tokens", usage.tokens === null ? "not told" : least + usage.tokens],
      ["Cost", usage.cost_usd === null ? "not told" : least + "$" + number(usage.cost_usd, 4)],
    ];
    const wide = [
      ["Benchmark", run.benchmark.id],
      ["Environment digest", run.benchmark.environment_digest],
      ["Contained", containedText(one.contained)],
    ];
    const list = el("dl", { class: "facts" });
    for (const [name, value] of rows) list.append(el("div", null, el("dt", null, name), el("dd", null, value)));
    for (const [name, value] of wide) list.append(el("div", { class: "wide" }, el("dt", null, name), el("dd", { class: name === "Contained" ? "" : "mono" }, value)));
    const box = el("section", { "aria-labelledby": "facts-title" }, el("h2", { id: "facts-title" }, "What was run"), list);
    if (one.contained.policies === "process" || one.contained.agent === "process") {
      const who = [one.contained.policies === "process" && "Policies", one.contained.agent === "process" && "the Agent"].filter(Boolean).join(" and ");
      box.append(el("p", { class: "notice" }, "Not contained: " + who + " ran with all rights of the user (profile process)."));
    }
    if (one.agent_error && one.agent_error.message) {
      box.append(el("p", { class: "notice" }, "The Agent's error (" + one.agent_error.kind + "): " + one.agent_error.message));
    }
    const cut = withoutText(one.without);
    if (cut) box.append(el("p", { class: "notice" }, "Left out to keep this file small: " + cut + "."));
    return box;
  }
  function bestText(one) {
    const best = one.submissions.find((s) => s.facts.best);
    return best ? number(best.facts.score) + " (#" + best.number + ")" : "-";
  }
  function validationText(one) {
    const measures = one.run.validation.filter(Boolean);
    if (!measures.length) return one.config.validation ? "not reached" : "none";
    const chosen = measures.find((m) => m.submission_id === one.run.final_submission_id) || measures[0];
    return number(chosen.score) + " (" + plural(chosen.episodes, "Episode") + ", " + plural(measures.length, "candidate") + ")";
  }
  function containedText(contained) {
    const tree = contained.tree;
    const told = "Policies: " + (contained.policies || "not told") + ". Agent: " + (contained.agent || "not told") + ".";
    if (!tree) return told;
    return told + (tree.complete ? " Every process of the Agent's was ended" : " Not every process of the Agent's could be accounted for") +
      " (" + (tree.left_behind || 0) + " left behind, " + (tree.killed || 0) + " killed).";
  }
  function withoutText(without) {
    const parts = [];
    if (without.submissions) parts.push(plural(without.submissions, "submission"));
    if (without.diffs) parts.push("the end of " + plural(without.diffs, "diff"));
    if (without.feedback) parts.push("the end of " + plural(without.feedback, "Feedback"));
    if (without.episodes) parts.push(plural(without.episodes, "Episode") + " of the strip");
    if (without.replays) parts.push("replays of " + plural(without.replays, "submission"));
    if (without.events) parts.push(plural(without.events, "event") + " of the timeline");
    return parts.join(", ");
  }

  /* --- the curve --- */

  function points(one) {
    let best = null, seen = 0;
    const lower = one.run.benchmark.score_direction === "minimize";
    const known = one.run.benchmark.score_direction !== null;
    return one.submissions.map((s) => {
      const score = s.facts.score;
      seen = one.run.episode_budget - s.facts.episodes_remaining;
      if (score !== null && known && (best === null || (lower ? score < best : score > best))) best = score;
      return { number: s.number, score, best, spent: seen, failed: s.facts.state === "failed" };
    });
  }
  const validationOf = (one) => one.run.validation.filter(Boolean).map((m) => ({ number: Number(m.submission_id.split("-")[1]), score: m.score }));

  function mark(shape) {
    const inner = {
      score: () => [svg("path", { d: "M0 9H22", class: "trail" }), svg("circle", { cx: 11, cy: 7, r: 3.5, class: "dots" })],
      best: () => [svg("path", { d: "M1 11H11V4H21", class: "bestline" })],
      failed: () => [svg("path", { d: "M7 3l8 8m0-8l-8 8", class: "failed" })],
      validation: () => [svg("path", { d: "M11 1l6 6-6 6-6-6z", class: "validation" })],
      assessment: () => [svg("path", { d: "M0 7H22", class: "assessment" })],
    }[shape]();
    return svg("svg", { viewBox: "0 0 22 14", "aria-hidden": "true" }, ...inner);
  }

  function curve(one) {
    const holder = el("div", { class: "chart" });
    const axisButtons = [["submission", "By submission"], ["spent", "By Episodes spent"]].map(([axis, text]) =>
      el("button", { type: "button", "aria-pressed": String(state.axis === axis), onclick: () => { state.axis = axis; axisButtons.forEach((b, i) => b.setAttribute("aria-pressed", String((i === 0) === (axis === "submission")))); draw(); } }, text));
    const shapes = [["score", "score in training"], ["best", "best so far"]];
    if (one.submissions.some((s) => s.facts.state === "failed")) shapes.push(["failed", "failed submission"]);
    if (one.run.validation.some(Boolean)) shapes.push(["validation", "Validation of a candidate"]);
    if (one.run.assessment) shapes.push(["assessment", "Assessment (held out) of the selected"]);
    function draw() { holder.replaceChildren(drawCurve(one, Math.max(300, holder.clientWidth || 700))); }
    one.redraw.push(draw);
    return el("section", { "aria-labelledby": "curve-title" }, el("h2", { id: "curve-title" }, "Scores"),
      el("div", { class: "row", role: "group", "aria-label": "Horizontal axis" }, ...axisButtons), holder,
      el("ul", { class: "legend" }, ...shapes.map(([shape, text]) => el("li", null, mark(shape), text))),
      scoreTable(one));
  }

  function drawCurve(one, width) {
    const all = points(one), validation = validationOf(one), held = one.run.assessment ? one.run.assessment.score : null;
    const height = width < 500 ? 260 : 340, left = 54, right = 14, top = 14, bottom = 40;
    const values = all.map((p) => p.score).concat(validation.map((v) => v.score), [held]).filter((v) => v !== null);
    let low = values.length ? Math.min(...values) : 0, high = values.length ? Math.max(...values) : 1;
    if (low === high) { low -= 1; high += 1; }
    const pad = (high - low) * 0.06;
    low -= pad; high += pad;
    const place = (p) => (state.axis === "submission" ? p.number : p.spent);
    const firstX = state.axis === "submission" ? 1 : 0, lastX = Math.max(firstX + 1, ...all.map(place));
    const x = (v) => left + 8 + ((v - firstX) / (lastX - firstX)) * (width - left - right - 16);
    const y = (v) => top + ((high - v) / (high - low)) * (height - top - bottom);
    const summary = "Scores of " + plural(all.length, "submission") + "; best in training " + bestText(one) + (held === null ? "" : "; Assessment " + number(held)) + ". The table below tells each.";
    const root = svg("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": summary });
    for (const tick of ticks(low, high, 5)) {
      root.append(svg("path", { class: "axis", d: "M" + left + " " + y(tick) + "H" + (width - right) }), svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, number(tick, 4)));
    }
    for (const tick of ticks(firstX, lastX, width < 500 ? 4 : 8).filter(Number.isInteger)) {
      root.append(svg("text", { x: x(tick), y: height - bottom + 18, "text-anchor": "middle" }, tick));
    }
    root.append(svg("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, state.axis === "submission" ? "submission" : "Episodes spent"));
    const scored = all.filter((p) => p.score !== null);
    const path = (list, value, step) => list.map((p, i) => (i === 0 ? "M" + x(place(p)) + " " + y(value(p)) : (step ? "H" + x(place(p)) + "V" + y(value(p)) : "L" + x(place(p)) + " " + y(value(p))))).join("");
    root.append(svg("path", { class: "trail", d: path(scored, (p) => p.score, false) }));
    const withBest = scored.filter((p) => p.best !== null);
    root.append(svg("path", { class: "bestline", d: path(withBest, (p) => p.best, true) }));
    const radius = scored.length > 120 ? 2 : 3.2;
    for (const p of scored) root.append(svg("circle", { class: "dots", cx: x(place(p)), cy: y(p.score), r: radius }));
    for (const p of all.filter((q) => q.failed)) root.append(svg("path", { class: "failed", d: "M" + (x(place(p)) - 4) + " " + (height - bottom - 8) + "l8 8m0-8l-8 8" }));
    if (held !== null) {
      root.append(svg("path", { class: "assessment", d: "M" + left + " " + y(held) + "H" + (width - right) }), svg("text", { class: "heldtext", x: left + 6, y: y(held) + (y(held) < top + 20 ? 16 : -6) }, "Assessment " + number(held)));
    }
    for (const v of validation) {
      const at = all.find((p) => p.number === v.number);
      if (at) root.append(svg("path", { class: "validation", d: "M" + x(place(at)) + " " + (y(v.score) - 7) + "l7 7-7 7-7-7z" }, svg("title", null, "Validation of #" + v.number + ": " + number(v.score))));
    }
    const chosen = all[state.submission];
    if (chosen) root.append(svg("path", { class: "cursor", d: "M" + x(place(chosen)) + " " + top + "V" + (height - bottom) }));
    root.addEventListener("click", (event) => {
      const at = ((event.clientX - root.getBoundingClientRect().left) / root.getBoundingClientRect().width) * width;
      let nearest = 0;
      all.forEach((p, i) => { if (Math.abs(x(place(p)) - at) < Math.abs(x(place(all[nearest])) - at)) nearest = i; });
      choose(nearest);
    });
    return root;
  }

  function scoreTable(one) {
    const details = el("details", null, el("summary", null, "All submissions as a table"));
    details.addEventListener("toggle", () => {
      if (!details.open || details.childElementCount > 1) return;
      const validation = new Map(validationOf(one).map((v) => [v.number, v.score]));
      const body = el("tbody");
      one.submissions.forEach((s, i) => body.append(el("tr", null,
        el("td", { class: "t" }, el("button", { type: "button", onclick: () => { choose(i); document.getElementById("submission-title").scrollIntoView(); } }, "#" + s.number)),
        el("td", null, number(s.facts.score)), el("td", null, s.facts.change === null ? "" : (s.facts.change > 0 ? "+" : "") + number(s.facts.change)),
        el("td", null, validation.has(s.number) ? number(validation.get(s.number)) : ""), el("td", null, s.facts.episodes),
        el("td", null, s.facts.policy_failures === null ? "-" : s.facts.policy_failures), el("td", null, duration(s.facts.seconds)), el("td", { class: "t" }, s.facts.state))));
      details.append(el("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": "Table of submissions" }, el("table", null, el("thead", null, el("tr", null,
        ...["Submission", "Score", "Change", "Validation", "Episodes", "Failures", "Time", "State"].map((name, i) => el("th", { scope: "col", class: i === 0 || i === 7 ? "t" : "" }, name)))), body)));
    });
    return details;
  }

  /* --- the strip: a row a submission, a column an Episode index --- */

  const STRIP_WIDEST = 12000;
  function strip(one) {
    const columns = [...new Set(one.submissions.flatMap((s) => s.episodes.indices))].sort((a, b) => a - b);
    const readout = el("p", { class: "small", "aria-live": "polite" }, "Choose a cell, or focus the strip and use the arrow keys; Enter shows the submission.");
    const canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "Episodes of every submission: " + plural(one.submissions.length, "row") + ", " + plural(columns.length, "column") + " of Episode indices. Arrow keys read cells out." });
    const holder = el("div", { class: "scroll strip tall" }, canvas);
    const cursor = { row: state.submission, column: 0 };
    const rewards = one.submissions.flatMap((s) => s.episodes.rewards);
    const low = rewards.reduce((a, b) => Math.min(a, b), Infinity), high = rewards.reduce((a, b) => Math.max(a, b), -Infinity);
    const failures = one.submissions.map((s) => new Map(s.episodes.failures));
    const placeOf = new Map(columns.map((index, i) => [index, i]));
    const gutter = 44, header = 22;
    let wide = 4, tall = 8;
    function layout() {
      const room = Math.max(240, holder.clientWidth || 700) - gutter - 4;
      wide = Math.max(3, Math.min(26, Math.floor(room / Math.max(1, columns.length))));
      tall = one.submissions.length <= 30 ? 18 : one.submissions.length <= 80 ? 12 : 7;
    }
    function draw() {
      layout();
      const shown = Math.min(columns.length, Math.floor(STRIP_WIDEST / wide));
      const ratio = Math.min(2, window.devicePixelRatio || 1), w = gutter + shown * wide + 2, h = header + one.submissions.length * tall + 2;
      const scale = w * h * ratio * ratio > 3e7 ? 1 : ratio;
      canvas.width = w * scale; canvas.height = h * scale;
      canvas.style.width = w + "px"; canvas.style.height = h + "px";
      const c = canvas.getContext("2d");
      c.scale(scale, scale);
      c.font = "11px system-ui, sans-serif";
      c.textBaseline = "middle";
      const accent = colour("accent"), bad = colour("bad"), card = colour("card"), faint = colour("faint");
      c.fillStyle = colour("empty");
      c.fillRect(gutter, header, shown * wide, one.submissions.length * tall);
      const gap = wide > 5 ? 1 : 0, rowGap = tall > 8 ? 2 : 1;
      one.submissions.forEach((s, row) => {
        const y = header + row * tall;
        s.episodes.indices.forEach((index, i) => {
          const column = placeOf.get(index), failure = failures[row].get(i), x = gutter + column * wide;
          if (column >= shown) return;
          c.globalAlpha = 1;
          c.fillStyle = card;
          c.fillRect(x, y, wide - gap, tall - rowGap);
          c.globalAlpha = failure ? 1 : high > low ? 0.18 + (0.82 * (s.episodes.rewards[i] - low)) / (high - low) : 0.7;
          c.fillStyle = failure ? bad : accent;
          c.fillRect(x, y, wide - gap, tall - rowGap);
          if (failure && wide >= 7) {
            c.strokeStyle = card; c.lineWidth = 1.5;
            c.beginPath(); c.moveTo(x + 2, y + 2); c.lineTo(x + wide - gap - 2, y + tall - rowGap - 2);
            c.moveTo(x + wide - gap - 2, y + 2); c.lineTo(x + 2, y + tall - rowGap - 2); c.stroke();
          }
        });
        c.globalAlpha = 1;
        c.fillStyle = row === state.submission ? colour("ink") : faint;
        c.textAlign = "right";
        const every = Math.ceil(14 / tall);
        if (row === state.submission || (row % every === 0 && Math.abs(row - state.submission) >= every)) c.fillText("#" + s.number, gutter - 6, y + tall / 2);
      });
      c.globalAlpha = 1;
      c.fillStyle = faint;
      c.textAlign = "left";
      const every = Math.ceil(34 / wide);
      for (let i = 0; i < shown; i += every) c.fillText(columns[i], gutter + i * wide, header / 2);
      c.strokeStyle = colour("ink"); c.lineWidth = 1.5;
      c.strokeRect(gutter - 1, header + state.submission * tall - 1, shown * wide + 1, tall);
      if (document.activeElement === canvas) c.strokeRect(gutter + cursor.column * wide - 1.5, header + cursor.row * tall - 1.5, wide + 2, tall + 1);
    }
    function tell() {
      const s = one.submissions[cursor.row], index = columns[cursor.column];
      if (!s || index === undefined) return;
      const i = s.episodes.indices.indexOf(index);
      const what = i < 0 ? "not evaluated" : failures[cursor.row].get(i) ? failures[cursor.row].get(i) + " after " + plural(s.episodes.steps[i], "step") : "reward " + number(s.episodes.rewards[i]) + ", " + plural(s.episodes.steps[i], "step");
      readout.textContent = s.facts.submission_id + ", Episode " + index + ": " + what + ".";
    }
    function at(event) {
      const box = canvas.getBoundingClientRect();
      const row = Math.floor((event.clientY - box.top - header) / tall), column = Math.floor((event.clientX - box.left - gutter) / wide);
      cursor.row = Math.max(0, Math.min(one.submissions.length - 1, row));
      cursor.column = Math.max(0, Math.min(columns.length - 1, column));
    }
    canvas.addEventListener("mousemove", (event) => { at(event); tell(); });
    canvas.addEventListener("click", (event) => { at(event); tell(); choose(cursor.row); });
    canvas.addEventListener("focus", draw);
    canvas.addEventListener("blur", draw);
    canvas.addEventListener("keydown", (event) => {
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (event.key === "Enter") choose(cursor.row);
      if (!move) return;
      event.preventDefault();
      cursor.row = Math.max(0, Math.min(one.submissions.length - 1, cursor.row + move[0]));
      cursor.column = Math.max(0, Math.min(columns.length - 1, cursor.column + move[1]));
      tell(); draw();
    });
    one.redraw.push(draw);
    return el("section", { "aria-labelledby": "strip-title" }, el("h2", { id: "strip-title" }, "Episodes"),
      el("p", { class: "small faint" }, rewards.length ? "A row a submission, a column an Episode index: the same column is the same Episode. A stronger colour is more reward (" + number(low) + " to " + number(high) + "); red and crossed is a Policy's failure; empty was not evaluated." : "No Episodes are told."),
      columns.length * 3 > STRIP_WIDEST ? el("p", { class: "small faint" }, "Only the first " + STRIP_WIDEST / 3 + " indices are drawn.") : null,
      holder, readout);
  }

  /* --- one submission --- */

  const TABS = [["diff", "Program"], ["feedback", "Feedback"], ["episodes", "Episodes"], ["replay", "Replay"]];
  function submission(one) {
    const box = el("section", { "aria-labelledby": "submission-title" });
    one.drawSubmission = () => box.replaceChildren(...submissionParts(one));
    one.drawSubmission();
    return box;
  }
  function submissionParts(one) {
    const s = one.submissions[state.submission];
    const title = el("h2", { id: "submission-title" }, s ? s.facts.submission_id : "Submissions");
    if (!s) return [title, el("p", null, "This Run has no submission.")];
    const pick = el("select", { "aria-label": "Submission", onchange: (event) => choose(Number(event.target.value)) },
      ...one.submissions.map((other, i) => el("option", { value: i, selected: i === state.submission }, "#" + other.number + "  " + (other.facts.score === null ? other.facts.state : number(other.facts.score)) + (other.facts.best ? "  best" : "") + (other.facts.submission_id === one.run.final_submission_id ? "  selected" : ""))));
    const step = (by, text) => el("button", { type: "button", disabled: !one.submissions[state.submission + by], onclick: () => { choose(state.submission + by); focusAgain(text); } }, text);
    const focusAgain = (text) => { const b = [...document.querySelectorAll("button")].find((x) => x.textContent === text); if (b && !b.disabled) b.focus(); };
    const f = s.facts;
    const told = [f.score === null ? f.state + (f.failure ? " (" + f.failure + ")" : "") : "score " + number(f.score),
      f.change === null ? null : (f.change >= 0 ? "+" : "") + number(f.change) + " from the one before",
      plural(f.episodes, "Episode") + " (" + (f.episode_indices.length > 60 ? f.episode_indices.slice(0, 60) + "..." : f.episode_indices) + ")",
      f.policy_failures ? plural(f.policy_failures, "failure") : null, f.seconds === null ? null : duration(f.seconds),
      f.tokens === null ? null : f.tokens + " tokens", f.cost_usd === null ? null : "$" + number(f.cost_usd, 4)].filter(Boolean).join("; ");
    const panel = el("div", { role: "tabpanel", id: "panel", "aria-label": TABS.find((t) => t[0] === state.tab)[1] });
    const tabs = TABS.map(([tab, text]) => el("button", { type: "button", role: "tab", id: "tab-" + tab, "aria-controls": "panel", "aria-selected": String(tab === state.tab), tabindex: tab === state.tab ? 0 : -1, onclick: () => openTab(tab) }, text));
    function openTab(tab) { state.tab = tab; keep(); one.drawSubmission(); document.getElementById("tab-" + tab).focus(); }
    const bar = el("div", { class: "row tabs", role: "tablist", "aria-label": "Of this submission", onkeydown: (event) => {
      const by = { ArrowLeft: TABS.length - 1, ArrowRight: 1 }[event.key];
      if (by) openTab(TABS[(TABS.findIndex((t) => t[0] === state.tab) + by) % TABS.length][0]);
    } }, ...tabs);
    panel.append(...{ diff: diffPanel, feedback: feedbackPanel, episodes: episodesPanel, replay: replayPanel }[state.tab](one, s));
    return [title, el("div", { class: "row" }, step(-1, "Previous"), pick, step(1, "Next")), el("p", null, told),
      el("p", { class: "small faint mono" }, f.program_digest), bar, panel];
  }
  const cutNote = (text) => (text.left ? el("p", { class: "small faint" }, text.left + " bytes more were left out of this page.") : null);
  const region = (label, child) => el("div", { class: "scroll tall", tabindex: 0, role: "region", "aria-label": label }, child);

  function diffPanel(one, s) {
    if (!s.diff.text) return [el("p", null, s.facts.same_program ? "The Program is the one of the submission before." : "No snapshots are left to tell what changed.")];
    const pre = el("pre", { class: "diff" });
    for (const line of s.diff.text.split("\n")) {
      const kind = /^(diff |index |--- |\+\+\+ |new file|deleted file|similarity|rename)/.test(line) ? "head" : line[0] === "+" ? "add" : line[0] === "-" ? "del" : line[0] === "@" ? "hunk" : "";
      pre.append(el("span", { class: kind }, line === "" ? " " : line));
    }
    const before = s.number === 1 ? "the initial Program" : "submission " + (s.number - 1);
    return [el("p", { class: "small faint" }, "What changed from " + before + "."), region("Changes of the Program", pre), cutNote(s.diff)].filter(Boolean);
  }
  function feedbackPanel(one, s) {
    if (!s.feedback.text) return [el("p", null, s.facts.state === "published" ? "The Feedback can't be read." : "There is no Feedback: the submission is " + s.facts.state + ".")];
    return [region("Feedback content", el("pre", { class: "wrap" }, s.feedback.text)), cutNote(s.feedback)].filter(Boolean);
  }
  function episodesPanel(one, s) {
    const failures = new Map(s.episodes.failures), body = el("tbody");
    let shown = 0;
    const more = el("button", { type: "button", onclick: add }, "Show more");
    function add() {
      const end = Math.min(s.episodes.indices.length, shown + 100);
      for (; shown < end; shown++) {
        const failure = failures.get(shown);
        body.append(el("tr", null, el("td", null, s.episodes.indices[shown]), el("td", null, failure ? "-" : number(s.episodes.rewards[shown])), el("td", null, s.episodes.steps[shown]), el("td", { class: failure ? "t bad" : "t" }, failure || "completed")));
      }
      more.hidden = shown === s.episodes.indices.length;
    }
    add();
    return [region("Episodes of this submission", el("table", null, el("thead", null, el("tr", null, el("th", { scope: "col" }, "Episode"), el("th", { scope: "col" }, "Reward"), el("th", { scope: "col" }, "Steps"), el("th", { scope: "col", class: "t" }, "Status"))), body)), more];
  }

  /* --- replay --- */

  const ACTIONS = {
    CartPole: ["push left", "push right"], Acrobot: ["torque -1", "no torque", "torque +1"], "MountainCar-v0": ["accelerate left", "coast", "accelerate right"],
    FrozenLake: ["left", "down", "right", "up"], CliffWalking: ["up", "right", "down", "left"], Taxi: ["south", "north", "east", "west", "pick up", "drop off"], Blackjack: ["stick", "hit"],
  };
  function actionText(id, action) {
    const names = Object.entries(ACTIONS).find(([part]) => id.includes(part));
    const text = JSON.stringify(action);
    return names && names[1][action] !== undefined ? text + " (" + names[1][action] + ")" : text;
  }
  function frames(episode, fields) {
    const named = (o) => (fields && Array.isArray(o) ? Object.fromEntries(fields.map((name, i) => [name, o[i]])) : o);
    const out = episode.steps.map(([step, action, reward, observation]) => ({ step, action, reward, observation: named(observation) }));
    if (episode.end && episode.end.observation !== undefined) out.push({ step: episode.end.steps, end: episode.end.end, observation: named(episode.end.observation) });
    return out;
  }
  function replayPanel(one, s) {
    if (!s.replay) return [el("p", null, "This submission left no trace of its Episodes.")];
    if (!s.replay.episodes.length) return [el("p", null, "There was no room in this page for this submission's Episodes; those of the selected, best, first and last submissions come first.")];
    let list = [], at = 0, timer = null, episode = null;
    const canvas = el("canvas", { role: "img", "aria-label": "The Episode's state at the chosen step; the text below tells it" });
    const told = el("p", { class: "mono small", "aria-live": "off" });
    const gap = el("p", { class: "small faint" });
    const slider = el("input", { type: "range", min: 0, value: 0, "aria-label": "Step", oninput: () => { stop(); at = Number(slider.value); show(); } });
    const play = el("button", { type: "button", onclick: () => (timer ? stop() : start()) }, "Play");
    const speed = el("select", { "aria-label": "Speed" }, ...[["0.25", 0.25], ["0.5", 0.5], ["1", 1], ["2", 2], ["4", 4]].map(([text, value]) => el("option", { value, selected: value === 1 }, text + "x")));
    const which = el("select", { "aria-label": "Episode", onchange: () => open(Number(which.value)) },
      ...s.replay.episodes.map((e, i) => el("option", { value: i }, "Episode " + (s.episodes.indices[e.episode] === undefined ? e.episode : s.episodes.indices[e.episode]) + (e.end ? ": " + number(e.end.return) : ""))));
    function show() {
      const frame = list[at];
      slider.value = at;
      if (!frame) return;
      const width = Math.max(260, Math.min(704, canvas.parentNode ? canvas.parentNode.clientWidth : 704)), height = Math.round(width * 0.5), ratio = Math.min(2, window.devicePixelRatio || 1);
      canvas.width = width * ratio; canvas.height = height * ratio;
      const c = canvas.getContext("2d");
      c.scale(ratio, ratio);
      paint(c, width, height, one, list, at);
      told.textContent = frame.end !== undefined || frame.action === undefined ? "End after " + plural(frame.step || 0, "step") + (frame.end ? ": " + String(frame.end).replace(/_/g, " ") : "")
        : "step " + frame.step + "   action " + actionText(one.run.benchmark.id, frame.action) + "   reward " + number(frame.reward) + "   observation " + JSON.stringify(frame.observation);
    }
    function stop() { clearInterval(timer); timer = null; play.textContent = "Play"; }
    function start() {
      if (at >= list.length - 1) at = 0;
      play.textContent = "Pause";
      const slow = list.length < 40 ? 8 : 1;
      timer = setInterval(() => {
        if (!canvas.isConnected || at >= list.length - 1) { stop(); return; }
        at++; show();
      }, (25 * slow) / Number(speed.value));
    }
    speed.addEventListener("change", () => { if (timer) { stop(); start(); } });
    function open(i) {
      stop();
      episode = s.replay.episodes[i];
      list = frames(episode, s.replay.fields); at = 0;
      slider.max = Math.max(0, list.length - 1);
      gap.textContent = episode.left ? "The trace leaves " + plural(episode.left, "step") + " in the middle out: the picture jumps there." : "";
      show();
    }
    one.redrawReplay = show;
    setTimeout(() => open(0), 0);
    return [el("div", { class: "row" }, which, play, slider, speed), el("div", { class: "stage" }, canvas), told, gap];
  }

  function paint(c, w, h, one, list, at) {
    const id = one.run.benchmark.id, o = list[at].observation, ink = colour("ink"), accent = colour("accent"), faint = colour("faint"), best = colour("best"), bad = colour("bad"), held = colour("held");
    c.clearRect(0, 0, w, h);
    c.lineCap = "round"; c.lineJoin = "round"; c.font = "13px system-ui, sans-serif"; c.textAlign = "left"; c.textBaseline = "alphabetic";
    const line = (x1, y1, x2, y2, style, width) => { c.strokeStyle = style; c.lineWidth = width; c.beginPath(); c.moveTo(x1, y1); c.lineTo(x2, y2); c.stroke(); };
    const dot = (x, y, r, style) => { c.fillStyle = style; c.beginPath(); c.arc(x, y, r, 0, 7); c.fill(); };
    const known = o !== null && typeof o === "object";
    if (known && id.includes("CartPole") && Array.isArray(o) && o.length === 4) return cartpole();
    if (known && id.includes("MountainCar") && isFinite(o.position)) return mountainCar();
    if (known && id.includes("Pendulum") && isFinite(o.cos_theta)) return pendulum();
    if (known && id.includes("Acrobot") && isFinite(o.cos_theta_1)) return acrobot();
    if (known && id.includes("Taxi") && isFinite(o.taxi_row) && maze()) return taxi();
    if (known && isFinite(o.row) && isFinite(o.column) && maze()) return grid();
    if (known && id.includes("Blackjack") && isFinite(o.player_sum)) return blackjack();
    return lines();

    function maze() { const map = one.parameters && one.parameters.map; return Array.isArray(map) && map.length > 0 && map.every((r) => typeof r === "string") ? map : null; }
    function cartpole() {
      const scale = w / 6, ground = h * 0.72, x = w / 2 + o[0] * scale, angle = o[2], long = h * 0.5;
      line(w / 2 - 2.4 * scale, ground + 14, w / 2 + 2.4 * scale, ground + 14, faint, 2);
      for (const end of [-2.4, 2.4]) line(w / 2 + end * scale, ground - 4, w / 2 + end * scale, ground + 22, bad, 2);
      if (list[at].action === 0 || list[at].action === 1) {
        const way = list[at].action === 1 ? 1 : -1;
        line(x + way * 34, ground, x + way * 62, ground, held, 3);
        line(x + way * 62, ground, x + way * 54, ground - 6, held, 3);
        line(x + way * 62, ground, x + way * 54, ground + 6, held, 3);
      }
      c.fillStyle = ink; c.fillRect(x - 28, ground - 12, 56, 24);
      line(x, ground - 10, x + Math.sin(angle) * long, ground - 10 - Math.cos(angle) * long, accent, 8);
      dot(x, ground - 10, 5, colour("card"));
    }
    function mountainCar() {
      const goal = id.includes("Continuous") ? 0.45 : 0.5, px = (v) => 20 + ((v + 1.2) / 1.8) * (w - 40), py = (v) => h - 24 - (Math.sin(3 * v) * 0.45 + 0.55) * (h - 70);
      c.strokeStyle = faint; c.lineWidth = 3; c.beginPath();
      for (let v = -1.2; v <= 0.6001; v += 0.02) c.lineTo(px(v), py(v));
      c.stroke();
      line(px(goal), py(goal), px(goal), py(goal) - 34, best, 3);
      c.fillStyle = best; c.beginPath(); c.moveTo(px(goal), py(goal) - 34); c.lineTo(px(goal) + 18, py(goal) - 28); c.lineTo(px(goal), py(goal) - 21); c.fill();
      dot(px(o.position), py(o.position) - 9, 9, accent);
    }
    function pendulum() {
      const long = h * 0.38, x = w / 2, y = h / 2;
      line(x, y, x - o.sin_theta * long, y - o.cos_theta * long, accent, 12);
      dot(x, y, 6, ink);
    }
    function acrobot() {
      const long = h / 4.6, x = w / 2, y = h / 2, a = Math.atan2(o.sin_theta_1, o.cos_theta_1), b = a + Math.atan2(o.sin_theta_2, o.cos_theta_2);
      const x1 = x + Math.sin(a) * long, y1 = y + Math.cos(a) * long;
      line(w * 0.15, y - long, w * 0.85, y - long, best, 2);
      line(x, y, x1, y1, accent, 8);
      line(x1, y1, x1 + Math.sin(b) * long, y1 + Math.cos(b) * long, held, 8);
      dot(x, y, 5, ink); dot(x1, y1, 5, ink);
    }
    function board(rows, columns) {
      const size = Math.min((w - 20) / columns, (h - 20) / rows), left = (w - size * columns) / 2, top = (h - size * rows) / 2;
      return { size, left, top, x: (column) => left + (column + 0.5) * size, y: (row) => top + (row + 0.5) * size };
    }
    function grid() {
      const map = maze(), b = board(map.length, map[0].length);
      map.forEach((row, r) => [...row].forEach((tile, k) => {
        c.fillStyle = { H: bad, C: bad, G: best, S: faint }[tile] || colour("empty");
        c.globalAlpha = "HCGS".includes(tile) ? 0.55 : 1;
        c.fillRect(b.left + k * b.size + 1, b.top + r * b.size + 1, b.size - 2, b.size - 2);
        c.globalAlpha = 1;
        if (tile === "G" || tile === "S") { c.fillStyle = ink; c.textAlign = "center"; c.fillText(b.size < 40 ? tile : tile === "G" ? "goal" : "start", b.x(k), b.top + r * b.size + 15); }
      }));
      for (let i = Math.max(0, at - 12); i < at; i++) {
        const p = list[i].observation;
        if (p && isFinite(p.row)) { c.globalAlpha = 0.12 + (0.4 * (i - at + 12)) / 12; dot(b.x(p.column), b.y(p.row), b.size * 0.12, accent); c.globalAlpha = 1; }
      }
      dot(b.x(o.column), b.y(o.row), b.size * 0.28, accent);
    }
    function taxi() {
      const map = maze(), rows = map.length - 2, columns = (map[0].length - 1) / 2, b = board(rows, columns);
      for (let r = 0; r < rows; r++) for (let k = 0; k < columns; k++) {
        c.fillStyle = colour("empty"); c.fillRect(b.left + k * b.size, b.top + r * b.size, b.size - 1, b.size - 1);
        if (map[r + 1][2 * k + 2] === "|") line(b.left + (k + 1) * b.size, b.top + r * b.size, b.left + (k + 1) * b.size, b.top + (r + 1) * b.size, ink, 4);
      }
      const marks = one.parameters.landmarks || {};
      for (const [name, spot] of Object.entries(marks)) {
        if (!Array.isArray(spot)) continue;
        c.fillStyle = faint; c.textAlign = "center"; c.fillText(name + (name === o.destination ? " (goal)" : ""), b.x(spot[1]), b.top + spot[0] * b.size + 14);
        if (name === o.destination) { c.strokeStyle = best; c.lineWidth = 3; c.strokeRect(b.left + spot[1] * b.size + 3, b.top + spot[0] * b.size + 3, b.size - 7, b.size - 7); }
        if (name === o.passenger_location) dot(b.x(spot[1]), b.y(spot[0]) + b.size * 0.2, b.size * 0.12, held);
      }
      c.fillStyle = accent; c.fillRect(b.x(o.taxi_column) - b.size * 0.3, b.y(o.taxi_row) - b.size * 0.15, b.size * 0.6, b.size * 0.35);
      if (o.passenger_location === "in_taxi") dot(b.x(o.taxi_column), b.y(o.taxi_row), b.size * 0.11, held);
    }
    function blackjack() {
      c.textAlign = "center"; c.fillStyle = faint;
      c.fillText("you" + (o.usable_ace ? " (usable ace)" : ""), w * 0.3, h * 0.25); c.fillText("dealer shows", w * 0.7, h * 0.25);
      c.font = "600 " + Math.round(h * 0.3) + "px system-ui, sans-serif";
      c.fillStyle = o.player_sum > 21 ? bad : accent; c.fillText(o.player_sum, w * 0.3, h * 0.65);
      c.fillStyle = ink; c.fillText(o.dealer_showing === 1 ? "A" : o.dealer_showing, w * 0.7, h * 0.65);
    }
    /* Any other Benchmark: the numbers of the observation over time. */
    function lines() {
      const flat = (v) => (typeof v === "number" ? [v] : Array.isArray(v) ? v.flatMap(flat) : v && typeof v === "object" ? Object.values(v).flatMap(flat) : []);
      const all = list.map((f) => flat(f.observation).slice(0, 6)), values = all.flat();
      const low = Math.min(...values), high = Math.max(...values);
      const x = (i) => 12 + (i / Math.max(1, list.length - 1)) * (w - 24), y = (v) => h - 14 - ((v - low) / (high - low || 1)) * (h - 28);
      const shades = [accent, held, best, bad, colour("warn"), faint];
      for (let k = 0; k < (all[at] || []).length; k++) {
        c.strokeStyle = shades[k]; c.lineWidth = 1.5; c.beginPath();
        all.forEach((v, i) => { if (v[k] !== undefined) c.lineTo(x(i), y(v[k])); });
        c.stroke();
      }
      line(x(at), 6, x(at), h - 6, ink, 1);
    }
  }

  /* --- the Agent's timeline --- */

  const KINDS = { message: "Messages", reasoning: "Reasoning", tool_call: "Tools", tool_result: "Tools", output: "Output", stderr: "Output", note: "Submissions", usage: "Tokens", error: "Errors" };
  const IDLE_SECONDS = 30;
  function timeline(one) {
    const events = one.timeline.events, start = events.length ? events[0].time_unix_ns : 0;
    const present = [...new Set(events.map((e) => KINDS[e.event] || "Other"))];
    const hidden = new Set(["Tokens"]);
    const list = el("ol", { class: "timeline" });
    const more = el("button", { type: "button" }, "Show more");
    let items = [], shown = 0;
    function gather() {
      let before = start;
      items = [];
      events.forEach((event, i) => {
        const idle = (event.time_unix_ns - before) / 1e9;
        before = event.time_unix_ns;
        if (i === one.timeline.left_after && one.without.events) items.push({ gap: plural(one.without.events, "event") + " left out of this page" });
        else if (idle >= IDLE_SECONDS) items.push({ gap: "nothing for " + duration(idle) });
        if (!hidden.has(KINDS[event.event] || "Other")) items.push({ event });
      });
      list.replaceChildren();
      shown = 0;
      add();
    }
    function add() {
      const end = Math.min(items.length, shown + 150);
      for (; shown < end; shown++) list.append(items[shown].gap ? el("li", null, el("span"), el("span", { class: "idle" }, items[shown].gap)) : entry(items[shown].event, start));
      more.hidden = shown >= items.length;
      more.textContent = "Show more (" + (items.length - shown) + ")";
    }
    more.addEventListener("click", add);
    const filters = el("div", { class: "row", role: "group", "aria-label": "What is shown" }, ...present.map((kind) =>
      el("label", null, el("input", { type: "checkbox", checked: !hidden.has(kind), onchange: (event) => { if (event.target.checked) hidden.delete(kind); else hidden.add(kind); gather(); } }), kind)));
    gather();
    const counts = plural(events.filter((e) => e.event === "message").length, "message") + ", " + plural(events.filter((e) => e.event === "tool_call").length, "tool call") + " in " + duration(one.run.agent_seconds) + " of the Agent's time";
    return el("section", { "aria-labelledby": "timeline-title" }, el("h2", { id: "timeline-title" }, "The Agent's timeline"),
      events.length ? el("p", { class: "small faint" }, counts + ". Secrets were redacted when it was recorded.") : el("p", null, "The Agent left no transcript."), filters, list, more);
  }
  function entry(event, start) {
    const seconds = Math.max(0, (event.time_unix_ns - start) / 1e9);
    const stamp = seconds < 60 ? number(seconds, 3) + " s" : Math.floor(seconds / 60) + ":" + String(Math.floor(seconds % 60)).padStart(2, "0");
    const titles = { transcript: "Start", end: "End", message: "Message", reasoning: "Reasoning", output: "Output", stderr: "Error output", session: "Session", skipped: "Not understood", usage: "Tokens", error: "Error", tool_result: event.failed ? "Result: failed" : "Result" };
    let title = titles[event.event] || event.event;
    let text = event.text || event.output || event.reason || "";
    if (event.detail) text = (event.name === "submission" && /^[-+.0-9e]+$/.test(event.detail) ? "score " : "") + event.detail;
    if (event.event === "tool_call") { title = "Tool: " + (event.name || "?"); text = event.input || ""; }
    if (event.event === "note") { title = event.id || event.name || "Note"; }
    if (event.event === "session" && event.model) text = event.model;
    if (event.tokens) text = [event.tokens.input === null ? null : event.tokens.input + " in", event.tokens.output === null ? null : event.tokens.output + " out", event.usd === undefined ? null : "$" + number(event.usd, 4)].filter(Boolean).join(", ") + (text ? "\n" + text : "");
    if (event.event === "end") text = "exit code " + (event.exit_code === undefined ? "-" : event.exit_code) + (event.fault && event.fault !== "none" ? ", fault: " + event.fault : "") + (text ? "; " + text : "");
    text = typeof text === "string" ? text : JSON.stringify(text);
    const bad = event.event === "error" || event.failed === true;
    const body = el("div", null, el("span", { class: bad ? "kind bad" : "kind" }, title));
    const code = event.event === "tool_call" || event.event === "tool_result";
    if (text.length > 400 || text.split("\n").length > 6) {
      body.append(el("details", null, el("summary", { class: "small" }, text.slice(0, 120).split("\n")[0] + " ..."), code ? el("pre", { class: "wrap" }, text) : el("p", { class: "body" }, text)));
    } else if (text) {
      body.append(code ? el("pre", { class: "wrap" }, text) : el("p", { class: "body" }, text));
    }
    return el("li", null, el("span", { class: "when" }, stamp), body);
  }

  /* --- several Runs --- */

  const RUN_COLOURS = ["accent", "best", "held", "bad", "warn", "faint"];
  function overview() {
    const holder = el("div", { class: "chart" });
    function draw() {
      const width = Math.max(300, holder.clientWidth || 700), height = width < 500 ? 240 : 300, left = 54, right = 14, top = 14, bottom = 40;
      const lines = data.runs.map((one) => points(one).filter((p) => p.best !== null));
      const values = lines.flat().map((p) => p.best), most = Math.max(1, ...lines.flat().map((p) => p.spent));
      let low = values.length ? Math.min(...values) : 0, high = values.length ? Math.max(...values) : 1;
      if (low === high) { low -= 1; high += 1; }
      const x = (v) => left + (v / most) * (width - left - right), y = (v) => top + ((high - v) / (high - low)) * (height - top - bottom);
      const root = svg("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": "Best training score so far over Episodes spent, a line a Run" });
      for (const tick of ticks(low, high, 5)) root.append(svg("path", { class: "axis", d: "M" + left + " " + y(tick) + "H" + (width - right) }), svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, number(tick, 4)));
      for (const tick of ticks(0, most, 6)) root.append(svg("text", { x: x(tick), y: height - bottom + 18, "text-anchor": "middle" }, number(tick)));
      root.append(svg("text", { x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, "Episodes spent"));
      lines.forEach((list, i) => root.append(svg("path", { fill: "none", stroke: colour(RUN_COLOURS[i % 6]), "stroke-width": 2.5, "stroke-dasharray": ["", "7 4", "2 4"][Math.floor(i / 6) % 3], d: list.map((p, k) => (k === 0 ? "M" + x(p.spent) + " " + y(p.best) : "H" + x(p.spent) + "V" + y(p.best))).join("") })));
      holder.replaceChildren(root);
    }
    overview.redraw = draw;
    const body = el("tbody", null, ...data.runs.map((one, i) => {
      const swatch = svg("svg", { viewBox: "0 0 22 14", width: 22, height: 14, "aria-hidden": "true" }, svg("path", { d: "M1 7H21", fill: "none", "stroke-width": 3, stroke: "currentColor" }));
      swatch.style.color = "var(--" + RUN_COLOURS[i % 6] + ")";
      return el("tr", null, el("td", { class: "t" }, el("button", { type: "button", onclick: () => { state.run = i; state.submission = 0; drawRun(true); } }, swatch, " ", one.run.directory)),
        el("td", { class: "t" }, one.run.agent.model || one.run.agent.provider || "-"), el("td", null, one.run.submissions.total), el("td", null, one.run.episodes_used), el("td", null, bestText(one)),
        el("td", null, one.run.assessment ? number(one.run.assessment.score) : "-"), el("td", { class: "t" }, one.run.state));
    }));
    const mixed = new Set(data.runs.map((one) => one.run.benchmark.id + " " + one.run.benchmark.environment_digest)).size > 1;
    return el("section", { "aria-labelledby": "overview-title" }, el("h2", { id: "overview-title" }, "Best so far, Run by Run"),
      mixed ? el("p", { class: "notice" }, "These Runs are of different Benchmarks or Environments: their scores can't be compared.") : null, holder,
      el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of Runs" }, el("table", null, el("thead", null, el("tr", null, ...["Run", "Agent", "Submissions", "Episodes", "Best", "Assessment", "State"].map((name, i) => el("th", { scope: "col", class: i < 2 || i === 6 ? "t" : "" }, name)))), body)));
  }

  /* --- the whole --- */

  function choose(i) {
    state.submission = Math.max(0, Math.min(data.runs[state.run].submissions.length - 1, i));
    keep();
    data.runs[state.run].drawSubmission();
    data.runs[state.run].redraw.forEach((draw) => draw());
  }
  function keep() {
    try { history.replaceState(null, "", "#run=" + state.run + "&submission=" + (data.runs[state.run].submissions[state.submission] || { number: 0 }).number + "&tab=" + state.tab); } catch (ignored) { /* some viewers forbid it */ }
  }
  function fromAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const run = Number(asked.get("run"));
    if (data.runs[run]) state.run = run;
    if (TABS.some((t) => t[0] === asked.get("tab"))) state.tab = asked.get("tab");
    const one = data.runs[state.run], wanted = asked.get("submission");
    const is = wanted !== null ? (s) => s.number === Number(wanted) : (s) => s.facts.submission_id === one.run.final_submission_id;
    state.submission = Math.max(0, one.submissions.findIndex(is) >= 0 ? one.submissions.findIndex(is) : one.submissions.findIndex((s) => s.facts.best));
  }
  const box = el("div");
  function drawRun(scroll) {
    const one = data.runs[state.run];
    one.redraw = [];
    document.title = one.run.directory + " - EvoPolicyGym report";
    box.replaceChildren(el("h1", { id: "run-title", tabindex: -1 }, one.run.directory), facts(one), curve(one), strip(one), submission(one), timeline(one));
    one.redraw.forEach((draw) => draw());
    if (scroll) { const title = document.getElementById("run-title"); title.scrollIntoView(); title.focus(); }
  }
  function redrawAll() {
    const one = data.runs[state.run];
    one.redraw.forEach((draw) => draw());
    if (overview.redraw) overview.redraw();
    if (one.redrawReplay) one.redrawReplay();
  }
  window.addEventListener("error", (event) => page.prepend(el("p", { class: "notice", id: "trouble" }, "This page has a fault: " + event.message)));
  fromAddress();
  page.append(data.runs.length > 1 ? overview() : "", box, el("footer", null, "Written by evopolicygym " + data.version + ". This file holds all it shows and asks no network for anything."));
  drawRun(false);
  redrawAll();
  let waiting = null;
  window.addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(redrawAll, 120); });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);
  document.documentElement.setAttribute("data-drawn", "yes");
})();
