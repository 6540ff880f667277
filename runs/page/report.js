"use strict";
/* The page of a report. All that is seen is built here from the document in #document; a Run's texts are set as text
 * nodes only (el, text), never as markup. One Run is drawn at a time; what is chosen stands in the address's fragment. */
(function () {
  const data = JSON.parse(document.getElementById("document").textContent);
  const page = document.getElementById("page");
  const { el, svg, colour, number, duration, when, plural, ticks } = kit;
  const state = { run: 0, submission: 0, tab: "diff", axis: "submission" };

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
      ["Record", one.verification === null ? "not verified: it still runs" : one.verification.findings.length ? "does not hold" : plural(one.verification.checks, "check") + ", all hold"],
    ];
    const wide = [
      ["Benchmark", run.benchmark.id],
      ["Environment digest", run.benchmark.environment_digest],
      ["Contained", containedText(one.contained)],
    ];
    const list = el("dl", { class: "facts" });
    for (const [name, value] of rows) list.append(el("div", null, el("dt", null, name), el("dd", null, value)));
    for (const [name, value] of wide) list.append(el("div", { class: "wide" }, el("dt", null, name), el("dd", { class: name === "Contained" ? "" : "mono" }, value)));
    const box = el("section", { "aria-labelledby": "facts-title" }, el("h2", { id: "facts-title" }, "What was run"), alarm(one.verification), list);
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
  /* A record that was altered after the fact is told before all else. */
  function alarm(verification) {
    if (!verification || !verification.findings.length) return null;
    const count = verification.findings.length + verification.more;
    return el("div", { class: "alarm", role: "alert" }, el("strong", null, "This record does not hold."),
      " " + plural(count, "thing") + " in it " + (count === 1 ? "is" : "are") + " not as the Host left it: what this page shows need not be what happened.",
      el("ul", null, ...verification.findings.map((finding) => el("li", { class: "mono" }, finding)), verification.more ? el("li", null, "and " + verification.more + " more") : null));
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

  /* --- the Episodes: a row a submission, a column an Episode index --- */

  function strips(one) {
    const training = strip.make({
      rows: one.submissions.map((s) => ({ label: "#" + s.number, title: s.facts.submission_id, episodes: s.episodes })),
      what: "Episodes of every submission", hint: "Choose a cell, or focus the strip and use the arrow keys; Enter shows the submission.",
      chosen: () => state.submission, choose });
    one.redraw.push(training.draw);
    const box = el("section", { "aria-labelledby": "strip-title" }, el("h2", { id: "strip-title" }, "Episodes"),
      el("p", { class: "small faint" }, training.range ? "A row a submission, a column an Episode index: the same column is the same Episode. A stronger colour is more reward (" + training.range + "); red and crossed is a Policy's failure; grey was cut off; empty was not evaluated." : "No Episodes are told."),
      ...training.parts);
    for (const [phase, title] of [["validation", "Validation, a row a candidate"], ["assessment", "Assessment, held out"]]) {
      const measures = one.held_out.filter((m) => m.phase === phase);
      if (!measures.length) continue;
      const held = strip.make({
        rows: measures.map((m) => ({ label: "#" + m.number, title: "submission-" + String(m.number).padStart(6, "0"), episodes: m.episodes })),
        what: title, hint: "The Host's own Episodes, which no Agent has seen.", chosen: () => -1,
        choose: (row) => { const i = one.submissions.findIndex((s) => s.number === measures[row].number); if (i >= 0) choose(i); } });
      one.redraw.push(held.draw);
      const scores = measures.map((m) => "#" + m.number + " " + (m.score === null ? "unfinished" : number(m.score))).join(", ");
      box.append(el("h3", null, title), el("p", { class: "small faint" }, "Scores: " + scores + (held.range ? ". Rewards: " + held.range + "." : ".")), ...held.parts);
    }
    return box;
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
      worlds.paint(c, width, height, one, list, at);
      told.textContent = frame.end !== undefined || frame.action === undefined ? "End after " + plural(frame.step || 0, "step") + (frame.end ? ": " + String(frame.end).replace(/_/g, " ") : "")
        : "step " + frame.step + "   action " + worlds.actionText(one.run.benchmark.id, frame.action) + "   reward " + number(frame.reward) + "   observation " + JSON.stringify(frame.observation);
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
      list = worlds.frames(episode, s.replay.fields); at = 0;
      slider.max = Math.max(0, list.length - 1);
      gap.textContent = episode.left ? "The trace leaves " + plural(episode.left, "step") + " in the middle out: the picture jumps there." : "";
      show();
    }
    one.redrawReplay = show;
    setTimeout(() => open(0), 0);
    return [el("div", { class: "row" }, which, play, slider, speed), el("div", { class: "stage" }, canvas), told, gap];
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
        el("td", null, one.run.assessment ? number(one.run.assessment.score) : "-"), el("td", { class: "t" }, one.run.state + (one.verification && one.verification.findings.length ? ", record does not hold" : "")));
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
    box.replaceChildren(el("h1", { id: "run-title", tabindex: -1 }, one.run.directory), facts(one), curve(one), strips(one), submission(one), timeline.draw(one));
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
