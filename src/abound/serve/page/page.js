"use strict";

const SHOWN = 6;
const PAUSE = 120;
const LOOK = 3000;

const $ = (id) => document.getElementById(id);
const text = $("text"), shade = $("shade"), list = $("classes"), status = $("status");
const search = $("search"), found = $("found"), picker = $("model");

let model = null;
let about = null;
let classes = [];
let active = 0;
let asked = 0;
let timer = 0;
let searching = 0;
let options = [];
let option = -1;

// A token in the address is never sent to the server as part of it, and is taken out of sight at once.
const fromAddress = new URLSearchParams(location.hash.slice(1)).get("token");
if (fromAddress) {
  sessionStorage.setItem("token", fromAddress);
  history.replaceState(null, "", location.pathname);
}

function make(name, className, content) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (content !== undefined) element.textContent = content;
  return element;
}

function say(message, kind = "") {
  status.textContent = message;
  status.className = kind;
}

async function call(path, body) {
  const token = sessionStorage.getItem("token");
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) },
    body: JSON.stringify(body),
  };
  const answer = await fetch(path, options);
  const content = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(content.detail), { status: answer.status });
  return content;
}

const address = (route) => `/v1/models/${encodeURIComponent(model)}${route}`;

function content() {
  if (about.takes === "texts") return { text: text.value };
  const entries = text.value.trim().split(/\s+/).filter(Boolean).map((entry) => entry.split(":").map(Number));
  if (entries.some((entry) => entry.length !== 2 || entry.some(Number.isNaN))) {
    throw new Error("this model takes vectors: index:value index:value …");
  }
  return { features: { indices: entries.map(([index]) => index), values: entries.map(([, value]) => value) } };
}

async function ask() {
  const turn = ++asked;
  // What the model takes is not known yet: `look` asks when it is.
  if (!about) return;
  if (!text.value.trim()) {
    classes = [];
    show();
    say("");
    return;
  }
  try {
    const answer = await call(address("/explain"), { ...content(), limit: SHOWN });
    if (turn !== asked) return;
    classes = answer.classes;
    active = 0;
    show();
    const votes = classes.some((one) => one.votes.some((vote) => !isBias(vote)));
    say(votes ? "" : "No word of this text is known: the most frequent class comes first.");
  } catch (error) {
    if (turn === asked) say(error.message, "bad");
  }
}

function show() {
  const top = Math.max(...classes.map((one) => one.score), 0);
  list.replaceChildren(...classes.map((one, place) => row(one, place, top)));
  $("correct").hidden = !mayTeach() || classes.length === 0;
  document.querySelector(".teach").hidden = !mayTeach();
  mark();
}

// What a class has in every text is no word; a word of that name has a place.
const isBias = (vote) => vote.feature === "bias" && vote.places.length === 0;

function row(one, place, top) {
  const item = make("li", "class");
  item.dataset.label = one.label;
  item.append(make("span", "code", one.label));
  const middle = make("div", "middle");
  middle.append(make("span", "title", one.title || one.label));
  if (one.path.length) middle.append(make("p", "path", one.path.map((node) => node.title || node.label).join(" › ")));
  const words = make("ul", "words");
  for (const vote of one.votes.filter((each) => Math.abs(each.value) >= 0.005).slice(0, 8)) {
    const word = make("li", vote.value < 0 ? "against" : "", isBias(vote) ? "always " : `${vote.feature} `);
    word.append(make("span", "value", vote.value.toFixed(2)));
    words.append(word);
  }
  middle.append(words);
  item.append(middle);
  const side = make("div", "score");
  side.append(make("span", "", one.score.toFixed(3)));
  const meter = document.createElement("meter");
  meter.max = top || 1;
  meter.value = Math.max(0, one.score);
  meter.setAttribute("aria-hidden", "true");
  side.append(meter);
  if (mayTeach()) {
    const right = make("button", "", "This is right");
    right.type = "button";
    right.tabIndex = -1;
    right.addEventListener("click", () => teach(one.label, one.title));
    side.append(right);
  }
  item.append(side);
  item.addEventListener("focus", () => choose(place));
  item.addEventListener("mouseenter", () => choose(place));
  return item;
}

