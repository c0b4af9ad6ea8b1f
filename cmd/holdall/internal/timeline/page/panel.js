// The panel: all of one unit, in words and in order. What texts say is never markup.

const el = (id) => document.getElementById(id);

const make = (tag, attributes, ...children) => {
	const node = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes || {})) {
		if (name === "onclick") node.addEventListener("click", value);
		else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
	}
	node.append(...children.flat().filter((c) => c !== "" && c !== undefined && c !== null));
	return node;
};

const linkTo = (u, words) => make("button", { class: "link", type: "button", onclick: () => choose(u, true, true) }, words || titleOf(u));
const keyLink = (k) => make("button", { class: "link", type: "button", onclick: () => showKey(k) }, keyName(k));

const behind = (w) => {
	const owner = text(waits.owner[w]), purpose = text(waits.purpose[w]), parts = [];
	if (waits.holder[w] !== NONE) parts.push("behind ", linkTo(waits.holder[w]));
	else if (waits.name[w]) parts.push(`behind unit ${shortName(text(waits.name[w]))}, which is not recorded`);
	else parts.push("behind others' turn, or holders of keys below");
	if (owner) parts.push(` of ${owner}`);
	if (purpose) parts.push(` for “${purpose}”`);
	if (waits.queue[w]) parts.push(`, ${waits.queue[w]} in the queue already`);
	const had = [];
	for (let i = waits.heldFirst[w]; i < waits.heldFirst[w + 1]; i++) had.push(had.length ? ", " : "", keyLink(held.key[i]));
	if (had.length) parts.push("; it held ", had);
	return parts.flat();
};

const unitNamed = (m) => marks.of[m] !== NONE ? linkTo(marks.of[m]) : shortName(text(marks.name[m]));
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

// tellMark says what a mark means, about the unit that is shown.
const tellMark = (m, u) => {
	const key = marks.key[m] === NONE ? "" : keyLink(marks.key[m]), err = text(marks.err[m]), words = text(marks.text[m]);
	switch (marks.kind[m]) {
	case M.started: return ["its process began"];
	case M.note: return [words];
	case M.paused: return [`its process did not run for ${words}`];
	case M.heartbeat: return [`heartbeat, ${plural(marks.outof[m], "key")} confirmed`];
	case M["heartbeat failed"]: return [`heartbeat: ${marks.count[m]} of ${plural(marks.outof[m], "key")} not confirmed`, err && `: ${err}`];
	case M["token raised"]: return [`its token was too low; it is ${words} now`];
	case M.lost: return ["lost its keys", err && `: ${err}`];
	case M.buried: return marks.unit[m] === u && marks.of[m] !== u ? ["freed ", key, " of the dead unit ", unitNamed(m)] : ["its key ", key, " was freed: it was dead"];
	case M.cleaned: return marks.unit[m] === u && marks.of[m] !== u ? ["cleared ", key, " of what dead unit ", unitNamed(m), " had left"] : ["what it had left on ", key, " was cleared: it was dead"];
	case M.dropped: return marks.unit[m] === u && marks.of[m] !== u ? ["took ", unitNamed(m), " out of the queue of ", key] : ["lost its place in the queue of ", key];
	case M["handed over"]: return ["got ", key, ` from ${shortName(words)} of its process`];
	case M["joined the queue"]: return ["joined the queue of ", key, `, place ${marks.count[m]}`];
	case M.journal: return [`journal: ${words}`, marks.outof[m] ? ` ${marks.count[m]} of ${marks.outof[m]}` : marks.count[m] ? ` ${marks.count[m]}` : ""];
	case M.unfinished: return ["committed, and not applied to its end", err && `: ${err}`];
	case M.recovered: return marks.unit[m] === u && marks.of[m] !== u ? ["finished the dead unit ", unitNamed(m), `: ${words}`] : [`was finished by another: ${words}`];
	case M["starting over"]: return [`attempt ${marks.count[m]} begins`, err && `: ${err}`];
	case M.released: return ["nothing of its keys is held any more"];
	default: return [markKinds[marks.kind[m]]];
	}
};

const tellSpan = (s) => {
	switch (spans.kind[s]) {
	case K.wait: return waitOf.has(s) ? ["waited for ", keyLink(waits.key[waitOf.get(s)]), " ", ...behind(waitOf.get(s))] : ["waited for " + text(spans.text[s])];
	case K.acquire: return [spans.err[s] ? "did not get " : spans.open[s] ? "asked for " : "acquired ", text(spans.text[s])];
	case K.function: return ["its function ran"];
	case K.read: return ["read ", text(spans.text[s])];
	case K.commit: return [spans.err[s] ? "did not commit " : spans.open[s] ? "began to commit " : "committed ", text(spans.text[s])];
	default: return [text(spans.text[s])];
	}
};

