"use strict";
/* The Agent's timeline: what it said and did, its tokens and cost, its submissions, and when it was silent. */
const timeline = (function () {
  const { el, svg, number, duration, plural, ticks } = kit;
  const KINDS = { message: "Messages", thinking: "Reasoning", tool_call: "Tools", tool_result: "Tools", output: "Output", stderr: "Output", note: "Submissions", usage: "Tokens", error: "Errors", notice: "Notices" };
  const LANES = ["Messages", "Reasoning", "Tools", "Output", "Submissions", "Errors"];
  const IDLE_SECONDS = 30, AT_ONCE = 40;
  const kindOf = (event) => KINDS[event.event] || "Other";
  const spent = (event) => (event.tokens ? (event.tokens.input || 0) + (event.tokens.output || 0) : null);

  /* --- at a glance: a lane a kind over time, silence shaded, tokens as a line --- */

  function lanes(events, width) {
    const start = events[0].time_unix_ns, seconds = Math.max(1e-3, (events[events.length - 1].time_unix_ns - start) / 1e9);
    const present = LANES.filter((lane) => events.some((e) => kindOf(e) === lane));
    const used = events.filter((e) => spent(e) !== null), most = used.reduce((a, e) => Math.max(a, spent(e)), 0);
    const left = width < 500 ? 92 : 110, right = 12, tall = 20, tokens = most > 0 ? 46 : 0, bottom = 34, top = 6;
    const height = top + present.length * tall + tokens + bottom;
    const x = (event) => left + ((event.time_unix_ns - start) / 1e9 / seconds) * (width - left - right);
    const root = svg("svg", { viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": "The Agent's doings over " + duration(seconds) + ": " + present.map((lane) => lane + " " + events.filter((e) => kindOf(e) === lane).length).join(", ") + (most ? "; tokens " + most : "") + ". The list below tells each." });
    events.forEach((event, i) => {
      const idle = i ? (event.time_unix_ns - events[i - 1].time_unix_ns) / 1e9 : 0;
      if (idle >= IDLE_SECONDS) root.append(svg("rect", { class: "silence", x: x(events[i - 1]), y: top, width: Math.max(1, x(event) - x(events[i - 1])), height: height - top - bottom }, svg("title", null, "nothing for " + duration(idle))));
    });
    present.forEach((lane, row) => {
      const y = top + row * tall;
      root.append(svg("text", { x: left - 8, y: y + 14, "text-anchor": "end" }, lane), svg("path", { class: "axis", d: "M" + left + " " + (y + tall) + "H" + (width - right) }));
      let d = "";
      for (const event of events) if (kindOf(event) === lane) d += "M" + number(x(event), 6) + " " + (y + 4) + "v12";
      root.append(svg("path", { class: lane === "Errors" ? "tick bad" : lane === "Submissions" ? "tick best" : "tick", d }));
    });
    if (tokens) {
      const base = top + present.length * tall + tokens, y = (v) => base - (v / most) * (tokens - 12);
      root.append(svg("text", { x: left - 8, y: base - 14, "text-anchor": "end" }, "Tokens"), svg("text", { x: left - 8, y: base - 1, "text-anchor": "end" }, most),
        svg("path", { class: "tokens", d: "M" + left + " " + base + used.map((e) => "H" + number(x(e), 6) + "V" + number(y(spent(e)), 6)).join("") + "H" + (width - right) }));
    }
    const [unit, name] = seconds < 180 ? [1, "s"] : seconds < 10800 ? [60, "min"] : [3600, "h"];
    for (const tick of ticks(0, seconds / unit, width < 500 ? 4 : 8)) root.append(svg("text", { x: left + ((tick * unit) / seconds) * (width - left - right), y: height - 16, "text-anchor": "middle" }, number(tick, 4)));
    root.append(svg("text", { x: width - right, y: height - 2, "text-anchor": "end" }, name + " since the Agent's start"));
    return root;
  }
  function totals(one, events) {
    const count = (kind) => events.filter((e) => e.event === kind).length;
    let silent = 0;
    events.forEach((e, i) => { const idle = i ? (e.time_unix_ns - events[i - 1].time_unix_ns) / 1e9 : 0; if (idle >= IDLE_SECONDS) silent += idle; });
    const usage = one.run.usage, least = usage.lower_bound ? "at least " : "";
    return [plural(count("message"), "message"), plural(count("tool_call"), "tool call"), plural(count("error"), "error"),
      usage.tokens === null ? "tokens not told" : least + usage.tokens + " tokens", usage.cost_usd === null ? "cost not told" : least + "$" + number(usage.cost_usd, 4),
      "silent for " + duration(silent) + " of " + duration(one.run.agent_seconds)].join("; ") + ".";
  }

  /* --- the whole --- */

  function draw(one) {
    const events = one.timeline.events, start = events.length ? events[0].time_unix_ns : 0;
    const title = el("h2", { id: "timeline-title" }, "The Agent's timeline");
    if (!events.length) return el("section", { "aria-labelledby": "timeline-title" }, title, el("p", null, "The Agent left no transcript."));
    const present = [...new Set(events.map(kindOf))];
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
        if (!hidden.has(kindOf(event))) items.push({ event });
      });
      list.replaceChildren();
      shown = 0;
      add(AT_ONCE);
    }
    function add(by) {
      const end = Math.min(items.length, shown + by);
      for (; shown < end; shown++) list.append(items[shown].gap ? el("li", null, el("span"), el("span", { class: "idle" }, items[shown].gap)) : entry(items[shown].event, start));
      more.hidden = shown >= items.length;
      more.textContent = "Show more (" + (items.length - shown) + ")";
    }
    more.addEventListener("click", () => add(5 * AT_ONCE));
    const filters = el("div", { class: "row", role: "group", "aria-label": "What is listed" }, ...present.map((kind) =>
      el("label", null, el("input", { type: "checkbox", checked: !hidden.has(kind), onchange: (event) => { if (event.target.checked) hidden.delete(kind); else hidden.add(kind); gather(); } }), kind)));
    gather();
    const holder = el("div", { class: "chart still" });
    one.redraw.push(() => holder.replaceChildren(lanes(events, Math.max(300, holder.clientWidth || 700))));
    return el("section", { "aria-labelledby": "timeline-title" }, title, el("p", null, totals(one, events)), holder,
      el("p", { class: "small faint" }, "Secrets were redacted when this was recorded. Silence is told from " + IDLE_SECONDS + " s on."), filters, list, more);
  }

  function textOf(event) {
    if (event.event === "tool_call") return event.input || "";
    if (event.event === "session") return event.model || "";
    if (event.event === "error") return [event.message, [event.fault, event.status, event.final ? "final" : null].filter(Boolean).join(", ")].filter(Boolean).join("\n");
    if (event.event === "end") return (event.signal ? "signal " + event.signal : "exit code " + (event.exit_code === undefined ? "-" : event.exit_code)) + (event.fault && event.fault !== "none" ? ", fault: " + event.fault : "");
    if (event.event === "skipped") return [event.reason, event.text].filter(Boolean).join(": ");
    if (event.tokens) return [event.tokens.input === null ? null : event.tokens.input + " in", event.tokens.output === null ? null : event.tokens.output + " out", event.usd === undefined ? null : "$" + number(event.usd, 4)].filter(Boolean).join(", ");
    if (event.detail) return (event.name === "submission" && /^[-+.0-9e]+$/.test(event.detail) ? "score " : "") + event.detail;
    return event.text || event.output || event.reason || "";
  }
  function titleOf(event) {
    const titles = { transcript: "Start", end: "End", message: "Message", thinking: "Reasoning", output: "Output", stderr: "Error output", session: "Session", skipped: "Not understood", usage: "Tokens so far", error: "Error", notice: "Notice" };
    if (event.event === "tool_call") return "Tool: " + (event.name || "?");
    if (event.event === "tool_result") return event.failed ? "Result: failed" : "Result";
    if (event.event === "note") return event.id || event.name || "Note";
    return titles[event.event] || event.event;
  }
  function entry(event, start) {
    const seconds = Math.max(0, (event.time_unix_ns - start) / 1e9);
    const stamp = seconds < 60 ? number(seconds, 3) + " s" : Math.floor(seconds / 60) + ":" + String(Math.floor(seconds % 60)).padStart(2, "0");
    const told = textOf(event), text = typeof told === "string" ? told : JSON.stringify(told);
    const body = el("div", null, el("span", { class: event.event === "error" || event.failed === true ? "kind bad" : "kind" }, titleOf(event)));
    const code = event.event === "tool_call" || event.event === "tool_result";
    const whole = () => (code ? el("pre", { class: "wrap" }, text) : el("p", { class: "body" }, text));
    if (text.length > 400 || text.split("\n").length > 6) body.append(el("details", null, el("summary", { class: "small" }, text.slice(0, 120).split("\n")[0] + " ..."), whole()));
    else if (text) body.append(whole());
    return el("li", null, el("span", { class: "when" }, stamp), body);
  }
  return { draw };
})();