function choose(place) {
  active = place;
  mark();
}

function mark() {
  [...list.children].forEach((item, place) => {
    item.tabIndex = place === active ? 0 : -1;
    item.classList.toggle("active", place === active);
  });
  // Places count characters, of which JavaScript may take two for one.
  const letters = Array.from(text.value);
  const weights = new Float64Array(letters.length);
  const votes = classes[active] ? classes[active].votes : [];
  for (const vote of votes) {
    for (const [begin, end] of vote.places) for (let i = begin; i < end && i < letters.length; i++) weights[i] += vote.value;
  }
  const most = weights.reduce((best, weight) => Math.max(best, Math.abs(weight)), 0);
  const kind = (weight) => {
    if (weight === 0) return "";
    if (weight < 0) return "against";
    return `for-${Math.min(3, 1 + Math.floor((3 * weight) / most))}`;
  };
  const parts = [];
  for (let i = 0; i < letters.length;) {
    let end = i + 1;
    while (end < letters.length && kind(weights[end]) === kind(weights[i])) end++;
    const run = letters.slice(i, end).join("");
    parts.push(weights[i] === 0 ? document.createTextNode(run) : make("mark", kind(weights[i]), run));
    i = end;
  }
  shade.replaceChildren(...parts, document.createTextNode("\n"));
  shade.scrollTop = text.scrollTop;
}

const mayTeach = () => Boolean(about && about.learning.accepted && sessionStorage.getItem("token"));

async function teach(label, title, isNew = false) {
  const taught = text.value;
  say(`Learning ${label} …`);
  try {
    const numbers = crypto.getRandomValues(new Uint32Array(4));
    const id = Array.from(numbers, (number) => number.toString(16).padStart(8, "0")).join("");
    await call(address("/learn"), { ...content(), labels: [label], new_class: isNew, id, wait: true });
    if (text.value === taught) await ask();
    const isFirst = classes.length > 0 && classes[0].label === label;
    say(`Learned: ${label}${title ? ` ${title}` : ""}${isFirst ? " is first now." : "."}`, "good");
    await look();
  } catch (error) {
    say(error.status === 401 ? "The token is wrong." : error.message, "bad");
    if (error.status === 401) {
      sessionStorage.removeItem("token");
      await look();
      show();
    }
  }
}

async function find() {
  const turn = ++searching;
  const query = search.value.trim();
  if (!query) return closeFound();
  const answer = await call(`${address("/classes")}?limit=12&query=${encodeURIComponent(query)}`);
  if (turn !== searching) return undefined;
  options = answer.classes.map((one) => ({ ...one, isNew: false }));
  if (!options.some((one) => one.label === query)) options.push({ label: query, title: "a new class", isNew: true });
  option = 0;
  found.replaceChildren(...options.map((one, place) => {
    const item = make("li");
    item.id = `option-${place}`;
    item.setAttribute("role", "option");
    item.append(make("span", "code", one.label), make("span", "", one.title));
    item.addEventListener("mousedown", (event) => event.preventDefault());
    item.addEventListener("click", () => take(place));
    return item;
  }));
  found.hidden = false;
  search.setAttribute("aria-expanded", "true");
  return pick(0);
}

function pick(place) {
  option = (place + options.length) % options.length;
  [...found.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === option)));
  search.setAttribute("aria-activedescendant", `option-${option}`);
  found.children[option].scrollIntoView({ block: "nearest" });
}

function take(place) {
  const one = options[place];
  closeFound();
  search.value = "";
  text.focus();
  return teach(one.label, one.isNew ? "" : one.title, one.isNew);
}

function closeFound() {
  found.hidden = true;
  search.setAttribute("aria-expanded", "false");
  search.removeAttribute("aria-activedescendant");
}

function fact(name, value) {
  $("facts").append(make("dt", "", name), make("dd", "", value));
}

