"use strict";
/* What the other parts of the page are built with. A Run's texts become text nodes only, never markup. */
const kit = (function () {
  const SVG = "http://www.w3.org/2000/svg";
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
  return { el, svg, colour, number, duration, when, plural, ticks };
})();
