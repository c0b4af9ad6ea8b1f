// Mouse, fingers and keyboard.

const LEAST = 20; // microseconds that are shown at least

const show = (from, to) => {
	let long = Math.min(length * 1.04, Math.max(LEAST, to - from));
	const middle = (from + to) / 2, edge = length * 0.02;
	from = Math.min(Math.max(middle - long / 2, -edge), length + edge - long);
	view.from = from;
	view.to = from + long;
	redraw();
};

const fit = () => show(-length * 0.01, length * 1.01);
const zoom = (factor, at = (view.from + view.to) / 2) => {
	const long = Math.min(length * 1.04, Math.max(LEAST, (view.to - view.from) * factor)), part = (at - view.from) / (view.to - view.from);
	show(at - long * part, at + long * (1 - part));
};
const pan = (by) => show(view.from + by * (view.to - view.from), view.to + by * (view.to - view.from));

const zoomToUnit = (u) => show(units.start[u] - took(u) * 0.3 - 50, units.end[u] + took(u) * 0.3 + 50);

// bringUnit scrolls and zooms as little as it takes to see a unit.
const bringUnit = (u) => {
	const wide = ((units.end[u] - units.start[u]) / (view.to - view.from)) * (view.width - view.left);
	if (wide < 12) zoomToUnit(u);
	else if (units.start[u] < view.from || units.end[u] > view.to) {
		const long = Math.max(view.to - view.from, took(u) * 1.2), middle = (units.start[u] + units.end[u]) / 2;
		show(middle - long / 2, middle + long / 2);
	}
	const lane = panes.processes.lanes[units.process[u]];
	scrollTo(panes.processes, lane.top + PAD + BAND + units.row[u] * lane.row, lane.row + 8);
	const hold = holdsOfUnit.first[u + 1] > holdsOfUnit.first[u] ? holds.key[holdsOfUnit.to[holdsOfUnit.first[u]]] : NONE;
	let key = hold !== NONE ? hold : units.key[u];
	for (const s of spansOf(u)) if (waitOf.has(s)) { key = waits.key[waitOf.get(s)]; break; }
	if (key !== NONE) bringKey(key);
};

const scrollTo = (pane, top, high) => {
	const s = pane.scroller;
	if (top < s.scrollTop || top + high > s.scrollTop + s.clientHeight) s.scrollTop = Math.max(0, top - s.clientHeight / 3);
};

const bringKey = (k) => {
	let unfolded = false;
	for (let above = keys.parent[k]; above !== NONE; above = keys.parent[above]) if (!openKeys.has(above)) { openKeys.add(above); unfolded = true; }
	if (unfolded) relay();
	const lane = panes.keys.lanes.find((l) => l.key === k);
	if (lane) scrollTo(panes.keys, lane.top, lane.height);
};

const showKey = (k) => {
	chosen.key = k;
	bringKey(k);
	say(`key ${keyName(k)}, waited for ${duration(keys.waited[k])}`);
	redraw();
};

// hit says what is at a place of a pane.
const hit = (pane, x, y) => {
	const lane = pane.lanes[laneAt(pane, y + pane.scroller.scrollTop)];
	if (!lane) return null;
	const inside = y + pane.scroller.scrollTop - lane.top, t = T(x), near = Math.max(0, T(x + 4) - t);
	if (x < view.left) return { lane, name: true };
	const bar = (rows, row) => {
		const i = firstEnding(rows, rows.first[row], rows.first[row + 1], t - near);
		if (i >= rows.first[row + 1]) return NONE;
		let best = rows.refs[i];
		if (rows.columns.end[best] < t && i + 1 < rows.first[row + 1] && rows.columns.start[rows.refs[i + 1]] <= t) best = rows.refs[i + 1];
		return rows.columns.start[best] <= t + near ? best : NONE;
	};
	const mark = (grouped, n) => {
		let best = NONE;
		for (const m of nearMarks(grouped, n, t - near, t + near)) if (best === NONE || Math.abs(marks.at[m] - t) < Math.abs(marks.at[best] - t)) best = m;
		return best;
	};
	if (lane.key !== undefined) {
		const k = lane.key, m = inside < PAD + HOLD ? mark(marksOfKey, k) : NONE;
		if (m !== NONE) return { lane, mark: m };
		const hold = Math.floor((inside - PAD) / HOLD);
		if (hold >= 0 && hold < lane.holders) return { lane, hold: hold < keys.holders[k] ? bar(holdRows, holdRows.base[k] + hold) : NONE };
		const wait = Math.floor((inside - PAD - lane.holders * HOLD) / WAIT);
		if (wait >= 0 && wait < lane.waiters) return { lane, wait: bar(waitRows, waitRows.base[k] + wait) };
		return { lane };
	}
	if (inside < PAD + BAND) return { lane, mark: mark(marksOfProcess, lane.process) };
	const row = Math.floor((inside - PAD - BAND) / lane.row);
	if (row >= processes.rows[lane.process]) return { lane };
	const unit = bar(unitRows, unitRows.base[lane.process] + row);
	const m = unit === NONE ? NONE : mark(marksOfUnit, unit);
	return { lane, unit, mark: m !== NONE && !aloft(m) ? m : NONE };
};