const SHOWN = 300; // entries of a way, before somebody asks for more

const entriesOf = (u) => {
	const all = [];
	for (let s = units.first[u]; s < units.first[u + 1]; s++) all.push({ at: spans.start[s], span: s });
	const seen = new Set();
	for (const m of members(marksOfUnit, u)) { seen.add(m); all.push({ at: marks.at[m], mark: m }); }
	for (const m of marksInUnit(u)) if (!seen.has(m)) all.push({ at: marks.at[m], mark: m });
	return all.sort((a, b) => a.at - b.at || (a.span ?? Infinity) - (b.span ?? Infinity));
};

let inUnit;
const marksInUnit = (u) => {
	inUnit ||= group(marks.n, units.n, (m) => marks.unit[m]);
	return members(inUnit, u);
};

const entry = (u, e) => {
	const after = e.at - units.start[u], whole = Math.max(1, took(u));
	const line = make("li", {});
	const bar = make("span", { class: "where", "aria-hidden": "true" }), inner = make("i");
	inner.style.left = Math.max(0, Math.min(100, (after / whole) * 100)) + "%";
	let words, tail = "", depth = 0;
	if (e.span !== undefined) {
		const s = e.span, long = spans.end[s] - spans.start[s];
		depth = depthOf(s);
		words = tellSpan(s);
		tail = spans.open[s] ? "no end recorded" : duration(long);
		inner.style.width = Math.max(1, (long / whole) * 100) + "%";
		inner.className = "k-" + kinds[spans.kind[s]];
		// That a request is refused is often how a unit learns that it has to wait.
		if (spans.err[s]) words.push(make("span", { class: spans.kind[s] === K.request ? "refusal" : "error" }, text(spans.err[s])));
	} else {
		words = tellMark(e.mark, u);
		inner.className = grave.has(marks.kind[e.mark]) ? "mark bad" : "mark";
	}
	bar.append(inner);
	line.style.setProperty("--depth", depth);
	line.append(make("span", { class: "when" }, "+" + duration(after)), make("span", { class: "what" }, ...words), make("span", { class: "long" }, tail), bar);
	return line;
};

const facts = (pairs) => make("dl", {}, ...pairs.filter(([, value]) => value !== "" && value !== undefined && value !== null && !(Array.isArray(value) && !value.length))
	.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, ...[value].flat()))));

const list = (units, most = 12) => units.slice(0, most).flatMap((u, i) => (i ? [", ", linkTo(u)] : [linkTo(u)])).concat(units.length > most ? [`, and ${units.length - most} more`] : []);

const runsOf = (u) => {
	const runs = [];
	if (units.id[u]) for (let v = 0; v < units.n; v++) if (units.id[v] === units.id[u]) runs.push(v);
	return runs;
};

const hadKeys = (u) => [...members(holdsOfUnit, u)].filter((h) => holds.having[h] !== TAKING || holds.length[h]).map((h) => make("li", {},
	keyLink(holds.key[h]), ` ${["held", "taken", "had, as who waited says,"][holds.having[h]]} for ${duration(holds.length[h])}`,
	holds.left[h] === LOST ? make("span", { class: "error" }, "and lost") : holds.left[h] === BURIED ? make("span", { class: "error" }, "until another freed it") : holds.left[h] === STILL ? ", to the end of the recording" : ""));

const showUnit = (u) => {
	const panel = el("panel"), runs = runsOf(u), others = [...members(followersOf, u)], name = text(units.name[u]);
	const waited = units.waited[u];
	const after = Array.from(new Set([...members(waitsBehind, u)].map((w) => waits.unit[w])));
	const entries = entriesOf(u), way = make("ol", { class: "way" }, ...entries.slice(0, SHOWN).map((e) => entry(u, e)));
	const outcome = make("span", { class: "outcome o-" + outcomeOf(u).replace(/\W+/g, "-") }, outcomeOf(u));
	panel.replaceChildren(
		make("div", { class: "top" }, make("h2", {}, text(units.id[u]) || name || ways[units.way[u]]), make("button", { type: "button", class: "close", "aria-label": "Close", title: "Close (Esc)", onclick: () => choose(NONE) }, "×")),
		make("p", { class: "lead" }, outcome, ` ${ways[units.way[u]]}, ${duration(took(u))}`, waited ? `, of which it waited ${duration(waited)}` : ""),
		units.err[u] ? make("p", { class: "error" }, text(units.err[u])) : "",
		facts([
			["unit", name], ["process", processName(units.process[u])], ["purpose", text(units.purpose[u])],
			["began", units.begun[u] ? `${moment(units.start[u])} (${new Date(begin + units.start[u] / 1e3).toISOString().slice(0, 23)}Z)` : "before the recording"],
			["token", text(units.token[u])],
			["wrote", units.rows[u] || units.writes[u] ? `${plural(units.writes[u], "write")}, ${plural(units.rows[u], "row")} of the lock table` : ""],
			["fell back for", units.key[u] === NONE ? "" : keyLink(units.key[u])],
			["led by", units.leader[u] === NONE ? "" : linkTo(units.leader[u])],
			["led", list(others)],
			["waited behind it", list(after)],
			["runs of this ID", runs.length > 1 ? runs.slice(0, 12).flatMap((v, i) => [i ? ", " : "", v === u ? `this (${i + 1})` : linkTo(v, `${i + 1}: ${outcomeOf(v)}`)]) : ""],
		]),
		holdsOfUnit.first[u + 1] > holdsOfUnit.first[u] ? make("h3", {}, "Keys") : "",
		holdsOfUnit.first[u + 1] > holdsOfUnit.first[u] ? make("ul", { class: "had" }, ...hadKeys(u).slice(0, 60)) : "",
		make("h3", {}, "Its way"), way,
	);
	if (entries.length > SHOWN) {
		const more = make("button", { type: "button", onclick: () => { way.append(...entries.slice(SHOWN).map((e) => entry(u, e))); more.remove(); } }, `Show ${entries.length - SHOWN} more`);
		panel.append(more);
	}
	panel.hidden = false;
	panel.scrollTop = 0;
};

