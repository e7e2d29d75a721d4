// Search, the choice of colors, buttons that copy code or pause pictures, and the place in the contents. Without scripts, everything else of the site works.
"use strict";

// limit is how many results are shown, most the number of words of a query that are looked up.
const limit = 30, most = 10;

// queryTerms returns the words of a query as the index has them, without those that are ignored.
function queryTerms(query, ignored) {
  const words = query.toLowerCase().split(/[^a-z0-9]+/).filter((word) => word && !ignored.includes(word))
    .map((word) => (word.length > 3 && word.endsWith("s") && !word.endsWith("ss") ? word.slice(0, -1) : word));
  return [...new Set(words)].slice(0, most);
}

// rank returns the sections that match a query, best first: those with most of its words, then by the weights of the words in the index.
// A word also matches words that start with it, at half of their weight.
function rank(index, query) {
  const found = new Map();
  for (const word of queryTerms(query, index.ignored)) {
    const best = new Map();
    for (const term of Object.keys(index.terms)) {
      if (!term.startsWith(word)) continue;
      const pairs = index.terms[term];
      for (let i = 0; i < pairs.length; i += 2) {
        const weight = term === word ? pairs[i + 1] : pairs[i + 1] / 2;
        best.set(pairs[i], Math.max(best.get(pairs[i]) || 0, weight));
      }
    }
    for (const [section, weight] of best) {
      const sum = found.get(section) || { section, words: 0, weight: 0 };
      sum.words++;
      sum.weight += weight;
      found.set(section, sum);
    }
  }
  return [...found.values()]
    .sort((a, b) => b.words - a.words || b.weight - a.weight || a.section - b.section)
    .slice(0, limit).map((sum) => index.sections[sum.section]);
}

// The index is a script of its own, which is loaded when it is needed.
var manualIndex;

function loadIndex(then) {
  if (manualIndex) return then();
  let script = document.getElementById("manual-index");
  if (!script) {
    script = document.createElement("script");
    script.id = "manual-index";
    script.src = "search.js";
    document.head.append(script);
  }
  script.addEventListener("load", then);
}

function element(name, text) {
  const e = document.createElement(name);
  e.textContent = text;
  return e;
}

function show(list, query) {
  list.replaceChildren();
  list.hidden = query.trim() === "";
  if (list.hidden) return;
  for (const [page, heading, link, text] of rank(manualIndex, query)) {
    const a = element("a", page === heading ? page : page + " › " + heading);
    a.href = link;
    a.append(element("small", text));
    const item = element("li", "");
    item.append(a);
    list.append(item);
  }
  if (!list.firstChild) list.append(element("li", "No page has these words."));
}

function search() {
  const box = document.getElementById("manual-search"), input = box.querySelector("input"), list = document.getElementById("manual-results");
  box.hidden = false;
  const update = () => loadIndex(() => show(list, input.value));
  const close = () => { list.hidden = true; };
  input.addEventListener("focus", update);
  input.addEventListener("input", update);
  box.addEventListener("keydown", (event) => {
    const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    if (event.key === "Escape") {
      close();
      input.blur();
    } else if (event.key === "ArrowDown" && links.length) {
      links[Math.min(at + 1, links.length - 1)].focus();
    } else if (event.key === "ArrowUp" && at >= 0) {
      (at ? links[at - 1] : input).focus();
    } else if (event.key === "Enter" && event.target === input && links.length) {
      links[0].click();
    } else {
      return;
    }
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target === input) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
  document.addEventListener("click", (event) => { if (!box.contains(event.target) || event.target.closest("#manual-results a")) close(); });
}

// themes are what the button changes between: the system's colors, light, dark.
const themes = ["", "light", "dark"];

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem("theme", theme); } catch { /* It is not kept where pages may not store anything. */ }
}

function theme() {
  const button = document.getElementById("manual-theme");
  const label = () => { button.textContent = "Theme: " + (document.documentElement.dataset.theme || "system"); };
  button.hidden = false;
  button.addEventListener("click", () => {
    setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme || "") + 1) % themes.length]);
    label();
  });
  label();
}

function copyButtons() {
  if (!navigator.clipboard) return;
  for (const pre of document.querySelectorAll("pre:not([data-mark=text])")) {
    const button = element("button", "Copy"), code = pre.textContent;
    button.type = "button";
    button.className = "copy";
    button.addEventListener("click", () => navigator.clipboard.writeText(code).then(() => { button.textContent = "Copied"; }));
    pre.append(button);
  }
}

// casts lets readers pause pictures that move, and starts them when they come into view.
function casts() {
  for (const film of document.querySelectorAll(".film")) {
    const button = element("button", "Pause"), cast = film.closest(".figure"), svg = cast.querySelector("svg");
    button.type = "button";
    button.className = "pause";
    button.addEventListener("click", () => {
      const paused = svg.animationsPaused();
      if (paused) svg.unpauseAnimations(); else svg.pauseAnimations();
      button.textContent = paused ? "Pause" : "Play";
    });
    cast.append(button);
    const start = new IntersectionObserver(([seen]) => {
      if (!seen.isIntersecting) return;
      svg.setCurrentTime(0);
      start.disconnect();
    });
    start.observe(svg);
  }
}

// showCurrent scrolls the contents, not the page, to the current page.
function showCurrent() {
  const contents = document.getElementById("manual-contents"), current = contents.querySelector("[aria-current]");
  if (current) contents.scrollTop = current.offsetTop - contents.clientHeight / 3;
}

if (typeof document !== "undefined") {
  try { setTheme(localStorage.getItem("theme") || ""); } catch { /* The same. */ }
  document.addEventListener("DOMContentLoaded", () => { search(); theme(); copyButtons(); casts(); showCurrent(); });
}