const nearMarks = function* (grouped, n, from, to) {
	let low = grouped.first[n], high = grouped.first[n + 1];
	const end = high;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (marks.at[grouped.to[middle]] >= from) high = middle; else low = middle + 1;
	}
	for (; low < end && marks.at[grouped.to[low]] <= to; low++) yield grouped.to[low];
};

const unitAt = (h) => {
	if (!h) return NONE;
	if (h.unit !== undefined && h.unit !== NONE) return h.unit;
	if (h.hold !== undefined && h.hold !== NONE) return holds.unit[h.hold];
	if (h.wait !== undefined && h.wait !== NONE) return waits.unit[h.wait];
	if (h.mark !== undefined && h.mark !== NONE) return marks.of[h.mark] !== NONE ? marks.of[h.mark] : marks.unit[h.mark];
	return NONE;
};

const words = (parts) => parts.flat().map((p) => (typeof p === "string" ? p : p ? p.textContent : "")).join("");

const tipFor = (h) => {
	if (!h) return [];
	if (h.name) {
		if (h.lane.key === undefined) return [processName(h.lane.process), plural(unitsOfProcess[h.lane.process], "unit")];
		const k = h.lane.key;
		return [keyName(k), `held for ${duration(keys.held[k])}; ${plural(keys.waits[k], "wait")}${keys.waits[k] ? ` of ${duration(keys.waited[k])} in all` : ""}`];
	}
	const lines = [], u = unitAt(h), of = (n) => `${titleOf(n)} · ${ways[units.way[n]]} · ${outcomeOf(n)}`;
	if (h.mark !== undefined && h.mark !== NONE) {
		const m = h.mark, about = marks.of[m] !== NONE ? marks.of[m] : marks.unit[m];
		lines.push(`${moment(marks.at[m])}: ${words(tellMark(m, marks.kind[m] === M.buried || marks.kind[m] === M.cleaned || marks.kind[m] === M.recovered ? NONE : about))}`);
	}
	if (h.hold !== undefined && h.hold !== NONE) {
		const n = h.hold;
		lines.push(`${["held", "taken, while it waits for others", "had without locks, as those say who waited"][holds.having[n]]} by ${u === NONE ? shortName(text(holds.name[n])) + ", which is not recorded" : titleOf(u)} for ${duration(holds.length[n])}`);
	}
	if (h.wait !== undefined && h.wait !== NONE) lines.push(`${titleOf(u)} waited ${duration(waits.end[h.wait] - waits.start[h.wait])} ${words(behind(h.wait))}`);
	if (u !== NONE) lines.push(of(u), `${processName(units.process[u])} · ${duration(took(u))}${units.err[u] ? " · " + text(units.err[u]) : ""}`);
	return lines;
};

const moveTip = (pane, event) => {
	const tip = el("tip"), rect = pane.scroller.getBoundingClientRect(), lines = tipFor(hit(pane, event.clientX - rect.left, event.clientY - rect.top));
	tip.hidden = !lines.length;
	if (!lines.length) return;
	tip.replaceChildren(...lines.map((line, n) => make("div", { class: n ? "" : "first" }, line)));
	const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8), below = event.clientY + 18;
	tip.style.left = Math.max(4, left) + "px";
	tip.style.top = (below + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 10 : below) + "px";
};