const spansOf = function* (u) { for (let s = units.first[u]; s < units.first[u + 1]; s++) yield s; };

// choose shows a unit, and brings it into view if it was not clicked there.
const choose = (u, bring, focus) => {
	const before = chosen.unit;
	chosen.unit = u;
	chosen.key = NONE;
	chosen.kin = u === NONE ? new Set() : kinOf(u);
	if (u === NONE) {
		el("panel").hidden = true;
		if (before !== NONE && el("panel").contains(document.activeElement)) panes.processes.scroller.focus();
		history.replaceState(null, "", location.pathname + location.search);
		say("");
	} else {
		showUnit(u);
		if (bring) bringUnit(u);
		if (focus) {
			if (!el("table").hidden) toggleTable();
			el("panel").focus();
		}
		if (units.name[u]) history.replaceState(null, "", "#" + encodeURIComponent(text(units.name[u])));
		say(`${titleOf(u)}, ${outcomeOf(u)}, ${ways[units.way[u]]}, ${duration(took(u))}`);
	}
	resized();
};

const say = (words) => { el("status").textContent = words; };

const legend = () => {
	const swatch = (name, words) => make("li", {}, make("i", { class: "swatch s-" + name }), words);
	const keysOf = [["← → ↑ ↓", "move"], ["+ −", "zoom; the wheel does, with Shift or over the names it scrolls"], ["0", "show all"], ["/", "search"], ["n p", "next and previous match, or unit"],
		["Enter", "to the panel of the chosen unit"], ["z", "zoom to the chosen unit"], ["f", "fold or unfold the keys or, while they have the focus, the processes"], ["t", "table of units"], ["Esc", "close"]];
	el("legend").append(
		make("div", {}, make("h2", {}, "Keys, the hottest first"), make("ul", {}, swatch("held", "held"), swatch("taking", "taken, while it waits for its other keys"), swatch("told", "had without locks, as those say who waited"),
			swatch("wait", "waits"), swatch("dead", "dead, until another frees it"), swatch("below", "keys below are held: click to unfold"))),
		make("div", {}, make("h2", {}, "Processes and their units"), make("ul", {}, swatch("locks", "under locks, or a lock set"), swatch("without", "without locks"), swatch("together", "together with others"),
			swatch("red", "not committed"), swatch("amber", "fell back: it runs again"), swatch("violet", "in doubt"), swatch("grave", "its process died"))),
		make("div", {}, make("h2", {}, "Within a unit"), make("ul", {}, ...kinds.map((kind) => swatch("k-" + kind, kind)))),
		make("div", {}, make("h2", {}, "Marks"), make("ul", { class: "signs" }, ...markKinds.flatMap((kind, n) => n === M.released || n === M["starting over"] ? [] : [make("li", {}, make("canvas", { "data-kind": n, width: 32, height: 32, "aria-hidden": "true" }), kind)]),)),
		make("div", {}, make("h2", {}, "Keyboard"), make("dl", { class: "keyboard" }, ...keysOf.map(([key, words]) => make("div", {}, make("dt", {}, key), make("dd", {}, words))))),
	);
};

const drawSigns = () => {
	for (const canvas of document.querySelectorAll(".signs canvas")) {
		const ctx = canvas.getContext("2d");
		ctx.setTransform(2, 0, 0, 2, 0, 0);
		ctx.clearRect(0, 0, 16, 16);
		signOf(ctx, Number(canvas.dataset.kind), 8, 8);
	}
};