async function look() {
  if (!model) return;
  const before = mayTeach(), wanted = model;
  const answer = await call(address(""));
  // The answer may be late: another model was picked.
  if (wanted !== model) return;
  const isNew = !about;
  about = answer;
  text.placeholder = about.takes === "texts" ? "" : "index:value index:value …";
  const whole = new Intl.NumberFormat("en");
  $("facts").replaceChildren();
  fact("classes", whole.format(about.classes));
  fact("features", whole.format(about.features));
  fact("weights", whole.format(about.edges));
  fact("file", `${(about.bytes / 1e6).toFixed(1)} MB`);
  fact("learner", about.learner);
  fact("version", about.version);
  fact("answered", whole.format(about.suggestions));
  fact("per second", about.rate < 10 ? about.rate.toFixed(2) : whole.format(Math.round(about.rate)));
  showLearning(about.learning);
  if (isNew) await ask();
  else if (before !== mayTeach() && classes.length) show();
}

function showLearning(learning) {
  const { corrections, waiting, recent } = learning;
  const known = recent.filter((one) => one.was_right !== null);
  const right = known.filter((one) => one.was_right).length;
  let sentence = `${corrections} ${corrections === 1 ? "correction" : "corrections"}`;
  if (waiting) sentence += `, ${waiting} waiting`;
  if (known.length) sentence += `; ${right} of the last ${known.length} ${right === 1 ? "was" : "were"} right already`;
  $("learning").textContent = learning.possible ? `${sentence}.` : "This model does not learn.";
  const strip = $("strip");
  strip.setAttribute("aria-label", known.length ? sentence : "no correction yet");
  strip.replaceChildren(...recent.slice().reverse().map((one) => {
    const kinds = { true: "right", false: "taught", null: "" };
    return make("i", kinds[String(one.was_right)]);
  }));
  $("history").replaceChildren(...recent.slice(0, 6).map((one) => {
    const item = make("li");
    const times = one.tries === 1 ? "learned once" : `learned ${one.tries} times`;
    const what = one.tries === null ? "earlier" : one.was_right ? "was right" : times;
    item.append(make("span", "", new Date(one.at).toLocaleTimeString("en-GB")), make("strong", "", one.labels.join(", ")));
    item.append(make("span", "what", what));
    return item;
  }));
  $("token-form").hidden = !learning.accepted || Boolean(sessionStorage.getItem("token"));
}

text.addEventListener("input", () => {
  mark();
  clearTimeout(timer);
  timer = setTimeout(ask, PAUSE);
});
text.addEventListener("scroll", () => { shade.scrollTop = text.scrollTop; });

list.addEventListener("keydown", (event) => {
  const steps = { ArrowDown: 1, ArrowUp: -1 };
  if (event.key in steps) {
    event.preventDefault();
    const place = active + steps[event.key];
    if (place < 0) text.focus();
    else if (place < classes.length) list.children[place].focus();
  } else if (event.key === "Enter" && mayTeach()) {
    event.preventDefault();
    teach(classes[active].label, classes[active].title);
    text.focus();
  } else if (event.key === "/" && mayTeach()) {
    event.preventDefault();
    search.focus();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    closeFound();
    text.focus();
  }
});

search.addEventListener("input", () => { find().catch((error) => say(error.message, "bad")); });
search.addEventListener("blur", closeFound);
search.addEventListener("keydown", (event) => {
  if (found.hidden || !options.length) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    pick(option + (event.key === "ArrowDown" ? 1 : -1));
  } else if (event.key === "Enter") {
    event.preventDefault();
    take(option);
  }
});

$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if ($("token").value) sessionStorage.setItem("token", $("token").value);
  $("token").value = "";
  showLearning(about.learning);
  show();
});

picker.addEventListener("change", () => {
  model = picker.value;
  about = null;
  look().catch((error) => say(error.message, "bad"));
});

setInterval(() => { if (!document.hidden) look().catch(() => say("The server does not answer.", "bad")); }, LOOK);

(async () => {
  try {
    const { models } = await call("/v1/models");
    picker.replaceChildren(...models.map((one) => make("option", "", one.name)));
    model = models[0].name;
    await look();
  } catch (error) {
    say(error.message, "bad");
  }
})();