const click = (pane, x, y) => {
	const h = hit(pane, x, y);
	if (!h) return;
	if (h.name) {
		if (h.lane.key !== undefined && h.lane.folds) toggle(openKeys, h.lane.key);
		else if (h.lane.key === undefined) toggle(openProcesses, h.lane.process);
		else showKey(h.lane.key);
		relay();
		return;
	}
	const u = unitAt(h);
	if (u !== NONE || chosen.unit !== NONE) choose(u);
};

// foldAll folds all lanes of a pane, or unfolds them if none is.
const foldAll = (pane) => {
	const [open, n, folds] = pane === panes.keys ? [openKeys, keys.n, foldsKey] : [openProcesses, processes.n, () => true];
	if (open.size) open.clear();
	else for (let i = 0; i < n; i++) if (folds(i)) open.add(i);
	relay();
};

const toggle = (set, n) => (set.has(n) ? set.delete(n) : set.add(n));

const listen = (pane) => {
	const s = pane.scroller, fingers = new Map();
	let drag = null, pinch = null;
	const at = (event) => { const rect = s.getBoundingClientRect(); return [event.clientX - rect.left, event.clientY - rect.top]; };
	s.addEventListener("wheel", (event) => {
		const [x] = at(event);
		if (event.shiftKey || (x < view.left && !event.ctrlKey)) return; // scrolls
		event.preventDefault();
		if (Math.abs(event.deltaX) > Math.abs(event.deltaY) && !event.ctrlKey) pan(event.deltaX / (view.width - view.left));
		else zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * (event.ctrlKey ? 0.01 : 0.004)), T(Math.max(view.left, x)));
	}, { passive: false });
	s.addEventListener("pointerdown", (event) => {
		const [x, y] = at(event);
		if (x > s.clientWidth || (event.pointerType === "mouse" && event.button !== 0)) return; // the scroll bar
		fingers.set(event.pointerId, [x, y]);
		s.setPointerCapture(event.pointerId);
		drag = fingers.size === 1 ? { x, y, from: view.from, to: view.to, top: s.scrollTop, moved: false } : null;
		if (fingers.size === 2) {
			const [a, b] = [...fingers.values()];
			pinch = { wide: Math.max(20, Math.abs(a[0] - b[0])), at: T((a[0] + b[0]) / 2), long: view.to - view.from };
		}
	});
	s.addEventListener("pointermove", (event) => {
		const [x, y] = at(event);
		if (!fingers.has(event.pointerId)) return moveTip(pane, event);
		fingers.set(event.pointerId, [x, y]);
		el("tip").hidden = true;
		if (pinch && fingers.size === 2) {
			const [a, b] = [...fingers.values()], long = (pinch.long * pinch.wide) / Math.max(20, Math.abs(a[0] - b[0]));
			const part = ((a[0] + b[0]) / 2 - view.left) / (view.width - view.left);
			return show(pinch.at - long * part, pinch.at + long * (1 - part));
		}
		if (!drag) return;
		if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < 4) return;
		drag.moved = true;
		s.classList.add("dragged");
		const by = ((drag.x - x) / (view.width - view.left)) * (drag.to - drag.from);
		s.scrollTop = drag.top + drag.y - y;
		show(drag.from + by, drag.to + by);
	});
	const up = (event) => {
		fingers.delete(event.pointerId);
		s.classList.remove("dragged");
		if (fingers.size < 2) pinch = null;
		if (drag && !drag.moved && event.type === "pointerup") click(pane, drag.x, drag.y);
		drag = null;
	};
	s.addEventListener("pointerup", up);
	s.addEventListener("pointercancel", up);
	s.addEventListener("pointerleave", () => { el("tip").hidden = true; });
	s.addEventListener("dblclick", (event) => {
		const [x, y] = at(event);
		if (x < view.left) return;
		const u = unitAt(hit(pane, x, y));
		if (u !== NONE) zoomToUnit(u); else zoom(0.4, T(x));
	});
	s.addEventListener("scroll", redraw);
};
