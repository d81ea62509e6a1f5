// Sorting and filters of the rankings, and the filter of samples on a run's page.
// Foreign text enters the page as text nodes only.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function element(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function drawing(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const percent = (share) => 100 * Math.min(1, Math.max(0, share));

function bar(value, ends) {
  const [low, high] = ends || [value, value];
  const width = Math.max(0.6, percent(high) - percent(low));
  return drawing(
    "svg",
    { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawing("rect", { class: "track", x: 0, y: 4, width: 100, height: 2 }),
    drawing("rect", { class: "range", x: percent(low), y: 2, width, height: 6 }),
    drawing("rect", { class: "mark", x: percent(value), y: 0, width: 1.2, height: 10 }),
  );
}

function numberCell(value, ends, withBar) {
  const cell = element("td", { class: "num" });
  cell.append(element("span", { class: "value" }, value === null ? "–" : value.toFixed(3)));
  if (ends) {
    const text = `${ends[0].toFixed(3)}–${ends[1].toFixed(3)}`;
    cell.append(element("span", { class: "ci", title: "95 % interval, clustered by instance" }, text));
  }
  if (withBar && value !== null) cell.append(bar(value, ends));
  return cell;
}

class Rankings {
  constructor(data, form) {
    this.data = data;
    this.form = form;
    this.keys = data.metrics.map(([key]) => key);
    this.sort = new Map(data.splits.map((split) => [split.name, { key: "qr", down: true }]));
    this.sections = new Map();
    for (const section of document.querySelectorAll(".ranking")) {
      this.sections.set(section.dataset.split, section);
      for (const head of section.querySelectorAll("th[data-key]")) this.makeSortable(section, head);
    }
    this.fill("suite", data.splits.map((split) => [split.name, split.name]), "all suites");
    this.fill("modality", this.union("modalities"), "all");
    this.fill("group", this.union("groups"), "all groups");
    this.fill("task", this.union("tasks").map(([key]) => [key, data.titles[key]]), "all tasks");
    this.restore();
    form.hidden = false;
    form.addEventListener("change", (event) => {
      if (event.target.name === "group") form.elements.task.value = "";
      if (event.target.name === "task" && event.target.value) form.elements.group.value = "";
      this.show();
    });
    form.addEventListener("reset", (event) => {
      event.preventDefault();
      for (const select of form.querySelectorAll("select")) select.value = "";
      form.elements.solvers.checked = true;
      this.show();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    this.show();
  }

  union(kind) {
    const names = new Set(this.data.splits.flatMap((split) => split[kind]));
    return [...names].map((name) => [name, name]);
  }

  fill(name, options, all) {
    const select = this.form.elements[name];
    select.append(element("option", { value: "" }, all));
    for (const [value, text] of options) select.append(element("option", { value }, text));
  }

  makeSortable(section, head) {
    const button = element("button", { type: "button" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const state = this.sort.get(section.dataset.split);
      const key = head.dataset.key;
      const down = state.key === key ? !state.down : key !== "name";
      this.sort.set(section.dataset.split, { key, down });
      this.show();
    });
  }

  wanted() {
    const { suite, modality, group, task, solvers } = this.form.elements;
    return {
      suite: suite.value,
      modality: modality.value,
      group: group.value,
      task: task.value,
      solvers: solvers.checked,
    };
  }

  restore() {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of ["suite", "modality", "group", "task"]) {
      const select = this.form.elements[name];
      const value = given.get(name);
      if ([...select.options].some((option) => option.value === value)) select.value = value;
    }
    if (given.get("solvers") === "no") this.form.elements.solvers.checked = false;
  }

  remember(wanted) {
    const kept = new URLSearchParams();
    for (const name of ["suite", "modality", "group", "task"]) {
      if (wanted[name]) kept.set(name, wanted[name]);
    }
    if (!wanted.solvers) kept.set("solvers", "no");
    const hash = kept.toString();
    if (hash !== location.hash.slice(1)) {
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
    }
  }

  scope(split, wanted) {
    if (wanted.task) return split.tasks.includes(wanted.task) ? `tasks.${wanted.task}` : null;
    if (wanted.group) return split.groups.includes(wanted.group) ? `groups.${wanted.group}` : null;
    if (wanted.modality && split.modalities.length > 1) return `modalities.${wanted.modality}`;
    return "overall";
  }

  show() {
    const wanted = this.wanted();
    this.remember(wanted);
    let shown = 0;
    const said = [];
    for (const split of this.data.splits) {
      const section = this.sections.get(split.name);
      const scope = this.scope(split, wanted);
      const hidden =
        (wanted.suite && wanted.suite !== split.name) ||
        (wanted.modality && !split.modalities.includes(wanted.modality)) ||
        scope === null;
      section.hidden = Boolean(hidden);
      if (hidden) continue;
      const rows = this.rows(split, scope, wanted);
      section.querySelector("tbody").replaceChildren(...rows);
      const part = wanted.task ? this.data.titles[wanted.task] : wanted.group || "overall";
      section.querySelector(".scope").textContent = part;
      this.markSorted(section);
      shown += rows.length;
      said.push(`${split.name}, ${part}`);
    }
    const status = document.getElementById("said");
    status.textContent = shown
      ? `${shown} ${shown === 1 ? "run" : "runs"}: ${said.join("; ")}`
      : "No run has these parts; reset the filters.";
  }

  markSorted(section) {
    const state = this.sort.get(section.dataset.split);
    for (const head of section.querySelectorAll("th[data-key]")) {
      if (head.dataset.key === state.key) {
        head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      } else {
        head.removeAttribute("aria-sort");
      }
    }
  }

  rows(split, scope, wanted) {
    const known = split.rows
      .filter((row) => row.scopes[scope] && (wanted.solvers || row.kind !== "solver"))
      .map((row) => ({ ...row, score: row.scopes[scope] }));
    this.rank(known);
    const { key, down } = this.sort.get(split.name);
    const value = (row) => {
      if (key === "name") return row.name.toLowerCase();
      if (key === "n") return row.score.n;
      return row.score.values[this.keys.indexOf(key)];
    };
    known.sort((a, b) => {
      const [first, second] = [value(a), value(b)];
      if (first === null || second === null) return (first === null) - (second === null);
      const order = first < second ? -1 : first > second ? 1 : 0;
      return (down ? -order : order) || (a.id < b.id ? -1 : 1);
    });
    return known.map((row) => this.row(row));
  }

  rank(rows) {
    const models = rows.filter((row) => row.kind !== "solver" && row.score.values[0] !== null);
    models.sort((a, b) => b.score.values[0] - a.score.values[0]);
    let place = 0;
    models.forEach((row, number) => {
      const same = number && models[number - 1].score.values[0] === row.score.values[0];
      place = same ? place : number + 1;
      row.rank = place;
    });
  }

  row(row) {
    const name = element("th", { scope: "row", class: "name" });
    name.append(element("a", { href: `runs/${row.id}.html` }, row.name));
    const solver = row.kind === "solver";
    if (solver) name.append(" ", element("span", { class: "tag" }, "baseline"));
    const cells = row.score.values.map((value, number) =>
      numberCell(value, row.score.ends[number], number === 0),
    );
    return element(
      "tr",
      solver ? { class: "solver" } : {},
      element("td", { class: "rank" }, row.rank ? String(row.rank) : ""),
      name,
      ...cells,
      element("td", { class: "num" }, String(row.score.n)),
      element("td", { class: "protocol" }, row.protocol),
    );
  }
}

function filterSamples(chips) {
  const questions = [...document.querySelectorAll(".question")];
  const status = document.getElementById("said");
  chips.hidden = false;
  chips.addEventListener("click", (event) => {
    const chosen = event.target.closest("button");
    if (!chosen) return;
    for (const button of chips.querySelectorAll("button")) {
      button.setAttribute("aria-pressed", String(button === chosen));
    }
    const state = chosen.dataset.state;
    let shown = 0;
    for (const question of questions) {
      question.hidden = Boolean(state) && !question.dataset.states.split(" ").includes(state);
      shown += question.hidden ? 0 : 1;
    }
    status.textContent = `${shown} of ${questions.length} questions`;
  });
}

const data = document.getElementById("ranking-data");
const form = document.getElementById("filters");
if (data && form) new Rankings(JSON.parse(data.textContent), form);
const chips = document.getElementById("chips");
if (chips) filterSamples(chips);
