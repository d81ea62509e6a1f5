
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const list = document.getElementById("list");
  const form = document.getElementById("filters");
  const search = document.getElementById("search");
  const shown = document.getElementById("shown");
  const several = data.runs.length > 1;
  const LONG = 1600;
  const FATES = {
    right: ["●", "good"], feasible: ["◐", "fair"], wrong: ["✕", "bad"], infeasible: ["✕", "bad"],
    unparsed: ["?", "bad"], truncated: ["…", "bad"], empty: ["∅", "bad"], judge_failed: ["!", "bad"], failed: ["!", "bad"],
  };

  // Text of a model enters the page as text nodes only.
  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const foreign = (text) => {
    const whole = document.createDocumentFragment();
    for (const part of text.split(/(⟦[^⟦⟧\n]{1,40}⟧)/)) {
      if (part.startsWith("⟦") && part.endsWith("⟧")) whole.append(element("span", { class: "unseen" }, part.slice(1, -1)));
      else if (part) whole.append(part);
    }
    return whole;
  };
  const bounded = (text) => {
    const pre = element("pre");
    if (text.length <= LONG) {
      pre.append(foreign(text));
      return pre;
    }
    const head = text.slice(0, 1000);
    const tail = text.slice(-400);
    const all = element("button", { type: "button" }, `Show all ${text.length} characters`);
    pre.append(foreign(head), element("span", { class: "gone" }, `\n… ${text.length - 1400} characters …\n`), foreign(tail));
    all.addEventListener("click", () => {
      pre.replaceChildren(foreign(text));
      pre.tabIndex = -1;
      pre.focus();
      all.remove();
    });
    const whole = document.createDocumentFragment();
    whole.append(pre, all);
    return whole;
  };
  const words = (state) => state.replace("_", " ");

  const items = data.questions.map((question) => {
    const fates = element("span", { class: "fates" });
    data.runs.forEach((label, run) => {
      const own = element("span");
      for (const reply of question.replies.filter((one) => one.run === run)) {
        const [glyph, kind] = FATES[reply.state];
        const who = `${several ? `${label}, ` : ""}${nameOf(reply)}`;
        own.append(element("span", { class: kind, title: `${who}: ${words(reply.state)}` }, glyph));
      }
      fates.append(own);
    });
    const counts = new Map();
    for (const reply of question.replies) counts.set(reply.state, (counts.get(reply.state) || 0) + 1);
    fates.setAttribute("role", "img");
    fates.setAttribute("aria-label", [...counts].map(([state, count]) => `${count} ${words(state)}`).join(", "));
    const where = Object.entries(question.category || {}).filter(([name]) => name !== "group").map(([, value]) => value).join(" · ");
    const summary = element("summary", {}, element("span", { class: "name" }, foreign(question.id)), element("span", { class: "where" }, foreign(where)), fates);
    const details = element("details", { class: "question", id: question.anchor }, summary);
    const item = { question, details, filled: false };
    // A click or a key fills the question before it opens; what else opens it, such as find in page, says so afterwards.
    summary.addEventListener("click", () => fill(item));
    details.addEventListener("toggle", () => { if (details.open) fill(item); });
    list.append(details);
    return item;
  });

  function nameOf(reply) {
    return reply.decode === "greedy" ? "greedy" : `sample ${reply.sample}`;
  }

  function fill(item) {
    if (item.filled) return;
    item.filled = true;
    const { question } = item;
    const body = element("div", { class: "body" });
    const left = element("div", { class: "picture" });
    for (const picture of question.pictures || []) {
      if (picture.key) {
        const [width, height] = picture.size || [];
        const room = width ? { width, height } : {};
        left.append(element("img", { src: data.pictures[picture.key], alt: "Picture of the question", ...room }));
      }
      if (picture.note) left.append(element("p", { class: "muted" }, foreign(picture.note)));
    }
    const right = element("div");
    for (const prompt of question.prompts || []) {
      const whose = question.prompts.length > 1 ? ` of ${prompt.runs.map((run) => data.runs[run]).join(", ")}` : "";
      if (prompt.shown.system) right.append(element("h4", {}, `System prompt${whose}`), bounded(prompt.shown.system));
      right.append(element("h4", {}, `Prompt${whose}`), bounded(prompt.shown.words));
    }
    if (question.gold !== undefined && question.gold !== null) right.append(element("h4", {}, "Right answer"), bounded(question.gold));
    if (question.reference) {
      const { sense, objective, proven, floors } = question.reference;
      const others = Object.entries(floors).filter(([name]) => name !== "reference").map(([name, value]) => `${name} ${value}`).join(", ");
      right.append(element("p", { class: "muted" }, `${sense === "min" ? "Minimise" : "Maximise"}: ${proven ? "proven optimum" : "reference"} ${objective}; floors: ${others}.`));
    }
    const columns = element("div", { class: "columns" });
    if (left.childNodes.length) columns.append(left);
    if (right.childNodes.length) columns.append(right);
    if (columns.childNodes.length) body.append(columns);
    item.replies = question.replies.map((reply) => {
      const made = replyOf(question, reply);
      body.append(made);
      return made;
    });
    item.details.append(body);
    mark(item);
  }

  function replyOf(question, reply) {
    const made = element("article", { class: "reply", id: `${question.anchor}.${reply.anchor}`, tabindex: "-1" });
    const [glyph, kind] = FATES[reply.state];
    const head = element("div", { class: "head" });
    head.append(element("a", { href: `#${question.anchor}.${reply.anchor}`, title: "Link to this reply" }, nameOf(reply)));
    if (several) head.append(element("span", {}, foreign(data.runs[reply.run])));
    head.append(element("span", { class: `state ${kind}` }, `${glyph} ${words(reply.state)}`));
    const facts = [];
    if (reply.objective !== null) facts.push(`objective ${reply.objective}`);
    facts.push(`score ${Number(reply.score.toFixed(3))}`);
    if (reply.extractStage || reply.gradeStage) facts.push(`decided by ${[...new Set([reply.extractStage, reply.gradeStage].filter(Boolean))].join(", ")}`);
    if (reply.rule) facts.push(`rule ${reply.rule}`);
    if (reply.tokens !== null) facts.push(`${reply.tokens} tokens`);
    if (reply.finish) facts.push(`ended by ${reply.finish}${reply.stop ? ` ${reply.stop}` : ""}`);
    head.append(element("span", { class: "facts" }, foreign(facts.join(" · "))));
    made.append(head);
    for (const [label, text] of [["Why", reply.reason], ["Error", reply.error]]) {
      if (text) made.append(element("p", { class: "muted" }, `${label}: `, foreign(text)));
    }
    if (reply.extracted !== undefined) made.append(element("p", { class: "muted" }, "Answer read: ", element("code", {}, bounded_line(reply.extracted))));
    if (reply.reasoning) made.append(element("h4", {}, "Reasoning"), bounded(reply.reasoning));
    if (reply.text === undefined) made.append(element("p", { class: "muted" }, "Nothing was generated."));
    else if (reply.text !== "") made.append(bounded(reply.text));
    else if (!reply.reason) made.append(element("p", { class: "muted" }, "The reply is empty."));
    return made;
  }

  function bounded_line(text) {
    return foreign(text.length > 300 ? `${text.slice(0, 300)} …` : text);
  }

  // Filters: one select for each category with several values, one for verdicts.
  const filters = [];
  function addFilter(label, options, matches) {
    const select = element("select", { "data-filter": label });
    select.append(element("option", { value: "" }, "all"));
    for (const [group, values] of options) {
      const parent = group ? element("optgroup", { label: group }) : select;
      for (const [value, text] of values) parent.append(element("option", { value }, text));
      if (group) select.append(parent);
    }
    select.addEventListener("change", apply);
    form.append(element("label", {}, label, select));
    filters.push({ select, matches });
  }
  const categories = new Map();
  for (const { question } of items) {
    for (const [name, value] of Object.entries(question.category || {})) {
      if (!categories.has(name)) categories.set(name, new Set());
      categories.get(name).add(value);
    }
  }
  for (const [name, values] of categories) {
    if (values.size < 2 || values.size > 200) continue;
    const options = [...values].sort().map((value) => [value, value.length > 60 ? `${value.slice(0, 60)}…` : value]);
    addFilter(name, [["", options]], (question, value) => (question.category || {})[name] === value);
  }
  const states = new Set();
  const rules = new Set();
  for (const { question } of items) {
    for (const reply of question.replies) {
      states.add(reply.state);
      if (reply.rule) rules.add(reply.rule);
    }
  }
  const hit = (reply, value) => {
    const rest = value.slice(value.indexOf(":") + 1);
    return value.startsWith("state:") ? reply.state === rest : reply.rule === rest;
  };
  const verdicts = [["state", Object.keys(FATES).filter((state) => states.has(state)).map((state) => [`state:${state}`, words(state)])]];
  if (rules.size) verdicts.push(["violated rule", [...rules].sort().map((rule) => [`rule:${rule}`, rule])]);
  addFilter("verdict", verdicts, (question, value) => question.replies.some((reply) => hit(reply, value)));
  const verdict = filters[filters.length - 1].select;
  if (several) {
    addFilter("runs", [["", [["differ", "best scores differ"], ["agree", "best scores agree"]]]], (question, value) => {
      const best = data.runs.map((_, run) => Math.max(...question.replies.filter((reply) => reply.run === run).map((reply) => reply.score)));
      return (value === "agree") === best.every((score) => score === best[0]);
    });
  }
  const reset = element("button", { type: "reset" }, "Clear");
  form.append(reset);
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    clear();
    apply();
  });
  form.addEventListener("submit", (event) => event.preventDefault());

  function haystack(item) {
    if (item.text === undefined) {
      const { question } = item;
      const parts = [question.id, question.gold || ""];
      for (const prompt of question.prompts || []) parts.push(prompt.shown.words);
      for (const reply of question.replies) parts.push(textOf(reply));
      item.text = parts.join("\n").toLowerCase();
    }
    return item.text;
  }
  function textOf(reply) {
    return [reply.text, reply.reasoning, reply.extracted, reply.reason, reply.rule, reply.error].filter(Boolean).join("\n");
  }

  function mark(item) {
    const wanted = search.value.trim().toLowerCase();
    (item.replies || []).forEach((made, number) => {
      const reply = item.question.replies[number];
      const found = (wanted && textOf(reply).toLowerCase().includes(wanted)) || (verdict.value && hit(reply, verdict.value));
      made.classList.toggle("match", Boolean(found));
    });
  }

  function apply() {
    const wanted = search.value.trim().toLowerCase();
    const active = filters.filter(({ select }) => select.value);
    let count = 0;
    for (const item of items) {
      const fits = active.every(({ select, matches }) => matches(item.question, select.value)) && (!wanted || haystack(item).includes(wanted));
      item.details.hidden = !fits;
      if (fits) count += 1;
      mark(item);
    }
    shown.textContent = `${count} of ${items.length} questions match.`;
  }

  function clear() {
    search.value = "";
    for (const { select } of filters) select.value = "";
  }

  function follow() {
    const fragment = location.hash.slice(1);
    if (!fragment.startsWith("sample-")) return;
    const name = fragment.split(".")[0];
    const item = items.find(({ question }) => question.anchor === name);
    if (!item) {
      shown.textContent = "The sample of this link is not on this page.";
      document.getElementById("samples").scrollIntoView();
      return;
    }
    if (item.details.hidden) {
      clear();
      apply();
    }
    item.details.open = true;
    fill(item);
    const target = document.getElementById(fragment) || item.details;
    target.scrollIntoView({ block: "start" });
    (target === item.details ? item.details.querySelector("summary") : target).focus({ preventScroll: true });
  }

  search.addEventListener("input", apply);
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      search.focus();
    }
  });
  window.addEventListener("hashchange", follow);
  form.hidden = items.length === 0;
  apply();
  follow();
})();
